//! What the counters of a trace come to, of all processes of the analysis.

use crate::Result;
use crate::diagnostics::{DiagnosticKind, Diagnostics};
use crate::trace::Trace;
use crate::trace::counters::{CounterCell, Kind};

/// What counters come to at call paths and locations.
#[derive(Debug, Default)]
pub struct Recorded {
    /// The cells, by location, call path and counter; all of them at the first process.
    pub cells: Vec<CounterCell>,
    /// What the values of each counter say: a total that falls, and was not reset, is none.
    pub kinds: Vec<Kind>,
}

/// Takes the cells out of the shards, and checks what modes claim against what values do (COUNTERS 2.2).
pub fn collect(trace: &mut Trace) -> Result<(Recorded, Diagnostics)> {
    let mut diagnostics = Diagnostics::default();
    let counters = &trace.definitions.counters.all;
    if counters.is_empty() {
        return Ok((Recorded::default(), diagnostics));
    }
    let has_fallen = |i: usize| trace.shards.iter().any(|shard| shard.fell.get(i) == Some(&true));
    let own: Vec<bool> = (0..counters.len()).map(has_fallen).collect();
    let all = trace.exchange.allgather(own)?;
    let begin = trace.span().map_or(0, |(first, _)| first);
    let mut kinds = Vec::with_capacity(counters.len());
    for (i, counter) in counters.iter().enumerate() {
        let is_level = counter.kind() == Kind::Total && !counter.is_trusted() && all.iter().any(|fell| fell[i]);
        if is_level && trace.exchange.is_root() {
            diagnostics.explain(DiagnosticKind::MetricMode, 0, begin, counter.name.clone());
        }
        kinds.push(if is_level { Kind::Samples } else { counter.kind() });
    }
    let cells = trace.shards.iter_mut().flat_map(|shard| std::mem::take(&mut shard.counters)).collect::<Vec<_>>();
    Ok((Recorded { cells: trace.exchange.gatherv(cells)?, kinds }, diagnostics))
}
