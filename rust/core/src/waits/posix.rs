//! POSIX threads: waits for the end of a thread, for the signal of a condition variable, and at barriers.
//!
//! ```text
//!  joiner   --[ join waits   |]--        waiter  --[ cond_wait: signal | mutex |]--       at a barrier
//!  thread   --[ ...          ]           other   -----------[ signal ] ... R-----         --[ waits |]--
//!                                                                                         --------[  ]--
//! ```
//!
//! *Join*: waiting = end of the thread − Enter, at most up to the Leave. *Condition variables*: until the signal, and
//! then until the mutex is free. *Barrier*: latest Enter of the round − own Enter.
//!
//! Neither signals nor rounds are recorded; both are inferred. A signal wakes a thread that waits at this time if the
//! mutex was last acquired by the one that gives the signal. The calls that are open at the earliest Leave are a round.
//!
//! *Source*: specification.md#posix-threads.

use rustc_hash::FxHashMap;

use super::findings::Findings;
use super::wait_state::WaitState;
use crate::diagnostics::{DiagnosticKind, Diagnostics};
use crate::ids::{InstanceId, LocationId};
use crate::matching::threads::lives::{Life, lives};
use crate::matching::threads::locks::ThreadLock;
use crate::matching::threads::rounds::rounds;
use crate::matching::threads::teams::latest;
use crate::severity::{Metric, Severity};
use crate::trace::columns::Thread;
use crate::trace::locations::Process;
use crate::trace::{RegionClass, Shard, Trace};

/// A thread waits for a condition variable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Condition {
    pub location: LocationId,
    pub instance: InstanceId,
    /// When another thread released the mutex for the last time before it was acquired again; at least the Enter.
    pub released: i64,
    /// That thread, and the call that released it.
    pub owner: Option<(LocationId, InstanceId)>,
    /// When it had acquired the mutex; the Enter if there is none.
    owned_since: i64,
    /// The signal, if one fits.
    pub signal: Option<Signal>,
    /// Whether it can end without a signal.
    pub is_timed: bool,
    /// From the release of the mutex to its acquisition.
    begin: i64,
    end: i64,
    /// Position of the mutex among the locks.
    lock: usize,
}

/// A signal that woke a thread: when, and by which call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signal {
    pub time: i64,
    pub call: (LocationId, InstanceId),
}

impl Condition {
    /// When the signal was given, at most the Leave; the Leave if none fits.
    pub(crate) fn signaled(&self, shard: &Shard) -> i64 {
        let leave = shard.leave(self.instance);
        self.signal.map_or(leave, |signal| signal.time.clamp(shard.enter(self.instance), leave))
    }

    /// From when on it waited for nothing but the mutex: from the signal on. Where a time limit ended it, nobody knows when
    /// it was awake: it counts as awake since the thread that it waited for acquired the mutex.
    pub(crate) fn wants_mutex_from(&self, shard: &Shard) -> i64 {
        match self.signal {
            None if self.is_timed => self.owned_since.clamp(shard.enter(self.instance), self.released),
            _ => self.signaled(shard).min(self.released),
        }
    }
}

/// The waits for condition variables of a process, with the signals that ended them.
pub(crate) fn conditions(trace: &Trace, shard: &Shard, process: &Process, locks: &[ThreadLock]) -> Vec<Condition> {
    if !trace.regions.has(RegionClass::ConditionWait) && !trace.regions.has(RegionClass::TimedConditionWait) {
        return Vec::new();
    }
    let mut conditions = Vec::new();
    for (number, lock) in locks.iter().enumerate() {
        let first = conditions.len();
        let mut released: FxHashMap<InstanceId, i64> = FxHashMap::default();
        for own in &lock.ownerships {
            if let Some(release) = own.release() {
                released.insert(release.instance, release.time);
            }
            let Some(acquire) = own.acquire() else { continue };
            let class = trace.class(shard, acquire.instance);
            if matches!(class, RegionClass::ConditionWait | RegionClass::TimedConditionWait) {
                let enter = shard.enter(acquire.instance);
                conditions.push(Condition {
                    location: own.location,
                    instance: acquire.instance,
                    released: enter,
                    owner: None,
                    owned_since: enter,
                    signal: None,
                    is_timed: class == RegionClass::TimedConditionWait,
                    begin: enter,
                    end: acquire.time,
                    lock: number,
                });
            }
        }
        for condition in &mut conditions[first..] {
            condition.begin = released.get(&condition.instance).copied().unwrap_or(condition.begin);
        }
        conditions[first..].sort_unstable_by_key(|condition| condition.instance);
        lock.each_wait(trace, shard, |acquired, wait| {
            let of_lock = &mut conditions[first..];
            if let Ok(i) = of_lock.binary_search_by_key(&wait.instance, |condition| condition.instance) {
                of_lock[i].released += wait.waiting;
                of_lock[i].owner = Some((wait.cause_location, wait.cause_instance));
                let mut before = lock.ownerships[..acquired].iter().rev();
                if let Some(owned) = before.find(|own| own.location == wait.cause_location) {
                    of_lock[i].owned_since = owned.time.start;
                }
            }
        });
    }
    conditions.sort_unstable_by_key(|condition| (condition.begin, condition.location));
    match_signals(trace, shard, process, locks, &mut conditions);
    conditions.sort_unstable_by_key(|condition| (condition.location, shard.instances.enter[condition.instance]));
    conditions
}

