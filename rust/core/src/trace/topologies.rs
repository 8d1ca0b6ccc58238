//! Cartesian topologies of processes: who is next to whom.
//!
//! *Source*: specification.md#neighborhood-collective-operations.

use rustc_hash::FxHashMap;
use whywait_otf2::Definitions;
use whywait_otf2::enums::CartPeriodicity;

use crate::ids::{CommId, ProcessId};

/// A Cartesian topology of the members of a communicator.
#[derive(Clone, Debug)]
pub struct Topology {
    /// Its communicator.
    pub comm: CommId,
    /// The neighbors of all ranks, and where those of each rank begin.
    neighbors: Vec<u32>,
    begins: Vec<u32>,
}

impl Topology {
    /// The ranks next to a rank in each dimension, in ascending order, without itself; none beyond the last rank.
    pub fn neighbors(&self, rank: u32) -> &[u32] {
        let rank = rank as usize;
        self.begins.get(rank..rank + 2).map_or(&[], |range| &self.neighbors[range[0] as usize..range[1] as usize])
    }
}

/// The members of a topology, and its neighbors as in [`Topology`].
type Shape<'a> = (&'a [ProcessId], &'a [u32], &'a [u32]);

/// The topologies of a run that are defined completely.
#[derive(Clone, Debug, Default)]
pub struct Topologies {
    all: Vec<Topology>,
    of_comm: FxHashMap<CommId, u32>,
    /// That of the processes that are in no other.
    of_process: FxHashMap<ProcessId, u32>,
}

impl Topologies {
    /// `comm` tells the communicator with an id, `members` the processes in it; none for those of threads.
    pub(super) fn new<'a>(
        definitions: &Definitions,
        comm: impl Fn(u32) -> Option<CommId>,
        members: impl Fn(CommId) -> Option<&'a [ProcessId]>,
    ) -> Self {
        let mut coordinates: FxHashMap<u32, Vec<(u32, &[u32])>> = FxHashMap::default();
        for one in &definitions.cart_coordinates {
            coordinates.entry(one.cart_topology).or_default().push((one.rank, &one.coordinates));
        }
        let mut all = Vec::new();
        for definition in &definitions.cart_topologies {
            let Some(comm) = comm(definition.communicator) else { continue };
            // Those of threads are no topologies of MPI.
            let Some(members) = members(comm) else { continue };
            let dimension = |id: &u32| {
                let found = definitions.cart_dimensions.iter().find(|dimension| dimension.id == *id);
                found.map(|found| (found.size, found.cart_periodicity == CartPeriodicity::TRUE))
            };
            let dimensions: Option<Vec<(u32, bool)>> = definition.cart_dimensions.iter().map(dimension).collect();
            let places = coordinates.get(&definition.id).map_or(&[][..], Vec::as_slice);
            if let Some((neighbors, begins)) =
                dimensions.and_then(|dimensions| neighbors(&dimensions, places, members.len()))
            {
                all.push(Topology { comm, neighbors, begins });
            }
        }
        let mut of_process: FxHashMap<ProcessId, u32> = FxHashMap::default();
        let members = |topology: &Topology| members(topology.comm).unwrap_or_default();
        // Which one does not matter if they are equal, as those of a communicator and its duplicate.
        let mut equal: FxHashMap<Shape, u32> = FxHashMap::default();
        for (topology, number) in all.iter().zip(0..) {
            let number = *equal.entry((members(topology), &topology.begins, &topology.neighbors)).or_insert(number);
            for &process in members(topology) {
                let found = of_process.entry(process).or_insert(number);
                *found = if *found == number { number } else { u32::MAX };
            }
        }
        // All members of an operation must know that it is on this topology.
        for topology in &all {
            let number = equal[&(members(topology), &*topology.begins, &*topology.neighbors)];
            if members(topology).iter().any(|process| of_process[process] != number) {
                of_process.extend(members(topology).iter().map(|process| (*process, u32::MAX)));
            }
        }
        of_process.retain(|_, number| *number != u32::MAX);
        let of_comm = all.iter().zip(0..).map(|(topology, number)| (topology.comm, number)).collect();
        Self { all, of_comm, of_process }
    }

    /// The number of the only topology that a process and all others in it are part of.
    pub fn only(&self, process: ProcessId) -> Option<u32> {
        self.of_process.get(&process).copied()
    }

    /// The topology with a number.
    pub fn get(&self, number: u32) -> &Topology {
        &self.all[number as usize]
    }

    /// The topology of a communicator.
    pub fn of(&self, comm: CommId) -> Option<&Topology> {
        self.of_comm.get(&comm).map(|&number| self.get(number))
    }
}

