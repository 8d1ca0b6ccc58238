//! Locks of threads: who owned each of them when, and whose release an acquisition needed.
//!
//! ```text
//!  thread 0  --A[ section     ]R------------------      A acquires, R releases
//!  thread 1  -------------------A[ section ]R-----
//! ```
//!
//! An ownership is the time from a thread's first acquisition to its last release with one order of acquisition: of
//! recursive locks only the outermost pair counts. Each pass of a thread through the block of an `ordered` construct is
//! an ownership, too.
//!
//! A reader needs the release of the last writer before it, a writer those of all readers since.
//!
//! *Source*: specification.md#locks-of-threads.

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::diagnostics::{DiagnosticKind, Diagnostics};
use crate::ids::{InstanceId, LocationId};
use crate::trace::columns::{Lock, Team};
use crate::trace::locations::Process;
use crate::trace::{NONE, RegionClass, Shard, Trace};

/// A record of a lock: its time, and the region instance around it, if there is one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub time: i64,
    pub instance: InstanceId,
}

/// One thread's ownership of a lock.
#[derive(Clone, Debug)]
pub(crate) struct Ownership {
    pub location: LocationId,
    /// From the acquisition to the release; what is not recorded is estimated.
    pub time: Range<i64>,
    /// The region instance that acquires, if it is recorded and can wait.
    acquires: InstanceId,
    /// The region instance around the release, and whether that is recorded.
    releases: InstanceId,
    is_released: bool,
    /// Whether other threads can own the lock at the same time.
    pub is_shared: bool,
    /// Whether it is known whose ownership came before this one.
    follows: bool,
}

impl Ownership {
    /// The acquisition, if it is recorded, by a call that can wait.
    pub(crate) fn acquire(&self) -> Option<Record> {
        self.acquires.is_some().then_some(Record { time: self.time.start, instance: self.acquires })
    }

    /// The release, if it is recorded.
    pub(crate) fn release(&self) -> Option<Record> {
        self.is_released.then_some(Record { time: self.time.end, instance: self.releases })
    }
}

/// A lock of a process with its ownerships, in the order of acquisitions.
#[derive(Clone, Debug)]
pub(crate) struct ThreadLock {
    pub key: LockKey,
    pub ownerships: Vec<Ownership>,
}

/// What identifies a lock within its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum LockKey {
    /// By paradigm and number.
    Lock { paradigm: u8, number: u32 },
    /// The `ordered` construct (its region) of a team, by fork.
    Ordered { fork: u32, region: u32 },
}

/// A thread waits for the release by another one: positions among the ownerships of the lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handover {
    pub released: usize,
    pub acquired: usize,
}

/// All locks of a process.
pub(crate) fn of_process(trace: &Trace, shard: &Shard, process: &Process, notes: &mut Diagnostics) -> Vec<ThreadLock> {
    let mut locks = recorded(trace, shard, process, notes);
    locks.extend(ordered(trace, shard, process));
    locks
}

/// A record of a lock at a location.
#[derive(Clone, Copy)]
struct Row<'a> {
    location: LocationId,
    lock: &'a Lock,
    /// Whether it is the first acquisition of its call.
    is_first: bool,
}

/// The place of a record among all of a process: by lock, order of acquisition, thread and time. One number each, because all
/// records are sorted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct RowKey(u128);

impl RowKey {
    /// The key of a row of the shard's i-th location.
    fn new(lock: &Lock, i: usize, row: usize) -> Self {
        let of_lock = u128::from(lock.paradigm) << 32 | u128::from(lock.lock);
        Self((of_lock << 32 | u128::from(lock.order)) << 56 | (i as u128 & 0xff_ffff) << 32 | u128::from(row as u32))
    }

    fn lock(self) -> u64 {
        (self.0 >> 88) as u64
    }

    fn row(self) -> usize {
        self.0 as u32 as usize
    }

    /// Its location among those of the shard.
    fn location(self) -> usize {
        (self.0 >> 32) as usize & 0xff_ffff
    }
}

fn recorded(trace: &Trace, shard: &Shard, process: &Process, notes: &mut Diagnostics) -> Vec<ThreadLock> {
    let all = &shard.locks.rows;
    let locations = shard.local_locations(process.locations);
    let begin = if locations.is_empty() { 0 } else { shard.locks.range(locations.start).start };
    let count = locations.clone().map(|i| shard.locks.range(i).len()).sum();
    let mut keys: Vec<RowKey> = Vec::with_capacity(count);
    let mut is_first: Vec<bool> = Vec::with_capacity(count);
    for i in locations {
        let mut last = InstanceId::NONE;
        for row in shard.locks.range(i) {
            let lock = &all[row];
            is_first.push(lock.acquired && lock.instance.is_some() && lock.instance != last);
            if is_first[row - begin] {
                last = lock.instance;
            }
            keys.push(RowKey::new(lock, i, row));
        }
    }
    // Nested acquisitions share one order of acquisition: the first acquire and the last release count. The records of each
    // thread are mostly in order already.
    keys.sort();
    let row = |key: &RowKey| Row {
        location: shard.location(key.location()),
        lock: &all[key.row()],
        is_first: is_first[key.row() - begin],
    };
    let mut rows: Vec<Row> = Vec::new();
    keys.chunk_by(|a, b| a.lock() == b.lock())
        .map(|of_lock| {
            rows.clear();
            rows.extend(of_lock.iter().map(row));
            let Lock { paradigm, lock: number, .. } = *rows[0].lock;
            ThreadLock { key: LockKey::Lock { paradigm, number }, ownerships: ownerships(trace, shard, &rows, notes) }
        })
        .collect()
}

