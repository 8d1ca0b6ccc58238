//! Successive over-relaxation: work, an exchange of the halo with up to four neighbours, an Allreduce.
//!
//! After the Allreduce, no process waits for anything before it. So, except for locks, the times at which the ranks finish
//! their computation determine the whole schedule.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rayon::prelude::*;
use whywait_otf2::enums::LockType;
use whywait_otf2::{Event, Result};

use crate::collective::{CALL, Collective, GAP, Kind, TRANSFER};
use crate::definitions::{Region, WINDOW, WORLD};
use crate::event_writer::EventWriter;
use crate::gats::Epoch;
use crate::grid::{Direction, Grid, opposite};
use crate::{Schedule, Start};

/// How the halo is exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variant {
    P2p,
    Fence,
    Gats,
    Locks,
}

/// Bytes of a side of the halo.
const HALO: u64 = 8192;

pub(crate) struct Sor<'a> {
    start: &'a Start,
    grid: Grid,
    variant: Variant,
    /// The fence that opens the first epoch.
    opening: Option<Collective>,
    iterations: Vec<Iteration>,
}

struct Iteration {
    /// When each rank is done with its work.
    ready: Vec<i64>,
    fence: Option<Collective>,
    /// Leaves of lock and unlock for each neighbour of each rank.
    locks: Vec<[(i64, i64); 4]>,
    allreduce: Collective,
}

/// Begin of the `slot`-th call of the exchange, if none of the calls before it waits.
fn call_at(ready: i64, slot: usize) -> i64 {
    ready + 2 * GAP + slot as i64 * (CALL + GAP)
}

impl<'a> Sor<'a> {
    pub(crate) fn new(start: &'a Start, variant: Variant) -> Self {
        let opening = (variant == Variant::Fence).then(|| start.collective_in_loop(0, |rank| start.end(rank)));
        let mut sor = Self { start, grid: Grid::new(start.ranks), variant, opening, iterations: Vec::new() };
        for number in 0..start.spec.iterations as usize {
            let ready: Vec<i64> = (0..start.ranks)
                .into_par_iter()
                .map(|rank| sor.begin(rank, number) + start.work(rank, number as u64))
                .collect();
            let fence = (variant == Variant::Fence).then(|| {
                start.collective_in_loop(1 + 2 * number, |rank| call_at(ready[rank as usize], sor.neighbours(rank)))
            });
            let locks = if variant == Variant::Locks { sor.lock_all(&ready) } else { Vec::new() };
            let exchange = |rank| sor.exchanged(rank, &ready, fence.as_ref(), &locks) + GAP;
            let allreduce = start.collective_in_loop(2 + 2 * number, exchange);
            sor.iterations.push(Iteration { ready, fence, locks, allreduce });
        }
        sor
    }

    fn neighbours(&self, rank: u32) -> usize {
        self.grid.neighbours(rank).count()
    }

    /// When a rank begins to compute.
    fn begin(&self, rank: u32, iteration: usize) -> i64 {
        match iteration.checked_sub(1) {
            Some(before) => self.iterations[before].allreduce.leave(rank) + GAP,
            None => self.opening.map_or_else(|| self.start.end(rank), |opening| opening.leave(rank) + GAP),
        }
    }

    /// When a rank leaves the exchange.
    fn exchanged(&self, rank: u32, ready: &[i64], fence: Option<&Collective>, locks: &[[(i64, i64); 4]]) -> i64 {
        let own = ready[rank as usize];
        GAP + match self.variant {
            Variant::P2p => {
                let waitall = call_at(own, 2 * self.neighbours(rank));
                self.last_send(rank, ready).map_or(waitall, |sent| waitall.max(sent + TRANSFER)) + CALL
            }
            Variant::Fence => fence.map_or(own, |fence| fence.leave(rank)),
            Variant::Gats => self.win_wait(rank, ready).max(self.last_complete(rank, ready)) + CALL,
            Variant::Locks => locks[rank as usize][self.neighbours(rank) - 1].1,
        }
    }

    // --- messages ----------------------------------------------------------------------------------------------------

    /// When a rank enters the send to its neighbour in a direction.
    fn send(&self, rank: u32, direction: Direction, ready: &[i64]) -> i64 {
        call_at(ready[rank as usize], self.neighbours(rank) + self.grid.position(rank, direction))
    }

