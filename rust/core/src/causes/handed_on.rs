//! What waits over intervals hand on to waits between devices, and what these hand back.
//!
//! A host that waits for a kernel which waits for other devices hands its share on to that wait. A rank that is late for an
//! operation because its host waited in MPI hands back to this wait.

use std::collections::BTreeMap;

use bitcode::{Decode, Encode};

use super::table::{OfHost, Table};
use crate::ids::{CallPathId, InstanceId, LocationId};
use crate::schema::Class;
use crate::trace::Shard;

/// What later waits hand on: to the wait of a kernel through its host ([`super::awaited`]), or to that of a host in MPI through
/// its device.
#[derive(Clone, Copy, Debug, PartialEq, Encode, Decode)]
pub(crate) struct HandedOn {
    /// Location and region instance of the earlier wait.
    pub to: (LocationId, InstanceId),
    /// The call path of a kernel that is to be charged because it works; none if a wait is meant.
    pub work: CallPathId,
    /// The part of the later waits.
    pub part: u8,
    /// Their class.
    pub class: Class,
    /// Their costs, ticks.
    pub ticks: f64,
    /// The most that a single later wait is due to it, ticks.
    pub due: f64,
}

impl HandedOn {
    fn key(&self) -> ((LocationId, InstanceId), u8, Class) {
        (self.to, self.part, self.class)
    }
}

/// What the waits of hosts hand on to devices.
pub(super) fn of_hosts(table: &Table) -> Vec<HandedOn> {
    let mut of_hosts: Vec<&OfHost> = table.handed_on.iter().collect();
    of_hosts.sort_unstable_by_key(|of_host| of_host.point);
    let mut handed_on = Vec::new();
    for &OfHost { point, ref to_waits, ref to_all } in of_hosts {
        let (waiting, all) = (table.waiting(point), table.points[point as usize].waiting);
        for work in table.awaited.at(point) {
            let due = table.propagating[point as usize] * share(work.waiting, waiting);
            let mut add = |costs: &[f64], share: f64, callpath, due: f64| {
                for (part, number) in table.parts.iter().zip(0..) {
                    let of_classes = part.classes.all.iter().zip(costs.get(part.columns.clone()).unwrap_or_default());
                    let of_classes = of_classes.filter(|&(_, &ticks)| ticks * share > 0.0);
                    handed_on.extend(of_classes.map(|(&class, &ticks)| HandedOn {
                        to: (work.stream, work.instance),
                        work: callpath,
                        part: number,
                        class,
                        ticks: ticks * share,
                        due,
                    }));
                }
            };
            add(to_waits, share(work.waiting, waiting), CallPathId::NONE, due);
            add(to_all, share(work.waiting, all), CallPathId::NONE, due);
            add(to_all, share(work.worked(), all), work.callpath, 0.0);
        }
    }
    handed_on
}

fn share(part: i64, all: i64) -> f64 {
    if part > 0 { part as f64 / all as f64 } else { 0.0 }
}

/// What differs from the last time: by how much costs grew, or 0, in order; both are sorted by their waits.
pub(super) fn growth(handed_on: &[HandedOn], before: &[HandedOn]) -> Vec<HandedOn> {
    let mut before = before.iter().peekable();
    let mut grown = Vec::new();
    for costs in handed_on {
        while before.next_if(|before| before.key() < costs.key()).is_some() {}
        let before = before.next_if(|before| before.key() == costs.key()).map_or(0.0, |before| before.ticks);
        if costs.ticks.total_cmp(&before).is_ne() {
            grown.push(HandedOn { ticks: (costs.ticks - before).max(0.0), ..*costs });
        }
    }
    grown
}

/// Hands on to the waits of a shard's hosts in MPI; `handed_on` is in their order.
pub(super) fn hand_back(shard: &Shard, table: &mut Table, handed_on: &[HandedOn]) {
    let mut costs: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    each_point(shard, table, handed_on, |table, point, column, costs_of_point| {
        let of_point = costs.entry(point).or_insert_with(|| vec![0.0; table.width()]);
        of_point[column] += costs_of_point.ticks;
        let propagating = &mut table.propagating[point as usize];
        *propagating = propagating.max(costs_of_point.due);
    });
    table.handed_back = costs.into_iter().collect();
}

/// Books what cannot be handed on any more as unattributed.
pub(super) fn lose(shard: &Shard, table: &mut Table, handed_on: &[HandedOn]) {
    each_point(shard, table, handed_on, |table, point, _, costs| {
        *table.parts[usize::from(costs.part)].lost.entry(point).or_default() += costs.ticks;
    });
}

/// Visits the points of the waits: the column of the costs, and the costs. A call with several waits divides them by their
/// lengths.
fn each_point(
    shard: &Shard,
    table: &mut Table,
    handed_on: &[HandedOn],
    mut visit: impl FnMut(&mut Table, u32, usize, HandedOn),
) {
    let before = |end: LocationId| handed_on.partition_point(|costs| costs.to.0 < end);
    for costs in &handed_on[before(shard.locations.start)..before(shard.locations.end)] {
        let (location, call) = costs.to;
        let points: Vec<u32> = table.waits_in_call(shard, location, call).collect();
        let all: i64 = points.iter().map(|&point| table.points[point as usize].waiting).sum();
        let part = &table.parts[usize::from(costs.part)];
        let column = part.columns.start + part.classes.column(costs.class);
        for point in points {
            let share = share(table.points[point as usize].waiting, all);
            visit(table, point, column, HandedOn { ticks: costs.ticks * share, due: costs.due * share, ..*costs });
        }
    }
}
