//! Wait for Progress: an operation waits until its target calls the library.
//!
//! ```text
//!  origin  --[ Get + Flush |        ]----
//!  target  ================[ MPI_x ]=====
//!            |-------------|  waiting
//! ```
//!
//! *Which calls*: calls that complete operations remotely (flush, unlock, waits for a response, blocking gets and
//! accumulates), unless the target takes part in them (fences, GATS); and `MPI_Win_lock` and `MPI_Win_lock_all`, which
//! may block until the target grants the lock. Never tests, and never operations on the process itself. Of
//! `MPI_Win_complete`, whose targets have posted and may be away since, only evidence tells ([`ActiveCalls`]).
//! *Progress activity* of a target: its first outermost library call with Leave >= Enter(call), if it begins before the
//! call ends; otherwise the network made progress on its own. After contention in the same call: the target's first
//! library call that it enters strictly after the release.
//!
//! *No-overlap* (algorithm 1, the lower bound): the time before each target's activity that no earlier activity
//! overlaps.
//! *Last call* (upper bound): Enter of the last activity − begin. Both begin at Enter(call), or after contention at the
//! release.
//!
//! *Served*: that the first activity served is an assumption. If the call ends soon after another activity
//! began, and long after the one before that ended, then that one served, and the call waited as long as the target was
//! away: outside its libraries. *Soon* and *long* are told apart by what such calls take that waited for nobody
//! ([`typical`](super::typical)). *Away* is also the upper bound of what a call can have waited.
//!
//! *Locks* move no data, and the call returns as soon as they are granted. A target that was outside its library grants
//! the lock in the last activity that it begins within the call. Its time in the library is no transfer, so with either
//! heuristic the wait ends when the last target grants its lock.
//!
//! *Cause*: the last target that provides progress (thesis, section 4.3.2, figure 4.8), even if its call overlaps an
//! earlier one and only the time before that one counts.
//!
//! *Both in one call*: the call is split at the release, with contention before it and waiting for progress after it.
//! If the call also waits for a message, its wait for the lock or for progress begins when that wait ends.
//!
//! *Source*: specification.md#wait-for-progress; thesis, wait-state pattern 6, algorithm 1.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::activities::{Activity, LibraryCalls, Request, answers};
use super::lock::Contention;
use super::operations::InstanceSet;
use super::shard_waits::Waits;
use super::typical::{Kind, Lengths, Sample, Typical};
use crate::Result;
use crate::ids::{InstanceId, LocationId, WindowId};
use crate::matching::epochs::{Completion, Epochs, LockEpoch};
use crate::parallel::exchange::{Inbox, Outbox};
use crate::parallel::iter::prelude::*;
use crate::parallel::rounds::Rounds;
use crate::severity::Metric;
use crate::trace::columns::ALL;
use crate::trace::definition_index::Comm;
use crate::trace::regions::Library;
use crate::trace::{RegionClass, Shard, Trace};
use crate::waits::{Findings, LimitingFactor, WaitState};

