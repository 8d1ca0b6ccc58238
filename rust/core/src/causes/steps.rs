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
use std::sync::OnceLock;

use super::past::Gap;
use super::points::Position;
use crate::ids::{CallPathId, LocationId};
use crate::trace::{NONE, RegionClass, Shard, Trace};

/// The end of a step at a fork or a join, which lies between an Enter and a Leave.
#[derive(Clone, Copy, Debug)]
struct ForkJoinStep {
    at: Position,
    /// Its time, ticks.
    until: i64,
    /// Call path of the parallel region: of the step itself for a join, of the next step for a fork.
    callpath: CallPathId,
}

/// The forks and joins of a shard's locations, found when they are asked for.
#[derive(Debug)]
pub(crate) struct ForkJoins<'a> {
    trace: &'a Trace,
    shard: &'a Shard,
    of_locations: Vec<OnceLock<Vec<ForkJoinStep>>>,
}

impl<'a> ForkJoins<'a> {
    pub(crate) fn new(trace: &'a Trace, shard: &'a Shard) -> Self {
        Self { trace, shard, of_locations: shard.locations.map(|_| OnceLock::new()).collect() }
    }

    /// Those of the i-th location's teams, in their order.
    fn of(&self, i: usize) -> &[ForkJoinStep] {
        self.of_locations[i].get_or_init(|| self.find(i))
    }

    fn find(&self, i: usize) -> Vec<ForkJoinStep> {
        let (trace, shard) = (self.trace, self.shard);
        let forked = shard.forks.range(i);
        let mut fork_joins = Vec::new();
        for team in shard.teams.of(i).iter().filter(|team| team.fork != NONE && team.instance.is_some()) {
            let fork = &shard.forks.rows[team.fork as usize];
            let instance = team.instance;
            let callpath = shard.callpath(instance);
            if trace.class(shard, instance) != RegionClass::Parallel {
                continue;
            }
            let enter = shard.instances.enter[instance];
            fork_joins.push(ForkJoinStep { at: Position::before_fork(enter), until: fork.fork, callpath });
            if fork.join != i64::MIN && forked.contains(&(team.fork as usize)) {
                let leave = shard.instances.leave[instance];
                let until = fork.join.max(shard.events.time[leave as usize]);
                fork_joins.push(ForkJoinStep { at: Position::before_join(leave + 1), until, callpath });
            }
        }
        fork_joins.sort_by_key(|fork_join| fork_join.at);
        fork_joins
    }
}

/// Walks over the steps of one location.
pub(crate) struct Steps<'a> {
    shard: &'a Shard,
    fork_joins: &'a [ForkJoinStep],
    next_fork_join: usize,
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
    /// Those of the other threads.
    steps: Vec<(LocationId, Steps<'a>)>,
    gaps: std::vec::IntoIter<Gap>,
    /// Whether the walk has reached the next gap.
    is_inside: bool,
}

impl PastSteps<'_> {
    /// The next gap.
    fn gap(&self) -> Option<Gap> {
        self.gaps.as_slice().first().copied()
    }

    /// Advances in the next gap; the steps of the other thread before it are not the thread's.
    fn advance(&mut self, trace: &Trace, gap: &Gap, to: Position, book: impl FnMut(CallPathId, Range<i64>)) {
        let Some((_, steps)) = self.steps.iter_mut().find(|(location, _)| *location == gap.of) else { return };
        if !self.is_inside {
            steps.advance_own(trace, gap.from, |_, _| ());
            self.is_inside = true;
        }
        steps.advance_own(trace, to, book);
    }
}

impl<'a> Steps<'a> {
    /// All steps of the shard's i-th location.
    pub(crate) fn of_location(fork_joins: &'a ForkJoins, i: usize) -> Self {
        let shard = fork_joins.shard;
        Self {
            shard,
            fork_joins: fork_joins.of(i),
            next_fork_join: 0,
            event: shard.event_offsets[i],
            end: shard.event_offsets[i + 1],
            since: 0,
            running: CallPathId::NONE,
            depth: 0,
            past: None,
        }
    }

    /// Adds the steps in the location's past, which it shares with other threads.
    pub(crate) fn with_past(mut self, fork_joins: &'a ForkJoins, gaps: Vec<Gap>) -> Self {
        if !gaps.is_empty() {
            let mut others: Vec<LocationId> = gaps.iter().map(|gap| gap.of).collect();
            others.sort_unstable();
            others.dedup();
            let steps = |other| (other, Self::of_location(fork_joins, self.shard.local(other)));
            let steps = others.into_iter().map(steps).collect();
            self.past = Some(Box::new(PastSteps { steps, gaps: gaps.into_iter(), is_inside: false }));
        }
        self
    }

