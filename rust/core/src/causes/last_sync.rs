//! When a location last synchronized with a process: the left ends of intervals.
//!
//! Pairwise synchronizations are stored by process, group synchronizations by group, the latest group last. A group
//! replaces earlier ones that are subsets of it. So a barrier costs each member one entry, however many members there
//! are.

use rustc_hash::FxHashMap;

use super::points::{Point, Relation, SyncScope};
use crate::ids::{LocationId, ProcessId};
use crate::trace::DefinitionIndex;

/// The point at which a location last synchronized with a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LastSync {
    /// Position among the points of the shard.
    pub point: u32,
    /// Time of its call that does not belong to the interval which it begins, ticks.
    pub before: i64,
}

/// A group synchronization.
struct Group {
    scope: SyncScope,
    last_sync: LastSync,
}

/// The last synchronizations of the current location so far.
#[derive(Default)]
pub(crate) struct LastSyncIndex {
    groups: Vec<Group>,
    pairs: FxHashMap<ProcessId, LastSync>,
    contentions: FxHashMap<ProcessId, LastSync>,
    /// Threads and streams.
    locations: FxHashMap<LocationId, LastSync>,
    /// Sets of threads, the latest last.
    thread_sets: Vec<(u32, LastSync)>,
    no_team: Option<LastSync>,
}

impl LastSyncIndex {
    /// Removes all entries.
    pub(crate) fn clear(&mut self) {
        self.groups.clear();
        self.pairs.clear();
        self.contentions.clear();
        self.locations.clear();
        self.thread_sets.clear();
        self.no_team = None;
    }

    /// Records a pairwise synchronization or contention with another location.
    pub(crate) fn record(
        &mut self,
        relation: Relation,
        (location, process): (LocationId, ProcessId),
        point: u32,
        call: &Point,
        completion: i64,
    ) {
        match relation {
            Relation::Pair => {
                self.pairs.insert(process, LastSync { point, before: call.total - completion });
            }
            // All time of the call except the wait belongs to the next interval.
            Relation::Contention => {
                self.contentions.insert(process, LastSync { point, before: call.waiting });
            }
            Relation::Device | Relation::ThreadPair | Relation::Creation => {
                self.locations.insert(location, LastSync { point, before: (call.total - completion).max(0) });
            }
            Relation::Group
            | Relation::Ownership
            | Relation::Chain
            | Relation::Start
            | Relation::ThreadGroup
            | Relation::Threads
            | Relation::Alone
            | Relation::Past => {}
        }
    }

    /// Records a group synchronization.
    pub(crate) fn record_group(&mut self, scope: SyncScope, point: u32, before: i64) {
        let last_sync = LastSync { point, before };
        match scope {
            SyncScope::Nobody => return,
            SyncScope::NoTeam => self.no_team = Some(last_sync),
            SyncScope::Threads { set } => {
                self.thread_sets.retain(|&(other, _)| other != set);
                self.thread_sets.push((set, last_sync));
            }
            SyncScope::Everybody => {
                self.groups.clear();
                self.pairs.clear();
                self.contentions.clear();
            }
            SyncScope::Members { comm: here } => self.groups.retain(
                |group| !matches!(group.scope, SyncScope::Members { comm } | SyncScope::Some { comm, .. } if comm == here),
            ),
            SyncScope::Some { .. } => {}
        }
        if !matches!(scope, SyncScope::NoTeam | SyncScope::Threads { .. }) {
            self.groups.push(Group { scope, last_sync });
        }
    }

