//! The profile: how long each sampled call path ran, with the error of it.
//!
//! In a stratum of time T with n samples, of which k saw a call path, it ran for T k/n. The error of one stratum is Wilson's
//! interval for k/n; of several, their variances T² p(1 - p)/n with p = (k + 1)/(n + 2) add up.
//!
//! *Source*: docs/specification.md#times-of-functions.

use std::ops::Range;

use bitcode::{Decode, Encode};
use rustc_hash::FxHashMap;

use super::faults::{Faults, around};
use super::paths::{Placed, Sampling};
use super::strata::{Meaning, RESOLVED, away, counts, divide, strata};
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
            let (mut of_location, faults) = of_location((trace, sampling), (shard, i), placed, &meaning, window);
            let critical = Critical::of(trace, (shard, i), placed, &meaning, (stretches, &fork_joins), window);
            critical.divide((trace, sampling), &faults, &mut of_location);
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

/// The cells of a location, and for each recorded call path the share of page faults in the time in the system, or without a core.
fn of_location(
    (trace, sampling): (&Trace, &Sampling),
    (shard, i): (&Shard, usize),
    placed: &[Placed],
    meaning: &Meaning,
    window: Option<&Range<i64>>,
) -> (Vec<FunctionTime>, FxHashMap<CallPathId, f64>) {
    let mut cells = Cells { location: shard.location(i), times: FxHashMap::default(), terms: FxHashMap::default() };
    let strata = strata(trace, (shard, i), placed, meaning, window);
    let faults = Faults::of(trace, (shard, i), placed, meaning.is_divided, window).shares(&strata);
    for stratum in strata {
        let recorded = stratum.recorded;
        let (n, mut time) = (stratum.samples.len() as f64, stratum.time());
        let mut parts = counts(stratum.samples.iter().map(|&(_, callpath)| callpath));
        let inclusive = |parts: &[(CallPathId, u64, i64)]| {
            let counts = parts.iter().map(|&(callpath, count, _)| (callpath, count));
            sampling.inclusive(&trace.tree, recorded, counts)
        };
        if stratum.is_resolved() {
            if let Some(away) = stratum.away() {
                time -= away;
                let error = stratum.period.unwrap_or_default() * n.sqrt();
                let share = faults.get(&recorded).copied().unwrap_or_default();
                let of_faults = OfFaults::new(away, share, stratum.faults.iter().map(|&(_, callpath)| callpath));
                for (callpath, count) in inclusive(&of_faults.parts) {
                    cells.add(recorded, callpath).inclusive_variance += of_faults.variance(count, error);
                }
                for &(callpath, count, part) in &of_faults.parts {
                    let cell = cells.add(recorded, callpath);
                    cell.time += part;
                    cell.variance += of_faults.variance(count, error);
                }
                let error = error * (1.0 - of_faults.share);
                let cell = cells.add(recorded, CallPathId::NONE);
                cell.time += away - of_faults.time;
                cell.variance += error * error;
                cell.inclusive_variance += error * error;
            }
            divide(time, &mut parts);
        }
        let all = time as f64;
        for (callpath, count) in inclusive(&parts) {
            let cell = cells.of(recorded, callpath);
            if stratum.is_resolved() {
                cell.inclusive_variance += variance(all, count as f64, n);
            }
        }
        for (callpath, count, part) in parts {
            let cell = cells.of(recorded, callpath);
            cell.samples += count;
            if stratum.is_resolved() {
                let (low, high) = wilson(count as f64, n);
                cell.time += part;
                (cell.low, cell.high) = (cell.low + all * low, cell.high + all * high);
                cell.variance += variance(all, count as f64, n);
                *cells.terms.entry((recorded, callpath)).or_default() += 1;
            }
        }
        if !stratum.is_resolved() {
            let own = cells.of(recorded, recorded);
            own.time += time;
            own.unresolved += time;
            (own.low, own.high) = (own.low + all, own.high + all);
        }
    }
    (cells.finish(), faults)
}

/// The cells of a location, by recorded and sampled call path.
struct Cells {
    location: LocationId,
    times: FxHashMap<(CallPathId, CallPathId), FunctionTime>,
    /// How many divisions give the time of each; two where the interval is not Wilson's.
    terms: FxHashMap<(CallPathId, CallPathId), u32>,
}

impl Cells {
    fn of(&mut self, recorded: CallPathId, callpath: CallPathId) -> &mut FunctionTime {
        let none = FunctionTime::none(self.location, recorded, callpath);
        self.times.entry((recorded, callpath)).or_insert(none)
    }

    /// A cell to which a time is added that is no division by samples of time.
    fn add(&mut self, recorded: CallPathId, callpath: CallPathId) -> &mut FunctionTime {
        *self.terms.entry((recorded, callpath)).or_insert(1) += 1;
        self.of(recorded, callpath)
    }

