//! The rounds of barriers of POSIX threads, which are not recorded: the calls that are open at the earliest Leave are a round.

use crate::ids::{InstanceId, LocationId};
use crate::trace::locations::Process;
use crate::trace::{RegionClass, Shard, Trace};

/// The rounds of the barriers of a process: the calls that are open at the earliest Leave, by location.
pub(crate) fn rounds(trace: &Trace, shard: &Shard, process: &Process) -> Vec<Vec<(LocationId, InstanceId)>> {
    if !trace.regions.has(RegionClass::ThreadBarrier) {
        return Vec::new();
    }
    let mut calls: Vec<(LocationId, InstanceId)> = Vec::new();
    for location in process.locations {
        let barriers = |&instance: &InstanceId| trace.class(shard, instance) == RegionClass::ThreadBarrier;
        calls.extend(shard.instances_of(location).filter(barriers).map(|instance| (location, instance)));
    }
    let mut by_leave = calls.clone();
    calls.sort_by_key(|&(location, instance)| (shard.enter(instance), location));
    by_leave.sort_by_key(|&(location, instance)| (shard.leave(instance), location));
    let mut rounds = Vec::new();
    let mut entered = calls.into_iter().peekable();
    let mut last = i64::MIN;
    for (_, first) in by_leave {
        // It is part of the round before.
        if shard.enter(first) <= last {
            continue;
        }
        last = shard.leave(first);
        let mut round = Vec::new();
        while let Some(call) = entered.next_if(|&(_, instance)| shard.enter(instance) <= last) {
            round.push(call);
        }
        round.sort_unstable();
        rounds.push(round);
    }
    rounds
}
