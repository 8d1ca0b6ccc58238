//! What is known about the clocks of a run, as tables and plain data.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{BooleanArray, Float64Array, Int32Array, StringArray, UInt32Array, UInt64Array};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use whywait_core::analysis::Analysis as CoreAnalysis;
use whywait_core::clocks::{BINS, Cell, Domain, Kind, Method, OfDomain, OfPair, Options, Report, Rewritten};
use whywait_core::export::archive;
use whywait_core::ids::ProcessId;
use whywait_core::trace::decode::Progress;
use whywait_otf2::Recording;

use crate::analysis::Analysis;
use crate::arrow::{Names, Table};
use crate::errors::UsageError;

/// Rows of the table of violations.
const MOST: usize = 10_000;

/// The options of a correction, as Python gives them.
pub(crate) fn options(method: &str, domain: &str, min_latency: f64, census: bool) -> PyResult<Options> {
    let method = one_of(&Method::ALL, Method::name, "clocks", method)?;
    let domain = one_of(&Domain::ALL, Domain::name, "clock_domain", domain)?;
    if !(0.0..=1.0).contains(&min_latency) {
        return Err(UsageError::new_err("the least latency must be between 0 and 1 s"));
    }
    Ok(Options { method, latency: min_latency, domain, is_wanted: census })
}

/// The choice with a name.
fn one_of<T: Copy>(choices: &[T], name: fn(T) -> &'static str, argument: &str, wanted: &str) -> PyResult<T> {
    let known = choices.iter().copied().find(|&choice| name(choice) == wanted);
    known.ok_or_else(|| {
        let names: Vec<String> = choices.iter().map(|&choice| format!("\"{}\"", name(choice))).collect();
        UsageError::new_err(format!("{argument} must be one of {}", names.join(", ")))
    })
}

/// Writes a run as an archive of the same name, at the times of its analysis; `source` says what it was made from. Collective:
/// each process writes the events of its locations.
pub(crate) fn write(
    analysis: &Bound<'_, Analysis>,
    directory: PathBuf,
    source: String,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let write = move |analysis: &CoreAnalysis, state: &Progress| {
        let run = Rewritten::new(&analysis.trace, analysis.clocks.as_ref(), &source)?;
        archive::write(&run, &analysis.trace, (&directory, run.name()), state)
    };
    let expected = analysis.get().result.trace.events;
    analysis.get().stage(analysis.py(), ("write", expected), (None, progress), write)
}

/// What is known about the clocks as plain data; `None` if nothing is violated.
pub(crate) fn facts<'py>(analysis: &Analysis, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(report) = &analysis.result.clocks else { return Ok(None) };
    let seconds = |ticks: i64| analysis.seconds(ticks);
    let facts = PyDict::new(py);
    facts.set_item("verdict", report.verdict.name())?;
    let steps = PyList::empty(py);
    for step in &report.steps {
        let of_step = PyDict::new(py);
        of_step.set_item("name", step.name)?;
        of_step.set_item("kept", step.is_kept)?;
        of_step.set_item("violated", step.violated)?;
        of_step.set_item("worst", seconds(step.worst))?;
        of_step.set_item("sum", seconds(step.sum))?;
        steps.append(of_step)?;
    }
    facts.set_item("steps", steps)?;
    facts.set_item("done", report.done().collect::<Vec<_>>())?;
    facts.set_item("checked", report.census.total.checked)?;
    facts.set_item("violated", report.census.total.violated)?;
    facts.set_item("left", report.left.total.violated)?;
    facts.set_item("worst", seconds(report.census.total.worst))?;
    let kinds = PyList::empty(py);
    for kind in Kind::ALL {
        let (checked, violated, worst) = report.census.of_kind(kind);
        if checked > 0 {
            let of_kind = PyDict::new(py);
            of_kind.set_item("kind", kind.name())?;
            of_kind.set_item("checked", checked)?;
            of_kind.set_item("violated", violated)?;
            of_kind.set_item("worst", seconds(worst))?;
            of_kind.set_item("left", report.left.of_kind(kind).1)?;
            kinds.append(of_kind)?;
        }
    }
    facts.set_item("kinds", kinds)?;
    facts.set_item("moved", seconds(report.moved()))?;
    facts.set_item("sum", seconds(report.census.total.sum))?;
    facts.set_item("stretch", report.stretch.0)?;
    facts.set_item("stretched", report.stretch.1)?;
    facts.set_item("domain", report.domain.name())?;
    facts.set_item("moved_processes", report.processes.iter().filter(|process| process.moved.2 != 0).count())?;
    facts.set_item("min_latency", seconds(report.latency))?;
    let (nodes, processes, functions) = report.differing;
    facts.set_item("contradicting", [nodes, processes, functions])?;
    Ok(Some(facts))
}

