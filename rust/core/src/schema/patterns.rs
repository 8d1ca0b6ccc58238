//! Patterns: every wait state that the analysis looks for, one row each.
//!
//! A new wait state is a row here with its metric in [`super::metrics`], a detector in `waits`, and a document in
//! `tests/patterns`, which is its specification and its test.

use super::{Class, Metric};

/// A programming model in whose calls a location can wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paradigm {
    /// The Message Passing Interface.
    Mpi,
    /// OpenSHMEM.
    Shmem,
    /// The Aggregate Remote Memory Copy Interface.
    Armci,
    /// OpenMP.
    OpenMp,
    /// POSIX threads.
    Pthread,
}

impl Paradigm {
    /// Name in tables, as OTF2 has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Mpi => "MPI",
            Self::Shmem => "SHMEM",
            Self::Armci => "ARMCI",
            Self::OpenMp => "OPENMP",
            Self::Pthread => "PTHREAD",
        }
    }
}

/// Where in its call a wait lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// It begins with the call.
    Begin,
    /// It begins with the begin record of the collective operation in the call.
    BeginRecord,
    /// It ends with the call.
    End,
    /// It ends with the end record of the collective operation in the call.
    EndRecord,
    /// It ends with the wait that it is a part of.
    EndOfWhole,
    /// It begins with the call, or, if the call waited for a lock first, with the release of that.
    AfterContention,
}

impl Position {
    /// Whether it is what an operation takes after all have come: the wait ends the call.
    #[must_use]
    pub fn is_completion(self) -> bool {
        matches!(self, Self::End | Self::EndRecord)
    }
}

/// A wait state that the analysis looks for.
#[derive(Clone, Copy, Debug)]
pub struct Pattern {
    /// The metric that it is booked on, whose name is its own.
    pub kind: Metric,
    /// In whose calls it occurs.
    pub paradigm: Paradigm,
    /// What its costs are booked on; `None` if nobody is charged.
    pub class: Option<Class>,
    /// Where in its call it lies.
    pub position: Position,
    /// The wait state that it is a part of, or another bound of: then it does not count beside it.
    pub part_of: Option<Metric>,
    /// Whether a perfectly balanced run would not have it (definition 23 of the thesis subtracts it).
    pub is_balanced_away: bool,
    /// Its specification and test: the name of a file in `tests/patterns`.
    pub document: &'static str,
    /// Where it is defined.
    pub source: &'static str,
}

impl Pattern {
    /// All patterns.
    pub const ALL: &[Self] = PATTERNS;

    /// The pattern that is booked on a metric.
    #[must_use]
    pub fn of(kind: Metric) -> Option<&'static Self> {
        PATTERNS.get(usize::from(ROW[kind as usize]))
    }
}

/// For each metric its row among the patterns; behind the last if it is none.
const ROW: [u8; super::metrics::COUNT] = {
    let mut row = [u8::MAX; super::metrics::COUNT];
    let mut i = 0;
    while i < PATTERNS.len() {
        row[PATTERNS[i].kind as usize] = i as u8;
        i += 1;
    }
    row
};

