//! Inconsistencies of a trace, counted by kind, with examples of where they occur.

use std::collections::BTreeMap;

use bitcode::{Decode, Encode};

use crate::ids::LocationId;

/// Kinds of inconsistencies, in the order in which they are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
pub enum DiagnosticKind {
    /// The end of an event file is missing.
    Truncated,
    /// An event file cannot be read at all.
    Unreadable,
    /// A time stamp lies outside of the run.
    ImpossibleTime,
    /// Time runs backwards within a location.
    TimeBackwards,
    /// A region is left that was not entered.
    LeaveWithoutEnter,
    /// A region is never left.
    NeverLeft,
    /// A communication record outside of any region.
    OutsideRegion,
    /// An event names a communicator or window that is not defined, or whose members are unknown.
    UnknownCommunicator,
    /// An event names a rank that its communicator does not have.
    UnknownPeer,
    /// A request is completed that was never started, or a lock released that was never acquired.
    UnknownRequest,
    /// A request is never completed.
    PendingRequest,
    /// Late Receivers in calls that complete non-blocking sends by inference.
    InferredCompletion,
    /// A message was sent and never received.
    UnmatchedSend,
    /// A message was received and never sent, or more were received than sent.
    UnmatchedReceive,
    /// A collective operation in which not every member took part.
    IncompleteCollective,
    /// Members of a communicator called different operations.
    MixedCollective,
    /// A message was received before it was sent.
    ClockViolationMessage,
    /// A rank left a collective operation before the last one entered.
    ClockViolationCollective,
    /// A kernel ended after the call that awaits it, or began before its launch.
    ClockViolationDevice,
    /// A record of a device from before its process ran.
    DeviceTime,
    /// A kernel ran without a launch.
    KernelWithoutLaunch,
    /// A kernel was launched and never run.
    LaunchWithoutKernel,
    /// MPI calls on threads other than the master thread.
    MpiOnThread,
    /// Operations on files that end without a begin.
    UnknownIo,
    /// Operations on files that never end.
    PendingIo,
    /// Records about a file whose handle is not defined.
    UnknownFile,
    /// Collective operations over two groups, which are counted but not analyzed for waiting.
    InterCommunicatorCollective,
    /// Non-blocking collective operations, which are not analyzed.
    NonBlockingCollective,
    /// Calls of neighbors in a topology that is not known.
    UnknownNeighbors,
    /// Thread team parts that cannot be assigned to a fork.
    UnknownTeam,
    /// Barriers between threads whose team is not recorded.
    BarrierWithoutTeam,
    /// Tasks whose creation is not recorded.
    UnknownTask,
    /// Tasks that never run, or never complete.
    OpenTask,
    /// Acquisitions of a lock by threads in an unknown order.
    LockOrder,
    /// A lock of threads is acquired and never released, or released and never acquired.
    OpenLock,
    /// Threads whose creation, begin or end is not recorded.
    ThreadLife,
    /// Waits for a condition variable to which no signal fits.
    NoSignal,
    /// Barriers of threads that no other thread was in at the same time.
    LoneBarrier,
    /// Lock epochs that were never closed.
    OpenEpoch,
    /// An `unlock_all` after no operation, on a window with exclusive locks: the trace does not record which locks it
    /// releases.
    UnknownTargets,
    /// Records of one-sided communication in calls of no known library.
    ForeignOneSided,
    /// Waits that cause each other.
    CircularWaits,
    /// Recursive calls that count as part of an outer call of the same function.
    FoldedRecursion,
    /// Locations that are neither CPU threads nor streams of accelerators.
    NotAThread,
    /// Records of unknown kinds.
    UnknownRecord,
    /// Metric records whose class is not defined, or that do not match it.
    Metric,
    /// Enters or Leaves without a sample of a counter that has one at each.
    MetricMissing,
    /// Values of counters that are not numbers.
    MetricNotANumber,
    /// Counters that were reset.
    MetricReset,
    /// Counters that are defined as totals but decrease.
    MetricMode,
    /// Counters with inconsistent definitions.
    MetricDefinition,
}

