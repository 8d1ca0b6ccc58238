//! Counters over time, for a picture: values in bins of time, on single locations or groups of neighbors.

use std::ops::Range;

use rayon::prelude::*;

use super::samples::recorded;
use crate::ids::LocationId;
use crate::trace::Reread;
use crate::trace::counters::Kind;

/// A counter in a bin of time.
#[derive(Clone, Copy, Debug, PartialEq)]
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

/// All counters over time, in `bins` of equal width, on groups of `merged` neighbors; by location, counter and bin.
/// Unknown values have no bin.
#[must_use]
pub fn courses(again: Reread<'_>, kinds: &[Kind], merged: usize, bins: usize) -> Vec<Bin> {
    let trace = again.trace;
    let Some((first, last)) = trace.span().filter(|_| !kinds.is_empty() && merged > 0) else { return Vec::new() };
    let edge = |bin: usize| first + (i128::from(last - first) * bin as i128 / bins.max(1) as i128) as i64;
    let of_group = |group: Range<usize>| {
        // Amount and ticks.
        let mut sums = vec![vec![(0.0, 0i64); bins]; kinds.len()];
        for location in group.clone().map(LocationId::at) {
            for recording in recorded(again, kinds, location) {
                let Some((begin, end)) = recording.series.span() else { continue };
                for (bin, sums) in sums[recording.counter as usize].iter_mut().enumerate() {
                    let (from, until) = (edge(bin).max(begin), edge(bin + 1).min(end));
                    if from < until {
                        sums.0 += recording.series.change(from, until);
                        sums.1 += until - from;
                    }
                }
            }
        }
        let location = LocationId::at(group.start);
        let known = (0..).zip(sums).flat_map(move |(counter, sums)| {
            let known = (0..).zip(sums).filter(|(_, (_, ticks))| *ticks > 0);
            known.map(move |(bin, (amount, ticks))| Bin { counter, location, bin, value: amount / ticks as f64 })
        });
        known.collect::<Vec<_>>()
    };
    let count = trace.definitions.locations.len();
    let groups = (0..count.div_ceil(merged)).into_par_iter();
    let of_groups = groups.map(|group| of_group(group * merged..((group + 1) * merged).min(count)));
    of_groups.collect::<Vec<_>>().concat()
}
