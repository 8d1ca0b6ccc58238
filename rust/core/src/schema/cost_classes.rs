//! Cost classes: the kinds of waiting that delays cause, and the cost metrics of each kind.

use bitcode::{Decode, Encode};

use super::CostMetric;

macro_rules! classes {
    ($($(#[$doc:meta])* $class:ident = $name:literal {
        short_term: $short_term:ident, long_term: $long_term:ident,
        indirect: $indirect:expr, propagating: $propagating:expr,
        is_known_to_scalasca: $is_known:literal,
    }),+ $(,)?) => {
        /// A kind of waiting that delays cause.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
        #[repr(u8)]
        pub enum Class {
            $($(#[$doc])* $class),+
        }

        const ALL: &[Class] = &[$(Class::$class),+];

        const ROWS: &[Row] = &[$(Row {
            name: $name,
            short_term: CostMetric::$short_term,
            long_term: CostMetric::$long_term,
            indirect: $indirect,
            propagating: $propagating,
            is_known_to_scalasca: $is_known,
        }),+];
    };
}

/// The properties of a class.
struct Row {
    name: &'static str,
    short_term: CostMetric,
    long_term: CostMetric,
    indirect: Option<CostMetric>,
    propagating: Option<CostMetric>,
    is_known_to_scalasca: bool,
}

classes! {
    /// For the sender of a message.
    LateSender = "latesender" {
        short_term: DelayLateSender, long_term: DelayLateSenderLongTerm,
        indirect: Some(CostMetric::IndirectLateSender), propagating: Some(CostMetric::PropagatingLateSender),
        is_known_to_scalasca: true,
    },
    /// For the receiver of a message.
    LateReceiver = "latereceiver" {
        short_term: DelayLateReceiver, long_term: DelayLateReceiverLongTerm,
        indirect: Some(CostMetric::IndirectLateReceiver), propagating: Some(CostMetric::PropagatingLateReceiver),
        is_known_to_scalasca: true,
    },
    /// At a barrier.
    Barrier = "barrier" {
        short_term: DelayBarrier, long_term: DelayBarrierLongTerm,
        indirect: Some(CostMetric::IndirectBarrier), propagating: Some(CostMetric::PropagatingBarrier),
        is_known_to_scalasca: true,
    },
    /// In an N-to-N operation.
    NxN = "n2n" {
        short_term: DelayNxN, long_term: DelayNxNLongTerm,
        indirect: Some(CostMetric::IndirectNxN), propagating: Some(CostMetric::PropagatingNxN),
        is_known_to_scalasca: true,
    },
    /// In a collective read or write.
    Io = "io" {
        short_term: DelayIo, long_term: DelayIoLongTerm,
        indirect: Some(CostMetric::IndirectIo), propagating: Some(CostMetric::PropagatingIo),
        is_known_to_scalasca: false,
    },
    /// For the root of a 1-to-N operation.
    LateBroadcast = "12n" {
        short_term: DelayLateBroadcast, long_term: DelayLateBroadcastLongTerm,
        indirect: Some(CostMetric::IndirectLateBroadcast), propagating: Some(CostMetric::PropagatingLateBroadcast),
        is_known_to_scalasca: true,
    },
    /// Of the root of an N-to-1 operation.
    EarlyReduce = "n21" {
        short_term: DelayEarlyReduce, long_term: DelayEarlyReduceLongTerm,
        indirect: Some(CostMetric::IndirectEarlyReduce), propagating: Some(CostMetric::PropagatingEarlyReduce),
        is_known_to_scalasca: true,
    },
    /// In the tree of an operation with a root, for another process than the root.
    Tree = "tree" {
        short_term: DelayTree, long_term: DelayTreeLongTerm,
        indirect: Some(CostMetric::IndirectTree), propagating: Some(CostMetric::PropagatingTree),
        is_known_to_scalasca: false,
    },
    /// At a barrier between threads.
    OmpBarrier = "ompbarrier" {
        short_term: DelayOmpBarrier, long_term: DelayOmpBarrierLongTerm,
        indirect: Some(CostMetric::IndirectOmpBarrier), propagating: Some(CostMetric::PropagatingOmpBarrier),
        is_known_to_scalasca: true,
    },
    /// Threads without work while their master is alone.
    OmpIdle = "ompidle" {
        short_term: DelayOmpIdle, long_term: DelayOmpIdleLongTerm,
        indirect: None, propagating: None,
        is_known_to_scalasca: true,
    },
    /// For the creation of a window.
    Create = "rma_create" {
        short_term: DelayCreate, long_term: DelayCreateLongTerm,
        indirect: Some(CostMetric::IndirectCreate), propagating: Some(CostMetric::PropagatingCreate),
        is_known_to_scalasca: false,
    },
    /// For the release of a window.
    Free = "rma_free" {
        short_term: DelayFree, long_term: DelayFreeLongTerm,
        indirect: Some(CostMetric::IndirectFree), propagating: Some(CostMetric::PropagatingFree),
        is_known_to_scalasca: false,
    },
    /// At a fence, and in the collective operations of OpenSHMEM and ARMCI.
    Fence = "rma_fence" {
        short_term: DelayFence, long_term: DelayFenceLongTerm,
        indirect: Some(CostMetric::IndirectFence), propagating: Some(CostMetric::PropagatingFence),
        is_known_to_scalasca: false,
    },
    /// For a post.
    LatePost = "rma_late_post" {
        short_term: DelayLatePost, long_term: DelayLatePostLongTerm,
        indirect: Some(CostMetric::IndirectLatePost), propagating: Some(CostMetric::PropagatingLatePost),
        is_known_to_scalasca: false,
    },
    /// For an `MPI_Win_complete`, or for the signal of another process.
    EarlyWait = "rma_early_wait" {
        short_term: DelayEarlyWait, long_term: DelayEarlyWaitLongTerm,
        indirect: Some(CostMetric::IndirectEarlyWait), propagating: Some(CostMetric::PropagatingEarlyWait),
        is_known_to_scalasca: false,
    },
    /// For progress at a target.
    Progress = "rma_progress" {
        short_term: DelayProgress, long_term: DelayProgressLongTerm,
        indirect: Some(CostMetric::IndirectProgress), propagating: Some(CostMetric::PropagatingProgress),
        is_known_to_scalasca: false,
    },
    /// For a lock.
    Lock = "lock" {
        short_term: IntervalDelayLock, long_term: DelayLockLongTerm,
        indirect: Some(CostMetric::IndirectLock), propagating: Some(CostMetric::PropagatingLock),
        is_known_to_scalasca: false,
    },
    /// For a lock of threads.
    ThreadLock = "threadlock" {
        short_term: IntervalDelayLock, long_term: DelayThreadLockLongTerm,
        indirect: Some(CostMetric::IndirectThreadLock), propagating: Some(CostMetric::PropagatingThreadLock),
        is_known_to_scalasca: false,
    },
    /// For a task that another thread runs.
    Task = "task" {
        short_term: IntervalDelayTask, long_term: DelayTaskLongTerm,
        indirect: Some(CostMetric::IndirectTask), propagating: Some(CostMetric::PropagatingTask),
        is_known_to_scalasca: false,
    },
    /// For the end of a thread.
    Join = "join" {
        short_term: DelayJoin, long_term: DelayJoinLongTerm,
        indirect: Some(CostMetric::IndirectJoin), propagating: Some(CostMetric::PropagatingJoin),
        is_known_to_scalasca: false,
    },
    /// For the signal of a condition variable.
    Signal = "signal" {
        short_term: DelaySignal, long_term: DelaySignalLongTerm,
        indirect: Some(CostMetric::IndirectSignal), propagating: Some(CostMetric::PropagatingSignal),
        is_known_to_scalasca: false,
    },
    /// At a barrier of POSIX threads.
    PthreadBarrier = "pthreadbarrier" {
        short_term: DelayPthreadBarrier, long_term: DelayPthreadBarrierLongTerm,
        indirect: Some(CostMetric::IndirectPthreadBarrier), propagating: Some(CostMetric::PropagatingPthreadBarrier),
        is_known_to_scalasca: false,
    },
    /// A host waits for a device.
    GpuHost = "gpu_host" {
        short_term: DelayGpuHost, long_term: DelayGpuHostLongTerm,
        indirect: Some(CostMetric::IndirectGpuHost), propagating: Some(CostMetric::PropagatingGpuHost),
        is_known_to_scalasca: false,
    },
    /// A device waits for a host.
    GpuDevice = "gpu_device" {
        short_term: DelayGpuDevice, long_term: DelayGpuDeviceLongTerm,
        indirect: Some(CostMetric::IndirectGpuDevice), propagating: Some(CostMetric::PropagatingGpuDevice),
        is_known_to_scalasca: false,
    },
    /// A device waits for another one in a kernel that communicates.
    Ccl = "ccl" {
        short_term: DelayCcl, long_term: DelayCclLongTerm,
        indirect: Some(CostMetric::IndirectCcl), propagating: Some(CostMetric::PropagatingCcl),
        is_known_to_scalasca: false,
    },
    /// A kernel waits for one on another stream of its device, which is busy: passes costs on, but has none itself.
    GpuTurn = "gpu_turn" {
        short_term: DelayUnattributed, long_term: DelayUnattributed,
        indirect: None, propagating: None,
        is_known_to_scalasca: false,
    },
    /// In `MPI_Init`: synchronizes, but causes no costs.
    Library = "library" {
        short_term: DelayUnattributed, long_term: DelayUnattributed,
        indirect: None, propagating: None,
        is_known_to_scalasca: true,
    },
    /// No waiting: marks a point in time.
    Mark = "fork" {
        short_term: DelayUnattributed, long_term: DelayUnattributed,
        indirect: None, propagating: None,
        is_known_to_scalasca: false,
    },
}

impl Class {
    /// Classes with cost metrics.
    pub const WITH_COSTS: &[Self] = ALL.split_at(Self::GpuTurn as usize).0;

    fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// Short name, as in the names of the metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Whether Scalasca 2.6 computes its costs.
    #[must_use]
    pub fn is_known_to_scalasca(self) -> bool {
        self.row().is_known_to_scalasca
    }

    /// Whether it is a wait for a message.
    #[must_use]
    pub fn is_message(self) -> bool {
        matches!(self, Self::LateSender | Self::LateReceiver)
    }

    /// Costs of delays that caused such waits directly.
    #[must_use]
    pub fn short_term(self) -> CostMetric {
        self.row().short_term
    }

    /// Costs of delays that caused such waits through other waits.
    #[must_use]
    pub fn long_term(self) -> CostMetric {
        self.row().long_term
    }

    /// The part of such waits that earlier waits of the causing process explain.
    #[must_use]
    pub fn indirect(self) -> Option<CostMetric> {
        self.row().indirect
    }

    /// The part of such waits that made others wait later.
    #[must_use]
    pub fn propagating(self) -> Option<CostMetric> {
        self.row().propagating
    }
}

/// The classes that occur in a run, so that tables by class need no columns for the others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Classes {
    /// Those that occur, in their order.
    pub all: Vec<Class>,
    column: [u8; PASSING],
}

/// Number of classes that pass costs on.
const PASSING: usize = Class::Library as usize;

impl Classes {
    /// The classes among `classes` that pass costs on.
    pub(crate) fn new(classes: impl Iterator<Item = Class>) -> Self {
        let mut all: Vec<Class> = Vec::new();
        for class in classes {
            if let Err(position) = all.binary_search(&class)
                && (class as usize) < PASSING
            {
                all.insert(position, class);
            }
        }
        let mut column = [0; PASSING];
        for (i, &class) in all.iter().enumerate() {
            column[class as usize] = i as u8;
        }
        Self { all, column }
    }

    /// Column of a class; the class must occur.
    pub(crate) fn column(&self, class: Class) -> usize {
        usize::from(self.column[class as usize])
    }
}
