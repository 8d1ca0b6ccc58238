//! Counters of a process, a machine, or a group, divided over the threads in their scope.
//!
//! Each of n threads gets the n-th part of a counter, and distributes it over its call paths in proportion to time.
//! Integers are divided into integer parts that add up.

use std::borrow::Cow;
use std::ops::Range;

use rustc_hash::FxHashMap;

use super::pauses::Pauses;
use super::series::Series;
use crate::Result;
use crate::ids::{CallPathId, LocationId};
use crate::parallel::iter::prelude::*;
use crate::trace::Trace;
use crate::trace::counters::{CounterCell, Kind, Sample, Sums};

/// Divides the kept samples, all or those in a window.
///
/// Collective; each process gets the cells of its threads.
pub(super) fn divide(trace: &Trace, kinds: &[Kind], window: Option<&Range<i64>>) -> Result<Vec<CounterCell>> {
    let mut samples = samples(trace)?;
    let cells = by_series(&mut samples).into_par_iter().map(|samples| of_one(trace, kinds, samples, window));
    Ok(cells.collect::<Vec<_>>().concat())
}

/// The kept samples of this process, and those of others whose scope has locations in several processes. Collective.
fn samples(trace: &Trace) -> Result<Vec<Sample>> {
    let counters = &trace.definitions.counters;
    let mut is_own: FxHashMap<(u32, LocationId), bool> = FxHashMap::default();
    let (mut samples, mut shared) = (Vec::new(), Vec::new());
    for sample in trace.shards.iter().flat_map(|shard| &shard.samples) {
        let is_own = is_own.entry((sample.metric, sample.location)).or_insert_with(|| {
            let threads = counters.covered_threads(&trace.definitions.locations, sample.metric, sample.location);
            threads.iter().chain(counters.covered_streams(sample.metric)).all(|&location| trace.owns(location))
        });
        if *is_own { &mut samples } else { &mut shared }.push(*sample);
    }
    // The threads of a machine, for example, may be in several processes of the analysis.
    if trace.exchange.processes() > 1 {
        samples.extend(trace.exchange.allgather(shared)?.into_iter().flatten());
    }
    Ok(samples)
}

/// Samples by metric, counter and recorder; those of a location stay in their order.
fn by_series(samples: &mut [Sample]) -> Vec<&[Sample]> {
    samples.sort_by_key(key);
    samples.chunk_by(|a, b| key(a) == key(b)).collect()
}

/// The samples of one counter over time.
fn series(trace: &Trace, kinds: &[Kind], samples: &[Sample]) -> Series {
    let counter = samples[0].counter as usize;
    let definition = &trace.definitions.counters.all[counter];
    let mut series = Series::new(definition, kinds[counter]);
    for sample in samples {
        series.push(sample.time, sample.value(definition.is_real));
    }
    series.hold(trace.span().map_or(i64::MIN, |(_, last)| last));
    series
}

/// The kept samples of a location, by metric and counter.
pub(super) fn kept(trace: &Trace, kinds: &[Kind], location: LocationId) -> Vec<(u32, Series)> {
    let samples = &trace.shard(location).samples;
    let own =
        |bound: fn(&LocationId, &LocationId) -> bool| samples.partition_point(|one| bound(&one.location, &location));
    let mut samples = samples[own(LocationId::lt)..own(LocationId::le)].to_vec();
    by_series(&mut samples).into_iter().map(|samples| (samples[0].counter, series(trace, kinds, samples))).collect()
}

/// A counter with another scope than the recording location, over time.
pub(super) struct Shared {
    counter: u32,
    recorder: LocationId,
    series: Series,
    /// The threads over which it is divided, sorted.
    threads: Vec<LocationId>,
    /// The streams in its scope, sorted.
    streams: Vec<LocationId>,
}

/// The part of such a counter that belongs to a location.
pub(super) struct Share<'a> {
    pub(super) counter: u32,
    /// On the time axis of the location, which excludes pauses.
    pub(super) series: Cow<'a, Series>,
    whole: &'a Series,
    pauses: Pauses,
    /// Index of the part, and number of equal parts.
    pub(super) part: (usize, usize),
}

impl Shared {
    /// The part that belongs to a location, if any.
    pub(super) fn at(&self, trace: &Trace, location: LocationId) -> Option<Share<'_>> {
        let part = match self.threads.binary_search(&location) {
            Ok(part) => (part, self.threads.len()),
            // Without threads in its scope, it stays at its recorder.
            Err(_) if self.threads.is_empty() && self.recorder == location => (0, 1),
            Err(_) => self.streams.binary_search(&location).ok().map(|_| (0, 1))?,
        };
        let shard = trace.shard(location);
        let pauses = Pauses::of(&trace.tree, shard, shard.local(location));
        let series = self.series.in_time_of(&pauses);
        Some(Share { counter: self.counter, series, whole: &self.series, pauses, part })
    }
}

impl Share<'_> {
    /// Whether anything is known of the time between two times.
    pub(super) fn covers(&self, from: i64, until: i64) -> bool {
        self.whole.covers(from, until)
    }

    /// Converts a span to the time axis of the location.
    pub(super) fn running(&self, (from, until): (i64, i64)) -> (i64, i64) {
        (self.pauses.running(from), self.pauses.running(until))
    }
}

/// The kept samples that locations of this process may have a part in, by metric, counter and recorder. Collective.
pub(super) fn all(trace: &Trace, kinds: &[Kind]) -> Result<Vec<Shared>> {
    let mut samples = samples(trace)?;
    let counters = &trace.definitions.counters;
    let shared = |samples: &[Sample]| {
        let Sample { metric, counter, location, .. } = samples[0];
        let threads = counters.covered_threads(&trace.definitions.locations, metric, location);
        let streams = counters.covered_streams(metric).to_vec();
        Shared { counter, recorder: location, series: series(trace, kinds, samples), threads, streams }
    };
    Ok(by_series(&mut samples).into_iter().map(shared).collect())
}

fn key(sample: &Sample) -> (u32, u32, LocationId) {
    (sample.metric, sample.counter, sample.location)
}

/// Divides the samples of one counter.
fn of_one(trace: &Trace, kinds: &[Kind], samples: &[Sample], window: Option<&Range<i64>>) -> Vec<CounterCell> {
    let Sample { metric, counter, location, .. } = samples[0];
    let series = series(trace, kinds, samples);
    let all = window.map_or((i64::MIN, i64::MAX), |window| (window.start, window.end));
    let threads = trace.definitions.counters.covered_threads(&trace.definitions.locations, metric, location);
    let mut cells = Vec::new();
    if threads.is_empty() && trace.owns(location) {
        let book = |callpath, sums| cells.push(CounterCell { counter, callpath, location, sums });
        series.divide((0, 1), &Pauses::default(), std::iter::once((CallPathId::NONE, all.0, all.1)), book);
    }
    for (part, &thread) in threads.iter().enumerate().filter(|(_, thread)| trace.owns(**thread)) {
        let mut sums: FxHashMap<CallPathId, Sums> = FxHashMap::default();
        let shard = trace.shard(thread);
        let i = shard.local(thread);
        let stretches = shard.stretches(&trace.tree, i, all.0..all.1);
        let pauses = Pauses::of(&trace.tree, shard, i);
        let book = |callpath, add| *sums.entry(callpath).or_default() += add;
        series.divide((part, threads.len()), &pauses, stretches, book);
        let cell = |(callpath, sums)| CounterCell { counter, callpath, location: thread, sums };
        cells.extend(sums.into_iter().map(cell));
    }
    cells
}
