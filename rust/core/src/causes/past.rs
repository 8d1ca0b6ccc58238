//! The past of threads: before it begins, a thread is the one that forks or creates it.
//!
//! ```text
//!  master  --[ compute ]--F-[ parallel ]--J--[ compute ]--F-[ parallel ]--
//!  worker                 ---[ parallel ]                 ---[ parallel ]--
//!          |    past     |                |    past      |
//! ```
//!
//! A thread that waits, or makes others wait, has intervals, which may reach back before it begins, where it does not
//! exist. There its time, its synchronizations and its waits are those of the thread that forks or creates it, and before
//! that one begins, of the thread that forks *that*, back to the master. Its table gets *copies* of their points. A copy
//! adds no cost of its own; what it caused goes to the original ([`super::points::Relation::Past`]), and delays in call
//! paths of another thread are that thread's.
//!
//! A thread has no past if the one that forks or creates it has a higher number, whose points are not there yet.
//!
//! *Source*: not in the thesis, which has one thread per process; specification.md#costs-of-thread-teams.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::points::{Anchor, Place, Position};
use crate::ids::{CallPathId, InstanceId, LocationId, ProcessId};
use crate::matching::threads::lives::{Life, lives};
use crate::matching::threads::teams::Teams;
use crate::trace::{RegionClass, Shard, Trace};

/// A stretch of another thread's events that stands in for a thread before it begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gap {
    /// Its position among the thread's events.
    pub at: Position,
    /// The other thread.
    pub of: LocationId,
    /// Where it begins and ends there.
    pub from: Position,
    pub until: Position,
}

/// What belongs to the past of a thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Past {
    /// The points that its copies were made of, in the order of the copies.
    pub originals: Vec<u32>,
}

/// The call paths that occur in the intervals of a location only because others spent time there that stands in for its own,
/// sorted, and whose they are: those of its past, and of devices that it waited for ([`super::awaited`]).
#[derive(Clone, Debug, Default)]
pub(crate) struct TimeOfOthers(Vec<(CallPathId, LocationId)>);

impl TimeOfOthers {
    /// The location that spent the time in a call path of this one.
    pub(crate) fn owner(&self, location: LocationId, callpath: CallPathId) -> LocationId {
        let position = self.0.binary_search_by_key(&callpath, |&(callpath, _)| callpath);
        position.map_or(location, |position| self.0[position].1)
    }
}

impl FromIterator<(CallPathId, LocationId)> for TimeOfOthers {
    fn from_iter<I: IntoIterator<Item = (CallPathId, LocationId)>>(callpaths: I) -> Self {
        let mut callpaths: Vec<_> = callpaths.into_iter().collect();
        callpaths.sort_unstable();
        Self(callpaths)
    }
}

/// The call paths in which locations spent ticks, sorted: how many in all, and which location has most of them.
pub(super) fn by_callpath(ticks: &FxHashMap<(CallPathId, LocationId), i64>) -> Vec<(CallPathId, i64, LocationId)> {
    let mut all: Vec<(CallPathId, i64, LocationId)> =
        ticks.iter().map(|(&(callpath, owner), &ticks)| (callpath, ticks, owner)).collect();
    all.sort_unstable_by_key(|&(callpath, ticks, owner)| (callpath, Reverse(ticks), owner));
    all.dedup_by(|next, most| {
        let is_same = next.0 == most.0;
        most.1 += if is_same { next.1 } else { 0 };
        is_same
    });
    all
}

/// A thread begins to work, in a team or for itself.
struct Begin {
    /// Position of the Enter.
    enter: u32,
    /// The thread that forks or creates it, and where that does so.
    of: LocationId,
    until: Position,
    /// When the work ends, ticks, and where that is at the thread that forked it.
    end: i64,
    join: Option<Position>,
}

