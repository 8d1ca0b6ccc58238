//! Computes new times: each location advances from step to step until a step waits for a place with an unknown time,
//! and continues when that is known.
//!
//! Since the dependencies are known, there is no global clock and no event queue. Each step and each arc is visited
//! once, and the events between two steps only if they change. Several hypotheses on the same arcs are *lanes* of one
//! walk.
//!
//! Several processes of an analysis evaluate their locations in rounds: each goes on until all of its locations wait for
//! places of others, then all tell each other the places that have become known.

#![expect(clippy::inline_always, reason = "lanes are processed together only where they stay in registers")]

use bitcode::{Decode, Encode};
use rayon::prelude::*;

use super::changes::durations::{Change, Shape};
use super::graph::steps::{Graph, Kind};
use crate::Result;
use crate::focus::End;
use crate::ids::LocationId;
use crate::trace::{NONE, Shard, Trace};

/// The shift of a place is unknown, and nothing waits for it. Larger values name the waiter.
const UNKNOWN: u32 = 0;
/// The shift is known.
const KNOWN: u32 = u32::MAX;
/// The shift of a thread that has not begun.
const NEVER: i64 = i64::MIN / 2;

/// The shifts of all places against the measured run.
#[derive(Debug)]
pub(super) struct Times {
    /// Shift of each place of the graph, ticks.
    shifts: Vec<i64>,
    ends: Ends<1>,
    /// Steps that wait for each other in a circle.
    pub circular: Circular,
}

/// Steps that wait for each other in a circle.
#[derive(Debug, Default)]
pub(super) struct Circular {
    /// How many had to go on without the time that they wait for.
    pub number: usize,
    /// Those of this process of the analysis: number of the step among all of them, location, and step.
    pub own: Vec<(usize, LocationId, usize)>,
}

impl Times {
    /// Shift of a step, ticks.
    pub(super) fn shift(&self, step: usize) -> i64 {
        self.shifts[step]
    }

    /// New begin and end of the run, and new end of the focus. Collective.
    pub(super) fn spans(&self, trace: &Trace, focus: &[End]) -> Result<Spans> {
        let [spans] = self.ends.spans(trace, focus)?;
        Ok(spans)
    }
}

/// Where a simulated run and its focus begin and end, ticks.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub(super) struct Spans {
    /// Begin and end of the run.
    pub run: (i64, i64),
    /// End of the focus.
    pub focus_end: i64,
}

/// Shifts of the first and the last event of each location, and of that at which the focus may end, under `K`
/// hypotheses, ticks.
#[derive(Debug)]
struct Ends<const K: usize>(Vec<[[i64; K]; 3]>);

impl<const K: usize> Ends<K> {
    /// New begin and end of the run, including the time before the first and after the last event of each location, and
    /// new end of the focus. Collective.
    fn spans(&self, trace: &Trace, focus: &[End]) -> Result<[Spans; K]> {
        let mut spans = [Spans { run: (i64::MAX, i64::MIN), focus_end: i64::MIN }; K];
        let own = self.0.iter().enumerate().filter(|&(location, _)| trace.owns(LocationId::at(location)));
        for (location, ends) in own {
            let shard = trace.shard(LocationId::at(location));
            let span = &shard.spans[location - shard.locations.start.index()];
            if span.first > span.last {
                continue;
            }
            // Locations without events move with the master of their process.
            let process = trace.definitions.processes.get(trace.definitions.locations[location].process.index());
            let ends = match process {
                _ if has_events(shard, LocationId::at(location)) => ends,
                Some(process) if has_events(shard, process.locations.start) => &self.0[process.locations.start],
                Some(_) => &[[0; K]; 3],
                None => continue,
            };
            for (k, Spans { run: (first, last), focus_end }) in spans.iter_mut().enumerate() {
                *first = (*first).min(span.first + ends[0][k]);
                *last = (*last).max(span.last + ends[1][k]);
                let end = match focus[location] {
                    End::Nowhere => continue,
                    End::Call(position) => shard.events.time[position as usize] + ends[2][k],
                    End::Last => span.last + ends[1][k],
                };
                *focus_end = (*focus_end).max(end);
            }
        }
        for others in trace.exchange.allgather(spans.to_vec())? {
            for (all, other) in spans.iter_mut().zip(others) {
                all.run = (all.run.0.min(other.run.0), all.run.1.max(other.run.1));
                all.focus_end = all.focus_end.max(other.focus_end);
            }
        }
        Ok(spans)
    }
}

