//! What exports write, and where.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use whywait_core::export::selection::Selection;
use whywait_core::trace::Trace;

use crate::errors::UsageError;

/// The file of an export; only the first process writes.
pub(crate) fn create(trace: &Trace, path: &Path) -> PyResult<Option<BufWriter<File>>> {
    let file = trace.exchange.is_root().then(|| File::create(path)).transpose();
    let file = file.map_err(|error| match error.raw_os_error() {
        Some(number) => PyOSError::new_err((number, error.to_string(), path.display().to_string())),
        None => error.into(),
    })?;
    Ok(file.map(|file| BufWriter::with_capacity(1 << 20, file)))
}

/// The part of a run that is written.
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
