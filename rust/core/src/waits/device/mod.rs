//! Accelerators: which call launched a kernel, which kernels a synchronization awaits, and who waits for whom.
//!
//! ```text
//!  host    launch ]   [ work    ] launch ]  [ sync: waits for the kernel | completion ]
//!                \               \ latency                              /
//!  device          [ kernel ] starved   [ kernel                       ]
//! ```
//!
//! Of a synchronization [E, L], e is the end of the last kernel that it awaits, at most L: the host waits for `max(e -
//! E, 0)`, and the rest is completion. Of a kernel, p is the end of the last one before it on its device, and [El, Ll]
//! the call that launched it: the device is idle for `max(start - p, 0)`. Of that it was starved by the host for
//! `max(min(start, El) - p, 0)`; `start - max(p, El)` is latency. A kernel that is launched while another runs waits in
//! a queue for `start - Ll`.
//!
//! *Source*: accelerators.md.

mod activity;
mod awaited;
mod busy;
mod hosts;
mod parts;
mod start;

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use whywait_otf2::Definitions;
use whywait_otf2::enums::Type;
use whywait_otf2::records::TypedValue;

use crate::diagnostics::DiagnosticKind;
use crate::ids::{LocationId, ProcessId};
use crate::matching::launches::{self, LaunchMatches, Run};
use crate::parallel::iter::prelude::*;
use crate::schema::Pattern;
use crate::schema::patterns::Paradigm;
use crate::severity::{Accumulator, Metric};
use crate::trace::device_calls::DeviceCall;
use crate::trace::{Shard, Trace};
use crate::waits::{Findings, WaitState, interval};
use awaited::{Awaited, Streams};
use busy::BusyTimes;
use parts::Computing;
use start::Start;

pub use crate::matching::launches::{Direction, MemoryCopy, Span};
pub(crate) use crate::waits::device_part::DevicePart;
pub use activity::{Devices, Kernel, StartCause, Synchronization};

/// A process that uses devices.
struct Host {
    /// Position of its shard.
    shard: usize,
    process: ProcessId,
    streams: Vec<LocationId>,
    threads: Vec<LocationId>,
    /// What the streams ran.
    runs: Vec<Run>,
}

/// Analyzes the devices of all processes. Returns their activity and the new findings, one entry per shard. `found`
/// holds the findings of the earlier stages, ordered by location and time.
pub(crate) fn detect(trace: &Trace, found: &[Findings]) -> (Vec<Devices>, Vec<Findings>) {
    let hosts = |(shard_number, shard): (usize, &Shard)| -> Vec<Host> {
        let host = |process: ProcessId| {
            let locations = trace.definitions.processes[process].locations;
            let is_stream = |&location: &LocationId| trace.definitions.locations[location].is_stream();
            let (streams, threads): (Vec<_>, Vec<_>) = { locations }.partition(is_stream);
            let runs = launches::device_runs(trace, shard, &streams);
            Host { shard: shard_number, process, streams, threads, runs }
        };
        { shard.processes }.map(host).filter(|host| !host.streams.is_empty()).collect()
    };
    let hosts: Vec<Vec<Host>> = trace.par_shards().enumerate().map(hosts).collect();
    let busy = BusyTimes::new(trace, hosts.iter().flatten().flat_map(|host| host.runs.iter().map(|run| &run.span)));
    let computing = hosts.iter().flatten().flat_map(|host| &host.runs);
    let computing = computing.filter(|run| run.copy.is_none() && !run.communicates);
    let computing =
        Computing::new(computing.map(|run| (busy.device[&run.span.location], run.span.enter..run.span.leave)));
    let definitions = trace.records();
    let null_streams = definitions.location_properties.iter();
    let null_streams: Vec<u64> = null_streams
        .filter(|property| matches!(definitions.string(property.name), "hipNullStream" | "CUDA_NULL_STREAM"))
        .filter(|property| is_true(definitions, &property.value))
        .map(|property| property.location)
        .collect();
    let of_shard = |hosts: Vec<Host>| {
        let (mut devices, mut findings) = <(Devices, Findings)>::default();
        for host in hosts {
            let found = &found[host.shard];
            devices.add(host.devices(trace, (&busy, &computing), &null_streams, found, &mut findings));
        }
        (devices, findings)
    };
    hosts.into_par_iter().map(of_shard).unzip()
}

/// Whether the value of a property says yes: `1`, or `yes`.
fn is_true(definitions: &Definitions, value: &TypedValue) -> bool {
    if value.kind != Type::STRING {
        return value.bits != 0;
    }
    !matches!(definitions.string(value.bits as u32).to_ascii_lowercase().as_str(), "0" | "no" | "false" | "")
}

