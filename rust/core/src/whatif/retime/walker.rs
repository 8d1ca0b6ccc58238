//! Advances locations and meetings from place to place.

#![expect(clippy::inline_always, reason = "the shift of a step stays in registers until it is published")]

use bitcode::{Decode, Encode};

use super::board::{Board, NEVER, Progress};
use super::lanes::{add, in_lane, raise};
use super::part::Part;
use super::shifts::Shifts;
use super::walk::{Ends, Walk};
use crate::focus::Edges;
use crate::ids::LocationId;
use crate::trace::{NONE, Trace};
use crate::whatif::changes::durations::Shape;
use crate::whatif::graph::steps::{Graph, Kind};

/// Places that have become known: their numbers at the receiver, and their shifts, lane by lane.
#[derive(Clone, Default, Encode, Decode)]
pub(super) struct News {
    pub places: Vec<u32>,
    pub shifts: Vec<i64>,
}

/// What all threads know.
#[derive(Clone, Copy)]
pub(super) struct Run<'a, const K: usize> {
    pub trace: &'a Trace,
    pub graph: &'a Graph,
    pub shape: &'a Shape,
    pub board: &'a Board<K>,
}

/// Lets a thread work on a group.
pub(super) type Wake<'a> = &'a dyn Fn(usize);

/// Advances the locations of one group. Those of other groups that can go on are sent to them; meetings belong to none.
pub(super) struct Walker<'a, const K: usize, S> {
    run: Run<'a, K>,
    shifts: S,
    group: usize,
    /// Number of the first location.
    first: u32,
    walks: Vec<Walk<K>>,
    pub ends: Vec<Ends<K>>,
    /// Those who can go on.
    ready: Vec<u32>,
    /// By process, the places that it needs and that have become known since the last round.
    pub news: Vec<News>,
}

impl<'a, const K: usize, S: Shifts<K>> Walker<'a, K, S> {
    pub(super) fn new(run: Run<'a, K>, shifts: S, focus: &[Edges], group: usize) -> Self {
        let Run { trace, graph, shape, board } = run;
        let numbers = board.locations_of(group);
        let locations = numbers.clone().map(LocationId::new);
        Self {
            run,
            shifts,
            group,
            first: numbers.start,
            walks: locations.clone().map(|location| Walk::new(trace, graph, shape, focus, location)).collect(),
            ends: vec![[[0; K]; 4]; numbers.len()],
            ready: locations.rev().filter(|&location| trace.owns(location)).map(LocationId::number).collect(),
            news: vec![News::default(); trace.exchange.processes()],
        }
    }

    /// Advances all that can go on, and those that become so, until all wait.
    pub(super) fn work(&mut self, wake: Wake) {
        while self.run.board.receive(self.group, &mut self.ready) {
            while let Some(waiter) = self.ready.pop() {
                if let Some(meeting) = waiter.checked_sub(self.run.board.locations()) {
                    self.pull(meeting as usize, &mut self.run.board.meeting(meeting as usize), wake);
                } else {
                    self.go(LocationId::new(waiter), false, wake);
                }
            }
        }
    }

    /// The location that is blocked in the earliest call, if any, and the time of that call's end.
    pub(super) fn blocked(&self) -> Option<(i64, LocationId)> {
        let time = |walk: &Walk<K>| self.run.graph.times.get(walk.step as usize).copied().unwrap_or(i64::MAX);
        let walks = (self.first..).map(LocationId::new).zip(&self.walks);
        walks.filter(|(_, walk)| !walk.is_done).map(|(location, walk)| (time(walk), location)).min()
    }

    /// Lets a location go on without the place that it waits for; returns its step there. No other thread may be at work.
    pub(super) fn force(&mut self, location: LocationId, wake: Wake) -> usize {
        let Walk { parked, step, .. } = self.walks[(location.number() - self.first) as usize];
        self.run.board.unpark(parked, location.number());
        self.go(location, true, wake);
        step as usize
    }

    /// Begins the meetings that only other processes of the analysis need.
    pub(super) fn begin_for_others(&mut self, wake: Wake) {
        let Run { graph, board, .. } = self.run;
        for (number, meeting) in graph.meetings.iter().enumerate() {
            let place = |checkpoint: u32| graph.place_of_checkpoint(checkpoint as usize);
            if meeting.checkpoints.clone().any(|checkpoint| graph.border.exports(place(checkpoint))) {
                self.pull(number, &mut board.meeting(number), wake);
            }
        }
    }

    #[inline(always)]
    pub(super) fn publish(&mut self, place: u32, shift: [i64; K], wake: Wake) {
        self.shifts.keep(place, shift);
        if self.run.graph.border.exports(place) {
            self.tell_others(place, shift);
        }
        let board = self.run.board;
        board.publish(place, |waiter| self.let_go_on(waiter, wake));
    }

    fn let_go_on(&mut self, waiter: u32, wake: Wake) {
        let board = self.run.board;
        let is_own = (waiter.wrapping_sub(self.first) as usize) < self.walks.len();
        if is_own || waiter >= board.locations() {
            self.ready.push(waiter);
            return;
        }
        let group = board.group_of(waiter);
        if board.send(group, waiter) {
            wake(group);
        }
    }

