//! The work that a synchronization awaits.
//!
//! If the streams of a call are known, it awaits everything launched on them before: a device synchronization awaits
//! all streams, a stream synchronization its stream, an event the work launched on its stream before the event was
//! recorded, and a copy the null stream, with the copy itself. Otherwise it awaits the last kernel that was launched
//! before the call and ended in it.

use rustc_hash::FxHashMap;

use super::activity::{Kernel, Synchronization};
use crate::ids::LocationId;
use crate::matching::launches::Span;
use crate::trace::Trace;
use crate::trace::call_details::CallDetails;
use crate::trace::device_calls::DeviceCall;

/// The kernels of a process's devices, indexed for the lookups below.
pub(super) struct Awaited<'a> {
    kernels: &'a [Kernel],
    by_end: Vec<u32>,
    streams: Vec<Stream>,
    /// The stream on which each event was recorded, and when.
    records: FxHashMap<u64, Vec<(i64, usize)>>,
}

/// The kernels of a stream.
struct Stream {
    location: LocationId,
    /// By begin.
    runs: Vec<u32>,
    /// In order of launch: its time, and the kernel that ends last among all launched so far.
    launched: Vec<(i64, u32)>,
    is_null: bool,
}

/// Launch time of a kernel; its begin if the launch is unknown.
fn launch_time(kernel: &Kernel) -> i64 {
    kernel.launch.map_or(kernel.run.enter, |launch| launch.enter)
}

impl<'a> Awaited<'a> {
    /// Indexes the kernels of a process; `records` are the calls that record events.
    pub(super) fn new(
        trace: &Trace,
        kernels: &'a [Kernel],
        (streams, null_streams): (&[LocationId], &[u64]),
        (details, records): (&CallDetails, &[(DeviceCall, Span)]),
    ) -> Self {
        let end = |kernel: u32| kernels[kernel as usize].run.leave;
        let mut by_end: Vec<u32> = (0..kernels.len() as u32).collect();
        let mut runs: FxHashMap<LocationId, Vec<u32>> = FxHashMap::default();
        for &kernel in &by_end {
            runs.entry(kernels[kernel as usize].run.location).or_default().push(kernel);
        }
        by_end.sort_by_key(|&kernel| end(kernel));
        let stream = |&location: &LocationId| {
            let runs = runs.remove(&location).unwrap_or_default();
            let mut order = runs.clone();
            order.sort_by_key(|&kernel| launch_time(&kernels[kernel as usize]));
            let mut latest = order.first().copied().unwrap_or_default();
            let launched = order.iter().map(|&kernel| {
                latest = if end(kernel) >= end(latest) { kernel } else { latest };
                (launch_time(&kernels[kernel as usize]), latest)
            });
            let launched = launched.collect();
            let is_null = null_streams.contains(&trace.definitions.locations[location].id);
            Stream { location, runs, launched, is_null }
        };
        let streams: Vec<Stream> = streams.iter().map(stream).collect();
        let mut awaited = Self { kernels, by_end, streams, records: FxHashMap::default() };
        for (_, call) in records {
            let event = call.detail(details, |detail| detail.event);
            if let Some((event, stream)) = event.zip(awaited.named_stream(trace, details, call)) {
                awaited.records.entry(event).or_default().push((call.enter, stream));
            }
        }
        awaited
    }

    /// The stream that a call names.
    fn named_stream(&self, trace: &Trace, details: &CallDetails, call: &Span) -> Option<usize> {
        let id = call.detail(details, |detail| detail.stream)?;
        self.streams.iter().position(|stream| trace.definitions.locations[stream.location].id == id)
    }

