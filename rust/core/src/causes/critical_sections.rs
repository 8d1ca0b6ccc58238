//! Waits for locks of threads: the owners of the lock pay for them.
//!
//! ```text
//!  thread 0  --A[ section     ]R------------------      A acquires, R releases
//!  thread 1  ----[ waits       |]A[ section ]R----
//!  thread 2  ------[ waits     |  |         |]A---
//!                  |<--- 2 --->|  |<-- 1 -->|           threads that wait for the owner
//! ```
//!
//! A wait for a lock lasts until the previous owner releases it; until then, other threads own the lock one after the
//! other. Each tick of ownership is charged to what the owner does in it, once for each thread that waits. Waiting
//! while nobody owns the lock, between a release and the next acquisition, is not attributed.
//!
//! These waits are not synchronization points: what happened before a thread acquired its lock can still cause its
//! later waits.
//!
//! *Source*: specification.md#locks-of-threads.

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::FxHashMap;

use super::table::Extent;
use crate::ids::{CallPathId, InstanceId, LocationId};
use crate::schema::CostMetric;
use crate::severity::{Cost, Metric};
use crate::trace::{Shard, Trace};
use crate::waits::WaitState;
use crate::waits::threads::{Ownership, contention, handovers, ownerships};

/// A lock that threads waited for.
#[derive(Debug)]
pub(super) struct ContendedLock {
    /// The ownerships in order of time, without overlaps.
    sections: Vec<Section>,
    /// The waits in order of their calls.
    waits: Vec<LockWait>,
}

/// The time in which a thread owns the lock.
#[derive(Debug)]
struct Section {
    owner: LocationId,
    time: Range<i64>,
    /// The total length of all sections before it, ticks.
    before: i64,
}

/// A thread that waits for the lock.
#[derive(Debug)]
struct LockWait {
    location: LocationId,
    instance: InstanceId,
    time: Range<i64>,
}

/// Whether a wait state is a wait for a lock of threads.
pub(super) fn is_contention(kind: Metric) -> bool {
    use Metric::{ConditionContention, MutexContention, OmpCriticalContention, OmpLockContention};
    matches!(kind, OmpCriticalContention | OmpLockContention | MutexContention | ConditionContention)
}

/// The contended locks of a shard's processes.
pub(super) fn find(trace: &Trace, shard: &Shard) -> Vec<ContendedLock> {
    let of_lock = |ownerships: Vec<Ownership>| {
        let of_wait = |wait: WaitState| {
            let begin = shard.enter(wait.instance);
            LockWait { location: wait.location, instance: wait.instance, time: begin..begin + wait.waiting }
        };
        let waits = handovers(&ownerships).filter_map(|handover| contention(trace, shard, handover));
        let mut waits: Vec<LockWait> = waits.map(of_wait).collect();
        waits.sort_unstable_by_key(|wait| wait.instance);
        (!waits.is_empty()).then(|| ContendedLock { sections: sections(&ownerships), waits })
    };
    let processes = shard.processes.map(|process| &trace.definitions.processes[process]);
    processes.flat_map(|process| ownerships(shard, process)).filter_map(of_lock).collect()
}

fn sections(ownerships: &[Ownership]) -> Vec<Section> {
    let section = |ownership: &Ownership| {
        let ((owner, acquire), (_, release)) = (ownership.acquire?, ownership.release?);
        Some(Section { owner, time: acquire.time..release.time, before: 0 })
    };
    let mut sections: Vec<Section> = ownerships.iter().filter_map(section).collect();
    sections.sort_by_key(|section| section.time.start);
    let (mut end, mut before) = (i64::MIN, 0);
    for section in &mut sections {
        // The clocks of threads may differ.
        let start = section.time.start.max(end);
        end = end.max(section.time.end);
        *section = Section { owner: section.owner, time: start..end, before };
        before += end - start;
    }
    sections.retain(|section| !section.time.is_empty());
    sections
}

impl ContendedLock {
    /// The sections that overlap a stretch of time, and their parts inside it.
    fn owners(&self, time: &Range<i64>) -> impl Iterator<Item = (LocationId, Range<i64>)> {
        let first = self.sections.partition_point(|section| section.time.end <= time.start);
        let (start, end) = (time.start, time.end);
        let inside = self.sections[first..].iter().take_while(move |section| section.time.start < end);
        inside.map(move |section| (section.owner, section.time.start.max(start)..section.time.end.min(end)))
    }

    /// The part of a stretch of time in which nobody owns the lock, ticks.
    fn unowned(&self, time: &Range<i64>) -> i64 {
        let owned_until = |time: i64| {
            let next = self.sections.partition_point(|section| section.time.start < time);
            let Some(Section { time: last, before, .. }) = self.sections[..next].last() else { return 0 };
            before + last.end.min(time) - last.start
        };
        time.end - time.start - (owned_until(time.end) - owned_until(time.start))
    }
}

