//! The locks and tasks of threads, and non-blocking collective operations: slices and counters below each process.

use std::cmp::Reverse;
use std::io::Write;
use std::ops::Range;

use bitcode::{Decode, Encode};

use super::flows::Change;
use super::packets::{Category, Key};
use super::tracks::Writer;
use crate::Result;
use crate::analysis::Analysis;
use crate::export::selection::Selection;
use crate::export::threads::{Owned, each_owned};
use crate::ids::ProcessId;
use crate::matching::threads::teams::Teams;
use crate::queues::Quantity;
use crate::schema::{Class, Pattern};
use crate::severity::Metric;
use crate::trace::{Shard, Trace};
use crate::waits::nonblocking::{Operation, operations};
use crate::waits::tasks::TeamTasks;

/// Counters of a process, in their order.
#[derive(Clone, Copy)]
enum Level {
    LockQueue,
    Ready,
    Running,
    InFlight,
}

impl Level {
    fn named(self) -> (&'static str, &'static str) {
        match self {
            Self::LockQueue => ("Threads waiting for locks", "threads"),
            Self::Ready => ("Ready tasks", "tasks"),
            Self::Running => ("Running tasks", "tasks"),
            Self::InFlight => ("Collectives in flight", "operations"),
        }
    }
}

/// What the threads of a process do together.
#[derive(Encode, Decode)]
pub(super) struct Threads {
    process: ProcessId,
    /// Who owns the locks that threads wait for, by begin, the longest first.
    owned: Vec<Owned>,
    /// Changes of the numbers of tasks that could run, and that run.
    ready: Vec<Change>,
    running: Vec<Change>,
}

impl Threads {
    /// Those of the written processes of a shard.
    pub(super) fn of_shard(trace: &Trace, selection: &Selection, shard: &Shard) -> Vec<Self> {
        let written = shard.processes.into_iter().filter(|&process| is_written(trace, selection, process));
        let found = written.map(|process| {
            let mut owned: Vec<Owned> = Vec::new();
            each_owned(trace, shard, process, |own| owned.push(own));
            owned.retain(|own| selection.lasts(own.begin, own.end));
            owned.sort_by_key(|own| (own.begin, Reverse(own.end), own.lock));
            let (mut ready, mut running) = (Vec::new(), Vec::new());
            let teams = Teams::new(shard, &trace.definitions.processes[process]);
            for tasks in teams.iter().filter_map(|team| TeamTasks::new(shard, team)) {
                for task in &tasks.tasks {
                    ready.extend([(task.ready, 1), (tasks.start(task), -1)]);
                }
                for run in &tasks.runs {
                    running.extend([(run.run.begin, 1), (run.run.end, -1)]);
                }
            }
            Self { process, owned, ready, running }
        });
        found.filter(|of| !(of.owned.is_empty() && of.ready.is_empty() && of.running.is_empty())).collect()
    }
}

/// Whether a process is written; it may have no locations.
fn is_written(trace: &Trace, selection: &Selection, process: ProcessId) -> bool {
    let mut locations = trace.definitions.processes[process].locations;
    locations.next().is_some_and(|first| selection.has(trace, first))
}

/// The parts in non-blocking collective operations, by process and begin; at the first process. Collective.
pub(super) fn operations_of_all(trace: &Trace) -> Result<Vec<(ProcessId, Operation)>> {
    let process = |operation: &Operation| trace.definitions.locations[operation.location].process;
    let all = trace.exchange.gatherv(operations(trace)?)?.into_iter();
    let mut all: Vec<(ProcessId, Operation)> = all.map(|operation| (process(&operation), operation)).collect();
    all.sort_by_key(|(process, operation)| (*process, operation.begin, Reverse(operation.end)));
    Ok(all)
}

