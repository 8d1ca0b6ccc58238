//! One pass over the events of a location: which moment belongs to which row.
//!
//! Own code is booked at once. The rest of a call, its own time less its waits, is kept until the floors of all kinds
//! are known. Time of threads outside of all regions becomes a list of spans in which they are idle.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::activities::{self, Activity};
use super::busy::BusyWaits;
use super::calls::{self, Moved};
use super::floors::{Histogram, Kind};
use super::rows::Row;
use crate::ids::{CallPathId, Ids, InstanceId, LocationId, RegionKey};
use crate::schema::Metric;
use crate::trace::management::{Pass, management};
use crate::trace::{RegionClass, Shard, Trace};
use crate::waits::WaitState;
use crate::waits::interval::{self, overlap};

/// What is the same for all call paths of the run.
pub(super) struct CallPaths {
    /// What a location does in each.
    pub activities: Vec<Activity>,
    /// Its region, the same for all regions of a name.
    pub regions: Vec<RegionKey>,
    /// Whether it is a collective operation with a root, in which processes can wait for others of a tree.
    pub is_rooted: Vec<bool>,
    /// The outermost parallel region that it is in, or none.
    pub parallel: Vec<CallPathId>,
}

impl CallPaths {
    /// Those of a run.
    pub(super) fn of(trace: &Trace) -> Self {
        let nodes = trace.tree.nodes();
        let mut of_name: FxHashMap<&str, RegionKey> = FxHashMap::default();
        let regions = nodes.iter().map(|node| match trace.regions.get(node.region) {
            Some(region) => *of_name.entry(&region.name).or_insert(node.region),
            None => node.region,
        });
        let regions = regions.collect();
        let mut parallel: Vec<CallPathId> = Vec::with_capacity(nodes.len());
        for (i, node) in nodes.iter().enumerate() {
            let above = parallel.get(node.parent.index()).copied().unwrap_or(CallPathId::NONE);
            let is_outermost = above.is_none() && trace.regions.class(node.region) == RegionClass::Parallel;
            parallel.push(if is_outermost { CallPathId::at(i) } else { above });
        }
        Self { activities: activities::of_tree(trace), regions, is_rooted: activities::rooted(trace), parallel }
    }
}

/// Ticks of a row in a call path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub row: Row,
    pub callpath: CallPathId,
    pub ticks: i64,
    pub calls: u64,
}

/// The rest of a call in the focus: its own time less its waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest {
    /// Number of its kind in the shard.
    pub kind: u32,
    /// The position of its Leave.
    pub leave: u32,
    pub ticks: i64,
}

/// The rest of a call that reaches out of the focus: all of it, and the ticks before and in the focus.
#[derive(Clone, Copy, Debug)]
pub(super) struct CutRest {
    pub rest: Rest,
    pub before: i64,
    pub inside: i64,
}

/// A call that did not wait, but whose message was sent before it by less than the call takes: exposed if that is also
/// less than such a call needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undecided {
    /// Its kind if it is hidden, and the ticks of its rest.
    pub rest: Rest,
    /// Where it is among the rests, or the cut ones, if it is.
    pub place: Place,
    /// How long the message had been there, ticks.
    pub lead: u32,
}

/// Where the rest of a call is kept.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    Rest(usize),
    Cut(usize),
    Nowhere,
}

/// What a pass over a location finds.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub parts: Vec<Part>,
    /// The calls that lie in the focus, and those that reach out of it: ranges of the shard's.
    pub rests: Range<usize>,
    pub cuts: Range<usize>,
    /// When a thread without a region is idle, in the order of time.
    pub idle: Vec<Range<i64>>,
    /// The ticks that belong to the location, and those of them that have a row (without idle ones).
    pub allocated: i64,
    pub booked: i64,
}

/// A call or function that is open.
#[derive(Clone, Copy)]
struct Frame {
    callpath: CallPathId,
    activity: Activity,
    enter: i64,
    /// Own time so far: before the focus, in it, and all.
    before: i64,
    inside: i64,
    all: i64,
    instance: InstanceId,
    /// The wait states of the call.
    waits: (u32, u32),
}

impl Frame {
    /// Adds the time from one event to the next to the call.
    #[inline]
    fn pass(&mut self, focus: &Range<i64>, from: i64, to: i64) {
        self.all += to - from;
        self.inside += (to.min(focus.end) - from.max(focus.start)).max(0);
        self.before += (to.min(focus.start) - from).max(0);
    }
}

