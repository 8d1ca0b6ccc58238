//! How far an analysis is, for the thread that waits for it.

use std::sync::atomic::Ordering;

use pyo3::prelude::*;
use whywait_core::analysis::{Monitor, Stage};

use crate::memory;

/// What the calling thread does during an analysis: answer Ctrl-C, watch the memory, and show progress.
pub(crate) fn tick<'py>(
    py: Python<'py>,
    monitor: &Monitor,
    expected: u64,
    progress: Option<&Bound<'py, PyAny>>,
) -> impl Fn() -> PyResult<()> {
    move || {
        py.check_signals()?;
        memory::check()?;
        let share = (monitor.stage().name(), fraction(monitor, expected));
        progress.map_or(Ok(()), |progress| progress.call1(share).map(drop))
    }
}

/// The completed fraction of the work: by events while reading, then by stages.
fn fraction(monitor: &Monitor, expected: u64) -> f64 {
    match monitor.stage() {
        Stage::Decode => {
            let events = monitor.progress.events.load(Ordering::Relaxed);
            0.7 * (events as f64 / expected.max(1) as f64).min(1.0)
        }
        Stage::Messages => 0.7,
        Stage::Collectives => 0.8,
        Stage::OneSided => 0.87,
        Stage::Profile => 0.9,
        Stage::Points => 0.92,
        Stage::Causes => 0.94,
    }
}