/// From when on each call that waits for a condition variable waits for nothing but its mutex.
pub(crate) fn awake(shard: &Shard, conditions: &[Condition]) -> FxHashMap<InstanceId, i64> {
    conditions.iter().map(|condition| (condition.instance, condition.wants_mutex_from(shard))).collect()
}

/// Finds the signal that ended each wait; `conditions` are in the order of their begin.
fn match_signals(trace: &Trace, shard: &Shard, process: &Process, locks: &[ThreadLock], conditions: &mut [Condition]) {
    let mut signals: Vec<(Signal, bool)> = Vec::new();
    for location in process.locations {
        for instance in shard.instances_of(location) {
            let class = trace.class(shard, instance);
            if matches!(class, RegionClass::Signal | RegionClass::Broadcast) {
                let signal = Signal { time: shard.enter(instance), call: (location, instance) };
                signals.push((signal, class == RegionClass::Broadcast));
            }
        }
    }
    signals.sort_unstable_by_key(|(signal, _)| (signal.time, signal.call));
    let mut waiting: Vec<usize> = Vec::new();
    let mut next = 0;
    for (signal, is_broadcast) in signals {
        while next < conditions.len() && conditions[next].begin <= signal.time {
            waiting.push(next);
            next += 1;
        }
        waiting.retain(|&i| conditions[i].signal.is_none() && conditions[i].end > signal.time);
        let fits = |&i: &usize| {
            let condition = &conditions[i];
            let owners = &locks[condition.lock].ownerships;
            let last = owners[..owners.partition_point(|own| own.time.start <= signal.time)].last();
            condition.location != signal.call.0
                && last.is_some_and(|own| own.location == signal.call.0 && own.time.start >= condition.begin)
        };
        let mut woken: Vec<usize> = waiting.iter().copied().filter(fits).collect();
        if !is_broadcast {
            woken =
                woken.into_iter().min_by_key(|&i| (conditions[i].end, conditions[i].location)).into_iter().collect();
        }
        for i in woken {
            conditions[i].signal = Some(signal);
        }
    }
}

/// Detects the waits of a process's threads for each other.
pub(super) fn book(trace: &Trace, shard: &Shard, process: &Process, locks: &[ThreadLock], findings: &mut Findings) {
    for life in lives(shard, process) {
        book_join(shard, &life, findings);
    }
    for condition in conditions(trace, shard, process, locks) {
        book_condition(shard, &condition, findings);
    }
    for round in rounds(trace, shard, process) {
        let Some(cause) = latest(shard, round.iter().copied()) else { continue };
        if round.len() == 1 {
            findings.diagnostics.add(DiagnosticKind::LoneBarrier, cause.0, shard.enter(cause.1));
        }
        for call in round {
            let waiting = shard.enter(cause.1).min(shard.leave(call.1)) - shard.enter(call.1);
            if waiting > 0 {
                findings.waits.push(WaitState::new(Metric::PthreadBarrierWait, call, waiting, cause));
            }
        }
    }
}

fn book_join(shard: &Shard, life: &Life, findings: &mut Findings) {
    note_life(life, &mut findings.diagnostics);
    let (Some((thread, end)), Some((joiner, wait))) = (life.end, life.wait) else { return };
    if wait.instance.is_none() || joiner == thread {
        return;
    }
    let waiting = end.time.min(shard.leave(wait.instance)) - shard.enter(wait.instance);
    if waiting > 0 {
        let (call, cause) = ((joiner, wait.instance), (thread, end.instance));
        findings.waits.push(WaitState::new(Metric::JoinWait, call, waiting, cause));
    }
}

/// Notes what is missing, and what comes twice: a thread may end without being awaited, but nothing else.
fn note_life(life: &Life, notes: &mut Diagnostics) {
    let missing = match (life.create, life.begin, life.end, life.wait) {
        (Some(record), None, ..)
        | (None, Some(record), ..)
        | (_, _, None, Some(record))
        | (None, None, Some(record), _) => Some(record),
        _ => None,
    };
    for (location, Thread { time, .. }) in missing.into_iter().chain(life.repeated) {
        notes.add(DiagnosticKind::ThreadLife, location, time);
    }
}

fn book_condition(shard: &Shard, condition: &Condition, findings: &mut Findings) {
    let &Condition { location, instance, released, .. } = condition;
    let call = (location, instance);
    let (enter, signaled, wants_mutex) =
        (shard.enter(instance), condition.signaled(shard), condition.wants_mutex_from(shard));
    if let Some(owner) = condition.owner {
        // What most of it is for.
        let signal = condition.signal.filter(|_| wants_mutex - enter >= released - wants_mutex);
        let cause = signal.map_or(owner, |signal| signal.call);
        findings.waits.push(WaitState::new(Metric::ConditionContention, call, released - enter, cause));
        if released > wants_mutex {
            findings.waits.push(WaitState::new(Metric::ConditionMutexWait, call, released - wants_mutex, owner));
        }
    }
    let waiting = signaled - released;
    if condition.signal.is_none() && !condition.is_timed {
        findings.diagnostics.add(DiagnosticKind::NoSignal, location, enter);
    }
    if waiting <= 0 {
        return;
    }
    match condition.signal {
        Some(signal) => findings.waits.push(WaitState::new(Metric::LateSignal, call, waiting, signal.call)),
        None if condition.is_timed => findings.severities.push(Severity {
            metric: Metric::ConditionTimeout,
            callpath: shard.callpath(instance),
            location,
            value: waiting,
        }),
        None => findings.waits.push(WaitState::without_cause(Metric::LateSignal, call, waiting)),
    }
}
