//! Worlds that reach each other: programs that were spawned or that connected have an `MPI_COMM_WORLD` and a spool each, and become one run.
//!
//! The ranks of the first world keep their numbers, those of the others follow. A communicator to another world has two sides that know
//! nothing of each other. They are found by how and when they were made, and become the sides of an intercommunicator as within one world; then
//! what was made of it leads to further ones.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::format::{BY_ACCEPT, BY_CONNECT, BY_JOIN, BY_PARENT, BY_SPAWN, COMM_SELF, COMM_WORLD, CommName, NONE};
use crate::spool::{CommEntry, Definitions, Spool, World};
use crate::unify::size;

/// What makes a communicator the same for all processes.
type Identity = u64;

/// One side of a communicator to another world, as its rank 0 sees it.
#[derive(Debug, Clone)]
struct Side {
    identity: Identity,
    /// World of its rank 0, and the rank of that in the run.
    world: usize,
    lead: u32,
    how: i32,
    size: u32,
    remote_size: u32,
    text: String,
    /// When it was made, and when the process began, as real time.
    made: u64,
    began: u64,
}

/// The other side of one: the number of the pair, and the rank of the lead there.
#[derive(Debug, Clone, Copy)]
struct Link {
    number: u32,
    other: u32,
}

/// The links by rank in the run, and communicator as that rank numbers it.
type Links = FxHashMap<(u32, u32), Link>;

/// Joins a spool with those of worlds that it reaches; returns it, and which of the others are part of it.
pub(crate) fn joined(first: Spool, others: Vec<(PathBuf, Spool)>) -> (Spool, Vec<PathBuf>) {
    let has_foreign = |spool: &Spool| {
        let mut comms = spool.ranks.values().flat_map(|process| &process.definitions.comms);
        comms.any(|comm| comm.name == CommName::Foreign as u32)
    };
    if !has_foreign(&first) {
        return (first, Vec::new());
    }
    let (paths, spools): (Vec<PathBuf>, Vec<Spool>) =
        others.into_iter().filter(|(_, spool)| has_foreign(spool)).unzip();
    let mut worlds = vec![first];
    worlds.extend(spools);
    let reached = reached(&links(&worlds).1, worlds.len());
    let mut kept: Vec<Option<Spool>> = worlds.into_iter().map(Some).collect();
    let mut part = Vec::new();
    let worlds: Vec<Spool> = reached
        .iter()
        .filter_map(|world| {
            part.extend(world.checked_sub(1).map(|other| paths[other].clone()));
            kept[*world].take()
        })
        .collect();
    (merged(worlds), part)
}

/// The worlds that the first one reaches, by pairs that reach each other.
fn reached(pairs: &[(usize, usize)], count: usize) -> Vec<usize> {
    let mut found = vec![false; count];
    found[0] = true;
    while let Some((a, b)) = pairs.iter().find(|(a, b)| found[*a] != found[*b]) {
        (found[*a], found[*b]) = (true, true);
    }
    (0..count).filter(|world| found[*world]).collect()
}

/// The first rank of each world in the run.
fn firsts(worlds: &[Spool]) -> Vec<u32> {
    let mut next = 0_u32;
    let first = |world: &Spool| {
        let first = next;
        next = next.saturating_add(size(world));
        first
    };
    worlds.iter().map(first).collect()
}

/// One spool of all worlds.
fn merged(worlds: Vec<Spool>) -> Spool {
    let firsts = firsts(&worlds);
    let (links, _) = links(&worlds);
    let mut run = Spool::default();
    for (number, world) in worlds.into_iter().enumerate() {
        let first = firsts[number];
        run.worlds.push(World { first, size: size(&world) });
        run.damage.extend(world.damage);
        for (rank, mut process) in world.ranks {
            let rank = first.saturating_add(rank);
            renumber(&mut process.definitions, rank, first, &links);
            process.world = number;
            run.ranks.insert(rank, process);
        }
    }
    run
}

