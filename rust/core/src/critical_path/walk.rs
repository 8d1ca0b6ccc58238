//! Follows the path backwards from its end.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeSet;
use std::ops::Range;

use bitcode::{Decode, Encode};
use rustc_hash::{FxHashMap, FxHashSet};

use super::exits;
use super::handovers::{Continuation, Handover, Handovers, Until};
use super::stretch::{Segment, Stretch};
use crate::Result;
use crate::causes::points::{Place, Point};
use crate::causes::{Class, CostModel, ForkJoins, Position, Table};
use crate::ids::{CallPathId, LocationId};
use crate::parallel::iter::prelude::*;
use crate::severity::{self, Metric, Severity};
use crate::trace::{RegionClass, Shard, Trace};

/// The end of a stretch: nothing at or after it belongs to the path.
#[derive(Clone, Copy, PartialEq, Eq, Encode, Decode)]
struct PathEnd {
    time: i64,
    location: LocationId,
    position: Position,
    /// The first point that does not belong to it.
    point: u32,
    /// Call path of the release that others waited for, and what it did after their wait had ended, ticks. A negative value
    /// is the time from there to the end of their wait, which is on the path.
    overrun: (CallPathId, i64),
}

impl Ord for PathEnd {
    /// By time, so that all threads of a team reach their fork before the path continues at the master.
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |end: &Self| (end.time, Reverse(end.location), end.position, end.overrun);
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for PathEnd {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The current position of the path, held by the one process of the analysis that continues it.
#[derive(Default, Encode, Decode)]
struct Token {
    ends: BTreeSet<PathEnd>,
    /// Pending hand-overs to other processes.
    handovers: Vec<Handover>,
    /// How often it has changed processes so far.
    legs: u32,
    /// Where the path closed a circle: location and time.
    circular: Vec<(LocationId, i64)>,
}

/// Number of the token's leg, and position in it.
type Number = (u32, u32);

/// A part of the path on one location.
struct PathEntry {
    number: Number,
    end: PathEnd,
    /// The point at which it begins in time; `None` at the begin of the location.
    stop: Option<usize>,
}

impl Token {
    /// A location whose process has to continue; `None` at the end of the path.
    fn location(&self) -> Option<LocationId> {
        let handover = self.handovers.first().map(|handover| handover.location);
        handover.or_else(|| self.ends.last().map(|end| end.location))
    }
}

/// A segment with its number.
type NumberedSegment = (Number, Segment);

/// The result for some parts of the path.
#[derive(Default)]
struct PathParts {
    stretches: Vec<Stretch>,
    segments: Vec<NumberedSegment>,
    cells: FxHashMap<(CallPathId, LocationId), i64>,
}

/// Call paths, and when they run.
type Spans = Vec<(CallPathId, Range<i64>)>;

/// The part of the path ends exactly at its end point.
const EXACT: (CallPathId, i64) = (CallPathId::NONE, 0);

pub(super) struct Walk<'a> {
    trace: &'a Trace,
    handovers: Handovers<'a>,
    model: CostModel,
    /// Points where the path left a location.
    seen: FxHashSet<(LocationId, usize)>,
    /// The parts of the path, in the order of the legs.
    entries: Vec<PathEntry>,
}

impl<'a> Walk<'a> {
    /// A walk that has not begun.
    pub(super) fn new(trace: &'a Trace, tables: &'a [Table], model: CostModel) -> Self {
        let handovers = Handovers::new(trace, tables, model);
        Self { trace, handovers, model, seen: FxHashSet::default(), entries: Vec::new() }
    }