    /// Enter of the last send to a rank.
    fn last_send(&self, rank: u32, ready: &[i64]) -> Option<i64> {
        self.grid.neighbours(rank).map(|(towards, from)| self.send(from, opposite(towards), ready)).max()
    }

    fn write_p2p(&self, writer: &mut EventWriter<'_>, rank: u32, number: usize) -> Result<()> {
        let ready = &self.iterations[number].ready;
        let own = ready[rank as usize];
        let count = self.neighbours(rank);
        let requests = (number * 2 * count) as u64;
        for (slot, request_id) in (0..count).zip(requests..) {
            let enter = call_at(own, slot);
            writer.call(Region::Irecv, enter, enter + CALL, &Event::MpiIrecvRequest { request_id })?;
        }
        let message = |direction: Direction| (WORLD, direction as u32, HALO);
        for (slot, (direction, receiver)) in self.grid.neighbours(rank).enumerate() {
            let enter = call_at(own, count + slot);
            let (communicator, msg_tag, msg_length) = message(direction);
            let request_id = requests + (count + slot) as u64;
            let event = Event::MpiIsend { receiver, communicator, msg_tag, msg_length, request_id };
            writer.call(Region::Isend, enter, enter + CALL, &event)?;
        }
        let enter = call_at(own, 2 * count);
        let leave = self.exchanged(rank, ready, None, &[]) - GAP;
        writer.enter(enter, Region::Waitall)?;
        for (slot, (direction, sender)) in (0..).zip(self.grid.neighbours(rank)) {
            let (communicator, msg_tag, msg_length) = message(opposite(direction));
            let request_id = requests + slot;
            let event = Event::MpiIrecv { sender, communicator, msg_tag, msg_length, request_id };
            writer.record(leave - CALL + 10 * slot as i64, &event)?;
        }
        for request_id in requests + count as u64..requests + 2 * count as u64 {
            writer.record(leave - CALL / 2, &Event::MpiIsendComplete { request_id })?;
        }
        if let Some(sent) = self.last_send(rank, ready) {
            writer.book("mpi_latesender", sent - enter);
        }
        writer.leave(leave)
    }

    // --- fences ------------------------------------------------------------------------------------------------------

    fn puts(
        &self,
        writer: &mut EventWriter<'_>,
        rank: u32,
        number: usize,
        enter: impl Fn(usize) -> i64,
    ) -> Result<std::ops::Range<u64>> {
        let first = (number * self.neighbours(rank)) as u64;
        let mut next = first;
        for (slot, (_, remote)) in self.grid.neighbours(rank).enumerate() {
            let event = Event::RmaPut { win: WINDOW, remote, bytes: HALO, matching_id: next };
            writer.call(Region::Put, enter(slot), enter(slot) + CALL, &event)?;
            next += 1;
        }
        Ok(first..next)
    }

    fn write_fence(&self, writer: &mut EventWriter<'_>, rank: u32, number: usize) -> Result<()> {
        let Iteration { ready, fence: Some(fence), .. } = &self.iterations[number] else { return Ok(()) };
        let own = ready[rank as usize];
        let puts = self.puts(writer, rank, number, |slot| call_at(own, slot))?;
        let enter = call_at(own, self.neighbours(rank));
        let put_of =
            |(towards, from)| call_at(ready[from as usize], self.grid.position(from, opposite(towards))) + CALL;
        let last_put = self.grid.neighbours(rank).map(put_of).max().unwrap_or(i64::MIN);
        let completed = puts.rev().map(|put| (put, false));
        fence.write_with(writer, &Kind::FENCE, rank, enter, completed, |writer| {
            writer.book("mpi_rma_early_fence", last_put.saturating_sub(enter));
        })
    }

    // --- post, start, complete, wait
    // -----------------------------------------------------------------------------------

    fn post(ready: i64) -> i64 {
        call_at(ready, 0)
    }

    fn win_start(ready: i64) -> i64 {
        call_at(ready, 1)
    }

    /// Enter of the last post for a rank.
    fn last_post(&self, rank: u32, ready: &[i64]) -> i64 {
        self.grid.neighbours(rank).map(|(_, to)| Self::post(ready[to as usize])).max().unwrap_or(i64::MIN)
    }

    /// When a rank leaves start.
    fn started(&self, rank: u32, ready: &[i64]) -> i64 {
        Self::win_start(ready[rank as usize]).max(self.last_post(rank, ready)) + CALL
    }

