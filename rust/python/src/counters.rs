//! Recorded counters as tables: definitions, totals, and totals over intervals of time.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, StringArray, UInt32Array, UInt64Array};
use pyo3::prelude::*;
use whywait_core::analysis::Analysis as CoreAnalysis;
use whywait_core::counters::{Change, Stretch};
use whywait_core::ids::{CallPathId, LocationId};
use whywait_core::trace::counters::{Counter, CounterCell, Kind};

use crate::analysis::Analysis;
use crate::arrow::{Names, Optional, Table};
use crate::errors::UsageError;

fn all(analysis: &Analysis) -> &[Counter] {
    &analysis.result.trace.definitions.counters.all
}

/// Definitions of counters.
pub(crate) fn definitions(analysis: &Analysis) -> PyResult<Table> {
    let counters = all(analysis);
    let text = |get: fn(&Counter) -> &str| -> ArrayRef {
        Arc::new(counters.iter().map(|counter| Some(get(counter))).collect::<StringArray>())
    };
    let [mut types, mut modes, mut occurrences, mut kinds] = std::array::from_fn(|_| Names::default());
    for (counter, kind) in counters.iter().zip(&analysis.result.counters.kinds) {
        types.push(counter.metric_type.name().unwrap_or("UNKNOWN"));
        modes.push(counter.mode.name().unwrap_or("UNKNOWN"));
        occurrences.push(counter.occurrence.name().unwrap_or("UNKNOWN"));
        kinds.push(match kind {
            Kind::Total | Kind::Change { .. } => "total",
            Kind::Level { .. } | Kind::Samples => "level",
        });
    }
    Table::new(vec![
        ("counter", Arc::new(UInt32Array::from_iter_values(0..counters.len() as u32))),
        ("name", text(|counter| &counter.name)),
        ("description", text(|counter| &counter.description)),
        ("unit", text(|counter| &counter.unit)),
        ("type", types.finish()),
        ("mode", modes.finish()),
        ("occurrence", occurrences.finish()),
        ("kind", kinds.finish()),
        ("integer", Arc::new(counters.iter().map(|counter| Some(!counter.is_real)).collect::<BooleanArray>())),
        ("factor", Arc::new(Float64Array::from_iter_values(counters.iter().map(Counter::factor)))),
    ])
}

/// Totals of counters.
pub(crate) fn cells(analysis: &Analysis, cells: &[CounterCell]) -> PyResult<Table> {
    let counters = all(analysis);
    let factors: Vec<f64> = counters.iter().map(Counter::factor).collect();
    let resolution = analysis.result.trace.resolution as f64;
    let number = |get: &dyn Fn(&CounterCell) -> f64| -> ArrayRef {
        let scaled = |cell: &CounterCell| get(cell) * factors[cell.counter as usize];
        Arc::new(Float64Array::from_iter_values(cells.iter().map(scaled)))
    };
    let kinds = &analysis.result.counters.kinds;
    // A level is integrated over ticks.
    let amount = |cell: &CounterCell| match kinds[cell.counter as usize] {
        Kind::Level { .. } => cell.sums.amount.value() / resolution,
        Kind::Samples => cell.sums.area.value() / (2.0 * resolution),
        Kind::Total | Kind::Change { .. } => cell.sums.amount.value(),
    };
    let mut callpaths = Optional::default();
    for cell in cells {
        callpaths.push(cell.callpath.known());
    }
    let is_level = |cell: &CounterCell| matches!(kinds[cell.counter as usize], Kind::Level { .. } | Kind::Samples);
    let seconds = cells.iter().map(|cell| if is_level(cell) { cell.sums.ticks as f64 / resolution } else { 0.0 });
    Table::new(vec![
        ("counter", Arc::new(UInt32Array::from_iter_values(cells.iter().map(|cell| cell.counter)))),
        ("callpath", callpaths.finish()),
        ("location", Arc::new(UInt32Array::from_iter_values(cells.iter().map(|cell| cell.location.number())))),
        ("amount", number(&amount)),
        ("seconds", Arc::new(Float64Array::from_iter_values(seconds))),
        ("sampled", number(&|cell| cell.sums.sampled.value())),
        ("samples", Arc::new(UInt64Array::from_iter_values(cells.iter().map(|cell| cell.sums.samples)))),
        ("minimum", number(&|cell| cell.sums.range.0)),
        ("maximum", number(&|cell| cell.sums.range.1)),
    ])
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
    let amount = found.iter().map(|change| {
        let is_level = matches!(kinds[change.counter as usize], Kind::Level { .. } | Kind::Samples);
        change.amount * counters[change.counter as usize].factor() / if is_level { resolution } else { 1.0 }
    });
    let extreme = |get: fn(&Change) -> f64| -> ArrayRef {
        let value = |change: &Change| {
            let value = get(change);
            value.is_finite().then(|| value * counters[change.counter as usize].factor())
        };
        Arc::new(found.iter().map(value).collect::<Float64Array>())
    };
    Table::new(vec![
        ("stretch", Arc::new(UInt32Array::from_iter_values(found.iter().map(|change| change.stretch)))),
        ("counter", Arc::new(UInt32Array::from_iter_values(found.iter().map(|change| change.counter)))),
        ("amount", Arc::new(Float64Array::from_iter_values(amount))),
        ("seconds", Arc::new(Float64Array::from_iter_values(found.iter().map(|c| c.ticks as f64 / resolution)))),
        ("known", Arc::new(Float64Array::from_iter_values(found.iter().map(|c| c.known as f64 / resolution)))),
        ("minimum", extreme(|change| change.range.0)),
        ("maximum", extreme(|change| change.range.1)),
    ])
}

