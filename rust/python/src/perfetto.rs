//! A run as a trace for Perfetto.

use std::collections::HashMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use whywait_core::analysis::Analysis as CoreAnalysis;
use whywait_core::export::perfetto::write;
use whywait_core::export::selection::Selection;
use whywait_core::queues::Quantity;
use whywait_core::schema::Metric;
use whywait_core::trace::Trace;
use whywait_core::trace::decode::Progress;

use crate::analysis::Analysis;
use crate::errors::UsageError;

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
    let file = trace.exchange.is_root().then(|| File::create(&path)).transpose();
    let file = file.map_err(|error| match error.raw_os_error() {
        Some(number) => PyOSError::new_err((number, error.to_string(), path.display().to_string())),
        None => error.into(),
    })?;
    let replayed = queues.map(Bound::unbind);
    let job = move |result: &CoreAnalysis, state: &Progress| {
        let label = |metric: Metric| labels.get(metric.name()).map_or(metric.name(), String::as_str).to_owned();
        let level = |quantity: Quantity| labels.get(quantity.name()).map_or(quantity.name(), String::as_str).to_owned();
        let queues = replayed.as_ref().and_then(|replayed| replayed.get().result.queues.as_ref());
        let queues = queues.map(|queues| (queues, &level as &dyn Fn(Quantity) -> String));
        let out = file.map(|file| BufWriter::with_capacity(1 << 20, file));
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
        ("counters", written.counters),
        ("backwards", written.backwards),
        ("bytes", written.bytes),
    ] {
        counts.set_item(name, count)?;
    }
    Ok(counts)
}

pub(crate) fn select(
    trace: &Trace,
    ranks: Option<Vec<u32>>,
    window: Option<(f64, f64)>,
    min_duration: f64,
) -> PyResult<Selection> {
    let (begin, end) = trace.span().unwrap_or((0, 0));
    let ticks = |seconds: f64| (seconds * trace.resolution as f64).round() as i64;
    let length = (end - begin) as f64 / trace.resolution as f64;
    let processes = match ranks {
        None => None,
        Some(ranks) => {
            let mut chosen = vec![false; trace.definitions.processes.len()];
            for rank in ranks {
                let process = trace.definitions.processes.iter().position(|process| process.rank == rank);
                let Some(process) = process else {
                    let last = trace.definitions.processes.iter().map(|process| process.rank).max();
                    let known = last.map_or_else(String::new, |last| format!("; the last one is rank {last}"));
                    return Err(UsageError::new_err(format!("the run has no rank {rank}{known}")));
                };
                chosen[process] = true;
            }
            Some(chosen)
        }
    };
    if min_duration.is_nan() || min_duration < 0.0 {
        return Err(UsageError::new_err(format!("the minimum duration cannot be {min_duration} s")));
    }
    let window = match window {
        None => (begin, end),
        Some((from, to)) if from <= to && from <= length && to >= 0.0 => {
            (begin.saturating_add(ticks(from)), begin.saturating_add(ticks(to)))
        }
        Some((from, to)) => {
            let text = format!("nothing is in the window from {from} to {to} s: the run lasts from 0 to {length} s");
            return Err(UsageError::new_err(text));
        }
    };
    Ok(Selection { processes, window, shortest: ticks(min_duration) })
}
