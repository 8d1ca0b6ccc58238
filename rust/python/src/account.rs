//! The account of all time as tables.

use std::sync::Arc;

use arrow_array::{BooleanArray, Float64Array, UInt32Array, UInt64Array};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use whywait_core::account::{Account, DeviceRow, Group, Network, Row, Sharing};

use crate::analysis::Analysis;
use crate::arrow::{Names, Table};

/// The cells of an account: row, call path (null outside of all), location, time, excess (s), calls.
pub(crate) fn cells(analysis: &Analysis, account: &Account) -> PyResult<Table> {
    let cells = &account.cells;
    let mut rows = Names::with_capacity(cells.len());
    for cell in cells {
        rows.push(cell.row.name());
    }
    let seconds = |ticks: i64| analysis.seconds(ticks);
    Table::new(vec![
        ("row", rows.finish()),
        ("callpath", Arc::new(cells.iter().map(|cell| cell.callpath.known()).collect::<UInt32Array>())),
        ("location", Arc::new(UInt32Array::from_iter_values(cells.iter().map(|cell| cell.location.number())))),
        ("time", Arc::new(Float64Array::from_iter_values(cells.iter().map(|cell| seconds(cell.ticks))))),
        ("excess", Arc::new(Float64Array::from_iter_values(cells.iter().map(|cell| seconds(cell.excess))))),
        ("calls", Arc::new(UInt64Array::from_iter_values(cells.iter().map(|cell| cell.calls)))),
    ])
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
    let floats = |value: fn(&Sharing) -> f64| Arc::new(Float64Array::from_iter_values(found.iter().map(value)));
    let mut resources = Names::with_capacity(found.len());
    for one in &found {
        resources.push(one.resource.name());
    }
    Table::new(vec![
        ("resource", resources.finish()),
        ("callpath", Arc::new(found.iter().map(|one| one.callpath.known()).collect::<UInt32Array>())),
        ("location", Arc::new(UInt32Array::from_iter_values(found.iter().map(|one| one.location.number())))),
        ("samples", Arc::new(UInt64Array::from_iter_values(found.iter().map(|one| one.samples)))),
        ("others_quiet", floats(|one| one.others[0])),
        ("others_crowded", floats(|one| one.others[1])),
        ("ratio", floats(|one| one.ratio)),
        ("r", floats(|one| one.r)),
        ("excess", Arc::new(Float64Array::from_iter_values(found.iter().map(|one| analysis.seconds(one.excess))))),
    ])
}

/// What calls need, by kind.
pub(crate) fn network(analysis: &Analysis) -> PyResult<Table> {
    let trace = &analysis.result.trace;
    let definitions = trace.records();
    let all = &analysis.result.account.network;
    let column = |value: fn(&Network) -> i64| {
        let seconds = |of_kind: &Network| analysis.seconds(value(of_kind));
        Arc::new(Float64Array::from_iter_values(all.iter().map(seconds)))
    };
    let mut basis = Names::with_capacity(all.len());
    for of_kind in all {
        basis.push(of_kind.floor.basis.name());
    }
    let names = all.iter().map(|of_kind| Some(trace.regions.name(definitions, of_kind.floor.kind.region)));
    let bytes = |end: fn((u64, u64)) -> u64| {
        Arc::new(UInt64Array::from_iter_values(all.iter().map(|of_kind| end(of_kind.floor.kind.bytes()))))
    };
    let members = all.iter().map(|of_kind| match of_kind.floor.kind.members {
        0 => 0,
        log => 1 << log.min(31),
    });
    let floors = all.iter().map(|of_kind| Some(of_kind.floor.floor).filter(|&floor| floor < i64::MAX));
    Table::new(vec![
        ("region", Arc::new(names.collect::<arrow_array::StringArray>())),
        ("bytes_from", bytes(|(from, _)| from)),
        ("bytes_below", bytes(|(_, below)| below)),
        ("local", Arc::new(all.iter().map(|of_kind| Some(of_kind.floor.kind.local)).collect::<BooleanArray>())),
        ("members", Arc::new(UInt32Array::from_iter_values(members))),
        ("exposed", Arc::new(all.iter().map(|of_kind| Some(of_kind.floor.kind.exposed)).collect::<BooleanArray>())),
        ("calls", Arc::new(UInt64Array::from_iter_values(all.iter().map(|of_kind| of_kind.floor.calls)))),
        ("floor", Arc::new(floors.map(|floor| floor.map(|floor| analysis.seconds(floor))).collect::<Float64Array>())),
        ("median", column(|of_kind| of_kind.floor.median)),
        ("q95", column(|of_kind| of_kind.floor.high)),
        ("needed", column(|of_kind| of_kind.needed)),
        ("excess", column(|of_kind| of_kind.excess)),
        ("basis", basis.finish()),
    ])
}

/// The account of devices: device (its name, or that of its first stream), row, call path of the host (or null), time (s).
pub(crate) fn devices(analysis: &Analysis) -> PyResult<Table> {
    let cells = &analysis.result.account.devices;
    let names = analysis.result.devices.names(&analysis.result.trace);
    let mut rows = Names::with_capacity(cells.len());
    for cell in cells {
        rows.push(cell.row.name());
    }
    let names = cells.iter().map(|cell| names.get(&cell.device));
    Table::new(vec![
        ("device", Arc::new(names.collect::<arrow_array::StringArray>())),
        ("row", rows.finish()),
        ("callpath", Arc::new(cells.iter().map(|cell| cell.callpath.known()).collect::<UInt32Array>())),
        ("time", Arc::new(Float64Array::from_iter_values(cells.iter().map(|cell| analysis.seconds(cell.ticks))))),
    ])
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