fn has_events(shard: &Shard, location: LocationId) -> bool {
    let i = shard.local(location);
    shard.event_offsets[i] < shard.event_offsets[i + 1]
}

/// The position of a location.
#[derive(Clone, Copy)]
struct Walk<const K: usize> {
    /// Shift of the place that was reached.
    shift: [i64; K],
    /// Number of applied changes, and the position of the next; [`NONE`] after the last.
    cursor: u32,
    next: u32,
    /// The next step.
    step: u32,
    /// The place it waits for, or [`NONE`].
    parked: u32,
    /// The event at which the focus may end, until it is reached; [`NONE`] if there is none.
    end: u32,
    is_done: bool,
}

#[derive(Clone, Copy)]
struct Progress<const K: usize> {
    latest: [i64; K],
    members: u32,
    checkpoints: u32,
    has_begun: bool,
}

/// Storage of the shifts of places while they are needed.
trait Shifts<const K: usize> {
    /// The known shift of a place.
    fn of(&self, place: u32) -> &[i64; K];

    /// Stores the shift of a place.
    fn keep(&mut self, place: u32, shift: [i64; K]);

    /// Drops one reference to a place.
    fn release(&mut self, place: u32);
}

/// Stores the shifts of all places.
struct All(Vec<i64>);

impl Shifts<1> for All {
    #[inline]
    fn of(&self, place: u32) -> &[i64; 1] {
        std::array::from_ref(&self.0[place as usize])
    }

    #[inline]
    fn keep(&mut self, place: u32, [shift]: [i64; 1]) {
        self.0[place as usize] = shift;
    }

    #[inline]
    fn release(&mut self, _: u32) {}
}

/// Stores shifts only while they are needed: few at a time, which stay in the cache.
struct Passing<const K: usize> {
    places: Vec<Reference>,
    shifts: Vec<Lanes<K>>,
    /// Free slots.
    free: Vec<u32>,
}

/// The number of references to a place, and the slot of its shift.
#[derive(Clone, Copy)]
struct Reference {
    needs: u32,
    slot: u32,
}

/// Shifts in one line of the cache.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Lanes<const K: usize>([i64; K]);

impl<const K: usize> Passing<K> {
    fn new(graph: &Graph) -> Self {
        let places = graph.references().iter().map(|&needs| Reference { needs, slot: 0 }).collect();
        Self { places, shifts: Vec::new(), free: Vec::new() }
    }
}

impl<const K: usize> Shifts<K> for Passing<K> {
    #[inline]
    fn of(&self, place: u32) -> &[i64; K] {
        &self.shifts[self.places[place as usize].slot as usize].0
    }

    #[inline]
    fn keep(&mut self, place: u32, shift: [i64; K]) {
        let place = &mut self.places[place as usize];
        if place.needs == 0 {
            return;
        }
        if let Some(slot) = self.free.pop() {
            self.shifts[slot as usize] = Lanes(shift);
            place.slot = slot;
        } else {
            place.slot = self.shifts.len() as u32;
            self.shifts.push(Lanes(shift));
        }
    }

    #[inline]
    fn release(&mut self, place: u32) {
        let place = &mut self.places[place as usize];
        place.needs -= 1;
        if place.needs == 0 {
            self.free.push(place.slot);
        }
    }
}

struct Walker<'a, const K: usize, S> {
    trace: &'a Trace,
    graph: &'a Graph,
    shape: &'a Shape,
    shifts: S,
    /// For each place whether its shift is known, or its first waiter.
    states: Vec<u32>,
    meetings: Vec<Progress<K>>,
    /// For each waiting location or meeting, the next one that waits for the same place, plus one.
    waiters: Vec<u32>,
    ready: Vec<u32>,
    ends: Vec<[[i64; K]; 3]>,
    circular: Circular,
    /// By process, the places that it needs and that have become known since the last round.
    news: Vec<News>,
}

