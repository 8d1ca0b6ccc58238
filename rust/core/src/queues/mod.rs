//! Counters of messages and queues by replay: the counts of an instrumented MPI library, from the records alone.
//!
//! For a message from process i to j on a communicator, let s be the Enter of the call that starts the send, q the
//! Enter of the call that posts the receive, and d the Leave of the call that completes it:
//!
//! ```text
//! arrival  a = min(d, s + t)     t: estimated transfer time of its class, or 0
//! a < q    unexpected: it waits in a queue from a to q
//! q <= a   its receive was posted: the request waits in a queue from q to a
//! ```
//!
//! Traces do not record when a message arrives. With t = 0 the arrival is the earliest possible, and the number of
//! unexpected messages is an upper bound.
//!
//! *Source*: dissertation of Eberius, chapter 3, whose counters these derive without a modified library;
//! counters.md#counters-of-messages-and-queues.

mod arrival;
mod attempts;
mod channels;
mod in_flight;
mod ledger;
mod levels;
mod moments;
mod receivers;
mod requests;
mod senders;

use std::ops::Range;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

pub use ledger::Moment;
pub use levels::{Level, Quantity};

use self::arrival::Estimate;
use self::in_flight::Slices;
use self::ledger::Ledger;
use self::levels::Detail;
use self::receivers::{Receivers, Replayed};
use crate::Result;
use crate::ids::{CallPathId, InstanceId, LocationId};
use crate::matching::messages::Matches;
use crate::matching::protocol::{Limits, Proofs, Protocol, ProtocolClassifier};
use crate::schema::{MetricSet, QueueMetric};
use crate::severity::{self, Accumulator};
use crate::trace::{Shard, Trace};

/// Options of the replay.
#[derive(Clone, Debug)]
pub struct Options {
    /// When messages arrive.
    pub arrival: Arrival,
    /// Which messages share a queue.
    pub lists: Lists,
    /// The bins of levels over time.
    pub bins: Bins,
    /// Whether to return every increment of the sums, and every step of the levels.
    pub moments: bool,
}

/// The bins of levels over time.
#[derive(Clone, Debug, PartialEq)]
pub enum Bins {
    /// This many bins of equal width over the run; 0 for none.
    Number(usize),
    /// Bins between these times, seconds since the begin of the trace, in increasing order.
    Edges(Vec<f64>),
}

impl Bins {
    /// The edges of the bins of a run, ticks; empty for none.
    fn edges(&self, (first, last): (i64, i64), resolution: u64) -> Vec<i64> {
        let length = i128::from(last) - i128::from(first);
        match self {
            Self::Number(0) => Vec::new(),
            &Self::Number(bins) => (0..=bins).map(|bin| first + (length * bin as i128 / bins as i128) as i64).collect(),
            Self::Edges(edges) => {
                let tick = |edge: &f64| ((edge * resolution as f64).round() as i128).clamp(0, length);
                edges.iter().map(|edge| first + tick(edge) as i64).collect()
            }
        }
    }
}

/// When a message arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// After a typical transfer of its class.
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

/// Sums, one location at a time.
type Counts = Accumulator<QueueMetric>;

/// A call path at a location.
type Place = (CallPathId, LocationId);

/// Sums at places, in any order.
#[derive(Default)]
struct Sums(FxHashMap<Place, [i64; QueueMetric::ALL.len()]>);

impl Sums {
    fn add(&mut self, metric: QueueMetric, place: Place, value: i64) {
        let sums = self.0.entry(place).or_insert([0; QueueMetric::ALL.len()]);
        let sum = &mut sums[metric.number()];
        *sum = QueueMetric::sum(*sum, value);
    }

    fn cells(self) -> impl Iterator<Item = Cell> {
        self.0.into_iter().flat_map(|((callpath, location), sums)| {
            let cells = QueueMetric::ALL.iter().zip(sums).filter(|(_, value)| *value != 0);
            cells.map(move |(&metric, value)| Cell { metric, callpath, location, value })
        })
    }
}

/// The properties of a message's send that the receiver needs.
#[derive(Clone, Copy, Debug)]
struct Message {
    /// Enter of the call that starts the send (s), ticks.
    sent: i64,
    bytes: u64,
    /// Sending location, call path of the send, and its row in the sender's shard.
    location: LocationId,
    callpath: CallPathId,
    row: u32,
    protocol: Protocol,
    /// Whether both processes are on one node.
    is_local: bool,
}

impl Message {
    fn place(&self) -> Place {
        (self.callpath, self.location)
    }

    fn is_eager(&self, limits: Limits) -> bool {
        limits.is_eager(self.is_local, self.bytes, self.protocol)
    }
}

/// The messages of a shard's receivers.
#[derive(Debug, Default)]
pub struct Messages {
    /// By receive; `None` if it is not matched.
    of: Vec<Option<Message>>,
    proofs: Proofs,
}

/// The results of the replay.
#[derive(Debug, Default)]
pub struct Queues {
    /// Non-zero sums, by metric, call path and location.
    pub cells: Vec<Cell>,
    /// Levels by quantity and location.
    pub levels: Vec<Level>,
    /// The edges of the bins of levels, ticks.
    pub edges: Vec<i64>,
    /// Increments of the sums in order of time, if requested.
    pub moments: Vec<Moment>,
    /// Largest size of an eager message, within a node and between nodes; `None` if no message used rendezvous.
    pub limits: [Option<u64>; 2],
}

