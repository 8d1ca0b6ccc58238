//! Tasks: what threads do in the calls in which they run tasks, and which tasks they wait for.
//!
//! ```text
//!  thread 0  --[ parallel, creates f ][ barrier |= waits for f ==|]--
//!  thread 1  [ barrier |= starved =| [ f                         ]]--
//! ```
//!
//! A moment of a thread in a barrier, a taskwait or a taskgroup construct is *executing* if one of its tasks runs,
//! *scheduling* if a task is ready (all of the team in a barrier, children in a taskwait, descendants created in a
//! taskgroup), else *waiting* while a task that it awaits is incomplete: in a barrier from the arrival of the last thread,
//! in a taskgroup from the last event of its block. Before that arrival, it is *starvation* as long as the last thread
//! still creates a task.
//!
//! A task is ready from its creation, or, because dependences are not recorded, from the latest completion of a sibling at
//! which a thread was already idle although the task existed, to its start.
//!
//! *Cause*: the awaited task that completes last, and whatever the thread does to which it is bound.
//!
//! *Source*: specification.md#tasks.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::findings::Findings;
use super::interval::union;
use super::threads;
use super::wait_state::WaitState;
use crate::diagnostics::{DiagnosticKind, Diagnostics};
use crate::ids::{InstanceId, LocationId};
use crate::matching::threads::teams::{Barrier, Part, Teams, ThreadTeam, barriers_of, task_around, taskwaits_of};
use crate::severity::{Metric, Severity};
use crate::trace::columns::{TaskInstance, TaskRun, TaskWait as Construct};
use crate::trace::shard::BusyBarrier;
use crate::trace::{NONE, RegionClass, Shard, Trace};

/// A stretch in which a task runs on a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub location: LocationId,
    pub run: TaskRun,
}

/// The task that runs a call: an explicit one, by row, or the implicit one of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Around {
    Task(u32),
    Implicit(LocationId),
}

/// The life of a task.
#[derive(Clone, Debug)]
pub(crate) struct TaskLife {
    pub row: u32,
    pub instance: TaskInstance,
    /// Its runs among those of the team, in the order of time; not empty.
    pub runs: Range<usize>,
    /// From when on it could run, at most its start.
    pub ready: i64,
    /// The run that made it ready by its end; `None` if its creation did.
    pub released: Option<usize>,
    /// Whether the thread that starts it was idle since it was ready.
    pub is_awaited: bool,
}

/// A call in which a thread runs tasks.
#[derive(Clone, Debug)]
pub(crate) struct SchedulingCall {
    pub location: LocationId,
    pub instance: InstanceId,
    /// The task that it is part of.
    pub around: Around,
    /// The row of the explicit task, or none, whose runs are not those of another one.
    task: u32,
    /// When its thread runs no other task, and is in no call within it.
    pub idle: Vec<Range<i64>>,
    /// Whether another task runs in it.
    pub has_tasks: bool,
    pub kind: Scheduling,
    /// When it begins to wait: at its Enter, or at the end of its block, ticks.
    pub begin: i64,
}

/// What tasks a call waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheduling {
    /// A barrier, with its number among those of the team: all tasks of the team.
    Barrier(usize),
    /// The children that its task created before.
    TaskWait,
    /// All descendants that its task created in it.
    TaskGroup,
}

/// How a barrier of a team ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meeting {
    /// The last call.
    pub latest: (LocationId, InstanceId),
    /// When it ends: at its first Leave.
    pub end: i64,
}

/// The tasks of a team.
#[derive(Debug)]
pub(crate) struct TeamTasks {
    /// Grouped by task.
    pub runs: Vec<Run>,
    pub tasks: Vec<TaskLife>,
    pub calls: Vec<SchedulingCall>,
    /// Positions of the tasks, by the one that created them in the order of creation, and which of them each has created.
    by_parent: Vec<usize>,
    children: FxHashMap<Around, Range<usize>>,
    /// When any task is ready.
    ready: Vec<Range<i64>>,
    /// Positions of the tasks by completion.
    by_end: Vec<usize>,
    /// Positions of the calls that are barriers.
    barriers: FxHashMap<InstanceId, usize>,
    /// The barriers of the team; none if its threads do not agree on their number.
    meetings: Vec<Meeting>,
    /// When threads create tasks, in order.
    creations: Vec<(LocationId, i64)>,
}