/// Places that have become known: their numbers at the receiver, and their shifts, lane by lane.
#[derive(Clone, Default, Encode, Decode)]
struct News {
    places: Vec<u32>,
    shifts: Vec<i64>,
}

/// Evaluates a hypothesis. `focus` says where the focus may end. Collective.
pub(super) fn evaluate(trace: &Trace, graph: &Graph, shape: &Shape, focus: &[End]) -> Result<Times> {
    let walker = walk::<1, _>(trace, graph, shape, focus, All(vec![0; graph.places()]))?;
    Ok(Times { shifts: walker.shifts.0, ends: Ends(walker.ends), circular: walker.circular })
}

/// New begin and end of the run and its focus in each of `K` lanes. Collective.
pub(super) fn spans<const K: usize>(trace: &Trace, graph: &Graph, shape: &Shape, focus: &[End]) -> Result<[Spans; K]> {
    Ends(walk(trace, graph, shape, focus, Passing::new(graph))?.ends).spans(trace, focus)
}

fn walk<'a, const K: usize, S: Shifts<K>>(
    trace: &'a Trace,
    graph: &'a Graph,
    shape: &'a Shape,
    focus: &[End],
    shifts: S,
) -> Result<Walker<'a, K, S>> {
    let locations = trace.definitions.locations.len();
    let begin = |location: LocationId| Walk {
        shift: [0; K],
        cursor: 0,
        next: shape.of(location).first().map_or(NONE, |change| change.position),
        step: graph.steps_of(location).start as u32,
        parked: NONE,
        end: match focus[location] {
            End::Call(position) => position,
            End::Nowhere | End::Last => NONE,
        },
        is_done: !trace.owns(location),
    };
    let nobody = Progress { latest: [NEVER; K], members: 0, checkpoints: 0, has_begun: false };
    let mut walker = Walker {
        trace,
        graph,
        shape,
        shifts,
        states: vec![UNKNOWN; graph.places()],
        meetings: vec![nobody; graph.meetings.len()],
        waiters: vec![0; locations + graph.meetings.len()],
        ready: (0..locations as u32).rev().filter(|&location| trace.owns(LocationId::new(location))).collect(),
        ends: vec![[[0; K]; 3]; locations],
        circular: Circular::default(),
        news: vec![News::default(); trace.exchange.processes()],
    };
    walker.run(&mut (0..locations).map(LocationId::at).map(begin).collect::<Vec<_>>())?;
    Ok(walker)
}

impl<const K: usize> Walk<K> {
    /// Applies the changes before an event; nothing waits in between.
    #[inline(always)]
    fn advance(&mut self, changes: &[Change], position: u32) {
        while self.next < position {
            let change = &changes[self.cursor as usize];
            // Sums of growths stay far from overflow (`Shape::check`).
            add(&mut self.shift, &in_lane(change.lane, change.growth));
            self.pass(changes, 1);
        }
    }

    /// The changes of the time before an event, if these are the next.
    #[inline]
    fn changes_at<'a>(&self, changes: &'a [Change], position: u32) -> &'a [Change] {
        if self.next != position {
            return &[];
        }
        let next = &changes[self.cursor as usize..];
        let count = next.iter().take_while(|change| change.position == position).count();
        &next[..count]
    }

    /// Skips the next changes.
    #[inline]
    fn pass(&mut self, changes: &[Change], count: usize) {
        self.cursor += count as u32;
        self.next = changes.get(self.cursor as usize).map_or(NONE, |change| change.position);
    }
}

/// Adds to all lanes.
#[inline(always)]
fn add<const K: usize>(to: &mut [i64; K], ticks: &[i64; K]) {
    for k in 0..K {
        to[k] = to[k].wrapping_add(ticks[k]);
    }
}

