//! What was done with files, as a table.

use std::sync::Arc;

use arrow_array::{BooleanArray, Float64Array, StringArray, UInt32Array, UInt64Array};
use pyo3::prelude::*;
use whywait_core::ids::NONE;
use whywait_core::io::{IoCell, Key, Sums};

use crate::analysis::Analysis;
use crate::arrow::{Names, Table};

/// Sums by file, paradigm, kind of use, call path (null outside of all) and location.
pub(crate) fn cells(analysis: &Analysis) -> PyResult<Table> {
    let definitions = analysis.result.trace.records();
    let cells: &[IoCell] = &analysis.result.io;
    let text = |get: fn(&Key) -> u32| {
        let names = cells.iter().map(|cell| Some(get(&cell.key)).filter(|&id| id != NONE));
        Arc::new(names.map(|id| id.map(|id| definitions.string(id))).collect::<StringArray>())
    };
    let counts =
        |get: fn(&Sums) -> u64| Arc::new(UInt64Array::from_iter_values(cells.iter().map(|cell| get(&cell.sums))));
    let seconds = |get: fn(&Sums) -> i64| {
        Arc::new(Float64Array::from_iter_values(cells.iter().map(|cell| analysis.seconds(get(&cell.sums)))))
    };
    let mut kinds = Names::with_capacity(cells.len());
    for cell in cells {
        kinds.push(cell.key.kind.name());
    }
    Table::new(vec![
        ("file", text(|key| key.file)),
        ("paradigm", text(|key| key.paradigm)),
        ("operation", kinds.finish()),
        ("nested", Arc::new(cells.iter().map(|cell| Some(cell.key.is_nested)).collect::<BooleanArray>())),
        ("callpath", Arc::new(cells.iter().map(|cell| cell.key.callpath.known()).collect::<UInt32Array>())),
        ("location", Arc::new(UInt32Array::from_iter_values(cells.iter().map(|cell| cell.key.location.number())))),
        ("count", counts(|sums| sums.count)),
        ("incomplete", counts(|sums| sums.incomplete)),
        ("bytes", counts(|sums| sums.bytes)),
        ("time", seconds(|sums| sums.time)),
        ("in_calls", seconds(|sums| sums.in_calls)),
    ])
}