impl Host {
    fn devices(
        self,
        trace: &Trace,
        (busy, computing): (&BusyTimes, &Computing),
        null_streams: &[u64],
        found: &Findings,
        findings: &mut Findings,
    ) -> Devices {
        let shard = &trace.shards[self.shard];
        let details = &trace.shards[self.shard].call_details;
        let records = launches::device_calls(trace, shard, &self.threads, |call| call == DeviceCall::RecordEvent);
        let stream = |&stream: &LocationId| {
            let id = trace.definitions.locations[stream].id;
            (stream, busy.device[&stream], null_streams.contains(&id))
        };
        let all: Vec<(LocationId, u32, bool)> = self.streams.iter().map(stream).collect();
        let streams = Streams::new((trace, details), all, &records);
        let calls = launches::device_calls(trace, shard, &self.threads, DeviceCall::is_synchronization);
        let of_runs = launches::device_calls(trace, shard, &self.threads, DeviceCall::is_launch);
        let matched = launches::match_launches(trace, details, &of_runs, &self.runs, &streams.floors(&calls));
        let is_launch = |(call, _): &&(DeviceCall, Span)| *call == DeviceCall::Launch;
        let launches = of_runs.iter().filter(is_launch).count() as u64;
        let mut devices = Devices { launches, ..Devices::default() };
        let is_exact = details.have_correlations();
        let ticks = |seconds: f64| (seconds * trace.resolution as f64) as i64;
        let limits = (ticks(start::GAP), ticks(start::LEAD));
        let starts = is_exact.then(|| start::starts(&self.runs, &matched.launches, limits));
        self.kernels(busy, &matched, starts.as_deref(), &mut devices);
        let is_own = |part: &&DevicePart| trace.definitions.locations[part.kernel.0].process == self.process;
        let own = found.device_parts.iter().filter(is_own).copied().chain(self.alone(trace, shard)).collect();
        devices.parts = parts::of_kernels(&devices.kernels, own, computing);
        let in_mpi = self.starve(trace, &found.waits, &mut devices);

        let awaited = Awaited::new(&devices.kernels, &streams);
        let used = self.used_devices(trace, shard, &calls, &devices.kernels);
        let mut of_calls = Vec::new();
        let mut of_streams = Vec::new();
        let synchronize = |(number, (call, device)): (u32, (&(DeviceCall, Span), Option<u32>))| {
            of_streams.clear();
            let found = awaited.synchronize(*call, streams.scope(call, device), &mut of_streams);
            of_calls.extend(of_streams.iter().map(|&kernel| (number, kernel)));
            found
        };
        devices.synchronizations = (0..).zip(calls.iter().zip(used)).map(synchronize).collect();
        devices.awaited = of_calls;
        self.count_unmatched(&matched, &mut devices, findings);
        self.book(trace, shard, &devices, in_mpi, findings);
        devices
    }

    /// The parts of kernels in operations of which no other member is in the trace: they wait for nobody who is known.
    fn alone(&self, trace: &Trace, shard: &Shard) -> impl Iterator<Item = DevicePart> {
        let rows = self.streams.iter().flat_map(|&stream| {
            let rows = shard.collectives.of(shard.local(stream));
            rows.iter().map(move |row| (stream, row))
        });
        let alone = rows.filter(|(_, row)| trace.definitions.comms[row.comm].size == 1);
        alone.map(|(stream, row)| DevicePart {
            kind: Metric::CclWaitNxN,
            kernel: (stream, row.instance),
            waiting: 0,
            exposed: 0,
            cause: (stream, row.instance),
            tie: None,
            comm: row.comm,
            bytes: row.sent.max(row.received),
        })
    }

    /// The device that the thread of each synchronization used when it was called: the one that it launched on since it
    /// selected a device, or else does until it selects another.
    fn used_devices(
        &self,
        trace: &Trace,
        shard: &Shard,
        calls: &[(DeviceCall, Span)],
        kernels: &[Kernel],
    ) -> Vec<Option<u32>> {
        let selections = launches::device_calls(trace, shard, &self.threads, |call| call == DeviceCall::Select);
        let mut selected: FxHashMap<LocationId, Vec<i64>> = FxHashMap::default();
        for (_, call) in &selections {
            selected.entry(call.location).or_default().push(call.enter);
        }
        let mut launched: BTreeMap<LocationId, Vec<(i64, u32)>> = BTreeMap::new();
        for kernel in kernels {
            if let Some(launch) = &kernel.launch {
                launched.entry(launch.location).or_default().push((launch.enter, kernel.device));
            }
        }
        for of_thread in launched.values_mut() {
            of_thread.sort_unstable();
        }
        let of_call = |(_, call): &(DeviceCall, Span)| {
            let selected = selected.get(&call.location).map_or(&[][..], Vec::as_slice);
            let next = selected.partition_point(|&time| time <= call.enter);
            let since = next.checked_sub(1).map_or(i64::MIN, |last| selected[last]);
            let until = selected.get(next).copied().unwrap_or(i64::MAX);
            let launched = launched.get(&call.location)?;
            let later = launched.partition_point(|&(time, _)| time <= call.enter);
            let before = launched[..later].last().filter(|(time, _)| *time >= since);
            before.or_else(|| launched.get(later).filter(|(time, _)| *time < until)).map(|&(_, device)| device)
        };
        calls.iter().map(of_call).collect()
    }

