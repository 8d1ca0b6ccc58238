//! Kernels and copies of a process: what its devices ran, and which call launched it.
//!
//! A launch and what ran agree in all that both say: the number of their call site, the stream, and the name of the
//! kernel, given by the launch or by the stub around it. Those that say the most are paired first. Launches that say
//! nothing are paired if everything ran on one stream. [`super::pairing`] pairs those that are alike.
//!
//! *Source*: accelerators.md#who-launched-what.

use std::collections::BTreeMap;
use std::hash::Hash;

use bitcode::{Decode, Encode};
use rustc_hash::{FxHashMap, FxHashSet};
use whywait_otf2::enums::RegionRole;

use super::pairing::{Begun, pair};
use crate::ids::{CallPathId, InstanceId, LocationId, RegionKey};
use crate::trace::call_details::{CallDetail, CallDetails};
use crate::trace::device_calls::DeviceCall;
use crate::trace::{NONE, RegionClass, Regions, Shard, Trace};

/// A call on a thread, or an activity on a stream.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct Span {
    /// Index of the location.
    pub location: LocationId,
    /// Region instance in the shard of the location.
    pub instance: InstanceId,
    /// Region instance at whose Leave it ends: another one for a kernel that crosses others on its stream.
    pub last: InstanceId,
    /// Call path.
    pub callpath: CallPathId,
    /// Enter, ticks.
    pub enter: i64,
    /// Leave, ticks.
    pub leave: i64,
}

impl Span {
    fn of(shard: &Shard, location: LocationId, instance: InstanceId) -> Self {
        let mut last = instance;
        while let Some(&next) = shard.continued.get(&last) {
            last = next;
        }
        let callpath = shard.callpath(instance);
        Self { location, instance, last, callpath, enter: shard.enter(instance), leave: shard.leave(last) }
    }

    /// A detail of the call itself, or else the last one of this kind of the calls inside it.
    pub(crate) fn detail(&self, details: &CallDetails, kind: impl Fn(&CallDetail) -> Option<u64>) -> Option<u64> {
        details.of(self.location, (self.enter, self.leave), kind)
    }
}

/// What a stream did: a kernel, or a copy.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct Run {
    /// Where and when.
    pub span: Span,
    /// If it copies or sets memory, how.
    pub copy: Option<MemoryCopy>,
    /// Whether it is a kernel that communicates with other devices.
    pub communicates: bool,
}

/// A copy of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct MemoryCopy {
    /// Bytes, if they are recorded.
    pub bytes: Option<u64>,
    /// The thread or stream at the other side, or none.
    pub remote: LocationId,
    /// From where to where.
    pub direction: Direction,
}

/// From where to where a copy goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Direction {
    /// From a host to a device.
    ToDevice,
    /// From a device to a host.
    ToHost,
    /// Within a device, or a memset.
    OnDevice,
    /// From one device to another.
    BetweenDevices,
    /// The trace does not tell.
    Unknown,
}

impl Direction {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::ToDevice => "to device",
            Self::ToHost => "to host",
            Self::OnDevice => "on device",
            Self::BetweenDevices => "between devices",
            Self::Unknown => "unknown",
        }
    }

    /// The direction of a copy by its name; `None` if it is no copy.
    fn of(name: &str, role: RegionRole) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
        // A kernel may be named copy: only the names that drivers give to copies count.
        let is_copy = role == RegionRole::DATA_TRANSFER
            || (role != RegionRole::KERNEL && !name.contains("kernel") && has(&["memcpy", "memset"]))
            || DRIVER_COPIES.contains(&name.as_str());
        is_copy.then(|| {
            if has(&["dtoh", "devicetohost", "device to host", "copy to host"]) {
                Self::ToHost
            } else if has(&["htod", "hosttodevice", "host to device", "copy to device"]) {
                Self::ToDevice
            } else if has(&["ptop", "peer", "between devices"]) {
                Self::BetweenDevices
            } else if has(&["dtod", "devicetodevice", "device to device", "on device", "memset"]) {
                Self::OnDevice
            } else {
                Self::Unknown
            }
        })
    }
}

/// Names of copies besides `memcpy`, in lower case.
const DRIVER_COPIES: [&str; 8] =
    ["htod", "dtoh", "dtod", "ptop", "copyhosttodevice", "copydevicetohost", "copydevicetodevice", "copybuffer"];

