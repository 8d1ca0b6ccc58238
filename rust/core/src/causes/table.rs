//! The points of a shard with all that happens at them.

use std::ops::Range;

use bitcode::{Decode, Encode};
use rustc_hash::FxHashMap;

use super::awaited::AwaitedWorks;
use super::past::{Past, TimeOfOthers};
use super::points::{self, CausedWait, IntervalBegin, Point, Position, Relation, SyncPoint};
use crate::ids::{CallPathId, InstanceId, LocationId};
use crate::schema::Class;
use crate::schema::Classes;
use crate::trace::NONE;
use crate::trace::Shard;
use crate::waits::interval::overlap;

/// Rows grouped by point, or by another number: `offsets[i]..offsets[i + 1]` belong to the i-th.
#[derive(Debug)]
pub(crate) struct Csr<T> {
    offsets: Vec<u32>,
    pub rows: Vec<T>,
}

impl<T> Default for Csr<T> {
    fn default() -> Self {
        Self { offsets: vec![0], rows: Vec::new() }
    }
}

impl<T> Csr<T> {
    /// Reserves space for rows of this many numbers.
    pub(crate) fn reserve(&mut self, rows: usize, numbers: usize) {
        self.rows.reserve_exact(rows);
        self.offsets.reserve_exact(numbers);
    }

    /// Adds a row; numbers must not decrease.
    pub(crate) fn push(&mut self, number: u32, row: T) {
        self.offsets.resize(number as usize + 1, self.rows.len() as u32);
        self.rows.push(row);
    }

    /// Finishes the rows, of this many numbers.
    pub(crate) fn end(&mut self, numbers: usize) {
        self.offsets.resize(numbers + 1, self.rows.len() as u32);
        self.offsets.shrink_to_fit();
        self.rows.shrink_to_fit();
    }

    pub(crate) fn range(&self, i: usize) -> std::ops::Range<usize> {
        self.offsets[i] as usize..self.offsets[i + 1] as usize
    }

    pub(crate) fn of(&self, i: usize) -> &[T] {
        &self.rows[self.range(i)]
    }

    /// The same with other rows.
    pub(crate) fn map<U>(self, row: impl Fn(T) -> U) -> Csr<U> {
        Csr { offsets: self.offsets, rows: self.rows.into_iter().map(row).collect() }
    }
}

/// Ticks of a call path, usually in 8 bytes; larger values continue in the next entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct ProfileEntry {
    callpath: u32,
    ticks: u32,
}

/// Marks a call path whose ticks continue in the next entry.
const WIDE: u32 = 1 << 31;

impl ProfileEntry {
    /// The header of this many entries.
    pub(crate) fn head(length: u32) -> Self {
        Self { callpath: NONE, ticks: length }
    }

    /// The number of entries that follow a head.
    pub(crate) fn length(self) -> u32 {
        self.ticks
    }

    /// Appends the ticks of a call path.
    #[inline]
    pub(crate) fn write(entries: &mut Vec<Self>, callpath: CallPathId, ticks: i64) {
        let callpath = callpath.number();
        let (low, high) = (ticks as u32, (ticks >> u32::BITS) as u32);
        if high == 0 {
            entries.push(Self { callpath, ticks: low });
        } else {
            entries.extend([Self { callpath: callpath | WIDE, ticks: low }, Self { callpath: NONE, ticks: high }]);
        }
    }

    /// Call paths and their ticks.
    #[inline]
    pub(crate) fn read(entries: &[Self]) -> impl Iterator<Item = (CallPathId, i64)> {
        let mut rest = entries.iter();
        std::iter::from_fn(move || {
            let &Self { callpath, ticks } = rest.next()?;
            if callpath & WIDE == 0 {
                return Some((CallPathId::new(callpath), i64::from(ticks)));
            }
            let high = rest.next().map_or(0, |entry| entry.ticks);
            let ticks = (i64::from(high) << u32::BITS) | i64::from(ticks);
            Some((CallPathId::new(callpath & !WIDE), ticks))
        })
    }
}

/// A stretch of many entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EntryRange {
    pub begin: u32,
    pub end: u32,
}

impl EntryRange {
    #[inline]
    pub(crate) fn of(self, entries: &[ProfileEntry]) -> &[ProfileEntry] {
        &entries[self.begin as usize..self.end as usize]
    }
}

