//! What the analysis found: wait states with their causes, and the critical path.

use std::collections::BTreeMap;
use std::ops::Range;

use super::lines::Lines;
use super::written::Written;
use crate::analysis::Analysis;
use crate::export::clock::Clock;
use crate::export::selection::Selection;
use crate::ids::LocationId;
use crate::schema::Pattern;

/// Types of events, in a range that Extrae does not use: the wait state, by its place among metrics, from 1.
pub(super) const WAIT_STATE: u32 = 97_000_001;
/// The task that is waited for.
pub(super) const TASK: u32 = WAIT_STATE + 1;
/// The call path that causes the wait.
pub(super) const PATH: u32 = WAIT_STATE + 2;
/// How long the wait is, ns.
pub(super) const LENGTH: u32 = WAIT_STATE + 3;
/// Whether the critical path is there.
pub(super) const CRITICAL: u32 = WAIT_STATE + 4;
/// How much waiting of others a call causes, ns.
pub(super) const DELAYS: u32 = WAIT_STATE + 5;
/// Whether it is inferred who is waited for.
pub(super) const INFERRED: u32 = WAIT_STATE + 6;

/// What was found.
pub(super) struct Found {
    pub(super) lines: Vec<Lines>,
    /// Call paths that cause waits, by number.
    pub(super) paths: Vec<u32>,
}

/// Finds the lines of all wait states, their causes, and the critical path.
pub(super) fn find(
    analysis: &Analysis,
    stretches: &[(usize, Range<i64>)],
    selection: &Selection,
    written: &mut Written,
) -> Found {
    let trace = &analysis.trace;
    let clock = Clock::of(trace);
    let length = |ticks: i64| clock.nanoseconds(clock.begin.saturating_add(ticks)) as i64;
    let mut lines: BTreeMap<LocationId, Lines> = BTreeMap::new();
    let mut paths: BTreeMap<u32, i64> = BTreeMap::new();
    let mut delays: BTreeMap<(LocationId, i64, i64), i64> = BTreeMap::new();
    let mut waits: Vec<(LocationId, i64, i64, usize)> = Vec::new();
    for (number, time) in stretches {
        let wait = &analysis.waits[*number];
        let counts = Pattern::of(wait.kind).is_some_and(|of| of.part_of.is_none() && !of.position.is_completion());
        if counts && selection.has(trace, wait.location) && selection.lasts(time.start, time.end) {
            waits.push((wait.location, time.start, time.end, *number));
        }
    }
    waits.sort_unstable();
    for (at, &(location, begin, end, number)) in waits.iter().enumerate() {
        let wait = &analysis.waits[number];
        let mut pairs = vec![(WAIT_STATE, wait.kind as i64 + 1), (LENGTH, length(end - begin))];
        if wait.cause_location.is_some() {
            let process = trace.definitions.locations[wait.cause_location].process;
            pairs.push((TASK, i64::from(process.number()) + 1));
        }
        if let Some(cause) = analysis.cause(wait) {
            pairs.push((PATH, i64::from(cause.callpath.number()) + 1));
            paths.insert(cause.callpath.number(), 0);
            if selection.has(trace, wait.cause_location) {
                *delays.entry((wait.cause_location, cause.enter, cause.leave)).or_default() += end - begin;
            }
        }
        if wait.is_inferred {
            pairs.push((INFERRED, 1));
        }
        let of_location = lines.entry(location).or_insert_with(|| Lines::new(location));
        of_location.events(begin, pairs);
        // What begins before this ends says what comes next.
        let is_followed = waits.get(at + 1).is_some_and(|next| next.0 == location && next.1 <= end);
        if !is_followed {
            of_location.events(end, [WAIT_STATE, TASK, PATH, INFERRED].map(|kind| (kind, 0)));
        }
        written.wait_states += 1;
    }
    for ((location, enter, leave), ticks) in delays {
        let of_location = lines.entry(location).or_insert_with(|| Lines::new(location));
        of_location.events(enter, [(DELAYS, length(ticks))]);
        of_location.events(leave, [(DELAYS, 0)]);
    }
    let path = analysis.causes.as_ref().map(|causes| causes.path.as_slice()).unwrap_or_default();
    for segment in path {
        if selection.has(trace, segment.location) && selection.lasts(segment.from, segment.to) {
            let of_location = lines.entry(segment.location).or_insert_with(|| Lines::new(segment.location));
            of_location.events(segment.from, [(CRITICAL, 1)]);
            of_location.events(segment.to, [(CRITICAL, 0)]);
            written.critical_path += 1;
        }
    }
    Found { lines: lines.into_values().collect(), paths: paths.into_keys().collect() }
}
