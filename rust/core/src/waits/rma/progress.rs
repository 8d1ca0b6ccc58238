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
//! may block until the target grants the lock. Never tests, and never operations on the process itself.
//! *Progress activity* of a target: its first outermost library call with Leave >= Enter(call), if it begins before the
//! call ends; otherwise the network made progress on its own. After contention in the same call: the target's first
//! library call that it enters strictly after the release.
//!
//! *No-overlap* (algorithm 1, the lower bound): the time before each target's activity that no earlier activity
//! overlaps.
//! *Last call* (upper bound): Enter of the last activity − begin. Both begin at Enter(call), or after contention at the
//! release.
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

use bitcode::{Decode, Encode};
use rustc_hash::FxHashMap;

use super::lock::Contention;
use super::operations::InstanceSet;
use super::shard_waits::Waits;
use crate::Result;
use crate::galloping_search::partition_point_near;
use crate::ids::{InstanceId, LocationId, ProcessId, WindowId};
use crate::matching::epochs::{Epochs, LockEpoch};
use crate::parallel::exchange::{Inbox, Outbox};
use crate::parallel::iter::prelude::*;
use crate::parallel::rounds::Rounds;
use crate::severity::Metric;
use crate::trace::columns::ALL;
use crate::trace::definition_index::Comm;
use crate::trace::regions::Library;
use crate::trace::{NONE, RegionClass, Shard, Trace};
use crate::waits::{Findings, LimitingFactor, WaitState};

/// The question of a call when a target made progress.
#[derive(Clone, Copy, Encode, Decode)]
struct Request {
    /// Shard and region instance of the call.
    from: (u32, InstanceId),
    /// Index of the process, or [`ALL`] for the last process of the window to make progress.
    target: ProcessId,
    /// Whether it asks for a lock.
    is_lock: bool,
    /// Index of the window, and the process that asks.
    window: WindowId,
    origin: ProcessId,
    enter: i64,
    leave: i64,
    /// Release of a lock within the call, ticks; `i64::MIN` without one.
    released: i64,
}

/// The answer: a target's activity within the call that asked.
#[derive(Clone, Copy, Encode, Decode)]
struct Activity {
    /// Region instance of the call that asked.
    asked: InstanceId,
    /// Location and region instance of the activity.
    call: (LocationId, InstanceId),
    process: ProcessId,
    enter: i64,
    leave: i64,
}

/// Finds all waits. Shards ask in rounds, because requests and answers need most of the memory of this stage.
pub(super) fn detect(
    trace: &Trace,
    epochs: &[Epochs],
    contentions: &[Vec<Contention>],
    found: &[Findings],
    waits: &mut [Waits],
) -> Result<()> {
    let asked = trace.exchange.sum(epochs.iter().map(|epochs| epochs.completions.len() + epochs.locks.len()).sum())?;
    let rounds = Rounds::new(&trace.exchange, asked * (size_of::<Request>() + size_of::<Activity>()));
    let mut calls: Vec<LibraryCalls> = trace.shards.iter().map(|shard| LibraryCalls::new(trace, shard)).collect();
    for round in 0..rounds.count {
        let asking = rounds.own(&trace.exchange, round);
        let ask = |i| {
            let is_asking = asking.contains(&i);
            if is_asking { requests(trace, i, &epochs[i], &contentions[i]) } else { trace.exchange.outbox() }
        };
        let requests = trace.exchange.alltoallv((0..trace.shards.len()).into_par_iter().map(ask).collect())?;
        let answer = |(requests, calls)| answers(trace, &requests, calls);
        let answers = requests.into_par_iter().zip(&mut calls).map(answer).collect();
        let mut answers = trace.exchange.alltoallv(answers)?;
        let answers: Vec<_> = answers.drain(asking.clone()).collect();
        let answered = asking.clone().into_par_iter().zip(answers).zip(&mut waits[asking]);
        answered.for_each(|((i, answers), waits)| {
            let shard = &trace.shards[i];
            let messages = message_waits(trace, shard, &found[i]);
            let locks = InstanceSet::new(shard, locking(&epochs[i]).map(|lock| lock.acquire));
            book(trace, shard, &answers, &contentions[i], (&messages, &locks), waits);
        });
    }
    Ok(())
}

