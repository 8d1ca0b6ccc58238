//! Who owned a lock before whom: decided here for wait states, clock constraints, and the simulator.
//!
//! *Proof* of an epoch: the earliest return of a call that is known to have needed the lock (flush, unlock, completion
//! of an operation that fetches data, acquisition in OpenSHMEM and ARMCI). The lock was owned by then, and not released
//! before the *release* began. Hence, if the proof of `a` comes before the release of `b` begins,
//! and the two exclude each other, `b` did not own the lock first:
//!
//! ```text
//!  a  --[ Lock ][ Flush ]================[ Unlock |    ]--
//!                     proof              release    |
//!  b  -----------[ Lock                     ][ Flush ][ Unlock ]--
//!                                                        release        a before b
//! ```
//!
//! *Order*: of all orders that no proof contradicts, the one whose releases come first: at each point, the epoch whose
//! release returns first among those that no other has to precede. What proofs leave open is *inferred*, as in the
//! thesis. Proofs that contradict each other (clocks that disagree) decide nothing there.
//!
//! *Acquisitions*: MPI may return from a lock call before it has the lock. Records of the acquisition count as proofs if
//! they contradict nothing. Without such records, the returns of the lock calls do if, in addition, one of them is known
//! to have blocked: it began before the release of the epoch before it and returned after that.
//!
//! *Hand-overs*: an exclusive epoch needs the release of every shared epoch since the last exclusive one, or else of that
//! one; a shared epoch needs the release of the last exclusive one.
//!
//! *Source*: specification.md#ownership-of-locks; thesis, algorithm 2.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bitcode::{Decode, Encode};
use rustc_hash::{FxHashMap, FxHashSet};

use super::epochs::{Epochs, LockEpoch};
use crate::Result;
use crate::diagnostics::{DiagnosticKind, Diagnostics, Place};
use crate::ids::{InstanceId, LocationId, ProcessId, WindowId};
use crate::parallel::exchange::{Inbox, Outbox};
use crate::parallel::iter::prelude::*;
use crate::trace::columns::{ALL, Operation};
use crate::trace::{Shard, Trace};

/// Identity of a lock: window, target process or [`ALL`], lock id, and whether the id stands for a class of static
/// variables.
type Key = (WindowId, ProcessId, u64, bool);

/// What is known of the acquisitions of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) enum Acquisition {
    /// Only what completes operations proves that it is owned.
    Unknown,
    /// Lock calls return with the lock.
    Blocks,
    /// Records of the acquisition are right.
    Recorded,
}

/// A lock epoch, for the owner of the lock.
#[derive(Clone, Copy, Encode, Decode)]
struct Held {
    key: Key,
    /// Return of the call that orders the epochs where no proof does, ticks: the release, or the acquisition if the call
    /// returns with the lock.
    order: i64,
    /// The proof, and the acquisition by its record and by the return of the lock call; [`i64::MAX`] without one.
    proof: i64,
    granted: i64,
    acquired: i64,
    process: ProcessId,
    /// Region instance of the call that requests the lock, and its Enter.
    acquire: InstanceId,
    requested: i64,
    /// Location and region instance of the release, and its times.
    release: (LocationId, InstanceId),
    release_enter: i64,
    release_leave: i64,
    /// Shard of the epoch and its position there.
    position: (u32, u32),
    shared: bool,
}

/// A release that an epoch needed before it could own the lock.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub(crate) struct HandOver {
    /// Position of the epoch that needed it.
    pub(crate) epoch: u32,
    /// Index of the process that owns the lock; an epoch may hold the locks of many.
    pub(crate) target: ProcessId,
    /// Region instance of the call that requested the lock for the epoch before.
    pub(crate) acquire: InstanceId,
    /// Location and region instance of the release, and its times.
    pub(crate) release: (LocationId, InstanceId),
    pub(crate) enter: i64,
    pub(crate) leave: i64,
    /// Whether no other release that the epoch needed ends later.
    pub(crate) is_last: bool,
    /// Whether proofs decide the order; otherwise it is inferred from the releases.
    pub(crate) is_proven: bool,
    acquisition: Acquisition,
}

