//! The iterations of a loop, and communication by pairs of ranks.

use pyo3::prelude::*;
use whywait_core::account::Group;
use whywait_core::ids::CallPathId;
use whywait_core::query::communication::{self};
use whywait_core::query::iterations::{self, Iteration, Marker, Periodic, Request, Value};
use whywait_core::query::parameters;
use whywait_core::schema::Metric;

use whywait_otf2::enums::ParameterType;

use crate::analysis::Analysis;
use crate::arrow::Table;
use crate::errors::UsageError;
use crate::rows::Rows;

/// The iterations of the loop whose marker is a call path or, by its name, a parameter: one row each, with a column for
/// each kind of wait state that occurs in the run; and the call path of the marker.
///
/// If the marker is a call path, it is entered `every` times in an iteration, and the last Leave of `body` ends the
/// last iteration. `computes` tells for each call path whether it is computation.
#[pyfunction]
#[pyo3(name = "iterations", signature = (analysis, marker, *, every=1, body, computes))]
pub(crate) fn find_iterations(
    py: Python<'_>,
    analysis: &Bound<'_, Analysis>,
    marker: Loop,
    every: usize,
    body: Vec<u32>,
    computes: Vec<bool>,
) -> PyResult<(Table, u32)> {
    let analysis = analysis.get();
    let definitions = analysis.result.trace.records();
    let callpaths = analysis.result.trace.tree.len();
    if computes.len() < callpaths
        || body.iter().chain(marker.callpath()).any(|&callpath| callpath as usize >= callpaths)
    {
        return Err(UsageError::new_err("unknown call path"));
    }
    if every == 0 {
        return Err(UsageError::new_err("an iteration needs an Enter of its marker"));
    }
    let mut ends = vec![false; callpaths];
    for &callpath in body.iter().chain(marker.callpath()) {
        ends[callpath as usize] = true;
    }
    let (marker, kind) = match marker {
        Loop::CallPath(callpath) => {
            (Marker::CallPath { callpath: CallPathId::new(callpath), every, body: ends }, ParameterType::INT64)
        }
        Loop::Parameter(name) => {
            let (ids, kind) = parameters::named(definitions, &name);
            (Marker::Parameter(ids), kind)
        }
    };
    let request = Request { marker, computes };
    let found = analysis.collective(py, move |result| iterations::find(result, &request))?;
    let resolution = analysis.result.trace.resolution as f64;
    let begin = analysis.begin();
    let seconds = |ticks: i64| analysis.seconds(ticks);
    let lead = |row: &Iteration| {
        let all = i128::from(row.latest) * i128::from(row.processes) - row.begins;
        all as f64 / f64::from(row.processes.max(1)) / resolution
    };
    let value = |row: &Iteration| match row.value {
        Value::Same(value) => Some(parameters::text(definitions, kind, value)),
        Value::None | Value::Different => None,
    };
    // Of each iteration, the names of the periodic operations that it has.
    let periodic = |iteration: usize| {
        let has = |one: &&Periodic| iteration % one.every == one.first;
        let name = |one: &Periodic| {
            analysis.result.trace.regions.name(definitions, analysis.result.trace.tree.region(one.callpath))
        };
        let mut names: Vec<&str> = found.periodic.iter().filter(has).map(name).collect();
        names.dedup();
        (!names.is_empty()).then(|| names.join(", "))
    };
    let mut table = Rows::of(found.rows.iter().enumerate())
        .column("iteration", |(number, _)| number as u32)
        .column("begin", |(_, row)| seconds(row.begin - begin))
        .column("latest", |(_, row)| seconds(row.latest - begin))
        .column("pace", |(_, row)| row.pace as i32)
        .column("lead", |(_, row)| lead(row))
        .column("end", |(_, row)| seconds(row.end - begin))
        .column("ranks", |(_, row)| row.processes)
        .column("shortest", |(_, row)| seconds(row.shortest))
        .column("longest", |(_, row)| seconds(row.longest))
        .column("elapsed", |(_, row)| seconds(row.elapsed))
        .column("computation", |(_, row)| row.computation as f64 / resolution)
        .column("most", |(_, row)| seconds(row.most))
        .column("slowest", |(_, row)| row.slowest as i32)
        .column("critical_path", |(_, row)| seconds(row.critical))
        .column("critical_location", |(_, row)| row.critical_location.known().map(i64::from))
        .column("value", |(_, row)| value(row));
    for (group, name) in GROUPS.into_iter().enumerate() {
        table = table.column(name, |(_, row)| seconds(row.groups[group]));
    }
    table = table.column("periodic", |(number, _)| periodic(number));
    for (kind, metric) in found.kinds.iter().enumerate() {
        let waiting = |iteration: usize| found.waiting[iteration * found.kinds.len() + kind];
        table = table.column(metric.name(), |(number, _)| waiting(number) as f64 / resolution);
    }
    Ok((table.finish()?, found.callpath.known().unwrap_or(0)))
}

