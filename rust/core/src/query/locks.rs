//! How threads use the locks of their processes: how often they acquire them, wait for them, and hold them.
//!
//! *Source*: specification.md#locks-of-threads.

use std::cmp::Reverse;
use std::ops::Range;

use bitcode::{Decode, Encode};
use rustc_hash::FxHashMap;
use whywait_otf2::enums::Paradigm;

use crate::Result;
use crate::analysis::Analysis;
use crate::diagnostics::Diagnostics;
use crate::ids::{CallPathId, InstanceId, LocationId, ProcessId};
use crate::matching::threads::locks::{self, LockKey, Ownership, ThreadLock};
use crate::trace::{Shard, Trace};
use crate::waits::posix;

/// A lock of a process, or an ordered construct of a team.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct LockUse {
    /// The process.
    pub process: ProcessId,
    /// The programming model that the lock belongs to, a value of `Paradigm`.
    pub paradigm: u8,
    /// Its number there; `None` for an ordered construct.
    pub number: Option<u32>,
    /// Where threads wait for it longest, or acquire it most often.
    pub callpath: CallPathId,
    /// Number of acquisitions.
    pub acquisitions: u64,
    /// Those that waited.
    pub contended: u64,
    /// Waiting for it, ticks.
    pub waiting: i64,
    /// The largest number of threads that wait at the same time.
    pub longest_queue: u32,
    /// Time in which threads own it, ticks.
    pub holding: i64,
    /// Time from a release to the acquisition by a thread that waited, ticks.
    pub gap: i64,
    /// The part of the critical path in which the thread on it owns the lock, ticks.
    pub critical: i64,
    /// Ownerships that are on the critical path.
    pub critical_acquisitions: u64,
    /// Those of them that waited.
    pub critical_contended: u64,
}

/// The critical path by location: when it begins and ends there.
type Path = FxHashMap<LocationId, Vec<(i64, i64)>>;

impl Analysis {
    /// The locks of threads, those that threads wait for longest first; with a window only acquisitions that begin in it.
    /// Collective.
    pub fn locks(&self, window: Option<&Range<i64>>) -> Result<Vec<LockUse>> {
        let mut path = Path::default();
        for segment in self.own_path()? {
            path.entry(segment.location).or_default().push((segment.from, segment.to));
        }
        let mut found = Vec::new();
        for shard in &self.trace.shards {
            for process in shard.processes {
                let of_process = &self.trace.definitions.processes[process];
                let locks = locks::of_process(&self.trace, shard, of_process, &mut Diagnostics::default());
                let awake = posix::awake(shard, &posix::conditions(&self.trace, shard, of_process, &locks));
                for lock in &locks {
                    let lock_use = of_lock((&self.trace, shard), process, (lock, &awake), &path, window);
                    found.extend((lock_use.acquisitions > 0).then_some(lock_use));
                }
            }
        }
        let mut found = self.trace.exchange.gatherv(found)?;
        found.sort_by_key(|lock| Reverse((lock.waiting, lock.holding)));
        Ok(found)
    }
}

fn of_lock(
    (trace, shard): (&Trace, &Shard),
    process: ProcessId,
    (lock, awake): (&ThreadLock, &FxHashMap<InstanceId, i64>),
    path: &Path,
    window: Option<&Range<i64>>,
) -> LockUse {
    let counts = |own: &Ownership| window.is_none_or(|window| window.contains(&own.time.start));
    let (paradigm, number) = match lock.key {
        LockKey::Lock { paradigm, number } => (paradigm, Some(number)),
        LockKey::Ordered { .. } => (Paradigm::OPENMP.0, None),
    };
    let mut found = LockUse {
        process,
        paradigm,
        number,
        callpath: CallPathId::NONE,
        acquisitions: lock.ownerships.iter().filter(|own| counts(own)).count() as u64,
        contended: 0,
        waiting: 0,
        longest_queue: 0,
        holding: 0,
        gap: 0,
        critical: 0,
        critical_acquisitions: 0,
        critical_contended: 0,
    };
    // Waiting and acquisitions by call path.
    let mut places: FxHashMap<CallPathId, (i64, u64)> = FxHashMap::default();
    let mut queue: Vec<(i64, i32)> = Vec::new();
    let mut has_waited = vec![false; lock.ownerships.len()];
    lock.each_contention((trace, shard), awake, |acquired, wait, time| {
        if !counts(&lock.ownerships[acquired]) {
            return;
        }
        let waiting = time.end - time.start;
        has_waited[acquired] = true;
        found.contended += 1;
        found.waiting += waiting;
        found.gap += (lock.ownerships[acquired].time.start - time.end).max(0);
        places.entry(shard.callpath(wait.instance)).or_default().0 += waiting;
        queue.extend([(time.start, 1), (time.end, -1)]);
    });
    queue.sort_unstable();
    let mut waiting = 0;
    for (_, change) in queue {
        waiting += change;
        found.longest_queue = found.longest_queue.max(waiting.max(0) as u32);
    }
    for (own, has_waited) in lock.ownerships.iter().zip(has_waited).filter(|(own, _)| counts(own)) {
        if let Some(acquire) = own.acquire() {
            places.entry(shard.callpath(acquire.instance)).or_default().1 += 1;
        }
        found.holding += own.time.end - own.time.start;
        let of_location = path.get(&own.location).map_or(&[][..], Vec::as_slice);
        let first = of_location.partition_point(|&(_, to)| to <= own.time.start);
        let inside = of_location[first..].iter().take_while(|&&(from, _)| from < own.time.end);
        let critical: i64 = inside.map(|&(from, to)| to.min(own.time.end) - from.max(own.time.start)).sum();
        if critical > 0 {
            found.critical += critical;
            found.critical_acquisitions += 1;
            found.critical_contended += u64::from(has_waited);
        }
    }
    let most = places.into_iter().max_by_key(|&(callpath, uses)| (uses, Reverse(callpath)));
    found.callpath = most.map_or(CallPathId::NONE, |(callpath, _)| callpath);
    found
}
