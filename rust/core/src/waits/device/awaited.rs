//! The work that a synchronization awaits.
//!
//! If the streams of a call are known, it awaits everything launched on them before: a device synchronization awaits
//! all streams of its device, a stream synchronization its stream, an event the work launched on its stream before the
//! event was recorded, and a copy the null stream, with the copy itself. Otherwise it awaits the last kernel that was
//! launched before the call and ended in it.

use rustc_hash::FxHashMap;

use super::activity::{Kernel, Synchronization};
use crate::ids::LocationId;
use crate::matching::launches::{Floors, Span};
use crate::trace::Trace;
use crate::trace::call_details::CallDetails;
use crate::trace::device_calls::DeviceCall;

/// The streams of a process, and what calls say about them.
pub(super) struct Streams<'a> {
    trace: &'a Trace,
    details: &'a CallDetails,
    /// Each with the number of its device, and whether it is a null stream.
    all: Vec<(LocationId, u32, bool)>,
    has_one_device: bool,
    /// The stream on which each event was recorded, and when.
    records: FxHashMap<u64, Vec<(i64, usize)>>,
}

/// What a call awaits: streams, and the time before which the work on them must have been launched.
pub(super) type Scope = (Vec<usize>, i64);

impl<'a> Streams<'a> {
    /// `records` are the calls that record events.
    pub(super) fn new(
        (trace, details): (&'a Trace, &'a CallDetails),
        all: Vec<(LocationId, u32, bool)>,
        records: &[(DeviceCall, Span)],
    ) -> Self {
        let has_one_device = all.windows(2).all(|pair| pair[0].1 == pair[1].1);
        let mut streams = Self { trace, details, all, has_one_device, records: FxHashMap::default() };
        for (_, call) in records {
            let event = call.detail(details, |detail| detail.event);
            if let Some((event, stream)) = event.zip(streams.named(call)) {
                streams.records.entry(event).or_default().push((call.enter, stream));
            }
        }
        streams.records.values_mut().for_each(|of_event| of_event.sort_by_key(|(time, _)| *time));
        streams
    }

    /// The stream that a call names.
    fn named(&self, call: &Span) -> Option<usize> {
        let id = call.detail(self.details, |detail| detail.stream)?;
        self.all.iter().position(|&(location, ..)| self.trace.definitions.locations[location].id == id)
    }

    /// What a call awaits; `None` if unknown. `device` is the one that its thread uses, if that is known.
    pub(super) fn scope(&self, (kind, call): &(DeviceCall, Span), device: Option<u32>) -> Option<Scope> {
        let those = |is: &dyn Fn(u32, bool) -> bool| {
            let found = self.all.iter().enumerate().filter(|(_, (_, device, is_null))| is(*device, *is_null));
            found.map(|(stream, _)| stream).collect::<Vec<_>>()
        };
        let streams = match kind {
            DeviceCall::AwaitEvent => {
                let records = self.records.get(&call.detail(self.details, |detail| detail.event)?)?;
                let before = records.partition_point(|(time, _)| *time < call.enter);
                let &(until, stream) = records[..before].last()?;
                return Some((vec![stream], until));
            }
            DeviceCall::AwaitStream => self.named(call).map_or_else(|| those(&|_, _| true), |stream| vec![stream]),
            DeviceCall::Copy => those(&|_, is_null| is_null),
            _ if self.has_one_device => return Some((those(&|_, _| true), call.enter)),
            _ => {
                let device = device?;
                return Some((those(&|number, _| number == device), call.enter));
            }
        };
        (streams.len() == 1).then_some((streams, call.enter))
    }

    /// Since when the streams have not been awaited, by the calls whose scopes are known.
    pub(super) fn floors(&self, calls: &[(DeviceCall, Span)]) -> Floors {
        let mut floors = Floors::default();
        for call in calls {
            if let Some((streams, until)) = self.scope(call, None) {
                for stream in streams {
                    floors.add(self.all[stream].0, call.1.leave, until);
                }
            }
        }
        floors.finish();
        floors
    }
}

/// The kernels of a process's devices, indexed for the lookups below.
pub(super) struct Awaited<'a> {
    kernels: &'a [Kernel],
    by_end: Vec<u32>,
    streams: Vec<Stream>,
}

/// The kernels of a stream.
struct Stream {
    /// By begin.
    runs: Vec<u32>,
    /// In order of launch: its time, and the kernel that ends last among all launched so far.
    launched: Vec<(i64, u32)>,
}

