//! How much parallelism the tasks of a run have: their sizes by construct, and work and span by parallel region.
//!
//! *Work* is the time of all threads in a region without waits and without the calls in which they run tasks; *span* is the
//! longest chain of it that cannot run in parallel. One pass in the order of time: a task begins with the span of the one
//! that creates it, what runs adds to its own, the end of a taskwait construct takes the largest of the children, that
//! of a taskgroup the largest of the descendants created in it, and a barrier the largest of all. The *burdened span*
//! also counts, at each creation, what it takes to start a task of the construct (He, Leiserson, Leiserson, SPAA 2010).
//!
//! *Source*: specification.md#tasks.

use std::cmp::Reverse;
use std::ops::Range;

use bitcode::{Decode, Encode};
use rustc_hash::FxHashMap;

use super::waited::{Waits, waited, waits};
use crate::Result;
use crate::analysis::Analysis;
use crate::ids::{CallPathId, LocationId, ProcessId};
use crate::matching::threads::teams::{Part, Teams, ThreadTeam};
use crate::trace::Shard;
use crate::waits::tasks::{Around, Scheduling, TaskLife, TeamTasks};

/// The tasks of a construct in a process.
#[derive(Clone, Debug, Encode, Decode)]
pub struct TaskUse {
    /// The process.
    pub process: ProcessId,
    /// The call path of the tasks.
    pub callpath: CallPathId,
    /// Number of tasks.
    pub tasks: u64,
    /// Those that began on another thread than the one that created them.
    pub elsewhere: u64,
    /// How often a suspended task went on on another thread.
    pub migrations: u64,
    /// Time in which they ran, ticks.
    pub execution: i64,
    /// That of the median task.
    pub median_execution: i64,
    /// The shortest and the longest.
    pub extremes: (i64, i64),
    /// How many run from each power of two ticks to the next; those shorter than a tick are among the first.
    pub lengths: Vec<u64>,
    /// Time to create them, ticks.
    pub creation: i64,
    /// That of the median task.
    pub median_creation: i64,
    /// Time from when they could run to their start, of the median one of those that idle threads start, ticks: what it
    /// takes to start one. Others wait until a thread is free.
    pub median_delay: i64,
}

/// The instances of a parallel region with tasks in a process.
#[derive(Clone, Debug, Encode, Decode)]
pub struct TaskRegion {
    /// The process.
    pub process: ProcessId,
    /// The call path of the parallel region.
    pub callpath: CallPathId,
    /// Number of instances.
    pub instances: u64,
    /// The largest team.
    pub threads: u64,
    /// From the first Enter to the last Leave, summed over instances, ticks.
    pub elapsed: i64,
    /// The work, ticks.
    pub work: i64,
    /// The span, ticks.
    pub span: i64,
    /// The span if each task also takes what it takes to start one, ticks.
    pub burdened_span: i64,
}

/// What is measured of a task.
struct Measured {
    execution: i64,
    creation: i64,
    /// If an idle thread starts it.
    delay: Option<i64>,
    is_elsewhere: bool,
    migrations: u64,
}

