//! Idle threads: what the master of their process does meanwhile.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::rows::Row;
use super::sweep::CallPaths;
use crate::ids::{CallPathId, LocationId};
use crate::trace::management::Management;
use crate::trace::{CallTree, Shard};

/// The master of a process, whose time tells why other threads are idle.
pub(super) struct Master<'a> {
    pub shard: &'a Shard,
    pub tree: &'a CallTree,
    pub callpaths: &'a CallPaths,
    /// Position among the shard's locations.
    pub local: usize,
    pub management: &'a [Management],
}

/// Ticks of idle threads by row and call path of the master.
pub(super) type Reasons = FxHashMap<(Row, CallPathId), i64>;

impl Master<'_> {
    /// Why threads are idle in these spans: each with the location, in any order.
    ///
    /// Most threads are idle in the same spans, between two parallel regions.
    pub(super) fn reasons(&self, mut spans: Vec<(Range<i64>, LocationId)>) -> FxHashMap<LocationId, Reasons> {
        spans.sort_unstable_by_key(|(span, location)| (span.start, span.end, *location));
        let mut of_locations: FxHashMap<LocationId, Reasons> = FxHashMap::default();
        let mut reasons = Vec::new();
        for same in spans.chunk_by(|a, b| a.0 == b.0) {
            reasons.clear();
            self.of_span(&same[0].0, &mut reasons);
            for (_, location) in same {
                let of_location = of_locations.entry(*location).or_default();
                for &(row, callpath, ticks) in &reasons {
                    *of_location.entry((row, callpath)).or_default() += ticks;
                }
            }
        }
        of_locations
    }

    fn of_span(&self, span: &Range<i64>, reasons: &mut Vec<(Row, CallPathId, i64)>) {
        let Self { shard, local, .. } = *self;
        let all = shard.event_offsets[local]..shard.event_offsets[local + 1];
        let times = &shard.events.time[all.start as usize..all.end as usize];
        let mut next = times.partition_point(|&time| time <= span.start);
        let mut since = span.start;
        while since < span.end {
            let until = times.get(next).map_or(span.end, |&time| time.min(span.end));
            let running = next.checked_sub(1).map(|before| (before + 1 < times.len(), all.start + before as u32));
            self.of_stretch(running, since..until, reasons);
            since = until;
            next += 1;
        }
    }

    /// Adds a span between two events of the master, given the event before and whether there is one after it.
    fn of_stretch(&self, running: Option<(bool, u32)>, span: Range<i64>, reasons: &mut Vec<(Row, CallPathId, i64)>) {
        let (row, callpath) = match running {
            None => (Row::Unknown, CallPathId::NONE),
            Some((false, _)) => (Row::IdleEnded, CallPathId::NONE),
            Some((true, event)) => self.after(event),
        };
        let mut rest = span.end - span.start;
        if row == Row::IdleSerial {
            let first = self.management.partition_point(|management| management.end <= span.start);
            let mut since = span.start;
            for management in self.management[first..].iter().take_while(|management| management.begin < span.end) {
                let ticks = management.end.min(span.end) - management.begin.max(since);
                if management.during == callpath && ticks > 0 {
                    reasons.push((Row::IdleSmallerTeam, management.callpath, ticks));
                    since = management.end.min(span.end);
                    rest -= ticks;
                }
            }
        }
        if rest > 0 {
            reasons.push((row, callpath, rest));
        }
    }

    /// What a thread without work is after an event of the master.
    fn after(&self, event: u32) -> (Row, CallPathId) {
        let events = &self.shard.events;
        let callpath = events.running_after(self.tree, event);
        if callpath.is_none() {
            return (Row::Unknown, callpath);
        }
        let parallel = self.callpaths.parallel[callpath];
        if parallel.is_some() {
            return (Row::IdleSmallerTeam, parallel);
        }
        let is_library = self.callpaths.activities[callpath].is_library();
        (if is_library { Row::IdleLibrary } else { Row::IdleSerial }, callpath)
    }
}
