//! A run as a trace for Perfetto.

use std::collections::HashMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use whywait_core::export::perfetto::{Selection, write};
use whywait_core::queues::Quantity;
use whywait_core::schema::Metric;
use whywait_core::trace::Trace;
use whywait_core::trace::decode::Progress;

use crate::analysis::Analysis;
use crate::errors::{UsageError, core_error};
use crate::job::wait;

/// Writes a trace for Perfetto; returns the numbers of its items by kind.
///
/// `queues` is an analysis whose replayed queues have their steps. `progress(share)` is called about ten times a
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
    analysis.get().need_all_events()?;
    let selection = select(&analysis.get().result.trace, ranks, window, min_duration)?;
    let file = File::create(&path).map_err(|error| match error.raw_os_error() {
        Some(number) => PyOSError::new_err((number, error.to_string(), path.display().to_string())),
        None => error.into(),
    })?;
    let pool = whywait_core::parallel::pool::new(0).map_err(core_error)?;
    let state = Arc::new(Progress::default());
    let (shared, owned, replayed) = (state.clone(), analysis.clone().unbind(), queues.map(Bound::unbind));
    let job = move || {
        let result = &owned.get().result;
        let label = |metric: Metric| labels.get(metric.name()).map_or(metric.name(), String::as_str).to_owned();
        let level = |quantity: Quantity| labels.get(quantity.name()).map_or(quantity.name(), String::as_str).to_owned();
        let queues = replayed.as_ref().and_then(|replayed| replayed.get().result.queues.as_ref());
        let out = BufWriter::with_capacity(1 << 20, file);
        pool.install(|| {
            let queues = queues.map(|queues| (queues, &level as &dyn Fn(Quantity) -> String));
            write(result, &label, queues, &selection, out, &shared)
        })
    };
    let events: usize = analysis.get().result.trace.shards.iter().map(|shard| shard.events.len()).sum();
    let tick = || {
        py.check_signals()?;
        let share = state.events.load(Ordering::Relaxed) as f64 / events.max(1) as f64;
        progress.map_or(Ok(()), |progress| progress.call1((share,)).map(|_| ()))
    };
    let written = wait(py, job, Duration::from_millis(100), tick, || state.cancel())?.map_err(core_error)?;
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

fn select(
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
