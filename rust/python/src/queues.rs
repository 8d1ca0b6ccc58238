//! Counters of messages and queues as tables.

use pyo3::prelude::*;
use whywait_core::queues::{Level, Quantity};
use whywait_core::schema::{QueueMetric, Unit};

use crate::analysis::Analysis;
use crate::arrow::Table;
use crate::rows::Rows;

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
    Rows::of(moments)
        .names("metric", |moment| moment.metric.name())
        .column("callpath", |moment| moment.callpath.number())
        .column("location", |moment| moment.location.number())
        .column("time", |moment| analysis.seconds(moment.time - analysis.begin()))
        .column("value", |moment| match moment.metric.unit() {
            Unit::Time => analysis.seconds(moment.value),
            Unit::Count | Unit::Bytes => moment.value as f64,
        })
        .finish()
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
    let length = length(analysis) as f64;
    Rows::of(all(analysis))
        .names("metric", |level| level.quantity.name())
        .column("location", |level| level.location.known().map(i64::from))
        .column("maximum", |level| level.maximum)
        .column("time", |level| analysis.seconds(level.time - analysis.begin()))
        .column("mean", |level| mean(level.integral, length))
        .names("unit", |level| level.quantity.unit())
        .finish()
}

/// Maxima and means of levels in bins.
pub(crate) fn series(analysis: &Analysis) -> PyResult<Table> {
    let levels = all(analysis).iter();
    let rows = levels.flat_map(|level| level.bins.iter().enumerate().map(move |(bin, row)| (level, bin, row)));
    let edges = analysis.result.queues.as_ref().map_or(&[][..], |queues| &queues.edges);
    let width = |bin: usize| (edges[bin + 1] - edges[bin]) as f64;
    Rows::of(rows)
        .names("metric", |(level, ..)| level.quantity.name())
        .column("location", |(level, ..)| level.location.known().map(i64::from))
        .column("bin", |(_, bin, _)| bin as u32)
        .column("begin", |(_, bin, _)| analysis.seconds(edges[bin] - analysis.begin()))
        .column("mean", |(_, bin, &(integral, _))| mean(integral, width(bin)))
        .column("maximum", |(.., &(_, maximum))| maximum)
        .names("unit", |(level, ..)| level.quantity.unit())
        .finish()
}
