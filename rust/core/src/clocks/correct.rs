//! The steps of a correction: each reads the run at other times, and is kept if less is violated then.

use std::sync::Arc;

use whywait_otf2::Recording;

use super::census::Census;
use super::constraints::Constraints;
use super::corrected::{Corrected, Correction};
use super::nodes::Nodes;
use super::report::{OfProcess, Report, Step, Verdict};
use crate::Result;
use crate::ids::ProcessId;
use crate::matching::protocol;
use crate::parallel::exchange::{Exchange, Row};
use crate::trace::Trace;

/// How to correct clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// Not at all: the times that were measured.
    Measured,
    /// One clock per node.
    #[default]
    Nodes,
}

impl Method {
    /// All methods.
    pub const ALL: [Self; 2] = [Self::Measured, Self::Nodes];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Nodes => "nodes",
        }
    }
}

/// Options of a correction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// What to do.
    pub method: Method,
    /// Least time between cause and effect on two processes, seconds.
    pub latency: f64,
    /// Whether to count constraints even if nothing is violated.
    pub is_wanted: bool,
}

/// Corrects the clocks of a run: returns it as it was read or, if a correction helps, read again by `load`, and a report.
/// If several processes share the analysis, the first has the report.
pub fn correct(
    trace: Trace,
    options: &Options,
    load: &dyn Fn(Arc<dyn Recording>) -> Result<Trace>,
) -> Result<(Trace, Option<Report>)> {
    let latency = (options.latency * trace.resolution as f64).round() as i64;
    let nodes = nodes_of(&trace);
    let is_root = trace.exchange.is_root();
    let before = firsts_and_lasts(&trace)?;
    let constraints = Constraints::gather(&trace)?;
    let span = trace.span().unwrap_or((0, 0));
    let census = Census::new(&constraints, latency, span);
    let mut steps = vec![step("measured", &census)];
    let offsets = from_first(&trace.exchange, || Nodes::find(&trace, &nodes))?;
    let within = |from: ProcessId, to: ProcessId| nodes[from] == nodes[to];

    let mut trace = trace;
    let mut has_helped = false;
    if options.method != Method::Measured
        && !offsets.changed.is_empty()
        && from_first(&trace.exchange, || census.violated)? > 0
    {
        let recorded = trace.recording().clone();
        let corrections = offsets.offsets().map(|(location, offsets)| (location, Correction::Offsets(offsets.into())));
        // Two runs would take twice the memory.
        drop(trace);
        trace = load(Arc::new(Corrected::new(recorded.clone(), corrections.collect())))?;
        let after = Census::new(&Constraints::gather(&trace)?, latency, trace.span().unwrap_or(span));
        has_helped = from_first(&trace.exchange, || {
            after.violated_between(within).0 < census.violated_between(within).0
                && after.violated_between(|a, b| !within(a, b)).0 <= census.violated_between(|a, b| !within(a, b)).0
        })?;
        steps.push(Step { is_kept: has_helped, ..step("nodes", &after) });
        if !has_helped {
            drop(trace);
            trace = load(recorded)?;
        }
    }
    let after = firsts_and_lasts(&trace)?;
    if !is_root {
        return Ok((trace, None));
    }
    let noise = (1e-6 * trace.resolution as f64).max(2.0) as i64;
    let verdict = if census.violated == 0 {
        Verdict::None
    } else if census.worst <= noise {
        Verdict::Noise
    } else if has_helped {
        Verdict::MeasuredOffsets
    } else {
        Verdict::Differ
    };
    let mut processes: Vec<OfProcess> = before
        .iter()
        .zip(&after)
        .enumerate()
        .map(|(process, (&(begin, end), &(new_begin, new_end)))| {
            let (begin, end) = (new_begin - begin, new_end - end);
            let most = if begin.abs() > end.abs() { begin } else { end };
            OfProcess {
                node: nodes[process],
                measured: offsets.measured[process],
                moved: (begin, end, most),
                violated: 0,
            }
        })
        .collect();
    for ((_, from, to), cell) in &census.cells {
        processes[*from].violated += cell.violated;
        if from != to {
            processes[*to].violated += cell.violated;
        }
    }
    let differing = offsets.differing;
    Ok((trace, Some(Report { verdict, steps, census, processes, differing, latency, span })))
}

fn step(name: &'static str, census: &Census) -> Step {
    Step { name, is_kept: true, violated: census.violated, worst: census.worst, sum: census.sum }
}

/// A key of each process's node; processes of an unknown node have one of their own.
fn nodes_of(trace: &Trace) -> Vec<u32> {
    let mut nodes = protocol::nodes(trace);
    for (process, node) in nodes.iter_mut().enumerate().filter(|(_, node)| **node == u32::MAX) {
        *node = u32::MAX - 1 - process as u32;
    }
    nodes
}

/// A value that the first process of the analysis knows.
fn from_first<T: Row + Clone>(exchange: &Exchange, value: impl FnOnce() -> T) -> Result<T> {
    let values = exchange.allgather(exchange.is_root().then(value))?;
    Ok(values.into_iter().flatten().next().expect("the first process has a value"))
}

/// First and last time of each process's master, ticks, at the first process; 0 if it has no events.
fn firsts_and_lasts(trace: &Trace) -> Result<Vec<(i64, i64)>> {
    let spans = trace.shards.iter().flat_map(|shard| {
        shard.processes.map(move |process| {
            // A process of a damaged trace may have no locations.
            let mut locations = trace.definitions.processes[process].locations;
            let span = locations.next().map(|master| &shard.spans[shard.local(master)]);
            span.filter(|span| span.first <= span.last).map_or((0, 0), |span| (span.first, span.last))
        })
    });
    trace.exchange.gatherv(spans)
}