/// A wait for a task: parts of a call.
#[derive(Clone, Debug)]
pub(crate) struct TaskWait {
    pub call: (LocationId, InstanceId),
    pub kind: Metric,
    /// Position of the awaited task that completes last.
    pub task: usize,
    /// When it waits.
    pub parts: Vec<Range<i64>>,
}

/// A barrier of a team in which tasks run, at one thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// Waiting before the last thread arrived, ticks.
    pub waiting: i64,
    /// When the last part of this waiting ends.
    pub until: i64,
}

impl TeamTasks {
    /// The tasks of a team; `None` if it has none.
    pub(crate) fn new(shard: &Shard, team: ThreadTeam) -> Option<Self> {
        if shard.task_instances.is_empty() {
            return None;
        }
        let (fork, parts) = (team.row(), team.parts);
        let mut runs: Vec<Run> = Vec::new();
        for part in parts {
            let (span, of_thread) = (span(shard, part), shard.tasks.of(shard.local(part.location)));
            let first = of_thread.partition_point(|run| run.begin < span.start);
            let inside = of_thread[first..].iter().take_while(|run| run.begin <= span.end);
            let of_team = inside.filter(|run| shard.task_instances[run.task as usize].fork == fork);
            runs.extend(of_team.map(|&run| Run { location: part.location, run }));
        }
        if runs.is_empty() {
            return None;
        }
        let calls: Vec<SchedulingCall> = parts.iter().flat_map(|part| calls(shard, part)).collect();
        let barriers = calls.iter().enumerate().filter(|(_, call)| matches!(call.kind, Scheduling::Barrier(_)));
        let barriers = barriers.map(|(i, call)| (call.instance, i)).collect();
        runs.sort_by_key(|run| (run.run.task, run.run.begin, run.location));
        let mut tasks = Vec::new();
        let mut begin = 0;
        for of_task in runs.chunk_by(|a, b| a.run.task == b.run.task) {
            let row = of_task[0].run.task;
            let instance = shard.task_instances[row as usize];
            let ready = if instance.created == i64::MIN { of_task[0].run.begin } else { instance.created };
            let end = begin + of_task.len();
            tasks.push(TaskLife { row, instance, runs: begin..end, ready, released: None, is_awaited: false });
            begin = end;
        }
        let mut by_parent: Vec<usize> = (0..tasks.len()).collect();
        by_parent.sort_by_key(|&i| (tasks[i].around(), tasks[i].instance.created, tasks[i].row));
        let mut children: FxHashMap<Around, Range<usize>> = FxHashMap::default();
        let mut begin = 0;
        for siblings in by_parent.chunk_by(|&a, &b| tasks[a].around() == tasks[b].around()) {
            children.insert(tasks[siblings[0]].around(), begin..begin + siblings.len());
            begin += siblings.len();
        }
        let mut creations: Vec<(LocationId, i64)> =
            tasks.iter().map(|task| (task.instance.creator, task.instance.created)).collect();
        creations.sort_unstable();
        let meetings = meetings(shard, team);
        let (ready, by_end) = Default::default();
        let mut found = Self { runs, tasks, calls, by_parent, children, ready, by_end, barriers, meetings, creations };
        found.find_ready();
        found.ready = union(found.tasks.iter().map(|task| task.ready..found.start(task)).collect());
        let mut by_end: Vec<usize> = (0..found.tasks.len()).collect();
        by_end.sort_by_key(|&i| (found.end(&found.tasks[i]), i));
        found.by_end = by_end;
        Some(found)
    }

    /// The tasks that a task created, in the order of creation.
    pub(crate) fn children(&self, around: Around) -> &[usize] {
        self.children.get(&around).map_or(&[], |range| &self.by_parent[range.clone()])
    }

    /// When a task starts.
    pub(crate) fn start(&self, task: &TaskLife) -> i64 {
        self.runs[task.runs.start].run.begin
    }

    /// When a task completes, or ends with its thread.
    pub(crate) fn end(&self, task: &TaskLife) -> i64 {
        self.last(task).run.end
    }

