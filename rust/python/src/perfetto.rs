//! A run as a trace for Perfetto.

use std::collections::HashMap;
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use whywait_core::analysis::Analysis as CoreAnalysis;
use whywait_core::export::perfetto::write;
use whywait_core::queues::Quantity;
use whywait_core::schema::Metric;
use whywait_core::trace::decode::Progress;

use crate::analysis::Analysis;
use crate::output::{create, select};

/// Writes a trace for Perfetto; returns the numbers of its items by kind. Collective: the first process writes.
///
/// `queues` is an analysis whose replayed queues have their steps. `progress(stage, share)` is called about ten times a
/// second.
#[pyfunction]
#[pyo3(signature = (analysis, path, *, labels, queues=None, ranks=None, window=None, min_duration=0.0, progress=None))]
#[expect(clippy::too_many_arguments, reason = "they are named where it is called")]
pub(crate) fn write_perfetto<'py>(
    py: Python<'py>,
    analysis: Bound<'py, Analysis>,
    path: PathBuf,
    labels: HashMap<String, String>,
    queues: Option<Bound<'py, Analysis>>,
    ranks: Option<Vec<u32>>,
    window: Option<(f64, f64)>,
    min_duration: f64,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let trace = &analysis.get().result.trace;
    let selection = select(trace, ranks, window, min_duration)?;
    let out = create(trace, &path)?;
    let replayed = queues.map(Bound::unbind);
    let job = move |result: &CoreAnalysis, state: &Progress| {
        let label = |metric: Metric| labels.get(metric.name()).map_or(metric.name(), String::as_str).to_owned();
        let level = |quantity: Quantity| labels.get(quantity.name()).map_or(quantity.name(), String::as_str).to_owned();
        let queues = replayed.as_ref().and_then(|replayed| replayed.get().result.queues.as_ref());
        let queues = queues.map(|queues| (queues, &level as &dyn Fn(Quantity) -> String));
        write(result, &label, queues, &selection, out, state)
    };
    let events: usize = trace.shards.iter().map(|shard| shard.events.len()).sum();
    let written = analysis.get().stage(py, ("timeline", events as u64), (None, progress), job)?;
    let counts = PyDict::new(py);
    for (name, count) in [
        ("threads", written.threads),
        ("calls", written.calls),
        ("wait_states", written.wait_states),
        ("critical_path", written.critical_path),
        ("transfers", written.transfers),
        ("message_flows", written.messages),
        ("cause_flows", written.causes),
        ("task_flows", written.tasks),
        ("locks", written.locks),
        ("nonblocking", written.operations),
        ("transfer_flows", written.transfer_flows),
        ("samples", written.samples),
        ("counters", written.counters),
        ("backwards", written.backwards),
        ("bytes", written.bytes),
    ] {
        counts.set_item(name, count)?;
    }
    Ok(counts)
}