/// A wait of the shard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnWait {
    /// Waiting time, ticks.
    pub waiting: i64,
    /// From the Enter of the waiting call to the end of the wait, ticks.
    pub held: i64,
    /// The part of the wait that earlier waits of the causing process explain, ticks.
    pub indirect: f64,
    /// Sum of the delays and waits over which it is distributed, ticks.
    pub explained: i64,
    /// The causing location.
    pub cause: LocationId,
    /// Position among the wait states, or [`NONE`].
    pub state: u32,
    pub point: u32,
    /// The causing point, and the row there.
    pub cause_point: u32,
    pub cost_share: u32,
    pub class: Class,
    pub relation: Relation,
}

impl OwnWait {
    /// A wait whose cause has not answered yet.
    pub(crate) fn new(pair: &SyncPoint, point: u32) -> Self {
        Self {
            waiting: pair.waiting,
            held: pair.held,
            indirect: 0.0,
            explained: 0,
            cause: pair.cause.location,
            state: pair.state,
            point,
            cause_point: NONE,
            cost_share: NONE,
            class: pair.class,
            relation: pair.relation,
        }
    }

    /// The copy of a wait in the past of a location, at this point: nothing is left of it there.
    pub(crate) fn copy((original, number): (&Point, u32), point: u32, cost_share: u32) -> Self {
        Self {
            waiting: original.waiting,
            held: original.held,
            indirect: 0.0,
            explained: original.waiting,
            cause: original.location,
            state: NONE,
            point,
            cause_point: number + 1,
            cost_share,
            class: original.class,
            relation: Relation::Past,
        }
    }

    /// The point of the original, if it is the copy of a wait.
    pub(crate) fn original(&self) -> Option<u32> {
        (self.relation == Relation::Past).then(|| self.cause_point - 1)
    }
}

/// A wait that the shard caused, or the idleness of a team.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CostShare {
    /// The amount that is distributed directly: the waiting time, ticks, or the number of idle threads.
    pub direct: i64,
    /// Share of each tick of delay in what is distributed.
    pub work_rate: f64,
    /// Share of each tick of waiting in what is distributed.
    pub wait_rate: f64,
    /// Shard of the waiter, and position of the wait there; [`NONE`] for idleness.
    pub shard: u32,
    pub own_wait: u32,
    /// Position among what arrived.
    pub arrival: u32,
    /// Delays; see `is_listed`.
    pub delays: EntryRange,
    pub class: Class,
    pub relation: Relation,
    /// Whether all delays are listed; otherwise they are the whole work of the group except the listed entries.
    pub is_listed: bool,
}

impl CostShare {
    /// A wait that has arrived, before its shares are known.
    pub(crate) fn new(caused: &CausedWait, arrival: u32) -> Self {
        let CausedWait { shard, own_wait, class, relation, waiting, .. } = *caused;
        // Each tick of the master alone costs as many ticks as there are idle threads.
        let rate = if relation == Relation::Alone { 1.0 } else { 0.0 };
        Self {
            direct: waiting,
            work_rate: rate,
            wait_rate: rate,
            shard,
            own_wait,
            arrival,
            delays: EntryRange::default(),
            class,
            relation,
            is_listed: false,
        }
    }

    /// What a copy, yet to be made, returns to its wait, of which this part is no work: what it caused later.
    pub(crate) fn of_copy(class: Class, waiting: i64, shard: u32) -> Self {
        Self {
            direct: 0,
            work_rate: 0.0,
            wait_rate: if waiting > 0 { 1.0 / waiting as f64 } else { 0.0 },
            shard,
            own_wait: NONE,
            arrival: NONE,
            delays: EntryRange::default(),
            class,
            relation: Relation::Past,
            is_listed: true,
        }
    }

    /// Whether it stands for a wait of another location, whose shares are distributed.
    pub(crate) fn is_shared_out(&self) -> bool {
        !matches!(self.relation, Relation::Alone | Relation::Past)
    }
}

/// Waits of one class with one cause and the same interval there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    pub point: u32,
    pub class: Class,
    pub relation: Relation,
    /// First point of the interval.
    pub from: u32,
    /// Time of the call at its left end that does not belong to it, ticks.
    pub before: i64,
    /// First point whose wait gets a share.
    pub shared_from: u32,
    /// Work in the interval.
    pub work: EntryRange,
    /// Waiting in the interval, ticks.
    pub waiting: i64,
    /// Rows of the waits.
    pub begin: u32,
    pub end: u32,
}

