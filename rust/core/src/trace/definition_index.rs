//! Who took part: locations, processes and communicators, by dense indexes.

use rustc_hash::{FxHashMap, FxHashSet};
use whywait_otf2::Definitions;
use whywait_otf2::enums::{GroupFlag, GroupType, LocationGroupType, LocationType, Paradigm};

use super::counters::Counters;
use crate::ids::{CommId, GroupId, Ids, LocationId, ProcessId, WindowId};

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

/// One process: a contiguous range of locations, the master thread first.
#[derive(Clone, Debug)]
pub struct Process {
    /// Rank: position in the list of MPI (or SHMEM) processes, else the order of definition.
    pub rank: u32,
    /// Its locations.
    pub locations: Ids<LocationId>,
}

/// Who is a member of a communicator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Members {
    /// Every process alone with itself.
    OwnProcess,
    /// Processes by rank.
    Processes(Vec<ProcessId>),
    /// Some of all processes; ranks count all.
    Some {
        /// The members.
        members: Vec<ProcessId>,
        /// All processes by rank.
        all: Vec<ProcessId>,
    },
    /// Locations by rank (teams of threads).
    Locations(Vec<LocationId>),
    /// Two groups of processes: ranks of a peer count in the group that the caller is not part of.
    TwoGroups(Vec<ProcessId>, Vec<ProcessId>),
    /// The definition is missing or leads nowhere.
    Unknown,
}

/// A communicator.
#[derive(Clone, Debug)]
pub struct Comm {
    /// OTF2 id.
    pub id: u32,
    /// Its members.
    pub members: Members,
    /// Number of members; 0 if unknown.
    pub size: usize,
    /// Rank by process, where that is not the identity.
    ranks: FxHashMap<ProcessId, u32>,
}

impl Comm {
    fn new(id: u32, members: Members) -> Self {
        let mut ranks = FxHashMap::default();
        match &members {
            Members::Processes(processes)
                if processes.iter().zip(0..).any(|(process, rank)| process.number() != rank) =>
            {
                ranks.extend(processes.iter().copied().zip(0..));
            }
            Members::Some { members, all } => {
                let is_member: FxHashSet<ProcessId> = members.iter().copied().collect();
                ranks.extend(all.iter().copied().zip(0..).filter(|(process, _)| is_member.contains(process)));
            }
            _ => {}
        }
        let size = match &members {
            Members::OwnProcess => 1,
            Members::Processes(members) | Members::Some { members, .. } => members.len(),
            Members::Locations(members) => members.len(),
            Members::TwoGroups(a, b) => a.len() + b.len(),
            Members::Unknown => 0,
        };
        Self { id, members, size, ranks }
    }

    /// The process that has `rank` as seen from process `me`.
    #[must_use]
    #[inline]
    pub fn peer(&self, rank: u32, me: ProcessId) -> Option<ProcessId> {
        match &self.members {
            Members::Processes(by_rank) | Members::Some { all: by_rank, .. } => by_rank.get(rank as usize).copied(),
            Members::OwnProcess => (rank == 0).then_some(me),
            Members::TwoGroups(a, b) => if a.contains(&me) { b } else { a }.get(rank as usize).copied(),
            Members::Locations(_) | Members::Unknown => None,
        }
    }

    /// The rank of a process.
    #[must_use]
    #[inline]
    pub fn rank(&self, process: ProcessId) -> Option<u32> {
        match &self.members {
            Members::OwnProcess => Some(0),
            Members::Processes(members) if self.ranks.is_empty() => {
                (process.index() < members.len()).then_some(process.number())
            }
            Members::Processes(_) | Members::Some { .. } => self.ranks.get(&process).copied(),
            _ => None,
        }
    }

    /// The members of a communicator of processes that are the same for everybody.
    #[must_use]
    pub fn processes(&self) -> Option<&[ProcessId]> {
        match &self.members {
            Members::Processes(members) | Members::Some { members, .. } => Some(members),
            _ => None,
        }
    }
}

/// A window of one-sided communication.
#[derive(Clone, Debug)]
pub struct Window {
    /// OTF2 id.
    pub id: u32,
    /// Its communicator, or none.
    pub comm: CommId,
}

/// Locations, processes and communicators of a run.
#[derive(Debug)]
pub struct DefinitionIndex {
    /// Locations by index: processes by rank, their master threads first; then what belongs to no process.
    pub locations: Vec<Location>,
    /// Processes by index.
    pub processes: Vec<Process>,
    /// Communicators by index.
    pub comms: Vec<Comm>,
    /// Windows by index.
    pub windows: Vec<Window>,
    /// Counters.
    pub counters: Counters,
    /// Members of the groups of post, start, complete and wait, sorted.
    pub groups: Vec<Members>,
    comm_by_id: FxHashMap<u32, CommId>,
    window_by_id: FxHashMap<u32, WindowId>,
    group_by_id: FxHashMap<u32, GroupId>,
    /// What is inconsistent in the definitions.
    pub diagnostics: Vec<String>,
}

