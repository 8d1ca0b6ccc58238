//! Accelerators as tables.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use whywait_core::analysis::Analysis as CoreAnalysis;
use whywait_core::waits::device::{Kernel, Span};

use crate::analysis::Analysis;
use crate::arrow::Table;
use crate::rows::Rows;

/// Computation of threads while the devices of their process run no kernel, between two times (seconds since the begin
/// of the trace). `computes` tells for each call path whether it is computation.
pub(crate) fn host_computation(
    analysis: &Analysis,
    py: Python<'_>,
    computes: Vec<bool>,
    (begin, end): (f64, f64),
) -> PyResult<Table> {
    let window = analysis.tick(begin)..analysis.tick(end);
    let find = move |result: &CoreAnalysis| result.devices.host_computation(&result.trace, &computes, &window);
    let found = analysis.collective(py, find)?;
    Rows::of(&found)
        .column("location", |(location, _)| location.number())
        .column("computation", |&(_, ticks)| analysis.seconds(ticks))
        .finish()
}

/// What threads do while they starve devices, between two times (seconds since the begin of the trace).
pub(crate) fn starving(analysis: &Analysis, py: Python<'_>, (begin, end): (f64, f64)) -> PyResult<Table> {
    let window = analysis.tick(begin)..analysis.tick(end);
    let found =
        analysis.collective(py, move |result: &CoreAnalysis| result.devices.starving(&result.trace, &window))?;
    Rows::of(&found)
        .column("location", |(location, ..)| location.number())
        .column("callpath", |(_, callpath, _)| callpath.known().map(i64::from))
        .column("starving", |&(.., ticks)| analysis.seconds(ticks))
        .finish()
}

/// Kernels, synchronizations, launches without a kernel, and counts.
pub(crate) fn tables<'py>(analysis: &Analysis, py: Python<'py>) -> PyResult<(Table, Table, Table, Bound<'py, PyDict>)> {
    let found = &analysis.result.devices;
    let begin = analysis.begin();
    let at = |ticks: i64| analysis.seconds(ticks - begin);
    let launched = |kernel: &Kernel, of: fn(&Span) -> i64| kernel.launch.as_ref().map(of);
    let kernels = Rows::of(&found.kernels)
        .column("location", |kernel| kernel.run.location.number())
        .column("callpath", |kernel| kernel.run.callpath.number())
        .column("device", |kernel| kernel.device)
        .column("begin", |kernel| at(kernel.run.enter))
        .column("end", |kernel| at(kernel.run.leave))
        .column("launch_location", |kernel| launched(kernel, |launch| launch.location.number().into()))
        .column("launch_callpath", |kernel| launched(kernel, |launch| launch.callpath.number().into()))
        .column("launch_enter", |kernel| launched(kernel, |launch| launch.enter).map(at))
        .column("launch_leave", |kernel| launched(kernel, |launch| launch.leave).map(at))
        .column("idle", |kernel| analysis.seconds(kernel.idle))
        .column("starved", |kernel| analysis.seconds(kernel.starved))
        .column("mpi_starved", |kernel| analysis.seconds(kernel.mpi_starved))
        .column("latency", |kernel| analysis.seconds(kernel.latency))
        .column("queued", |kernel| analysis.seconds(kernel.queued))
        .column("stream_wait", |kernel| analysis.seconds(kernel.turn))
        .column("copy", |kernel| kernel.copy.map(|copy| copy.direction.name()))
        .column("communicates", |kernel| kernel.communicates)
        .column("bytes", |kernel| kernel.copy.and_then(|copy| copy.bytes))
        .finish()?;
    let synchronizations = Rows::of(&found.synchronizations)
        .column("location", |one| one.call.location.number())
        .column("callpath", |one| one.call.callpath.number())
        .column("enter", |one| at(one.call.enter))
        .column("leave", |one| at(one.call.leave))
        .column("waiting", |one| analysis.seconds(one.waiting))
        .column("completion", |one| analysis.seconds(one.completion))
        .column("kernel", |one| one.kernel.map(i64::from))
        .finish()?;
    let lost = Rows::of(&found.lost_launches)
        .column("location", |launch| launch.location.number())
        .column("callpath", |launch| launch.callpath.number())
        .column("enter", |launch| at(launch.enter))
        .finish()?;

    let counts = PyDict::new(py);
    counts.set_item("launches", found.launches)?;
    counts.set_item("unmatched_launches", found.lost_launches.len())?;
    counts.set_item("unmatched_kernels", found.unmatched_kernels)?;
    counts.set_item("clock_violations", found.clock_violations)?;
    counts.set_item("names", found.names(&analysis.result.trace))?;
    Ok((kernels, synchronizations, lost, counts))
}
