//! The factors of single waits: the costs, wait by wait.
//!
//! A wait is distributed over the excess work of the causing process since the two last synchronized (*delay*; the part
//! spent leaving the call in which they did is *completion*), over earlier *waits* of the causing process in that time,
//! and, if there is neither, over nothing (*unattributed*). The shares of a wait add up to it. Those of all waits of a
//! class add up to its short-term costs. A wait that is a factor passes its share on to its own factors; all of these
//! add up to the long-term costs.
//!
//! Intervals are measured again by the code of [`super::intervals`], with the shares of [`super::delay`]: this is the
//! same cost model, seen from the wait. The shard of the waiter measures its interval, and sends it to that of the cause,
//! which measures the other one and divides the wait.
//!
//! *Source*: thesis equations 4.1, 4.2, 4.9 to 4.17.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use bitcode::{Decode, Encode};
use rayon::slice::ParallelSliceMut as _;

use super::chains::{self, Chains, Profiles};
use super::cost_model::CostModel;
use super::interval_index::{IndexedPoint, IndexedWait, IntervalIndex};
use super::intervals::{IntervalStart, work_since};
use super::ownership::{self, Activity, ContendedLock};
use super::past;
use super::points::{self, IntervalBegin, Place, Position, Relation};
use super::rolling_profile::RollingProfile;
use super::scaling_factors::Rates;
use super::steps::{ForkJoins, Steps};
use crate::Result;
use crate::ids::{CallPathId, InstanceId, LocationId};
use crate::parallel::exchange::Inbox;
use crate::parallel::iter::prelude::*;
use crate::parallel::per_shard::PerShard;
use crate::schema::{Class, Pattern};
use crate::trace::{NONE, Shard, Trace};
use crate::waits::WaitState;

/// Kinds of factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
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
#[derive(Clone, Copy, Debug, PartialEq, Encode, Decode)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
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

/// Work of an interval by call path, without waits; ticks.
type Work = Vec<(CallPathId, i64)>;

/// A wait, or a part of it, with a cause, as the shard of the waiter sends it to that of the cause.
#[derive(Clone, Debug, Encode, Decode)]
struct Question {
    place: Asked,
    /// Its number among the wait states of all processes.
    row: u32,
    wait: WaitState,
    /// The length of the part, ticks.
    waiting: i64,
    class: Class,
    /// Where it waits.
    callpath: CallPathId,
    is_contention: bool,
    waiter: Measured,
    /// The point of the cause, and the row there.
    cause: (LocationId, u32, u32),
}

/// The place of a wait among those that were asked for, and the number of its part.
type Asked = (u32, u32);

/// What a part of a wait is divided into.
type Answer = (Asked, Vec<Factor>, Option<WaitIntervals>);

