//! The rows of a shard: events and communication records as columns.
//!
//! Enter and Leave are the bulk: a time and a call path each. Communication records have columns of their own; each row
//! names the region instance in which it was recorded. All positions (`u32`) are relative to the shard.

use std::ops::Range;

use bitcode::{Decode, Encode};
use whywait_otf2::enums::CollectiveOp;

use super::calltree::CallTree;
use crate::ids::NONE;
use crate::ids::{CallPathId, CommId, GroupId, InstanceId, LocationId, ProcessId, WindowId};

/// Marks a Leave in [`Events::node`].
const LEAVE: u32 = 1 << 31;

/// Enter and Leave events: 12 bytes each.
#[derive(Debug, Default, Encode, Decode)]
pub struct Events {
    /// Corrected time in ticks.
    pub time: Vec<i64>,
    node: Vec<u32>,
    /// The Leaves behind which something else than the caller of the call path goes on, with what that is: tasks do not
    /// stand below the calls in which threads run them.
    resumed: Vec<(u32, CallPathId)>,
}

impl Events {
    /// Reserves capacity for `additional` events.
    pub fn reserve(&mut self, additional: usize) {
        self.time.reserve_exact(additional);
        self.node.reserve_exact(additional);
    }

    /// Releases unused capacity.
    pub fn shrink(&mut self) {
        self.time.shrink_to_fit();
        self.node.shrink_to_fit();
    }

    /// Appends an Enter of a call path; returns its position.
    #[inline]
    pub fn enter(&mut self, time: i64, callpath: CallPathId) -> u32 {
        let position = self.time.len() as u32;
        self.time.push(time);
        self.node.push(callpath.number());
        position
    }

    /// Appends a Leave of a call path; returns its position.
    #[inline]
    pub fn leave(&mut self, time: i64, callpath: CallPathId) -> u32 {
        let position = self.time.len() as u32;
        self.time.push(time);
        self.node.push(callpath.number() | LEAVE);
        position
    }

    /// Says what goes on behind the last Leave.
    pub fn resume(&mut self, callpath: CallPathId) {
        let last = self.time.len() as u32 - 1;
        self.resumed.push((last, callpath));
    }

    /// What runs behind an event, if any call is open there.
    #[inline]
    pub fn running_after(&self, tree: &CallTree, position: u32) -> CallPathId {
        let callpath = self.callpath(position);
        if !self.is_leave(position) {
            return callpath;
        }
        if !self.resumed.is_empty()
            && let Ok(found) = self.resumed.binary_search_by_key(&position, |&(leave, _)| leave)
        {
            return self.resumed[found].1;
        }
        tree.parent(callpath)
    }

    /// Number of events.
    #[inline]
    pub fn len(&self) -> usize {
        self.time.len()
    }

    /// Whether there are no events.
    pub fn is_empty(&self) -> bool {
        self.time.is_empty()
    }

    /// The call path that is entered or left at a position.
    #[inline]
    pub fn callpath(&self, position: u32) -> CallPathId {
        CallPathId::new(self.node[position as usize] & !LEAVE)
    }

    /// Positions of the Enters of a call path.
    pub fn enters(&self, positions: Range<u32>, callpath: CallPathId) -> impl Iterator<Item = u32> {
        let nodes = &self.node[positions.start as usize..positions.end as usize];
        positions.zip(nodes).filter(move |&(_, &node)| node == callpath.number()).map(|(position, _)| position)
    }

    /// Position of the first Enter of one of the given call paths, at or after one position and before another.
    pub fn next_enter(&self, positions: Range<u32>, callpaths: &[bool]) -> Option<u32> {
        let nodes = &self.node[positions.start as usize..positions.end as usize];
        // The mark of a Leave makes it larger than the number of any call path.
        let found = nodes.iter().position(|&node| callpaths.get(node as usize) == Some(&true));
        found.map(|found| positions.start + found as u32)
    }

    /// Whether the event at a position is a Leave.
    #[inline]
    pub fn is_leave(&self, position: u32) -> bool {
        self.node[position as usize] & LEAVE != 0
    }

    /// Renumbers all call paths.
    pub fn renumber(&mut self, callpaths: &[CallPathId]) {
        for node in &mut self.node {
            *node = callpaths[(*node & !LEAVE) as usize].number() | (*node & LEAVE);
        }
        for (_, callpath) in self.resumed.iter_mut().filter(|(_, callpath)| callpath.is_some()) {
            *callpath = callpaths[*callpath];
        }
    }
}

/// Region instances that communicate: positions of their Enter and Leave in [`Events`].
#[derive(Debug, Default, Encode, Decode)]
pub struct Instances {
    /// Position of the Enter.
    pub enter: Vec<u32>,
    /// Position of the Leave.
    pub leave: Vec<u32>,
}