/// Metrics of a library: contention, no-overlap, last call, each for synchronization and communication calls.
fn metrics(library: Library) -> [[Metric; 2]; 3] {
    match library {
        Library::Mpi => [
            [Metric::LockContentionSync, Metric::LockContentionComm],
            [Metric::ProgressSync, Metric::ProgressComm],
            [Metric::ProgressSyncLastCall, Metric::ProgressCommLastCall],
        ],
        Library::Shmem => [
            [Metric::ShmemLockContentionSync, Metric::ShmemLockContentionComm],
            [Metric::ShmemProgressSync, Metric::ShmemProgressComm],
            [Metric::ShmemProgressSyncLastCall, Metric::ShmemProgressCommLastCall],
        ],
        Library::Armci => [
            [Metric::ArmciLockContentionSync, Metric::ArmciLockContentionComm],
            [Metric::ArmciProgressSync, Metric::ArmciProgressComm],
            [Metric::ArmciProgressSyncLastCall, Metric::ArmciProgressCommLastCall],
        ],
    }
}

fn requests(trace: &Trace, index: usize, epochs: &Epochs, contentions: &[Contention]) -> Outbox<Request> {
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
    if epochs.completions.is_empty() {
        return outbox;
    }
    // The target takes part in these calls, so they do not depend on its progress elsewhere.
    let collectives = epochs.collectives.iter().map(|part| part.instance);
    let accesses = epochs.accesses.iter().flat_map(|access| [access.start, access.complete]);
    let exposures = epochs.exposures.iter().flat_map(|exposure| [exposure.post, exposure.wait]);
    let active = InstanceSet::new(shard, collectives.chain(accesses).chain(exposures));
    for completion in &epochs.completions {
        let instance = completion.instance;
        let class = trace.class(shard, instance);
        let own = trace.definitions.locations[shard.location_of_instance(instance)].process;
        if completion.target == own || active.contains(instance) || class.is_test() || class.library().is_none() {
            continue;
        }
        let request = Request {
            from: (number, instance),
            target: completion.target,
            is_lock: false,
            window: WindowId::NONE,
            origin: own,
            enter: shard.enter(instance),
            leave: shard.leave(instance),
            released: released(instance),
        };
        outbox.push(trace.owner(completion.target), request);
    }
    outbox
}

/// Answers requests with the activities of a shard's locations.
///
/// Requests are visited by target and time, so that consecutive searches are close together; answers are sent in the
/// order of the requests.
fn answers(trace: &Trace, requests: &Inbox<Request>, calls: &mut LibraryCalls) -> Outbox<Activity> {
    let requests: Vec<&Request> = requests.rows().collect();
    let mut order: Vec<u32> = (0..requests.len() as u32).collect();
    order.sort_unstable_by_key(|&i| (requests[i as usize].target, requests[i as usize].enter));
    let mut activities = vec![None; requests.len()];
    for i in order {
        let request = requests[i as usize];
        activities[i as usize] = match (request.target, request.is_lock) {
            (ALL, _) => calls.last_grant(request),
            (_, true) => calls.grant(request),
            (_, false) => calls.activity(request),
        };
    }
    let mut outbox = trace.exchange.outbox();
    for (request, activity) in requests.iter().zip(activities) {
        if let Some(activity) = activity {
            outbox.push(request.from.0, activity);
        }
    }
    outbox
}

/// The epochs whose lock call may block until the lock is granted.
fn locking(epochs: &Epochs) -> impl Iterator<Item = &LockEpoch> {
    epochs.locks.iter().filter(|lock| lock.library == Library::Mpi)
}

/// The outermost library calls of a shard's locations, computed on first use.
pub(crate) struct LibraryCalls<'a> {
    trace: &'a Trace,
    shard: &'a Shard,
    /// The calls of a location, and the position of the last hit: the requests of a process arrive in order of time.
    by_location: FxHashMap<LocationId, (Vec<InstanceId>, usize)>,
    /// Enter, location and region instance of the calls of all locations, if requested.
    by_enter: Option<Vec<(i64, LocationId, InstanceId)>>,
}

impl<'a> LibraryCalls<'a> {
    /// The library calls of a shard.
    pub(crate) fn new(trace: &'a Trace, shard: &'a Shard) -> Self {
        Self { trace, shard, by_location: FxHashMap::default(), by_enter: None }
    }