/// Finds the factors of the wait states with these numbers; of several processes, the first gets them.
///
/// `waits` begin with those of this process, of which the first has the number `base` among those of all.
pub(crate) fn find(
    trace: &Trace,
    (waits, base): (&PerShard<WaitState>, u32),
    (indexes, locks, chains): (&[IntervalIndex], &[Vec<ContendedLock>], &Chains),
    rows: &[u32],
    model: CostModel,
) -> Result<Factors> {
    let own = base..base + waits.before(trace.shards.len()) as u32;
    let asked: Vec<(u32, u32)> =
        (0..).zip(rows.iter().copied()).filter(|(_, row)| own.contains(row)).map(|(i, row)| (i, row - base)).collect();
    // The intervals of each waiter, and what is known of their causes.
    let of_row = |&(_, row): &(u32, u32)| {
        let wait = &waits[row as usize];
        let index = &indexes[trace.position(wait.location)];
        let parts = index.find(trace, wait, row).map(|(point, i)| {
            let request = IntervalRequest { location: wait.location, point, begin: index.intervals[i] };
            (index.waits.rows[i], request)
        });
        parts.filter(|(indexed, _)| indexed.relation.has_interval()).collect()
    };
    let found: Vec<Vec<(IndexedWait, IntervalRequest)>> = asked.par_iter().map(of_row).collect();
    let measured = Intervals::measure(trace, indexes, found.iter().flatten().map(|found| found.1).collect(), model);
    let mut answers: Vec<Answer> = Vec::new();
    let mut outgoing: Vec<_> = trace.shards.iter().map(|_| trace.exchange.outbox()).collect();
    let mut profiles = Profiles::default();
    for (&(place, row), found) in asked.iter().zip(&found) {
        let wait = &waits[row as usize];
        let shard = trace.position(wait.location);
        if wait.is_of_devices() {
            let (factors, intervals) = chains.factors(trace, (waits, base), (wait, base + row), model, &mut profiles);
            answers.push(((place, u32::MAX), factors, intervals));
            continue;
        }
        let rest = wait.waiting - found.iter().map(|(indexed, _)| indexed.waiting).sum::<i64>();
        if rest > 0 {
            let locks = locks.get(shard).map_or(&[][..], Vec::as_slice);
            let factors = of_lock(trace, (waits, base), (&indexes[shard], locks), (wait, row, rest));
            answers.push(((place, u32::MAX), factors, None));
        }
        for (part, (indexed, request)) in (0..).zip(found) {
            let question = Question {
                place: (place, part),
                row: base + row,
                wait: *wait,
                waiting: indexed.waiting,
                class: indexed.class,
                callpath: trace.shards[shard].callpath(wait.instance),
                is_contention: indexed.relation == Relation::Contention,
                waiter: measured.of(trace, indexes, *request),
                cause: (indexed.cause_location, indexed.cause_point, indexed.cost_share),
            };
            outgoing[shard].push(trace.shard_of[indexed.cause_location], question);
        }
    }
    let questions: Vec<Question> = trace.exchange.alltoallv(outgoing)?.into_iter().flat_map(Inbox::into_vec).collect();
    let of_cause = |question: &Question| {
        let (location, point, cost_share) = question.cause;
        let begin = indexes[trace.position(location)].begin_of_cause(point, cost_share);
        IntervalRequest { location, point, begin }
    };
    let measured = Intervals::measure(trace, indexes, questions.iter().map(of_cause).collect(), model);
    let divide = |question: &Question| {
        let request = of_cause(question);
        let cause = measured.of(trace, indexes, request);
        let (factors, intervals) = share(trace, (waits, base), question, (&cause, request), indexes, model);
        (question.place, factors, Some(intervals))
    };
    answers.extend(questions.par_iter().map(divide).collect::<Vec<_>>());
    let mut answers = trace.exchange.gatherv(answers)?;
    answers.sort_unstable_by_key(|&(place, ..)| place);
    let mut factors = Factors::default();
    for of_wait in answers.chunk_by(|a, b| a.0.0 == b.0.0) {
        let first = factors.factors.len();
        for (_, of_part, intervals) in of_wait {
            factors.factors.extend(of_part);
            factors.intervals.extend(intervals);
        }
        if of_wait.len() > 1 {
            factors.factors[first..].sort_by(in_order);
        }
    }
    Ok(factors)
}

/// The factors of a wait: by kind, the largest first.
fn in_order(a: &Factor, b: &Factor) -> Ordering {
    a.kind.cmp(&b.kind).then(b.share.total_cmp(&a.share))
}

/// The work in intervals of this process.
struct Intervals {
    /// Sorted, without repetition.
    requests: Vec<IntervalRequest>,
    works: Vec<Arc<Work>>,
}

impl Intervals {
    fn measure(trace: &Trace, indexes: &[IntervalIndex], mut requests: Vec<IntervalRequest>, model: CostModel) -> Self {
        requests.par_sort_unstable();
        requests.dedup();
        let of_location: Vec<&[IntervalRequest]> = requests.chunk_by(|a, b| a.location == b.location).collect();
        let works: Vec<Vec<Arc<Work>>> = of_location.into_par_iter().of_parts(|part| {
            let mut profile = RollingProfile::new(trace.tree.len());
            let mut of_location = |requests: &[IntervalRequest]| {
                measure(trace, &indexes[trace.position(requests[0].location)], requests, &mut profile, model)
            };
            part.map(&mut of_location).collect::<Vec<_>>().concat()
        });
        Self { works: works.concat(), requests }
    }

    /// One of them.
    fn of(&self, trace: &Trace, indexes: &[IntervalIndex], request: IntervalRequest) -> Measured {
        let work = self.requests.binary_search(&request).map_or_else(|_| Arc::default(), |i| self.works[i].clone());
        Measured::new(trace, &indexes[trace.position(request.location)], request, work)
    }
}

impl IntervalIndex {
    /// The points of a wait state, and the positions of its waits there.
    fn find(&self, trace: &Trace, wait: &WaitState, row: u32) -> impl Iterator<Item = (u32, usize)> {
        let shard = trace.shard(wait.location);
        let i = shard.local(wait.location);
        let points = self.offsets[i] as usize..self.offsets[i + 1] as usize;
        points::in_call(shard, wait.instance, &self.points, points, |point| point.position)
            .flat_map(|point| self.waits.range(point).map(move |i| (point as u32, i)))
            .filter(move |&(_, i)| self.waits.rows[i].state == row)
    }
}

