//! The definitions of a run, laid out as Score-P does it for MPI with accelerators.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use whywait_otf2::enums::{
    Base, CommFlag, GroupType, InterruptGeneratorMode, LocationGroupType, LocationType, MetricMode, MetricOccurrence,
    MetricType, Paradigm, ParameterType, RecorderKind, RegionType, SystemTreeDomain, Type,
};
use whywait_otf2::records::{
    Attribute, CallingContext, ClockProperties, Comm, InterruptGenerator, Location, LocationGroup,
    LocationGroupProperty, MetricClass, MetricMember, Parameter, Region as RegionRecord, SystemTreeNodeProperty,
    TypedValue, UNDEFINED,
};
use whywait_otf2::{Catalog, Definitions};

use crate::NONE;
use crate::matching::Matched;
use crate::rank::Rank;
use crate::regions::Region;

/// Attribute: the number that a call and what it launches have in common.
pub(crate) const CORRELATION: u32 = 0;
/// Attribute: the stream that a call names.
pub(crate) const STREAM: u32 = 1;
/// Attribute: the event that a call names.
pub(crate) const EVENT: u32 = 2;
/// Attribute: the call path from which a work was launched.
pub(crate) const LAUNCH_PATH: u32 = 3;
/// Interrupt generator: what takes samples of call paths.
pub(crate) const SAMPLER: u32 = 0;
/// Parameter: the number of a step.
pub(crate) const STEP: u32 = 0;

/// Properties of a process: when its profiler began and ended, ticks.
pub const WINDOW_BEGIN: &str = "WHYWAIT::WINDOW::BEGIN";
/// See [`WINDOW_BEGIN`].
pub const WINDOW_END: &str = "WHYWAIT::WINDOW::END";

/// Property of a process: its clock, if those of a node have several.
pub(crate) const CLOCK: &str = "WHYWAIT::CLOCK";

const ATTRIBUTES: [(u32, &str, Type); 4] = [
    (CORRELATION, "correlation", Type::UINT64),
    (STREAM, "CUDA_STREAM_REF", Type::UINT64),
    (EVENT, "CUDA_EVENT_REF", Type::UINT64),
    (LAUNCH_PATH, "launch path", Type::CALLING_CONTEXT),
];

/// Nanoseconds.
const RESOLUTION: u64 = 1_000_000_000;

/// Regions and call paths of the run for those of each rank.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    pub(crate) regions: Vec<Vec<u32>>,
    pub(crate) contexts: Vec<Vec<u32>>,
    /// The communicator of the first team of each rank; those of others follow.
    pub(crate) teams: Vec<u32>,
    /// The devices whose memory is known; none stands for that of the host.
    pub(crate) memories: Vec<Option<i64>>,
}

/// The id of the location number `at` of the rank at `place`.
pub(crate) const fn location(place: usize, at: usize) -> u64 {
    place as u64 | (at as u64) << 32
}

/// The rank and its location that an id stands for.
pub(crate) const fn place_of(location: u64) -> (usize, usize) {
    ((location & 0xffff_ffff) as usize, (location >> 32) as usize)
}

fn define_region(catalog: &mut Catalog, id: u32, region: &Region) {
    let name = catalog.string(&region.name);
    let Region { paradigm, role, flags, .. } = *region;
    catalog.add(RegionRecord {
        id,
        name,
        description: 0,
        region_type: RegionType::of(role, paradigm, flags),
        source_file: UNDEFINED,
        begin_line_number: 0,
        end_line_number: 0,
        canonical_name: name,
        region_role: role,
        paradigm,
        region_flags: flags,
    });
}

fn property(catalog: &mut Catalog, location_group: u32, name: &str, value: i64) {
    let (name, string_value) = (catalog.string(name), catalog.string(&value.to_string()));
    let value = TypedValue { kind: Type::INT64, bits: value.cast_unsigned() };
    catalog.add(LocationGroupProperty { location_group, name, string_value, value });
}

