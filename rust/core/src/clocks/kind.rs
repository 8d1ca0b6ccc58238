//! Kinds of constraints.

use bitcode::{Decode, Encode};

use crate::matching::collectives;

named! {
    /// Kinds of constraints: what comes before what.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
    pub enum Kind {
        /// A message is sent before it is received, or found by a probe.
        Message = "p2p",
        /// A receive is posted before a synchronous send completes.
        SynchronousSend = "ssend",
        /// All enter a barrier before anyone leaves it.
        Barrier = "barrier",
        /// All senders begin before a receiver ends.
        AllToAll = "n_to_n",
        /// The root begins before a receiver ends.
        OneToAll = "one_to_n",
        /// All senders begin before the root ends.
        AllToOne = "n_to_one",
        /// The senders of lower ranks begin before a receiver ends.
        Prefix = "prefix",
        /// Those whose data a member needs start a non-blocking operation before it completes there.
        Nonblocking = "nonblocking",
        /// All enter the call that makes or frees a window before anyone leaves it.
        Window = "window",
        /// An origin and a target meet in the fences around an operation.
        Fence = "fence",
        /// A target posts before an origin that accessed it completes.
        Post = "post",
        /// An origin completes before its target has waited.
        Complete = "complete",
        /// A lock is released before another process holds it.
        Lock = "lock",
        /// A process notifies before the other has waited for it.
        Notify = "notify",
        /// All enter a collective call of OpenSHMEM or ARMCI before anyone leaves it.
        Shmem = "shmem",
        /// A thread begins after it was forked or created.
        Fork = "fork",
        /// A thread ends before it is joined.
        Join = "join",
        /// All threads of a team enter a barrier before anyone leaves it.
        ThreadBarrier = "thread_barrier",
        /// A thread releases a lock before another one acquires it.
        ThreadLock = "thread_lock",
        /// A kernel begins after its launch, and ends before the call that awaits it.
        Device = "device",
    }
}

impl Kind {
    /// Whether it concerns one process alone, so that no least time between two processes applies.
    pub fn is_within_a_process(self) -> bool {
        matches!(self, Self::Fork | Self::Join | Self::ThreadBarrier | Self::ThreadLock | Self::Device)
    }

    /// Whether which moment is the source and which the target follows from their times: such a constraint says nothing
    /// about the difference of clocks.
    pub(super) fn is_ordered_by_time(self) -> bool {
        self == Self::Lock
    }

    /// The kind of a blocking collective operation; start-up bounds nothing, because processes start when they like.
    pub(super) fn of(kind: collectives::Kind) -> Option<Self> {
        match kind {
            collectives::Kind::Finalize | collectives::Kind::Barrier | collectives::Kind::OtherGroup => {
                Some(Self::Barrier)
            }
            collectives::Kind::AllToAll => Some(Self::AllToAll),
            collectives::Kind::OneToAll => Some(Self::OneToAll),
            collectives::Kind::AllToOne => Some(Self::AllToOne),
            collectives::Kind::Scan => Some(Self::Prefix),
            collectives::Kind::Init
            | collectives::Kind::Io
            | collectives::Kind::Neighborhood
            | collectives::Kind::Undecided => None,
        }
    }
}
