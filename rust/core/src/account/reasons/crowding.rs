//! Whether calls take long while other locations of their node compute: these have the cores that the callers wait for.
//!
//! ```text
//!  0  --[ call: wait | needed | slow        ]--      how many others compute meanwhile?
//!  1  ------- computes -----------------------
//!  2  [ Recv: waits                          ]
//! ```
//!
//! If a node has `k` cores, `k` others compute while a call makes no progress, and never more; while calls are as fast as
//! they can be, it is fewer. Calls of rooted collective operations say nothing: inside, they wait for others of a tree.
//! Nor do calls during which always the same other computes, more than chance would have it: they may wait for that one.

use bitcode::{Decode, Encode};

use super::calls::Calls;
use crate::Result;
use crate::account::nodes::by_node;
use crate::ids::LocationId;
use crate::parallel::exchange::Exchange;
use crate::parallel::iter::prelude::*;

/// A node on which calls take long while others compute.
#[derive(Clone, Copy, Debug, PartialEq, Encode, Decode)]
pub struct Crowded {
    /// The first location of the node.
    pub location: LocationId,
    /// Number of its locations.
    pub locations: u32,
    /// So many others compute while a call is slow, and hardly ever more.
    pub most: u32,
    /// The share of the time of slow calls in which so many compute or more.
    pub slow: f64,
    /// The same of other calls.
    pub fast: f64,
    /// Number of slow calls.
    pub calls: u64,
}

/// A call is slow if it takes so many times its floor, and so many seconds more than it.
const TIMES: i64 = 5;
const MORE: f64 = 20e-6;
/// Fewest slow calls, and the share of the CPU time of the node that they take at least.
const CALLS: u64 = 20;
const TIME: f64 = 0.01;
/// Shares of the time of slow calls: in which enough others compute, in which more do, and how much more often than
/// while calls are fast.
const OFTEN: f64 = 0.15;
const RARELY: f64 = 0.01;
const MORE_OFTEN: f64 = 1.3;
/// Moments that are looked at, and how many locations are at most.
const MOMENTS: i64 = 10_000;
const LOOKS: usize = 400_000;

/// The nodes on which calls take long, in the order of their first locations, at the first process. A process judges a node
/// alone if it owns all of its locations, and all processes do so together otherwise.
pub(super) fn find(calls: &Calls<'_>) -> Result<Vec<Crowded>> {
    let (trace, exchange) = (calls.trace, &calls.trace.exchange);
    let of_nodes = by_node(trace, calls.locations().map(|location| (location, ())).collect(), 3)?;
    let locations = |node: Vec<(LocationId, ())>| node.into_iter().map(|(location, ())| location).collect();
    let of_nodes: Vec<Vec<LocationId>> = of_nodes.into_iter().map(locations).collect();
    let owner = |location: LocationId| exchange.process_of(trace.shard_of[location]);
    let is_split = |node: &[LocationId]| node.iter().any(|&location| owner(location) != owner(node[0]));
    let alone = exchange.alone();
    let own = of_nodes.par_iter().filter(|node| !is_split(node) && trace.owns(node[0]));
    let own: Vec<Option<Crowded>> = own.map(|node| of_node(calls, node, &alone)).collect::<Result<_>>()?;
    let mut found = exchange.gatherv(own.into_iter().flatten())?;
    for node in of_nodes.iter().filter(|node| is_split(node)) {
        found.extend(of_node(calls, node, exchange)?);
    }
    found.sort_unstable_by_key(|found| found.location);
    Ok(found)
}

/// Number and ticks of slow and of fast calls.
type Sums = [(u64, i64); 2];