/// Defines a run; `events` has the number of events of each location of each rank.
pub(crate) fn define(
    ranks: &[Rank],
    matched: &Matched,
    (regions, contexts): (&[Region], &[(u32, u32)]),
    memories: &[Option<i64>],
    events: &[Vec<u64>],
) -> Definitions {
    let mut catalog = Catalog::default();
    for (id, name, value_type) in ATTRIBUTES {
        let name = catalog.string(name);
        catalog.add(Attribute { id, name, value_type, description: 0 });
    }
    let step = catalog.string("step");
    catalog.add(Parameter { id: STEP, name: step, parameter_type: ParameterType::INT64 });
    for (id, region) in (0..).zip(regions) {
        define_region(&mut catalog, id, region);
    }
    let undefined = |id: u32| if id == NONE { UNDEFINED } else { id };
    for (id, (parent, region)) in (0..).zip(contexts) {
        let parent = undefined(*parent);
        catalog.add(CallingContext { id, region: *region, source_code_location: UNDEFINED, parent });
    }
    memory(&mut catalog, memories);
    if ranks.iter().flat_map(|rank| &rank.threads).any(|thread| !thread.off.is_empty()) {
        let class = memories.len() as u32;
        off(&mut catalog, class, 2 * class);
    }
    if ranks.iter().flat_map(|rank| &rank.threads).any(|thread| !thread.samples.is_empty()) {
        let name = catalog.string("CPU time");
        let (interrupt_generator_mode, base) = (InterruptGeneratorMode::TIME, Base::DECIMAL);
        catalog.add(InterruptGenerator { id: SAMPLER, name, interrupt_generator_mode, base, exponent: -9, period: 0 });
    }
    system(&mut catalog, ranks, events);
    communicators(&mut catalog, ranks, matched);
    let begin = ranks.iter().map(|rank| rank.window.0).min().unwrap_or(0);
    let end = ranks.iter().map(|rank| rank.window.1).max().unwrap_or(begin);
    let realtime_timestamp = u64::try_from(begin).unwrap_or(u64::MAX);
    Definitions::from_records(catalog.finish(ClockProperties {
        timer_resolution: RESOLUTION,
        global_offset: begin.max(0).cast_unsigned(),
        trace_length: end.saturating_sub(begin).max(0).cast_unsigned(),
        realtime_timestamp,
    }))
}

/// Two levels for each device: what is allocated, and what is reserved for it.
fn memory(catalog: &mut Catalog, memories: &[Option<i64>]) {
    let unit = catalog.string("B");
    for (id, device) in (0..).zip(memories) {
        let of = device.map_or_else(|| "host".to_owned(), |device| format!("device={device}"));
        let metric_members = vec![2 * id, 2 * id + 1];
        for (id, what) in metric_members.iter().zip(["allocated", "reserved"]) {
            let name = catalog.string(&format!("memory {what}:{of}"));
            catalog.add(MetricMember {
                id: *id,
                name,
                description: 0,
                metric_type: MetricType::OTHER,
                metric_mode: MetricMode::ABSOLUTE_NEXT,
                value_type: Type::UINT64,
                base: Base::DECIMAL,
                exponent: 0,
                unit,
            });
        }
        catalog.add(MetricClass {
            id,
            metric_members,
            metric_occurrence: MetricOccurrence::ASYNCHRONOUS,
            recorder_kind: RecorderKind::CPU,
        });
    }
}

/// How long threads had no core: counted up to each event of these.
fn off(catalog: &mut Catalog, id: u32, member: u32) {
    let (name, unit) = (catalog.string("time without a core"), catalog.string("s"));
    catalog.add(MetricMember {
        id: member,
        name,
        description: 0,
        metric_type: MetricType::OTHER,
        metric_mode: MetricMode::ACCUMULATED_START,
        value_type: Type::UINT64,
        base: Base::DECIMAL,
        exponent: -9,
        unit,
    });
    catalog.add(MetricClass {
        id,
        metric_members: vec![member],
        metric_occurrence: MetricOccurrence::SYNCHRONOUS_STRICT,
        recorder_kind: RecorderKind::CPU,
    });
}

