//! Wait for Progress: an operation waits until its target calls the library.
//!
//! ```text
//!  origin  --[ Get + Flush |        ]----
//!  target  ================[ MPI_x ]=====
//!            |-------------|  waiting
//! ```
//!
//! *Which calls*: those that complete operations where they happen (flush, unlock, waits for an answer, blocking gets),
//! unless their target takes part in them (fences, GATS); never `MPI_Test*`, never for the own process.
//! *Progress activity* of a target: its first outermost library call with Leave >= Enter(call), if it begins before the
//! call ends; else the network made progress by itself. After contention in the same call: the target's first entry
//! strictly later than the release.
//!
//! *No-overlap* (algorithm 1, the lower bound): the time before each target's activity that no earlier one overlaps.
//! *Last call* (upper bound): Enter of the last activity − begin. Both begin at Enter(call), after contention at the
//! release.
//!
//! *Both in one call*: split at the release: what lies before is contention, what lies after is progress. A call that
//! waits for a message as well waits for the lock or for progress from the end of that wait on.
//!
//! *Source*: thesis 3.2, pattern 6, and 3.3, algorithm 1; PATTERNS 4.7.

use std::cmp::Reverse;

use bitcode::{Decode, Encode};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::lock::Contention;
use super::{InstanceSet, Waits};
use crate::Result;
use crate::exchange::{Inbox, Outbox};
use crate::galloping_search::partition_point_near;
use crate::matching::epochs::Epochs;
use crate::severity::Metric;
use crate::trace::regions::Library;
use crate::trace::{NONE, RegionClass, Shard, Trace};
use crate::waits::{Findings, LimitingFactor, WaitState};

/// A call asks when a target made progress.
#[derive(Clone, Copy, Encode, Decode)]
struct Request {
    /// Shard and region instance of the call.
    from: (u32, u32),
    target: u32,
    enter: i64,
    leave: i64,
    /// Release of a lock within the call, ticks; `i64::MIN` without one.
    released: i64,
}

/// A target's activity within the call that asked.
#[derive(Clone, Copy, Encode, Decode)]
struct Activity {
    /// Region instance of the call that asked.
    asked: u32,
    /// Location and region instance of the activity.
    call: (u32, u32),
    process: u32,
    enter: i64,
    leave: i64,
}

pub(super) fn detect(
    trace: &Trace,
    epochs: &[Epochs],
    contentions: Vec<Vec<Contention>>,
    found: &[Findings],
    waits: &mut [Waits],
) -> Result<()> {
    let requests = (0..trace.shards.len()).into_par_iter().map(|i| requests(trace, i, &epochs[i], &contentions[i]));
    let requests = trace.exchange.alltoallv(requests.collect())?;
    let answers = requests.into_par_iter().zip(&trace.shards).map(|(inbox, shard)| {
        let mut outbox = trace.exchange.outbox();
        let mut calls = LibraryCalls { trace, shard, by_location: FxHashMap::default() };
        for request in inbox.rows() {
            if let Some(activity) = calls.activity(request) {
                outbox.push(request.from.0, activity);
            }
        }
        outbox
    });
    let answers = trace.exchange.alltoallv(answers.collect())?;
    let received = answers.into_par_iter().zip(&trace.shards).zip(contentions).zip(found).zip(waits);
    received.for_each(|((((answers, shard), contentions), found), waits)| {
        let messages = message_waits(trace, shard, found);
        book(trace, shard, &answers, &contentions, &messages, waits);
    });
    Ok(())
}

/// Metrics of a library: contention, no-overlap, last call; each in synchronization and in communication.
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
    if epochs.completions.is_empty() {
        return outbox;
    }
    // Calls in which the target takes part need no progress on the side.
    let collectives = epochs.collectives.iter().map(|part| part.instance);
    let accesses = epochs.accesses.iter().flat_map(|access| [access.start, access.complete]);
    let exposures = epochs.exposures.iter().flat_map(|exposure| [exposure.post, exposure.wait]);
    let active = InstanceSet::new(shard, collectives.chain(accesses).chain(exposures));
    let mut contentions = contentions.iter().peekable();
    for completion in &epochs.completions {
        let instance = completion.instance;
        let class = trace.class(shard, instance);
        let own = trace.definitions.locations[shard.location_of_instance(instance) as usize].process;
        if completion.target == own
            || active.contains(instance)
            || matches!(class, RegionClass::Test | RegionClass::WinTest)
            || class.library().is_none()
        {
            continue;
        }
        while contentions.next_if(|contention| contention.call.1 < instance).is_some() {}
        let contention = contentions.peek().filter(|contention| contention.call.1 == instance);
        let request = Request {
            from: (number, instance),
            target: completion.target,
            enter: shard.enter(instance),
            leave: shard.leave(instance),
            released: contention.map_or(i64::MIN, |contention| contention.released),
        };
        outbox.push(trace.owner(completion.target), request);
    }
    outbox
}