impl DiagnosticKind {
    /// Short name, stable, for programs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::Unreadable => "unreadable",
            Self::ImpossibleTime => "impossible_time",
            Self::TimeBackwards => "time_backwards",
            Self::LeaveWithoutEnter => "leave_without_enter",
            Self::NeverLeft => "never_left",
            Self::OutsideRegion => "outside_region",
            Self::UnknownCommunicator => "unknown_communicator",
            Self::UnknownPeer => "unknown_peer",
            Self::UnknownRequest => "unknown_request",
            Self::PendingRequest => "pending_request",
            Self::InferredCompletion => "inferred_completion",
            Self::UnmatchedSend => "unmatched_send",
            Self::UnmatchedReceive => "unmatched_receive",
            Self::IncompleteCollective => "incomplete_collective",
            Self::MixedCollective => "mixed_collective",
            Self::ClockViolationMessage => "clock_violation_p2p",
            Self::ClockViolationCollective => "clock_violation_coll",
            Self::ClockViolationDevice => "clock_device",
            Self::DeviceTime => "device_time",
            Self::KernelWithoutLaunch => "kernel_without_launch",
            Self::LaunchWithoutKernel => "launch_without_kernel",
            Self::MpiOnThread => "mpi_on_thread",
            Self::UnknownIo => "unknown_io",
            Self::PendingIo => "pending_io",
            Self::UnknownFile => "unknown_file",
            Self::InterCommunicatorCollective => "intercommunicator_collective",
            Self::NonBlockingCollective => "nonblocking_collective",
            Self::UnknownNeighbors => "unknown_neighbors",
            Self::UnknownTeam => "unknown_team",
            Self::BarrierWithoutTeam => "barrier_without_team",
            Self::UnknownTask => "unknown_task",
            Self::OpenTask => "open_task",
            Self::LockOrder => "lock_order",
            Self::OpenLock => "open_lock",
            Self::ThreadLife => "thread_life",
            Self::NoSignal => "no_signal",
            Self::LoneBarrier => "lone_barrier",
            Self::OpenEpoch => "open_epoch",
            Self::UnknownTargets => "unknown_targets",
            Self::ForeignOneSided => "foreign_one_sided",
            Self::CircularWaits => "circular_waits",
            Self::FoldedRecursion => "folded_recursion",
            Self::NotAThread => "not_a_thread",
            Self::UnknownRecord => "unknown_record",
            Self::Metric => "metric",
            Self::MetricMissing => "metric_missing",
            Self::MetricNotANumber => "metric_not_a_number",
            Self::MetricReset => "metric_reset",
            Self::MetricMode => "metric_mode",
            Self::MetricDefinition => "metric_definition",
        }
    }

    /// What it means, and its consequences for the result.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Truncated => "event files end early; everything up to that point is analyzed",
            Self::Unreadable => "event files cannot be read; their locations are skipped",
            Self::ImpossibleTime => {
                "time stamps lie outside the run; they are set to the previous time stamp, \
                 and later events keep theirs"
            }
            Self::TimeBackwards => {
                "time stamps run backwards within a location; they are set to the previous time stamp"
            }
            Self::LeaveWithoutEnter => "regions are left that were never entered; these records are skipped",
            Self::NeverLeft => {
                "regions are never left; they are assumed to end with the region around them, \
                 or with the last event of the location"
            }
            Self::OutsideRegion => "communication records outside of any region are skipped",
            Self::UnknownCommunicator => "records that name communicators or windows without known members are skipped",
            Self::UnknownPeer => "records that name ranks outside their communicator are skipped",
            Self::UnknownRequest => "requests are completed, or locks released, that were never started",
            Self::PendingRequest => "requests are never completed",
            Self::InferredCompletion => {
                "waits for late receivers are in calls that complete non-blocking sends, and which sends these are is not \
                 recorded but inferred from their order"
            }
            Self::UnmatchedSend => "messages were sent but, according to the trace, never received",
            Self::UnmatchedReceive => {
                "messages were received that, according to the trace, were never sent; because it is unclear which, \
                 all messages of their channel are excluded from the waiting times"
            }
            Self::IncompleteCollective => "collective operations lack members; their waiting times are not computed",
            Self::MixedCollective => {
                "members of a communicator called different operations at the same position; \
                 their waiting times are not computed"
            }
            Self::ClockViolationMessage => {
                "messages were received before they were sent: the clocks of the processes differ; \
                 waiting times are cut off at the end of the call"
            }
            Self::ClockViolationCollective => {
                "ranks left a collective operation before the last one entered: the clocks of the processes differ; \
                 waiting times are cut off at the end of the call"
            }
            Self::ClockViolationDevice => {
                "kernels end after the call that awaits them, or begin before the call that launches them: \
                 the clocks of the devices differ; waiting times are cut off at the end of the call"
            }
            Self::DeviceTime => {
                "records of devices lie outside the run (such as those with time 0); these kernels and copies are left out"
            }
            Self::KernelWithoutLaunch => {
                "kernels ran that, according to the trace, were never launched; they do not count as starving their device"
            }
            Self::LaunchWithoutKernel => "kernels were launched but, according to the trace, never ran",
            Self::MpiOnThread => {
                "MPI was called on threads other than the master thread; \
                 messages of a process are matched in order of time over all of its threads"
            }
            Self::UnknownIo => "operations on files end that never began; these records are skipped",
            Self::PendingIo => "operations on files never end; they are counted without time and bytes",
            Self::UnknownFile => "handles of files are not defined; their operations are counted without a file",
            Self::InterCommunicatorCollective => {
                "collective operations on intercommunicators are counted, but their waiting times are not computed"
            }
            Self::NonBlockingCollective => {
                "nonblocking collective operations with unknown dependencies (alltoallv, alltoallw, neighborhoods) are not \
                 analyzed for waiting"
            }
            Self::UnknownNeighbors => {
                "calls of collective operations of neighbors (MPI_Neighbor_...) are not analyzed for waiting: they have no \
                 records, and no Cartesian topology tells who their neighbors are"
            }
            Self::UnknownTeam => "threads work in teams without a fork; their management time is not computed",
            Self::BarrierWithoutTeam => {
                "barriers of threads lack the records of their team (ThreadFork, ThreadTeamBegin); \
                 waiting in them is not computed"
            }
            Self::LockOrder => {
                "threads acquire locks in an order that is not recorded, or that has gaps; it is inferred from the times of \
                 acquisition, and nobody is known to have waited after a gap"
            }
            Self::OpenLock => "locks of threads are acquired and never released, or the other way round",
            Self::UnknownTask => {
                "tasks run whose creation is not recorded; their calls are below those of the thread that runs them"
            }
            Self::OpenTask => {
                "tasks are created and never complete; they end with what they last ran, and nobody waits for those that \
                 never run"
            }
            Self::ThreadLife => {
                "threads lack the record of their creation, begin or end, and do not synchronize with the thread that \
                 creates or joins them, or they have it twice (as two threads that join one), and the earlier one counts"
            }
            Self::NoSignal => {
                "threads wait for condition variables, but no signal that is recorded can have woken them; \
                 this waiting is unattributed"
            }
            Self::LoneBarrier => "threads pass barriers of POSIX threads alone; waiting in them is not computed",
            Self::OpenEpoch => "epochs of one-sided communication are never closed; no waiting is detected in them",
            Self::UnknownTargets => {
                "calls unlock or complete one-sided communication with all processes of a window, but the trace does not \
                 show which took part; their waiting times are not computed"
            }
            Self::ForeignOneSided => {
                "records of one-sided communication lie in calls of no library that whywait knows; \
                 waiting for them is not seen"
            }
            Self::CircularWaits => {
                "waits cause each other in a circle because the clocks of the processes differ; \
                 what the latest of them caused is not propagated completely: the rest is unattributed"
            }
            Self::FoldedRecursion => {
                "recursive calls are folded, as asked for or beyond 256 levels: \
                 their time and visits are those of the outer call of the same function"
            }
            Self::NotAThread => "locations are neither threads nor device streams; they have only a profile",
            Self::UnknownRecord => "records of an unknown kind are skipped",
            Self::Metric => "metric records without a matching definition are skipped",
            Self::MetricMissing => {
                "strict counters lack samples at some Enters and Leaves; their increments are distributed by time until \
                 the next sample"
            }
            Self::MetricNotANumber => "counter values that are not finite numbers are skipped",
            Self::MetricReset => "counters decrease, as if they were reset; such a step counts as 0",
            Self::MetricMode => {
                "counters that are declared totals decrease; they are treated as levels at their samples"
            }
            Self::MetricDefinition => "definitions of counters are odd",
        }
    }
}

