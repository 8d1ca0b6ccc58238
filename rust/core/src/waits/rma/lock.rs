//! Lock Contention: a process waits for another to release a lock.
//!
//! ```text
//!  holder  --[ Lock ]====[ Unlock |]--------
//!  waiter  -----[ Lock | or put or Unlock   ]--
//!               |-----------------|  waiting
//! ```
//!
//! *Order*: where all epochs of a lock have a record of their acquisition, these order them, unless one would be acquired
//! before the release of its holder begins: then the record says only that the lock call returned, which MPI may do
//! before it has the lock. Without such records, the Leave of their release orders them. In OpenSHMEM and ARMCI the
//! acquiring call returns with the lock, so its Leave orders them.
//! *Holder*: the previous epoch; for a shared epoch, the last exclusive one before it. Shared epochs do not wait for
//! each other. *Blocked activity*: among the waiter's calls that may block (lock, operations on the lock's target,
//! calls that complete them, unlock), the one with the record of the acquisition if these order the epochs; else the one
//! that overlaps the holder's release; if several do, the one with the longest overlap.
//!
//! *Definition*: waiting = min(Leave(release), Leave(activity)) − Enter(activity), if positive. A call that ends
//! several epochs has one wait, the longest. There is no wait if the release falls between two calls of the waiter.
//!
//! *Source*: specification.md#lock-contention; thesis, wait-state pattern 7, algorithm 2.

use std::cmp::Reverse;

use bitcode::{Decode, Encode};
use rustc_hash::{FxHashMap, FxHashSet};

use super::operations::calls_of;
use crate::Result;
use crate::diagnostics::{DiagnosticKind, Diagnostics, Place};
use crate::ids::{InstanceId, LocationId, ProcessId, WindowId};
use crate::matching::epochs::{Epochs, LockEpoch};
use crate::parallel::exchange::{Inbox, Outbox};
use crate::parallel::iter::prelude::*;
use crate::trace::columns::ALL;
use crate::trace::{Shard, Trace};

/// A call that waited for the release of a lock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contention {
    /// Location and region instance of the waiting call.
    pub(super) call: (LocationId, InstanceId),
    /// Waiting time, ticks.
    pub(super) waiting: i64,
    /// Location and region instance of the release.
    pub(super) release: (LocationId, InstanceId),
    /// Leave of the release, ticks.
    pub(super) released: i64,
}

/// Identity of a lock: window, target process or [`ALL`], lock id, and whether the id stands for a class of static
/// variables.
type Key = (WindowId, ProcessId, u64, bool);

/// A lock epoch, for the owner of the lock.
#[derive(Clone, Copy, Encode, Decode)]
struct HeldLock {
    key: Key,
    /// Time that orders the epochs, ticks.
    since: i64,
    /// Time of the record of the acquisition, ticks; [`i64::MIN`] without one.
    granted: i64,
    process: ProcessId,
    /// Region instance of the call that requests the lock.
    acquire: InstanceId,
    /// Location and region instance of the release, and its times.
    release: (LocationId, InstanceId),
    release_enter: i64,
    release_leave: i64,
    /// Shard of the epoch and its position there.
    position: (u32, u32),
    shared: bool,
}

/// The release that an epoch may have waited for.
#[derive(Clone, Copy, Encode, Decode)]
pub(crate) struct Predecessor {
    /// Position of the epoch that may have waited.
    pub(crate) epoch: u32,
    /// Index of the process that owns the lock; an epoch may hold the locks of many.
    pub(crate) target: ProcessId,
    /// Region instance of the call that requested the lock before.
    pub(crate) acquire: InstanceId,
    /// Location and region instance of the release, and its times.
    pub(crate) release: (LocationId, InstanceId),
    pub(crate) enter: i64,
    pub(crate) leave: i64,
    /// Whether records of acquisitions order the epochs of the lock.
    pub(crate) granted: bool,
}

/// The calls that waited, ordered by region instance; one list per shard.
pub(super) fn detect(trace: &Trace, epochs: &[Epochs]) -> Result<(Vec<Vec<Contention>>, Diagnostics)> {
    let (before, diagnostics) = predecessors(trace, epochs)?;
    let received = before.into_par_iter().zip(trace.par_shards().zip(epochs));
    Ok((received.map(|(before, (shard, epochs))| contend(shard, epochs, &before)).collect(), diagnostics))
}