    /// The run that a task ends with.
    pub(crate) fn last(&self, task: &TaskLife) -> &Run {
        &self.runs[task.runs.end - 1]
    }

    /// Finds when tasks became ready, in one pass in the order of time.
    fn find_ready(&mut self) {
        // At equal times, who was idle before a completion counts.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        enum Change {
            Completes(usize),
            IdleEnds(usize, usize),
            Starts(usize),
            IdleBegins(usize, usize),
        }
        let mut changes: Vec<(i64, Change)> = Vec::new();
        for (i, task) in self.tasks.iter().enumerate() {
            changes.extend([(self.end(task), Change::Completes(i)), (self.start(task), Change::Starts(i))]);
        }
        for (i, call) in self.calls.iter().enumerate() {
            for (k, idle) in call.idle.iter().enumerate() {
                changes.extend([(idle.start, Change::IdleBegins(i, k)), (idle.end, Change::IdleEnds(i, k))]);
            }
        }
        changes.sort_unstable();
        // The first of each task's siblings stands for all: their last release, by position. And the last idle stretch of each
        // thread.
        let mut first = vec![0; self.tasks.len()];
        for siblings in self.by_parent.chunk_by(|&a, &b| self.tasks[a].around() == self.tasks[b].around()) {
            for &i in siblings {
                first[i] = siblings[0];
            }
        }
        let mut released = vec![(i64::MIN, 0); self.tasks.len()];
        let mut idle: FxHashMap<LocationId, Range<i64>> = FxHashMap::default();
        let mut threads = 0u32;
        for (time, change) in changes {
            match change {
                Change::IdleBegins(i, k) => {
                    threads += 1;
                    let call = &self.calls[i];
                    idle.insert(call.location, call.idle[k].clone());
                }
                Change::IdleEnds(..) => threads = threads.saturating_sub(1),
                Change::Completes(i) if threads > 0 => {
                    released[first[i]] = (time, self.tasks[i].runs.end - 1);
                }
                Change::Completes(_) => {}
                Change::Starts(i) => {
                    let task = &mut self.tasks[i];
                    let (last, run) = released[first[i]];
                    if last > task.ready {
                        (task.ready, task.released) = (last, Some(run));
                    }
                    task.ready = task.ready.min(time);
                    let thread = self.runs[task.runs.start].location;
                    let was_idle = |idle: &Range<i64>| idle.start <= task.ready && idle.end >= time;
                    task.is_awaited = idle.get(&thread).is_some_and(was_idle);
                }
            }
        }
    }

    /// How a call ends that is a barrier.
    fn meeting(&self, call: &SchedulingCall) -> Option<&Meeting> {
        let Scheduling::Barrier(number) = call.kind else { return None };
        self.meetings.get(number)
    }

    /// The tasks that a taskwait or a taskgroup construct waits for; `since` is the Enter of the taskwait construct before
    /// it in the same task.
    fn awaited(&self, shard: &Shard, call: &SchedulingCall, since: i64) -> Vec<usize> {
        let (from, to) = match call.kind {
            Scheduling::TaskGroup => (shard.enter(call.instance), shard.leave(call.instance)),
            _ => (since, shard.enter(call.instance)),
        };
        let children = self.children(call.around);
        let created = |i: usize| self.tasks[i].instance.created;
        let first = children.partition_point(|&i| created(i) < from);
        let mut awaited: Vec<usize> = children[first..].iter().copied().take_while(|&i| created(i) <= to).collect();
        if call.kind == Scheduling::TaskGroup {
            let mut next = 0;
            while let Some(&parent) = awaited.get(next) {
                awaited.extend(self.children(Around::Task(self.tasks[parent].row)));
                next += 1;
            }
        }
        awaited
    }

    /// The tasks that a taskwait or a taskgroup construct waits for and that are complete at its end; `since` as above.
    pub(crate) fn ended_by(&self, shard: &Shard, call: &SchedulingCall, since: i64) -> Vec<usize> {
        let mut awaited = self.awaited(shard, call, since);
        let leave = shard.leave(call.instance);
        awaited.retain(|&i| self.end(&self.tasks[i]) <= leave);
        awaited
    }

    /// The waits for tasks of a taskwait or a taskgroup construct.
    fn construct(&self, shard: &Shard, call: &SchedulingCall, since: i64) -> Option<TaskWait> {
        let (begin, leave) = (call.begin, shard.leave(call.instance));
        let awaited = self.awaited(shard, call, since);
        let last = awaited.iter().copied().max_by_key(|&i| (self.end(&self.tasks[i]), i))?;
        let until = self.end(&self.tasks[last]).min(leave);
        let ready = awaited.iter().map(|&i| self.tasks[i].ready..self.start(&self.tasks[i]));
        let ready = union(ready.filter(|ready| ready.end > begin).collect());
        let parts = without(&within(&call.idle, &(begin..until)), &ready);
        let kind = match call.kind {
            Scheduling::TaskGroup => Metric::OmpTaskGroupWait,
            _ => Metric::OmpTaskWaitWait,
        };
        let wait = TaskWait { call: (call.location, call.instance), kind, task: last, parts };
        (!wait.parts.is_empty()).then_some(wait)
    }

    /// The waits for tasks in barriers, from the arrival of the last thread, and in taskwait and taskgroup constructs.
    pub(crate) fn waits(&self, trace: &Trace, shard: &Shard) -> Vec<TaskWait> {
        let mut waits = Vec::new();
        let mut before: FxHashMap<Around, i64> = FxHashMap::default();
        for call in &self.calls {
            let enter = shard.enter(call.instance);
            if call.kind == Scheduling::TaskGroup {
                waits.extend(self.construct(shard, call, i64::MIN));
                continue;
            }
            if call.kind == Scheduling::TaskWait {
                let since = before.insert(call.around, enter).unwrap_or(i64::MIN);
                waits.extend(self.construct(shard, call, since));
                continue;
            }
            let Some(&Meeting { latest, end }) = self.meeting(call) else { continue };
            let count = self.by_end.partition_point(|&i| self.end(&self.tasks[i]) <= end);
            let Some(&last) = self.by_end[..count].last() else { continue };
            let until = self.end(&self.tasks[last]).min(shard.leave(call.instance));
            let waiting = shard.enter(latest.1).max(enter)..until;
            let parts = without(&within(&call.idle, &waiting), &self.ready);
            let kind = match trace.class(shard, call.instance) {
                RegionClass::ExplicitBarrier => Metric::OmpExplicitBarrierTaskWait,
                _ => Metric::OmpImplicitBarrierTaskWait,
            };
            if !parts.is_empty() {
                waits.push(TaskWait { call: (call.location, call.instance), kind, task: last, parts });
            }
        }
        waits.sort_by_key(|wait| (wait.call.0, shard.instances.enter[wait.call.1]));
        waits
    }

    /// What a thread does in a barrier in which it runs tasks, before the last thread arrives.
    pub(crate) fn arrival(&self, shard: &Shard, call: InstanceId, latest: InstanceId) -> Option<Arrival> {
        let call = self.barriers.get(&call).map(|&i| &self.calls[i]).filter(|call| call.has_tasks)?;
        let (enter, leave) = (shard.enter(call.instance), shard.leave(call.instance));
        let latest = shard.enter(latest).min(leave);
        let idle = within(&call.idle, &(enter..latest));
        let until = idle.last().map_or(enter, |last| last.end);
        Some(Arrival { waiting: length(&idle), until })
    }

    /// Time in a barrier before the last thread arrives in which no task is ready, up to the last task that it creates.
    fn starvation(&self, shard: &Shard, call: &SchedulingCall, latest: (LocationId, InstanceId)) -> Vec<Range<i64>> {
        let (enter, arrival) = (shard.enter(call.instance), shard.enter(latest.1));
        let before = &self.creations[..self.creations.partition_point(|&created| created < (latest.0, arrival))];
        let last = before.last().filter(|&&(location, _)| location == latest.0).map_or(i64::MIN, |&(_, time)| time);
        let last = last.min(shard.leave(call.instance));
        without(&within(&call.idle, &(enter..last)), &self.ready)
    }

    /// Books waits for tasks, starvation, and the numbers of tasks.
    fn book(&self, trace: &Trace, shard: &Shard, Detected { findings, arrivals, parts }: &mut Detected) {
        let mut add = |kind, call: (LocationId, InstanceId), time: &[Range<i64>], cause| {
            findings.waits.push(WaitState::new(kind, call, length(time), cause));
            parts.insert((call.1, kind), time.iter().map(|part| (part.start, part.end)).collect());
        };
        for wait in self.waits(trace, shard) {
            let last = self.last(&self.tasks[wait.task]);
            add(wait.kind, wait.call, &wait.parts, (last.location, last.run.instance));
        }
        for call in &self.calls {
            let Some(&Meeting { latest, end }) = self.meeting(call) else { continue };
            let starved = self.starvation(shard, call, latest);
            if !starved.is_empty() && latest.1 != call.instance {
                let kind = match trace.class(shard, call.instance) {
                    RegionClass::ExplicitBarrier => Metric::OmpExplicitBarrierStarvation,
                    _ => Metric::OmpImplicitBarrierStarvation,
                };
                add(kind, (call.location, call.instance), &starved, latest);
            }
            if call.has_tasks {
                let latest = shard.enter(latest.1).min(shard.leave(call.instance));
                let idle = within(&call.idle, &(shard.enter(call.instance)..latest));
                let idle = idle.into_iter().map(|idle| (idle.start, idle.end)).collect();
                arrivals.insert(call.instance, BusyBarrier { latest, end, idle });
            }
        }
        let mut count = |metric, run: &Run| {
            if run.run.instance.is_some() {
                let callpath = shard.callpath(run.run.instance);
                findings.severities.push(Severity { metric, callpath, location: run.location, value: 1 });
            }
        };
        for task in &self.tasks {
            let runs = &self.runs[task.runs.clone()];
            count(Metric::OmpTasks, &runs[0]);
            if task.instance.creator.is_some() && task.instance.creator != runs[0].location {
                count(Metric::OmpTasksElsewhere, &runs[0]);
            }
            for pair in runs.windows(2).filter(|pair| pair[0].location != pair[1].location) {
                count(Metric::OmpTaskMigrations, &pair[1]);
            }
        }
    }

    /// The threads to which a task, or before it starts its nearest ancestor that runs, is bound in a stretch of time, in
    /// order.
    pub(crate) fn owners(&self, task: usize, time: &Range<i64>) -> Vec<(LocationId, Range<i64>)> {
        let mut owners = Vec::new();
        let mut rest = vec![(Some(task), time.clone())];
        let position = |row: u32| self.tasks.binary_search_by_key(&row, |task| task.row).ok();
        while let Some((task, time)) = rest.pop() {
            let Some(task) = task.map(|i| &self.tasks[i]) else { continue };
            let (start, end) = (self.start(task), self.end(task));
            let runs = &self.runs[task.runs.clone()];
            let mut from = start;
            for run in runs {
                // Between two runs, it is bound to the thread of the next one.
                owners.push((run.location, from.max(time.start)..run.run.end.min(time.end)));
                from = run.run.end;
            }
            for time in [time.start..time.end.min(start), time.start.max(end)..time.end] {
                match task.around() {
                    _ if time.is_empty() => {}
                    Around::Implicit(location) if location.is_some() => owners.push((location, time)),
                    Around::Implicit(_) => {}
                    Around::Task(row) => rest.push((position(row), time)),
                }
            }
        }
        owners.retain(|(_, time)| !time.is_empty());
        owners.sort_by_key(|(_, time)| time.start);
        owners
    }
}