/// The stretches of the events of other threads in the past of a thread; none for a master.
pub(crate) fn gaps(trace: &Trace, shard: &Shard, location: LocationId) -> Vec<Gap> {
    let begins = begins(trace, shard, location);
    let mut of_others: FxHashMap<LocationId, Vec<Gap>> = FxHashMap::default();
    let mut gaps = Vec::new();
    let mut before: Option<&Begin> = None;
    for begin in &begins {
        let Begin { of, until, .. } = *begin;
        let since = before.map_or(i64::MIN, |before| before.end);
        let join = before.filter(|before| before.of == of).and_then(|before| before.join);
        before = Some(begin);
        if of >= location {
            continue;
        }
        let at = Position::past(begin.enter);
        let mut add = |of, from, until| {
            if from < until {
                gaps.push(Gap { at, of, from, until });
            }
        };
        let mut from = join.unwrap_or_else(|| behind(shard, shard.local(of), since));
        // The other thread has a past as well.
        for inner in of_others.entry(of).or_insert_with(|| self::gaps(trace, shard, of)).iter() {
            if from <= inner.at && inner.at < until {
                add(of, from, inner.at);
                add(inner.of, inner.from.max(behind(shard, shard.local(inner.of), since)), inner.until);
            }
            if inner.at < until {
                from = from.max(Position::before_fork(inner.at.event()));
            }
        }
        add(of, from, until);
    }
    gaps
}

/// When a thread begins to work, in the order of time.
fn begins(trace: &Trace, shard: &Shard, location: LocationId) -> Vec<Begin> {
    let process = trace.definitions.locations[location].process;
    let process = &trace.definitions.processes[process];
    if process.locations.clone().next().is_none_or(|master| master == location) {
        return Vec::new();
    }
    let mut begins: Vec<Begin> = Vec::new();
    let position = |call, place| Anchor::new(call, place).position(trace, ProcessId::NONE);
    let is_parallel = |instance: InstanceId| trace.class(shard, instance) == RegionClass::Parallel;
    for team in Teams::new(shard, process).iter() {
        let of = team.forker();
        let Some(own) = team.part_of(location) else { continue };
        let instance = own.team.instance;
        let forker = team.part_of(of).map(|part| part.team.instance);
        let (enter, end) = (shard.instances.enter[instance], shard.leave(instance));
        let join = forker.map(|forker| Position::after_join(shard.instances.leave[forker] + 1));
        let until = forker.filter(|&forker| is_parallel(instance) && is_parallel(forker));
        // Without a place to fork, it has no past, but what comes later begins behind it.
        let until = until.map(|forker| position((of, forker), Place::Fork));
        let of = if until.is_some() { of } else { location };
        begins.push(Begin { enter, of, until: until.unwrap_or(Position::END), end, join });
    }
    for life in lives(shard, process) {
        let Some(creation) = life.creation().filter(|creation| creation.thread.0 == location) else { continue };
        begins.push(Begin {
            enter: shard.instances.enter[creation.thread.1],
            of: creation.creator.0,
            until: position(creation.creator, Place::Begin),
            end: end(shard, location, &life),
            join: None,
        });
    }
    begins.sort_by_key(|begin| begin.enter);
    begins
}

/// When a created thread ends.
fn end(shard: &Shard, location: LocationId, life: &Life) -> i64 {
    life.end.map_or(shard.spans[shard.local(location)].last, |(_, end)| end.time)
}

/// The position up to all events of a location up to a given time.
fn behind(shard: &Shard, i: usize, time: i64) -> Position {
    let (first, end) = (shard.event_offsets[i], shard.event_offsets[i + 1]);
    let events = &shard.events.time[first as usize..end as usize];
    Position::after_join(first + events.partition_point(|&event| event <= time) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_belongs_to_whoever_spent_it() {
        let [own, master, forker] = [2, 0, 1].map(LocationId::new);
        let callpaths = [(CallPathId::new(5), forker), (CallPathId::new(3), master)];
        let of_others: TimeOfOthers = callpaths.into_iter().collect();
        let owner = |callpath| of_others.owner(own, CallPathId::new(callpath));
        assert_eq!([owner(3), owner(4), owner(5)], [master, own, forker]);
    }
}