/// The releases that the lock epochs of each shard may have waited for.
pub(crate) fn predecessors(trace: &Trace, epochs: &[Epochs]) -> Result<(Vec<Inbox<Predecessor>>, Diagnostics)> {
    let classes = static_locks(trace, epochs)?;
    let exclusive = exclusive_windows(trace, epochs)?;
    let shards = || trace.par_shards().zip(epochs);
    let held = trace.exchange.own().into_par_iter().zip(shards());
    let held: Vec<(Outbox<HeldLock>, Diagnostics)> =
        held.map(|(number, (shard, epochs))| held_locks(trace, shard, epochs, number, &classes, &exclusive)).collect();
    let mut diagnostics = Diagnostics::default();
    let mut outgoing = Vec::with_capacity(held.len());
    for (outbox, of_shard) in held {
        outgoing.push(outbox);
        diagnostics.merge(of_shard);
    }
    let held = trace.exchange.alltoallv(outgoing)?;
    let outgoing = held.into_par_iter().map(|inbox| queue(trace, &inbox)).collect();
    Ok((trace.exchange.alltoallv(outgoing)?, diagnostics))
}

fn held_locks(
    trace: &Trace,
    shard: &Shard,
    epochs: &Epochs,
    number: u32,
    classes: &FxHashSet<(WindowId, u64)>,
    exclusive: &FxHashSet<WindowId>,
) -> (Outbox<HeldLock>, Diagnostics) {
    let mut outbox = trace.exchange.outbox();
    let mut diagnostics = Diagnostics::default();
    for (position, epoch) in epochs.locks.iter().enumerate().filter(|(_, epoch)| epoch.release.is_some()) {
        let order = if epoch.blocking { epoch.acquire } else { epoch.release };
        let mut push = |owner, key| {
            outbox.push(
                owner,
                HeldLock {
                    key,
                    since: shard.leave(order),
                    granted: epoch.granted.1,
                    process: epoch.process,
                    acquire: epoch.acquire,
                    release: (epoch.location, epoch.release),
                    release_enter: shard.enter(epoch.release),
                    release_leave: shard.leave(epoch.release),
                    position: (number, position as u32),
                    shared: epoch.shared,
                },
            );
        };
        if epoch.blocking && epoch.target == ALL {
            let class = is_static(classes, epoch);
            let lock = if class { epoch.lock & PAGE } else { epoch.lock };
            let owner = trace.exchange.evaluator(epoch.window.number(), lock as u32);
            push(owner, (epoch.window, ALL, lock, class));
        } else if epoch.target == ALL {
            let rows = epochs.of_lock.of(position);
            let mut targets: Vec<ProcessId> =
                rows.iter().map(|&row| shard.operations.rows[row as usize].target).collect();
            targets.sort_unstable();
            targets.dedup();
            if targets.is_empty() && exclusive.contains(&epoch.window) {
                let place = Place::at(epoch.location, shard.enter(epoch.release));
                diagnostics.count(DiagnosticKind::UnknownTargets, 1, Some(place));
            }
            for target in targets {
                push(trace.owner(target), (epoch.window, target, 0, false));
            }
        } else {
            let lock = if epoch.blocking { epoch.lock } else { 0 };
            push(trace.owner(epoch.target), (epoch.window, epoch.target, lock, false));
        }
    }
    (outbox, diagnostics)
}

/// The windows with exclusive locks, where a process may wait for a lock.
fn exclusive_windows(trace: &Trace, epochs: &[Epochs]) -> Result<FxHashSet<WindowId>> {
    let locks = epochs.iter().flat_map(|epochs| &epochs.locks);
    let own: FxHashSet<WindowId> = locks.filter(|lock| !lock.shared).map(|lock| lock.window).collect();
    Ok(trace.exchange.allgather(own.into_iter().collect::<Vec<WindowId>>())?.into_iter().flatten().collect())
}

/// Orders the epochs of each lock and sends each the release before it: thesis, algorithm 2.
fn queue(trace: &Trace, inbox: &Inbox<HeldLock>) -> Outbox<Predecessor> {
    let mut epochs: Vec<HeldLock> = inbox.rows().copied().collect();
    // The epochs of a process arrive in order, so a stable sort only has to merge them.
    epochs.sort_by_key(|epoch| (epoch.key, epoch.since, epoch.process, epoch.position));
    let mut outbox = trace.exchange.outbox();
    for of_lock in epochs.chunk_by_mut(|a, b| a.key == b.key) {
        let granted = order_by_acquisitions(of_lock);
        let of_lock = &*of_lock;
        let (mut last, mut last_exclusive): (Option<&HeldLock>, Option<&HeldLock>) = (None, None);
        for epoch in of_lock {
            if let Some(holder) = if epoch.shared { last_exclusive } else { last } {
                let (shard, position) = epoch.position;
                let HeldLock { acquire, release, release_enter: enter, release_leave: leave, .. } = *holder;
                let (epoch, target) = (position, epoch.key.1);
                outbox.push(shard, Predecessor { epoch, target, acquire, release, enter, leave, granted });
            }
            last = Some(epoch);
            if !epoch.shared {
                last_exclusive = Some(epoch);
            }
        }
    }
    outbox
}

