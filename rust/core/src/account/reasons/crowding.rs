//! Whether calls take long while other locations of their node compute: these have the cores that the callers wait for.
//!
//! ```text
//!  0  --[ call: wait | needed | slow        ]--      how many others compute meanwhile?
//!  1  ------- computes -----------------------
//!  2  [ Recv: waits                          ]
//! ```
//!
//! If a node has `k` cores, `k` others compute while a call makes no progress, and never more; while calls are as fast as
//! they can be, it is fewer.

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::calls::Calls;
use crate::ids::LocationId;
use crate::matching::protocol::nodes;

/// A node on which calls take long while others compute.
#[derive(Clone, Copy, Debug, PartialEq)]
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

pub(super) fn find(calls: &Calls<'_>) -> Vec<Crowded> {
    let keys = nodes(calls.trace);
    let mut of_nodes: FxHashMap<u32, Vec<LocationId>> = FxHashMap::default();
    for location in calls.locations() {
        let process = calls.trace.definitions.locations[location].process;
        if process.is_some() {
            of_nodes.entry(keys[process]).or_default().push(location);
        }
    }
    let mut of_nodes: Vec<Vec<LocationId>> = of_nodes.into_values().filter(|node| node.len() > 2).collect();
    of_nodes.sort_unstable();
    of_nodes.par_iter().filter_map(|node| of_node(calls, node)).collect()
}

fn of_node(calls: &Calls<'_>, node: &[LocationId]) -> Option<Crowded> {
    let more = calls.ticks(MORE);
    let is_slow = |ticks: i64, floor: i64| ticks > floor.saturating_mul(TIMES).max(floor.saturating_add(more));
    // The number of slow and of fast calls, and their ticks.
    let mut sums = [(0u64, 0i64); 2];
    for &location in node {
        for call in calls.of(location).filter(|call| call.floor < i64::MAX) {
            let sum = &mut sums[usize::from(!is_slow(call.ticks, call.floor))];
            *sum = (sum.0 + 1, sum.1 + call.ticks);
        }
    }
    let length = (calls.focus.end - calls.focus.start) as f64;
    let [(number, slow), (_, fast)] = sums;
    if number < CALLS || (slow as f64) < TIME * length * node.len() as f64 || fast == 0 {
        return None;
    }
    let moments = MOMENTS.min((LOOKS / node.len()) as i64).max(1);
    let steps = [(slow / moments).max(1), (fast / moments).max(1)];
    // How often a number of others compute.
    let mut computing = [vec![0u64; node.len()], vec![0u64; node.len()]];
    let mut since = [0i64; 2];
    for &location in node {
        let events = &calls.trace.shard(location).events;
        for call in calls.of(location).filter(|call| call.floor < i64::MAX) {
            let which = usize::from(!is_slow(call.ticks, call.floor));
            let end = events.time[call.leave as usize];
            let mut left = call.ticks;
            while since[which] + left >= steps[which] {
                left -= steps[which] - since[which];
                since[which] = 0;
                let others = node.iter().filter(|&&other| other != location && calls.computes(other, end - left));
                computing[which][others.count()] += 1;
            }
            since[which] += left;
        }
    }
    let share = |which: usize, least: usize| {
        let all: u64 = computing[which].iter().sum();
        computing[which][least..].iter().sum::<u64>() as f64 / all.max(1) as f64
    };
    let holds = |&most: &usize| {
        let often = share(0, most);
        often >= OFTEN && share(0, most + 1) <= RARELY && often >= MORE_OFTEN * share(1, most)
    };
    let most = (1..=node.len() - 2).rev().find(holds)?;
    Some(Crowded {
        location: node[0],
        locations: node.len() as u32,
        most: most as u32,
        slow: share(0, most),
        fast: share(1, most),
        calls: number,
    })
}
