//! The microbenchmark of lock contention (thesis, section 5.6). Between two barriers process 0 locks its own memory and
//! works in `bar`; the others put to it, each in an epoch of its own, and wait in unlock for the lock in the order of
//! their ranks. Process 1 is served when process 0 unlocks. Process 2 has to wait until process 0 is in the library
//! again, in the barrier, as it works in `foo` before; from then on one follows the other.
//!
//! Work is in multiples of [`crate::Spec::work`]: with a millisecond `bar` takes 2 s and `foo` 0.1 s after the lock.

use whywait_otf2::enums::LockType;
use whywait_otf2::{Event, Result};

use crate::collective::{CALL, Collective, GAP, JITTER, Kind};
use crate::definitions::{Region, WINDOW};
use crate::event_writer::EventWriter;
use crate::{Schedule, Start};

/// `foo` before the lock, `bar`, and `foo` after the lock, in units of work.
const BEFORE: i64 = 560;
const BAR: i64 = 2000;
const AFTER: i64 = 100;
/// How far the processes' times in `foo` lie apart at most.
const APART: i64 = 1000;

const TARGET: u32 = 0;

pub(crate) struct Lock<'a> {
    start: &'a Start,
    /// The first barrier, and that of each iteration.
    barriers: Vec<Collective>,
    /// Enter and Leave of each process' unlock, by iteration.
    unlocks: Vec<Vec<(i64, i64)>>,
}

impl<'a> Lock<'a> {
    pub(crate) fn new(start: &'a Start) -> Self {
        let mut lock = Self { start, barriers: Vec::new(), unlocks: Vec::new() };
        lock.barriers.push(start.collective_in_loop(0, |rank| start.end(rank)));
        for number in 0..start.spec.iterations as usize {
            let unlocks = lock.unlock_times(number);
            let enter = |rank: u32| lock.enters_barrier(unlocks[rank as usize].1);
            let barrier = start.collective_in_loop(number + 1, enter);
            lock.unlocks.push(unlocks);
            lock.barriers.push(barrier);
        }
        lock
    }

    fn unit(&self) -> i64 {
        i64::from(self.start.spec.work)
    }

    /// Ticks from the grant of a lock to the Leave of unlock.
    fn access(&self) -> i64 {
        self.unit() / 5
    }

    fn begin(&self, rank: u32, number: usize) -> i64 {
        self.barriers[number].leave(rank) + GAP
    }

    /// Enter of lock: later with each rank.
    fn locks(&self, rank: u32, number: usize) -> i64 {
        let (unit, ranks) = (self.unit(), i64::from(self.start.ranks));
        let skew = ((unit as f64 * self.start.spec.imbalance) as i64).min(APART * unit / ranks) + 3 * JITTER;
        self.begin(rank, number) + BEFORE * unit + i64::from(rank) * skew + GAP
    }

    /// Enter and Leave of the unlock calls, in the order of acquisition.
    fn unlock_times(&self, number: usize) -> Vec<(i64, i64)> {
        let enter = self.locks(TARGET, number) + CALL + GAP + BAR * self.unit() + GAP;
        let mut unlocks = vec![(enter, enter + self.unit())];
        for rank in 1..self.start.ranks {
            let before = unlocks[rank as usize - 1].1;
            let granted = if rank == 2 { self.enters_barrier(unlocks[0].1) } else { before };
            unlocks.push((self.locks(rank, number) + 2 * (CALL + GAP), granted + self.access()));
        }
        unlocks
    }

    fn enters_barrier(&self, unlocked: i64) -> i64 {
        unlocked + GAP + AFTER * self.unit() + GAP
    }

    fn write_epoch(&self, writer: &mut EventWriter<'_>, rank: u32, number: usize) -> Result<()> {
        let (win, remote, lock_id, matching_id) = (WINDOW, TARGET, 0, number as u64);
        let enter = self.locks(rank, number);
        let request = Event::RmaRequestLock { win, remote, lock_id, lock_type: LockType::EXCLUSIVE };
        let inside = enter + CALL + GAP;
        let (unlock, leave) = self.unlocks[number][rank as usize];
        writer.enter(enter, Region::WinLock)?;
        writer.record(enter, &request)?;
        writer.leave(enter + CALL)?;
        if rank == TARGET {
            writer.enter(inside, Region::Bar)?;
            writer.leave(unlock - GAP)?;
        } else {
            writer.call(Region::Put, inside, inside + CALL, &Event::RmaPut { win, remote, bytes: 8, matching_id })?;
        }
        writer.enter(unlock, Region::WinUnlock)?;
        if rank != TARGET {
            writer.record(leave - 30, &Event::RmaOpCompleteNonBlocking { win, matching_id })?;
            writer.record(leave - 20, &Event::RmaOpCompleteRemote { win, matching_id })?;
            let released = self.unlocks[number][rank as usize - 1].1;
            writer.book("mpi_rma_sync_lock_competition", released - unlock);
            let progress = leave - self.access() - released;
            writer.book("mpi_rma_sync_wait_for_progress", progress);
            writer.book("mpi_rma_sync_wait_for_progress_last_call", progress);
        }
        writer.record(leave - 20, &Event::RmaReleaseLock { win, remote, lock_id })?;
        writer.leave(leave)
    }
}

impl Schedule for Lock<'_> {
    fn write(&self, writer: &mut EventWriter<'_>, rank: u32) -> Result<()> {
        self.barriers[0].write(writer, &Kind::BARRIER, rank, self.start.end(rank))?;
        for (number, unlocks) in self.unlocks.iter().enumerate() {
            writer.enter(self.begin(rank, number), Region::Foo)?;
            writer.leave(self.locks(rank, number) - GAP)?;
            self.write_epoch(writer, rank, number)?;
            let unlocked = unlocks[rank as usize].1;
            let enter = self.enters_barrier(unlocked);
            writer.enter(unlocked + GAP, Region::Foo)?;
            writer.leave(enter - GAP)?;
            self.barriers[number + 1].write(writer, &Kind::BARRIER, rank, enter)?;
        }
        Ok(())
    }

    fn end(&self, rank: u32) -> i64 {
        self.barriers[self.barriers.len() - 1].leave(rank)
    }
}