impl TaskLife {
    /// The task that created it.
    pub(crate) fn around(&self) -> Around {
        if self.instance.parent == NONE {
            Around::Implicit(self.instance.creator)
        } else {
            Around::Task(self.instance.parent)
        }
    }
}

/// What is detected in a shard.
#[derive(Default)]
pub(crate) struct Detected {
    pub findings: Findings,
    /// The barriers in which threads run tasks, by call.
    pub arrivals: FxHashMap<InstanceId, BusyBarrier>,
    /// When the threads wait for tasks or starve, by call and metric.
    pub parts: FxHashMap<(InstanceId, Metric), Vec<(i64, i64)>>,
}

/// Detects waits for tasks in a shard.
pub(crate) fn detect(trace: &Trace, shard: &Shard) -> Detected {
    let mut detected = Detected::default();
    if shard.task_instances.is_empty() {
        return detected;
    }
    for process in shard.processes {
        for team in Teams::new(shard, &trace.definitions.processes[process]).iter() {
            let Some(tasks) = TeamTasks::new(shard, team) else { continue };
            tasks.book(trace, shard, &mut detected);
        }
    }
    threads::add_severities(trace, shard, &mut detected.findings);
    note_open(shard, &mut detected.findings.diagnostics);
    detected
}

/// Notes the tasks whose creation is recorded, and whose completion is not.
fn note_open(shard: &Shard, notes: &mut Diagnostics) {
    let mut is_complete = vec![false; shard.task_instances.len()];
    for run in shard.tasks.rows.iter().filter(|run| run.completes) {
        is_complete[run.task as usize] = true;
    }
    let open = shard.task_instances.iter().zip(is_complete).filter(|(_, is_complete)| !is_complete);
    for (task, _) in open.filter(|(task, _)| task.creator.is_some()) {
        notes.add(DiagnosticKind::OpenTask, task.creator, task.created);
    }
}