/// Whether a region of a stream copies or sets memory, and in which direction.
fn copy_direction(trace: &Trace, region: RegionKey) -> Option<Direction> {
    trace.regions.get(region).and_then(|region| Direction::of(&region.name, region.role))
}

/// The outermost region instances of a location whose call path is `wanted`, in order of time.
fn spans(shard: &Shard, location: LocationId, wanted: impl Fn(CallPathId) -> bool) -> Vec<Span> {
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
    events.into_iter().map(|(.., instance)| Span::of(shard, location, instance)).collect()
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

/// The kernels and copies on the streams, in order of time. Those that overlap on a stream are all there.
pub(crate) fn device_runs(trace: &Trace, shard: &Shard, streams: &[LocationId]) -> Vec<Run> {
    let later: FxHashSet<InstanceId> = shard.continued.values().copied().collect();
    let copies = shard.copies.iter().map(|copied| (copied.instance, (copied.bytes, copied.remote)));
    let copies: FxHashMap<InstanceId, (u64, LocationId)> = copies.collect();
    let of_path = |callpath: CallPathId| {
        let region = trace.tree.region(callpath);
        // Score-P can write that a device is idle as a region: GPU IDLE, COMPUTE IDLE.
        let is_work = !Regions::is_pause(region) && !name(trace, callpath).ends_with(" IDLE");
        is_work.then(|| copy_direction(trace, region))
    };
    let mut known: FxHashMap<CallPathId, Option<Option<Direction>>> = FxHashMap::default();
    let mut runs = Vec::new();
    for &stream in streams {
        for instance in shard.instances_of(stream) {
            let callpath = shard.callpath(instance);
            let Some(direction) = *known.entry(callpath).or_insert_with(|| of_path(callpath)) else { continue };
            if later.contains(&instance) || shard.left_out.contains(&instance) {
                continue;
            }
            let copied = copies.get(&instance);
            let copy = direction.map(|direction| MemoryCopy {
                bytes: copied.map(|&(bytes, _)| bytes),
                remote: copied.map_or(LocationId::NONE, |&(_, remote)| remote),
                direction,
            });
            let communicates = trace.class(shard, instance).is_device_communication();
            runs.push(Run { span: Span::of(shard, stream, instance), copy, communicates });
        }
    }
    runs.sort_by_key(|run| (run.span.enter, run.span.leave));
    runs
}

fn name(trace: &Trace, callpath: CallPathId) -> &str {
    trace.regions.get(trace.tree.region(callpath)).map_or("", |region| region.name.as_str())
}

/// Since when each stream has not been awaited: calls that await it, by the time of their return.
#[derive(Debug, Default)]
pub(crate) struct Floors(BTreeMap<LocationId, Vec<(i64, i64)>>);

impl Floors {
    /// Adds that at its return, a call had awaited all work that was launched on a stream before a time.
    pub(crate) fn add(&mut self, stream: LocationId, returned: i64, launched: i64) {
        self.0.entry(stream).or_default().push((returned, launched));
    }

    /// Orders all calls.
    pub(crate) fn finish(&mut self) {
        for of_stream in self.0.values_mut() {
            of_stream.sort_unstable();
            let mut latest = i64::MIN;
            for (_, launched) in of_stream {
                latest = latest.max(*launched);
                *launched = latest;
            }
        }
    }

    /// The time before which all work on a stream had been launched that had ended at a time for certain.
    fn of(&self, stream: LocationId, time: i64) -> i64 {
        let Some(calls) = self.0.get(&stream) else { return i64::MIN };
        let before = calls.partition_point(|&(returned, _)| returned <= time);
        before.checked_sub(1).map_or(i64::MIN, |last| calls[last].1)
    }
}

/// The launches of kernels and copies.
pub(crate) struct LaunchMatches {
    /// For each run, the call that launched it.
    pub launches: Vec<Option<Span>>,
    /// Launches without a kernel.
    pub lost: Vec<Span>,
    /// Positions of runs without a launch, though their process records such launches.
    pub unlaunched: Vec<u32>,
    /// Positions of runs that have no launch because the matching one begins after them, though before their end; and
    /// that one.
    pub early: Vec<(u32, Span)>,
}

/// Finds the launch of each run. `calls` launch kernels or copies, some of which copy themselves; all are in order of
/// time.
pub(crate) fn match_launches(
    trace: &Trace,
    details: &CallDetails,
    calls: &[(DeviceCall, Span)],
    runs: &[Run],
    floors: &Floors,
) -> LaunchMatches {
    let mut found =
        LaunchMatches { launches: vec![None; runs.len()], lost: Vec::new(), unlaunched: Vec::new(), early: Vec::new() };
    let is_settled = pair_by_correlation(details, calls, runs, &mut found);
    for copies in [false, true] {
        let rest = calls.iter().zip(&is_settled).filter(|(_, is_settled)| !**is_settled).map(|(call, _)| call);
        let calls: Vec<&(DeviceCall, Span)> =
            rest.filter(|(call, _)| (*call != DeviceCall::Launch) == copies).collect();
        let is_open =
            |number: u32, run: &Run| run.copy.is_some() == copies && found.launches[number as usize].is_none();
        let own: Vec<u32> =
            (0..).zip(runs).filter(|&(number, run)| is_open(number, run)).map(|(number, _)| number).collect();
        if copies && (calls.is_empty() || own.is_empty()) {
            continue;
        }
        let spans: Vec<Span> = calls.iter().map(|(_, span)| *span).collect();
        let of_runs: Vec<&Run> = own.iter().map(|&run| &runs[run as usize]).collect();
        let mut names = Names::new(trace, details, if copies { &[] } else { &spans }, &of_runs);
        names.launches.resize(spans.len(), None);
        let mut pairs = Pairs {
            facts: names
                .launches
                .iter()
                .zip(&spans)
                .map(|(&name, call)| Facts::of_launch(details, call, name))
                .collect(),
            of_runs: names
                .runs
                .iter()
                .zip(&of_runs)
                .map(|(&name, run)| Facts::of_run(trace, details, run, name))
                .collect(),
            launch: vec![NONE; own.len()],
            is_free: vec![true; spans.len()],
            early: Vec::new(),
            launches: &spans,
            runs: &of_runs,
            floors,
        };
        pairs.find();
        for (position, &run) in own.iter().enumerate() {
            // A call that copies itself returns after its copy has begun.
            let is_own = |(call, span): &&&(DeviceCall, Span)| {
                *call != DeviceCall::Copy || span.leave > of_runs[position].span.enter
            };
            let call = calls.get(pairs.launch[position] as usize).filter(is_own);
            found.launches[run as usize] = call.map(|(_, span)| *span);
        }
        // Runtime systems copy without calls that are recorded, and calls copy what is not recorded: that is no loss.
        if !copies {
            let alone = (0..).zip(&own).filter(|&(position, _)| pairs.launch[position as usize] == NONE);
            found.unlaunched = alone.map(|(_, &run): (u32, _)| run).collect();
            let early = pairs.early.iter().map(|&(run, launch)| (own[run as usize], spans[launch as usize]));
            found.early = early.collect();
            found.lost.extend(spans.iter().zip(&pairs.is_free).filter(|(_, free)| **free).map(|(span, _)| *span));
        }
    }
    found.early.sort_unstable_by_key(|&(run, _)| run);
    found.early.dedup_by_key(|&mut (run, _)| run);
    found
}

/// Pairs each run with the launch of the same correlation, which may have launched several. Returns for each call whether it
/// has a correlation: if it has no run then, that was not recorded.
fn pair_by_correlation(
    details: &CallDetails,
    calls: &[(DeviceCall, Span)],
    runs: &[Run],
    found: &mut LaunchMatches,
) -> Vec<bool> {
    let correlation = |span: &Span| span.detail(details, |detail| detail.correlation);
    let numbered = calls.iter().enumerate().filter_map(|(call, (_, span))| Some((correlation(span)?, call)));
    let numbered: FxHashMap<u64, usize> = numbered.collect();
    let is_settled: Vec<bool> = calls.iter().map(|(_, span)| correlation(span).is_some()).collect();
    if numbered.is_empty() {
        return is_settled;
    }
    let mut has_run = vec![false; calls.len()];
    for (run, launch) in runs.iter().zip(&mut found.launches) {
        if let Some(&call) = correlation(&run.span).and_then(|number| numbered.get(&number)) {
            *launch = Some(calls[call].1);
            has_run[call] = true;
        }
    }
    let alone =
        calls.iter().zip(is_settled.iter().zip(&has_run)).filter(|(_, (settled, has_run))| **settled && !**has_run);
    found.lost.extend(alone.filter(|((call, _), _)| *call == DeviceCall::Launch).map(|((_, span), _)| *span));
    is_settled
}

/// What is known of a launch or a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Facts {
    site: Option<u64>,
    stream: Option<u64>,
    name: Option<u32>,
}

