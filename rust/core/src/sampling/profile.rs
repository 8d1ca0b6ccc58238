//! The profile: how long each sampled call path ran, with the error of it.
//!
//! In a stratum of time T with n samples, of which k saw a call path, it ran for T k/n. The error of one stratum is Wilson's
//! interval for k/n; of several, their variances T² p(1 - p)/n with p = (k + 1)/(n + 2) add up.
//!
//! *Source*: docs/specification.md#times-of-functions.

use std::ops::Range;

use bitcode::{Decode, Encode};
use rustc_hash::FxHashMap;

use super::paths::{Placed, Sampling};
use super::strata::{Meaning, away, counts, divide, strata};
use crate::Result;
use crate::causes::ForkJoins;
use crate::critical_path::Stretch;
use crate::ids::{CallPathId, LocationId};
use crate::parallel::iter::prelude::*;
use crate::trace::call_samples::Usage;
use crate::trace::{Shard, Trace};

/// Standard deviations of an interval at 95%.
const Z: f64 = 1.959_963_984_540_054;

/// Samples on the critical path from which on they divide it; with fewer, those of the whole call path do.
const ON_PATH: usize = 20;

/// How long a sampled call path ran on a location.
#[derive(Clone, Copy, Debug, PartialEq, Encode, Decode)]
pub struct FunctionTime {
    /// The location.
    pub location: LocationId,
    /// The call path that the events say was running.
    pub recorded: CallPathId,
    /// The sampled call path: that one, or one below it; none for the time in the system or without a core, where samples
    /// do not stand for it.
    pub callpath: CallPathId,
    /// Its time, ticks.
    pub time: i64,
    /// The interval at 95%, ticks.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// The variance of the time, square ticks.
    pub variance: f64,
    /// That of the time with what it calls.
    pub inclusive_variance: f64,
    /// Number of samples.
    pub samples: u64,
    /// Its time on the critical path, ticks.
    pub critical: i64,
    /// The variance of that with what it calls.
    pub inclusive_critical_variance: f64,
    /// The part of the time that there were too few samples to divide, ticks; of the recorded call path itself.
    pub unresolved: i64,
    /// What was used of the system before samples, each since the one before; of the recorded call path itself.
    pub usage: Usage,
    /// Whether the samples of the location may be wrong about its functions.
    pub is_doubtful: bool,
}

impl FunctionTime {
    fn none(location: LocationId, recorded: CallPathId, callpath: CallPathId) -> Self {
        Self {
            location,
            recorded,
            callpath,
            time: 0,
            low: 0.0,
            high: 0.0,
            variance: 0.0,
            inclusive_variance: 0.0,
            samples: 0,
            critical: 0,
            inclusive_critical_variance: 0.0,
            unresolved: 0,
            usage: Usage::default(),
            is_doubtful: false,
        }
    }
}

/// The times of all sampled call paths within a window, by location, recorded, and sampled call path. Collective; at the
/// first process. `stretches` are those of the critical path, sorted by location.
pub(crate) fn find(
    trace: &Trace,
    sampling: &Sampling,
    is_divided: &[bool],
    stretches: &[Stretch],
    window: Option<&Range<i64>>,
) -> Result<Vec<FunctionTime>> {
    let meaning = Meaning::new(trace, is_divided);
    let of_shards = trace.par_shards().zip(&sampling.placed).map(|(shard, placed)| {
        let mut cells = Vec::new();
        let fork_joins = ForkJoins::new(trace, shard);
        for i in 0..shard.locations.len() {
            let mut of_location = of_location((trace, sampling), (shard, i), placed, &meaning, window);
            let critical = Critical::of(trace, (shard, i), placed, &meaning, (stretches, &fork_joins), window);
            critical.divide((trace, sampling), &mut of_location);
            add_usages(trace, (shard, i), placed, is_divided, window, &mut of_location);
            let samples = shard.call_samples.of(i);
            let usages = samples.iter().filter_map(|sample| shard.usages.get(sample.usage as usize));
            let switches = usages.map(|usage| usage.involuntary_switches).sum();
            if meaning.is_doubtful(trace, shard.location(i), samples, switches) {
                for cell in &mut of_location {
                    cell.is_doubtful = true;
                }
            }
            cells.extend(of_location);
        }
        cells
    });
    trace.exchange.gatherv(of_shards.flatten().collect::<Vec<_>>())
}

