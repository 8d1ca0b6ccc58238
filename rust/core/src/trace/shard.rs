//! A shard: the columns of a contiguous block of processes.

use std::ops::Range;
use std::sync::Arc;

use bitcode::{Decode, Encode};
use rustc_hash::{FxHashMap, FxHashSet};

use super::call_details::CallDetails;
use super::call_samples::{CallSample, Usage};
use super::calltree::CallTree;
use super::columns::{
    Collective, Copied, Events, Fork, Instances, IoOperation, Lock, Nonblocking, OpenRequest, Operation,
    ParameterChange, Partitions, Received, Sent, Synchronization, TaskInstance, TaskRun, TaskWait, Team, Thread,
};
use super::counters::{CounterCell, Sample};
use super::definition_index::DefinitionIndex;
use super::task_paths::TaskPaths;
use super::task_stacks::TaskStacks;
use crate::ids::{CallPathId, Ids, InstanceId, LocationId, ProcessId};
use crate::schema::Metric;

/// Rows of one column set by location: `offsets[i]..offsets[i + 1]` belong to the i-th location of the shard.
#[derive(Debug, Encode, Decode)]
pub struct Rows<T> {
    /// All rows of the shard.
    pub rows: Vec<T>,
    offsets: Vec<u32>,
}

impl<T> Default for Rows<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), offsets: vec![0] }
    }
}

impl<T> Rows<T> {
    /// Closes the range of the current location.
    pub fn end_location(&mut self) {
        self.offsets.push(self.rows.len() as u32);
    }

    /// Adds rows of the current location, and returns where they begin and end.
    pub fn append(&mut self, rows: impl Iterator<Item = T>) -> (u32, u32) {
        let begin = self.rows.len() as u32;
        self.rows.extend(rows);
        (begin, self.rows.len() as u32)
    }

    /// Positions of the rows of the current location, whose range is not yet closed.
    pub fn current(&self) -> Range<usize> {
        self.offsets.last().map_or(0, |&first| first as usize)..self.rows.len()
    }

    /// Positions of the rows of the i-th location of the shard.
    pub fn range(&self, i: usize) -> Range<usize> {
        self.offsets[i] as usize..self.offsets[i + 1] as usize
    }

    /// Rows of the i-th location of the shard.
    pub fn of(&self, i: usize) -> &[T] {
        &self.rows[self.range(i)]
    }
}

/// Time and visits of one call path at one location.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct ProfileCell {
    /// Call path.
    pub callpath: CallPathId,
    /// Number of Enters.
    pub visits: u64,
    /// Exclusive time, ticks.
    pub time: i64,
}

/// Properties of a location besides its rows.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct LocationSpan {
    /// Time of the first event, ticks; `i64::MAX` without events.
    pub first: i64,
    /// Time of the last event, ticks; `i64::MIN` without events.
    pub last: i64,
    /// Instance of the first `MPI_Init`, or none.
    pub init: InstanceId,
    /// Instance of the first `MPI_Finalize`, or none.
    pub finalize: InstanceId,
    /// Instance of the last call that shuts a library down, or none.
    pub shutdown: InstanceId,
    /// Number of events read.
    pub events: u64,
    /// Whether the event file is truncated.
    pub truncated: bool,
}

impl Default for LocationSpan {
    fn default() -> Self {
        Self {
            first: i64::MAX,
            last: i64::MIN,
            init: InstanceId::NONE,
            finalize: InstanceId::NONE,
            shutdown: InstanceId::NONE,
            events: 0,
            truncated: false,
        }
    }
}

/// A barrier in which a thread runs tasks.
#[derive(Clone, Debug, Encode, Decode)]
pub(crate) struct BusyBarrier {
    /// When the last thread arrived, at most the Leave, ticks.
    pub latest: i64,
    /// When the barrier ended: at its first Leave.
    pub end: i64,
    /// When no task ran before the last thread arrived: begins and ends.
    pub idle: Vec<(i64, i64)>,
}

