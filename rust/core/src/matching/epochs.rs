//! Epochs of one-sided communication: what a process accesses or exposes from one synchronization to another.
//!
//! *Source*: specification.md#epochs; thesis, section 3.1; docs/one-sided.md lists the decisions.

use bitcode::{Decode, Encode};
use rustc_hash::FxHashMap;
use whywait_otf2::enums::CollectiveOp;

use crate::diagnostics::Diagnostics;
use crate::ids::{GroupId, InstanceId, LocationId, ProcessId, WindowId};
use crate::trace::Shard;
use crate::trace::regions::Library;

/// The epoch that an operation belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Epoch {
    /// An epoch that was never closed.
    Open,
    /// The collective call that ends it, as a position in [`Epochs::collectives`].
    Collective(u32),
    /// Position in [`Epochs::accesses`].
    Access(u32),
    /// Position in [`Epochs::locks`].
    Lock(u32),
}

/// The part of one process in a collective operation on a window.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct CollectivePart {
    /// The process.
    pub process: ProcessId,
    /// The location.
    pub location: LocationId,
    /// Region instance of the call in which the process arrives.
    pub begin: InstanceId,
    /// Region instance of the call that ends with the operation: the same, but where both are calls of their own.
    pub instance: InstanceId,
    /// The window, or none for calls that synchronize all processes without a record.
    pub window: WindowId,
    /// Number of the part among those of the process on the window.
    pub sequence: u32,
    /// The operation, a value of `CollectiveOp`.
    pub operation: u8,
    /// The root, or none.
    pub root: ProcessId,
    /// The library that the call belongs to.
    pub library: Library,
}

/// A call of a collective operation that returned before the operation could end.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct Asked {
    /// Position in [`Epochs::collectives`].
    pub part: u32,
    /// Region instance of the call.
    pub instance: InstanceId,
}

impl CollectivePart {
    /// Whether the call is a fence, which alone completes operations of MPI.
    pub fn is_fence(&self) -> bool {
        self.library == Library::Mpi && self.completes()
    }

    /// Whether the call completes the operations of all its processes: a fence, a barrier of OpenSHMEM or ARMCI.
    pub fn completes(&self) -> bool {
        self.operation == CollectiveOp::BARRIER.0
    }
}

/// An access epoch: start to complete.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct Access {
    /// The process.
    pub process: ProcessId,
    /// Index of the location that started it.
    pub location: LocationId,
    /// The window.
    pub window: WindowId,
    /// Index of the group of targets.
    pub group: GroupId,
    /// Region instance of start.
    pub start: InstanceId,
    /// Region instance of complete, or none.
    pub complete: InstanceId,
}

/// An exposure epoch: post to wait or to the test that succeeds.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct Exposure {
    /// The process.
    pub process: ProcessId,
    /// Index of the location that posted.
    pub location: LocationId,
    /// The window.
    pub window: WindowId,
    /// Index of the group of origins.
    pub group: GroupId,
    /// Region instance of post.
    pub post: InstanceId,
    /// Region instance of wait or test, or none.
    pub wait: InstanceId,
    /// Whether a test ended it: a test never waits.
    pub tested: bool,
}

/// A lock epoch: lock to unlock.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct LockEpoch {
    /// Lock id.
    pub lock: u64,
    /// The process.
    pub process: ProcessId,
    /// The location.
    pub location: LocationId,
    /// The window.
    pub window: WindowId,
    /// Index of the target process, or [`ALL`](crate::trace::columns::ALL).
    pub target: ProcessId,
    /// Region instance of the lock call.
    pub acquire: InstanceId,
    /// Region instance of the unlock call, or none.
    pub release: InstanceId,
    /// The call that the record of its acquisition lies in, and the time of that record (ticks), if there is one apart from
    /// the request; else none.
    pub granted: (InstanceId, i64),
    /// Whether others may hold it as well.
    pub shared: bool,
    /// Whether the lock is held as soon as the call returns, and the call tells so (OpenSHMEM, ARMCI).
    pub blocking: bool,
    /// Whether the call took the lock without waiting (`shmem_test_lock`).
    pub tried: bool,
    /// The library that the lock belongs to.
    pub library: Library,
}

/// A call that waits until another process changes local memory.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct Change {
    /// The process.
    pub process: ProcessId,
    /// The location.
    pub location: LocationId,
    /// Region instance of the call.
    pub instance: InstanceId,
}