    /// The steps of the shard's i-th location, starting at a position inside a call.
    pub(crate) fn from(fork_joins: &'a ForkJoins, i: usize, position: Position) -> Self {
        let mut steps = Self::of_location(fork_joins, i);
        steps.skip(fork_joins.trace, position);
        steps
    }

    /// Continues at a later position inside a call, without visiting the steps before it.
    pub(crate) fn skip(&mut self, trace: &Trace, to: Position) {
        let event = to.event().min(self.end);
        if event > self.event {
            let events = &self.shard.events;
            let before = event - 1;
            self.event = event;
            self.since = events.time[before as usize];
            self.running = events.running_after(&trace.tree, before);
            // The depth is unknown, but no interval that begins inside a call extends beyond the end of its team.
            self.depth = u32::MAX / 2;
        }
        let passed = self.fork_joins[self.next_fork_join..].partition_point(|fork_join| fork_join.at < to);
        self.next_fork_join += passed;
        if let Some(last) = self.next_fork_join.checked_sub(1).map(|last| self.fork_joins[last])
            && last.at.event() == event
        {
            self.since = last.until;
            if last.at.is_fork() {
                self.running = last.callpath;
            }
        }
    }

    /// Passes all steps before a position to `book`: call path, and range of time.
    #[inline]
    pub(crate) fn advance(&mut self, trace: &Trace, to: Position, mut book: impl FnMut(CallPathId, Range<i64>)) {
        if self.past.is_some() {
            self.finish_gaps(trace, to, &mut book);
        }
        self.advance_own(trace, to, book);
    }

    /// Ends the step that runs at a time, and begins another one like it.
    pub(crate) fn split(&mut self, time: i64, book: &mut impl FnMut(CallPathId, Range<i64>)) {
        if self.since < time {
            if self.running.is_some() {
                book(self.running, self.since..time);
            }
            self.since = time;
        }
    }

    /// The same up to a point in the location's past, which is a `copy` of another location's point at `original`.
    pub(crate) fn advance_past(
        &mut self,
        trace: &Trace,
        copy: Position,
        (of, original): (LocationId, Position),
        mut book: impl FnMut(CallPathId, Range<i64>),
    ) {
        let at = Position::past(copy.event());
        self.finish_gaps(trace, at, &mut book);
        self.advance_own(trace, at, &mut book);
        while let Some(gap) = self.past.as_ref().and_then(|past| past.gap()).filter(|gap| gap.at == at)
            && (gap.of != of || gap.until <= original)
        {
            self.finish_gap(trace, &mut book);
        }
        if let Some(past) = &mut self.past
            && let Some(gap) = past.gap()
        {
            past.advance(trace, &gap, original, book);
        }
    }

    /// Hands all steps in the gaps before a position of the location to `book`.
    fn finish_gaps(&mut self, trace: &Trace, to: Position, book: &mut impl FnMut(CallPathId, Range<i64>)) {
        while self.past.as_ref().and_then(|past| past.gap()).is_some_and(|gap| gap.at < to) {
            self.finish_gap(trace, book);
        }
    }

    /// Hands all steps up to the end of the next gap to `book`.
    pub(crate) fn finish_gap(&mut self, trace: &Trace, book: &mut impl FnMut(CallPathId, Range<i64>)) {
        let Some(gap) = self.past.as_ref().and_then(|past| past.gap()) else { return };
        self.advance_own(trace, gap.at, &mut *book);
        if let Some(past) = &mut self.past {
            past.advance(trace, &gap, gap.until, &mut *book);
            past.is_inside = false;
            past.gaps.next();
        }
    }

    #[inline]
    fn advance_own(&mut self, trace: &Trace, to: Position, mut book: impl FnMut(CallPathId, Range<i64>)) {
        while let Some(&fork_join) = self.fork_joins.get(self.next_fork_join).filter(|fork_join| fork_join.at < to) {
            self.events(trace, fork_join.at.event(), &mut book);
            self.next_fork_join += 1;
            if fork_join.at.is_fork() {
                let until = fork_join.until.min(self.shard.events.time[fork_join.at.event() as usize]);
                if self.running.is_some() {
                    book(self.running, self.since..until);
                }
                self.running = fork_join.callpath;
                self.since = until;
            } else {
                book(fork_join.callpath, self.since..fork_join.until);
                self.since = fork_join.until;
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
            if events.is_leave(self.event) {
                self.depth -= 1;
                let is_outside = self.depth == 0;
                self.running =
                    if is_outside { CallPathId::NONE } else { events.running_after(&trace.tree, self.event) };
            } else {
                self.depth += 1;
                self.running = events.callpath(self.event);
            }
            self.event += 1;
        }
    }
}
