//! Many origins that lock one target: its window is passed on in the order of requests.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use whywait_otf2::enums::LockType;
use whywait_otf2::{Event, Result};

use crate::collective::{CALL, Collective, GAP, Kind};
use crate::definitions::{Region, WINDOW};
use crate::event_writer::EventWriter;
use crate::{Schedule, Start};

pub(crate) struct Contention<'a> {
    start: &'a Start,
    /// When each origin got the lock, by epoch: the Leave of its call.
    locked: Vec<Vec<i64>>,
    barrier: Collective,
}

/// The process whose window is locked. It stays in the barrier, so that its library makes progress.
const TARGET: u32 = 0;
/// Ticks from the Leave of lock to that of unlock.
const HELD: i64 = GAP + CALL + GAP + CALL;

impl<'a> Contention<'a> {
    pub(crate) fn new(start: &'a Start) -> Self {
        let ranks = start.ranks;
        let epochs = start.spec.iterations as usize;
        let mut locked = vec![vec![0; ranks as usize]; epochs];
        let asks = |rank: u32| start.end(rank) + start.work(rank, 0) + GAP;
        let mut requests: BinaryHeap<Reverse<(i64, u32, usize)>> =
            (TARGET + 1..ranks).map(|rank| Reverse((asks(rank), rank, 0))).collect();
        let mut released = i64::MIN;
        while let Some(Reverse((time, rank, epoch))) = requests.pop() {
            let got = time.max(released) + CALL;
            released = got + HELD;
            locked[epoch][rank as usize] = got;
            if epoch + 1 < epochs {
                let next = released + GAP + start.work(rank, epoch as u64 + 1) + GAP;
                requests.push(Reverse((next, rank, epoch + 1)));
            }
        }
        let last = &locked[epochs - 1];
        let enter = |rank| Self::last_call(start, last, rank);
        let barrier = start.collective_in_loop(0, enter);
        Self { start, locked, barrier }
    }

    /// When a rank enters the barrier.
    fn last_call(start: &Start, last: &[i64], rank: u32) -> i64 {
        if rank == TARGET { start.end(rank) } else { last[rank as usize] + HELD + GAP }
    }
}

impl Schedule for Contention<'_> {
    fn write(&self, writer: &mut EventWriter<'_>, rank: u32) -> Result<()> {
        let (win, remote, lock_id) = (WINDOW, TARGET, 0);
        let mut begin = self.start.end(rank);
        for (epoch, locked) in self.locked.iter().enumerate().filter(|_| rank != TARGET) {
            let locked = locked[rank as usize];
            let enter = begin + self.start.work(rank, epoch as u64) + GAP;
            writer.enter(begin, Region::Compute)?;
            writer.leave(enter - GAP)?;
            writer.enter(enter, Region::WinLock)?;
            writer.record(enter, &Event::RmaRequestLock { win, remote, lock_id, lock_type: LockType::EXCLUSIVE })?;
            writer.book("mpi_rma_sync_lock_competition", locked - CALL - enter);
            writer.leave(locked)?;
            let matching_id = epoch as u64;
            let put = Event::RmaPut { win, remote, bytes: 8, matching_id };
            writer.call(Region::Put, locked + GAP, locked + GAP + CALL, &put)?;
            let released = locked + HELD;
            writer.enter(released - CALL, Region::WinUnlock)?;
            writer.record(released - 30, &Event::RmaOpCompleteNonBlocking { win, matching_id })?;
            writer.record(released - 20, &Event::RmaOpCompleteRemote { win, matching_id })?;
            writer.record(released - 20, &Event::RmaReleaseLock { win, remote, lock_id })?;
            writer.leave(released)?;
            begin = released + GAP;
        }
        let enter = Self::last_call(self.start, &self.locked[self.locked.len() - 1], rank);
        self.barrier.write(writer, &Kind::BARRIER, rank, enter)
    }

    fn end(&self, rank: u32) -> i64 {
        self.barrier.leave(rank)
    }
}