    /// Where the path ends in time: the last Enter of the call that shuts down the library (thesis, section 4.3.2), or
    /// the last event of a master if there is none.
    fn begin(&self) -> Result<Option<PathEnd>> {
        let processes = self.trace.shards.iter().flat_map(|shard| shard.processes);
        let locations = processes.flat_map(|process| self.trace.definitions.processes[process].locations);
        let span = |location: LocationId| {
            let shard = self.trace.shard(location);
            &shard.spans[shard.local(location)]
        };
        let at = |time: i64, location: LocationId, position: Position| {
            let (table, i) = self.handovers.table(location);
            PathEnd { time, location, position, point: table.find(i, position), overrun: EXACT }
        };
        let shutdown = |location: LocationId| {
            let instance = span(location).shutdown;
            (instance.is_some()).then(|| {
                let position = self.handovers.position((location, instance), Place::Leave);
                at(self.trace.shard(location).enter(instance), location, position)
            })
        };
        let last = |location: LocationId| {
            let is_master = self.trace.definitions.locations[location].thread == 0;
            let time = span(location).last;
            (is_master && time != i64::MIN).then(|| at(time, location, Position::END))
        };
        let latest = (locations.clone().filter_map(shutdown).max(), locations.filter_map(last).max());
        let (shutdown, last): (Vec<_>, Vec<_>) = self.trace.exchange.allgather(latest)?.into_iter().unzip();
        Ok(shutdown.into_iter().max().flatten().or(last.into_iter().max().flatten()))
    }

    /// Follows the path from its end to its begin; returns where it closed a circle.
    pub(super) fn follow(&mut self) -> Result<Vec<(LocationId, i64)>> {
        let exchange = &self.trace.exchange;
        let mut token = Token { ends: self.begin()?.into_iter().collect(), ..Token::default() };
        let exits = if exchange.processes() > 1 { exchange.gatherv(self.handovers.exits())? } else { Vec::new() };
        while let Some(location) = token.location() {
            let here = self.trace.owns(location).then(|| {
                self.follow_all(&mut token);
                token.legs += 1;
                token
            });
            token = exchange.allgather(here)?.into_iter().flatten().next().unwrap_or_default();
            if let (&[next], true) = (&token.handovers[..], token.ends.is_empty()) {
                let followed = exchange.is_root().then(|| exits::follow_exits(&exits, next));
                let (legs, further) = exchange.allgather(followed)?.into_iter().flatten().next().unwrap_or_default();
                token.handovers = further.into_iter().collect();
                self.follow_legs(legs, &mut token)?;
            }
        }
        Ok(token.circular)
    }

    /// Follows the path from all places where it enters this process.
    fn follow_legs(&mut self, legs: Vec<Handover>, token: &mut Token) -> Result<()> {
        let first = token.legs;
        let mut circular = None;
        for (leg, handover) in (first..).zip(legs) {
            if self.trace.owns(handover.location) && circular.is_none() {
                let mut here = Token { handovers: vec![handover], legs: leg, ..Token::default() };
                self.follow_all(&mut here);
                circular = here.circular.pop().map(|(location, time)| (leg, location, time));
            }
            token.legs = leg + 1;
        }
        // Legs that other processes followed beyond the circle do not belong to the path.
        if let Some((leg, location, time)) = self.trace.exchange.allgather(circular)?.into_iter().flatten().min() {
            self.entries.retain(|entry| entry.number.0 <= leg);
            token.handovers.clear();
            token.circular.push((location, time));
        }
        Ok(())
    }

    /// Follows the path as far as it stays in this process.
    fn follow_all(&mut self, token: &mut Token) {
        loop {
            let Token { ends, handovers, .. } = &mut *token;
            handovers.retain(|&handover| {
                let is_here = self.trace.owns(handover.location);
                if is_here {
                    ends.insert(self.path_end(handover));
                }
                !is_here
            });
            if !token.location().is_some_and(|location| self.trace.owns(location)) {
                return;
            }
            if let Some(end) = token.ends.pop_last() {
                self.follow_one(end, token);
            }
        }
    }

