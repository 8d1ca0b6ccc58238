//! Options of an analysis, as Python gives them.

use pyo3::prelude::*;
use whywait_core::causes::CostModel;
use whywait_core::queues::{Arrival, Bins, Lists, Options};
use whywait_otf2::enums::MetricMode;

use crate::errors::UsageError;

/// The cost model of a name.
pub(crate) fn cost_model(name: &str) -> PyResult<CostModel> {
    match name {
        "unified" | "thesis" => Ok(CostModel::Unified),
        "bounded" => Ok(CostModel::Bounded),
        "scalasca" => Ok(CostModel::Scalasca),
        _ => Err(UsageError::new_err("cost_model must be \"thesis\" (or \"unified\"), \"bounded\" or \"scalasca\"")),
    }
}

/// A counter with a mode of OTF2.
pub(crate) fn counter_mode((counter, name): (String, String)) -> PyResult<(String, MetricMode)> {
    let known = (0..=u8::MAX).map(MetricMode).find(|mode| mode.name() == Some(&name));
    let unknown = || UsageError::new_err(format!("{name} is not a metric mode of OTF2"));
    known.map(|mode| (counter, mode)).ok_or_else(unknown)
}

/// The bins of levels: their number, or their edges in seconds since the begin of the trace.
#[derive(FromPyObject)]
pub(crate) enum Cut {
    Number(usize),
    Edges(Vec<f64>),
}

/// Options of the replay: arrival, lists, bins, and whether to return every increment.
pub(crate) fn queues((arrival, lists, bins, moments): &(String, String, Cut, bool)) -> PyResult<Options> {
    const MOST: usize = 100_000;
    let arrival = match arrival.as_str() {
        "progress" => Arrival::Progress,
        "estimate" => Arrival::Estimate,
        "send" => Arrival::Send,
        _ => return Err(UsageError::new_err("arrival must be \"progress\", \"estimate\" or \"send\"")),
    };
    let lists = match lists.as_str() {
        "pair" => Lists::Pair,
        "list" => Lists::Receiver,
        _ => return Err(UsageError::new_err("match must be \"pair\" or \"list\"")),
    };
    let (number, bins) = match bins {
        Cut::Number(number) => (*number, Bins::Number(*number)),
        Cut::Edges(edges) => (edges.len().saturating_sub(1), Bins::Edges(edges.clone())),
    };
    if number > MOST {
        return Err(UsageError::new_err(format!("at most {MOST} bins")));
    }
    if let Bins::Edges(edges) = &bins
        && !edges.is_sorted_by(|a, b| a < b)
    {
        return Err(UsageError::new_err("the edges of bins must increase"));
    }
    Ok(Options { arrival, lists, bins, moments: *moments })
}
