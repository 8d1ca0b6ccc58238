//! Waits for the end of an ownership: the owners of a lock pay for the threads that wait for it, and what an owner waits
//! for meanwhile passes the costs on.
//!
//! ```text
//!  thread 0  --A[ section     ]R------------------      A acquires, R releases
//!  thread 1  ----[ waits       |]A[ section ]R----
//!  thread 2  ------[ waits     |  |         |]A---
//!                  |<--- 2 --->|  |<-- 1 -->|           threads that wait for the owner
//! ```
//!
//! A wait is a contention point with every ownership that overlaps it. The interval before the contention is this
//! overlap: the waiter is blocked throughout, so only the owner's side has work `d(c)`, and waits `W`. Equations 4.14 to
//! 4.19 become: each tick of an owner costs as many ticks as there are threads that wait, and a share of what these waits
//! cause later; if the owner waits itself in this tick, its wait gets both:
//!
//! `Ω(t) = Σ over the waits at t of (1 + φ / ω)`,  costs(c) = ∫ Ω over the owners' work in c,  φ(i) += ∫ Ω over wait i.
//!
//! So the costs are linear in the number of waits and ownerships, whose pairs are never formed. While nobody owns the
//! lock, between a release and the next acquisition, waiting is not attributed.
//!
//! Such waits are not synchronization points: what happened before a thread acquired its lock can still cause its later
//! waits.
//!
//! *Source*: specification.md#locks-of-threads; thesis, definitions 8 and 20, equations 4.14 to 4.19.

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::FxHashMap;

use super::fixed::Fixed;
use super::points::Relation;
use super::table::{Extent, Table, WaitPart};
use crate::diagnostics::Diagnostics;
use crate::ids::{CallPathId, InstanceId, LocationId};
use crate::schema::{Class, CostMetric};
use crate::severity::Cost;
use crate::trace::{NONE, RegionClass, Shard, Trace};
use crate::waits::locks::{self, Ownership, ThreadLock};

/// A lock that threads waited for.
#[derive(Debug)]
pub(crate) struct ContendedLock {
    /// The ownerships in order of time, without overlaps.
    sections: Vec<Section>,
    /// The waits in order of their calls.
    waits: Vec<LockWait>,
    /// The waits of owners while they own the lock, in order of time, without overlaps.
    owner_waits: Vec<OwnerWait>,
}

/// The time in which a thread owns the lock.
#[derive(Debug)]
struct Section {
    owner: LocationId,
    time: Range<i64>,
    /// The total length of all sections before it, ticks.
    before: i64,
}

/// A thread that waits for the lock.
#[derive(Debug)]
struct LockWait {
    location: LocationId,
    instance: InstanceId,
    time: Range<i64>,
    /// Its point, and its row among the shares of costs.
    point: u32,
    cost_share: u32,
}

/// The part of a wait in which its thread owns the lock.
#[derive(Debug)]
struct OwnerWait {
    point: u32,
    time: Range<i64>,
    /// The total length of all of them before it, ticks.
    before: i64,
}

/// The contended locks of a shard's processes.
pub(super) fn find(trace: &Trace, shard: &Shard) -> Vec<ContendedLock> {
    if shard.locks.rows.is_empty() && !trace.regions.has(RegionClass::OrderedBlock) {
        return Vec::new();
    }
    let of_lock = |lock: ThreadLock| {
        let mut waits = Vec::new();
        lock.each_wait(trace, shard, |_, wait| {
            let begin = shard.enter(wait.instance);
            let time = begin..begin + wait.waiting;
            let (location, instance) = (wait.location, wait.instance);
            waits.push(LockWait { location, instance, time, point: NONE, cost_share: NONE });
        });
        waits.sort_unstable_by_key(|wait| wait.instance);
        (!waits.is_empty()).then(|| ContendedLock {
            sections: sections(&lock.ownerships),
            waits,
            owner_waits: Vec::new(),
        })
    };
    // What is odd was reported when the waits were found.
    let locks = |process| locks::of_process(trace, shard, process, &mut Diagnostics::default());
    let processes = shard.processes.map(|process| &trace.definitions.processes[process]);
    processes.flat_map(locks).filter_map(of_lock).collect()
}