    /// The streams that a call synchronizes with, and the time before which their work must have been launched; `None`
    /// if unknown.
    fn scope(
        &self,
        trace: &Trace,
        details: &CallDetails,
        (kind, call): &(DeviceCall, Span),
        devices: usize,
    ) -> Option<(Vec<usize>, i64)> {
        let all = || (0..self.streams.len()).collect();
        let streams: Vec<usize> = match kind {
            DeviceCall::AwaitEvent => {
                let records = self.records.get(&call.detail(details, |detail| detail.event)?)?;
                let (until, stream) = *records.iter().rfind(|(time, _)| *time < call.enter)?;
                return Some((vec![stream], until));
            }
            DeviceCall::AwaitStream => match self.named_stream(trace, details, call) {
                Some(stream) => vec![stream],
                None => all(),
            },
            DeviceCall::Copy => (0..self.streams.len()).filter(|&stream| self.streams[stream].is_null).collect(),
            _ if devices == 1 => return Some((all(), call.enter)),
            _ => return None,
        };
        (streams.len() == 1).then_some((streams, call.enter))
    }

    /// The last kernel to end of those launched on a stream before a time.
    fn last_launched(&self, stream: usize, until: i64) -> Option<u32> {
        let launched = &self.streams[stream].launched;
        let before = launched.partition_point(|&(launched, _)| launched < until);
        before.checked_sub(1).map(|last| launched[last].1)
    }

    /// The last of a stream to end of what begins in a call without a launch: the copy that the call itself makes.
    fn copy_of(&self, stream: usize, call: &Span) -> Option<u32> {
        let runs = &self.streams[stream].runs;
        let run = |index: u32| &self.kernels[index as usize].run;
        let first = runs.partition_point(|&index| run(index).enter < call.enter);
        let inside = runs[first..].iter().copied().take_while(|&index| run(index).enter < call.leave);
        inside.filter(|&index| self.kernels[index as usize].launch.is_none()).max_by_key(|&index| run(index).leave)
    }

    /// The last kernel that was launched before a call and ended in it. If there is none, the last to end of those
    /// that, by the device's clock, still run after the call.
    fn last_ended_in(&self, call: &Span) -> Option<u32> {
        let kernel = |index: u32| &self.kernels[index as usize];
        let is_before = |index: &u32| launch_time(kernel(*index)) < call.enter;
        // Calls of a thread do not overlap, so each kernel is visited by one of them.
        let ended = self.by_end.partition_point(|&index| kernel(index).run.leave <= call.leave);
        let in_call = self.by_end[..ended].iter().rev().take_while(|index| kernel(**index).run.leave > call.enter);
        in_call.copied().find(is_before).or_else(|| {
            let running = self.streams.iter().filter_map(|stream| {
                let started = stream.runs.partition_point(|&index| kernel(index).run.enter < call.leave);
                stream.runs[..started].last().copied()
            });
            let running = running.filter(|&index| kernel(index).run.leave > call.leave).filter(is_before);
            running.max_by_key(|&index| kernel(index).run.leave)
        })
    }

    /// How long a call waited, and for which kernel, in a process with this many devices. `last_of_streams` receives
    /// the last kernel of each awaited stream, running or not.
    pub(super) fn synchronize(
        &self,
        trace: &Trace,
        details: &CallDetails,
        call: &(DeviceCall, Span),
        devices: usize,
        last_of_streams: &mut Vec<u32>,
    ) -> Synchronization {
        match self.scope(trace, details, call, devices) {
            Some((streams, until)) => {
                last_of_streams.extend(streams.iter().filter_map(|&stream| self.last_launched(stream, until)));
                if call.0 == DeviceCall::Copy {
                    last_of_streams.extend(streams.iter().filter_map(|&stream| self.copy_of(stream, &call.1)));
                }
            }
            None => last_of_streams.extend(self.last_ended_in(&call.1)),
        }
        let call = call.1;
        let end = |kernel: u32| self.kernels[kernel as usize].run.leave;
        let last = last_of_streams.iter().copied().max_by_key(|&kernel| end(kernel));
        let kernel = last.filter(|&kernel| end(kernel) > call.enter);
        let end = kernel.map_or(call.enter, |kernel| end(kernel).min(call.leave));
        let waiting = end - call.enter;
        Synchronization { call, waiting, completion: call.leave - call.enter - waiting, kernel }
    }
}