/// When a thread is part of a team.
fn span(shard: &Shard, part: &Part) -> Range<i64> {
    let instance = part.team.instance;
    if instance.is_none() { i64::MIN..i64::MAX } else { shard.enter(instance)..shard.leave(instance) }
}

/// The calls of a thread in a team in which it runs tasks, in order.
fn calls(shard: &Shard, part: &Part) -> Vec<SchedulingCall> {
    let location = part.location;
    let runs = shard.tasks.of(shard.local(location));
    let barriers = barriers_of(shard, part).iter().enumerate();
    let barriers = barriers.map(|(k, &instance)| (instance, NONE, Scheduling::Barrier(k)));
    let kind = |wait: &Construct| if wait.is_group { Scheduling::TaskGroup } else { Scheduling::TaskWait };
    let constructs = taskwaits_of(shard, part).iter().map(|wait| (wait.instance, wait.task, kind(wait)));
    let all = barriers.chain(constructs);
    let mut calls: Vec<SchedulingCall> = all
        .map(|(instance, own, kind)| {
            let (enter, leave) = (shard.enter(instance), shard.leave(instance));
            // The calls of a team that a task forked are part of that task.
            let task = if own == NONE { task_around(runs, enter) } else { own };
            let first = runs.partition_point(|run| run.end <= enter);
            let mut inside = runs[first..].iter().take_while(|run| run.begin < leave);
            let around = match (kind, own) {
                (Scheduling::Barrier(_), _) if task != NONE => Around::Task(task),
                (_, NONE) => Around::Implicit(location),
                _ => Around::Task(own),
            };
            let has_tasks = inside.any(|run| run.task != task);
            SchedulingCall { location, instance, around, task, idle: Vec::new(), has_tasks, kind, begin: enter }
        })
        .collect();
    calls.sort_by_key(|call| shard.instances.enter[call.instance]);
    find_idle(shard, runs, &mut calls);
    calls
}