    /// The last synchronization with a process, with or without contention: the left end of a synchronization interval
    /// (thesis, definition 5) or of a pre-contention interval (definition 9, equations 4.3 and 4.4).
    pub(crate) fn with(
        &self,
        definitions: &DefinitionIndex,
        sets: &[Vec<ProcessId>],
        process: ProcessId,
        contention: bool,
    ) -> Option<LastSync> {
        let holds = |group: &&Group| match group.scope {
            SyncScope::Everybody => true,
            SyncScope::Members { comm } => definitions.comms[comm].rank(process).is_some(),
            SyncScope::Some { set, .. } => sets[set as usize].binary_search(&process).is_ok(),
            SyncScope::Nobody | SyncScope::NoTeam | SyncScope::Threads { .. } => false,
        };
        let group = self.groups.iter().rev().find(holds).map(|group| group.last_sync);
        let pair = self.pairs.get(&process).copied();
        let last_sync = later(group, pair);
        if contention {
            // At the same point, the synchronization determines which part of the call came after it.
            later(self.contentions.get(&process).copied(), last_sync)
        } else {
            last_sync
        }
    }

    /// The last synchronization of a thread and a stream, or of two streams.
    pub(crate) fn with_device(&self, location: LocationId) -> Option<LastSync> {
        self.locations.get(&location).copied()
    }

    /// The last synchronization of two threads; `sets` are the sets of threads of the shard.
    pub(crate) fn with_thread(&self, sets: &[Vec<LocationId>], location: LocationId) -> Option<LastSync> {
        let has_it = |&&(set, _): &&(u32, LastSync)| sets[set as usize].binary_search(&location).is_ok();
        let group = self.thread_sets.iter().rev().find(has_it).map(|&(_, last_sync)| last_sync);
        later(group, self.locations.get(&location).copied())
    }

    /// The last join.
    pub(crate) fn without_team(&self) -> Option<LastSync> {
        self.no_team
    }
}

/// The later of two, the second on a tie.
fn later(a: Option<LastSync>, b: Option<LastSync>) -> Option<LastSync> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if a.point > b.point { a } else { b }),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::CommId;
    use whywait_otf2::Definitions;

    fn point_of(last_sync: Option<LastSync>) -> Option<u32> {
        last_sync.map(|last_sync| last_sync.point)
    }

    #[test]
    fn the_latest_meeting_counts() {
        let definitions = DefinitionIndex::new(&Definitions::default());
        let sets = [vec![ProcessId::new(1), ProcessId::new(3)]];
        let mut last_syncs = LastSyncIndex::default();
        last_syncs.pairs.insert(ProcessId::new(2), LastSync { point: 0, before: 0 });
        last_syncs.record_group(SyncScope::Everybody, 1, 0);
        assert_eq!(point_of(last_syncs.with(&definitions, &sets, ProcessId::new(2), false)), Some(1));
        last_syncs.pairs.insert(ProcessId::new(2), LastSync { point: 2, before: 0 });
        last_syncs.record_group(SyncScope::Some { comm: CommId::new(0), set: 0 }, 3, 0);
        assert_eq!(point_of(last_syncs.with(&definitions, &sets, ProcessId::new(2), false)), Some(2));
        assert_eq!(point_of(last_syncs.with(&definitions, &sets, ProcessId::new(3), false)), Some(3));
        last_syncs.contentions.insert(ProcessId::new(3), LastSync { point: 4, before: 0 });
        assert_eq!(point_of(last_syncs.with(&definitions, &sets, ProcessId::new(3), false)), Some(3));
        assert_eq!(point_of(last_syncs.with(&definitions, &sets, ProcessId::new(3), true)), Some(4));
    }

    #[test]
    fn what_all_members_have_passed_is_forgotten() {
        let mut last_syncs = LastSyncIndex::default();
        for point in 0..9 {
            last_syncs.record_group(SyncScope::Some { comm: CommId::new(0), set: 0 }, point, 0);
        }
        last_syncs.record_group(SyncScope::Members { comm: CommId::new(1) }, 9, 0);
        last_syncs.record_group(SyncScope::Members { comm: CommId::new(0) }, 10, 0);
        assert_eq!(last_syncs.groups.len(), 2);
        last_syncs.record_group(SyncScope::Everybody, 11, 0);
        assert_eq!(last_syncs.groups.len(), 1);
    }
}
