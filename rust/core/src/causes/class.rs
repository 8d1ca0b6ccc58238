//! Classes of waits: what a cost says about the wait that it was paid for.

use bitcode::{Decode, Encode};

use crate::severity::Metric;

/// What kind of waiting a cost was paid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[repr(u8)]
pub enum Class {
    /// For the sender of a message.
    LateSender,
    /// For the receiver of a message.
    LateReceiver,
    /// At a barrier.
    Barrier,
    /// In an N-to-N operation.
    NxN,
    /// For the root of a 1-to-N operation.
    LateBroadcast,
    /// Of the root of an N-to-1 operation.
    EarlyReduce,
    /// At a barrier between threads.
    OmpBarrier,
    /// Threads without work while their master is alone.
    OmpIdle,
    /// For the creation of a window.
    Create,
    /// For the end of a window.
    Free,
    /// At a fence, and in the collective operations of OpenSHMEM and ARMCI.
    Fence,
    /// For a post.
    LatePost,
    /// For a complete, or for the signal of another process.
    EarlyWait,
    /// For the library of a target.
    Progress,
    /// For a lock.
    Lock,
    /// For the others in `MPI_Init` and `MPI_Finalize`: synchronizes, but nobody is charged.
    Library,
    /// None: a mark in time.
    Mark,
}

impl Class {
    /// Number of classes that costs are told apart by; they come first.
    pub const COUNT: usize = Self::Library as usize;

    /// Classes with costs.
    pub const ALL: [Self; Self::COUNT] = [
        Self::LateSender,
        Self::LateReceiver,
        Self::Barrier,
        Self::NxN,
        Self::LateBroadcast,
        Self::EarlyReduce,
        Self::OmpBarrier,
        Self::OmpIdle,
        Self::Create,
        Self::Free,
        Self::Fence,
        Self::LatePost,
        Self::EarlyWait,
        Self::Progress,
        Self::Lock,
    ];

    /// The class of a wait state; `None` for parts of others, for completion, and for what nobody is charged for.
    #[must_use]
    pub fn of(kind: Metric) -> Option<Self> {
        Some(match kind {
            Metric::LateSender => Self::LateSender,
            Metric::LateReceiver => Self::LateReceiver,
            Metric::BarrierWait => Self::Barrier,
            Metric::WaitNxN => Self::NxN,
            Metric::LateBroadcast => Self::LateBroadcast,
            Metric::EarlyReduce => Self::EarlyReduce,
            Metric::OmpExplicitBarrierWait | Metric::OmpImplicitBarrierWait => Self::OmpBarrier,
            Metric::WaitAtCreate | Metric::ShmemWaitAtCreate | Metric::ArmciWaitAtCreate => Self::Create,
            Metric::WaitAtFree | Metric::ShmemWaitAtFree | Metric::ArmciWaitAtFree => Self::Free,
            Metric::WaitAtFence
            | Metric::ShmemBarrierWait
            | Metric::ShmemLateBroadcast
            | Metric::ShmemWaitNxN
            | Metric::ArmciBarrierWait
            | Metric::ArmciLateBroadcast
            | Metric::ArmciWaitNxN => Self::Fence,
            Metric::LatePostSync | Metric::LatePostComm => Self::LatePost,
            Metric::EarlyWait | Metric::ShmemWaitUntil => Self::EarlyWait,
            Metric::ProgressSync
            | Metric::ProgressComm
            | Metric::ShmemProgressSync
            | Metric::ShmemProgressComm
            | Metric::ArmciProgressSync
            | Metric::ArmciProgressComm => Self::Progress,
            Metric::LockContentionSync
            | Metric::LockContentionComm
            | Metric::ShmemLockContentionSync
            | Metric::ShmemLockContentionComm
            | Metric::ArmciLockContentionSync
            | Metric::ArmciLockContentionComm => Self::Lock,
            Metric::InitCompletion | Metric::FinalizeWait => Self::Library,
            _ => return None,
        })
    }