impl DefinitionIndex {
    /// A location as people speak of it, before a time: by rank and thread, or by its id if it belongs to no process.
    #[must_use]
    pub fn label(&self, location: &Location) -> String {
        match self.processes.get(location.process.index()) {
            None => format!("location {}", location.id),
            Some(process) if location.thread == 0 => format!("rank {}", process.rank),
            Some(process) => format!("rank {}, thread {},", process.rank, location.thread),
        }
    }

    /// Resolves the definitions of an archive.
    #[must_use]
    pub fn new(definitions: &Definitions) -> Self {
        let mut diagnostics = Vec::new();
        let (locations, processes) = order_locations(definitions, &mut diagnostics);
        let by_id: FxHashMap<u64, LocationId> =
            locations.iter().enumerate().map(|(index, location)| (location.id, LocationId::at(index))).collect();
        let mut groups =
            Groups { definitions, locations: &locations, by_id: &by_id, by_paradigm: FxHashMap::default() };
        groups.collect_paradigms();

        let mut comms = Vec::new();
        let mut comm_by_id = FxHashMap::default();
        for comm in &definitions.comms {
            comm_by_id.entry(comm.id).or_insert_with(|| {
                comms.push(Comm::new(comm.id, groups.members(comm.group, &mut diagnostics)));
                CommId::at(comms.len() - 1)
            });
        }
        for comm in &definitions.inter_comms {
            comm_by_id.entry(comm.id).or_insert_with(|| {
                let a = groups.members(comm.group_a, &mut diagnostics);
                let b = groups.members(comm.group_b, &mut diagnostics);
                let members = match (a, b) {
                    (Members::Processes(a), Members::Processes(b)) => Members::TwoGroups(a, b),
                    _ => Members::Unknown,
                };
                comms.push(Comm::new(comm.id, members));
                CommId::at(comms.len() - 1)
            });
        }
        let mut windows = Vec::new();
        let mut window_by_id = FxHashMap::default();
        for window in &definitions.rma_wins {
            window_by_id.entry(window.id).or_insert_with(|| {
                let comm = comm_by_id.get(&window.comm).copied().unwrap_or(CommId::NONE);
                windows.push(Window { id: window.id, comm });
                WindowId::at(windows.len() - 1)
            });
        }
        let mut own_groups = Vec::new();
        let mut group_by_id = FxHashMap::default();
        if !windows.is_empty() {
            let members = definitions.groups.iter().filter(|group| {
                matches!(group.group_type, GroupType::COMM_GROUP | GroupType::COMM_SELF | GroupType::COMM_LOCATIONS)
            });
            for group in members {
                group_by_id.entry(group.id).or_insert_with(|| {
                    own_groups.push(match groups.members(group.id, &mut diagnostics) {
                        Members::Processes(mut processes) | Members::Some { members: mut processes, .. } => {
                            processes.sort_unstable();
                            processes.dedup();
                            Members::Processes(processes)
                        }
                        members => members,
                    });
                    GroupId::at(own_groups.len() - 1)
                });
            }
        }
        let mut counters = Counters::new(definitions);
        counters.find_carriers(definitions, &locations);
        Self {
            locations,
            processes,
            comms,
            windows,
            counters,
            groups: own_groups,
            comm_by_id,
            window_by_id,
            group_by_id,
            diagnostics,
        }
    }

    /// The window with an id.
    #[must_use]
    #[inline]
    pub fn window(&self, id: u32) -> Option<WindowId> {
        self.window_by_id.get(&id).copied()
    }

    /// The group with an id.
    #[must_use]
    pub fn group(&self, id: u32) -> Option<GroupId> {
        self.group_by_id.get(&id).copied()
    }

    /// The communicator of a window.
    #[must_use]
    #[inline]
    pub fn window_comm(&self, window: WindowId) -> Option<&Comm> {
        self.comms.get(self.windows[window].comm.index())
    }

    /// Whether each process has a window for itself alone.
    #[must_use]
    pub fn is_own_window(&self, window: WindowId) -> bool {
        let known = self.windows.get(window.index()).and_then(|_| self.window_comm(window));
        known.is_some_and(|comm| comm.members == Members::OwnProcess)
    }

    /// The processes of a group as process `me` sees it; none if the group is unknown.
    #[must_use]
    pub fn group_members<'a>(&'a self, group: GroupId, me: &'a ProcessId) -> &'a [ProcessId] {
        match self.groups.get(group.index()) {
            Some(Members::Processes(processes)) => processes,
            Some(Members::OwnProcess) => std::slice::from_ref(me),
            _ => &[],
        }
    }

