//! What stays of all intervals once the costs are booked: their ends, and the points in between.
//!
//! That is enough to measure the intervals of any wait again ([`super::factors`]). Work and shares, which take many times
//! the memory, do not stay.

use rayon::prelude::*;

use super::table::By;
use super::{Class, Place, Position, Relation, Table};
use crate::trace::Trace;

/// A point of a location, as far as intervals need it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexedPoint {
    pub position: Position,
    /// Waiting time, ticks.
    pub waiting: i64,
    /// Duration of the call as far as it can be work behind the point, ticks.
    pub total: i64,
    /// Region instance, or [`crate::trace::NONE`] at the end.
    pub instance: u32,
    pub class: Class,
    pub place: Place,
}

/// Where an interval begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct IntervalBegin {
    /// Its first point; the one before, if the location has any, is the last synchronization.
    pub from: u32,
    /// Time of the call at its left end that does not belong to it, ticks.
    pub before: i64,
}

/// A wait with both its intervals.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexedWait {
    pub waiter: IntervalBegin,
    pub cause: IntervalBegin,
    /// Position among the wait states, or [`crate::trace::NONE`].
    pub state: u32,
    /// Index of the causing location, and its point.
    pub cause_location: u32,
    pub cause_point: u32,
    pub relation: Relation,
}

/// Points and intervals of a shard.
#[derive(Debug)]
pub(crate) struct IntervalIndex {
    /// All points, location by location.
    pub points: Vec<IndexedPoint>,
    /// First point of each location, with the end of the last.
    pub offsets: Vec<u32>,
    /// Waits, by point.
    pub waits: By<IndexedWait>,
}

impl IntervalIndex {
    /// Takes out of the tables of all shards what is to stay.
    pub(crate) fn of_tables(trace: &Trace, tables: Vec<Table>) -> Vec<Self> {
        let waits: Vec<By<IndexedWait>> = tables.par_iter().map(|table| waits(trace, &tables, table)).collect();
        let of_table = |(table, waits): (Table, By<IndexedWait>)| {
            let points = table.points.iter().map(|point| IndexedPoint {
                position: point.position,
                waiting: point.waiting,
                total: point.total,
                instance: point.instance,
                class: point.class,
                place: point.place,
            });
            Self { points: points.collect(), offsets: table.offsets, waits }
        };
        // One after the other, so that each table makes room for the next.
        tables.into_iter().zip(waits).map(of_table).collect()
    }
}

/// The waits of a shard, each with the interval of its cause.
fn waits(trace: &Trace, tables: &[Table], table: &Table) -> By<IndexedWait> {
    table.own_waits.map(|wait| {
        let groups = tables[trace.position(wait.cause)].groups.of(wait.cause_point as usize);
        let group = groups.iter().find(|group| group.cost_shares().contains(&(wait.cost_share as usize)));
        let cause = group.map_or(IntervalBegin { from: wait.cause_point, before: 0 }, |group| IntervalBegin {
            from: group.from,
            before: group.before,
        });
        IndexedWait {
            waiter: wait.interval,
            cause,
            state: wait.state,
            cause_location: wait.cause,
            cause_point: wait.cause_point,
            relation: wait.relation,
        }
    })
}
