//! Which message a call has probed: `MPI_Probe` leaves no record.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::ids::InstanceId;
use crate::trace::{CallPath, RegionClass, Shard, Trace};

/// Calls that probe messages by the rows of their receives: a matched probe is recorded with its message; another one
/// has found the message of the next receive that the same call path posts
/// (specification.md#inferred-synchronization).
pub(crate) fn find(trace: &Trace, shard: &Shard) -> FxHashMap<u32, InstanceId> {
    let mut probes: FxHashMap<u32, InstanceId> = shard.probes.iter().copied().collect();
    let is_probe = |path: &CallPath| trace.regions.class(path.region) == RegionClass::Probe;
    if !trace.tree.nodes().iter().any(is_probe) {
        return probes;
    }
    let recorded: FxHashSet<InstanceId> = probes.values().copied().collect();
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
                probes.insert(row, probe);
            }
        }
    }
    probes
}
