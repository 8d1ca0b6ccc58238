//! New times: each location goes along its events until a call waits for a time that is not known yet, and goes on when
//! it is.
//!
//! Nobody needs a clock of all or a queue of events: what depends on what is known. Each event and each arc is touched
//! once. Several hypotheses on the same arcs are *lanes* of one walk.

use std::ops::Range;

use rayon::prelude::*;

use super::graph::{Graph, Node, OWN, Stop, StopKind, enter, leave};
use super::shape::{Change, Shape};
use crate::ids::{InstanceId, LocationId};
use crate::trace::{NONE, Shard, Trace};

/// A time that is not known yet, and nobody waits for it. Above it stand those that somebody waits for: who waits.
const UNKNOWN: i64 = i64::MIN;
/// Times are later.
const KNOWN: i64 = i64::MIN / 2;

/// The new times of `K` hypotheses.
#[derive(Debug)]
pub(super) struct Times<const K: usize> {
    values: Vec<[i64; K]>,
    /// New times of the first and the last event of each location.
    ends: Vec<[[i64; K]; 2]>,
    /// Calls that wait for each other in a circle: a location and the time of the Leave.
    pub circular: Vec<(LocationId, i64)>,
}

impl<const K: usize> Times<K> {
    /// New time of a node.
    pub(super) fn of(&self, node: Node) -> &[i64; K] {
        &self.values[node as usize]
    }

    /// New begin and end of the run, with what lies before the first and after the last event of each location.
    pub(super) fn span(&self, trace: &Trace) -> [(i64, i64); K] {
        let mut spans = [(i64::MAX, i64::MIN); K];
        for (location, ends) in self.ends.iter().enumerate() {
            let shard = trace.shard(LocationId::at(location));
            let i = location - shard.locations.start.index();
            let span = &shard.spans[i];
            if span.first > span.last {
                continue;
            }
            // What has no events of its own goes along with the master of its process.
            let events = shard.event_offsets[i] as usize..shard.event_offsets[i + 1] as usize;
            let process = trace.definitions.processes.get(trace.definitions.locations[location].process.index());
            let (from, ends) = if events.is_empty() {
                let Some(process) = process else { continue };
                let j = shard.local(process.locations.start);
                let master = shard.event_offsets[j] as usize..shard.event_offsets[j + 1] as usize;
                if master.is_empty() {
                    let keep = [span.first, span.last];
                    for (first, last) in &mut spans {
                        (*first, *last) = ((*first).min(keep[0]), (*last).max(keep[1]));
                    }
                    continue;
                }
                (master, &self.ends[process.locations.start])
            } else {
                (events, ends)
            };
            let time = &shard.events.time;
            let before = span.first - time[from.start];
            let after = span.last - time[from.end - 1];
            for (k, (first, last)) in spans.iter_mut().enumerate() {
                *first = (*first).min(ends[0][k] + before);
                *last = (*last).max(ends[1][k] + after);
            }
        }
        spans
    }
}

/// Where a location is.
#[derive(Clone)]
struct Walk<const K: usize> {
    /// New and measured time of the place that was reached.
    now: [i64; K],
    then: i64,
    /// Position behind the last event that was done.
    reached: u32,
    /// Ticks of the current segment that are done, waiting left out.
    spent: i64,
    /// Next instance to enter, and next stop.
    instance: u32,
    stop: u32,
    /// Changes that were made.
    cursor: [u32; K],
    /// Instances that were entered and not left.
    open: Vec<InstanceId>,
    /// What it waits for, or [`NONE`].
    parked: Node,
    has_begun: bool,
    is_done: bool,
}

impl<const K: usize> Default for Walk<K> {
    fn default() -> Self {
        Self {
            now: [KNOWN; K],
            then: 0,
            reached: 0,
            spent: 0,
            instance: 0,
            stop: 0,
            cursor: [0; K],
            open: Vec::new(),
            parked: NONE,
            has_begun: false,
            is_done: false,
        }
    }
}

#[derive(Clone, Copy)]
struct Progress<const K: usize> {
    latest: [i64; K],
    members: u32,
    checkpoints: u32,
    has_begun: bool,
}

