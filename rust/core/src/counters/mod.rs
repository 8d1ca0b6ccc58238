//! The counters of a trace, over all processes of the analysis.
//!
//! Counters of the recording location itself are attributed to call paths while the events are read
//! ([`crate::trace::counters::book`]). Others have a process, a machine or a group as their scope, or a location of
//! their own: their samples are kept, and divided over the CPU threads in their scope ([`scoped`]). Queries of single
//! intervals of time read the samples again ([`samples`]).

mod courses;
mod pauses;
mod samples;
mod scoped;
mod series;

pub use courses::{Bin, courses};
pub(crate) use samples::recorded;
pub use samples::{Change, Stretch, changes, instances, window};

use crate::Result;
use crate::diagnostics::{DiagnosticKind, Diagnostics, Place};
use crate::ids::LocationId;
use crate::trace::Trace;
use crate::trace::counters::{CounterCell, Kind};

/// Totals of counters by call path and location.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// The cells, by location, call path and counter; all of them at the first process.
    pub cells: Vec<CounterCell>,
    /// The kind of each counter. A counter that decreases without a reset is not a total, whatever its definition.
    pub kinds: Vec<Kind>,
}

/// Takes the cells out of the shards, and checks the defined modes against the values:
/// counters.md#counters-of-the-trace.
pub fn collect(trace: &mut Trace) -> Result<(Recorded, Diagnostics)> {
    let mut diagnostics = Diagnostics::default();
    let counters = &trace.definitions.counters.all;
    if counters.is_empty() {
        return Ok((Recorded::default(), diagnostics));
    }
    let mut has_fallen = vec![false; counters.len()];
    for shard in &trace.shards {
        has_fallen.iter_mut().zip(&shard.has_fallen).for_each(|(all, of_shard)| *all |= of_shard);
    }
    let all = trace.exchange.allgather(has_fallen)?;
    let begin = trace.span().map_or(0, |(first, _)| first);
    if trace.exchange.is_root() {
        for oddity in &trace.definitions.counters.oddities {
            diagnostics.explain(DiagnosticKind::MetricDefinition, Place::at(LocationId::new(0), begin), oddity.clone());
        }
    }
    let mut kinds = Vec::with_capacity(counters.len());
    for (i, counter) in counters.iter().enumerate() {
        let is_level =
            counter.kind() == Kind::Total && !counter.is_trusted() && all.iter().any(|has_fallen| has_fallen[i]);
        if is_level && trace.exchange.is_root() {
            diagnostics.explain(DiagnosticKind::MetricMode, Place::at(LocationId::new(0), begin), counter.name.clone());
        }
        kinds.push(if is_level { Kind::Samples } else { counter.kind() });
    }
    let mut cells = trace.shards.iter_mut().flat_map(|shard| std::mem::take(&mut shard.counters)).collect::<Vec<_>>();
    cells.extend(scoped::divide(trace, &kinds, None)?);
    let mut cells = trace.exchange.gatherv(cells)?;
    cells.sort_by_key(|cell| (cell.location, cell.callpath, cell.counter));
    cells.dedup_by(|next, cell| {
        let same = (cell.location, cell.callpath, cell.counter) == (next.location, next.callpath, next.counter);
        if same {
            cell.sums += next.sums;
        }
        same
    });
    Ok((Recorded { cells, kinds }, diagnostics))
}