const PATTERNS: &[Pattern] = &[
    Pattern {
        kind: Metric::InitCompletion,
        paradigm: Paradigm::Mpi,
        class: Some(Class::Library),
        position: Position::End,
        part_of: None,
        is_balanced_away: false,
        document: "init-and-finalize",
        source: "Scalasca, Initialization Completion",
    },
    Pattern {
        kind: Metric::FinalizeWait,
        paradigm: Paradigm::Mpi,
        class: Some(Class::Library),
        position: Position::Begin,
        part_of: None,
        is_balanced_away: true,
        document: "init-and-finalize",
        source: "Scalasca, Wait at Finalize",
    },
    Pattern {
        kind: Metric::BarrierWait,
        paradigm: Paradigm::Mpi,
        class: Some(Class::Barrier),
        position: Position::BeginRecord,
        part_of: None,
        is_balanced_away: true,
        document: "barrier",
        source: "thesis, equation 2.2",
    },
    Pattern {
        kind: Metric::BarrierCompletion,
        paradigm: Paradigm::Mpi,
        class: None,
        position: Position::EndRecord,
        part_of: None,
        is_balanced_away: false,
        document: "barrier",
        source: "Scalasca, Barrier Completion",
    },
    Pattern {
        kind: Metric::WaitNxN,
        paradigm: Paradigm::Mpi,
        class: Some(Class::NxN),
        position: Position::BeginRecord,
        part_of: None,
        is_balanced_away: true,
        document: "wait-at-nxn",
        source: "thesis, equation 2.2",
    },
    Pattern {
        kind: Metric::NxNCompletion,
        paradigm: Paradigm::Mpi,
        class: None,
        position: Position::EndRecord,
        part_of: None,
        is_balanced_away: false,
        document: "wait-at-nxn",
        source: "Scalasca, N x N Completion",
    },
    Pattern {
        kind: Metric::LateBroadcast,
        paradigm: Paradigm::Mpi,
        class: Some(Class::LateBroadcast),
        position: Position::BeginRecord,
        part_of: None,
        is_balanced_away: true,
        document: "late-broadcast",
        source: "thesis, equation 2.2",
    },
    Pattern {
        kind: Metric::EarlyReduce,
        paradigm: Paradigm::Mpi,
        class: Some(Class::EarlyReduce),
        position: Position::BeginRecord,
        part_of: None,
        is_balanced_away: true,
        document: "early-reduce",
        source: "thesis, equation 2.2",
    },
    Pattern {
        kind: Metric::EarlyScan,
        paradigm: Paradigm::Mpi,
        class: None,
        position: Position::BeginRecord,
        part_of: None,
        is_balanced_away: true,
        document: "early-scan",
        source: "Scalasca, Early Scan",
    },
    Pattern {
        kind: Metric::LateSender,
        paradigm: Paradigm::Mpi,
        class: Some(Class::LateSender),
        position: Position::Begin,
        part_of: None,
        is_balanced_away: true,
        document: "late-sender",
        source: "thesis, equation 2.1",
    },
    Pattern {
        kind: Metric::WrongOrder,
        paradigm: Paradigm::Mpi,
        class: None,
        position: Position::Begin,
        part_of: Some(Metric::LateSender),
        is_balanced_away: false,
        document: "wrong-order",
        source: "Scalasca, Messages in Wrong Order",
    },
    Pattern {
        kind: Metric::WrongOrderDifferent,
        paradigm: Paradigm::Mpi,
        class: None,
        position: Position::Begin,
        part_of: Some(Metric::LateSender),
        is_balanced_away: false,
        document: "wrong-order",
        source: "Scalasca, Messages in Wrong Order",
    },
    Pattern {
        kind: Metric::WrongOrderSame,
        paradigm: Paradigm::Mpi,
        class: None,
        position: Position::Begin,
        part_of: Some(Metric::LateSender),
        is_balanced_away: false,
        document: "wrong-order",
        source: "Scalasca, Messages in Wrong Order",
    },
    Pattern {
        kind: Metric::LateReceiver,
        paradigm: Paradigm::Mpi,
        class: Some(Class::LateReceiver),
        position: Position::Begin,
        part_of: None,
        is_balanced_away: true,
        document: "late-receiver",
        source: "Scalasca, Late Receiver",
    },
    Pattern {
        kind: Metric::WaitAtCreate,
        paradigm: Paradigm::Mpi,
        class: Some(Class::Create),
        position: Position::Begin,
        part_of: None,
        is_balanced_away: true,
        document: "one-sided-collectives",
        source: "thesis, section 3.2",
    },
    Pattern {
        kind: Metric::WaitAtFree,
        paradigm: Paradigm::Mpi,
        class: Some(Class::Free),
        position: Position::Begin,
        part_of: None,
        is_balanced_away: true,
        document: "one-sided-collectives",
        source: "thesis, section 3.2",
    },
    Pattern {
        kind: Metric::WaitAtFence,
        paradigm: Paradigm::Mpi,
        class: Some(Class::Fence),
        position: Position::Begin,
        part_of: None,
        is_balanced_away: true,
        document: "one-sided-collectives",
        source: "thesis, section 3.2, pattern 1",
    },
    Pattern {
        kind: Metric::EarlyFence,
        paradigm: Paradigm::Mpi,
        class: None,
        position: Position::Begin,
        part_of: Some(Metric::WaitAtFence),
        is_balanced_away: false,
        document: "one-sided-collectives",
        source: "thesis, section 3.2, pattern 2",
    },
    Pattern {
        kind: Metric::LatePostSync,
        paradigm: Paradigm::Mpi,
        class: Some(Class::LatePost),
        position: Position::Begin,
        part_of: None,
        is_balanced_away: true,
        document: "one-sided-late-post",
        source: "thesis, section 3.2, pattern 3",
    },
    Pattern {
        kind: Metric::LatePostComm,
        paradigm: Paradigm::Mpi,
        class: Some(Class::LatePost),
        position: Position::Begin,
        part_of: None,
        is_balanced_away: true,
        document: "one-sided-late-post",
        source: "thesis, section 3.2, pattern 3",
    },
    Pattern {
        kind: Metric::EarlyWait,
        paradigm: Paradigm::Mpi,
        class: Some(Class::EarlyWait),
        position: Position::Begin,
        part_of: None,
        is_balanced_away: true,
        document: "one-sided-early-wait",
        source: "thesis, section 3.2, pattern 4",
    },
    Pattern {
        kind: Metric::LateComplete,
        paradigm: Paradigm::Mpi,
        class: None,
        position: Position::EndOfWhole,
        part_of: Some(Metric::EarlyWait),
        is_balanced_away: false,
        document: "one-sided-early-wait",
        source: "thesis, section 3.2, pattern 5",
    },
    Pattern {
        kind: Metric::LockContentionSync,
        paradigm: Paradigm::Mpi,
        class: Some(Class::Lock),
        position: Position::Begin,
        part_of: None,
        is_balanced_away: true,
        document: "one-sided-lock-contention",
        source: "thesis, section 3.2, pattern 7, algorithm 2",
    },
    Pattern {
        kind: Metric::LockContentionComm,
        paradigm: Paradigm::Mpi,
        class: Some(Class::Lock),
        position: Position::Begin,
        part_of: None,
        is_balanced_away: true,
        document: "one-sided-lock-contention",
        source: "thesis, section 3.2, pattern 7, algorithm 2",
    },
    Pattern {
        kind: Metric::ProgressSync,
        paradigm: Paradigm::Mpi,
        class: Some(Class::Progress),
        position: Position::AfterContention,
        part_of: None,
        is_balanced_away: true,
        document: "one-sided-progress",
        source: "thesis, section 3.2, pattern 6, algorithm 1",
    },
    Pattern {
        kind: Metric::ProgressComm,
        paradigm: Paradigm::Mpi,
        class: Some(Class::Progress),
        position: Position::AfterContention,
        part_of: None,
        is_balanced_away: true,
        document: "one-sided-progress",
        source: "thesis, section 3.2, pattern 6, algorithm 1",
    },
    Pattern {
        kind: Metric::ProgressSyncLastCall,
        paradigm: Paradigm::Mpi,
        class: None,
        position: Position::AfterContention,
        part_of: Some(Metric::ProgressSync),
        is_balanced_away: false,
        document: "one-sided-progress",
        source: "thesis, section 3.2, pattern 6",
    },
    Pattern {
        kind: Metric::ProgressCommLastCall,
        paradigm: Paradigm::Mpi,
        class: None,
        position: Position::AfterContention,
        part_of: Some(Metric::ProgressComm),
        is_balanced_away: false,
        document: "one-sided-progress",
        source: "thesis, section 3.2, pattern 6",
    },
    Pattern {
        kind: Metric::ShmemBarrierWait,
        paradigm: Paradigm::Shmem,
        class: Some(Class::Fence),
        position: Position::Begin,
        part_of: None,
        is_balanced_away: true,
        document: "one-sided-shmem",
        source: "thesis, section 3.2",
    },
    Pattern {
        kind: Metric::ShmemLateBroadcast,
        paradigm: Paradigm::Shmem,
        class: Some(Class::Fence),
        position: Position::Begin,
        part_of: None,
        is_balanced_away: true,
        document: "one-sided-shmem",
        source: "thesis, section 3.2",
    },
    Pattern {
        kind: Metric::ShmemWaitNxN,
        paradigm: Paradigm::Shmem,
        class: Some(Class::Fence),
        position: Position::Begin,
        part_of: None,
        is_balanced_away: true,
        document: "one-sided-shmem",
        source: "thesis, section 3.2",
    },
    Pattern {
        kind: Metric::ShmemWaitAtCreate,
        paradigm: Paradigm::Shmem,
        class: Some(Class::Create),
        position: Position::Begin,
        part_of: None,
        is_balanced_away: true,
        document: "one-sided-shmem",
        source: "thesis, section 3.2",
    },
    Pattern {
        kind: Metric::ShmemWaitAtFree,
        paradigm: Paradigm::Shmem,
        class: Some(Class::Free),
        position: Position::Begin,
        part_of: None,
        is_balanced_away: true,
        document: "one-sided-shmem",
        source: "thesis, section 3.2",
    },
    Pattern {
        kind: Metric::ShmemLockContentionSync,
        paradigm: Paradigm::Shmem,
        class: Some(Class::Lock),
        position: Position::Begin,
        part_of: None,
        is_balanced_away: true,
        document: "one-sided-shmem",
        source: "thesis, section 3.2, pattern 7, algorithm 2",
    },
    Pattern {
        kind: Metric::ShmemLockContentionComm,
        paradigm: Paradigm::Shmem,
        class: Some(Class::Lock),
        position: Position::Begin,
        part_of: None,
        is_balanced_away: true,
        document: "one-sided-shmem",
        source: "thesis, section 3.2, pattern 7, algorithm 2",
    },
    Pattern {
        kind: Metric::ShmemProgressSync,
        paradigm: Paradigm::Shmem,
        class: Some(Class::Progress),
        position: Position::AfterContention,
        part_of: None,
        is_balanced_away: true,
        document: "one-sided-shmem",
        source: "thesis, section 3.2, pattern 6, algorithm 1",
    },
    Pattern {
        kind: Metric::ShmemProgressComm,
        paradigm: Paradigm::Shmem,
        class: Some(Class::Progress),
        position: Position::AfterContention,
        part_of: None,
        is_balanced_away: true,
        document: "one-sided-shmem",
        source: "thesis, section 3.2, pattern 6, algorithm 1",
    },
    Pattern {
        kind: Metric::ShmemProgressSyncLastCall,
        paradigm: Paradigm::Shmem,
        class: None,
        position: Position::AfterContention,
        part_of: Some(Metric::ShmemProgressSync),
        is_balanced_away: false,
        document: "one-sided-shmem",
        source: "thesis, section 3.2, pattern 6",
    },
    Pattern {
        kind: Metric::ShmemProgressCommLastCall,
        paradigm: Paradigm::Shmem,
        class: None,
        position: Position::AfterContention,
        part_of: Some(Metric::ShmemProgressComm),
        is_balanced_away: false,
        document: "one-sided-shmem",
        source: "thesis, section 3.2, pattern 6",
    },
    Pattern {
        kind: Metric::ArmciBarrierWait,
        paradigm: Paradigm::Armci,
        class: Some(Class::Fence),
        position: Position::Begin,
        part_of: None,
        is_balanced_away: true,
        document: "one-sided-armci",
        source: "thesis, section 3.2",
    },
    Pattern {
        kind: Metric::ArmciLateBroadcast,
        paradigm: Paradigm::Armci,
        class: Some(Class::Fence),
        position: Position::Begin,
        part_of: None,
        is_balanced_away: true,
        document: "one-sided-armci",
        source: "thesis, section 3.2",
    },
    Pattern {
        kind: Metric::ArmciWaitNxN,
        paradigm: Paradigm::Armci,
        class: Some(Class::Fence),
        position: Position::Begin,
        part_of: None,
        is_balanced_away: true,
        document: "one-sided-armci",
        source: "thesis, section 3.2",
    },
    Pattern {
        kind: Metric::ArmciWaitAtCreate,
        paradigm: Paradigm::Armci,
        class: Some(Class::Create),
        position: Position::Begin,
        part_of: None,
        is_balanced_away: true,
        document: "one-sided-armci",
        source: "thesis, section 3.2",
    },
    Pattern {
        kind: Metric::ArmciWaitAtFree,
        paradigm: Paradigm::Armci,
        class: Some(Class::Free),
        position: Position::Begin,
        part_of: None,
        is_balanced_away: true,
        document: "one-sided-armci",
        source: "thesis, section 3.2",
    },
    Pattern {
        kind: Metric::ArmciLockContentionSync,
        paradigm: Paradigm::Armci,
        class: Some(Class::Lock),
        position: Position::Begin,
        part_of: None,
        is_balanced_away: true,
        document: "one-sided-armci",
        source: "thesis, section 3.2, pattern 7, algorithm 2",
    },
    Pattern {
        kind: Metric::ArmciLockContentionComm,
        paradigm: Paradigm::Armci,
        class: Some(Class::Lock),
        position: Position::Begin,
        part_of: None,
        is_balanced_away: true,
        document: "one-sided-armci",
        source: "thesis, section 3.2, pattern 7, algorithm 2",
    },
    Pattern {
        kind: Metric::ArmciProgressSync,
        paradigm: Paradigm::Armci,
        class: Some(Class::Progress),
        position: Position::AfterContention,
        part_of: None,
        is_balanced_away: true,
        document: "one-sided-armci",
        source: "thesis, section 3.2, pattern 6, algorithm 1",
    },
    Pattern {
        kind: Metric::ArmciProgressComm,
        paradigm: Paradigm::Armci,
        class: Some(Class::Progress),
        position: Position::AfterContention,
        part_of: None,
        is_balanced_away: true,
        document: "one-sided-armci",
        source: "thesis, section 3.2, pattern 6, algorithm 1",
    },
    Pattern {
        kind: Metric::ArmciProgressSyncLastCall,
        paradigm: Paradigm::Armci,
        class: None,
        position: Position::AfterContention,
        part_of: Some(Metric::ArmciProgressSync),
        is_balanced_away: false,
        document: "one-sided-armci",
        source: "thesis, section 3.2, pattern 6",
    },
    Pattern {
        kind: Metric::ArmciProgressCommLastCall,
        paradigm: Paradigm::Armci,
        class: None,
        position: Position::AfterContention,
        part_of: Some(Metric::ArmciProgressComm),
        is_balanced_away: false,
        document: "one-sided-armci",
        source: "thesis, section 3.2, pattern 6",
    },
    Pattern {
        kind: Metric::ShmemWaitUntil,
        paradigm: Paradigm::Shmem,
        class: Some(Class::EarlyWait),
        position: Position::Begin,
        part_of: None,
        is_balanced_away: true,
        document: "one-sided-shmem",
        source: "thesis, section 3.1.3",
    },
    Pattern {
        kind: Metric::ArmciWaitUntil,
        paradigm: Paradigm::Armci,
        class: Some(Class::EarlyWait),
        position: Position::Begin,
        part_of: None,
        is_balanced_away: true,
        document: "one-sided-notifications",
        source: "thesis, section 3.1",
    },
    Pattern {
        kind: Metric::OmpExplicitBarrierWait,
        paradigm: Paradigm::OpenMp,
        class: Some(Class::OmpBarrier),
        position: Position::Begin,
        part_of: None,
        is_balanced_away: true,
        document: "openmp",
        source: "Scalasca, Wait at Barrier of OpenMP",
    },
    Pattern {
        kind: Metric::OmpImplicitBarrierWait,
        paradigm: Paradigm::OpenMp,
        class: Some(Class::OmpBarrier),
        position: Position::Begin,
        part_of: None,
        is_balanced_away: true,
        document: "openmp",
        source: "Scalasca, Wait at Barrier of OpenMP",
    },
    Pattern {
        kind: Metric::OmpCriticalContention,
        paradigm: Paradigm::OpenMp,
        class: None,
        position: Position::Begin,
        part_of: None,
        is_balanced_away: true,
        document: "openmp",
        source: "Scalasca, Lock Contention of OpenMP",
    },
    Pattern {
        kind: Metric::OmpLockContention,
        paradigm: Paradigm::OpenMp,
        class: None,
        position: Position::Begin,
        part_of: None,
        is_balanced_away: true,
        document: "openmp",
        source: "Scalasca, Lock Contention of OpenMP",
    },
    Pattern {
        kind: Metric::MutexContention,
        paradigm: Paradigm::Pthread,
        class: None,
        position: Position::Begin,
        part_of: None,
        is_balanced_away: false,
        document: "openmp",
        source: "Scalasca, Lock Contention of POSIX threads",
    },
    Pattern {
        kind: Metric::ConditionContention,
        paradigm: Paradigm::Pthread,
        class: None,
        position: Position::Begin,
        part_of: None,
        is_balanced_away: false,
        document: "openmp",
        source: "Scalasca, Lock Contention of POSIX threads",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_metric_has_one_pattern_and_no_part_is_charged() {
        for pattern in Pattern::ALL {
            let rows = Pattern::ALL.iter().filter(|other| other.kind == pattern.kind).count();
            assert_eq!((rows, Pattern::of(pattern.kind).unwrap().source), (1, pattern.source), "{:?}", pattern.kind);
            if let Some(whole) = pattern.part_of.and_then(Pattern::of) {
                assert!(pattern.class.is_none() && whole.part_of.is_none(), "{:?}", pattern.kind);
                assert_eq!(pattern.paradigm, whole.paradigm);
            }
        }
        assert!(Pattern::of(Metric::Visits).is_none());
    }
}
