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
use super::points::{Place, Relation};
use super::table::{Extent, Table, WaitPart};
use crate::diagnostics::Diagnostics;
use crate::ids::{CallPathId, InstanceId, LocationId};
use crate::schema::{Class, CostMetric};
use crate::severity::Cost;
use crate::trace::locations::Process;
use crate::trace::{NONE, RegionClass, Shard, Trace};
use crate::waits::locks::{self, Ownership};
use crate::waits::posix::{self, Condition};
use crate::waits::tasks::TeamTasks;
use crate::waits::teams::teams;

/// A lock that threads waited for, or whatever else somebody owns until it ends.
#[derive(Debug)]
pub(crate) struct ContendedLock {
    /// The class of the waits.
    class: Class,
    /// The ownerships in order of time, without overlaps.
    sections: Vec<Section>,
    /// The waits in order of their calls, and of time.
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
    let has_tasks = !shard.task_instances.is_empty();
    if shard.locks.rows.is_empty() && !has_tasks && !trace.regions.has(RegionClass::OrderedBlock) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for process in shard.processes {
        let process = &trace.definitions.processes[process];
        // What is odd was reported when the waits were found.
        let locks = locks::of_process(trace, shard, process, &mut Diagnostics::default());
        let conditions = posix::conditions(trace, shard, process, &locks);
        let from: FxHashMap<InstanceId, i64> =
            conditions.iter().map(|condition| (condition.instance, condition.wants_mutex_from(shard))).collect();
        for lock in &locks {
            let mut waits = Vec::new();
            lock.each_wait(trace, shard, |_, wait| {
                let enter = shard.enter(wait.instance);
                let from = from.get(&wait.instance).copied().unwrap_or(enter);
                waits.push(LockWait::new((wait.location, wait.instance), from..enter + wait.waiting));
            });
            found.extend(ContendedLock::new(Class::ThreadLock, waits, || sections(&lock.ownerships)));
        }
        // Nobody is known to have ended these waits.
        let unknown = || conditions.iter().filter(|condition| condition.signal.is_none() && !condition.is_timed);
        let wait = |condition: &Condition, time| LockWait::new((condition.location, condition.instance), time);
        let contention = unknown().map(|one| wait(one, shard.enter(one.instance)..one.released)).collect();
        let late = unknown().map(|one| wait(one, one.released..one.signaled(shard))).collect();
        found.extend(ContendedLock::new(Class::ThreadLock, contention, Vec::new));
        found.extend(ContendedLock::new(Class::Signal, late, Vec::new));
        found.extend(of_tasks(trace, shard, process));
    }
    found
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

/// The tasks of a process that threads waited for.
fn of_tasks(trace: &Trace, shard: &Shard, process: &Process) -> Vec<ContendedLock> {
    let mut found = Vec::new();
    if shard.task_instances.is_empty() {
        return found;
    }
    for parts in teams(shard, process).chunk_by(|a, b| a.team.fork == b.team.fork) {
        let Some(tasks) = TeamTasks::new(shard, parts) else { continue };
        let mut all = tasks.waits(trace, shard);
        all.sort_by_key(|wait| wait.task);
        for of_task in all.chunk_by(|a, b| a.task == b.task) {
            let waits: Vec<LockWait> = of_task
                .iter()
                .flat_map(|wait| wait.parts.iter().map(|part| LockWait::new(wait.call, part.clone())))
                .collect();
            let begin = waits.iter().map(|wait| wait.time.start).min().unwrap_or(0);
            let end = waits.iter().map(|wait| wait.time.end).max().unwrap_or(0);
            let is_waiting = |location| of_task.iter().any(|wait| wait.call.0 == location);
            found.extend(ContendedLock::new(Class::Task, waits, || {
                // A thread does not wait for itself.
                let mut owners = tasks.owners(of_task[0].task, &(begin..end));
                owners.retain(|&(location, _)| !is_waiting(location));
                disjoint(owners)
            }));
        }
    }
    found
}

/// Sections of owners in the order of time; where the clocks of threads differ, the earlier one counts.
fn disjoint(owners: Vec<(LocationId, Range<i64>)>) -> Vec<Section> {
    let (mut before, mut last) = (0, i64::MIN);
    let mut sections = Vec::with_capacity(owners.len());
    for (owner, time) in owners {
        let time = time.start.max(last)..time.end;
        if !time.is_empty() {
            last = time.end;
            let length = time.end - time.start;
            sections.push(Section { owner, time, before });
            before += length;
        }
    }
    sections
}

impl LockWait {
    /// A wait that is not yet connected with its point.
    fn new((location, instance): (LocationId, InstanceId), time: Range<i64>) -> Self {
        Self { location, instance, time, point: NONE, cost_share: NONE }
    }
}

impl ContendedLock {
    /// What these threads wait for; `None` if no wait is left.
    fn new(class: Class, mut waits: Vec<LockWait>, sections: impl FnOnce() -> Vec<Section>) -> Option<Self> {
        waits.retain(|wait| !wait.time.is_empty());
        waits.sort_unstable_by_key(|wait| (wait.instance, wait.time.start));
        (!waits.is_empty()).then(|| Self { class, sections: sections(), waits, owner_waits: Vec::new() })
    }

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
    // The rows of waits by call and end.
    let mut rows: FxHashMap<(InstanceId, i64), usize> = FxHashMap::default();
    for (row, own_wait) in table.own_waits.rows.iter().enumerate() {
        if own_wait.relation == Relation::Ownership {
            let instance = table.points[own_wait.point as usize].instance;
            rows.insert((instance, shard.enter(instance) + own_wait.held), row);
        }
    }
    for lock in locks {
        lock.find_owner_waits(shard, &waits);
        lock.waits.retain(|wait| rows.contains_key(&(wait.instance, wait.time.end)));
        let mut attached = std::mem::take(&mut lock.waits);
        for wait in &mut attached {
            let own_wait = &mut table.own_waits.rows[rows[&(wait.instance, wait.time.end)]];
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
    let mut waits: Vec<PointWait> = Vec::new();
    for number in table.points_of(i) {
        let point = &table.points[number];
        if point.waiting <= 0 || point.position.copy().is_some() {
            continue;
        }
        let mut add = |time| waits.push(PointWait { point: number as u32, time });
        let enter = shard.enter(point.instance);
        let end = enter + point.held;
        // Between the parts of a wait, its thread may run tasks.
        match shard.arrivals.get(&point.instance) {
            Some(barrier) if point.place == Place::Arrival => {
                barrier.idle.iter().for_each(|&(begin, end)| add(begin..end));
            }
            _ if point.class == Class::Task => table
                .own_waits
                .of(number)
                .iter()
                .for_each(|part| add(enter + part.held - part.waiting..enter + part.held)),
            _ => add(end - point.waiting..end),
        }
    }
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
    /// The columns in which the waits count themselves, by part.
    columns: Vec<Option<usize>>,
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
    /// The locks and the waits of each point that waits for some.
    of_waits: FxHashMap<u32, Vec<(u32, u32)>>,
    /// By point.
    kept: FxHashMap<u32, Kept>,
}

impl Sweeps {
    /// Sweeps that have not begun; `width` is the number of classes of all parts.
    pub(super) fn new(locks: &[ContendedLock], parts: &[WaitPart], width: usize) -> Self {
        let column = |part: &WaitPart, class| {
            let occurs = part.classes.all.contains(&class);
            occurs.then(|| part.columns.start + part.classes.column(class))
        };
        let mut sweeps = Self::default();
        for (number, lock) in locks.iter().enumerate() {
            let mut changes = Vec::with_capacity(4 * lock.waits.len() + 2 * lock.owner_waits.len());
            for (wait, k) in lock.waits.iter().zip(0..) {
                sweeps.of_waits.entry(wait.point).or_default().push((number as u32, k));
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
                columns: parts.iter().map(|part| column(part, lock.class)).collect(),
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

    /// Goes on with the locks that a point waited for, whose costs are final now; passes on the points that lack nothing
    /// any more.
    pub(super) fn advance(
        &mut self,
        point: u32,
        locks: &[ContendedLock],
        charged_phi: &[f64],
        mut complete: impl FnMut(u32),
    ) {
        for (number, wait) in self.of_waits.remove(&point).into_iter().flatten() {
            self.locks[number as usize].is_final[wait as usize] = true;
            self.advance_one(number as usize, &locks[number as usize], charged_phi, &mut complete);
        }
    }

    /// Goes back in time with one lock as far as its waits are final.
    fn advance_one(
        &mut self,
        number: usize,
        lock: &ContendedLock,
        charged_phi: &[f64],
        complete: &mut impl FnMut(u32),
    ) {
        let sweep = &mut self.locks[number];
        let classes = sweep.rates.len();
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
                    if let Some(column) = sweep.columns[part as usize] {
                        sweep.rates[column] += Fixed::from(1.0);
                    }
                }
                Change::PartBegin(part) => {
                    if let Some(column) = sweep.columns[part as usize] {
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
    let mut all: Vec<Cost> = Vec::new();
    let of_cell = |(callpath, location), metric, value| Cost { metric, callpath, location, value };
    let mut unowned: FxHashMap<(CallPathId, LocationId), Charge> = FxHashMap::default();
    // When the costs of a tick change, and by how much.
    let mut changes: Vec<(i64, Charge)> = Vec::new();
    for lock in locks {
        let mut charged: FxHashMap<(CallPathId, LocationId), Charge> = FxHashMap::default();
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
        let later_costs = match lock.class {
            Class::Task => CostMetric::IntervalDelayTaskLongTerm,
            _ => CostMetric::IntervalDelayLockLongTerm,
        };
        all.extend(charged.into_iter().flat_map(|(cell, Charge { direct, later })| {
            let of_waits = of_cell(cell, lock.class.short_term(), direct as f64);
            [of_waits, of_cell(cell, later_costs, f64::from(later))]
        }));
    }
    let of_waiter = |(cell, Charge { direct, later })| {
        let of_waits = of_cell(cell, CostMetric::WaitUnexplained, direct as f64);
        [of_waits, of_cell(cell, CostMetric::DelayUnattributed, direct as f64 + f64::from(later))]
    };
    all.extend(unowned.into_iter().flat_map(of_waiter));
    all.retain(|cost| cost.value > 0.0);
    all
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

/// What the owners of locks did during the waits of a class in a call, the longest first, and how long nobody owned them,
/// ticks. `None` if there is no such wait.
pub(super) fn causes(
    trace: &Trace,
    shard: &Shard,
    locks: &[ContendedLock],
    (class, call): (Class, InstanceId),
) -> Option<(Vec<Activity>, i64)> {
    let mut found: Option<(Vec<Activity>, i64)> = None;
    for lock in locks.iter().filter(|lock| lock.class == class) {
        let first = lock.waits.partition_point(|wait| wait.instance < call);
        for wait in lock.waits[first..].iter().take_while(|wait| wait.instance == call) {
            let (activities, unowned) = lock.causes(trace, shard, &wait.time);
            let all = found.get_or_insert_default();
            all.0.extend(activities);
            all.1 += unowned;
        }
    }
    found
}

impl ContendedLock {
    /// What the owners did in a stretch of time, the longest first, and how long nobody owned the lock, ticks.
    fn causes(&self, trace: &Trace, shard: &Shard, time: &Range<i64>) -> (Vec<Activity>, i64) {
        let mut ticks: FxHashMap<(LocationId, CallPathId), i64> = FxHashMap::default();
        let mut all: Vec<Activity> = Vec::new();
        let mut waits = self.owner_waits[self.owner_waits.partition_point(|wait| wait.time.end <= time.start)..].iter();
        let mut next = waits.next();
        for (owner, part) in self.owners(time) {
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
        all.sort_by_key(|activity| {
            (activity.wait.is_some(), Reverse(activity.ticks), activity.owner, activity.callpath)
        });
        (all, self.unowned(time))
    }
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
            let running = shard.events.running_after(&trace.tree, event - 1);
            if running.is_some() {
                book(running, from..until);
            }
        }
        from = until;
    }
}
