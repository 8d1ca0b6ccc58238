//! Cost classes: the kinds of waiting that delays cause, and the cost metrics of each kind.
//!
//! ```text
//! /// What a process waits for.
//! Name = "unique_name" {
//!     short_term: Metric, long_term: Metric,          costs of delays, directly and through other waits
//!     indirect: Metric, propagating: Metric,          waiting because of earlier waits, and that made others wait later
//!     is_known_to_scalasca: bool,
//! }
//! ```
//!
//! A class declares its metrics, whose unique names follow from its own. One that books costs with others says
//! `shared_short_term`; one without costs has no metrics.

use bitcode::{Decode, Encode};

use super::metrics::metrics;

/// What is given in brackets, or else the default.
macro_rules! given_or {
    ([] $default:expr) => {
        $default
    };
    ([$given:expr] $default:expr) => {
        $given
    };
}

macro_rules! classes {
    ($($(#[$doc:meta])* $class:ident = $name:literal {
        $(short_term: $short_term:ident,)? $(shared_short_term: $shared:ident,)? $(long_term: $long_term:ident,)?
        $(indirect: $indirect:ident, propagating: $propagating:ident $(= $named:literal)?,)?
        is_known_to_scalasca: $is_known:literal $(,)?
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
            short_term: given_or!(
                [$(CostMetric::$short_term)? $(CostMetric::$shared)?] CostMetric::DelayUnattributed
            ),
            long_term: given_or!([$(CostMetric::$long_term)?] CostMetric::DelayUnattributed),
            indirect: given_or!([$(Some(CostMetric::$indirect))?] None),
            propagating: given_or!([$(Some(CostMetric::$propagating))?] None),
            is_known_to_scalasca: $is_known,
        }),+];

        metrics! {
            /// Shares of waiting, of delays and of the critical path: real numbers of ticks.
            CostMetric of f64, summed by std::ops::Add::add;
            $(
                $(
                    #[doc = concat!("Costs that delays cause directly: [`Class::", stringify!($class), "`].")]
                    $short_term = concat!("delay_", $name),
                )?
                $(
                    #[doc = concat!("Costs that delays cause through other waits: [`Class::", stringify!($class), "`].")]
                    $long_term = concat!("delay_", $name, "_longterm"),
                )?
            )+
            /// Costs of the time in which others waited for a lock.
            IntervalDelayLock = "interval_delay_lock",
            /// Costs of that time through waits for a lock.
            IntervalDelayLockLongTerm = "interval_delay_lock_longterm",
            /// Costs of the time in which others waited for a task.
            IntervalDelayTask = "interval_delay_task",
            /// Costs of that time through waits for a task.
            IntervalDelayTaskLongTerm = "interval_delay_task_longterm",
            /// Costs that neither work nor a wait explains.
            DelayUnattributed = "delay_unattributed",
            $($(
                #[doc = concat!("Waiting that earlier waits of its cause explain: [`Class::", stringify!($class), "`].")]
                $indirect = concat!("mpi_wait_indirect_", $name),
            )?)+
            $($(
                #[doc = concat!("Waiting that made others wait later: [`Class::", stringify!($class), "`].")]
                $propagating = given_or!([$($named)?] concat!("mpi_wait_propagating_", $name)),
            )?)+
            /// The gain from distributing the activities of the critical path evenly.
            CriticalImbalanceImpact = "critical_imbalance_impact",
            /// The part of it between processes that do different work.
            InterPartitionImbalance = "inter_partition_imbalance",
            /// The part of waits that exceeds everything they can be attributed to.
            WaitUnexplained = "wait_unexplained",
        }
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
        indirect: IndirectLateSender, propagating: PropagatingLateSender = "mpi_wait_propagating_ls",
        is_known_to_scalasca: true,
    },
    /// For the receiver of a message.
    LateReceiver = "latereceiver" {
        short_term: DelayLateReceiver, long_term: DelayLateReceiverLongTerm,
        indirect: IndirectLateReceiver, propagating: PropagatingLateReceiver = "mpi_wait_propagating_lr",
        is_known_to_scalasca: true,
    },
    /// At a barrier.
    Barrier = "barrier" {
        short_term: DelayBarrier, long_term: DelayBarrierLongTerm,
        indirect: IndirectBarrier, propagating: PropagatingBarrier,
        is_known_to_scalasca: true,
    },
    /// In an N-to-N operation.
    NxN = "n2n" {
        short_term: DelayNxN, long_term: DelayNxNLongTerm,
        indirect: IndirectNxN, propagating: PropagatingNxN,
        is_known_to_scalasca: true,
    },
    /// In a collective read or write.
    Io = "io" {
        short_term: DelayIo, long_term: DelayIoLongTerm,
        indirect: IndirectIo, propagating: PropagatingIo,
        is_known_to_scalasca: false,
    },
    /// For the root of a 1-to-N operation.
    LateBroadcast = "12n" {
        short_term: DelayLateBroadcast, long_term: DelayLateBroadcastLongTerm,
        indirect: IndirectLateBroadcast, propagating: PropagatingLateBroadcast,
        is_known_to_scalasca: true,
    },
    /// Of the root of an N-to-1 operation.
    EarlyReduce = "n21" {
        short_term: DelayEarlyReduce, long_term: DelayEarlyReduceLongTerm,
        indirect: IndirectEarlyReduce, propagating: PropagatingEarlyReduce,
        is_known_to_scalasca: true,
    },
    /// In the tree of an operation with a root, for another process than the root.
    Tree = "tree" {
        short_term: DelayTree, long_term: DelayTreeLongTerm,
        indirect: IndirectTree, propagating: PropagatingTree,
        is_known_to_scalasca: false,
    },
    /// At a barrier between threads.
    OmpBarrier = "ompbarrier" {
        short_term: DelayOmpBarrier, long_term: DelayOmpBarrierLongTerm,
        indirect: IndirectOmpBarrier, propagating: PropagatingOmpBarrier,
        is_known_to_scalasca: true,
    },
    /// Threads without work while their master is alone.
    OmpIdle = "ompidle" {
        short_term: DelayOmpIdle, long_term: DelayOmpIdleLongTerm,
        is_known_to_scalasca: true,
    },
    /// For the creation of a window.
    Create = "rma_create" {
        short_term: DelayCreate, long_term: DelayCreateLongTerm,
        indirect: IndirectCreate, propagating: PropagatingCreate,
        is_known_to_scalasca: false,
    },
    /// For the release of a window.
    Free = "rma_free" {
        short_term: DelayFree, long_term: DelayFreeLongTerm,
        indirect: IndirectFree, propagating: PropagatingFree,
        is_known_to_scalasca: false,
    },
    /// At a fence, and in the collective operations of OpenSHMEM and ARMCI.
    Fence = "rma_fence" {
        short_term: DelayFence, long_term: DelayFenceLongTerm,
        indirect: IndirectFence, propagating: PropagatingFence,
        is_known_to_scalasca: false,
    },
    /// For a post.
    LatePost = "rma_late_post" {
        short_term: DelayLatePost, long_term: DelayLatePostLongTerm,
        indirect: IndirectLatePost, propagating: PropagatingLatePost,
        is_known_to_scalasca: false,
    },
    /// For an `MPI_Win_complete`, or for the signal of another process.
    EarlyWait = "rma_early_wait" {
        short_term: DelayEarlyWait, long_term: DelayEarlyWaitLongTerm,
        indirect: IndirectEarlyWait, propagating: PropagatingEarlyWait,
        is_known_to_scalasca: false,
    },
    /// For progress at a target.
    Progress = "rma_progress" {
        short_term: DelayProgress, long_term: DelayProgressLongTerm,
        indirect: IndirectProgress, propagating: PropagatingProgress,
        is_known_to_scalasca: false,
    },
    /// For a lock.
    Lock = "lock" {
        shared_short_term: IntervalDelayLock, long_term: DelayLockLongTerm,
        indirect: IndirectLock, propagating: PropagatingLock,
        is_known_to_scalasca: false,
    },
    /// For a lock of threads.
    ThreadLock = "threadlock" {
        shared_short_term: IntervalDelayLock, long_term: DelayThreadLockLongTerm,
        indirect: IndirectThreadLock, propagating: PropagatingThreadLock,
        is_known_to_scalasca: false,
    },
    /// For a task that another thread runs.
    Task = "task" {
        shared_short_term: IntervalDelayTask, long_term: DelayTaskLongTerm,
        indirect: IndirectTask, propagating: PropagatingTask,
        is_known_to_scalasca: false,
    },
    /// For the end of a thread.
    Join = "join" {
        short_term: DelayJoin, long_term: DelayJoinLongTerm,
        indirect: IndirectJoin, propagating: PropagatingJoin,
        is_known_to_scalasca: false,
    },
    /// For the signal of a condition variable.
    Signal = "signal" {
        short_term: DelaySignal, long_term: DelaySignalLongTerm,
        indirect: IndirectSignal, propagating: PropagatingSignal,
        is_known_to_scalasca: false,
    },
    /// At a barrier of POSIX threads.
    PthreadBarrier = "pthreadbarrier" {
        short_term: DelayPthreadBarrier, long_term: DelayPthreadBarrierLongTerm,
        indirect: IndirectPthreadBarrier, propagating: PropagatingPthreadBarrier,
        is_known_to_scalasca: false,
    },
    /// A host waits for a device.
    GpuHost = "gpu_host" {
        short_term: DelayGpuHost, long_term: DelayGpuHostLongTerm,
        indirect: IndirectGpuHost, propagating: PropagatingGpuHost,
        is_known_to_scalasca: false,
    },
    /// A device waits for a host.
    GpuDevice = "gpu_device" {
        short_term: DelayGpuDevice, long_term: DelayGpuDeviceLongTerm,
        indirect: IndirectGpuDevice, propagating: PropagatingGpuDevice,
        is_known_to_scalasca: false,
    },
    /// A device waits for another one in a kernel that communicates.
    Ccl = "ccl" {
        short_term: DelayCcl, long_term: DelayCclLongTerm,
        indirect: IndirectCcl, propagating: PropagatingCcl,
        is_known_to_scalasca: false,
    },
    /// A kernel waits for one on another stream of its device, which is busy: passes costs on, but has none itself.
    GpuTurn = "gpu_turn" { is_known_to_scalasca: false },
    /// In `MPI_Init`: synchronizes, but causes no costs.
    Library = "library" { is_known_to_scalasca: true },
    /// No waiting: marks a point in time.
    Mark = "fork" { is_known_to_scalasca: false },
}

impl CostMetric {
    /// Whether it is a delay cost: of a class, or unattributed.
    pub fn is_delay_cost(self) -> bool {
        (Self::DelayLateSender..=Self::DelayUnattributed).contains(&self)
    }
}

impl Class {
    /// Classes with cost metrics.
    pub const WITH_COSTS: &[Self] = ALL.split_at(Self::GpuTurn as usize).0;

    fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// Short name, as in the names of the metrics.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Whether Scalasca 2.6 computes its costs.
    pub fn is_known_to_scalasca(self) -> bool {
        self.row().is_known_to_scalasca
    }

    /// Whether it is a wait for a message.
    pub fn is_message(self) -> bool {
        matches!(self, Self::LateSender | Self::LateReceiver)
    }

    /// Costs of delays that caused such waits directly.
    pub fn short_term(self) -> CostMetric {
        self.row().short_term
    }

    /// Costs of delays that caused such waits through other waits.
    pub fn long_term(self) -> CostMetric {
        self.row().long_term
    }

    /// The part of such waits that earlier waits of the causing process explain.
    pub fn indirect(self) -> Option<CostMetric> {
        self.row().indirect
    }

    /// The part of such waits that made others wait later.
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