impl Instances {
    /// Opens an instance, whose Leave is not yet known.
    pub fn open(&mut self, enter: u32) -> InstanceId {
        let instance = InstanceId::at(self.enter.len());
        self.enter.push(enter);
        self.leave.push(NONE);
        instance
    }
}

/// One message at its sender.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct Sent {
    /// Time of the send record, ticks.
    pub time: i64,
    /// Bytes sent.
    pub bytes: u64,
    /// Region instance of the send call (`E(s)` is its Enter).
    pub instance: InstanceId,
    /// Region instance that completed the send: the send call itself if it blocks, none if nothing did.
    pub complete: InstanceId,
    /// The receiving process.
    pub peer: ProcessId,
    /// The communicator.
    pub comm: CommId,
    /// Message tag.
    pub tag: u32,
    /// Whether the request was cancelled, so that no receive matches it.
    pub cancelled: bool,
}

/// One message at its receiver.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct Received {
    /// Time of the receive (completion) record, ticks.
    pub time: i64,
    /// Bytes received, as recorded.
    pub bytes: u64,
    /// Region instance that completed the receive.
    pub instance: InstanceId,
    /// Region instance that posted it: the receive call itself if it blocks.
    pub request: InstanceId,
    /// The sending process.
    pub peer: ProcessId,
    /// The communicator.
    pub comm: CommId,
    /// Message tag.
    pub tag: u32,
    /// How long before the Enter of the call that completed the receive the send was entered, ticks, once messages are
    /// matched; `u32::MAX` if longer, later or unknown.
    pub lead: u32,
}

/// Partitions of a message that a call made ready, or has found to have arrived.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct Partitions {
    /// Row of the send, or of the receive.
    pub row: u32,
    /// Region instance of the call.
    pub instance: InstanceId,
    /// The first one.
    pub first: u32,
    /// The last one.
    pub last: u32,
    /// How many the message has on this side.
    pub count: u32,
}

impl Partitions {
    /// Those of a send or a receive, in rows that are sorted by it.
    pub fn of(rows: &[Self], row: usize) -> &[Self] {
        let rows = &rows[rows.partition_point(|partitions| (partitions.row as usize) < row)..];
        &rows[..rows.partition_point(|partitions| partitions.row as usize == row)]
    }

    /// Whether they have something in common with partitions of the other side, which may divide the message otherwise.
    pub fn overlap(&self, other: &Self) -> bool {
        let begin = |of: &Self, parts: &Self| u64::from(of.first) * u64::from(parts.count);
        let end = |of: &Self, parts: &Self| (u64::from(of.last) + 1) * u64::from(parts.count);
        begin(self, other) < end(other, self) && begin(other, self) < end(self, other)
    }
}

/// A request without completion in any row of a message: it was cancelled or never completed.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct OpenRequest {
    /// Region instance that begins it; none if another thread completed it, whose row has it.
    pub begin: InstanceId,
    /// Region instance that ends it, or none.
    pub end: InstanceId,
    /// The operation of the request.
    pub of: RequestOf,
}

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum RequestOf {
    /// A send.
    Send,
    /// A receive.
    Receive,
    /// A collective operation.
    Collective,
}

/// One rank's part in a collective operation.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct Collective {
    /// Time of the begin record, ticks.
    pub begin: i64,
    /// Time of the end record, ticks.
    pub end: i64,
    /// Bytes sent, as recorded.
    pub sent: u64,
    /// Bytes received, as recorded.
    pub received: u64,
    /// Region instance of the call.
    pub instance: InstanceId,
    /// The communicator.
    pub comm: CommId,
    /// Rank of the root in the communicator, or one of the constants of `CollectiveRoot`.
    pub root: u32,
    /// The operation, a value of `CollectiveOp`.
    pub operation: u8,
}

/// One rank's part in a non-blocking collective operation.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct Nonblocking {
    /// Region instance of the call that starts it.
    pub post: InstanceId,
    /// Region instance of the call that completes it.
    pub complete: InstanceId,
    /// Bytes sent, as recorded.
    pub sent: u64,
    /// Bytes received, as recorded.
    pub received: u64,
    /// The communicator.
    pub comm: CommId,
    /// Rank of the root in the communicator, or one of the constants of `CollectiveRoot`.
    pub root: u32,
    /// The operation, a value of `CollectiveOp`.
    pub operation: u8,
}

/// One-sided operations by direction of the transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum OperationKind {
    /// Writes to the target.
    Put,
    /// Reads from the target.
    Get,
    /// Changes data at the target.
    Atomic,
    /// Changes data at the target and returns data to the origin.
    FetchingAtomic,
}

impl OperationKind {
    /// Whether the operation completes only after a reply from the target.
    pub fn is_fetching(self) -> bool {
        matches!(self, Self::Get | Self::FetchingAtomic)
    }
}

