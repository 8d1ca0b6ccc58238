//! Which communicator a handle means: handles are those of a process, and are used again.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use whywait_devices::{Comm, GroupFacts, Method};

use super::Side;
use super::names::{act, operation};
use crate::rows::{ABSENT, CommRow, MpiRow};

/// The handles of the world and of the process alone in MPICH.
const MPICH_WORLD: i64 = 0x4400_0000;
const MPICH_SELF: i64 = 0x4400_0001;
/// A communicator has no more ranks.
const MOST_RANKS: i64 = 1 << 20;

/// What a communicator is known by on all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Key {
    World,
    Uid(i64),
    /// Who made it, its number there, and its size.
    Made(i64, i64, i64),
}

/// A communicator.
#[derive(Debug, Default)]
pub(super) struct Communicator {
    pub(super) name: String,
    /// Number of its ranks.
    pub(super) size: usize,
    /// Ranks of the world by their ranks in it, as far as these are known.
    pub(super) world: BTreeMap<usize, u32>,
    /// The place of the process of each rank in it, if it has a report.
    places: Vec<Option<u32>>,
    /// Its members with a report, by place: the rank among these.
    among: FxHashMap<u32, u32>,
}

impl Communicator {
    /// The place of the process with a rank in it.
    pub(super) fn place(&self, rank: i64) -> Option<u32> {
        *self.places.get(usize::try_from(rank).ok()?)?
    }

    /// The rank of a process among those with a report.
    pub(super) fn among(&self, place: u32) -> Option<u32> {
        self.among.get(&place).copied()
    }

    /// The places of its members with a report.
    pub(super) fn known(&self) -> impl Iterator<Item = u32> {
        self.places.iter().flatten().copied()
    }

    /// What is known of it before its messages and operations are.
    pub(super) fn facts(&self) -> GroupFacts {
        let ranks = self.world.values().copied().collect();
        let (name, size, known) = (self.name.clone(), self.size, self.among.len());
        GroupFacts { name, ranks, size, known, method: Method::Calls, ..GroupFacts::default() }
    }

    /// Whether some of its members have no report.
    pub(super) fn is_partial(&self) -> bool {
        self.among.len() < self.size
    }
}

/// What a handle means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// A communicator, by number.
    Comm(u32),
    /// The process alone: nobody waits there.
    Alone,
    Unknown,
}

/// The communicators of a run, and what handles mean.
#[derive(Debug, Default)]
pub(super) struct Communicators {
    pub(super) list: Vec<Communicator>,
    /// By place and handle: since when it means which communicator.
    handles: FxHashMap<(u32, i64), Vec<(i64, u32)>>,
    /// Handles of which nothing is recorded.
    others: FxHashMap<(u32, i64), Meaning>,
    by_uid: FxHashMap<i64, u32>,
    /// Communicators whose lists of members cannot be read.
    pub(super) unread: u64,
}

