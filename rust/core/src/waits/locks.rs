//! Contention for locks of threads.
//!
//! ```text
//!  thread 0  --A[ section     ]R------------------      A acquires, R releases
//!  thread 1  ----[ waits       |]A[ section ]R----      from Enter of the call that acquires to the previous release
//! ```
//!
//! *Waiting*: release by the previous owner − Enter of the call that acquires, if positive; of several readers, the one that
//! releases last is the cause ([`crate::matching::threads::locks`]).
//!
//! *Source*: specification.md#locks-of-threads.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::wait_state::WaitState;
use crate::ids::InstanceId;
use crate::matching::threads::locks::{Handover, ThreadLock};
use crate::severity::Metric;
use crate::trace::{RegionClass, Shard, Trace};

impl ThreadLock {
    /// The waits for the lock, each with the position of the ownership that it ends with.
    pub(crate) fn each_wait(&self, trace: &Trace, shard: &Shard, mut each: impl FnMut(usize, WaitState)) {
        let mut last: Option<(usize, WaitState)> = None;
        self.each_handover(|handover| {
            let Some(wait) = self.contention(trace, shard, handover) else { return };
            // Of several readers, the last one to release counts.
            match last.take() {
                Some((acquired, before)) if acquired != handover.acquired => each(acquired, before),
                _ => {}
            }
            last = Some((handover.acquired, wait));
        });
        if let Some((acquired, wait)) = last {
            each(acquired, wait);
        }
    }

    /// Passes on the same with the time in which threads wait for nothing but the lock: `awake` says from when on those do
    /// that wait for a condition variable.
    pub(crate) fn each_contention(
        &self,
        (trace, shard): (&Trace, &Shard),
        awake: &FxHashMap<InstanceId, i64>,
        mut each: impl FnMut(usize, WaitState, Range<i64>),
    ) {
        self.each_wait(trace, shard, |acquired, wait| {
            let enter = shard.enter(wait.instance);
            let time = awake.get(&wait.instance).copied().unwrap_or(enter)..enter + wait.waiting;
            if !time.is_empty() {
                each(acquired, wait, time);
            }
        });
    }

    /// The wait that a handover ends, if there is one.
    fn contention(&self, trace: &Trace, shard: &Shard, Handover { released, acquired }: Handover) -> Option<WaitState> {
        let (before, own) = (&self.ownerships[released], &self.ownerships[acquired]);
        let (release, acquire) = (before.release()?, own.acquire()?);
        let class = trace.class(shard, acquire.instance);
        let kind = match class {
            RegionClass::Critical => Metric::OmpCriticalContention,
            RegionClass::Ordered => Metric::OmpOrderedWait,
            RegionClass::OpenMp => Metric::OmpLockContention,
            RegionClass::MutexLock => Metric::MutexContention,
            RegionClass::ReadLock | RegionClass::WriteLock => Metric::ReadWriteContention,
            RegionClass::SpinLock => Metric::SpinContention,
            RegionClass::ConditionWait | RegionClass::TimedConditionWait => Metric::ConditionContention,
            _ => return None,
        };
        // In an ordered construct, the block belongs to the call.
        let end = if class == RegionClass::Ordered { acquire.time } else { shard.leave(acquire.instance) };
        let waiting = release.time.min(end) - shard.enter(acquire.instance);
        let cause = (before.location, release.instance);
        (waiting > 0).then(|| WaitState::new(kind, (own.location, acquire.instance), waiting, cause))
    }
}
