//! Who took part: locations, processes, communicators, windows and counters, by dense indexes.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use whywait_otf2::Definitions;
use whywait_otf2::enums::{GroupFlag, GroupType, Paradigm};

use super::call_samples::UsageClasses;
use super::counters::Counters;
use super::io_handles::IoHandles;
use super::locations::{Location, Process, order_locations};
use super::topologies::Topologies;
use crate::ids::{CommId, GroupId, LocationId, ProcessId, WindowId};

/// The members of a communicator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Members {
    /// Each process by itself.
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
    /// The definition is missing or refers to missing ones.
    Unknown,
}

/// A communicator.
#[derive(Clone, Debug)]
pub struct Comm {
    /// OTF2 id.
    pub id: u32,
    /// Its members.
    pub members: Arc<Members>,
    /// Number of members; 0 if unknown.
    pub size: usize,
    /// Rank by process, where that is not the identity.
    ranks: Arc<FxHashMap<ProcessId, u32>>,
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
        Self { id, members: Arc::new(members), size, ranks: Arc::new(ranks) }
    }

    /// The process that has `rank` as seen from process `me`.
    #[inline]
    pub fn peer(&self, rank: u32, me: ProcessId) -> Option<ProcessId> {
        match &*self.members {
            Members::Processes(by_rank) | Members::Some { all: by_rank, .. } => by_rank.get(rank as usize).copied(),
            Members::OwnProcess => (rank == 0).then_some(me),
            Members::TwoGroups(a, b) => if a.contains(&me) { b } else { a }.get(rank as usize).copied(),
            Members::Locations(_) | Members::Unknown => None,
        }
    }

    /// The rank of a process.
    #[inline]
    pub fn rank(&self, process: ProcessId) -> Option<u32> {
        match &*self.members {
            Members::OwnProcess => Some(0),
            Members::Processes(members) if self.ranks.is_empty() => {
                (process.index() < members.len()).then_some(process.number())
            }
            Members::Processes(_) | Members::Some { .. } => self.ranks.get(&process).copied(),
            _ => None,
        }
    }

    /// The members of a communicator of processes that are the same for everybody.
    pub fn processes(&self) -> Option<&[ProcessId]> {
        match &*self.members {
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
#[derive(Clone, Debug)]
pub struct DefinitionIndex {
    /// Locations by index: processes by rank, their master threads first; then what belongs to no process.
    pub locations: Vec<Location>,
    /// Processes by index.
    pub processes: Vec<Process>,
    /// Communicators by index.
    pub comms: Vec<Comm>,
    /// Windows by index.
    pub windows: Vec<Window>,
    /// Topologies of processes.
    pub topologies: Topologies,
    /// Handles of files.
    pub io: IoHandles,
    /// Counters.
    pub counters: Counters,
    /// The metric classes whose records belong to samples of the call path.
    pub usage_classes: UsageClasses,
    /// Number of regions around a call from which on recursion is folded.
    pub fold_from: usize,
    /// Whether there are streams of accelerators.
    pub has_streams: bool,
    /// Members of the groups of post, start, complete and wait, sorted.
    pub groups: Vec<Members>,
    comm_by_id: FxHashMap<u32, CommId>,
    window_by_id: FxHashMap<u32, WindowId>,
    group_by_id: FxHashMap<u32, GroupId>,
    /// Ids of the attributes that tell the id of a notification, by which a process waits for it.
    pub notifications: Vec<u32>,
    /// Attributes of samples in calls: where in a library they were.
    pub addresses: Vec<u32>,
    /// What is inconsistent in the definitions.
    pub diagnostics: Vec<String>,
}

impl DefinitionIndex {
    /// Recursion is folded beyond this number of regions around a call, whether asked for or not: names of paths of all
    /// depths would take memory that grows with the square of the depth.
    pub const DEEP: usize = 256;

    /// How messages name a location, before a time: by rank and thread, or by its id if it belongs to no process.
    pub fn label(&self, location: &Location) -> String {
        match self.processes.get(location.process.index()) {
            None => format!("location {}", location.id),
            Some(process) if location.thread == 0 => format!("rank {}", process.rank),
            Some(process) => format!("rank {}, thread {},", process.rank, location.thread),
        }
    }

    /// Resolves the definitions of an archive.
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
        let comm = |id: u32| comm_by_id.get(&id).copied();
        let topologies = Topologies::new(definitions, comm, |comm: CommId| comms[comm].processes());
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
        let io = IoHandles::new(definitions, |id| {
            let comm = comms.get(comm_by_id.get(&id)?.index())?.clone();
            comms.push(comm);
            Some(CommId::at(comms.len() - 1))
        });
        let usage_classes = UsageClasses::new(definitions);
        let mut counters = Counters::new(definitions, &usage_classes);
        counters.find_covered_threads(definitions, &locations);
        let named = |name: &str| -> Vec<u32> {
            let named = definitions.attributes.iter().filter(|one| definitions.string(one.name) == name);
            named.map(|one| one.id).collect()
        };
        let (notifications, addresses) = (named("notification"), named("address"));
        Self {
            fold_from: Self::DEEP,
            has_streams: locations.iter().any(Location::is_stream),
            locations,
            processes,
            comms,
            windows,
            topologies,
            io,
            counters,
            usage_classes,
            groups: own_groups,
            comm_by_id,
            window_by_id,
            group_by_id,
            notifications,
            addresses,
            diagnostics,
        }
    }

    /// The window with an id.
    #[inline]
    pub fn window(&self, id: u32) -> Option<WindowId> {
        self.window_by_id.get(&id).copied()
    }

    /// The group with an id.
    pub fn group(&self, id: u32) -> Option<GroupId> {
        self.group_by_id.get(&id).copied()
    }

    /// The communicator of a window.
    #[inline]
    pub fn window_comm(&self, window: WindowId) -> Option<&Comm> {
        self.comms.get(self.windows[window].comm.index())
    }

    /// Whether each process has a window for itself alone.
    pub fn is_own_window(&self, window: WindowId) -> bool {
        let known = self.windows.get(window.index()).and_then(|_| self.window_comm(window));
        known.is_some_and(|comm| *comm.members == Members::OwnProcess)
    }

    /// The processes of a group as process `me` sees it; none if the group is unknown.
    pub fn group_members<'a>(&'a self, group: GroupId, me: &'a ProcessId) -> &'a [ProcessId] {
        match self.groups.get(group.index()) {
            Some(Members::Processes(processes)) => processes,
            Some(Members::OwnProcess) => std::slice::from_ref(me),
            _ => &[],
        }
    }

    /// The communicator with an id.
    #[inline]
    pub fn comm(&self, id: u32) -> Option<CommId> {
        self.comm_by_id.get(&id).copied()
    }

    /// The master thread of a process.
    #[inline]
    pub fn master(&self, process: ProcessId) -> LocationId {
        self.processes[process].locations.start
    }
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
        if locations.iter().any(|&location| self.locations[location].is_stream()) {
            let is_global = group.group_flags.contains(GroupFlag::GLOBAL_MEMBERS);
            let all = self.by_paradigm.get(&group.paradigm.0).filter(|_| is_global);
            return Members::Locations(all.and_then(|all| all.iter().copied().collect()).unwrap_or(locations));
        }
        if threads {
            return Members::Locations(locations);
        }
        let processes = |locations: &[LocationId]| -> Option<Vec<ProcessId>> {
            let process =
                |&location: &LocationId| Some(self.locations[location].process).filter(|process| process.is_some());
            locations.iter().map(process).collect()
        };
        let Some(members) = processes(&locations) else { return Members::Unknown };
        // Ranks in such a communicator are positions among all processes, regardless of the members.
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
    use whywait_otf2::enums::LocationType;

    use super::*;
    use crate::ids::Ids;

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
        let process = |rank, locations| Process { rank, locations, recorded: (None, None) };
        let processes = vec![process(0, range(0, 1)), process(7, range(1, 3))];
        let index = DefinitionIndex { processes, ..DefinitionIndex::new(&Definitions::default()) };
        let label = |id, process, thread| index.label(&location(id, process, thread));
        assert_eq!(label(40, ProcessId::new(1), 0), "rank 7");
        assert_eq!(label(41, ProcessId::new(1), 1), "rank 7, thread 1,");
        assert_eq!(label(42, ProcessId::NONE, 0), "location 42");
    }
}
