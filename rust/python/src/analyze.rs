//! The analysis of a run.

use std::sync::Arc;
use std::time::Duration;

use pyo3::prelude::*;
use whywait_core::analysis::{Monitor, Options, analyze as core_analyze};
use whywait_core::parallel::exchange::Transport;
use whywait_core::trace::load::SHARD_EVENTS;

use crate::analysis::Analysis;
use crate::clocks;
use crate::errors::{UsageError, core_error};
use crate::job::serve;
use crate::memory;
use crate::options::{self, Cut};
use crate::progress::tick;
use crate::ranks::{PythonTransport, Ranks};
use crate::run::Run;

/// Analyzes a run on `threads` threads (all cores by default). With `ranks`, several processes share the work: each
/// gets an analysis that keeps its events, and that of the first has the results of all.
///
/// `queues` configures the replay of message queues: when messages arrive (`estimate`, `send`), which share a queue
/// (`pair`, `list`), the number of bins, and whether to return every increment. A `window` (seconds since the begin of
/// the trace) restricts severities, costs and the critical path. `counter_modes` overrides the OTF2 modes of counters
/// by name. `fold_recursion` makes recursive calls part of the outer call. `clocks` is how to correct the clocks, with what
/// has a clock of its own and a least latency in seconds; with `census`, constraints are counted even if none is
/// violated. `progress(stage, fraction)` is called about ten times per second.
#[pyfunction]
#[pyo3(signature = (run, *, threads=None, wrong_order_window=100, causes=true, cost_model="thesis", queues=None,
    window=None, counter_modes=Vec::new(), fold_recursion=false, clocks="nodes", clock_domain="auto", min_latency=0.0, census=false, shard_events=SHARD_EVENTS, ranks=None, progress=None))]
#[expect(clippy::too_many_arguments, reason = "they are named where it is called")]
pub(crate) fn analyze(
    py: Python<'_>,
    run: &Run,
    threads: Option<usize>,
    wrong_order_window: usize,
    causes: bool,
    cost_model: &str,
    queues: Option<(String, String, Cut, bool)>,
    window: Option<(f64, f64)>,
    counter_modes: Vec<(String, String)>,
    fold_recursion: bool,
    clocks: &str,
    clock_domain: &str,
    min_latency: f64,
    census: bool,
    shard_events: u64,
    ranks: Option<&Bound<'_, PyAny>>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Analysis> {
    if threads == Some(0) {
        return Err(UsageError::new_err("threads must be at least 1"));
    }
    let recording = run.recording().clone();
    let pool = whywait_core::parallel::pool::new(threads.unwrap_or(0)).map_err(core_error)?;
    let cost_model = options::cost_model(cost_model)?;
    let queues = queues.as_ref().map(options::queues).transpose()?;
    let counter_modes = counter_modes.into_iter().map(options::counter_mode).collect::<PyResult<_>>()?;
    let clocks = clocks::options(clocks, clock_domain, min_latency, census)?;
    let options = Options {
        wrong_order_window,
        causes,
        cost_model,
        queues,
        window,
        counter_modes,
        fold_recursion,
        clocks,
        shard_events,
    };
    let monitor = Arc::new(Monitor::default());
    let expected = recording.definitions().locations.iter().fold(0u64, |sum, l| sum.saturating_add(l.number_of_events));

    let transport = ranks.map(Ranks::new).transpose()?.map(|ranks| Arc::new(PythonTransport::new(ranks)));
    let job = {
        let (monitor, transport) = (monitor.clone(), transport.clone());
        move |tasks| {
            let shared = transport.clone().map(|transport| transport as Arc<dyn Transport>);
            let analyze = || memory::keeping(|| pool.install(|| core_analyze(recording, &options, shared, &monitor)));
            match &transport {
                Some(transport) => transport.during(tasks, analyze),
                None => analyze(),
            }
        }
    };
    let tick = tick(py, &monitor, expected, progress);
    let result = serve(py, job, Duration::from_millis(100), tick, || monitor.progress.cancel())?;
    memory::check()?;
    Ok(Analysis::new(result.map_err(core_error)?, transport))
}