/// Who owns the lock when: of several readers the one that releases last, because only it keeps others waiting.
fn sections(ownerships: &[Ownership]) -> Vec<Section> {
    let mut order: Vec<&Ownership> = ownerships.iter().collect();
    order.sort_by_key(|own| (own.time.start, Reverse(own.time.end), own.location));
    let mut sections: Vec<Section> = Vec::with_capacity(order.len());
    let mut is_shared = false;
    let mut before = 0;
    for own in order {
        let mut time = own.time.clone();
        if let Some(last) = sections.last_mut() {
            if own.is_shared && is_shared && time.start < last.time.end {
                if time.end <= last.time.end {
                    continue;
                }
                before -= last.time.end - time.start;
                last.time.end = time.start;
            }
            // The clocks of threads may differ.
            time.start = time.start.max(last.time.end);
        }
        if time.is_empty() {
            continue;
        }
        is_shared = own.is_shared;
        let length = time.end - time.start;
        sections.push(Section { owner: own.location, time, before });
        before += length;
    }
    sections
}

impl ContendedLock {
    /// The sections that overlap a stretch of time, and their parts inside it.
    fn owners(&self, time: &Range<i64>) -> impl Iterator<Item = (LocationId, Range<i64>)> {
        let first = self.sections.partition_point(|section| section.time.end <= time.start);
        let (start, end) = (time.start, time.end);
        let inside = self.sections[first..].iter().take_while(move |section| section.time.start < end);
        inside.map(move |section| (section.owner, section.time.start.max(start)..section.time.end.min(end)))
    }

    /// The part of a stretch of time in which nobody owns the lock, ticks.
    fn unowned(&self, time: &Range<i64>) -> i64 {
        let owned_until = |time: i64| {
            let next = self.sections.partition_point(|section| section.time.start < time);
            let Some(Section { time: last, before, .. }) = self.sections[..next].last() else { return 0 };
            before + last.end.min(time) - last.start
        };
        time.end - time.start - (owned_until(time.end) - owned_until(time.start))
    }

    /// The part of a stretch of time in which the owners wait themselves, ticks.
    fn waited(&self, time: &Range<i64>) -> i64 {
        let waited_until = |time: i64| {
            let next = self.owner_waits.partition_point(|wait| wait.time.start < time);
            let Some(OwnerWait { time: last, before, .. }) = self.owner_waits[..next].last() else { return 0 };
            before + last.end.min(time) - last.start
        };
        waited_until(time.end) - waited_until(time.start)
    }

    /// Finds the waits of the owners.
    fn find_owner_waits(&mut self, shard: &Shard, waits: &[Vec<PointWait>]) {
        let mut before = 0;
        for Section { owner, time, .. } in &self.sections {
            let of_owner = &waits[shard.local(*owner)];
            let first = of_owner.partition_point(|wait| wait.time.end <= time.start);
            for wait in of_owner[first..].iter().take_while(|wait| wait.time.start < time.end) {
                let part = wait.time.start.max(time.start)..wait.time.end.min(time.end);
                let length = part.end - part.start;
                self.owner_waits.push(OwnerWait { point: wait.point, time: part, before });
                before += length;
            }
        }
    }

    /// The largest part of each wait of an owner that one wait for the lock is due to, ticks.
    fn propagating(&self) -> impl Iterator<Item = (u32, i64)> {
        let mut by_end: Vec<&Range<i64>> = self.waits.iter().map(|wait| &wait.time).collect();
        by_end.sort_unstable_by_key(|time| time.end);
        // The first begin of all waits from each one on.
        let mut begins: Vec<i64> = by_end.iter().map(|time| time.start).collect();
        for i in (1..begins.len()).rev() {
            begins[i - 1] = begins[i - 1].min(begins[i]);
        }
        self.owner_waits.iter().map(move |wait| {
            let (start, end) = (wait.time.start, wait.time.end);
            let after = by_end.partition_point(|time| time.end < end);
            let longest = begins.get(after).map_or(0, |&begin| end - begin.max(start));
            let inside = by_end[..after].iter().rev().take_while(|time| time.end > start);
            (wait.point, inside.map(|time| time.end - time.start.max(start)).fold(longest, i64::max))
        })
    }
}

/// A wait at a point.
struct PointWait {
    point: u32,
    time: Range<i64>,
}

