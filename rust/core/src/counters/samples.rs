//! Totals of counters in single intervals of time, from samples that are read again.
//!
//! Samples of strict counters are as many as events, so they are not kept in memory. Reading them again decodes only
//! metric records.

use std::cell::Cell;
use std::ops::Range;

use bitcode::{Decode, Encode};
use rustc_hash::FxHashMap;
use whywait_otf2::enums::LocationType;
use whywait_otf2::{Attributes, Event, EventSink};

use super::pauses::Pauses;
use super::scoped;
use super::series::Series;
use crate::ids::{CallPathId, LocationId};
use crate::parallel::iter::prelude::*;
use crate::trace::counters::{CounterCell, Kind, Reading, Sums};
use crate::trace::{Reread, Shard, Trace};

/// An interval of time at a location, to sum counters over.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct Stretch {
    /// Index of the location.
    pub location: LocationId,
    /// Its begin, ticks.
    pub begin: i64,
    /// Its end, ticks.
    pub end: i64,
    /// Only while this call path is the innermost one.
    pub callpath: Option<CallPathId>,
}

/// The total of a counter in an interval.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct Change {
    /// Number of the stretch.
    pub stretch: u32,
    /// Index of the counter.
    pub counter: u32,
    /// Growth, or the integral of a level over ticks; not scaled.
    pub amount: f64,
    /// Ticks of the stretch in which its call path ran.
    pub ticks: i64,
    /// Ticks of these in which a level is known.
    pub known: i64,
    /// The minimum and the maximum of a level.
    pub range: (f64, f64),
}

impl Change {
    /// The total of the `part`-th of `parts` equal parts of a counter in some spans of an interval.
    fn of(
        series: &Series,
        (part, parts): (usize, usize),
        (stretch, counter): (u32, u32),
        spans: &[(i64, i64)],
    ) -> Self {
        let (mut amount, mut ticks, mut known, mut range) = (0.0, 0, 0, (f64::INFINITY, f64::NEG_INFINITY));
        for &(from, until) in spans {
            amount += series.change_of((part, parts), from, until);
            ticks += until - from;
            known += series.known_of((part, parts), from, until);
            let (least, most) = series.range(from, until);
            range = (range.0.min(least), range.1.max(most));
        }
        Self { stretch, counter, amount, ticks, known, range }
    }

    /// Adds the values of another recorder of the same counter for the same interval.
    fn add(&mut self, other: &Self) {
        self.amount += other.amount;
        self.known += other.known;
        self.range = (self.range.0.min(other.range.0), self.range.1.max(other.range.1));
    }
}

/// Reads the samples of counters whose scope is the recording location.
struct Reader<'a> {
    trace: &'a Trace,
    location: LocationId,
    kinds: &'a [Kind],
    now: i64,
    series: FxHashMap<u32, Series>,
}

impl EventSink for Reader<'_> {
    fn enter(&mut self, _: i64, _: u32) {}

    fn leave(&mut self, _: i64, _: u32) {}

    fn record(&mut self, time: i64, record: &Event<'_>, _: &Attributes<'_>) {
        let Event::Metric { metric, values } = *record else { return };
        let counters = &self.trace.definitions.counters;
        if !counters.covers_only_recorder(&self.trace.definitions.locations, metric, self.location) {
            return;
        }
        // Correct times as the analysis does: they do not decrease, and lie within the run.
        let (first, last) = self.trace.span().unwrap_or_default();
        self.now = self.now.max(time.clamp(first, last));
        // Problems were reported when the events were first read.
        for Reading { counter, value, .. } in
            counters.readings(counters.members_of(metric), values.iter(), &Cell::default())
        {
            let definition = &counters.all[counter as usize];
            let series = self.series.entry(counter);
            series.or_insert_with(|| Series::new(definition, self.kinds[counter as usize])).push(self.now, value);
        }
    }
}

/// The series of a location, in the order of the counters. Unreadable data ends them, as it ended the events.
fn read(again: Reread<'_>, kinds: &[Kind], location: LocationId) -> Vec<(u32, Series)> {
    let trace = again.trace;
    let mut reader = Reader { trace, location, kinds, now: i64::MIN, series: FxHashMap::default() };
    let _ = again.location(location, &mut reader);
    let shard = trace.shard(location);
    let last = shard.spans[shard.local(location)].last;
    let mut series: Vec<(u32, Series)> = reader.series.into_iter().collect();
    series.sort_unstable_by_key(|(counter, _)| *counter);
    for (_, series) in &mut series {
        series.hold(last);
    }
    series
}

/// All counters that a location recorded, over time; those of the location itself come first.
pub(crate) fn recorded(again: Reread<'_>, kinds: &[Kind], location: LocationId) -> Vec<RecordedCounter> {
    let trace = again.trace;
    let recording = |is_own: bool| move |(counter, series): (u32, Series)| RecordedCounter { counter, is_own, series };
    let mut recordings: Vec<RecordedCounter> = Vec::new();
    // Counters at a metric location belong to other locations.
    if trace.definitions.locations[location].kind != LocationType::METRIC {
        recordings.extend(read(again, kinds, location).into_iter().map(recording(true)));
    }
    recordings.extend(scoped::kept(trace, kinds, location).into_iter().map(recording(false)));
    recordings
}