/// The calls of a shard's i-th location that complete receives, with their rows.
fn calls(shard: &Shard, i: usize) -> impl Iterator<Item = (InstanceId, Range<usize>)> {
    let mut end = shard.receives.range(i).start;
    shard.receives.of(i).chunk_by(|a, b| a.instance == b.instance).map(move |receives| {
        let rows = end..end + receives.len();
        end = rows.end;
        (receives[0].instance, rows)
    })
}

/// Rows of receives, each with the call that posts it, or with the probe that found the message before.
fn posted(shard: &Shard, rows: Range<usize>) -> impl Iterator<Item = (usize, InstanceId)> {
    let first = shard.probes.partition_point(|(row, _)| (*row as usize) < rows.start);
    let mut probes = shard.probes[first..].iter().peekable();
    rows.map(move |row| {
        let probe = probes.next_if(|(received, _)| *received as usize == row);
        (row, probe.map_or(shard.receives.rows[row].request, |&(_, probe)| probe))
    })
}

/// The matched messages of a shard's receivers.
#[must_use]
pub fn messages(classifier: &ProtocolClassifier, shard: &Shard, matches: &Matches) -> Messages {
    let mut proofs = Proofs::default();
    let message = |(row, request)| {
        let send = matches.send(row)?;
        let protocol = classifier.protocol(send, shard.enter(request));
        let is_local = classifier.is_local(send);
        if !classifier.is_fixed(send.callpath) {
            proofs.add(is_local, send.bytes, protocol);
        }
        Some(Message {
            sent: send.enter,
            bytes: send.bytes,
            location: send.location,
            callpath: send.callpath,
            row: send.row,
            protocol,
            is_local,
        })
    };
    let of = posted(shard, 0..shard.receives.rows.len()).map(message).collect();
    Messages { of, proofs }
}

/// Replays the queues of all receivers; `messages` are those of each shard.
pub fn replay(trace: &Trace, mut messages: Vec<Messages>, options: &Options) -> Result<Queues> {
    let proofs = messages.iter_mut().map(|messages| std::mem::take(&mut messages.proofs));
    let limits = Limits::new(trace, proofs.collect())?;
    let messages: Vec<Vec<Option<Message>>> = messages.into_iter().map(|messages| messages.of).collect();
    let estimate = match options.arrival {
        Arrival::Estimate => Some(Estimate::new(trace, &messages, limits)?),
        Arrival::Send => None,
    };
    let estimate = estimate.as_ref();
    let edges = trace.span().map_or(Vec::new(), |run| options.bins.edges(run, trace.resolution));
    let detail = Detail { edges: &edges, has_steps: options.moments };
    let replay = |(messages, shard): (Vec<Option<Message>>, _)| {
        let receivers = Receivers { trace, shard, messages: &messages, limits, estimate };
        (receivers.replay(options.lists, detail), if options.moments { receivers.moments(options) } else { Vec::new() })
    };
    let replayed: Vec<(Replayed, Vec<Moment>)> = messages.into_par_iter().zip(trace.par_shards()).map(replay).collect();

    let (mut in_flight, mut matched) = (Vec::new(), Vec::new());
    let mut found = Vec::with_capacity(replayed.len());
    for (shard, moments) in replayed {
        in_flight.push(shard.in_flight);
        matched.push(shard.matched);
        found.push((shard.counts, shard.sums, shard.levels, moments));
    }
    let of_run = match trace.span() {
        Some(run) => Slices::new(run, &trace.exchange).follow(in_flight, &trace.exchange, detail)?,
        None => None,
    };
    let matched = trace.exchange.alltoallv(matched)?;
    let of_shards = found.into_par_iter().zip(trace.par_shards()).zip(matched).map(|((found, shard), matched)| {
        let (counts, sums, mut levels, mut moments) = found;
        let mut ledger = Ledger::new(counts, options.moments);
        levels.extend(requests::replay(trace, shard, &mut ledger, detail));
        senders::out_of_sequence(trace, shard, &matched, &mut ledger);
        senders::collectives(trace, shard, limits, &mut ledger);
        let mut cells = ledger.counts.finish();
        cells.extend(sums.cells());
        moments.extend(ledger.moments.unwrap_or_default());
        Queues { cells, levels, moments, ..Queues::default() }
    });
    let (mut cells, mut levels, mut moments) = (Vec::new(), Vec::new(), Vec::new());
    for of_shard in of_shards.collect::<Vec<_>>() {
        cells.push(of_shard.cells);
        levels.push(of_shard.levels);
        moments.push(of_shard.moments);
    }
    let mut moments = trace.exchange.gatherv(moments.concat())?;
    moments.sort_by_key(|moment| moment.time);
    let cells = severity::combine(trace.exchange.gatherv(cells.concat())?);
    let mut levels = trace.exchange.gatherv(levels.concat())?;
    levels.extend(of_run);
    levels.sort_by_key(|level| (level.quantity, level.location));
    Ok(Queues { cells, levels, moments, edges, limits: limits.known() })
}