impl Group {
    pub(crate) fn cost_shares(&self) -> std::ops::Range<usize> {
        self.begin as usize..self.end as usize
    }

    /// Whether there are waits that get a share.
    pub(crate) fn shares(&self) -> bool {
        self.waiting > 0 && self.shared_from < self.point
    }
}

/// The extent of waits to consider.
#[derive(Clone, Debug)]
pub(crate) enum Extent {
    /// All of it.
    All,
    /// The part inside a window of time, ticks.
    Inside(Range<i64>),
    /// The part outside a window of time, ticks.
    Outside(Range<i64>),
}

impl Extent {
    /// The length of this part of a wait at a point, ticks.
    pub(crate) fn of(&self, wait: &OwnWait, point: &Point, shard: &Shard) -> i64 {
        if point.instance.is_none() {
            return if matches!(self, Self::Inside(_)) { 0 } else { wait.waiting };
        }
        let end = shard.enter(point.instance) + wait.held;
        self.within(end - wait.waiting..end)
    }

    /// The length of this part of a stretch of time, ticks.
    pub(crate) fn within(&self, time: Range<i64>) -> i64 {
        let length = time.end - time.start;
        match self {
            Self::All => length,
            Self::Inside(window) => overlap(window, time),
            Self::Outside(window) => length - overlap(window, time),
        }
    }

    /// The parts of a stretch of time; they may be empty.
    pub(crate) fn parts(&self, time: &Range<i64>) -> impl Iterator<Item = Range<i64>> {
        let Range { start, end } = *time;
        let (first, last) = match self {
            Self::All => (start..end, 0..0),
            Self::Inside(window) => (start.max(window.start)..end.min(window.end), 0..0),
            Self::Outside(window) => (start..end.min(window.start), start.max(window.end)..end),
        };
        [first, last].into_iter()
    }
}

/// The parts of waits that costs are computed for.
///
/// Costs are linear in these parts, even through earlier waits.
#[derive(Debug)]
pub(crate) struct WaitPart {
    pub extent: Extent,
    /// For each row of `cost_shares` the part of it, ticks; empty if it is all.
    pub amounts: Vec<i64>,
    /// Classes of such waits in the whole run.
    pub classes: Classes,
    /// The columns of these among the classes of all parts.
    pub columns: Range<usize>,
    /// For each point, how much of such waits its wait caused later, ticks.
    pub phi: Vec<f64>,
    /// What of this was not known when the point had to go on, because waits cause each other in a circle, ticks.
    pub lost: FxHashMap<u32, f64>,
}

impl WaitPart {
    /// A part with these amounts; none if it is all of each wait.
    pub(crate) fn new(extent: Extent, amounts: Vec<i64>) -> Self {
        Self {
            extent,
            amounts,
            classes: Classes::default(),
            columns: 0..0,
            phi: Vec::new(),
            lost: FxHashMap::default(),
        }
    }

    /// Adds what a wait at a point caused later, by class of all parts, but cannot pass on any more.
    pub(crate) fn lose(&mut self, point: u32, phi: &[f64]) {
        *self.lost.entry(point).or_default() += phi[self.columns.clone()].iter().sum::<f64>();
    }

    /// The amount of a row that is distributed directly, ticks.
    #[inline]
    pub(crate) fn amount(&self, row: usize, cost_share: &CostShare) -> i64 {
        self.amounts.get(row).copied().unwrap_or(cost_share.direct)
    }
}

/// Costs of later waits that a host's wait for its device hands on, by the classes of all parts, ticks.
#[derive(Clone, Debug)]
pub(crate) struct OfHost {
    pub point: u32,
    /// To the waits between devices that the host waits for.
    pub to_waits: Vec<f64>,
    /// To all that its device does meanwhile, because the host keeps a lock; empty without locks.
    pub to_all: Vec<f64>,
}

