//! What a device does while its host waits for it is work of the process: other processes do not wait for the host's wait, but
//! for what its device has to do.
//!
//! As a wait it would share the costs of other waits by its length, even if the waiter's own device took as long. As work it is a
//! delay where it exceeds that of the waiter, by the call path of the kernel, and the costs are those of the kernel. While a kernel
//! waits for other devices, the host waits: this time gets its share, and hands it on to the wait of the kernel.
//!
//! *Source*: accelerators.md#causes-and-the-critical-path.

use crate::ids::{CallPathId, InstanceId, LocationId};
use crate::trace::Shard;
use crate::waits::device::{Devices, StartCause, Synchronization};
use crate::waits::interval::overlap;

/// What a device does while its host waits for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AwaitedWork {
    /// The stream.
    pub stream: LocationId,
    /// Call path of the kernel or copy.
    pub callpath: CallPathId,
    /// The kernel or copy.
    pub instance: InstanceId,
    /// How long the host waits for it, ticks.
    pub ticks: i64,
    /// The part of this in which it waits for other devices itself, ticks.
    pub waiting: i64,
}

impl AwaitedWork {
    /// The part in which the device works, ticks.
    pub(super) fn worked(&self) -> i64 {
        self.ticks - self.waiting
    }
}

/// The work that a host waits for in a call: from the last end backwards through what delayed each begin. The time until a
/// kernel begins belongs to it, as on the critical path.
pub(super) fn of_call<'a>(
    shard: &'a Shard,
    devices: &'a Devices,
    synchronization: &Synchronization,
) -> impl Iterator<Item = AwaitedWork> + 'a {
    let begin = synchronization.call.enter;
    let mut end = begin + synchronization.waiting;
    let mut next = synchronization.kernel;
    let works = std::iter::from_fn(move || {
        let number = next.filter(|_| end > begin)?;
        let kernel = &devices.kernels[number as usize];
        // What ended earlier leads on, and work without length, in one order, so that this comes to an end.
        let before = match kernel.start_cause {
            StartCause::After(other) => Some((other, devices.kernels[other as usize].run.leave)),
            StartCause::Launched | StartCause::Unknown => None,
        };
        let before = before.filter(|&(other, leave)| (leave, other) < (end, number));
        let since = before.map_or(begin, |(_, leave)| leave.max(begin));
        let run = &kernel.run;
        let waits_until = run.enter + devices.whole_wait((run.location, run.instance)).unwrap_or(0);
        let work = AwaitedWork {
            stream: run.location,
            callpath: shard.callpath(run.instance),
            instance: run.instance,
            ticks: end - since,
            waiting: overlap(&(since..end), run.enter..waits_until),
        };
        (next, end) = (before.map(|(other, _)| other), since);
        Some(work)
    });
    works.filter(|work| work.ticks > 0)
}

/// The awaited work at the points of a shard, by point.
#[derive(Debug, Default)]
pub(crate) struct AwaitedWorks(Vec<(u32, AwaitedWork)>);

impl AwaitedWorks {
    /// Adds the work that is awaited at a point; points must not decrease.
    pub(super) fn push(&mut self, point: u32, work: AwaitedWork) {
        self.0.push((point, work));
    }

    /// The part of the wait at a point that is no work, ticks.
    pub(super) fn rest(&self, point: u32, waiting: i64) -> i64 {
        waiting - self.at(point).map(AwaitedWork::worked).sum::<i64>()
    }

    /// The work that is awaited at a point.
    pub(super) fn at(&self, point: u32) -> impl Iterator<Item = &AwaitedWork> {
        let first = self.0.partition_point(|&(other, _)| other < point);
        self.0[first..].iter().take_while(move |&&(other, _)| other == point).map(|(_, work)| work)
    }
}
