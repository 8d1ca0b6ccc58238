//! Locations by node, whichever process of the analysis owns them.

use rustc_hash::FxHashMap;

use crate::Result;
use crate::ids::LocationId;
use crate::parallel::exchange::Row;
use crate::trace::Trace;
use crate::trace::nodes::nodes;

/// The nodes with at least `least` of the given locations, in the order of their first, at all processes.
///
/// Each process gives some of its own locations, with something that is known of each; those of no process are left out.
pub(super) fn by_node<T: Row + Clone + Ord>(
    trace: &Trace,
    own: Vec<(LocationId, T)>,
    least: usize,
) -> Result<Vec<Vec<(LocationId, T)>>> {
    let keys = nodes(trace);
    let mut of_nodes: FxHashMap<u32, Vec<(LocationId, T)>> = FxHashMap::default();
    for (location, known) in trace.exchange.allgather(own)?.into_iter().flatten() {
        let process = trace.definitions.locations[location].process;
        if process.is_some() {
            of_nodes.entry(keys[process]).or_default().push((location, known));
        }
    }
    let mut of_nodes: Vec<_> = of_nodes.into_values().filter(|node| node.len() >= least).collect();
    of_nodes.sort_unstable();
    Ok(of_nodes)
}