    /// Follows one location back to its wait, and hands over to the cause.
    fn follow_one(&mut self, end: PathEnd, token: &mut Token) {
        let location = end.location;
        let stop = self.handovers.stop(location, end.point as usize);
        // Clock errors can make a wait its own cause; the path ends where it closes the circle.
        if let Some(number) = stop
            && !self.seen.insert((location, number))
        {
            token.circular.push((location, end.time));
            return;
        }
        let before = self.entries.last().filter(|last| last.number.0 == token.legs);
        let number = (token.legs, before.map_or(0, |last| last.number.1 + 1));
        self.entries.push(PathEntry { number, end, stop });
        if let Some(number) = stop {
            let Continuation { first, ties } = self.handovers.next(number, location);
            token.handovers.extend(first);
            token.handovers.extend(ties);
        }
    }

    /// A part of the path that ends at a hand-over.
    fn path_end(&self, handover: Handover) -> PathEnd {
        let Handover { location, point: number, until } = handover;
        let point = &self.handovers.table(location).0.points[number as usize];
        let shard = self.trace.shard(location);
        let end = |time: i64, position, overrun: (CallPathId, i64)| PathEnd {
            time: time - overrun.1,
            location,
            position,
            point: self.handovers.end(handover),
            overrun,
        };
        if let (Until::Release(released), Some(event)) = (until, self.handovers.release_inside(handover)) {
            let time = shard.events.time[event as usize];
            let running = shard.events.running_after(&self.trace.tree, event - 1);
            return end(time, Position::after_step_before(event), (running, (time - released).max(0)));
        }
        let time = match point.place {
            Place::Behind => shard.leave(point.instance),
            Place::Fork => shard.enter(point.instance) - point.total,
            _ => shard.enter(point.instance),
        };
        let overrun = match until {
            Until::Point => EXACT,
            // What lies behind the begin of the rest of the path is cut off.
            Until::Beyond(ended) => (point.callpath, (time - ended).min(0)),
            Until::End(ended) | Until::Release(ended) => (point.callpath, (time - ended).max(0)),
        };
        end(time, point.position, overrun)
    }

    /// Turns the parts of the path into stretches by location, segments, and severities.
    pub(super) fn book(&mut self) -> Result<(Vec<Stretch>, Vec<NumberedSegment>, Vec<Severity>)> {
        let limits = self.limits()?;
        let entries = std::mem::take(&mut self.entries);
        let fork_joins: Vec<ForkJoins> =
            self.trace.shards.iter().map(|shard| ForkJoins::new(self.trace, shard)).collect();
        let booked: Vec<PathParts> = entries.par_iter().of_parts(|entries| {
            let mut booked = PathParts::default();
            let (mut spans, mut times) = (Vec::new(), Vec::new());
            for entry in entries {
                let until = limits.get(&entry.number).copied().unwrap_or(i64::MAX);
                let fork_joins = &fork_joins[self.trace.position(entry.end.location)];
                self.book_one((entry, until), fork_joins, (&mut spans, &mut times), &mut booked);
            }
            booked
        });
        let (mut stretches, mut segments, mut cells) = (Vec::with_capacity(entries.len()), Vec::new(), Vec::new());
        for part in booked {
            stretches.extend(part.stretches);
            segments.extend(part.segments);
            let cell =
                |((callpath, location), value)| Severity { metric: Metric::CriticalPath, callpath, location, value };
            cells.extend(part.cells.into_iter().map(cell));
        }
        stretches.sort_by_key(|stretch: &Stretch| stretch.location);
        Ok((stretches, segments, severity::combine(cells)))
    }

    /// When parts of the path end at the latest that would reach beyond the begin of what comes after them, as they do
    /// where clocks disagree: the path is never longer than the run.
    fn limits(&self) -> Result<FxHashMap<Number, i64>> {
        // In release 2.6 of Scalasca, several locations own the path at once.
        if self.model == CostModel::Scalasca {
            return Ok(FxHashMap::default());
        }
        let spans = self.entries.iter().map(|entry| (entry.number, self.from(entry), entry.end.time));
        let mut spans: Vec<(Number, i64, i64)> = self.trace.exchange.gatherv(spans)?;
        spans.sort_unstable_by_key(|&(number, ..)| number);
        let mut until = i64::MAX;
        let mut limits: Vec<(Number, i64)> = Vec::new();
        for (number, from, to) in spans {
            if to > until {
                limits.push((number, until));
            }
            until = until.min(from);
        }
        Ok(self.trace.exchange.allgather(limits)?.into_iter().flatten().collect())
    }

