//! The factors of single waits: the costs, wait by wait.
//!
//! A wait is distributed over the excess work of the causing process since the two last synchronized (*delay*; the part
//! spent leaving the call in which they did is *completion*), over earlier *waits* of the causing process in that time,
//! and, if there is neither, over nothing (*unattributed*). The shares of a wait add up to it. Those of all waits of a
//! class add up to its short-term costs. A wait that is a factor passes its share on to its own factors; all of these
//! add up to the long-term costs.
//!
//! Intervals are measured again by the code of [`super::intervals`], with the shares of [`super::delay`]: this is the
//! same cost model, seen from the wait.
//!
//! *Source*: thesis equations 4.1, 4.2, 4.9 to 4.17.

use std::ops::Range;

use rayon::prelude::*;

use super::cost_model::CostModel;
use super::interval_index::{IndexedPoint, IndexedWait, IntervalIndex};
use super::intervals::{IntervalStart, work_since};
use super::ownership::{self, Activity, ContendedLock};
use super::past::{self, Past};
use super::points::IntervalBegin;
use super::points::{Place, Position, Relation};
use super::rolling_profile::RollingProfile;
use super::scaling_factors::Rates;
use super::steps::Steps;
use crate::ids::{CallPathId, InstanceId, LocationId};
use crate::parallel::per_shard::PerShard;
use crate::schema::{Class, Pattern};
use crate::trace::{NONE, Shard, Trace};
use crate::waits::WaitState;

/// Kinds of factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FactorKind {
    /// Excess work of the causing process.
    Delay,
    /// Excess time to leave the call in which the two last synchronized.
    Completion,
    /// An earlier wait of the causing process.
    Wait,
    /// No cause.
    Unattributed,
}

impl FactorKind {
    /// Name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Delay => "delay",
            Self::Completion => "completion",
            Self::Wait => "wait",
            Self::Unattributed => "unattributed",
        }
    }
}

/// A factor of a wait.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Factor {
    /// Position of the wait among the wait states.
    pub wait: u32,
    /// The kind of factor.
    pub kind: FactorKind,
    /// Index of the charged location: the causing one, or the waiter's own if the share is unattributed.
    pub location: LocationId,
    /// The charged call path, or the one of the earlier wait.
    pub callpath: CallPathId,
    /// Time of the causing process in it, ticks.
    pub ticks: i64,
    /// Time of the waiter in it, which is subtracted, ticks.
    pub waiter_ticks: i64,
    /// Position of an earlier wait among the wait states; [`NONE`] for other kinds.
    pub earlier: u32,
    /// The part of the wait that it explains, ticks.
    pub share: f64,
}

/// One side of a wait: its interval since the last synchronization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Side {
    /// The location.
    pub location: LocationId,
    /// Begin of the interval, ticks.
    pub begin: i64,
    /// End, ticks.
    pub end: i64,
    /// Call path and Enter of the call in which the two last synchronized; `None` if they never have.
    pub last_sync: Option<(CallPathId, i64)>,
    /// Time in that call after the synchronization, ticks.
    pub completion: i64,
}

/// The intervals that explain a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitIntervals {
    /// Position of the wait among the wait states.
    pub wait: u32,
    /// Whether it waited for the cause to end, not to begin.
    pub is_contention: bool,
    /// The waiter.
    pub waiter: Side,
    /// The causing side.
    pub cause: Side,
    /// All delays, ticks.
    pub delay: i64,
    /// All waiting of the causing process, ticks.
    pub waiting: i64,
    /// Excess of the wait over all of its factors, ticks.
    pub unexplained: i64,
}

/// Factors and intervals of some waits.
#[derive(Debug, Default)]
pub struct Factors {
    /// By wait, then by kind, the largest first.
    pub factors: Vec<Factor>,
    /// One entry per wait with a known cause.
    pub intervals: Vec<WaitIntervals>,
}

/// An interval to be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct IntervalRequest {
    location: LocationId,
    point: u32,
    begin: IntervalBegin,
}

/// A wait that has a cause: the intervals of the waiter and of the cause.
#[derive(Clone, Copy)]
struct WaitSides {
    is_contention: bool,
    sides: [IntervalRequest; 2],
}

/// Work of an interval by call path, without waits; ticks.
type Work = Vec<(CallPathId, i64)>;

