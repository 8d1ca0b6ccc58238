//! Counters of messages and queues as tables.

use std::sync::Arc;

use arrow_array::{Float64Array, Int64Array, UInt32Array};
use pyo3::prelude::*;
use whywait_core::queues::{Level, Moment, Quantity};
use whywait_core::schema::{QueueMetric, Unit};

use crate::analysis::Analysis;
use crate::arrow::{Names, Optional, Table};

/// Names of all counts.
#[pyfunction]
pub(crate) fn queue_metrics() -> Vec<&'static str> {
    QueueMetric::ALL.iter().map(|metric| metric.name()).collect()
}

/// Names of all levels.
#[pyfunction]
pub(crate) fn queue_levels() -> Vec<&'static str> {
    Quantity::ALL.iter().map(|quantity| quantity.name()).collect()
}

fn all(analysis: &Analysis) -> &[Level] {
    analysis.result.queues.as_ref().map_or(&[], |queues| &queues.levels)
}

/// Every increment of the counts, in order of time.
pub(crate) fn moments(analysis: &Analysis) -> PyResult<Table> {
    let moments = analysis.result.queues.as_ref().map_or(&[][..], |queues| &queues.moments);
    let mut names = Names::default();
    for moment in moments {
        names.push(moment.metric.name());
    }
    let numbers = |get: fn(&Moment) -> u32| Arc::new(UInt32Array::from_iter_values(moments.iter().map(get)));
    let value = |moment: &Moment| match moment.metric.unit() {
        Unit::Time => analysis.seconds(moment.value),
        Unit::Count | Unit::Bytes => moment.value as f64,
    };
    let time = |moment: &Moment| analysis.seconds(moment.time - analysis.begin());
    Table::new(vec![
        ("metric", names.finish()),
        ("callpath", numbers(|moment| moment.callpath.number())),
        ("location", numbers(|moment| moment.location.number())),
        ("time", Arc::new(Float64Array::from_iter_values(moments.iter().map(time)))),
        ("value", Arc::new(Float64Array::from_iter_values(moments.iter().map(value)))),
    ])
}

/// The leading columns of tables of levels.
fn heads<'a>(levels: impl Iterator<Item = &'a Level>) -> (Names, Names, Optional) {
    let (mut names, mut units, mut locations) = (Names::default(), Names::default(), Optional::default());
    for level in levels {
        names.push(level.quantity.name());
        units.push(level.quantity.unit());
        locations.push(level.location.known());
    }
    (names, units, locations)
}

/// Ticks of the whole run.
fn length(analysis: &Analysis) -> i64 {
    analysis.result.trace.span().map_or(0, |(first, last)| last - first)
}

fn mean(integral: i128, ticks: f64) -> f64 {
    if ticks > 0.0 { integral as f64 / ticks } else { 0.0 }
}

/// Maxima and means of levels.
pub(crate) fn levels(analysis: &Analysis) -> PyResult<Table> {
    let levels = all(analysis);
    let (names, units, locations) = heads(levels.iter());
    let length = length(analysis) as f64;
    let time = |level: &Level| analysis.seconds(level.time - analysis.begin());
    Table::new(vec![
        ("metric", names.finish()),
        ("location", locations.finish()),
        ("maximum", Arc::new(Int64Array::from_iter_values(levels.iter().map(|level| level.maximum)))),
        ("time", Arc::new(Float64Array::from_iter_values(levels.iter().map(time)))),
        ("mean", Arc::new(Float64Array::from_iter_values(levels.iter().map(|level| mean(level.integral, length))))),
        ("unit", units.finish()),
    ])
}

/// Maxima and means of levels in bins.
pub(crate) fn series(analysis: &Analysis) -> PyResult<Table> {
    let levels = all(analysis);
    let rows =
        || levels.iter().flat_map(|level| level.bins.iter().enumerate().map(move |(bin, row)| (level, bin, row)));
    let (names, units, locations) = heads(rows().map(|(level, ..)| level));
    let edges = analysis.result.queues.as_ref().map_or(&[][..], |queues| &queues.edges);
    let begin = rows().map(|(_, bin, _)| analysis.seconds(edges[bin] - analysis.begin()));
    let means = rows().map(|(_, bin, (integral, _))| mean(*integral, (edges[bin + 1] - edges[bin]) as f64));
    Table::new(vec![
        ("metric", names.finish()),
        ("location", locations.finish()),
        ("bin", Arc::new(UInt32Array::from_iter_values(rows().map(|(_, bin, _)| bin as u32)))),
        ("begin", Arc::new(Float64Array::from_iter_values(begin))),
        ("mean", Arc::new(Float64Array::from_iter_values(means))),
        ("maximum", Arc::new(Int64Array::from_iter_values(rows().map(|(.., (_, maximum))| *maximum)))),
        ("unit", units.finish()),
    ])
}
