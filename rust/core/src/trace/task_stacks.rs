//! Calls of tasks that are suspended on one thread and continue on another, or between those of other tasks.
//!
//! ```text
//!  thread 0  [ barrier  [ task [ f ......... ]       suspended in f: both calls end here
//!  thread 1  [ barrier               [ f ] task ]    resumed: both calls continue here
//! ```
//!
//! A thread's records only tell which calls are left. To know which calls a task continues with, its parts on all
//! threads of the process are put together in the order of time.

use bitcode::{Decode, Encode};
use rustc_hash::{FxHashMap, FxHashSet};
use whywait_otf2::{Attributes, Event, EventSink};

use super::regions::Regions;
use crate::ids::{LocationId, RegionKey};

/// A task: its team, its creating thread, and its number. Number 0 is a thread's implicit task.
pub type TaskId = (u32, u32, u64);

/// What runs after the end of a task, until the next switch: nothing, or the thread's own calls.
pub const NO_TASK: TaskId = (u32::MAX - 1, 0, 0);

/// The task that a record switches to.
pub fn switched_to(record: &Event<'_>) -> Option<TaskId> {
    match *record {
        Event::ThreadTaskSwitch { thread_team, creating_thread, generation_number } => {
            Some((thread_team, creating_thread, generation_number.into()))
        }
        Event::OmpTaskSwitch { task_id } => Some((u32::MAX, u32::MAX, task_id)),
        Event::ThreadTaskComplete { .. } | Event::OmpTaskComplete { .. } => Some(NO_TASK),
        _ => None,
    }
}

/// The task that a record creates.
pub fn created(record: &Event<'_>) -> Option<TaskId> {
    match *record {
        Event::ThreadTaskCreate { thread_team, creating_thread, generation_number } => {
            Some((thread_team, creating_thread, generation_number.into()))
        }
        Event::OmpTaskCreate { task_id } => Some((u32::MAX, u32::MAX, task_id)),
        _ => None,
    }
}

/// The calls that tasks continue with.
#[derive(Debug, Default, Encode, Decode)]
pub struct TaskStacks {
    /// Tasks whose calls do not nest in those of the threads that run them.
    pub moved: FxHashSet<TaskId>,
    /// The open calls, the outermost first, by location and number of the part of a task there.
    open: FxHashMap<(LocationId, u32), Vec<RegionKey>>,
}

impl TaskStacks {
    /// Puts the parts of tasks together. Of tasks that were only seen to have open calls when a location ended, those
    /// count that went on elsewhere; of others it is `certain` that their calls do not nest.
    pub fn new(tasks: &FxHashMap<TaskId, bool>, mut parts: Vec<TaskPart>) -> Self {
        parts.retain(|part| tasks.contains_key(&part.task));
        parts.sort_by_key(|part| (part.task, part.begin));
        let mut moved = FxHashSet::default();
        let mut open = FxHashMap::default();
        for of_task in parts.chunk_by(|a, b| a.task == b.task) {
            let is_elsewhere = of_task.iter().any(|part| part.location != of_task[0].location);
            if !is_elsewhere && tasks.get(&of_task[0].task) != Some(&true) {
                continue;
            }
            moved.insert(of_task[0].task);
            let mut stack: Vec<RegionKey> = Vec::new();
            for part in of_task {
                if !stack.is_empty() {
                    open.insert((part.location, part.number), stack.clone());
                }
                stack.truncate(stack.len().saturating_sub(part.left));
                stack.extend(&part.entered);
            }
        }
        Self { moved, open }
    }

    /// The calls that a task continues with at the n-th part of a task on a location.
    pub fn open(&self, location: LocationId, number: u32) -> &[RegionKey] {
        self.open.get(&(location, number)).map_or(&[], Vec::as_slice)
    }
}

/// What a task does on a thread between two switches.
#[derive(Debug)]
pub struct TaskPart {
    task: TaskId,
    location: LocationId,
    number: u32,
    begin: i64,
    /// Number of calls left that were entered in earlier parts.
    left: usize,
    /// Calls that are still open at its end, the outermost first.
    entered: Vec<RegionKey>,
}

/// Collects the parts of tasks on a location.
pub struct TaskParts<'a> {
    regions: &'a Regions,
    location: LocationId,
    number: u32,
    running: Option<TaskPart>,
    /// For each team of the thread, what ran when it began.
    hosts: Vec<Option<TaskPart>>,
    parts: Vec<TaskPart>,
}

impl<'a> TaskParts<'a> {
    /// Nothing yet.
    pub fn new(regions: &'a Regions, location: LocationId) -> Self {
        Self { regions, location, number: 0, running: None, hosts: Vec::new(), parts: Vec::new() }
    }

    /// What was found.
    pub fn finish(mut self) -> Vec<TaskPart> {
        self.parts.extend(self.running.into_iter().chain(self.hosts.into_iter().flatten()));
        self.parts
    }
}

impl EventSink for TaskParts<'_> {
    fn enter(&mut self, _: i64, region: u32) {
        if let Some(part) = &mut self.running {
            part.entered.push(self.regions.key(region));
        }
    }

    fn leave(&mut self, _: i64, _: u32) {
        if let Some(part) = &mut self.running
            && part.entered.pop().is_none()
        {
            part.left += 1;
        }
    }

    fn record(&mut self, time: i64, record: &Event<'_>, _: &Attributes<'_>) {
        match record {
            Event::ThreadTeamBegin { .. } => self.hosts.push(self.running.take()),
            Event::ThreadTeamEnd { .. } => {
                if let Some(host) = self.hosts.pop() {
                    self.parts.extend(std::mem::replace(&mut self.running, host));
                }
            }
            _ => {}
        }
        if let Some(task) = switched_to(record) {
            self.parts.extend(self.running.take());
            if task.2 != 0 {
                let (location, number) = (self.location, self.number);
                self.running = Some(TaskPart { task, location, number, begin: time, left: 0, entered: Vec::new() });
                self.number += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_continues_with_what_it_had_open() {
        let key = RegionKey::new;
        let part = |location, number, begin, left, entered: &[u32]| TaskPart {
            task: (0, 0, 7),
            location: LocationId::new(location),
            number,
            begin,
            left,
            entered: entered.iter().map(|&region| key(region)).collect(),
        };
        let parts = vec![part(1, 0, 5, 1, &[30]), part(0, 0, 1, 0, &[10, 20]), part(0, 1, 9, 2, &[])];
        let stacks = TaskStacks::new(&[((0, 0, 7), false)].into_iter().collect(), parts);
        assert_eq!(stacks.open(LocationId::new(0), 0), []);
        assert_eq!(stacks.open(LocationId::new(1), 0), [key(10), key(20)]);
        assert_eq!(stacks.open(LocationId::new(0), 1), [key(10), key(30)]);
    }
}