    /// Enter of a rank's `slot`-th put.
    fn put(&self, rank: u32, slot: usize, ready: &[i64]) -> i64 {
        self.started(rank, ready) + GAP + slot as i64 * (CALL + GAP)
    }

    fn complete(&self, rank: u32, ready: &[i64]) -> i64 {
        self.put(rank, self.neighbours(rank), ready)
    }

    fn win_wait(&self, rank: u32, ready: &[i64]) -> i64 {
        self.complete(rank, ready) + CALL + GAP
    }

    /// Latest Enter of complete among the ranks that put to a rank.
    fn last_complete(&self, rank: u32, ready: &[i64]) -> i64 {
        self.grid.neighbours(rank).map(|(_, from)| self.complete(from, ready)).max().unwrap_or(i64::MIN)
    }

    fn write_gats(&self, writer: &mut EventWriter<'_>, rank: u32, number: usize) -> Result<()> {
        let ready = &self.iterations[number].ready;
        let own = ready[rank as usize];
        let epoch = Epoch { window: WINDOW, group: rank };

        let post = Self::post(own);
        epoch.post(writer, (post, post + CALL))?;
        let start = Self::win_start(own);
        let late_post = self.last_post(rank, ready).saturating_sub(start);
        epoch.start(writer, (start, self.started(rank, ready)), late_post)?;
        let puts = self.puts(writer, rank, number, |slot| self.put(rank, slot, ready))?;
        let complete = self.complete(rank, ready);
        epoch.complete(writer, (complete, complete + CALL), puts)?;

        let wait = self.win_wait(rank, ready);
        let until = self.last_complete(rank, ready);
        let put_of = |(towards, from)| self.put(from, self.grid.position(from, opposite(towards)), ready) + CALL;
        let last_put = self.grid.neighbours(rank).map(put_of).max().unwrap_or(i64::MIN);
        let [early, late] = [wait, wait.max(last_put)].map(|since| until.saturating_sub(since));
        epoch.wait(writer, (wait, wait.max(until) + CALL), early, late)
    }

    // --- locks
    // ---------------------------------------------------------------------------------------------------------

    /// Simulates the exchange: a lock is granted in the order of requests, an unlock returns once the target is in MPI.
    fn lock_all(&self, ready: &[i64]) -> Vec<[(i64, i64); 4]> {
        let mut locks = vec![[(0, 0); 4]; ready.len()];
        let mut released = vec![i64::MIN; ready.len()];
        let mut requests: BinaryHeap<Reverse<(i64, u32, usize)>> =
            (0..).zip(ready).map(|(rank, &ready)| Reverse((call_at(ready, 0), rank, 0))).collect();
        while let Some(Reverse((time, rank, slot))) = requests.pop() {
            let Some((_, target)) = self.grid.neighbours(rank).nth(slot) else { continue };
            let target = target as usize;
            let lock = time.max(released[target]) + CALL;
            let unlock = Self::unlock(lock).max(call_at(ready[target], 0)) + CALL;
            released[target] = unlock;
            locks[rank as usize][slot] = (lock, unlock);
            requests.push(Reverse((unlock + GAP, rank, slot + 1)));
        }
        locks
    }

    /// Enter of the unlock after the Leave of the lock.
    fn unlock(locked: i64) -> i64 {
        locked + GAP + CALL + GAP
    }

    /// Enter and Leave of all calls of a rank in the exchange and the Allreduce after it.
    fn calls(&self, rank: u32, number: usize) -> impl Iterator<Item = (i64, i64)> {
        let Iteration { ready, locks, allreduce, .. } = &self.iterations[number];
        let mut begin = call_at(ready[rank as usize], 0);
        let mut calls = Vec::with_capacity(13);
        for &(lock, unlock) in &locks[rank as usize][..self.neighbours(rank)] {
            let put = lock + GAP;
            calls.extend([(begin, lock), (put, put + CALL), (Self::unlock(lock), unlock)]);
            begin = unlock + GAP;
        }
        calls.push((begin + GAP, allreduce.leave(rank)));
        calls.into_iter()
    }

