//! Accelerators: which call launched a kernel, which kernels a synchronization awaits, and who waits for whom.
//!
//! ```text
//!  host    launch ]   [ work    ] launch ]  [ sync: waits for the kernel | completion ]
//!                \               \ latency                              /
//!  device          [ kernel ] starved   [ kernel                       ]
//! ```
//!
//! Of a synchronization [E, L], e is the end of the last kernel that was launched before E, at most L: the host waits for
//! `max(e - E, 0)`, and the rest is completion. Of a kernel, p is the end of the last one before it on its device, and
//! [El, Ll] the call that launched it: the device is idle for `max(start - p, 0)`. Of that it was starved by the host for
//! `max(min(start, El) - p, 0)`; `start - max(p, El)` is latency. A kernel that is launched while another runs waits in a
//! queue for `start - Ll`.
//!
//! *Source*: accelerators.md.

mod matching;

use rayon::prelude::*;
use rustc_hash::FxHashMap;
use whywait_otf2::Archive;
use whywait_otf2::enums::LocationType;

use crate::analysis::Analysis;
use crate::ids::{CallPathId, LocationId, ProcessId};
use crate::schema::Pattern;
use crate::schema::patterns::Paradigm;
use crate::trace::{NONE, Shard, Trace};
use crate::waits::{WaitState, interval};

/// What a call of the host is to devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Launches a kernel.
    Launch,
    /// Waits for devices.
    Synchronization,
}

/// A call of a thread, or what a device runs.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// Index of the location.
    pub location: LocationId,
    /// Call path.
    pub callpath: CallPathId,
    /// Enter, ticks.
    pub enter: i64,
    /// Leave, ticks.
    pub leave: i64,
}

/// Something that a device ran, and what was before.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// Where and when it ran.
    pub run: Span,
    /// The call that launched it.
    pub launch: Option<Span>,
    /// Ticks in which its device had nothing to run before it.
    pub idle: i64,
    /// The part of it before the launch.
    pub starved: i64,
    /// The part of that in which the host waited in MPI.
    pub mpi_starved: i64,
    /// What it took to start after the launch, with the device free.
    pub latency: i64,
    /// Ticks between its launch and its start while another ran.
    pub queued: i64,
}

/// A call that waits for devices.
#[derive(Clone, Copy, Debug)]
pub struct Synchronization {
    /// Where and when it was called.
    pub call: Span,
    /// Ticks in which a kernel ran that it awaited.
    pub waiting: i64,
    /// The rest.
    pub completion: i64,
    /// The last of these kernels: its position among all.
    pub kernel: Option<u32>,
}

/// What a host did while it starved a device.
#[derive(Clone, Copy, Debug)]
pub struct Starving {
    /// Index of the location of the host.
    pub location: LocationId,
    /// Innermost call path, or [`CallPathId::NONE`].
    pub callpath: CallPathId,
    /// Ticks.
    pub ticks: i64,
}

/// What there is to say of all devices.
#[derive(Debug, Default)]
pub struct Devices {
    /// What they ran, by process and start.
    pub kernels: Vec<Kernel>,
    /// Calls that waited for them, by process and Enter.
    pub synchronizations: Vec<Synchronization>,
    /// What hosts did meanwhile.
    pub starving: Vec<Starving>,
    /// Number of launches.
    pub launches: u64,
    /// Launches without a kernel.
    pub unmatched_launches: u64,
    /// Kernels without a launch.
    pub unmatched_kernels: u64,
    /// Kernels that seem to end behind the call that awaits them.
    pub clock_violations: u64,
}