/// The outermost library calls of a shard's locations, found when first asked for.
struct LibraryCalls<'a> {
    trace: &'a Trace,
    shard: &'a Shard,
    /// The calls of a location, and the position of what was found last: requests of a process come in the order of time.
    by_location: FxHashMap<u32, (Vec<u32>, usize)>,
}

impl LibraryCalls<'_> {
    /// The target's activity that makes the progress a call asks for, on any of its threads.
    fn activity(&mut self, request: &Request) -> Option<Activity> {
        let mut found: Option<Activity> = None;
        let (trace, shard) = (self.trace, self.shard);
        for location in trace.definitions.processes[request.target as usize].locations.clone() {
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
}

/// Region instances of the outermost library calls of a location, in order.
fn outermost(trace: &Trace, shard: &Shard, location: u32) -> Vec<u32> {
    let mut end = None;
    let mut calls = Vec::new();
    for instance in shard.instances_of(location) {
        let enter = shard.instances.enter[instance as usize];
        if trace.class(shard, instance).library().is_some() && end.is_none_or(|end| enter > end) {
            end = Some(shard.instances.leave[instance as usize]);
            calls.push(instance);
        }
    }
    calls
}

/// Until when calls that complete requests wait for messages, by region instance, ticks.
fn message_waits(trace: &Trace, shard: &Shard, found: &Findings) -> FxHashMap<u32, i64> {
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
    messages: &FxHashMap<u32, i64>,
    waits: &mut Waits,
) {
    let operations = InstanceSet::new(shard, shard.operations.rows.iter().map(|operation| operation.instance));
    let metrics_of = |instance: u32| {
        let library = trace.class(shard, instance).library().unwrap_or(Library::Mpi);
        metrics(library).map(|variants| variants[usize::from(operations.contains(instance))])
    };
    // Since when a call waits for nothing but one-sided communication.
    let begin_of = |instance: u32| messages.get(&instance).copied().unwrap_or_else(|| shard.enter(instance));
    let contended = |contention: &Contention, last| {
        let instance = contention.call.1;
        let [kind, ..] = metrics_of(instance);
        let waiting = contention.waiting - (begin_of(instance) - shard.enter(instance));
        let wait = WaitState { last, ..WaitState::new(kind, contention.call, waiting, contention.release) };
        (waiting > 0).then_some(wait)
    };
    let mut contentions = contentions.iter().peekable();
    let mut activities: Vec<Activity> = answers.rows().copied().collect();
    // Those of a source are in order: a stable sort merges them.
    activities.sort_by_key(|activity| (activity.asked, activity.enter, activity.process));
    for of_call in activities.chunk_by(|a, b| a.asked == b.asked) {
        let instance = of_call[0].asked;
        // What a call without progress at a target waited for is contention alone.
        while let Some(alone) = contentions.next_if(|contention| contention.call.1 < instance) {
            waits.states.extend(contended(alone, LimitingFactor::Contention));
        }
        let mut begin = begin_of(instance);
        if let Some(contention) = contentions.next_if(|contention| contention.call.1 == instance) {
            begin = begin.max(contention.released);
            waits.states.extend(contended(contention, LimitingFactor::Progress));
        }
        let Some((waiting, cause)) = no_overlap(begin, shard.leave(instance), of_call) else { continue };
        let Some(last) = of_call.iter().max_by_key(|activity| (activity.enter, Reverse(activity.process))) else {
            continue;
        };
        let [_, lower, upper] = metrics_of(instance);
        let call = (shard.location_of_instance(instance), instance);
        for wait in
            [WaitState::new(lower, call, waiting, cause), WaitState::new(upper, call, last.enter - begin, last.call)]
        {
            waits.states.push(WaitState { last: LimitingFactor::Progress, ..wait });
        }
    }
    waits.states.extend(contentions.filter_map(|alone| contended(alone, LimitingFactor::Contention)));
}

/// Algorithm 1: the waiting time, and the activity that ended the last gap.
fn no_overlap(begin: i64, leave: i64, activities: &[Activity]) -> Option<(i64, (u32, u32))> {
    let mut reference = begin;
    let mut waiting = 0;
    let mut cause = None;
    for activity in activities {
        if reference < activity.enter {
            waiting += activity.enter - reference;
            cause = Some(activity.call);
        }
        reference = reference.max(activity.leave);
        if reference >= leave {
            break;
        }
    }
    cause.map(|cause| (waiting, cause)).filter(|&(_, (_, instance))| instance != NONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn activity(enter: i64, leave: i64) -> Activity {
        Activity { asked: 0, call: (1, enter as u32), process: 0, enter, leave }
    }

    #[test]
    fn overlapping_activities_count_once() {
        let activities = [activity(10, 30), activity(20, 25), activity(40, 50)];
        assert_eq!(no_overlap(0, 100, &activities), Some((10 + 10, (1, 40))));
    }

    #[test]
    fn a_target_inside_the_library_delays_nobody() {
        assert_eq!(no_overlap(5, 100, &[activity(0, 10)]), None);
    }
}
