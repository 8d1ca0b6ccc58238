//! Locations and processes by dense indexes: processes in order of rank, each with its master thread first.

use rustc_hash::{FxHashMap, FxHashSet};
use whywait_otf2::Definitions;
use whywait_otf2::enums::{GroupType, LocationGroupType, LocationType, Paradigm};

use crate::ids::{Ids, LocationId, ProcessId};

/// One stream of events.
#[derive(Clone, Debug)]
pub struct Location {
    /// OTF2 id.
    pub id: u64,
    /// String id of the name.
    pub name: u32,
    /// CPU thread, accelerator stream, metric source.
    pub kind: LocationType,
    /// Id of the location group.
    pub group: u32,
    /// Its process, or none if the location belongs to none.
    pub process: ProcessId,
    /// Position within the process.
    pub thread: u32,
    /// Number of events, as declared.
    pub events: u64,
}

impl Location {
    /// Whether it is a thread of a CPU.
    pub fn is_thread(&self) -> bool {
        matches!(self.kind, LocationType::CPU_THREAD | LocationType::UNKNOWN)
    }

    /// Whether it is a stream of an accelerator.
    pub fn is_stream(&self) -> bool {
        self.kind == LocationType::ACCELERATOR_STREAM
    }
}

/// One process: a contiguous range of locations, the master thread first.
#[derive(Clone, Debug)]
pub struct Process {
    /// Rank: position in the list of MPI (or SHMEM) processes, else the order of definition. It is more than that of the process
    /// before; those between are not in the trace.
    pub rank: u32,
    /// Its locations.
    pub locations: Ids<LocationId>,
    /// When its recording began and ended, if the tool says so, ticks: devices may be recorded before their host does anything.
    pub recorded: (Option<i64>, Option<i64>),
}

/// The properties of a process that say when its recording began and ended.
const WINDOW: [&str; 2] = ["WHYWAIT::WINDOW::BEGIN", "WHYWAIT::WINDOW::END"];

/// Orders locations by process and rank; finds the processes.
pub(super) fn order_locations(
    definitions: &Definitions,
    diagnostics: &mut Vec<String>,
) -> (Vec<Location>, Vec<Process>) {
    // An accelerator context belongs to the process that created it.
    let mut owner: FxHashMap<u32, u32> = FxHashMap::default();
    let mut is_process: FxHashMap<u32, bool> = FxHashMap::default();
    let mut group_order: Vec<u32> = Vec::new();
    for group in &definitions.location_groups {
        if is_process.contains_key(&group.id) {
            continue;
        }
        group_order.push(group.id);
        is_process.insert(group.id, group.location_group_type != LocationGroupType::ACCELERATOR);
        if group.location_group_type == LocationGroupType::ACCELERATOR {
            owner.insert(group.id, group.creating_location_group);
        }
    }
    let process_of = |group: u32| {
        let group = owner.get(&group).copied().unwrap_or(group);
        is_process.get(&group).copied().unwrap_or(false).then_some(group)
    };

    let rank_of = ranks_by_group(definitions);
    let mut processes: Vec<u32> = group_order.iter().copied().filter(|group| is_process[group]).collect();
    // Groups without a rank follow those with one, in order of definition.
    processes.sort_by_key(|group| rank_of.get(group).copied().unwrap_or(u32::MAX));
    let position: FxHashMap<u32, ProcessId> =
        processes.iter().enumerate().map(|(index, &group)| (group, ProcessId::at(index))).collect();

    let mut seen = FxHashSet::default();
    let mut locations: Vec<Location> = Vec::with_capacity(definitions.locations.len());
    for location in &definitions.locations {
        if !seen.insert(location.id) {
            continue;
        }
        let process = process_of(location.location_group).map_or(ProcessId::NONE, |group| position[&group]);
        if process.is_none() {
            diagnostics.push(format!("location {} belongs to no process", location.id));
        }
        locations.push(Location {
            id: location.id,
            name: location.name,
            kind: location.location_type,
            group: location.location_group,
            process,
            thread: 0,
            events: location.number_of_events,
        });
    }
    // The master thread is the first CPU thread that the measurement defined; metric sources and streams follow.
    locations.sort_by_key(|location| (location.process, location.kind != LocationType::CPU_THREAD));

    let [begins, ends] = WINDOW.map(|name| {
        let properties = definitions.location_group_properties.iter();
        let named = properties.filter(|property| definitions.string(property.name) == name);
        named.map(|property| (property.location_group, property.value.bits.cast_signed())).collect::<FxHashMap<_, _>>()
    });
    let mut next = 0;
    let process = |group: &u32| {
        let recorded = (begins.get(group).copied(), ends.get(group).copied());
        let rank = rank_of.get(group).map_or(next, |rank| next.max(*rank));
        next = rank + 1;
        Process { rank, locations: Ids::default(), recorded }
    };
    let mut ranges: Vec<Process> = processes.iter().map(process).collect();
    let mut start = 0;
    for (index, process) in ranges.iter_mut().enumerate() {
        let count = locations[start..].iter().take_while(|location| location.process == ProcessId::at(index)).count();
        process.locations = Ids { start: LocationId::at(start), end: LocationId::at(start + count) };
        for (thread, location) in locations[start..start + count].iter_mut().enumerate() {
            location.thread = thread as u32;
        }
        start += count;
    }
    (locations, ranges)
}

/// Rank of each location group: the position of its first location in the list of communicating locations.
fn ranks_by_group(definitions: &Definitions) -> FxHashMap<u32, u32> {
    let group_of: FxHashMap<u64, u32> =
        definitions.locations.iter().rev().map(|location| (location.id, location.location_group)).collect();
    let mut ranks = FxHashMap::default();
    let processes = definitions.groups.iter().filter(|group| {
        matches!(group.group_type, GroupType::COMM_LOCATIONS | GroupType::COMM_LOCATION_GROUPS)
            && !matches!(group.paradigm, Paradigm::OPENMP | Paradigm::PTHREAD | Paradigm::MEASUREMENT_SYSTEM)
            && !matches!(group.paradigm, Paradigm::CUDA | Paradigm::OPENCL | Paradigm::HIP)
    });
    for group in processes {
        for (rank, &member) in group.members.iter().enumerate() {
            let owner = if group.group_type == GroupType::COMM_LOCATIONS {
                group_of.get(&member).copied()
            } else {
                u32::try_from(member).ok()
            };
            if let Some(owner) = owner {
                ranks.entry(owner).or_insert(rank as u32);
            }
        }
    }
    ranks
}