    /// The communicator with an id.
    #[must_use]
    #[inline]
    pub fn comm(&self, id: u32) -> Option<CommId> {
        self.comm_by_id.get(&id).copied()
    }

    /// The master thread of a process.
    #[must_use]
    #[inline]
    pub fn master(&self, process: ProcessId) -> LocationId {
        self.processes[process].locations.start
    }
}

/// Orders locations by process and rank; finds the processes.
fn order_locations(definitions: &Definitions, diagnostics: &mut Vec<String>) -> (Vec<Location>, Vec<Process>) {
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
    // Groups without a rank keep the order of their definition, behind those that have one.
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

    let mut ranges: Vec<Process> =
        (0..processes.len()).map(|rank| Process { rank: rank as u32, locations: Ids::default() }).collect();
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

/// Resolves group definitions to processes or locations.
struct Groups<'a> {
    definitions: &'a Definitions,
    locations: &'a [Location],
    by_id: &'a FxHashMap<u64, LocationId>,
    /// For each paradigm the locations (or groups) that its communicator groups count.
    by_paradigm: FxHashMap<u8, Vec<Option<LocationId>>>,
}

impl Groups<'_> {
    fn collect_paradigms(&mut self) {
        for group in &self.definitions.groups {
            let members = match group.group_type {
                GroupType::COMM_LOCATIONS => group.members.iter().map(|id| self.by_id.get(id).copied()).collect(),
                GroupType::COMM_LOCATION_GROUPS => {
                    let first =
                        |id: &u64| self.locations.iter().position(|l| u64::from(l.group) == *id).map(LocationId::at);
                    group.members.iter().map(first).collect()
                }
                _ => continue,
            };
            self.by_paradigm.entry(group.paradigm.0).or_insert(members);
        }
    }

    fn members(&self, group: u32, diagnostics: &mut Vec<String>) -> Members {
        let Some(group) = self.definitions.group(group) else {
            diagnostics.push(format!("group {group} is not defined"));
            return Members::Unknown;
        };
        let direct = || group.members.iter().map(|id| self.by_id.get(id).copied()).collect::<Option<Vec<LocationId>>>();
        let locations = match group.group_type {
            GroupType::COMM_SELF => return Members::OwnProcess,
            GroupType::COMM_LOCATIONS | GroupType::LOCATIONS => direct(),
            GroupType::COMM_GROUP => self.by_paradigm.get(&group.paradigm.0).and_then(|all| {
                let member = |&index: &u64| all.get(usize::try_from(index).ok()?).copied().flatten();
                group.members.iter().map(member).collect()
            }),
            _ => None,
        };
        let Some(locations) = locations else {
            diagnostics.push(format!("group {} has members that nobody defined", group.id));
            return Members::Unknown;
        };
        let threads = matches!(
            group.paradigm,
            Paradigm::OPENMP
                | Paradigm::PTHREAD
                | Paradigm::MEASUREMENT_SYSTEM
                | Paradigm::CUDA
                | Paradigm::OPENCL
                | Paradigm::HIP
        );
        if threads {
            return Members::Locations(locations);
        }
        let processes = |locations: &[LocationId]| -> Option<Vec<ProcessId>> {
            let process =
                |&location: &LocationId| Some(self.locations[location].process).filter(|process| process.is_some());
            locations.iter().map(process).collect()
        };
        let Some(members) = processes(&locations) else { return Members::Unknown };
        // Ranks in such a communicator are positions among all processes, whoever the members are.
        if group.group_type == GroupType::COMM_GROUP && group.group_flags.contains(GroupFlag::GLOBAL_MEMBERS) {
            let all = self.by_paradigm.get(&group.paradigm.0).and_then(|all| all.iter().copied().collect());
            match all.and_then(|all: Vec<LocationId>| processes(&all)) {
                Some(all) if all == members => Members::Processes(members),
                Some(all) => Members::Some { members, all },
                None => Members::Unknown,
            }
        } else {
            Members::Processes(members)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_told_by_rank_and_thread() {
        let location = |id, process, thread| Location {
            id,
            name: 0,
            kind: LocationType::CPU_THREAD,
            group: 0,
            process,
            thread,
            events: 0,
        };
        let range = |start, end| Ids { start: LocationId::new(start), end: LocationId::new(end) };
        let processes = vec![Process { rank: 0, locations: range(0, 1) }, Process { rank: 7, locations: range(1, 3) }];
        let index = DefinitionIndex { processes, ..DefinitionIndex::new(&Definitions::default()) };
        let label = |id, process, thread| index.label(&location(id, process, thread));
        assert_eq!(label(40, ProcessId::new(1), 0), "rank 7");
        assert_eq!(label(41, ProcessId::new(1), 1), "rank 7, thread 1,");
        assert_eq!(label(42, ProcessId::NONE, 0), "location 42");
    }
}
