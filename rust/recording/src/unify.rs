//! Definitions of all processes to those of the run: the same communicator, group, window or file gets the same id everywhere.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::format::{COMM_SELF, COMM_WORLD, CommName, FILE_PATH, NAME_COMM, NAME_WINDOW, NONE};
use crate::spool::{CommEntry, Definitions, PosixEntry, Process, Spool, World};

/// Id of a definition of the run.
pub(crate) type Id = u32;

/// A group of ranks in `MPI_COMM_WORLD`, in order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Group {
    /// The locations of all ranks.
    Locations,
    /// Whoever uses it.
    Itself,
    /// These ranks.
    Ranks(Vec<u32>),
}

/// A communicator of the run.
#[derive(Debug, Clone)]
pub(crate) struct Comm {
    /// Name that the program gave, or that of a predefined one.
    pub(crate) name: String,
    /// Its group, or the one with the smaller lead.
    pub(crate) group: Id,
    /// The other group of an intercommunicator.
    pub(crate) remote: Option<Id>,
    /// What it was made of.
    pub(crate) parent: Option<Id>,
}

/// A Cartesian topology of the run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Topology {
    /// Size and periodicity by dimension.
    pub(crate) dimensions: Vec<(u32, bool)>,
    /// Coordinates by rank in the communicator.
    pub(crate) places: BTreeMap<u32, Vec<u32>>,
}

/// A window of the run.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    /// Name that the program gave.
    pub(crate) name: String,
    /// Number of the function that made it.
    pub(crate) maker: u32,
    /// Its communicator.
    pub(crate) comm: Id,
}

/// A file that was opened.
#[derive(Debug, Clone)]
pub(crate) struct Handle {
    /// Number of its path in [`Unified::paths`].
    pub(crate) path: Id,
    /// Its communicator.
    pub(crate) comm: Id,
}

/// A file that is none of MPI, the same in all processes that call it so.
#[derive(Debug, Clone)]
pub(crate) struct PosixFile {
    /// Its interface, and what it is: see [`crate::format::Entry::PosixFile`].
    pub(crate) paradigm: u32,
    pub(crate) kind: u32,
    /// Its name, and the number of the path of that name if it has one.
    pub(crate) name: String,
    pub(crate) path: Option<Id>,
}

/// What a process must know of one of its communicators.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LocalComm {
    /// Id in the run.
    pub(crate) id: Id,
    /// Its own rank.
    pub(crate) rank: u32,
    /// Size of its group.
    pub(crate) size: u32,
    /// Size of the remote group, 0 if there is none.
    pub(crate) remote_size: u32,
}

/// What a process must know of one of its windows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LocalWindow {
    /// Id in the run.
    pub(crate) id: Id,
    /// Whether MPI allocated its memory.
    pub(crate) is_allocated: bool,
}

/// What a process must know of one of its files.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LocalFile {
    /// Id in the run.
    pub(crate) id: Id,
    /// Id of its path.
    pub(crate) path: Id,
    /// Mode in which it was opened.
    pub(crate) mode: i32,
}

/// Ids of a process to those of the run.
#[derive(Debug, Default)]
pub(crate) struct Local {
    /// Communicators.
    pub(crate) comms: FxHashMap<u32, LocalComm>,
    /// Groups.
    pub(crate) groups: FxHashMap<u32, Id>,
    /// Windows.
    pub(crate) windows: FxHashMap<u32, LocalWindow>,
    /// Files.
    pub(crate) files: FxHashMap<u32, LocalFile>,
    /// Those that are none of MPI.
    pub(crate) posix: FxHashMap<u32, Id>,
}

/// The definitions of the run.
#[derive(Debug, Default)]
pub(crate) struct Unified {
    /// Number of ranks.
    pub(crate) size: u32,
    /// Groups by id.
    pub(crate) groups: Vec<Group>,
    /// Communicators by id.
    pub(crate) comms: Vec<Comm>,
    /// Topologies by communicator.
    pub(crate) topologies: BTreeMap<Id, Topology>,
    /// Windows by id.
    pub(crate) windows: Vec<Window>,
    /// Open files by id.
    pub(crate) files: Vec<Handle>,
    /// Those that are none of MPI; their ids follow.
    pub(crate) posix: Vec<PosixFile>,
    /// Paths of files.
    pub(crate) paths: Vec<String>,
    /// By rank.
    pub(crate) local: FxHashMap<u32, Local>,
}

/// What makes two communicators of different processes the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    name: u32,
    parent: Option<Id>,
    k: u32,
    leads: (u32, u32),
    tag: i32,
    text: String,
}

