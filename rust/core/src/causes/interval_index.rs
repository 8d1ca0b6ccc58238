//! The part of all intervals that is kept once the costs are computed: their ends, and the points in between.
//!
//! That suffices to measure the intervals of any wait again ([`super::factors`]). Work and shares take many times the
//! memory and are dropped.

use super::awaited::AwaitedWorks;
use super::past::{Past, TimeOfOthers};
use super::points::IntervalBegin;
use super::points::{Place, Position, Relation};
use super::table::Table;
use super::table::{Csr, Group, OwnWait};
use crate::ids::{InstanceId, LocationId};
use crate::parallel::iter::prelude::*;
use crate::schema::Class;

/// The properties of a point that intervals need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexedPoint {
    pub position: Position,
    /// Waiting time, ticks.
    pub waiting: i64,
    /// Duration of the call as far as it can be work behind the point, ticks.
    pub total: i64,
    /// Region instance, or [`crate::trace::NONE`] at the end.
    pub instance: InstanceId,
    pub class: Class,
    pub place: Place,
    /// Whether it waits for the work of a device.
    pub has_work: bool,
}

/// Where the intervals of some waits begin at the cause.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexedGroup {
    /// One past the last row of its waits.
    pub end: u32,
    pub begin: IntervalBegin,
}

/// A wait, and where to find the interval of its cause.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexedWait {
    /// Position among the wait states, or [`crate::trace::NONE`].
    pub state: u32,
    /// The causing location, its point, and the row there.
    pub cause_location: LocationId,
    pub cause_point: u32,
    pub cost_share: u32,
    pub relation: Relation,
    pub class: Class,
    /// Waiting time, ticks.
    pub waiting: i64,
}

impl IndexedWait {
    fn new(wait: &OwnWait) -> Self {
        Self {
            state: wait.state,
            cause_location: wait.cause,
            cause_point: wait.cause_point,
            cost_share: wait.cost_share,
            relation: wait.relation,
            class: wait.class,
            waiting: wait.waiting,
        }
    }

    /// The location and the point of the original, if it is the copy of a wait.
    pub(crate) fn original(&self) -> Option<(LocationId, usize)> {
        (self.relation == Relation::Past).then(|| (self.cause_location, self.cause_point as usize - 1))
    }
}

/// Points and intervals of a shard.
#[derive(Debug)]
pub(crate) struct IntervalIndex {
    /// All points, location by location.
    pub points: Vec<IndexedPoint>,
    /// First point of each location, with the end of the last.
    pub offsets: Vec<u32>,
    /// Waits, by point.
    pub waits: Csr<IndexedWait>,
    /// Where the interval of each wait begins.
    pub intervals: Vec<IntervalBegin>,
    /// What was caused, by point.
    groups: Csr<IndexedGroup>,
    /// For each location its past, if it has one.
    pub pasts: Vec<Option<Past>>,
    /// For each location the call paths in which others spent time for it.
    pub of_others: Vec<TimeOfOthers>,
    /// What devices did while their hosts waited.
    pub awaited: AwaitedWorks,
}

impl IntervalIndex {
    /// Moves what is kept out of the tables of all shards, without copying.
    pub(crate) fn of_tables(tables: Vec<Table>) -> Vec<Self> {
        let of_table = |table: Table| {
            let points = table.points.into_iter().map(|point| IndexedPoint {
                position: point.position,
                waiting: point.waiting,
                total: point.total,
                instance: point.instance,
                class: point.class,
                place: point.place,
                has_work: point.has_work,
            });
            let group = |group: Group| {
                let begin = IntervalBegin { from: group.from, before: group.before };
                IndexedGroup { end: group.end, begin }
            };
            Self {
                points: points.collect(),
                offsets: table.offsets,
                waits: table.own_waits.map(|wait| IndexedWait::new(&wait)),
                intervals: table.own_intervals,
                groups: table.groups.map(group),
                pasts: table.pasts,
                of_others: table.of_others,
                awaited: table.awaited,
            }
        };
        tables.into_par_iter().map(of_table).collect()
    }

    /// The part of the wait at a point that is no work, ticks.
    pub(crate) fn waiting(&self, number: usize) -> i64 {
        let IndexedPoint { waiting, has_work, .. } = self.points[number];
        if has_work { self.awaited.rest(number as u32, waiting) } else { waiting }
    }

    /// Where the interval of a wait begins that a location of this shard caused at a point, in a row there.
    pub(crate) fn begin_of_cause(&self, point: u32, row: u32) -> IntervalBegin {
        let groups = self.groups.of(point as usize);
        let group = groups.get(groups.partition_point(|group| group.end <= row));
        group.map_or(IntervalBegin { from: point, before: 0 }, |group| group.begin)
    }
}