/// Raises all lanes to the larger of two times.
#[inline(always)]
fn raise<const K: usize>(to: &mut [i64; K], other: &[i64; K]) {
    if K == 1 {
        to[0] = to[0].max(other[0]);
        return;
    }
    for k in 0..K {
        // Not every processor compares several such numbers at once; the sign of the difference is as good.
        let later = other[k].wrapping_sub(to[k]);
        to[k] = to[k].wrapping_add(later & !(later >> 63));
    }
}

/// A number of ticks in one lane, nothing in the others: adding this is faster than adding to one number of an array
/// whose other numbers are used next.
#[inline(always)]
fn in_lane<const K: usize>(lane: u32, ticks: i64) -> [i64; K] {
    let mut all = const { masks::<K>() }[lane as usize];
    for of in &mut all {
        *of &= ticks;
    }
    all
}

/// For each lane, a mask of the bits of this lane.
const fn masks<const K: usize>() -> [[i64; K]; K] {
    let mut masks = [[0; K]; K];
    let mut lane = 0;
    while lane < K {
        masks[lane][lane] = -1;
        lane += 1;
    }
    masks
}

/// A step in a segment that changes; measured times, ticks.
struct Part {
    /// Own time since the place before.
    own: i64,
    /// Own time of the segment before that place.
    spent: i64,
    /// Own time of the whole segment.
    length: i64,
    /// Time of the whole segment, waiting included.
    measured: i64,
    /// Whether it ends the segment, which is where a segment of length 0 gets all of its new time.
    is_last: bool,
}