impl Facts {
    fn of_launch(details: &CallDetails, call: &Span, name: Option<u32>) -> Self {
        let detail = |kind: fn(&CallDetail) -> Option<u64>| call.detail(details, kind);
        Self { site: detail(|detail| detail.site), stream: detail(|detail| detail.stream), name }
    }

    fn of_run(trace: &Trace, details: &CallDetails, run: &Run, name: u32) -> Self {
        let site = run.span.detail(details, |detail| detail.site);
        Self { site, stream: Some(trace.definitions.locations[run.span.location].id), name: Some(name) }
    }

    /// Only those that another one has as well.
    fn like(self, other: &Self) -> Self {
        Self {
            site: self.site.filter(|_| other.site.is_some()),
            stream: self.stream.filter(|_| other.stream.is_some()),
            name: self.name.filter(|_| other.name.is_some()),
        }
    }
}

/// Numbers of the names of kernels.
struct Names {
    launches: Vec<Option<u32>>,
    runs: Vec<u32>,
}

impl Names {
    const STUB: &str = "__device_stub__";

    fn new(trace: &Trace, details: &CallDetails, launches: &[Span], runs: &[&Run]) -> Self {
        let mut numbers: FxHashMap<&str, u32> = FxHashMap::default();
        let mut of_regions: FxHashMap<RegionKey, u32> = FxHashMap::default();
        let mut number = |run: &&Run| {
            let key = trace.tree.region(run.span.callpath);
            *of_regions.entry(key).or_insert_with(|| {
                let region = trace.regions.get(key);
                let next = numbers.len() as u32;
                let name = Self::bare(region.map_or("", |region| region.name.as_str()));
                let number = *numbers.entry(name).or_insert(next);
                // The stubs of some compilers have the mangled name without its first character.
                let mangled = region.map_or("", |region| region.canonical_name.trim_start_matches('_'));
                numbers.entry(mangled).or_insert(number);
                number
            })
        };
        let runs: Vec<u32> = runs.iter().map(&mut number).collect();
        let called = |launch: &Span| {
            let parent = trace.tree.nodes()[launch.callpath].parent;
            let in_stub = || trace.tree.nodes().get(parent.index()).map(|_| name(trace, parent));
            let kernel = launch.detail(details, |detail| detail.kernel);
            let kernel = kernel.map(|kernel| trace.records().string(kernel as u32));
            kernel.or_else(|| in_stub()?.trim_start_matches("void ").strip_prefix(Self::STUB))
        };
        let called: Vec<Option<&str>> = launches.iter().map(called).collect();
        let find = |name: &str| {
            let mangled = || numbers.get(name.trim_start_matches('_'));
            numbers.get(Self::bare(name)).or_else(mangled).copied()
        };
        // Names that never occur on a stream are of another kind.
        let are_alike = called.iter().flatten().any(|name| find(name).is_some());
        let launches = called.into_iter().map(|name| name.filter(|_| are_alike).map(|name| find(name).unwrap_or(NONE)));
        Self { launches: launches.collect(), runs }
    }