impl Analysis {
    /// The tasks by construct, those that run longest in all first, and the regions that they run in; with a window only
    /// tasks and regions that begin in it. Collective.
    pub fn tasks(&self, window: Option<&Range<i64>>) -> Result<(Vec<TaskUse>, Vec<TaskRegion>)> {
        let counts = |begin: i64| window.is_none_or(|window| window.contains(&begin));
        let mut constructs: FxHashMap<(ProcessId, CallPathId), Vec<Measured>> = FxHashMap::default();
        let mut regions: FxHashMap<(ProcessId, CallPathId), TaskRegion> = FxHashMap::default();
        for shard in &self.trace.shards {
            if shard.task_instances.is_empty() {
                continue;
            }
            let waits = waits(self, shard);
            for process in shard.processes {
                let teams = Teams::new(shard, &self.trace.definitions.processes[process]);
                let of_teams: Vec<(ThreadTeam, TeamTasks)> =
                    teams.iter().filter_map(|team| Some((team, TeamTasks::new(shard, team)?))).collect();
                let burdens = burdens(shard, &of_teams);
                for (team, tasks) in &of_teams {
                    for task in tasks.tasks.iter().filter(|task| counts(tasks.start(task))) {
                        if let Some(callpath) = construct(shard, tasks, task) {
                            constructs.entry((process, callpath)).or_default().push(measure(shard, tasks, task));
                        }
                    }
                    if !counts(team.fork().fork) {
                        continue;
                    }
                    region(shard, (process, team.parts), (tasks, &burdens), &waits, &mut regions);
                }
            }
        }
        let constructs = constructs.into_iter().map(|(key, all)| TaskUse::new(key, &all));
        let mut constructs: Vec<TaskUse> = self.trace.exchange.gatherv(constructs)?;
        constructs.sort_by_key(|one| (Reverse(one.execution), one.process, one.callpath));
        let mut regions: Vec<TaskRegion> = self.trace.exchange.gatherv(regions.into_values())?;
        regions.sort_by_key(|one| (Reverse(one.work), one.process, one.callpath));
        Ok((constructs, regions))
    }
}

/// The construct of a task, by the call path of the task.
fn construct(shard: &Shard, tasks: &TeamTasks, task: &TaskLife) -> Option<CallPathId> {
    let instance = tasks.runs[task.runs.start].run.instance;
    instance.is_some().then(|| shard.callpath(instance))
}

/// What it takes to start a task of each construct: the median time from when one could run to its start, of those that
/// idle threads started, if there are enough of them.
fn burdens(shard: &Shard, of_teams: &[(ThreadTeam, TeamTasks)]) -> FxHashMap<CallPathId, i64> {
    const ENOUGH: usize = 5;
    let mut delays: FxHashMap<CallPathId, Vec<i64>> = FxHashMap::default();
    for (_, tasks) in of_teams {
        for task in tasks.tasks.iter().filter(|task| task.is_awaited) {
            if let Some(callpath) = construct(shard, tasks, task) {
                delays.entry(callpath).or_default().push(tasks.start(task) - task.ready);
            }
        }
    }
    let medians = delays.into_iter().filter(|(_, delays)| delays.len() >= ENOUGH).map(|(callpath, mut delays)| {
        let middle = (delays.len() - 1) / 2;
        (callpath, *delays.select_nth_unstable(middle).1)
    });
    medians.collect()
}

fn measure(shard: &Shard, tasks: &TeamTasks, task: &TaskLife) -> Measured {
    let runs = &tasks.runs[task.runs.clone()];
    let create = task.instance.create;
    Measured {
        execution: runs.iter().map(|run| run.run.end - run.run.begin).sum(),
        creation: if create.is_some() { shard.leave(create) - shard.enter(create) } else { 0 },
        delay: task.is_awaited.then(|| tasks.start(task) - task.ready),
        is_elsewhere: task.instance.creator.is_some() && task.instance.creator != runs[0].location,
        migrations: runs.windows(2).filter(|pair| pair[0].location != pair[1].location).count() as u64,
    }
}

impl TaskUse {
    fn new((process, callpath): (ProcessId, CallPathId), all: &[Measured]) -> Self {
        let median = |value: fn(&Measured) -> Option<i64>| {
            let mut values: Vec<i64> = all.iter().filter_map(value).collect();
            let middle = values.len().checked_sub(1)? / 2;
            Some(*values.select_nth_unstable(middle).1)
        };
        let executions = || all.iter().map(|one| one.execution);
        let mut lengths = Vec::new();
        for execution in executions() {
            let power = execution.max(1).ilog2() as usize;
            lengths.resize(lengths.len().max(power + 1), 0);
            lengths[power] += 1;
        }
        Self {
            process,
            callpath,
            tasks: all.len() as u64,
            elsewhere: all.iter().filter(|one| one.is_elsewhere).count() as u64,
            migrations: all.iter().map(|one| one.migrations).sum(),
            execution: executions().sum(),
            median_execution: median(|one| Some(one.execution)).unwrap_or(0),
            extremes: (executions().min().unwrap_or(0), executions().max().unwrap_or(0)),
            lengths,
            creation: all.iter().map(|one| one.creation).sum(),
            median_creation: median(|one| Some(one.creation)).unwrap_or(0),
            median_delay: median(|one| one.delay).unwrap_or(0),
        }
    }
}

