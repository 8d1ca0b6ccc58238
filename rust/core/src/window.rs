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

use rustc_hash::FxHashMap;

use crate::Result;
use crate::causes::ForkJoins;
use crate::critical_path::{Segment, Stretch};
use crate::ids::{CallPathId, LocationId};
use crate::parallel::iter::prelude::*;
use crate::parallel::per_shard::PerShard;
use crate::schema::MetricSet;
use crate::severity::{Accumulator, Metric, Severity, combine};
use crate::trace::columns::Team;
use crate::trace::{NONE, Shard, Trace};
use crate::waits::interval::{self, overlap};
use crate::waits::{self, WaitState};

/// Times, waits, the critical path and thread management inside the window. `path` holds the stretches of the critical
/// path, sorted by location; `whole` the severities of the whole run, if they are known.
///
/// Most of a run is quicker found as what its small rest leaves of the whole.
///
/// Returns non-zero cells, sorted by metric, call path, location; of several processes, the first gets them, which alone
/// needs all waits and the severities of the whole run.
pub(crate) fn severities(
    trace: &Trace,
    waits: &PerShard<WaitState>,
    path: &[Stretch],
    whole: Option<&[Severity]>,
    window: &Range<i64>,
) -> Result<Vec<Severity>> {
    let within = |windows: &[Range<i64>]| -> Result<Vec<Severity>> {
        let shards = trace.par_shards().enumerate();
        let cells = shards.map(|(i, shard)| {
            let mut cells = of_shard(trace, shard, waits.of(i).1, windows);
            cells.extend(critical_path(trace, shard, path, windows));
            cells
        });
        trace.exchange.gatherv(cells.flatten().collect::<Vec<_>>())
    };
    let (first, last) = trace.span().unwrap_or_default();
    let length = window.end.min(last).saturating_sub(window.start.max(first));
    let Some(whole) = whole.filter(|_| length > last.saturating_sub(first) / 2) else {
        return Ok(combine(within(std::slice::from_ref(window))?));
    };
    let mut is_divided = waits::kinds(waits);
    for metric in [Metric::Time, Metric::CriticalPath, Metric::OmpFork, Metric::OmpManagement, Metric::WrongOrder] {
        is_divided[metric.number()] = true;
    }
    let mut cells: Vec<Severity> = whole.iter().filter(|cell| is_divided[cell.metric.number()]).copied().collect();
    let rest = within(&[i64::MIN..window.start, window.end..i64::MAX])?;
    cells.extend(rest.into_iter().map(|cell| Severity { value: -cell.value, ..cell }));
    Ok(combine(cells))
}

/// Times on the critical path within a window, from those of all of it. The cells of a process of the analysis are its own.
pub(crate) fn path_within(trace: &Trace, path: (&[Severity], &[Stretch]), window: &Range<i64>) -> Vec<Severity> {
    let (whole, stretches) = path;
    let outside = [i64::MIN..window.start, window.end..i64::MAX];
    let outside = trace.par_shards().flat_map(|shard| critical_path(trace, shard, stretches, &outside));
    let outside: Vec<Severity> = outside.map(|cell| Severity { value: -cell.value, ..cell }).collect();
    let mut cells: Vec<Severity> = whole.iter().filter(|cell| cell.metric == Metric::CriticalPath).copied().collect();
    cells.extend(outside);
    combine(cells)
}

/// Time of a shard's locations on the critical path; `path` is sorted by location.
fn critical_path(trace: &Trace, shard: &Shard, path: &[Stretch], windows: &[Range<i64>]) -> Vec<Severity> {
    let first = path.partition_point(|stretch| stretch.location < shard.locations.start);
    let end = path.partition_point(|stretch| stretch.location < shard.locations.end);
    let mut ticks: FxHashMap<(CallPathId, LocationId), i64> = FxHashMap::default();
    let mut spans = Vec::new();
    let fork_joins = ForkJoins::new(trace, shard);
    let is_near = |stretch: &&Stretch| windows.iter().any(|window| stretch.may_overlap(trace, shard, window));
    for stretch in path[first..end].iter().filter(is_near) {
        stretch.collect((trace, shard), &fork_joins, &mut spans);
        for (callpath, span) in &spans {
            // With clock errors a span can end before it begins, in the whole run as well.
            let inside = windows.iter().map(|window| {
                let ends = [span.start, span.end].map(|time| time.max(window.start).min(window.end));
                ends[1] - ends[0]
            });
            *ticks.entry((*callpath, stretch.location)).or_insert(0) += inside.sum::<i64>();
        }
    }
    let metric = Metric::CriticalPath;
    let cells = ticks.into_iter().map(|((callpath, location), value)| Severity { metric, callpath, location, value });
    cells.collect()
}