/// A contiguous block of processes with all their locations: one set of columns.
#[derive(Debug, Default, Encode, Decode)]
pub struct Shard {
    /// Its locations.
    pub locations: Ids<LocationId>,
    /// Its processes.
    pub processes: Ids<ProcessId>,
    /// Enter and Leave of all locations.
    pub events: Events,
    /// End of each location's events in [`Shard::events`], with a leading 0.
    pub event_offsets: Vec<u32>,
    /// Region instances that communicate or synchronize.
    pub instances: Instances,
    /// End of each location's instances in [`Shard::instances`], with a leading 0.
    pub instance_offsets: Vec<u32>,
    /// Messages sent.
    pub sends: Rows<Sent>,
    /// Messages received.
    pub receives: Rows<Received>,
    /// Rows of receives whose message a matched probe had found, each with the region instance of the probe.
    pub probes: Vec<(u32, InstanceId)>,
    /// Partitions of messages that calls made ready, by the row of the send and in the order of their Enters.
    pub ready: Vec<Partitions>,
    /// Partitions that calls have found to have arrived, by the row of the receive.
    pub arrived: Vec<Partitions>,
    /// Requests of sends and receives that were cancelled, and of receives that were never completed.
    pub requests: Rows<OpenRequest>,
    /// Collective operations.
    pub collectives: Rows<Collective>,
    /// Non-blocking collective operations that were completed.
    pub nonblocking: Rows<Nonblocking>,
    /// One-sided operations.
    pub operations: Rows<Operation>,
    /// Details of the calls of processes that use devices.
    pub(crate) call_details: CallDetails,
    /// Copies on streams of devices, by region instance.
    pub copies: Vec<Copied>,
    /// Regions of streams that go on after one that crosses them: the instance before, and the one after that.
    pub continued: FxHashMap<InstanceId, InstanceId>,
    /// Regions of streams whose end is unknown.
    pub left_out: FxHashSet<InstanceId>,
    /// Synchronizations of one-sided communication; dropped once the epochs are known.
    pub synchronizations: Rows<Synchronization>,
    /// Forks of thread teams.
    pub forks: Rows<Fork>,
    /// Parts in thread teams.
    pub teams: Rows<Team>,
    /// Region instances of barriers between threads.
    pub barriers: Rows<InstanceId>,
    /// Taskwait and taskgroup constructs.
    pub taskwaits: Rows<TaskWait>,
    /// Locks between threads.
    pub locks: Rows<Lock>,
    /// Events of threads that are created one by one.
    pub threads: Rows<Thread>,
    /// The calls of tasks that continue elsewhere, if there are any.
    pub(crate) task_stacks: Option<Arc<TaskStacks>>,
    /// The call paths below which tasks are, where some began before these were known.
    pub(crate) task_paths: Option<Arc<TaskPaths>>,
    /// Explicit tasks that ran, in order of time.
    pub tasks: Rows<TaskRun>,
    /// The barriers in which threads run tasks, by call; set when the teams are known.
    pub(crate) arrivals: FxHashMap<InstanceId, BusyBarrier>,
    /// The parts of waits between tasks that their threads run, by call and metric; set with the arrivals.
    pub(crate) wait_parts: FxHashMap<(InstanceId, Metric), Vec<(i64, i64)>>,
    /// The explicit tasks of all processes.
    pub task_instances: Vec<TaskInstance>,
    /// Uses of files.
    pub io: Rows<IoOperation>,
    /// Changes of the program's parameters.
    pub parameters: Rows<ParameterChange>,
    /// Samples of the call path.
    pub call_samples: Rows<CallSample>,
    /// What was used of the system before some of them.
    pub usages: Vec<Usage>,
    /// Call-path profile.
    pub profile: Rows<ProfileCell>,
    /// Totals of counters by call path and location.
    pub counters: Vec<CounterCell>,
    /// Samples of counters whose scope is not the recording location, by that location and time.
    pub samples: Vec<Sample>,
    /// For each counter, whether its value ever decreased at a location of the shard.
    pub has_fallen: Vec<bool>,
    /// One entry per location.
    pub spans: Vec<LocationSpan>,
    /// The shard's own call tree, until it is merged.
    pub tree: CallTree,
}

impl Shard {
    /// Number of rows of the frequent kinds.
    pub fn rows(&self) -> [usize; 6] {
        [
            self.instances.enter.len(),
            self.sends.rows.len(),
            self.receives.rows.len(),
            self.collectives.rows.len(),
            self.operations.rows.len(),
            self.synchronizations.rows.len(),
        ]
    }

