//! Messages and collective operations that could be combined.
//!
//! Messages to the same rank, with nothing received or completed between them, could be one. So could two collective
//! operations of a kind if the second begins at once: there is no work between them whose result it needs.

use bitcode::{Decode, Encode};
use rustc_hash::FxHashSet;

use super::calls::{Calls, sum_by_callpath};
use crate::Result;
use crate::ids::{CallPathId, InstanceId, LocationId, ProcessId};
use crate::parallel::iter::prelude::*;
use crate::trace::{NONE, Shard};

/// The calls of a call path that send small messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Combinable {
    /// The call path.
    pub callpath: CallPathId,
    /// Small messages.
    pub messages: u64,
    /// Those of them that follow on another one to the same rank.
    pub combinable: u64,
}

/// Collective operations of a call path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Repeated {
    /// The call path.
    pub callpath: CallPathId,
    /// Operations.
    pub operations: u64,
    /// Those of them that follow at once on another one of their kind.
    pub repeated: u64,
}

/// Larger messages are not small, bytes.
const SMALL: u64 = 8192;

pub(super) fn find(calls: &Calls<'_>) -> Result<(Vec<Combinable>, Vec<Repeated>)> {
    let of_shards: Vec<(Vec<Combinable>, Vec<Repeated>)> = calls
        .trace
        .par_shards()
        .map(|shard| {
            let messages = shard.locations.flat_map(|location| messages(calls, shard, location)).collect();
            let operations = shard.locations.flat_map(|location| operations(calls, shard, location)).collect();
            (by_callpath(messages), repeated_by_callpath(operations))
        })
        .collect();
    let (messages, operations): (Vec<_>, Vec<_>) = of_shards.into_iter().unzip();
    let messages = calls.trace.exchange.gatherv(by_callpath(messages.concat()))?;
    let operations = calls.trace.exchange.gatherv(repeated_by_callpath(operations.concat()))?;
    Ok((by_callpath(messages), repeated_by_callpath(operations)))
}

fn by_callpath(rows: Vec<Combinable>) -> Vec<Combinable> {
    let add = |sum: &mut Combinable, row: &Combinable| {
        sum.messages += row.messages;
        sum.combinable += row.combinable;
    };
    sum_by_callpath(rows, |row| row.callpath, add)
}

fn repeated_by_callpath(rows: Vec<Repeated>) -> Vec<Repeated> {
    let add = |sum: &mut Repeated, row: &Repeated| {
        sum.operations += row.operations;
        sum.repeated += row.repeated;
    };
    sum_by_callpath(rows, |row| row.callpath, add)
}

/// The small messages of a location by call path, in the focus.
fn messages(calls: &Calls<'_>, shard: &Shard, location: LocationId) -> Vec<Combinable> {
    let i = shard.local(location);
    let sends = shard.sends.of(i);
    if sends.is_empty() {
        return Vec::new();
    }
    // Where something is received or completed.
    let completes = |instance: InstanceId| instance.is_some().then(|| shard.instances.enter[instance]);
    let mut ends: Vec<u32> = shard.receives.of(i).iter().filter_map(|receive| completes(receive.instance)).collect();
    ends.extend(sends.iter().filter(|send| send.complete != send.instance).filter_map(|send| completes(send.complete)));
    ends.extend(shard.collectives.of(i).iter().filter_map(|operation| completes(operation.instance)));
    ends.extend(shard.operations.of(i).iter().filter_map(|operation| completes(operation.done_remote)));
    ends.sort_unstable();
    ends.dedup();
    let mut next = 0;
    let mut peers: FxHashSet<ProcessId> = FxHashSet::default();
    let mut found: Vec<Combinable> = Vec::new();
    for send in sends {
        let enter = shard.instances.enter[send.instance];
        let time = shard.events.time[enter as usize];
        if time < calls.focus.start || time >= calls.focus.end || send.bytes >= SMALL {
            continue;
        }
        if ends.get(next).is_some_and(|&end| end <= enter) {
            next += ends[next..].partition_point(|&end| end <= enter);
            peers.clear();
        }
        let row = Combinable {
            callpath: shard.callpath(send.instance),
            messages: 1,
            combinable: u64::from(!peers.insert(send.peer)),
        };
        match found.last_mut().filter(|last| last.callpath == row.callpath) {
            Some(last) => {
                last.messages += row.messages;
                last.combinable += row.combinable;
            }
            None => found.push(row),
        }
    }
    by_callpath(found)
}

/// The collective operations of a location by call path, in the focus.
fn operations(calls: &Calls<'_>, shard: &Shard, location: LocationId) -> Vec<Repeated> {
    let mut before: Option<(CallPathId, u32, i64)> = None;
    let mut found: Vec<Repeated> = Vec::new();
    for operation in shard.collectives.of(shard.local(location)) {
        let leave = shard.instances.leave[operation.instance];
        if leave == NONE {
            continue;
        }
        let (enter, end) = (shard.enter(operation.instance), shard.events.time[leave as usize]);
        if enter < calls.focus.start || end > calls.focus.end {
            continue;
        }
        let callpath = shard.callpath(operation.instance);
        let region = |callpath: CallPathId| calls.callpaths.regions[callpath];
        let follows = before.is_some_and(|(of, comm, since)| {
            let floor = calls.at(location, leave).map_or(0, |call| if call.floor == i64::MAX { 0 } else { call.floor });
            comm == operation.comm.number() && region(of) == region(callpath) && enter - since < floor
        });
        before = Some((callpath, operation.comm.number(), end));
        let row = Repeated { callpath, operations: 1, repeated: u64::from(follows) };
        match found.last_mut().filter(|last| last.callpath == callpath) {
            Some(last) => {
                last.operations += 1;
                last.repeated += row.repeated;
            }
            None => found.push(row),
        }
    }
    repeated_by_callpath(found)
}