    /// A name without its result, its arguments and those of its template.
    fn bare(name: &str) -> &str {
        let name = name.trim_start_matches("void ");
        let end = name.find(['(', '<']).filter(|&end| end > 0).unwrap_or(name.len());
        name[..end].trim_end()
    }
}

struct Pairs<'a> {
    launches: &'a [Span],
    runs: &'a [&'a Run],
    facts: Vec<Facts>,
    of_runs: Vec<Facts>,
    floors: &'a Floors,
    launch: Vec<u32>,
    is_free: Vec<bool>,
    /// Runs that begin before the launch that is next, and that launch.
    early: Vec<(u32, u32)>,
}

impl Pairs<'_> {
    /// Pairs those first that agree in most.
    fn find(&mut self) {
        let is_one = self.runs.windows(2).all(|pair| pair[0].span.location == pair[1].span.location);
        for with_site in [true, false] {
            for (with_stream, with_name) in [(true, true), (true, false), (false, true), (false, false)] {
                if with_site || with_stream || with_name || is_one {
                    self.pass(with_site, with_stream, with_name);
                }
            }
        }
        let Self { early, launch, is_free, .. } = self;
        early.retain(|&(run, next)| launch[run as usize] == NONE && is_free[next as usize]);
    }

    /// Pairs launches that say exactly this with runs that agree, but for call sites that only one of them has.
    fn pass(&mut self, with_site: bool, with_stream: bool, with_name: bool) {
        let is_asked = |facts: &Facts| facts.stream.is_some() == with_stream && facts.name.is_some() == with_name;
        let free = |&launch: &u32| self.is_free[launch as usize];
        let asked: Vec<u32> = (0..self.launches.len() as u32)
            .filter(free)
            .filter(|&launch| is_asked(&self.facts[launch as usize]))
            .filter(|&launch| !with_site || self.facts[launch as usize].site.is_some())
            .collect();
        if asked.is_empty() {
            return;
        }
        let pattern = Facts { site: None, ..self.facts[asked[0] as usize] };
        let pattern = Facts { site: with_site.then_some(0), ..pattern };
        let mut alike: FxHashMap<Facts, (Vec<u32>, Vec<u32>)> = FxHashMap::default();
        for launch in asked {
            alike.entry(self.facts[launch as usize].like(&pattern)).or_default().0.push(launch);
        }
        for (number, facts) in self.of_runs.iter().enumerate() {
            if self.launch[number] == NONE
                && (!with_site || facts.site.is_some())
                && let Some((_, runs)) = alike.get_mut(&facts.like(&pattern))
            {
                runs.push(number as u32);
            }
        }
        for (launches, runs) in alike.into_values().filter(|(_, runs)| !runs.is_empty()) {
            if with_site {
                self.pair(&launches, &runs);
                continue;
            }
            // Two call sites that differ never belong together: one of them must be unknown.
            let (with, without): (Vec<u32>, Vec<u32>) =
                runs.into_iter().partition(|&run| self.of_runs[run as usize].site.is_some());
            let (known, unknown): (Vec<u32>, Vec<u32>) =
                launches.into_iter().partition(|&launch| self.facts[launch as usize].site.is_some());
            if with.is_empty() || known.is_empty() {
                let mut all = [known, unknown].concat();
                all.sort_unstable();
                let mut runs = [with, without].concat();
                runs.sort_unstable();
                self.pair(&all, &runs);
            } else {
                self.pair(&known, &without);
                let rest: Vec<u32> = without.into_iter().filter(|&run| self.launch[run as usize] == NONE).collect();
                let mut runs = [with, rest].concat();
                runs.sort_unstable();
                self.pair(&unknown, &runs);
            }
        }
    }

    fn floor(&self, run: u32) -> i64 {
        let span = &self.runs[run as usize].span;
        self.floors.of(span.location, span.enter)
    }

    /// Pairs launches and runs that are alike.
    fn pair(&mut self, launches: &[u32], runs: &[u32]) {
        let enters: Vec<i64> = launches.iter().map(|&launch| self.launches[launch as usize].enter).collect();
        let begun = |&run: &u32| Begun { begin: self.runs[run as usize].span.enter, floor: self.floor(run) };
        let begun: Vec<Begun> = runs.iter().map(begun).collect();
        for (&run, found) in runs.iter().zip(pair(&enters, &begun)) {
            if let Some(&launch) = launches.get(found as usize) {
                self.launch[run as usize] = launch;
                self.is_free[launch as usize] = false;
            }
        }
        // By other clocks a kernel begins before its launch: nothing else can belong to either.
        for (position, &run) in runs.iter().enumerate() {
            let span = &self.runs[run as usize].span;
            let next = enters.partition_point(|&enter| enter <= span.enter);
            let Some(&enter) = enters.get(next) else { continue };
            let is_last = begun.get(position + 1).is_none_or(|later| later.begin >= enter);
            if self.launch[run as usize] == NONE
                && self.is_free[launches[next] as usize]
                && is_last
                && enter < span.leave
                && self.floors.of(span.location, enter) == begun[position].floor
            {
                self.early.push((run, launches[next]));
            }
        }
    }
}