/// Finds all waits. Shards ask in rounds, because requests and answers need most of the memory of this stage.
pub(super) fn detect(
    trace: &Trace,
    epochs: &[Epochs],
    contentions: &[Vec<Contention>],
    found: &[Findings],
    waits: &mut [Waits],
) -> Result<()> {
    let shards = trace.shards.iter().zip(epochs).zip(&*waits);
    let active: Vec<ActiveCalls> =
        shards.map(|((shard, epochs), waits)| ActiveCalls::new(shard, epochs, waits)).collect();
    let asked = trace.exchange.sum(epochs.iter().map(|epochs| epochs.completions.len() + epochs.locks.len()).sum())?;
    let rounds = Rounds::new(&trace.exchange, asked * (size_of::<Request>() + size_of::<Activity>()));
    let mut calls: Vec<LibraryCalls> = trace.shards.iter().map(|shard| LibraryCalls::new(trace, shard)).collect();
    let mut found_so_far: Vec<Progress> = trace.shards.iter().map(|_| Progress::default()).collect();
    for round in 0..rounds.count {
        let asking = rounds.own(&trace.exchange, round);
        let ask = |i| {
            let is_asking = asking.contains(&i);
            if is_asking {
                requests(trace, i, (&epochs[i], &active[i]), &contentions[i])
            } else {
                trace.exchange.outbox()
            }
        };
        let requests = trace.exchange.alltoallv((0..trace.shards.len()).into_par_iter().map(ask).collect())?;
        let answer = |(requests, calls)| answers(trace, &requests, calls);
        let answers = requests.into_par_iter().zip(&mut calls).map(answer).collect();
        let mut answers = trace.exchange.alltoallv(answers)?;
        let answers: Vec<_> = answers.drain(asking.clone()).collect();
        let answered = asking.clone().into_par_iter().zip(answers).zip(&mut waits[asking.clone()]);
        answered.zip(&mut found_so_far[asking]).for_each(|(((i, answers), waits), progress)| {
            let shard = &trace.shards[i];
            let messages = message_waits(trace, shard, &found[i]);
            let calls = Calls::new(trace, shard, (&epochs[i], &active[i]), &messages, &contentions[i]);
            *progress = calls.book(&answers, &contentions[i], waits);
        });
    }
    serve(trace, found_so_far, waits)
}

/// Metrics of a library: contention, progress, last call, served, away, each for synchronization and communication calls.
fn metrics(library: Library) -> [[Metric; 2]; 5] {
    match library {
        Library::Mpi => [
            [Metric::LockContentionSync, Metric::LockContentionComm],
            [Metric::ProgressSync, Metric::ProgressComm],
            [Metric::ProgressSyncLastCall, Metric::ProgressCommLastCall],
            [Metric::ProgressSyncServed, Metric::ProgressCommServed],
            [Metric::ProgressSyncAway, Metric::ProgressCommAway],
        ],
        Library::Shmem => [
            [Metric::ShmemLockContentionSync, Metric::ShmemLockContentionComm],
            [Metric::ShmemProgressSync, Metric::ShmemProgressComm],
            [Metric::ShmemProgressSyncLastCall, Metric::ShmemProgressCommLastCall],
            [Metric::ShmemProgressSyncServed, Metric::ShmemProgressCommServed],
            [Metric::ShmemProgressSyncAway, Metric::ShmemProgressCommAway],
        ],
        Library::Armci => [
            [Metric::ArmciLockContentionSync, Metric::ArmciLockContentionComm],
            [Metric::ArmciProgressSync, Metric::ArmciProgressComm],
            [Metric::ArmciProgressSyncLastCall, Metric::ArmciProgressCommLastCall],
            [Metric::ArmciProgressSyncServed, Metric::ArmciProgressCommServed],
            [Metric::ArmciProgressSyncAway, Metric::ArmciProgressCommAway],
        ],
        Library::Pgas => [
            [Metric::PgasLockContentionSync, Metric::PgasLockContentionComm],
            [Metric::PgasProgressSync, Metric::PgasProgressComm],
            [Metric::PgasProgressSyncLastCall, Metric::PgasProgressCommLastCall],
            [Metric::PgasProgressSyncServed, Metric::PgasProgressCommServed],
            [Metric::PgasProgressSyncAway, Metric::PgasProgressCommAway],
        ],
    }
}