impl<const K: usize, S: Shifts<K>> Walker<'_, K, S> {
    fn run(&mut self, walks: &mut [Walk<K>]) -> Result<()> {
        // Nobody here asks for what only others need.
        for meeting in 0..self.graph.meetings.len() {
            let mut checkpoints = self.graph.meetings[meeting].checkpoints.clone();
            let place = |checkpoint: u32| self.graph.place_of_checkpoint(checkpoint as usize);
            if checkpoints.any(|checkpoint| self.graph.border.exports(place(checkpoint))) {
                self.pull(meeting);
            }
        }
        loop {
            while let Some(waiter) = self.ready.pop() {
                if let Some(meeting) = (waiter as usize).checked_sub(walks.len()) {
                    self.pull(meeting);
                } else {
                    self.go(LocationId::new(waiter), &mut walks[waiter as usize], false);
                }
            }
            if self.learn_from_others()? {
                continue;
            }
            let blocked = self.trace.exchange.allgather(self.blocked(walks))?;
            let Some((_, location)) = blocked.into_iter().flatten().min() else { return Ok(()) };
            if self.trace.owns(location) {
                let walk = &mut walks[location];
                self.unpark(location, walk.parked);
                self.circular.own.push((self.circular.number, location, walk.step as usize));
                self.go(location, walk, true);
            }
            self.circular.number += 1;
        }
    }

    /// Exchanges what has become known with the other processes of the analysis; returns whether anything has.
    fn learn_from_others(&mut self) -> Result<bool> {
        let exchange = &self.trace.exchange;
        if exchange.processes() == 1 {
            return Ok(false);
        }
        let is_news = self.news.iter().any(|news| !news.places.is_empty());
        let news = self.news.iter_mut().map(|news| (is_news, std::mem::take(news))).collect();
        let arrived: Vec<(bool, News)> = exchange.alltoall(news)?;
        let any = arrived.iter().any(|(is_news, _)| *is_news);
        for (process, (_, News { places, shifts })) in arrived.into_iter().enumerate() {
            let of_process = &self.graph.border.from[process];
            for (number, shift) in places.into_iter().zip(shifts.as_chunks::<K>().0) {
                self.publish(of_process[number as usize], *shift);
            }
        }
        Ok(any)
    }

    /// The location of this process that is blocked in the earliest call, if any, and the time of that call's end.
    fn blocked(&self, walks: &[Walk<K>]) -> Option<(i64, LocationId)> {
        let waiting = walks.iter().enumerate().filter(|(_, walk)| !walk.is_done);
        let time = |walk: &Walk<K>| self.graph.times.get(walk.step as usize).copied().unwrap_or(i64::MAX);
        waiting.map(|(location, walk)| (time(walk), LocationId::at(location))).min()
    }

    /// Removes a location from the waiters of a place.
    fn unpark(&mut self, location: LocationId, place: u32) {
        if place == NONE || self.knows(place) {
            return;
        }
        let mut waiters = Vec::new();
        let mut waiter = std::mem::replace(&mut self.states[place as usize], UNKNOWN);
        while waiter != UNKNOWN {
            waiters.push(waiter - 1);
            waiter = self.waiters[waiter as usize - 1];
        }
        for waiter in waiters.into_iter().rev().filter(|&waiter| waiter != location.number()) {
            self.park(place, waiter);
        }
    }

    fn park(&mut self, place: u32, waiter: u32) {
        self.waiters[waiter as usize] = std::mem::replace(&mut self.states[place as usize], waiter + 1);
    }

    #[inline]
    fn publish(&mut self, place: u32, shift: [i64; K]) {
        self.shifts.keep(place, shift);
        if self.graph.border.exports(place) {
            for (process, number) in self.graph.border.readers(place) {
                self.news[process].places.push(number);
                self.news[process].shifts.extend(shift);
            }
        }
        let mut waiter = std::mem::replace(&mut self.states[place as usize], KNOWN);
        while waiter != UNKNOWN {
            self.ready.push(waiter - 1);
            waiter = self.waiters[waiter as usize - 1];
        }
    }

    #[inline]
    fn knows(&self, place: u32) -> bool {
        self.states[place as usize] == KNOWN
    }

    /// Whether a place is known; the members of a meeting are visited when it is first needed.
    #[inline]
    fn learns(&mut self, place: u32) -> bool {
        if self.knows(place) {
            return true;
        }
        let Some(checkpoint) = self.graph.checkpoint(place) else { return false };
        let meeting = self.graph.meeting_of[checkpoint] as usize;
        if self.meetings[meeting].has_begun {
            return false;
        }
        self.pull(meeting);
        self.knows(place)
    }

    /// Advances a meeting.
    fn pull(&mut self, number: usize) {
        let graph = self.graph;
        let meeting = &graph.meetings[number];
        let members = &graph.members[meeting.members.start as usize..meeting.members.end as usize];
        let checkpoints = meeting.checkpoints.start as usize..meeting.checkpoints.end as usize;
        let mut progress = self.meetings[number];
        progress.has_begun = true;
        while let Some(&member) = members.get(progress.members as usize) {
            if !self.knows(member) {
                self.meetings[number] = progress;
                self.park(member, (self.ends.len() + number) as u32);
                return;
            }
            let time = if meeting.is_late { 0 } else { graph.time(member) };
            let mut at = *self.shifts.of(member);
            add(&mut at, &[time; K]);
            raise(&mut progress.latest, &at);
            self.shifts.release(member);
            progress.members += 1;
            let checkpoint = checkpoints.start + progress.checkpoints as usize;
            if checkpoint < checkpoints.end && graph.checkpoints[checkpoint] == progress.members {
                progress.checkpoints += 1;
                let time = if meeting.is_late { 0 } else { graph.checkpoint_times[checkpoint] };
                self.publish(graph.place_of_checkpoint(checkpoint), progress.latest.map(|at| at.wrapping_sub(time)));
            }
        }
        self.meetings[number] = progress;
    }

    /// Advances a location as far as possible; `forced` passes the first step that waits.
    fn go(&mut self, location: LocationId, walk: &mut Walk<K>, mut forced: bool) {
        let graph = self.graph;
        let shard = self.trace.shard(location);
        let i = shard.local(location);
        let (begin, end) = (shard.event_offsets[i], shard.event_offsets[i + 1]);
        let changes = self.shape.of(location);
        let steps = graph.steps_of(location);
        walk.parked = NONE;
        for index in walk.step as usize..steps.end {
            let step = &graph.steps[index];
            if walk.end < step.position {
                self.end_focus(location, walk);
            }
            walk.advance(changes, step.position);
            let here = walk.changes_at(changes, step.position);
            let part = (!here.is_empty()).then(|| self.part(shard, location, index));
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
                    if !self.learns(source) {
                        (walk.step, walk.parked) = (index as u32, source);
                        self.park(source, location.number());
                        return;
                    }
                    let slack = graph.slacks[arc];
                    let mut at = *self.shifts.of(source);
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
                    self.ends[location][0] = shift;
                }
            }
            self.publish(index as u32, shift);
        }
        if walk.end < end {
            self.end_focus(location, walk);
        }
        walk.advance(changes, end);
        self.ends[location][1] = walk.shift;
        (walk.step, walk.is_done) = (steps.end as u32, true);
    }

    /// Keeps the shift of the event at which the focus may end: all steps at it have been passed.
    #[cold]
    fn end_focus(&mut self, location: LocationId, walk: &mut Walk<K>) {
        walk.advance(self.shape.of(location), walk.end + 1);
        self.ends[location][2] = walk.shift;
        walk.end = NONE;
    }

    /// A step in a segment that changes.
    fn part(&self, shard: &Shard, location: LocationId, index: usize) -> Part {
        let graph = self.graph;
        let position = graph.steps[index].position;
        let begin = shard.events.time[position as usize - 1];
        let measured = shard.events.time[position as usize] - begin;
        let first = graph.steps_of(location).start;
        let is_last = !graph.kinds[index].is_stop();
        if is_last && (index == first || graph.steps[index - 1].position < position) {
            // Usually the segment has only this step.
            let own = graph.steps[index].slack + measured;
            return Part { own, spent: 0, length: own, measured, is_last };
        }
        let from = (first..index).rev().take_while(|&before| graph.steps[before].position == position).last();
        let (length, _) = graph.segments(shard, location).from(from.unwrap_or(index)).before(position);
        let mut since = begin;
        let (mut spent, mut own) = (0, 0);
        for step in from.unwrap_or(index)..=index {
            spent += own;
            own = graph.steps[step].slack + graph.times[step] - since;
            since = graph.times[step];
        }
        Part { own, spent, length, measured, is_last }
    }
}