/// Changes the ranks of a world to those of the run, and sides of pairs to intercommunicators.
fn renumber(definitions: &mut Definitions, rank: u32, first: u32, links: &Links) {
    let of_run = |rank: &mut u32| {
        if *rank != NONE {
            *rank = rank.saturating_add(first);
        }
    };
    let mut sides: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
    let mut abroad = Abroad::default();
    for entry in &mut definitions.comms {
        let is_relative = abroad.is_relative(entry);
        abroad.note(entry);
        entry.members.iter_mut().for_each(of_run);
        of_run(&mut entry.world_rank);
        if !is_relative {
            of_run(&mut entry.lead);
            of_run(&mut entry.remote_lead);
        } else if entry.remote_size > 0 {
            // A duplicate of a pair, which has its leads.
            (entry.lead, entry.remote_lead) = sides.get(&entry.parent).copied().unwrap_or((NONE, NONE));
        }
        if let Some(Link { number, other }) = links.get(&(rank, entry.id)) {
            entry.remote_lead = *other;
            (entry.name, entry.parent, entry.k, entry.tag) = (CommName::Inter as u32, NONE, *number, ACROSS);
            entry.text.clear();
        }
        if entry.remote_size > 0 {
            sides.insert(entry.id, (entry.lead, entry.remote_lead));
        }
    }
    for (_, members) in &mut definitions.groups {
        members.iter_mut().for_each(of_run);
    }
}

/// The tag of intercommunicators between worlds, which no program can give.
const ACROSS: i32 = i32::MIN;

/// Finds the pairs of sides: for each process of the run and each of its communicators that is a side, the link; and which worlds they join.
fn links(worlds: &[Spool]) -> (Links, Vec<(usize, usize)>) {
    let firsts = firsts(worlds);
    let mut known: FxHashMap<Identity, Link> = FxHashMap::default();
    let mut pairs = Vec::new();
    loop {
        let mut found = FxHashMap::default();
        let mut sides: Vec<Side> = Vec::new();
        for (number, world) in worlds.iter().enumerate() {
            for (rank, process) in &world.ranks {
                let rank = firsts[number].saturating_add(*rank);
                identify(&process.definitions, (number, firsts[number]), rank, &known, |entry, identity| {
                    if let Some(link) = known.get(&identity) {
                        found.insert((rank, entry.id), *link);
                    } else if entry.rank == 0 {
                        sides.push(side(entry, identity, number, rank, &process.definitions));
                    }
                });
            }
        }
        sides.sort_by_key(|side| (side.made, side.lead));
        let before = known.len();
        while let Some((one, other)) = next_pair(&sides) {
            let number = pairs.len() as u32;
            let (one, other) = (sides[one].clone(), sides[other].clone());
            known.insert(one.identity, Link { number, other: other.lead });
            known.insert(other.identity, Link { number, other: one.lead });
            pairs.push((one.world, other.world));
            sides.retain(|side| side.identity != one.identity && side.identity != other.identity);
        }
        if known.len() == before {
            return (found, pairs);
        }
    }
}

fn side(entry: &CommEntry, identity: Identity, world: usize, lead: u32, definitions: &Definitions) -> Side {
    let began = definitions.start.as_ref().map_or(0, |start| start.time);
    Side {
        identity,
        world,
        lead,
        how: entry.tag,
        size: entry.size,
        remote_size: entry.remote_size,
        text: entry.text.clone(),
        made: definitions.realtime(entry.time),
        began: definitions.realtime(began),
    }
}

/// The first two sides in the order of time that are a pair.
fn next_pair(sides: &[Side]) -> Option<(usize, usize)> {
    sides.iter().enumerate().find_map(|(at, one)| {
        let fits = |(_, other): &(usize, &Side)| {
            let is_mirrored = (one.size, one.remote_size) == (other.remote_size, other.size);
            is_mirrored && one.lead != other.lead && are_pair(one, other)
        };
        let mut others = sides.iter().enumerate().filter(fits);
        let other = if one.how == BY_JOIN {
            // Nothing but the time tells.
            others.min_by_key(|(_, other)| other.made.abs_diff(one.made))
        } else {
            others.next()
        };
        other.map(|(other, _)| (at, other))
    })
}

