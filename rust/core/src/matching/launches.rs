//! Kernels of a process: what its devices ran, and which call launched it.
//!
//! Kernels and launches are paired by the first of these that both have: the call-site id; the stream that the launch
//! names; the kernel's name, given by the launch or by the stub around it; and, if there is only one stream, their order.
//! Among equals, the k-th kernel belongs to the k-th launch. No kernel starts before its launch.
//!
//! *Source*: accelerators.md.

use std::hash::Hash;

use bitcode::{Decode, Encode};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::ids::{CallPathId, InstanceId, LocationId};
use crate::trace::call_details::{CallDetail, CallDetails};
use crate::trace::device_calls::DeviceCall;
use crate::trace::{NONE, RegionClass, Shard, Trace};

/// A call on a thread, or an activity on a stream.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct Span {
    /// Index of the location.
    pub location: LocationId,
    /// Region instance in the shard of the location.
    pub instance: InstanceId,
    /// Call path.
    pub callpath: CallPathId,
    /// Enter, ticks.
    pub enter: i64,
    /// Leave, ticks.
    pub leave: i64,
}

impl Span {
    /// A detail of the call itself, or else the last one of this kind of the calls inside it.
    pub(crate) fn detail(&self, details: &CallDetails, kind: impl Fn(&CallDetail) -> Option<u64>) -> Option<u64> {
        details.of(self.location, (self.enter, self.leave), kind)
    }
}

/// The outermost region instances of a location whose call path is `wanted`, in order of time.
pub(crate) fn spans(shard: &Shard, location: LocationId, wanted: impl Fn(CallPathId) -> bool) -> Vec<Span> {
    let instances = shard.instances_of(location).filter(|&instance| wanted(shard.callpath(instance)));
    let mut events: Vec<(u32, u32, InstanceId)> = instances
        .map(|instance| (shard.instances.enter[instance], shard.instances.leave[instance], instance))
        .collect();
    events.sort_unstable();
    let mut end = 0;
    events.retain(|&(enter, leave, _)| {
        let is_outermost = enter >= end;
        end = if is_outermost { leave } else { end };
        is_outermost
    });
    let span = |(_, _, instance)| Span {
        location,
        instance,
        callpath: shard.callpath(instance),
        enter: shard.enter(instance),
        leave: shard.leave(instance),
    };
    events.into_iter().map(span).collect()
}

/// The `wanted` calls of the threads `hosts` to the device's library, in order of time.
pub(crate) fn device_calls(
    trace: &Trace,
    shard: &Shard,
    hosts: &[LocationId],
    wanted: impl Fn(DeviceCall) -> bool,
) -> Vec<(DeviceCall, Span)> {
    let call = |callpath: CallPathId| match trace.regions.class(trace.tree.region(callpath)) {
        RegionClass::Device(call) if wanted(call) => Some(call),
        _ => None,
    };
    let of_host = |&host: &LocationId| spans(shard, host, |callpath| call(callpath).is_some());
    let found = hosts.iter().flat_map(of_host);
    let mut found: Vec<(DeviceCall, Span)> =
        found.filter_map(|span| call(span.callpath).map(|call| (call, span))).collect();
    found.sort_by_key(|(_, span)| span.enter);
    found
}

/// The kernels and copies on the streams, in order of time.
pub(crate) fn device_runs(trace: &Trace, shard: &Shard, streams: &[LocationId]) -> Vec<Span> {
    // Score-P can write that a device is idle as a region: GPU IDLE, COMPUTE IDLE.
    let is_work = |callpath: CallPathId| !name(trace, callpath).ends_with(" IDLE");
    let mut runs: Vec<Span> = streams.iter().flat_map(|&stream| spans(shard, stream, is_work)).collect();
    runs.sort_by_key(|run| (run.enter, run.leave));
    runs
}

fn name(trace: &Trace, callpath: CallPathId) -> &str {
    trace.regions.get(trace.tree.region(callpath)).map_or("", |region| region.name.as_str())
}

/// The launches of kernels and copies.
pub(crate) struct LaunchMatches {
    /// For each run, the position of its launch, or [`NONE`].
    pub launches: Vec<u32>,
    /// Positions of runs that have no launch because the matching one begins after them, though before their end.
    pub early: Vec<u32>,
}

/// Finds the launch of each run; both are in order of time.
pub(crate) fn match_launches(trace: &Trace, details: &CallDetails, launches: &[Span], runs: &[Span]) -> LaunchMatches {
    let mut pairs = Pairs {
        launches,
        runs,
        launch: vec![NONE; runs.len()],
        is_free: vec![true; launches.len()],
        early: FxHashSet::default(),
    };
    let site = |span: &Span| span.detail(details, |detail| detail.site);
    pairs.pair(&site, &site);
    let stream = |run: &Span| Some(trace.definitions.locations[run.location].id);
    pairs.pair(&|launch| launch.detail(details, |detail| detail.stream), &stream);
    let stub = |launch: &Span| {
        let parent = trace.tree.nodes()[launch.callpath].parent;
        let in_stub = || trace.tree.nodes().get(parent.index()).map(|_| name(trace, parent));
        let kernel = launch.detail(details, |detail| detail.kernel).map(|kernel| trace.records().string(kernel as u32));
        kernel.or_else(|| in_stub()?.strip_prefix("__device_stub__"))
    };
    pairs.pair(&stub, &|run: &Span| Some(name(trace, run.callpath)));
    if runs.iter().all(|run| run.location == runs[0].location) {
        pairs.pair(&|_: &Span| Some(()), &|_: &Span| Some(()));
    }
    let Pairs { launch, mut early, .. } = pairs;
    early.retain(|&run| launch[run as usize] == NONE);
    let mut early: Vec<u32> = early.into_iter().collect();
    early.sort_unstable();
    LaunchMatches { launches: launch, early }
}

/// The key by which a launch or a run is paired, if it has one.
type Key<'a, K> = &'a dyn Fn(&Span) -> Option<K>;

struct Pairs<'a> {
    launches: &'a [Span],
    runs: &'a [Span],
    launch: Vec<u32>,
    is_free: Vec<bool>,
    early: FxHashSet<u32>,
}

impl Pairs<'_> {
    /// Pairs the k-th unpaired launch of each key with the k-th unpaired run.
    fn pair<K: Eq + Hash>(&mut self, of_launch: Key<'_, K>, of_run: Key<'_, K>) {
        let mut waiting: FxHashMap<K, Vec<u32>> = FxHashMap::default();
        for (index, launch) in self.launches.iter().enumerate().rev() {
            if self.is_free[index]
                && let Some(key) = of_launch(launch)
            {
                waiting.entry(key).or_default().push(index as u32);
            }
        }
        for (number, run) in self.runs.iter().enumerate() {
            if self.launch[number] != NONE {
                continue;
            }
            let Some(queue) = of_run(run).and_then(|key| waiting.get_mut(&key)) else { continue };
            let Some(&next) = queue.last() else { continue };
            let launch = &self.launches[next as usize];
            if launch.enter <= run.enter {
                queue.pop();
                self.launch[number] = next;
                self.is_free[next as usize] = false;
            } else if launch.enter < run.leave {
                self.early.insert(number as u32);
            }
        }
    }
}
