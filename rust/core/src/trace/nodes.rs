//! On which node a process runs, by the system tree.

use std::iter::successors;

use rustc_hash::{FxHashMap, FxHashSet};
use whywait_otf2::Definitions;
use whywait_otf2::enums::SystemTreeDomain;

use super::Trace;
use crate::ids::ProcessId;

/// The property of a process that says which clock it has.
const CLOCK: &str = "WHYWAIT::CLOCK";

/// The clock of each process, as the source numbers it; nothing where it does not say that a node has several.
pub fn clocks(trace: &Trace) -> Vec<Option<i64>> {
    let records = trace.records();
    let properties = records.location_group_properties.iter();
    let named = properties.filter(|property| records.string(property.name) == CLOCK);
    let said: FxHashMap<u32, i64> =
        named.map(|property| (property.location_group, property.value.bits.cast_signed())).collect();
    let of = |process| {
        let group = trace.definitions.locations.get(trace.definitions.master(process).index())?.group;
        said.get(&group).copied()
    };
    (0..trace.definitions.processes.len()).map(ProcessId::at).map(of).collect()
}

/// The node of each process, by the id of its definition; `u32::MAX` if it is unknown.
///
/// That is the nearest place above its location group that is a node by its class, or that shares memory; without one, the group's parent.
pub fn nodes(trace: &Trace) -> Vec<u32> {
    let records = trace.records();
    let shared: FxHashSet<u32> = records
        .system_tree_node_domains
        .iter()
        .filter(|domain| domain.system_tree_domain == SystemTreeDomain::SHARED_MEMORY)
        .map(|domain| domain.system_tree_node)
        .collect();
    let of = |process| {
        // A process of a damaged trace may have no locations.
        let group = trace.definitions.locations.get(trace.definitions.master(process).index())?.group;
        node_of(records, &shared, records.location_group(group)?.system_tree_parent)
    };
    (0..trace.definitions.processes.len()).map(ProcessId::at).map(|process| of(process).unwrap_or(u32::MAX)).collect()
}

fn node_of(records: &Definitions, shared: &FxHashSet<u32>, parent: u32) -> Option<u32> {
    let parent = records.system_tree_node(parent)?;
    let above = successors(Some(parent), |place| records.system_tree_node(place.parent));
    // A longer path than the number of places is a circle.
    let mut above = above.take(records.system_tree_nodes.len());
    let node =
        above.find(|place| shared.contains(&place.id) || records.string(place.class_name).eq_ignore_ascii_case("node"));
    Some(node.unwrap_or(parent).id)
}
