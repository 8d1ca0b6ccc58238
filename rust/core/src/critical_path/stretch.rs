//! Stretches: the parts of the critical path between two hand-overs, and what ran on them.

use std::ops::Range;

use crate::causes::{Position, Steps};
use crate::ids::{CallPathId, LocationId};
use crate::trace::{Shard, Trace};

/// A part of the path on one location.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    /// Index of the location.
    pub location: LocationId,
    /// Where it begins; `None` at the begin of the location's events.
    pub begin: Option<Position>,
    /// Nothing at or behind this belongs to it.
    pub end: Position,
    /// Call path that waits at its begin, and how long, ticks: that is not on the path. Less than nothing is what a kernel
    /// took to start, which is.
    pub held: (CallPathId, i64),
    /// Call path of the release that others waited for, and what it did after their wait had ended, ticks.
    pub over: (CallPathId, i64),
}

impl Stretch {
    /// Collects what ran on it, and when, in this order (thesis, definition 22); what `spans` had is dropped.
    pub(crate) fn collect(&self, trace: &Trace, shard: &Shard, spans: &mut Vec<(CallPathId, Range<i64>)>) {
        spans.clear();
        let i = shard.local(self.location);
        let mut steps = match self.begin {
            Some(begin) => Steps::from(trace, shard, i, begin),
            None => Steps::of_location(trace, shard, i),
        };
        steps.advance(trace, self.end, |callpath, span| spans.push((callpath, span)));
        let (callpath, mut held) = self.held;
        for (_, span) in spans.iter_mut().filter(|(running, _)| *running == callpath) {
            let part = if held < 0 { held } else { held.min(span.end - span.start).max(0) };
            span.start += part;
            held -= part;
        }
        let (callpath, mut over) = self.over;
        for (_, span) in spans.iter_mut().rev().filter(|(running, _)| *running == callpath) {
            let part = over.min(span.end - span.start).max(0);
            span.end -= part;
            over -= part;
        }
    }
}
