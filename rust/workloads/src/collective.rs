//! Collective calls, in which all ranks wait for the last one.

use rayon::prelude::*;
use whywait_otf2::enums::{CollectiveOp, RmaSyncLevel};
use whywait_otf2::records::UNDEFINED;
use whywait_otf2::{Event, Result};

use crate::definitions::{Region, WINDOW, WORLD};
use crate::event_writer::EventWriter;
use crate::noise::{Noise, Purpose};

/// Ticks between two calls.
pub(crate) const GAP: i64 = 50;
/// Ticks that a call takes if it does not wait.
pub(crate) const CALL: i64 = 400;
/// Ticks that a message travels.
pub(crate) const TRANSFER: i64 = 1_500;
/// Minimum ticks from the last Enter of a collective call to its first Leave.
const LATENCY: i64 = 2_000;
/// The Leaves of a collective call lie within this many ticks.
pub(crate) const JITTER: i64 = 1_000;
/// Ticks from the end record of a collective call to its Leave.
const END: i64 = 30;

/// A collective call of all ranks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Collective {
    noise: Noise,
    /// Its number in the run.
    step: u64,
    /// Enter of the last rank.
    latest: i64,
    /// Leave of the first.
    first: i64,
    departure: Departure,
}

/// Additional delays with which ranks leave a collective call, ticks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Departure {
    /// All of them.
    pub(crate) all: i64,
    /// How many ranks in a thousand leave even later.
    pub(crate) of_thousand: i64,
    pub(crate) late: i64,
}

/// The kind of call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    region: Region,
    records: Records,
    waiting: &'static str,
    completion: &'static str,
    window: u32,
}

#[derive(Clone, Copy, Debug)]
enum Records {
    Nothing,
    Collective(CollectiveOp),
    Window(CollectiveOp),
}

/// No metric: this waiting has no pattern.
const NONE: &str = "";

impl Kind {
    pub(crate) const INIT: Self = Self::new(Region::Init, Records::Nothing, NONE, "mpi_init_completion");
    pub(crate) const FINALIZE: Self = Self::new(Region::Finalize, Records::Nothing, "mpi_finalize_wait", NONE);
    pub(crate) const ALLREDUCE: Self = Self::new(
        Region::Allreduce,
        Records::Collective(CollectiveOp::ALLREDUCE),
        "mpi_wait_nxn",
        "mpi_nxn_completion",
    );
    pub(crate) const BARRIER: Self = Self::new(
        Region::Barrier,
        Records::Collective(CollectiveOp::BARRIER),
        "mpi_barrier_wait",
        "mpi_barrier_completion",
    );
    pub(crate) const FENCE: Self =
        Self::new(Region::WinFence, Records::Window(CollectiveOp::BARRIER), "mpi_rma_wait_at_fence", NONE);
    pub(crate) const CREATE: Self =
        Self::new(Region::WinCreate, Records::Window(CollectiveOp::CREATE_HANDLE), "mpi_rma_wait_at_create", NONE);
    pub(crate) const FREE: Self =
        Self::new(Region::WinFree, Records::Window(CollectiveOp::DESTROY_HANDLE), "mpi_rma_wait_at_free", NONE);
    pub(crate) const MALLOC: Self =
        Self::new(Region::ArmciMalloc, Records::Window(CollectiveOp::ALLOCATE), "armci_rma_wait_at_create", NONE);
    pub(crate) const DISPOSE: Self =
        Self::new(Region::ArmciFree, Records::Window(CollectiveOp::DEALLOCATE), "armci_rma_wait_at_free", NONE);
    pub(crate) const ARMCI_BARRIER: Self =
        Self::new(Region::ArmciBarrier, Records::Window(CollectiveOp::BARRIER), "armci_barrier_wait", NONE);

    const fn new(region: Region, records: Records, waiting: &'static str, completion: &'static str) -> Self {
        Self { region, records, waiting, completion, window: WINDOW }
    }

    pub(crate) fn window(self) -> u32 {
        self.window
    }

    pub(crate) fn is_fence(self) -> bool {
        self.region == Region::WinFence
    }

    pub(crate) fn is_barrier(self) -> bool {
        self.region == Region::Barrier
    }

    /// The same call on another window.
    pub(crate) fn on(self, window: u32) -> Self {
        Self { window, ..self }
    }
}

