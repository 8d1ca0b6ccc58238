//! The definitions of a run, laid out as Score-P does it.

use rustc_hash::FxHashMap;
use whywait_otf2::enums::{
    Base, CommFlag, GroupType, LocationGroupType, LocationType, MetricMode, MetricOccurrence, MetricType, Paradigm,
    RecorderKind, RegionFlag, RegionType, SystemTreeDomain, Type,
};
use whywait_otf2::records::{
    ClockProperties, Comm, Location, LocationGroup, MetricClass, MetricMember, Region as RegionRecord, UNDEFINED,
};
use whywait_otf2::{Catalog, Definitions};

use crate::labels::{Labels, Names};
use crate::lives::LifeLink;
use crate::processes::{Comms, Processes};
use crate::regions::Region;
use crate::thread::Thread;

fn define_region(catalog: &mut Catalog, id: u32, region: &Region) {
    let name = catalog.string(&region.name);
    let source_file = if region.file.is_empty() { UNDEFINED } else { catalog.string(&region.file) };
    let Region { paradigm, role, line, .. } = *region;
    catalog.add(RegionRecord {
        id,
        name,
        description: 0,
        region_type: RegionType::of(role, paradigm, RegionFlag::NONE),
        source_file,
        begin_line_number: line,
        end_line_number: 0,
        canonical_name: name,
        region_role: role,
        paradigm,
        region_flags: RegionFlag::NONE,
    });
}

/// A metric of its own for each counter: a thread changes which ones it reads.
fn define_counter(catalog: &mut Catalog, id: u32, name: &str) {
    let (name, unit) = (catalog.string(name), catalog.string("#"));
    catalog.add(MetricMember {
        id,
        name,
        description: 0,
        metric_type: MetricType::OTHER,
        metric_mode: MetricMode::RELATIVE_LAST,
        value_type: Type::UINT64,
        base: Base::DECIMAL,
        exponent: 0,
        unit,
    });
    let (metric_occurrence, recorder_kind) = (MetricOccurrence::ASYNCHRONOUS, RecorderKind::CPU);
    catalog.add(MetricClass { id, metric_members: vec![id], metric_occurrence, recorder_kind });
}

/// What is defined.
pub(crate) struct Content<'a> {
    pub(crate) threads: &'a [Thread],
    pub(crate) lives: &'a [Vec<LifeLink>],
    pub(crate) processes: &'a Processes,
    pub(crate) comms: &'a Comms,
    pub(crate) regions: &'a [Region],
    /// Types of counters.
    pub(crate) counters: &'a [u32],
    pub(crate) labels: &'a Labels,
    pub(crate) names: &'a Names,
    /// Length of the run, and ticks of a second.
    pub(crate) end: i64,
    pub(crate) resolution: u64,
    /// Number of events of each thread.
    pub(crate) events: &'a [u64],
}

/// Defines a run.
pub(crate) fn define(content: &Content<'_>) -> Definitions {
    let mut catalog = Catalog::default();
    for (id, region) in (0..).zip(content.regions) {
        define_region(&mut catalog, id, region);
    }
    for (id, kind) in (0..).zip(content.counters) {
        define_counter(&mut catalog, id, &counter_name(content.labels, *kind));
    }
    system(&mut catalog, content);
    communicators(&mut catalog, content);
    Definitions::from_records(catalog.finish(ClockProperties {
        timer_resolution: content.resolution,
        global_offset: 0,
        trace_length: content.end.cast_unsigned(),
        realtime_timestamp: u64::MAX,
    }))
}

/// The name of a counter without what is said of it: `PAPI_TOT_INS [Instr completed]`.
fn counter_name(labels: &Labels, kind: u32) -> String {
    let label = labels.of_type(kind).map_or_else(|| format!("counter {kind}"), str::to_owned);
    let short = match label.split_once(" [") {
        Some((_, name)) if name.starts_with("PAPI_") => name.trim_end_matches(']'),
        Some((name, _)) if !name.contains(' ') => name,
        _ => label.split_once(" (").map_or(label.as_str(), |(name, _)| name),
    };
    short.to_owned()
}