struct Walker<'a, const K: usize> {
    trace: &'a Trace,
    graph: &'a Graph,
    shapes: [&'a Shape; K],
    values: Vec<[i64; K]>,
    walks: Vec<Walk<K>>,
    meetings: Vec<Progress<K>>,
    /// Behind each location or meeting that waits the next that waits for the same, plus one.
    next: Vec<u32>,
    ready: Vec<u32>,
    ends: Vec<[[i64; K]; 2]>,
    circular: Vec<(LocationId, i64)>,
}

/// Evaluates `K` hypotheses.
pub(super) fn evaluate<const K: usize>(trace: &Trace, graph: &Graph, shapes: [&Shape; K]) -> Times<K> {
    let locations = trace.definitions.locations.len();
    let walk = |location: LocationId| {
        let shard = trace.shard(location);
        let i = shard.local(location);
        let (reached, instance) = (shard.event_offsets[i], shard.instance_offsets[i]);
        Walk { reached, instance, ..Walk::default() }
    };
    let begin = Progress { latest: [KNOWN; K], members: 0, checkpoints: 0, has_begun: false };
    let mut walker = Walker {
        trace,
        graph,
        shapes,
        values: vec![[UNKNOWN; K]; graph.nodes()],
        walks: (0..locations).map(LocationId::at).map(walk).collect(),
        meetings: vec![begin; graph.meetings.len()],
        next: vec![0; locations + graph.meetings.len()],
        ready: (0..locations as u32).rev().collect(),
        ends: vec![[[0; K]; 2]; locations],
        circular: Vec::new(),
    };
    walker.run();
    Times { values: walker.values, ends: walker.ends, circular: walker.circular }
}

