//! Matching of non-blocking collective operations: the n-th that each member of a communicator starts belong together,
//! apart from blocking ones.

use bitcode::{Decode, Encode};
use rustc_hash::FxHashMap;

use super::collectives::Kind;
use crate::Result;
use crate::diagnostics::DiagnosticKind;
use crate::ids::{CommId, InstanceId, LocationId};
use crate::parallel::exchange::Outbox;
use crate::parallel::iter::prelude::*;
use crate::trace::columns::{NEIGHBORHOOD, Nonblocking};
use crate::trace::locations::Process;
use crate::trace::{RegionClass, Shard, Trace};

/// A process's part in a non-blocking operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Started<'a> {
    /// The location that completes it.
    pub location: LocationId,
    /// Its row, and the position of this among those of the shard.
    pub row: &'a Nonblocking,
    pub number: u32,
    /// Number of the operation on its communicator.
    pub sequence: u32,
    /// A value of `CollectiveOp`, marked if it is an operation of neighbors.
    pub operation: u8,
}

/// The operations that a process completes, in the order in which it starts them.
pub(crate) fn of_process<'a>(trace: &Trace, shard: &'a Shard, process: &Process) -> Vec<Started<'a>> {
    let mut started: Vec<Started> = process
        .locations
        .flat_map(|location| {
            let numbers = shard.nonblocking.range(shard.local(location));
            numbers.map(move |number| {
                let row = &shard.nonblocking.rows[number];
                let operation = match trace.class(shard, row.post) {
                    RegionClass::StartNeighborhood => row.operation | NEIGHBORHOOD,
                    _ => row.operation,
                };
                Started { location, row, number: number as u32, sequence: 0, operation }
            })
        })
        .collect();
    started.sort_by_key(|started| shard.enter(started.row.post));
    let mut next: FxHashMap<CommId, u32> = FxHashMap::default();
    for of_comm in &mut started {
        let number = next.entry(of_comm.row.comm).or_default();
        of_comm.sequence = *number;
        *number += 1;
    }
    started
}

/// Whether the processes of the analysis have any.
pub(crate) fn any(trace: &Trace) -> Result<bool> {
    Ok(trace.exchange.sum(trace.shards.iter().map(|shard| shard.nonblocking.rows.len()).sum())? > 0)
}

/// A member's part in an operation that it completes.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub(crate) struct Part {
    pub comm: CommId,
    pub sequence: u32,
    pub rank: u32,
    pub root: u32,
    pub operation: u8,
    pub sends: bool,
    pub receives: bool,
    /// Enter of the call that starts it, and Leave of the call that completes it, ticks.
    pub begin: i64,
    pub end: i64,
    /// From when on the call that completes it waits, ticks; its Leave if it is a test.
    pub waits: i64,
    pub location: LocationId,
    /// The calls that start and complete it.
    pub post: InstanceId,
    pub complete: InstanceId,
    /// Its row among the operations of its shard.
    pub row: u32,
}

/// The parts in all operations, by the shard that evaluates them: instance by instance, ordered by rank.
pub(crate) fn parts(trace: &Trace) -> Result<Vec<Vec<Part>>> {
    let parts = trace.exchange.alltoallv(trace.par_shards().map(|shard| post(trace, shard)).collect())?;
    let sorted = parts.into_par_iter().map(|inbox| {
        let mut parts = inbox.into_vec();
        parts.sort_unstable_by_key(|part| (part.comm, part.sequence, part.rank));
        parts
    });
    Ok(sorted.collect())
}

/// The instances among parts.
pub(crate) fn instances(parts: &[Part]) -> impl Iterator<Item = &[Part]> {
    parts.chunk_by(|a, b| (a.comm, a.sequence) == (b.comm, b.sequence))
}

/// Whether it is known who needs whom in an instance; otherwise what is wrong with it.
pub(crate) fn check(trace: &Trace, members: &[Part]) -> std::result::Result<(), DiagnosticKind> {
    let first = &members[0];
    if members.len() != trace.definitions.comms[first.comm].size {
        Err(DiagnosticKind::IncompleteCollective)
    } else if members.iter().any(|part| (part.operation, part.root) != (first.operation, first.root)) {
        Err(DiagnosticKind::MixedCollective)
    } else if Kind::of(first.operation) == Kind::Undecided
        || (Kind::of(first.operation) == Kind::Neighborhood && trace.definitions.topologies.of(first.comm).is_none())
    {
        Err(DiagnosticKind::NonBlockingCollective)
    } else {
        Ok(())
    }
}

fn post(trace: &Trace, shard: &Shard) -> Outbox<Part> {
    let mut outbox = trace.exchange.outbox();
    for process in shard.processes {
        for started in of_process(trace, shard, &trace.definitions.processes[process]) {
            let (row, location) = (started.row, started.location);
            let comm = &trace.definitions.comms[row.comm];
            // Alone nobody waits.
            let Some(rank) = comm.rank(process).filter(|_| comm.size > 1) else { continue };
            let is_test = trace.class(shard, row.complete).is_test();
            let part = Part {
                comm: row.comm,
                sequence: started.sequence,
                rank,
                root: row.root,
                operation: started.operation,
                sends: row.sent > 0,
                receives: row.received > 0,
                begin: shard.enter(row.post),
                end: shard.leave(row.complete),
                waits: if is_test { shard.leave(row.complete) } else { shard.enter(row.complete) },
                location,
                post: row.post,
                complete: row.complete,
                row: started.number,
            };
            outbox.push(trace.exchange.evaluator(part.comm.number(), part.sequence), part);
        }
    }
    outbox
}
