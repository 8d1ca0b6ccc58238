//! Stretches: the parts of the critical path between two hand-overs, and what ran in them.

use std::ops::Range;

use bitcode::{Decode, Encode};

use crate::causes::{ForkJoins, Position, Steps};
use crate::ids::{CallPathId, LocationId};
use crate::schema::Class;
use crate::trace::{Shard, Trace};

/// A stretch of the critical path on one location.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Segment {
    /// The location.
    pub location: LocationId,
    /// Begin, ticks.
    pub from: i64,
    /// End, ticks.
    pub to: i64,
    /// Call path with the largest share of it.
    pub callpath: CallPathId,
    /// Ticks of that call path.
    pub ticks: i64,
    /// The wait at its begin, for which the path came from another location; `None` at the begin of the run.
    pub hop: Option<Class>,
}

/// A part of the path on one location.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub(crate) struct Stretch {
    /// Index of the location.
    pub location: LocationId,
    /// Where it begins; `None` at the begin of the location's events.
    pub begin: Option<Position>,
    /// Where it ends; this position and later ones do not belong to it.
    pub end: Position,
    /// Call path that waits at its begin, and for how long, ticks; this time is not on the path. A negative value is a
    /// kernel's launch latency, which is on the path.
    pub held: (CallPathId, i64),
    /// Call path of the release that others waited for, and its time after their wait ended, ticks. A negative value is the
    /// time from there to the end of their wait, which is on the path.
    pub overrun: (CallPathId, i64),
    /// When it ends at the latest, ticks: where clocks disagree, what comes later on the path may lie before its end.
    pub until: i64,
}

impl Stretch {
    /// Whether anything of it may lie inside a window of time.
    pub(crate) fn may_overlap(&self, trace: &Trace, shard: &Shard, window: &Range<i64>) -> bool {
        if !shard.teams.rows.is_empty() || trace.definitions.has_streams {
            // Forks, joins and kernels may reach beyond the events at its ends.
            return true;
        }
        let i = shard.local(self.location);
        let (first, end) = (shard.event_offsets[i], shard.event_offsets[i + 1]);
        let Some(last) = end.checked_sub(1).filter(|&last| first <= last) else { return false };
        let time = |event: u32| shard.events.time[event.clamp(first, last) as usize];
        let begin = self.begin.map_or(first, |begin| begin.event().saturating_sub(1));
        time(begin) < window.end && time(self.end.event()) > window.start
    }

    /// Replaces `spans` by the call paths that ran in it, in order of time (thesis, definition 22).
    pub(crate) fn collect(
        &self,
        (trace, shard): (&Trace, &Shard),
        fork_joins: &ForkJoins,
        spans: &mut Vec<(CallPathId, Range<i64>)>,
    ) {
        spans.clear();
        let i = shard.local(self.location);
        let mut steps = match self.begin {
            Some(begin) => Steps::from(fork_joins, i, begin),
            None => Steps::of_location(fork_joins, i),
        };
        steps.advance(trace, self.end, |callpath, span| spans.push((callpath, span)));
        let (callpath, mut held) = self.held;
        if held < 0 {
            // What comes before it may have another call path.
            if let Some(first) = spans.first().map(|(_, span)| span.start) {
                spans.insert(0, (callpath, first + held..first));
            }
            held = 0;
        }
        for (_, span) in spans.iter_mut().filter(|(running, _)| *running == callpath) {
            let part = held.min(span.end - span.start).max(0);
            span.start += part;
            held -= part;
        }
        let (callpath, mut overrun) = self.overrun;
        if overrun < 0 {
            let at = self.end.event().checked_sub(1).map_or(0, |before| shard.events.time[before as usize]);
            spans.push((callpath, at..at - overrun));
            overrun = 0;
        }
        for (_, span) in spans.iter_mut().rev().filter(|(running, _)| *running == callpath) {
            let part = overrun.min(span.end - span.start).max(0);
            span.end -= part;
            overrun -= part;
        }
        if self.until < i64::MAX {
            for (_, span) in spans.iter_mut() {
                span.end = span.end.min(self.until);
                span.start = span.start.min(span.end);
            }
        }
    }
}
