//! What was done with files, as a table.

use pyo3::prelude::*;
use whywait_core::ids::NONE;
use whywait_core::io::IoCell;

use crate::analysis::Analysis;
use crate::arrow::Table;
use crate::rows::Rows;

/// Sums by file, paradigm, kind of use, call path (null outside of all) and location.
pub(crate) fn cells(analysis: &Analysis) -> PyResult<Table> {
    let definitions = analysis.result.trace.records();
    let cells: &[IoCell] = &analysis.result.io;
    let text = |id: u32| (id != NONE).then(|| definitions.string(id));
    Rows::of(cells)
        .column("file", |cell| text(cell.key.file))
        .column("paradigm", |cell| text(cell.key.paradigm))
        .names("operation", |cell| cell.key.kind.name())
        .column("nested", |cell| cell.key.is_nested)
        .column("callpath", |cell| cell.key.callpath.known())
        .column("location", |cell| cell.key.location.number())
        .column("count", |cell| cell.sums.count)
        .column("incomplete", |cell| cell.sums.incomplete)
        .column("bytes", |cell| cell.sums.bytes)
        .column("time", |cell| analysis.seconds(cell.sums.time))
        .column("in_calls", |cell| analysis.seconds(cell.sums.in_calls))
        .finish()
}