impl<const K: usize> Walker<'_, K> {
    fn run(&mut self) {
        loop {
            while let Some(waiter) = self.ready.pop() {
                if let Some(meeting) = (waiter as usize).checked_sub(self.walks.len()) {
                    self.pull(meeting);
                } else {
                    self.walks[waiter as usize].parked = NONE;
                    self.go(LocationId::new(waiter), false);
                }
            }
            let Some(location) = self.blocked() else { return };
            self.unpark(location);
            let place = self.go(location, true);
            self.circular.push((location, place));
        }
    }

    /// The location that waits in the earliest call, if any waits.
    fn blocked(&self) -> Option<LocationId> {
        let parked =
            self.walks.iter().enumerate().map(|(i, walk)| (walk, LocationId::at(i))).filter(|(walk, _)| !walk.is_done);
        let leave = |walk: &Walk<K>, location| {
            let shard = self.trace.shard(location);
            shard.events.time.get(walk.reached as usize).copied().unwrap_or(i64::MAX)
        };
        parked.min_by_key(|(walk, location)| (leave(walk, *location), *location)).map(|(_, location)| location)
    }

    /// Takes a location from those that wait for what it waits for.
    fn unpark(&mut self, location: LocationId) {
        let node = std::mem::replace(&mut self.walks[location].parked, NONE);
        if node == NONE || self.values[node as usize][0] > KNOWN {
            return;
        }
        let mut waiters = Vec::new();
        let mut waiter = (self.values[node as usize][0] - UNKNOWN) as u32;
        while waiter > 0 {
            waiters.push(waiter - 1);
            waiter = self.next[waiter as usize - 1];
        }
        self.values[node as usize][0] = UNKNOWN;
        for waiter in waiters.into_iter().rev().filter(|&waiter| waiter != location.number()) {
            self.park(node, waiter);
        }
    }

    fn park(&mut self, node: Node, waiter: u32) {
        let value = &mut self.values[node as usize][0];
        self.next[waiter as usize] = (*value - UNKNOWN) as u32;
        *value = UNKNOWN + 1 + i64::from(waiter);
    }

    #[inline]
    fn publish(&mut self, node: Node, value: [i64; K]) {
        let before = std::mem::replace(&mut self.values[node as usize], value)[0];
        if before > UNKNOWN && before < KNOWN {
            let mut waiter = (before - UNKNOWN) as u32;
            while waiter > 0 {
                self.ready.push(waiter - 1);
                waiter = self.next[waiter as usize - 1];
            }
        }
    }

    #[inline]
    fn knows(&self, node: Node) -> bool {
        self.values[node as usize][0] > KNOWN
    }

    /// Goes on with a meeting.
    fn pull(&mut self, number: usize) {
        let meeting = &self.graph.meetings[number];
        let members = &self.graph.members[meeting.members.start as usize..meeting.members.end as usize];
        let checkpoints = meeting.checkpoints.start..meeting.checkpoints.end;
        let mut progress = self.meetings[number];
        progress.has_begun = true;
        while let Some(&member) = members.get(progress.members as usize) {
            if !self.knows(member) {
                self.meetings[number] = progress;
                self.park(member, (self.walks.len() + number) as u32);
                return;
            }
            let value = self.values[member as usize];
            (0..K).for_each(|k| progress.latest[k] = progress.latest[k].max(value[k]));
            progress.members += 1;
            let checkpoint = checkpoints.start + progress.checkpoints;
            if checkpoint < checkpoints.end && self.graph.checkpoints[checkpoint as usize] == progress.members {
                progress.checkpoints += 1;
                self.publish(self.graph.checkpoint_node(checkpoint as usize), progress.latest);
            }
        }
        self.meetings[number] = progress;
    }

    /// Whether all sources of arcs are known; if not, the location waits for one that is not.
    #[inline]
    fn is_ready(&mut self, location: LocationId, arcs: Range<usize>) -> bool {
        for arc in arcs {
            let (source, _) = self.graph.arc(arc);
            if source == OWN || self.knows(source) {
                continue;
            }
            if let Some(checkpoint) = self.graph.checkpoint(source) {
                let meeting = self.graph.meeting_of[checkpoint] as usize;
                if !self.meetings[meeting].has_begun {
                    self.pull(meeting);
                    if self.knows(source) {
                        continue;
                    }
                }
            }
            self.park(source, location.number());
            self.walks[location].parked = source;
            return false;
        }
        true
    }

    /// Goes along a location as far as it gets; `forced` through the first call that waits. Returns its measured Leave.
    #[expect(clippy::too_many_lines, reason = "one walk")]
    fn go(&mut self, location: LocationId, mut forced: bool) -> i64 {
        let (trace, graph, shapes) = (self.trace, self.graph, self.shapes);
        let shard = trace.shard(location);
        let first = graph.instance(trace.position(location), InstanceId::new(0));
        let i = shard.local(location);
        let (begin, end) = (shard.event_offsets[i], shard.event_offsets[i + 1]);
        let last_instance = shard.instance_offsets[i + 1];
        let stops = graph.stops(location);
        let order = graph.order(shard, location);
        let time = &shard.events.time;
        let changes: [&[Change]; K] = shapes.map(|shape| shape.of(location));
        let mut place = i64::MIN;
        let mut walk = std::mem::take(&mut self.walks[location]);
        loop {
            let next = if walk.instance < last_instance {
                order.get(InstanceId::new(walk.instance))
            } else {
                InstanceId::NONE
            };
            let entering = if next.is_none() { NONE } else { shard.instances.enter[next] };
            let leaving = walk.open.last().map_or(NONE, |&open| shard.instances.leave[open]);
            let stopping = stops.get(walk.stop as usize).map_or(NONE, |stop| stop.position);
            let position = entering.min(leaving).min(stopping).min(end);
            // Up to the event before.
            if position > walk.reached {
                if !walk.has_begun {
                    walk.has_begun = true;
                    walk.now = [time[begin as usize]; K];
                    walk.then = time[begin as usize];
                    self.ends[location][0] = walk.now;
                    walk.reached += 1;
                }
                advance(&mut walk, &changes, time, position);
            }
            // The stops between it and the event.
            while let Some(stop) = stops.get(walk.stop as usize).filter(|stop| stop.position == position) {
                let arcs = graph.arcs_of_stop(stop);
                if !forced && !self.is_ready(location, arcs.clone()) {
                    walk.parked = self.walks[location].parked;
                    self.walks[location] = walk;
                    return place;
                }
                let is_first = !walk.has_begun;
                walk.has_begun = true;
                let since = if is_first { stop.time } else { walk.then };
                let own = graph.own_of_stop(stop, since);
                let (ours, total) =
                    Self::own(&walk, &changes, position, own, || total(graph, shard, stops, position, &walk, first));
                let before = walk.now;
                if is_first {
                    walk.now = [if stop.kind == StopKind::Begin { KNOWN } else { stop.time }; K];
                } else {
                    (0..K).for_each(|k| walk.now[k] += ours[k]);
                }
                if forced && !arcs.is_empty() {
                    forced = false;
                    place = stop.time;
                    (0..K).for_each(|k| walk.now[k] = if is_first { stop.time } else { before[k] + stop.time - since });
                } else {
                    self.wait_for(&mut walk, arcs, own, &ours, total);
                }
                walk.spent += own;
                walk.then = stop.time;
                walk.stop += 1;
                self.publish(graph.stop_node(stop), walk.now);
            }
            if position == end {
                break;
            }
            // The event.
            let measured = time[position as usize];
            let leaves = leaving == position && entering != position;
            let target = leaves.then(|| first + walk.open[walk.open.len() - 1].number());
            let arcs = target.map_or(0..0, |target| graph.arcs(target));
            if !walk.has_begun {
                walk.has_begun = true;
                walk.now = [measured; K];
            } else if arcs.is_empty() {
                let own = measured - walk.then;
                let (ours, _) =
                    Self::own(&walk, &changes, position, own, || total(graph, shard, stops, position, &walk, first));
                (0..K).for_each(|k| walk.now[k] += ours[k]);
            } else if forced {
                forced = false;
                place = measured;
                (0..K).for_each(|k| walk.now[k] += measured - walk.then);
            } else {
                if !self.is_ready(location, arcs.clone()) {
                    walk.parked = self.walks[location].parked;
                    self.walks[location] = walk;
                    return place;
                }
                let own = graph.arc(arcs.start).1;
                let (ours, total) =
                    Self::own(&walk, &changes, position, own, || total(graph, shard, stops, position, &walk, first));
                (0..K).for_each(|k| walk.now[k] += ours[k]);
                self.wait_for(&mut walk, arcs, own, &ours, total);
            }
            if walk.reached == begin {
                self.ends[location][0] = walk.now;
            }
            for (changes, cursor) in changes.iter().zip(&mut walk.cursor) {
                if changes.get(*cursor as usize).is_some_and(|change| change.position == position) {
                    *cursor += 1;
                }
            }
            (walk.then, walk.reached, walk.spent) = (measured, position + 1, 0);
            if entering == position {
                self.publish(enter(first + next.number()), walk.now);
                walk.open.push(next);
                walk.instance += 1;
            } else if let Some(target) = target {
                self.publish(leave(target), walk.now);
                walk.open.pop();
            }
        }
        self.ends[location][1] = walk.now;
        walk.is_done = true;
        self.walks[location] = walk;
        place
    }

    /// The `own` ticks of a piece of a segment as each lane has them; and, of lanes that change it, old and new length.
    #[inline]
    fn own(
        walk: &Walk<K>,
        changes: &[&[Change]; K],
        position: u32,
        own: i64,
        total: impl Fn() -> i64,
    ) -> ([i64; K], Option<[(i64, i64); K]>) {
        let mut ours = [own; K];
        let mut lengths = None;
        for k in 0..K {
            if let Some(change) = changes[k].get(walk.cursor[k] as usize).filter(|change| change.position == position) {
                let base = total();
                let part = |ticks: i64| scaled(ticks, change.ticks, base);
                ours[k] = part(walk.spent + own) - part(walk.spent);
                lengths.get_or_insert([(1, 1); K])[k] = (base, change.ticks);
            }
        }
        (ours, lengths)
    }

    /// Waits for the sources of arcs; `own` is the own time, `ours` that of each lane, already spent.
    #[inline]
    fn wait_for(
        &self,
        walk: &mut Walk<K>,
        arcs: Range<usize>,
        own: i64,
        ours: &[i64; K],
        lengths: Option<[(i64, i64); K]>,
    ) {
        for arc in arcs.skip(1) {
            let (source, weight) = self.graph.arc(arc);
            let value = &self.values[source as usize];
            for k in 0..K {
                let weight = match lengths {
                    // What offsets of clocks there are stays.
                    Some(lengths) if weight > 0 => {
                        if weight == own {
                            ours[k]
                        } else {
                            scaled(weight, lengths[k].1, lengths[k].0)
                        }
                    }
                    _ => weight,
                };
                walk.now[k] = walk.now[k].max(value[k] + weight);
            }
        }
    }
}