impl Collective {
    /// The call of ranks that enter at the times of `enter`.
    pub(crate) fn new(noise: Noise, ranks: u32, step: u64, enter: impl Fn(u32) -> i64 + Sync) -> Self {
        Self::with_departure(noise, ranks, step, Departure::default(), enter)
    }

    pub(crate) fn with_departure(
        noise: Noise,
        ranks: u32,
        step: u64,
        departure: Departure,
        enter: impl Fn(u32) -> i64 + Sync,
    ) -> Self {
        let latest = (0..ranks).into_par_iter().map(&enter).max().unwrap_or(0);
        let mut collective = Self { noise, step, latest, first: 0, departure };
        collective.first = (0..ranks).into_par_iter().map(|rank| collective.leave(rank)).min().unwrap_or(0);
        collective
    }

    /// The Leave of a rank.
    pub(crate) fn leave(&self, rank: u32) -> i64 {
        let Departure { all, of_thousand, late } = self.departure;
        let is_late = late > 0 && self.noise.below(1000, Purpose::Straggler, rank, self.step) < of_thousand;
        let more = if is_late { all + late } else { all };
        self.latest + LATENCY + more + self.noise.below(JITTER, Purpose::Leave, rank, self.step)
    }

    /// The Enter of the last rank.
    pub(crate) fn latest(&self) -> i64 {
        self.latest
    }

    /// Writes the call of a rank.
    pub(crate) fn write(&self, writer: &mut EventWriter<'_>, kind: &Kind, rank: u32, enter: i64) -> Result<()> {
        self.write_with(writer, kind, rank, enter, std::iter::empty(), |_| ())
    }

    /// Writes the call of a rank, at its end with the records of operations `completed` by it (matching id, and whether
    /// it is a get). `book` is called in the region.
    pub(crate) fn write_with(
        &self,
        writer: &mut EventWriter<'_>,
        kind: &Kind,
        rank: u32,
        enter: i64,
        completed: impl Iterator<Item = (u64, bool)> + Clone,
        book: impl FnOnce(&mut EventWriter<'_>),
    ) -> Result<()> {
        let leave = self.leave(rank);
        writer.enter(enter, kind.region)?;
        // Calls with records of the collective operation are measured by these.
        let mut end_to_leave = 0;
        match kind.records {
            Records::Nothing => {}
            Records::Collective(operation) => {
                end_to_leave = END;
                writer.record(enter, &Event::MpiCollectiveBegin {})?;
                let size = if operation == CollectiveOp::BARRIER { 0 } else { 8 };
                writer.record(
                    leave - END,
                    &Event::MpiCollectiveEnd {
                        collective_op: operation,
                        communicator: WORLD,
                        root: UNDEFINED,
                        size_sent: size,
                        size_received: size,
                    },
                )?;
            }
            Records::Window(operation) => {
                writer.record(enter + 10, &Event::RmaCollectiveBegin {})?;
                for (matching_id, _) in completed.clone() {
                    writer
                        .record(leave - 2 * END, &Event::RmaOpCompleteNonBlocking { win: kind.window, matching_id })?;
                }
                for (matching_id, _) in completed.filter(|&(_, is_get)| is_get) {
                    writer.record(leave - 2 * END, &Event::RmaOpCompleteRemote { win: kind.window, matching_id })?;
                }
                match operation {
                    CollectiveOp::CREATE_HANDLE | CollectiveOp::ALLOCATE => {
                        writer.record(leave - END, &Event::RmaWinCreate { win: kind.window })?;
                    }
                    CollectiveOp::DESTROY_HANDLE | CollectiveOp::DEALLOCATE => {
                        writer.record(leave - END, &Event::RmaWinDestroy { win: kind.window })?;
                    }
                    _ => {}
                }
                writer.record(
                    leave - END,
                    &Event::RmaCollectiveEnd {
                        collective_op: operation,
                        sync_level: RmaSyncLevel(RmaSyncLevel::PROCESS.0 | RmaSyncLevel::MEMORY.0),
                        win: kind.window,
                        root: UNDEFINED,
                        bytes_sent: 0,
                        bytes_received: 0,
                    },
                )?;
            }
        }
        if kind.waiting != NONE {
            writer.book(kind.waiting, self.latest - enter);
        }
        if kind.completion != NONE {
            writer.book(kind.completion, leave - end_to_leave - (self.first - end_to_leave).max(self.latest));
        }
        book(writer);
        writer.leave(leave)
    }
}