/// What a shard's passes share.
pub(super) struct Sweep<'a> {
    trace: &'a Trace,
    shard: &'a Shard,
    callpaths: &'a CallPaths,
    focus: Range<i64>,
    moved: Vec<Moved>,
    leads: Vec<u32>,
    busy: &'a BusyWaits,
    /// The row of waits of each metric.
    rows: Vec<Option<Row>>,
    numbers: FxHashMap<u64, u32>,
    /// The kind of the last call of each call path, and its number: most calls are of the same kind.
    last: Vec<(u64, u32)>,
    pub kinds: Vec<Kind>,
    pub histograms: Vec<Histogram>,
    pub rests: Vec<Rest>,
    pub cuts: Vec<CutRest>,
    pub undecided: Vec<Undecided>,
    /// Ticks of own code by call path, and the call paths that have any.
    own: Vec<i64>,
    touched: Vec<CallPathId>,
    of_rows: FxHashMap<(Row, CallPathId), (i64, u64)>,
    booked: i64,
}

impl<'a> Sweep<'a> {
    pub(super) fn new(
        trace: &'a Trace,
        shard: &'a Shard,
        callpaths: &'a CallPaths,
        focus: Range<i64>,
        moved: Vec<Moved>,
        busy: &'a BusyWaits,
    ) -> Self {
        Self {
            trace,
            shard,
            callpaths,
            focus,
            moved,
            leads: calls::leads(shard),
            busy,
            rows: Metric::ALL.iter().map(|&kind| Row::of_wait(kind)).collect(),
            numbers: FxHashMap::default(),
            last: vec![(u64::MAX, 0); trace.tree.len()],
            kinds: Vec::new(),
            histograms: Vec::new(),
            rests: Vec::new(),
            cuts: Vec::new(),
            undecided: Vec::new(),
            own: vec![0; trace.tree.len()],
            touched: Vec::new(),
            of_rows: FxHashMap::default(),
            booked: 0,
        }
    }

    /// Passes over a location that belongs to the program during `allocated`. `waits` are its wait states; `is_worker`:
    /// it is idle outside of all regions.
    pub(super) fn location(
        &mut self,
        location: LocationId,
        waits: &[WaitState],
        allocated: &Range<i64>,
        is_worker: bool,
    ) -> Found {
        let (shard, i) = (self.shard, self.shard.local(location));
        let (first_rest, first_cut) = (self.rests.len(), self.cuts.len());
        let management = management(shard, location);
        let mut calls = Calls::new(shard, location, waits);
        let mut outside = Outside { management: Pass::new(&management), idle: is_worker.then(Vec::new) };
        let mut stack: Vec<Frame> = Vec::with_capacity(64);
        // Before its first event, a worker is idle.
        let mut since = shard.spans[i].first;
        if is_worker && allocated.start < since {
            let first = since.min(allocated.end);
            self.pass(None, allocated.start, first, &mut outside);
            since = first;
        }
        let (mut position, last) = (shard.event_offsets[i], shard.event_offsets[i + 1]);
        while position < last {
            let time = shard.events.time[position as usize];
            if time > since {
                self.pass(stack.last_mut(), since, time, &mut outside);
                since = time;
            }
            if shard.events.is_leave(position) {
                if let Some(frame) = stack.pop().filter(|frame| frame.activity.has_calls()) {
                    self.end_call(&frame, (position, time), waits);
                }
                position += 1;
                continue;
            }
            let callpath = shard.events.callpath(position);
            let activity = self.callpaths.activities[callpath];
            let (instance, of_call) =
                if activity.has_calls() { calls.at(position) } else { (InstanceId::NONE, (0, 0)) };
            let mut frame =
                Frame { callpath, activity, enter: time, before: 0, inside: 0, all: 0, instance, waits: of_call };
            position += 1;
            // Most calls contain no other.
            if activity.has_calls() && position < last && shard.events.is_leave(position) {
                let leave = shard.events.time[position as usize].max(since);
                frame.pass(&self.focus, since, leave);
                self.end_call(&frame, (position, leave), waits);
                since = leave;
                position += 1;
            } else {
                stack.push(frame);
            }
        }
        if is_worker && since < allocated.end {
            self.pass(None, since, allocated.end, &mut outside);
        }
        let mut parts: Vec<Part> = self
            .touched
            .drain(..)
            .map(|callpath| {
                let row = match self.callpaths.activities[callpath] {
                    Activity::Own => Row::ComputationOther,
                    Activity::Measurement => Row::Measurement,
                    _ => Row::Unknown,
                };
                Part { row, callpath, ticks: std::mem::take(&mut self.own[callpath]), calls: 0 }
            })
            .collect();
        let of_rows = self.of_rows.drain();
        parts.extend(of_rows.map(|((row, callpath), (ticks, calls))| Part { row, callpath, ticks, calls }));
        Found {
            parts,
            rests: first_rest..self.rests.len(),
            cuts: first_cut..self.cuts.len(),
            idle: outside.idle.unwrap_or_default(),
            allocated: (allocated.end - allocated.start).max(0),
            booked: std::mem::take(&mut self.booked),
        }
    }

