//! Clock domains: processes with one clock.
//!
//! Processes of a node share a clock, unless a constraint between them is violated by more than clocks resolve. Then each
//! process of that node is a domain of its own. *Source*: clocks.md#lines.

use rustc_hash::{FxHashMap, FxHashSet};

use super::census::Census;

/// The domain of each process, and their number: domains are in the order of their first processes.
pub(super) fn domains(nodes: &[u32], census: &Census, noise: i64) -> (Vec<u32>, usize) {
    let is_violated = census.cells.iter().filter(|(_, cell)| cell.worst > noise);
    let split: FxHashSet<u32> = is_violated
        .filter(|((_, from, to), _)| nodes.get(from.index()).is_some_and(|node| Some(node) == nodes.get(to.index())))
        .map(|((_, from, _), _)| nodes[*from])
        .collect();
    let mut of_node: FxHashMap<u32, u32> = FxHashMap::default();
    let mut count = 0;
    let mut next = || {
        count += 1;
        count - 1
    };
    let domain_of = nodes
        .iter()
        .map(|node| if split.contains(node) { next() } else { *of_node.entry(*node).or_insert_with(&mut next) });
    let domain_of = domain_of.collect();
    (domain_of, count as usize)
}