/// Connects the waits for locks with their points, and with the waits of the owners.
pub(super) fn attach(shard: &Shard, locks: &mut [ContendedLock], table: &mut Table) {
    if locks.is_empty() {
        return;
    }
    let waits: Vec<Vec<PointWait>> = (0..shard.locations.len()).map(|i| point_waits(shard, table, i)).collect();
    let mut points: FxHashMap<InstanceId, usize> = FxHashMap::default();
    for (point, rows) in (0..table.points.len()).map(|point| (point, table.own_waits.range(point))) {
        for row in rows.filter(|&row| table.own_waits.rows[row].relation == Relation::Ownership) {
            points.insert(table.points[point].instance, row);
        }
    }
    for lock in locks {
        lock.find_owner_waits(shard, &waits);
        lock.waits.retain(|wait| points.contains_key(&wait.instance));
        let mut attached = std::mem::take(&mut lock.waits);
        for wait in &mut attached {
            let own_wait = &mut table.own_waits.rows[points[&wait.instance]];
            (wait.point, wait.cost_share) = (own_wait.point, own_wait.cost_share);
            own_wait.indirect = lock.waited(&wait.time) as f64;
            own_wait.explained = own_wait.waiting - lock.unowned(&wait.time);
        }
        lock.waits = attached;
        for (point, ticks) in lock.propagating() {
            let propagating = &mut table.propagating[point as usize];
            *propagating = propagating.max(ticks as f64);
        }
    }
}

/// The waits of a location, in order of time and without overlaps.
fn point_waits(shard: &Shard, table: &Table, i: usize) -> Vec<PointWait> {
    let mut waits: Vec<PointWait> = table
        .points_of(i)
        .filter(|&number| table.points[number].waiting > 0 && table.points[number].position.original().is_none())
        .map(|number| {
            let point = &table.points[number];
            let end = shard.enter(point.instance) + point.held;
            PointWait { point: number as u32, time: end - point.waiting..end }
        })
        .collect();
    waits.sort_by_key(|wait| wait.time.start);
    let mut end = i64::MIN;
    for wait in &mut waits {
        wait.time.start = wait.time.start.max(end);
        end = end.max(wait.time.end);
    }
    waits.retain(|wait| !wait.time.is_empty());
    waits
}

/// Whether a part of a wait lies in an extent.
pub(super) fn reach_into(locks: &[ContendedLock], extent: &Extent) -> bool {
    let mut waits = locks.iter().flat_map(|lock| &lock.waits);
    waits.any(|wait| extent.parts(&wait.time).any(|part| !part.is_empty()))
}

/// What changes at a time, backwards: at equal times, what ends there is still to come.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    /// The end of a wait for the lock, and its begin: what it caused later counts in between.
    WaitEnd(u32),
    /// The end of its part in an extent, and its begin: it counts itself.
    PartEnd(u32),
    OwnerWaitEnd(u32),
    OwnerWaitBegin(u32),
    PartBegin(u32),
    WaitBegin(u32),
}

/// The costs of one lock, gathered backwards in time as the waits for it become final.
struct Sweep {
    /// Changes in the order of time, and the number of those still to come.
    changes: Vec<(i64, Change)>,
    rest: usize,
    /// The time of the last one.
    at: i64,
    /// Whether each wait for the lock is final.
    is_final: Vec<bool>,
    /// The costs of a tick, by class.
    rates: Vec<Fixed>,
    /// Those of the current wait of an owner so far, if it waits.
    sums: Vec<Fixed>,
    is_waiting: bool,
}

/// A wait of an owner: what it caused by keeping a lock.
#[derive(Default)]
struct Kept {
    /// The number of locks whose waits are not yet final.
    missing: u32,
    /// By class.
    phi: Vec<f64>,
}

/// The costs that waits for locks propagate to waits of the owners.
#[derive(Default)]
pub(super) struct Sweeps {
    locks: Vec<Sweep>,
    /// The lock and the wait of each point that waits for one.
    of_waits: FxHashMap<u32, (u32, u32)>,
    /// By point.
    kept: FxHashMap<u32, Kept>,
    /// The columns in which waits for locks count themselves, by part.
    columns: Vec<Option<usize>>,
}