/// A table about the clocks; without rows if nothing is violated.
pub(crate) fn table(analysis: &Analysis, name: &str) -> PyResult<Table> {
    let report = analysis.result.clocks.as_ref();
    match name {
        "clock_violations" => violations(analysis, report),
        "clock_course" => course(analysis, report),
        "clock_processes" => processes(analysis, report),
        "clock_domains" => domains(analysis, report),
        "clock_pairs" => pairs(analysis, report),
        "clock_moves" => moves(analysis, report),
        _ => Err(PyKeyError::new_err(name.to_owned())),
    }
}

fn rank(analysis: &Analysis, process: ProcessId) -> i32 {
    analysis.result.trace.definitions.processes.get(process.index()).map_or(-1, |process| process.rank as i32)
}

fn violations(analysis: &Analysis, report: Option<&Report>) -> PyResult<Table> {
    let cells = report.into_iter().flat_map(|report| &report.census.cells);
    let mut rows: Vec<(&(Kind, ProcessId, ProcessId), &Cell)> = cells.filter(|(_, cell)| cell.violated > 0).collect();
    rows.sort_by_key(|(key, cell)| (-cell.worst, **key));
    rows.truncate(MOST);
    let mut kinds = Names::with_capacity(rows.len());
    for ((kind, ..), _) in &rows {
        kinds.push(kind.name());
    }
    let begin = report.map_or(0, |report| report.span.0);
    let ranks = |of: fn(&(Kind, ProcessId, ProcessId)) -> ProcessId| {
        Arc::new(Int32Array::from_iter_values(rows.iter().map(|(key, _)| rank(analysis, of(key)))))
    };
    let counts = |of: fn(&Cell) -> u64| Arc::new(UInt64Array::from_iter_values(rows.iter().map(|(_, cell)| of(cell))));
    let lengths = |of: fn(&Cell) -> i64| {
        Arc::new(Float64Array::from_iter_values(rows.iter().map(|(_, cell)| analysis.seconds(of(cell)))))
    };
    let times = |of: fn(&Cell) -> i64| {
        Arc::new(Float64Array::from_iter_values(rows.iter().map(|(_, cell)| analysis.seconds(of(cell) - begin))))
    };
    let location = |cell: &Cell| cell.worst_at.map_or(0, |at| at.location.number());
    Table::new(vec![
        ("kind", kinds.finish()),
        ("from_rank", ranks(|(_, from, _)| *from)),
        ("to_rank", ranks(|(_, _, to)| *to)),
        ("checked", counts(|cell| cell.checked)),
        ("violated", counts(|cell| cell.violated)),
        ("sum", lengths(|cell| cell.sum)),
        ("worst", lengths(|cell| cell.worst)),
        ("worst_location", Arc::new(UInt32Array::from_iter_values(rows.iter().map(|(_, cell)| location(cell))))),
        ("worst_time", times(|cell| cell.worst_at.map_or(0, |at| at.time))),
        ("first_time", times(|cell| cell.first)),
        ("last_time", times(|cell| cell.last)),
    ])
}

