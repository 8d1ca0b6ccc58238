//! Patterns: every wait state that the analysis looks for.
//!
//! Each is one row in [`super::rows`]. A new wait state needs a row there, a detector in `waits`, and a document in
//! `tests/patterns`, which is both its specification and its test.

use super::{Class, Metric};

named! {
    /// A programming model in whose calls a location can wait.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Paradigm {
        /// The Message Passing Interface.
        Mpi = "MPI",
        /// OpenSHMEM.
        Shmem = "SHMEM",
        /// The Aggregate Remote Memory Copy Interface.
        Armci = "ARMCI",
        /// GASPI and UPC.
        Pgas = "PGAS",
        /// OpenMP.
        OpenMp = "OPENMP",
        /// POSIX threads.
        Pthread = "PTHREAD",
        /// Accelerators: CUDA, HIP, `OpenCL`, `OpenACC`.
        Gpu = "GPU",
        /// Communication of devices: NCCL, RCCL.
        Ccl = "CCL",
    }
}

impl Paradigm {
    /// The one in whose calls a wait state occurs, which the name of its metric begins with.
    fn of(kind: Metric) -> Self {
        match kind.name().split_once('_').map_or("", |(prefix, _)| prefix) {
            "mpi" => Self::Mpi,
            "shmem" => Self::Shmem,
            "armci" => Self::Armci,
            "pgas" => Self::Pgas,
            "omp" => Self::OpenMp,
            "pthread" => Self::Pthread,
            "gpu" => Self::Gpu,
            "ccl" => Self::Ccl,
            _ => unreachable!("{} has no paradigm", kind.name()),
        }
    }
}

/// Where a wait lies in its call, or before its kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// It begins with the call.
    Begin,
    /// It begins with the begin record of the collective operation in the call.
    BeginRecord,
    /// It ends with the call.
    End,
    /// It is assumed to end with the call, like completion, but is waiting.
    BeforeEnd,
    /// It ends with the end record of the collective operation in the call.
    EndRecord,
    /// It ends with the wait that it is a part of.
    EndOfWhole,
    /// It begins with the call, or with the release of a lock if the call waited for one first.
    AfterContention,
    /// It ends before the kernel begins.
    Ahead,
    /// It ends before the latency of the kernel begins.
    AheadOfLatency,
    /// It lies in the wait that it is a part of, and is assumed to begin with it.
    BeginOfWhole,
    /// After the wait for a late sender in the same call.
    AfterSenders,
    /// After the waits for messages in the same call.
    AfterMessages,
}

impl Position {
    /// Whether it is completion: the time of an operation after all processes have arrived.
    pub fn is_completion(self) -> bool {
        matches!(self, Self::End | Self::EndRecord)
    }

    /// Whether it lies where its location runs nothing, and so is not part of the metric time.
    pub fn is_idle(self) -> bool {
        matches!(self, Self::Ahead | Self::AheadOfLatency | Self::BeginOfWhole)
    }
}

/// A wait state that the analysis looks for.
#[derive(Clone, Copy, Debug)]
pub struct Pattern {
    /// Its metric, which has the same name.
    pub kind: Metric,
    /// Display name, shown below its parent in the metric tree.
    pub display_name: &'static str,
    /// Its parent in the metric tree, by unique name.
    pub below: &'static str,
    /// The end of "8 ranks wait 459 ms in `MPI_Waitall` ..."; empty for parts and bounds.
    pub waits_for: &'static str,
    /// Where to look for the reason, in sentences; empty for parts and bounds.
    pub look_at: &'static str,
    /// Class of its costs; `None` if it has none.
    pub class: Option<Class>,
    /// Where in its call it lies.
    pub position: Position,
    /// The wait state that it is a part or another bound of; it does not count in addition.
    pub part_of: Option<Metric>,
    /// Whether it is another bound rather than a part.
    pub is_bound: bool,
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

    /// The pattern of a metric.
    pub fn of(kind: Metric) -> Option<&'static Self> {
        PATTERNS.get(usize::from(ROW[kind as usize]))
    }

    /// In whose calls it occurs.
    pub fn paradigm(&self) -> Paradigm {
        Paradigm::of(self.kind)
    }

    /// Whether a device waits for another one.
    pub fn is_of_devices(&self) -> bool {
        self.class == Some(Class::Ccl)
    }

    /// The cost class of a wait state; `None` for parts of other wait states, for completion, and for waits without
    /// costs.
    pub fn class_of(kind: Metric) -> Option<Class> {
        Self::of(kind).and_then(|pattern| pattern.class)
    }
}

/// For each metric the index of its pattern, or the number of patterns if it has none.
const ROW: [u8; super::metrics::COUNT] = {
    let mut row = [u8::MAX; super::metrics::COUNT];
    let mut i = 0;
    while i < PATTERNS.len() {
        row[PATTERNS[i].kind as usize] = i as u8;
        i += 1;
    }
    row
};

/// Defaults of a wait state that counts by itself, begins with its call, and vanishes in a balanced run.
const WAIT: Pattern = Pattern {
    kind: Metric::Time,
    display_name: "",
    below: "",
    waits_for: "",
    look_at: "",
    class: None,
    position: Position::Begin,
    part_of: None,
    is_bound: false,
    is_balanced_away: true,
    document: "",
    source: "",
};

/// Defaults of a part of a wait state.
const PART: Pattern = Pattern { is_balanced_away: false, ..WAIT };

/// Defaults of another bound of a wait state.
const BOUND: Pattern = Pattern { is_bound: true, ..PART };

/// Defaults of a wait of a kernel for other devices.
const CCL: Pattern = Pattern {
    below: "ccl",
    class: Some(Class::Ccl),
    document: "device-collectives",
    source: "specification.md#device-collectives",
    ..WAIT
};

// Hints that several patterns share.
const LAST_ONE: &str =
    "What keeps the last process busy before this call: more work than the others have, or waiting of its own.";
const LAST_DEVICE: &str = "What keeps the last device from beginning: its kernels, or its host, which launches late.";
const BUSY_TARGET: &str = "What the target computes meanwhile: it gives the library no chance to make progress.";
const HELD_LOCK: &str = "How long the lock is held, and how many processes want the same one at the same time.";
const LATE_TARGET: &str = "What the target does before it posts its window.";

/// Declares the patterns of the rows that are wait states.
macro_rules! patterns_of_rows {
    ([] $($(#[doc = $doc:expr])+ $variant:ident = $name:tt $(in $unit:ident)? $({ $($field:tt)* })?,)+) => {
        const PATTERNS: &[Pattern] = &[$($(Pattern { kind: Metric::$variant, $($field)* },)?)+];
    };
}

with_rows!(patterns_of_rows);

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
                assert_eq!(pattern.paradigm(), whole.paradigm());
            }
        }
        assert!(Pattern::of(Metric::Visits).is_none());
    }

    #[test]
    fn rows_are_complete() {
        for pattern in Pattern::ALL {
            let Pattern { kind, display_name, below, waits_for, look_at, document, source, .. } = pattern;
            assert!(![*display_name, *below, *document, *source].contains(&""), "{kind:?}");
            assert_eq!([waits_for.is_empty(), look_at.is_empty()], [pattern.part_of.is_some(); 2], "{kind:?}");
            assert!(kind.description().ends_with('.') && !kind.description().starts_with(' '), "{kind:?}");
        }
    }
}