fn requests(
    trace: &Trace,
    index: usize,
    (epochs, active): (&Epochs, &ActiveCalls),
    contentions: &[Contention],
) -> Outbox<Request> {
    let shard = &trace.shards[index];
    let number = trace.exchange.own().start + index as u32;
    let mut outbox = trace.exchange.outbox();
    let released = |instance: InstanceId| {
        let found = contentions.binary_search_by_key(&instance, |contention| contention.call.1);
        found.map_or(i64::MIN, |i| contentions[i].released)
    };
    for lock in locking(epochs) {
        let request = Request {
            from: (number, lock.acquire),
            target: lock.target,
            is_lock: true,
            window: lock.window,
            origin: lock.process,
            enter: shard.enter(lock.acquire),
            leave: shard.leave(lock.acquire),
            released: released(lock.acquire),
        };
        if lock.target != ALL {
            if lock.target != lock.process {
                outbox.push(trace.owner(lock.target), request);
            }
        } else if let Some(members) = trace.definitions.window_comm(lock.window).and_then(Comm::processes) {
            let mut owners: Vec<u32> = members.iter().map(|&process| trace.owner(process)).collect();
            owners.sort_unstable();
            owners.dedup();
            for owner in owners {
                outbox.push(owner, request);
            }
        }
    }
    for Completion { instance, target } in completing(trace, shard, epochs, active) {
        let own = trace.definitions.locations[shard.location_of_instance(instance)].process;
        let request = Request {
            from: (number, instance),
            target,
            is_lock: false,
            window: WindowId::NONE,
            origin: own,
            enter: shard.enter(instance),
            leave: shard.leave(instance),
            released: released(instance),
        };
        outbox.push(trace.owner(target), request);
    }
    outbox
}

/// The calls of active targets in a shard.
struct ActiveCalls {
    /// Those that never wait for progress.
    others: InstanceSet,
    /// `MPI_Win_complete` without a Late Post: many libraries return from it when the target has served the operations.
    completes: InstanceSet,
}

impl ActiveCalls {
    fn new(shard: &Shard, epochs: &Epochs, waits: &Waits) -> Self {
        if epochs.completions.is_empty() {
            return Self { others: InstanceSet::default(), completes: InstanceSet::default() };
        }
        let late = waits.states.iter().filter(|wait| wait.kind == Metric::LatePostSync).map(|wait| wait.instance);
        let late = InstanceSet::new(shard, late);
        let is_late = |complete: InstanceId| complete.is_some() && late.contains(complete);
        let completes = || epochs.accesses.iter().map(|access| access.complete);
        let collectives = epochs.collectives.iter().map(|part| part.instance);
        let starts = epochs.accesses.iter().map(|access| access.start);
        let exposures = epochs.exposures.iter().flat_map(|exposure| [exposure.post, exposure.wait]);
        let others = collectives.chain(starts).chain(exposures).chain(completes().filter(|&one| is_late(one)));
        Self {
            others: InstanceSet::new(shard, others),
            completes: InstanceSet::new(shard, completes().filter(|&one| !is_late(one))),
        }
    }
}

/// The calls that complete something at another process which takes no part in them, or may not yet do so.
fn completing<'a>(
    trace: &'a Trace,
    shard: &'a Shard,
    epochs: &'a Epochs,
    active: &'a ActiveCalls,
) -> impl Iterator<Item = Completion> + 'a {
    epochs.completions.iter().copied().filter(move |&Completion { instance, target }| {
        let class = trace.class(shard, instance);
        let own = trace.definitions.locations[shard.location_of_instance(instance)].process;
        target != own && !active.others.contains(instance) && !class.is_test() && class.library().is_some()
    })
}

/// The epochs whose lock call may block until the lock is granted.
fn locking(epochs: &Epochs) -> impl Iterator<Item = &LockEpoch> {
    epochs.locks.iter().filter(|lock| lock.library == Library::Mpi)
}

/// The end of the waits for messages in calls that complete requests, by region instance, ticks.
fn message_waits(trace: &Trace, shard: &Shard, found: &Findings) -> FxHashMap<InstanceId, i64> {
    if shard.operations.rows.is_empty() {
        return FxHashMap::default();
    }
    let waits = found.waits.iter().filter(|wait| {
        wait.is_for_message() && matches!(trace.class(shard, wait.instance), RegionClass::Wait | RegionClass::WaitMany)
    });
    let mut ends = FxHashMap::default();
    for wait in waits {
        *ends.entry(wait.instance).or_insert_with(|| shard.enter(wait.instance)) += wait.waiting;
    }
    ends
}

