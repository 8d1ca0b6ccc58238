//! Whether the same calls and functions take longer in one process, or on one node, than everywhere else.
//!
//! Compared are the fastest 5%: what the place can do, whoever is late. Functions may have more work there, and calls may
//! wait for the same other; so several must be slower, of either sort, and these must be most of what can be compared.

use std::cmp::Reverse;

use bitcode::{Decode, Encode};
use rustc_hash::{FxHashMap, FxHashSet};

use super::calls::{Calls, innermost};
use crate::Result;
use crate::account::activities::Activity;
use crate::ids::{LocationId, ProcessId, RegionKey};
use crate::parallel::iter::prelude::*;
use crate::trace::nodes::nodes;

/// A process or a node that needs longer for the same.
#[derive(Clone, Debug, PartialEq)]
pub struct SlowPlace {
    /// Its locations.
    pub locations: Vec<LocationId>,
    /// Whether it is a node.
    pub is_node: bool,
    /// The call or function that takes most of its time among those that are slower.
    pub region: RegionKey,
    /// How many times as long as elsewhere it takes.
    pub factor: f64,
    /// Number of calls and functions that are slower there.
    pub regions: u32,
}

/// Fewest calls, processes, and calls and functions.
const CALLS: usize = 20;
const PROCESSES: usize = 4;
const REGIONS: usize = 2;
/// How many times as long it takes at least, and how much longer, seconds.
const FACTOR: f64 = 1.2;
const LONGER: f64 = 0.5e-6;
/// The share of the time that can be compared in which it is slower.
const SHARE: f64 = 0.5;
/// Calls, and events, that are looked at for each process.
const LOOKS: usize = 50_000;

/// What is compared: the calls of a kind, or own code of a region.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Encode, Decode)]
enum Of {
    Kind(usize),
    Own(RegionKey),
}

/// What a process needs for one of these: the fastest 5%, and the sum over all that were looked at, ticks.
#[derive(Encode, Decode)]
struct Need {
    of: Of,
    fastest: i64,
    sum: i64,
}

pub(super) fn find(calls: &Calls<'_>) -> Result<Vec<SlowPlace>> {
    let trace = calls.trace;
    let masters: FxHashSet<LocationId> = calls.locations().collect();
    let processes: Vec<(ProcessId, LocationId)> = (0..trace.definitions.processes.len())
        .map(|i| (ProcessId::at(i), trace.definitions.master(ProcessId::at(i))))
        .filter(|(_, master)| masters.contains(master))
        .collect();
    let own: Vec<Vec<Need>> = processes.par_iter().map(|&(_, master)| of_location(calls, master)).collect();
    // Processes are analyzed in their order.
    let (processes, needs): (Vec<_>, Vec<_>) =
        trace.exchange.gatherv(processes.into_iter().zip(own))?.into_iter().unzip();
    if processes.len() < PROCESSES {
        return Ok(Vec::new());
    }
    let mut all: FxHashMap<Of, Vec<(usize, i64)>> = FxHashMap::default();
    for (i, of_process) in needs.iter().enumerate() {
        for need in of_process {
            all.entry(need.of).or_default().push((i, need.fastest));
        }
    }
    // The slowest first: those elsewhere are then found behind few of a place.
    #[expect(clippy::iter_over_hash_type, reason = "each is put in order for itself")]
    for of_all in all.values_mut() {
        of_all.sort_unstable_by_key(|&(_, fastest)| Reverse(fastest));
    }
    let keys = nodes(trace);
    let mut of_nodes: FxHashMap<u32, Vec<usize>> = FxHashMap::default();
    for (i, (process, _)) in processes.iter().enumerate() {
        of_nodes.entry(keys[*process]).or_default().push(i);
    }
    let mut places: Vec<Vec<usize>> = of_nodes.into_values().filter(|node| node.len() > 1).collect();
    places.retain(|node| node.len() < processes.len());
    places.sort_unstable();
    places.extend((0..processes.len()).map(|i| vec![i]));
    let mut found: Vec<SlowPlace> = Vec::new();
    for place in places {
        let is_known = found.iter().any(|known| known.locations.contains(&processes[place[0]].1));
        if let Some((of, factor, regions)) = (!is_known).then(|| slower(calls, &place, &needs, &all)).flatten() {
            let region = match of {
                Of::Kind(kind) => calls.floors.all[kind].kind.region,
                Of::Own(region) => region,
            };
            let locations = place.iter().map(|&i| processes[i].1).collect();
            found.push(SlowPlace { locations, is_node: place.len() > 1, region, factor, regions });
        }
    }
    Ok(found)
}