    /// Determines what delayed each kernel, if `starts` do not tell, and how long its device was idle before it.
    fn kernels(&self, busy: &BusyTimes, matched: &LaunchMatches, starts: Option<&[Start]>, devices: &mut Devices) {
        // The last kernel of each stream, and the kernel of each device that ends last.
        let mut on_stream: FxHashMap<LocationId, u32> = FxHashMap::default();
        let mut on_device: FxHashMap<u32, u32> = FxHashMap::default();
        for (number, (&Run { span: run, copy, communicates }, &launch)) in
            (0..).zip(self.runs.iter().zip(&matched.launches))
        {
            let device = busy.device[&run.location];
            // The first launch is the latest time at which a device can have become available.
            let before = busy.previous_end(&run).or(launch.map(|launch| launch.enter.min(run.enter)));
            let other = |kernel: u32| &self.runs[kernel as usize].span;
            let end = |kernel: u32| other(kernel).leave;
            let earlier = [on_stream.insert(run.location, number), on_device.get(&device).copied()];
            let own = earlier[0].map(end).filter(|&end| end <= run.enter);
            let earlier = earlier.into_iter().flatten();
            let latest = on_device.entry(device).or_insert(number);
            *latest = if end(*latest) > run.leave { *latest } else { number };
            let mut kernel = Kernel {
                run,
                copy,
                communicates,
                device,
                launch,
                start_cause: StartCause::Unknown,
                follows: None,
                idle: before.map_or(0, |before| (run.enter - before).max(0)),
                starved: 0,
                mpi_starved: 0,
                latency: 0,
                queued: 0,
                turn: 0,
            };
            if let Some(launch) = launch {
                let held = earlier.filter(|&other| (launch.enter + 1..=run.enter).contains(&end(other)));
                let held = held.max_by_key(|&other| end(other));
                kernel.start_cause = held.map_or(StartCause::Launched, StartCause::After);
                let held = match starts.map(|starts| starts[number as usize].cause) {
                    None => held,
                    Some(StartCause::After(other)) => Some(other),
                    Some(_) => None,
                };
                if let Some(held) = held.filter(|&held| other(held).location != run.location) {
                    let ready = own.unwrap_or(i64::MIN).max(launch.leave);
                    kernel.turn = (end(held) - ready).max(0);
                }
                let since = before.unwrap_or(i64::MIN).max(launch.enter);
                kernel.latency = (run.enter - since).max(0);
                kernel.starved = before.map_or(0, |before| (run.enter.min(launch.enter) - before).max(0));
                if before.is_some_and(|before| before > launch.leave) {
                    kernel.queued = (run.enter - launch.leave).max(0);
                }
            }
            if let Some(starts) = starts {
                let start = starts[number as usize];
                (kernel.start_cause, kernel.follows) = (start.cause, start.follows);
            }
            devices.kernels.push(kernel);
        }
    }

    /// Returns the waits in MPI of threads while they starved devices, as MPI Starved.
    fn starve(&self, trace: &Trace, waits: &[WaitState], devices: &mut Devices) -> Vec<WaitState> {
        let mut waited = Vec::new();
        for &host in &self.threads {
            let launched_here = |kernel: &&mut Kernel| {
                kernel.starved > 0 && kernel.launch.is_some_and(|launch| launch.location == host)
            };
            let mut starved = devices.kernels.iter_mut().filter(launched_here).peekable();
            if starved.peek().is_none() {
                continue;
            }
            let in_mpi = waiting_in_mpi(trace, host, waits);
            for kernel in starved {
                let (from, until) = kernel.starvation();
                for ((wait, ..), length) in hosts::overlaps(&in_mpi, from, until) {
                    kernel.mpi_starved += length;
                    waited.push(WaitState {
                        kind: Metric::GpuMpiStarved,
                        location: kernel.run.location,
                        instance: kernel.run.instance,
                        waiting: length,
                        ..**wait
                    });
                }
            }
        }
        waited
    }