/// Whether two sides of the right sizes can be one communicator.
fn are_pair(one: &Side, other: &Side) -> bool {
    let (one, other) = if one.how <= other.how { (one, other) } else { (other, one) };
    match (one.how, other.how) {
        // A process begins before the call returns that started it.
        (BY_SPAWN, BY_PARENT) => other.began <= one.made,
        (BY_ACCEPT, BY_CONNECT) => !one.text.is_empty() && one.text == other.text,
        (BY_JOIN, BY_JOIN) => one.made.abs_diff(other.made) < TOGETHER,
        _ => false,
    }
}

/// Within this time, in ns, two processes return from a call that joins them.
const TOGETHER: u64 = 10_000_000_000;

/// Tells the identity of each side that a process has; of its world, there are the number and the first rank.
fn identify(
    definitions: &Definitions,
    (world, first): (usize, u32),
    rank: u32,
    known: &FxHashMap<Identity, Link>,
    mut tell: impl FnMut(&CommEntry, Identity),
) {
    let mut identities: FxHashMap<u32, Identity> = FxHashMap::default();
    let mut abroad = Abroad::default();
    identities.insert(COMM_WORLD, hash(&(CommName::World as u32, world)));
    identities.insert(COMM_SELF, hash(&(CommName::Itself as u32, rank)));
    for entry in &definitions.comms {
        let parent = identities.get(&entry.parent).copied();
        if entry.id <= COMM_SELF || (entry.parent != NONE && parent.is_none()) {
            continue;
        }
        let of_run = |of: u32| if of == NONE || abroad.is_relative(entry) { of } else { of.saturating_add(first) };
        let (lead, remote) = (of_run(entry.lead), of_run(entry.remote_lead));
        let identity = if entry.name == CommName::Foreign as u32 {
            // One that has no parent is of this process alone.
            let own = parent.is_none().then_some((rank, entry.id));
            let identity = hash(&(entry.name, parent, entry.k, own));
            tell(entry, identity);
            let Some(link) = known.get(&identity) else { continue };
            hash(&(CommName::Inter as u32, ACROSS, link.number))
        } else {
            // Of two groups, each process names its own first.
            hash(&(entry.name, parent, entry.k, lead.min(remote), lead.max(remote), entry.tag, &entry.text))
        };
        abroad.note(entry);
        identities.insert(entry.id, identity);
    }
}

/// Communicators of a process that reach other worlds. Of what is made of them, leads are ranks in the parent.
#[derive(Default)]
struct Abroad(FxHashSet<u32>);

impl Abroad {
    fn note(&mut self, entry: &CommEntry) {
        if entry.name == CommName::Foreign as u32 || self.is_relative(entry) {
            self.0.insert(entry.id);
        }
    }

    fn is_relative(&self, entry: &CommEntry) -> bool {
        entry.name == CommName::Abroad as u32 || self.0.contains(&entry.parent)
    }
}

