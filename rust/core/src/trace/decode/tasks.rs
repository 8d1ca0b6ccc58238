//! Explicit tasks: when a thread runs which, and what becomes of their calls.

use rustc_hash::FxHashMap;

use super::decoder::Decoder;
use super::frames::{RunningTask, SuspendedTask};
use crate::ids::{CallPathId, InstanceId, NONE, RegionKey};
use crate::trace::columns::TaskRun;
use crate::trace::task_paths::{self, Creator, KnownTasks, TaskKey};
use crate::trace::task_stacks::{NO_TASK, TaskId};

impl Decoder<'_> {
    /// The key of a task in the current team.
    fn task_key(&self, task: TaskId) -> TaskKey {
        let team = self.state.teams.last();
        task_paths::key(team.map_or(NONE, |&team| self.shard.teams.rows[team as usize].fork), task)
    }

    /// A task is created by the one that runs.
    pub(super) fn create_task(&mut self, time: i64, task: TaskId) {
        let key = self.task_key(task);
        let row = self.known_tasks.row(key, &mut self.shard.task_instances);
        let instance = self.instance().unwrap_or(InstanceId::NONE);
        let (creator, base, is_known) = self.creator();
        // The innermost call is the one that creates it.
        let open = self.state.outer.iter().skip(base + 1).map(|frame| frame.key);
        self.known_tasks.note(row, creator, open);
        let created = &mut self.shard.task_instances[row as usize];
        (created.created, created.create, created.creator) = (time, instance, self.state.index);
        created.parent = self.state.tasks.running.as_ref().map_or(NONE, |running| running.number);
        if is_known && self.state.outer.len() > base {
            created.callpath = self.shard.tree.parent(self.state.top.callpath);
        }
    }

    /// A team is forked by the task that runs.
    pub(super) fn note_fork(&mut self, fork: u32) {
        let (creator, base, _) = self.creator();
        let frames = self.state.outer.iter().skip(base + 1).chain([&self.state.top]);
        let open = frames.take(self.state.outer.len().saturating_sub(base)).map(|frame| frame.key);
        self.known_tasks.note_fork(fork, creator, open);
    }

    /// What runs, the number of regions around its calls, and whether their call paths are known.
    fn creator(&self) -> (Creator, usize, bool) {
        let tasks = &self.state.tasks;
        match (&tasks.running, tasks.hosts.iter().flatten().next_back()) {
            (Some(running), _) => (Creator::Task(running.number), self.state.base, running.path.is_some()),
            (None, Some(host)) => (Creator::Hosted(host.number), host.depth, host.path.is_some()),
            (None, None) => {
                let team = self.state.teams.first().map(|&team| &self.shard.teams.rows[team as usize]);
                let fork = team.map_or(NONE, |team| team.fork);
                (Creator::Implicit { path: self.state.root, fork }, self.state.base, true)
            }
        }
    }

    /// From now on another task runs: an explicit one, or the thread's implicit one, which has number 0.
    pub(super) fn switch_task(&mut self, time: i64, task: TaskId) {
        self.suspend_task(time, task == NO_TASK);
        if task.2 == 0 && task != NO_TASK {
            // The thread itself goes on in its own calls.
            self.moved_tasks.extend(self.state.tasks.suspended.keys().map(|&suspended| (suspended, true)));
        }
        if task.2 != 0 {
            self.pause_host(time);
            self.resume_task(time, task);
        }
    }

    /// The task that runs begins a team, and hosts it.
    pub(super) fn host_team(&mut self) {
        let running = self.state.tasks.running.take();
        self.state.tasks.hosts.push(running);
        self.state.base = 0;
    }

    /// A team ends, and the task that hosts it goes on.
    pub(super) fn leave_team(&mut self, time: i64) {
        self.suspend_task(time, false);
        let host = self.state.tasks.hosts.pop().flatten();
        self.state.base = host.as_ref().map_or(0, |host| host.depth);
        self.state.tasks.running = host;
    }

    /// Ends the part of the host that runs: a task of its team does.
    fn pause_host(&mut self, time: i64) {
        if let Some(&mut RunningTask { begin, number, instance, .. }) = self.state.tasks.host()
            && begin < time
        {
            self.shard.tasks.rows.push(TaskRun { begin, end: time, task: number, instance, completes: false });
        }
    }

    /// Ends the part of the task that runs.
    fn suspend_task(&mut self, time: i64, completes: bool) {
        let Some(running) = self.state.tasks.running.take() else { return };
        let RunningTask { number, begin, instance, depth, .. } = running;
        let row = self.shard.tasks.rows.len();
        self.shard.tasks.rows.push(TaskRun { begin, end: time, task: number, instance, completes });
        let events = &self.shard.events;
        let has_entered = events.len() as u32 > running.first && !events.is_leave(running.first);
        if running.is_new && !has_entered {
            // It began elsewhere: nothing runs in a task without a call.
            self.moved_tasks.entry(running.task).or_insert(false);
        }
        if self.shard.task_stacks.as_ref().is_some_and(|stacks| stacks.moved.contains(&running.task)) {
            while self.state.outer.len() > depth {
                self.pop(time);
            }
        } else if self.state.outer.len() > depth {
            let top = self.state.outer.len();
            self.state.tasks.suspended.insert(running.task, SuspendedTask { depth, top, instance });
        }
        self.state.base = 0;
        self.shard.tasks.rows[row].end = time;
        if let Some(host) = self.state.tasks.host() {
            host.begin = time;
        }
    }

    fn resume_task(&mut self, time: i64, task: TaskId) {
        let key = self.task_key(task);
        let row = self.known_tasks.row(key, &mut self.shard.task_instances);
        let top = self.state.outer.len();
        let tasks = &mut self.state.tasks;
        let number = tasks.parts;
        tasks.parts += 1;
        let before = tasks.suspended.remove(&task);
        let first = self.shard.events.len() as u32;
        // Its calls begin where they did before.
        let depth = before.map_or(top, |before| before.depth);
        let path = self.task_path(row, key);
        self.state.tasks.running = Some(RunningTask {
            task,
            number: row,
            instance: before.map_or(InstanceId::NONE, |before| before.instance),
            begin: time,
            depth,
            first,
            is_new: before.is_none(),
            path,
        });
        self.state.base = depth;
        if let Some(SuspendedTask { top: before, .. }) = before
            && before != top
        {
            // What stands above it belongs to tasks that are suspended, too.
            let above = self.state.tasks.suspended.extract_if(|_, suspended| suspended.top > before);
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

    /// The call path below which a task is, if it is known already.
    fn task_path(&mut self, row: u32, key: TaskKey) -> Option<CallPathId> {
        let known = self.shard.task_instances[row as usize].callpath;
        if known.is_some() {
            return Some(known);
        }
        let path = match &self.shard.task_paths {
            Some(paths) => paths.find(key, &mut self.shard.tree),
            None => None,
        };
        match path {
            Some(path) => self.shard.task_instances[row as usize].callpath = path,
            None => self.known_tasks.note_unknown(row),
        }
        path
    }

    /// The call path of a region that no other region of its task is around.
    #[inline(never)]
    pub(super) fn outermost_callpath(&mut self, key: RegionKey) -> CallPathId {
        match &self.state.tasks.running {
            Some(running) => match running.path {
                Some(path) => task_paths::child(&mut self.shard.tree, path, key),
                None => self.shard.tree.child(self.state.top.callpath, key),
            },
            None => self.shard.tree.child(self.state.root, key),
        }
    }

    /// The outermost region of the task that runs, or one around it, was left.
    #[cold]
    pub(super) fn leave_task(&mut self, time: i64) {
        if self.state.outer.len() < self.state.base {
            // The region in which it ran ends, and so does this part of it.
            self.suspend_task(time, false);
        } else {
            self.shard.events.resume(self.state.top.callpath);
        }
    }

    /// At the end of a location, tasks whose calls are still open may have continued elsewhere.
    pub(super) fn end_tasks(&mut self, time: i64) {
        self.suspend_task(time, false);
        let open: Vec<TaskId> = self.state.tasks.suspended.drain().map(|(task, _)| task).collect();
        for task in open {
            self.moved_tasks.entry(task).or_insert(false);
        }
    }

    /// Tasks whose calls may not nest in those of the threads that run them, and whether that is certain.
    pub fn moved_tasks(&self) -> &FxHashMap<TaskId, bool> {
        &self.moved_tasks
    }

    /// What is known of the tasks of the shard.
    pub(crate) fn take_known_tasks(&mut self) -> KnownTasks {
        std::mem::take(&mut self.known_tasks)
    }
}
