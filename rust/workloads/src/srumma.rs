//! Parallel matrix multiplication with one-sided communication: at each step a block of A from a rank of the same row
//! and one of B from a rank of the same column, then work; at last a barrier.
//!
//! A get returns when its target is in the library: the target works on its own block, without a progress thread.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use whywait_otf2::{Event, Result};

use crate::collective::{CALL, Collective, GAP, Kind, TRANSFER};
use crate::definitions::{Region, WINDOW};
use crate::event_writer::EventWriter;
use crate::grid::Grid;
use crate::{Schedule, Start};

/// Bytes of a block.
const BLOCK: u64 = 1 << 20;
/// Ticks that a get takes once its target answers.
const GET: i64 = TRANSFER + CALL;

pub(crate) struct Srumma<'a> {
    start: &'a Start,
    grid: Grid,
    /// Leaves of the two gets of each rank, by step.
    gets: Vec<Vec<[i64; 2]>>,
    barrier: Collective,
}

/// The current activity of a rank, as far as it is known.
#[derive(Clone, Copy)]
struct Activity {
    /// Until when it is in the library.
    leave: i64,
    /// When it enters the library next.
    next: i64,
}

impl<'a> Srumma<'a> {
    pub(crate) fn new(start: &'a Start) -> Self {
        let (ranks, steps) = (start.ranks, start.spec.iterations as usize);
        let grid = Grid::new(ranks);
        let mut gets = vec![vec![[0; 2]; ranks as usize]; steps];
        let first = |rank: u32| Activity { leave: start.end(rank) - GAP, next: start.end(rank) };
        let mut doing: Vec<Activity> = (0..ranks).map(first).collect();
        let mut calls: BinaryHeap<Reverse<(i64, u32, usize)>> =
            (0..ranks).map(|rank| Reverse((doing[rank as usize].next, rank, 0))).collect();
        while let Some(Reverse((time, rank, call))) = calls.pop() {
            let (step, which) = (call / 2, call % 2);
            if step == steps {
                // In the barrier until everybody is.
                doing[rank as usize] = Activity { leave: i64::MAX, next: i64::MAX };
                continue;
            }
            // From here on inside the library, also for its own operations.
            doing[rank as usize].leave = i64::MAX;
            let target = doing[Self::target(grid, rank, call) as usize];
            let answered = if target.leave >= time { time } else { target.next };
            let leave = answered + GET;
            gets[step][rank as usize][which] = leave;
            let next = if which == 0 { leave + GAP } else { leave + GAP + start.work(rank, step as u64) + GAP };
            doing[rank as usize] = Activity { leave, next };
            calls.push(Reverse((next, rank, call + 1)));
        }
        let enter = |rank: u32| gets[steps - 1][rank as usize][1] + GAP + start.work(rank, steps as u64 - 1) + GAP;
        let barrier = start.collective_in_loop(0, enter);
        Self { start, grid, gets, barrier }
    }

    /// Whose block a rank's get fetches: along the row, then along the column, each step one further.
    fn target(grid: Grid, rank: u32, call: usize) -> u32 {
        let step = (call / 2 + 1) as u32;
        if call.is_multiple_of(2) { grid.around(rank, step, 0) } else { grid.around(rank, 0, step) }
    }
}

impl Schedule for Srumma<'_> {
    fn write(&self, writer: &mut EventWriter<'_>, rank: u32) -> Result<()> {
        let win = WINDOW;
        let mut enter = self.start.end(rank);
        for (step, gets) in self.gets.iter().enumerate() {
            for (which, leave) in gets[rank as usize].into_iter().enumerate() {
                let call = 2 * step + which;
                let (remote, matching_id) = (Self::target(self.grid, rank, call), call as u64);
                writer.enter(enter, Region::ArmciGet)?;
                writer.record(enter + 20, &Event::RmaGet { win, remote, bytes: BLOCK, matching_id })?;
                writer.record(leave - 20, &Event::RmaOpCompleteBlocking { win, matching_id })?;
                if remote != rank {
                    writer.book("armci_rma_comm_wait_for_progress", leave - GET - enter);
                    writer.book("armci_rma_comm_wait_for_progress_last_call", leave - GET - enter);
                }
                writer.leave(leave)?;
                enter = leave + GAP;
            }
            let ready = enter + self.start.work(rank, step as u64);
            writer.enter(enter, Region::Compute)?;
            writer.leave(ready)?;
            enter = ready + GAP;
        }
        self.barrier.write(writer, &Kind::ARMCI_BARRIER, rank, enter)
    }

    fn end(&self, rank: u32) -> i64 {
        self.barrier.leave(rank)
    }
}
