//! Counters over time, for a picture: values in bins of time, on single locations or groups of neighbors.

use bitcode::{Decode, Encode};

use super::samples::recorded;
use crate::Result;
use crate::ids::LocationId;
use crate::parallel::iter::prelude::*;
use crate::trace::Reread;
use crate::trace::counters::Kind;

/// A counter in a bin of time.
#[derive(Clone, Copy, Debug, PartialEq, Encode, Decode)]
pub struct Bin {
    /// Index of the counter.
    pub counter: u32,
    /// The first of the locations.
    pub location: LocationId,
    /// Number of the bin.
    pub bin: u32,
    /// Mean of a level, or growth per tick, over all locations with the counter; not scaled.
    pub value: f64,
}

/// What a location adds to the sum of its group, in its order: amount and ticks.
#[derive(Clone, Copy, Encode, Decode)]
struct Part {
    group: usize,
    counter: u32,
    bin: u32,
    sum: (f64, i64),
}

/// All counters over time, in `bins` of equal width, on groups of `merged` neighbors; by location, counter and bin.
/// Unknown values have no bin. Collective.
pub fn courses(again: Reread<'_>, kinds: &[Kind], merged: usize, bins: usize) -> Result<Vec<Bin>> {
    let trace = again.trace;
    let Some((first, last)) = trace.span().filter(|_| !kinds.is_empty() && merged > 0) else { return Ok(Vec::new()) };
    let edge = |bin: usize| first + (i128::from(last - first) * bin as i128 / bins.max(1) as i128) as i64;
    let count = trace.definitions.locations.len();
    let members = |group: usize| (group * merged..((group + 1) * merged).min(count)).map(LocationId::at);
    let parts = |group: usize| {
        let mut parts = Vec::new();
        for location in members(group).filter(|&location| trace.owns(location)) {
            for recording in recorded(again, kinds, location) {
                let Some((begin, end)) = recording.series.span() else { continue };
                for bin in 0..bins {
                    let (from, until) = (edge(bin).max(begin), edge(bin + 1).min(end));
                    if from < until {
                        let sum = (recording.series.change(from, until), until - from);
                        parts.push(Part { group, counter: recording.counter, bin: bin as u32, sum });
                    }
                }
            }
        }
        parts
    };
    let add_up = |parts: &[Part]| {
        let Some(Part { group, .. }) = parts.first() else { return Vec::new() };
        let mut sums = vec![vec![(0.0, 0i64); bins]; kinds.len()];
        for part in parts {
            let sum = &mut sums[part.counter as usize][part.bin as usize];
            *sum = (sum.0 + part.sum.0, sum.1 + part.sum.1);
        }
        let location = LocationId::at(group * merged);
        let known = (0..).zip(sums).flat_map(move |(counter, sums)| {
            let known = (0..).zip(sums).filter(|(_, (_, ticks))| *ticks > 0);
            known.map(move |(bin, (amount, ticks))| Bin { counter, location, bin, value: amount / ticks as f64 })
        });
        known.collect::<Vec<_>>()
    };
    let is_own = |group: &usize| members(*group).all(|location| trace.owns(location));
    let is_shared = |group: &usize| !is_own(group) && members(*group).any(|location| trace.owns(location));
    let groups = || (0..count.div_ceil(merged)).into_par_iter();
    let own = groups().filter(is_own).map(|group| add_up(&parts(group))).collect::<Vec<_>>().concat();
    // The first process adds up the groups that are in several.
    let shared = groups().filter(is_shared).map(parts).collect::<Vec<_>>().concat();
    let shared = trace.exchange.gatherv(shared)?;
    let mut all = trace.exchange.gatherv(own)?;
    all.extend(shared.chunk_by(|a, b| a.group == b.group).flat_map(add_up));
    all.sort_unstable_by_key(|bin| (bin.location, bin.counter, bin.bin));
    Ok(all)
}