/// Members of a communicator as far as they are known, by side.
#[derive(Debug, Default)]
struct Sides([Vec<Option<u32>>; 2]);

/// How many ranks a run can have for each one that left something. More are a sign of damage.
const RANKS_FOR_EACH: usize = 1 << 12;

impl Sides {
    /// Notes what an entry says of the members of a communicator, which are at most `most`.
    fn note(&mut self, entry: &CommEntry, most: u32) {
        let own = usize::from(entry.remote_lead != NONE && entry.remote_lead < entry.lead);
        self.size(own, entry.size.min(most));
        self.size(1 - own, entry.remote_size.min(most));
        let side = &mut self.0[own];
        for (member, rank) in side.iter_mut().zip(&entry.members).filter(|(_, rank)| **rank != NONE) {
            *member = Some(*rank);
        }
        if let Some(member) = side.get_mut(entry.rank as usize) {
            *member = Some(entry.world_rank);
        }
    }

    fn size(&mut self, side: usize, size: u32) {
        if self.0[side].len() < size as usize {
            self.0[side].resize(size as usize, None);
        }
    }
}

impl Unified {
    /// Finds out which definitions of different processes are the same.
    ///
    /// Ranks are taken in order, and the definitions of each in the order in which they were made, so parents precede
    /// their children and ids do not depend on anything else. Communicators with members of whom nothing is known are
    /// noted in `damage`.
    pub(crate) fn new(spool: &Spool, damage: &mut Vec<String>) -> Self {
        let mut unified = Self { size: size(spool), ..Self::default() };
        let mut groups = Groups::default();
        groups.id(Group::Locations);
        let whole = [World { first: 0, size: unified.size }];
        let worlds = if spool.worlds.is_empty() { &whole } else { spool.worlds.as_slice() };
        let mut of_world = |world: &World| {
            groups.id(Group::Ranks((world.first..world.first.saturating_add(world.size).min(unified.size)).collect()))
        };
        let world_groups: Vec<Id> = worlds.iter().map(&mut of_world).collect();
        let itself = groups.id(Group::Itself);
        let predefined = |name: &str, group| Comm { name: name.into(), group, remote: None, parent: None };
        unified.comms = vec![predefined("MPI_COMM_WORLD", world_groups[0]), predefined("MPI_COMM_SELF", itself)];
        unified.comms.extend(world_groups[1..].iter().map(|group| predefined("MPI_COMM_WORLD", *group)));
        let mut sides = unified.communicators(spool);
        for (id, sides) in &mut sides {
            let [group, remote] = sides.0.each_mut().map(|side| {
                let holes = side.iter().filter(|member| member.is_none()).count();
                if holes > 0 {
                    damage.push(format!("communicator {id}: {holes} of its {} members are not known", side.len()));
                }
                // A rank that cannot exist would be refused by readers; the number of members must stay right.
                let ranks = side.iter().map(|member| member.unwrap_or(0)).collect();
                (!side.is_empty()).then(|| groups.id(Group::Ranks(ranks)))
            });
            let comm = &mut unified.comms[*id as usize];
            comm.group = group.unwrap_or(itself);
            comm.remote = remote;
        }
        unified.windows_and_files(spool);
        for (rank, process) in &spool.ranks {
            let local = unified.local.entry(*rank).or_default();
            for (id, ranks) in &process.definitions.groups {
                local.groups.insert(*id, groups.id(Group::Ranks(ranks.clone())));
            }
            for (what, id, text) in &process.definitions.names {
                match *what {
                    NAME_COMM => {
                        if let Some(comm) = local.comms.get(id) {
                            unified.comms[comm.id as usize].name.clone_from(text);
                        }
                    }
                    NAME_WINDOW => {
                        if let Some(window) = local.windows.get(id) {
                            unified.windows[window.id as usize].name.clone_from(text);
                        }
                    }
                    _ => {}
                }
            }
        }
        unified.groups = groups.list;
        unified
    }