fn system(catalog: &mut Catalog, content: &Content<'_>) {
    let Content { processes, names, .. } = content;
    catalog.node(0, "machine", "machine", UNDEFINED);
    catalog.domain(0, SystemTreeDomain::MACHINE);
    let mut nodes: FxHashMap<u32, u32> = FxHashMap::default();
    for (id, process) in (0..).zip(&processes.list) {
        let number = process.node.max(1);
        let next = nodes.len() as u32 + 1;
        let node = *nodes.entry(number).or_insert(next);
        if node == next {
            let name = names.nodes.get(number as usize - 1).filter(|name| !name.is_empty());
            let name = name.map_or_else(|| format!("node {number}"), Clone::clone);
            catalog.node(node, &name, "node", 0);
            catalog.domain(node, SystemTreeDomain::SHARED_MEMORY);
        }
        let name = catalog.string(&processes.name(id));
        catalog.add(LocationGroup {
            id,
            name,
            location_group_type: LocationGroupType::PROCESS,
            system_tree_parent: node,
            creating_location_group: UNDEFINED,
        });
        for thread in 0..process.threads {
            let location = process.first_thread + thread;
            let known = names.threads.get(location as usize).filter(|name| !name.is_empty());
            let own = || format!("THREAD {}.{}.{}", process.application, process.task, thread + 1);
            let name = catalog.string(&known.map_or_else(own, Clone::clone));
            catalog.add(Location {
                id: location.into(),
                name,
                location_type: if names.is_stream(location as usize) {
                    LocationType::ACCELERATOR_STREAM
                } else {
                    LocationType::CPU_THREAD
                },
                number_of_events: content.events[location as usize],
                location_group: id,
            });
        }
    }
}

fn communicators(catalog: &mut Catalog, content: &Content<'_>) {
    let Content { processes, comms, .. } = content;
    let all = processes.list.iter().map(|process| process.first_thread.into()).collect();
    catalog.group(0, GroupType::COMM_LOCATIONS, Paradigm::MPI, all);
    // Applications that are left out have no members.
    for (id, comm) in (0..).zip(&comms.list).filter(|(_, comm)| !comm.members.is_empty()) {
        let members = comm.members.iter().map(|member| (*member).into()).collect();
        catalog.group(id + 1, GroupType::COMM_GROUP, Paradigm::MPI, members);
        let name = catalog.string(&comm.name);
        catalog.add(Comm { id, name, group: id + 1, parent: UNDEFINED, flags: CommFlag::NONE });
    }
    teams(catalog, content);
}

/// The threads of each process that has several are a team, one that forks within it by itself, and those of a process
/// whose threads make others.
fn teams(catalog: &mut Catalog, content: &Content<'_>) {
    let Content { threads, lives, processes, comms, names, .. } = content;
    let first = comms.list.len() as u32;
    let of_processes =
        (first..).zip(&processes.list).map(|(id, process)| (id, process.team(names).map(u64::from).collect()));
    let of_processes = of_processes.filter(|(_, team): &(u32, Vec<u64>)| team.len() > 1);
    let of_threads = (0..).zip(*threads).filter(|(_, thread)| thread.forks_alone > 0);
    let after = u64::from(first) + processes.list.len() as u64;
    let teams: Vec<(u32, Vec<u64>)> =
        of_processes.chain(of_threads.map(|(number, _)| ((after + number) as u32, vec![number]))).collect();
    let after = (after + threads.len() as u64) as u32;
    let made = (after..).zip(&processes.list).filter_map(|(id, process)| {
        let all = process.first_thread..process.first_thread + process.threads;
        let is_known = all.clone().any(|thread| !lives[thread as usize].is_empty());
        is_known.then(|| (id, all.map(u64::from).collect()))
    });
    let made: Vec<(u32, Vec<u64>)> = made.collect();
    let after = after + processes.list.len() as u32;
    for (group, paradigm, comms) in [(after + 1, Paradigm::OPENMP, teams), (after + 2, Paradigm::PTHREAD, made)] {
        if comms.is_empty() {
            continue;
        }
        let all = (0..processes.of_threads.len() as u64).collect();
        catalog.group(group, GroupType::COMM_LOCATIONS, paradigm, all);
        for (id, threads) in comms {
            catalog.group(id + 1, GroupType::COMM_GROUP, paradigm, threads);
            catalog.add(Comm { id, name: 0, group: id + 1, parent: UNDEFINED, flags: CommFlag::NONE });
        }
    }
}