/// The neighbors of all ranks, and where those of each rank begin; `None` if a rank has no place of its own. `dimensions` are
/// sizes, and whether the last place is next to the first.
fn neighbors(dimensions: &[(u32, bool)], places: &[(u32, &[u32])], ranks: usize) -> Option<(Vec<u32>, Vec<u32>)> {
    let number = |at: &[u32]| -> Option<u64> {
        let is_inside = at.len() == dimensions.len() && at.iter().zip(dimensions).all(|(at, (size, _))| at < size);
        is_inside.then_some(())?;
        at.iter()
            .zip(dimensions)
            .try_fold(0u64, |number, (&at, &(size, _))| number.checked_mul(u64::from(size))?.checked_add(u64::from(at)))
    };
    let mut rank_at: FxHashMap<u64, u32> = FxHashMap::default();
    let mut place_of: Vec<&[u32]> = vec![&[]; ranks];
    for &(rank, at) in places {
        let place = place_of.get_mut(rank as usize)?;
        if !place.is_empty() || rank_at.insert(number(at)?, rank).is_some() {
            return None;
        }
        *place = at;
    }
    (rank_at.len() == ranks && !dimensions.is_empty()).then_some(())?;
    let (mut all, mut begins) = (Vec::new(), vec![0]);
    let (mut at, mut next_to) = (Vec::new(), Vec::new());
    for (own, place) in (0..).zip(place_of) {
        next_to.clear();
        for (axis, &(size, is_periodic)) in dimensions.iter().enumerate() {
            for next in beside(place[axis], size, is_periodic) {
                at.clear();
                at.extend_from_slice(place);
                at[axis] = next;
                next_to.extend(number(&at).and_then(|number| rank_at.get(&number)).filter(|rank| **rank != own));
            }
        }
        next_to.sort_unstable();
        next_to.dedup();
        all.extend_from_slice(&next_to);
        begins.push(u32::try_from(all.len()).ok()?);
    }
    Some((all, begins))
}

/// The places beside a place in a dimension.
fn beside(at: u32, size: u32, is_periodic: bool) -> impl Iterator<Item = u32> {
    let around = |edge: u32| is_periodic.then_some(edge);
    let below = at.checked_sub(1).or_else(|| around(size - 1));
    let above = Some(at + 1).filter(|&next| next < size).or_else(|| around(0));
    below.into_iter().chain(above)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbors_are_one_step_away() {
        // 3 x 2, periodic in the first dimension, in which rank 0 is at the end.
        let places: Vec<(u32, Vec<u32>)> = (0..6).map(|rank| (5 - rank, vec![rank / 2, rank % 2])).collect();
        let places: Vec<(u32, &[u32])> = places.iter().map(|(rank, at)| (*rank, at.as_slice())).collect();
        let (all, begins) = neighbors(&[(3, true), (2, false)], &places, 6).unwrap();
        let of = |rank: usize| &all[begins[rank] as usize..begins[rank + 1] as usize];
        assert_eq!(of(0), [1, 2, 4]);
        assert_eq!(of(3), [1, 2, 5]);
        // Both steps of a dimension of two that is periodic lead to the same place, of one to itself.
        let places: Vec<(u32, &[u32])> = vec![(0, &[0, 0]), (1, &[1, 0])];
        assert_eq!(neighbors(&[(2, true), (1, true)], &places, 2).unwrap().0, [1, 0]);
        // The ends of three in a row are neighbors if the row is periodic.
        let places: Vec<(u32, &[u32])> = vec![(0, &[0]), (1, &[1]), (2, &[2])];
        assert_eq!(neighbors(&[(3, false)], &places, 3).unwrap().0, [1, 0, 2, 1]);
        assert_eq!(neighbors(&[(3, true)], &places, 3).unwrap().0, [1, 2, 0, 2, 0, 1]);
    }

    #[test]
    fn ranks_without_places_have_no_neighbors() {
        assert!(neighbors(&[(2, true)], &[(0, &[0])], 2).is_none());
        assert!(neighbors(&[(2, true)], &[(0, &[0]), (1, &[0])], 2).is_none());
        assert!(neighbors(&[(2, true)], &[(0, &[0]), (1, &[2])], 2).is_none());
        assert!(neighbors(&[(2, true)], &[(0, &[0]), (2, &[1])], 2).is_none());
        assert!(neighbors(&[(2, true)], &[(0, &[0]), (0, &[1])], 2).is_none());
        assert!(neighbors(&[], &[(0, &[])], 1).is_none());
        assert!(neighbors(&[(2, true)], &[(0, &[0, 0]), (1, &[1, 0])], 2).is_none());
    }
}