    fn finish(self) -> Vec<FunctionTime> {
        let mut cells: Vec<FunctionTime> = self.times.into_values().collect();
        for cell in &mut cells {
            if self.terms.get(&(cell.recorded, cell.callpath)).is_some_and(|&terms| terms > 1) {
                // Errors of several strata are independent.
                let error = Z * cell.variance.sqrt();
                let time = cell.time as f64;
                (cell.low, cell.high) = ((time - error).max(cell.unresolved as f64), time + error);
            }
        }
        cells.sort_unstable_by_key(|cell| (cell.recorded, cell.callpath));
        cells
    }
}

/// Time in the system that page faults take, by the functions that have them.
struct OfFaults {
    /// The share of the time in the system, or without a core.
    share: f64,
    time: i64,
    /// For each call path its samples and its time.
    parts: Vec<(CallPathId, u64, i64)>,
    samples: f64,
}

impl OfFaults {
    /// What samples of faults say of a time in the system, or without a core, of which faults take a share.
    fn new(away: i64, share: f64, samples: impl ExactSizeIterator<Item = CallPathId>) -> Self {
        let count = samples.len();
        if count < RESOLVED {
            return Self { share: 0.0, time: 0, parts: Vec::new(), samples: 0.0 };
        }
        let time = (away as f64 * share) as i64;
        let mut parts = counts(samples);
        divide(time, &mut parts);
        Self { share, time, parts, samples: count as f64 }
    }

    /// The variance of the time of so many samples, where the time away has an error.
    fn variance(&self, count: u64, error: f64) -> f64 {
        let part = error * self.share * count as f64 / self.samples;
        variance(self.time as f64, count as f64, self.samples) + part * part
    }
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
        if let Some(callpath) = around(trace, placed.recorded, is_divided) {
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

/// The critical path on a location: the time of each recorded call path, and the samples in it, of time and of page faults.
struct Critical {
    of_callpaths: FxHashMap<CallPathId, (i64, Vec<CallPathId>, Vec<CallPathId>)>,
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
                let (time, seen, faults) = found.of_callpaths.entry(*callpath).or_default();
                *time += span.end - span.start;
                let inside = samples.partition_point(|sample| sample.time < span.start)
                    ..samples.partition_point(|sample| sample.time < span.end);
                for (sample, placed) in samples[inside.clone()].iter().zip(&placed[inside]) {
                    if placed.recorded == *callpath {
                        let of_kind = if meaning.is_of_time(sample) { &mut *seen } else { &mut *faults };
                        of_kind.push(placed.sampled);
                    }
                }
            }
        }
        found
    }

    /// Adds the time on the critical path to the cells of a location.
    /// `faults` are the shares of page faults in the time in the system, or without a core, by recorded call path.
    fn divide(
        self,
        (trace, sampling): (&Trace, &Sampling),
        faults: &FxHashMap<CallPathId, f64>,
        cells: &mut [FunctionTime],
    ) {
        for of_callpath in cells.chunk_by_mut(|a, b| a.recorded == b.recorded) {
            let recorded = of_callpath[0].recorded;
            let Some((time, seen, on_faults)) = self.of_callpaths.get(&recorded) else { continue };
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
            let inclusive = |parts: &[(CallPathId, u64, i64)]| {
                let counts = parts.iter().map(|&(callpath, count, _)| (callpath, count));
                sampling.inclusive(&trace.tree, recorded, counts)
            };
            let n = seen.len() as f64;
            if let Some((away, period)) = self.period.and_then(|period| Some((away(time, seen.len(), period)?, period)))
                && cell(of_callpath, CallPathId::NONE).is_some()
            {
                let error = period * n.sqrt();
                let share = faults.get(&recorded).copied().unwrap_or_default();
                let mut of_faults = OfFaults::new(away, share, on_faults.iter().copied());
                if of_faults.parts.iter().any(|&(callpath, ..)| cell(of_callpath, callpath).is_none()) {
                    of_faults = OfFaults::new(away, 0.0, std::iter::empty());
                }
                for (callpath, count) in inclusive(&of_faults.parts) {
                    if let Some(cell) = cell(of_callpath, callpath) {
                        cell.inclusive_critical_variance += of_faults.variance(count, error);
                    }
                }
                for &(callpath, _, part) in &of_faults.parts {
                    if let Some(cell) = cell(of_callpath, callpath) {
                        cell.critical += part;
                    }
                }
                let error = error * (1.0 - of_faults.share);
                if let Some(cell) = cell(of_callpath, CallPathId::NONE) {
                    cell.critical = away - of_faults.time;
                    cell.inclusive_critical_variance = error * error;
                }
                time -= away;
            }
            let mut parts = counts(seen.iter().copied());
            divide(time, &mut parts);
            for (callpath, count) in inclusive(&parts) {
                if let Some(cell) = cell(of_callpath, callpath) {
                    cell.inclusive_critical_variance += variance(time as f64, count as f64, n);
                }
            }
            for (callpath, _, part) in parts {
                if let Some(cell) = cell(of_callpath, callpath) {
                    cell.critical += part;
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