/// Measures intervals of one location, which are sorted by their ends, in one pass over its steps.
fn measure(
    trace: &Trace,
    index: &IntervalIndex,
    requests: &[IntervalRequest],
    profile: &mut RollingProfile,
    model: CostModel,
) -> Vec<Arc<Work>> {
    let location = requests[0].location;
    let shard = trace.shard(location);
    let i = shard.local(location);
    let is_master = trace.definitions.locations[location].thread == 0;
    let fork_joins = ForkJoins::new(trace, shard);
    let mut steps = Steps::of_location(&fork_joins, i);
    if index.pasts[i].is_some() {
        steps = steps.with_past(&fork_joins, past::gaps(trace, shard, location));
    }
    let advance = |steps: &mut Steps, to: Position, book: &mut dyn FnMut(CallPathId, i64)| {
        let book = |callpath, span: Range<i64>| book(callpath, span.end - span.start);
        let original = to.copy().and_then(|copy| index.pasts[i].as_ref()?.originals.get(copy as usize).copied());
        match original {
            Some(original) => {
                let original = &index.points[original as usize];
                let of = shard.location_of_instance(original.instance);
                steps.advance_past(trace, to, (of, original.position), book);
            }
            None => steps.advance(trace, to, book),
        }
    };
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
            advance(&mut steps, left.position, &mut |_, _| ());
            split(shard, &mut steps, left, |_, _| ());
            subtract_wait(shard, left, profile);
        }
        let mut rest = requests;
        for number in first..=requests.last().map_or(0, |request| request.point) {
            let point = &index.points[number as usize];
            advance(&mut steps, point.position, &mut |callpath, ticks| profile.add(callpath, ticks));
            split(shard, &mut steps, point, |callpath, ticks| profile.add(callpath, ticks));
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
                works.push(Arc::new(work));
                rest = others;
            }
            index.awaited.at(number).for_each(|work| profile.add(work.callpath, work.worked()));
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

/// Ends a step at a point that lies in the middle of it.
fn split(shard: &Shard, steps: &mut Steps, point: &IndexedPoint, mut book: impl FnMut(CallPathId, i64)) {
    if let Some(cut) = point.place.cut(shard, point.instance) {
        steps.split(cut, &mut |callpath, span: Range<i64>| {
            book(callpath, span.end - span.start);
        });
    }
}

/// Subtracts the wait at a point, which is not work.
fn subtract_wait(shard: &Shard, point: &IndexedPoint, profile: &mut RollingProfile) {
    if point.waiting > 0 {
        profile.add(shard.callpath(point.instance), -point.place.inside(point.waiting));
    }
}

/// An interval that has been measured.
#[derive(Clone, Debug, Encode, Decode)]
struct Measured {
    work: Arc<Work>,
    side: Side,
    /// Call path of the call at its left end, and that part of the work in it which completes the call.
    completion: Option<(CallPathId, i64)>,
}

impl Measured {
    fn new(trace: &Trace, index: &IntervalIndex, request: IntervalRequest, work: Arc<Work>) -> Self {
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
            completion = Some((callpath, side.completion.min(ticks_in(&work, callpath))));
        }
        side.end = side.end.max(side.begin);
        Self { work, side, completion }
    }

    /// The part of the work in a call path that completes the call at the left end.
    fn completion_in(&self, callpath: CallPathId) -> i64 {
        self.completion.filter(|&(of_left, _)| of_left == callpath).map_or(0, |(_, ticks)| ticks)
    }

    fn total(&self) -> i64 {
        self.work.iter().map(|&(_, ticks)| ticks).sum()
    }
}

/// The points of an interval at which its location waited, and how long, ticks.
fn waits_in(index: &IntervalIndex, request: IntervalRequest) -> impl Iterator<Item = (usize, i64)> {
    let points = request.begin.from as usize..request.point as usize;
    points.map(|number| (number, index.waiting(number))).filter(|&(_, waiting)| waiting > 0)
}

/// Ticks of a call path in some work.
fn ticks_in(work: &[(CallPathId, i64)], callpath: CallPathId) -> i64 {
    work.binary_search_by_key(&callpath, |&(other, _)| other).map_or(0, |i| work[i].1)
}

/// The factors of a wait without intervals: what the owners of the lock did if it is for a lock of threads.
fn of_lock(
    trace: &Trace,
    (waits, base): (&PerShard<WaitState>, u32),
    (index, locks): (&IntervalIndex, &[ContendedLock]),
    (wait, row, rest): (&WaitState, u32, i64),
) -> Vec<Factor> {
    let shard = trace.shard(wait.location);
    let class = Pattern::class_of(wait.kind).unwrap_or(Class::Mark);
    let activities = ownership::causes(trace, shard, locks, (class, wait.instance));
    let unowned = rest - activities.iter().map(|activity| activity.ticks).sum::<i64>();
    let mut factors: Vec<Factor> = Vec::with_capacity(activities.len());
    for Activity { owner, callpath, ticks, wait: of_owner } in activities {
        let factor = Factor {
            wait: base + row,
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
            add(base + earlier.state, ticks);
        }
        if rest > 0 {
            add(uncharged(trace, (waits, base), owner, point), rest);
        }
    }
    factors.retain(|factor| factor.share > 0.0);
    if unowned > 0 {
        factors.push(unattributed(wait.location, shard.callpath(wait.instance), base + row, unowned as f64));
    }
    factors
}

