//! Paraver's traces: what is known of them.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use whywait_paraver::Facts;

/// What is known of a trace besides events.
pub(crate) fn facts<'py>(py: Python<'py>, facts: &Facts) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    all.set_item("tasks", facts.tasks.clone())?;
    all.set_item("history", facts.history.clone())?;
    all.set_item("cut", facts.cut.map(|cut| cut.to_vec()))?;
    all.set_item("callers", facts.callers)?;
    all.set_item("counters", facts.counters.clone())?;
    all.set_item("has_functions", facts.has_functions)?;
    all.set_item("has_mpi", facts.has_mpi)?;
    all.set_item("messages", facts.messages)?;
    all.set_item("operations", facts.operations)?;
    all.set_item("inferred", facts.inferred)?;
    all.set_item("records", facts.records)?;
    Ok(all)
}