/// `ticks * new / old`; all of `new` at the end of a segment without length.
fn scaled(ticks: i64, new: i64, old: i64) -> i64 {
    if old == new {
        ticks
    } else if old == 0 {
        new
    } else {
        (i128::from(ticks) * i128::from(new) / i128::from(old)) as i64
    }
}

/// Own ticks of the whole segment before an event.
fn total<const K: usize>(
    graph: &Graph,
    shard: &Shard,
    stops: &[Stop],
    position: u32,
    walk: &Walk<K>,
    first: u32,
) -> i64 {
    let leave = walk.open.last().filter(|&&open| shard.instances.leave[open] == position);
    let from = stops.partition_point(|stop| stop.position < position);
    let to = stops.partition_point(|stop| stop.position <= position);
    graph.base(shard, &stops[from..to], position, leave.map(|open| first + open.number()))
}

/// Goes on to the event before a position: nothing waits in between.
#[inline]
fn advance<const K: usize>(walk: &mut Walk<K>, changes: &[&[Change]; K], time: &[i64], position: u32) {
    let to = time[position as usize - 1];
    for ((changes, cursor), now) in changes.iter().zip(&mut walk.cursor).zip(&mut walk.now) {
        *now += to - walk.then;
        while let Some(change) = changes.get(*cursor as usize).filter(|change| change.position < position) {
            let p = change.position as usize;
            *now += change.ticks - (time[p] - time[p - 1]);
            *cursor += 1;
        }
    }
    (walk.then, walk.reached, walk.spent) = (to, position, 0);
}