/// Where something was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Place {
    /// The location.
    pub location: LocationId,
    /// Time in ticks, if it has one.
    pub time: Option<i64>,
}

impl Place {
    /// A place at a time in ticks; `i64::MIN`, which is that of a location without events, is none.
    #[must_use]
    pub fn at(location: LocationId, time: i64) -> Self {
        Self { location, time: (time != i64::MIN).then_some(time) }
    }
}

/// One occurrence: its place, and the reader's message, if any.
#[derive(Clone, Debug, Encode, Decode)]
pub struct Occurrence {
    /// Its place.
    pub place: Place,
    /// The reader's message, if any.
    pub detail: Option<String>,
}

/// Occurrences of one kind.
#[derive(Clone, Debug, Default, Encode, Decode)]
pub struct Diagnostic {
    /// Number of occurrences.
    pub count: u64,
    /// Ticks of the result that rest on an assumption because of them.
    pub assumed: i64,
    /// The first of them, at most [`Diagnostics::KEPT`].
    pub occurrences: Vec<Occurrence>,
}

/// All inconsistencies of a shard or a run.
#[derive(Clone, Debug, Default, Encode, Decode)]
pub struct Diagnostics(BTreeMap<DiagnosticKind, Diagnostic>);

impl Diagnostics {
    /// Number of places of a kind that are kept; further ones are only counted.
    pub const KEPT: usize = 10_000;

