//! What is odd or inconsistent in a trace: counted by kind, with the places where it was seen.

use std::collections::BTreeMap;

use bitcode::{Decode, Encode};

use crate::ids::LocationId;

/// Kinds of oddities, in the order in which they are reported.
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
    /// A request is completed that was never begun, or a lock given back that was never taken.
    UnknownRequest,
    /// A request is never completed.
    PendingRequest,
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
    /// A kernel ended behind the call that awaits it, or began before the one that launches it.
    ClockViolationDevice,
    /// A kernel was run and never launched.
    KernelWithoutLaunch,
    /// A kernel was launched and never run.
    LaunchWithoutKernel,
    /// MPI calls on threads other than the master thread.
    MpiOnThread,
    /// Collective operations over two groups, which are counted but not analyzed for waiting.
    InterCommunicatorCollective,
    /// Non-blocking collective operations, which are not analyzed.
    NonBlockingCollective,
    /// Thread team parts that cannot be assigned to a fork.
    UnknownTeam,
    /// Tasks of a thread team.
    Tasks,
    /// Lock epochs that were never closed.
    OpenEpoch,
    /// `unlock_all` that names no operation, where others lock exclusively: which locks it gives back is not recorded.
    UnknownTargets,
    /// Waits that cause each other.
    CircularWaits,
    /// Locations that are neither CPU threads nor streams of accelerators.
    NotAThread,
    /// Records of a kind that this reader does not know.
    UnknownRecord,
    /// Metric records whose class is not defined, or which do not fit it.
    Metric,
    /// Values of counters that are not numbers.
    MetricNotANumber,
    /// Counters that were reset.
    MetricReset,
    /// Counters that are said to be totals, and fall.
    MetricMode,
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
            Self::UnmatchedSend => "unmatched_send",
            Self::UnmatchedReceive => "unmatched_receive",
            Self::IncompleteCollective => "incomplete_collective",
            Self::MixedCollective => "mixed_collective",
            Self::ClockViolationMessage => "clock_violation_p2p",
            Self::ClockViolationCollective => "clock_violation_coll",
            Self::ClockViolationDevice => "clock_device",
            Self::KernelWithoutLaunch => "kernel_without_launch",
            Self::LaunchWithoutKernel => "launch_without_kernel",
            Self::MpiOnThread => "mpi_on_thread",
            Self::InterCommunicatorCollective => "intercommunicator_collective",
            Self::NonBlockingCollective => "nonblocking_collective",
            Self::UnknownTeam => "unknown_team",
            Self::Tasks => "tasks",
            Self::OpenEpoch => "open_epoch",
            Self::UnknownTargets => "unknown_targets",
            Self::CircularWaits => "circular_waits",
            Self::NotAThread => "not_a_thread",
            Self::UnknownRecord => "unknown_record",
            Self::Metric => "metric",
            Self::MetricNotANumber => "metric_not_a_number",
            Self::MetricReset => "metric_reset",
            Self::MetricMode => "metric_mode",
        }
    }

    /// What it means and what follows for the result.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Truncated => "event files end early; everything up to that point is analyzed",
            Self::Unreadable => "event files cannot be read; their locations are left out",
            Self::ImpossibleTime => {
                "time stamps lie outside of the run; they are taken as equal to their predecessor, \
                 and the events behind them as they are"
            }
            Self::TimeBackwards => {
                "time stamps run backwards within a location; they are taken as equal to their predecessor"
            }
            Self::LeaveWithoutEnter => "regions are left that were not entered; these records are left out",
            Self::NeverLeft => "regions are never left; they are taken to end with the location's last event",
            Self::OutsideRegion => "communication records stand outside of any region and are left out",
            Self::UnknownCommunicator => "records name communicators or windows without known members and are left out",
            Self::UnknownPeer => "records name ranks that their communicator does not have and are left out",
            Self::UnknownRequest => "requests are completed, or locks given back, that were never begun",
            Self::PendingRequest => "requests are never completed",
            Self::UnmatchedSend => "messages were sent and, by the trace, never received",
            Self::UnmatchedReceive => {
                "messages were received that, by the trace, were never sent; \
                 as nobody can tell which, all messages of their channel are left out of the waiting times"
            }
            Self::IncompleteCollective => "collective operations lack members; their waiting times are left out",
            Self::MixedCollective => {
                "members of a communicator called different operations at the same position; \
                 their waiting times are left out"
            }
            Self::ClockViolationMessage => {
                "messages were received before they were sent: the clocks of the processes differ; \
                 waiting times are cut at the end of the call"
            }
            Self::ClockViolationCollective => {
                "ranks left a collective operation before the last one entered: the clocks of the processes differ; \
                 waiting times are cut at the end of the call"
            }
            Self::ClockViolationDevice => {
                "kernels end behind the call that awaits them, or begin before the one that launches them: \
                 the clocks of the devices differ; waiting times are cut at the end of the call"
            }
            Self::KernelWithoutLaunch => {
                "kernels ran that, by the trace, were never launched; nobody starved their device"
            }
            Self::LaunchWithoutKernel => "kernels were launched that, by the trace, never ran",
            Self::MpiOnThread => {
                "MPI was called on threads other than the master thread; \
                 messages of a process are matched in the order of time over all its threads"
            }
            Self::InterCommunicatorCollective => {
                "collective operations over inter-communicators are counted, their waiting times are left out"
            }
            Self::NonBlockingCollective => {
                "non-blocking collective operations are neither counted nor analyzed for waiting"
            }
            Self::UnknownTeam => "threads work in teams that no fork began; their management time is left out",
            Self::Tasks => "explicit tasks are booked where the thread was that ran them",
            Self::OpenEpoch => "epochs of one-sided communication are never closed; nobody is found to wait in them",
            Self::UnknownTargets => {
                "calls give back or complete one-sided communication with all processes of a window without saying \
                 which took part; their waiting times are left out"
            }
            Self::CircularWaits => {
                "waits cause each other in a circle, as the clocks of the processes differ; \
                 what the latest of them caused is not handed on in full"
            }
            Self::NotAThread => "locations are neither threads nor streams of devices; only their regions are profiled",
            Self::UnknownRecord => "records of an unknown kind are skipped",
            Self::Metric => "metric records whose class is not defined, or which do not fit it, are left out",
            Self::MetricNotANumber => "values of counters that are not finite numbers are left out",
            Self::MetricReset => "counters fall, as if they were reset; such a step counts as 0",
            Self::MetricMode => "counters that are said to be totals fall; they are taken as levels at their samples",
        }
    }
}

