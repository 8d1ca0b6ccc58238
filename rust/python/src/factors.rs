//! The factors of wait states as tables.

use std::sync::Arc;

use arrow_array::builder::Float64Builder;
use arrow_array::{ArrayRef, BooleanArray, Float64Array, UInt32Array};
use pyo3::prelude::*;
use whywait_core::causes::factors::{Factor, Side, WaitIntervals};
use whywait_core::trace::NONE;

use crate::analysis::Analysis;
use crate::arrow::{Names, Optional, Table};

/// The compared intervals of waits, and the factors in them.
pub(crate) fn tables(analysis: &Analysis, py: Python<'_>, rows: Vec<u32>) -> PyResult<(Table, Table)> {
    let found = analysis.collective(py, move |result| result.factors(&rows))?;
    Ok((intervals(analysis, &found.intervals)?, factors(analysis, &found.factors)?))
}

fn intervals(analysis: &Analysis, rows: &[WaitIntervals]) -> PyResult<Table> {
    let waits = rows.iter().map(|row| row.wait);
    let contends = rows.iter().map(|row| Some(row.is_contention));
    let times = |ticks: fn(&WaitIntervals) -> i64| -> ArrayRef {
        Arc::new(Float64Array::from_iter_values(rows.iter().map(|row| analysis.seconds(ticks(row)))))
    };
    let mut columns: Vec<(&str, ArrayRef)> = vec![
        ("wait", Arc::new(UInt32Array::from_iter_values(waits))),
        ("contention", Arc::new(contends.collect::<BooleanArray>())),
    ];
    let waiter = "waiter_location waiter_begin waiter_end waiter_sync_callpath waiter_sync_time waiter_completion";
    let cause = "cause_location cause_begin cause_end cause_sync_callpath cause_sync_time cause_completion";
    columns.extend(waiter.split(' ').zip(side(analysis, rows.iter().map(|row| &row.waiter))));
    columns.extend(cause.split(' ').zip(side(analysis, rows.iter().map(|row| &row.cause))));
    columns.extend([
        ("delay", times(|row| row.delay)),
        ("cause_waiting", times(|row| row.waiting)),
        ("unexplained", times(|row| row.unexplained)),
    ]);
    Table::new(columns)
}

/// Columns of one side: location, begin, end, call path and Enter of the last synchronization, and its completion.
fn side<'a>(analysis: &Analysis, sides: impl Iterator<Item = &'a Side> + Clone) -> [ArrayRef; 6] {
    let begin = analysis.begin();
    let mut callpaths = Optional::default();
    let mut enters = Float64Builder::new();
    for side in sides.clone() {
        callpaths.push(side.last_sync.map(|(callpath, _)| callpath.number()));
        enters.append_option(side.last_sync.map(|(_, enter)| analysis.seconds(enter - begin)));
    }
    let times = |ticks: fn(&Side) -> i64, since: i64| -> ArrayRef {
        Arc::new(Float64Array::from_iter_values(sides.clone().map(|side| analysis.seconds(ticks(side) - since))))
    };
    [
        Arc::new(UInt32Array::from_iter_values(sides.clone().map(|side| side.location.number()))),
        times(|side| side.begin, begin),
        times(|side| side.end, begin),
        callpaths.finish(),
        Arc::new(enters.finish()),
        times(|side| side.completion, 0),
    ]
}

fn factors(analysis: &Analysis, factors: &[Factor]) -> PyResult<Table> {
    let resolution = analysis.result.trace.resolution as f64;
    let mut kinds = Names::default();
    let mut earlier = Optional::default();
    for factor in factors {
        kinds.push(factor.kind.name());
        earlier.push((factor.earlier != NONE).then_some(factor.earlier));
    }
    let number = |number: fn(&Factor) -> u32| -> ArrayRef {
        Arc::new(UInt32Array::from_iter_values(factors.iter().map(number)))
    };
    let seconds = |ticks: fn(&Factor) -> f64| -> ArrayRef {
        Arc::new(Float64Array::from_iter_values(factors.iter().map(|factor| ticks(factor) / resolution)))
    };
    Table::new(vec![
        ("wait", number(|factor| factor.wait)),
        ("kind", kinds.finish()),
        ("location", number(|factor| factor.location.number())),
        ("callpath", number(|factor| factor.callpath.number())),
        ("time", seconds(|factor| factor.ticks as f64)),
        ("waiter_time", seconds(|factor| factor.waiter_ticks as f64)),
        ("earlier", earlier.finish()),
        ("share", seconds(|factor| factor.share)),
    ])
}