/// One one-sided operation, at its origin.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct Operation {
    /// Time of the record, ticks.
    pub time: i64,
    /// Bytes written to the target (atomics: what the record says, with Score-P and MPI elements).
    pub sent: u64,
    /// Bytes read from the target (atomics: as above).
    pub received: u64,
    /// Region instance of the call.
    pub instance: InstanceId,
    /// The window.
    pub window: WindowId,
    /// The target process.
    pub target: ProcessId,
    /// Region instance of the call that completed it locally, or none.
    pub done_local: InstanceId,
    /// Region instance of the call that completed it at the target, or none.
    pub done_remote: InstanceId,
    /// Direction of the transfer.
    pub kind: OperationKind,
}

/// A copy that a stream of a device made.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct Copied {
    /// Region instance of the copy.
    pub instance: InstanceId,
    /// Bytes.
    pub bytes: u64,
    /// The thread or stream at the other side, or none.
    pub remote: LocationId,
}

/// "All processes of the window" as target.
pub const ALL: ProcessId = ProcessId::new(u32::MAX - 1);

/// A synchronization of one-sided communication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum SyncKind {
    /// A collective operation on a window, which ends in this call.
    Collective {
        /// A value of `CollectiveOp`.
        operation: u8,
        /// Region instance of the call in which it begins.
        begin: InstanceId,
    },
    /// A call of a collective operation that returned before the operation could end; the next row of its process that is no
    /// such call is the operation.
    Asked,
    /// `MPI_Win_start` and the like, by the class of the region; the group.
    Group(GroupId),
    /// An unsuccessful `MPI_Win_test`.
    FailedTest,
    /// A lock is requested.
    Request {
        /// Whether others may hold it as well.
        shared: bool,
    },
    /// A lock is held when the call returns.
    Acquire {
        /// Whether others may hold it as well.
        shared: bool,
    },
    /// A lock is released.
    Release,
    /// A call waits until another process changes local memory.
    WaitChange,
    /// One process notifies another, or waits for its notification.
    Notify {
        /// Whether it is the other's notification.
        is_incoming: bool,
    },
    /// A window is freed.
    Destroy,
    /// A call that synchronizes several processes but leaves no record.
    Unrecorded,
}

/// One synchronization of one-sided communication.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct Synchronization {
    /// Time of the record, ticks.
    pub time: i64,
    /// Lock id, or [`Synchronization::notification`].
    pub lock: u64,
    /// Region instance of the call, or none.
    pub instance: InstanceId,
    /// The window, or none.
    pub window: WindowId,
    /// The target process of a lock, the partner of a notification, the root of a collective operation, [`ALL`], or none.
    pub target: ProcessId,
    /// Number of operations of the shard before it, which gives their order.
    pub after: u32,
    /// What it is.
    pub kind: SyncKind,
}

impl Synchronization {
    /// What stands for the id of a notification in place of that of a lock: one more, and 0 for a notification without id.
    pub fn notification(id: Option<u64>) -> u64 {
        id.map_or(0, |id| id.saturating_add(1))
    }
}

/// Stands for the operation of a collective read or write among those of `CollectiveOp`.
pub const COLLECTIVE_IO: u8 = u8::MAX;
/// Marks an operation of neighbors in a topology: OTF2 has no values of their own for these.
pub(crate) const NEIGHBORHOOD: u8 = 1 << 7;
/// Stands for the opening or closing of a file by all processes.
pub(crate) const FILE_HANDLE: u8 = 1 << 6;
/// A communicator is created: a value of `CollectiveOp`.
pub(crate) const CREATE_HANDLE: u8 = CollectiveOp::CREATE_HANDLE.0;

named! {
    /// What is done with a file.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
    pub enum IoKind {
        /// Data is read.
        Read = "read",
        /// Data is written.
        Write = "write",
        /// What was written is brought to the file.
        Flush = "flush",
        /// The file is opened.
        Open = "open",
        /// The file is closed.
        Close = "close",
        /// A handle of the file is duplicated.
        Duplicate = "duplicate",
        /// The position in the file changes.
        Seek = "seek",
        /// The file is deleted.
        Delete = "delete",
        /// The file is locked or unlocked.
        Lock = "lock",
        /// The flags of a handle change.
        Status = "status",
    }
}

impl IoKind {
    /// Whether it takes time of its own between two records; the time of other kinds is that of their call.
    pub fn is_operation(self) -> bool {
        matches!(self, Self::Read | Self::Write | Self::Flush)
    }
}

