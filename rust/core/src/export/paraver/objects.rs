//! Tasks, threads, nodes and communicators as Paraver numbers them, from 1.

use std::fmt::Write as _;

use rustc_hash::FxHashMap;

use crate::ids::{CommId, LocationId, ProcessId};
use crate::trace::Trace;
use crate::trace::definition_index::Members;
use crate::trace::nodes::nodes;

/// How names of streams of devices begin, as Extrae writes them.
const STREAMS: [&str; 3] = ["CUDA", "HIP", "OpenCL"];

/// The objects of a run.
pub(super) struct Objects {
    /// The thread of each location, counted over all; 0 for locations that belong to no process.
    cpus: Vec<u32>,
    /// The task of each location, and its thread in that.
    places: Vec<(u32, u32)>,
    /// For each task the number of its threads, and its node.
    tasks: Vec<(u32, u32)>,
    /// Ids of the definitions of nodes.
    nodes: Vec<u32>,
    /// For each communicator its number; 0 for those that are none of processes, or of each process by itself.
    comms: Vec<u32>,
    lines: Vec<String>,
    /// The number before those of communicators of one process.
    alone: u32,
}

impl Objects {
    pub(super) fn new(trace: &Trace) -> Self {
        let definitions = &trace.definitions;
        let of_processes = nodes(trace);
        let mut numbers: FxHashMap<u32, u32> = FxHashMap::default();
        let mut known = Vec::new();
        let mut tasks = Vec::new();
        for (process, node) in definitions.processes.iter().zip(of_processes) {
            let number = *numbers.entry(node).or_insert_with(|| {
                known.push(node);
                known.len() as u32
            });
            // Each task has a thread.
            tasks.push(((process.locations.end.index() - process.locations.start.index()).max(1) as u32, number));
        }
        let (mut cpus, mut places) = (vec![0; definitions.locations.len()], vec![(0, 0); definitions.locations.len()]);
        let mut next = 1;
        for ((task, process), (threads, _)) in (1..).zip(&definitions.processes).zip(&tasks) {
            for (thread, location) in (1..).zip(process.locations) {
                cpus[location.index()] = next + thread - 1;
                places[location.index()] = (task, thread);
            }
            next += threads;
        }
        let mut objects = Self { cpus, places, tasks, nodes: known, comms: Vec::new(), lines: Vec::new(), alone: 0 };
        objects.communicators(trace);
        objects
    }

    fn communicators(&mut self, trace: &Trace) {
        let mut add = |members: &[ProcessId]| {
            let number = self.lines.len() as u32 + 1;
            let mut line = format!("c:1:{number}:{}", members.len());
            for member in members {
                let _ = write!(line, ":{}", member.index() + 1);
            }
            self.lines.push(line);
            number
        };
        let mut has_alone = false;
        for comm in &trace.definitions.comms {
            self.comms.push(match &*comm.members {
                Members::Processes(members) | Members::Some { members, .. } => add(members),
                Members::OwnProcess => {
                    has_alone = true;
                    0
                }
                _ => 0,
            });
        }
        let processes = if has_alone { trace.definitions.processes.len() } else { 0 };
        let alone: Vec<u32> = (0..processes).map(|process| add(&[ProcessId::at(process)])).collect();
        self.alone = alone.first().map_or(0, |first| first - 1);
    }

    /// The number of a communicator as a process has it; none of those that Paraver does not know.
    pub(super) fn comm(&self, trace: &Trace, comm: CommId, process: ProcessId) -> Option<u32> {
        match &*trace.definitions.comms.get(comm.index())?.members {
            Members::OwnProcess => Some(self.alone + process.number() + 1),
            _ => Some(self.comms[comm.index()]).filter(|number| *number > 0),
        }
    }

    /// The task of a location, from 1; 0 if it has none.
    pub(super) fn task(&self, location: LocationId) -> u32 {
        self.places.get(location.index()).map_or(0, |place| place.0)
    }

    /// How records name a location: processor, application, task and thread.
    pub(super) fn object(&self, location: LocationId) -> (u32, u32, u32) {
        let (task, thread) = self.places[location.index()];
        (self.cpus[location.index()], task, thread)
    }

    pub(super) fn threads(&self) -> u64 {
        self.tasks.iter().map(|(threads, _)| u64::from(*threads)).sum()
    }

    /// The first lines of the trace; `end` is its length, ns.
    pub(super) fn header(&self, end: u64) -> String {
        let on_node = |node: u32| self.tasks.iter().filter(|task| task.1 == node).map(|task| task.0).sum::<u32>();
        let cpus: Vec<String> = (1..=self.nodes.len() as u32).map(|node| on_node(node).to_string()).collect();
        let tasks: Vec<String> = self.tasks.iter().map(|(threads, node)| format!("{threads}:{node}")).collect();
        let mut text = format!(
            "#Paraver (01/01/1970 at 00:00):{end}_ns:{}({}):1:{}({}),{}\n",
            cpus.len(),
            cpus.join(","),
            tasks.len(),
            tasks.join(","),
            self.lines.len()
        );
        for line in &self.lines {
            text.push_str(line);
            text.push('\n');
        }
        text
    }

    /// The names of objects, as a `.row` has them.
    pub(super) fn names(&self, trace: &Trace) -> String {
        let records = trace.records();
        let node = |id: &u32| match records.system_tree_node(*id) {
            Some(node) => records.string(node.name).to_owned(),
            None => "node".to_owned(),
        };
        let nodes: Vec<String> = self.nodes.iter().map(node).collect();
        let mut cpus = Vec::new();
        let mut threads = Vec::new();
        for (task, ((count, node), process)) in (1..).zip(self.tasks.iter().zip(&trace.definitions.processes)) {
            let mut streams = process.locations.map(|location| {
                let location = &trace.definitions.locations[location];
                let name = records.string(location.name);
                (location.is_stream() && STREAMS.iter().any(|begin| name.starts_with(begin))).then(|| name.to_owned())
            });
            for thread in 1..=*count {
                cpus.push(format!("{}.{}", cpus.len() + 1, nodes[*node as usize - 1]));
                let stream = streams.next().flatten();
                threads.push(stream.unwrap_or_else(|| format!("THREAD 1.{task}.{thread}")));
            }
        }
        let mut text = String::new();
        for (level, names) in [("CPU", &cpus), ("NODE", &nodes), ("THREAD", &threads)] {
            let _ = writeln!(text, "LEVEL {level} SIZE {}\n{}\n", names.len(), names.join("\n"));
        }
        text
    }
}