impl HandOver {
    /// The call of the epoch that waited for the release, if any, and how long.
    pub(crate) fn blocked(&self, shard: &Shard, epochs: &Epochs) -> Option<(InstanceId, i64)> {
        let epoch = &epochs.locks[self.epoch as usize];
        let waited = |instance: InstanceId| self.leave.min(shard.leave(instance)) - shard.enter(instance);
        let blocked = if epoch.blocking {
            // The order of acquisitions is reliable here: a release that seems to come later is a clock error.
            (!epoch.tried).then_some(epoch.acquire)
        } else if self.acquisition == Acquisition::Recorded && epoch.granted.0.is_some() {
            Some(epoch.granted.0)
        } else {
            let completing = operations(shard, epochs, self.epoch, self.target).flat_map(calls_of);
            [epoch.acquire, epoch.release]
                .into_iter()
                .chain(completing)
                .filter(|&call| shard.enter(call) < self.leave && shard.leave(call) > self.enter)
                .max_by_key(|&call| (waited(call), shard.enter(call)))
        };
        blocked.map(|call| (call, waited(call))).filter(|&(_, waiting)| waiting > 0)
    }

    /// The call whose return proves that the epoch owned the lock; none if it may have done without it.
    pub(crate) fn proof(&self, shard: &Shard, epochs: &Epochs) -> Option<InstanceId> {
        let epoch = &epochs.locks[self.epoch as usize];
        let acquired = match self.acquisition {
            Acquisition::Unknown => InstanceId::NONE,
            Acquisition::Blocks => epoch.acquire,
            Acquisition::Recorded => epoch.granted.0,
        };
        let needed = epoch.blocking || operations(shard, epochs, self.epoch, self.target).next().is_some();
        let proof = if needed { proof(shard, epochs, self.epoch, self.target) } else { InstanceId::NONE };
        let proofs = [proof, acquired].into_iter().filter(|call| call.is_some());
        proofs.min_by_key(|&call| shard.leave(call))
    }
}

/// The hand-overs of locks to the epochs of each shard.
pub(crate) fn hand_overs(trace: &Trace, epochs: &[Epochs]) -> Result<(Vec<Inbox<HandOver>>, Diagnostics)> {
    let classes = static_locks(trace, epochs)?;
    let exclusive = exclusive_windows(trace, epochs)?;
    let shards = || trace.par_shards().zip(epochs);
    let held = trace.exchange.own().into_par_iter().zip(shards());
    let held: Vec<(Outbox<Held>, Diagnostics)> =
        held.map(|(number, (shard, epochs))| held_locks(trace, shard, epochs, number, &classes, &exclusive)).collect();
    let mut diagnostics = Diagnostics::default();
    let mut outgoing = Vec::with_capacity(held.len());
    for (outbox, of_shard) in held {
        outgoing.push(outbox);
        diagnostics.merge(of_shard);
    }
    let held = trace.exchange.alltoallv(outgoing)?;
    let outgoing = held.into_par_iter().map(|inbox| queues(trace, &inbox)).collect();
    Ok((trace.exchange.alltoallv(outgoing)?, diagnostics))
}

/// The operations of a lock epoch on one target.
pub(crate) fn operations<'a>(
    shard: &'a Shard,
    epochs: &'a Epochs,
    epoch: u32,
    target: ProcessId,
) -> impl Iterator<Item = &'a Operation> {
    let rows = epochs.of_lock.of(epoch as usize).iter().map(|&row| &shard.operations.rows[row as usize]);
    rows.filter(move |operation| operation.target == target)
}

/// The region instances of an operation and of the calls that complete it.
fn calls_of(operation: &Operation) -> impl Iterator<Item = InstanceId> {
    [operation.instance, operation.done_local, operation.done_remote].into_iter().filter(|&instance| instance.is_some())
}

/// The call that first proves by its return that an epoch owns the lock of a target.
fn proof(shard: &Shard, epochs: &Epochs, position: u32, target: ProcessId) -> InstanceId {
    let epoch = &epochs.locks[position as usize];
    if epoch.blocking {
        return epoch.acquire;
    }
    // Data that came back prove as much as completion at the target.
    let completing = operations(shard, epochs, position, target).flat_map(|operation| {
        let fetched = if operation.kind.is_fetching() { operation.done_local } else { InstanceId::NONE };
        [operation.done_remote, fetched]
    });
    let proofs = completing.filter(|call| call.is_some()).chain([epoch.release]);
    proofs.min_by_key(|&call| shard.leave(call)).unwrap_or(epoch.release)
}

