//! One-sided operations of random kind, size and target: in the epochs of fences, and in those of locks.
//!
//! After a fence, no process waits for anything before it, so each iteration is simulated separately, from a fence to the
//! next.

use rayon::prelude::*;
use whywait_otf2::enums::{LockType, RmaAtomicType};
use whywait_otf2::records::UNDEFINED;
use whywait_otf2::{Event, Result};

use crate::collective::{Collective, GAP, Kind};
use crate::definitions::{Region, WINDOW};
use crate::event_writer::EventWriter;
use crate::passive::{self, Call, Outcome};
use crate::program::{Completion, Locked, Operation, Sharing, Step, is_active, program};
use crate::{Schedule, Start};

pub(crate) struct RandomRma<'a> {
    start: &'a Start,
    /// The fence that opens the first epoch.
    opening: Collective,
    iterations: Vec<Iteration>,
}

struct Iteration {
    outcomes: Vec<Outcome>,
    /// Leave of the last operation on the window of each rank that the fence completes.
    last: Vec<i64>,
    fence: Collective,
}

impl<'a> RandomRma<'a> {
    pub(crate) fn new(start: &'a Start) -> Self {
        let opening = start.collective_in_loop(0, |rank| start.end(rank));
        let mut random = Self { start, opening, iterations: Vec::new() };
        for number in 0..start.spec.iterations as usize {
            let programs: Vec<Vec<Step>> =
                (0..start.ranks).into_par_iter().map(|rank| program(start, rank, number)).collect();
            let outcomes = passive::run(&programs, |rank| random.begin(rank, number));
            let mut last = vec![i64::MIN; programs.len()];
            if is_active(number) {
                for (steps, outcome) in programs.iter().zip(&outcomes) {
                    let operations = steps.iter().filter_map(|step| match step {
                        Step::Operate(operation) => Some(operation),
                        _ => None,
                    });
                    for (operation, call) in operations.zip(&outcome.calls) {
                        let last = &mut last[operation.target as usize];
                        *last = (*last).max(call.leave);
                    }
                }
            }
            let fence = start.collective_in_loop(1 + number, |rank| outcomes[rank as usize].end);
            random.iterations.push(Iteration { outcomes, last, fence });
        }
        random
    }

    /// When a rank begins an iteration.
    fn begin(&self, rank: u32, number: usize) -> i64 {
        let fence = number.checked_sub(1).map_or(self.opening, |before| self.iterations[before].fence);
        fence.leave(rank) + GAP
    }
}

impl Iteration {
    /// Writes a call that completes operations; ids of operations count from `first`.
    fn complete(&self, writer: &mut EventWriter<'_>, call: &Call, completion: &Completion, first: u64) -> Result<()> {
        let Completion { region, here, there, targets, unlocks } = completion;
        let (win, lock_id) = (WINDOW, 0);
        writer.enter(call.enter, *region)?;
        let mut stamp = call.enter;
        for id in here {
            stamp = call.leave - 30;
            writer.record(stamp, &Event::RmaOpCompleteNonBlocking { win, matching_id: first + id })?;
        }
        for id in there {
            stamp = call.leave - 20;
            writer.record(stamp, &Event::RmaOpCompleteRemote { win, matching_id: first + id })?;
        }
        if let Some(locked) = unlocks {
            let remote = match locked {
                Locked::One(target) => *target,
                Locked::All => UNDEFINED,
            };
            // It has the time of the record before.
            writer.record(stamp, &Event::RmaReleaseLock { win, remote, lock_id })?;
        }
        // A call waits before each target's progress that overlaps none of the others' progress.
        let mut helping: Vec<(i64, i64)> = targets.iter().map(|&target| self.helping(target, call.enter)).collect();
        helping.sort_unstable();
        let (mut waiting, mut reference) = (0, call.enter);
        for &(enter, leave) in &helping {
            waiting += (enter - reference).max(0);
            reference = reference.max(leave);
        }
        if let Some(&(last, _)) = helping.last().filter(|_| waiting > 0) {
            writer.book("mpi_rma_sync_wait_for_progress", waiting);
            writer.book("mpi_rma_sync_wait_for_progress_last_call", last - call.enter);
        }
        writer.leave(call.leave)
    }

    /// When the last target granted the lock within the call; `None` if all targets were in the library.
    fn granted(&self, targets: impl Iterator<Item = u32>, call: &Call) -> Option<i64> {
        let released = call.enter + call.contention;
        let grant = |target: u32| {
            let Outcome { calls, end } = &self.outcomes[target as usize];
            let enters = || calls.iter().map(|call| call.enter).chain([*end]);
            let within = |enter: &i64| released < *enter && *enter < call.leave;
            if call.contention > 0 {
                // Nothing could proceed before the release.
                return enters().find(|&enter| enter > released).filter(within);
            }
            let (first, _) = self.helping(target, call.enter);
            if within(&first) { enters().rfind(within) } else { None }
        };
        targets.filter_map(grant).max()
    }