fn of_location(
    (trace, sampling): (&Trace, &Sampling),
    (shard, i): (&Shard, usize),
    placed: &[Placed],
    meaning: &Meaning,
    window: Option<&Range<i64>>,
) -> Vec<FunctionTime> {
    let location = shard.location(i);
    let mut cells: FxHashMap<(CallPathId, CallPathId), FunctionTime> = FxHashMap::default();
    let mut strata_of: FxHashMap<(CallPathId, CallPathId), u32> = FxHashMap::default();
    for stratum in strata(trace, (shard, i), placed, meaning, window) {
        let recorded = stratum.recorded;
        let mut time = stratum.time();
        let mut parts = counts(stratum.samples.iter().map(|&(_, callpath)| callpath));
        if stratum.is_resolved() {
            if let Some(away) = stratum.away() {
                time -= away;
                let cell = cells.entry((recorded, CallPathId::NONE)).or_insert(FunctionTime::none(
                    location,
                    recorded,
                    CallPathId::NONE,
                ));
                let error = stratum.period.unwrap_or_default() * (stratum.samples.len() as f64).sqrt();
                cell.time += away;
                cell.variance += error * error;
                cell.inclusive_variance += error * error;
                *strata_of.entry((recorded, CallPathId::NONE)).or_insert(1) += 1;
            }
            divide(time, &mut parts);
        }
        let (n, all) = (stratum.samples.len() as f64, time as f64);
        let counts = parts.iter().map(|&(callpath, count, _)| (callpath, count));
        for (callpath, count) in sampling.inclusive(&trace.tree, recorded, counts) {
            let cell = cells.entry((recorded, callpath)).or_insert(FunctionTime::none(location, recorded, callpath));
            if stratum.is_resolved() {
                cell.inclusive_variance += variance(all, count as f64, n);
            }
        }
        for (callpath, count, part) in parts {
            let cell = cells.entry((recorded, callpath)).or_insert(FunctionTime::none(location, recorded, callpath));
            cell.samples += count;
            if stratum.is_resolved() {
                *strata_of.entry((recorded, callpath)).or_default() += 1;
                let (low, high) = wilson(count as f64, n);
                cell.time += part;
                (cell.low, cell.high) = (cell.low + all * low, cell.high + all * high);
                cell.variance += variance(all, count as f64, n);
            }
        }
        if !stratum.is_resolved() {
            let own = cells.entry((recorded, recorded)).or_insert(FunctionTime::none(location, recorded, recorded));
            own.time += time;
            own.unresolved += time;
            (own.low, own.high) = (own.low + all, own.high + all);
        }
    }
    let mut cells: Vec<FunctionTime> = cells.into_values().collect();
    for cell in &mut cells {
        if strata_of.get(&(cell.recorded, cell.callpath)).is_some_and(|&strata| strata > 1) {
            // Errors of several strata are independent.
            let error = Z * cell.variance.sqrt();
            let time = cell.time as f64;
            (cell.low, cell.high) = ((time - error).max(cell.unresolved as f64), time + error);
        }
    }
    cells.sort_unstable_by_key(|cell| (cell.recorded, cell.callpath));
    cells
}

/// Adds what was used of the system before samples to their recorded call paths, and for samples in calls of libraries to what
/// calls these. What was used between two samples need not be a matter of the function that the second one saw.
fn add_usages(
    trace: &Trace,
    (shard, i): (&Shard, usize),
    placed: &[Placed],
    is_divided: &[bool],
    window: Option<&Range<i64>>,
    cells: &mut Vec<FunctionTime>,
) {
    let rows = shard.call_samples.range(i);
    let mut usages: FxHashMap<CallPathId, Usage> = FxHashMap::default();
    for (sample, placed) in shard.call_samples.rows[rows.clone()].iter().zip(&placed[rows]) {
        let Some(usage) = shard.usages.get(sample.usage as usize) else { continue };
        if window.is_some_and(|window| !window.contains(&sample.time)) {
            continue;
        }
        let mut callpath = placed.recorded;
        while callpath.is_some() && !is_divided[callpath.index()] {
            callpath = trace.tree.parent(callpath);
        }
        if callpath.is_some() {
            usages.entry(callpath).or_default().add(usage);
        }
    }
    let mut usages: Vec<(CallPathId, Usage)> = usages.into_iter().collect();
    usages.sort_unstable_by_key(|&(callpath, _)| callpath);
    for (callpath, usage) in usages {
        let own = |cell: &&mut FunctionTime| (cell.recorded, cell.callpath) == (callpath, callpath);
        match cells.iter_mut().find(own) {
            Some(cell) => cell.usage = usage,
            None => cells.push(FunctionTime { usage, ..FunctionTime::none(shard.location(i), callpath, callpath) }),
        }
    }
    cells.sort_unstable_by_key(|cell| (cell.recorded, cell.callpath));
}

/// The variance of the part of a time that `count` of `n` samples stand for.
fn variance(time: f64, count: f64, n: f64) -> f64 {
    let smooth = (count + 1.0) / (n + 2.0);
    time * time * smooth * (1.0 - smooth) / n
}

/// Wilson's interval at 95% of a share.
fn wilson(count: f64, n: f64) -> (f64, f64) {
    let p = count / n;
    let square = Z * Z;
    let center = p + square / (2.0 * n);
    let spread = Z * (p * (1.0 - p) / n + square / (4.0 * n * n)).sqrt();
    let whole = 1.0 + square / n;
    (((center - spread) / whole).max(0.0), ((center + spread) / whole).min(1.0))
}

