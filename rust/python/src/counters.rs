//! Recorded counters as tables: definitions, totals, and totals over intervals of time.

use pyo3::prelude::*;
use whywait_core::analysis::Analysis as CoreAnalysis;
use whywait_core::counters::{Bin, Change, Stretch};
use whywait_core::ids::{CallPathId, LocationId};
use whywait_core::trace::counters::{Counter, CounterCell, Kind};

use crate::analysis::Analysis;
use crate::arrow::Table;
use crate::errors::UsageError;
use crate::rows::Rows;

fn all(analysis: &Analysis) -> &[Counter] {
    &analysis.result.trace.definitions.counters.all
}

/// Definitions of counters.
pub(crate) fn definitions(analysis: &Analysis) -> PyResult<Table> {
    let counters = all(analysis);
    Rows::of(counters.iter().zip(&analysis.result.counters.kinds).enumerate())
        .column("counter", |(number, _)| number as u32)
        .column("name", |(_, (counter, _))| counter.name.as_str())
        .column("description", |(_, (counter, _))| counter.description.as_str())
        .column("unit", |(_, (counter, _))| counter.unit.as_str())
        .names("type", |(_, (counter, _))| counter.metric_type.name().unwrap_or("UNKNOWN"))
        .names("mode", |(_, (counter, _))| counter.mode.name().unwrap_or("UNKNOWN"))
        .names("occurrence", |(_, (counter, _))| counter.occurrence.name().unwrap_or("UNKNOWN"))
        .names("kind", |(_, (_, kind))| match kind {
            Kind::Total | Kind::Change { .. } => "total",
            Kind::Level { .. } | Kind::Samples => "level",
        })
        .column("integer", |(_, (counter, _))| !counter.is_real)
        .column("factor", |(_, (counter, _))| counter.factor())
        .finish()
}

/// Totals of counters.
pub(crate) fn cells(analysis: &Analysis, cells: &[CounterCell]) -> PyResult<Table> {
    let counters = all(analysis);
    let factors: Vec<f64> = counters.iter().map(Counter::factor).collect();
    let resolution = analysis.result.trace.resolution as f64;
    let factor = |cell: &CounterCell| factors[cell.counter as usize];
    let kinds = &analysis.result.counters.kinds;
    // A level is integrated over ticks.
    let amount = |cell: &CounterCell| match kinds[cell.counter as usize] {
        Kind::Level { .. } => cell.sums.amount.value() / resolution,
        Kind::Samples => cell.sums.area.value() / (2.0 * resolution),
        Kind::Total | Kind::Change { .. } => cell.sums.amount.value(),
    };
    let is_level = |cell: &CounterCell| matches!(kinds[cell.counter as usize], Kind::Level { .. } | Kind::Samples);
    Rows::of(cells)
        .column("counter", |cell| cell.counter)
        .column("callpath", |cell| cell.callpath.known().map(i64::from))
        .column("location", |cell| cell.location.number())
        .column("amount", |cell| amount(cell) * factor(cell))
        .column("seconds", |cell| if is_level(cell) { cell.sums.ticks as f64 / resolution } else { 0.0 })
        .column("sampled", |cell| cell.sums.sampled.value() * factor(cell))
        .column("samples", |cell| cell.sums.samples)
        .column("minimum", |cell| cell.sums.range.0 * factor(cell))
        .column("maximum", |cell| cell.sums.range.1 * factor(cell))
        .finish()
}

/// Intervals of time to sum counters over, as columns of equal length.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Intervals {
    location: Vec<u32>,
    begin: Vec<f64>,
    end: Vec<f64>,
    callpath: Vec<Option<u32>>,
}