impl Sweeps {
    /// Sweeps that have not begun; `width` is the number of classes of all parts.
    pub(super) fn new(locks: &[ContendedLock], parts: &[WaitPart], width: usize) -> Self {
        let column = |part: &WaitPart| {
            let occurs = part.classes.all.contains(&Class::ThreadLock);
            occurs.then(|| part.columns.start + part.classes.column(Class::ThreadLock))
        };
        let mut sweeps = Self { columns: parts.iter().map(column).collect(), ..Self::default() };
        for (number, lock) in locks.iter().enumerate() {
            let mut changes = Vec::with_capacity(4 * lock.waits.len() + 2 * lock.owner_waits.len());
            for (wait, k) in lock.waits.iter().zip(0..) {
                sweeps.of_waits.insert(wait.point, (number as u32, k));
                changes.extend([(wait.time.start, Change::WaitBegin(k)), (wait.time.end, Change::WaitEnd(k))]);
                for (part, i) in parts.iter().zip(0..) {
                    for time in part.extent.parts(&wait.time).filter(|time| !time.is_empty()) {
                        changes.extend([(time.start, Change::PartBegin(i)), (time.end, Change::PartEnd(i))]);
                    }
                }
            }
            for (wait, k) in lock.owner_waits.iter().zip(0..) {
                let times = [(wait.time.start, Change::OwnerWaitBegin(k)), (wait.time.end, Change::OwnerWaitEnd(k))];
                changes.extend(times);
                let kept = sweeps.kept.entry(wait.point).or_default();
                kept.missing += 1;
                kept.phi.resize(width, 0.0);
            }
            changes.sort_unstable();
            sweeps.locks.push(Sweep {
                rest: changes.len(),
                at: changes.last().map_or(0, |&(time, _)| time),
                changes,
                is_final: vec![false; lock.waits.len()],
                rates: vec![Fixed::default(); width],
                sums: vec![Fixed::default(); width],
                is_waiting: false,
            });
        }
        sweeps
    }

    /// Whether a wait at a point still lacks costs.
    pub(super) fn lacks(&self, point: u32) -> bool {
        self.kept.get(&point).is_some_and(|kept| kept.missing > 0)
    }

    /// Goes on without the missing costs of a point; returns whether there were any.
    pub(super) fn release(&mut self, point: u32) -> bool {
        self.kept.get_mut(&point).is_some_and(|kept| std::mem::take(&mut kept.missing) > 0)
    }

    /// What a wait caused by keeping locks, by class.
    pub(super) fn phi(&self, point: u32) -> Option<&[f64]> {
        self.kept.get(&point).map(|kept| kept.phi.as_slice())
    }

    /// Goes on with the lock that a point waited for, whose costs are final now; passes on the points that lack nothing
    /// any more.
    pub(super) fn advance(
        &mut self,
        point: u32,
        locks: &[ContendedLock],
        charged_phi: &[f64],
        mut complete: impl FnMut(u32),
    ) {
        let Some(&(number, wait)) = self.of_waits.get(&point) else { return };
        let (lock, sweep) = (&locks[number as usize], &mut self.locks[number as usize]);
        let classes = sweep.rates.len();
        sweep.is_final[wait as usize] = true;
        while let Some(&(time, change)) = sweep.changes[..sweep.rest].last() {
            if let Change::WaitEnd(wait) = change
                && !sweep.is_final[wait as usize]
            {
                break;
            }
            if sweep.is_waiting {
                for (sum, &rate) in sweep.sums.iter_mut().zip(&sweep.rates) {
                    *sum += rate.times(sweep.at - time);
                }
            }
            (sweep.at, sweep.rest) = (time, sweep.rest - 1);
            match change {
                Change::WaitEnd(wait) => {
                    for (rate, share) in
                        sweep.rates.iter_mut().zip(lock.waits[wait as usize].shares(charged_phi, classes))
                    {
                        *rate += share;
                    }
                }
                Change::WaitBegin(wait) => {
                    for (rate, share) in
                        sweep.rates.iter_mut().zip(lock.waits[wait as usize].shares(charged_phi, classes))
                    {
                        *rate -= share;
                    }
                }
                Change::PartEnd(part) => {
                    if let Some(column) = self.columns[part as usize] {
                        sweep.rates[column] += Fixed::from(1.0);
                    }
                }
                Change::PartBegin(part) => {
                    if let Some(column) = self.columns[part as usize] {
                        sweep.rates[column] -= Fixed::from(1.0);
                    }
                }
                Change::OwnerWaitEnd(_) => {
                    sweep.sums.fill(Fixed::default());
                    sweep.is_waiting = true;
                }
                Change::OwnerWaitBegin(wait) => {
                    sweep.is_waiting = false;
                    let point = lock.owner_waits[wait as usize].point;
                    let Some(kept) = self.kept.get_mut(&point).filter(|kept| kept.missing > 0) else { continue };
                    for (phi, &sum) in kept.phi.iter_mut().zip(&sweep.sums) {
                        *phi += f64::from(sum);
                    }
                    kept.missing -= 1;
                    if kept.missing == 0 {
                        complete(point);
                    }
                }
            }
        }
    }
}