fn held_locks(
    trace: &Trace,
    shard: &Shard,
    epochs: &Epochs,
    number: u32,
    classes: &FxHashSet<(WindowId, u64)>,
    exclusive: &FxHashSet<WindowId>,
) -> (Outbox<Held>, Diagnostics) {
    let mut outbox = trace.exchange.outbox();
    let mut diagnostics = Diagnostics::default();
    for (position, epoch) in epochs.locks.iter().enumerate().filter(|(_, epoch)| epoch.release.is_some()) {
        let position = position as u32;
        let order = if epoch.blocking { epoch.acquire } else { epoch.release };
        let mut push = |owner, key: Key| {
            outbox.push(
                owner,
                Held {
                    key,
                    order: shard.leave(order),
                    proof: shard.leave(proof(shard, epochs, position, key.1)),
                    granted: if epoch.granted.0.is_some() { epoch.granted.1 } else { i64::MAX },
                    acquired: if epoch.blocking { i64::MAX } else { shard.leave(epoch.acquire) },
                    process: epoch.process,
                    acquire: epoch.acquire,
                    requested: shard.enter(epoch.acquire),
                    release: (epoch.location, epoch.release),
                    release_enter: shard.enter(epoch.release),
                    release_leave: shard.leave(epoch.release),
                    position: (number, position),
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
            let rows = epochs.of_lock.of(position as usize);
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

/// Orders the epochs of each lock and sends each the releases that it needed.
fn queues(trace: &Trace, inbox: &Inbox<Held>) -> Outbox<HandOver> {
    let mut epochs: Vec<Held> = inbox.rows().copied().collect();
    // The epochs of a process arrive in order, so a stable sort only has to merge them.
    epochs.sort_by_key(|epoch| (epoch.key, epoch.order, epoch.process, epoch.position));
    let mut outbox = trace.exchange.outbox();
    for of_lock in epochs.chunk_by_mut(|a, b| a.key == b.key) {
        let acquisition = put_in_order(of_lock);
        let (mut exclusive, mut sharing): (Option<&Held>, Vec<&Held>) = (None, Vec::new());
        for epoch in &*of_lock {
            let owners = if epoch.shared || sharing.is_empty() { exclusive.as_slice() } else { &sharing[..] };
            let last = owners.iter().max_by_key(|owner| owner.release_leave).map(|owner| owner.position);
            for owner in owners {
                let hand_over = HandOver {
                    epoch: epoch.position.1,
                    target: epoch.key.1,
                    acquire: owner.acquire,
                    release: owner.release,
                    enter: owner.release_enter,
                    leave: owner.release_leave,
                    is_last: Some(owner.position) == last,
                    is_proven: owner.proof < epoch.release_enter,
                    acquisition,
                };
                outbox.push(epoch.position.0, hand_over);
            }
            if epoch.shared {
                sharing.push(epoch);
            } else {
                exclusive = Some(epoch);
                sharing.clear();
            }
        }
    }
    outbox
}

/// Puts the epochs of a lock, given in the order of releases, into the order in which they owned it.
fn put_in_order(epochs: &mut [Held]) -> Acquisition {
    let is_recorded = epochs.iter().any(|epoch| epoch.granted < i64::MAX);
    let mut acquired = epochs.to_vec();
    for epoch in &mut acquired {
        epoch.proof = epoch.proof.min(if is_recorded { epoch.granted } else { epoch.acquired });
    }
    if proven_order(&mut acquired) && (is_recorded || blocks(&acquired)) {
        epochs.copy_from_slice(&acquired);
        return if is_recorded { Acquisition::Recorded } else { Acquisition::Blocks };
    }
    proven_order(epochs);
    Acquisition::Unknown
}

/// Whether some lock call blocked: it began before the release of the epoch before it did, and returned after that.
fn blocks(epochs: &[Held]) -> bool {
    let excluding = epochs.windows(2).filter(|pair| !(pair[0].shared && pair[1].shared));
    let mut spans = excluding.map(|pair| (pair[1].requested, pair[0].release_enter, pair[1].acquired));
    spans.any(|(requested, released, acquired)| requested < released && released < acquired)
}

/// Puts epochs into the first order that no proof contradicts; returns whether there is one.
fn proven_order(epochs: &mut [Held]) -> bool {
    let mut open = Open::new(epochs);
    let mut order: Vec<Held> = Vec::with_capacity(epochs.len());
    let mut is_consistent = true;
    while order.len() < epochs.len() {
        let next = open.next_free().unwrap_or_else(|| {
            is_consistent = false;
            open.first()
        });
        open.placed[next] = true;
        order.push(epochs[next]);
    }
    epochs.copy_from_slice(&order);
    is_consistent
}

/// The epochs of a lock that have no place in its order yet, by their numbers in the order of releases.
struct Open<'a> {
    epochs: &'a [Held],
    placed: Vec<bool>,
    /// Those that no other has to precede.
    free: BinaryHeap<Reverse<usize>>,
    is_free: Vec<bool>,
    /// Exclusive and shared ones, by the begin of their release; how many of them have become free.
    by_release: [Vec<usize>; 2],
    freed: [usize; 2],
    /// All, and exclusive ones, by their proof.
    by_proof: [Vec<usize>; 2],
    /// Positions of the first two in `by_proof` that have no place yet, of each kind.
    earliest: [[usize; 2]; 2],
    /// The first without a place.
    first: usize,
}

impl<'a> Open<'a> {
    fn new(epochs: &'a [Held]) -> Self {
        let sorted = |shared: Option<bool>, key: fn(&Held) -> i64| {
            let mut numbers: Vec<usize> =
                (0..epochs.len()).filter(|&i| shared.is_none_or(|shared| epochs[i].shared == shared)).collect();
            numbers.sort_by_key(|&i| key(&epochs[i]));
            numbers
        };
        Self {
            epochs,
            placed: vec![false; epochs.len()],
            free: BinaryHeap::new(),
            is_free: vec![false; epochs.len()],
            by_release: [false, true].map(|shared| sorted(Some(shared), |epoch| epoch.release_enter)),
            freed: [0; 2],
            by_proof: [None, Some(false)].map(|shared| sorted(shared, |epoch| epoch.proof)),
            earliest: [[0, 1]; 2],
            first: 0,
        }
    }

    /// The first epoch that none of those without a place has to precede.
    fn next_free(&mut self) -> Option<usize> {
        // An exclusive epoch comes after all that are proven before its release begins, a shared one after the exclusive ones.
        for kind in [0, 1] {
            let (first, second) = self.earliest(kind);
            let proof = |i: Option<usize>| i.map_or(i64::MAX, |i| self.epochs[i].proof);
            let (bound, next) = (proof(first), proof(second));
            while let Some(&i) = self.by_release[kind].get(self.freed[kind])
                && self.epochs[i].release_enter <= bound
            {
                self.freed[kind] += 1;
                self.set_free(i);
            }
            // It need not precede itself.
            if let Some(i) = first.filter(|&i| !self.epochs[i].shared && self.epochs[i].release_enter <= next)
                && kind == 0
            {
                self.set_free(i);
            }
        }
        while let Some(Reverse(i)) = self.free.pop() {
            if !self.placed[i] {
                return Some(i);
            }
        }
        None
    }

    fn set_free(&mut self, i: usize) {
        if !self.is_free[i] && !self.placed[i] {
            self.is_free[i] = true;
            self.free.push(Reverse(i));
        }
    }

    /// The two with the earliest proofs, of all (0) or of the exclusive ones (1).
    fn earliest(&mut self, kind: usize) -> (Option<usize>, Option<usize>) {
        let Self { placed, by_proof, earliest, .. } = self;
        let (by_proof, [first, second]) = (&by_proof[kind], &mut earliest[kind]);
        let is_placed = |position: usize| by_proof.get(position).is_some_and(|&i| placed[i]);
        while is_placed(*first) {
            *first += 1;
        }
        *second = (*second).max(*first + 1);
        while is_placed(*second) {
            *second += 1;
        }
        (by_proof.get(*first).copied(), by_proof.get(*second).copied())
    }

    /// The first without a place.
    fn first(&mut self) -> usize {
        while self.placed[self.first] {
            self.first += 1;
        }
        self.first
    }
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
