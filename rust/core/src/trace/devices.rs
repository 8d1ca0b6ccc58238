//! The devices of streams.

use rustc_hash::{FxHashMap, FxHashSet};
use whywait_otf2::Definitions;
use whywait_otf2::enums::SystemTreeDomain;

use super::locations::Location;
use crate::ids::LocationId;

/// The identity of a device.
#[derive(PartialEq, Eq, Hash)]
enum Key<'a> {
    /// Its UUID, the same in all processes.
    Uuid(&'a str),
    /// A node of the system tree.
    Node(u32),
    /// Without such a node: the context, and the device number in the name of the stream, as in `CUDA[0:7]`.
    Context(u32, Option<&'a str>),
}

/// The number of the device of each stream.
pub(crate) fn of_streams(definitions: &Definitions, locations: &[Location]) -> FxHashMap<LocationId, u32> {
    let nodes = definitions.system_tree_node_domains.iter();
    let nodes: FxHashSet<u32> = nodes
        .filter(|domain| domain.system_tree_domain == SystemTreeDomain::ACCELERATOR_DEVICE)
        .map(|domain| domain.system_tree_node)
        .collect();
    let uuids = definitions.system_tree_node_properties.iter();
    let uuids: FxHashMap<u32, &str> = uuids
        .filter(|property| definitions.string(property.name) == "UUID")
        .map(|property| (property.system_tree_node, definitions.string(property.string_value)))
        .collect();
    let mut number = FxHashMap::default();
    let mut device = FxHashMap::default();
    for (index, location) in locations.iter().enumerate().filter(|(_, one)| one.is_stream()) {
        let node = definitions.location_group(location.group).map(|group| group.system_tree_parent);
        let of_context = || {
            let name = definitions.string(location.name);
            let device = name.split_once('[').and_then(|(_, rest)| Some(rest.split_once(':')?.0));
            Key::Context(location.group, device)
        };
        let of_node = |node| uuids.get(&node).map_or(Key::Node(node), |uuid| Key::Uuid(uuid));
        let key = node.filter(|node| nodes.contains(node)).map_or_else(of_context, of_node);
        let next = number.len() as u32;
        device.insert(LocationId::at(index), *number.entry(key).or_insert(next));
    }
    device
}
