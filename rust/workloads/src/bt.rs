//! A multi-partition as in the benchmark BT: each iteration sweeps along three directions. At each stage of a sweep,
//! every rank computes a cell, sends its border to its successor, and receives that of its predecessor.
//!
//! Sends are synchronous: their waits end when the receive is posted. Nothing else keeps the ranks together, so that
//! waits propagate along the sweeps and messages arrive in a different order than they are received.

use rayon::prelude::*;
use whywait_otf2::{Event, Result};

use crate::collective::{CALL, Collective, GAP, Kind, TRANSFER};
use crate::definitions::{Region, WORLD};
use crate::event_writer::EventWriter;
use crate::grid::Grid;
use crate::late_senders::RecentLateSenders;
use crate::{Schedule, Start};

/// Cells per rank, which are the stages of a sweep.
const STAGES: usize = 4;
/// Sweeps of an iteration.
const SWEEPS: [Region; 3] = [Region::SolveX, Region::SolveY, Region::SolveZ];
/// Bytes of a border.
const BORDER: u64 = 1 << 14;

pub(crate) struct Bt<'a> {
    start: &'a Start,
    grid: Grid,
    /// When each rank is done with its work, by stage of the run.
    ready: Vec<Vec<i64>>,
    barrier: Collective,
}

/// Begin of a stage's calls: receive, send, wait for the receive.
fn posted(ready: i64) -> i64 {
    ready + GAP
}

fn sent(ready: i64) -> i64 {
    posted(ready) + CALL + GAP
}

fn waits(ready: i64) -> i64 {
    sent(ready) + CALL + GAP
}

impl<'a> Bt<'a> {
    pub(crate) fn new(start: &'a Start) -> Self {
        let ranks = start.ranks;
        let grid = Grid::new(ranks);
        let mut bt = Self { start, grid, ready: Vec::new(), barrier: start.init };
        for stage in 0..start.spec.iterations as usize * SWEEPS.len() * STAGES {
            let ready = (0..ranks).into_par_iter().map(|rank| bt.begin(rank, stage) + start.work(rank, stage as u64));
            let ready = ready.collect();
            bt.ready.push(ready);
        }
        bt.barrier = start.collective_in_loop(0, |rank| bt.enters_barrier(rank));
        bt
    }

    /// Predecessor and successor of a rank at a stage.
    fn partners(&self, rank: u32, stage: usize) -> (u32, u32) {
        let Grid { width, height } = self.grid;
        let (right, down) = [(1, 0), (0, 1), (1, 1)][stage / STAGES % SWEEPS.len()];
        (self.grid.around(rank, width - right, height - down), self.grid.around(rank, right, down))
    }

    /// Leaves of the two waits of a stage.
    fn received(&self, rank: u32, stage: usize) -> i64 {
        let ready = &self.ready[stage];
        let (from, _) = self.partners(rank, stage);
        waits(ready[rank as usize]).max(sent(ready[from as usize]) + TRANSFER) + CALL
    }

    fn delivered(&self, rank: u32, stage: usize) -> i64 {
        let (_, to) = self.partners(rank, stage);
        (self.received(rank, stage) + GAP).max(posted(self.ready[stage][to as usize])) + CALL
    }

    /// When a rank begins to work at a stage. A sweep has its own region.
    fn begin(&self, rank: u32, stage: usize) -> i64 {
        let before =
            stage.checked_sub(1).map_or_else(|| self.start.end(rank), |before| self.delivered(rank, before) + GAP);
        if stage.is_multiple_of(STAGES) { before + 2 * GAP } else { before }
    }

    fn enters_barrier(&self, rank: u32) -> i64 {
        self.delivered(rank, self.ready.len() - 1) + 2 * GAP
    }

    fn write_stage(
        &self,
        writer: &mut EventWriter<'_>,
        rank: u32,
        stage: usize,
        recent: &mut RecentLateSenders,
    ) -> Result<()> {
        let ready = &self.ready[stage];
        let own = ready[rank as usize];
        let (sender, receiver) = self.partners(rank, stage);
        let (communicator, msg_tag, msg_length) = (WORLD, (stage / STAGES % SWEEPS.len()) as u32, BORDER);
        let requests = 2 * stage as u64;
        writer.enter(self.begin(rank, stage), Region::Compute)?;
        writer.leave(own)?;
        let event = Event::MpiIrecvRequest { request_id: requests };
        writer.call(Region::Irecv, posted(own), posted(own) + CALL, &event)?;
        let event = Event::MpiIsend { receiver, communicator, msg_tag, msg_length, request_id: requests + 1 };
        writer.call(Region::Isend, sent(own), sent(own) + CALL, &event)?;

        let (enter, leave) = (waits(own), self.received(rank, stage));
        writer.enter(enter, Region::Wait)?;
        let event = Event::MpiIrecv { sender, communicator, msg_tag, msg_length, request_id: requests };
        writer.record(leave - 20, &event)?;
        let begun = sent(ready[sender as usize]);
        recent.receive(writer, sender, enter, begun, begun + 20);
        writer.leave(leave)?;

        let enter = leave + GAP;
        writer.enter(enter, Region::Wait)?;
        let leave = self.delivered(rank, stage);
        writer.record(leave - 20, &Event::MpiIsendComplete { request_id: requests + 1 })?;
        writer.book("mpi_latereceiver", posted(ready[receiver as usize]) - enter);
        writer.leave(leave)
    }
}

impl Schedule for Bt<'_> {
    fn write(&self, writer: &mut EventWriter<'_>, rank: u32) -> Result<()> {
        let mut recent = RecentLateSenders::default();
        for stage in 0..self.ready.len() {
            if stage.is_multiple_of(STAGES) {
                writer.enter(self.begin(rank, stage) - GAP, SWEEPS[stage / STAGES % SWEEPS.len()])?;
            }
            self.write_stage(writer, rank, stage, &mut recent)?;
            if (stage + 1).is_multiple_of(STAGES) {
                writer.leave(self.delivered(rank, stage) + GAP)?;
            }
        }
        self.barrier.write(writer, &Kind::BARRIER, rank, self.enters_barrier(rank))
    }

    fn end(&self, rank: u32) -> i64 {
        self.barrier.leave(rank)
    }
}
