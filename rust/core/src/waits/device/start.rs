//! What delays the begin of work on a stream, where launches are exact.
//!
//! | | candidate | for |
//! |---|---|---|
//! | c1 | begin of its launch | all |
//! | c2 | end of the work before it on its stream | all |
//! | c3 | end of the last computation that its thread launched before it | a kernel that communicates, on another stream |
//! | c5 | the latest end on another stream | other work that begins more than 8 us after those: inferred |
//! | c6 | the latest end on any stream, at most 20 us after the begin | work of a process without any launches: inferred |
//!
//! Without launches, begins are often recorded some microseconds before the ends that they waited for: times are rounded, or
//! taken by the host. The latest of those that exist decides. A library of collective operations records an event on its caller's stream and lets
//! its own stream wait for it (c3).
//!
//! *Source*: accelerators.md#what-delays-work.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::activity::StartCause;
use crate::ids::LocationId;
use crate::matching::launches::{Run, Span};

/// Gap, in seconds, beyond which work on another stream is taken for the reason of a late begin.
pub(super) const GAP: f64 = 8e-6;

/// By how much, in seconds, work can seem to begin before what it waited for has ended, where nothing is launched.
pub(super) const LEAD: f64 = 20e-6;

/// What delays the begin of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    /// What did.
    pub cause: StartCause,
    /// The computation of c3, which may have ended before something else.
    pub follows: Option<u32>,
}

/// What delayed each run, for runs in order of their begins; [`GAP`] and [`LEAD`] are in ticks.
pub(super) fn starts(runs: &[Run], launches: &[Option<Span>], (gap, lead): (i64, i64)) -> Vec<Start> {
    let launched = Launched::new(runs, launches);
    let has_launches = launches.iter().any(Option::is_some);
    let lead = if has_launches { 0 } else { lead };
    let mut by_end: Vec<u32> = (0..runs.len() as u32).collect();
    by_end.sort_by_key(|&run| runs[run as usize].span.leave);
    let end = |run: u32| runs[run as usize].span.leave;
    let mut on_stream: FxHashMap<LocationId, u32> = FxHashMap::default();
    let mut starts = Vec::with_capacity(runs.len());
    for (number, (run, launch)) in (0..).zip(runs.iter().zip(launches)) {
        let Span { location, enter, .. } = run.span;
        let mut latest = launch.map(|launch| (launch.enter.min(enter), StartCause::Launched));
        let mut consider = |other: Option<u32>| {
            if let Some(other) = other.filter(|&other| end(other) <= enter + lead)
                && latest.is_none_or(|(time, _)| end(other) >= time)
            {
                latest = Some((end(other), StartCause::After(other)));
            }
        };
        consider(on_stream.insert(location, number));
        let follows = launch.filter(|_| run.communicates).and_then(|launch| launched.before(&launch, location));
        let follows = follows.filter(|&other| end(other) <= enter);
        consider(follows);
        let since = latest.map_or(i64::MIN, |(time, _)| time);
        let is_late = !run.communicates && latest.is_some() && enter - since > gap;
        if is_late || !has_launches {
            let before = by_end.partition_point(|&other| end(other) <= enter + lead);
            let others = by_end[..before].iter().rev().take_while(|&&other| end(other) > since);
            let is_other = |span: &Span| span.location != location && (span.enter < enter || span.leave <= enter);
            let other = others.copied().find(|&other| other != number && is_other(&runs[other as usize].span));
            if let Some(other) = other {
                latest = Some((end(other), StartCause::After(other)));
            }
        }
        let cause = latest.map_or(StartCause::Unknown, |(_, cause)| cause);
        starts.push(Start { cause, follows });
    }
    starts
}

/// The computations that each thread launched, in order of launch.
struct Launched<'a> {
    runs: &'a [Run],
    of_threads: BTreeMap<LocationId, Vec<(i64, u32)>>,
}

impl<'a> Launched<'a> {
    fn new(runs: &'a [Run], launches: &[Option<Span>]) -> Self {
        let mut of_threads: BTreeMap<LocationId, Vec<(i64, u32)>> = BTreeMap::new();
        for (number, (_, launch)) in (0..).zip(runs.iter().zip(launches)).filter(|(_, (run, _))| !run.communicates) {
            if let Some(launch) = launch {
                of_threads.entry(launch.location).or_default().push((launch.enter, number));
            }
        }
        for launched in of_threads.values_mut() {
            launched.sort_unstable();
        }
        Self { runs, of_threads }
    }

    /// The run that ends last of the last launch before another one by the same thread, if it is on another stream.
    fn before(&self, launch: &Span, stream: LocationId) -> Option<u32> {
        let launched = self.of_threads.get(&launch.location)?;
        let before = &launched[..launched.partition_point(|&(time, _)| time < launch.enter)];
        let &(last, _) = before.last()?;
        let together = before.iter().rev().take_while(|&&(time, _)| time == last).map(|&(_, run)| run);
        let run = together.max_by_key(|&run| self.runs[run as usize].span.leave)?;
        (self.runs[run as usize].span.location != stream).then_some(run)
    }
}
