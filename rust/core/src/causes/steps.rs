//! Steps: the time from one Enter or Leave of a location to the next.
//!
//! A step's time belongs to the call path that ran before the event at its end, and has the position of that event. So
//! the time before a call comes before everything in the call, and the time of a leaf call comes after all of its
//! records.
//!
//! *Threads*: the time from a fork to the parallel region, and from there to the join, belongs to the region. At the
//! forking thread, the time from its last event to the fork belongs to the call path before. The time of other threads
//! outside teams belongs to no call path, or in intervals to the past of the thread ([`super::past`]).
//!
//! *Source*: specification.md#profiles-of-intervals.

use std::ops::Range;

use super::Position;
use super::past::Gap;
use crate::ids::{CallPathId, LocationId};
use crate::trace::{NONE, Shard, Trace};

/// A step that does not end at an Enter or Leave.
#[derive(Clone, Copy)]
struct Detour {
    at: Position,
    /// When it ends.
    until: i64,
    /// Call path of the parallel region: of the step itself for a join, of the next step for a fork.
    callpath: CallPathId,
}

/// Walks over the steps of one location.
pub(crate) struct Steps<'a> {
    shard: &'a Shard,
    detours: Vec<Detour>,
    next_detour: usize,
    /// Next event.
    event: u32,
    end: u32,
    /// Time of the last event.
    since: i64,
    /// Call path that has run since then.
    running: CallPathId,
    /// Calls that have been entered and not left.
    depth: u32,
    past: Option<Box<PastSteps<'a>>>,
}

/// Walks over the steps in the past of a thread.
struct PastSteps<'a> {
    /// Those of the master.
    steps: Steps<'a>,
    gaps: std::vec::IntoIter<Gap>,
    /// Whether the walk has come to the begin of the next gap.
    is_inside: bool,
}

impl PastSteps<'_> {
    /// Goes on in the next gap; what the master does before it belongs to others.
    fn advance(&mut self, trace: &Trace, from: Position, to: Position, book: impl FnMut(CallPathId, Range<i64>)) {
        if !self.is_inside {
            self.steps.advance_own(trace, from, |_, _| ());
            self.is_inside = true;
        }
        self.steps.advance_own(trace, to, book);
    }
}

impl<'a> Steps<'a> {
    /// All steps of the shard's i-th location.
    pub(crate) fn of_location(trace: &Trace, shard: &'a Shard, i: usize) -> Self {
        Self {
            shard,
            detours: detours(trace, shard, i),
            next_detour: 0,
            event: shard.event_offsets[i],
            end: shard.event_offsets[i + 1],
            since: 0,
            running: CallPathId::NONE,
            depth: 0,
            past: None,
        }
    }

    /// With those in the past of the location, which it shares with its master.
    pub(crate) fn with_past(mut self, trace: &Trace, (master, gaps): (LocationId, Vec<Gap>)) -> Self {
        if !gaps.is_empty() {
            let steps = Self::of_location(trace, self.shard, self.shard.local(master));
            self.past = Some(Box::new(PastSteps { steps, gaps: gaps.into_iter(), is_inside: false }));
        }
        self
    }

    /// The steps of the shard's i-th location from a position inside of a call on.
    pub(crate) fn from(trace: &Trace, shard: &'a Shard, i: usize, position: Position) -> Self {
        let mut steps = Self::of_location(trace, shard, i);
        let event = position.event().min(steps.end);
        if event > steps.event {
            let before = event - 1;
            steps.event = event;
            steps.since = shard.events.time[before as usize];
            steps.running = shard.events.callpath(before);
            if shard.events.is_leave(before) {
                steps.running = trace.tree.nodes()[steps.running].parent;
            }
            // The depth is unknown, but no interval that begins inside a call extends beyond the end of its team.
            steps.depth = u32::MAX / 2;
        }
        let before = |detour: &Detour| detour.at < position;
        steps.next_detour = steps.detours.iter().take_while(|detour| before(detour)).count();
        if let Some(last) = steps.next_detour.checked_sub(1).map(|last| steps.detours[last])
            && last.at.event() == event
        {
            steps.since = last.until;
            if last.at.is_fork() {
                steps.running = last.callpath;
            }
        }
        steps
    }

