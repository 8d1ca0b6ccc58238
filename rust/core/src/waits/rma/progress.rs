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
//! *Both in one call*: split at the release: what lies before is contention, what lies after is progress.
//!
//! *Source*: thesis 3.2, pattern 6, and 3.3, algorithm 1; PATTERNS 4.7.

use bitcode::{Decode, Encode};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use super::lock::Contention;
use super::{OperationCalls, Waits};
use crate::Result;
use crate::exchange::{Inbox, Outbox};
use crate::matching::epochs::Epochs;
use crate::severity::Metric;
use crate::trace::regions::Library;
use crate::trace::{NONE, RegionClass, Shard, Trace};
use crate::waits::{Last, WaitState};

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
    contentions: Vec<FxHashMap<u32, Contention>>,
    waits: &mut [Waits],
) -> Result<()> {
    let requests = (0..trace.shards.len()).into_par_iter().map(|i| requests(trace, i, &epochs[i], &contentions[i]));
    let answers =
        trace.exchange.to_owner(requests.collect())?.into_par_iter().zip(&trace.shards).map(|(inbox, shard)| {
            let mut outbox = trace.exchange.outbox();
            let mut calls = LibraryCalls { trace, shard, by_location: FxHashMap::default() };
            for request in inbox.rows() {
                if let Some(activity) = calls.activity(request) {
                    outbox.push(request.from.0, activity);
                }
            }
            outbox
        });
    let answers = trace.exchange.to_owner(answers.collect())?;
    answers
        .par_iter()
        .zip(&trace.shards)
        .zip(contentions)
        .zip(waits)
        .for_each(|(((answers, shard), contentions), waits)| book(trace, shard, answers, contentions, waits));
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

fn requests(trace: &Trace, index: usize, epochs: &Epochs, contentions: &FxHashMap<u32, Contention>) -> Outbox<Request> {
    let shard = &trace.shards[index];
    let number = trace.exchange.own().start + index as u32;
    let mut outbox = trace.exchange.outbox();
    // Calls in which the target takes part need no progress on the side.
    let mut active: FxHashSet<u32> = epochs.collectives.iter().map(|part| part.instance).collect();
    active.extend(epochs.accesses.iter().flat_map(|access| [access.start, access.complete]));
    active.extend(epochs.exposures.iter().flat_map(|exposure| [exposure.post, exposure.wait]));
    for completion in &epochs.completions {
        let instance = completion.instance;
        let class = trace.class(shard, instance);
        let own = trace.world.locations[shard.location_of_instance(instance) as usize].process;
        if completion.target == own
            || active.contains(&instance)
            || matches!(class, RegionClass::Test | RegionClass::WinTest)
            || class.library().is_none()
        {
            continue;
        }
        let request = Request {
            from: (number, instance),
            target: completion.target,
            enter: shard.enter(instance),
            leave: shard.leave(instance),
            released: contentions.get(&instance).map_or(i64::MIN, |contention| contention.released),
        };
        outbox.push(trace.owner(completion.target), request);
    }
    outbox
}

/// The outermost library calls of a shard's locations, found when first asked for.
struct LibraryCalls<'a> {
    trace: &'a Trace,
    shard: &'a Shard,
    by_location: FxHashMap<u32, Vec<u32>>,
}

impl LibraryCalls<'_> {
    /// The target's activity that makes the progress a call asks for, on any of its threads.
    fn activity(&mut self, request: &Request) -> Option<Activity> {
        let mut found: Option<Activity> = None;
        for location in self.trace.world.processes[request.target as usize].locations.clone() {
            let (trace, shard) = (self.trace, self.shard);
            let calls = self.by_location.entry(location).or_insert_with(|| outermost(trace, shard, location));
            let first = if request.released == i64::MIN {
                calls.partition_point(|&call| shard.leave(call) < request.enter)
            } else {
                calls.partition_point(|&call| shard.enter(call) <= request.released)
            };
            let Some(&call) = calls.get(first) else { continue };
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

fn book(
    trace: &Trace,
    shard: &Shard,
    answers: &Inbox<Activity>,
    mut contentions: FxHashMap<u32, Contention>,
    waits: &mut Waits,
) {
    let operation_calls = OperationCalls::new(shard);
    let metrics_of = |instance: u32| {
        let library = trace.class(shard, instance).library().unwrap_or(Library::Mpi);
        metrics(library).map(|variants| variants[usize::from(operation_calls.holds(instance))])
    };
    let mut activities: Vec<Activity> = answers.rows().copied().collect();
    activities.sort_unstable_by_key(|activity| (activity.asked, activity.enter, u32::MAX - activity.process));
    for of_call in activities.chunk_by(|a, b| a.asked == b.asked) {
        let instance = of_call[0].asked;
        let [contended, lower, upper] = metrics_of(instance);
        let location = shard.location_of_instance(instance);
        let call = (location, instance);
        let mut begin = shard.enter(instance);
        if let Some(contention) = contentions.remove(&instance) {
            begin = contention.released;
            let wait = WaitState::new(contended, call, contention.waiting, contention.release);
            waits.states.push(WaitState { last: Last::Progress, ..wait });
        }
        let Some((waiting, cause)) = no_overlap(begin, shard.leave(instance), of_call) else { continue };
        let last = of_call[of_call.len() - 1];
        for wait in
            [WaitState::new(lower, call, waiting, cause), WaitState::new(upper, call, last.enter - begin, last.call)]
        {
            waits.states.push(WaitState { last: Last::Progress, ..wait });
        }
    }
    // What the calls without progress at a target waited for is contention alone.
    let mut alone: Vec<(u32, Contention)> = contentions.into_iter().collect();
    alone.sort_unstable_by_key(|&(instance, _)| instance);
    for (instance, contention) in alone {
        let [contended, ..] = metrics_of(instance);
        let wait = WaitState::new(contended, contention.call, contention.waiting, contention.release);
        waits.states.push(WaitState { last: Last::Contention, ..wait });
    }
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