impl Communicators {
    /// Finds the communicators of processes; `rows` has what each of them records, with times as those of calls.
    pub(super) fn find(sides: &[Side<'_>], rows: &[(u32, CommRow)], world_size: u32) -> Self {
        let mut all = Self::default();
        let places: FxHashMap<u32, u32> = (0..).zip(sides).map(|(place, side)| (side.number, place)).collect();
        let mut numbers: BTreeMap<Key, u32> = BTreeMap::new();
        let listed: Vec<&CommRow> = rows.iter().map(|(_, row)| row).filter(|row| !row.members.is_empty()).collect();
        let reading = Reading::of(&listed);
        let world = (0..world_size).map(|rank| (rank as usize, rank)).collect();
        let size = world_size as usize;
        all.list.push(Communicator { name: "MPI_COMM_WORLD".to_owned(), size, world, ..Communicator::default() });
        numbers.insert(Key::World, 0);
        // In an order that does not depend on that of files.
        let mut sorted: Vec<&(u32, CommRow)> = rows.iter().collect();
        sorted.sort_by_key(|(place, row)| (row.root, row.root_uid, row.uid, *place, row.time));
        for (place, row) in sorted {
            let Some(size) = usize::try_from(row.size).ok().filter(|_| (1..MOST_RANKS).contains(&row.size)) else {
                continue;
            };
            let key = if row.uid == ABSENT { Key::Made(row.root, row.root_uid, row.size) } else { Key::Uid(row.uid) };
            let next = all.list.len() as u32;
            let number = *numbers.entry(key).or_insert(next);
            if number == next {
                let name = format!("communicator {number}");
                all.list.push(Communicator { name, size, ..Communicator::default() });
            }
            let comm = &mut all.list[number as usize];
            if let (Ok(local), Ok(rank)) = (usize::try_from(row.local_rank), u32::try_from(row.rank))
                && local < size
            {
                comm.world.insert(local, rank);
            }
            match reading {
                Some(reading) => {
                    for (local, rank) in reading.members(row) {
                        comm.world.entry(local).or_insert(rank);
                    }
                }
                None => all.unread += u64::from(!row.members.is_empty()),
            }
            all.handles.entry((*place, row.handle)).or_default().push((row.time, number));
            if row.uid != ABSENT {
                all.by_uid.insert(row.uid, number);
            }
        }
        #[expect(clippy::iter_over_hash_type, reason = "each is sorted by itself")]
        for since in all.handles.values_mut() {
            since.sort_unstable();
        }
        for comm in &mut all.list {
            let place = |local: usize| comm.world.get(&local).and_then(|rank| places.get(rank)).copied();
            comm.places = (0..comm.size).map(place).collect();
            comm.among = (0..).zip(comm.places.iter().flatten()).map(|(among, place)| (*place, among)).collect();
        }
        for (place, side) in (0..).zip(sides) {
            all.other_handles(place, side);
        }
        all
    }

    /// Finds out what the handles of a process mean of which nothing is recorded.
    fn other_handles(&mut self, place: u32, side: &Side<'_>) {
        let mut others: BTreeMap<i64, Partners> = BTreeMap::new();
        for call in 0..side.program.calls.len() as u32 {
            for row in side.program.rows(call) {
                let name = side.names.get(row.name);
                let is_communication = act(name).is_some() || operation(name).is_some();
                if is_communication && row.comm != ABSENT && !self.handles.contains_key(&(place, row.comm)) {
                    let partners = others.entry(row.comm).or_default();
                    partners.has_zero |= row.peer == 0;
                    partners.has_others |= row.peer > 0;
                }
            }
        }
        let is_tracked = !self.handles.is_empty();
        let meanings = meanings(&others, is_tracked);
        self.others.extend(meanings.into_iter().map(|(handle, meaning)| ((place, handle), meaning)));
    }

    /// The communicator of a row.
    pub(super) fn of(&self, place: u32, row: &MpiRow, begin: i64) -> Meaning {
        if row.comm == ABSENT && row.comm_uid == ABSENT {
            // An export without handles: all is of the world.
            return Meaning::Comm(0);
        }
        let by_uid = || self.by_uid.get(&row.comm_uid).map(|number| Meaning::Comm(*number));
        if let Some(since) = self.handles.get(&(place, row.comm)) {
            let before = since.partition_point(|(time, _)| *time <= begin);
            if let Some((_, number)) = before.checked_sub(1).and_then(|last| since.get(last)) {
                return Meaning::Comm(*number);
            }
        }
        by_uid().or_else(|| self.others.get(&(place, row.comm)).copied()).unwrap_or(Meaning::Unknown)
    }

    /// Number of processes with a handle that is taken for that of the world.
    pub(super) fn worlds(&self) -> u64 {
        self.others.values().filter(|meaning| **meaning == Meaning::Comm(0)).count() as u64
    }

    /// As records name them.
    pub(super) fn comms(&self) -> Vec<Comm> {
        let comm = |comm: &Communicator| {
            let ranks = comm.known().map(|place| place as usize).collect();
            Comm { name: comm.name.clone(), ranks }
        };
        self.list.iter().map(comm).collect()
    }
}

/// Which partners and roots the calls on a handle name.
#[derive(Debug, Clone, Copy, Default)]
struct Partners {
    has_zero: bool,
    has_others: bool,
}

/// What the handles of a process mean of which nothing is recorded; `is_tracked` says that communicators which programs make are.
fn meanings(handles: &BTreeMap<i64, Partners>, is_tracked: bool) -> Vec<(i64, Meaning)> {
    let mut worlds: Vec<i64> = handles.keys().copied().filter(|handle| *handle != MPICH_SELF).collect();
    if worlds.contains(&MPICH_WORLD) {
        worlds = vec![MPICH_WORLD];
    } else if worlds.len() > 1 {
        // One whose partners and roots are all 0 is the process alone.
        worlds.retain(|handle| handles[handle].has_others);
    }
    let meaning = |(handle, partners): (&i64, &Partners)| {
        let is_alone = !partners.has_others && (partners.has_zero || is_tracked);
        let meaning = match worlds.as_slice() {
            [world] if world == handle => Meaning::Comm(0),
            _ if *handle == MPICH_SELF || is_alone => Meaning::Alone,
            _ => Meaning::Unknown,
        };
        (*handle, meaning)
    };
    handles.iter().map(meaning).collect()
}

/// How lists of members are to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// By rank in the communicator: ranks in the world.
    ByLocal,
    /// By rank in the world: ranks in the communicator, negative for others.
    ByWorld,
}