/// Looks at the devices of all processes.
#[must_use]
pub fn find(archive: &Archive, analysis: &Analysis) -> Devices {
    let trace = &analysis.trace;
    let roles: Vec<Option<Role>> = trace
        .tree
        .nodes()
        .iter()
        .map(|node| role(trace.regions.get(node.region).map_or("", |region| &region.name)))
        .collect();
    let has_streams = |process: &ProcessId| {
        let locations = trace.definitions.processes[*process].locations;
        { locations }.any(|location| is_stream(trace, location))
    };
    let processes: Vec<ProcessId> =
        (0..trace.definitions.processes.len()).map(ProcessId::at).filter(has_streams).collect();
    let found: Vec<Devices> = processes
        .into_par_iter()
        .map(|process| {
            let shard = trace.shard(trace.definitions.master(process));
            let waits = analysis.waits.of(trace.position(trace.definitions.master(process))).1;
            of_process(archive, trace, shard, process, (&roles, waits))
        })
        .collect();
    let mut all = Devices::default();
    for devices in found {
        let before = all.kernels.len() as u32;
        all.kernels.extend(devices.kernels);
        all.synchronizations.extend(devices.synchronizations.into_iter().map(|synchronization| Synchronization {
            kernel: synchronization.kernel.map(|kernel| kernel + before),
            ..synchronization
        }));
        all.starving.extend(devices.starving);
        all.launches += devices.launches;
        all.unmatched_launches += devices.unmatched_launches;
        all.unmatched_kernels += devices.unmatched_kernels;
        all.clock_violations += devices.clock_violations;
    }
    all
}

fn is_stream(trace: &Trace, location: LocationId) -> bool {
    trace.definitions.locations[location].kind == LocationType::ACCELERATOR_STREAM
}

/// What a call is, by its name in CUDA, HIP and `OpenCL`.
fn role(name: &str) -> Option<Role> {
    let call = ["hip", "cuda", "cu", "cl"].iter().find_map(|prefix| name.strip_prefix(prefix))?;
    let call = call.strip_suffix("()").unwrap_or(call);
    if !call.starts_with(|first: char| first.is_ascii_uppercase()) {
        return None;
    }
    let is_launch = call.contains("Launch") && !call.contains("HostFunc");
    if is_launch || ["EnqueueNDRangeKernel", "EnqueueTask"].contains(&call) {
        return Some(Role::Launch);
    }
    let copies = call.starts_with("Memcpy") && !call.contains("Async");
    let waits = call.ends_with("Synchronize") || ["Finish", "WaitForEvents"].contains(&call);
    (copies || waits).then_some(Role::Synchronization)
}

/// The outermost calls of a location that `wanted` says yes to, by the call path; in the order of time.
fn calls(shard: &Shard, location: LocationId, wanted: impl Fn(CallPathId) -> bool) -> Vec<Span> {
    let i = shard.local(location);
    let events = &shard.events;
    let mut open: Option<(CallPathId, i64, u32)> = None;
    let mut found = Vec::new();
    for event in shard.event_offsets[i]..shard.event_offsets[i + 1] {
        let (callpath, time) = (events.callpath(event), events.time[event as usize]);
        let is_leave = events.is_leave(event);
        match &mut open {
            None if !is_leave && wanted(callpath) => open = Some((callpath, time, 1)),
            None => {}
            Some((_, _, depth)) if !is_leave => *depth += 1,
            Some((callpath, enter, depth)) => {
                *depth -= 1;
                if *depth == 0 {
                    found.push(Span { location, callpath: *callpath, enter: *enter, leave: time });
                    open = None;
                }
            }
        }
    }
    found
}

