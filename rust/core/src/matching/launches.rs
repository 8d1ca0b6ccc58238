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
use whywait_otf2::enums::Type;
use whywait_otf2::{Archive, Attributes, Definitions, Event, EventSink};

use crate::ids::{CallPathId, InstanceId, LocationId};
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
pub(crate) fn match_launches(
    definitions: &Definitions,
    trace: &Trace,
    details: &CallDetails,
    launches: &[Span],
    runs: &[Span],
) -> LaunchMatches {
    let mut pairs = Pairs {
        launches,
        runs,
        launch: vec![NONE; runs.len()],
        is_free: vec![true; launches.len()],
        early: FxHashSet::default(),
    };
    let site = |span: &Span| details.of(span, |details| details.site);
    pairs.pair(&site, &site);
    let stream = |run: &Span| Some(trace.definitions.locations[run.location].id);
    pairs.pair(&|launch| details.of(launch, |details| details.stream), &stream);
    let stub = |launch: &Span| {
        let parent = trace.tree.nodes()[launch.callpath].parent;
        let in_stub = || trace.tree.nodes().get(parent.index()).map(|_| name(trace, parent));
        let kernel = details.of(launch, |details| details.kernel).map(|kernel| definitions.string(kernel as u32));
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

/// Attributes and parameters of calls and kernels, by location and in order of their Leaves.
pub(crate) struct CallDetails(FxHashMap<LocationId, Vec<(Call, CallDetail)>>);

/// Enter and Leave of a call, ticks.
type Call = (i64, i64);

/// Attributes and parameters of one call or kernel.
#[derive(Clone, Copy, Default, PartialEq)]
pub(crate) struct CallDetail {
    /// Call-site id, a parameter of both launch and kernel.
    pub site: Option<u64>,
    /// OTF2 id of the stream that the call names, an attribute.
    pub stream: Option<u64>,
    /// Number of the device event that the call names, an attribute.
    pub event: Option<u64>,
    /// String id of the launched kernel's name, an attribute.
    pub kernel: Option<u64>,
}

impl CallDetails {
    /// Reads the details of the calls at some locations.
    pub(crate) fn read(archive: &Archive, trace: &Trace, locations: impl Iterator<Item = LocationId>) -> Self {
        let names = DetailIds::new(archive.definitions());
        let mut details = FxHashMap::default();
        if names.is_empty() {
            return Self(details);
        }
        for location in locations {
            let mut reader = Reader { names: &names, next: CallDetail::default(), open: Vec::new(), found: Vec::new() };
            if let Ok(events) = archive.location(trace.definitions.locations[location].id) {
                // A read error ends the details where it ended the events.
                let _ = events.read_events(&mut Vec::new(), &mut reader);
            }
            details.insert(location, reader.found);
        }
        Self(details)
    }

    /// A detail of the call itself, or else the last one of this kind of the calls inside it.
    pub(crate) fn of(&self, span: &Span, kind: impl Fn(&CallDetail) -> Option<u64>) -> Option<u64> {
        let own = self.0.get(&span.location)?;
        let end = own.partition_point(|((_, leave), _)| *leave <= span.leave);
        let inside = own[..end].iter().rev().take_while(|((_, leave), _)| *leave >= span.enter);
        // The previous call may end at the very tick at which this one begins.
        let inside = inside.filter(|((enter, _), _)| *enter >= span.enter);
        let mut itself = inside.clone().filter(|(call, _)| *call == (span.enter, span.leave));
        itself.find_map(|(_, detail)| kind(detail)).or_else(|| inside.clone().find_map(|(_, detail)| kind(detail)))
    }
}

/// Ids of the attributes and parameters that hold details.
struct DetailIds {
    sites: Vec<u32>,
    streams: Vec<u32>,
    events: Vec<u32>,
    kernels: Vec<u32>,
}

impl DetailIds {
    fn new(definitions: &Definitions) -> Self {
        let attributes = |names: [&str; 2]| {
            let named = definitions.attributes.iter();
            named.filter(|named| names.contains(&definitions.string(named.name))).map(|named| named.id).collect()
        };
        let kernels = definitions.attributes.iter().filter(|named| {
            named.value_type == Type::STRING && definitions.string(named.name).to_ascii_lowercase().contains("kernel")
        });
        let sites = definitions.parameters.iter();
        let sites = sites.filter(|named| definitions.string(named.name) == "callsite id").map(|named| named.id);
        Self {
            sites: sites.collect(),
            streams: attributes(["CUDA_STREAM_REF", "HIP_STREAM_REF"]),
            events: attributes(["CUDA_EVENT_REF", "HIP_EVENT_REF"]),
            kernels: kernels.map(|named| named.id).collect(),
        }
    }

    fn is_empty(&self) -> bool {
        [&self.sites, &self.streams, &self.events, &self.kernels].iter().all(|ids| ids.is_empty())
    }
}

struct Reader<'a> {
    names: &'a DetailIds,
    /// Details of the next call: attributes precede its Enter.
    next: CallDetail,
    /// Enter and details of each open call.
    open: Vec<(i64, CallDetail)>,
    found: Vec<(Call, CallDetail)>,
}

impl EventSink for Reader<'_> {
    fn enter(&mut self, time: i64, _: u32) {
        self.open.push((time, std::mem::take(&mut self.next)));
    }

    fn leave(&mut self, time: i64, _: u32) {
        self.next = CallDetail::default();
        if let Some((enter, detail)) = self.open.pop()
            && detail != CallDetail::default()
        {
            self.found.push(((enter, time), detail));
        }
    }

    fn attributed(&mut self, attributes: &Attributes<'_>) {
        let value = |ids: &[u32]| {
            let named = attributes.into_iter().find(|named| ids.contains(&named.id));
            named.map(|named| named.value.bits)
        };
        let [stream, event, kernel] =
            [&self.names.streams, &self.names.events, &self.names.kernels].map(|ids| value(ids));
        self.next = CallDetail { site: None, stream, event, kernel };
    }

    fn record(&mut self, _: i64, record: &Event<'_>, _: &Attributes<'_>) {
        if let Event::ParameterUnsignedInt { parameter, value } = *record
            && self.names.sites.contains(&parameter)
            && let Some((_, detail)) = self.open.last_mut()
        {
            detail.site = Some(value);
        }
    }
}
