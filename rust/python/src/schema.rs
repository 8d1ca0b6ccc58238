//! The schema of the core for Python.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use whywait_core::schema::tables::Type;
use whywait_core::schema::{Class, CostMetric, Metric, Pattern, Table};

/// Unique names of the metrics whose values the analysis computes.
#[pyfunction]
pub(crate) fn stored_metrics() -> Vec<&'static str> {
    let measured = Metric::ALL.iter().map(|metric| metric.name());
    measured.chain(CostMetric::ALL.iter().map(|metric| metric.name())).collect()
}

/// All patterns, in the order of their declaration.
#[pyfunction]
pub(crate) fn patterns(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let rows = PyList::empty(py);
    for pattern in Pattern::ALL {
        let row = PyDict::new(py);
        row.set_item("kind", pattern.kind.name())?;
        row.set_item("display_name", pattern.display_name)?;
        row.set_item("below", pattern.below)?;
        // Backticks are for Rust's documentation only.
        row.set_item("description", pattern.kind.description().replace('`', ""))?;
        row.set_item("waits_for", pattern.waits_for)?;
        row.set_item("look_at", pattern.look_at)?;
        row.set_item("paradigm", pattern.paradigm().name())?;
        row.set_item("cost_class", pattern.class.map(Class::name))?;
        row.set_item("part_of", pattern.part_of.map(Metric::name))?;
        row.set_item("is_bound", pattern.is_bound)?;
        row.set_item("is_completion", pattern.position.is_completion())?;
        row.set_item("is_idle", pattern.position.is_idle())?;
        row.set_item("is_balanced_away", pattern.is_balanced_away)?;
        row.set_item("document", pattern.document)?;
        row.set_item("source", pattern.source)?;
        rows.append(row)?;
    }
    Ok(rows)
}

/// Cost classes with their metrics.
#[pyfunction]
pub(crate) fn cost_classes(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let rows = PyList::empty(py);
    for class in Class::WITH_COSTS {
        let row = PyDict::new(py);
        row.set_item("name", class.name())?;
        row.set_item("short_term", class.short_term().name())?;
        row.set_item("long_term", class.long_term().name())?;
        row.set_item("indirect", class.indirect().map(CostMetric::name))?;
        row.set_item("propagating", class.propagating().map(CostMetric::name))?;
        row.set_item("is_known_to_scalasca", class.is_known_to_scalasca())?;
        rows.append(row)?;
    }
    Ok(rows)
}

/// The tables of a result, with their columns.
#[pyfunction]
pub(crate) fn tables(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let rows = PyList::empty(py);
    for table in Table::ALL {
        let columns = PyList::empty(py);
        for column in table.columns {
            let one = PyDict::new(py);
            one.set_item("name", column.name)?;
            one.set_item("type", column.kind.name())?;
            one.set_item("is_name", column.kind == Type::Name)?;
            one.set_item("is_joined", column.is_joined)?;
            one.set_item("unit", column.unit)?;
            one.set_item("meaning", column.meaning)?;
            columns.append(one)?;
        }
        let row = PyDict::new(py);
        row.set_item("name", table.name)?;
        row.set_item("is_stored", table.is_stored)?;
        row.set_item("methods", PyList::new(py, table.methods)?)?;
        row.set_item("row", table.row)?;
        row.set_item("columns", columns)?;
        rows.append(row)?;
    }
    Ok(rows)
}
