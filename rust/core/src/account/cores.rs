//! Whether locations of a node share cores: fewer run at the same time than would if each had its own.
//!
//! A location *certainly runs* in a short piece of own code, or of a call: one that a scheduler has interrupted would be
//! longer. It is *ready* unless it waits, is idle, or has not begun or has ended. If ready locations ran independently,
//! more than `k` of them would run at the same time as often as a sum of independent events says (the Poisson binomial
//! distribution). Where that never happens, the node has no more than `k` cores for them. Only ready locations count,
//! so programs whose ranks take turns are not suspected.
//!
//! All of it comes from samples: equidistant moments of the focus, and equidistant segments of each location. A segment
//! is the time from one event to the next. Of a node whose locations are in several processes of the analysis, these share
//! the lengths of segments, and the process of its first location gets the states of the others.
//!
//! The same moments tell how many locations compute at the same time, whatever else they could do.

use std::ops::Range;

use bitcode::{Decode, Encode};
use rustc_hash::FxHashMap;

use super::activities::Activity;
use super::nodes::by_node;
use super::reasons::innermost;
use super::rows::Row;
use super::sweep::CallPaths;
use crate::Result;
use crate::galloping_search::partition_point_near;
use crate::ids::{LocationId, RegionKey};
use crate::parallel::iter::prelude::*;
use crate::parallel::per_shard::PerShard;
use crate::trace::Trace;
use crate::waits::{WaitState, interval};

/// A node whose locations share cores.
#[derive(Clone, Copy, Debug, PartialEq, Encode, Decode)]
pub struct FewCores {
    /// The first location of the node.
    pub location: LocationId,
    /// Number of its locations.
    pub locations: u32,
    /// So many of them ran at the same time at most.
    pub most: u32,
    /// The share of the time in which more would have run, if each had a core.
    pub expected: f64,
    /// The share of the time in which more ran.
    pub observed: f64,
}

/// How many locations of a node run own code at the same time.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct Together {
    /// The first location of the node.
    pub location: LocationId,
    /// Number of its locations.
    pub locations: u32,
    /// The share of the time in which none of them runs own code, in which one does, and so on.
    pub shares: Vec<f64>,
}

/// What the moments of a node say.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
pub(crate) struct OfNode {
    pub cores: Option<FewCores>,
    /// None of a node with many locations, or with threads.
    pub together: Option<Together>,
}

/// Number of moments: at most, at most in runs with few events, and for how many events a location is looked at once;
/// and of all locations of a node together, in runs with few events.
const MOMENTS: usize = 200_000;
const OF_FEW: usize = 20_000;
const EVENTS: usize = 16;
const LOOKS: usize = 100_000;
/// Steps that the distributions may take: fewer moments are enough for what is expected.
const STEPS: usize = 2_000_000;
/// Locations of a node, and of these that can run at the same time.
const LOCATIONS: usize = 1024;
const TOGETHER: usize = 64;
/// Segments that are looked at for how long own code runs: of a node, and of a location at least.
const SEGMENTS: (usize, usize) = (50_000, 200);
/// Fewer segments of a region say nothing.
const FEW: usize = 20;
/// Segments of calls, and of own code at least and at most, that certainly run, seconds.
const CALL: f64 = 5e-6;
const LONGEST: f64 = 200e-6;
/// How much longer than the quickest of its region a segment may be.
const SLACK: f64 = 1.25;
/// So many segments should have run while more did, and at so many moments; and the share of that which is too little.
const OFTEN: f64 = 20.0;
const SEEN: f64 = 10.0;
const RARE: f64 = 0.1;

/// What a location does at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
enum State {
    /// It has nothing to do.
    Away,
    /// It has something to do.
    Ready,
    /// It runs for sure.
    Runs,
}

/// A location at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
struct Moment {
    state: State,
    /// Whether it is in own code.
    computes: bool,
}

impl Moment {
    const AWAY: Self = Self { state: State::Away, computes: false };
}