/// Points of a shard's locations in order, with their waits and causes.
#[derive(Debug, Default)]
pub(crate) struct Table {
    /// All points, location by location.
    pub points: Vec<Point>,
    /// First point of each location, with the end of the last.
    pub offsets: Vec<u32>,
    /// Waits, by point.
    pub own_waits: Csr<OwnWait>,
    /// Begin of the interval of each of these.
    pub own_intervals: Vec<IntervalBegin>,
    /// Waits caused, group by group.
    pub cost_shares: Vec<CostShare>,
    /// The groups, by point.
    pub groups: Csr<Group>,
    /// Work of the groups' intervals; later the delays, too.
    pub entries: Vec<ProfileEntry>,
    /// For each location its work over the whole run.
    pub lifetimes: Csr<(CallPathId, i64)>,
    /// For each location its past, if it has one.
    pub pasts: Vec<Option<Past>>,
    /// For each location the call paths in which others spent time for it.
    pub of_others: Vec<TimeOfOthers>,
    /// What devices did while their hosts waited.
    pub awaited: AwaitedWorks,
    /// The parts of waits that costs are computed for.
    pub parts: Vec<WaitPart>,
    /// For each row of `cost_shares` the costs that its wait caused later, by the classes of all parts.
    pub charged_phi: Vec<f64>,
    /// For each point the part of its wait that made others wait, ticks.
    pub propagating: Vec<f64>,
    /// What waits of hosts hand on to devices, by point.
    pub handed_on: Vec<OfHost>,
    /// What waits between devices hand on to those of their hosts: point, and costs by the classes of all parts, ticks.
    pub handed_back: Vec<(u32, Vec<f64>)>,
}

impl Table {
    /// Adds entries.
    pub(crate) fn add(&mut self, entries: &[ProfileEntry]) -> EntryRange {
        let begin = self.entries.len() as u32;
        self.entries.extend_from_slice(entries);
        EntryRange { begin, end: self.entries.len() as u32 }
    }

    /// For each point the costs that its wait caused later, ticks.
    pub(crate) fn phi(&self) -> &[f64] {
        &self.parts[0].phi
    }

    /// Number of classes of all parts.
    pub(crate) fn width(&self) -> usize {
        self.parts.last().map_or(0, |part| part.columns.end)
    }

    /// The part of the wait at a point that is no work, ticks: it gets shares of later waits.
    pub(crate) fn waiting(&self, number: u32) -> i64 {
        let Point { waiting, has_work, .. } = self.points[number as usize];
        if has_work { self.awaited.rest(number, waiting) } else { waiting }
    }

    /// The points of a call of a location at which it waits.
    pub(crate) fn waits_in_call(
        &self,
        shard: &Shard,
        location: LocationId,
        call: InstanceId,
    ) -> impl Iterator<Item = u32> {
        let points = self.points_of(shard.local(location));
        points::in_call(shard, call, &self.points, points, |point| point.position)
            .filter(move |&number| self.points[number].instance == call && self.points[number].waiting > 0)
            .map(|number| number as u32)
    }

    /// Drops the data that only the costs need.
    pub(crate) fn forget_costs(&mut self) {
        self.parts.truncate(1);
        self.entries = Vec::new();
        self.charged_phi = Vec::new();
        self.handed_on = Vec::new();
        self.handed_back = Vec::new();
    }

    /// Points of the shard's i-th location.
    pub(crate) fn points_of(&self, i: usize) -> std::ops::Range<usize> {
        self.offsets[i] as usize..self.offsets[i + 1] as usize
    }

    /// The point of a location at a position.
    pub(crate) fn find(&self, i: usize, position: Position) -> u32 {
        let range = self.points_of(i);
        (range.start + self.points[range].partition_point(|point| point.position < position)) as u32
    }

    /// Waits that were caused at a point.
    pub(crate) fn cost_shares_of(&self, number: usize) -> &[CostShare] {
        let groups = self.groups.of(number);
        let (begin, end) = groups.first().zip(groups.last()).map_or((0, 0), |(first, last)| (first.begin, last.end));
        &self.cost_shares[begin as usize..end as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(
            rows in prop::collection::vec((0u32..9, prop_oneof![0i64..9, 0..=i64::MAX, 0xffff_fff0i64..0x1_0000_0010]), 0..9),
        ) {
            let mut entries = Vec::new();
            for &(callpath, ticks) in &rows {
                ProfileEntry::write(&mut entries, CallPathId::new(callpath), ticks);
            }
            let read = ProfileEntry::read(&entries).map(|(callpath, ticks)| (callpath.number(), ticks));
            prop_assert_eq!(read.collect::<Vec<_>>(), rows);
        }
    }
}
