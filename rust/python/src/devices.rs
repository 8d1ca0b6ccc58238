//! Accelerators as tables.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, StringArray, UInt32Array, UInt64Array};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use whywait_core::analysis::Analysis as CoreAnalysis;
use whywait_core::waits::device::{Kernel, Span, Synchronization};

use crate::analysis::Analysis;
use crate::arrow::{Optional, Table};

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
    let seconds = found.iter().map(|(_, ticks)| analysis.seconds(*ticks));
    Table::new(vec![
        ("location", Arc::new(UInt32Array::from_iter_values(found.iter().map(|(location, _)| location.number())))),
        ("computation", Arc::new(Float64Array::from_iter_values(seconds))),
    ])
}

/// What threads do while they starve devices, between two times (seconds since the begin of the trace).
pub(crate) fn starving(analysis: &Analysis, py: Python<'_>, (begin, end): (f64, f64)) -> PyResult<Table> {
    let window = analysis.tick(begin)..analysis.tick(end);
    let found =
        analysis.collective(py, move |result: &CoreAnalysis| result.devices.starving(&result.trace, &window))?;
    let mut callpaths = Optional::default();
    for (_, callpath, _) in &found {
        callpaths.push(callpath.known());
    }
    Table::new(vec![
        ("location", Arc::new(UInt32Array::from_iter_values(found.iter().map(|(location, ..)| location.number())))),
        ("callpath", callpaths.finish()),
        (
            "starving",
            Arc::new(Float64Array::from_iter_values(found.iter().map(|(.., ticks)| analysis.seconds(*ticks)))),
        ),
    ])
}

/// Kernels, synchronizations, launches without a kernel, and counts.
pub(crate) fn tables<'py>(analysis: &Analysis, py: Python<'py>) -> PyResult<(Table, Table, Table, Bound<'py, PyDict>)> {
    let found = &analysis.result.devices;
    let begin = analysis.begin();
    let at = |ticks: i64| analysis.seconds(ticks - begin);
    let numbers = |values: Vec<u32>| -> ArrayRef { Arc::new(UInt32Array::from(values)) };
    let times = |values: Vec<f64>| -> ArrayRef { Arc::new(Float64Array::from(values)) };

    let kernels = &found.kernels;
    let of_runs = |get: fn(&Span) -> u32| numbers(kernels.iter().map(|kernel| get(&kernel.run)).collect());
    let lengths = |get: fn(&Kernel) -> i64| times(kernels.iter().map(|kernel| analysis.seconds(get(kernel))).collect());
    let launch = |get: fn(&Span) -> u32| {
        let mut column = Optional::default();
        for kernel in kernels {
            column.push(kernel.launch.as_ref().map(get));
        }
        column.finish()
    };
    let launched = |get: fn(&Span) -> i64| -> ArrayRef {
        let values = kernels.iter().map(|kernel| kernel.launch.as_ref().map(|launch| at(get(launch))));
        Arc::new(values.collect::<Float64Array>())
    };
    let of_kernels = Table::new(vec![
        ("location", of_runs(|run| run.location.number())),
        ("callpath", of_runs(|run| run.callpath.number())),
        ("device", numbers(kernels.iter().map(|kernel| kernel.device).collect())),
        ("begin", times(kernels.iter().map(|kernel| at(kernel.run.enter)).collect())),
        ("end", times(kernels.iter().map(|kernel| at(kernel.run.leave)).collect())),
        ("launch_location", launch(|launch| launch.location.number())),
        ("launch_callpath", launch(|launch| launch.callpath.number())),
        ("launch_enter", launched(|launch| launch.enter)),
        ("launch_leave", launched(|launch| launch.leave)),
        ("idle", lengths(|kernel| kernel.idle)),
        ("starved", lengths(|kernel| kernel.starved)),
        ("mpi_starved", lengths(|kernel| kernel.mpi_starved)),
        ("latency", lengths(|kernel| kernel.latency)),
        ("queued", lengths(|kernel| kernel.queued)),
        ("stream_wait", lengths(|kernel| kernel.turn)),
        ("copy", copies(kernels)),
        ("communicates", Arc::new(kernels.iter().map(|kernel| Some(kernel.communicates)).collect::<BooleanArray>())),
        ("bytes", bytes(kernels)),
    ])?;

    let calls = &found.synchronizations;
    let mut awaited = Optional::default();
    for call in calls {
        awaited.push(call.kernel);
    }
    let of_calls = |get: &dyn Fn(&Synchronization) -> f64| times(calls.iter().map(get).collect());
    let synchronizations = Table::new(vec![
        ("location", numbers(calls.iter().map(|one| one.call.location.number()).collect())),
        ("callpath", numbers(calls.iter().map(|one| one.call.callpath.number()).collect())),
        ("enter", of_calls(&|one| at(one.call.enter))),
        ("leave", of_calls(&|one| at(one.call.leave))),
        ("waiting", of_calls(&|one| analysis.seconds(one.waiting))),
        ("completion", of_calls(&|one| analysis.seconds(one.completion))),
        ("kernel", awaited.finish()),
    ])?;

    let lost = &found.lost_launches;
    let lost = Table::new(vec![
        ("location", numbers(lost.iter().map(|launch| launch.location.number()).collect())),
        ("callpath", numbers(lost.iter().map(|launch| launch.callpath.number()).collect())),
        ("enter", times(lost.iter().map(|launch| at(launch.enter)).collect())),
    ])?;

    let counts = PyDict::new(py);
    counts.set_item("launches", found.launches)?;
    counts.set_item("unmatched_launches", found.lost_launches.len())?;
    counts.set_item("unmatched_kernels", found.unmatched_kernels)?;
    counts.set_item("clock_violations", found.clock_violations)?;
    counts.set_item("names", found.names(&analysis.result.trace))?;
    Ok((of_kernels, synchronizations, lost, counts))
}

/// The directions of copies; null for kernels.
fn copies(kernels: &[Kernel]) -> ArrayRef {
    Arc::new(kernels.iter().map(|kernel| kernel.copy.map(|copy| copy.direction.name())).collect::<StringArray>())
}

/// The bytes of copies, where they are recorded.
fn bytes(kernels: &[Kernel]) -> ArrayRef {
    Arc::new(kernels.iter().map(|kernel| kernel.copy.and_then(|copy| copy.bytes)).collect::<UInt64Array>())
}