    /// How long a lock call waits from the holder's release until the target grants the lock.
    fn granted(&self, target: u32, number: usize, (enter, leave): (i64, i64)) -> Option<i64> {
        let released = leave - CALL;
        let calls: Vec<(i64, i64)> = self.calls(target, number).collect();
        let within = |begin: &i64| released < *begin && *begin < leave;
        if released > enter {
            let first = calls.iter().map(|call| call.0).find(|&begin| begin > released);
            return first.filter(within).map(|begin| begin - released);
        }
        calls.iter().find(|call| call.1 >= enter).filter(|call| within(&call.0))?;
        calls.iter().map(|call| call.0).rfind(within).map(|begin| begin - enter)
    }

    fn write_locks(&self, writer: &mut EventWriter<'_>, rank: u32, number: usize) -> Result<()> {
        let Iteration { ready, locks, .. } = &self.iterations[number];
        let mut enter = call_at(ready[rank as usize], 0);
        let count = self.neighbours(rank) as u64;
        for (slot, (_, remote)) in self.grid.neighbours(rank).enumerate() {
            let (locked, unlocked) = locks[rank as usize][slot];
            let (win, lock_id) = (WINDOW, 0);
            writer.enter(enter, Region::WinLock)?;
            writer.record(enter, &Event::RmaRequestLock { win, remote, lock_id, lock_type: LockType::EXCLUSIVE })?;
            writer.book("mpi_rma_sync_lock_competition", locked - CALL - enter);
            if let Some(waiting) = self.granted(remote, number, (enter, locked)) {
                writer.book("mpi_rma_sync_wait_for_progress", waiting);
                writer.book("mpi_rma_sync_wait_for_progress_last_call", waiting);
            }
            writer.leave(locked)?;
            let matching_id = number as u64 * count + slot as u64;
            let put = Event::RmaPut { win, remote, bytes: HALO, matching_id };
            writer.call(Region::Put, locked + GAP, locked + GAP + CALL, &put)?;
            let unlock = Self::unlock(locked);
            writer.enter(unlock, Region::WinUnlock)?;
            writer.record(unlocked - 30, &Event::RmaOpCompleteNonBlocking { win, matching_id })?;
            writer.record(unlocked - 20, &Event::RmaOpCompleteRemote { win, matching_id })?;
            writer.record(unlocked - 20, &Event::RmaReleaseLock { win, remote, lock_id })?;
            // The target makes progress in its first call that has not ended.
            let helping = self.calls(remote, number).find(|&(_, leave)| leave >= unlock);
            if let Some((begin, _)) = helping.filter(|&(begin, _)| begin < unlocked) {
                writer.book("mpi_rma_sync_wait_for_progress", begin - unlock);
                writer.book("mpi_rma_sync_wait_for_progress_last_call", begin - unlock);
            }
            writer.leave(unlocked)?;
            enter = unlocked + GAP;
        }
        Ok(())
    }
}

impl Schedule for Sor<'_> {
    fn groups(&self) -> Vec<Vec<u64>> {
        if self.variant != Variant::Gats {
            return Vec::new();
        }
        let members = |rank| {
            let mut members: Vec<u64> = self.grid.neighbours(rank).map(|(_, to)| u64::from(to)).collect();
            members.sort_unstable();
            members
        };
        (0..self.start.ranks).map(members).collect()
    }

    fn write(&self, writer: &mut EventWriter<'_>, rank: u32) -> Result<()> {
        if let Some(opening) = &self.opening {
            opening.write(writer, &Kind::FENCE, rank, self.start.end(rank))?;
        }
        for (number, iteration) in self.iterations.iter().enumerate() {
            let ready = iteration.ready[rank as usize];
            writer.enter(self.begin(rank, number), Region::Compute)?;
            writer.leave(ready)?;
            writer.enter(ready + GAP, Region::Exchange)?;
            match self.variant {
                Variant::P2p => self.write_p2p(writer, rank, number)?,
                Variant::Fence => self.write_fence(writer, rank, number)?,
                Variant::Gats => self.write_gats(writer, rank, number)?,
                Variant::Locks => self.write_locks(writer, rank, number)?,
            }
            let Iteration { ready, fence, locks, allreduce } = iteration;
            let exchanged = self.exchanged(rank, ready, fence.as_ref(), locks);
            writer.leave(exchanged)?;
            allreduce.write(writer, &Kind::ALLREDUCE, rank, exchanged + GAP)?;
        }
        Ok(())
    }

    fn end(&self, rank: u32) -> i64 {
        self.iterations[self.iterations.len() - 1].allreduce.leave(rank)
    }
}
