//! Counters of messages and queues by replay: the counts of an instrumented MPI library, from the records alone.
//!
//! For a message from process i to j on a communicator, let s be the Enter of the call that starts the send, q the
//! Enter of the call that posts the receive, and d the Leave of the call that completes it:
//!
//! ```text
//! arrival  a = min(d, p(s))      p(s): from s on, the first time at which the receiver looks for messages
//!              min(d, s + t)     t: estimated transfer time of its class, or 0
//! a < q    unexpected: it waits in a queue from a to q
//! q <= a   its receive was posted: the request waits in a queue from q to a
//! ```
//!
//! Traces do not record when a message arrives. That the receiver looks is the earliest possible time for a library without a
//! thread of its own, and so the number of unexpected messages is an upper bound; with t = 0 it is one for any library.
//!
//! *Source*: dissertation of Eberius, chapter 3, whose counters these derive without a modified library;
//! counters.md#counters-of-messages-and-queues.

mod arrival;
mod attempts;
mod channels;
mod in_flight;
mod ledger;
mod levels;
mod message;
mod moments;
mod options;
mod polling;
mod proven;
mod receivers;
mod requests;
mod senders;
mod sums;

pub use ledger::Moment;
pub use levels::{Level, Quantity};
pub use message::{Messages, messages};
pub use options::{Arrival, Bins, Lists, Options};
pub use sums::Cell;

use arrival::Estimate;
use in_flight::Slices;
use ledger::Ledger;
use levels::Detail;
use message::Message;
use receivers::{Arrivals, Receivers, Replayed};

use crate::Result;
use crate::matching::protocol::Limits;
use crate::parallel::iter::prelude::*;
use crate::severity;
use crate::trace::Trace;

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

/// Replays the queues of all receivers; `messages` are those of each shard.
pub fn replay(trace: &Trace, mut messages: Vec<Messages>, options: &Options) -> Result<Queues> {
    let proofs = messages.iter_mut().map(|messages| std::mem::take(&mut messages.proofs));
    let limits = Limits::new(trace, proofs.collect())?;
    let messages: Vec<Vec<Option<Message>>> = messages.into_iter().map(|messages| messages.of).collect();
    let estimate = match options.arrival {
        Arrival::Estimate => Some(Estimate::new(trace, &messages, limits)?),
        Arrival::Send | Arrival::Progress => None,
    };
    let looking = if options.arrival == Arrival::Progress { polling::looking(trace) } else { Vec::new() };
    let arrivals = match (options.arrival, &estimate) {
        (Arrival::Progress, _) => Arrivals::Seen(&looking),
        (_, Some(estimate)) => Arrivals::Estimated(estimate),
        (_, None) => Arrivals::Sent,
    };
    let edges = trace.span().map_or(Vec::new(), |run| options.bins.edges(run, trace.resolution));
    let detail = Detail { edges: &edges, has_steps: options.moments };
    let replay = |(messages, shard): (Vec<Option<Message>>, _)| {
        let receivers = Receivers { trace, shard, messages: &messages, limits, arrivals };
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