/// Nodes, their devices, processes with their threads and streams.
fn system(catalog: &mut Catalog, ranks: &[Rank], events: &[Vec<u64>]) {
    let mut next = 1;
    let mut id = || {
        next += 1;
        next - 1
    };
    catalog.node(0, "machine", "machine", UNDEFINED);
    catalog.domain(0, SystemTreeDomain::MACHINE);
    let mut nodes: FxHashMap<&str, u32> = FxHashMap::default();
    let mut devices: BTreeMap<(u32, String), u32> = BTreeMap::new();
    let mut contexts = ranks.len() as u32;
    let mut clocks: FxHashMap<Option<&str>, Option<u32>> = FxHashMap::default();
    let are_apart = ranks.iter().any(|rank| *clocks.entry(rank.host.as_deref()).or_insert(rank.clock) != rank.clock);
    for (place, rank) in ranks.iter().enumerate() {
        let host = rank.host.as_deref().unwrap_or("node");
        let node = *nodes.entry(host).or_insert_with(|| {
            let node = id();
            catalog.node(node, host, "node", 0);
            catalog.domain(node, SystemTreeDomain::SHARED_MEMORY);
            node
        });
        let process = place as u32;
        let name = catalog.string(&format!("rank {}", rank.number));
        catalog.add(LocationGroup {
            id: process,
            name,
            location_group_type: LocationGroupType::PROCESS,
            system_tree_parent: node,
            creating_location_group: UNDEFINED,
        });
        for (name, time) in [(WINDOW_BEGIN, rank.window.0), (WINDOW_END, rank.window.1)] {
            property(catalog, process, name, time);
        }
        if let Some(clock) = rank.clock.filter(|_| are_apart) {
            property(catalog, process, CLOCK, clock.into());
        }
        for (at, thread) in rank.threads.iter().enumerate() {
            let name = catalog.string(&thread.name);
            catalog.add(Location {
                id: location(place, at),
                name,
                location_type: LocationType::CPU_THREAD,
                number_of_events: events[place][at],
                location_group: process,
            });
        }
        // Each process may see its device as the first. Those that communicate through devices have one each: libraries
        // refuse to have two ranks on one device.
        let is_owner = rank.works.iter().any(|work| work.member != NONE);
        let owner = if is_owner { format!(" of rank {}", rank.number) } else { String::new() };
        let mut groups: BTreeMap<i64, u32> = BTreeMap::new();
        for (at, stream) in (rank.threads.len()..).zip(&rank.streams) {
            let group = *groups.entry(stream.device).or_insert_with(|| {
                let known = rank.devices.iter().find(|device| device.number == stream.device);
                let identity = known.and_then(|device| device.identity.clone());
                let identity = identity.unwrap_or_else(|| format!("{host}/{}{owner}", stream.device));
                let device = *devices.entry((node, identity)).or_insert_with_key(|(_, identity)| {
                    let name = known.map(|device| device.name.as_str()).filter(|name| !name.is_empty());
                    let device = id();
                    catalog.node(device, &format!("{} {}", name.unwrap_or("GPU"), stream.device), "GPU", node);
                    catalog.domain(device, SystemTreeDomain::ACCELERATOR_DEVICE);
                    let (name, string_value) = (catalog.string("UUID"), catalog.string(identity));
                    let value = TypedValue { kind: Type::STRING, bits: string_value.into() };
                    catalog.add(SystemTreeNodeProperty { system_tree_node: device, name, string_value, value });
                    device
                });
                let group = contexts;
                contexts += 1;
                let name = catalog.string(&format!("GPU {}", stream.device));
                catalog.add(LocationGroup {
                    id: group,
                    name,
                    location_group_type: LocationGroupType::ACCELERATOR,
                    system_tree_parent: device,
                    creating_location_group: process,
                });
                group
            });
            let name = catalog.string(&stream.name);
            catalog.add(Location {
                id: location(place, at),
                name,
                location_type: LocationType::ACCELERATOR_STREAM,
                number_of_events: events[place][at],
                location_group: group,
            });
        }
    }
}

fn communicators(catalog: &mut Catalog, ranks: &[Rank], matched: &Matched) {
    // The place of a process in this list is its rank: those without a trace have one as well.
    let mut all = Vec::with_capacity(ranks.len());
    for (place, rank) in ranks.iter().enumerate() {
        all.resize((rank.number as usize).max(all.len()), u64::MAX);
        all.push(location(place, 0));
    }
    let mut next = 0;
    let number = |rank: &Rank| {
        next = rank.number.max(next) + 1;
        u64::from(next - 1)
    };
    let numbers: Vec<u64> = ranks.iter().map(number).collect();
    catalog.group(0, GroupType::COMM_LOCATIONS, Paradigm::MPI, all);
    let mut groups: BTreeMap<&[usize], u32> = BTreeMap::new();
    for (id, comm) in (0..).zip(&matched.comms) {
        let next = groups.len() as u32 + 1;
        let group = *groups.entry(&comm.ranks).or_insert(next);
        if group == next {
            catalog.group(
                group,
                GroupType::COMM_GROUP,
                Paradigm::MPI,
                comm.ranks.iter().map(|place| numbers[*place]).collect(),
            );
        }
        let name = catalog.string(&comm.name);
        catalog.add(Comm { id, name, group, parent: UNDEFINED, flags: CommFlag::NONE });
    }
    teams(catalog, ranks, matched.comms.len() as u32, groups.len() as u32 + 1);
}

/// The teams of threads: communicators and groups from these numbers on.
fn teams(catalog: &mut Catalog, ranks: &[Rank], mut comm: u32, mut group: u32) {
    if ranks.iter().all(|rank| rank.teams.is_empty()) {
        return;
    }
    // Members are places in the list of all threads.
    let mut all = Vec::new();
    let mut firsts = Vec::with_capacity(ranks.len());
    for (place, rank) in ranks.iter().enumerate() {
        firsts.push(all.len() as u64);
        all.extend((0..rank.threads.len()).map(|thread| location(place, thread)));
    }
    catalog.group(group, GroupType::COMM_LOCATIONS, Paradigm::OPENMP, all);
    for (rank, first) in ranks.iter().zip(firsts) {
        for team in &rank.teams {
            group += 1;
            let members = team.threads.iter().map(|thread| first + u64::from(*thread)).collect();
            catalog.group(group, GroupType::COMM_GROUP, Paradigm::OPENMP, members);
            catalog.add(Comm { id: comm, name: 0, group, parent: UNDEFINED, flags: CommFlag::NONE });
            comm += 1;
        }
    }
}
