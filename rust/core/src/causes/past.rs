//! The past of worker threads: before its fork, a thread is the one that forks it.
//!
//! ```text
//!  master  --[ compute ]--F-[ parallel ]--J--[ compute ]--F-[ parallel ]--
//!  worker                 ---[ parallel ]                 ---[ parallel ]--
//!          |    past     |                |    past      |
//! ```
//!
//! A thread that communicates has intervals like any other. They reach back before its fork, where it does not exist:
//! there its time, its synchronizations and its waits are those of the master. Its table gets *copies* of the master's
//! points outside of its teams. A copy costs nobody anything; what it caused goes to the original
//! ([`super::Relation::Past`]), and delays in the master's call paths are the master's.
//!
//! Threads that others than the master forked have no past.
//!
//! *Source*: not in the thesis, which has one thread a process; specification.md#costs-of-thread-teams.

use rustc_hash::FxHashMap;

use super::{Anchor, Place, Position};
use crate::ids::{CallPathId, InstanceId, LocationId, ProcessId};
use crate::trace::{NONE, RegionClass, Shard, Trace};
use crate::waits::threads::teams;

/// A stretch of the master's events that a thread has before one of its teams.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gap {
    /// Where the thread has it.
    pub at: Position,
    /// Where it begins and ends at the master: behind the last join of the thread, and at its fork.
    pub from: Position,
    pub until: Position,
}

/// Whose delays those in the past of a thread are.
#[derive(Clone, Debug)]
pub(crate) struct Past {
    /// The master.
    pub master: LocationId,
    /// Sorted call paths that the thread has in its past only.
    pub callpaths: Vec<CallPathId>,
}

impl Past {
    /// Who has the time of a thread's call path.
    pub(crate) fn owner(past: Option<&Self>, location: LocationId, callpath: CallPathId) -> LocationId {
        let of_master = past.filter(|past| past.callpaths.binary_search(&callpath).is_ok());
        of_master.map_or(location, |past| past.master)
    }
}

/// The master of a thread of the shard, and what the thread has of its events; nothing if it is the master.
pub(crate) fn gaps(trace: &Trace, shard: &Shard, location: LocationId) -> (LocationId, Vec<Gap>) {
    let process = trace.definitions.locations[location].process;
    let process = &trace.definitions.processes[process];
    let master = process.locations.clone().next().unwrap_or(location);
    if location == master {
        return (master, Vec::new());
    }
    let instance_of_master: FxHashMap<u32, InstanceId> = teams(shard, process)
        .into_iter()
        .filter(|part| part.location == master && part.team.instance.is_some())
        .map(|part| (part.team.fork, part.team.instance))
        .collect();
    let teams = shard.teams.of(shard.local(location)).iter().filter(|team| team.instance.is_some());
    let mut teams: Vec<_> = teams.collect();
    teams.sort_by_key(|team| shard.instances.enter[team.instance]);
    let mut gaps = Vec::new();
    let mut from = Position::behind_join(shard.event_offsets[shard.local(master)]);
    for team in teams {
        let of_master = instance_of_master.get(&team.fork).copied().filter(|_| team.fork != NONE);
        if let Some(instance) = of_master
            && shard.location_of(&shard.forks, team.fork) == master
            && trace.class(shard, team.instance) == RegionClass::Parallel
            && trace.class(shard, instance) == RegionClass::Parallel
        {
            let at = Position::past(shard.instances.enter[team.instance]);
            let until = Anchor::new((master, instance), Place::Fork).position(trace, ProcessId::NONE);
            if from < until {
                gaps.push(Gap { at, from, until });
            }
        }
        from = match of_master {
            Some(instance) => Position::behind_join(shard.instances.leave[instance] + 1),
            None => behind(shard, shard.local(master), shard.leave(team.instance)),
        };
    }
    (master, gaps)
}

/// The position behind all events of a location up to a time.
fn behind(shard: &Shard, i: usize, time: i64) -> Position {
    let (first, end) = (shard.event_offsets[i], shard.event_offsets[i + 1]);
    let events = &shard.events.time[first as usize..end as usize];
    Position::behind_join(first + events.partition_point(|&event| event <= time) as u32)
}