fn of_process(
    archive: &Archive,
    trace: &Trace,
    shard: &Shard,
    process: ProcessId,
    (roles, waits): (&[Option<Role>], &[WaitState]),
) -> Devices {
    let locations = trace.definitions.processes[process].locations;
    let (streams, hosts): (Vec<LocationId>, Vec<LocationId>) =
        locations.partition(|&location| is_stream(trace, location));
    let name =
        |callpath: CallPathId| trace.regions.get(trace.tree.region(callpath)).map_or("", |region| region.name.as_str());
    // Score-P can write that a device is idle as a region.
    let is_work = |callpath: CallPathId| !name(callpath).contains("IDLE");
    let of_role = |role: Role| -> Vec<Span> {
        let is = |callpath: CallPathId| roles[callpath] == Some(role);
        let mut found: Vec<Span> = hosts.iter().flat_map(|&host| calls(shard, host, is)).collect();
        found.sort_by_key(|call| call.enter);
        found
    };
    let launches = of_role(Role::Launch);
    let mut runs: Vec<Span> = streams.iter().flat_map(|&stream| calls(shard, stream, is_work)).collect();
    runs.sort_by_key(|run| (run.enter, run.leave));
    let matched = matching::kernels(archive, trace, &launches, &runs);

    let mut devices = Devices { launches: launches.len() as u64, ..Devices::default() };
    devices.unmatched_kernels = matched.iter().filter(|launch| **launch == NONE).count() as u64;
    devices.unmatched_launches = devices.launches - (runs.len() as u64 - devices.unmatched_kernels);
    // By device: the end of what it ran last.
    let mut latest: FxHashMap<u32, i64> = FxHashMap::default();
    let mut spans = Vec::new();
    for (run, &launch) in runs.iter().zip(&matched) {
        let launch = launches.get(launch as usize).copied();
        let device = trace.definitions.locations[run.location].group;
        let before = latest.get(&device).copied();
        let end = latest.entry(device).or_insert(run.leave);
        *end = (*end).max(run.leave);
        let mut kernel = Kernel { run: *run, launch, idle: 0, starved: 0, mpi_starved: 0, latency: 0, queued: 0 };
        kernel.idle = before.map_or(0, |before| (run.enter - before).max(0));
        if let Some(launch) = launch {
            let since = before.unwrap_or(i64::MIN).max(launch.enter);
            kernel.latency = (run.enter - since).max(0);
            if let Some(before) = before {
                kernel.starved = (run.enter.min(launch.enter) - before).max(0);
                if kernel.starved > 0 {
                    spans.push((devices.kernels.len(), launch.location, before, before + kernel.starved));
                }
                if before > launch.leave {
                    kernel.queued = (run.enter - launch.leave).max(0);
                }
            }
        }
        devices.kernels.push(kernel);
    }
    let awaited = Awaited::new(&devices.kernels);
    devices.synchronizations =
        of_role(Role::Synchronization).into_iter().map(|call| awaited.synchronize(call)).collect();
    let is_behind = |synchronization: &&Synchronization| {
        let kernel = synchronization.kernel.map(|kernel| &devices.kernels[kernel as usize]);
        kernel.is_some_and(|kernel| kernel.run.leave > synchronization.call.leave)
    };
    devices.clock_violations += devices.synchronizations.iter().filter(is_behind).count() as u64;
    for host in hosts {
        let own: Vec<_> = spans.iter().filter(|(_, location, ..)| *location == host).copied().collect();
        if !own.is_empty() {
            starve(trace, shard, host, &own, waits, &mut devices);
        }
    }
    devices
}

/// What devices ran, in the orders in which it is looked up.
struct Awaited<'a> {
    kernels: &'a [Kernel],
    by_end: Vec<u32>,
    by_stream: Vec<Vec<u32>>,
}

impl<'a> Awaited<'a> {
    fn new(kernels: &'a [Kernel]) -> Self {
        let mut by_end: Vec<u32> = (0..kernels.len() as u32).collect();
        let mut by_stream = by_end.clone();
        by_end.sort_by_key(|&kernel| kernels[kernel as usize].run.leave);
        by_stream.sort_by_key(|&kernel| kernels[kernel as usize].run.location);
        let same = |a: &u32, b: &u32| kernels[*a as usize].run.location == kernels[*b as usize].run.location;
        let by_stream = by_stream.chunk_by(same).map(<[u32]>::to_vec).collect();
        Self { kernels, by_end, by_stream }
    }

    /// What a call waited for last: of what was launched before it and ended in it, the last; else what still seems to
    /// run behind it, by the clock of a device.
    fn last(&self, call: &Span) -> Option<u32> {
        let kernel = |index: u32| &self.kernels[index as usize];
        let is_launched = |index: &u32| {
            let kernel = kernel(*index);
            kernel.launch.map_or(kernel.run.enter, |launch| launch.enter) < call.enter
        };
        // Calls of a thread do not overlap, so that each kernel is seen by one of them.
        let ended = self.by_end.partition_point(|&index| kernel(index).run.leave <= call.leave);
        let in_call = self.by_end[..ended].iter().rev().take_while(|index| kernel(**index).run.leave > call.enter);
        in_call.copied().find(is_launched).or_else(|| {
            let running = self.by_stream.iter().filter_map(|stream| {
                let started = stream.partition_point(|&index| kernel(index).run.enter < call.leave);
                stream[..started].last().copied()
            });
            running.filter(|&index| kernel(index).run.leave > call.leave).find(is_launched)
        })
    }

