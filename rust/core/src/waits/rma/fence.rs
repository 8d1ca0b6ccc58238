//! Waiting at fences, and in the other collective calls on windows (create, free) and of other libraries than MPI.
//!
//! ```text
//!  0  ---[ Fence |         |   ]--
//!  1  -------[put][ Fence  |   ]--
//!  2  ---------------------[ Fence ]      waiting(0) = last Enter − own Enter
//!                                         early fence(0) = Leave(put) − own Enter
//! ```
//!
//! *Definition*: waiting = max Enter − own Enter, for all whose Enter is earlier.
//!
//! *Guard*: fences of MPI and broadcasts of the others need not synchronize. If the last process enters before the first
//! leaves, all wait for it. Otherwise a fence waits only for the fences of those who accessed its process in the epoch.
//! All other operations always synchronize; waiting is clamped at the process's own Leave.
//!
//! *Roots*: in GASPI and UPC, the root of an operation is known. In a broadcast or scatter, all wait for it: waiting = Enter(root) −
//! own Enter. In a gather or reduction it waits for the others, and these wait only if all were in the call at the same time.
//!
//! *Split phase*: if an operation begins in one call and ends in another, a process arrives with the Enter of the first, and waits
//! in the second. It also waits in each call of the same function as the second that returned in between, because of a time limit.
//!
//! *Early Fence* (part of Wait at Fence): the wait until the last operation on this process in the epoch that the fence
//! ends has left its call: Leave(operation) − own Enter, if that lies within the fence.
//!
//! *Pairs*: a fence or a barrier synchronizes a process with all members of the window. Needed pairs are those with
//! processes that accessed it in the epoch and those that it accessed; a process that did both counts twice, once per
//! direction.
//!
//! *Source*: specification.md#wait-at-create-fence-and-free, specification.md#early-fence; thesis, wait-state patterns
//! 1 and 2, figure 3.16. Pairs: specification.md#pair-wise-synchronizations.

use bitcode::{Decode, Encode};
use rustc_hash::FxHashMap;
use whywait_otf2::enums::CollectiveOp;

use super::operations::{last_of, origin_of};
use super::shard_waits::Waits;
use crate::Result;
use crate::diagnostics::Diagnostics;
use crate::ids::{CommId, InstanceId, LocationId, ProcessId, WindowId};
use crate::matching::epochs::{CollectivePart, Epochs, Groups};
use crate::matching::windows::{Direction, Part, always_synchronizes, comes_from_root, match_all};
use crate::parallel::exchange::{Inbox, Outbox};
use crate::parallel::iter::prelude::*;
use crate::severity::Metric;
use crate::trace::regions::Library;
use crate::trace::{Shard, Trace};
use crate::waits::WaitState;
use crate::waits::collective_sync::{CollectiveSync, Participants};

/// What the members of a collective instance need to know about it.
#[derive(Clone, Copy, Encode, Decode)]
struct Instance {
    /// Number of parts.
    size: u32,
    /// Location and region instance of the last to enter, and its times.
    last: (LocationId, InstanceId),
    last_enter: i64,
    last_leave: i64,
    /// Leave of the first to leave, ticks.
    first_leave: i64,
    /// Location and region instance of the root that all wait for, and its times.
    root: Option<((LocationId, InstanceId), i64, i64)>,
}

/// The last operation of an origin on a target in a fence epoch, for the target.
#[derive(Clone, Copy, Encode, Decode)]
struct Access {
    target: ProcessId,
    window: WindowId,
    sequence: u32,
    origin: ProcessId,
    /// Location and region instance of the operation.
    call: (LocationId, InstanceId),
    leave: i64,
    /// Location and region instance of the fence that ends the epoch, and its times.
    fence: (LocationId, InstanceId),
    fence_enter: i64,
    fence_leave: i64,
}

