//! Explicit tasks: when a thread runs which, and what becomes of their calls.

use rustc_hash::FxHashMap;

use super::decoder::Decoder;
use super::frames::RunningTask;
use crate::diagnostics::DiagnosticKind;
use crate::trace::columns::TaskRun;
use crate::trace::task_stacks::{NO_TASK, TaskId};

impl Decoder<'_> {
    /// From now on another task runs: an explicit one, or the thread's implicit one, which has number 0.
    pub(super) fn switch_task(&mut self, time: i64, task: TaskId) {
        self.suspend_task(time);
        if task.2 == 0 && task != NO_TASK {
            // The thread itself goes on in its own calls.
            self.moved_tasks.extend(self.state.tasks.suspended.keys().map(|&suspended| (suspended, true)));
        }
        if task.2 != 0 {
            self.note(DiagnosticKind::Tasks, time);
            self.resume_task(time, task);
        }
    }

    /// Ends the part of the task that runs.
    fn suspend_task(&mut self, time: i64) {
        let Some(running) = self.state.tasks.running.take() else { return };
        self.shard.tasks.rows.push(TaskRun { begin: running.begin, end: time });
        let events = &self.shard.events;
        let has_entered = events.len() as u32 > running.first && !events.is_leave(running.first);
        if running.is_new && !has_entered {
            // It began elsewhere: nothing runs in a task without a call.
            self.moved_tasks.entry(running.task).or_insert(false);
        }
        if self.shard.task_stacks.as_ref().is_some_and(|stacks| stacks.moved.contains(&running.task)) {
            while self.state.outer.len() > running.depth {
                self.pop(time);
            }
        } else if self.state.outer.len() > running.depth {
            self.state.tasks.suspended.insert(running.task, (running.depth, self.state.outer.len()));
        }
    }

    fn resume_task(&mut self, time: i64, task: TaskId) {
        let top = self.state.outer.len();
        let tasks = &mut self.state.tasks;
        let number = tasks.parts;
        tasks.parts += 1;
        let before = tasks.suspended.remove(&task);
        let first = self.shard.events.len() as u32;
        // Its calls begin where they did before.
        let depth = before.map_or(top, |(depth, _)| depth);
        tasks.running = Some(RunningTask { task, begin: time, depth, first, is_new: before.is_none() });
        if let Some((_, before)) = before
            && before != top
        {
            // What stands above it belongs to tasks that are suspended, too.
            let above = tasks.suspended.extract_if(|_, (_, top)| *top > before);
            self.moved_tasks.extend(above.map(|(task, _)| (task, true)));
        }
        let Some(stacks) = self.shard.task_stacks.clone().filter(|stacks| stacks.moved.contains(&task)) else { return };
        for &key in stacks.open(self.state.index, number) {
            self.push(time, key);
            // It has been visited before.
            if let Some(total) = self.totals.get_mut(self.state.top.callpath.index()) {
                total.visits -= 1;
            }
        }
    }

    /// At the end of a location, tasks whose calls are still open may have continued elsewhere.
    pub(super) fn end_tasks(&mut self, time: i64) {
        self.suspend_task(time);
        let open: Vec<TaskId> = self.state.tasks.suspended.drain().map(|(task, _)| task).collect();
        for task in open {
            self.moved_tasks.entry(task).or_insert(false);
        }
    }

    /// Tasks whose calls may not nest in those of the threads that run them, and whether that is certain.
    #[must_use]
    pub fn moved_tasks(&self) -> &FxHashMap<TaskId, bool> {
        &self.moved_tasks
    }
}
