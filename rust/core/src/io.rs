//! What was done with files: operations, bytes and time by file, call path and location.
//!
//! ```text
//!  ---[ MPI_File_iwrite ]-----------[ MPI_Wait ]---
//!       ^ begin                          ^ completion
//!       |---- time ----------------------|
//!       |-- in calls ---|           |----|
//! ```
//!
//! An operation lasts from its begin to its completion, the time of other uses (open, close, seek, ...) is that of their
//! call. What belongs to an operation of another paradigm, such as the writes of POSIX in one of MPI-IO, is *nested*:
//! it has rows of its own, and the sums of a run do not count it.
//!
//! *Source*: specification.md#files.

use bitcode::{Decode, Encode};
use rustc_hash::FxHashMap;

use crate::ids::{CallPathId, InstanceId, LocationId, NONE};
use crate::parallel::iter::prelude::*;
use crate::trace::columns::{IoKind, IoOperation};
use crate::trace::{Shard, Trace};

/// What is added up separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
pub struct Key {
    /// The location.
    pub location: LocationId,
    /// The call path, or none.
    pub callpath: CallPathId,
    /// String id of the name of the file, or [`NONE`].
    pub file: u32,
    /// String id of the name of the I/O paradigm, or [`NONE`].
    pub paradigm: u32,
    /// What was done.
    pub kind: IoKind,
    /// Whether it belongs to an operation of another paradigm.
    pub is_nested: bool,
}

/// Sums of some uses of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Sums {
    /// Their number.
    pub count: u64,
    /// Those that were cancelled or never completed.
    pub incomplete: u64,
    /// Bytes read or written.
    pub bytes: u64,
    /// From begin to completion, ticks.
    pub time: i64,
    /// The part of it in calls that begin or complete them, ticks.
    pub in_calls: i64,
}

/// A row of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct IoCell {
    /// What the row is about.
    pub key: Key,
    /// Its sums.
    pub sums: Sums,
}

/// Adds up the uses of files at the locations of this process, by location and call path.
pub fn find(trace: &Trace) -> Vec<IoCell> {
    let of_shards: Vec<Vec<IoCell>> = trace.par_shards().map(|shard| of_shard(trace, shard)).collect();
    of_shards.into_iter().flatten().collect()
}

fn of_shard(trace: &Trace, shard: &Shard) -> Vec<IoCell> {
    let mut cells: FxHashMap<Key, Sums> = FxHashMap::default();
    for i in 0..shard.locations.len() {
        let rows = shard.io.of(i);
        let own = times_of_calls(trace, shard, rows);
        for (row, in_call) in rows.iter().zip(own) {
            let (file, paradigm) = names(trace, row);
            let callpath = known(row.instance).map_or(CallPathId::NONE, |instance| shard.callpath(instance));
            let location = shard.location(i);
            let key = Key { location, callpath, file, paradigm, kind: row.kind, is_nested: row.is_nested };
            let sums = cells.entry(key).or_default();
            sums.count += 1;
            sums.bytes = sums.bytes.saturating_add(row.bytes);
            let (time, in_calls) = if row.kind.is_operation() { times(shard, row) } else { (in_call, in_call) };
            sums.incomplete += u64::from(row.end == i64::MIN);
            sums.time += time;
            sums.in_calls += in_calls;
        }
    }
    let mut cells: Vec<IoCell> = cells.into_iter().map(|(key, sums)| IoCell { key, sums }).collect();
    cells.sort_unstable_by_key(|cell| cell.key);
    cells
}

fn known(instance: InstanceId) -> Option<InstanceId> {
    Some(instance).filter(|instance| instance.is_some())
}

/// Name of the file and of the paradigm.
fn names(trace: &Trace, row: &IoOperation) -> (u32, u32) {
    let files = &trace.definitions.io;
    let (file, paradigm) = if row.kind == IoKind::Delete {
        (files.file(row.of), Some(row.paradigm))
    } else {
        let handle = files.handle(row.of);
        (handle.map(|handle| handle.name), handle.map(|handle| handle.paradigm))
    };
    (file.unwrap_or(NONE), paradigm.and_then(|paradigm| files.paradigm(paradigm)).unwrap_or(NONE))
}

/// Time of an operation, and the part of it in calls.
fn times(shard: &Shard, row: &IoOperation) -> (i64, i64) {
    if row.end == i64::MIN {
        return (0, 0);
    }
    let time = row.end - row.begin;
    if row.complete == row.instance {
        return (time, time);
    }
    let issued = match known(row.instance) {
        _ if row.issued != i64::MIN => row.issued,
        Some(instance) => shard.leave(instance),
        None => row.begin,
    };
    (time, time.min(issued.min(row.end) - row.begin + row.awaited))
}

/// For each use that is no operation, the time of its call without the operations in it. A call with several such
/// records, as one that closes and deletes, belongs to the last.
fn times_of_calls(trace: &Trace, shard: &Shard, rows: &[IoOperation]) -> Vec<i64> {
    let mut times = vec![0; rows.len()];
    let mut calls: Vec<(InstanceId, usize)> = rows
        .iter()
        .enumerate()
        .filter(|(_, row)| row.instance.is_some() && row.instance == row.complete)
        .map(|(i, row)| (row.instance, i))
        .collect();
    calls.sort_unstable();
    for of_call in calls.chunk_by(|a, b| a.0 == b.0) {
        let instance = of_call[0].0;
        let last = of_call.iter().rev().map(|&(_, row)| row).find(|&row| !rows[row].kind.is_operation());
        if let Some(last) = last.filter(|_| trace.regions.is_io(trace.tree.region(shard.callpath(instance)))) {
            let operations = of_call.iter().map(|&(_, row)| &rows[row]).filter(|row| row.kind.is_operation());
            let inside: i64 = operations.map(|row| row.end - row.begin).sum();
            times[last] = (shard.leave(instance) - shard.enter(instance) - inside).max(0);
        }
    }
    times
}
