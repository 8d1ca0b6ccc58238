//! A thread that creates tasks, which all run in the order of their creation: those that are idle in the barrier at once, the
//! creating one when all are created, in every other iteration in a taskwait construct.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use whywait_otf2::{Event, Result};

use crate::Start;
use crate::collective::{CALL, GAP};
use crate::definitions::Region;
use crate::event_writer::EventWriter;
use crate::teams::Body;

/// The thread that creates all tasks.
const CREATOR: u32 = 0;
/// Ticks from a creation to the next.
const STEP: i64 = CALL + GAP;

pub(crate) struct Tasks {
    pub(crate) threads: u32,
    /// Tasks for each thread in a parallel region.
    pub(crate) window: u32,
    /// The communicator of the team of the first rank; those of the others follow.
    pub(crate) first_team: u32,
}

/// A task on the thread that runs it.
struct Run {
    task: u32,
    start: i64,
    end: i64,
}

/// The tasks of a parallel region.
pub(crate) struct Plan {
    begin: i64,
    /// Number of the first task among those of the creating thread.
    first: u32,
    /// When the last task is created, and when the creating thread is done with that.
    created: i64,
    done: i64,
    /// By thread, in order.
    runs: Vec<Vec<Run>>,
    last_end: i64,
    has_taskwait: bool,
}

impl Tasks {
    fn count(&self) -> u32 {
        self.threads * self.window
    }

    /// When a task of a parallel region that begins at a time is created.
    fn creation(begin: i64, task: u32) -> i64 {
        begin + GAP + i64::from(task) * STEP + CALL / 2
    }

    /// Writes the tasks of a thread.
    fn write_runs(&self, writer: &mut EventWriter<'_>, plan: &Plan, rank: u32, thread: u32) -> Result<()> {
        let (thread_team, creating_thread) = (self.first_team + rank, CREATOR);
        for run in &plan.runs[thread as usize] {
            let generation_number = plan.first + run.task;
            writer.record(run.start, &Event::ThreadTaskSwitch { thread_team, creating_thread, generation_number })?;
            writer.enter(run.start, Region::Task)?;
            writer.enter(run.start + GAP, Region::Compute)?;
            writer.leave(run.end - GAP)?;
            writer.leave(run.end)?;
            writer.record(run.end, &Event::ThreadTaskComplete { thread_team, creating_thread, generation_number })?;
        }
        Ok(())
    }
}

impl Plan {
    /// How long a thread runs no task between two times.
    fn idle(&self, thread: u32, from: i64, to: i64) -> i64 {
        let busy = |run: &Run| (run.end.min(to) - run.start.max(from)).max(0);
        (to - from).max(0) - self.runs[thread as usize].iter().map(busy).sum::<i64>()
    }

    /// When the creating thread leaves its taskwait construct.
    fn waited(&self) -> i64 {
        self.last_end.max(self.done) + CALL
    }
}

impl Body for Tasks {
    type Plan = Plan;

    fn plan(&self, start: &Start, rank: u32, number: usize, begin: i64) -> Plan {
        let tasks = self.count();
        let done = begin + GAP + i64::from(tasks) * STEP;
        let mut runs: Vec<Vec<Run>> = (0..self.threads).map(|_| Vec::new()).collect();
        let is_free = |thread: u32| if thread == CREATOR { done } else { begin + GAP };
        let mut free: BinaryHeap<Reverse<(i64, u32)>> =
            (0..self.threads).map(|thread| Reverse((is_free(thread), thread))).collect();
        let first = number as u32 * tasks;
        let mut last_end = i64::MIN;
        for task in 0..tasks {
            let Some(Reverse((since, thread))) = free.pop() else { continue };
            let begins = since.max(Self::creation(begin, task));
            let end = begins + start.work(rank, u64::from(first + task));
            runs[thread as usize].push(Run { task, start: begins, end });
            free.push(Reverse((end, thread)));
            last_end = last_end.max(end);
        }
        let created = Self::creation(begin, tasks - 1);
        // The generation 0 is the implicit task.
        Plan { begin, first: first + 1, created, done, runs, last_end, has_taskwait: number % 2 == 1 }
    }

    fn arrival(&self, plan: &Plan, thread: u32) -> i64 {
        match thread {
            CREATOR if plan.has_taskwait => plan.waited() + GAP,
            CREATOR => plan.done,
            _ => plan.begin + GAP,
        }
    }

    fn last_task(&self, plan: &Plan) -> i64 {
        plan.last_end
    }

    fn write(&self, writer: &mut EventWriter<'_>, plan: &Plan, rank: u32, thread: u32) -> Result<()> {
        if thread != CREATOR {
            return Ok(());
        }
        let (thread_team, creating_thread) = (self.first_team + rank, CREATOR);
        for task in 0..self.count() {
            let (time, generation_number) = (Self::creation(plan.begin, task), plan.first + task);
            writer.enter(time - CALL / 2, Region::CreateTask)?;
            writer.record(time, &Event::ThreadTaskCreate { thread_team, creating_thread, generation_number })?;
            writer.leave(time + CALL / 2)?;
        }
        if plan.has_taskwait {
            writer.enter(plan.done, Region::Taskwait)?;
            self.write_runs(writer, plan, rank, thread)?;
            writer.book("omp_taskwait_wait", plan.idle(thread, plan.done, plan.last_end));
            writer.leave(plan.waited())?;
        }
        Ok(())
    }

    fn write_barrier(
        &self,
        writer: &mut EventWriter<'_>,
        plan: &Plan,
        rank: u32,
        thread: u32,
        latest: i64,
    ) -> Result<()> {
        let arrival = self.arrival(plan, thread);
        if thread != CREATOR || !plan.has_taskwait {
            self.write_runs(writer, plan, rank, thread)?;
            // Who is idle has nothing to run: a task starts as soon as it exists and somebody is idle.
            writer.book("omp_ibarrier_wait", plan.idle(thread, arrival, latest));
            writer.book("omp_ibarrier_starvation", plan.idle(thread, arrival, plan.created));
            writer.book("omp_ibarrier_task_wait", plan.idle(thread, latest, plan.last_end));
        }
        Ok(())
    }
}