    /// Reserves capacity for more rows of these kinds.
    pub fn reserve(&mut self, [instances, sends, receives, collectives, operations, synchronizations]: [usize; 6]) {
        self.instances.enter.reserve_exact(instances);
        self.instances.leave.reserve_exact(instances);
        self.sends.rows.reserve_exact(sends);
        self.receives.rows.reserve_exact(receives);
        self.collectives.rows.reserve_exact(collectives);
        self.operations.rows.reserve_exact(operations);
        self.synchronizations.rows.reserve_exact(synchronizations);
    }

    /// Releases unused capacity.
    pub fn shrink(&mut self) {
        self.events.shrink();
        self.instances.enter.shrink_to_fit();
        self.instances.leave.shrink_to_fit();
        self.sends.rows.shrink_to_fit();
        self.receives.rows.shrink_to_fit();
        self.collectives.rows.shrink_to_fit();
        self.operations.rows.shrink_to_fit();
        self.synchronizations.rows.shrink_to_fit();
    }

    /// Time of the Enter of an instance, ticks.
    #[inline]
    pub fn enter(&self, instance: InstanceId) -> i64 {
        self.events.time[self.instances.enter[instance] as usize]
    }

    /// Time of the Leave of an instance, ticks.
    #[inline]
    pub fn leave(&self, instance: InstanceId) -> i64 {
        self.events.time[self.instances.leave[instance] as usize]
    }

    /// Call path of an instance.
    #[inline]
    pub fn callpath(&self, instance: InstanceId) -> CallPathId {
        self.events.callpath(self.instances.enter[instance])
    }

    /// The shard's i-th location.
    pub fn location(&self, i: usize) -> LocationId {
        LocationId::at(self.locations.start.index() + i)
    }

    /// The master threads of its processes. A process of a damaged recording may have no thread at all.
    pub fn masters(&self, definitions: &DefinitionIndex) -> impl Iterator<Item = LocationId> {
        let locations = self.processes.map(|process| definitions.processes[process].locations);
        locations.filter(|locations| locations.len() > 0).map(|locations| locations.start)
    }

    /// Position of a location within the shard.
    #[inline]
    pub fn local(&self, location: LocationId) -> usize {
        location.index() - self.locations.start.index()
    }

    /// Positions within the shard of a range of locations.
    pub fn local_locations(&self, locations: Ids<LocationId>) -> Range<usize> {
        self.local(locations.start)..self.local(locations.end)
    }

    /// The location that a row belongs to.
    pub fn location_of<T>(&self, rows: &Rows<T>, row: u32) -> LocationId {
        self.location(rows.offsets.partition_point(|&offset| offset <= row) - 1)
    }

    /// The location that a region instance belongs to.
    pub fn location_of_instance(&self, instance: InstanceId) -> LocationId {
        self.location(self.instance_offsets.partition_point(|&offset| offset <= instance.number()) - 1)
    }

    /// The location of a region instance that is probably one of `likely`: a thread may complete what another began.
    #[inline]
    pub fn owner(&self, likely: LocationId, instance: InstanceId) -> LocationId {
        if self.instances_of(likely).range().contains(&instance.index()) {
            likely
        } else {
            self.location_of_instance(instance)
        }
    }

    /// The calls that serve the message of a send.
    pub fn calls_of_send(&self, row: usize) -> impl Iterator<Item = InstanceId> {
        let send = &self.sends.rows[row];
        distinct([send.instance, send.complete])
            .chain(Partitions::of(&self.ready, row).iter().map(|ready| ready.instance))
    }

    /// The calls that serve the message of a receive.
    pub fn calls_of_receive(&self, row: usize) -> impl Iterator<Item = InstanceId> {
        let receive = &self.receives.rows[row];
        let found = Partitions::of(&self.arrived, row).iter().map(|found| found.instance);
        distinct([receive.instance, receive.request]).chain(found)
    }

    /// Region instances of a location.
    pub fn instances_of(&self, location: LocationId) -> Ids<InstanceId> {
        let i = self.local(location);
        let [start, end] = [i, i + 1].map(|i| InstanceId::new(self.instance_offsets[i]));
        Ids { start, end }
    }