/// Finds when the threads of calls, sorted by Enter, run no other task in them: a task that runs in a call may be in such a
/// call itself, which has the time then. One pass over the calls and the runs of tasks.
fn find_idle(shard: &Shard, runs: &[TaskRun], calls: &mut [SchedulingCall]) {
    let mut sweep = IdleSweep { runs, next: 0, at: i64::MIN };
    // The calls that are open, and the last Leave of a call of the same task directly in each.
    let mut open: Vec<(usize, i64)> = Vec::new();
    let close = |calls: &mut [SchedulingCall], open: &mut Vec<(usize, i64)>, sweep: &mut IdleSweep| {
        let Some((i, inner)) = open.pop() else { return };
        let call = &mut calls[i];
        let leave = shard.leave(call.instance);
        sweep.advance(leave, Some(call));
        if call.kind == Scheduling::TaskGroup {
            call.begin = end_of_block(shard, call.instance, &call.idle).max(inner);
            call.idle = within(&call.idle, &(call.begin..leave));
        }
        let task = call.task;
        if let Some((outer, last)) = open.last_mut()
            && calls[*outer].task == task
        {
            *last = (*last).max(leave);
        }
    };
    for i in 0..calls.len() {
        let enter = shard.instances.enter[calls[i].instance];
        while open.last().is_some_and(|&(outer, _)| shard.instances.leave[calls[outer].instance] < enter) {
            close(calls, &mut open, &mut sweep);
        }
        let outer = open.last().map(|&(outer, _)| &mut calls[outer]);
        sweep.advance(shard.events.time[enter as usize], outer);
        open.push((i, i64::MIN));
    }
    while !open.is_empty() {
        close(calls, &mut open, &mut sweep);
    }
}

