//! How much parallelism the tasks of a run have: their sizes by construct, and work and span by parallel region.
//!
//! *Work* is the time of all threads in a region without waits and without the calls in which they run tasks; *span* is the
//! longest chain of it that cannot run in parallel. One pass in the order of time: a task begins with the span of the one
//! that creates it, what runs adds to its own, the end of a taskwait construct takes the largest of the children, and a
//! barrier the largest of all.
//!
//! *Source*: specification.md#tasks.

use std::cmp::Reverse;
use std::ops::Range;

use bitcode::{Decode, Encode};
use rustc_hash::FxHashMap;

use crate::Result;
use crate::analysis::Analysis;
use crate::ids::{CallPathId, LocationId, ProcessId};
use crate::schema::Pattern;
use crate::trace::Shard;
use crate::waits::interval;
use crate::waits::tasks::{Around, TaskLife, TeamTasks};
use crate::waits::teams::{Part, teams};

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
    /// Time to create them, ticks.
    pub creation: i64,
    /// That of the median task.
    pub median_creation: i64,
    /// Time from when they could run to their start, of the median one, ticks.
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
}

/// What is measured of a task.
struct Measured {
    execution: i64,
    creation: i64,
    delay: i64,
    is_elsewhere: bool,
    migrations: u64,
}