/// A call that synchronizes with many targets on its own.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct PassiveSync {
    /// Index of the location.
    pub location: LocationId,
    /// Region instance of the call.
    pub instance: InstanceId,
    /// Number of processes that it synchronizes with, the own one included.
    pub size: u32,
    /// Number of those where it completes operations.
    pub needed: u32,
}

/// One process notifies another one, or waits for its notification.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct Notification {
    /// Index of the window.
    pub window: WindowId,
    /// Index of the process.
    pub process: ProcessId,
    /// Index of the other process; [`ALL`](crate::trace::columns::ALL) if the one that waits does not know it.
    pub partner: ProcessId,
    /// Its id: see [`Synchronization::notification`](crate::trace::columns::Synchronization::notification).
    pub id: u64,
    /// Index of the location.
    pub location: LocationId,
    /// Region instance of the call.
    pub instance: InstanceId,
    /// Whether the other process notifies this one.
    pub is_incoming: bool,
    /// Whether the process has accessed the other one since its notification before.
    pub is_needed: bool,
}

/// A call that completes something at a target: it may wait for progress there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub struct Completion {
    /// Region instance of the call.
    pub instance: InstanceId,
    /// The target process.
    pub target: ProcessId,
}

/// Numbers the epochs of each pair of processes: equal numbers belong together.
#[derive(Debug, Default, Encode, Decode)]
pub struct PairNumbers(FxHashMap<(WindowId, ProcessId, ProcessId), u32>);

impl PairNumbers {
    /// The next epoch of `process` with `partner` on `window`.
    pub fn next(&mut self, window: WindowId, process: ProcessId, partner: ProcessId) -> u32 {
        let number = self.0.entry((window, process, partner)).or_insert(0);
        *number += 1;
        *number - 1
    }
}

/// All epochs of a shard.
#[derive(Debug, Default, Encode, Decode)]
pub struct Epochs {
    /// Calls of collective operations.
    pub collectives: Vec<CollectivePart>,
    /// Calls of these that returned before they could end, in order.
    pub asked: Vec<Asked>,
    /// Access epochs, by process in the order of their start.
    pub accesses: Vec<Access>,
    /// Exposure epochs, by process in the order of their post.
    pub exposures: Vec<Exposure>,
    /// Lock epochs that were closed.
    pub locks: Vec<LockEpoch>,
    /// Calls that wait for a change of memory.
    pub changes: Vec<Change>,
    /// Calls that complete something at a target, sorted, without repetition.
    pub completions: Vec<Completion>,
    /// Calls that synchronize with many targets: flushes and unlocks of all, quiet, `ARMCI_AllFence`.
    pub passive_syncs: Vec<PassiveSync>,
    /// Notifications, by process in the order of time.
    pub notifications: Vec<Notification>,
    /// For each operation of the shard its epoch.
    pub epoch_of: Vec<Epoch>,
    /// Operations by collective call.
    pub of_collective: Groups,
    /// Operations by access epoch.
    pub of_access: Groups,
    /// Operations by lock epoch.
    pub of_lock: Groups,
    /// What was odd.
    pub diagnostics: Diagnostics,
}

/// Positions of rows by group, each group in the order of the rows.
#[derive(Debug, Default, Encode, Decode)]
pub struct Groups {
    offsets: Vec<u32>,
    rows: Vec<u32>,
}

impl Groups {
    /// Groups rows by the number of their group; those without one are in none.
    pub(crate) fn new(groups: usize, member_of: impl Iterator<Item = Option<u32>> + Clone) -> Self {
        let mut offsets = vec![0u32; groups + 1];
        for group in member_of.clone().flatten() {
            offsets[group as usize + 1] += 1;
        }
        for i in 0..groups {
            offsets[i + 1] += offsets[i];
        }
        let mut next = offsets.clone();
        let mut rows = vec![0; offsets[groups] as usize];
        for (row, group) in member_of.enumerate() {
            if let Some(group) = group {
                rows[next[group as usize] as usize] = row as u32;
                next[group as usize] += 1;
            }
        }
        Self { offsets, rows }
    }

    /// Positions of the rows of one group.
    pub fn of(&self, group: usize) -> &[u32] {
        &self.rows[self.offsets[group] as usize..self.offsets[group + 1] as usize]
    }
}

/// The targets of operations, in their order.
pub(crate) fn accessed(shard: &Shard, operations: &[u32], targets: &mut Vec<ProcessId>) {
    targets.clear();
    targets.extend(operations.iter().map(|&row| shard.operations.rows[row as usize].target));
    targets.sort_unstable();
    targets.dedup();
}