fn course(analysis: &Analysis, report: Option<&Report>) -> PyResult<Table> {
    let mut kinds = Names::default();
    let (mut bins, mut begins, mut worst) = (Vec::new(), Vec::new(), Vec::new());
    let mut counts = [Vec::new(), Vec::new(), Vec::new()];
    if let Some(report) = report {
        let length = report.span.1 - report.span.0 + 1;
        for kind in Kind::ALL.into_iter().filter(|&kind| report.census.of_kind(kind).0 > 0) {
            for (bin, cell) in report.census.course[kind as usize].iter().enumerate() {
                kinds.push(kind.name());
                bins.push(bin as u32);
                begins.push(analysis.seconds(length) * bin as f64 / BINS as f64);
                counts[0].push(cell.checked);
                counts[1].push(cell.violated);
                counts[2].push(report.left.course[kind as usize][bin].violated);
                worst.push(analysis.seconds(cell.worst));
            }
        }
    }
    let [checked, violated, left] = counts;
    Table::new(vec![
        ("kind", kinds.finish()),
        ("bin", Arc::new(UInt32Array::from(bins))),
        ("begin", Arc::new(Float64Array::from(begins))),
        ("checked", Arc::new(UInt64Array::from(checked))),
        ("violated", Arc::new(UInt64Array::from(violated))),
        ("worst", Arc::new(Float64Array::from(worst))),
        ("left", Arc::new(UInt64Array::from(left))),
    ])
}

fn processes(analysis: &Analysis, report: Option<&Report>) -> PyResult<Table> {
    let trace = &analysis.result.trace;
    let rows = report.map_or(&[][..], |report| &report.processes);
    let domains = report.map_or(&[][..], |report| &report.domains);
    let own = || rows.iter().map(|row| &domains[row.domain as usize]);
    let all = (0..rows.len()).map(ProcessId::at);
    let records = trace.records();
    let nodes = rows.iter().map(|row| Some(records.string(records.system_tree_node(row.node)?.name)));
    let moved = |of: fn((i64, i64, i64)) -> i64| {
        Arc::new(Float64Array::from_iter_values(rows.iter().map(|row| analysis.seconds(of(row.moved)))))
    };
    let measured = |of: fn((i64, i64)) -> i64| {
        let values = rows.iter().map(|row| row.measured.map(|measured| analysis.seconds(of(measured))));
        Arc::new(values.collect::<Float64Array>())
    };
    let real = |ticks: f64| ticks / trace.resolution as f64;
    Table::new(vec![
        ("rank", Arc::new(Int32Array::from_iter_values(all.map(|process| rank(analysis, process))))),
        ("node", Arc::new(nodes.collect::<StringArray>())),
        ("measured_begin", measured(|(begin, _)| begin)),
        ("measured_end", measured(|(_, end)| end)),
        ("moved_begin", moved(|(begin, ..)| begin)),
        ("moved_end", moved(|(_, end, _)| end)),
        ("moved_max", moved(|(.., most)| most)),
        ("violated", Arc::new(UInt64Array::from_iter_values(rows.iter().map(|row| row.violated)))),
        ("domain", Arc::new(UInt32Array::from_iter_values(rows.iter().map(|row| row.domain)))),
        ("pieces", Arc::new(UInt32Array::from_iter_values(own().map(|domain| domain.pieces)))),
        ("drift", Arc::new(own().map(|domain| drift(report, domain)).collect::<Float64Array>())),
        ("uncertainty", Arc::new(own().map(|domain| domain.uncertainty.map(real)).collect::<Float64Array>())),
    ])
}

/// The drift of a domain's line, ppm.
fn drift(report: Option<&Report>, domain: &OfDomain) -> Option<f64> {
    let (begin, end) = domain.added?;
    let length = report.map_or(1, |report| (report.span.1 - report.span.0).max(1));
    Some(1e6 * (end - begin) / length as f64)
}

