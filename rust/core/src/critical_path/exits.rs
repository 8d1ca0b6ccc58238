//! Exits: where the path would leave a process of the analysis again, for every point at which it can enter.
//!
//! The path switches between processes as often as its locations wait for each other. Following it step by step would
//! take one exchange per switch, for almost no work each. So each process first computes where the path would leave it,
//! for every point that others wait for. From these, one process determines which points the path visits, and then all
//! processes follow their parts at once.

use bitcode::{Decode, Encode};
use rustc_hash::{FxHashMap, FxHashSet};

use super::handovers::{Handover, Handovers};
use crate::ids::LocationId;
use crate::trace::NONE;

/// A point that another process waits for, and how the path goes on from there.
#[derive(Clone, Copy, Encode, Decode)]
pub(super) struct Exit {
    location: LocationId,
    point: u32,
    outcome: Outcome,
}

/// How the path goes on in a process.
#[derive(Clone, Copy, Encode, Decode)]
enum Outcome {
    /// It moves on to another process.
    Leaves(Handover),
    /// It ends.
    Ends,
    /// It forks or runs in a circle, and has to be followed step by step.
    Unclear,
}

impl Handovers<'_> {
    /// The exits of this process, sorted.
    pub(super) fn exits(&mut self) -> Vec<Exit> {
        let own = self.trace.exchange.own();
        let mut exits = Vec::new();
        let mut known = FxHashMap::default();
        let tables = self.tables;
        for (table, shard) in tables.iter().zip(&self.trace.shards) {
            for i in 0..shard.locations.len() {
                let location = shard.location(i);
                for point in table.points_of(i) {
                    let mut shards = table.cost_shares_of(point).iter().map(|charge| charge.shard);
                    if shards.any(|shard| shard != NONE && !own.contains(&shard)) {
                        let outcome = self.outcome((location, point), &mut known);
                        exits.push(Exit { location, point: point as u32, outcome });
                    }
                }
            }
        }
        exits
    }

    /// How the path goes on from a point; `known` caches the outcome where it leaves a location.
    fn outcome(
        &mut self,
        (mut location, mut end): (LocationId, usize),
        known: &mut FxHashMap<(LocationId, usize), Outcome>,
    ) -> Outcome {
        let mut passed = Vec::new();
        let outcome = loop {
            let Some(stop) = self.stop(location, end) else { break Outcome::Ends };
            if let Some(&outcome) = known.get(&(location, stop)) {
                break outcome;
            }
            // The outcome if the path comes here again before it is known.
            known.insert((location, stop), Outcome::Unclear);
            passed.push((location, stop));
            let next = self.next(stop, location);
            match (next.only(), next.first) {
                (Some(next), _) if self.trace.owns(next.location) => {
                    (location, end) = (next.location, self.end(next) as usize);
                }
                (Some(next), _) => break Outcome::Leaves(next),
                (None, Some(_)) => break Outcome::Unclear,
                (None, None) => break Outcome::Ends,
            }
        };
        known.extend(passed.into_iter().map(|place| (place, outcome)));
        outcome
    }
}

/// Follows the exits of all processes. Returns where the path enters processes, and where it has to be followed step by
/// step, if anywhere.
pub(super) fn follow_exits(exits: &[Exit], mut next: Handover) -> (Vec<Handover>, Option<Handover>) {
    let mut passed = Vec::new();
    let mut seen = FxHashSet::default();
    loop {
        let exit = exits.binary_search_by_key(&(next.location, next.point), |exit| (exit.location, exit.point));
        match exit.map_or(Outcome::Unclear, |i| exits[i].outcome) {
            Outcome::Unclear => return (passed, Some(next)),
            // The process that follows the path to this place again notices the circle.
            Outcome::Leaves(further) if seen.insert((next.location, next.point)) => {
                passed.push(next);
                next = further;
            }
            Outcome::Leaves(_) | Outcome::Ends => {
                passed.push(next);
                return (passed, None);
            }
        }
    }
}
