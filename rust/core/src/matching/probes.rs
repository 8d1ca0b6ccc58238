//! Which message a call has probed: `MPI_Probe` leaves no record.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::ids::InstanceId;
use crate::trace::{CallPath, RegionClass, Shard, Trace};

/// Calls that probe messages, by the rows of the receives of these.
#[derive(Default)]
pub(super) struct Probes {
    recorded: FxHashMap<u32, InstanceId>,
    inferred: FxHashMap<u32, InstanceId>,
}

impl Probes {
    /// The call that probed the message of a receive, whose send began at `sent`, and whether a record says so; if not, a
    /// message that is sent after a probe is not the one that was probed.
    pub(super) fn get(&self, shard: &Shard, row: u32, sent: i64) -> Option<(InstanceId, bool)> {
        let inferred = || self.inferred.get(&row).filter(|&&probe| sent <= shard.leave(probe));
        let recorded = self.recorded.get(&row).map(|&probe| (probe, true));
        recorded.or_else(|| inferred().map(|&probe| (probe, false)))
    }
}

/// A matched probe is recorded with its message; another one has found the message of the next receive that the same
/// call path posts (specification.md#inferred-synchronization).
pub(super) fn find(trace: &Trace, shard: &Shard) -> Probes {
    let mut probes = Probes { recorded: shard.probes.iter().copied().collect(), ..Probes::default() };
    let is_probe = |path: &CallPath| trace.regions.class(path.region) == RegionClass::Probe;
    if !trace.tree.nodes().iter().any(is_probe) {
        return probes;
    }
    let recorded: FxHashSet<InstanceId> = probes.recorded.values().copied().collect();
    let (enters, leaves) = (&shard.instances.enter, &shard.instances.leave);
    let parent = |instance: InstanceId| trace.tree.nodes()[shard.callpath(instance)].parent;
    for (i, location) in shard.locations.enumerate() {
        let mut posted: Vec<(u32, u32)> =
            shard.receives.range(i).map(|row| (enters[shard.receives.rows[row].request], row as u32)).collect();
        posted.sort_unstable();
        let calls = shard.instances_of(location);
        let is_unmatched =
            |call: &InstanceId| trace.class(shard, *call) == RegionClass::Probe && !recorded.contains(call);
        for probe in calls.filter(is_unmatched) {
            let next = posted.partition_point(|&(enter, _)| enter < leaves[probe]);
            if let Some(&(_, row)) = posted.get(next)
                && parent(shard.receives.rows[row as usize].request) == parent(probe)
            {
                probes.inferred.insert(row, probe);
            }
        }
    }
    probes
}