    /// Enter and Leave of the first call of a rank that has not ended before a time.
    fn helping(&self, rank: u32, from: i64) -> (i64, i64) {
        let Outcome { calls, end } = &self.outcomes[rank as usize];
        let first = calls.partition_point(|call| call.leave < from);
        calls.get(first).map_or((*end, self.fence.leave(rank)), |call| (call.enter, call.leave))
    }
}

/// Writes an operation; ids count from `first`.
fn operate(writer: &mut EventWriter<'_>, call: &Call, operation: &Operation, first: u64) -> Result<()> {
    let &Operation { region, target: remote, elements, id, .. } = operation;
    let (win, matching_id, bytes) = (WINDOW, first + id, 8 * elements);
    let atomic = |atomic_type, received| Event::RmaAtomic {
        win,
        remote,
        atomic_type,
        // With MPI these are elements.
        bytes_sent: elements,
        bytes_received: received,
        matching_id,
    };
    let (after, event) = match region {
        Region::Put => (20, Event::RmaPut { win, remote, bytes, matching_id }),
        Region::Get => (20, Event::RmaGet { win, remote, bytes, matching_id }),
        Region::Accumulate => (0, atomic(RmaAtomicType::ACCUMULATE, 0)),
        _ => (0, atomic(RmaAtomicType::FETCH_AND_ACCUMULATE, elements)),
    };
    writer.enter(call.enter, region)?;
    writer.record(call.enter + after, &event)?;
    writer.book("mpi_rma_comm_lock_competition", call.contention);
    writer.leave(call.leave)
}

/// Writes a call that locks; `granted` as [`Iteration::granted`] has it.
fn lock(
    writer: &mut EventWriter<'_>,
    call: &Call,
    granted: Option<i64>,
    (region, remote, lock_type): (Region, u32, LockType),
) -> Result<()> {
    let (win, lock_id) = (WINDOW, 0);
    writer.enter(call.enter, region)?;
    writer.record(call.enter, &Event::RmaRequestLock { win, remote, lock_id, lock_type })?;
    writer.book("mpi_rma_sync_lock_competition", call.contention);
    if let Some(granted) = granted {
        let waiting = granted - call.enter - call.contention;
        writer.book("mpi_rma_sync_wait_for_progress", waiting);
        writer.book("mpi_rma_sync_wait_for_progress_last_call", waiting);
    }
    writer.leave(call.leave)
}

impl Schedule for RandomRma<'_> {
    fn write(&self, writer: &mut EventWriter<'_>, rank: u32) -> Result<()> {
        self.opening.write(writer, &Kind::FENCE, rank, self.start.end(rank))?;
        // Id of the first operation of the iteration.
        let mut first = 0;
        for (number, iteration) in self.iterations.iter().enumerate() {
            let Outcome { calls, end } = &iteration.outcomes[rank as usize];
            let mut begin = self.begin(rank, number);
            let mut operations = Vec::new();
            let mut next = calls.iter();
            for step in program(self.start, rank, number) {
                if let Step::Work(ticks) = step {
                    writer.enter(begin, Region::Compute)?;
                    writer.leave(begin + ticks)?;
                    continue;
                }
                let Some(call) = next.next() else { break };
                match &step {
                    Step::Work(_) => {}
                    Step::Lock(target, sharing) => {
                        let kind = match sharing {
                            Sharing::Exclusive => LockType::EXCLUSIVE,
                            Sharing::Shared => LockType::SHARED,
                        };
                        let granted = iteration.granted([*target].into_iter().filter(|&target| target != rank), call);
                        lock(writer, call, granted, (Region::WinLock, *target, kind))?;
                    }
                    Step::LockAll => {
                        let others = (0..self.start.ranks).filter(|&other| other != rank);
                        let granted = iteration.granted(others, call);
                        lock(writer, call, granted, (Region::WinLockAll, UNDEFINED, LockType::SHARED))?;
                    }
                    Step::Operate(operation) => {
                        operate(writer, call, operation, first)?;
                        operations.push(*operation);
                    }
                    Step::Complete(completion) => iteration.complete(writer, call, completion, first)?,
                }
                begin = call.leave + GAP;
            }
            let completed = operations.iter().rev().filter(|_| is_active(number));
            let completed = completed.map(|operation| (first + operation.id, operation.region == Region::Get));
            iteration.fence.write_with(writer, &Kind::FENCE, rank, *end, completed, |writer| {
                writer.book("mpi_rma_early_fence", iteration.last[rank as usize].saturating_sub(*end));
            })?;
            first += operations.len() as u64;
        }
        Ok(())
    }

    fn end(&self, rank: u32) -> i64 {
        self.iterations[self.iterations.len() - 1].fence.leave(rank)
    }
}
