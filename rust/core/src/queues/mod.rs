//! Counters of messages and queues by replay: what a modified MPI library would count, from records alone.
//!
//! Of a message from process i to j on a communicator, with s the Enter of the call that starts the send, q that of the
//! call that posts the receive, and d the Leave of the call that completes it:
//!
//! ```text
//! arrival  a = min(d, s + t)     t: what others of its class say of the transfer, or 0
//! a < q    unexpected: it waits in a queue from a to q
//! q <= a   its receive was posted: the request waits in a queue from q to a
//! ```
//!
//! With t = 0 the arrival is the earliest possible, and what is unexpected an upper bound: records do not tell when a
//! message arrives.
//!
//! *Source*: dissertation of Eberius, chapter 3, whose counters these derive without a modified library;
//! counters.md#counters-of-messages-and-queues.

mod arrival;
mod attempts;
mod levels;
mod receivers;
mod requests;
mod senders;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

pub use levels::{Level, Quantity};

use crate::Result;
use crate::ids::{CallPathId, CommId, InstanceId, LocationId, ProcessId};
use crate::matching::messages::Matches;
use crate::matching::protocol::{Judge, Limits, Protocol};
use crate::schema::{MetricSet, QueueMetric};
use crate::trace::{Shard, Trace};

/// How to replay.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// When messages arrive.
    pub arrival: Arrival,
    /// Which messages share a queue.
    pub lists: Lists,
    /// Into how many bins of equal width to cut the levels; 0 for none.
    pub bins: usize,
}

/// When a message arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// After a transfer as long as those of its class.
    Estimate,
    /// As soon as its send begins.
    Send,
}

/// Which messages share a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lists {
    /// Those of one pair of processes and one communicator.
    Pair,
    /// Those to one process with one communicator.
    Receiver,
}

/// A sum of a metric at a call path and a location.
pub type Cell = crate::severity::Cell<QueueMetric, i64>;

/// Sums by call path and location.
#[derive(Default)]
struct Sums {
    row_of: FxHashMap<(CallPathId, LocationId), usize>,
    rows: Vec<((CallPathId, LocationId), [i64; QueueMetric::ALL.len()])>,
    /// The latest row: what follows is mostly of the same.
    latest: usize,
}

impl Sums {
    fn add(&mut self, metric: QueueMetric, place: (CallPathId, LocationId), value: i64) {
        if self.rows.get(self.latest).is_none_or(|(latest, _)| *latest != place) {
            self.latest = *self.row_of.entry(place).or_insert_with(|| {
                self.rows.push((place, [0; QueueMetric::ALL.len()]));
                self.rows.len() - 1
            });
        }
        let sum = &mut self.rows[self.latest].1[metric.number()];
        *sum = QueueMetric::sum(*sum, value);
    }

    fn cells(self) -> impl Iterator<Item = Cell> {
        self.rows.into_iter().flat_map(|((callpath, location), sums)| {
            let cells = QueueMetric::ALL.iter().zip(sums).filter(|(_, value)| *value != 0);
            cells.map(move |(&metric, value)| Cell { metric, callpath, location, value })
        })
    }
}

/// Matched messages, by the shards of their receivers.
pub type Messages = Vec<Vec<Message>>;

/// A matched message, at its receiver.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// Enter of the call that starts the send (s), ticks.
    sent: i64,
    /// Enter of the call that posts the receive (q), ticks.
    posted: i64,
    /// Enter and Leave of the call that completes the receive (d), ticks.
    completed: (i64, i64),
    /// When it arrives (a), ticks.
    arrival: i64,
    bytes: u64,
    /// Sending and receiving process.
    source: ProcessId,
    destination: ProcessId,
    comm: CommId,
    /// Number of the message among those of its pair and communicator.
    number: u32,
    /// Sending location, and row in its shard.
    location: LocationId,
    row: u32,
    /// Region instances that posted and completed the receive.
    request: InstanceId,
    instance: InstanceId,
    protocol: Protocol,
    /// Whether both processes are on one node.
    is_local: bool,
}

/// What the replay found.
#[derive(Debug, Default)]
pub struct Queues {
    /// Sums that are not zero, by metric, call path and location.
    pub cells: Vec<Cell>,
    /// Levels by quantity and location.
    pub levels: Vec<Level>,
    /// Largest size of an eager message, within a node and between nodes; `None` if no message went by rendezvous.
    pub limits: [Option<u64>; 2],
}

/// The matched messages of a shard's receivers.
#[must_use]
pub fn messages(judge: &Judge, shard: &Shard, matches: &Matches) -> Vec<Message> {
    let mut messages = Vec::with_capacity(shard.receives.rows.len());
    let mut probes = shard.probes.iter().peekable();
    for (row, receive) in shard.receives.rows.iter().enumerate() {
        let probe = probes.next_if(|(received, _)| *received as usize == row);
        let Some(send) = matches.send(row) else { continue };
        let request = probe.map_or(receive.request, |&(_, probe)| probe);
        let posted = shard.enter(request);
        let completed = (shard.enter(receive.instance), shard.leave(receive.instance));
        messages.push(Message {
            sent: send.enter,
            posted,
            completed,
            arrival: send.enter.min(completed.1),
            bytes: send.bytes,
            source: send.source,
            destination: send.destination,
            comm: receive.comm,
            number: 0,
            location: send.location,
            row: send.row,
            request,
            instance: receive.instance,
            protocol: judge.protocol(send, posted),
            is_local: judge.is_local(send),
        });
    }
    messages
}

/// Replays the queues of all receivers; `messages` are those of each shard.
pub fn replay(trace: &Trace, mut messages: Messages, options: &Options) -> Result<Queues> {
    let proofs = messages.iter().flatten().map(|message| (message.is_local, message.bytes, message.protocol));
    let limits = Limits::new(trace, proofs)?;
    let is_eager = |message: &Message| limits.is_eager(message.is_local, message.bytes, message.protocol);
    if options.arrival == Arrival::Estimate {
        arrival::estimate(trace, &mut messages, is_eager)?;
    }
    let replayed: Vec<receivers::Replayed> = messages
        .par_iter_mut()
        .zip(&trace.shards)
        .map(|(messages, shard)| receivers::replay(trace, shard, messages, options, is_eager))
        .collect();
    let in_flight = levels::whole_run(trace, &messages, options.bins)?;
    let mut sent = senders::count(trace, &messages, &limits)?;
    drop(messages);

    let of_shards = replayed.into_par_iter().zip(&mut sent).zip(&trace.shards).map(|((replayed, sums), shard)| {
        let receivers::Replayed { sums: received, mut levels } = replayed;
        levels.extend(requests::replay(trace, shard, sums, options.bins));
        let cells = received.cells().chain(std::mem::take(sums).cells());
        (cells.collect::<Vec<_>>(), levels)
    });
    let (cells, levels): (Vec<Vec<Cell>>, Vec<Vec<Level>>) = of_shards.collect();
    let mut cells = trace.exchange.gatherv(cells.concat())?;
    // A call can send and receive: no metric is counted on both sides.
    cells.sort_unstable_by_key(|cell| (cell.metric, cell.callpath, cell.location));
    let mut levels = trace.exchange.gatherv(levels.concat())?;
    levels.extend(in_flight);
    levels.sort_by_key(|level| (level.quantity, level.location));
    Ok(Queues { cells, levels, limits: limits.known() })
}
