//! What a moment of computation costs: the rates of all waits that it prolongs, less those of all waits that it shortens.
//!
//! The cost of a call path at a causing location is a sum over waits of a rate times its delay, which is the time of the cause
//! less that of the waiter in their intervals. So a moment of the cause in its interval counts with the rate, a moment of the
//! waiter in its own with the rate subtracted. The integral over all moments is the cost (specification.md#costs-of-functions).

use bitcode::{Decode, Encode};

use super::points::{IntervalBegin, Relation};
use super::table::{CostShare, Group, ProfileEntry, Table, WaitPart};
use crate::Result;
use crate::ids::{CallPathId, LocationId};
use crate::parallel::exchange::Outbox;
use crate::parallel::iter::prelude::*;
use crate::trace::{NONE, Shard, Trace};

/// A coefficient of the time of a call path between two events of a location.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coefficient {
    /// The location.
    pub location: LocationId,
    /// The location whose cost it is part of.
    pub cause: LocationId,
    /// The call path.
    pub callpath: CallPathId,
    /// The first step ends at the first of these events; the second one ends the next step after the last.
    pub events: (u32, u32),
    /// Cost of a tick.
    pub rate: f64,
}

/// A coefficient of a wait that the waiter's shard completes.
#[derive(Clone, Copy, Debug, Encode, Decode)]
struct OfWaiter {
    own_wait: u32,
    cause: LocationId,
    callpath: CallPathId,
    rate: f64,
}

/// The coefficients of all call paths that `is_divided` chooses, by shard. Collective. They are those of the costs in the
/// focus, if that is not all of the run.
///
/// Left out are threads whose intervals reach into those of others, and waits for locks of threads and between devices,
/// whose costs do not come from intervals.
pub(super) fn find(trace: &Trace, tables: &[Table], is_divided: &[bool]) -> Result<Vec<Vec<Coefficient>>> {
    let found: Vec<(Vec<Coefficient>, Outbox<OfWaiter>)> = trace
        .par_shards()
        .zip(tables)
        .map(|(shard, table)| {
            let mut coefficients = Vec::new();
            let mut outbox = trace.exchange.outbox();
            for i in (0..shard.locations.len()).filter(|&i| table.pasts[i].is_none()) {
                for number in table.points_of(i) {
                    for group in table.groups.of(number) {
                        of_group(shard, i, (table, group), is_divided, &mut coefficients, &mut outbox);
                    }
                }
            }
            (coefficients, outbox)
        })
        .collect();
    let (mut coefficients, outgoing): (Vec<_>, Vec<_>) = found.into_iter().unzip();
    let received = trace.exchange.alltoallv(outgoing)?;
    let shards = trace.par_shards().zip(tables).zip(&mut coefficients).zip(received);
    shards.for_each(|(((shard, table), coefficients), inbox)| {
        // Copies stand between the waits, which others refer to by number.
        let originals = table.own_waits.rows.iter().zip(0..).filter(|(wait, _)| wait.original().is_none());
        let originals: Vec<u32> = originals.map(|(_, position)| position).collect();
        for of in inbox.rows() {
            let row = originals[of.own_wait as usize] as usize;
            let point = table.own_waits.rows[row].point;
            let location = table.points[point as usize].location;
            let i = shard.local(location);
            if table.pasts[i].is_none() {
                let events = events(shard, table, i, (table.own_intervals[row], point));
                let OfWaiter { cause, callpath, rate, .. } = *of;
                coefficients.push(Coefficient { location, cause, callpath, events, rate: -rate });
            }
        }
    });
    Ok(coefficients)
}

/// The events at the ends of an interval.
fn events(shard: &Shard, table: &Table, i: usize, (begin, point): (IntervalBegin, u32)) -> (u32, u32) {
    let before = begin.from.checked_sub(1).filter(|&before| before >= table.offsets[i]);
    let first = before.map_or(shard.event_offsets[i], |before| table.points[before as usize].position.event());
    (first, table.points[point as usize].position.event())
}

fn of_group(
    shard: &Shard,
    i: usize,
    (table, group): (&Table, &Group),
    is_divided: &[bool],
    coefficients: &mut Vec<Coefficient>,
    outbox: &mut Outbox<OfWaiter>,
) {
    let work: Vec<(CallPathId, i64)> = ProfileEntry::read(group.work.of(&table.entries))
        .filter(|&(callpath, _)| is_divided[callpath.index()])
        .collect();
    let location = shard.location(i);
    let events = events(shard, table, i, (IntervalBegin { from: group.from, before: group.before }, group.point));
    let mut delayed: Vec<CallPathId> = Vec::new();
    for row in group.cost_shares() {
        let cost_share = &table.cost_shares[row];
        let rate = rate(table, row, cost_share);
        if rate == 0.0 {
            continue;
        }
        let listed = || ProfileEntry::read(cost_share.delays.of(&table.entries));
        delayed.clear();
        if cost_share.is_listed {
            delayed.extend(listed().map(|(callpath, _)| callpath).filter(|callpath| is_divided[callpath.index()]));
        } else {
            let is_level = |of: CallPathId| listed().any(|(callpath, delay)| callpath == of && delay == 0);
            delayed.extend(work.iter().map(|&(callpath, _)| callpath).filter(|&callpath| !is_level(callpath)));
        }
        let is_compared = cost_share.shard != NONE && cost_share.relation != Relation::Contention;
        for &callpath in &delayed {
            coefficients.push(Coefficient { location, cause: location, callpath, events, rate });
            if is_compared && cost_share.is_shared_out() {
                let of = OfWaiter { own_wait: cost_share.own_wait, cause: location, callpath, rate };
                outbox.push(cost_share.shard, of);
            }
        }
    }
}

/// The cost of a tick of delay for a row: of all waits, less those outside of the focus.
fn rate(table: &Table, row: usize, cost_share: &CostShare) -> f64 {
    let width = table.width();
    let phi = if cost_share.shard == NONE { &[][..] } else { &table.charged_phi[row * width..(row + 1) * width] };
    let of_part = |part: &WaitPart| {
        let later = phi.get(part.columns.clone()).map_or(0.0, |phi| phi.iter().sum::<f64>());
        part.amount(row, cost_share) as f64 + later
    };
    let mut parts = table.parts.iter().map(of_part);
    let all = parts.next().unwrap_or(0.0);
    (all - parts.sum::<f64>()) * cost_share.work_rate
}
