//! What the events say about the reasons of lost time, for the rules of findings.
//!
//! | question | file |
//! |---|---|
//! | Do calls take long while other locations of the node compute? | [`crowding`] |
//! | Do the same calls and functions take longer in one process, or on one node? | [`slow_places`] |
//! | Do sends take until their receiver calls the library? | [`rendezvous`] |
//! | Do requests take as long as without the computation that should hide them? | [`overlap`] |
//! | Could messages or collective operations be combined? | [`bursts`] |
//! | Do threads queue for a lock? | [`convoys`] |
//! | Do barriers order anything? | [`barriers`] |
//!
//! An analysis by several processes does not ask: the partners of a call would be in several of them.
//!
//! *Source*: findings.md.

mod barriers;
mod bursts;
mod convoys;
mod crowding;
mod overlap;
mod rendezvous;
mod slow_places;

use std::ops::Range;

use super::activities::Activity;
use super::floors::{Floors, Kind};
use super::sweep::{CallPaths, Found, Rest};
use crate::Result;
use crate::ids::{CallPathId, LocationId};
use crate::trace::{Shard, Trace};

pub use barriers::NeedlessBarriers;
pub use bursts::{Combinable, Repeated};
pub use convoys::Convoy;
pub use crowding::Crowded;
pub use overlap::Unprogressed;
pub use rendezvous::HeldUp;
pub use slow_places::SlowPlace;

/// What speaks for one reason or another.
#[derive(Clone, Debug, Default)]
pub struct Reasons {
    /// Nodes on which calls take long while other locations compute.
    pub crowded: Vec<Crowded>,
    /// Processes and nodes that need longer for the same calls and functions.
    pub slow_places: Vec<SlowPlace>,
    /// Calls that send, by call path, and how long they are held up by receivers that do not call the library.
    pub held_up: Vec<HeldUp>,
    /// Calls that complete requests, by call path, and how long transfers take that had enough time before.
    pub unprogressed: Vec<Unprogressed>,
    /// Calls that send, by call path, and how many of their messages could be combined.
    pub combinable: Vec<Combinable>,
    /// Collective operations that follow at once on another of their kind, by call path.
    pub repeated: Vec<Repeated>,
    /// Locks of threads, by the call path that waits for them.
    pub convoys: Vec<Convoy>,
    /// Barriers that order nothing visible, by call path.
    pub barriers: Vec<NeedlessBarriers>,
}

impl Reasons {
    /// Looks for all of them in the focus.
    pub(super) fn find(calls: &Calls<'_>) -> Result<Self> {
        if calls.trace.exchange.processes() > 1 || calls.focus.is_empty() {
            return Ok(Self::default());
        }
        let (combinable, repeated) = bursts::find(calls);
        Ok(Self {
            crowded: crowding::find(calls),
            slow_places: slow_places::find(calls),
            held_up: rendezvous::find(calls),
            unprogressed: overlap::find(calls)?,
            combinable,
            repeated,
            convoys: convoys::find(calls),
            barriers: barriers::find(calls),
        })
    }
}

/// A call of a library or of a thread runtime in the focus.
#[derive(Clone, Copy, Debug)]
struct Call {
    /// The position of its Leave.
    leave: u32,
    /// Its kind, among all of the run.
    kind: usize,
    /// Its own time without waits, ticks.
    ticks: i64,
    /// What such a call needs, ticks; `i64::MAX` if nothing is known.
    floor: i64,
}

impl Call {
    /// What it takes beyond its need, ticks.
    fn excess(&self) -> i64 {
        (self.ticks - self.floor).max(0)
    }
}

/// The calls that lie in the focus.
pub(super) struct Calls<'a> {
    trace: &'a Trace,
    callpaths: &'a CallPaths,
    floors: &'a Floors,
    focus: &'a Range<i64>,
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
    pub(super) fn new(
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
    fn of(&self, location: LocationId) -> impl ExactSizeIterator<Item = Call> + Clone {
        let (of_shard, rests) = self.rests(location);
        rests.iter().map(|rest| self.call(of_shard, rest))
    }

    /// The call of a location that ends with the event at a position.
    fn at(&self, location: LocationId, leave: u32) -> Option<Call> {
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

    fn kind(&self, call: &Call) -> Kind {
        self.floors.all[call.kind].kind
    }

    /// All locations with time in the focus.
    fn locations(&self) -> impl Iterator<Item = LocationId> {
        self.shards.iter().flat_map(|of_shard| of_shard.ranges.iter().map(|&(location, _)| location))
    }

    /// The call path that a location is in at a time, or none.
    fn innermost_at(&self, location: LocationId, at: i64) -> CallPathId {
        let shard = self.trace.shard(location);
        let i = shard.local(location);
        let events = shard.event_offsets[i] as usize..shard.event_offsets[i + 1] as usize;
        let position = events.start + shard.events.time[events.clone()].partition_point(|&time| time <= at);
        if position == events.start || position == events.end {
            return CallPathId::NONE;
        }
        innermost(self.trace, shard, position as u32)
    }

    /// Whether a location runs own code at a time.
    fn computes(&self, location: LocationId, at: i64) -> bool {
        let callpath = self.innermost_at(location, at);
        callpath.is_some() && self.callpaths.activities[callpath] == Activity::Own
    }

    /// Ticks of some seconds.
    fn ticks(&self, seconds: f64) -> i64 {
        (seconds * self.trace.resolution as f64).round() as i64
    }
}

/// The call path that a location is in before the event at a position, or none; it must not be the first of the location.
pub(super) fn innermost(trace: &Trace, shard: &Shard, position: u32) -> CallPathId {
    let before = position - 1;
    let callpath = shard.events.callpath(before);
    if shard.events.is_leave(before) { trace.tree.nodes()[callpath].parent } else { callpath }
}

/// Adds up rows of a call path that are in the order of call paths.
fn sum_by_callpath<T>(mut rows: Vec<T>, callpath: impl Fn(&T) -> CallPathId, add: impl Fn(&mut T, &T)) -> Vec<T> {
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