/// The ownerships of one lock, from its records by order, location and time.
fn ownerships(trace: &Trace, shard: &Shard, rows: &[Row], notes: &mut Diagnostics) -> Vec<Ownership> {
    let mut orders: Vec<u32> = Vec::with_capacity(rows.len() / 2);
    let mut numbered: Vec<Ownership> = Vec::with_capacity(rows.len() / 2);
    let mut unnumbered: Vec<Ownership> = Vec::new();
    for of_order in rows.chunk_by(|a, b| a.lock.order == b.lock.order) {
        let order = of_order[0].lock.order;
        // Old measurement systems wrote 0 for an unknown order; two threads cannot have the same.
        if order == 0 || of_order[0].location != of_order[of_order.len() - 1].location {
            for of_thread in of_order.chunk_by(|a, b| a.location == b.location) {
                outermost(of_thread, |rows| unnumbered.push(ownership(trace, shard, rows)));
            }
        } else {
            orders.push(order);
            numbered.push(ownership(trace, shard, of_order));
        }
    }
    if let Some(gap) = orders.windows(2).position(|pair| pair[1] - pair[0] > 1) {
        notes.add(DiagnosticKind::LockOrder, numbered[gap + 1].location, numbered[gap + 1].time.start);
    } else if let Some(first) = unnumbered.first() {
        notes.add(DiagnosticKind::LockOrder, first.location, first.time.start);
    }
    let mut all = merge(&orders, numbered, unnumbered);
    for own in &all {
        if own.time.start == i64::MIN {
            notes.add(DiagnosticKind::OpenLock, own.location, own.time.end);
        } else if own.time.end == i64::MAX {
            notes.add(DiagnosticKind::OpenLock, own.location, own.time.start);
        }
    }
    estimate(shard, &mut all);
    all
}

/// Divides a thread's records without known order into those from each outermost acquisition to its release.
fn outermost<'a, 'b>(rows: &'b [Row<'a>], mut each: impl FnMut(&'b [Row<'a>])) {
    let (mut begin, mut depth) = (0, 0);
    for (i, row) in rows.iter().enumerate() {
        if row.lock.acquired {
            depth += 1;
        } else {
            depth = (depth - 1).max(0);
            if depth == 0 {
                each(&rows[begin..=i]);
                begin = i + 1;
            }
        }
    }
    if begin < rows.len() {
        each(&rows[begin..]);
    }
}

/// What the records of one thread with one order say.
fn ownership(trace: &Trace, shard: &Shard, rows: &[Row]) -> Ownership {
    let acquire = rows.iter().find(|row| row.lock.acquired);
    let release = rows.iter().rfind(|row| !row.lock.acquired);
    let instance = |row: Option<&Row>| row.map_or(InstanceId::NONE, |row| row.lock.instance);
    Ownership {
        location: rows[0].location,
        time: acquire.map_or(i64::MIN, |row| row.lock.time)..release.map_or(i64::MAX, |row| row.lock.time),
        acquires: instance(acquire.filter(|row| row.is_first)),
        releases: instance(release),
        is_released: release.is_some(),
        is_shared: instance(acquire).is_some() && trace.class(shard, instance(acquire)) == RegionClass::ReadLock,
        follows: false,
    }
}

/// Puts ownerships without a known order between the others, by time.
fn merge(orders: &[u32], mut numbered: Vec<Ownership>, mut unnumbered: Vec<Ownership>) -> Vec<Ownership> {
    for i in 1..numbered.len() {
        numbered[i].follows = orders[i - 1] + 1 == orders[i];
    }
    if unnumbered.is_empty() {
        return numbered;
    }
    let begin = |own: &Ownership| if own.time.start == i64::MIN { own.time.end } else { own.time.start };
    unnumbered.sort_by_key(|own| (begin(own), own.location));
    let mut all: Vec<Ownership> = Vec::with_capacity(numbered.len() + unnumbered.len());
    let mut unnumbered = unnumbered.into_iter().map(|own| Ownership { follows: true, ..own }).peekable();
    for own in numbered {
        let before = all.len();
        all.extend(std::iter::from_fn(|| unnumbered.next_if(|other| begin(other) < begin(&own))));
        let follows = own.follows || all.len() > before;
        all.push(Ownership { follows, ..own });
    }
    all.extend(unnumbered);
    all
}