    /// When a part of the path begins.
    fn from(&self, entry: &PathEntry) -> i64 {
        let location = entry.end.location;
        let shard = self.trace.shard(location);
        let (table, i) = self.handovers.table(location);
        entry.stop.map_or(shard.spans[i].first, |number| {
            let point = &table.points[number];
            match point.place {
                Place::Fork => shard.enter(point.instance) + point.held - point.total,
                Place::Arrival => point.place.cut(shard, point.instance).unwrap_or(0),
                _ => shard.enter(point.instance) + point.held,
            }
        })
    }

    /// What waits at the begin of a stretch, and for how long.
    fn held(&self, shard: &Shard, point: &Point) -> (CallPathId, i64) {
        let enter = shard.instances.enter[point.instance];
        let running_before = |event: u32| shard.events.running_after(&self.trace.tree, event - 1);
        match point.place {
            // A task was ready before its thread started it.
            Place::Ahead if self.trace.class(shard, point.instance) == RegionClass::Task => {
                let before = shard.events.time[enter as usize - 1];
                (running_before(enter), shard.enter(point.instance) + point.held - before)
            }
            // It begins in the middle of a step.
            Place::Arrival => {
                let at = point.position.event();
                let cut = point.place.cut(shard, point.instance).unwrap_or(0);
                (running_before(at), cut - shard.events.time[at as usize - 1])
            }
            // Tasks may have run in the call.
            Place::Leave if point.class == Class::Task => {
                let before = shard.events.time[shard.instances.leave[point.instance] as usize - 1];
                (point.callpath, point.held - (before - shard.enter(point.instance)))
            }
            _ => (point.callpath, point.held),
        }
    }

    /// Turns one part of the path into a stretch and its segments.
    fn book_one(
        &self,
        (entry, until): (&PathEntry, i64),
        fork_joins: &ForkJoins,
        (spans, times): (&mut Spans, &mut Vec<(CallPathId, i64)>),
        booked: &mut PathParts,
    ) {
        let &PathEntry { number, end: PathEnd { time: to, location, position: end, overrun, .. }, stop } = entry;
        let shard = self.trace.shard(location);
        let table = self.handovers.table(location).0;
        let point = stop.map(|number| table.points[number]);
        let begin = point.map(|point| point.position);
        let held = point.map_or(EXACT, |point| self.held(shard, &point));
        let stretch = Stretch { location, begin, end, held, overrun, until };
        stretch.collect((self.trace, shard), fork_joins, spans);
        times.clear();
        times.extend(spans.iter().map(|(callpath, span)| (*callpath, span.end - span.start)));
        times.sort_unstable_by_key(|&(callpath, _)| callpath);
        times.dedup_by(|later, earlier| {
            let is_same = later.0 == earlier.0;
            if is_same {
                earlier.1 += later.1;
            }
            is_same
        });
        let (from, to) = (self.from(entry), to.min(until));
        let longest = times.iter().max_by_key(|&&(callpath, ticks)| (ticks, Reverse(callpath)));
        let (callpath, ticks) = longest.copied().unwrap_or((CallPathId::NONE, 0));
        let hop = point.map(|point| point.class).filter(|&class| class != Class::Library);
        if from < to {
            booked.segments.push((number, Segment { location, from, to, callpath, ticks, hop }));
        }
        for &(callpath, ticks) in &*times {
            *booked.cells.entry((callpath, location)).or_insert(0) += ticks;
        }
        booked.stretches.push(stretch);
    }
}
