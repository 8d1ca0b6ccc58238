//! The timeline of a report.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use whywait_core::export::calls::{self, Call};
use whywait_core::export::timeline::{Arrow, Request, build};
use whywait_core::ids::LocationId;
use whywait_core::schema::Metric;
use whywait_core::trace::Trace;

use crate::analysis::Analysis;
use crate::arrow::Table;
use crate::errors::UsageError;
use crate::rows::Rows;

/// The calls of some locations that overlap a window, in seconds since the begin of the trace, and about how many there
/// are; none if there are more than `most`.
#[pyfunction]
#[pyo3(signature = (analysis, *, locations, begin, end, most))]
pub(crate) fn timeline_calls(
    py: Python<'_>,
    analysis: &Bound<'_, Analysis>,
    locations: Vec<u32>,
    begin: f64,
    end: f64,
    most: usize,
) -> PyResult<(Table, u64)> {
    let analysis = analysis.get();
    if locations.iter().any(|&location| location as usize >= analysis.result.trace.definitions.locations.len()) {
        return Err(UsageError::new_err("there is no such location"));
    }
    let locations: Vec<LocationId> = locations.into_iter().map(|location| LocationId::at(location as usize)).collect();
    let window = analysis.tick(begin)..analysis.tick(end);
    let found = analysis.collective(py, move |result| calls::within(&result.trace, &locations, &window, most))?;
    Ok((calls_table(&analysis.result.trace, &found.rows)?, found.total))
}

fn calls_table(trace: &Trace, calls: &[Call]) -> PyResult<Table> {
    let begin = trace.span().map_or(0, |(first, _)| first);
    let at = |time: i64| (time - begin) as f64 / trace.resolution as f64;
    Rows::of(calls)
        .column("location", |call| call.location.number())
        .column("callpath", |call| call.callpath.number())
        .column("enter", |call| at(call.enter))
        .column("leave", |call| at(call.leave))
        .column("is_management", |call| call.is_management)
        .finish()
}

/// Builds a timeline: shares of classes by time and location, and individual calls,
/// waits, messages, transfers, tasks that start elsewhere, and times in which locks are owned.
///
/// `class_of` holds the class of each call path, less than `classes`, and `management` that of managing teams of threads.
/// The next class is waiting, given by the metrics `waiting`.
#[pyfunction]
#[pyo3(signature = (analysis, *, class_of, classes, management, waiting, cells, calls, most))]
#[expect(clippy::too_many_arguments, reason = "they are named where it is called")]
pub(crate) fn timeline<'py>(
    py: Python<'py>,
    analysis: Bound<'py, Analysis>,
    class_of: Vec<u8>,
    classes: u8,
    management: u8,
    waiting: Vec<String>,
    cells: usize,
    calls: usize,
    most: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let trace = &analysis.get().result.trace;
    if class_of.len() < trace.tree.len() || class_of.iter().chain([&management]).any(|&class| class >= classes) {
        return Err(UsageError::new_err("each call path needs one of the classes"));
    }
    let is_waiting = |metric: &&Metric| waiting.iter().any(|name| name == metric.name());
    let waiting = Metric::ALL.iter().filter(is_waiting).copied().collect();
    let request = Request { class_of, classes, management, waiting, cells, calls, most };
    let found = analysis.get().collective_until(py, move |result, progress| build(result, &request, progress))?;

    let begin = trace.span().map_or(0, |(first, _)| first);
    let seconds = |ticks: i64| ticks as f64 / trace.resolution as f64;
    let at = |time: i64| seconds(time - begin);
    let mut levels = Vec::with_capacity(found.levels.len());
    for level in &found.levels {
        let one = PyDict::new(py);
        one.set_item("merged", level.merged)?;
        one.set_item("rows", level.rows)?;
        one.set_item("bins", level.bins)?;
        one.set_item("width", seconds(level.width))?;
        one.set_item("shares", PyBytes::new(py, &level.shares))?;
        levels.push(one);
    }
    let calls = calls_table(trace, &found.calls.rows)?;
    let waits = Rows::of(&found.waits.rows)
        .column("wait", |wait| wait.number)
        .column("begin", |wait| at(wait.begin))
        .column("end", |wait| at(wait.end))
        .finish()?;
    let locks = Rows::of(&found.locks.rows)
        .column("location", |own| own.location.number())
        .column("lock", |own| own.lock)
        .column("callpath", |own| own.callpath.known())
        .column("begin", |own| at(own.begin))
        .column("end", |own| at(own.end))
        .finish()?;
    let arrows = |arrows: &[Arrow]| {
        Rows::of(arrows)
            .column("from_location", |arrow| arrow.from.number())
            .column("to_location", |arrow| arrow.to.number())
            .column("start", |arrow| at(arrow.start))
            .column("end", |arrow| at(arrow.end))
            .column("bytes", |arrow| arrow.bytes)
            .column("waiting", |arrow| seconds(arrow.waiting))
            .finish()
    };
    let made = PyDict::new(py);
    made.set_item("levels", levels)?;
    for (name, table, total) in [
        ("calls", calls, found.calls.total),
        ("waits", waits, found.waits.total),
        ("messages", arrows(&found.messages.rows)?, found.messages.total),
        ("transfers", arrows(&found.transfers.rows)?, found.transfers.total),
        ("tasks", arrows(&found.tasks.rows)?, found.tasks.total),
        ("locks", locks, found.locks.total),
    ] {
        made.set_item(name, (table, total))?;
    }
    Ok(made)
}