/// Launch time of a kernel; its begin if the launch is unknown.
fn launch_time(kernel: &Kernel) -> i64 {
    kernel.launch.map_or(kernel.run.enter, |launch| launch.enter)
}

impl<'a> Awaited<'a> {
    /// Indexes the kernels of a process.
    pub(super) fn new(kernels: &'a [Kernel], streams: &Streams<'_>) -> Self {
        let end = |kernel: u32| kernels[kernel as usize].run.leave;
        let mut by_end: Vec<u32> = (0..kernels.len() as u32).collect();
        let mut runs: FxHashMap<LocationId, Vec<u32>> = FxHashMap::default();
        for &kernel in &by_end {
            runs.entry(kernels[kernel as usize].run.location).or_default().push(kernel);
        }
        by_end.sort_by_key(|&kernel| end(kernel));
        let stream = |(location, ..): &(LocationId, u32, bool)| {
            let runs = runs.remove(location).unwrap_or_default();
            let mut order = runs.clone();
            order.sort_by_key(|&kernel| launch_time(&kernels[kernel as usize]));
            let mut latest = order.first().copied().unwrap_or_default();
            let launched = order.iter().map(|&kernel| {
                latest = if end(kernel) >= end(latest) { kernel } else { latest };
                (launch_time(&kernels[kernel as usize]), latest)
            });
            let launched = launched.collect();
            Stream { runs, launched }
        };
        let streams = streams.all.iter().map(stream).collect();
        Self { kernels, by_end, streams }
    }

    /// The last kernel to end of those launched on a stream before a time.
    fn last_launched(&self, stream: usize, until: i64) -> Option<u32> {
        let launched = &self.streams[stream].launched;
        let before = launched.partition_point(|&(launched, _)| launched < until);
        before.checked_sub(1).map(|last| launched[last].1)
    }

    /// The last of a stream to end of what begins in a call, launched by nothing else: the copy that the call makes.
    fn copy_of(&self, stream: usize, call: &Span) -> Option<u32> {
        let runs = &self.streams[stream].runs;
        let kernel = |index: u32| &self.kernels[index as usize];
        let first = runs.partition_point(|&index| kernel(index).run.enter < call.enter);
        let inside = runs[first..].iter().copied().take_while(|&index| kernel(index).run.enter < call.leave);
        let is_own = |index: &u32| kernel(*index).launch.is_none_or(|launch| launch.instance == call.instance);
        inside.filter(is_own).max_by_key(|&index| kernel(index).run.leave)
    }

    /// The last kernel that was launched before a call and ended in it. If there is none, the last to end of those
    /// that, by the device's clock, end after the call, but of which more lies in it.
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
            let is_late = |index: &u32| {
                let run = &kernel(*index).run;
                run.leave > call.leave && run.leave - call.leave < call.leave - run.enter.max(call.enter)
            };
            running.filter(is_late).filter(is_before).max_by_key(|&index| kernel(index).run.leave)
        })
    }

    /// How long a call waited, and for which kernel, given what it awaits if that is known. `last_of_streams` receives
    /// the last kernel of each awaited stream, running or not.
    pub(super) fn synchronize(
        &self,
        (kind, call): (DeviceCall, Span),
        scope: Option<Scope>,
        last_of_streams: &mut Vec<u32>,
    ) -> Synchronization {
        match scope {
            Some((streams, until)) => {
                last_of_streams.extend(streams.iter().filter_map(|&stream| self.last_launched(stream, until)));
                if kind == DeviceCall::Copy {
                    last_of_streams.extend(streams.iter().filter_map(|&stream| self.copy_of(stream, &call)));
                }
            }
            None => last_of_streams.extend(self.last_ended_in(&call)),
        }
        let run = |kernel: u32| &self.kernels[kernel as usize].run;
        // What begins after the return of a call does not explain it.
        last_of_streams.retain(|&kernel| run(kernel).enter < call.leave);
        let last = last_of_streams.iter().copied().max_by_key(|&kernel| run(kernel).leave);
        let kernel = last.filter(|&kernel| run(kernel).leave > call.enter);
        let end = kernel.map_or(call.enter, |kernel| run(kernel).leave.min(call.leave));
        let waiting = end - call.enter;
        Synchronization { call, waiting, completion: call.leave - call.enter - waiting, kernel }
    }
}
