//! Call paths of tasks: those of a task are below the call path that created it.
//!
//! ```text
//!  thread 0  [ parallel [ create task ] ...  ]        the call path of f is parallel/task/f,
//!  thread 1  [ parallel [ barrier [ task [ f ] ] ]    whoever runs it, and in which call
//! ```
//!
//! If the thread that runs a task is read before the one that creates it, the call path is not known in time. Then the
//! process is read again. The first time gives the calls that were open at each creation, within the task that did it
//! ([`KnownTasks`]); put together, these are the call paths ([`TaskPaths`]).

use bitcode::{Decode, Encode};
use rustc_hash::FxHashMap;

use super::calltree::CallTree;
use super::columns::TaskInstance;
use super::task_stacks::TaskId;
use crate::ids::{CallPathId, NONE, RegionKey};

/// A task within its process: the row of its team's fork, and its creating thread and number.
pub(crate) type TaskKey = (u32, u32, u64);

/// Calls that are open at creations, as a tree: the call around each, and its region.
type Stacks = Vec<(u32, RegionKey)>;

/// The tasks of a process, and what was open when they were created.
#[derive(Debug, Default)]
pub(crate) struct KnownTasks {
    /// The row of each task of the current process among those of the shard.
    rows: TaskRows,
    /// For each task of the shard what was open at its creation, within the task that created it; [`NONE`] if nothing
    /// was or if that is not known.
    open: Vec<u32>,
    /// For each task that an implicit task created, what that one's calls are below.
    roots: FxHashMap<u32, Root>,
    /// For each fork by a task, that task, and what was open then, within it.
    hosted: FxHashMap<u32, (u32, u32)>,
    stacks: Stacks,
    nodes: FxHashMap<(u32, RegionKey), u32>,
    /// Tasks that ran before their call path was known.
    unknown: Vec<u32>,
    /// Rows of all tasks of the shard.
    keys: Vec<TaskKey>,
}

/// What the calls of an implicit task are below.
#[derive(Clone, Copy, Debug)]
enum Root {
    /// A call path.
    Path(CallPathId),
    /// The explicit task that hosts its team, whose own call path may not be known yet.
    Host(u32),
}

/// The implicit or explicit task that creates a task or forks a team.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Creator {
    /// An explicit task, by row.
    Task(u32),
    /// The implicit task of the thread whose explicit task, by row, hosts the team.
    Hosted(u32),
    /// The implicit task of a thread: its calls are below the task that hosts the team of this fork, by row, if one does, and
    /// else below this call path.
    Implicit { path: CallPathId, fork: u32 },
}

/// Numbers of tasks that have their rows side by side.
const TOGETHER: u64 = 16;

/// Rows by task. The tasks that a thread creates are numbered, so their rows are in blocks, close to each other in memory.
#[derive(Debug, Default)]
struct TaskRows {
    /// Blocks by key, with the number of the block in place of that of the task.
    blocks: FxHashMap<TaskKey, u32>,
    rows: Vec<[u32; TOGETHER as usize]>,
}

impl TaskRows {
    /// The row of a task, [`NONE`] if it has none yet.
    fn get_mut(&mut self, (fork, thread, number): TaskKey) -> &mut u32 {
        let next = self.rows.len() as u32;
        let block = *self.blocks.entry((fork, thread, number / TOGETHER)).or_insert(next);
        if block == next {
            self.rows.push([NONE; TOGETHER as usize]);
        }
        &mut self.rows[block as usize][(number % TOGETHER) as usize]
    }

    fn clear(&mut self) {
        self.blocks.clear();
        self.rows.clear();
    }
}

/// The key of a task in a team, by the row of its fork.
pub(crate) fn key(fork: u32, (_, thread, number): TaskId) -> TaskKey {
    (fork, thread, number)
}

impl KnownTasks {
    /// Forgets the numbers of the tasks of the process before.
    pub(crate) fn begin_process(&mut self) {
        self.rows.clear();
    }

    /// The row of a task, which is new if it has not been seen yet.
    pub(crate) fn row(&mut self, key: TaskKey, tasks: &mut Vec<TaskInstance>) -> u32 {
        let next = tasks.len() as u32;
        let known = self.rows.get_mut(key);
        if *known != NONE {
            return *known;
        }
        *known = next;
        tasks.push(TaskInstance {
            created: i64::MIN,
            create: crate::ids::InstanceId::NONE,
            creator: crate::ids::LocationId::NONE,
            parent: NONE,
            fork: key.0,
            callpath: CallPathId::NONE,
        });
        self.open.push(NONE);
        self.keys.push(key);
        next
    }

    /// Notes that a task runs whose call path is not known.
    pub(crate) fn note_unknown(&mut self, row: u32) {
        self.unknown.push(row);
    }

    /// Whether the call paths of such tasks are known by now.
    pub(crate) fn knows_more(&self, tasks: &[TaskInstance]) -> bool {
        self.unknown.iter().any(|&row| tasks[row as usize].created != i64::MIN)
    }