/// New times of all Enters and Leaves of each location, in the order of its events.
pub(super) fn all_events(trace: &Trace, graph: &Graph, shape: &Shape, times: &Times<1>) -> Vec<Vec<i64>> {
    let of_shard = |(number, shard): (usize, &Shard)| {
        let mut all = Vec::with_capacity(shard.events.len());
        for i in 0..shard.locations.len() {
            let location = shard.location(i);
            let (begin, end) = (shard.event_offsets[i], shard.event_offsets[i + 1]);
            let mut changes = shape.of(location).iter().peekable();
            let order = graph.order(shard, location);
            let mut known = shard.instances_of(location).map(|number| order.get(number)).peekable();
            let mut open: Vec<InstanceId> = Vec::new();
            let stops = graph.stops(location);
            let mut now = times.ends[location][0][0];
            for position in begin..end {
                let time = &shard.events.time;
                if position > begin {
                    let measured = time[position as usize] - time[position as usize - 1];
                    let change = changes.next_if(|change| change.position == position);
                    now += change.map_or(measured, |change| change.ticks);
                }
                if known.peek().is_some_and(|&instance| shard.instances.enter[instance] == position) {
                    open.extend(known.next());
                    let instance = graph.instance(number, open[open.len() - 1]);
                    now = times.of(enter(instance))[0];
                } else if open.last().is_some_and(|&instance| shard.instances.leave[instance] == position) {
                    let instance = open.pop().map_or(0, |instance| graph.instance(number, instance));
                    now = times.of(leave(instance))[0];
                } else if let Some(stop) = last_stop(stops, position) {
                    // The stop says what was waited for; what follows it has its share of the change.
                    let rest = time[position as usize] - stop.time;
                    let base = graph.base(shard, stops_at(stops, position), position, None);
                    let change = shape.at(location, position);
                    let after = change.map_or(rest, |ticks| ticks - scaled(base - rest, ticks, base));
                    now = times.of(graph.stop_node(stop))[0] + after;
                }
                all.push(now);
            }
        }
        all
    };
    trace.shards.par_iter().enumerate().map(of_shard).collect()
}

fn stops_at(stops: &[Stop], position: u32) -> &[Stop] {
    let from = stops.partition_point(|stop| stop.position < position);
    let to = stops.partition_point(|stop| stop.position <= position);
    &stops[from..to]
}

fn last_stop(stops: &[Stop], position: u32) -> Option<&Stop> {
    stops_at(stops, position).last()
}
