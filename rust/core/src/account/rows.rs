//! The rows of the account, and the groups that they belong to.

use std::sync::LazyLock;

use bitcode::{Decode, Encode};

use crate::schema::{Metric, Pattern};

/// By metric number, the name of the row of its waits.
static WAIT_NAMES: LazyLock<Vec<String>> =
    LazyLock::new(|| Metric::ALL.iter().map(|kind| format!("wait.{}", kind.name())).collect());

/// Declares a set of rows without wait states, or of groups: each with its meaning, name and label.
macro_rules! labelled {
    (
        $(#[$doc_of_set:meta])*
        $set:ident; $($(#[doc = $doc:literal])+ $one:ident = $name:literal, $label:literal;)+
    ) => {
        $(#[$doc_of_set])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, bitcode::Encode, bitcode::Decode)]
        pub enum $set { $($(#[doc = $doc])+ $one),+ }

        impl $set {
            /// All of them, in the order in which they are shown.
            pub const ALL: &[Self] = &[$(Self::$one),+];

            /// Name in tables.
            pub fn name(self) -> &'static str {
                match self { $(Self::$one => $name),+ }
            }

            /// Name on screen.
            pub fn label(self) -> &'static str {
                match self { $(Self::$one => $label),+ }
            }

            /// What belongs to it, in a sentence.
            pub fn description(self) -> &'static str {
                match self { $(Self::$one => concat!($($doc),+).trim_ascii_start()),+ }
            }
        }
    };
}

pub(super) use labelled;

labelled! {
    /// Rows that the first screen shows as one.
    Group;
    /// The program's own code.
    Computation = "computation", "Computation";
    /// Wait states of communication, threads and locks.
    Waiting = "waiting", "Waiting";
    /// Calls of communication libraries that do not wait.
    Transfer = "transfer", "Transfer and library";
    /// Creating, joining and synchronizing threads.
    Threads = "threads", "Thread runtime";
    /// Threads without work.
    Idle = "idle", "Idle threads";
    /// Reading and writing files.
    Io = "io", "I/O";
    /// Hosts in calls that concern devices.
    Devices = "devices", "Device calls";
    /// The measurement system, and time of which the trace says nothing.
    Other = "other", "Measurement and unknown";
}

macro_rules! rows {
    ($($(#[doc = $doc:literal])+ $row:ident = $name:literal in $group:ident, $label:literal;)+) => {
        /// What a moment of a CPU location is. Each moment in the focus belongs to exactly one row.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
        pub enum Row {
            $($(#[doc = $doc])+ $row,)+
            /// A wait state.
            Wait(Metric),
        }

        impl Row {
            /// All rows but wait states, in the order in which they are shown.
            pub const FIXED: &[Self] = &[$(Self::$row),+];

            /// Name in tables: `group.row`, or `wait.KIND` by the metric of the wait state.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$row => $name,)+
                    Self::Wait(kind) => &WAIT_NAMES[kind as usize],
                }
            }

            /// Name on screen.
            pub fn label(self) -> &'static str {
                match self {
                    $(Self::$row => $label,)+
                    Self::Wait(kind) => Pattern::of(kind).map_or(kind.name(), |pattern| pattern.display_name),
                }
            }

            /// What belongs to it, in a sentence.
            pub fn description(self) -> &'static str {
                match self {
                    $(Self::$row => concat!($($doc),+).trim_ascii_start(),)+
                    Self::Wait(kind) => kind.description(),
                }
            }

            /// The group that it belongs to.
            pub fn group(self) -> Group {
                match self {
                    $(Self::$row => Group::$group,)+
                    Self::Wait(_) => Group::Waiting,
                }
            }
        }
    };
}

rows! {
    /// Own code of the program on the critical path.
    ComputationCritical = "computation.critical" in Computation, "on the critical path";
    /// Own code of the program off the critical path.
    ComputationOther = "computation.other" in Computation, "off the critical path";
    /// What sends, receives, completions, collective and one-sided operations need, by the fastest 5% of such calls.
    TransferNeeded = "transfer.needed" in Transfer, "Transfer, needed";
    /// What they take beyond that.
    TransferExcess = "transfer.excess" in Transfer, "Transfer, excess";
    /// What other library calls need: posting and testing requests, managing communicators, groups, windows and types.
    LibraryNeeded = "library.needed" in Transfer, "Library, needed";
    /// What they take beyond that.
    LibraryExcess = "library.excess" in Transfer, "Library, excess";
    /// Creating and joining threads.
    ForkJoin = "threads.fork_join" in Threads, "Fork and join";
    /// Barriers of threads after the last thread has come.
    ThreadBarrier = "threads.barrier" in Threads, "Barrier, after the last arrival";
    /// The rest of the runtime: entering critical and ordered sections, locks, task waits.
    ThreadRuntime = "threads.runtime" in Threads, "Locks, critical sections, tasks";
    /// A thread without work while the master of its process runs own code outside of parallel regions.
    IdleSerial = "idle.serial" in Idle, "Master in serial code";
    /// A thread without work while the master of its process is in a call of a communication library or in I/O.
    IdleLibrary = "idle.library" in Idle, "Master in communication or I/O";
    /// A thread that has no part in a parallel region, or left it before the master.
    IdleSmallerTeam = "idle.smaller_team" in Idle, "Not in the team";
    /// A thread or process that has ended before the focus does.
    IdleEnded = "idle.ended" in Idle, "Ended";
    /// Calls that read, write, open or close files.
    Io = "io" in Io, "I/O";
    /// A host that waits while an awaited device is busy. Nothing is lost by it.
    DeviceWaitBusy = "device.wait_busy" in Devices, "Waits for a busy device";
    /// All other time of hosts in calls that concern devices.
    DeviceCall = "device.call" in Devices, "Device calls";
    /// Flushing buffers of the measurement system, and measurement switched off.
    Measurement = "measurement" in Other, "Measurement";
    /// Time outside of all regions that the trace records.
    Unknown = "unknown" in Other, "Unknown";
}

impl Row {
    /// The row of waits of a kind; `None` for parts and bounds of other wait states, for completion, and for waits of
    /// devices.
    pub fn of_wait(kind: Metric) -> Option<Self> {
        let pattern = Pattern::of(kind)?;
        let counts = pattern.part_of.is_none() && !pattern.position.is_completion() && !pattern.position.is_idle();
        counts.then_some(if kind == Metric::GpuHostWait { Self::DeviceWaitBusy } else { Self::Wait(kind) })
    }

    /// All rows, in the order in which they are shown.
    pub fn all() -> impl Iterator<Item = Self> {
        let waits = Pattern::ALL.iter().filter_map(|pattern| Self::of_wait(pattern.kind));
        let waits = waits.filter(|row| matches!(row, Self::Wait(_)));
        let (computation, others) = Self::FIXED.split_at(2);
        computation.iter().copied().chain(waits).chain(others.iter().copied())
    }

    /// Whether it is work: the time of all other rows is lost, but for hosts that wait for busy devices.
    pub fn is_useful(self) -> bool {
        self.group() == Group::Computation
    }

    /// Whether its time is lost.
    pub fn is_lost(self) -> bool {
        !self.is_useful() && self != Self::DeviceWaitBusy
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn rows_are_named_by_their_group_and_come_group_by_group() {
        let rows: Vec<Row> = Row::all().collect();
        let names: BTreeSet<String> = rows.iter().map(|row| row.name().to_owned()).collect();
        assert_eq!(names.len(), rows.len());
        assert!(names.contains("wait.mpi_latesender") && !names.contains("wait.mpi_barrier_completion"));
        assert!(!names.contains("wait.mpi_latesender_wo") && !names.contains("wait.gpu_device_starved"));
        let groups: Vec<Group> = rows.iter().map(|row| row.group()).collect();
        assert!(groups.is_sorted());
        assert_eq!(BTreeSet::from_iter(groups).len(), Group::ALL.len());
    }
}
