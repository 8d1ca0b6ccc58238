//! The past of worker threads: before its fork, a thread is the one that forks it.
//!
//! ```text
//!  master  --[ compute ]--F-[ parallel ]--J--[ compute ]--F-[ parallel ]--
//!  worker                 ---[ parallel ]                 ---[ parallel ]--
//!          |    past     |                |    past      |
//! ```
//!
//! A thread that communicates has intervals, which may reach back before its fork, where the thread does not exist.
//! There its time, its synchronizations and its waits are those of the master: its table gets *copies* of the master's
//! points outside its teams. A copy adds no cost of its own; what it caused goes to the original
//! ([`super::points::Relation::Past`]), and delays in the master's call paths are the master's.
//!
//! Threads forked by a thread other than the master have no past.
//!
//! *Source*: not in the thesis, which has one thread per process; specification.md#costs-of-thread-teams.

use rustc_hash::FxHashMap;

use super::points::{Anchor, Place, Position};
use crate::ids::{CallPathId, InstanceId, LocationId, ProcessId};
use crate::trace::{NONE, RegionClass, Shard, Trace};
use crate::waits::threads::teams;

/// A stretch of the master's events that stands in for a thread before one of its teams.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gap {
    /// Its position among the thread's events.
    pub at: Position,
    /// Where it begins and ends at the master: after the thread's last join, and at its next fork.
    pub from: Position,
    pub until: Position,
}

/// Tells which call paths of a thread belong to its master.
#[derive(Clone, Debug)]
pub(crate) struct Past {
    /// The master.
    pub master: LocationId,
    /// Sorted call paths that occur only in the thread's past.
    pub callpaths: Vec<CallPathId>,
}

impl Past {
    /// The location that spent the time of a thread's call path.
    pub(crate) fn owner(past: Option<&Self>, location: LocationId, callpath: CallPathId) -> LocationId {
        let of_master = past.filter(|past| past.callpaths.binary_search(&callpath).is_ok());
        of_master.map_or(location, |past| past.master)
    }
}

/// The master of a thread of the shard, and the stretches of its events in the thread's past; none for a master.
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
    let mut from = Position::after_join(shard.event_offsets[shard.local(master)]);
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
            Some(instance) => Position::after_join(shard.instances.leave[instance] + 1),
            None => behind(shard, shard.local(master), shard.leave(team.instance)),
        };
    }
    (master, gaps)
}

/// The position after all events of a location up to a given time.
fn behind(shard: &Shard, i: usize, time: i64) -> Position {
    let (first, end) = (shard.event_offsets[i], shard.event_offsets[i + 1]);
    let events = &shard.events.time[first as usize..end as usize];
    Position::after_join(first + events.partition_point(|&event| event <= time) as u32)
}
