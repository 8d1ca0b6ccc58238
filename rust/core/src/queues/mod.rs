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
//! *Source*: dissertation of Eberius, chapter 3, whose counters these derive without a modified library; COUNTERS 3.1.

mod arrival;
mod attempts;
mod levels;
mod protocol;
mod receivers;
mod requests;
mod senders;

use bitcode::{Decode, Encode};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use whywait_otf2::Definitions;

pub use levels::{Level, Quantity};
pub use protocol::Protocol;

use crate::Result;
use crate::matching::messages::Matches;
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

macro_rules! metrics {
    ($($(#[$doc:meta])* $variant:ident = $name:literal in $unit:ident),+ $(,)?) => {
        /// What is summed by call path and location.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
        #[repr(u8)]
        pub enum Metric {
            $($(#[$doc])* $variant),+
        }

        impl Metric {
            /// All of them in the order of their numbers.
            pub const ALL: &'static [Metric] = &[$(Metric::$variant),+];

            /// Unique name.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// What its values count.
            #[must_use]
            pub fn unit(self) -> Unit {
                match self { $(Self::$variant => Unit::$unit),+ }
            }
        }
    };
}

/// What a value counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Ticks inside, seconds outside.
    Time,
    /// Occurrences or bytes.
    Number,
}

metrics! {
    /// Messages that could have arrived before their receive was posted: s < q.
    UnexpectedPossible = "mpi_unexpected_possible" in Number,
    /// Messages that arrived before their receive was posted: a < q.
    Unexpected = "mpi_unexpected" in Number,
    /// Bytes of those that are eager.
    UnexpectedBytes = "mpi_unexpected_bytes" in Number,
    /// Time that unexpected messages waited: q - a.
    UnexpectedTime = "mpi_unexpected_time" in Time,
    /// Time that posted receives waited for their message: a - q.
    PostedTime = "mpi_posted_time" in Time,
    /// Comparisons of messages with posted receives, and of receives with unexpected messages.
    MatchAttempts = "mpi_match_attempts" in Number,
    /// Messages whose receive was posted after that of a later message of the same pair and communicator.
    Overtaken = "mpi_overtaken" in Number,
    /// Messages whose send overlaps one of another thread to the same process and communicator.
    OutOfSequencePossible = "mpi_oos_possible" in Number,
    /// Messages proved eager.
    Eager = "mpi_eager" in Number,
    /// Messages proved to have gone by rendezvous.
    Rendezvous = "mpi_rendezvous" in Number,
    /// Messages whose protocol only the limit decides.
    Undecided = "mpi_protocol_unknown" in Number,
    /// Bytes of messages proved eager.
    EagerBytes = "mpi_eager_bytes" in Number,
    /// Bytes of messages proved to have gone by rendezvous.
    RendezvousBytes = "mpi_rendezvous_bytes" in Number,
    /// Bytes of messages whose protocol only the limit decides.
    UndecidedBytes = "mpi_protocol_unknown_bytes" in Number,
    /// Messages without data.
    Size0 = "mpi_message_size_0" in Number,
    /// Messages of at most 64 bytes.
    Size64 = "mpi_message_size_64" in Number,
    /// Messages of at most 1 KiB.
    Size1Ki = "mpi_message_size_1ki" in Number,
    /// Messages of at most 8 KiB.
    Size8Ki = "mpi_message_size_8ki" in Number,
    /// Messages of at most 64 KiB.
    Size64Ki = "mpi_message_size_64ki" in Number,
    /// Messages of at most 1 MiB.
    Size1Mi = "mpi_message_size_1mi" in Number,
    /// Messages of more than 1 MiB.
    SizeMore = "mpi_message_size_more" in Number,
    /// Messages of more bytes than the eager limit of their locality.
    AboveLimit = "mpi_message_size_above_limit" in Number,
    /// Requests that are never completed.
    RequestsLeaked = "mpi_requests_leaked" in Number,
    /// Parts in collective operations: at most B bytes, at most 64 members.
    CollectiveSmallSmall = "mpi_collective_size_small_small" in Number,
    /// Parts in collective operations: at most B bytes, more than 64 members.
    CollectiveSmallLarge = "mpi_collective_size_small_large" in Number,
    /// Parts in collective operations: more than B bytes, at most 64 members.
    CollectiveLargeSmall = "mpi_collective_size_large_small" in Number,
    /// Parts in collective operations: more than B bytes, more than 64 members.
    CollectiveLargeLarge = "mpi_collective_size_large_large" in Number,
}

/// A sum of a metric at a call path and a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Cell {
    /// What is summed.
    pub metric: Metric,
    /// Call path.
    pub callpath: u32,
    /// Index of the location.
    pub location: u32,
    /// Ticks, occurrences or bytes.
    pub value: i64,
}

/// Sums by call path and location.
#[derive(Default)]
struct Sums(FxHashMap<(u32, u32), [i64; Metric::ALL.len()]>);

impl Sums {
    fn add(&mut self, metric: Metric, (callpath, location): (u32, u32), value: i64) {
        let sums = self.0.entry((callpath, location)).or_insert([0; Metric::ALL.len()]);
        let sum = &mut sums[metric as usize];
        *sum = sum.saturating_add(value);
    }

    fn cells(self) -> impl Iterator<Item = Cell> {
        self.0.into_iter().flat_map(|((callpath, location), sums)| {
            let cells = Metric::ALL.iter().zip(sums).filter(|(_, value)| *value != 0);
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
    source: u32,
    destination: u32,
    comm: u32,
    /// Number of the message among those of its pair and communicator.
    number: u32,
    /// Sending location, and row in its shard.
    location: u32,
    row: u32,
    /// Region instances that posted and completed the receive.
    request: u32,
    instance: u32,
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

/// What must be known of call paths and processes to judge messages.
#[derive(Debug)]
pub struct Judge {
    named: Vec<protocol::Named>,
    nodes: Vec<u32>,
}

impl Judge {
    /// Reads names of calls, and the nodes of processes.
    #[must_use]
    pub fn new(trace: &Trace, definitions: &Definitions) -> Self {
        Self { named: protocol::by_name(trace, definitions), nodes: protocol::nodes(trace, definitions) }
    }

    /// The matched messages of a shard's receivers.
    #[must_use]
    pub fn messages(&self, shard: &Shard, matches: &Matches) -> Vec<Message> {
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
                protocol: protocol::judge(self.named[send.callpath as usize], send, posted),
                is_local: self.nodes[send.source as usize] == self.nodes[send.destination as usize],
            });
        }
        messages
    }
}

/// Replays the queues of all receivers; `messages` are those of each shard.
pub fn replay(trace: &Trace, mut messages: Messages, options: &Options) -> Result<Queues> {
    let limits = protocol::limits(trace, &messages)?;
    let is_eager = |message: &Message| protocol::is_eager(message, &limits);
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
    Ok(Queues { cells, levels, limits: limits.map(|limit| (limit != u64::MAX).then_some(limit)) })
}