/// One use of a file.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct IoOperation {
    /// Time of its (begin) record, ticks.
    pub begin: i64,
    /// Time of the record that it was issued, ticks; `i64::MIN` without one.
    pub issued: i64,
    /// Time of its completion, ticks; `i64::MIN` if it was cancelled or never completed.
    pub end: i64,
    /// Ticks in the call that completes it, if that is not the one that begins it.
    pub awaited: i64,
    /// Bytes read or written.
    pub bytes: u64,
    /// Region instance of the call that begins it, or none.
    pub instance: InstanceId,
    /// Region instance of the call that completes it, or none.
    pub complete: InstanceId,
    /// OTF2 id of the handle; of the file if it is deleted.
    pub of: u32,
    /// I/O paradigm of a deletion; that of others follows from their handle.
    pub paradigm: u8,
    /// What it does.
    pub kind: IoKind,
    /// Whether another operation contains it.
    pub is_nested: bool,
}

/// A fork of a team of threads, at the forking thread.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct Fork {
    /// Time of the fork, ticks.
    pub fork: i64,
    /// Time of the join, ticks; `i64::MIN` if none was recorded.
    pub join: i64,
    /// Call path that forked.
    pub callpath: CallPathId,
}

/// A thread's part in a team: from its begin to its end.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct Team {
    /// The team's communicator.
    pub comm: CommId,
    /// Row of the fork in [`super::Shard::forks`] at the thread that forked, else [`NONE`].
    pub fork: u32,
    /// First region instance inside (the parallel region), or none.
    pub instance: InstanceId,
    /// First barrier of the team's part in [`super::Shard::barriers`].
    pub barriers: u32,
    /// One past the last barrier.
    pub barriers_end: u32,
    /// First taskwait or taskgroup construct of the team's part in [`super::Shard::taskwaits`].
    pub taskwaits: u32,
    /// One past the last one.
    pub taskwaits_end: u32,
}

impl Team {
    /// Nothing is known yet.
    pub(super) const EMPTY: Self = Self {
        comm: CommId::NONE,
        fork: NONE,
        instance: InstanceId::NONE,
        barriers: 0,
        barriers_end: 0,
        taskwaits: 0,
        taskwaits_end: 0,
    };
}

/// A taskwait or taskgroup construct.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct TaskWait {
    /// The call.
    pub instance: InstanceId,
    /// Row of the task that waits among those of the shard, or [`NONE`] for an implicit one.
    pub task: u32,
    /// Whether it is a taskgroup construct.
    pub is_group: bool,
}

/// A change of a parameter's value at a location.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct ParameterChange {
    /// Time of the record, ticks.
    pub time: i64,
    /// The value: bits of a signed integer, an unsigned one, or the id of a string, as the parameter is defined.
    pub value: u64,
    /// OTF2 id of the parameter.
    pub parameter: u32,
    /// Number of the shard's Enters and Leaves before it.
    pub events: u32,
}

/// A period in which a thread executed an explicit task.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct TaskRun {
    /// Begin, ticks.
    pub begin: i64,
    /// End, ticks.
    pub end: i64,
    /// Row of the task in [`super::Shard::task_instances`].
    pub task: u32,
    /// Region instance of the task, or none.
    pub instance: InstanceId,
    /// Whether the task ends with it.
    pub completes: bool,
}

/// An explicit task.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct TaskInstance {
    /// Time of its creation, ticks; `i64::MIN` if that is not recorded.
    pub created: i64,
    /// Region instance that created it, or none.
    pub create: InstanceId,
    /// The thread that created it, or none.
    pub creator: LocationId,
    /// The explicit task that created it, or [`NONE`].
    pub parent: u32,
    /// Row of the fork of its team in [`super::Shard::forks`], or [`NONE`].
    pub fork: u32,
    /// The call path that created it, which its own calls are below; none if it is not known.
    pub callpath: CallPathId,
}

/// An acquisition or release of a lock between threads.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct Lock {
    /// Time of the record, ticks.
    pub time: i64,
    /// Region instance around the record, or none.
    pub instance: InstanceId,
    /// Lock id.
    pub lock: u32,
    /// Acquisition order; 0 if it is unknown.
    pub order: u32,
    /// Paradigm that owns the lock.
    pub paradigm: u8,
    /// Acquired or released.
    pub acquired: bool,
}

/// Life-cycle events of threads that are created individually, without a team.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
pub enum ThreadStep {
    /// Another thread is created.
    Create,
    /// The thread itself begins.
    Begin,
    /// The thread itself ends.
    End,
    /// Another thread has ended.
    Wait,
}

/// A step in the life of a thread that another one created.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct Thread {
    /// Time of the record, ticks.
    pub time: i64,
    /// The thread: id of its communicator, and its number there.
    pub thread: (u32, u64),
    /// Region instance around the record. Of a begin and an end, which stand outside: the first and the last function of
    /// the thread. None if there is none.
    pub instance: InstanceId,
    /// What happens.
    pub step: ThreadStep,
}
