//! The calls of libraries and thread runtimes in the focus, as the reasons of losses look at them.

use std::ops::Range;

use crate::account::activities::Activity;
use crate::account::floors::{Floors, Kind};
use crate::account::sweep::{CallPaths, Found, Rest};
use crate::galloping_search::partition_point_near;
use crate::ids::{CallPathId, LocationId};
use crate::trace::{Shard, Trace};

/// A call of a library or of a thread runtime in the focus.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    /// The position of its Leave.
    pub leave: u32,
    /// Its kind, among all of the run.
    pub kind: usize,
    /// Its own time without waits, ticks.
    pub ticks: i64,
    /// What such a call needs, ticks; `i64::MAX` if nothing is known.
    pub floor: i64,
}

impl Call {
    /// What it takes beyond its need, ticks.
    pub(super) fn excess(&self) -> i64 {
        (self.ticks - self.floor).max(0)
    }
}

/// The calls that lie in the focus.
pub(in crate::account) struct Calls<'a> {
    pub trace: &'a Trace,
    pub callpaths: &'a CallPaths,
    pub floors: &'a Floors,
    pub focus: &'a Range<i64>,
    shards: Vec<OfShard<'a>>,
}

/// The calls of a shard, in the order of locations and Leaves.
struct OfShard<'a> {
    rests: &'a [Rest],
    /// The position of each of its kinds among all.
    kinds: Vec<usize>,
    /// Its locations with time in the focus, and their calls.
    ranges: Vec<(LocationId, Range<usize>)>,
}

impl<'a> Calls<'a> {
    pub(in crate::account) fn new(
        trace: &'a Trace,
        callpaths: &'a CallPaths,
        floors: &'a Floors,
        focus: &'a Range<i64>,
        passes: impl Iterator<Item = (&'a [Kind], &'a [Rest], impl Iterator<Item = (LocationId, &'a Found)>)>,
    ) -> Self {
        let shards = passes.map(|(kinds, rests, found)| OfShard {
            rests,
            kinds: kinds.iter().map(|&kind| floors.position(kind)).collect(),
            ranges: found.map(|(location, found)| (location, found.rests.clone())).collect(),
        });
        let shards = shards.collect();
        Self { trace, callpaths, floors, focus, shards }
    }

    /// The calls of a location.
    pub(super) fn of(&self, location: LocationId) -> impl ExactSizeIterator<Item = Call> + Clone {
        let (of_shard, rests) = self.rests(location);
        rests.iter().map(|rest| self.call(of_shard, rest))
    }

    /// The call of a location that ends with the event at a position.
    pub(super) fn at(&self, location: LocationId, leave: u32) -> Option<Call> {
        let (of_shard, rests) = self.rests(location);
        let found = rests.binary_search_by_key(&leave, |rest| rest.leave).ok()?;
        Some(self.call(of_shard, &rests[found]))
    }

    fn rests(&self, location: LocationId) -> (&OfShard<'a>, &'a [Rest]) {
        let of_shard = &self.shards[self.trace.position(location)];
        let found = of_shard.ranges.binary_search_by_key(&location, |&(location, _)| location);
        (of_shard, found.map_or(&[], |found| &of_shard.rests[of_shard.ranges[found].1.clone()]))
    }

    fn call(&self, of_shard: &OfShard<'_>, rest: &Rest) -> Call {
        let kind = of_shard.kinds[rest.kind as usize];
        Call { leave: rest.leave, kind, ticks: rest.ticks, floor: self.floors.all[kind].floor }
    }

    pub(super) fn kind(&self, call: &Call) -> Kind {
        self.floors.all[call.kind].kind
    }

    /// The locations of this process with time in the focus.
    pub(super) fn locations(&self) -> impl Iterator<Item = LocationId> {
        self.shards.iter().flat_map(|of_shard| of_shard.ranges.iter().map(|&(location, _)| location))
    }

    /// The position of the first event of a location after a time, searched from the number of an event that is likely to
    /// be close.
    pub(super) fn position_after(&self, location: LocationId, at: i64, near: &mut usize) -> u32 {
        let shard = self.trace.shard(location);
        let events = shard.events_of(location);
        let times = &shard.events.time[events.clone()];
        *near = partition_point_near(times, (*near).min(times.len()), |&time| time <= at);
        (events.start + *near) as u32
    }

    /// Whether a location runs own code before the event at a position.
    pub(super) fn computes(&self, location: LocationId, position: u32) -> bool {
        let shard = self.trace.shard(location);
        let events = shard.events_of(location);
        if position as usize == events.start || position as usize == events.end {
            return false;
        }
        let callpath = innermost(self.trace, shard, position);
        callpath.is_some() && self.callpaths.activities[callpath] == Activity::Own
    }

    /// Ticks of some seconds.
    pub(super) fn ticks(&self, seconds: f64) -> i64 {
        (seconds * self.trace.resolution as f64).round() as i64
    }
}

/// The call path that a location is in before the event at a position, or none; it must not be the first of the location.
pub(in crate::account) fn innermost(trace: &Trace, shard: &Shard, position: u32) -> CallPathId {
    shard.events.running_after(&trace.tree, position - 1)
}

/// Adds up rows of a call path that are in the order of call paths.
pub(super) fn sum_by_callpath<T>(
    mut rows: Vec<T>,
    callpath: impl Fn(&T) -> CallPathId,
    add: impl Fn(&mut T, &T),
) -> Vec<T> {
    rows.sort_by_key(&callpath);
    let mut sums: Vec<T> = Vec::new();
    for row in rows {
        match sums.last_mut().filter(|last| callpath(last) == callpath(&row)) {
            Some(last) => add(last, &row),
            None => sums.push(row),
        }
    }
    sums
}