    /// Location and region instance of the first call of `target` that can make progress from `enter` on, if it begins
    /// before `leave`.
    pub(crate) fn serving(&mut self, target: ProcessId, enter: i64, leave: i64) -> Option<(LocationId, InstanceId)> {
        let request = Request {
            from: (NONE, InstanceId::NONE),
            target,
            is_lock: false,
            window: WindowId::NONE,
            origin: ProcessId::NONE,
            enter,
            leave,
            released: i64::MIN,
        };
        self.activity(&request).map(|activity| activity.call)
    }

    /// The target's activity that makes progress for a call, on any of its threads.
    fn activity(&mut self, request: &Request) -> Option<Activity> {
        let mut found: Option<Activity> = None;
        let (trace, shard) = (self.trace, self.shard);
        for location in trace.definitions.processes[request.target].locations {
            let (calls, last) =
                self.by_location.entry(location).or_insert_with(|| (outermost(trace, shard, location), 0));
            *last = if request.released == i64::MIN {
                partition_point_near(calls, *last, |&call| shard.leave(call) < request.enter)
            } else {
                partition_point_near(calls, *last, |&call| shard.enter(call) <= request.released)
            };
            let Some(&call) = calls.get(*last) else { continue };
            let enter = shard.enter(call);
            if enter < request.leave && found.is_none_or(|found| enter < found.enter) {
                found = Some(Activity {
                    asked: request.from.1,
                    call: (location, call),
                    process: request.target,
                    enter,
                    leave: shard.leave(call),
                });
            }
        }
        found
    }

    /// The target's activity that granted a lock: the last that begins within the call, since the call returns with the
    /// lock. After contention, or if the target was already in its library, the activity that makes progress.
    fn grant(&mut self, request: &Request) -> Option<Activity> {
        let first = self.activity(request)?;
        if request.released != i64::MIN || first.enter <= request.enter {
            return Some(first);
        }
        let mut last = first;
        for location in self.trace.definitions.processes[request.target].locations {
            let Some((calls, _)) = self.by_location.get(&location) else { continue };
            let end = calls.partition_point(|&call| self.shard.enter(call) < request.leave);
            let Some(&call) = calls[..end].last() else { continue };
            let (enter, leave) = (self.shard.enter(call), self.shard.leave(call));
            if enter > last.enter {
                last = Activity { call: (location, call), enter, leave, ..first };
            }
        }
        Some(last)
    }

    /// The last grant among the window's processes in this shard, searched backwards from the end of the call.
    fn last_grant(&mut self, request: &Request) -> Option<Activity> {
        let by_enter = self.by_enter.take().unwrap_or_else(|| by_enter(self.trace, self.shard));
        let comm = self.trace.definitions.window_comm(request.window);
        let end = by_enter.partition_point(|&(enter, ..)| enter < request.leave);
        let since = request.enter.max(request.released);
        let mut last: Option<Activity> = None;
        let mut served = Vec::new();
        for &(enter, location, instance) in by_enter[..end].iter().rev() {
            if enter <= since || last.is_some_and(|last| enter < last.enter) {
                break;
            }
            let target = self.trace.definitions.locations[location].process;
            let is_member = target != request.origin && comm.is_some_and(|comm| comm.rank(target).is_some());
            if !is_member || served.contains(&target) {
                continue;
            }
            let grant = self.grant(&Request { target, ..*request });
            let grant = grant.filter(|grant| grant.call == (location, instance));
            if grant.is_none() && request.released == i64::MIN {
                served.push(target);
            }
            last = match (last, grant) {
                (Some(last), Some(grant)) if grant.process > last.process => Some(last),
                (last, grant) => grant.or(last),
            };
        }
        self.by_enter = Some(by_enter);
        last
    }
}

/// Enter, location and region instance of all outermost library calls of a shard, by Enter.
fn by_enter(trace: &Trace, shard: &Shard) -> Vec<(i64, LocationId, InstanceId)> {
    let calls = |location| outermost(trace, shard, location).into_iter().map(move |call| (location, call));
    let locations = shard.locations;
    let mut calls: Vec<_> =
        locations.flat_map(calls).map(|(location, call)| (shard.enter(call), location, call)).collect();
    calls.sort_unstable();
    calls
}