    /// Passes all steps before a position to `book`: call path, and range of time.
    #[inline]
    pub(crate) fn advance(&mut self, trace: &Trace, to: Position, mut book: impl FnMut(CallPathId, Range<i64>)) {
        if self.past.is_some() {
            self.finish_gaps(trace, to, &mut book);
        }
        self.advance_own(trace, to, book);
    }

    /// The same to a point in the past of the location, of which the original stands here at the master.
    pub(crate) fn advance_past(
        &mut self,
        trace: &Trace,
        (copy, original): (Position, Position),
        mut book: impl FnMut(CallPathId, Range<i64>),
    ) {
        let gap = Position::past(copy.event());
        self.finish_gaps(trace, gap, &mut book);
        self.advance_own(trace, gap, &mut book);
        if let Some(past) = &mut self.past
            && let Some(&Gap { from, .. }) = past.gaps.as_slice().first()
        {
            past.advance(trace, from, original, book);
        }
    }

    /// Hands all steps in the gaps before a position of the location to `book`.
    fn finish_gaps(&mut self, trace: &Trace, to: Position, book: &mut impl FnMut(CallPathId, Range<i64>)) {
        while let Some(gap) = self.past.as_ref().and_then(|past| past.gaps.as_slice().first().copied())
            && gap.at < to
        {
            self.advance_own(trace, gap.at, &mut *book);
            if let Some(past) = &mut self.past {
                past.advance(trace, gap.from, gap.until, &mut *book);
                past.is_inside = false;
                past.gaps.next();
            }
        }
    }

    #[inline]
    fn advance_own(&mut self, trace: &Trace, to: Position, mut book: impl FnMut(CallPathId, Range<i64>)) {
        while let Some(&detour) = self.detours.get(self.next_detour).filter(|detour| detour.at < to) {
            self.events(trace, detour.at.event(), &mut book);
            self.next_detour += 1;
            if detour.at.is_fork() {
                let until = detour.until.min(self.shard.events.time[detour.at.event() as usize]);
                if self.running.is_some() {
                    book(self.running, self.since..until);
                }
                self.running = detour.callpath;
                self.since = until;
            } else {
                book(detour.callpath, self.since..detour.until);
                self.since = detour.until;
            }
        }
        self.events(trace, to.event(), &mut book);
    }

    #[inline]
    fn events(&mut self, trace: &Trace, to: u32, book: &mut impl FnMut(CallPathId, Range<i64>)) {
        let events = &self.shard.events;
        while self.event < to.min(self.end) {
            let time = events.time[self.event as usize];
            if self.running.is_some() && time != self.since {
                book(self.running, self.since..time);
            }
            self.since = time;
            let callpath = events.callpath(self.event);
            if events.is_leave(self.event) {
                self.depth -= 1;
                self.running = if self.depth == 0 { CallPathId::NONE } else { trace.tree.nodes()[callpath].parent };
            } else {
                self.depth += 1;
                self.running = callpath;
            }
            self.event += 1;
        }
    }
}

/// Forks and joins of a location's teams, in their order.
fn detours(trace: &Trace, shard: &Shard, i: usize) -> Vec<Detour> {
    let location = shard.location(i);
    let mut detours = Vec::new();
    for team in shard.teams.of(i).iter().filter(|team| team.fork != NONE && team.instance.is_some()) {
        let fork = &shard.forks.rows[team.fork as usize];
        let instance = team.instance;
        let callpath = shard.callpath(instance);
        if trace.class(shard, instance) != crate::trace::RegionClass::Parallel {
            continue;
        }
        let enter = shard.instances.enter[instance];
        detours.push(Detour { at: Position::before_fork(enter), until: fork.fork, callpath });
        if fork.join != i64::MIN && shard.location_of(&shard.forks, team.fork) == location {
            let leave = shard.instances.leave[instance];
            let until = fork.join.max(shard.events.time[leave as usize]);
            detours.push(Detour { at: Position::before_join(leave + 1), until, callpath });
        }
    }
    detours.sort_by_key(|detour| detour.at);
    detours
}