/// A counter over time.
pub(crate) struct RecordedCounter {
    /// Index of the counter.
    pub(crate) counter: u32,
    /// Whether its scope is the recording location.
    pub(crate) is_own: bool,
    /// Its samples.
    pub(crate) series: Series,
}

/// Totals of counters in intervals of time. With `shared`, also those of wider scope: each thread gets its part of a
/// shared counter, and each stream all of a counter of its device.
///
/// By interval and counter; a counter without samples around an interval has no row. Collective.
pub fn changes(again: Reread<'_>, kinds: &[Kind], asked: &[Stretch], shared: bool) -> crate::Result<Vec<Change>> {
    let trace = again.trace;
    let shared = if shared { scoped::all(trace, kinds)? } else { Vec::new() };
    let mut by_location: FxHashMap<LocationId, Vec<u32>> = FxHashMap::default();
    for (number, stretch) in (0..).zip(asked).filter(|(_, stretch)| trace.owns(stretch.location)) {
        by_location.entry(stretch.location).or_default().push(number);
    }
    let by_location: Vec<_> = by_location.into_iter().collect();
    let changes = by_location.into_par_iter().flat_map(|(location, numbers)| {
        let own = read(again, kinds, location);
        let shared: Vec<_> = shared.iter().filter_map(|one| one.at(trace, location)).collect();
        let mut changes = Vec::new();
        for number in numbers {
            let stretch = asked[number as usize];
            let spans = spans(trace, &stretch);
            for &(counter, ref series) in &own {
                if series.covers(stretch.begin, stretch.end) {
                    changes.push(Change::of(series, (0, 1), (number, counter), &spans));
                }
            }
            for one in &shared {
                if one.covers(stretch.begin, stretch.end) {
                    let running: Vec<_> = spans.iter().map(|&span| one.running(span)).collect();
                    changes.push(Change::of(&one.series, one.part, (number, one.counter), &running));
                }
            }
        }
        changes
    });
    let mut changes = trace.exchange.gatherv(changes.collect::<Vec<Change>>())?;
    changes.sort_by_key(|change| (change.stretch, change.counter));
    changes.dedup_by(|next, change| {
        let same = (change.stretch, change.counter) == (next.stretch, next.counter);
        if same {
            change.add(next);
        }
        same
    });
    Ok(changes)
}

/// The instances of a call path, by location and Enter. Collective.
pub fn instances(trace: &Trace, callpath: CallPathId) -> crate::Result<Vec<Stretch>> {
    let of_shard = |shard: &Shard| {
        let events = &shard.events;
        let mut found = Vec::new();
        for (i, location) in shard.locations.enumerate() {
            let mut enter = None;
            for event in
                (shard.event_offsets[i]..shard.event_offsets[i + 1]).filter(|&e| events.callpath(e) == callpath)
            {
                let time = events.time[event as usize];
                if !events.is_leave(event) {
                    enter = Some(time);
                } else if let Some(begin) = enter.take() {
                    found.push(Stretch { location, begin, end: time, callpath: None });
                }
            }
        }
        found
    };
    trace.exchange.gatherv(trace.par_shards().map(of_shard).collect::<Vec<_>>().concat())
}

/// When the call path of a stretch runs in it.
fn spans(trace: &Trace, stretch: &Stretch) -> Vec<(i64, i64)> {
    let Some(wanted) = stretch.callpath else { return vec![(stretch.begin, stretch.end)] };
    let shard = trace.shard(stretch.location);
    let i = shard.local(stretch.location);
    shard
        .stretches(&trace.tree, i, stretch.begin..stretch.end)
        .filter(|(callpath, ..)| *callpath == wanted)
        .map(|(_, from, until)| (from, until))
        .collect()
}

/// Totals of all counters in a window by call path and location. Adjacent windows that cover a run add up exactly.
/// Collective.
pub fn window(again: Reread<'_>, kinds: &[Kind], window: &Range<i64>) -> crate::Result<Vec<CounterCell>> {
    let trace = again.trace;
    if trace.definitions.counters.all.is_empty() {
        return Ok(Vec::new());
    }
    let own: Vec<Vec<CounterCell>> = (0..trace.definitions.locations.len())
        .into_par_iter()
        .map(LocationId::at)
        .filter(|&location| trace.owns(location))
        .map(|location| {
            let mut sums: FxHashMap<(CallPathId, u32), Sums> = FxHashMap::default();
            let shard = trace.shard(location);
            let i = shard.local(location);
            let pauses = Pauses::of(&trace.tree, shard, i);
            for (counter, series) in read(again, kinds, location) {
                let stretches = shard.stretches(&trace.tree, i, window.clone());
                let book = |callpath, add| *sums.entry((callpath, counter)).or_default() += add;
                series.divide((0, 1), &pauses, stretches, book);
            }
            let cell = |((callpath, counter), sums)| CounterCell { counter, callpath, location, sums };
            sums.into_iter().map(cell).collect()
        })
        .collect();
    let mut cells = own.concat();
    cells.extend(scoped::divide(trace, kinds, Some(window))?);
    let mut cells = trace.exchange.gatherv(cells)?;
    cells.sort_by_key(|cell| (cell.location, cell.callpath, cell.counter));
    Ok(cells)
}