/// Adds the work and the span of an instance of a parallel region.
fn region(
    shard: &Shard,
    (process, parts): (ProcessId, &[Part]),
    (tasks, burdens): (&TeamTasks, &FxHashMap<CallPathId, i64>),
    waits: &Waits,
    regions: &mut FxHashMap<(ProcessId, CallPathId), TaskRegion>,
) {
    let members = || parts.iter().filter(|part| part.team.instance.is_some());
    let Some(callpath) = members().map(|part| shard.callpath(part.team.instance)).next() else { return };
    let begin = members().map(|part| shard.enter(part.team.instance)).min().unwrap_or(0);
    let end = members().map(|part| shard.leave(part.team.instance)).max().unwrap_or(0);
    let burden = |task| construct(shard, tasks, task).and_then(|callpath| burdens.get(&callpath).copied()).unwrap_or(0);
    let burdens = tasks.tasks.iter().map(burden).collect();
    let (work, Span { ticks, burdened }) = Strands::new(tasks, waits, burdens).follow(shard, parts);
    let region = regions.entry((process, callpath)).or_insert(TaskRegion {
        process,
        callpath,
        instances: 0,
        threads: 0,
        elapsed: 0,
        work: 0,
        span: 0,
        burdened_span: 0,
    });
    region.instances += 1;
    region.threads = region.threads.max(members().count() as u64);
    region.elapsed += end - begin;
    region.work += work;
    region.span += ticks;
    region.burdened_span += burdened;
}

/// What happens in a team; at equal times, what ends comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// A run ends, and maybe its task.
    RunEnds(usize),
    /// A call in which tasks run ends.
    CallEnds(usize),
    /// The parallel region ends at a thread.
    Ends(LocationId),
    /// The parallel region begins at a thread.
    Begins(LocationId),
    /// A task is created.
    Creates(usize),
    CallBegins(usize),
    RunBegins(usize),
}

/// The longest chain up to some point, without and with the time that it takes to start tasks, ticks.
#[derive(Clone, Copy, Default)]
struct Span {
    ticks: i64,
    burdened: i64,
}

impl Span {
    fn max(self, other: Self) -> Self {
        Self { ticks: self.ticks.max(other.ticks), burdened: self.burdened.max(other.burdened) }
    }

    fn plus(self, ticks: i64, burden: i64) -> Self {
        Self { ticks: self.ticks + ticks, burdened: self.burdened + ticks + burden }
    }
}

/// The strands of a team: of tasks, explicit and implicit.
struct Strands<'a> {
    tasks: &'a TeamTasks,
    waits: &'a Waits,
    /// What runs on each thread, and since when.
    running: FxHashMap<LocationId, (Around, i64)>,
    spans: FxHashMap<Around, Span>,
    /// What it takes to start each task, ticks.
    burdens: Vec<i64>,
    work: i64,
    position: FxHashMap<u32, usize>,
    /// The Enter of the latest taskwait construct in each.
    since: FxHashMap<Around, i64>,
}

impl<'a> Strands<'a> {
    fn new(tasks: &'a TeamTasks, waits: &'a Waits, burdens: Vec<i64>) -> Self {
        let position = tasks.tasks.iter().enumerate().map(|(i, task)| (task.row, i)).collect();
        Self {
            tasks,
            waits,
            running: FxHashMap::default(),
            spans: FxHashMap::default(),
            burdens,
            work: 0,
            position,
            since: FxHashMap::default(),
        }
    }

    /// Adds what has run on a thread since the last step, and lets something else run.
    fn switch(&mut self, location: LocationId, time: i64, next: Option<Around>) {
        if let Some((strand, since)) = self.running.remove(&location) {
            let waits = self.waits.get(&location).map_or(&[][..], Vec::as_slice);
            let ticks = time - since - waited(waits, &(since..time));
            self.work += ticks;
            let span = self.spans.entry(strand).or_default();
            *span = span.plus(ticks, 0);
        }
        if let Some(next) = next {
            self.running.insert(location, (next, time));
        }
    }

