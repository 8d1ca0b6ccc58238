//! The account of all time as tables.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use whywait_core::account::{Account, DeviceRow, Group, Row};

use crate::analysis::Analysis;
use crate::arrow::Table;
use crate::rows::Rows;

/// The cells of an account: row, call path (null outside of all), location, time, excess (s), calls.
pub(crate) fn cells(analysis: &Analysis, account: &Account) -> PyResult<Table> {
    Rows::of(&account.cells)
        .names("row", |cell| cell.row.name())
        .column("callpath", |cell| cell.callpath.known())
        .column("location", |cell| cell.location.number())
        .column("time", |cell| analysis.seconds(cell.ticks))
        .column("excess", |cell| analysis.seconds(cell.excess))
        .column("calls", |cell| cell.calls)
        .finish()
}

/// The cells of the account of a window; bounds in seconds since the begin of the trace.
pub(crate) fn window(analysis: &Analysis, py: Python<'_>, (begin, end): (f64, f64)) -> PyResult<Table> {
    let window = analysis.tick(begin)..analysis.tick(end);
    let found = analysis.collective(py, move |result| result.account_within(&window))?;
    cells(analysis, &found)
}

/// What takes longer in a window while others use the same resource; bounds in seconds since the begin of the trace.
pub(crate) fn sharing(analysis: &Analysis, py: Python<'_>, (begin, end): (f64, f64)) -> PyResult<Table> {
    let window = analysis.tick(begin)..analysis.tick(end);
    let found = analysis.collective(py, move |result| result.sharing(&window))?;
    Rows::of(&found)
        .names("resource", |one| one.resource.name())
        .column("callpath", |one| one.callpath.known())
        .column("location", |one| one.location.number())
        .column("samples", |one| one.samples)
        .column("others_quiet", |one| one.others[0])
        .column("others_crowded", |one| one.others[1])
        .column("ratio", |one| one.ratio)
        .column("r", |one| one.r)
        .column("excess", |one| analysis.seconds(one.excess))
        .finish()
}

/// What calls need, by kind.
pub(crate) fn network(analysis: &Analysis) -> PyResult<Table> {
    let trace = &analysis.result.trace;
    let definitions = trace.records();
    Rows::of(&analysis.result.account.network)
        .column("region", |of_kind| trace.regions.name(definitions, of_kind.floor.kind.region))
        .column("bytes_from", |of_kind| of_kind.floor.kind.bytes().0)
        .column("bytes_below", |of_kind| of_kind.floor.kind.bytes().1)
        .column("local", |of_kind| of_kind.floor.kind.local)
        .column("members", |of_kind| match of_kind.floor.kind.members {
            0 => 0u32,
            log => 1 << log.min(31),
        })
        .column("exposed", |of_kind| of_kind.floor.kind.exposed)
        .column("calls", |of_kind| of_kind.floor.calls)
        .column("floor", |of_kind| {
            Some(of_kind.floor.floor).filter(|&floor| floor < i64::MAX).map(|floor| analysis.seconds(floor))
        })
        .column("median", |of_kind| analysis.seconds(of_kind.floor.median))
        .column("q95", |of_kind| analysis.seconds(of_kind.floor.high))
        .column("needed", |of_kind| analysis.seconds(of_kind.needed))
        .column("excess", |of_kind| analysis.seconds(of_kind.excess))
        .names("basis", |of_kind| of_kind.floor.basis.name())
        .finish()
}

/// The account of devices: device (its name, or that of its first stream), row, call path of the host (or null), time (s).
pub(crate) fn devices(analysis: &Analysis) -> PyResult<Table> {
    let names = analysis.result.devices.names(&analysis.result.trace);
    Rows::of(&analysis.result.account.devices)
        .column("device", |cell| names.get(&cell.device).map(String::as_str))
        .names("row", |cell| cell.row.name())
        .column("callpath", |cell| cell.callpath.known())
        .column("time", |cell| analysis.seconds(cell.ticks))
        .finish()
}

/// The rows of the account of devices, in the order in which they are shown: name, label, description.
#[pyfunction]
pub(crate) fn device_rows() -> Vec<(&'static str, &'static str, &'static str)> {
    DeviceRow::ALL.iter().map(|row| (row.name(), row.label(), row.description())).collect()
}

/// The rows of the account with their groups, in the order in which they are shown.
#[pyfunction]
pub(crate) fn account_rows(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let rows = PyList::empty(py);
    for row in Row::all() {
        let one = PyDict::new(py);
        one.set_item("name", row.name())?;
        one.set_item("label", row.label())?;
        one.set_item("description", row.description().replace('`', ""))?;
        one.set_item("group", row.group().name())?;
        one.set_item("is_lost", row.is_lost())?;
        rows.append(one)?;
    }
    Ok(rows)
}

/// The groups of rows, in the order in which they are shown: name, label, description.
#[pyfunction]
pub(crate) fn account_groups() -> Vec<(&'static str, &'static str, &'static str)> {
    Group::ALL.iter().map(|group| (group.name(), group.label(), group.description())).collect()
}