    /// Notes the calls that are open when a task is created, the outermost first, those of the task that `creator` is or that
    /// it runs in.
    pub(crate) fn note(&mut self, row: u32, creator: Creator, open: impl Iterator<Item = RegionKey>) {
        let (host, node) = self.host(creator);
        self.open[row as usize] = self.add(node, open);
        match creator {
            Creator::Task(_) => {}
            Creator::Hosted(host) => {
                self.roots.insert(row, Root::Host(host));
            }
            Creator::Implicit { path, .. } => {
                self.roots.insert(row, host.map_or(Root::Path(path), Root::Host));
            }
        }
    }

    /// Notes the same when a team is forked.
    pub(crate) fn note_fork(&mut self, fork: u32, creator: Creator, open: impl Iterator<Item = RegionKey>) {
        if let (Some(host), node) = self.host(creator) {
            let node = self.add(node, open);
            self.hosted.insert(fork, (host, node));
        }
    }

    /// The explicit task that something runs in, and the calls of it that are around.
    fn host(&self, creator: Creator) -> (Option<u32>, u32) {
        match creator {
            Creator::Task(row) | Creator::Hosted(row) => (Some(row), NONE),
            Creator::Implicit { fork, .. } => match self.hosted.get(&fork) {
                Some(&(host, node)) => (Some(host), node),
                None => (None, NONE),
            },
        }
    }

    /// The calls below others.
    fn add(&mut self, mut node: u32, open: impl Iterator<Item = RegionKey>) -> u32 {
        for key in open {
            let next = self.stacks.len() as u32;
            let here = *self.nodes.entry((node, key)).or_insert(next);
            if here == next {
                self.stacks.push((node, key));
            }
            node = here;
        }
        node
    }

    /// The explicit task whose call path another one's continues, or none.
    fn above(&self, task: usize, tasks: &[TaskInstance]) -> u32 {
        match self.roots.get(&(task as u32)) {
            Some(&Root::Host(host)) => host,
            Some(Root::Path(_)) => NONE,
            None => tasks[task].parent,
        }
    }
}

/// The call paths below which tasks are.
#[derive(Debug, Encode, Decode)]
pub(crate) struct TaskPaths {
    tree: CallTree,
    paths: FxHashMap<TaskKey, CallPathId>,
}

impl TaskPaths {
    /// The call paths of all tasks of a shard that was read once, into `tree`.
    pub(crate) fn new(known: &KnownTasks, tasks: &[TaskInstance], mut tree: CallTree) -> Self {
        const PENDING: CallPathId = CallPathId::new(NONE - 1);
        let mut found: Vec<Option<CallPathId>> = vec![None; tasks.len()];
        let mut keys: Vec<RegionKey> = Vec::new();
        for row in 0..tasks.len() {
            // First the tasks that created it.
            let mut chain = vec![row];
            while let Some(&task) = chain.last()
                && let parent = known.above(task, tasks)
                && parent != NONE
                && found[parent as usize].is_none()
            {
                found[task] = Some(PENDING);
                chain.push(parent as usize);
            }
            for task in chain.into_iter().rev() {
                if found[task].is_some_and(|found| found != PENDING) {
                    continue;
                }
                let parent = known.above(task, tasks);
                let root = match known.roots.get(&(task as u32)) {
                    Some(&Root::Path(path)) => Some(path),
                    _ => found.get(parent as usize).copied().flatten().filter(|&path| path != PENDING),
                };
                let Some(mut path) = root else {
                    found[task] = None;
                    continue;
                };
                keys.clear();
                let mut node = known.open[task];
                while node != NONE {
                    let (around, key) = known.stacks[node as usize];
                    keys.push(key);
                    node = around;
                }
                let is_in_task = parent != NONE;
                for (i, &key) in keys.iter().rev().enumerate() {
                    path = if i == 0 && is_in_task { child(&mut tree, path, key) } else { tree.child(path, key) };
                }
                found[task] = Some(path);
            }
        }
        let of_task = |(&key, path): (&TaskKey, Option<CallPathId>)| Some((key, path?));
        let paths = known.keys.iter().zip(found).filter_map(of_task).collect();
        Self { tree, paths }
    }

    /// The call path below which a task is, as a call path of another tree.
    pub(crate) fn find(&self, key: TaskKey, tree: &mut CallTree) -> Option<CallPathId> {
        let mut node = *self.paths.get(&key)?;
        let mut keys = Vec::new();
        while node.is_some() {
            keys.push(self.tree.region(node));
            node = self.tree.parent(node);
        }
        Some(keys.into_iter().rev().fold(CallPathId::NONE, |path, key| tree.child(path, key)))
    }
}

/// The call path of a task below the one that created it. Recursion folds: if the same construct is on that path already,
/// it is that node, so the tree stays finite.
pub(crate) fn child(tree: &mut CallTree, path: CallPathId, key: RegionKey) -> CallPathId {
    let mut node = path;
    while node.is_some() {
        if tree.region(node) == key {
            return node;
        }
        node = tree.parent(node);
    }
    tree.child(path, key)
}