    /// The work and the span of a team.
    fn follow(mut self, shard: &Shard, parts: &[Part]) -> (i64, Span) {
        let tasks = self.tasks;
        let mut steps: Vec<(i64, Step)> = Vec::new();
        for part in parts.iter().filter(|part| part.team.instance.is_some()) {
            let instance = part.team.instance;
            steps.push((shard.enter(instance), Step::Begins(part.location)));
            steps.push((shard.leave(instance), Step::Ends(part.location)));
        }
        for (i, call) in tasks.calls.iter().enumerate() {
            steps.extend([(call.begin, Step::CallBegins(i)), (shard.leave(call.instance), Step::CallEnds(i))]);
        }
        for (i, run) in tasks.runs.iter().enumerate() {
            steps.extend([(run.run.begin, Step::RunBegins(i)), (run.run.end, Step::RunEnds(i))]);
        }
        for (i, task) in tasks.tasks.iter().enumerate().filter(|(_, task)| task.instance.created != i64::MIN) {
            steps.push((task.instance.created, Step::Creates(i)));
        }
        steps.sort_unstable();
        let mut met = Vec::new();
        for (time, step) in steps {
            self.step(shard, time, step, &mut met);
        }
        (self.work, self.longest())
    }

    /// The longest chain of all strands.
    fn longest(&self) -> Span {
        self.spans.values().copied().fold(Span::default(), Span::max)
    }

    fn step(&mut self, shard: &Shard, time: i64, step: Step, met: &mut Vec<usize>) {
        let tasks = self.tasks;
        match step {
            Step::Begins(location) => self.switch(location, time, Some(Around::Implicit(location))),
            Step::Ends(location) => self.switch(location, time, None),
            Step::Creates(i) => {
                let around = tasks.tasks[i].around();
                let location = tasks.tasks[i].instance.creator;
                let running = self.running.get(&location).map(|&(running, _)| running);
                self.switch(location, time, running);
                let span = self.spans.get(&around).copied().unwrap_or_default();
                self.spans.insert(Around::Task(tasks.tasks[i].row), span.plus(0, self.burdens[i]));
            }
            Step::CallBegins(i) => self.switch(tasks.calls[i].location, time, None),
            Step::RunBegins(i) => {
                let run = &tasks.runs[i];
                self.switch(run.location, time, Some(Around::Task(run.run.task)));
            }
            Step::RunEnds(i) => {
                // What was interrupted goes on behind the call that the task runs in.
                self.switch(tasks.runs[i].location, time, None);
            }
            Step::CallEnds(i) => {
                let call = &tasks.calls[i];
                match call.kind {
                    Scheduling::Barrier(k) if met.contains(&k) => {}
                    Scheduling::Barrier(k) => {
                        met.push(k);
                        let most = self.longest();
                        self.spans.retain(|strand, _| matches!(strand, Around::Implicit(_)));
                        self.spans.values_mut().for_each(|span| *span = most);
                    }
                    Scheduling::TaskWait | Scheduling::TaskGroup => {
                        let enter = shard.enter(call.instance);
                        let is_group = call.kind == Scheduling::TaskGroup;
                        let since = if is_group { None } else { self.since.insert(call.around, enter) };
                        let ended = tasks.ended_by(shard, call, since.unwrap_or(i64::MIN));
                        let span = |&i: &usize| self.spans.get(&Around::Task(tasks.tasks[i].row)).copied();
                        let most = ended.iter().filter_map(span).fold(Span::default(), Span::max);
                        let own = self.spans.entry(call.around).or_default();
                        *own = (*own).max(most);
                    }
                }
                let is_over = |row: u32| self.position.get(&row).is_none_or(|&i| tasks.end(&tasks.tasks[i]) <= time);
                let next = match call.around {
                    Around::Task(row) if is_over(row) => None,
                    around => Some(around),
                };
                self.switch(call.location, time, next);
            }
        }
    }
}
