//! What is known about the clocks of a run, as tables and plain data.

use std::path::PathBuf;

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use whywait_core::analysis::Analysis as CoreAnalysis;
use whywait_core::clocks::{BINS, Cell, Domain, Kind, Method, OfDomain, OfProcess, Options, Report, Rewritten};
use whywait_core::export::archive;
use whywait_core::ids::{LocationId, ProcessId};
use whywait_core::trace::decode::Progress;
use whywait_otf2::Recording;

use crate::analysis::Analysis;
use crate::arrow::Table;
use crate::errors::UsageError;
use crate::rows::Rows;

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
    let begin = report.map_or(0, |report| report.span.0);
    let at = |time: i64| analysis.seconds(time - begin);
    Rows::of(&rows)
        .names("kind", |((kind, ..), _)| kind.name())
        .column("from_rank", |((_, from, _), _)| rank(analysis, *from))
        .column("to_rank", |((_, _, to), _)| rank(analysis, *to))
        .column("checked", |(_, cell)| cell.checked)
        .column("violated", |(_, cell)| cell.violated)
        .column("sum", |(_, cell)| analysis.seconds(cell.sum))
        .column("worst", |(_, cell)| analysis.seconds(cell.worst))
        .column("worst_location", |(_, cell)| cell.worst_at.map_or(0, |at| at.location.number()))
        .column("worst_time", |(_, cell)| at(cell.worst_at.map_or(0, |at| at.time)))
        .column("first_time", |(_, cell)| at(cell.first))
        .column("last_time", |(_, cell)| at(cell.last))
        .finish()
}

fn course(analysis: &Analysis, report: Option<&Report>) -> PyResult<Table> {
    let bins = report.into_iter().flat_map(|report| {
        let width = analysis.seconds(report.span.1 - report.span.0 + 1);
        let kinds = Kind::ALL.into_iter().filter(|&kind| report.census.of_kind(kind).0 > 0);
        kinds.flat_map(move |kind| {
            let cells = report.census.course[kind as usize].iter().zip(&report.left.course[kind as usize]);
            cells.enumerate().map(move |(bin, (cell, left))| (kind, bin, width * bin as f64 / BINS as f64, cell, left))
        })
    });
    Rows::of(bins)
        .names("kind", |(kind, ..)| kind.name())
        .column("bin", |(_, bin, ..)| bin as u32)
        .column("begin", |(_, _, begin, ..)| begin)
        .column("checked", |(.., cell, _)| cell.checked)
        .column("violated", |(.., cell, _)| cell.violated)
        .column("worst", |(.., cell, _)| analysis.seconds(cell.worst))
        .column("left", |(.., left)| left.violated)
        .finish()
}

fn processes(analysis: &Analysis, report: Option<&Report>) -> PyResult<Table> {
    let trace = &analysis.result.trace;
    let rows = report.map_or(&[][..], |report| &report.processes);
    let domains = report.map_or(&[][..], |report| &report.domains);
    let own = |row: &OfProcess| &domains[row.domain as usize];
    let records = trace.records();
    let real = |ticks: f64| ticks / trace.resolution as f64;
    Rows::of(rows.iter().enumerate())
        .column("rank", |(process, _)| rank(analysis, ProcessId::at(process)))
        .column("node", |(_, row)| Some(records.string(records.system_tree_node(row.node)?.name)))
        .column("measured_begin", |(_, row)| row.measured.map(|(begin, _)| analysis.seconds(begin)))
        .column("measured_end", |(_, row)| row.measured.map(|(_, end)| analysis.seconds(end)))
        .column("moved_begin", |(_, row)| analysis.seconds(row.moved.0))
        .column("moved_end", |(_, row)| analysis.seconds(row.moved.1))
        .column("moved_max", |(_, row)| analysis.seconds(row.moved.2))
        .column("violated", |(_, row)| row.violated)
        .column("domain", |(_, row)| row.domain)
        .column("pieces", |(_, row)| own(row).pieces)
        .column("drift", |(_, row)| drift(report, own(row)))
        .column("uncertainty", |(_, row)| own(row).uncertainty.map(real))
        .finish()
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
    let real = |ticks: f64| ticks / trace.resolution as f64;
    Rows::of(rows.iter().enumerate())
        .column("domain", |(number, _)| number as u32)
        .column("rank", |(_, row)| rank(analysis, trace.definitions.locations[row.first].process))
        .column("location", |(_, row)| row.first.number())
        .column("locations", |(_, row)| row.locations)
        .column("device", |(_, row)| row.is_device)
        .column("reference", |(_, row)| row.reference)
        .column("pieces", |(_, row)| row.pieces)
        .column("offset_begin", |(_, row)| row.added.map(|(begin, _)| real(begin)))
        .column("offset_end", |(_, row)| row.added.map(|(_, end)| real(end)))
        .column("drift", |(_, row)| drift(report, row))
        .column("uncertainty", |(_, row)| row.uncertainty.map(real))
        .finish()
}

fn moves(analysis: &Analysis, report: Option<&Report>) -> PyResult<Table> {
    let moves = report.into_iter().flat_map(|report| {
        let length = analysis.seconds(report.span.1 - report.span.0);
        report.moves.iter().flat_map(move |(location, moves)| {
            moves.iter().enumerate().map(move |(bin, &ticks)| (*location, length * bin as f64 / BINS as f64, ticks))
        })
    });
    let process = |location: LocationId| analysis.result.trace.definitions.locations[location].process;
    Rows::of(moves)
        .column("location", |(location, ..)| location.number())
        .column("rank", |(location, ..)| rank(analysis, process(location)))
        .column("time", |(_, time, _)| time)
        .column("moved", |(.., ticks)| analysis.seconds(ticks))
        .finish()
}

fn pairs(analysis: &Analysis, report: Option<&Report>) -> PyResult<Table> {
    let rows = report.map_or(&[][..], |report| &report.pairs);
    let real = |ticks: f64| ticks / analysis.result.trace.resolution as f64;
    let half = |(low, high): (f64, f64)| (high - low) / 2.0;
    Rows::of(rows)
        .column("first", |row| row.domains.0)
        .column("second", |row| row.domains.1)
        .column("lower_bounds", |row| row.bounds.0)
        .column("upper_bounds", |row| row.bounds.1)
        .column("offset", |row| real(row.line.0))
        .column("drift", |row| 1e6 * row.line.1)
        .column("margin", |row| real(row.margin))
        .column("lowest_begin", |row| row.ranges.map(|[begin, _]| real(begin.0)))
        .column("highest_begin", |row| row.ranges.map(|[begin, _]| real(begin.1)))
        .column("lowest_end", |row| row.ranges.map(|[_, end]| real(end.0)))
        .column("highest_end", |row| row.ranges.map(|[_, end]| real(end.1)))
        .column("uncertainty", |row| row.ranges.map(|ranges| real(ranges.map(half).into_iter().fold(0.0, f64::max))))
        .finish()
}
