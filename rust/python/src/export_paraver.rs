//! A run as a trace for Paraver.

use std::collections::HashMap;
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use whywait_core::analysis::Analysis as CoreAnalysis;
use whywait_core::export::paraver::{Finding, Words, write};
use whywait_core::ids::CallPathId;
use whywait_core::schema::Metric;
use whywait_core::trace::decode::Progress;

use crate::analysis::Analysis;
use crate::output::{create, select};

/// A finding: its sentence, and the call paths and ranks to blame.
type Found = (String, Vec<u32>, Vec<u32>);

/// Writes a trace for Paraver; returns the numbers of its items by kind, and the texts of the files beside it by their
/// endings. Collective: the first process writes.
///
/// `progress(stage, share)` is called about ten times a second.
#[pyfunction]
#[pyo3(signature = (analysis, path, *, labels, findings, ranks=None, window=None, min_duration=0.0, progress=None))]
#[expect(clippy::too_many_arguments, reason = "they are named where it is called")]
pub(crate) fn write_paraver<'py>(
    py: Python<'py>,
    analysis: Bound<'py, Analysis>,
    path: PathBuf,
    labels: HashMap<String, String>,
    findings: Vec<Found>,
    ranks: Option<Vec<u32>>,
    window: Option<(f64, f64)>,
    min_duration: f64,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyDict>)> {
    let trace = &analysis.get().result.trace;
    let selection = select(trace, ranks, window, min_duration)?;
    let out = create(trace, &path)?;
    let findings: Vec<Finding> = (1..)
        .zip(findings)
        .map(|(number, (label, callpaths, ranks))| {
            let callpaths = callpaths.into_iter().map(CallPathId::new).collect();
            Finding { number, label, callpaths, ranks }
        })
        .collect();
    let job = move |result: &CoreAnalysis, state: &Progress| {
        let label = |metric: Metric| labels.get(metric.name()).map_or(metric.name(), String::as_str).to_owned();
        let words = Words { label: &label, findings, number: &whywait_paraver::calls::numbered };
        write(result, &words, &selection, out, state)
    };
    let events: usize = trace.shards.iter().map(|shard| shard.events.len()).sum();
    let written = analysis.get().stage(py, ("timeline", events as u64), (None, progress), job)?;
    let (counts, texts) = (PyDict::new(py), PyDict::new(py));
    if let Some((written, beside)) = written {
        for (name, count) in [
            ("threads", written.threads),
            ("calls", written.calls),
            ("messages", written.messages),
            ("wait_states", written.wait_states),
            ("critical_path", written.critical_path),
            ("records", written.records),
        ] {
            counts.set_item(name, count)?;
        }
        for (ending, text) in [(".pcf", beside.labels), (".row", beside.names), (".cfg", beside.views)] {
            texts.set_item(ending, text)?;
        }
    }
    Ok((counts, texts))
}
