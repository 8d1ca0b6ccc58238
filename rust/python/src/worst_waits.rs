//! Selects the wait states that a report shows one by one, from a table of wait states.

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt16Type, UInt32Type};
use pyo3::prelude::*;
use whywait_core::query::worst_waits::{Wait, WorstWaits};

use crate::arrow::Table;
use crate::rows::Rows;
use crate::waits::fold;

/// The rows of the worst wait states, the longest first, at most `limit`; and all kinds and call paths with the number of
/// their wait states.
///
/// `waits` has `kind` (a number), `callpath`, `location` and `waiting`.
#[pyfunction]
pub(crate) fn worst_waits(py: Python<'_>, waits: Bound<'_, PyAny>, limit: usize) -> PyResult<(Table, Table)> {
    let (rows, places) = fold(py, &waits, |first, batch| of(first, batch, limit), WorstWaits::with)?
        .unwrap_or_else(|| WorstWaits::new(limit))
        .worst();
    let rows = Rows::of(&rows).column("row", |&row| row as u64).finish()?;
    let places = Rows::of(&places)
        .column("kind", |place| place.kind)
        .column("callpath", |place| place.callpath)
        .column("count", |place| place.count)
        .finish()?;
    Ok((rows, places))
}

/// The worst of a batch that begins at a row; `None` if it has other columns.
fn of(first: usize, batch: &RecordBatch, limit: usize) -> Option<WorstWaits> {
    let mut worst = WorstWaits::new(limit);
    let kinds = batch.column_by_name("kind")?.as_primitive_opt::<UInt16Type>()?.values();
    let numbers = |name| Some(batch.column_by_name(name)?.as_primitive_opt::<UInt32Type>()?.values());
    let (callpaths, locations) = (numbers("callpath")?, numbers("location")?);
    let waiting = batch.column_by_name("waiting")?.as_primitive_opt::<Float64Type>()?.values();
    for (row, &waiting) in waiting.iter().enumerate() {
        let wait = Wait { kind: kinds[row].into(), callpath: callpaths[row], location: locations[row], waiting };
        worst.add(first + row, wait);
    }
    Some(worst)
}
