//! What is known of the traces of a profiler besides events.

use std::collections::BTreeMap;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use whywait_devices::{Facts, GroupFacts, RankFacts};

/// What is known of traces besides events.
pub(crate) fn facts<'py>(py: Python<'py>, facts: &Facts) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    all.set_item("world_size", facts.world_size)?;
    all.set_item("missing", facts.missing().collect::<Vec<u32>>())?;
    all.set_item("steps", facts.steps.clone())?;
    all.set_item("versions", facts.versions.clone())?;
    all.set_item("recorded", facts.recorded.clone())?;
    all.set_item("cycle", facts.cycle)?;
    all.set_item("cycles", facts.cycles)?;
    all.set_item("left_out", facts.left_out.clone())?;
    all.set_item("ranks", facts.ranks.iter().map(|rank| of_rank(py, rank)).collect::<PyResult<Vec<_>>>()?)?;
    let shapes = facts.shapes.iter().map(|one| (one.kernel.clone(), one.groups.clone()));
    all.set_item("shapes", shapes.collect::<BTreeMap<_, _>>())?;
    all.set_item("groups", facts.groups.iter().map(|group| of_group(py, group)).collect::<PyResult<Vec<_>>>()?)?;
    Ok(all)
}

fn of_rank<'py>(py: Python<'py>, facts: &RankFacts) -> PyResult<Bound<'py, PyDict>> {
    let rank = PyDict::new(py);
    rank.set_item("rank", facts.rank)?;
    rank.set_item("file", &facts.file)?;
    rank.set_item("host", &facts.host)?;
    rank.set_item("window", facts.window)?;
    rank.set_item("steps", facts.steps.clone())?;
    rank.set_item("events", facts.events)?;
    rank.set_item("works", facts.works)?;
    rank.set_item("unlaunched", facts.unlaunched)?;
    Ok(rank)
}

fn of_group<'py>(py: Python<'py>, facts: &GroupFacts) -> PyResult<Bound<'py, PyDict>> {
    let group = PyDict::new(py);
    group.set_item("name", &facts.name)?;
    group.set_item("ranks", facts.ranks.clone())?;
    group.set_item("size", facts.size)?;
    group.set_item("known", facts.known)?;
    group.set_item("method", facts.method.name())?;
    group.set_item("instances", facts.instances)?;
    group.set_item("undecided", facts.undecided)?;
    group.set_item("unmatched", facts.unmatched)?;
    group.set_item("partial", facts.is_partial)?;
    group.set_item("time_after_last", facts.time_after_last)?;
    group.set_item("message_parts", facts.message_parts)?;
    group.set_item("messages", facts.messages)?;
    group.set_item("comms", facts.comms.clone())?;
    Ok(group)
}