impl Analysis {
    /// The tasks by construct, those that run longest in all first, and the regions that they run in. Collective.
    pub fn tasks(&self) -> Result<(Vec<TaskUse>, Vec<TaskRegion>)> {
        let mut constructs: FxHashMap<(ProcessId, CallPathId), Vec<Measured>> = FxHashMap::default();
        let mut regions: FxHashMap<(ProcessId, CallPathId), TaskRegion> = FxHashMap::default();
        for shard in &self.trace.shards {
            let waits = waits(self, shard);
            for process in shard.processes {
                let all = teams(shard, &self.trace.definitions.processes[process]);
                for parts in all.chunk_by(|a, b| a.team.fork == b.team.fork) {
                    let Some(tasks) = TeamTasks::new(shard, parts) else { continue };
                    for task in &tasks.tasks {
                        let instance = tasks.runs[task.runs.start].run.instance;
                        if instance.is_some() {
                            let of_construct = constructs.entry((process, shard.callpath(instance))).or_default();
                            of_construct.push(measure(shard, &tasks, task));
                        }
                    }
                    region(shard, (process, parts), &tasks, &waits, &mut regions);
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

fn measure(shard: &Shard, tasks: &TeamTasks, task: &TaskLife) -> Measured {
    let runs = &tasks.runs[task.runs.clone()];
    let create = task.instance.create;
    Measured {
        execution: runs.iter().map(|run| run.run.end - run.run.begin).sum(),
        creation: if create.is_some() { shard.leave(create) - shard.enter(create) } else { 0 },
        delay: tasks.start(task) - task.ready,
        is_elsewhere: task.instance.creator.is_some() && task.instance.creator != runs[0].location,
        migrations: runs.windows(2).filter(|pair| pair[0].location != pair[1].location).count() as u64,
    }
}

impl TaskUse {
    fn new((process, callpath): (ProcessId, CallPathId), all: &[Measured]) -> Self {
        let median = |value: fn(&Measured) -> i64| {
            let mut values: Vec<i64> = all.iter().map(value).collect();
            let middle = (values.len() - 1) / 2;
            *values.select_nth_unstable(middle).1
        };
        let executions = || all.iter().map(|one| one.execution);
        Self {
            process,
            callpath,
            tasks: all.len() as u64,
            elsewhere: all.iter().filter(|one| one.is_elsewhere).count() as u64,
            migrations: all.iter().map(|one| one.migrations).sum(),
            execution: executions().sum(),
            median_execution: median(|one| one.execution),
            extremes: (executions().min().unwrap_or(0), executions().max().unwrap_or(0)),
            creation: all.iter().map(|one| one.creation).sum(),
            median_creation: median(|one| one.creation),
            median_delay: median(|one| one.delay),
        }
    }
}

/// When each location waits, in order and without overlaps.
type Waits = FxHashMap<LocationId, Vec<Range<i64>>>;

fn waits(analysis: &Analysis, shard: &Shard) -> Waits {
    let mut waits = Waits::default();
    if shard.task_instances.is_empty() {
        return waits;
    }
    let (_, all) = analysis.waits.of(analysis.trace.position(shard.location(0)));
    for (wait, begin) in all.iter().zip(interval::begins(&analysis.trace, all)) {
        if Pattern::class_of(wait.kind).is_some() {
            waits.entry(wait.location).or_default().push(begin..begin + wait.waiting);
        }
    }
    #[expect(clippy::iter_over_hash_type, reason = "each is put in order for itself")]
    for of_location in waits.values_mut() {
        of_location.sort_by_key(|wait| wait.start);
        let mut last = i64::MIN;
        for wait in of_location.iter_mut() {
            wait.start = wait.start.max(last);
            last = last.max(wait.end);
        }
        of_location.retain(|wait| !wait.is_empty());
    }
    waits
}

/// Adds the work and the span of an instance of a parallel region.
fn region(
    shard: &Shard,
    (process, parts): (ProcessId, &[Part]),
    tasks: &TeamTasks,
    waits: &Waits,
    regions: &mut FxHashMap<(ProcessId, CallPathId), TaskRegion>,
) {
    let members = || parts.iter().filter(|part| part.team.instance.is_some());
    let Some(callpath) = members().map(|part| shard.callpath(part.team.instance)).next() else { return };
    let begin = members().map(|part| shard.enter(part.team.instance)).min().unwrap_or(0);
    let end = members().map(|part| shard.leave(part.team.instance)).max().unwrap_or(0);
    let (work, span) = Strands::new(tasks, waits).follow(shard, parts);
    let region = regions.entry((process, callpath)).or_insert(TaskRegion {
        process,
        callpath,
        instances: 0,
        threads: 0,
        elapsed: 0,
        work: 0,
        span: 0,
    });
    region.instances += 1;
    region.threads = region.threads.max(members().count() as u64);
    region.elapsed += end - begin;
    region.work += work;
    region.span += span;
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

/// The strands of a team: of tasks, explicit and implicit.
struct Strands<'a> {
    tasks: &'a TeamTasks,
    waits: &'a Waits,
    /// What runs on each thread, and since when.
    running: FxHashMap<LocationId, (Around, i64)>,
    spans: FxHashMap<Around, i64>,
    work: i64,
    position: FxHashMap<u32, usize>,
}

impl<'a> Strands<'a> {
    fn new(tasks: &'a TeamTasks, waits: &'a Waits) -> Self {
        let position = tasks.tasks.iter().enumerate().map(|(i, task)| (task.row, i)).collect();
        Self { tasks, waits, running: FxHashMap::default(), spans: FxHashMap::default(), work: 0, position }
    }

    /// Adds what has run on a thread since the last step, and lets something else run.
    fn switch(&mut self, location: LocationId, time: i64, next: Option<Around>) {
        if let Some((strand, since)) = self.running.remove(&location) {
            let waits = self.waits.get(&location).map_or(&[][..], Vec::as_slice);
            let first = waits.partition_point(|wait| wait.end <= since);
            let inside = waits[first..].iter().take_while(|wait| wait.start < time);
            let waited: i64 = inside.map(|wait| wait.end.min(time) - wait.start.max(since)).sum();
            let ticks = time - since - waited;
            self.work += ticks;
            *self.spans.entry(strand).or_default() += ticks;
        }
        if let Some(next) = next {
            self.running.insert(location, (next, time));
        }
    }

    /// The work and the span of a team.
    fn follow(mut self, shard: &Shard, parts: &[Part]) -> (i64, i64) {
        let tasks = self.tasks;
        let mut steps: Vec<(i64, Step)> = Vec::new();
        for part in parts.iter().filter(|part| part.team.instance.is_some()) {
            let instance = part.team.instance;
            steps.push((shard.enter(instance), Step::Begins(part.location)));
            steps.push((shard.leave(instance), Step::Ends(part.location)));
        }
        for (i, call) in tasks.calls.iter().enumerate() {
            let (enter, leave) = (shard.enter(call.instance), shard.leave(call.instance));
            steps.extend([(enter, Step::CallBegins(i)), (leave, Step::CallEnds(i))]);
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
            self.step(time, step, &mut met);
        }
        (self.work, self.spans.values().copied().max().unwrap_or(0))
    }

    fn step(&mut self, time: i64, step: Step, met: &mut Vec<usize>) {
        let tasks = self.tasks;
        match step {
            Step::Begins(location) => self.switch(location, time, Some(Around::Implicit(location))),
            Step::Ends(location) => self.switch(location, time, None),
            Step::Creates(i) => {
                let around = tasks.tasks[i].around();
                let location = tasks.tasks[i].instance.creator;
                let running = self.running.get(&location).map(|&(running, _)| running);
                self.switch(location, time, running);
                let span = self.spans.get(&around).copied().unwrap_or(0);
                self.spans.insert(Around::Task(tasks.tasks[i].row), span);
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
                match call.barrier {
                    Some(k) if met.contains(&k) => {}
                    Some(k) => {
                        met.push(k);
                        let most = self.spans.values().copied().max().unwrap_or(0);
                        self.spans.retain(|strand, _| matches!(strand, Around::Implicit(_)));
                        self.spans.values_mut().for_each(|span| *span = most);
                    }
                    None => {
                        let children = tasks.children.get(&call.around).map_or(&[][..], Vec::as_slice);
                        let ended = |&&i: &&usize| tasks.end(&tasks.tasks[i]) <= time;
                        let span = |&i: &usize| self.spans.get(&Around::Task(tasks.tasks[i].row)).copied();
                        let most = children.iter().filter(ended).filter_map(span).max().unwrap_or(0);
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
