//! Threads that work, and then take turns in a critical section: it is passed on in the order of requests.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use whywait_otf2::enums::Paradigm;
use whywait_otf2::{Event, Result};

use crate::Start;
use crate::collective::{CALL, GAP};
use crate::definitions::Region;
use crate::event_writer::EventWriter;
use crate::teams::Body;

/// Ticks from the acquisition of the lock to its release.
const HELD: i64 = 2 * CALL;
/// Id of the lock.
const LOCK: u32 = 1;

pub(crate) struct Locks {
    pub(crate) threads: u32,
    /// Sections of a thread in a parallel region.
    pub(crate) window: u32,
}

/// A pass through the critical section.
#[derive(Clone, Copy)]
pub(crate) struct Section {
    enter: i64,
    /// When the thread before releases the lock.
    released: i64,
    acquired: i64,
    /// Number of the acquisition in the run.
    order: u32,
}

impl Body for Locks {
    /// When each thread begins the region, and its sections.
    type Plan = (i64, Vec<Vec<Section>>);

    fn plan(&self, start: &Start, rank: u32, number: usize, begin: i64) -> Self::Plan {
        let asks = |thread| begin + start.work(rank * self.threads + thread, number as u64) + 2 * GAP;
        let mut requests: BinaryHeap<Reverse<(i64, u32)>> =
            (0..self.threads).map(|thread| Reverse((asks(thread), thread))).collect();
        let mut sections: Vec<Vec<Section>> = vec![Vec::new(); self.threads as usize];
        let mut released = i64::MIN;
        let mut order = number as u32 * self.threads * self.window;
        while let Some(Reverse((enter, thread))) = requests.pop() {
            order += 1;
            let acquired = enter.max(released);
            let of_thread = &mut sections[thread as usize];
            of_thread.push(Section { enter, released, acquired, order });
            released = acquired + HELD;
            if of_thread.len() < self.window as usize {
                requests.push(Reverse((released + 2 * GAP, thread)));
            }
        }
        (begin, sections)
    }

    fn arrival(&self, (_, sections): &Self::Plan, thread: u32) -> i64 {
        sections[thread as usize].last().map_or(0, |section| section.acquired + HELD + 2 * GAP)
    }

    fn write(&self, writer: &mut EventWriter<'_>, (begin, sections): &Self::Plan, _: u32, thread: u32) -> Result<()> {
        let sections = &sections[thread as usize];
        writer.enter(begin + GAP, Region::Compute)?;
        writer.leave(sections[0].enter - GAP)?;
        let model = Paradigm::OPENMP;
        for &Section { enter, released, acquired, order: acquisition_order } in sections {
            writer.enter(enter, Region::Critical)?;
            writer.record(acquired, &Event::ThreadAcquireLock { model, lock_id: LOCK, acquisition_order })?;
            writer.record(acquired + HELD, &Event::ThreadReleaseLock { model, lock_id: LOCK, acquisition_order })?;
            writer.book("omp_lock_contention_critical", released.saturating_sub(enter));
            writer.leave(acquired + HELD + GAP)?;
        }
        Ok(())
    }

    fn write_barrier(
        &self,
        writer: &mut EventWriter<'_>,
        plan: &Self::Plan,
        _: u32,
        thread: u32,
        latest: i64,
    ) -> Result<()> {
        writer.book("omp_ibarrier_wait", latest - self.arrival(plan, thread));
        Ok(())
    }
}