    /// Short name, as in the names of the metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::LateSender => "latesender",
            Self::LateReceiver => "latereceiver",
            Self::Barrier => "barrier",
            Self::NxN => "n2n",
            Self::LateBroadcast => "12n",
            Self::EarlyReduce => "n21",
            Self::OmpBarrier => "ompbarrier",
            Self::OmpIdle => "ompidle",
            Self::Create => "rma_create",
            Self::Free => "rma_free",
            Self::Fence => "rma_fence",
            Self::LatePost => "rma_late_post",
            Self::EarlyWait => "rma_early_wait",
            Self::Progress => "rma_progress",
            Self::Lock => "lock",
            Self::Library => "library",
            Self::Mark => "fork",
        }
    }

    /// Whether release 2.6 of Scalasca charges anybody for it.
    #[must_use]
    pub fn is_known_to_scalasca(self) -> bool {
        self <= Self::OmpIdle || self == Self::Library
    }

    /// Whether it is a wait for a message.
    #[must_use]
    pub fn is_message(self) -> bool {
        matches!(self, Self::LateSender | Self::LateReceiver)
    }

    /// Costs of delays that caused such a wait themselves.
    #[must_use]
    pub fn short_term(self) -> Metric {
        match self {
            Self::LateSender => Metric::DelayLateSender,
            Self::LateReceiver => Metric::DelayLateReceiver,
            Self::Barrier => Metric::DelayBarrier,
            Self::NxN => Metric::DelayNxN,
            Self::LateBroadcast => Metric::DelayLateBroadcast,
            Self::EarlyReduce => Metric::DelayEarlyReduce,
            Self::OmpBarrier => Metric::DelayOmpBarrier,
            Self::OmpIdle => Metric::DelayOmpIdle,
            Self::Create => Metric::DelayCreate,
            Self::Free => Metric::DelayFree,
            Self::Fence => Metric::DelayFence,
            Self::LatePost => Metric::DelayLatePost,
            Self::EarlyWait => Metric::DelayEarlyWait,
            Self::Progress => Metric::DelayProgress,
            Self::Lock => Metric::IntervalDelayLock,
            Self::Library | Self::Mark => Metric::DelayUnattributed,
        }
    }

    /// Costs of delays that caused such a wait through other waits.
    #[must_use]
    pub fn long_term(self) -> Metric {
        match self {
            Self::LateSender => Metric::DelayLateSenderLongTerm,
            Self::LateReceiver => Metric::DelayLateReceiverLongTerm,
            Self::Barrier => Metric::DelayBarrierLongTerm,
            Self::NxN => Metric::DelayNxNLongTerm,
            Self::LateBroadcast => Metric::DelayLateBroadcastLongTerm,
            Self::EarlyReduce => Metric::DelayEarlyReduceLongTerm,
            Self::OmpBarrier => Metric::DelayOmpBarrierLongTerm,
            Self::OmpIdle => Metric::DelayOmpIdleLongTerm,
            Self::Create => Metric::DelayCreateLongTerm,
            Self::Free => Metric::DelayFreeLongTerm,
            Self::Fence => Metric::DelayFenceLongTerm,
            Self::LatePost => Metric::DelayLatePostLongTerm,
            Self::EarlyWait => Metric::DelayEarlyWaitLongTerm,
            Self::Progress => Metric::DelayProgressLongTerm,
            Self::Lock => Metric::DelayLockLongTerm,
            Self::Library | Self::Mark => Metric::DelayUnattributed,
        }
    }

    /// The part of such waits that earlier waits of the causing process explain.
    #[must_use]
    pub fn indirect(self) -> Option<Metric> {
        Some(match self {
            Self::LateSender => Metric::IndirectLateSender,
            Self::LateReceiver => Metric::IndirectLateReceiver,
            Self::Barrier => Metric::IndirectBarrier,
            Self::NxN => Metric::IndirectNxN,
            Self::LateBroadcast => Metric::IndirectLateBroadcast,
            Self::EarlyReduce => Metric::IndirectEarlyReduce,
            Self::Create => Metric::IndirectCreate,
            Self::Free => Metric::IndirectFree,
            Self::Fence => Metric::IndirectFence,
            Self::LatePost => Metric::IndirectLatePost,
            Self::EarlyWait => Metric::IndirectEarlyWait,
            Self::Progress => Metric::IndirectProgress,
            Self::Lock => Metric::IndirectLock,
            Self::OmpBarrier | Self::OmpIdle | Self::Library | Self::Mark => return None,
        })
    }

    /// The part of such waits that made others wait later.
    #[must_use]
    pub fn propagating(self) -> Option<Metric> {
        Some(match self {
            Self::LateSender => Metric::PropagatingLateSender,
            Self::LateReceiver => Metric::PropagatingLateReceiver,
            Self::Barrier => Metric::PropagatingBarrier,
            Self::NxN => Metric::PropagatingNxN,
            Self::LateBroadcast => Metric::PropagatingLateBroadcast,
            Self::EarlyReduce => Metric::PropagatingEarlyReduce,
            Self::OmpBarrier => Metric::PropagatingOmpBarrier,
            Self::Create => Metric::PropagatingCreate,
            Self::Free => Metric::PropagatingFree,
            Self::Fence => Metric::PropagatingFence,
            Self::LatePost => Metric::PropagatingLatePost,
            Self::EarlyWait => Metric::PropagatingEarlyWait,
            Self::Progress => Metric::PropagatingProgress,
            Self::Lock => Metric::PropagatingLock,
            Self::OmpIdle | Self::Library | Self::Mark => return None,
        })
    }
}

/// The classes that occur in a run: numbers by class need room for no others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Classes {
    /// Those that occur, in their order.
    pub all: Vec<Class>,
    column: [u8; Class::COUNT],
}

impl Classes {
    /// Those of `classes` that costs are told apart by.
    pub(crate) fn new(classes: impl Iterator<Item = Class>) -> Self {
        let mut all: Vec<Class> = Vec::new();
        for class in classes {
            if let Err(position) = all.binary_search(&class)
                && (class as usize) < Class::COUNT
            {
                all.insert(position, class);
            }
        }
        let mut column = [0; Class::COUNT];
        for (i, &class) in all.iter().enumerate() {
            column[class as usize] = i as u8;
        }
        Self { all, column }
    }

    /// Position of a class that occurs.
    pub(crate) fn column(&self, class: Class) -> usize {
        usize::from(self.column[class as usize])
    }
}