fn hash(value: &impl Hash) -> Identity {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// The communicators of a process to others of which nothing was recorded.
pub(crate) fn unrecorded(definitions: &Definitions) -> FxHashSet<u32> {
    let mut found = FxHashSet::default();
    for entry in &definitions.comms {
        if entry.name == CommName::Foreign as u32 || found.contains(&entry.parent) {
            found.insert(entry.id);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spool::{Process, Start};
    use crate::unify::{Group, Unified};

    fn side(how: i32, (rank, size, remote_size): (u32, u32, u32), time: u64, text: &str) -> CommEntry {
        let (name, k) = (CommName::Foreign as u32, if how == BY_PARENT { NONE } else { 0 });
        let text = text.to_owned();
        CommEntry {
            id: 2,
            parent: 0,
            name,
            k,
            lead: 0,
            remote_lead: NONE,
            tag: how,
            rank,
            size,
            remote_size,
            text,
            time,
            ..CommEntry::default()
        }
    }

    fn merged_of(id: u32, rank: u32, size: u32) -> CommEntry {
        let (name, lead) = (CommName::Abroad as u32, NONE);
        CommEntry { id, parent: 2, name, lead, remote_lead: NONE, rank, size, ..CommEntry::default() }
    }

    /// A world that began at a time, with the communicators of each of its ranks.
    fn world(began: u64, ranks: Vec<Vec<CommEntry>>) -> Spool {
        let mut spool = Spool::default();
        let start = Start { size: ranks.len() as u32, frequency: 1_000_000_000, time: began, ..Start::default() };
        for (rank, comms) in (0..).zip(ranks) {
            let comms = comms.into_iter().map(|entry| CommEntry { world_rank: rank, ..entry }).collect();
            let definitions =
                Definitions { start: Some(start.clone()), clocks: vec![(0, 0, 0)], comms, ..Definitions::default() };
            spool.ranks.insert(rank, Process { definitions, ..Process::default() });
        }
        spool
    }

    fn members(unified: &Unified, rank: u32, local: u32) -> Vec<u32> {
        let comm = &unified.comms[unified.local[&rank].comms[&local].id as usize];
        match &unified.groups[comm.group as usize] {
            Group::Ranks(ranks) => ranks.clone(),
            _ => Vec::new(),
        }
    }

    #[test]
    fn spawned_processes_are_further_ranks() {
        let parents = (0..2).map(|rank| vec![side(BY_SPAWN, (rank, 2, 1), 100, ""), merged_of(3, rank, 3)]).collect();
        // Of another size.
        let other = world(90, vec![vec![side(BY_PARENT, (0, 1, 3), 95, "")]]);
        let child = world(90, vec![vec![side(BY_PARENT, (0, 1, 2), 95, ""), merged_of(3, 2, 3)]]);
        let others = vec![("other".into(), other), ("child".into(), child)];
        let (spool, part) = joined(world(10, parents), others);
        assert_eq!(part, [PathBuf::from("child")]);
        assert_eq!(spool.worlds, [World { first: 0, size: 2 }, World { first: 2, size: 1 }]);
        let unified = Unified::new(&spool, &mut Vec::new());
        assert_eq!((members(&unified, 1, COMM_WORLD), members(&unified, 2, COMM_WORLD)), (vec![0, 1], vec![2]));
        for local in [2, 3] {
            let ids: Vec<u32> = (0..3).map(|rank| unified.local[&rank].comms[&local].id).collect();
            assert_eq!(ids, [ids[0]; 3], "{local}");
        }
        assert_eq!(members(&unified, 2, 3), [0, 1, 2]);
        let between = |rank: u32| unified.local[&rank].comms[&2];
        assert_eq!(unified.world_rank(0, &between(0), 0), Some(2));
        assert_eq!(unified.world_rank(2, &between(2), 1), Some(1));
        assert!(unrecorded(&spool.ranks[&0].definitions).is_empty());
    }

    #[test]
    fn who_connects_is_known_by_the_port() {
        let first = world(1, vec![vec![side(BY_ACCEPT, (0, 1, 1), 50, "a")]]);
        let others = ["b", "a"].map(|port| (port.into(), world(1, vec![vec![side(BY_CONNECT, (0, 1, 1), 50, port)]])));
        let (spool, part) = joined(first, others.into());
        assert_eq!((part, spool.ranks.len()), (vec![PathBuf::from("a")], 2));
    }

    #[test]
    fn what_leads_to_nobody_is_unrecorded_and_so_is_what_was_made_of_it() {
        let own = CommEntry {
            id: 4,
            name: CommName::Child as u32,
            lead: 0,
            remote_lead: NONE,
            size: 1,
            ..CommEntry::default()
        };
        let first = world(1, vec![vec![side(BY_SPAWN, (0, 1, 1), 50, ""), merged_of(3, 0, 2), own]]);
        // It began after the call that starts others had returned.
        let late = world(51, vec![vec![side(BY_PARENT, (0, 1, 1), 60, "")]]);
        let (spool, part) = joined(first, vec![("late".into(), late)]);
        assert!(part.is_empty());
        assert_eq!(unrecorded(&spool.ranks[&0].definitions), [2, 3].into_iter().collect());
        let unified = Unified::new(&spool, &mut Vec::new());
        assert!(!unified.local[&0].comms.contains_key(&3) && unified.local[&0].comms.contains_key(&4));
    }
}