/// The columns of the groups of the account.
const GROUPS: [&str; Group::ALL.len()] = [
    "computing_time",
    "waiting_time",
    "transfer_time",
    "thread_time",
    "idle_time",
    "io_time",
    "device_time",
    "other_time",
];

/// The marker of a loop.
#[derive(FromPyObject)]
pub(crate) enum Loop {
    /// The number of a call path.
    CallPath(u32),
    /// The name of a parameter.
    Parameter(String),
}

impl Loop {
    fn callpath(&self) -> Option<&u32> {
        match self {
            Self::CallPath(callpath) => Some(callpath),
            Self::Parameter(_) => None,
        }
    }
}

/// Loops that the program declares: the call paths of dynamic regions and phases, and the parameters that master
/// threads record.
#[pyfunction]
pub(crate) fn declared_loops(py: Python<'_>, analysis: &Bound<'_, Analysis>) -> PyResult<(Vec<u32>, Table)> {
    let analysis = analysis.get();
    let trace = &analysis.result.trace;
    let is_dynamic = |&callpath: &usize| {
        let region = trace.regions.get(trace.tree.region(CallPathId::at(callpath)));
        region.is_some_and(|region| region.is_dynamic)
    };
    let dynamic = (0..trace.tree.len()).filter(is_dynamic).map(|callpath| callpath as u32).collect();
    let found = analysis.collective(py, parameters::recorded)?;
    let table = Rows::of(&found)
        .column("parameter", |each| each.name.as_str())
        .column("least", |each| each.least)
        .column("most", |each| each.most)
        .column("rises", |each| each.rises)
        .column("share", |each| each.share)
        .finish()?;
    Ok((dynamic, table))
}

/// Communication by pairs of ranks (or blocks of ranks, if there are more pairs than `most`), the number of ranks per
/// block, and communication by size class; only what overlaps a window, in seconds since the begin of the trace, and what
/// chosen call paths start or wait for.
#[pyfunction]
#[pyo3(name = "communication", signature = (analysis, *, waiting, most, window=None, callpaths=None))]
pub(crate) fn find_communication(
    py: Python<'_>,
    analysis: &Bound<'_, Analysis>,
    waiting: Vec<String>,
    most: usize,
    window: Option<(f64, f64)>,
    callpaths: Option<Vec<bool>>,
) -> PyResult<(Table, u32, Table)> {
    let analysis = analysis.get();
    let window = window.map(|(begin, end)| analysis.tick(begin)..analysis.tick(end));
    let is_waiting = |metric: &&Metric| waiting.iter().any(|name| name == metric.name());
    let kinds: Vec<Metric> = Metric::ALL.iter().filter(is_waiting).copied().collect();
    let find = move |result: &_| {
        communication::find(result, &kinds, most, window.as_ref(), callpaths.as_deref().unwrap_or_default())
    };
    let found = analysis.collective(py, find)?;
    let resolution = analysis.result.trace.resolution as f64;
    let seconds = |ticks: i128| ticks as f64 / resolution;

    let pairs = Rows::of(&found.pairs)
        .column("rank", |&((from, _), _)| from as i32)
        .column("peer", |&((_, to), _)| to as i32)
        .column("messages", |(_, pair)| pair.messages.count)
        .column("bytes", |(_, pair)| pair.messages.bytes)
        .column("time", |(_, pair)| seconds(pair.messages.time))
        .column("transfers", |(_, pair)| pair.transfers.count)
        .column("transfer_bytes", |(_, pair)| pair.transfers.bytes)
        .column("transfer_time", |(_, pair)| seconds(pair.transfers.time))
        .column("waiting", |(_, pair)| seconds(pair.waiting))
        .finish()?;
    let sizes = Rows::of(&found.sizes)
        .names("kind", |((kind, _), _)| kind.name())
        .column("least", |&((_, class), _)| if class == 0 { 0 } else { 1u64 << (class - 1) })
        .column("below", |&((_, class), _)| 1u64.checked_shl(class).unwrap_or(u64::MAX))
        .column("count", |(_, traffic)| traffic.count)
        .column("bytes", |(_, traffic)| traffic.bytes)
        .column("time", |(_, traffic)| seconds(traffic.time))
        .finish()?;
    Ok((pairs, found.block, sizes))
}
