//! What threads own when, and which tasks start on other threads: for timelines.

use bitcode::{Decode, Encode};

use crate::diagnostics::Diagnostics;
use crate::ids::{CallPathId, InstanceId, LocationId, ProcessId};
use crate::matching::threads::locks;
use crate::trace::{RegionClass, Shard, Trace};
use crate::waits::posix;

/// The time in which a thread owns a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Owned {
    /// The thread.
    pub location: LocationId,
    /// Number of the lock among those of the process.
    pub lock: u32,
    /// Where it was acquired, or released if that is not recorded.
    pub callpath: CallPathId,
    /// When it was acquired, ticks.
    pub begin: i64,
    /// When it was released, ticks.
    pub end: i64,
}

/// Passes on who owns the locks of a process that threads wait for, lock by lock.
pub(super) fn each_owned(trace: &Trace, shard: &Shard, process: ProcessId, mut each: impl FnMut(Owned)) {
    if shard.locks.rows.is_empty() && !trace.regions.has(RegionClass::OrderedBlock) {
        return;
    }
    let process = &trace.definitions.processes[process];
    let locks = locks::of_process(trace, shard, process, &mut Diagnostics::default());
    let awake = posix::awake(shard, &posix::conditions(trace, shard, process, &locks));
    for (lock, number) in locks.iter().zip(0..) {
        let mut is_contended = false;
        lock.each_contention((trace, shard), &awake, |_, _, _| is_contended = true);
        for own in lock.ownerships.iter().filter(|_| is_contended) {
            let record = own.acquire().or_else(|| own.release());
            let instance = record.map_or(InstanceId::NONE, |record| record.instance);
            let callpath = if instance.is_some() { shard.callpath(instance) } else { CallPathId::NONE };
            let (begin, end) = (own.time.start, own.time.end);
            each(Owned { location: own.location, lock: number, callpath, begin, end });
        }
    }
}

/// A task that starts on another thread than the one that created it.
#[derive(Clone, Copy, Debug)]
pub(super) struct StartedElsewhere {
    /// The thread that creates it, the call, and the time of the record, ticks.
    pub creator: (LocationId, InstanceId),
    pub created: i64,
    /// The thread on which it starts, its region instance, and when, ticks.
    pub runner: (LocationId, InstanceId),
    pub started: i64,
}

/// Passes on the tasks of a shard that start elsewhere.
pub(super) fn each_started_elsewhere(shard: &Shard, mut each: impl FnMut(StartedElsewhere)) {
    // The first run of each task.
    let mut first: Vec<Option<(i64, LocationId, InstanceId)>> = vec![None; shard.task_instances.len()];
    for location in shard.locations {
        for run in shard.tasks.of(shard.local(location)) {
            let one = &mut first[run.task as usize];
            if one.is_none_or(|(begin, ..)| run.begin < begin) {
                *one = Some((run.begin, location, run.instance));
            }
        }
    }
    for (task, first) in shard.task_instances.iter().zip(first) {
        let Some((started, location, instance)) = first else { continue };
        if task.creator.is_some() && task.creator != location && task.created != i64::MIN && task.created <= started {
            let (creator, runner) = ((task.creator, task.create), (location, instance));
            each(StartedElsewhere { creator, created: task.created, runner, started });
        }
    }
}