fn of_node(calls: &Calls<'_>, node: &[LocationId], exchange: &Exchange) -> Result<Option<Crowded>> {
    let more = calls.ticks(MORE);
    let is_slow = |ticks: i64, floor: i64| ticks > floor.saturating_mul(TIMES).max(floor.saturating_add(more));
    let own: Vec<LocationId> = node.iter().copied().filter(|&location| calls.trace.owns(location)).collect();
    let known = |location: LocationId| {
        let shard = calls.trace.shard(location);
        let is_rooted = |leave: u32| calls.callpaths.is_rooted[shard.events.callpath(leave)];
        calls.of(location).filter(move |call| call.floor < i64::MAX && !is_rooted(call.leave))
    };
    let mut of_own = Sums::default();
    for call in own.iter().flat_map(|&location| known(location)) {
        let sum = &mut of_own[usize::from(!is_slow(call.ticks, call.floor))];
        *sum = (sum.0 + 1, sum.1 + call.ticks);
    }
    // Processes own locations in the order of their ranks.
    let of_processes = exchange.allgather(of_own)?;
    let sum =
        |of: &[Sums], which: usize| of.iter().fold((0, 0), |sum, own| (sum.0 + own[which].0, sum.1 + own[which].1));
    let [(number, slow), (_, fast)] = [0, 1].map(|which| sum(&of_processes, which));
    let length = (calls.focus.end - calls.focus.start) as f64;
    if number < CALLS || (slow as f64) < TIME * length * node.len() as f64 || fast == 0 {
        return Ok(None);
    }
    let moments = MOMENTS.min((LOOKS / node.len()) as i64).max(1);
    let steps = [(slow / moments).max(1), (fast / moments).max(1)];
    let mut since = [0, 1].map(|which| sum(&of_processes[..exchange.rank()], which).1 % steps[which]);
    // Moments of calls that are slow or not, and who calls.
    let mut looks: Vec<(bool, LocationId, i64)> = Vec::new();
    for &location in &own {
        let events = &calls.trace.shard(location).events;
        for call in known(location) {
            let which = usize::from(!is_slow(call.ticks, call.floor));
            let end = events.time[call.leave as usize];
            let mut left = call.ticks;
            while since[which] + left >= steps[which] {
                left -= steps[which] - since[which];
                since[which] = 0;
                looks.push((which == 0, location, end - left));
            }
            since[which] += left;
        }
    }
    let looks = exchange.allgather(looks)?.concat();
    let mut others = vec![0u32; looks.len()];
    // Of each caller, the moments of slow calls in which the same other computes: the one that does most often.
    let mut same = vec![0u32; node.len()];
    for &other in &own {
        // The moments of a caller are in order.
        let mut near = 0;
        let mut of_callers = vec![0u32; node.len()];
        for (others, &(is_slow, caller, at)) in others.iter_mut().zip(&looks) {
            if other != caller && calls.computes(other, calls.position_after(other, at, &mut near)) {
                *others += 1;
                of_callers[node.partition_point(|&one| one < caller)] += u32::from(is_slow);
            }
        }
        for (same, of_caller) in same.iter_mut().zip(of_callers) {
            *same = of_caller.max(*same);
        }
    }
    let of_processes = exchange.gather((others, same))?;
    if !exchange.is_root() {
        return Ok(None);
    }
    let (of_processes, same): (Vec<_>, Vec<_>) = of_processes.into_iter().unzip();
    let same: u32 = (0..node.len()).filter_map(|i| same.iter().map(|of| of[i]).max()).sum();
    let same = f64::from(same) / looks.iter().filter(|look| look.0).count().max(1) as f64;
    // How often a number of others compute.
    let mut computing = [vec![0u64; node.len()], vec![0u64; node.len()]];
    for (i, (is_slow, ..)) in looks.iter().enumerate() {
        let others: u32 = of_processes.iter().map(|of| of[i]).sum();
        computing[usize::from(!is_slow)][others as usize] += 1;
    }
    let share = |which: usize, least: usize| {
        let all: u64 = computing[which].iter().sum();
        computing[which][least..].iter().sum::<u64>() as f64 / all.max(1) as f64
    };
    let holds = |&most: &usize| {
        let often = share(0, most);
        // Halfway between chance and always.
        let is_one = same > 0.5 + 0.5 * most as f64 / (node.len() - 1) as f64;
        often >= OFTEN && share(0, most + 1) <= RARELY && often >= MORE_OFTEN * share(1, most) && !is_one
    };
    let most = (1..=node.len() - 2).rev().find(holds);
    Ok(most.map(|most| Crowded {
        location: node[0],
        locations: node.len() as u32,
        most: most as u32,
        slow: share(0, most),
        fast: share(1, most),
        calls: number,
    }))
}