/// Where something was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Place {
    /// The location.
    pub location: LocationId,
    /// Time in ticks.
    pub time: i64,
}

/// One occurrence: where, and what only this one has to say (the reader's message).
#[derive(Clone, Debug, Encode, Decode)]
pub struct Occurrence {
    /// Where it was seen.
    pub place: Place,
    /// A message of its own, if it has one.
    pub detail: Option<String>,
}

/// Occurrences of one kind.
#[derive(Clone, Debug, Default, Encode, Decode)]
pub struct Diagnostic {
    /// Number of occurrences.
    pub count: u64,
    /// The first of them, at most [`Diagnostics::KEPT`].
    pub occurrences: Vec<Occurrence>,
}

/// All oddities of a shard or a run.
#[derive(Clone, Debug, Default, Encode, Decode)]
pub struct Diagnostics(BTreeMap<DiagnosticKind, Diagnostic>);

impl Diagnostics {
    /// So many places of a kind are kept; the others only count.
    pub const KEPT: usize = 10_000;

    /// Counts one occurrence.
    pub fn add(&mut self, kind: DiagnosticKind, location: LocationId, time: i64) {
        self.count(kind, 1, Some(Place { location, time }));
    }

    /// Counts several occurrences at one place.
    pub fn count(&mut self, kind: DiagnosticKind, count: u64, place: Option<Place>) {
        self.keep(kind, count, place.map(|place| Occurrence { place, detail: None }));
    }

    /// Counts one occurrence that has a message of its own.
    pub fn explain(&mut self, kind: DiagnosticKind, location: LocationId, time: i64, detail: String) {
        self.keep(kind, 1, Some(Occurrence { place: Place { location, time }, detail: Some(detail) }));
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
            let room = Self::KEPT.saturating_sub(mine.occurrences.len());
            mine.occurrences.extend(note.occurrences.into_iter().take(room));
        }
    }

    /// Orders the places of each kind by location and time, whoever saw them first.
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