/// The critical path on a location: the time of each recorded call path, and the samples in it.
struct Critical {
    of_callpaths: FxHashMap<CallPathId, (i64, Vec<CallPathId>)>,
    /// The time that a sample stands for, ticks, if they do not stand for all of the time.
    period: Option<f64>,
}

impl Critical {
    fn of(
        trace: &Trace,
        (shard, i): (&Shard, usize),
        placed: &[Placed],
        meaning: &Meaning,
        (stretches, fork_joins): (&[Stretch], &ForkJoins),
        window: Option<&Range<i64>>,
    ) -> Self {
        let location = shard.location(i);
        let first = stretches.partition_point(|stretch| stretch.location < location);
        let end = stretches.partition_point(|stretch| stretch.location <= location);
        let rows = shard.call_samples.range(i);
        let (samples, placed) = (&shard.call_samples.rows[rows.clone()], &placed[rows]);
        let period = meaning.user_period(trace, location, samples);
        let mut found = Self { of_callpaths: FxHashMap::default(), period };
        let mut spans = Vec::new();
        for stretch in &stretches[first..end] {
            stretch.collect((trace, shard), fork_joins, &mut spans);
            for (callpath, span) in spans.iter().filter(|(callpath, _)| meaning.is_divided[callpath.index()]) {
                let mut span = span.clone();
                if let Some(window) = window {
                    span = span.start.max(window.start)..span.end.min(window.end);
                }
                if span.start >= span.end {
                    continue;
                }
                let (time, seen) = found.of_callpaths.entry(*callpath).or_default();
                *time += span.end - span.start;
                let inside = samples.partition_point(|sample| sample.time < span.start)
                    ..samples.partition_point(|sample| sample.time < span.end);
                let inside = samples[inside.clone()].iter().zip(&placed[inside]);
                let inside =
                    inside.filter(|(sample, placed)| placed.recorded == *callpath && meaning.is_of_time(sample));
                seen.extend(inside.map(|(_, placed)| placed.sampled));
            }
        }
        found
    }

    /// Adds the time on the critical path to the cells of a location.
    fn divide(self, (trace, sampling): (&Trace, &Sampling), cells: &mut [FunctionTime]) {
        for of_callpath in cells.chunk_by_mut(|a, b| a.recorded == b.recorded) {
            let recorded = of_callpath[0].recorded;
            let Some((time, seen)) = self.of_callpaths.get(&recorded) else { continue };
            let mut time = *time;
            if seen.len() < ON_PATH {
                let whole: i64 = of_callpath.iter().map(|cell| cell.time).sum();
                let mut parts: Vec<_> = of_callpath.iter().map(|cell| (cell.callpath, cell.time as u64, 0)).collect();
                divide(time, &mut parts);
                let share = if whole > 0 { time as f64 / whole as f64 } else { 0.0 };
                for (cell, (_, _, part)) in of_callpath.iter_mut().zip(parts) {
                    cell.critical = part;
                    cell.inclusive_critical_variance = cell.inclusive_variance * share * share;
                }
                continue;
            }
            let (n, period) = (seen.len() as f64, self.period);
            if let Some((away, period)) = period.and_then(|period| Some((away(time, seen.len(), period)?, period)))
                && let Some(cell) = of_callpath.last_mut().filter(|cell| cell.callpath.is_none())
            {
                cell.critical = away;
                cell.inclusive_critical_variance = period * period * n;
                time -= away;
            }
            let mut parts = counts(seen.iter().copied());
            divide(time, &mut parts);
            let counts = parts.iter().map(|&(callpath, count, _)| (callpath, count));
            for (callpath, count) in sampling.inclusive(&trace.tree, recorded, counts) {
                if let Some(cell) = cell(of_callpath, callpath) {
                    cell.inclusive_critical_variance = variance(time as f64, count as f64, n);
                }
            }
            for (callpath, _, part) in parts {
                if let Some(cell) = cell(of_callpath, callpath) {
                    cell.critical = part;
                }
            }
        }
    }
}

/// The cell of a sampled call path among those of a recorded one.
fn cell(of_callpath: &mut [FunctionTime], callpath: CallPathId) -> Option<&mut FunctionTime> {
    let found = of_callpath.binary_search_by_key(&callpath, |cell| cell.callpath).ok()?;
    Some(&mut of_callpath[found])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Newcombe (1998), table I: Wilson's intervals for 81/263 and 0/20.
    #[test]
    fn intervals_are_those_of_the_literature() {
        let (low, high) = wilson(81.0, 263.0);
        assert!((low - 0.2553).abs() < 5e-5 && (high - 0.3662).abs() < 5e-5);
        let (low, high) = wilson(0.0, 20.0);
        assert!(low.abs() < 5e-5 && (high - 0.1611).abs() < 5e-5);
    }
}