    #[cold]
    fn tell_others(&mut self, place: u32, shift: [i64; K]) {
        for (process, number) in self.run.graph.border.readers(place) {
            self.news[process].places.push(number);
            self.news[process].shifts.extend(shift);
        }
    }

    /// Whether a place is known; the members of a meeting are visited when it is first needed.
    #[inline]
    fn learns(&mut self, place: u32, wake: Wake) -> bool {
        let Run { graph, board, .. } = self.run;
        if board.knows(place) {
            return true;
        }
        let Some(checkpoint) = graph.checkpoint(place) else { return false };
        let number = graph.meeting_of[checkpoint] as usize;
        let mut meeting = board.meeting(number);
        if !meeting.has_begun {
            self.pull(number, &mut meeting, wake);
        }
        board.knows(place)
    }

    /// Advances a meeting.
    fn pull(&mut self, number: usize, progress: &mut Progress<K>, wake: Wake) {
        let Run { graph, board, .. } = self.run;
        let meeting = &graph.meetings[number];
        let members = &graph.members[meeting.members.start as usize..meeting.members.end as usize];
        let checkpoints = meeting.checkpoints.start as usize..meeting.checkpoints.end as usize;
        progress.has_begun = true;
        while let Some(&member) = members.get(progress.members as usize) {
            if !board.knows(member) && board.park(member, board.locations() + number as u32) {
                return;
            }
            let time = if meeting.is_late { 0 } else { graph.time(member) };
            let mut at = self.shifts.of(member);
            add(&mut at, &[time; K]);
            raise(&mut progress.latest, &at);
            self.shifts.release(member);
            progress.members += 1;
            let checkpoint = checkpoints.start + progress.checkpoints as usize;
            if checkpoint < checkpoints.end && graph.checkpoints[checkpoint] == progress.members {
                progress.checkpoints += 1;
                let time = if meeting.is_late { 0 } else { graph.checkpoint_times[checkpoint] };
                self.publish(
                    graph.place_of_checkpoint(checkpoint),
                    progress.latest.map(|at| at.wrapping_sub(time)),
                    wake,
                );
            }
        }
    }

    /// Advances a location as far as possible; `forced` passes the first step that waits.
    pub(super) fn go(&mut self, location: LocationId, mut forced: bool, wake: Wake) {
        let Run { trace, graph, shape, board } = self.run;
        let own = (location.number() - self.first) as usize;
        let mut walk = self.walks[own];
        let shard = trace.shard(location);
        let i = shard.local(location);
        let (begin, end) = (shard.event_offsets[i], shard.event_offsets[i + 1]);
        let changes = shape.of(location);
        let steps = graph.steps_of(location);
        walk.parked = NONE;
        for index in walk.step as usize..steps.end {
            let step = &graph.steps[index];
            while walk.mark < step.position {
                walk.keep_mark(changes, &mut self.ends[own]);
            }
            walk.advance(changes, step.position);
            let here = walk.changes_at(changes, step.position);
            let part = (!here.is_empty()).then(|| Part::new(graph, shard, location, index));
            let arcs = graph.arcs(index);
            let mut shift = walk.shift;
            if forced && !arcs.is_empty() {
                forced = false;
            } else {
                if index == steps.start && graph.kinds[index] == Kind::Begin && !arcs.is_empty() {
                    shift = [NEVER; K];
                }
                // Sums of times are far from overflow (`Shape::check`, `trace::Bounds`).
                add(&mut shift, &[step.slack; K]);
                if let Some(part) = &part {
                    for change in here {
                        add(&mut shift, &in_lane(change.lane, part.own_under(change) - part.own));
                    }
                }
                for arc in arcs.clone() {
                    let source = graph.sources[arc];
                    if !self.learns(source, wake) {
                        (walk.step, walk.parked) = (index as u32, source);
                        self.walks[own] = walk;
                        if board.park(source, location.number()) {
                            return;
                        }
                        walk.parked = NONE;
                    }
                    let slack = graph.slacks[arc];
                    let mut at = self.shifts.of(source);
                    if let Some(part) = &part {
                        let weight = slack + graph.times[index] - graph.time(source);
                        for change in here {
                            add(&mut at, &in_lane(change.lane, part.weight_under(change, weight) - weight));
                        }
                    }
                    add(&mut at, &[slack; K]);
                    raise(&mut shift, &at);
                }
                for &source in &graph.sources[arcs] {
                    self.shifts.release(source);
                }
            }
            walk.shift = shift;
            if !graph.kinds[index].is_stop() {
                walk.pass(changes, here.len());
                if step.position == begin {
                    self.ends[own][0] = shift;
                }
            }
            self.publish(index as u32, shift, wake);
        }
        while walk.mark < end {
            walk.keep_mark(changes, &mut self.ends[own]);
        }
        walk.advance(changes, end);
        self.ends[own][1] = walk.shift;
        (walk.step, walk.is_done) = (steps.end as u32, true);
        self.walks[own] = walk;
    }
}
