//! The factors of wait states as tables.

use pyo3::prelude::*;
use whywait_core::causes::factors::{Factor, Side, WaitIntervals};
use whywait_core::trace::NONE;

use crate::analysis::Analysis;
use crate::arrow::Table;
use crate::rows::Rows;

/// The columns of the location that waits, and of the one that it waits for: location, begin, end, call path and Enter of the
/// last synchronization, and its completion.
const WAITER: [&str; 6] =
    ["waiter_location", "waiter_begin", "waiter_end", "waiter_sync_callpath", "waiter_sync_time", "waiter_completion"];
const CAUSE: [&str; 6] =
    ["cause_location", "cause_begin", "cause_end", "cause_sync_callpath", "cause_sync_time", "cause_completion"];

/// The compared intervals of waits, and the factors in them.
pub(crate) fn tables(analysis: &Analysis, py: Python<'_>, rows: Vec<u32>) -> PyResult<(Table, Table)> {
    let found = analysis.collective(py, move |result| result.factors(&rows))?;
    Ok((intervals(analysis, &found.intervals)?, factors(analysis, &found.factors)?))
}

fn intervals(analysis: &Analysis, rows: &[WaitIntervals]) -> PyResult<Table> {
    let begin = analysis.begin();
    let side = |table: Rows<_>, names: [&'static str; 6], of: fn(&WaitIntervals) -> &Side| {
        let [location, from, to, callpath, enter, completion] = names;
        table
            .column(location, |row| of(row).location.number())
            .column(from, |row| analysis.seconds(of(row).begin - begin))
            .column(to, |row| analysis.seconds(of(row).end - begin))
            .column(callpath, |row| of(row).last_sync.map(|(callpath, _)| i64::from(callpath.number())))
            .column(enter, |row| of(row).last_sync.map(|(_, enter)| analysis.seconds(enter - begin)))
            .column(completion, |row| analysis.seconds(of(row).completion))
    };
    let table = Rows::of(rows).column("wait", |row| row.wait).column("contention", |row| row.is_contention);
    let table = side(table, WAITER, |row| &row.waiter);
    side(table, CAUSE, |row| &row.cause)
        .column("delay", |row| analysis.seconds(row.delay))
        .column("cause_waiting", |row| analysis.seconds(row.waiting))
        .column("unexplained", |row| analysis.seconds(row.unexplained))
        .finish()
}

fn factors(analysis: &Analysis, factors: &[Factor]) -> PyResult<Table> {
    let resolution = analysis.result.trace.resolution as f64;
    Rows::of(factors)
        .column("wait", |factor| factor.wait)
        .names("kind", |factor| factor.kind.name())
        .column("location", |factor| factor.location.number())
        .column("callpath", |factor| factor.callpath.number())
        .column("time", |factor| analysis.seconds(factor.ticks))
        .column("waiter_time", |factor| analysis.seconds(factor.waiter_ticks))
        .column("earlier", |factor| (factor.earlier != NONE).then(|| i64::from(factor.earlier)))
        .column("share", |factor| factor.share / resolution)
        .finish()
}