impl<W: Write> Writer<'_, W> {
    /// The processes that are written.
    fn processes(&self) -> Vec<ProcessId> {
        let all = (0..self.trace.definitions.processes.len()).map(ProcessId::at);
        all.filter(|&process| is_written(self.trace, self.selection, process)).collect()
    }

    /// Writes a level of a process; counters of the trace and queues come before it.
    fn level_of(&mut self, process: ProcessId, level: Level, changes: Vec<Change>) -> Result<()> {
        let above = self.process_track(self.trace.definitions.master(process));
        let order = self.trace.definitions.counters.all.len() + Quantity::ALL.len() + level as usize;
        let is_written = self.level(Some(above), level.named(), order as u32, changes)?;
        self.written.counters += u64::from(is_written);
        Ok(())
    }

    /// Writes who owns the locks that threads wait for.
    pub(super) fn locks(&mut self, threads: &[Threads]) -> Result<()> {
        for Threads { process, owned, .. } in threads {
            self.look_up()?;
            let above = self.process_track(self.trace.definitions.master(*process));
            let slices = owned.iter().enumerate().map(|(number, own)| (number, own.begin, own.end));
            self.slices(
                ("Locks", Some(above)),
                false,
                slices,
                |_, _| {},
                |writer, time, track, number| {
                    let own = &owned[number];
                    let (_, thread) = writer.rank_and_thread(own.location);
                    let (name, callpath) = writer.in_region(format!("Thread {thread}"), own.callpath)?;
                    writer.packets.begin(time, track, |event| {
                        event.called(&name, Category::Lock);
                        event.number(Key::Thread, thread);
                        event.number(Key::Lock, i64::from(own.lock));
                        if let Some(callpath) = callpath {
                            event.interned(Key::Callpath, callpath);
                        }
                    })
                },
            )?;
            self.written.locks += owned.len() as u64;
        }
        Ok(())
    }

    /// Writes how many threads of each process wait for locks.
    pub(super) fn lock_queues(&mut self, analysis: &Analysis, stretches: &[(usize, Range<i64>)]) -> Result<()> {
        // A wait for a condition variable is for a signal first.
        let waits_for_lock = |number: usize| match analysis.waits[number].kind {
            Metric::ConditionContention => false,
            Metric::ConditionMutexWait => true,
            kind => Pattern::class_of(kind) == Some(Class::ThreadLock),
        };
        let process_of = |number: usize| self.trace.definitions.locations[analysis.waits[number].location].process;
        let mut changes: Vec<(ProcessId, Change)> = Vec::new();
        for (number, time) in stretches.iter().filter(|(number, _)| waits_for_lock(*number)) {
            let process = process_of(*number);
            changes.extend([(process, (time.start, 1)), (process, (time.end, -1))]);
        }
        changes.sort_unstable();
        for process in self.processes() {
            let first = changes.partition_point(|&(other, _)| other < process);
            let of_process = changes[first..].iter().take_while(|&&(other, _)| other == process);
            self.level_of(process, Level::LockQueue, of_process.map(|&(_, change)| change).collect())?;
        }
        Ok(())
    }

    /// Writes how many tasks of each process could run, and how many run.
    pub(super) fn task_levels(&mut self, threads: Vec<Threads>) -> Result<()> {
        for Threads { process, ready, running, .. } in threads {
            self.look_up()?;
            self.level_of(process, Level::Ready, ready)?;
            self.level_of(process, Level::Running, running)?;
        }
        Ok(())
    }

    /// Writes non-blocking collective operations from the call that starts each to the one that completes it, the part that
    /// is `hidden` within, and how many are in flight.
    pub(super) fn operations(&mut self, all: &[(ProcessId, Operation)], hidden: &str) -> Result<()> {
        for process in self.processes() {
            let first = all.partition_point(|&(other, _)| other < process);
            let of_process = &all[first..first + all[first..].partition_point(|&(other, _)| other == process)];
            let changes = of_process.iter().flat_map(|(_, one)| [(one.begin, 1), (one.end, -1)]).collect();
            self.level_of(process, Level::InFlight, changes)?;
            let written: Vec<&Operation> =
                of_process.iter().map(|(_, one)| one).filter(|one| self.selection.lasts(one.begin, one.end)).collect();
            let above = self.process_track(self.trace.definitions.master(process));
            let slices = written.iter().enumerate().map(|(number, one)| (number, one.begin, one.end));
            let name = ("Non-blocking collectives", Some(above));
            self.slices(
                name,
                false,
                slices,
                |_, _| {},
                |writer, time, track, number| {
                    let one = written[number];
                    let (name, callpath) = (writer.name_of[one.callpath], writer.callpath(one.callpath)?);
                    let (_, thread) = writer.rank_and_thread(one.location);
                    writer.packets.begin(time, track, |event| {
                        event.named(name, Category::Nonblocking);
                        event.number(Key::Thread, thread);
                        event.interned(Key::Callpath, callpath);
                    })?;
                    if one.hidden.0 < one.hidden.1 {
                        let [begin, end] = <[i64; 2]>::from(one.hidden).map(|time| writer.nanoseconds(time));
                        writer.packets.begin(begin, track, |event| event.called(hidden, Category::Hidden))?;
                        writer.packets.end(end, track, |_| {})?;
                    }
                    Ok(())
                },
            )?;
            self.written.operations += written.len() as u64;
        }
        Ok(())
    }
}