/// What is known of the progress of a shard's calls after the first pass.
#[derive(Default)]
struct Progress {
    /// Lengths of calls that waited for nobody, or for one activity of each target.
    lengths: Lengths,
    /// Calls that other activities than the first may have served, in the order of calls.
    open: Vec<Open>,
}

/// A call that the last activity of a target may have served rather than the first.
struct Open {
    call: (LocationId, InstanceId),
    kind: Kind,
    leave: i64,
    /// Waiting for first activities, ticks; the position of this wait among those of the shard, if it is positive.
    first: i64,
    state: Option<usize>,
    /// The last activity, its Enter, and the Leave of the one before it.
    last: (LocationId, InstanceId),
    last_enter: i64,
    before: i64,
    away: i64,
    /// Whether it completes an access epoch: then nothing but evidence tells that it waits.
    is_complete: bool,
}

impl Open {
    /// Whether the call ended soon after the last activity began, and long after the one before it ended. Targets that
    /// complete something themselves may serve others a little later.
    fn is_served(&self, Typical { length, sample }: Typical) -> bool {
        let length = if self.is_complete { 2 * length } else { length };
        self.leave - self.last_enter <= length && Typical { length, sample }.is_exceeded(self.leave - self.before)
    }
}

/// The second pass: calls that their last activity evidently served waited for it as long as the target was away.
fn serve(trace: &Trace, found: Vec<Progress>, waits: &mut [Waits]) -> Result<()> {
    let (lengths, open): (Vec<Lengths>, Vec<Vec<Open>>) =
        found.into_iter().map(|progress| (progress.lengths, progress.open)).unzip();
    if !trace.exchange.any(open.iter().any(|open| !open.is_empty()))? {
        return Ok(());
    }
    let typical = Lengths::typical(&trace.exchange, lengths)?;
    trace.par_shards().zip(open).zip(waits).for_each(|((shard, open), waits)| {
        let operations = InstanceSet::new(shard, shard.operations.rows.iter().map(|operation| operation.instance));
        for of_call in open.chunk_by(|a, b| a.call == b.call) {
            let served =
                of_call.iter().filter(|open| typical.get(&open.kind).is_some_and(|&typical| open.is_served(typical)));
            let served = served.filter(|open| open.away > open.first);
            let Some(served) = served.reduce(|most, open| if open.away > most.away { open } else { most }) else {
                continue;
            };
            let wait = |kind, waiting| WaitState {
                last: LimitingFactor::Progress,
                ..WaitState::new(kind, served.call, waiting, served.last)
            };
            if served.is_complete {
                waits.states.push(wait(Metric::ProgressActive, served.away));
                continue;
            }
            let [_, whole, bound, part, _] = metrics_of(trace, shard, &operations, served.call.1);
            match served.state {
                // The bound follows its wait.
                Some(state) => {
                    let most = waits.states[state + 1].waiting.max(served.away);
                    waits.states[state] = wait(whole, served.away);
                    waits.states[state + 1] = wait(bound, most);
                }
                None => waits.states.extend([wait(whole, served.away), wait(bound, served.away)]),
            }
            waits.states.push(wait(part, served.away - served.first));
        }
    });
    Ok(())
}

/// The metrics of a call.
fn metrics_of(trace: &Trace, shard: &Shard, operations: &InstanceSet, instance: InstanceId) -> [Metric; 5] {
    let library = trace.class(shard, instance).library().unwrap_or(Library::Mpi);
    metrics(library).map(|variants| variants[usize::from(operations.contains(instance))])
}

/// The calls of a shard that may wait for progress.
struct Calls<'a> {
    trace: &'a Trace,
    shard: &'a Shard,
    /// The end of their waits for messages.
    messages: &'a FxHashMap<InstanceId, i64>,
    /// Those that ask for a lock, of the own process alone, and those that are operations.
    locks: InstanceSet,
    own_locks: InstanceSet,
    operations: InstanceSet,
    active: &'a ActiveCalls,
    /// The bytes of the operations that they complete.
    bytes: FxHashMap<InstanceId, u64>,
    /// All that may wait, in order.
    waiting: Vec<InstanceId>,
}