pub(super) fn detect(
    trace: &Trace,
    epochs: &[Epochs],
    waits: &mut [Waits],
    (with_meetings, directions): (bool, bool),
) -> Result<Diagnostics> {
    let (instances, diagnostics) = match_all(trace, epochs, evaluate)?;
    let shards = || trace.par_shards().zip(epochs);
    let accesses = shards().map(|(shard, epochs)| accesses(trace, shard, epochs)).collect();
    let accesses = trace.exchange.alltoallv(accesses)?;
    let received = accesses.into_par_iter().zip(instances).zip(shards()).zip(waits);
    received.for_each(|(((accesses, instances), (shard, epochs)), waits)| {
        let accesses = FenceAccesses::new(epochs, &accesses);
        let mut partners = Vec::new();
        let mut asked = epochs.asked.iter().peekable();
        for (position, (part, instance)) in epochs.collectives.iter().zip(instances).enumerate() {
            let Some(instance) = instance else {
                // A window with one member has no partners, but its fences still count.
                if part.is_fence() && trace.definitions.is_own_window(part.window) {
                    let own = u32::from(!epochs.of_collective.of(position).is_empty());
                    waits.count_pairs(shard, part.library, (part.location, part.instance), (1, own));
                }
                continue;
            };
            while let Some(call) = asked.next_if(|call| call.part as usize <= position) {
                if call.part as usize == position {
                    let call = CollectivePart { instance: call.instance, ..*part };
                    waits.states.extend(synchronize(shard, &call, &instance).wait);
                }
            }
            let mut found = synchronize(shard, part, &instance);
            let accesses = || accesses.of(position);
            if part.is_fence() && found.collective_sync.is_none() {
                found = complete_accesses(shard, part, accesses());
            }
            waits.states.extend(found.wait);
            if with_meetings {
                // A call of all processes has no window.
                let comm =
                    trace.definitions.windows.get(part.window.index()).map_or(CommId::NONE, |window| window.comm);
                waits
                    .collective_syncs
                    .extend(found.collective_sync.map(|collective_sync| CollectiveSync { comm, ..collective_sync }));
            }
            if part.is_fence() {
                waits.states.extend(found.wait.and_then(|wait| early_fence(shard, &wait, accesses())));
            }
            if part.completes() {
                partners.clear();
                // Processes that accessed this one, and those that it accessed; a process that did both counts twice,
                // this process itself once.
                partners.extend(accesses().map(|access| (access.origin, access.origin != part.process && directions)));
                let targets = epochs.of_collective.of(position).iter();
                let targets = targets.map(|&row| shard.operations.rows[row as usize].target);
                // A barrier of some PEs also completes operations on PEs outside it.
                let comm = trace.definitions.window_comm(part.window);
                let is_member = |target: &ProcessId| comm.is_some_and(|comm| comm.rank(*target).is_some());
                partners.extend(targets.filter(is_member).map(|target| (target, false)));
                partners.sort_unstable();
                partners.dedup();
                let pairs = (instance.size, partners.len() as u32);
                waits.count_pairs(shard, part.library, (part.location, part.instance), pairs);
            }
        }
    });
    Ok(diagnostics)
}

fn metric(operation: u8, library: Library) -> Metric {
    let kinds = match library {
        Library::Mpi => {
            [Metric::WaitAtCreate, Metric::WaitAtFree, Metric::WaitAtFence, Metric::WaitAtFence, Metric::WaitAtFence]
        }
        Library::Shmem => [
            Metric::ShmemWaitAtCreate,
            Metric::ShmemWaitAtFree,
            Metric::ShmemBarrierWait,
            Metric::ShmemLateBroadcast,
            Metric::ShmemWaitNxN,
        ],
        Library::Armci => [
            Metric::ArmciWaitAtCreate,
            Metric::ArmciWaitAtFree,
            Metric::ArmciBarrierWait,
            Metric::ArmciLateBroadcast,
            Metric::ArmciWaitNxN,
        ],
        Library::Pgas => [
            Metric::PgasWaitAtCreate,
            Metric::PgasWaitAtFree,
            Metric::PgasBarrierWait,
            Metric::PgasLateBroadcast,
            Metric::PgasWaitNxN,
        ],
    };
    kinds[match CollectiveOp(operation) {
        CollectiveOp::CREATE_HANDLE | CollectiveOp::ALLOCATE | CollectiveOp::CREATE_HANDLE_AND_ALLOCATE => 0,
        CollectiveOp::DESTROY_HANDLE | CollectiveOp::DEALLOCATE | CollectiveOp::DESTROY_HANDLE_AND_DEALLOCATE => 1,
        CollectiveOp::BARRIER => 2,
        _ if comes_from_root(library, operation) => 3,
        _ => 4,
    }]
}

fn evaluate(parts: &[Part]) -> Instance {
    let last = last_of(parts, |part| (part.enter, part.process)).unwrap_or(&parts[0]);
    let Part { library, operation, root, .. } = parts[0];
    let is_awaited = Direction::of(library, operation, root) == Direction::FromRoot;
    let root = parts.iter().find(|part| is_awaited && part.process == root);
    Instance {
        size: parts.len() as u32,
        root: root.map(|root| ((root.location, root.begin), root.enter, root.leave)),
        last: (last.location, last.begin),
        last_enter: last.enter,
        last_leave: last.leave,
        first_leave: parts.iter().map(|part| part.leave).min().unwrap_or(last.leave),
    }
}

/// The result for one member of an instance.
struct MemberResult {
    /// The wait state, if it waits.
    wait: Option<WaitState>,
    /// The collective synchronization, if all members synchronized.
    collective_sync: Option<CollectiveSync>,
}

/// Waiting in a collective call on a window: thesis, wait-state pattern 1; with the overlap of figure 3.16 as guard.
fn synchronize(shard: &Shard, part: &CollectivePart, instance: &Instance) -> MemberResult {
    let overlap = instance.last_enter < instance.first_leave;
    let (waits, with) = match Direction::of(part.library, part.operation, part.root) {
        Direction::Everybody => {
            (overlap || always_synchronizes(part.library, part.operation, part.root), Participants::All)
        }
        Direction::FromRoot => (true, Participants::Cause),
        Direction::ToRoot => (overlap || part.process == part.root, Participants::All),
    };
    if instance.size == 1 || !waits {
        return MemberResult { wait: None, collective_sync: None };
    }
    wait_for(shard, part, instance, with)
}

