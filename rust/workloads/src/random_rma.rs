//! One-sided operations of random kind, size and target, between fences.
//!
//! After a fence nobody waits for what was before it, so all there is to know are the times at which the ranks are done
//! with their work, and of each rank the last operation on its window.

use rayon::prelude::*;
use whywait_otf2::enums::RmaAtomicType;
use whywait_otf2::{Event, Result};

use crate::definitions::{Region, WINDOW};
use crate::meeting::{CALL, GAP, Kind, Meeting};
use crate::noise::Purpose;
use crate::tape::Tape;
use crate::{Schedule, Start};

/// Operations of a rank in an epoch, at most.
const MOST: u64 = 4;

pub(crate) struct RandomRma<'a> {
    start: &'a Start,
    /// The fence that opens the first epoch.
    opening: Meeting,
    epochs: Vec<Epoch>,
}

struct Epoch {
    /// When each rank is done with its work.
    ready: Vec<i64>,
    /// Leave of the last operation on the window of each rank.
    last: Vec<i64>,
    fence: Meeting,
}

impl<'a> RandomRma<'a> {
    pub(crate) fn new(start: &'a Start) -> Self {
        let opening = start.meet_in_loop(0, |rank| start.end(rank));
        let mut random = Self { start, opening, epochs: Vec::new() };
        for number in 0..start.spec.iterations as usize {
            let done = |rank| random.begin(rank, number) + start.work(rank, number as u64);
            let ready: Vec<i64> = (0..start.ranks).into_par_iter().map(done).collect();
            let mut last = vec![i64::MIN; ready.len()];
            for (rank, &ready) in (0..).zip(&ready) {
                for slot in 0..random.count(rank, number) {
                    let last = &mut last[random.target(rank, number, slot) as usize];
                    *last = (*last).max(call_at(ready, slot) + CALL);
                }
            }
            let enter = |rank: u32| call_at(ready[rank as usize], random.count(rank, number));
            let fence = start.meet_in_loop(1 + number, enter);
            random.epochs.push(Epoch { ready, last, fence });
        }
        random
    }

    /// When a rank begins to work.
    fn begin(&self, rank: u32, number: usize) -> i64 {
        let fence = number.checked_sub(1).map_or(self.opening, |before| self.epochs[before].fence);
        fence.leave(rank) + GAP
    }

    /// Number of operations of a rank in an epoch.
    fn count(&self, rank: u32, number: usize) -> u64 {
        self.below(MOST + 1, rank, number, 0, 0)
    }

    /// Whom an operation is for: anybody else.
    fn target(&self, rank: u32, number: usize, slot: u64) -> u32 {
        let ranks = self.start.ranks;
        (rank + 1 + self.below(u64::from(ranks) - 1, rank, number, slot, 1) as u32) % ranks
    }

    /// A number for the `what`-th question about an operation.
    fn below(&self, limit: u64, rank: u32, number: usize, slot: u64, what: u64) -> u64 {
        let step = (number as u64 * MOST + slot) * 4 + what;
        self.start.noise.below(limit as i64, Purpose::Operation, rank, step) as u64
    }

    fn operate(&self, tape: &mut Tape<'_>, rank: u32, number: usize, slot: u64) -> Result<()> {
        let (win, matching_id) = (WINDOW, number as u64 * MOST + slot);
        let remote = self.target(rank, number, slot);
        let bytes = 8 << self.below(14, rank, number, slot, 2);
        let (region, event) = match self.below(3, rank, number, slot, 3) {
            0 => (Region::Put, Event::RmaPut { win, remote, bytes, matching_id }),
            1 => (Region::Get, Event::RmaGet { win, remote, bytes, matching_id }),
            _ => {
                let (atomic_type, bytes_sent, bytes_received) = (RmaAtomicType::ACCUMULATE, bytes, 0);
                let event = Event::RmaAtomic { win, remote, atomic_type, bytes_sent, bytes_received, matching_id };
                (Region::Accumulate, event)
            }
        };
        let enter = call_at(self.epochs[number].ready[rank as usize], slot);
        tape.call(region, enter, enter + CALL, &event)
    }
}

/// Begin of the `slot`-th call after the work.
fn call_at(ready: i64, slot: u64) -> i64 {
    ready + GAP + slot as i64 * (CALL + GAP)
}

impl Schedule for RandomRma<'_> {
    fn play(&self, tape: &mut Tape<'_>, rank: u32) -> Result<()> {
        self.opening.play(tape, &Kind::FENCE, rank, self.start.end(rank))?;
        for (number, Epoch { ready, last, fence }) in self.epochs.iter().enumerate() {
            let (ready, last) = (ready[rank as usize], last[rank as usize]);
            tape.enter(self.begin(rank, number), Region::Compute)?;
            tape.leave(ready)?;
            let count = self.count(rank, number);
            for slot in 0..count {
                self.operate(tape, rank, number, slot)?;
            }
            let first = number as u64 * MOST;
            let enter = call_at(ready, count);
            fence.play_with(tape, &Kind::FENCE, rank, enter, first..first + count, |tape| {
                tape.book("mpi_rma_early_fence", last.saturating_sub(enter));
            })?;
        }
        Ok(())
    }

    fn end(&self, rank: u32) -> i64 {
        self.epochs[self.epochs.len() - 1].fence.leave(rank)
    }
}
