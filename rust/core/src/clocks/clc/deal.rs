//! How the clocks are dealt to the processes of an analysis, and what these tell each other.

use crate::Result;
use crate::parallel::exchange::Exchange;

/// The time of what does not happen; a least latency can be added.
pub(super) const NEVER: i64 = i64::MIN + 1;

/// Which process of the analysis has each clock.
pub(in crate::clocks) struct Deal<'a> {
    pub(in crate::clocks) owners: Vec<u32>,
    pub(in crate::clocks) exchange: &'a Exchange,
}

/// Tells processes the times of nodes, in this order for each, unless they were `told`, and calls `take` with the nodes and times
/// that others tell; returns whether any process has told something.
pub(super) fn tell(
    exchange: &Exchange,
    (from, to): (&[Vec<u32>], &[Vec<u32>]),
    told: &mut Vec<Vec<i64>>,
    time: impl Fn(u32) -> i64,
    mut take: impl FnMut(u32, i64),
) -> Result<bool> {
    let mut outgoing: Vec<Vec<(u32, i64)>> = Vec::with_capacity(from.len());
    for (nodes, told) in from.iter().zip(told) {
        let mut changed = Vec::new();
        for (number, (&node, told)) in (0..).zip(nodes.iter().zip(told)) {
            let now = time(node);
            if now != std::mem::replace(told, now) {
                changed.push((number, now));
            }
        }
        outgoing.push(changed);
    }
    if !exchange.any(outgoing.iter().any(|changed| !changed.is_empty()))? {
        return Ok(false);
    }
    for (nodes, changed) in to.iter().zip(exchange.alltoall(outgoing)?) {
        for (number, time) in changed {
            take(nodes[number as usize], time);
        }
    }
    Ok(true)
}
