//! Matching of non-blocking collective operations: the n-th that each member of a communicator starts belong together,
//! apart from blocking ones.

use rustc_hash::FxHashMap;

use crate::ids::{CommId, LocationId};
use crate::trace::columns::Nonblocking;
use crate::trace::locations::Process;
use crate::trace::{Shard, Trace};

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
}

/// The operations that a process completes, in the order in which it starts them.
pub(crate) fn of_process<'a>(shard: &'a Shard, process: &Process) -> Vec<Started<'a>> {
    let mut started: Vec<Started> = process
        .locations
        .flat_map(|location| {
            let numbers = shard.nonblocking.range(shard.local(location));
            numbers.map(move |number| {
                let row = &shard.nonblocking.rows[number];
                Started { location, row, number: number as u32, sequence: 0 }
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
pub(crate) fn any(trace: &Trace) -> crate::Result<bool> {
    Ok(trace.exchange.sum(trace.shards.iter().map(|shard| shard.nonblocking.rows.len()).sum())? > 0)
}
