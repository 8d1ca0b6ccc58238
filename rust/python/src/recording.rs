//! What the recorder left of a run to an archive.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use whywait_otf2::Anchor;
use whywait_recording::{Error, Model, Options, Progress};

use crate::errors::{ArchiveError, UsageError, archive_error};
use crate::job::wait;

/// Makes an archive of a recording; returns what was recorded.
///
/// `model` is `full`, `scorep7`, or that which was chosen when recording. `patience` is
/// how long to wait (s) for processes that have not ended yet. `progress(share)` is called about ten times a second.
#[pyfunction]
#[pyo3(signature = (directory, *, model=None, keep_spool=false, patience=0.0, progress=None))]
pub(crate) fn finish_recording(
    py: Python<'_>,
    directory: PathBuf,
    model: Option<&str>,
    keep_spool: bool,
    patience: f64,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<PyDict>> {
    let model = match model {
        None => None,
        Some("full") => Some(Model::Full),
        Some("scorep7") => Some(Model::Scorep7),
        Some(other) => return Err(UsageError::new_err(format!("{other}: no such model (full, scorep7)"))),
    };
    let patience = Duration::try_from_secs_f64(patience).unwrap_or_default();
    let options = Options { model, keep_spool, patience };
    let pool = whywait_core::parallel::pool::new(0).map_err(crate::errors::core_error)?;
    let state = Arc::new(Progress::default());
    let shared = state.clone();
    let job = move || pool.install(|| whywait_recording::finish(&directory, &options, &shared));
    let tick = || {
        py.check_signals()?;
        let (done, total) = (state.done.load(Ordering::Relaxed), state.total.load(Ordering::Relaxed));
        let share = done as f64 / total.max(1) as f64;
        progress.map_or(Ok(()), |progress| progress.call1((share,)).map(|_| ()))
    };
    let summary = wait(py, job, Duration::from_millis(100), tick, || state.cancel())?.map_err(recording_error)?;
    let found = PyDict::new(py);
    found.set_item("ranks", summary.ranks)?;
    found.set_item("size", summary.size)?;
    found.set_item("calls", summary.calls)?;
    found.set_item("samples", summary.samples)?;
    found.set_item("sampled", summary.sampled)?;
    found.set_item("bytes", summary.bytes)?;
    found.set_item("notes", summary.notes)?;
    found.set_item("damage", summary.damage)?;
    found.set_item("worlds", summary.worlds)?;
    Ok(found.unbind())
}

/// Whether a directory holds a recording that is not finished.
#[pyfunction]
pub(crate) fn is_unfinished_recording(directory: PathBuf) -> bool {
    whywait_recording::is_unfinished(&directory)
}

/// What is missing in a recorded archive, a line each: what could not be recorded, and how processes ended.
pub(crate) fn notes(anchor: &Anchor) -> impl Iterator<Item = &str> {
    let said = |name: &'static str| anchor.properties.iter().filter(move |(key, _)| key == name);
    said("WHYWAIT::ENDED").chain(said("WHYWAIT::LOST")).flat_map(|(_, value)| value.lines())
}

/// What an archive says of its recording: name and value.
pub(crate) fn facts(anchor: &Anchor) -> impl Iterator<Item = (&'static str, &str)> {
    let names = [
        ("WHYWAIT::RECORDER", "recorder"),
        ("WHYWAIT::MPI", "mpi"),
        ("WHYWAIT::CALL_PATHS", "call_paths"),
        ("WHYWAIT::SAMPLING", "sampling"),
        ("WHYWAIT::CORES", "cores"),
        ("WHYWAIT::POLLING", "polling"),
        ("WHYWAIT::WORLDS", "worlds"),
    ];
    names.into_iter().filter_map(|(key, name)| {
        let (_, value) = anchor.properties.iter().find(|(found, _)| found == key)?;
        Some((name, value.as_str()))
    })
}

fn recording_error(error: Error) -> PyErr {
    match error {
        Error::Archive(error) => archive_error(error),
        Error::Interrupted => PyKeyboardInterrupt::new_err(()),
        error @ (Error::Nothing { .. } | Error::Running { .. }) => UsageError::new_err(error.to_string()),
        error => ArchiveError::new_err(error.to_string()),
    }
}
