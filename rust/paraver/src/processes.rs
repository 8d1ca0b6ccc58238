//! Tasks of all applications as processes, and the communicators between them.

use rustc_hash::FxHashMap;

use crate::header::Header;
use crate::labels::Names;
use crate::scan::Communicator;

/// A task of an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process {
    /// From 1.
    pub(crate) application: u32,
    pub(crate) task: u32,
    pub(crate) node: u32,
    pub(crate) first_thread: u32,
    pub(crate) threads: u32,
}

impl Process {
    /// Its threads that can be in a team: those of processors.
    pub(crate) fn team(self, names: &Names) -> impl Iterator<Item = u32> {
        (self.first_thread..self.first_thread + self.threads).filter(|thread| !names.is_stream(*thread as usize))
    }
}

/// All processes, and which threads are theirs.
#[derive(Debug)]
pub(crate) struct Processes {
    pub(crate) list: Vec<Process>,
    /// The process of each thread.
    pub(crate) of_threads: Vec<u32>,
    /// The first process of each application, and the end.
    first: Vec<u32>,
}

impl Processes {
    pub(crate) fn new(header: &Header) -> Self {
        let (mut list, mut of_threads, mut first) = (Vec::new(), Vec::new(), vec![0]);
        for (application, tasks) in (1..).zip(&header.applications) {
            for (task, known) in (1..).zip(tasks) {
                let (first_thread, threads) = (of_threads.len() as u32, known.threads);
                of_threads.resize(of_threads.len() + threads as usize, list.len() as u32);
                list.push(Process { application, task, node: known.node, first_thread, threads });
            }
            first.push(list.len() as u32);
        }
        Self { list, of_threads, first }
    }

    /// The name of a process: its rank, or, of several applications, application and task.
    pub(crate) fn name(&self, process: u32) -> String {
        let Process { application, task, .. } = self.list[process as usize];
        if self.applications() == 1 { format!("rank {}", task - 1) } else { format!("{application}.{task}") }
    }

    /// Number of applications.
    pub(crate) fn applications(&self) -> usize {
        self.first.len() - 1
    }

    /// The processes of an application, counted from 0.
    pub(crate) fn of_application(&self, application: usize) -> std::ops::Range<u32> {
        self.first[application]..self.first[application + 1]
    }
}

/// A communicator: its members by rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Comm {
    pub(crate) name: String,
    pub(crate) members: Vec<u32>,
    ranks: FxHashMap<u32, u32>,
}

impl Comm {
    fn new(name: String, members: Vec<u32>) -> Self {
        let ranks = members.iter().copied().zip(0..).collect();
        Self { name, members, ranks }
    }

    pub(crate) fn rank(&self, process: u32) -> Option<u32> {
        self.ranks.get(&process).copied()
    }
}

/// The communicators of a run: the world of each application first.
#[derive(Debug)]
pub(crate) struct Comms {
    pub(crate) list: Vec<Comm>,
    by_number: FxHashMap<(u32, i64), u32>,
    /// Communicators of each application from the smallest on, its world last.
    by_size: Vec<Vec<u32>>,
    between: FxHashMap<(u32, u32), u32>,
}

impl Comms {
    /// The communicators, and the number of lines of such that have members that do not exist.
    pub(crate) fn new(processes: &Processes, lines: &[Communicator]) -> (Self, u64) {
        let applications = processes.applications();
        let mut list: Vec<Comm> = Vec::new();
        for application in 0..applications {
            let name = if applications == 1 {
                "MPI_COMM_WORLD".to_owned()
            } else {
                format!("application {}", application + 1)
            };
            list.push(Comm::new(name, processes.of_application(application).collect()));
        }
        let (mut by_number, mut wrong) = (FxHashMap::default(), 0);
        let mut by_size: Vec<Vec<u32>> = vec![Vec::new(); applications];
        for line in lines {
            let application = (line.application as usize).wrapping_sub(1);
            let all = by_size.get_mut(application).map(|by_size| (processes.of_application(application), by_size));
            let Some((all, by_size)) = all else {
                wrong += 1;
                continue;
            };
            let member = |task: &u32| task.checked_sub(1).map(|task| all.start + task).filter(|one| all.contains(one));
            let members: Option<Vec<u32>> = line.tasks.iter().map(member).collect();
            let Some(mut members) = members.filter(|members| !members.is_empty()) else {
                wrong += 1;
                continue;
            };
            let mut seen = rustc_hash::FxHashSet::default();
            members.retain(|member| seen.insert(*member));
            let id = list.len() as u32;
            by_number.entry((line.application, line.number)).or_insert(id);
            by_size.push(id);
            list.push(Comm::new(format!("communicator {}", line.number), members));
        }
        for (application, comms) in by_size.iter_mut().enumerate() {
            comms.sort_by_key(|comm| list[*comm as usize].members.len());
            comms.push(application as u32);
        }
        (Self { list, by_number, by_size, between: FxHashMap::default() }, wrong)
    }

    /// The communicator with a number.
    pub(crate) fn with_number(&self, application: u32, number: i64) -> Option<u32> {
        self.by_number.get(&(application, number)).copied()
    }

    /// Another communicator with the same members.
    pub(crate) fn again(&mut self, comm: u32) -> u32 {
        let id = self.list.len() as u32;
        self.list.push(self.list[comm as usize].clone());
        id
    }

    /// The world of an application, counted from 1.
    pub(crate) const fn world(application: u32) -> u32 {
        application - 1
    }

    /// The smallest communicator that has both processes of an application, counted from 1.
    pub(crate) fn between(&mut self, application: u32, a: u32, b: u32) -> u32 {
        let Self { list, by_size, between, .. } = self;
        let world = Self::world(application);
        let has_both = |comm: &&u32| {
            let comm = &list[**comm as usize];
            comm.rank(a).is_some() && comm.rank(b).is_some()
        };
        let find = || by_size[world as usize].iter().find(has_both).copied().unwrap_or(world);
        *between.entry((a.min(b), a.max(b))).or_insert_with(find)
    }
}
