//! Inconsistencies of a trace, counted by kind, with examples of where they occur.

use std::collections::BTreeMap;

use bitcode::{Decode, Encode};

use crate::ids::LocationId;

explained! {
    /// Kinds of inconsistencies, in the order in which they are reported.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
    pub enum DiagnosticKind {
        /// The end of an event file is missing.
        Truncated = "truncated": "event files end early; everything up to that point is analyzed",
        /// An event file cannot be read at all.
        Unreadable = "unreadable": "event files cannot be read; their locations are skipped",
        /// A time stamp lies outside of the run.
        ImpossibleTime = "impossible_time":
            "time stamps lie outside the run; they are set to the previous time stamp, \
                and later events keep theirs",
        /// Time runs backwards within a location.
        TimeBackwards = "time_backwards":
            "time stamps run backwards within a location; they are set to the previous time stamp",
        /// A region is left that was not entered.
        LeaveWithoutEnter = "leave_without_enter": "regions are left that were never entered; these records are skipped",
        /// A region is never left.
        NeverLeft = "never_left":
            "regions are never left; they are assumed to end with the region around them, \
                or with the last event of the location",
        /// A communication record outside of any region.
        OutsideRegion = "outside_region": "communication records outside of any region are skipped",
        /// An event names a communicator or window that is not defined, or whose members are unknown.
        UnknownCommunicator = "unknown_communicator":
            "records that name communicators or windows without known members are skipped",
        /// An event names a rank that its communicator does not have.
        UnknownPeer = "unknown_peer": "records that name ranks outside their communicator are skipped",
        /// A request is completed that was never started, or a lock released that was never acquired.
        UnknownRequest = "unknown_request": "requests are completed, or locks released, that were never started",
        /// A request is never completed.
        PendingRequest = "pending_request": "requests are never completed",
        /// Late Receivers in calls that complete non-blocking sends by inference.
        InferredCompletion = "inferred_completion":
            "waits for late receivers are in calls that complete non-blocking sends, and which sends these are is not \
                recorded but inferred from their order",
        /// A message was sent and never received.
        UnmatchedSend = "unmatched_send": "messages were sent but, according to the trace, never received",
        /// A message was received and never sent, or more were received than sent.
        UnmatchedReceive = "unmatched_receive":
            "messages were received that, according to the trace, were never sent; because it is unclear which, \
                all messages of their channel are excluded from the waiting times",
        /// A collective operation in which not every member took part.
        IncompleteCollective = "incomplete_collective":
            "collective operations lack members; their waiting times are not computed",
        /// Members of a communicator called different operations.
        MixedCollective = "mixed_collective":
            "members of a communicator called different operations at the same position; \
                their waiting times are not computed",
        /// A message was received before it was sent.
        ClockViolationMessage = "clock_violation_p2p":
            "messages were received before they were sent: the clocks of the processes differ; \
                waiting times are cut off at the end of the call",
        /// A rank left a collective operation before the last one entered.
        ClockViolationCollective = "clock_violation_coll":
            "ranks left a collective operation before the last one entered: the clocks of the processes differ; \
                waiting times are cut off at the end of the call",
        /// A kernel ended after the call that awaits it, or began before its launch.
        ClockViolationDevice = "clock_device":
            "kernels end after the call that awaits them, or begin before the call that launches them: \
                the clocks of the devices differ; waiting times are cut off at the end of the call",
        /// A record of a device from before its process ran.
        DeviceTime = "device_time":
            "records of devices lie outside the run (such as those with time 0); these kernels and copies are left out",
        /// A kernel ran without a launch.
        KernelWithoutLaunch = "kernel_without_launch":
            "kernels ran that, according to the trace, were never launched; they do not count as starving their device",
        /// A kernel was launched and never run.
        LaunchWithoutKernel = "launch_without_kernel": "kernels were launched but, according to the trace, never ran",
        /// MPI calls on threads other than the master thread.
        MpiOnThread = "mpi_on_thread":
            "MPI was called on threads other than the master thread; \
                messages of a process are matched in order of time over all of its threads",
        /// Operations on files that end without a begin.
        UnknownIo = "unknown_io": "operations on files end that never began; these records are skipped",
        /// Operations on files that never end.
        PendingIo = "pending_io": "operations on files never end; they are counted without time and bytes",
        /// Records about a file whose handle is not defined.
        UnknownFile = "unknown_file": "handles of files are not defined; their operations are counted without a file",
        /// Collective operations over two groups, which are counted but not analyzed for waiting.
        InterCommunicatorCollective = "intercommunicator_collective":
            "collective operations on intercommunicators are counted, but their waiting times are not computed",
        /// Non-blocking collective operations, which are not analyzed.
        NonBlockingCollective = "nonblocking_collective":
            "nonblocking collective operations with unknown dependencies (alltoallv, alltoallw, neighborhoods) are not \
                analyzed for waiting",
        /// Calls of neighbors in a topology that is not known.
        UnknownNeighbors = "unknown_neighbors":
            "calls of collective operations of neighbors (MPI_Neighbor_...) are not analyzed for waiting: they have no \
                records, and no Cartesian topology tells who their neighbors are",
        /// Thread team parts that cannot be assigned to a fork.
        UnknownTeam = "unknown_team": "threads work in teams without a fork; their management time is not computed",
        /// Barriers between threads whose team is not recorded.
        BarrierWithoutTeam = "barrier_without_team":
            "barriers of threads lack the records of their team (ThreadFork, ThreadTeamBegin); \
                waiting in them is not computed",
        /// Tasks whose creation is not recorded.
        UnknownTask = "unknown_task":
            "tasks run whose creation is not recorded; their calls are below those of the thread that runs them",
        /// Tasks that never run, or never complete.
        OpenTask = "open_task":
            "tasks are created and never complete; they end with what they last ran, and nobody waits for those that \
                never run",
        /// Acquisitions of a lock by threads in an unknown order.
        LockOrder = "lock_order":
            "threads acquire locks in an order that is not recorded, or that has gaps; it is inferred from the times of \
                acquisition, and nobody is known to have waited after a gap",
        /// A lock of threads is acquired and never released, or released and never acquired.
        OpenLock = "open_lock": "locks of threads are acquired and never released, or the other way round",
        /// Threads whose creation, begin or end is not recorded.
        ThreadLife = "thread_life":
            "threads lack the record of their creation, begin or end, and do not synchronize with the thread that \
                creates or joins them, or they have it twice (as two threads that join one), and the earlier one counts",
        /// Waits for a condition variable to which no signal fits.
        NoSignal = "no_signal":
            "threads wait for condition variables, but no signal that is recorded can have woken them; \
                this waiting is unattributed",
        /// Barriers of threads that no other thread was in at the same time.
        LoneBarrier = "lone_barrier": "threads pass barriers of POSIX threads alone; waiting in them is not computed",
        /// Lock epochs that were never closed.
        OpenEpoch = "open_epoch": "epochs of one-sided communication are never closed; no waiting is detected in them",
        /// An `unlock_all` after no operation, on a window with exclusive locks: the trace does not record which locks it
        /// releases.
        UnknownTargets = "unknown_targets":
            "calls unlock or complete one-sided communication with all processes of a window, but the trace does not \
                show which took part; their waiting times are not computed",
        /// Records of one-sided communication in calls of no known library.
        ForeignOneSided = "foreign_one_sided":
            "records of one-sided communication lie in calls of no library that whywait knows; \
                waiting for them is not seen",
        /// Waits that cause each other.
        CircularWaits = "circular_waits":
            "waits cause each other in a circle because the clocks of the processes differ; \
                what the latest of them caused is not propagated completely: the rest is unattributed",
        /// Recursive calls that count as part of an outer call of the same function.
        FoldedRecursion = "folded_recursion":
            "recursive calls are folded, as asked for or beyond 256 levels: \
                their time and visits are those of the outer call of the same function",
        /// Locations that are neither CPU threads nor streams of accelerators.
        NotAThread = "not_a_thread": "locations are neither threads nor device streams; they have only a profile",
        /// Records of unknown kinds.
        UnknownRecord = "unknown_record": "records of an unknown kind are skipped",
        /// Metric records whose class is not defined, or that do not match it.
        Metric = "metric": "metric records without a matching definition are skipped",
        /// Enters or Leaves without a sample of a counter that has one at each.
        MetricMissing = "metric_missing":
            "strict counters lack samples at some Enters and Leaves; their increments are distributed by time until \
                the next sample",
        /// Values of counters that are not numbers.
        MetricNotANumber = "metric_not_a_number": "counter values that are not finite numbers are skipped",
        /// Counters that were reset.
        MetricReset = "metric_reset": "counters decrease, as if they were reset; such a step counts as 0",
        /// Counters that are defined as totals but decrease.
        MetricMode = "metric_mode":
            "counters that are declared totals decrease; they are treated as levels at their samples",
        /// Counters with inconsistent definitions.
        MetricDefinition = "metric_definition": "definitions of counters are odd",
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
    pub fn occurrences(&self, kind: DiagnosticKind) -> u64 {
        self.0.get(&kind).map_or(0, |note| note.count)
    }
}