    /// Gives communicators their ids, and returns the members of those that are not predefined, by id.
    fn communicators(&mut self, spool: &Spool) -> Vec<(Id, Sides)> {
        let mut known: FxHashMap<Key, Id> = FxHashMap::default();
        let mut members: Vec<(Id, Sides)> = Vec::new();
        let predefined = self.comms.len();
        for (rank, process) in &spool.ranks {
            let mut local = Local::default();
            let world = spool.worlds.get(process.world).copied().unwrap_or(World { first: 0, size: self.size });
            let (rank_in_world, size) = (rank.saturating_sub(world.first), world.size);
            // Those of further worlds come after the two of the first.
            let id = if process.world == 0 { COMM_WORLD } else { COMM_SELF + process.world as Id };
            local.comms.insert(COMM_WORLD, LocalComm { id, rank: rank_in_world, size, remote_size: 0 });
            local.comms.insert(COMM_SELF, LocalComm { id: COMM_SELF, rank: 0, size: 1, remote_size: 0 });
            for entry in &process.definitions.comms {
                let is = |name: CommName| entry.name == name as u32;
                let parent = local.comms.get(&entry.parent).map(|parent| parent.id);
                let is_predefined = is(CommName::World) || is(CommName::Itself);
                // Messages to another world would have no end in this trace.
                let is_foreign = is(CommName::Foreign) || (entry.parent != NONE && parent.is_none());
                if is_predefined || is_foreign {
                    continue;
                }
                let leads = if entry.remote_lead == NONE {
                    (entry.lead, NONE)
                } else {
                    (entry.lead.min(entry.remote_lead), entry.lead.max(entry.remote_lead))
                };
                let key = Key { name: entry.name, parent, k: entry.k, leads, tag: entry.tag, text: entry.text.clone() };
                let id = *known.entry(key).or_insert_with(|| {
                    let id = self.comms.len() as Id;
                    self.comms.push(Comm { name: String::new(), group: 0, remote: None, parent });
                    members.push((id, Sides::default()));
                    id
                });
                members[id as usize - predefined].1.note(entry, self.size);
                let CommEntry { rank, size, remote_size, .. } = *entry;
                local.comms.insert(entry.id, LocalComm { id, rank, size, remote_size });
            }
            for (comm, dimensions) in &process.definitions.topologies {
                let Some(comm) = local.comms.get(comm) else { continue };
                let sizes = || dimensions.iter().map(|&[size, is_periodic, _]| (size, is_periodic != 0));
                let topology = self
                    .topologies
                    .entry(comm.id)
                    .or_insert_with(|| Topology { dimensions: sizes().collect(), ..Topology::default() });
                if sizes().eq(topology.dimensions.iter().copied()) {
                    topology.places.insert(comm.rank, dimensions.iter().map(|&[_, _, place]| place).collect());
                }
            }
            self.local.insert(*rank, local);
        }
        members
    }

    fn windows_and_files(&mut self, spool: &Spool) {
        let mut windows: FxHashMap<(Id, u32), Id> = FxHashMap::default();
        let mut files: FxHashMap<(Id, u32), Id> = FxHashMap::default();
        let mut paths: FxHashMap<String, Id> = FxHashMap::default();
        for (rank, Process { definitions: Definitions { windows: own_windows, files: own_files, .. }, .. }) in
            &spool.ranks
        {
            let local = self.local.entry(*rank).or_default();
            for entry in own_windows {
                let Some(comm) = local.comms.get(&entry.comm).map(|comm| comm.id) else { continue };
                // On MPI_COMM_SELF and its kin, each process has its own.
                let number = if comm == COMM_SELF { self.windows.len() as u32 } else { entry.k };
                let id = *windows.entry((comm, number)).or_insert_with(|| {
                    self.windows.push(Window { name: String::new(), maker: entry.kind, comm });
                    self.windows.len() as Id - 1
                });
                let is_allocated = crate::functions::FUNCTIONS
                    .get(entry.kind as usize)
                    .is_some_and(|function| function.name.contains("allocate"));
                local.windows.insert(entry.id, LocalWindow { id, is_allocated });
            }
            for entry in own_files {
                let Some(comm) = local.comms.get(&entry.comm).map(|comm| comm.id) else { continue };
                let number = if comm == COMM_SELF { self.files.len() as u32 } else { entry.k };
                let path = numbered(&mut paths, &mut self.paths, &entry.name);
                let id = *files.entry((comm, number)).or_insert_with(|| {
                    self.files.push(Handle { path, comm });
                    self.files.len() as Id - 1
                });
                local.files.insert(entry.id, LocalFile { id, path, mode: entry.kind.cast_signed() });
            }
        }
        let mut posix: FxHashMap<&PosixEntry, Id> = FxHashMap::default();
        let first = self.files.len() as Id;
        for (rank, process) in &spool.ranks {
            let local = self.local.entry(*rank).or_default();
            for (number, entry) in (0..).zip(&process.definitions.posix) {
                let id = *posix.entry(entry).or_insert_with(|| {
                    let PosixEntry { paradigm, kind, name } = entry.clone();
                    let path = (kind == FILE_PATH).then(|| numbered(&mut paths, &mut self.paths, &name));
                    self.posix.push(PosixFile { paradigm, kind, name, path });
                    first + self.posix.len() as Id - 1
                });
                local.posix.insert(number, id);
            }
        }
    }