impl Part {
    /// Own ticks of the segment under a change.
    fn length_under(&self, change: &Change) -> i64 {
        self.measured + change.growth
    }

    /// Own ticks since the place before.
    fn own_under(&self, change: &Change) -> i64 {
        let new = self.length_under(change);
        if self.length == 0 {
            return if self.is_last { new } else { 0 };
        }
        scaled(self.spent + self.own, new, self.length) - scaled(self.spent, new, self.length)
    }

    /// The new weight of an arc; offsets of clocks do not change.
    fn weight_under(&self, change: &Change, weight: i64) -> i64 {
        match weight {
            _ if weight <= 0 => weight,
            _ if weight == self.own => self.own_under(change),
            _ => scaled(weight, self.length_under(change), self.length),
        }
    }
}

/// `ticks * new / old`; `new` if `old` is 0.
#[inline]
fn scaled(ticks: i64, new: i64, old: i64) -> i64 {
    if old == new || (ticks == 0 && old != 0) {
        ticks
    } else if old == 0 || ticks == old {
        new
    } else if let Some(product) = ticks.checked_mul(new) {
        product / old
    } else {
        (i128::from(ticks) * i128::from(new) / i128::from(old)) as i64
    }
}

/// New times of all Enters and Leaves of each location, in the order of its events.
pub(super) fn all_events(trace: &Trace, graph: &Graph, shape: &Shape, times: &Times) -> Vec<Vec<i64>> {
    let of_shard = |shard: &Shard| {
        let time = &shard.events.time;
        let mut all = Vec::with_capacity(time.len());
        for (i, location) in shard.locations.enumerate() {
            let mut changes = shape.of(location).iter().peekable();
            let mut steps = graph.steps_of(location).peekable();
            let [mut shift] = times.ends.0[location][0];
            for position in shard.event_offsets[i]..shard.event_offsets[i + 1] {
                let p = position as usize;
                if let Some(change) = changes.next_if(|change| change.position == position) {
                    shift += change.growth;
                }
                while let Some(step) = steps.next_if(|&step| graph.steps[step].position == position) {
                    shift = times.shift(step);
                }
                all.push(time[p] + shift);
            }
        }
        all
    };
    trace.par_shards().map(of_shard).collect()
}