/// Whether a part of a wait lies in an extent.
pub(super) fn reach_into(locks: &[ContendedLock], extent: &Extent) -> bool {
    let mut waits = locks.iter().flat_map(|lock| &lock.waits);
    waits.any(|wait| extent.parts(&wait.time).any(|part| !part.is_empty()))
}

/// The costs of the parts of all waits in an extent.
pub(super) fn book(trace: &Trace, shard: &Shard, locks: &[ContendedLock], extent: &Extent) -> Vec<Cost> {
    let mut costs: FxHashMap<(CostMetric, CallPathId, LocationId), i64> = FxHashMap::default();
    // When the number of waiting threads changes, and by how much.
    let mut changes: Vec<(i64, i64)> = Vec::new();
    for lock in locks {
        changes.clear();
        for wait in &lock.waits {
            for part in extent.parts(&wait.time).filter(|part| !part.is_empty()) {
                let unowned = lock.unowned(&part);
                for metric in [CostMetric::WaitUnexplained, CostMetric::DelayUnattributed] {
                    *costs.entry((metric, shard.callpath(wait.instance), wait.location)).or_default() += unowned;
                }
                changes.extend([(part.start, 1), (part.end, -1)]);
            }
        }
        changes.sort_unstable();
        let mut changes = changes.iter().copied().peekable();
        let mut waiting = 0;
        for Section { owner, time, .. } in &lock.sections {
            while let Some((_, change)) = changes.next_if(|&(at, _)| at <= time.start) {
                waiting += change;
            }
            if waiting == 0 && changes.peek().is_none_or(|&(at, _)| at >= time.end) {
                continue;
            }
            activities(trace, shard, *owner, time, |callpath, span| {
                let cost = costs.entry((CostMetric::IntervalDelayLock, callpath, *owner)).or_default();
                let mut from = span.start;
                while let Some((at, change)) = changes.next_if(|&(at, _)| at < span.end) {
                    let at = at.max(from);
                    *cost += waiting * (at - from);
                    (from, waiting) = (at, waiting + change);
                }
                *cost += waiting * (span.end - from);
            });
        }
    }
    let cost = |((metric, callpath, location), ticks)| Cost { metric, callpath, location, value: ticks as f64 };
    costs.into_iter().filter(|&(_, ticks)| ticks > 0).map(cost).collect()
}

/// What an owner of a lock did during a wait.
pub(super) struct Activity {
    pub owner: LocationId,
    pub callpath: CallPathId,
    pub ticks: i64,
}

/// What the owners of a lock did during the wait of a call, the longest first, and how long nobody owned it, ticks.
/// `None` if the call does not wait for a lock.
pub(super) fn causes(
    trace: &Trace,
    shard: &Shard,
    locks: &[ContendedLock],
    call: InstanceId,
) -> Option<(Vec<Activity>, i64)> {
    let of_call = |lock: &'_ ContendedLock| lock.waits.binary_search_by_key(&call, |wait| wait.instance).ok();
    let (lock, own) = locks.iter().find_map(|lock| Some((lock, of_call(lock)?)))?;
    let time = &lock.waits[own].time;
    let mut ticks: FxHashMap<(LocationId, CallPathId), i64> = FxHashMap::default();
    for (owner, part) in lock.owners(time) {
        activities(trace, shard, owner, &part, |callpath, span| {
            *ticks.entry((owner, callpath)).or_default() += span.end - span.start;
        });
    }
    let activity = |((owner, callpath), ticks)| Activity { owner, callpath, ticks };
    let mut activities: Vec<Activity> = ticks.into_iter().map(activity).collect();
    activities.sort_by_key(|activity| (Reverse(activity.ticks), activity.owner, activity.callpath));
    Some((activities, lock.unowned(time)))
}

/// Passes on what a location does in a stretch of time: call paths, and when they run themselves, without callees.
fn activities(
    trace: &Trace,
    shard: &Shard,
    location: LocationId,
    time: &Range<i64>,
    mut book: impl FnMut(CallPathId, Range<i64>),
) {
    let i = shard.local(location);
    let (first, end) = (shard.event_offsets[i], shard.event_offsets[i + 1]);
    let begun = shard.events.time[first as usize..end as usize].partition_point(|&at| at <= time.start);
    let mut from = time.start;
    for event in first + begun as u32..=end {
        let until = if event < end { shard.events.time[event as usize].min(time.end) } else { time.end };
        if from < until && event > first {
            let before = shard.events.callpath(event - 1);
            let running = if shard.events.is_leave(event - 1) { trace.tree.parent(before) } else { before };
            if running.is_some() {
                book(running, from..until);
            }
        }
        from = until;
        if from >= time.end {
            break;
        }
    }
}
