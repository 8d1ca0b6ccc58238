//! Recorded counters as tables.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, StringArray, UInt32Array, UInt64Array};
use pyo3::prelude::*;
use whywait_core::trace::NO_CALLPATH;
use whywait_core::trace::counters::{Counter, CounterCell, Kind};

use crate::analysis::Analysis;
use crate::arrow::{Names, Optional, Table};

fn all(analysis: &Analysis) -> &[Counter] {
    &analysis.result.trace.definitions.counters.all
}

/// What the counters are.
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
            Kind::Level { .. } => "level",
            Kind::Samples => "samples",
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

/// What they come to.
pub(crate) fn cells(analysis: &Analysis) -> PyResult<Table> {
    let (counters, cells) = (all(analysis), &analysis.result.counters.cells);
    let factors: Vec<f64> = counters.iter().map(Counter::factor).collect();
    let resolution = analysis.result.trace.resolution as f64;
    let number = |get: &dyn Fn(&CounterCell) -> f64| -> ArrayRef {
        let scaled = |cell: &CounterCell| get(cell) * factors[cell.counter as usize];
        Arc::new(Float64Array::from_iter_values(cells.iter().map(scaled)))
    };
    let kinds = &analysis.result.counters.kinds;
    // A level is integrated over ticks.
    let amount = |cell: &CounterCell| {
        let is_level = matches!(kinds[cell.counter as usize], Kind::Level { .. });
        cell.sums.amount.value() / if is_level { resolution } else { 1.0 }
    };
    let mut callpaths = Optional::default();
    for cell in cells {
        callpaths.push((cell.callpath != NO_CALLPATH).then_some(cell.callpath));
    }
    let seconds = cells.iter().map(|cell| cell.sums.ticks as f64 / resolution);
    Table::new(vec![
        ("counter", Arc::new(UInt32Array::from_iter_values(cells.iter().map(|cell| cell.counter)))),
        ("callpath", callpaths.finish()),
        ("location", Arc::new(UInt32Array::from_iter_values(cells.iter().map(|cell| cell.location)))),
        ("amount", number(&amount)),
        ("seconds", Arc::new(Float64Array::from_iter_values(seconds))),
        ("sampled", number(&|cell| cell.sums.sampled.value())),
        ("samples", Arc::new(UInt64Array::from_iter_values(cells.iter().map(|cell| cell.sums.samples)))),
        ("minimum", number(&|cell| cell.sums.range.0)),
        ("maximum", number(&|cell| cell.sums.range.1)),
    ])
}