/// Totals of the counters of single locations in the intervals; with `shared`, of all other counters too.
pub(crate) fn changes(analysis: &Analysis, py: Python<'_>, intervals: &Intervals, shared: bool) -> PyResult<Table> {
    let trace = &analysis.result.trace;
    let size = intervals.location.len();
    if [intervals.begin.len(), intervals.end.len(), intervals.callpath.len()] != [size; 3] {
        return Err(UsageError::new_err("the columns of the stretches are not of the same length"));
    }
    let known = |location: &u32| (*location as usize) < trace.definitions.locations.len();
    if !intervals.location.iter().all(known) {
        return Err(UsageError::new_err("unknown location"));
    }
    // The end is exclusive, so the last tick belongs to the window.
    let (first, last) = trace.span().map_or((0, 0), |(first, last)| (first, last.saturating_add(1)));
    let stretches: Vec<Stretch> = (0..size)
        .map(|i| {
            let [begin, end] =
                [intervals.begin[i], intervals.end[i]].map(|seconds| analysis.tick(seconds).clamp(first, last));
            let callpath = intervals.callpath[i].map(CallPathId::new);
            Stretch { location: LocationId::new(intervals.location[i]), begin, end: end.max(begin), callpath }
        })
        .collect();
    let find = move |result: &CoreAnalysis| {
        whywait_core::counters::changes(result.trace.reread(), &result.counters.kinds, &stretches, shared)
    };
    let found = analysis.collective(py, find)?;
    let kinds = &analysis.result.counters.kinds;
    let counters = all(analysis);
    let resolution = trace.resolution as f64;
    let factor = |change: &Change| counters[change.counter as usize].factor();
    let is_level = |change: &Change| matches!(kinds[change.counter as usize], Kind::Level { .. } | Kind::Samples);
    let extreme = |change: &Change, value: f64| value.is_finite().then(|| value * factor(change));
    Rows::of(&found)
        .column("stretch", |change| change.stretch)
        .column("counter", |change| change.counter)
        .column("amount", |one| one.amount * factor(one) / if is_level(one) { resolution } else { 1.0 })
        .column("seconds", |change| change.ticks as f64 / resolution)
        .column("known", |change| change.known as f64 / resolution)
        .column("minimum", |change| extreme(change, change.range.0))
        .column("maximum", |change| extreme(change, change.range.1))
        .finish()
}

/// All counters over time, in bins of equal width, on groups of `merged` locations.
pub(crate) fn courses(analysis: &Analysis, py: Python<'_>, merged: usize, bins: usize) -> PyResult<Table> {
    let find = move |result: &CoreAnalysis| {
        whywait_core::counters::courses(result.trace.reread(), &result.counters.kinds, merged, bins)
    };
    let found = analysis.collective(py, find)?;
    let (trace, kinds) = (&analysis.result.trace, &analysis.result.counters.kinds);
    let counters = all(analysis);
    let value = |bin: &Bin| {
        let is_level = matches!(kinds[bin.counter as usize], Kind::Level { .. } | Kind::Samples);
        bin.value * counters[bin.counter as usize].factor() * if is_level { 1.0 } else { trace.resolution as f64 }
    };
    Rows::of(&found)
        .column("counter", |bin| bin.counter)
        .column("location", |bin| bin.location.number())
        .column("bin", |bin| bin.bin)
        .column("value", value)
        .finish()
}

/// The instances of a call path.
pub(crate) fn instances(analysis: &Analysis, py: Python<'_>, callpath: u32) -> PyResult<Table> {
    let find = move |result: &CoreAnalysis| whywait_core::counters::instances(&result.trace, CallPathId::new(callpath));
    let found = analysis.collective(py, find)?;
    let begin = analysis.begin();
    Rows::of(&found)
        .column("location", |one| one.location.number())
        .column("enter", |one| analysis.seconds(one.begin - begin))
        .column("leave", |one| analysis.seconds(one.end - begin))
        .finish()
}

/// Totals of all counters in a window.
pub(crate) fn window(analysis: &Analysis, py: Python<'_>, begin: f64, end: f64) -> PyResult<Table> {
    let window = analysis.tick(begin)..analysis.tick(end);
    let find = move |result: &CoreAnalysis| {
        whywait_core::counters::window(result.trace.reread(), &result.counters.kinds, &window)
    };
    cells(analysis, &analysis.collective(py, find)?)
}