fn domains(analysis: &Analysis, report: Option<&Report>) -> PyResult<Table> {
    let trace = &analysis.result.trace;
    let rows = report.map_or(&[][..], |report| &report.domains);
    let numbers = |of: fn(&OfDomain) -> u32| Arc::new(UInt32Array::from_iter_values(rows.iter().map(of)));
    let real = |ticks: f64| ticks / trace.resolution as f64;
    let added = |of: fn((f64, f64)) -> f64| {
        Arc::new(rows.iter().map(|row| row.added.map(|added| real(of(added)))).collect::<Float64Array>())
    };
    let ranks = rows.iter().map(|row| rank(analysis, trace.definitions.locations[row.first].process));
    Table::new(vec![
        ("domain", Arc::new(UInt32Array::from_iter_values(0..rows.len() as u32))),
        ("rank", Arc::new(Int32Array::from_iter_values(ranks))),
        ("location", numbers(|row| row.first.number())),
        ("locations", numbers(|row| row.locations)),
        ("device", Arc::new(rows.iter().map(|row| Some(row.is_device)).collect::<BooleanArray>())),
        ("reference", numbers(|row| row.reference)),
        ("pieces", numbers(|row| row.pieces)),
        ("offset_begin", added(|(begin, _)| begin)),
        ("offset_end", added(|(_, end)| end)),
        ("drift", Arc::new(rows.iter().map(|row| drift(report, row)).collect::<Float64Array>())),
        ("uncertainty", Arc::new(rows.iter().map(|row| row.uncertainty.map(real)).collect::<Float64Array>())),
    ])
}

fn moves(analysis: &Analysis, report: Option<&Report>) -> PyResult<Table> {
    let (mut locations, mut ranks, mut times, mut moved) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    if let Some(report) = report {
        let length = analysis.seconds(report.span.1 - report.span.0);
        for (location, moves) in &report.moves {
            let process = analysis.result.trace.definitions.locations[*location].process;
            for (bin, &ticks) in moves.iter().enumerate() {
                locations.push(location.number());
                ranks.push(rank(analysis, process));
                times.push(length * bin as f64 / BINS as f64);
                moved.push(analysis.seconds(ticks));
            }
        }
    }
    Table::new(vec![
        ("location", Arc::new(UInt32Array::from(locations))),
        ("rank", Arc::new(Int32Array::from(ranks))),
        ("time", Arc::new(Float64Array::from(times))),
        ("moved", Arc::new(Float64Array::from(moved))),
    ])
}

fn pairs(analysis: &Analysis, report: Option<&Report>) -> PyResult<Table> {
    let rows = report.map_or(&[][..], |report| &report.pairs);
    let numbers = |of: fn(&OfPair) -> u32| Arc::new(UInt32Array::from_iter_values(rows.iter().map(of)));
    let counts = |of: fn(&OfPair) -> u64| Arc::new(UInt64Array::from_iter_values(rows.iter().map(of)));
    let real = |ticks: f64| ticks / analysis.result.trace.resolution as f64;
    let lengths =
        |of: fn(&OfPair) -> f64| Arc::new(Float64Array::from_iter_values(rows.iter().map(|row| real(of(row)))));
    let ends = |of: fn(&[(f64, f64); 2]) -> f64| {
        let values = rows.iter().map(|row| row.ranges.as_ref().map(|ranges| real(of(ranges))));
        Arc::new(values.collect::<Float64Array>())
    };
    let drifts = rows.iter().map(|row| 1e6 * row.line.1);
    Table::new(vec![
        ("first", numbers(|row| row.domains.0)),
        ("second", numbers(|row| row.domains.1)),
        ("lower_bounds", counts(|row| row.bounds.0)),
        ("upper_bounds", counts(|row| row.bounds.1)),
        ("offset", lengths(|row| row.line.0)),
        ("drift", Arc::new(Float64Array::from_iter_values(drifts))),
        ("margin", lengths(|row| row.margin)),
        ("lowest_begin", ends(|[begin, _]| begin.0)),
        ("highest_begin", ends(|[begin, _]| begin.1)),
        ("lowest_end", ends(|[_, end]| end.0)),
        ("highest_end", ends(|[_, end]| end.1)),
        ("uncertainty", ends(|ranges| ranges.iter().map(|(low, high)| (high - low) / 2.0).fold(0.0, f64::max))),
    ])
}