/// Estimates what is not recorded: without a release, an ownership ends where its thread acquires the lock again, or at
/// its end; without an acquisition, it begins at the previous release.
fn estimate(shard: &Shard, ownerships: &mut [Ownership]) {
    if ownerships.iter().any(|own| own.time.end == i64::MAX) {
        let mut next: FxHashMap<LocationId, i64> = FxHashMap::default();
        for own in ownerships.iter_mut().rev() {
            if own.time.end == i64::MAX {
                let end = || shard.spans[shard.local(own.location)].last;
                own.time.end = next.get(&own.location).copied().unwrap_or_else(end).max(own.time.start);
            }
            if own.time.start != i64::MIN {
                next.insert(own.location, own.time.start);
            }
        }
    }
    let mut before = i64::MIN;
    for own in ownerships {
        if own.time.start == i64::MIN {
            own.time.start = if before == i64::MIN { own.time.end } else { before.min(own.time.end) };
        }
        before = own.time.end;
    }
}

/// The `ordered` constructs of a process: threads pass through their blocks one after the other.
fn ordered(trace: &Trace, shard: &Shard, process: &Process) -> Vec<ThreadLock> {
    if !trace.regions.has(RegionClass::OrderedBlock) {
        return Vec::new();
    }
    let mut all: Vec<(LockKey, Ownership)> = Vec::new();
    for location in process.locations {
        // Teams that have begun, the innermost last, without those that have ended.
        let mut teams = shard.teams.of(shard.local(location)).iter().peekable();
        let mut open: Vec<&Team> = Vec::new();
        let mut waiting = InstanceId::NONE;
        for instance in shard.instances_of(location) {
            match trace.class(shard, instance) {
                RegionClass::Ordered => waiting = instance,
                RegionClass::OrderedBlock => {
                    let time = shard.enter(instance)..shard.leave(instance);
                    let is_around = |outer: InstanceId| {
                        outer.is_some() && shard.enter(outer) <= time.start && shard.leave(outer) >= time.end
                    };
                    let has_begun = |of: InstanceId| of.is_none() || shard.enter(of) <= time.start;
                    while let Some(team) = teams.next_if(|team| has_begun(team.instance)) {
                        open.extend(team.instance.is_some().then_some(team));
                    }
                    while open.pop_if(|team| shard.leave(team.instance) < time.start).is_some() {}
                    let team = open.iter().rev().find(|team| is_around(team.instance));
                    let key = LockKey::Ordered {
                        fork: team.map_or(NONE, |team| team.fork),
                        region: trace.tree.region(shard.callpath(instance)).number(),
                    };
                    let acquire = Some(waiting).filter(|&waiting| is_around(waiting));
                    all.push((
                        key,
                        Ownership {
                            location,
                            time,
                            acquires: acquire.unwrap_or(InstanceId::NONE),
                            releases: instance,
                            is_released: true,
                            is_shared: false,
                            follows: true,
                        },
                    ));
                }
                _ => {}
            }
        }
    }
    all.sort_by_key(|(key, own)| (*key, own.time.start, own.location));
    let of_construct = |rows: &[(LockKey, Ownership)]| ThreadLock {
        key: rows[0].0,
        ownerships: rows.iter().map(|(_, own)| own.clone()).collect(),
    };
    all.chunk_by(|a, b| a.0 == b.0).map(of_construct).collect()
}

impl ThreadLock {
    /// Passes on who waited for whose release, if they are different threads: for a writer all readers since the last
    /// one, the one that releases last at the end.
    pub(crate) fn each_handover(&self, mut each: impl FnMut(Handover)) {
        let mut writer: Option<usize> = None;
        let mut readers: Vec<usize> = Vec::new();
        for (acquired, own) in self.ownerships.iter().enumerate() {
            if !own.follows {
                writer = None;
                readers.clear();
            }
            let mut hand_over = |released: usize| {
                let before = &self.ownerships[released];
                if before.is_released && own.acquires.is_some() && before.location != own.location {
                    each(Handover { released, acquired });
                }
            };
            if own.is_shared {
                if let Some(writer) = writer {
                    hand_over(writer);
                }
                readers.push(acquired);
            } else {
                let end = |&reader: &usize| {
                    let own = &self.ownerships[reader];
                    (own.release().map(|release| release.time), std::cmp::Reverse(own.location))
                };
                readers.sort_by_key(end);
                if let Some(writer) = writer.filter(|_| readers.is_empty()) {
                    hand_over(writer);
                }
                readers.drain(..).for_each(&mut hand_over);
                writer = Some(acquired);
            }
        }
    }
}