/// Divides the time of a thread into that of its innermost calls, without the runs of other tasks.
struct IdleSweep<'a> {
    runs: &'a [TaskRun],
    /// The first run that may not have ended.
    next: usize,
    at: i64,
}

impl IdleSweep<'_> {
    /// Goes on to a time; until then a call is the innermost, if there is one.
    fn advance(&mut self, to: i64, call: Option<&mut SchedulingCall>) {
        let from = self.at;
        self.at = from.max(to);
        let Some(call) = call else { return };
        let task = call.task;
        self.next += self.runs[self.next..].iter().take_while(|run| run.end <= from).count();
        let mut idle = from;
        for run in self.runs[self.next..].iter().take_while(|run| run.begin < to).filter(|run| run.task != task) {
            call.add_idle(idle..run.begin);
            idle = idle.max(run.end);
        }
        call.add_idle(idle..to);
    }
}

impl SchedulingCall {
    fn add_idle(&mut self, time: Range<i64>) {
        match self.idle.last_mut() {
            _ if time.is_empty() => {}
            Some(last) if last.end == time.start => last.end = time.end,
            _ => self.idle.push(time),
        }
    }
}

/// When the block of a taskgroup construct ends: at the last event that is not one of tasks that run in it, as nothing else
/// is recorded of it.
fn end_of_block(shard: &Shard, instance: InstanceId, idle: &[Range<i64>]) -> i64 {
    let (enter, leave) = (shard.instances.enter[instance], shard.instances.leave[instance]);
    let times = &shard.events.time[enter as usize + 1..leave as usize];
    let last = |own: &Range<i64>| {
        let before = times.partition_point(|&time| time < own.end);
        times[..before].last().copied().filter(|&time| time > own.start)
    };
    idle.iter().rev().find_map(last).unwrap_or_else(|| shard.enter(instance))
}

/// The barriers of a team.
fn meetings(shard: &Shard, team: ThreadTeam) -> Vec<Meeting> {
    let one = |barrier: Barrier| {
        let end = barrier.calls().map(|(_, call)| shard.leave(call)).min()?;
        Some(Meeting { latest: barrier.latest()?, end })
    };
    team.barriers().into_iter().flatten().filter_map(one).collect()
}

/// The parts of stretches of time, in order, that lie in a window.
pub(crate) fn within(all: &[Range<i64>], window: &Range<i64>) -> Vec<Range<i64>> {
    let first = all.partition_point(|one| one.end <= window.start);
    let inside = all[first..].iter().take_while(|one| one.start < window.end);
    let parts = inside.map(|one| one.start.max(window.start)..one.end.min(window.end));
    parts.filter(|part| !part.is_empty()).collect()
}

/// The parts of stretches of time that lie outside of others; both are in order.
pub(crate) fn without(all: &[Range<i64>], others: &[Range<i64>]) -> Vec<Range<i64>> {
    let mut rest = Vec::new();
    for one in all {
        let mut from = one.start;
        for other in within(others, one) {
            rest.push(from..other.start);
            from = other.end;
        }
        rest.push(from..one.end);
    }
    rest.retain(|part| !part.is_empty());
    rest
}

fn length(all: &[Range<i64>]) -> i64 {
    all.iter().map(|one| one.end - one.start).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_of_time_are_sets() {
        let all = union(vec![4..6, 1..3, 2..4, 8..8, 9..10]);
        assert_eq!(all, [1..6, 9..10]);
        assert_eq!(within(&all, &(5..10)), [5..6, 9..10]);
        assert_eq!(without(&[0..7, 9..12], &all), [0..1, 6..7, 10..12]);
        assert_eq!(length(&all), 6);
    }
}