/// Finds the factors of the wait states with these positions.
pub(crate) fn find(
    trace: &Trace,
    waits: &PerShard<WaitState>,
    (indexes, locks): (&[IntervalIndex], &[Vec<ContendedLock>]),
    rows: &[u32],
    model: CostModel,
) -> Factors {
    let of_row = |&row: &u32| {
        let wait = &waits[row as usize];
        let index = &indexes[trace.position(wait.location)];
        let (point, i) = index.find(trace, wait, row)?;
        let indexed = &index.waits.rows[i];
        if indexed.relation == Relation::Ownership {
            return None;
        }
        let (location, point_there) = (indexed.cause_location, indexed.cause_point);
        let begin = indexes[trace.position(location)].begin_of_cause(indexed);
        Some(WaitSides {
            is_contention: indexed.relation == Relation::Contention,
            sides: [
                IntervalRequest { location: wait.location, point, begin: index.intervals[i] },
                IntervalRequest { location, point: point_there, begin },
            ],
        })
    };
    let found: Vec<Option<WaitSides>> = rows.par_iter().map(of_row).collect();
    let mut requests: Vec<IntervalRequest> = found.iter().flatten().flat_map(|found| found.sides).collect();
    requests.par_sort_unstable();
    requests.dedup();
    let of_location: Vec<&[IntervalRequest]> = requests.chunk_by(|a, b| a.location == b.location).collect();
    let works: Vec<Vec<Work>> = of_location
        .into_par_iter()
        .map_init(
            || RollingProfile::new(trace.tree.len()),
            |profile, requests| {
                measure(trace, &indexes[trace.position(requests[0].location)], requests, profile, model)
            },
        )
        .collect();
    let works = works.concat();
    let explained: Vec<(Vec<Factor>, Option<WaitIntervals>)> = rows
        .par_iter()
        .zip(&found)
        .map(|(&row, found)| {
            let wait = &waits[row as usize];
            let Some(WaitSides { is_contention, sides }) = *found else {
                let shard = trace.position(wait.location);
                let locks = locks.get(shard).map_or(&[][..], Vec::as_slice);
                return (of_lock(trace, waits, (&indexes[shard], locks), (wait, row)), None);
            };
            let sides = sides.map(|request| {
                let index = &indexes[trace.position(request.location)];
                let work = requests.binary_search(&request).map_or(&[][..], |i| works[i].as_slice());
                Measured::new(trace, index, request, work)
            });
            share(trace, waits, (wait, row), is_contention, sides, model)
        })
        .collect();
    let mut factors = Factors::default();
    for (of_wait, intervals) in explained {
        factors.factors.extend(of_wait);
        factors.intervals.extend(intervals);
    }
    factors
}

impl IntervalIndex {
    /// The point of a wait state, and the position of its wait.
    fn find(&self, trace: &Trace, wait: &WaitState, row: u32) -> Option<(u32, usize)> {
        let shard = trace.shard(wait.location);
        let i = shard.local(wait.location);
        let (enter, leave) = (shard.instances.enter[wait.instance], shard.instances.leave[wait.instance]);
        let (first, end) = (self.offsets[i] as usize, self.offsets[i + 1] as usize);
        let points = &self.points[first..end];
        let first = first + points.partition_point(|point| point.position.event() < enter);
        (first..end)
            .take_while(|&point| self.points[point].position.event() <= leave + 1)
            .flat_map(|point| self.waits.range(point).map(move |i| (point as u32, i)))
            .find(|&(_, i)| self.waits.rows[i].state == row)
    }
}