    /// The rank in `MPI_COMM_WORLD` of a peer in a communicator, as a process sees it.
    pub(crate) fn world_rank(&self, own: u32, comm: &LocalComm, peer: u32) -> Option<u32> {
        let definition = self.comms.get(comm.id as usize)?;
        let ranks = |id: Id| match self.groups.get(id as usize)? {
            Group::Ranks(ranks) => Some(ranks),
            _ => None,
        };
        match (ranks(definition.group), definition.remote.and_then(ranks)) {
            (None, _) => Some(own),
            (Some(group), None) => group.get(peer as usize).copied(),
            (Some(group), Some(remote)) => {
                let other = if group.get(comm.rank as usize) == Some(&own) { remote } else { group };
                other.get(peer as usize).copied()
            }
        }
    }
}

/// The number of a name in a list, to which it is added if it is not there.
fn numbered(known: &mut FxHashMap<String, Id>, list: &mut Vec<String>, name: &str) -> Id {
    if let Some(number) = known.get(name) {
        return *number;
    }
    let number = list.len() as Id;
    list.push(name.to_owned());
    known.insert(name.to_owned(), number);
    number
}

/// Number of ranks that the run had.
pub(crate) fn size(spool: &Spool) -> u32 {
    if let Some(last) = spool.worlds.last() {
        return last.first.saturating_add(last.size);
    }
    let claimed = spool.ranks.values().filter_map(|process| process.definitions.start.as_ref()).map(|start| start.size);
    let seen = spool.ranks.keys().next_back().map_or(0, |rank| rank.saturating_add(1));
    let most = u32::try_from(spool.ranks.len().saturating_mul(RANKS_FOR_EACH)).unwrap_or(u32::MAX);
    claimed.max().unwrap_or(0).max(seen).min(most)
}

/// Groups with the same members are one.
#[derive(Debug, Default)]
struct Groups {
    list: Vec<Group>,
    known: FxHashMap<Group, Id>,
}