/// What is slower at a place most of all, how many times, and of how many calls and functions that is true. A place has its
/// processes in order, and `all` has the slowest first.
fn slower(
    calls: &Calls<'_>,
    place: &[usize],
    needs: &[Vec<Need>],
    all: &FxHashMap<Of, Vec<(usize, i64)>>,
) -> Option<(Of, f64, u32)> {
    let longer = calls.ticks(LONGER);
    // Of calls, and of own code.
    let (mut comparable, mut slow) = ([0i64; 2], [0i64; 2]);
    let mut regions = FxHashSet::default();
    let mut most: Option<(i64, Of, f64)> = None;
    for need in &needs[place[0]] {
        let of_all = &all[&need.of];
        let here = place.iter().filter_map(|&i| needs[i].iter().find(|other| other.of == need.of));
        let own = here.clone().count();
        let others = of_all.len() - own;
        if own < place.len() || own + others < PROCESSES || others < 2 {
            continue;
        }
        let sort = usize::from(matches!(need.of, Of::Own(_)));
        comparable[sort] += need.sum;
        let fastest = here.map(|need| need.fastest).min().unwrap_or(0);
        let there = of_all.iter().find(|(i, _)| place.binary_search(i).is_err());
        let slowest = there.map_or(0, |&(_, fastest)| fastest);
        if (fastest as f64) < FACTOR * slowest as f64 || fastest - slowest < longer {
            continue;
        }
        slow[sort] += need.sum;
        regions.insert(match need.of {
            Of::Kind(kind) => calls.floors.all[kind].kind.region,
            Of::Own(region) => region,
        });
        if most.is_none_or(|(sum, ..)| sum < need.sum) {
            most = Some((need.sum, need.of, fastest as f64 / slowest.max(1) as f64));
        }
    }
    let (_, of, factor) = most?;
    let is_most = |sort: usize| slow[sort] > 0 && slow[sort] as f64 >= SHARE * comparable[sort] as f64;
    let holds = regions.len() >= REGIONS && is_most(0) && is_most(1);
    holds.then_some((of, factor, regions.len() as u32))
}

/// What a location needs for its calls and functions.
fn of_location(calls: &Calls<'_>, location: LocationId) -> Vec<Need> {
    let shard = calls.trace.shard(location);
    let mut lengths: FxHashMap<Of, Vec<i64>> = FxHashMap::default();
    let of_location = calls.of(location);
    let step = of_location.len().div_ceil(LOOKS).max(1);
    for call in of_location.step_by(step) {
        lengths.entry(Of::Kind(call.kind)).or_default().push(call.ticks);
    }
    let i = shard.local(location);
    let events = shard.event_offsets[i] + 1..shard.event_offsets[i + 1].max(shard.event_offsets[i] + 1);
    let step = events.len().div_ceil(LOOKS).max(1);
    for position in events.step_by(step) {
        let (from, to) = (shard.events.time[position as usize - 1], shard.events.time[position as usize]);
        if from < calls.focus.start || to > calls.focus.end {
            continue;
        }
        let callpath = innermost(calls.trace, shard, position);
        if callpath.is_some() && calls.callpaths.activities[callpath] == Activity::Own {
            lengths.entry(Of::Own(calls.callpaths.regions[callpath])).or_default().push(to - from);
        }
    }
    let need = |(of, mut lengths): (Of, Vec<i64>)| {
        let sum = lengths.iter().sum();
        let rank = lengths.len().div_ceil(20) - 1;
        let (_, &mut fastest, _) = lengths.select_nth_unstable(rank);
        Need { of, fastest, sum }
    };
    lengths.into_iter().filter(|(_, lengths)| lengths.len() >= CALLS).map(need).collect()
}