    /// Positions of the events of a location.
    pub fn events_of(&self, location: LocationId) -> Range<usize> {
        let i = self.local(location);
        self.event_offsets[i] as usize..self.event_offsets[i + 1] as usize
    }

    /// Whether a location has region instances.
    pub fn has_calls(&self, location: LocationId) -> bool {
        let i = self.local(location);
        self.event_offsets[i] < self.event_offsets[i + 1]
    }

    /// What runs on the shard's i-th location in a time window: the innermost call path ([`CallPathId::NONE`]
    /// outside of all regions), begin and end, without gaps.
    pub fn stretches(
        &self,
        tree: &CallTree,
        i: usize,
        window: Range<i64>,
    ) -> impl Iterator<Item = (CallPathId, i64, i64)> {
        let all = self.event_offsets[i]..self.event_offsets[i + 1];
        let times = &self.events.time[all.start as usize..all.end as usize];
        let first = all.start + times.partition_point(|&time| time <= window.start) as u32;
        let mut depth = self.depth_before(all.clone(), first);
        let mut running = if first == all.start { CallPathId::NONE } else { self.runs_after(tree, first - 1, depth) };
        let mut since = window.start;
        let mut events = first..all.end;
        std::iter::from_fn(move || {
            while since < window.end {
                let (ran, begin) = (running, since);
                let Some(event) = events.next() else {
                    since = window.end;
                    return Some((ran, begin, since));
                };
                depth = if self.events.is_leave(event) { depth.saturating_sub(1) } else { depth + 1 };
                running = self.runs_after(tree, event, depth);
                since = since.max(self.events.time[event as usize].min(window.end));
                if since > begin {
                    return Some((ran, begin, since));
                }
            }
            None
        })
    }

    /// The number of calls that are open before one of a location's events.
    fn depth_before(&self, events: Range<u32>, event: u32) -> u32 {
        let leaves = |part: Range<u32>| part.filter(|&event| self.events.is_leave(event)).count() as u32;
        let (before, after) = (event - events.start, events.end - event);
        // All calls end within the events of their location, so those that are open can be counted from both ends.
        if before <= after {
            before.saturating_sub(2 * leaves(events.start..event))
        } else {
            (2 * leaves(event..events.end)).saturating_sub(after)
        }
    }

    /// What runs after an event, given the number of calls that are open then.
    pub(crate) fn runs_after(&self, tree: &CallTree, event: u32, depth: u32) -> CallPathId {
        let callpath = self.events.callpath(event);
        match (self.events.is_leave(event), depth) {
            (false, _) => callpath,
            // A thread of a team spends no time in the call that forked it.
            (true, 0) => CallPathId::NONE,
            (true, _) => self.events.running_after(tree, event),
        }
    }

    /// Processes with a truncated event file.
    pub fn truncated(&self, definitions: &DefinitionIndex) -> impl Iterator<Item = ProcessId> {
        self.processes.filter(|&process| {
            let locations = self.local_locations(definitions.processes[process].locations);
            self.spans[locations].iter().any(|span| span.truncated)
        })
    }

    /// Renumbers all call paths after the trees of the shards have been merged.
    pub fn renumber(&mut self, callpaths: &[CallPathId]) {
        if callpaths.iter().enumerate().any(|(i, &callpath)| CallPathId::at(i) != callpath) {
            self.events.renumber(callpaths);
            for cell in &mut self.profile.rows {
                cell.callpath = callpaths[cell.callpath];
            }
            for cell in self.counters.iter_mut().filter(|cell| cell.callpath.is_some()) {
                cell.callpath = callpaths[cell.callpath];
            }
            for fork in &mut self.forks.rows {
                if fork.callpath.is_some() {
                    fork.callpath = callpaths[fork.callpath];
                }
            }
            for task in self.task_instances.iter_mut().filter(|task| task.callpath.is_some()) {
                task.callpath = callpaths[task.callpath];
            }
        }
        self.tree = CallTree::default();
    }
}

/// Distinct calls; the second one may be missing.
fn distinct([call, other]: [InstanceId; 2]) -> impl Iterator<Item = InstanceId> {
    [call, if other == call { InstanceId::NONE } else { other }].into_iter().filter(|call| call.is_some())
}
