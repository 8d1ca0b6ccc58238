//! The iterations of a loop, and communication by pairs of ranks.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int32Array, StringArray, UInt32Array, UInt64Array};
use pyo3::prelude::*;
use whywait_core::account::Group;
use whywait_core::ids::CallPathId;
use whywait_core::query::communication::{self, Pair, Traffic};
use whywait_core::query::iterations::{self, Iteration, Marker, Periodic, Request, Value};
use whywait_core::query::parameters;
use whywait_core::schema::Metric;

use whywait_otf2::enums::ParameterType;

use crate::analysis::Analysis;
use crate::arrow::{Names, Optional, Table};
use crate::errors::UsageError;

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
    let rows = &found.rows;
    let resolution = analysis.result.trace.resolution as f64;
    let begin = analysis.begin();
    let seconds = |ticks: fn(&Iteration) -> i64, since: i64| -> ArrayRef {
        Arc::new(Float64Array::from_iter_values(rows.iter().map(|row| analysis.seconds(ticks(row) - since))))
    };
    let seconds_of = |ticks: &dyn Fn(&Iteration) -> i64| -> ArrayRef {
        Arc::new(Float64Array::from_iter_values(rows.iter().map(|row| analysis.seconds(ticks(row)))))
    };
    let mut critical = Optional::default();
    for row in rows {
        critical.push(row.critical_location.known());
    }
    let computation = rows.iter().map(|row| row.computation as f64 / resolution);
    let lead = |row: &Iteration| {
        let all = i128::from(row.latest) * i128::from(row.processes) - row.begins;
        all as f64 / f64::from(row.processes.max(1)) / resolution
    };
    let value = |row: &Iteration| match row.value {
        Value::Same(value) => Some(parameters::text(definitions, kind, value)),
        Value::None | Value::Different => None,
    };
    let mut columns: Vec<(&str, ArrayRef)> = vec![
        ("iteration", Arc::new((0..rows.len() as u32).collect::<UInt32Array>())),
        ("begin", seconds(|row| row.begin, begin)),
        ("latest", seconds(|row| row.latest, begin)),
        ("pace", Arc::new(rows.iter().map(|row| row.pace as i32).collect::<Int32Array>())),
        ("lead", Arc::new(Float64Array::from_iter_values(rows.iter().map(lead)))),
        ("end", seconds(|row| row.end, begin)),
        ("ranks", Arc::new(rows.iter().map(|row| row.processes).collect::<UInt32Array>())),
        ("shortest", seconds(|row| row.shortest, 0)),
        ("longest", seconds(|row| row.longest, 0)),
        ("elapsed", seconds(|row| row.elapsed, 0)),
        ("computation", Arc::new(Float64Array::from_iter_values(computation))),
        ("most", seconds(|row| row.most, 0)),
        ("slowest", Arc::new(rows.iter().map(|row| row.slowest as i32).collect::<Int32Array>())),
        ("critical_path", seconds(|row| row.critical, 0)),
        ("critical_location", critical.finish()),
        ("value", Arc::new(rows.iter().map(value).collect::<StringArray>())),
    ];
    for (number, group) in GROUPS.into_iter().enumerate() {
        columns.push((group, seconds_of(&|row| row.groups[number])));
    }
    // Of each iteration, the names of the periodic operations that it has.
    let names = |iteration: usize| {
        let has = |one: &&Periodic| iteration % one.every == one.first;
        let name = |one: &Periodic| {
            analysis.result.trace.regions.name(definitions, analysis.result.trace.tree.region(one.callpath))
        };
        let mut names: Vec<&str> = found.periodic.iter().filter(has).map(name).collect();
        names.dedup();
        (!names.is_empty()).then(|| names.join(", "))
    };
    columns.push(("periodic", Arc::new((0..rows.len()).map(names).collect::<StringArray>())));
    for (number, kind) in found.kinds.iter().enumerate() {
        let waiting = found.waiting.iter().skip(number).step_by(found.kinds.len());
        let waiting = waiting.map(|&ticks| ticks as f64 / resolution);
        columns.push((kind.name(), Arc::new(Float64Array::from_iter_values(waiting))));
    }
    Ok((Table::new(columns)?, found.callpath.known().unwrap_or(0)))
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
    let table = Table::new(vec![
        ("parameter", Arc::new(found.iter().map(|each| Some(each.name.as_str())).collect::<StringArray>())),
        ("least", Arc::new(found.iter().map(|each| each.least).collect::<UInt32Array>())),
        ("most", Arc::new(found.iter().map(|each| each.most).collect::<UInt32Array>())),
        ("rises", Arc::new(found.iter().map(|each| Some(each.rises)).collect::<BooleanArray>())),
        ("share", Arc::new(found.iter().map(|each| each.share).collect::<Float64Array>())),
    ])?;
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

    let pairs = &found.pairs;
    let number = |number: fn(&Pair) -> u64| -> ArrayRef {
        Arc::new(UInt64Array::from_iter_values(pairs.iter().map(|(_, pair)| number(pair))))
    };
    let time = |ticks: fn(&Pair) -> i128| -> ArrayRef {
        Arc::new(Float64Array::from_iter_values(pairs.iter().map(|(_, pair)| seconds(ticks(pair)))))
    };
    let table = Table::new(vec![
        ("rank", Arc::new(pairs.iter().map(|&((from, _), _)| from as i32).collect::<Int32Array>())),
        ("peer", Arc::new(pairs.iter().map(|&((_, to), _)| to as i32).collect::<Int32Array>())),
        ("messages", number(|pair| pair.messages.count)),
        ("bytes", number(|pair| pair.messages.bytes)),
        ("time", time(|pair| pair.messages.time)),
        ("transfers", number(|pair| pair.transfers.count)),
        ("transfer_bytes", number(|pair| pair.transfers.bytes)),
        ("transfer_time", time(|pair| pair.transfers.time)),
        ("waiting", time(|pair| pair.waiting)),
    ])?;

    let mut kinds = Names::default();
    for ((kind, _), _) in &found.sizes {
        kinds.push(kind.name());
    }
    let least = |&((_, class), _): &((_, u32), Traffic)| if class == 0 { 0 } else { 1u64 << (class - 1) };
    let below = |&((_, class), _): &((_, u32), Traffic)| 1u64.checked_shl(class).unwrap_or(u64::MAX);
    let sizes = &found.sizes;
    let sizes = Table::new(vec![
        ("kind", kinds.finish()),
        ("least", Arc::new(sizes.iter().map(least).collect::<UInt64Array>())),
        ("below", Arc::new(sizes.iter().map(below).collect::<UInt64Array>())),
        ("count", Arc::new(sizes.iter().map(|(_, traffic)| traffic.count).collect::<UInt64Array>())),
        ("bytes", Arc::new(sizes.iter().map(|(_, traffic)| traffic.bytes).collect::<UInt64Array>())),
        ("time", Arc::new(sizes.iter().map(|(_, traffic)| seconds(traffic.time)).collect::<Float64Array>())),
    ])?;
    Ok((table, found.block, sizes))
}