impl Groups {
    fn id(&mut self, group: Group) -> Id {
        *self.known.entry(group).or_insert_with_key(|group| {
            self.list.push(group.clone());
            self.list.len() as Id - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: u32, name: CommName, parent: u32, k: u32, lead: u32) -> CommEntry {
        CommEntry { id, parent, name: name as u32, k, lead, remote_lead: NONE, ..CommEntry::default() }
    }

    fn spool(ranks: Vec<Vec<CommEntry>>) -> Spool {
        let mut spool = Spool::default();
        for (rank, comms) in ranks.into_iter().enumerate() {
            let comms = comms.into_iter().map(|entry| CommEntry { world_rank: rank as u32, ..entry }).collect();
            let definitions = Definitions { comms, ..Definitions::default() };
            spool.ranks.insert(rank as u32, Process { definitions, ..Process::default() });
        }
        spool
    }

    fn members(unified: &Unified, rank: u32, local: u32) -> &Group {
        let id = unified.local[&rank].comms[&local].id;
        &unified.groups[unified.comms[id as usize].group as usize]
    }

    #[test]
    fn halves_of_a_split_are_two_and_a_dup_is_another() {
        let half = |id, lead, rank| CommEntry { rank, size: 2, ..entry(id, CommName::Child, 0, 1, lead) };
        let dup = |id, parent, lead, rank| CommEntry { rank, size: 2, ..entry(id, CommName::Child, parent, 1, lead) };
        // Ranks 0 and 1 have made another communicator before, so their local ids differ from those of the others.
        let unified = Unified::new(
            &spool(vec![
                vec![half(7, 0, 0), dup(8, 7, 0, 0)],
                vec![half(7, 3, 1), dup(8, 7, 3, 1)],
                vec![half(2, 0, 1), dup(3, 2, 0, 1)],
                vec![half(2, 3, 0), dup(3, 2, 3, 0)],
            ]),
            &mut Vec::new(),
        );
        assert_eq!(members(&unified, 0, 7), &Group::Ranks(vec![0, 2]));
        assert_eq!(members(&unified, 2, 2), &Group::Ranks(vec![0, 2]));
        assert_eq!(members(&unified, 1, 8), &Group::Ranks(vec![3, 1]));
        let id = |rank: u32, local: u32| unified.local[&rank].comms[&local].id;
        assert_eq!((id(0, 7), id(0, 8)), (id(2, 2), id(2, 3)));
        assert_ne!(id(0, 7), id(0, 8));
        assert_eq!(unified.comms[id(0, 8) as usize].parent, Some(id(0, 7)));
        assert_eq!(unified.comms[id(0, 7) as usize].group, unified.comms[id(0, 8) as usize].group);
    }

    #[test]
    fn both_sides_of_an_intercommunicator_are_one() {
        let side = |lead, remote_lead, rank| CommEntry {
            rank,
            size: 1,
            remote_size: 1,
            remote_lead,
            tag: 5,
            ..entry(2, CommName::Inter, NONE, 0, lead)
        };
        let unified = Unified::new(&spool(vec![vec![side(0, 1, 0)], vec![side(1, 0, 0)]]), &mut Vec::new());
        let comm = &unified.comms[2];
        assert_eq!(unified.comms.len(), 3);
        assert_eq!(unified.groups[comm.group as usize], Group::Ranks(vec![0]));
        assert_eq!(unified.groups[comm.remote.unwrap() as usize], Group::Ranks(vec![1]));
        assert_eq!(unified.world_rank(0, &unified.local[&0].comms[&2], 0), Some(1));
        assert_eq!(unified.world_rank(1, &unified.local[&1].comms[&2], 0), Some(0));
    }

    #[test]
    fn a_rank_that_left_nothing_is_known_from_the_list_of_the_first() {
        let first = CommEntry { size: 3, members: vec![0, 1, 2], ..entry(2, CommName::Child, 0, 1, 0) };
        let last = CommEntry { size: 3, rank: 2, ..entry(2, CommName::Child, 0, 1, 0) };
        let mut damage = Vec::new();
        let unified = Unified::new(&spool(vec![vec![first.clone()], vec![], vec![last.clone()]]), &mut damage);
        assert_eq!(members(&unified, 2, 2), &Group::Ranks(vec![0, 1, 2]));
        assert!(damage.is_empty());
        let unlisted = CommEntry { members: vec![], ..first };
        let _ = Unified::new(&spool(vec![vec![unlisted], vec![], vec![last]]), &mut damage);
        assert_eq!(damage, ["communicator 2: 1 of its 3 members are not known"]);
    }

    #[test]
    fn what_leads_to_another_world_is_left_out() {
        let foreign = CommEntry { size: 1, remote_size: 1, remote_lead: 0, ..entry(2, CommName::Foreign, NONE, 0, 0) };
        let merged = CommEntry { size: 2, ..entry(3, CommName::Child, 2, 1, 0) };
        let unified = Unified::new(&spool(vec![vec![foreign, merged]]), &mut Vec::new());
        assert_eq!(unified.comms.len(), 2);
        assert!(!unified.local[&0].comms.contains_key(&3));
    }

    #[test]
    fn files_of_the_same_name_are_one_in_each_interface() {
        let entry = |paradigm, kind, name: &str| PosixEntry { paradigm, kind, name: name.into() };
        let mut spool = spool(vec![vec![], vec![]]);
        let posix = [vec![entry(0, 0, "/in"), entry(1, 1, "stdout")], vec![entry(1, 0, "/in"), entry(0, 0, "/in")]];
        for (process, posix) in spool.ranks.values_mut().zip(posix) {
            process.definitions.posix = posix;
        }
        let unified = Unified::new(&spool, &mut Vec::new());
        let id = |rank: u32, number: u32| unified.local[&rank].posix[&number];
        assert_eq!((id(0, 0), id(0, 1), id(1, 0), id(1, 1)), (0, 1, 2, 0));
        assert_eq!(unified.paths, ["/in"]);
        assert_eq!(unified.posix.iter().map(|file| file.path).collect::<Vec<_>>(), [Some(0), None, Some(0)]);
    }

    #[test]
    fn duplicates_of_self_are_of_one_process_each() {
        let dup = |lead| CommEntry { size: 1, ..entry(2, CommName::Child, COMM_SELF, 1, lead) };
        let unified = Unified::new(&spool(vec![vec![dup(0)], vec![dup(1)]]), &mut Vec::new());
        assert_ne!(unified.local[&0].comms[&2].id, unified.local[&1].comms[&2].id);
        assert_eq!(members(&unified, 1, 2), &Group::Ranks(vec![1]));
    }
}