impl LockWait {
    /// What each tick of it caused later, by class; `charged_phi` has as many classes for each row.
    fn shares(&self, charged_phi: &[f64], classes: usize) -> impl Iterator<Item = Fixed> {
        let row = self.cost_share as usize * classes;
        let waiting = (self.time.end - self.time.start) as f64;
        charged_phi[row..row + classes].iter().map(move |phi| Fixed::from(phi / waiting))
    }

    /// The same for one part of the waits, of all classes.
    fn share_of(&self, table: &Table, part: &WaitPart) -> Fixed {
        let row = self.cost_share as usize * table.width();
        let phi: f64 = table.charged_phi[row..][part.columns.clone()].iter().sum();
        Fixed::from(phi / (self.time.end - self.time.start) as f64)
    }
}

/// Costs in ticks: of waits for the lock, and of what these caused later.
#[derive(Clone, Copy, Default)]
struct Charge {
    direct: i64,
    later: Fixed,
}

impl Charge {
    fn add(&mut self, rate: Self, ticks: i64) {
        self.direct += rate.direct * ticks;
        self.later += rate.later.times(ticks);
    }
}

/// The costs of the parts of all waits in an extent.
pub(super) fn book(
    trace: &Trace,
    shard: &Shard,
    (table, part): (&Table, &WaitPart),
    locks: &[ContendedLock],
) -> Vec<Cost> {
    let mut charged: FxHashMap<(CallPathId, LocationId), Charge> = FxHashMap::default();
    let mut unowned: FxHashMap<(CallPathId, LocationId), Charge> = FxHashMap::default();
    // When the costs of a tick change, and by how much.
    let mut changes: Vec<(i64, Charge)> = Vec::new();
    for lock in locks {
        changes.clear();
        for wait in &lock.waits {
            let lost = unowned.entry((shard.callpath(wait.instance), wait.location)).or_default();
            for time in part.extent.parts(&wait.time).filter(|time| !time.is_empty()) {
                lost.direct += lock.unowned(&time);
                let one = |direct| Charge { direct, later: Fixed::default() };
                changes.extend([(time.start, one(1)), (time.end, one(-1))]);
            }
            let later = wait.share_of(table, part);
            if !later.is_zero() {
                lost.later += later.times(lock.unowned(&wait.time));
                changes.push((wait.time.start, Charge { direct: 0, later }));
                changes.push((wait.time.end, Charge { direct: 0, later: Fixed::default() - later }));
            }
        }
        changes.sort_unstable_by_key(|&(time, _)| time);
        lock.charge_owners(trace, shard, &changes, &mut charged);
    }
    let of_cell = |(callpath, location), metric, value| Cost { metric, callpath, location, value };
    let of_owner = |(cell, Charge { direct, later })| {
        let of_waits = of_cell(cell, CostMetric::IntervalDelayLock, direct as f64);
        [of_waits, of_cell(cell, CostMetric::IntervalDelayLockLongTerm, f64::from(later))]
    };
    let of_waiter = |(cell, Charge { direct, later })| {
        let of_waits = of_cell(cell, CostMetric::WaitUnexplained, direct as f64);
        [of_waits, of_cell(cell, CostMetric::DelayUnattributed, direct as f64 + f64::from(later))]
    };
    let all = charged.into_iter().flat_map(of_owner).chain(unowned.into_iter().flat_map(of_waiter));
    all.filter(|cost| cost.value > 0.0).collect()
}

impl ContendedLock {
    /// Charges what the owners do: the costs of a tick begin with nothing and change at these times.
    fn charge_owners(
        &self,
        trace: &Trace,
        shard: &Shard,
        changes: &[(i64, Charge)],
        charged: &mut FxHashMap<(CallPathId, LocationId), Charge>,
    ) {
        let mut changes = changes.iter().copied().peekable();
        let mut rate = Charge::default();
        let mut advance = |to: i64, rate: &mut Charge| {
            while let Some((_, change)) = changes.next_if(|&(at, _)| at <= to) {
                rate.direct += change.direct;
                rate.later += change.later;
            }
            changes.peek().map_or(i64::MAX, |&(at, _)| at)
        };
        for (owner, time) in self.working() {
            let next = advance(time.start, &mut rate);
            if rate.direct == 0 && rate.later.is_zero() && next >= time.end {
                continue;
            }
            activities(trace, shard, owner, &time, |callpath, span| {
                let charge = charged.entry((callpath, owner)).or_default();
                let mut from = span.start;
                while from < span.end {
                    let until = advance(from, &mut rate).min(span.end);
                    charge.add(rate, until - from);
                    from = until;
                }
            });
        }
    }

