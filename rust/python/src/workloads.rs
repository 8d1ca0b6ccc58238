//! Synthetic traces, and timing of the stages of an analysis.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError};
use pyo3::prelude::*;
use whywait_core::analysis::{Monitor, Options, Stage, StageCallback, analyze};
use whywait_workloads::{Error, Machine, Progress, Spec, Stream, Workload};

use crate::errors::{UsageError, archive_error, core_error};
use crate::job::{CallerThreadTasks, serve, wait};
use crate::memory;
use crate::run::Run;

/// Names of the workloads for [`generate`].
#[pyfunction]
pub(crate) fn workloads() -> Vec<&'static str> {
    Workload::ALL.iter().map(|&(name, _)| name).collect()
}

/// Writes the trace of a synthetic workload and its true waiting times; returns the number of events.
///
/// `progress(share)` is called about ten times a second.
#[pyfunction]
#[pyo3(signature = (workload, directory, *, ranks, iterations, seed, work=None, imbalance=None, balanced=false, barriers=false, machine=None, threads=None, window=None, size=None, overlap=None, progress=None))]
#[expect(clippy::too_many_arguments, reason = "they are named where it is called")]
pub(crate) fn generate(
    py: Python<'_>,
    workload: &str,
    directory: PathBuf,
    ranks: u32,
    iterations: u32,
    seed: u64,
    work: Option<u32>,
    imbalance: Option<f64>,
    balanced: bool,
    barriers: bool,
    machine: Option<&str>,
    threads: Option<u32>,
    window: Option<u32>,
    size: Option<u32>,
    overlap: Option<f64>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<u64> {
    let Some(workload) = Workload::named(workload) else {
        return Err(UsageError::new_err(format!("{workload}: no such workload ({})", workloads().join(", "))));
    };
    let spec = Spec::new(workload, ranks, iterations, seed);
    let (work, imbalance) = (work.unwrap_or(spec.work), imbalance.unwrap_or(spec.imbalance));
    let machine = match machine.map(|name| (name, Machine::named(name))) {
        None => spec.machine,
        Some((_, Some(machine))) => machine,
        Some((name, None)) => return Err(UsageError::new_err(format!("{name}: no such machine"))),
    };
    let stream = Stream {
        threads: threads.unwrap_or(spec.stream.threads),
        window: window.unwrap_or(spec.stream.window),
        bytes: size.unwrap_or(spec.stream.bytes),
        overlap: overlap.unwrap_or(spec.stream.overlap),
    };
    let spec = Spec { work, imbalance, balanced, barriers, machine, stream, ..spec };
    let pool = whywait_core::parallel::pool::new(0).map_err(core_error)?;
    let state = Arc::new(Progress::default());
    let shared = state.clone();
    let job = move || pool.install(|| whywait_workloads::generate(spec, &directory, &shared));
    let tick = || {
        py.check_signals()?;
        let share = f64::from(state.ranks.load(Ordering::Relaxed)) / f64::from(ranks);
        progress.map_or(Ok(()), |progress| progress.call1((share,)).map(|_| ()))
    };
    let summary = wait(py, job, Duration::from_millis(100), tick, || state.cancel())?;
    summary.map(|summary| summary.events).map_err(|error| match error {
        Error::Archive(error) => archive_error(error),
        Error::Spec(text) => UsageError::new_err(text),
        Error::Interrupted => PyKeyboardInterrupt::new_err(()),
        error @ Error::Truth { .. } => PyOSError::new_err(error.to_string()),
    })
}

/// Analyzes a run and drops the result. Calls `entered(stage)` when a stage begins, and `entered(None)` after the last.
#[pyfunction]
#[pyo3(signature = (run, *, threads, causes, entered))]
pub(crate) fn measure(
    py: Python<'_>,
    run: &Run,
    threads: usize,
    causes: bool,
    entered: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let pool = whywait_core::parallel::pool::new(threads).map_err(core_error)?;
    let (recording, options) = (run.recording().clone(), Options { causes, ..Options::default() });
    let monitor = Arc::new(Monitor::default());
    let (watched, entered) = (monitor.clone(), Arc::new(entered.clone().unbind()));
    let job = move |tasks: CallerThreadTasks| {
        let tell = Arc::new(move |stage: Option<Stage>| {
            let entered = entered.clone();
            tasks(Box::new(move |py| entered.call1(py, (stage.map(Stage::name),)).map(drop)));
        });
        let told = tell.clone();
        let _ = monitor.entered.set(StageCallback(Box::new(move |stage| told(Some(stage)))));
        let result = memory::keeping(|| pool.install(|| analyze(recording, &options, None, &monitor)));
        // Dropping the result is not part of the last stage.
        tell(None);
        result.map(drop)
    };
    let tick = || {
        py.check_signals()?;
        memory::check()
    };
    serve(py, job, Duration::from_millis(100), tick, || watched.progress.cancel())?.map_err(core_error)
}
