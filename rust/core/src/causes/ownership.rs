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
use crate::by_location::by_location;
use crate::galloping_search::partition_point_near;
use crate::ids::{CallPathId, InstanceId, LocationId};
use crate::matching::threads::locks::{Ownership, ThreadLock};
use crate::schema::{Class, CostMetric};
use crate::severity::Cost;
use crate::trace::{NONE, Shard, Trace};
use crate::waits::interval::union;
use crate::waits::posix::{self, Condition};
use crate::waits::tasks::{TaskWait, TeamTasks, without};

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
#[derive(Clone, Debug)]
struct LockWait {
    location: LocationId,
    instance: InstanceId,
    time: Range<i64>,
    /// Its point, and its row among the shares of costs.
    point: u32,
    cost_share: u32,
    /// For how long nobody owns the lock meanwhile, ticks.
    unowned: i64,
}

/// The part of a wait in which its thread owns the lock.
#[derive(Debug)]
struct OwnerWait {
    point: u32,
    time: Range<i64>,
    /// The total length of all of them before it, ticks.
    before: i64,
}

/// Finds the contended ones of a process's locks.
pub(super) fn of_locks(
    (trace, shard): (&Trace, &Shard),
    (locks, conditions): (&[ThreadLock], &[Condition]),
    found: &mut Vec<ContendedLock>,
) {
    let awake = posix::awake(shard, conditions);
    for lock in locks {
        let mut waits = Vec::new();
        lock.each_contention((trace, shard), &awake, |_, wait, time| {
            waits.push(LockWait::new((wait.location, wait.instance), time));
        });
        found.extend(ContendedLock::new((trace, shard), Class::ThreadLock, waits, || sections(&lock.ownerships)));
    }
    // Nobody is known to have ended these waits.
    let unknown = || conditions.iter().filter(|condition| condition.signal.is_none());
    let wait = |condition: &Condition, time| LockWait::new((condition.location, condition.instance), time);
    let contention = unknown().map(|one| wait(one, shard.enter(one.instance)..one.wants_mutex_from(shard))).collect();
    let untimed = unknown().filter(|condition| !condition.is_timed);
    let late = untimed.map(|one| wait(one, one.released..one.signaled(shard))).collect();
    found.extend(ContendedLock::new((trace, shard), Class::Signal, contention, Vec::new));
    found.extend(ContendedLock::new((trace, shard), Class::Signal, late, Vec::new));
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

/// Finds the tasks of a team that threads waited for.
pub(super) fn of_tasks(
    (trace, shard): (&Trace, &Shard),
    tasks: &TeamTasks,
    mut all: Vec<TaskWait>,
    found: &mut Vec<ContendedLock>,
) {
    all.sort_by_key(|wait| wait.task);
    for of_task in all.chunk_by(|a, b| a.task == b.task) {
        let waits: Vec<LockWait> = of_task
            .iter()
            .flat_map(|wait| wait.parts.iter().map(|part| LockWait::new(wait.call, part.clone())))
            .collect();
        let begin = waits.iter().map(|wait| wait.time.start).min().unwrap_or(0);
        let end = waits.iter().map(|wait| wait.time.end).max().unwrap_or(0);
        let mut by_waiter: Vec<&TaskWait> = of_task.iter().collect();
        by_waiter.sort_by_key(|wait| wait.call.0);
        let own: FxHashMap<LocationId, Vec<Range<i64>>> = by_waiter
            .chunk_by(|a, b| a.call.0 == b.call.0)
            .map(|own| (own[0].call.0, union(own.iter().flat_map(|wait| wait.parts.iter().cloned()).collect())))
            .collect();
        found.extend(ContendedLock::new((trace, shard), Class::Task, waits, || {
            // A thread does not wait for itself.
            let owners = tasks.owners(of_task[0].task, &(begin..end)).into_iter();
            let others = owners.flat_map(|(location, time)| {
                let own = own.get(&location).map_or(&[][..], Vec::as_slice);
                without(&[time], own).into_iter().map(move |part| (location, part))
            });
            let mut owners: Vec<_> = others.collect();
            owners.sort_by_key(|(_, time)| time.start);
            disjoint(owners)
        }));
    }
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

/// Leaves out the time of owners outside of all calls: nothing is to blame there.
fn in_calls((trace, shard): (&Trace, &Shard), sections: Vec<Section>) -> Vec<Section> {
    let is_in_call = |section: &Section| {
        let first = shard.instances_of(section.owner).next();
        first.is_some_and(|first| shard.enter(first) <= section.time.start && shard.leave(first) >= section.time.end)
    };
    if sections.iter().all(is_in_call) {
        return sections;
    }
    let mut activities = Activities::new(trace, shard);
    let mut parts: Vec<(LocationId, Range<i64>)> = Vec::with_capacity(sections.len());
    for Section { owner, time, .. } in sections {
        activities.within(owner, &time, |_, span| match parts.last_mut() {
            Some((last, part)) if *last == owner && part.end == span.start => part.end = span.end,
            _ => parts.push((owner, span)),
        });
    }
    disjoint(parts)
}

impl LockWait {
    /// A wait that is not yet connected with its point.
    fn new((location, instance): (LocationId, InstanceId), time: Range<i64>) -> Self {
        Self { location, instance, time, point: NONE, cost_share: NONE, unowned: 0 }
    }
}

impl ContendedLock {
    /// What these threads wait for; `None` if no wait is left.
    fn new(
        (trace, shard): (&Trace, &Shard),
        class: Class,
        mut waits: Vec<LockWait>,
        sections: impl FnOnce() -> Vec<Section>,
    ) -> Option<Self> {
        waits.retain(|wait| !wait.time.is_empty());
        let mut waits = by_location(waits, shard.locations.len(), |wait| shard.local(wait.location));
        waits.sort_by_key(|wait| (wait.instance, wait.time.start));
        (!waits.is_empty()).then(|| {
            let sections = in_calls((trace, shard), sections());
            Self { class, sections, waits, owner_waits: Vec::new() }
        })
    }

    /// The sections that overlap a stretch of time, and their parts inside it.
    fn owners(&self, time: &Range<i64>) -> impl Iterator<Item = (LocationId, Range<i64>)> {
        let first = self.sections.partition_point(|section| section.time.end <= time.start);
        let (start, end) = (time.start, time.end);
        let inside = self.sections[first..].iter().take_while(move |section| section.time.start < end);
        inside.map(move |section| (section.owner, section.time.start.max(start)..section.time.end.min(end)))
    }

    /// The part of a stretch of time in which nobody owns the lock, ticks; `near` is close to the last one.
    fn unowned(&self, time: &Range<i64>, near: &mut usize) -> i64 {
        let mut owned_until = |at| length_until(&self.sections, near, at, |section| (&section.time, section.before));
        let owned = owned_until(time.start) - owned_until(time.end);
        time.end - time.start + owned
    }

    /// The part of a stretch of time in which the owners wait themselves, ticks; `near` is close to the last one.
    fn waited(&self, time: &Range<i64>, near: &mut usize) -> i64 {
        let mut waited_until = |at| length_until(&self.owner_waits, near, at, |wait| (&wait.time, wait.before));
        let before = waited_until(time.start);
        waited_until(time.end) - before
    }

    /// Finds the waits of the owners; for each location, `cursors` is close to the last one.
    fn find_owner_waits(&mut self, shard: &Shard, waits: &[Vec<PointWait>], cursors: &mut [usize]) {
        let mut before = 0;
        for Section { owner, time, .. } in &self.sections {
            let (of_owner, cursor) = (&waits[shard.local(*owner)], &mut cursors[shard.local(*owner)]);
            let first = partition_point_near(of_owner, *cursor, |wait| wait.time.end <= time.start);
            *cursor = first;
            for wait in of_owner[first..].iter().take_while(|wait| wait.time.start < time.end) {
                let part = wait.time.start.max(time.start)..wait.time.end.min(time.end);
                let length = part.end - part.start;
                self.owner_waits.push(OwnerWait { point: wait.point, time: part, before });
                before += length;
            }
        }
    }

    /// The largest part of each wait of an owner that one wait for the lock is due to, ticks.
    fn propagating(&self) -> impl Iterator<Item = i64> {
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
            inside.map(|time| time.end - time.start.max(start)).fold(longest, i64::max)
        })
    }
}

