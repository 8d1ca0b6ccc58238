//! Workloads whose iterations are parallel regions: the threads of each process share work, meet in the barrier at the end of the
//! region, and then all processes meet.

use whywait_otf2::Result;

use crate::collective::{CALL, Collective, GAP, Kind};
use crate::definitions::Region;
use crate::event_writer::EventWriter;
use crate::{Schedule, Start};

/// What the threads of a team do.
pub(crate) trait Body: Sync {
    /// The times of one parallel region.
    type Plan: Send + Sync;
    /// The schedule of a parallel region in which all threads begin at `begin`.
    fn plan(&self, start: &Start, rank: u32, number: usize, begin: i64) -> Self::Plan;
    /// When a thread arrives at the barrier.
    fn arrival(&self, plan: &Self::Plan, thread: u32) -> i64;
    /// When the last task that runs in the barrier is over, if any does.
    fn last_task(&self, _: &Self::Plan) -> i64 {
        i64::MIN
    }
    /// Writes what a thread does before the barrier.
    fn write(&self, writer: &mut EventWriter<'_>, plan: &Self::Plan, rank: u32, thread: u32) -> Result<()>;
    /// Writes what a thread does in the barrier; `latest` is when the last thread arrives.
    fn write_barrier(
        &self,
        writer: &mut EventWriter<'_>,
        plan: &Self::Plan,
        rank: u32,
        thread: u32,
        latest: i64,
    ) -> Result<()>;
}

pub(crate) struct Teams<'a, B: Body> {
    start: &'a Start,
    threads: u32,
    body: B,
    /// The parallel regions of each iteration by rank, and the barrier of all ranks behind them.
    rounds: Vec<(Vec<B::Plan>, Collective)>,
}

impl<'a, B: Body> Teams<'a, B> {
    pub(crate) fn new(start: &'a Start, body: B) -> Self {
        let threads = start.spec.stream.threads;
        let mut teams = Self { start, threads, body, rounds: Vec::new() };
        for number in 0..start.spec.iterations as usize {
            let plan = |rank| teams.body.plan(start, rank, number, teams.begin(rank, number) + GAP);
            let plans: Vec<B::Plan> = (0..start.ranks).map(plan).collect();
            let enter = |rank: u32| teams.joined(&plans[rank as usize]) + GAP;
            let barrier = start.collective_in_loop(number, enter);
            teams.rounds.push((plans, barrier));
        }
        teams
    }

    /// When a process forks its threads.
    fn begin(&self, rank: u32, number: usize) -> i64 {
        number.checked_sub(1).map_or_else(|| self.start.end(rank), |before| self.rounds[before].1.leave(rank) + GAP)
    }

    fn latest(&self, plan: &B::Plan) -> i64 {
        (0..self.threads).map(|thread| self.body.arrival(plan, thread)).max().unwrap_or(0)
    }

    /// When the threads leave the barrier.
    fn left(&self, plan: &B::Plan) -> i64 {
        self.latest(plan).max(self.body.last_task(plan)) + CALL
    }

    fn joined(&self, plan: &B::Plan) -> i64 {
        self.left(plan) + 2 * GAP
    }

    fn write_region(&self, writer: &mut EventWriter<'_>, rank: u32, number: usize, thread: u32) -> Result<()> {
        let plan = &self.rounds[number].0[rank as usize];
        writer.begin_team(self.begin(rank, number) + GAP, rank)?;
        self.body.write(writer, plan, rank, thread)?;
        writer.enter(self.body.arrival(plan, thread), Region::ImplicitBarrier)?;
        self.body.write_barrier(writer, plan, rank, thread, self.latest(plan))?;
        let left = self.left(plan);
        writer.leave(left)?;
        writer.end_team(left + GAP, rank)
    }
}

impl<B: Body> Schedule for Teams<'_, B> {
    fn threads(&self) -> u32 {
        self.threads
    }

    fn write(&self, writer: &mut EventWriter<'_>, rank: u32) -> Result<()> {
        for (number, (plans, barrier)) in self.rounds.iter().enumerate() {
            let joined = self.joined(&plans[rank as usize]);
            writer.fork(self.begin(rank, number), self.threads)?;
            self.write_region(writer, rank, number, 0)?;
            writer.join(joined)?;
            barrier.write(writer, &Kind::BARRIER, rank, joined + GAP)?;
        }
        Ok(())
    }

    fn write_thread(&self, writer: &mut EventWriter<'_>, rank: u32, thread: u32) -> Result<()> {
        (0..self.rounds.len()).try_for_each(|number| self.write_region(writer, rank, number, thread))
    }

    fn end(&self, rank: u32) -> i64 {
        self.begin(rank, self.rounds.len()) - GAP
    }
}