/// Measures intervals of one location, which are sorted by their ends, in one pass over its steps.
fn measure(
    trace: &Trace,
    index: &IntervalIndex,
    requests: &[IntervalRequest],
    profile: &mut RollingProfile,
    model: CostModel,
) -> Vec<Work> {
    let location = requests[0].location;
    let shard = trace.shard(location);
    let i = shard.local(location);
    let is_master = trace.definitions.locations[location].thread == 0;
    let mut steps = Steps::of_location(trace, shard, i);
    let mut first_of_master = 0;
    if let Some(past) = &index.pasts[i] {
        first_of_master = index.offsets[shard.local(past.master)];
        steps = steps.with_past(trace, past::gaps(trace, shard, location));
    }
    let mut works = Vec::with_capacity(requests.len());
    for (first, requests) in overlapping(requests) {
        profile.clear();
        // The point before the first interval is its left end.
        let mut before = (first > index.offsets[i]).then(|| &index.points[first as usize - 1]);
        if let Some(left) = before {
            // Only on a master is the call path at a point known without the steps before it.
            if is_master && index.pasts[i].is_none() {
                steps.skip(trace, left.position);
            }
            advance(trace, &mut steps, index, first_of_master, left.position, |_, _| ());
            subtract_wait(shard, left, profile);
        }
        let mut rest = requests;
        for number in first..=requests.last().map_or(0, |request| request.point) {
            let point = &index.points[number as usize];
            advance(trace, &mut steps, index, first_of_master, point.position, |callpath, ticks| {
                profile.add(callpath, ticks);
            });
            // Scalasca 2.6 loses what a worker does after the last barrier of its team.
            let lost = before.filter(|before| before.class == Class::OmpBarrier && point.place == Place::Fork);
            if let Some(barrier) = lost.filter(|_| model == CostModel::Scalasca && !is_master) {
                profile.drop_block();
                subtract_wait(shard, barrier, profile);
            }
            while let Some((request, others)) = rest.split_first().filter(|(request, _)| request.point == number) {
                let mut work = Work::new();
                let from = request.begin.from;
                let left = (from > index.offsets[i]).then(|| {
                    let point = &index.points[from as usize - 1];
                    let waiting = point.place.inside(point.waiting);
                    IntervalStart { callpath: shard.callpath(point.instance), waiting, before: request.begin.before }
                });
                work_since(profile, from - first, left, |callpath, ticks| work.push((callpath, ticks)));
                work.sort_unstable();
                works.push(work);
                rest = others;
            }
            profile.cut();
            subtract_wait(shard, point, profile);
            before = Some(point);
        }
    }
    works
}

/// Divides intervals, sorted by their ends, into runs that overlap or touch, each with its first point.
fn overlapping(requests: &[IntervalRequest]) -> Vec<(u32, &[IntervalRequest])> {
    let mut runs: Vec<(u32, &[IntervalRequest])> = Vec::new();
    let mut end = requests.len();
    let mut first = u32::MAX;
    for (i, request) in requests.iter().enumerate().rev() {
        if i + 1 < end && request.point + 1 < first {
            runs.push((first, &requests[i + 1..end]));
            (end, first) = (i + 1, u32::MAX);
        }
        first = first.min(request.begin.from);
    }
    runs.push((first, &requests[..end]));
    runs.reverse();
    runs
}

/// Advances to the position of a point, and passes call paths and their ticks to `book`.
fn advance(
    trace: &Trace,
    steps: &mut Steps,
    index: &IntervalIndex,
    first_of_master: u32,
    to: Position,
    mut book: impl FnMut(CallPathId, i64),
) {
    let book = |callpath, span: Range<i64>| book(callpath, span.end - span.start);
    match to.original() {
        Some(original) => {
            let original = index.points[(first_of_master + original) as usize].position;
            steps.advance_past(trace, (to, original), book);
        }
        None => steps.advance(trace, to, book),
    }
}

/// Subtracts the wait at a point, which is not work.
fn subtract_wait(shard: &Shard, point: &IndexedPoint, profile: &mut RollingProfile) {
    if point.waiting > 0 {
        profile.add(shard.callpath(point.instance), -point.place.inside(point.waiting));
    }
}

/// An interval that has been measured.
struct Measured<'a> {
    index: &'a IntervalIndex,
    request: IntervalRequest,
    work: &'a [(CallPathId, i64)],
    side: Side,
    /// Call path of the call at its left end, and that part of the work in it which completes the call.
    completion: Option<(CallPathId, i64)>,
}

impl<'a> Measured<'a> {
    fn new(trace: &Trace, index: &'a IntervalIndex, request: IntervalRequest, work: &'a [(CallPathId, i64)]) -> Self {
        let shard = trace.shard(request.location);
        let i = shard.local(request.location);
        let point = &index.points[request.point as usize];
        let end = match point.place {
            _ if point.instance.is_none() => shard.spans[i].last,
            Place::Behind | Place::Join => shard.leave(point.instance),
            _ => shard.enter(point.instance),
        };
        let mut side =
            Side { location: request.location, begin: shard.spans[i].first, end, last_sync: None, completion: 0 };
        let mut completion = None;
        if request.begin.from > index.offsets[i] {
            let left = &index.points[request.begin.from as usize - 1];
            let callpath = shard.callpath(left.instance);
            side.completion = (left.total - request.begin.before).max(0);
            let until = match left.place {
                Place::Fork | Place::Ahead => shard.enter(left.instance),
                _ => shard.leave(left.instance),
            };
            side.begin = until - side.completion;
            side.last_sync = Some((callpath, shard.enter(left.instance)));
            completion = Some((callpath, side.completion.min(ticks_in(work, callpath))));
        }
        side.end = side.end.max(side.begin);
        Self { index, request, work, side, completion }
    }