    /// Counts one occurrence.
    pub fn add(&mut self, kind: DiagnosticKind, location: LocationId, time: i64) {
        self.count(kind, 1, Some(Place::at(location, time)));
    }

    /// Counts several occurrences at one place.
    pub fn count(&mut self, kind: DiagnosticKind, count: u64, place: Option<Place>) {
        self.keep(kind, count, place.map(|place| Occurrence { place, detail: None }));
    }

    /// Adds time that rests on the assumption that a kind states.
    pub fn assume(&mut self, kind: DiagnosticKind, ticks: i64) {
        let note = self.0.entry(kind).or_default();
        note.assumed = note.assumed.saturating_add(ticks);
    }

    /// The message of the first occurrence with one.
    #[must_use]
    pub fn first_detail(&self, kind: DiagnosticKind) -> Option<&str> {
        self.0.get(&kind)?.occurrences.iter().find_map(|occurrence| occurrence.detail.as_deref())
    }

    /// Counts one occurrence with a message.
    pub fn explain(&mut self, kind: DiagnosticKind, place: Place, detail: String) {
        self.keep(kind, 1, Some(Occurrence { place, detail: Some(detail) }));
    }

    fn keep(&mut self, kind: DiagnosticKind, count: u64, occurrence: Option<Occurrence>) {
        if count > 0 {
            let note = self.0.entry(kind).or_default();
            note.count += count;
            if note.occurrences.len() < Self::KEPT {
                note.occurrences.extend(occurrence);
            }
        }
    }

    /// Adds those of a later shard.
    pub fn merge(&mut self, later: Diagnostics) {
        for (kind, note) in later.0 {
            let mine = self.0.entry(kind).or_default();
            mine.count += note.count;
            mine.assumed = mine.assumed.saturating_add(note.assumed);
            let room = Self::KEPT.saturating_sub(mine.occurrences.len());
            mine.occurrences.extend(note.occurrences.into_iter().take(room));
        }
    }

    /// Orders the places of each kind by location and time, independent of shards.
    pub fn sort(&mut self) {
        for note in self.0.values_mut() {
            note.occurrences.sort_by_key(|occurrence| (occurrence.place.location, occurrence.place.time));
        }
    }

    /// All kinds that occurred, in the order of their report.
    pub fn iter(&self) -> impl Iterator<Item = (DiagnosticKind, &Diagnostic)> {
        self.0.iter().map(|(&kind, note)| (kind, note))
    }

    /// Number of occurrences of a kind.
    #[must_use]
    pub fn occurrences(&self, kind: DiagnosticKind) -> u64 {
        self.0.get(&kind).map_or(0, |note| note.count)
    }
}
