//! Exits: where the path leaves a process of the analysis that it has come to, for all points to which it can come.
//!
//! The path goes to and fro between processes, as often as its locations wait for each other. To follow it process by
//! process would be as many exchanges, each for next to no work. So each process looks where the path would leave it
//! again, from every point that others wait for; with all of these one process finds out which of them the path comes to,
//! and then all follow it at once, each through its own.

use bitcode::{Decode, Encode};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Handover, Walk};
use crate::ids::LocationId;
use crate::trace::NONE;

/// A point that another process waits for, and what comes of the path there.
#[derive(Clone, Copy, Encode, Decode)]
pub(super) struct Exit {
    location: LocationId,
    point: u32,
    outcome: Outcome,
}

/// What comes of the path in a process.
#[derive(Clone, Copy, Encode, Decode)]
enum Outcome {
    /// It goes over to another process.
    Leaves(Handover),
    /// It ends.
    Ends,
    /// It forks, or goes in a circle: somebody has to follow it.
    Unclear,
}

impl Walk<'_> {
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

    /// What comes of the path at a point; `known` says it for places where it left locations.
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
            // What this says if the path comes here again.
            known.insert((location, stop), Outcome::Unclear);
            passed.push((location, stop));
            let next = self.next(stop, location);
            match (next.only(), next.first) {
                (Some(next), _) if self.trace.owns(next.location) => {
                    (location, end) = (next.location, next.point as usize);
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

/// Follows the exits of all processes; returns where the path comes to other processes, and where somebody has to follow
/// it.
pub(super) fn chase(exits: &[Exit], mut next: Handover) -> (Vec<Handover>, Option<Handover>) {
    let mut passed = Vec::new();
    let mut seen = FxHashSet::default();
    loop {
        let exit = exits.binary_search_by_key(&(next.location, next.point), |exit| (exit.location, exit.point));
        match exit.map_or(Outcome::Unclear, |i| exits[i].outcome) {
            Outcome::Unclear => return (passed, Some(next)),
            // Who comes to a place again will see that the path ends there.
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