/// The window between two times, seconds since the begin of the trace.
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

fn of_shard(trace: &Trace, shard: &Shard, waits: &[WaitState], windows: &[Range<i64>]) -> Vec<Severity> {
    let mut cells = Accumulator::new(&trace.tree);
    let mut waits = waits.chunk_by(|a, b| a.location == b.location).peekable();
    for i in 0..shard.locations.len() {
        let location = shard.location(i);
        for (callpath, begin, end) in windows.iter().flat_map(|window| shard.stretches(&trace.tree, i, window.clone()))
        {
            if callpath.is_some() {
                cells.add(Metric::Time, callpath, end - begin);
            }
        }
        if let Some(waits) = waits.next_if(|waits| waits[0].location == location) {
            interval::each_near(trace, waits, windows, |number, time| {
                let wait = &waits[number];
                let callpath = shard.callpath(wait.instance);
                let waiting = overlaps(windows, &time);
                cells.add(wait.kind, callpath, waiting);
                // Each wait in wrong order is of one of two kinds, so their parent adds no waits of its own.
                if matches!(wait.kind, Metric::WrongOrderSame | Metric::WrongOrderDifferent) {
                    cells.add(Metric::WrongOrder, callpath, waiting);
                }
            });
        }
        cells.end_location(location);
    }
    let mut cells = cells.finish();
    for i in 0..shard.locations.len() {
        for team in shard.teams.of(i).iter().filter(|team| team.fork != NONE && team.instance.is_some()) {
            book_management(shard, shard.location(i), team, windows, &mut cells);
        }
    }
    cells
}

/// The length of a span's parts inside the windows.
fn overlaps(windows: &[Range<i64>], span: &Range<i64>) -> i64 {
    windows.iter().map(|window| overlap(window, span.clone())).sum()
}

/// Moves the time of a team's fork and join to its parallel region.
fn book_management(
    shard: &Shard,
    location: LocationId,
    team: &Team,
    windows: &[Range<i64>],
    cells: &mut Vec<Severity>,
) {
    let fork = &shard.forks.rows[team.fork as usize];
    let callpath = shard.callpath(team.instance);
    let begin = overlaps(windows, &(fork.fork..shard.enter(team.instance)));
    let end = if fork.join == i64::MIN { 0 } else { overlaps(windows, &(shard.leave(team.instance)..fork.join)) };
    let mut add = |metric, callpath, value| cells.push(Severity { metric, callpath, location, value });
    add(Metric::OmpFork, callpath, begin);
    add(Metric::OmpManagement, callpath, begin + end);
    add(Metric::Time, callpath, begin + end);
    if fork.callpath.is_some() && location == shard.location_of(&shard.forks, team.fork) {
        add(Metric::Time, fork.callpath, -(begin + end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::tests::shipped;
    use crate::analysis::{Monitor, Options, analyze};

    /// Most of a run, found as what the rest leaves of the whole, is what its own events and waits add up to.
    #[test]
    fn what_the_rest_leaves_is_what_is_there() {
        let mut compared = 0;
        for case in ["p2p", "collectives", "sor_fence", "sor_gats", "sor_locks", "omp_nested", "rma_progress"] {
            let found = analyze(shipped(case), &Options::default(), None, &Monitor::default()).unwrap();
            let (first, last) = found.trace.span().unwrap();
            let path = &found.causes.as_ref().unwrap().stretches;
            let part = |share: f64| first + ((last - first) as f64 * share) as i64;
            for (begin, end) in [(0.0, 1.0), (0.01, 0.99), (0.2, 0.8), (0.4, 1.0), (-1.0, 0.6), (0.1, 2.0)] {
                let window = part(begin)..part(end);
                let of = |whole| severities(&found.trace, &found.waits, path, whole, &window).unwrap();
                let expected = of(None);
                assert_eq!(of(Some(&found.severities)), expected, "{case}: {begin} to {end}");
                compared += expected.len();
            }
        }
        assert!(compared > 1_000);
    }
}