    /// Books the time from one event to the next.
    #[inline]
    fn pass(&mut self, frame: Option<&mut Frame>, from: i64, to: i64, outside: &mut Outside) {
        let begin = from.max(self.focus.start);
        let inside = to.min(self.focus.end) - begin;
        match frame {
            Some(frame) if frame.activity.has_calls() => {
                frame.pass(&self.focus, from, to);
            }
            _ if inside <= 0 => {}
            Some(frame) => {
                let callpath = frame.callpath;
                let managed = outside.take(callpath, begin, begin + inside, |ticks, to| {
                    self.add(Row::ForkJoin, to, ticks, 0);
                });
                self.compute(callpath, inside - managed);
            }
            None => {
                outside.take(CallPathId::NONE, begin, begin + inside, |ticks, to| {
                    self.add(Row::ForkJoin, to, ticks, 0);
                });
            }
        }
    }

    #[inline]
    fn compute(&mut self, callpath: CallPathId, ticks: i64) {
        let own = &mut self.own[callpath];
        if *own == 0 && ticks > 0 {
            self.touched.push(callpath);
        }
        *own += ticks;
        self.booked += ticks;
    }

    fn add(&mut self, row: Row, callpath: CallPathId, ticks: i64, calls: u64) {
        let (all, number) = self.of_rows.entry((row, callpath)).or_default();
        *all += ticks;
        *number += calls;
        self.booked += ticks;
    }

    /// Books the waits of a call, and keeps the rest of it. It ends with the event at a position and a time.
    fn end_call(&mut self, frame: &Frame, (position, leave): (u32, i64), waits: &[WaitState]) {
        let waits = &waits[frame.waits.0 as usize..frame.waits.1 as usize];
        let is_inside = frame.enter >= self.focus.start && leave <= self.focus.end;
        let (mut waited, mut waited_before, mut waited_inside) = (0, 0, 0);
        let mut exposed = false;
        if !waits.is_empty() {
            let begins = if is_inside { Vec::new() } else { interval::begins(self.trace, waits) };
            let mut end = 0;
            for (i, wait) in waits.iter().enumerate() {
                let Some(row) = self.rows[wait.kind as usize] else { continue };
                exposed = true;
                let begin = begins.get(i).copied().unwrap_or(frame.enter);
                let busy = |within: &Range<i64>| {
                    let span = begin.max(within.start)..(begin + wait.waiting).min(within.end);
                    self.busy.ticks((wait.location, wait.instance), &span)
                };
                let is_device = row == Row::DeviceWaitBusy;
                let length = if is_device { busy(&(i64::MIN..i64::MAX)) } else { wait.waiting };
                // What runs inside the call (a task, a buffer flush) takes its time from the wait.
                let all = length.min(frame.all - waited);
                waited += all;
                let inside = if is_inside {
                    all
                } else if is_device {
                    waited_before += busy(&(i64::MIN..self.focus.start)).min(frame.before - waited_before);
                    busy(&self.focus).min(frame.inside - waited_inside)
                } else {
                    // Where the wait lies in the own time of the call.
                    let begin = (begin - frame.enter).max(end).min(frame.all - all);
                    end = begin + all;
                    waited_before += overlap(&(0..frame.before), begin..end);
                    overlap(&(frame.before..frame.before + frame.inside), begin..end)
                };
                waited_inside += inside;
                if inside > 0 {
                    self.add(row, frame.callpath, inside, 1);
                }
            }
        }
        let rest = frame.all - waited;
        let inside = frame.inside - waited_inside;
        let row = match frame.activity {
            Activity::Io => Some(Row::Io),
            Activity::Device => Some(Row::DeviceCall),
            Activity::ForkJoin => Some(Row::ForkJoin),
            _ => None,
        };
        if let Some(row) = row {
            if is_inside || inside > 0 {
                self.add(row, frame.callpath, inside, 1);
            }
            return;
        }
        let kind = self.kind(frame, exposed);
        let rest = Rest { kind, leave: position, ticks: rest };
        let mut place = Place::Nowhere;
        if is_inside {
            place = Place::Rest(self.rests.len());
            self.rests.push(rest);
            self.booked += rest.ticks;
        } else if inside > 0 {
            place = Place::Cut(self.cuts.len());
            self.cuts.push(CutRest { rest, before: frame.before - waited_before, inside });
            self.booked += inside;
        }
        let lead = self.leads.get(frame.instance.index()).copied().unwrap_or(u32::MAX);
        if exposed || lead == u32::MAX || i64::from(lead) >= rest.ticks {
            self.histograms[kind as usize].add(rest.ticks);
        } else {
            self.undecided.push(Undecided { rest, place, lead });
        }
    }