/// All counters over time, in bins of equal width, on groups of `merged` locations.
pub(crate) fn courses(analysis: &Analysis, py: Python<'_>, merged: usize, bins: usize) -> PyResult<Table> {
    let find = move |result: &CoreAnalysis| {
        whywait_core::counters::courses(result.trace.reread(), &result.counters.kinds, merged, bins)
    };
    let found = analysis.collective(py, find)?;
    let (trace, kinds) = (&analysis.result.trace, &analysis.result.counters.kinds);
    let counters = all(analysis);
    let value = found.iter().map(|bin| {
        let is_level = matches!(kinds[bin.counter as usize], Kind::Level { .. } | Kind::Samples);
        bin.value * counters[bin.counter as usize].factor() * if is_level { 1.0 } else { trace.resolution as f64 }
    });
    Table::new(vec![
        ("counter", Arc::new(UInt32Array::from_iter_values(found.iter().map(|bin| bin.counter)))),
        ("location", Arc::new(UInt32Array::from_iter_values(found.iter().map(|bin| bin.location.number())))),
        ("bin", Arc::new(UInt32Array::from_iter_values(found.iter().map(|bin| bin.bin)))),
        ("value", Arc::new(Float64Array::from_iter_values(value))),
    ])
}

/// The instances of a call path.
pub(crate) fn instances(analysis: &Analysis, py: Python<'_>, callpath: u32) -> PyResult<Table> {
    let find = move |result: &CoreAnalysis| whywait_core::counters::instances(&result.trace, CallPathId::new(callpath));
    let found = analysis.collective(py, find)?;
    let begin = analysis.begin();
    let seconds = |time: fn(&Stretch) -> i64| {
        Arc::new(Float64Array::from_iter_values(found.iter().map(|one| analysis.seconds(time(one) - begin))))
    };
    Table::new(vec![
        ("location", Arc::new(UInt32Array::from_iter_values(found.iter().map(|one| one.location.number())))),
        ("enter", seconds(|one| one.begin)),
        ("leave", seconds(|one| one.end)),
    ])
}

/// Totals of all counters in a window.
pub(crate) fn window(analysis: &Analysis, py: Python<'_>, begin: f64, end: f64) -> PyResult<Table> {
    let window = analysis.tick(begin)..analysis.tick(end);
    let find = move |result: &CoreAnalysis| {
        whywait_core::counters::window(result.trace.reread(), &result.counters.kinds, &window)
    };
    cells(analysis, &analysis.collective(py, find)?)
}
