//! What is kept of the rows of a report. Times are those of its session, ns.

use std::cmp::Reverse;
use std::num::NonZeroU64;

use whywait_devices::{Copy, Kind as Operation, Spanning};
use whywait_otf2::Numbered;

use crate::constructs::Construct;

/// Where a span is from: of two that are equal, the earlier kind is around the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    /// A range of the program that nests in its thread.
    Range,
    /// A range that begins and ends at any place.
    LooseRange,
    /// A range of NCCL around a call.
    Nccl,
    /// A construct of OpenMP.
    OpenMp(Construct),
    /// A construct of `OpenACC`.
    OpenAcc,
    /// A call of MPI.
    Mpi,
    /// A call of the runtime of CUDA.
    Runtime,
    /// A call of the driver, possibly within one of the runtime.
    Driver,
    /// A long call of the operating system.
    System,
    /// A call of UCX.
    Ucx,
    /// The profiler's own.
    Overhead,
}

/// A span of a thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    pub(crate) begin: i64,
    pub(crate) end: i64,
    /// What else is known, by its kind: the correlation of a call of CUDA, the place of an operation of NCCL in `operations`, the
    /// number of a call of MPI, the team of a parallel region, a task, or what happens to a lock.
    pub(crate) detail: u64,
    pub(crate) name: u32,
    pub(crate) kind: Kind,
}

/// No detail.
pub(crate) const NO_DETAIL: u64 = u64::MAX;

impl Spanning for Span {
    fn begin(&self) -> i64 {
        self.begin
    }

    fn end(&self) -> i64 {
        self.end
    }

    fn is_overhead(&self) -> bool {
        self.kind == Kind::Overhead
    }
}

/// What a stream does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Task {
    Kernel,
    /// A whole graph, whose kernels are not recorded.
    Graph,
    Copy(Copy),
    Memset,
}

/// A stream: device, context, and its own number.
pub(crate) type StreamKey = (i64, i64, i64);

/// Work on a stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Work {
    pub(crate) begin: i64,
    pub(crate) end: i64,
    pub(crate) correlation: Option<NonZeroU64>,
    /// Its stream, in the streams of its process.
    pub(crate) stream: u32,
    pub(crate) name: u32,
    /// What launched it, in the launches of its process, or none of these.
    pub(crate) launch: u32,
    pub(crate) task: Task,
    /// The operation that it is a part of, if it communicates.
    pub(crate) operation: Option<Operation>,
}

/// What a synchronization waits for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sync {
    pub(crate) correlation: u64,
    pub(crate) device: i64,
    pub(crate) stream: Option<i64>,
    pub(crate) event: Option<i64>,
    /// What identifies the record of the event, if the version knows.
    pub(crate) record: Option<i64>,
}

/// The record of an event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventRecord {
    pub(crate) correlation: u64,
    pub(crate) device: i64,
    pub(crate) stream: i64,
    pub(crate) event: Option<i64>,
    pub(crate) record: Option<i64>,
}

/// A value that a row of MPI does not have.
pub(crate) const ABSENT: i64 = i64::MIN;

/// Which table a row of MPI is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MpiTable {
    PointToPoint,
    Collective,
    /// Starts and completions: one row for each request of a call.
    Requests,
    Other,
}

/// A row of a table of MPI; values are [`ABSENT`] where they are null, or where the table has none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MpiRow {
    pub(crate) begin: i64,
    pub(crate) end: i64,
    /// Its thread in the operating system.
    pub(crate) thread: u32,
    pub(crate) comm: i64,
    /// What identifies the communicator on all ranks, if the version knows.
    pub(crate) comm_uid: i64,
    /// The partner's rank, or that of the root.
    pub(crate) peer: i64,
    pub(crate) tag: i64,
    pub(crate) size: i64,
    pub(crate) received: i64,
    pub(crate) request: i64,
    pub(crate) name: u32,
    pub(crate) table: MpiTable,
}

/// A row of a table of OpenMP.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenMpRow {
    pub(crate) begin: i64,
    pub(crate) end: i64,
    /// Its thread in the operating system.
    pub(crate) thread: i64,
    /// The number of the parallel region, or [`ABSENT`].
    pub(crate) parallel: i64,
    /// The number of the task, of the one that a thread switches to, or of what is waited for, or [`ABSENT`].
    pub(crate) object: i64,
    /// The number of the task that is complete where a thread switches to another one, or [`ABSENT`].
    pub(crate) completed: i64,
    pub(crate) name: u32,
    pub(crate) construct: Construct,
}

/// A communicator as one of its ranks knows it.
#[derive(Debug, Clone)]
pub(crate) struct CommRow {
    /// The own rank, in the world and in the communicator.
    pub(crate) rank: i64,
    pub(crate) local_rank: i64,
    /// When it was made.
    pub(crate) time: i64,
    pub(crate) handle: i64,
    pub(crate) size: i64,
    /// Who made it, and its number there.
    pub(crate) root: i64,
    pub(crate) root_uid: i64,
    pub(crate) uid: i64,
    pub(crate) members: Vec<i64>,
}

/// A thread of a process.
#[derive(Debug, Default)]
pub(crate) struct ThreadRows {
    /// Its number in the operating system.
    pub(crate) id: i64,
    pub(crate) name: String,
    pub(crate) spans: Vec<Span>,
    /// Number of calls of MPI, and whether it began MPI.
    pub(crate) mpi_calls: u64,
    pub(crate) begins_mpi: bool,
    /// The end of the last of what is no span yet: calls of MPI and constructs of OpenMP.
    pub(crate) until: i64,
    /// Number of parallel regions that it forks.
    pub(crate) forks: u64,
    /// When it was looked at, and the numbers of these samples.
    pub(crate) samples: Vec<(i64, i64)>,
    /// When it gets a core, or loses it.
    pub(crate) switches: Vec<(i64, bool)>,
}

impl ThreadRows {
    /// Brings spans in order: those around others come first.
    pub(crate) fn sort(&mut self) {
        self.spans.sort_by_key(|span| (span.begin, Reverse(span.end), span.kind, span.name, span.detail));
    }

    /// Whether it does more than wait in calls of the operating system.
    pub(crate) fn is_of_program(&self) -> bool {
        self.spans.iter().any(|span| !matches!(span.kind, Kind::System | Kind::Overhead))
    }
}

/// A process of the operating system.
#[derive(Debug, Default)]
pub(crate) struct ProcessRows {
    /// Its rank in MPI.
    pub(crate) rank: Option<u32>,
    pub(crate) threads: Vec<ThreadRows>,
    /// Calls of MPI.
    pub(crate) mpi: Vec<MpiRow>,
    /// Constructs of OpenMP.
    pub(crate) openmp: Vec<OpenMpRow>,
    pub(crate) works: Vec<Work>,
    /// Streams of its works, each once.
    pub(crate) streams: Numbered<StreamKey>,
    pub(crate) syncs: Vec<Sync>,
    pub(crate) events: Vec<EventRecord>,
    /// What NCCL says of its calls.
    pub(crate) operations: Vec<crate::payload::Payload>,
    /// Operations of NCCL that say nothing of their communicators.
    pub(crate) unsaid: u64,
}

impl ProcessRows {
    /// Whether it is a part of the program, rather than what launched it.
    pub(crate) fn is_of_program(&self) -> bool {
        let has_work = !self.mpi.is_empty() || !self.openmp.is_empty() || !self.works.is_empty();
        self.rank.is_some() || has_work || self.threads.iter().any(ThreadRows::is_of_program)
    }
}