impl<'a> Calls<'a> {
    fn new(
        trace: &'a Trace,
        shard: &'a Shard,
        (epochs, active): (&Epochs, &'a ActiveCalls),
        messages: &'a FxHashMap<InstanceId, i64>,
        contentions: &[Contention],
    ) -> Self {
        let rows = &shard.operations.rows;
        let mut bytes: FxHashMap<InstanceId, u64> = FxHashMap::default();
        for operation in rows {
            let [local, remote] = [operation.done_local, operation.done_remote];
            for done in [local, if remote == local { InstanceId::NONE } else { remote }] {
                if done.is_some() {
                    *bytes.entry(done).or_default() += operation.sent.saturating_add(operation.received);
                }
            }
        }
        let own_locks = locking(epochs).filter(|lock| lock.target == lock.process);
        let mut waiting: Vec<InstanceId> =
            completing(trace, shard, epochs, active).map(|completion| completion.instance).collect();
        waiting.extend(locking(epochs).map(|lock| lock.acquire));
        waiting.extend(contentions.iter().map(|contention| contention.call.1));
        waiting.sort_unstable();
        waiting.dedup();
        Self {
            trace,
            shard,
            messages,
            locks: InstanceSet::new(shard, locking(epochs).map(|lock| lock.acquire)),
            own_locks: InstanceSet::new(shard, own_locks.map(|lock| lock.acquire)),
            operations: InstanceSet::new(shard, rows.iter().map(|operation| operation.instance)),
            active,
            bytes,
            waiting,
        }
    }

    fn kind(&self, instance: InstanceId) -> Kind {
        let bytes = self.bytes.get(&instance).copied().unwrap_or(0);
        (self.trace.tree.region(self.shard.callpath(instance)), u64::BITS - bytes.leading_zeros())
    }

    /// From when on a call waits for one-sided communication only.
    fn begin(&self, instance: InstanceId) -> i64 {
        self.messages.get(&instance).copied().unwrap_or_else(|| self.shard.enter(instance))
    }

    fn contended(&self, contention: &Contention, last: LimitingFactor) -> Option<WaitState> {
        let instance = contention.call.1;
        let [kind, ..] = metrics_of(self.trace, self.shard, &self.operations, instance);
        let waiting = contention.waiting - (self.begin(instance) - self.shard.enter(instance));
        let wait = WaitState::new(kind, contention.call, waiting, contention.release);
        (waiting > 0).then_some(WaitState { last, is_inferred: contention.is_inferred, ..wait })
    }

    /// Books the waits for first activities.
    fn book(&self, answers: &Inbox<Activity>, contentions: &[Contention], waits: &mut Waits) -> Progress {
        let mut progress = Progress::default();
        let mut contentions = contentions.iter().peekable();
        let mut activities: Vec<Activity> = answers.rows().copied().collect();
        // The answers of a source are in order, so a stable sort only has to merge them.
        activities.sort_by_key(|activity| (activity.asked, activity.enter, activity.process));
        let mut answered = activities.chunk_by(|a, b| a.asked == b.asked).peekable();
        for &instance in &self.waiting {
            let contention = contentions.next_if(|contention| contention.call.1 == instance);
            let of_call = answered.next_if(|of_call| of_call[0].asked == instance).unwrap_or_default();
            // A call without progress at a target waited for contention only.
            let last = if of_call.is_empty() { LimitingFactor::Contention } else { LimitingFactor::Progress };
            waits.states.extend(contention.and_then(|contention| self.contended(contention, last)));
            self.book_call(instance, of_call, contention, waits, &mut progress);
        }
        progress
    }

    /// Books the waits of one call, by the activities of its targets.
    fn book_call(
        &self,
        instance: InstanceId,
        of_call: &[Activity],
        contention: Option<&Contention>,
        waits: &mut Waits,
        progress: &mut Progress,
    ) {
        let (kind, leave) = (self.kind(instance), self.shard.leave(instance));
        let begin = contention.map_or(i64::MIN, |contention| contention.released).max(self.begin(instance));
        let Some(last) = of_call.iter().max_by_key(|activity| (activity.enter, Reverse(activity.process))) else {
            if contention.is_none() && !self.own_locks.contains(instance) {
                progress.lengths.add(kind, Sample::Free, leave - begin);
            }
            return;
        };
        let is_lock = self.locks.contains(instance);
        let is_complete = self.active.completes.contains(instance);
        // Of a lock on all, only the last to grant it is known.
        let of_call = if is_lock { std::slice::from_ref(last) } else { of_call };
        let call = (self.shard.location_of_instance(instance), instance);
        let wait = |kind, waiting, cause| WaitState {
            last: LimitingFactor::Progress,
            ..WaitState::new(kind, call, waiting, cause)
        };
        let [_, whole, bound, _, away] = metrics_of(self.trace, self.shard, &self.operations, instance);
        let waiting = match (is_lock, is_complete) {
            (true, _) => last.enter - begin,
            // The first activity is no evidence.
            (_, true) => 0,
            _ => no_overlap(begin, leave, of_call),
        };
        let state = (waiting > 0).then_some(waits.states.len());
        if waiting > 0 {
            waits.states.extend([wait(whole, waiting, last.call), wait(bound, last.enter - begin, last.call)]);
        }
        let away_since = |activity: &Activity| activity.away.min(activity.last_enter - begin);
        let longest = of_call.iter().max_by_key(|activity| (away_since(activity), Reverse(activity.process)));
        if let Some(longest) = longest.filter(|longest| !is_complete && away_since(longest) > 0) {
            waits.states.push(wait(away, away_since(longest), longest.last));
        }
        let is_open = |activity: &&Activity| activity.last_enter > activity.enter;
        if contention.is_none() {
            let latest = of_call.iter().map(|activity| activity.last_enter).fold(begin, i64::max);
            let sample = if of_call.iter().any(|activity| is_open(&activity)) {
                Sample::Last
            } else if last.enter > begin {
                Sample::Only
            } else {
                Sample::Free
            };
            progress.lengths.add(kind, sample, leave - latest);
        }
        let open = |last, last_enter, before, away| Open {
            call,
            kind,
            leave,
            first: waiting.max(0),
            state,
            last,
            last_enter,
            before,
            away,
            is_complete,
        };
        progress.open.extend(of_call.iter().filter(is_open).map(|activity| {
            open(activity.last, activity.last_enter, activity.before.max(begin), away_since(activity))
        }));
        let firsts = of_call.iter().filter(|activity| is_complete && activity.enter > begin);
        progress.open.extend(firsts.map(|first| open(first.call, first.enter, begin, first.enter - begin)));
    }
}

/// Thesis, wait-state pattern 6, algorithm 1: the time before each activity that overlaps none of the earlier ones.
fn no_overlap(begin: i64, leave: i64, activities: &[Activity]) -> i64 {
    let mut reference = begin;
    let mut waiting = 0;
    for activity in activities {
        if reference < activity.enter {
            waiting += activity.enter - reference;
        }
        reference = reference.max(activity.leave);
        if reference >= leave {
            break;
        }
    }
    waiting
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ProcessId;

    fn activity(enter: i64, leave: i64) -> Activity {
        Activity {
            asked: InstanceId::new(0),
            call: (LocationId::new(1), InstanceId::new(enter as u32)),
            process: ProcessId::new(0),
            enter,
            leave,
            last: (LocationId::new(1), InstanceId::new(enter as u32)),
            last_enter: enter,
            before: i64::MIN,
            away: 0,
        }
    }

    #[test]
    fn overlapping_activities_count_once() {
        let activities = [activity(10, 30), activity(20, 25), activity(40, 50)];
        assert_eq!(no_overlap(0, 100, &activities), 10 + 10);
    }

    #[test]
    fn a_target_inside_the_library_delays_nobody() {
        assert_eq!(no_overlap(5, 100, &[activity(0, 10)]), 0);
    }
}