    /// The number of a call's kind.
    #[inline]
    fn kind(&mut self, frame: &Frame, exposed: bool) -> u32 {
        let moved = self.moved.get(frame.instance.index()).copied().unwrap_or_default();
        let kind = Kind {
            region: self.callpaths.regions[frame.callpath],
            exposed,
            local: moved.is_local(),
            members: moved.members(),
            size: Kind::size_of(moved.bytes()),
        };
        let key = kind.key();
        let last = &mut self.last[frame.callpath];
        if last.0 != key {
            let number = *self.numbers.entry(key).or_insert_with(|| {
                self.kinds.push(kind);
                self.histograms.push(Histogram::default());
                self.kinds.len() as u32 - 1
            });
            *last = (key, number);
        }
        last.1
    }
}

/// The region instances and wait states of a location, looked up by the Enters of calls in the order of time.
struct Calls<'a> {
    shard: &'a Shard,
    /// Its region instances that are still to come, by Enter.
    instances: Ids<InstanceId>,
    /// Those out of order: an instance gets its number with its first record, after those that it contains.
    others: Vec<(u32, InstanceId)>,
    waits: &'a [WaitState],
    next_wait: usize,
}

impl<'a> Calls<'a> {
    fn new(shard: &'a Shard, location: LocationId, waits: &'a [WaitState]) -> Self {
        let instances = shard.instances_of(location);
        let enters = &shard.instances.enter[instances.range()];
        let mut others = Vec::new();
        if !enters.is_sorted() {
            let mut latest = 0;
            others.extend(enters.iter().copied().zip(instances).filter(|&(enter, _)| {
                latest = latest.max(enter);
                enter < latest
            }));
            others.sort_unstable();
        }
        Self { shard, instances, others, waits, next_wait: 0 }
    }

    /// The instance of the call that begins at an event, and its wait states.
    #[inline]
    fn at(&mut self, position: u32) -> (InstanceId, (u32, u32)) {
        let enter = |instance: InstanceId| self.shard.instances.enter[instance];
        // What is out of order lies before what is passed by here.
        while self.instances.start < self.instances.end && enter(self.instances.start) < position {
            self.instances.next();
        }
        let next = self.instances.start;
        let instance = if next < self.instances.end && enter(next) == position {
            next
        } else {
            match self.others.binary_search_by_key(&position, |&(enter, _)| enter) {
                Ok(found) => self.others[found].1,
                Err(_) => return (InstanceId::NONE, (0, 0)),
            }
        };
        while self.waits.get(self.next_wait).is_some_and(|wait| enter(wait.instance) < position) {
            self.next_wait += 1;
        }
        let first = self.next_wait;
        while self.waits.get(self.next_wait).is_some_and(|wait| wait.instance == instance) {
            self.next_wait += 1;
        }
        (instance, (first as u32, self.next_wait as u32))
    }
}

/// Time outside of calls that is not own code: management of teams, and idle threads.
struct Outside<'a> {
    management: Pass<'a>,
    /// Where spans without work go; `None` if the location is no worker.
    idle: Option<Vec<Range<i64>>>,
}

impl Outside<'_> {
    /// Passes the parts of a span of time that teams take for their management to `book`, with the parallel region;
    /// returns their sum. Without a call path, a worker is idle in the rest.
    #[inline]
    fn take(&mut self, during: CallPathId, from: i64, to: i64, book: impl FnMut(i64, CallPathId)) -> i64 {
        if during.is_some() && self.management.is_done_until(to) {
            return 0;
        }
        self.take_some(during, from, to, book)
    }

    #[inline(never)]
    fn take_some(&mut self, during: CallPathId, from: i64, to: i64, mut book: impl FnMut(i64, CallPathId)) -> i64 {
        let Self { management, idle } = self;
        let mut idle = idle.as_mut().filter(|_| during.is_none());
        let mut is_idle = |span: Range<i64>| {
            if let Some(idle) = idle.as_mut().filter(|_| !span.is_empty()) {
                idle.push(span);
            }
        };
        let (mut since, mut managed) = (from, 0);
        management.take(during, from..to, |part, callpath| {
            is_idle(since..part.start);
            book(part.end - part.start, callpath);
            managed += part.end - part.start;
            since = part.end;
        });
        is_idle(since..to);
        managed
    }
}