/// What the moments of each node say that has several locations, in the order of their first. Collective.
pub(crate) fn find(trace: &Trace, waits: &PerShard<WaitState>, focus: &Range<i64>) -> Result<Vec<OfNode>> {
    if focus.is_empty() {
        return Ok(Vec::new());
    }
    let (exchange, callpaths) = (&trace.exchange, CallPaths::of(trace));
    let finder = Finder { trace, waits, callpaths: &callpaths, focus };
    let nodes = finder.nodes()?;
    let process = |location: LocationId| exchange.process_of(trace.shard_of[location]);
    let is_split = |node: &Node| process(node.locations[0]) != process(node.locations[node.locations.len() - 1]);
    let mut lengths: Vec<Lengths> = nodes.par_iter().map(|node| finder.lengths(node)).collect();
    let split = nodes.iter().zip(&mut lengths).filter(|(node, _)| is_split(node));
    let split: Vec<Lengths> = split.map(|(_, lengths)| std::mem::take(lengths)).collect();
    let mut split: Vec<_> = exchange.allgather(split)?.into_iter().map(Vec::into_iter).collect();
    for (_, lengths) in nodes.iter().zip(&mut lengths).filter(|(node, _)| is_split(node)) {
        for (region, more) in split.iter_mut().filter_map(Iterator::next).flatten() {
            lengths.entry(region).or_default().extend(more);
        }
    }
    let quick: Vec<_> = lengths.into_par_iter().map(|lengths| finder.quick(lengths)).collect();
    let own = nodes.iter().zip(&quick).enumerate().flat_map(|(number, (node, quick))| {
        let own = node.locations.iter().enumerate().filter(|(_, location)| trace.owns(**location));
        own.map(move |(place, &location)| (number, place, location, node.moments, quick))
    });
    let own: Vec<_> = own.collect();
    let states = own.into_par_iter().map(|(number, place, location, moments, quick)| {
        let (mut segments, mut length) = (0i64, 0i64);
        let moments = finder.moments(location, moments, quick, |ticks| {
            segments += 1;
            length += ticks;
        });
        (number, place, Looked { moments, segments, length })
    });
    let mut outgoing: Vec<Vec<(usize, usize, Looked)>> = (0..exchange.processes()).map(|_| Vec::new()).collect();
    for of_location in states.collect::<Vec<_>>() {
        outgoing[process(nodes[of_location.0].locations[0])].push(of_location);
    }
    let mut arrived: Vec<_> = exchange.alltoall(outgoing)?.into_iter().flatten().collect();
    arrived.sort_unstable_by_key(|&(number, place, _)| (number, place));
    let of_nodes: Vec<_> = arrived.chunk_by(|a, b| a.0 == b.0).collect();
    let found = of_nodes.into_par_iter().map(|looked| {
        let node = &nodes[looked[0].0];
        OfNode { cores: finder.cores(node, looked), together: together(trace, node, looked) }
    });
    exchange.gatherv(found.collect::<Vec<_>>())
}

/// A node, and how it is looked at.
struct Node {
    /// All of its locations.
    all: u32,
    /// Those that are looked at: one of so many.
    locations: Vec<LocationId>,
    step: usize,
    moments: usize,
}

/// Lengths of segments of own code by region, ticks.
type Lengths = FxHashMap<RegionKey, Vec<i64>>;

/// What was seen of a location.
#[derive(Encode, Decode)]
struct Looked {
    moments: Vec<Moment>,
    /// The segments that run, and their total length, ticks.
    segments: i64,
    length: i64,
}

struct Finder<'a> {
    trace: &'a Trace,
    waits: &'a PerShard<WaitState>,
    callpaths: &'a CallPaths,
    focus: &'a Range<i64>,
}

