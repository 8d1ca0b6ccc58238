//! When each device was busy, over all streams and processes that share it.

use rustc_hash::{FxHashMap, FxHashSet};
use whywait_otf2::enums::SystemTreeDomain;

use crate::Result;
use crate::ids::{LocationId, ProcessId};
use crate::matching::launches::Span;
use crate::trace::Trace;

/// When each device was busy.
pub(super) struct BusyTimes {
    /// The number of the device of each stream.
    pub device: FxHashMap<LocationId, u32>,
    /// The kernels of each device, by begin: begin, stream, and the latest end of all up to this one.
    ran: Vec<Vec<(i64, LocationId, i64)>>,
}

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

impl BusyTimes {
    /// Collects the kernels of all streams. Those of other processes of the analysis are included only if they share a
    /// device with this one.
    pub(super) fn new<'a>(trace: &Trace, runs: impl Iterator<Item = &'a Span>) -> Result<Self> {
        let (device, is_shared) = devices(trace);
        let rows = runs.map(|run| (device[&run.location], run.enter, run.location, run.leave));
        let mut rows: Vec<(u32, i64, LocationId, i64)> = rows.collect();
        if trace.exchange.processes() > 1 {
            let shared = rows.extract_if(.., |(device, ..)| is_shared[*device as usize]).collect::<Vec<_>>();
            rows.extend(trace.exchange.allgather(shared)?.concat());
        }
        rows.sort_unstable();
        let mut ran = vec![Vec::new(); is_shared.len()];
        for of_device in rows.chunk_by(|a, b| a.0 == b.0) {
            let mut latest = i64::MIN;
            ran[of_device[0].0 as usize].extend(of_device.iter().map(|&(_, begin, stream, end)| {
                latest = latest.max(end);
                (begin, stream, latest)
            }));
        }
        Ok(Self { device, ran })
    }

    /// When the device had ended everything that began before `run`; `None` before the first.
    pub(super) fn previous_end(&self, run: &Span) -> Option<i64> {
        let ran = &self.ran[self.device[&run.location] as usize];
        let earlier = ran.partition_point(|&(begin, stream, _)| (begin, stream) < (run.enter, run.location));
        earlier.checked_sub(1).map(|last| ran[last].2)
    }
}

/// The device of each stream, and whether several processes share it.
fn devices(trace: &Trace) -> (FxHashMap<LocationId, u32>, Vec<bool>) {
    let definitions = trace.records();
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
    let mut owners: Vec<ProcessId> = Vec::new();
    let mut is_shared = Vec::new();
    for (index, location) in trace.definitions.locations.iter().enumerate().filter(|(_, one)| one.is_stream()) {
        let node = definitions.location_group(location.group).map(|group| group.system_tree_parent);
        let of_context = || {
            let name = definitions.string(location.name);
            let device = name.split_once('[').and_then(|(_, rest)| Some(rest.split_once(':')?.0));
            Key::Context(location.group, device)
        };
        let of_node = |node| uuids.get(&node).map_or(Key::Node(node), |uuid| Key::Uuid(uuid));
        let key = node.filter(|node| nodes.contains(node)).map_or_else(of_context, of_node);
        let next = owners.len() as u32;
        let found = *number.entry(key).or_insert(next);
        if found == next {
            owners.push(location.process);
            is_shared.push(false);
        }
        is_shared[found as usize] |= owners[found as usize] != location.process;
        device.insert(LocationId::at(index), found);
    }
    (device, is_shared)
}
