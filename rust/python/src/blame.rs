//! Finds the main cause of waiting at each call path, from a table of wait states.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt16Type, UInt32Type};
use arrow_array::{Array, RecordBatch};
use pyo3::prelude::*;
use whywait_core::query::blame::{Blame, Wait};

use crate::arrow::Table;
use crate::rows::Rows;
use crate::waits::fold;

/// Sums wait states at some call paths by kind and call path, with the main cause of each.
///
/// `waits` has `kind` (a number), `callpath`, `enter`, `leave`, `waiting`, `cause_callpath` and `cause_location`;
/// `ranks` are those of the locations. With a window, in seconds, only calls that overlap it count.
#[pyfunction]
#[pyo3(signature = (waits, ranks, callpaths, window = None))]
pub(crate) fn blame(
    py: Python<'_>,
    waits: Bound<'_, PyAny>,
    ranks: Vec<i32>,
    callpaths: Vec<u32>,
    window: Option<(f64, f64)>,
) -> PyResult<Table> {
    let mut wanted = vec![false; callpaths.iter().max().map_or(0, |&most| most as usize + 1)];
    for callpath in callpaths {
        wanted[callpath as usize] = true;
    }
    let places =
        fold(py, &waits, |_, batch| of(batch, &ranks, &wanted, window), Blame::with)?.unwrap_or_default().places();
    Rows::of(&places)
        .column("kind", |place| place.kind)
        .column("callpath", |place| place.callpath)
        .column("instances", |place| place.instances)
        .column("waiting", |place| place.waiting)
        .column("cause_callpath", |place| place.cause.and_then(|cause| cause.callpath))
        .column("cause_rank", |place| place.cause.map(|cause| cause.rank))
        .column("cause_waiting", |place| place.cause.map(|cause| cause.waiting))
        .finish()
}

/// The sums of a batch; `None` if it has other columns.
fn of(batch: &RecordBatch, ranks: &[i32], wanted: &[bool], window: Option<(f64, f64)>) -> Option<Blame> {
    let mut blame = Blame::default();
    let kinds = batch.column_by_name("kind")?.as_primitive_opt::<UInt16Type>()?.values();
    let causes = |name| batch.column_by_name(name)?.as_primitive_opt::<UInt32Type>();
    let seconds = |name| Some(batch.column_by_name(name)?.as_primitive_opt::<Float64Type>()?.values());
    let (enter, leave, waiting) = (seconds("enter")?, seconds("leave")?, seconds("waiting")?);
    let callpaths = batch.column_by_name("callpath")?.as_primitive_opt::<UInt32Type>()?.values();
    let (cause_callpaths, causes) = (causes("cause_callpath")?, causes("cause_location")?);
    for (row, &callpath) in callpaths.iter().enumerate() {
        let inside = window.is_none_or(|(begin, end)| enter[row] < end && leave[row] > begin);
        if !inside || !wanted.get(callpath as usize).is_some_and(|&wanted| wanted) {
            continue;
        }
        let cause = causes.is_valid(row).then(|| ranks.get(causes.value(row) as usize)).flatten();
        let cause_callpath = cause_callpaths.is_valid(row).then(|| cause_callpaths.value(row));
        blame.add(Wait {
            kind: kinds[row].into(),
            callpath,
            waiting: waiting[row],
            cause: cause.map(|&rank| (rank, cause_callpath)),
        });
    }
    Some(blame)
}