/// Waiting at a fence that not all members were in at the same time: the operations on this process end with the fences
/// of their origins.
fn complete_accesses<'a>(
    shard: &Shard,
    part: &CollectivePart,
    accesses: impl Iterator<Item = &'a Access>,
) -> MemberResult {
    let others = accesses.filter(|access| access.origin != part.process);
    let last = last_of(others, |access| (access.fence_enter, access.origin));
    let Some(last) = last.filter(|last| last.fence_enter > shard.enter(part.instance)) else {
        return MemberResult { wait: None, collective_sync: None };
    };
    let instance = Instance {
        size: 2,
        last: last.fence,
        last_enter: last.fence_enter,
        last_leave: last.fence_leave,
        first_leave: i64::MIN,
        root: None,
    };
    wait_for(shard, part, &instance, Participants::Cause)
}

/// A member that waits until the last one enters; time after that and after the first Leave is its completion.
fn wait_for(shard: &Shard, part: &CollectivePart, instance: &Instance, with: Participants) -> MemberResult {
    let kind = metric(part.operation, part.library);
    let call = (part.location, part.instance);
    let leave = shard.leave(part.instance);
    let last = (instance.last, instance.last_enter, instance.last_leave);
    let (cause, last_enter, last_leave) = instance.root.unwrap_or(last);
    let until = last_enter.min(leave);
    let waiting = until - shard.enter(part.instance);
    let met = instance.first_leave.max(until);
    let collective_sync = CollectiveSync {
        kind,
        call,
        cause,
        waiting,
        completion: leave - met,
        cause_completion: last_leave - met,
        comm: CommId::NONE,
        with,
    };
    MemberResult {
        wait: (waiting > 0).then(|| WaitState::new(kind, call, waiting, cause)),
        collective_sync: Some(collective_sync),
    }
}

/// The last access to each target in each epoch of a shard that ends with a fence or a barrier.
fn accesses(trace: &Trace, shard: &Shard, epochs: &Epochs) -> Outbox<Access> {
    let mut outbox = trace.exchange.outbox();
    // Target, Leave, and row of the epoch's operations.
    let mut operations: Vec<(ProcessId, i64, u32)> = Vec::new();
    for (position, part) in epochs.collectives.iter().enumerate().filter(|(_, part)| part.completes()) {
        operations.clear();
        operations.extend(epochs.of_collective.of(position).iter().map(|&row| {
            let operation = &shard.operations.rows[row as usize];
            (operation.target, shard.leave(operation.instance), row)
        }));
        operations.sort_by_key(|&(target, ..)| target);
        for on_target in operations.chunk_by(|a, b| a.0 == b.0) {
            let Some((target, leave, row)) = last_of(on_target.iter().copied(), |&(_, leave, row)| (leave, row)) else {
                continue;
            };
            let CollectivePart { window, sequence, process: origin, .. } = *part;
            let call = (origin_of(shard, row), shard.operations.rows[row as usize].instance);
            let fence = (part.location, part.instance);
            let (fence_enter, fence_leave) = (shard.enter(part.instance), shard.leave(part.instance));
            outbox.push(
                trace.owner(target),
                Access { target, window, sequence, origin, call, leave, fence, fence_enter, fence_leave },
            );
        }
    }
    outbox
}

/// The accesses on the processes of a shard, by the fence that ends their epoch.
struct FenceAccesses<'a> {
    rows: Vec<&'a Access>,
    of_part: Groups,
}

impl<'a> FenceAccesses<'a> {
    fn new(epochs: &Epochs, inbox: &'a Inbox<Access>) -> Self {
        // Positions of the calls of each process on each window, by their sequence.
        let mut calls: FxHashMap<(ProcessId, WindowId), Vec<u32>> = FxHashMap::default();
        for (position, part) in (0..).zip(&epochs.collectives) {
            calls.entry((part.process, part.window)).or_default().push(position);
        }
        let call = |row: &Access| calls.get(&(row.target, row.window))?.get(row.sequence as usize).copied();
        let parts: Vec<Option<u32>> = inbox.rows().map(call).collect();
        let of_part = Groups::new(epochs.collectives.len(), parts.into_iter());
        Self { rows: inbox.rows().collect(), of_part }
    }

    /// The accesses for one member's call, ordered by origin.
    fn of(&self, part: usize) -> impl Iterator<Item = &'a Access> {
        self.of_part.of(part).iter().map(|&row| self.rows[row as usize])
    }
}

/// The part of a wait at a fence that the last operation on the process explains: thesis, wait-state pattern 2.
fn early_fence<'a>(shard: &Shard, fence: &WaitState, accesses: impl Iterator<Item = &'a Access>) -> Option<WaitState> {
    let last = last_of(accesses, |access| (access.leave, access.origin))?;
    let waiting = last.leave - shard.enter(fence.instance);
    let within = waiting > 0 && last.leave <= shard.leave(fence.instance);
    within.then(|| WaitState::new(Metric::EarlyFence, (fence.location, fence.instance), waiting, last.call))
}
