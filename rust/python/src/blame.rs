//! Finds the main cause of waiting at each call path, from a table of wait states.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt16Type, UInt32Type};
use arrow_array::{Array, ArrayRef, Float64Array, Int32Array, RecordBatch, UInt32Array, UInt64Array};
use pyo3::prelude::*;
use whywait_core::query::blame::{Blame, Wait};

use crate::arrow::Table;
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
    let causes = || places.iter().map(|place| place.cause);
    Table::new(vec![
        ("kind", Arc::new(UInt32Array::from_iter_values(places.iter().map(|place| place.kind)))),
        ("callpath", Arc::new(UInt32Array::from_iter_values(places.iter().map(|place| place.callpath)))),
        ("instances", Arc::new(UInt64Array::from_iter_values(places.iter().map(|place| place.instances)))),
        ("waiting", Arc::new(Float64Array::from_iter_values(places.iter().map(|place| place.waiting)))),
        (
            "cause_callpath",
            Arc::new(causes().map(|it| it.and_then(|it| it.callpath)).collect::<UInt32Array>()) as ArrayRef,
        ),
        ("cause_rank", Arc::new(causes().map(|it| it.map(|it| it.rank)).collect::<Int32Array>())),
        ("cause_waiting", Arc::new(causes().map(|it| it.map(|it| it.waiting)).collect::<Float64Array>())),
    ])
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
