//! The result of an analysis, shared by all functions that query it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use pyo3::prelude::*;
use whywait_core::analysis::Analysis as CoreAnalysis;
use whywait_core::ids::RegionKey;
use whywait_core::trace::decode::Progress;

use crate::errors::core_error;
use crate::job::serve;
use crate::memory;
use crate::ranks::PythonTransport;

/// The result of an analysis. Several processes that share it have one each.
#[pyclass(frozen, weakref, module = "whywait._native")]
pub(crate) struct Analysis {
    pub(crate) result: Arc<CoreAnalysis>,
    /// Distinct regions of the call tree, and for each call path its region among them.
    pub(crate) regions: Vec<RegionKey>,
    pub(crate) region_of: Vec<u32>,
    /// Connects the processes that share it; `None` if this one has all events.
    transport: Option<Arc<PythonTransport>>,
}

impl Analysis {
    pub(crate) fn new(result: CoreAnalysis, transport: Option<Arc<PythonTransport>>) -> Self {
        let mut regions = Vec::new();
        let mut index: BTreeMap<RegionKey, u32> = BTreeMap::new();
        let region_of = result.sampling.callpaths(&result.trace.tree).map(|node| {
            *index.entry(node.region).or_insert_with(|| {
                regions.push(node.region);
                regions.len() as u32 - 1
            })
        });
        let region_of = region_of.collect();
        Self { result: Arc::new(result), regions, region_of, transport }
    }

    /// Calls a collective function of the analysis, which all processes do.
    pub(crate) fn collective<T: Send + 'static>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&CoreAnalysis) -> whywait_core::Result<T> + Send + 'static,
    ) -> PyResult<T> {
        self.collective_until(py, |result, _| call(result))
    }

    /// The same for a function of a time window, in seconds since the begin of the trace.
    pub(crate) fn in_window<T: Send + 'static>(
        &self,
        py: Python<'_>,
        window: Option<(f64, f64)>,
        call: impl FnOnce(&CoreAnalysis, Option<&Range<i64>>) -> whywait_core::Result<T> + Send + 'static,
    ) -> PyResult<T> {
        let window = window.map(|(begin, end)| self.tick(begin)..self.tick(end));
        self.collective(py, move |result| call(result, window.as_ref()))
    }

    /// The same for a function that can be cancelled.
    pub(crate) fn collective_until<T: Send + 'static>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&CoreAnalysis, &Progress) -> whywait_core::Result<T> + Send + 'static,
    ) -> PyResult<T> {
        let pool = whywait_core::parallel::pool::new(0).map_err(core_error)?;
        let state = Arc::new(Progress::default());
        let (result, transport, shared) = (self.result.clone(), self.transport.clone(), state.clone());
        let job = move |tasks| {
            let call = || pool.install(|| call(&result, &shared));
            match transport {
                None => call(),
                Some(transport) => transport.during(tasks, call),
            }
        };
        let found = serve(py, job, Duration::from_millis(50), || py.check_signals(), || state.cancel())?;
        found.map_err(core_error)
    }

    /// The same for a long stage: it has a name and a number of events to process, shows its progress, and watches the memory.
    pub(crate) fn stage<T: Send + 'static>(
        &self,
        py: Python<'_>,
        (name, expected): (&'static str, u64),
        (threads, progress): (Option<usize>, Option<&Bound<'_, PyAny>>),
        call: impl FnOnce(&CoreAnalysis, &Progress) -> whywait_core::Result<T> + Send + 'static,
    ) -> PyResult<T> {
        let pool = whywait_core::parallel::pool::new(threads.unwrap_or(0)).map_err(core_error)?;
        let state = Arc::new(Progress::default());
        let tick = || {
            py.check_signals()?;
            memory::check()?;
            let share = state.events.load(Ordering::Relaxed) as f64 / expected.max(1) as f64;
            progress.map_or(Ok(()), |progress| progress.call1((name, share.min(1.0))).map(drop))
        };
        tick()?;
        let (result, transport, shared) = (self.result.clone(), self.transport.clone(), state.clone());
        let job = move |tasks| {
            let call = || memory::keeping(|| pool.install(|| call(&result, &shared)));
            match transport {
                None => call(),
                Some(transport) => transport.during(tasks, call),
            }
        };
        let found = serve(py, job, Duration::from_millis(100), tick, || state.cancel())?;
        memory::check()?;
        found.map_err(core_error)
    }

    pub(crate) fn seconds(&self, ticks: i64) -> f64 {
        ticks as f64 / self.result.trace.resolution as f64
    }

    /// The tick of a time in seconds since the begin of the trace.
    pub(crate) fn tick(&self, seconds: f64) -> i64 {
        self.begin().saturating_add((seconds * self.result.trace.resolution as f64).round() as i64)
    }

    pub(crate) fn begin(&self) -> i64 {
        self.result.trace.span().map_or(0, |(first, _)| first)
    }
}