fn unattributed(location: LocationId, callpath: CallPathId, row: u32, share: f64) -> Factor {
    Factor {
        wait: row,
        kind: FactorKind::Unattributed,
        location,
        callpath,
        ticks: 0,
        waiter_ticks: 0,
        earlier: NONE,
        share,
    }
}

/// Distributes a wait over its factors, given the interval of its cause.
fn share(
    trace: &Trace,
    (waits, base): (&PerShard<WaitState>, u32),
    &Question { row, ref wait, waiting, class, callpath: of_wait_call, is_contention, ref waiter, .. }: &Question,
    (cause, request): (&Measured, IntervalRequest),
    indexes: &[IntervalIndex],
    model: CostModel,
) -> (Vec<Factor>, WaitIntervals) {
    let index = &indexes[trace.position(request.location)];
    // A wait for the end of the cause is due to all of its work, other waits only to its excess over the waiter's work.
    let counted = |callpath: CallPathId| if is_contention { 0 } else { ticks_in(&waiter.work, callpath) };
    let delay = cause.work.iter().map(|&(callpath, ticks)| (ticks - counted(callpath)).max(0)).sum();
    let waited = waits_in(index, request).map(|(_, waiting)| waiting).sum();
    let rates = if is_contention {
        Rates::of_contention(waiting, delay, waited, waiter.total(), model)
    } else {
        Rates::of_synchronization(waiting, delay, waited, class, model)
    };
    let (of_work, of_wait) = (rates.direct as f64 * rates.work, rates.direct as f64 * rates.wait);
    let shard = trace.shard(request.location);
    let of_others = &index.of_others[shard.local(request.location)];
    let factor = |kind, callpath, ticks, waiter_ticks, earlier, share| Factor {
        wait: row,
        kind,
        location: of_others.owner(request.location, callpath),
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
        for (number, waiting) in waits_in(index, request) {
            // A kernel that waits for other devices makes its host wait.
            let links = index.awaited.at(number as u32).filter(|work| work.waiting > 0);
            factors.extend(links.map(|work| {
                let earlier = chains::row_of(trace, waits, (work.stream, work.instance)).map_or(NONE, |row| base + row);
                let share = of_wait * work.waiting as f64;
                let factor = factor(FactorKind::Wait, work.callpath, work.waiting, 0, earlier, share);
                Factor { location: work.stream, ..factor }
            }));
            let point = &index.points[number];
            if point.has_work {
                continue;
            }
            let callpath = shard.callpath(point.instance);
            let original = index.waits.of(number).first().and_then(IndexedWait::original);
            let (location, number) = original.unwrap_or((request.location, number));
            let mut rest = waiting;
            for earlier in index.waits.of(number).iter().filter(|earlier| earlier.state != NONE) {
                let ticks = waits[earlier.state as usize].waiting.min(rest);
                rest -= ticks;
                let share = of_wait * ticks as f64;
                let factor = factor(FactorKind::Wait, callpath, ticks, 0, base + earlier.state, share);
                factors.push(Factor { location, ..factor });
            }
            if rest > 0 {
                let earlier = uncharged(trace, (waits, base), location, point);
                let factor = factor(FactorKind::Wait, callpath, rest, 0, earlier, of_wait * rest as f64);
                factors.push(Factor { location, ..factor });
            }
        }
    }
    factors.retain(|factor| factor.share > 0.0);
    factors.sort_by(in_order);
    let unexplained = (waiting - rates.explained).max(0);
    let lost = match model {
        CostModel::Bounded => unexplained,
        _ if factors.is_empty() => waiting,
        _ => waiting - rates.direct,
    };
    if lost > 0 {
        factors.push(unattributed(wait.location, of_wait_call, row, lost as f64));
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
    (factors, intervals)
}

/// The wait state without costs at a point; [`NONE`] if there is none.
fn uncharged(
    trace: &Trace,
    (waits, base): (&PerShard<WaitState>, u32),
    location: LocationId,
    point: &IndexedPoint,
) -> u32 {
    let shard = trace.shard(location);
    let (first, own) = waits.of(trace.position(location));
    let key = |instance: InstanceId| shard.instances.enter[instance];
    let begin = own.partition_point(|wait| (wait.location, key(wait.instance)) < (location, key(point.instance)));
    let of_call = own[begin..].iter().take_while(|wait| wait.instance == point.instance);
    let mut found = of_call.zip(first + begin..).filter(|(wait, _)| Pattern::class_of(wait.kind) == Some(point.class));
    found.next().map_or(NONE, |(_, row)| base + row as u32)
}