    /// The times in which owners do not wait, in order.
    fn working(&self) -> impl Iterator<Item = (LocationId, Range<i64>)> {
        let mut waits = self.owner_waits.iter().peekable();
        self.sections.iter().flat_map(move |section| {
            let mut parts = Vec::new();
            let mut from = section.time.start;
            while let Some(wait) = waits.next_if(|wait| wait.time.end <= section.time.end) {
                parts.push((section.owner, from..wait.time.start));
                from = wait.time.end;
            }
            parts.push((section.owner, from..section.time.end));
            parts.into_iter().filter(|(_, time)| !time.is_empty())
        })
    }
}

/// What an owner of a lock did during a wait.
pub(super) struct Activity {
    pub owner: LocationId,
    /// The call path; for a wait of the owner that of the call.
    pub callpath: CallPathId,
    pub ticks: i64,
    /// The point of a wait of the owner.
    pub wait: Option<u32>,
}

/// What the owners of a lock did during the wait of a call, the longest first, and how long nobody owned it, ticks.
/// `None` if the call does not wait for a lock.
pub(super) fn causes(
    trace: &Trace,
    shard: &Shard,
    locks: &[ContendedLock],
    call: InstanceId,
) -> Option<(Vec<Activity>, i64)> {
    let of_call = |lock: &'_ ContendedLock| lock.waits.binary_search_by_key(&call, |wait| wait.instance).ok();
    let (lock, own) = locks.iter().find_map(|lock| Some((lock, of_call(lock)?)))?;
    let time = &lock.waits[own].time;
    let mut ticks: FxHashMap<(LocationId, CallPathId), i64> = FxHashMap::default();
    let mut all: Vec<Activity> = Vec::new();
    let mut waits = lock.owner_waits[lock.owner_waits.partition_point(|wait| wait.time.end <= time.start)..].iter();
    let mut next = waits.next();
    for (owner, part) in lock.owners(time) {
        let mut from = part.start;
        let mut work = |span: Range<i64>| {
            activities(trace, shard, owner, &span, |callpath, span| {
                *ticks.entry((owner, callpath)).or_default() += span.end - span.start;
            });
        };
        while let Some(wait) = next.filter(|wait| wait.time.start < part.end) {
            let (start, end) = (wait.time.start.max(from), wait.time.end.min(part.end));
            work(from..start);
            all.push(Activity { owner, callpath: CallPathId::NONE, ticks: end - start, wait: Some(wait.point) });
            from = end;
            next = waits.next();
        }
        work(from..part.end);
    }
    all.extend(ticks.into_iter().map(|((owner, callpath), ticks)| Activity { owner, callpath, ticks, wait: None }));
    all.sort_by_key(|activity| (activity.wait.is_some(), Reverse(activity.ticks), activity.owner, activity.callpath));
    Some((all, lock.unowned(time)))
}

/// Passes on what a location does in a stretch of time: call paths, and when they run themselves, without callees.
fn activities(
    trace: &Trace,
    shard: &Shard,
    location: LocationId,
    time: &Range<i64>,
    mut book: impl FnMut(CallPathId, Range<i64>),
) {
    let i = shard.local(location);
    let (first, end) = (shard.event_offsets[i], shard.event_offsets[i + 1]);
    let begun = shard.events.time[first as usize..end as usize].partition_point(|&at| at <= time.start);
    let mut from = time.start;
    for event in first + begun as u32..=end {
        if from >= time.end {
            break;
        }
        let until = if event < end { shard.events.time[event as usize].min(time.end) } else { time.end };
        if from < until && event > first {
            let before = shard.events.callpath(event - 1);
            let running = if shard.events.is_leave(event - 1) { trace.tree.parent(before) } else { before };
            if running.is_some() {
                book(running, from..until);
            }
        }
        from = until;
    }
}
