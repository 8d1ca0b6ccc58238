//! Severities of a time window: the part of each call and of each wait inside it.
//!
//! *Time* between two events of a location belongs to one call path, in the window as in the whole run. The time from a
//! fork to the parallel region, and from there to the join, is moved to the region.
//! *Waits* are placed in their calls by [`interval`]. Costs are those of the waits' parts inside the window, wherever
//! and whenever their causes are: see [`crate::causes`].
//! *Critical path*: the parts of its [stretches](Stretch) inside the window.
//!
//! Adjacent windows that cover the run add up exactly to the whole run.

use std::ops::Range;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::critical_path::{Segment, Stretch};
use crate::ids::{CallPathId, LocationId};
use crate::per_shard::PerShard;
use crate::severity::{Accumulator, Metric, Severity, combine};
use crate::trace::columns::Team;
use crate::trace::{NONE, Shard, Trace};
use crate::waits::WaitState;
use crate::waits::interval::{self, overlap};

/// Times, waits, the critical path and thread management inside the window. `path` holds the stretches of the critical
/// path, sorted by location.
///
/// Returns non-zero cells, sorted by metric, call path, location.
#[must_use]
pub(crate) fn severities(
    trace: &Trace,
    waits: &PerShard<WaitState>,
    path: &[Stretch],
    window: &Range<i64>,
) -> Vec<Severity> {
    let shards = trace.shards.par_iter().enumerate();
    let cells = shards.map(|(i, shard)| {
        let mut cells = of_shard(trace, shard, waits.of(i).1, window);
        cells.extend(critical_path(trace, shard, path, window));
        cells
    });
    combine(cells.flatten_iter().collect())
}

/// Time of a shard's locations on the critical path; `path` is sorted by location.
fn critical_path(trace: &Trace, shard: &Shard, path: &[Stretch], window: &Range<i64>) -> Vec<Severity> {
    let first = path.partition_point(|stretch| stretch.location < shard.locations.start);
    let end = path.partition_point(|stretch| stretch.location < shard.locations.end);
    let mut ticks: FxHashMap<(CallPathId, LocationId), i64> = FxHashMap::default();
    let mut spans = Vec::new();
    for stretch in &path[first..end] {
        stretch.collect(trace, shard, &mut spans);
        for (callpath, span) in &spans {
            // With clock errors a span can end before it begins, in the whole run as well.
            let ends = [span.start, span.end].map(|time| time.max(window.start).min(window.end));
            *ticks.entry((*callpath, stretch.location)).or_insert(0) += ends[1] - ends[0];
        }
    }
    let metric = Metric::CriticalPath;
    let cells = ticks.into_iter().map(|((callpath, location), value)| Severity { metric, callpath, location, value });
    cells.collect()
}

/// The window between two times, seconds since the begin of the trace.
#[must_use]
pub fn ticks(trace: &Trace, (begin, end): (f64, f64)) -> Range<i64> {
    let first = trace.span().map_or(0, |(first, _)| first);
    let tick = |seconds: f64| first.saturating_add((seconds * trace.resolution as f64).round() as i64);
    tick(begin)..tick(end)
}

/// The parts of critical-path segments inside a window.
pub fn clipped(path: &[Segment], window: &Range<i64>) -> impl Iterator<Item = Segment> {
    path.iter().filter_map(|segment| {
        let (from, to) = (segment.from.max(window.start), segment.to.min(window.end));
        (from < to).then_some(Segment { from, to, ticks: segment.ticks.min(to - from), ..*segment })
    })
}

fn of_shard(trace: &Trace, shard: &Shard, waits: &[WaitState], window: &Range<i64>) -> Vec<Severity> {
    let mut cells = Accumulator::new(&trace.tree);
    let begins = interval::begins(trace, waits);
    let mut waits = waits.iter().zip(begins).peekable();
    for i in 0..shard.locations.len() {
        let location = shard.location(i);
        for (callpath, begin, end) in shard.stretches(&trace.tree, i, window.clone()) {
            if callpath.is_some() {
                cells.add(Metric::Time, callpath, end - begin);
            }
        }
        while let Some((wait, begin)) = waits.next_if(|(wait, _)| wait.location == location) {
            let callpath = shard.callpath(wait.instance);
            let waiting = overlap(window, begin..begin + wait.waiting);
            cells.add(wait.kind, callpath, waiting);
            // Each wait in wrong order is of one of two kinds, so their parent adds no waits of its own.
            if matches!(wait.kind, Metric::WrongOrderSame | Metric::WrongOrderDifferent) {
                cells.add(Metric::WrongOrder, callpath, waiting);
            }
        }
        cells.end_location(location);
    }
    let mut cells = cells.finish();
    for i in 0..shard.locations.len() {
        for team in shard.teams.of(i).iter().filter(|team| team.fork != NONE && team.instance.is_some()) {
            book_management(shard, shard.location(i), team, window, &mut cells);
        }
    }
    cells
}

/// Moves the time of a team's fork and join to its parallel region.
fn book_management(shard: &Shard, location: LocationId, team: &Team, window: &Range<i64>, cells: &mut Vec<Severity>) {
    let fork = &shard.forks.rows[team.fork as usize];
    let callpath = shard.callpath(team.instance);
    let begin = overlap(window, fork.fork..shard.enter(team.instance));
    let end = if fork.join == i64::MIN { 0 } else { overlap(window, shard.leave(team.instance)..fork.join) };
    let mut add = |metric, callpath, value| cells.push(Severity { metric, callpath, location, value });
    add(Metric::OmpFork, callpath, begin);
    add(Metric::OmpManagement, callpath, begin + end);
    add(Metric::Time, callpath, begin + end);
    if fork.callpath.is_some() && location == shard.location_of(&shard.forks, team.fork) {
        add(Metric::Time, fork.callpath, -(begin + end));
    }
}
