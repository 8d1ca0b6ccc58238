//! What devices ran, and what their hosts did.

use std::collections::{BTreeMap, BTreeSet};

use bitcode::{Decode, Encode};

use crate::ids::{InstanceId, LocationId, ProcessId};
use crate::matching::launches::{MemoryCopy, Span};
use crate::trace::Trace;
use crate::waits::device_part::DevicePart;

/// Work that a device ran (a kernel or a copy), and what preceded it.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct Kernel {
    /// Where and when it ran.
    pub run: Span,
    /// If it is a copy, how.
    pub copy: Option<MemoryCopy>,
    /// Whether it is a kernel that communicates with other devices.
    pub communicates: bool,
    /// Number of the device.
    pub device: u32,
    /// The call that launched it.
    pub launch: Option<Span>,
    /// Why it did not begin earlier.
    pub start_cause: StartCause,
    /// The computation that a kernel that communicates begins after, on another stream: an index into
    /// [`Devices::kernels`].
    pub follows: Option<u32>,
    /// Ticks for which its device was idle before it.
    pub idle: i64,
    /// The part of `idle` before the launch.
    pub starved: i64,
    /// The part of `starved` in which the host waited in MPI.
    pub mpi_starved: i64,
    /// Ticks from the launch to the start while the device was idle.
    pub latency: i64,
    /// Ticks from the launch to the start while the device ran something else.
    pub queued: i64,
    /// The part of `queued` in which it waited for a kernel on another stream of its device and process.
    pub turn: i64,
}

impl Kernel {
    /// Begin and end of the time in which its host starved the device, ticks.
    pub(super) fn starvation(&self) -> (i64, i64) {
        let until = self.launch.map_or(self.run.enter, |launch| launch.enter.min(self.run.enter));
        (until - self.starved, until)
    }
}

/// What delayed the start of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum StartCause {
    /// Unknown: the trace does not tell.
    Unknown,
    /// Its launch.
    Launched,
    /// The end of another kernel of its process: an index into [`Devices::kernels`].
    After(u32),
}

/// A call that waits for devices.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct Synchronization {
    /// Where and when it was called.
    pub call: Span,
    /// Ticks until the last awaited kernel ended.
    pub waiting: i64,
    /// The rest of the call, ticks.
    pub completion: i64,
    /// The awaited kernel that ended last: an index into [`Devices::kernels`].
    pub kernel: Option<u32>,
}

/// The activity of devices, and of the hosts that use them.
#[derive(Clone, Debug, Default, Encode, Decode)]
pub struct Devices {
    /// Kernels and copies, by process and start.
    pub kernels: Vec<Kernel>,
    /// Calls that synchronize with devices, by process and Enter.
    pub synchronizations: Vec<Synchronization>,
    /// What each synchronization awaits, running or not: its index, and that of the last kernel of an awaited stream.
    pub awaited: Vec<(u32, u32)>,
    /// Number of launches.
    pub launches: u64,
    /// Launches without a kernel, by process and Enter.
    pub lost_launches: Vec<Span>,
    /// Kernels without a launch.
    pub unmatched_kernels: u64,
    /// Kernels that begin before their launch by their clock, as indexes into [`Devices::kernels`], and the launch.
    pub early: Vec<(u32, Span)>,
    /// Kernels that, by their clock, end after the call that awaits them or begin before their launch.
    pub clock_violations: u64,
    /// The parts of kernels in the communication of devices, by kernel.
    pub(crate) parts: Vec<DevicePart>,
}

impl Devices {
    /// How long a kernel waited for other devices, exposed or not, ticks; `None` if it has no part in an operation.
    pub fn whole_wait(&self, kernel: (LocationId, InstanceId)) -> Option<i64> {
        let at = self.parts.partition_point(|part| part.kernel < kernel);
        self.parts.get(at).filter(|part| part.kernel == kernel).map(|part| part.waiting)
    }

    /// The processes of which nothing but devices is recorded: these communicate, and nothing was launched.
    pub(crate) fn alone(&self, trace: &Trace) -> BTreeSet<ProcessId> {
        if !self.kernels.iter().any(|kernel| kernel.communicates) {
            return BTreeSet::new();
        }
        let process = |kernel: &Kernel| trace.definitions.locations[kernel.run.location].process;
        let mut alone: BTreeSet<ProcessId> = self.kernels.iter().map(process).collect();
        for kernel in self.kernels.iter().filter(|kernel| kernel.launch.is_some()) {
            alone.remove(&process(kernel));
        }
        alone
    }

    /// The name of each device by its number: that of its first stream, or of this one's group if streams do not say their device,
    /// as in `CUDA[0:7]`; with the rank of its process if others have the same.
    pub fn names(&self, trace: &Trace) -> BTreeMap<u32, String> {
        let mut first: BTreeMap<u32, LocationId> = BTreeMap::new();
        for kernel in &self.kernels {
            let stream = first.entry(kernel.device).or_insert(kernel.run.location);
            *stream = kernel.run.location.min(*stream);
        }
        let definitions = trace.records();
        let name = |stream: &LocationId| {
            let stream = &trace.definitions.locations[*stream];
            let own = definitions.string(stream.name);
            let group = definitions.location_group(stream.group).filter(|_| !own.contains('['));
            group.map(|group| definitions.string(group.name)).filter(|group| !group.is_empty()).unwrap_or(own)
        };
        let is_alone = |stream: &LocationId| first.values().filter(|other| name(other) == name(stream)).count() == 1;
        let of_stream = |stream: &LocationId| {
            let process = trace.definitions.locations[*stream].process;
            match trace.definitions.processes.get(process.index()) {
                Some(process) if !is_alone(stream) => format!("rank {}, {}", process.rank, name(stream)),
                _ => name(stream).to_owned(),
            }
        };
        first.iter().map(|(&device, stream)| (device, of_stream(stream))).collect()
    }

    /// Joins several parts.
    pub(crate) fn all(parts: Vec<Self>) -> Self {
        let mut all = Self::default();
        for part in parts {
            all.add(part);
        }
        all
    }

    /// Adds the devices of another part; indexes are shifted.
    pub(super) fn add(&mut self, others: Self) {
        let before = self.kernels.len() as u32;
        let calls_before = self.synchronizations.len() as u32;
        self.kernels.extend(others.kernels.into_iter().map(|kernel| Kernel {
            follows: kernel.follows.map(|other| other + before),
            start_cause: match kernel.start_cause {
                StartCause::After(other) => StartCause::After(other + before),
                start_cause => start_cause,
            },
            ..kernel
        }));
        self.synchronizations.extend(others.synchronizations.into_iter().map(|synchronization| Synchronization {
            kernel: synchronization.kernel.map(|kernel| kernel + before),
            ..synchronization
        }));
        self.awaited.extend(others.awaited.into_iter().map(|(call, kernel)| (call + calls_before, kernel + before)));
        self.early.extend(others.early.into_iter().map(|(kernel, launch)| (kernel + before, launch)));
        self.launches += others.launches;
        self.lost_launches.extend(others.lost_launches);
        self.unmatched_kernels += others.unmatched_kernels;
        self.clock_violations += others.clock_violations;
        self.parts.extend(others.parts);
    }
}
