//! Open regions, and the sums of call paths.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use rustc_hash::FxHashMap;

use crate::ids::{CallPathId, InstanceId, RegionKey};
use crate::trace::NONE;
use crate::trace::call_samples::UsageSoFar;
use crate::trace::task_stacks::TaskId;

/// A region that has been entered and not left.
#[derive(Clone, Copy)]
pub(super) struct Frame {
    pub(super) callpath: CallPathId,
    /// Key of the region.
    pub(super) key: RegionKey,
    /// Position of the Enter.
    pub(super) enter: u32,
    /// The region instance, once a record needed it.
    pub(super) instance: InstanceId,
}

/// The frame below the outermost region.
pub(super) const OUTSIDE: Frame =
    Frame { callpath: CallPathId::NONE, key: RegionKey::NONE, enter: NONE, instance: InstanceId::NONE };

/// Visits and time of a call path at the current location.
#[derive(Clone, Copy)]
pub(super) struct CallPathTotals {
    pub(super) visits: u64,
    /// Exclusive time, ticks.
    pub(super) time: i64,
    /// Whether each instance of the region matters, even without records inside.
    pub(super) remembered: bool,
}

/// A call of a function that was already on the call path, which counts as part of that call.
pub(super) struct Folded {
    /// Key of the region.
    pub(super) key: RegionKey,
    /// Number of regions around the call that it is part of.
    pub(super) depth: usize,
    /// The regions in between, the outermost first: they continue when the call returns.
    pub(super) between: Vec<RegionKey>,
}

/// What is open on a stream.
pub(super) struct Stream {
    /// The times that its records can have.
    pub(super) times: RangeInclusive<i64>,
    /// Regions that were entered at another time, and are left out.
    pub(super) left_out: Vec<u32>,
    /// Number of records that were left out.
    pub(super) skipped: u64,
    /// Copies by matching id; several may have the same.
    pub(super) copies: FxHashMap<u64, VecDeque<RegionKey>>,
    /// The call paths from which work was launched that began while other work ran.
    pub(super) roots: FxHashMap<RegionKey, CallPathId>,
    /// The first instance of what was left and entered again.
    pub(super) first: FxHashMap<InstanceId, InstanceId>,
}

impl Stream {
    pub(super) fn new(times: RangeInclusive<i64>) -> Self {
        Self {
            times,
            left_out: Vec::new(),
            skipped: 0,
            copies: FxHashMap::default(),
            roots: FxHashMap::default(),
            first: FxHashMap::default(),
        }
    }
}

/// The explicit tasks of a location.
#[derive(Default)]
pub(super) struct Tasks {
    /// The one that runs.
    pub(super) running: Option<RunningTask>,
    /// Those that were suspended with open calls.
    pub(super) suspended: FxHashMap<TaskId, SuspendedTask>,
    /// Number of parts of tasks that have run.
    pub(super) parts: u32,
    /// For each team of the thread, the task that ran when it began the team: its host, which goes on whenever no task
    /// of the team runs.
    pub(super) hosts: Vec<Option<RunningTask>>,
}

impl Tasks {
    /// The task that hosts the teams of the thread.
    pub(super) fn host(&mut self) -> Option<&mut RunningTask> {
        self.hosts.iter_mut().flatten().next_back()
    }
}

/// An explicit task that was suspended with open calls.
#[derive(Clone, Copy)]
pub(super) struct SuspendedTask {
    /// Number of regions around its calls, and with them.
    pub(super) depth: usize,
    pub(super) top: usize,
    /// Its region instance.
    pub(super) instance: InstanceId,
}

/// An explicit task that runs.
pub(super) struct RunningTask {
    pub(super) task: TaskId,
    /// Its row among the tasks of the shard.
    pub(super) number: u32,
    /// Its region instance, once it is entered.
    pub(super) instance: InstanceId,
    /// Since when, ticks.
    pub(super) begin: i64,
    /// Number of regions around its calls.
    pub(super) depth: usize,
    /// Position of the next Enter or Leave then.
    pub(super) first: u32,
    /// Whether it was not suspended on this thread before.
    pub(super) is_new: bool,
    /// The call path below which its calls are, if it is known.
    pub(super) path: Option<CallPathId>,
}

/// Calling contexts of a location.
pub(super) struct Contexts {
    /// The context after the last event.
    pub(super) current: u32,
    /// Numbers of regions around the open ones that are callers, the innermost last.
    pub(super) callers: Vec<usize>,
    /// Buffer for the regions of a context.
    pub(super) path: Vec<RegionKey>,
    pub(super) usage: UsageSoFar,
}

impl Default for Contexts {
    fn default() -> Self {
        Self { current: NONE, callers: Vec::new(), path: Vec::new(), usage: UsageSoFar::default() }
    }
}