    /// The part of the work in a call path that completes the call at the left end.
    fn completion_in(&self, callpath: CallPathId) -> i64 {
        self.completion.filter(|&(of_left, _)| of_left == callpath).map_or(0, |(_, ticks)| ticks)
    }

    fn total(&self) -> i64 {
        self.work.iter().map(|&(_, ticks)| ticks).sum()
    }

    /// The points in the interval at which it waited.
    fn waits(&self) -> impl Iterator<Item = (usize, &IndexedPoint)> {
        let points = self.request.begin.from as usize..self.request.point as usize;
        points.map(|number| (number, &self.index.points[number])).filter(|(_, point)| point.waiting > 0)
    }
}

/// Ticks of a call path in some work.
fn ticks_in(work: &[(CallPathId, i64)], callpath: CallPathId) -> i64 {
    work.binary_search_by_key(&callpath, |&(other, _)| other).map_or(0, |i| work[i].1)
}

/// The factors of a wait without intervals: what the owners of the lock did if it is for a lock of threads.
fn of_lock(
    trace: &Trace,
    waits: &PerShard<WaitState>,
    (index, locks): (&IntervalIndex, &[ContendedLock]),
    (wait, row): (&WaitState, u32),
) -> Vec<Factor> {
    let shard = trace.shard(wait.location);
    let (activities, unowned) =
        ownership::causes(trace, shard, locks, wait.instance).unwrap_or((Vec::new(), wait.waiting));
    let mut factors: Vec<Factor> = Vec::with_capacity(activities.len());
    for Activity { owner, callpath, ticks, wait: of_owner } in activities {
        let factor = Factor {
            wait: row,
            kind: FactorKind::Delay,
            location: owner,
            callpath,
            ticks,
            waiter_ticks: 0,
            earlier: NONE,
            share: ticks as f64,
        };
        let Some(number) = of_owner else {
            factors.push(factor);
            continue;
        };
        let point = &index.points[number as usize];
        let mut rest = ticks;
        let mut add = |earlier, ticks: i64| {
            let callpath = shard.callpath(point.instance);
            factors.push(Factor { kind: FactorKind::Wait, callpath, ticks, earlier, share: ticks as f64, ..factor });
        };
        for earlier in index.waits.of(number as usize).iter().filter(|earlier| earlier.state != NONE) {
            let ticks = waits[earlier.state as usize].waiting.min(rest);
            rest -= ticks;
            add(earlier.state, ticks);
        }
        if rest > 0 {
            add(uncharged(trace, waits, owner, point), rest);
        }
    }
    factors.retain(|factor| factor.share > 0.0);
    if unowned > 0 {
        factors.push(unattributed(trace, wait, row, unowned as f64));
    }
    factors
}

fn unattributed(trace: &Trace, wait: &WaitState, row: u32, share: f64) -> Factor {
    let callpath = trace.shard(wait.location).callpath(wait.instance);
    Factor {
        wait: row,
        kind: FactorKind::Unattributed,
        location: wait.location,
        callpath,
        ticks: 0,
        waiter_ticks: 0,
        earlier: NONE,
        share,
    }
}

