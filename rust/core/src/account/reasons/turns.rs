//! Whether own code takes longer now on one location and now on another.
//!
//! ```text
//!  0  --[ work     ]---[ work ]-------[ work ]------
//!  1  --[ work ]-------[ work ]-------[ work     ]--     each pair lacks what the shorter one is shorter
//! ```
//!
//! Compared are the n-th pieces of a call path on all locations that run it, which calls divide; its n-th visits where
//! locations make different calls. Where the visits differ as well, nobody knows what belongs together.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use bitcode::{Decode, Encode};
use rustc_hash::{FxHashMap, FxHashSet};

use super::calls::{Calls, innermost};
use crate::Result;
use crate::account::activities::Activity;
use crate::ids::{CallPathId, LocationId};
use crate::parallel::iter::prelude::*;
use crate::trace::Shard;

/// The pieces, or visits, of a call path of own code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turns {
    /// The call path.
    pub callpath: CallPathId,
    /// Number of them on each location.
    pub number: u64,
    /// What all locations lack of the longest of each, ticks.
    pub lacks: i64,
    /// The time in all of them, ticks.
    pub ticks: i64,
}

/// Fewer tell no turns; more of a call path are not compared, to bound the memory.
const FEWEST: usize = 3;
const MOST: usize = 1 << 16;
/// A call path is worth a row if it has this part of the time in the focus.
const NOTABLE: f64 = 1e-3;

/// The n-th piece or visit of some locations: the longest, and the sum, ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
struct Nth {
    most: i64,
    sum: i64,
}

/// Those of a call path; `None` where locations differ in their number.
type Row = Option<Vec<Nth>>;

/// A call path on some locations.
#[derive(Debug, Encode, Decode)]
struct OfPath {
    callpath: CallPathId,
    locations: i64,
    pieces: Row,
    visits: Row,
}

/// The own times of a location in one call path, ticks.
#[derive(Default)]
struct Times {
    pieces: Vec<i64>,
    visits: Vec<i64>,
}

pub(super) fn find(calls: &Calls<'_>) -> Result<Vec<Turns>> {
    let locations: FxHashSet<LocationId> = calls.locations().collect();
    let of_shard = |shard: &Shard| {
        let here = shard.locations.filter(|location| locations.contains(location));
        merged(here.flat_map(|location| of_location(calls, location)))
    };
    let of_shards: Vec<Vec<OfPath>> = calls.trace.par_shards().map(of_shard).collect();
    let own = merged(of_shards.into_iter().flatten());
    let all = merged(calls.trace.exchange.gatherv(own)?.into_iter()).into_iter().filter_map(turns);
    let number = calls.trace.exchange.sum(locations.len())?;
    let least = NOTABLE * (calls.focus.end - calls.focus.start) as f64 * number as f64;
    Ok(all.filter(|turns| turns.ticks as f64 >= least).collect())
}

/// The call paths of a location with own time in the focus.
fn of_location(calls: &Calls<'_>, location: LocationId) -> Vec<OfPath> {
    let shard = calls.trace.shard(location);
    let events = shard.events_of(location);
    let mut times: FxHashMap<CallPathId, Times> = FxHashMap::default();
    for position in events.start + 1..events.end {
        let from = shard.events.time[position - 1].max(calls.focus.start);
        let to = shard.events.time[position].min(calls.focus.end);
        if from > to {
            continue;
        }
        let callpath = innermost(calls.trace, shard, position as u32);
        if callpath.is_none() || calls.callpaths.activities[callpath] != Activity::Own {
            continue;
        }
        let of = times.entry(callpath).or_default();
        if of.pieces.len() > MOST {
            continue;
        }
        of.pieces.push(to - from);
        let begins = !shard.events.is_leave(position as u32 - 1);
        match of.visits.last_mut().filter(|_| !begins) {
            Some(last) => *last += to - from,
            None => of.visits.push(to - from),
        }
    }
    let row = |times: Vec<i64>| {
        let nth = |ticks| Nth { most: ticks, sum: ticks };
        (FEWEST..=MOST).contains(&times.len()).then(|| times.into_iter().map(nth).collect())
    };
    let path = |(callpath, times): (CallPathId, Times)| OfPath {
        callpath,
        locations: 1,
        pieces: row(times.pieces),
        visits: row(times.visits),
    };
    times.into_iter().map(path).collect()
}

/// Puts together what several locations say of the same call paths, in their order.
fn merged(rows: impl Iterator<Item = OfPath>) -> Vec<OfPath> {
    let mut all: BTreeMap<CallPathId, OfPath> = BTreeMap::new();
    for row in rows {
        match all.entry(row.callpath) {
            Entry::Occupied(mut known) => {
                let known = known.get_mut();
                known.locations += row.locations;
                add(&mut known.pieces, row.pieces);
                add(&mut known.visits, row.visits);
            }
            Entry::Vacant(new) => {
                new.insert(row);
            }
        }
    }
    all.into_values().collect()
}

fn add(sum: &mut Row, other: Row) {
    *sum = match (sum.take(), other) {
        (Some(mut sum), Some(other)) if sum.len() == other.len() => {
            for (sum, other) in sum.iter_mut().zip(other) {
                *sum = Nth { most: sum.most.max(other.most), sum: sum.sum + other.sum };
            }
            Some(sum)
        }
        _ => None,
    };
}

fn turns(of_path: OfPath) -> Option<Turns> {
    let rows = of_path.pieces.or(of_path.visits).filter(|_| of_path.locations > 1)?;
    let lacks = rows.iter().map(|nth| nth.most * of_path.locations - nth.sum).sum();
    let ticks = rows.iter().map(|nth| nth.sum).sum();
    Some(Turns { callpath: of_path.callpath, number: rows.len() as u64, lacks, ticks })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(callpath: u32, pieces: &[i64], visits: &[i64]) -> OfPath {
        let row = |times: &[i64]| Some(times.iter().map(|&ticks| Nth { most: ticks, sum: ticks }).collect());
        OfPath { callpath: CallPathId::new(callpath), locations: 1, pieces: row(pieces), visits: row(visits) }
    }

    fn lacks(rows: Vec<OfPath>) -> Vec<(u32, i64, i64)> {
        let found = merged(rows.into_iter()).into_iter().filter_map(turns);
        found.map(|turns| (turns.callpath.number(), turns.lacks, turns.ticks)).collect()
    }

    #[test]
    fn the_nth_pieces_of_locations_are_compared() {
        let rows = vec![row(7, &[5, 1, 1], &[7]), row(3, &[2, 2, 2], &[6]), row(7, &[1, 1, 4], &[6])];
        // Alone, nobody lacks anything.
        assert_eq!(lacks(rows), [(7, 4 + 3, 13)]);
    }

    #[test]
    fn visits_count_where_locations_make_different_calls() {
        let rows = vec![row(1, &[5, 1, 1], &[5, 2, 0]), row(1, &[1, 2], &[1, 2, 3])];
        assert_eq!(lacks(rows), [(1, 4 + 3, 13)]);
    }

    #[test]
    fn nothing_is_known_where_both_differ() {
        assert_eq!(lacks(vec![row(1, &[1, 1, 1], &[3]), row(1, &[1, 2], &[1, 2])]), []);
    }
}
