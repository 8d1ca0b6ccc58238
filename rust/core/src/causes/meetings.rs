//! When a location last met a process: the left ends of intervals.
//!
//! Synchronizations of two are remembered by process, those of many by group, the latest group last. A group that all
//! members of an earlier one belong to makes that forgotten. So a barrier costs each member one entry, however many
//! members there are.

use rustc_hash::FxHashMap;

use super::points::{Meets, Point, Relation};
use crate::trace::World;

/// The point at which a location met a process last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Met {
    /// Position among the points of the shard.
    pub point: u32,
    /// Time of its call that does not belong to the interval which it begins, ticks.
    pub before: i64,
}

/// A synchronization of many.
struct Group {
    meets: Meets,
    met: Met,
}

/// All meetings of the current location so far.
#[derive(Default)]
pub(crate) struct Meetings {
    groups: Vec<Group>,
    pairs: FxHashMap<u32, Met>,
    contentions: FxHashMap<u32, Met>,
    team: Option<Met>,
    no_team: Option<Met>,
}

impl Meetings {
    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.groups.clear();
        self.pairs.clear();
        self.contentions.clear();
        self.team = None;
        self.no_team = None;
    }

    /// Two synchronize, or contend.
    pub(crate) fn meet(&mut self, relation: Relation, process: u32, point: u32, call: &Point, completion: i64) {
        match relation {
            Relation::Pair => {
                self.pairs.insert(process, Met { point, before: call.total - completion });
            }
            // All that is not waiting belongs to the next interval.
            Relation::Contention => {
                self.contentions.insert(process, Met { point, before: call.waiting });
            }
            Relation::Group | Relation::Threads | Relation::Alone => {}
        }
    }

    /// Many synchronize.
    pub(crate) fn meet_all(&mut self, meets: Meets, point: u32, before: i64) {
        let met = Met { point, before };
        match meets {
            Meets::Nobody => return,
            Meets::Team => self.team = Some(met),
            Meets::NoTeam => self.no_team = Some(met),
            Meets::Everybody => {
                self.groups.clear();
                self.pairs.clear();
                self.contentions.clear();
            }
            Meets::Members { comm: here } => self.groups.retain(
                |group| !matches!(group.meets, Meets::Members { comm } | Meets::Some { comm, .. } if comm == here),
            ),
            Meets::Some { .. } => {}
        }
        if !matches!(meets, Meets::Team | Meets::NoTeam) {
            self.groups.push(Group { meets, met });
        }
    }

    /// The last meeting with a process, where contention counts or not.
    pub(crate) fn with(&self, world: &World, sets: &[Vec<u32>], process: u32, contention: bool) -> Option<Met> {
        let holds = |group: &&Group| match group.meets {
            Meets::Everybody => true,
            Meets::Members { comm } => world.comms[comm as usize].rank(process).is_some(),
            Meets::Some { set, .. } => sets[set as usize].binary_search(&process).is_ok(),
            Meets::Nobody | Meets::Team | Meets::NoTeam => false,
        };
        let group = self.groups.iter().rev().find(holds).map(|group| group.met);
        let pair = self.pairs.get(&process).copied();
        let met = later(group, pair);
        if contention {
            // At the same point the synchronization says what of the call came after it.
            later(self.contentions.get(&process).copied(), met)
        } else {
            met
        }
    }

    /// The last synchronization of the thread's team.
    pub(crate) fn with_team(&self) -> Option<Met> {
        self.team
    }

    /// The last join.
    pub(crate) fn without_team(&self) -> Option<Met> {
        self.no_team
    }
}

/// The later of two; of equal ones the second.
fn later(a: Option<Met>, b: Option<Met>) -> Option<Met> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if a.point > b.point { a } else { b }),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whywait_otf2::Definitions;

    fn point_of(met: Option<Met>) -> Option<u32> {
        met.map(|met| met.point)
    }

    #[test]
    fn the_latest_meeting_counts() {
        let world = World::new(&Definitions::default());
        let sets = [vec![1, 3]];
        let mut meetings = Meetings::default();
        meetings.pairs.insert(2, Met { point: 0, before: 0 });
        meetings.meet_all(Meets::Everybody, 1, 0);
        assert_eq!(point_of(meetings.with(&world, &sets, 2, false)), Some(1));
        meetings.pairs.insert(2, Met { point: 2, before: 0 });
        meetings.meet_all(Meets::Some { comm: 0, set: 0 }, 3, 0);
        assert_eq!(point_of(meetings.with(&world, &sets, 2, false)), Some(2));
        assert_eq!(point_of(meetings.with(&world, &sets, 3, false)), Some(3));
        meetings.contentions.insert(3, Met { point: 4, before: 0 });
        assert_eq!(point_of(meetings.with(&world, &sets, 3, false)), Some(3));
        assert_eq!(point_of(meetings.with(&world, &sets, 3, true)), Some(4));
    }

    #[test]
    fn what_all_members_have_passed_is_forgotten() {
        let mut meetings = Meetings::default();
        for point in 0..9 {
            meetings.meet_all(Meets::Some { comm: 0, set: 0 }, point, 0);
        }
        meetings.meet_all(Meets::Members { comm: 1 }, 9, 0);
        meetings.meet_all(Meets::Members { comm: 0 }, 10, 0);
        assert_eq!(meetings.groups.len(), 2);
        meetings.meet_all(Meets::Everybody, 11, 0);
        assert_eq!(meetings.groups.len(), 1);
    }
}
