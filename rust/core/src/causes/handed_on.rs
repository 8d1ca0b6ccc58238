//! What waits over intervals hand on to waits between devices, and what these hand back.
//!
//! A host that waits for a kernel which waits for other devices hands its share on to that wait. A rank that is late for an
//! operation because its host waited in MPI hands back to this wait.

use std::collections::BTreeMap;

use super::chains::HandedOn;
use super::table::Table;
use crate::ids::LocationId;
use crate::trace::Shard;

/// What the waits of hosts hand on to those of kernels.
pub(super) fn of_hosts(table: &Table) -> Vec<HandedOn> {
    let mut handed_on = Vec::new();
    for &(point, ref costs) in &table.handed_on {
        let waiting = table.waiting(point) as f64;
        for work in table.awaited.at(point).filter(|work| work.waiting > 0) {
            let (to, share) = ((work.stream, work.instance), work.waiting as f64 / waiting);
            for (part, number) in table.parts.iter().zip(0..) {
                let of_classes = part.classes.all.iter().zip(&costs[part.columns.clone()]);
                let of_classes = of_classes.filter(|&(_, &ticks)| ticks > 0.0);
                handed_on.extend(of_classes.map(|(&class, &ticks)| HandedOn {
                    to,
                    part: number,
                    class,
                    ticks: ticks * share,
                }));
            }
        }
    }
    handed_on
}

/// Hands on to the waits of a shard's hosts in MPI; `handed_on` is in their order. A call with several waits divides it by their
/// lengths.
pub(super) fn hand_back(shard: &Shard, table: &mut Table, handed_on: &[HandedOn]) {
    let mut costs: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    let before = |end: LocationId| handed_on.partition_point(|costs| costs.to.0 < end);
    let own = &handed_on[before(shard.locations.start)..before(shard.locations.end)];
    for &HandedOn { to: (location, call), part, class, ticks } in own {
        let points: Vec<u32> = table.waits_in_call(shard, location, call).collect();
        let all: i64 = points.iter().map(|&point| table.points[point as usize].waiting).sum();
        let part = &table.parts[usize::from(part)];
        let column = part.columns.start + part.classes.column(class);
        for point in points {
            let of_point = costs.entry(point).or_insert_with(|| vec![0.0; table.width()]);
            of_point[column] += ticks * (table.points[point as usize].waiting as f64 / all as f64);
        }
    }
    table.handed_back = costs.into_iter().collect();
}