/// Distributes a wait over its factors.
fn share(
    trace: &Trace,
    waits: &PerShard<WaitState>,
    (wait, row): (&WaitState, u32),
    is_contention: bool,
    [waiter, cause]: [Measured; 2],
    model: CostModel,
) -> (Vec<Factor>, Option<WaitIntervals>) {
    // A wait for the end of the cause is due to all of its work, other waits only to its excess over the waiter's work.
    let counted = |callpath: CallPathId| if is_contention { 0 } else { ticks_in(waiter.work, callpath) };
    let delay = cause.work.iter().map(|&(callpath, ticks)| (ticks - counted(callpath)).max(0)).sum();
    let waited = cause.waits().map(|(_, point)| point.waiting).sum();
    let rates = if is_contention {
        Rates::of_contention(wait.waiting, delay, waited, waiter.total(), model)
    } else {
        let class = Pattern::class_of(wait.kind).unwrap_or(Class::Mark);
        Rates::of_synchronization(wait.waiting, delay, waited, class, model)
    };
    let (of_work, of_wait) = (rates.direct as f64 * rates.work, rates.direct as f64 * rates.wait);
    let shard = trace.shard(cause.request.location);
    let past = cause.index.pasts[shard.local(cause.request.location)].as_ref();
    let factor = |kind, callpath, ticks, waiter_ticks, earlier, share| Factor {
        wait: row,
        kind,
        location: Past::owner(past, cause.request.location, callpath),
        callpath,
        ticks,
        waiter_ticks,
        earlier,
        share,
    };
    let mut factors = Vec::new();
    for &(callpath, ticks) in cause.work.iter().filter(|_| of_work > 0.0) {
        let own = counted(callpath);
        let delay = ticks - own;
        if delay <= 0 {
            continue;
        }
        let mut part = |kind, ticks, waiter_ticks, delay: i64| {
            if delay > 0 {
                factors.push(factor(kind, callpath, ticks, waiter_ticks, NONE, of_work * delay as f64));
            }
        };
        if is_contention {
            part(FactorKind::Delay, ticks, own, delay);
            continue;
        }
        // Either part of the excess, completion or other work, may be negative.
        let (of_cause, of_waiter) = (cause.completion_in(callpath), waiter.completion_in(callpath));
        let completion = (of_cause - of_waiter).clamp(0, delay);
        part(FactorKind::Completion, of_cause, of_waiter, completion);
        part(FactorKind::Delay, ticks - of_cause, own - of_waiter, delay - completion);
    }
    if of_wait > 0.0 {
        for (number, point) in cause.waits() {
            let callpath = shard.callpath(point.instance);
            let original = cause.index.waits.of(number).first().and_then(IndexedWait::original);
            let (location, number) = original.unwrap_or((cause.request.location, number));
            let mut rest = point.waiting;
            for earlier in cause.index.waits.of(number).iter().filter(|earlier| earlier.state != NONE) {
                let ticks = waits[earlier.state as usize].waiting.min(rest);
                rest -= ticks;
                let share = of_wait * ticks as f64;
                let factor = factor(FactorKind::Wait, callpath, ticks, 0, earlier.state, share);
                factors.push(Factor { location, ..factor });
            }
            if rest > 0 {
                let earlier = uncharged(trace, waits, location, point);
                let factor = factor(FactorKind::Wait, callpath, rest, 0, earlier, of_wait * rest as f64);
                factors.push(Factor { location, ..factor });
            }
        }
    }
    factors.retain(|factor| factor.share > 0.0);
    factors.sort_by(|a, b| a.kind.cmp(&b.kind).then(b.share.total_cmp(&a.share)));
    let unexplained = (wait.waiting - rates.explained).max(0);
    let lost = match model {
        CostModel::Bounded => unexplained,
        _ if factors.is_empty() => wait.waiting,
        _ => wait.waiting - rates.direct,
    };
    if lost > 0 {
        factors.push(unattributed(trace, wait, row, lost as f64));
    }
    let intervals = WaitIntervals {
        wait: row,
        is_contention,
        waiter: waiter.side,
        cause: cause.side,
        delay,
        waiting: waited,
        unexplained,
    };
    (factors, Some(intervals))
}

/// The wait state without costs at a point; [`NONE`] if there is none.
fn uncharged(trace: &Trace, waits: &PerShard<WaitState>, location: LocationId, point: &IndexedPoint) -> u32 {
    let shard = trace.shard(location);
    let (first, own) = waits.of(trace.position(location));
    let key = |instance: InstanceId| shard.instances.enter[instance];
    let begin = own.partition_point(|wait| (wait.location, key(wait.instance)) < (location, key(point.instance)));
    let of_call = own[begin..].iter().take_while(|wait| wait.instance == point.instance);
    let mut found = of_call.zip(first + begin..).filter(|(wait, _)| Pattern::class_of(wait.kind) == Some(point.class));
    found.next().map_or(NONE, |(_, row)| row as u32)
}