/// Orders the epochs of a lock by the records of their acquisitions, if all have one and none comes before the release of
/// its holder begins; returns whether they do.
fn order_by_acquisitions(epochs: &mut [HeldLock]) -> bool {
    if epochs.iter().any(|epoch| epoch.granted == i64::MIN) {
        return false;
    }
    let mut ordered = epochs.to_vec();
    ordered.sort_by_key(|epoch| (epoch.granted, epoch.process, epoch.position));
    // The latest begin of a release so far: of all, and of exclusive epochs.
    let (mut all, mut exclusive) = (i64::MIN, i64::MIN);
    for epoch in &ordered {
        if epoch.granted < if epoch.shared { exclusive } else { all } {
            return false;
        }
        all = all.max(epoch.release_enter);
        if !epoch.shared {
            exclusive = exclusive.max(epoch.release_enter);
        }
    }
    epochs.copy_from_slice(&ordered);
    true
}

/// Lock Contention, given the previous release of each lock: thesis, wait-state pattern 7.
fn contend(shard: &Shard, epochs: &Epochs, before: &Inbox<Predecessor>) -> Vec<Contention> {
    let mut contentions: Vec<Contention> = Vec::new();
    for before in before.rows() {
        let epoch = &epochs.locks[before.epoch as usize];
        let waited = |instance: InstanceId| before.leave.min(shard.leave(instance)) - shard.enter(instance);
        let blocked = if epoch.blocking {
            // The order of acquisitions is reliable here: a release that seems to come later is a clock error.
            (!epoch.tried).then_some(epoch.acquire)
        } else if before.granted && epoch.granted.0.is_some() {
            Some(epoch.granted.0)
        } else {
            let rows = epochs.of_lock.of(before.epoch as usize);
            let operations = rows.iter().map(|&row| &shard.operations.rows[row as usize]);
            let completing = operations.filter(|operation| operation.target == before.target).flat_map(calls_of);
            [epoch.acquire, epoch.release]
                .into_iter()
                .chain(completing)
                .filter(|&call| shard.enter(call) < before.leave && shard.leave(call) > before.enter)
                .max_by_key(|&call| (waited(call), shard.enter(call)))
        };
        let Some(instance) = blocked else { continue };
        let waiting = waited(instance);
        if waiting > 0 {
            // An epoch belongs to a process, and another of its threads may be the one that waits.
            let call = (shard.location_of_instance(instance), instance);
            contentions.push(Contention { call, waiting, release: before.release, released: before.leave });
        }
    }
    contentions.sort_by_key(|contention| (contention.call.1, Reverse(contention.waiting)));
    contentions.dedup_by_key(|contention| contention.call.1);
    contentions
}

/// The bits of an address within a page: address spaces of processes are shifted by whole pages.
const PAGE: u64 = 0xFFF;

fn is_static(classes: &FxHashSet<(WindowId, u64)>, epoch: &LockEpoch) -> bool {
    classes.contains(&(epoch.window, epoch.lock))
}

/// Finds locks in static variables, whose OpenSHMEM id (an address) differs from process to process.
///
/// Ids used by several processes are addresses in the symmetric heap and denote the same lock. Other ids with equal low
/// 12 bits denote one lock if each process has at most one of them and all locks of two processes are the same distance
/// apart. Returns the ids that stand for such a class, by window.
fn static_locks(trace: &Trace, epochs: &[Epochs]) -> Result<FxHashSet<(WindowId, u64)>> {
    let symmetric =
        epochs.iter().flat_map(|epochs| &epochs.locks).filter(|epoch| epoch.blocking && epoch.target == ALL);
    let mut used: Vec<(WindowId, u64, ProcessId)> =
        symmetric.map(|epoch| (epoch.window, epoch.lock, epoch.process)).collect();
    used.sort_unstable();
    used.dedup();
    let mut users: FxHashMap<(WindowId, u64), (ProcessId, bool)> = FxHashMap::default();
    for (window, lock, process) in trace.exchange.allgather(used)?.into_iter().flatten() {
        let (first, several) = users.entry((window, lock)).or_insert((process, false));
        *several |= *first != process;
    }
    let mut own: Vec<(WindowId, u64, ProcessId, u64)> = users
        .into_iter()
        .filter(|(_, (_, several))| !several)
        .map(|((window, lock), (process, _))| (window, lock & PAGE, process, lock))
        .collect();
    own.sort_unstable();
    let mut shifts: FxHashMap<(ProcessId, ProcessId), u64> = FxHashMap::default();
    let mut classes = FxHashSet::default();
    for class in own.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
        if class.len() < 2 || class.windows(2).any(|pair| pair[0].2 == pair[1].2) {
            continue;
        }
        for pair in class.windows(2) {
            let shift = pair[1].3.wrapping_sub(pair[0].3);
            if *shifts.entry((pair[0].2, pair[1].2)).or_insert(shift) != shift {
                return Ok(FxHashSet::default());
            }
        }
        classes.extend(class.iter().map(|&(window, _, _, lock)| (window, lock)));
    }
    Ok(classes)
}