    fn synchronize(&self, call: Span) -> Synchronization {
        let kernel = self.last(&call);
        let end = kernel.map_or(call.enter, |kernel| self.kernels[kernel as usize].run.leave.min(call.leave));
        let waiting = end - call.enter;
        Synchronization { call, waiting, completion: call.leave - call.enter - waiting, kernel }
    }
}

/// Says what a host did while it starved devices: a span each, with the position of its kernel.
fn starve(
    trace: &Trace,
    shard: &Shard,
    host: LocationId,
    spans: &[(usize, LocationId, i64, i64)],
    waits: &[WaitState],
    devices: &mut Devices,
) {
    let i = shard.local(host);
    let ran: Vec<(CallPathId, i64, i64)> = shard.stretches(&trace.tree, i, i64::MIN..i64::MAX).collect();
    let in_mpi = waiting_in_mpi(trace, host, waits);
    let mut ticks: FxHashMap<CallPathId, i64> = FxHashMap::default();
    for &(kernel, _, from, until) in spans {
        for (callpath, length) in overlaps(&ran, from, until) {
            *ticks.entry(callpath).or_default() += length;
        }
        devices.kernels[kernel].mpi_starved = overlaps(&in_mpi, from, until).map(|(_, length)| length).sum();
    }
    let mut ticks: Vec<(CallPathId, i64)> = ticks.into_iter().collect();
    ticks.sort_unstable();
    devices.starving.extend(ticks.into_iter().map(|(callpath, ticks)| Starving { location: host, callpath, ticks }));
}

/// The parts of stretches, which follow each other, that lie in a span.
fn overlaps(stretches: &[(CallPathId, i64, i64)], from: i64, until: i64) -> impl Iterator<Item = (CallPathId, i64)> {
    let first = stretches.partition_point(|(_, _, end)| *end <= from);
    stretches[first..]
        .iter()
        .take_while(move |(_, begin, _)| *begin < until)
        .map(move |&(callpath, begin, end)| (callpath, end.min(until) - begin.max(from)))
}

/// When a host waited in MPI: stretches that follow each other.
fn waiting_in_mpi(trace: &Trace, host: LocationId, waits: &[WaitState]) -> Vec<(CallPathId, i64, i64)> {
    let own = waits.partition_point(|wait| wait.location < host)..waits.partition_point(|wait| wait.location <= host);
    let own = &waits[own];
    let is_whole = |wait: &WaitState| {
        Pattern::of(wait.kind).is_some_and(|pattern| {
            pattern.paradigm == Paradigm::Mpi && pattern.part_of.is_none() && pattern.is_balanced_away
        })
    };
    let begins = interval::begins(trace, own);
    let mut spans: Vec<(i64, i64)> = own
        .iter()
        .zip(begins)
        .filter(|(wait, _)| is_whole(wait))
        .map(|(wait, begin)| (begin, begin + wait.waiting))
        .collect();
    spans.sort_unstable();
    let mut merged: Vec<(CallPathId, i64, i64)> = Vec::with_capacity(spans.len());
    for (begin, end) in spans {
        match merged.last_mut() {
            Some((_, _, last)) if begin <= *last => *last = (*last).max(end),
            _ => merged.push((CallPathId::NONE, begin, end)),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_roles() {
        for name in ["hipLaunchKernel", "cudaLaunchKernel", "cuLaunchKernel", "hipModuleLaunchKernel", "clEnqueueTask"]
        {
            assert_eq!(role(name), Some(Role::Launch), "{name}");
        }
        for name in ["hipEventSynchronize", "cudaDeviceSynchronize", "cuCtxSynchronize", "clFinish", "hipMemcpy"] {
            assert_eq!(role(name), Some(Role::Synchronization), "{name}");
        }
        for name in ["hipMemcpyAsync", "cudaLaunchHostFunc", "cumulate", "main", "hipMalloc", "clear"] {
            assert_eq!(role(name), None, "{name}");
        }
    }
}
