//! What speaks for one reason of lost time or another, as plain data.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::analysis::Analysis;

/// One entry of a list: a dictionary made of names and values.
macro_rules! entry {
    ($py:expr, $($name:literal: $value:expr),+ $(,)?) => {{
        let entry = PyDict::new($py);
        $(entry.set_item($name, $value)?;)+
        Ok(entry)
    }};
}

/// The reasons by name: a list of dictionaries each. Times are in seconds.
pub(crate) fn facts<'py>(analysis: &Analysis, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
    let (trace, reasons) = (&analysis.result.trace, &analysis.result.account.reasons);
    let seconds = |ticks| analysis.seconds(ticks);
    let facts = PyDict::new(py);
    list(&facts, "crowded", &reasons.crowded, |one| {
        entry!(py,
            "location": one.location.number(), "locations": one.locations, "most": one.most,
            "slow": one.slow, "fast": one.fast, "calls": one.calls,
        )
    })?;
    list(&facts, "slow_places", &reasons.slow_places, |one| {
        let locations: Vec<u32> = one.locations.iter().map(|location| location.number()).collect();
        entry!(py,
            "locations": locations, "is_node": one.is_node, "factor": one.factor, "regions": one.regions,
            "region": trace.regions.name(trace.records(), one.region),
        )
    })?;
    list(&facts, "held_up", &reasons.held_up, |one| {
        entry!(py,
            "callpath": one.callpath.number(), "calls": one.calls, "time": seconds(one.ticks),
            "excess": seconds(one.all), "smallest": one.bytes.0, "largest": one.bytes.1,
        )
    })?;
    list(&facts, "unprogressed", &reasons.unprogressed, |one| {
        entry!(py,
            "callpath": one.callpath.number(), "during": one.during.number(), "calls": one.calls, "all": one.all,
            "needed": seconds(one.needed), "excess": seconds(one.excess),
        )
    })?;
    list(
        &facts,
        "combinable",
        &reasons.combinable,
        |one| entry!(py, "callpath": one.callpath.number(), "messages": one.messages, "combinable": one.combinable),
    )?;
    list(
        &facts,
        "repeated",
        &reasons.repeated,
        |one| entry!(py, "callpath": one.callpath.number(), "operations": one.operations, "repeated": one.repeated),
    )?;
    list(&facts, "convoys", &reasons.convoys, |one| {
        entry!(py,
            "callpath": one.callpath.number(), "waits": one.waits, "time": seconds(one.ticks),
            "queued": seconds(one.queued),
        )
    })?;
    list(&facts, "needless_barriers", &reasons.barriers, |one| {
        entry!(py,
            "callpath": one.callpath.number(), "calls": one.calls, "needless": one.needless,
            "time": seconds(one.ticks),
        )
    })?;
    list(&facts, "turns", &reasons.turns, |one| {
        entry!(py,
            "callpath": one.callpath.number(), "number": one.number, "lacks": seconds(one.lacks),
            "time": seconds(one.ticks),
        )
    })?;
    Ok(facts)
}

/// Adds a list with an entry for each of `all`.
fn list<'py, T>(
    facts: &Bound<'py, PyDict>,
    name: &str,
    all: &[T],
    entry: impl Fn(&T) -> PyResult<Bound<'py, PyDict>>,
) -> PyResult<()> {
    let entries = all.iter().map(entry).collect::<PyResult<Vec<_>>>()?;
    facts.set_item(name, PyList::new(facts.py(), entries)?)
}