    /// Counts unmatched launches and kernels, and clock violations.
    fn count_unmatched(&self, matched: &LaunchMatches, devices: &mut Devices, findings: &mut Findings) {
        let is_of_profiler = self.runs.iter().any(|run| run.communicates);
        for &run in &matched.unlaunched {
            let run = &self.runs[run as usize].span;
            devices.unmatched_kernels += 1;
            // A profiler that records nothing but devices lacks no launches.
            if devices.launches > 0 || !is_of_profiler {
                findings.diagnostics.add(DiagnosticKind::KernelWithoutLaunch, run.location, run.enter);
            }
        }
        devices.early.clone_from(&matched.early);
        for launch in &matched.lost {
            devices.lost_launches.push(*launch);
            findings.diagnostics.add(DiagnosticKind::LaunchWithoutKernel, launch.location, launch.enter);
        }
        let is_behind = |synchronization: &&Synchronization| {
            let kernel = synchronization.kernel.map(|kernel| &devices.kernels[kernel as usize]);
            kernel.is_some_and(|kernel| kernel.run.leave > synchronization.call.leave)
        };
        let late = devices.synchronizations.iter().filter(is_behind).map(|synchronization| &synchronization.call);
        let early = matched.early.iter().map(|&(run, _)| &self.runs[run as usize].span);
        for span in late.chain(early) {
            devices.clock_violations += 1;
            findings.diagnostics.add(DiagnosticKind::ClockViolationDevice, span.location, span.leave);
        }
    }

    /// Turns kernels and synchronizations into severities and wait states.
    fn book(
        &self,
        trace: &Trace,
        shard: &Shard,
        devices: &Devices,
        mut waits: Vec<WaitState>,
        findings: &mut Findings,
    ) {
        for kernel in &devices.kernels {
            let own = (kernel.run.location, kernel.run.instance);
            if let Some(launch) = kernel.launch {
                let cause = (launch.location, launch.instance);
                waits.push(WaitState::new(Metric::GpuDeviceStarved, own, kernel.starved, cause));
                waits.push(WaitState::without_cause(Metric::GpuLaunchLatency, own, kernel.latency));
            }
        }
        for &Synchronization { call, waiting, completion, kernel } in &devices.synchronizations {
            let own = (call.location, call.instance);
            if let Some(kernel) = kernel {
                let run = &devices.kernels[kernel as usize].run;
                waits.push(WaitState::new(Metric::GpuHostWait, own, waiting, (run.location, run.instance)));
            }
            waits.push(WaitState::without_cause(Metric::GpuHostCompletion, own, completion));
        }
        waits.extend(parts::waits(&devices.parts));
        waits.retain(|wait| wait.waiting > 0);
        waits.sort_by_key(|wait| (wait.location, shard.instances.enter[wait.instance], wait.kind));
        let mut kernels: Vec<&Kernel> = devices.kernels.iter().collect();
        kernels.sort_by_key(|kernel| kernel.run.location);
        let (mut kernels, mut of_waits) = (kernels.into_iter().peekable(), waits.iter().peekable());
        let mut parts = devices.parts.iter().peekable();
        let mut cells = Accumulator::new(&trace.tree);
        for location in trace.definitions.processes[self.process].locations {
            while let Some(wait) = of_waits.next_if(|wait| wait.location == location) {
                cells.add(wait.kind, shard.callpath(wait.instance), wait.waiting);
            }
            while let Some(part) = parts.next_if(|part| part.kernel.0 == location) {
                cells.add(Metric::CclHidden, shard.callpath(part.kernel.1), part.waiting - part.exposed);
            }
            while let Some(kernel) = kernels.next_if(|kernel| kernel.run.location == location) {
                cells.add(Metric::GpuDeviceIdle, kernel.run.callpath, kernel.idle);
                cells.add(Metric::GpuQueue, kernel.run.callpath, kernel.queued);
            }
            cells.end_location(location);
        }
        findings.severities.append(&mut cells.finish());
        findings.waits.append(&mut waits);
    }
}

/// The waits of a thread in MPI with begin and end; they do not overlap.
pub(crate) fn waiting_in_mpi<'a>(
    trace: &Trace,
    host: LocationId,
    waits: &'a [WaitState],
) -> Vec<(&'a WaitState, i64, i64)> {
    let own = waits.partition_point(|wait| wait.location < host)..waits.partition_point(|wait| wait.location <= host);
    let own = &waits[own];
    let is_whole = |wait: &WaitState| {
        Pattern::of(wait.kind).is_some_and(|pattern| {
            pattern.paradigm() == Paradigm::Mpi && pattern.part_of.is_none() && pattern.is_balanced_away
        })
    };
    let begins = interval::begins(trace, own);
    let mut spans: Vec<(&WaitState, i64, i64)> = own
        .iter()
        .zip(begins)
        .filter(|(wait, _)| is_whole(wait))
        .map(|(wait, begin)| (wait, begin, begin + wait.waiting))
        .collect();
    spans.sort_by_key(|&(_, begin, end)| (begin, end));
    let mut until = i64::MIN;
    spans.retain_mut(|(_, begin, end)| {
        *begin = until.max(*begin);
        until = until.max(*end);
        begin < end
    });
    spans
}