impl Reading {
    /// The way that says of each row's own rank what the row says.
    fn of(rows: &[&CommRow]) -> Option<Self> {
        let own =
            |list: &CommRow, place: i64| usize::try_from(place).ok().and_then(|place| list.members.get(place).copied());
        let by_local =
            |row: &CommRow| row.members.len() as i64 == row.size && own(row, row.local_rank) == Some(row.rank);
        let by_world = |row: &CommRow| own(row, row.rank) == Some(row.local_rank);
        if rows.iter().all(|row| by_local(row)) {
            Some(Self::ByLocal)
        } else if rows.iter().all(|row| by_world(row)) {
            Some(Self::ByWorld)
        } else {
            None
        }
    }

    /// Rank in the communicator and in the world of each member.
    fn members(self, row: &CommRow) -> Vec<(usize, u32)> {
        let size = row.size;
        let pair = |(place, value): (usize, &i64)| {
            let (local, rank) = match self {
                Self::ByLocal => (place as i64, *value),
                Self::ByWorld => (*value, place as i64),
            };
            let is_possible = (0..size).contains(&local) && (0..MOST_RANKS).contains(&rank);
            is_possible.then_some((local as usize, rank as u32))
        };
        row.members.iter().enumerate().filter_map(pair).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(rank: i64, local_rank: i64, size: i64, members: &[i64]) -> CommRow {
        let members = members.to_vec();
        CommRow { rank, local_rank, time: 0, handle: 1, size, root: 0, root_uid: 1, uid: ABSENT, members }
    }

    #[test]
    fn handles_without_a_record_are_those_of_the_world_or_of_the_process_alone() {
        use Meaning::{Alone, Comm, Unknown};
        let of = |handles: &[(i64, bool, bool)], is_tracked| {
            let partners = |(handle, has_zero, has_others): &(i64, bool, bool)| {
                (*handle, Partners { has_zero: *has_zero, has_others: *has_others })
            };
            let meanings = meanings(&handles.iter().map(partners).collect(), is_tracked);
            meanings.into_iter().map(|(_, meaning)| meaning).collect::<Vec<_>>()
        };
        assert_eq!(of(&[(5, true, false)], false), [Comm(0)], "the only one");
        assert_eq!(of(&[(5, true, false), (6, true, true)], false), [Alone, Comm(0)]);
        assert_eq!(of(&[(5, true, true), (6, true, true)], false), [Unknown, Unknown]);
        assert_eq!(of(&[(77, false, false), (MPICH_WORLD, true, true), (MPICH_SELF, false, false)], false)[0], Unknown);
        assert_eq!(of(&[(77, false, false), (78, false, true)], true), [Alone, Comm(0)]);
        assert_eq!(of(&[(MPICH_WORLD, false, false), (MPICH_SELF, false, false)], false), [Comm(0), Alone]);
    }

    #[test]
    fn lists_of_members_are_read_as_their_own_ranks_agree() {
        let by_local = [row(3, 1, 2, &[1, 3]), row(1, 0, 2, &[1, 3])];
        let by_world = [row(3, 1, 2, &[-1, 0, -1, 1]), row(1, 0, 2, &[-1, 0, -1, 1])];
        assert_eq!(Reading::of(&by_local.iter().collect::<Vec<_>>()), Some(Reading::ByLocal));
        assert_eq!(Reading::of(&by_world.iter().collect::<Vec<_>>()), Some(Reading::ByWorld));
        for (reading, row) in [(Reading::ByLocal, &by_local[0]), (Reading::ByWorld, &by_world[0])] {
            let mut members = reading.members(row);
            members.sort_unstable();
            assert_eq!(members, [(0, 1), (1, 3)]);
        }
        assert_eq!(Reading::of(&[&row(3, 1, 2, &[7, 8])]), None);
    }
}
