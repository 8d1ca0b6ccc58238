//! Synchronization points of POSIX threads: creation, signals, and barriers; and the locks that threads waited for.
//!
//! A wait for a condition variable waits for two things in turn: for the signal to begin, and for the owner of the mutex
//! to end. So it has two causes, of which only the first is a synchronization.
//!
//! *Source*: specification.md#posix-threads. The thesis has no threads.

use super::ownership::{self, ContendedLock};
use super::points::{Anchor, GroupSync, Place, Relation, SyncPoint, SyncPoints, SyncScope};
use super::states::States;
use super::teams::ThreadSets;
use crate::ids::{CommId, InstanceId, LocationId};
use crate::matching::threads::lives::{Creation, Life, lives};
use crate::matching::threads::locks::ThreadLock;
use crate::matching::threads::rounds::rounds;
use crate::matching::threads::teams::latest;
use crate::schema::Class;
use crate::severity::Metric;
use crate::trace::{RegionClass, Shard, Trace};
use crate::waits::posix::{self, Condition};

pub(super) fn collect(
    (trace, shard): (&Trace, &Shard),
    locks: &[Vec<ThreadLock>],
    states: &mut States,
    (sync_points, sets, contended): (&mut SyncPoints, &mut ThreadSets, &mut Vec<ContendedLock>),
) {
    for (process, locks) in shard.processes.into_iter().zip(locks) {
        let process = &trace.definitions.processes[process];
        for creation in lives(shard, process).iter().filter_map(Life::creation) {
            sync_points.pairs.push(created(shard, &creation));
        }
        let conditions = posix::conditions(trace, shard, process, locks);
        signals((trace, shard), &conditions, states, &mut sync_points.pairs);
        ownership::of_locks((trace, shard), (locks, &conditions), contended);
        for round in rounds(trace, shard, process) {
            let Some(cause) = latest(shard, round.iter().copied()) else { continue };
            let members = round.iter().map(|&(location, _)| location).collect();
            let set = sets.number(members);
            for call in round {
                let (enter, leave) = (shard.enter(call.1), shard.leave(call.1));
                let last = shard.enter(cause.1).min(leave);
                sync_points.group_syncs.push(GroupSync {
                    anchor: Anchor::new(call, Place::Leave),
                    class: Class::PthreadBarrier,
                    scope: SyncScope::Threads { set },
                    waiting: last - enter,
                    total: leave - enter,
                    completion: leave - last,
                });
            }
        }
    }
}

/// A thread begins at the first Enter behind its creation.
fn created(shard: &Shard, creation: &Creation) -> SyncPoint {
    let leave = shard.leave(creation.creator.1);
    SyncPoint {
        class: Class::Mark,
        relation: Relation::Creation,
        comm: CommId::NONE,
        waiter: Anchor::new(creation.thread, Place::Ahead),
        cause: Anchor::new(creation.creator, Place::Begin),
        waiting: 0,
        held: 0,
        completion: 0,
        cause_completion: leave - creation.time.clamp(shard.enter(creation.creator.1), leave),
        state: crate::trace::NONE,
    }
}

/// Where a thread has released a lock in a call, in which it may wait afterwards.
pub(super) fn release_place(trace: &Trace, shard: &Shard, call: InstanceId) -> Place {
    match trace.class(shard, call) {
        RegionClass::ConditionWait | RegionClass::TimedConditionWait => Place::Begin,
        _ => Place::Behind,
    }
}

fn signals(
    (trace, shard): (&Trace, &Shard),
    conditions: &[Condition],
    states: &mut States,
    pairs: &mut Vec<SyncPoint>,
) {
    for condition in conditions {
        let call = (condition.location, condition.instance);
        let (enter, leave) = (shard.enter(call.1), shard.leave(call.1));
        let mut add = |class, relation, cause: (LocationId, InstanceId), (from, until): (i64, i64), kind| {
            let waiting = until - from;
            if waiting <= 0 {
                return;
            }
            let signal = shard.enter(cause.1);
            let is_ownership = relation == Relation::Ownership;
            pairs.push(SyncPoint {
                class,
                relation,
                comm: CommId::NONE,
                waiter: Anchor::new(call, Place::Leave),
                cause: Anchor::new(
                    cause,
                    if is_ownership { release_place(trace, shard, cause.1) } else { Place::Begin },
                ),
                waiting,
                held: until - enter,
                completion: (leave - signal).max(0),
                cause_completion: shard.leave(cause.1) - signal,
                state: states.find(kind, call.1),
            });
        };
        let &Condition { released, owner, signal, .. } = condition;
        let (signaled, wants_mutex) = (condition.signaled(shard), condition.wants_mutex_from(shard));
        let [contention, late] = [Metric::ConditionContention, Metric::LateSignal];
        if let Some(signal) = signal {
            let until = signaled.min(released);
            add(Class::Signal, Relation::ThreadPair, signal.call, (enter, until), contention);
            add(Class::Signal, Relation::ThreadPair, signal.call, (released, signaled), late);
        } else {
            // Nobody is known to have caused it.
            add(Class::Signal, Relation::Ownership, call, (enter, wants_mutex), contention);
            if !condition.is_timed {
                add(Class::Signal, Relation::Ownership, call, (released, signaled), late);
            }
        }
        if let Some(owner) = owner {
            add(Class::ThreadLock, Relation::Ownership, owner, (wants_mutex, released), contention);
        }
    }
}