/// Region instances of the outermost library calls of a location, in order.
fn outermost(trace: &Trace, shard: &Shard, location: LocationId) -> Vec<InstanceId> {
    let mut end = None;
    let mut calls = Vec::new();
    for instance in shard.instances_of(location) {
        let enter = shard.instances.enter[instance];
        if trace.class(shard, instance).library().is_some() && end.is_none_or(|end| enter > end) {
            end = Some(shard.instances.leave[instance]);
            calls.push(instance);
        }
    }
    calls
}

/// The end of the waits for messages in calls that complete requests, by region instance, ticks.
fn message_waits(trace: &Trace, shard: &Shard, found: &Findings) -> FxHashMap<InstanceId, i64> {
    if shard.operations.rows.is_empty() {
        return FxHashMap::default();
    }
    let waits = found.waits.iter().filter(|wait| {
        matches!(wait.kind, Metric::LateSender | Metric::LateReceiver)
            && matches!(trace.class(shard, wait.instance), RegionClass::Wait | RegionClass::WaitMany)
    });
    waits.map(|wait| (wait.instance, shard.enter(wait.instance) + wait.waiting)).collect()
}

fn book(
    trace: &Trace,
    shard: &Shard,
    answers: &Inbox<Activity>,
    contentions: &[Contention],
    (messages, locks): (&FxHashMap<InstanceId, i64>, &InstanceSet),
    waits: &mut Waits,
) {
    let operations = InstanceSet::new(shard, shard.operations.rows.iter().map(|operation| operation.instance));
    let metrics_of = |instance: InstanceId| {
        let library = trace.class(shard, instance).library().unwrap_or(Library::Mpi);
        metrics(library).map(|variants| variants[usize::from(operations.contains(instance))])
    };
    // From here on a call waits for one-sided communication only.
    let begin_of = |instance: InstanceId| messages.get(&instance).copied().unwrap_or_else(|| shard.enter(instance));
    let contended = |contention: &Contention, last| {
        let instance = contention.call.1;
        let [kind, ..] = metrics_of(instance);
        let waiting = contention.waiting - (begin_of(instance) - shard.enter(instance));
        let wait = WaitState { last, ..WaitState::new(kind, contention.call, waiting, contention.release) };
        (waiting > 0).then_some(wait)
    };
    let mut contentions = contentions.iter().peekable();
    let mut activities: Vec<Activity> = answers.rows().copied().collect();
    // The answers of a source are in order, so a stable sort only has to merge them.
    activities.sort_by_key(|activity| (activity.asked, activity.enter, activity.process));
    for of_call in activities.chunk_by(|a, b| a.asked == b.asked) {
        let instance = of_call[0].asked;
        // A call without progress at a target waited for contention only.
        while let Some(alone) = contentions.next_if(|contention| contention.call.1 < instance) {
            waits.states.extend(contended(alone, LimitingFactor::Contention));
        }
        let mut begin = begin_of(instance);
        if let Some(contention) = contentions.next_if(|contention| contention.call.1 == instance) {
            begin = begin.max(contention.released);
            waits.states.extend(contended(contention, LimitingFactor::Progress));
        }
        let Some(last) = of_call.iter().max_by_key(|activity| (activity.enter, Reverse(activity.process))) else {
            continue;
        };
        let waiting = if locks.contains(instance) {
            last.enter - begin
        } else {
            no_overlap(begin, shard.leave(instance), of_call)
        };
        if waiting <= 0 {
            continue;
        }
        let [_, lower, upper] = metrics_of(instance);
        let call = (shard.location_of_instance(instance), instance);
        for wait in [
            WaitState::new(lower, call, waiting, last.call),
            WaitState::new(upper, call, last.enter - begin, last.call),
        ] {
            waits.states.push(WaitState { last: LimitingFactor::Progress, ..wait });
        }
    }
    waits.states.extend(contentions.filter_map(|alone| contended(alone, LimitingFactor::Contention)));
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

    fn activity(enter: i64, leave: i64) -> Activity {
        Activity {
            asked: InstanceId::new(0),
            call: (LocationId::new(1), InstanceId::new(enter as u32)),
            process: ProcessId::new(0),
            enter,
            leave,
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