impl Finder<'_> {
    /// The nodes with more than one location, in the order of their first.
    fn nodes(&self) -> Result<Vec<Node>> {
        let trace = self.trace;
        let own = trace.shards.iter().flat_map(|shard| shard.locations);
        let own = own.filter(|&location| {
            let definition = &trace.definitions.locations[location];
            definition.is_thread() && trace.shard(location).has_calls(location)
        });
        let own = own.map(|location| (location, trace.shard(location).events_of(location).len() as u64)).collect();
        let node = |all: Vec<(LocationId, u64)>| {
            let step = all.len().div_ceil(LOCATIONS);
            let chosen = || all.iter().step_by(step);
            let locations: Vec<LocationId> = chosen().map(|&(location, _)| location).collect();
            let events = chosen().map(|&(_, events)| events).sum::<u64>() as usize;
            let few = OF_FEW.min(LOOKS / locations.len());
            let moments = (events / EVENTS / locations.len()).clamp(few, MOMENTS);
            Node { all: all.len() as u32, locations, step, moments }
        };
        Ok(by_node(trace, own, 2)?.into_iter().map(node).collect())
    }

    /// Whether the locations of a node share cores, by what was seen of all of them.
    fn cores(&self, node: &Node, looked: &[(usize, usize, Looked)]) -> Option<FewCores> {
        let &Node { all, ref locations, step, moments } = node;
        let together = locations.len().min(TOGETHER);
        let stride = moments.div_ceil((STEPS / (locations.len() * together)).max(1));
        let of_locations: Vec<&[Moment]> = looked.iter().map(|(.., looked)| &*looked.moments).collect();
        let segments: i64 = looked.iter().map(|(.., looked)| looked.segments).sum();
        let length: i64 = looked.iter().map(|(.., looked)| looked.length).sum();
        if segments == 0 {
            return None;
        }
        // The shares of the moments at which a location runs, of those at which it is ready.
        let shares: Vec<f64> = of_locations
            .iter()
            .map(|of| {
                let ready = of.iter().filter(|moment| moment.state != State::Away).count();
                let runs = of.iter().filter(|moment| moment.state == State::Runs).count();
                runs as f64 / ready.max(1) as f64
            })
            .collect();
        // Of each number of locations, the expected and the observed moments at which more of them run.
        let (mut expected, mut observed) = (vec![0.0; together], vec![0u64; together]);
        for moment in 0..moments {
            let runs = of_locations.iter().filter(|of| of[moment].state == State::Runs).count();
            observed[..runs.min(together)].iter_mut().for_each(|observed| *observed += 1);
        }
        let mut numbers = vec![0.0; together + 1];
        for moment in (0..moments).step_by(stride) {
            numbers.fill(0.0);
            numbers[0] = 1.0;
            let mut ready = 0;
            for (of, &share) in of_locations.iter().zip(&shares) {
                if of[moment].state == State::Away {
                    continue;
                }
                ready = together.min(ready + 1);
                // The last number stands for all larger ones.
                if ready == together {
                    numbers[together] += numbers[together - 1] * share;
                }
                for number in (1..=ready.min(together - 1)).rev() {
                    numbers[number] = numbers[number] * (1.0 - share) + numbers[number - 1] * share;
                }
                numbers[0] *= 1.0 - share;
            }
            let mut more = 0.0;
            for number in (0..together).rev() {
                more += numbers[number + 1];
                expected[number] += more * stride as f64;
            }
        }
        // How often something that lasts as long as a segment should have begun.
        let often = (self.focus.end - self.focus.start) as f64 / (length as f64 / segments as f64);
        let is_limit = |&most: &usize| {
            let share = expected[most] / moments as f64;
            expected[most] >= SEEN && share * often >= OFTEN && (observed[most] as f64) < RARE * expected[most]
        };
        let most = (1..together).find(is_limit)?;
        Some(FewCores {
            location: locations[0],
            locations: all,
            most: (most * step) as u32,
            expected: expected[most] / moments as f64,
            observed: observed[most] as f64 / moments as f64,
        })
    }

    /// Lengths of some segments of own code, on the locations of a node in this process.
    fn lengths(&self, node: &Node) -> Lengths {
        let locations = &node.locations;
        let mut of_regions = Lengths::default();
        for &location in locations.iter().filter(|&&location| self.trace.owns(location)) {
            let shard = self.trace.shard(location);
            let events = shard.events_of(location);
            let step = (events.len() / (SEGMENTS.0 / locations.len()).max(SEGMENTS.1)).max(1);
            for position in events.skip(1).step_by(step) {
                let callpath = innermost(self.trace, shard, position as u32);
                if callpath.is_some() && self.callpaths.activities[callpath] == Activity::Own {
                    let ticks = shard.events.time[position] - shard.events.time[position - 1];
                    of_regions.entry(self.callpaths.regions[callpath]).or_default().push(ticks);
                }
            }
        }
        of_regions
    }

    /// The longest segments of own code that certainly run, by region, ticks.
    fn quick(&self, of_regions: Lengths) -> FxHashMap<RegionKey, i64> {
        let resolution = self.trace.resolution as f64;
        let limit = |mut lengths: Vec<i64>| {
            if lengths.len() < FEW {
                return (CALL * resolution) as i64;
            }
            let rank = lengths.len().div_ceil(20) - 1;
            let (_, quantile, _) = lengths.select_nth_unstable(rank);
            (SLACK * *quantile as f64).clamp(CALL * resolution, LONGEST * resolution) as i64
        };
        of_regions.into_iter().map(|(region, lengths)| (region, limit(lengths))).collect()
    }

    /// What a location does at equidistant moments of the focus; `runs` gets the length of each segment that runs.
    fn moments(
        &self,
        location: LocationId,
        moments: usize,
        quick: &FxHashMap<RegionKey, i64>,
        mut runs: impl FnMut(i64),
    ) -> Vec<Moment> {
        let shard = self.trace.shard(location);
        let events = shard.events_of(location);
        let (first, time) = (events.start, &shard.events.time[events]);
        let waits = self.waits_of(location);
        let call = (CALL * self.trace.resolution as f64) as i64;
        let length = (self.focus.end - self.focus.start) as f64;
        let (mut position, mut wait) = (0, 0);
        let at_moment = |moment: usize| {
            let at = self.focus.start + ((moment as f64 + 0.5) * length / moments as f64) as i64;
            position = partition_point_near(time, position, |&time| time <= at);
            if position == 0 || position == time.len() {
                return Moment::AWAY;
            }
            let callpath = innermost(self.trace, shard, (first + position) as u32);
            if callpath.is_none() {
                return Moment::AWAY;
            }
            while waits.get(wait).is_some_and(|wait| wait.end <= at) {
                wait += 1;
            }
            if waits.get(wait).is_some_and(|wait| wait.start <= at) {
                return Moment::AWAY;
            }
            let ticks = time[position] - time[position - 1];
            let activity = self.callpaths.activities[callpath];
            let longest = match activity {
                Activity::Own => quick.get(&self.callpaths.regions[callpath]).copied().unwrap_or(call),
                Activity::Unknown | Activity::Io | Activity::Device | Activity::Measurement => return Moment::AWAY,
                _ => call,
            };
            let state = if ticks <= longest { State::Runs } else { State::Ready };
            if state == State::Runs {
                runs(ticks);
            }
            Moment { state, computes: activity == Activity::Own }
        };
        (0..moments).map(at_moment).collect()
    }

    /// When a location waits, in the order of time.
    fn waits_of(&self, location: LocationId) -> Vec<Range<i64>> {
        let number = self.trace.position(location);
        let waits = self.waits.of(number).1;
        let first = waits.partition_point(|wait| wait.location < location);
        let waits = &waits[first..first + waits[first..].partition_point(|wait| wait.location == location)];
        let mut spans = Vec::new();
        interval::each_near(self.trace, waits, std::slice::from_ref(self.focus), |number, time| {
            if Row::of_wait(waits[number].kind).is_some() {
                spans.push(time);
            }
        });
        spans.sort_unstable_by_key(|span| (span.start, span.end));
        spans
    }
}

/// How many locations of a node compute at the same time.
///
/// Of threads it is not known: between their calls they may be idle, or at work for the runtime, which no moment tells.
fn together(trace: &Trace, node: &Node, looked: &[(usize, usize, Looked)]) -> Option<Together> {
    let &Node { all, ref locations, step, moments } = node;
    let is_thread = |&location: &LocationId| trace.definitions.locations[location].thread > 0;
    if step > 1 || locations.len() > TOGETHER || locations.iter().any(is_thread) {
        return None;
    }
    let mut numbers = vec![0u64; locations.len() + 1];
    for moment in 0..moments {
        numbers[looked.iter().filter(|(.., looked)| looked.moments[moment].computes).count()] += 1;
    }
    let shares = numbers.into_iter().map(|number| number as f64 / moments as f64).collect();
    Some(Together { location: locations[0], locations: all, shares })
}