/// The total length of stretches of time up to a time; `of` is the stretch of a row, and the total length before it.
fn length_until<T>(rows: &[T], near: &mut usize, time: i64, of: impl Fn(&T) -> (&Range<i64>, i64)) -> i64 {
    *near = partition_point_near(rows, *near, |row| of(row).0.start < time);
    rows[..*near].last().map_or(0, |row| {
        let (last, before) = of(row);
        before + last.end.min(time) - last.start
    })
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
    let owned = table.own_waits.rows.iter().zip(0..).filter(|(own_wait, _)| own_wait.relation == Relation::Ownership);
    let mut rows: Vec<((InstanceId, i64), u32)> = owned
        .map(|(own_wait, row)| {
            let instance = table.points[own_wait.point as usize].instance;
            ((instance, shard.enter(instance) + own_wait.held), row)
        })
        .collect();
    rows.sort();
    let mut cursors = vec![0; shard.locations.len()];
    let mut near = 0;
    for lock in locks {
        lock.find_owner_waits(shard, &waits, &mut cursors);
        let mut attached = std::mem::take(&mut lock.waits);
        let (mut section, mut owner_wait) = (0, 0);
        attached.retain_mut(|wait| {
            let key = (wait.instance, wait.time.end);
            // Of several, the last one counts.
            near = partition_point_near(&rows, near, |&(other, _)| other <= key);
            let Some(&(_, row)) = rows[..near].last().filter(|&&(other, _)| other == key) else { return false };
            let own_wait = &mut table.own_waits.rows[row as usize];
            (wait.point, wait.cost_share) = (own_wait.point, own_wait.cost_share);
            own_wait.indirect = lock.waited(&wait.time, &mut owner_wait) as f64;
            wait.unowned = lock.unowned(&wait.time, &mut section);
            own_wait.explained = own_wait.waiting - wait.unowned;
            true
        });
        lock.waits = attached;
        let of_owners: Vec<i64> = lock.propagating().collect();
        for (wait, &ticks) in lock.owner_waits.iter().zip(&of_owners) {
            let propagating = &mut table.propagating[wait.point as usize];
            *propagating = propagating.max(ticks as f64);
        }
        // The other ones get nothing, and must not wait for it.
        let mut ticks = of_owners.into_iter();
        lock.owner_waits.retain(|_| ticks.next().is_some_and(|ticks| ticks > 0));
        let mut before = 0;
        for wait in &mut lock.owner_waits {
            wait.before = before;
            before += wait.time.end - wait.time.start;
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

/// The costs that waits for locks propagate to waits of the owners; without locks, all is empty.
#[derive(Default)]
pub(super) struct Sweeps {
    locks: Vec<Sweep>,
    /// The waits for locks, as the lock and the wait, by point: `offsets[i]..offsets[i + 1]` are those at the i-th.
    waits: Vec<(u32, u32)>,
    offsets: Vec<u32>,
    /// For each point the row of what its wait caused by keeping locks, or none.
    rows: Vec<u32>,
    /// For each of these rows, the number of locks whose waits are not yet final, and what it caused by class.
    missing: Vec<u32>,
    phi: Vec<f64>,
    /// What became known too late, after waits in a circle, by point: of all classes.
    pub(super) lost: Vec<(u32, Vec<f64>)>,
    /// Number of classes.
    width: usize,
}

impl Sweeps {
    /// Sweeps that have not begun; `width` is the number of classes of all parts.
    pub(super) fn new(locks: &[ContendedLock], (parts, points): (&[WaitPart], usize), width: usize) -> Self {
        if locks.is_empty() {
            return Self::default();
        }
        let column = |part: &WaitPart, class| {
            let occurs = part.classes.all.contains(&class);
            occurs.then(|| part.columns.start + part.classes.column(class))
        };
        let mut sweeps = Self { width, rows: vec![NONE; points], ..Self::default() };
        sweeps.order_waits(locks, points);
        for lock in locks {
            let mut changes = Vec::with_capacity(4 * lock.waits.len() + 2 * lock.owner_waits.len());
            // Those of a thread come in order, so there is little to sort.
            for (wait, k) in lock.waits.iter().zip(0..) {
                let parts_of_wait = || parts.iter().zip(0..).map(|(part, i)| (part.extent.parts(&wait.time), i));
                for (times, i) in parts_of_wait() {
                    for time in times.filter(|time| !time.is_empty()) {
                        changes.push((time.start, Change::PartBegin(i)));
                    }
                }
                changes.push((wait.time.start, Change::WaitBegin(k)));
                changes.push((wait.time.end, Change::WaitEnd(k)));
                for (times, i) in parts_of_wait() {
                    for time in times.filter(|time| !time.is_empty()) {
                        changes.push((time.end, Change::PartEnd(i)));
                    }
                }
            }
            for (wait, k) in lock.owner_waits.iter().zip(0..) {
                let times = [(wait.time.start, Change::OwnerWaitBegin(k)), (wait.time.end, Change::OwnerWaitEnd(k))];
                changes.extend(times);
                let row = &mut sweeps.rows[wait.point as usize];
                if *row == NONE {
                    *row = sweeps.missing.len() as u32;
                    sweeps.missing.push(0);
                }
                sweeps.missing[*row as usize] += 1;
            }
            changes.sort();
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
        sweeps.phi = vec![0.0; sweeps.missing.len() * width];
        sweeps
    }

    /// Puts the waits for locks in the order of points.
    fn order_waits(&mut self, locks: &[ContendedLock], points: usize) {
        let numbered = || {
            locks.iter().zip(0..).flat_map(|(lock, number)| {
                lock.waits.iter().zip(0..).map(move |(wait, k)| (wait.point as usize, (number, k)))
            })
        };
        self.offsets = vec![0; points + 1];
        numbered().for_each(|(point, _)| self.offsets[point + 1] += 1);
        for point in 0..points {
            self.offsets[point + 1] += self.offsets[point];
        }
        self.waits = vec![(NONE, NONE); self.offsets[points] as usize];
        let mut next = self.offsets.clone();
        for (point, wait) in numbered() {
            self.waits[next[point] as usize] = wait;
            next[point] += 1;
        }
    }

    /// The row of what a wait caused by keeping locks.
    fn row(&self, point: u32) -> Option<usize> {
        self.rows.get(point as usize).filter(|&&row| row != NONE).map(|&row| row as usize)
    }

    /// Whether a wait at a point still lacks costs.
    pub(super) fn lacks(&self, point: u32) -> bool {
        self.row(point).is_some_and(|row| self.missing[row] > 0)
    }

    /// Goes on without the missing costs of a point; returns whether there were any.
    pub(super) fn release(&mut self, point: u32) -> bool {
        self.row(point).is_some_and(|row| std::mem::take(&mut self.missing[row]) > 0)
    }

    /// What a wait caused by keeping locks, by class.
    pub(super) fn phi(&self, point: u32) -> &[f64] {
        self.row(point).map_or(&[], |row| &self.phi[row * self.width..(row + 1) * self.width])
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
        for k in self.offsets[point as usize]..self.offsets[point as usize + 1] {
            let (number, wait) = self.waits[k as usize];
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
                    let row = self.rows[point as usize] as usize;
                    if self.missing[row] == 0 {
                        self.lost.push((point, sweep.sums.iter().map(|&sum| f64::from(sum)).collect()));
                        continue;
                    }
                    for (phi, &sum) in self.phi[row * self.width..].iter_mut().zip(&sweep.sums) {
                        *phi += f64::from(sum);
                    }
                    self.missing[row] -= 1;
                    if self.missing[row] == 0 {
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
    let mut turns: Vec<Turn> = Vec::new();
    let mut activities = Activities::new(trace, shard);
    for lock in locks {
        let mut charged: FxHashMap<(CallPathId, LocationId), Charge> = FxHashMap::default();
        turns.clear();
        let mut near = 0;
        let laters: Vec<Fixed> = lock.waits.iter().map(|wait| wait.share_of(table, part)).collect();
        for ((wait, k), &later) in lock.waits.iter().zip(0..).zip(&laters) {
            let lost = unowned.entry((shard.callpath(wait.instance), wait.location)).or_default();
            let mut add = |time: &Range<i64>, what| {
                turns.push(Turn::new(time.start, k, what));
                turns.push(Turn::new(time.end, k, what | Turn::ENDS));
            };
            let mut of_later = if later.is_zero() { 0 } else { Turn::LATER };
            for time in part.extent.parts(&wait.time).filter(|time| !time.is_empty()) {
                if time == wait.time {
                    lost.direct += wait.unowned;
                    add(&time, Turn::COUNTS | std::mem::take(&mut of_later));
                } else {
                    lost.direct += lock.unowned(&time, &mut near);
                    add(&time, Turn::COUNTS);
                }
            }
            if of_later != 0 {
                add(&wait.time, of_later);
            }
            lost.later += later.times(wait.unowned);
        }
        // Those of a thread come in order.
        turns.sort_by_key(|turn| turn.time);
        lock.charge_owners(&mut activities, (&turns, &laters), &mut charged);
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

/// The begin or the end of a wait: when the costs of a tick change.
struct Turn {
    time: i64,
    /// The wait, and what changes.
    code: u64,
}

impl Turn {
    /// Whether it is an end; whether the wait itself counts; whether what it caused later does.
    const ENDS: u64 = 1;
    const COUNTS: u64 = 2;
    const LATER: u64 = 4;

    fn new(time: i64, wait: usize, what: u64) -> Self {
        Self { time, code: (wait as u64) << 3 | what }
    }

    /// Changes the costs of a tick; `laters` is what a tick of each wait caused later.
    fn apply(&self, laters: &[Fixed], rate: &mut Charge) {
        let ends = self.code & Self::ENDS != 0;
        if self.code & Self::COUNTS != 0 {
            rate.direct += if ends { -1 } else { 1 };
        }
        if self.code & Self::LATER != 0 {
            let later = laters[(self.code >> 3) as usize];
            if ends {
                rate.later -= later;
            } else {
                rate.later += later;
            }
        }
    }
}

impl ContendedLock {
    /// Charges what the owners do while they do not wait: the costs of a tick begin with nothing.
    fn charge_owners(
        &self,
        activities: &mut Activities,
        (turns, laters): (&[Turn], &[Fixed]),
        charged: &mut FxHashMap<(CallPathId, LocationId), Charge>,
    ) {
        let mut turns = turns.iter().peekable();
        let mut rate = Charge::default();
        let mut advance = |to: i64, rate: &mut Charge| {
            while let Some(turn) = turns.next_if(|turn| turn.time <= to) {
                turn.apply(laters, rate);
            }
            turns.peek().map_or(i64::MAX, |turn| turn.time)
        };
        let mut work = |owner, time: Range<i64>| {
            let next = advance(time.start, &mut rate);
            if time.is_empty() || (rate.direct == 0 && rate.later.is_zero() && next >= time.end) {
                return;
            }
            activities.within(owner, &time, |callpath, span| {
                let charge = charged.entry((callpath, owner)).or_default();
                let mut from = span.start;
                while from < span.end {
                    let until = advance(from, &mut rate).min(span.end);
                    charge.add(rate, until - from);
                    from = until;
                }
            });
        };
        let mut waits = self.owner_waits.iter().peekable();
        for section in &self.sections {
            let mut from = section.time.start;
            while let Some(wait) = waits.next_if(|wait| wait.time.end <= section.time.end) {
                work(section.owner, from..wait.time.start);
                from = wait.time.end;
            }
            work(section.owner, from..section.time.end);
        }
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

/// What the owners of locks did during the waits of a class in a call, the longest first; nothing while nobody owned them.
pub(super) fn causes(
    trace: &Trace,
    shard: &Shard,
    locks: &[ContendedLock],
    (class, call): (Class, InstanceId),
) -> Vec<Activity> {
    let mut found = Vec::new();
    let mut activities = Activities::new(trace, shard);
    for lock in locks.iter().filter(|lock| lock.class == class) {
        let first = lock.waits.partition_point(|wait| wait.instance < call);
        for wait in lock.waits[first..].iter().take_while(|wait| wait.instance == call) {
            found.extend(lock.causes(&mut activities, &wait.time));
        }
    }
    found
}

impl ContendedLock {
    /// What the owners did in a stretch of time, the longest first.
    fn causes(&self, activities: &mut Activities, time: &Range<i64>) -> Vec<Activity> {
        let mut ticks: FxHashMap<(LocationId, CallPathId), i64> = FxHashMap::default();
        let mut all: Vec<Activity> = Vec::new();
        let mut waits = self.owner_waits[self.owner_waits.partition_point(|wait| wait.time.end <= time.start)..].iter();
        let mut next = waits.next();
        for (owner, part) in self.owners(time) {
            let mut from = part.start;
            let mut work = |span: Range<i64>| {
                activities.within(owner, &span, |callpath, span| {
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
        all
    }
}

/// Looks up what locations do.
struct Activities<'a> {
    trace: &'a Trace,
    shard: &'a Shard,
    /// For each location, how many of its events were before what was looked up last: the next is probably close.
    cursors: Vec<usize>,
}

impl<'a> Activities<'a> {
    fn new(trace: &'a Trace, shard: &'a Shard) -> Self {
        Self { trace, shard, cursors: vec![0; shard.locations.len()] }
    }

    /// Passes on what a location does in a stretch of time: call paths, and when they run themselves, without callees.
    fn within(&mut self, location: LocationId, time: &Range<i64>, mut book: impl FnMut(CallPathId, Range<i64>)) {
        let i = self.shard.local(location);
        let events = &self.shard.events;
        let (first, end) = (self.shard.event_offsets[i], self.shard.event_offsets[i + 1]);
        let times = &events.time[first as usize..end as usize];
        let begun = partition_point_near(times, self.cursors[i], |&at| at <= time.start);
        self.cursors[i] = begun;
        let mut from = time.start;
        for event in first + begun as u32..=end {
            if from >= time.end {
                break;
            }
            let until = if event < end { events.time[event as usize].min(time.end) } else { time.end };
            if from < until && event > first {
                let running = events.running_after(&self.trace.tree, event - 1);
                if running.is_some() {
                    book(running, from..until);
                }
            }
            from = until;
        }
    }
}
