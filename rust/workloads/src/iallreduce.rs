//! An `MPI_Iallreduce` that is started between two pieces of work, and completed by `MPI_Wait` after the second.

use whywait_otf2::enums::CollectiveOp;
use whywait_otf2::records::UNDEFINED;
use whywait_otf2::{Event, Result};

use crate::collective::{CALL, GAP, JITTER};
use crate::definitions::{Region, WORLD};
use crate::event_writer::EventWriter;
use crate::noise::Purpose;
use crate::{Schedule, Start};

pub(crate) struct Iallreduce<'a> {
    start: &'a Start,
    iterations: Vec<Iteration>,
}

struct Iteration {
    /// When each rank begins its work.
    begins: Vec<i64>,
    /// Start of the operation by the last rank and by the one before it.
    latest: [i64; 2],
}

impl<'a> Iallreduce<'a> {
    pub(crate) fn new(start: &'a Start) -> Self {
        let mut own = Self { start, iterations: Vec::new() };
        for number in 0..start.spec.iterations as usize {
            let begins: Vec<i64> = (0..start.ranks).map(|rank| own.begin(rank, number)).collect();
            own.iterations.push(Iteration { begins, latest: [i64::MIN; 2] });
            let mut starts: Vec<i64> = (0..start.ranks).map(|rank| own.starts(rank, number)).collect();
            starts.sort_unstable_by(|a, b| b.cmp(a));
            own.iterations[number].latest = [starts[0], starts[1]];
        }
        own
    }

    fn begin(&self, rank: u32, number: usize) -> i64 {
        number.checked_sub(1).map_or_else(|| self.start.end(rank), |before| self.leave(rank, before) + GAP)
    }

    /// How long a rank works before the operation (0) or during it (1).
    fn work(&self, rank: u32, number: usize, part: u64) -> i64 {
        self.start.work(rank, 2 * number as u64 + part)
    }

    /// When a rank starts the operation.
    fn starts(&self, rank: u32, number: usize) -> i64 {
        self.iterations[number].begins[rank as usize] + self.work(rank, number, 0) + GAP
    }

    /// When a rank begins to wait.
    fn waits(&self, rank: u32, number: usize) -> i64 {
        self.starts(rank, number) + CALL + GAP + self.work(rank, number, 1) + GAP
    }

    fn leave(&self, rank: u32, number: usize) -> i64 {
        let jitter = self.start.noise.below(JITTER, Purpose::Leave, rank, 4 + number as u64);
        self.waits(rank, number).max(self.iterations[number].latest[0]) + CALL + jitter
    }
}

impl Schedule for Iallreduce<'_> {
    fn write(&self, writer: &mut EventWriter<'_>, rank: u32) -> Result<()> {
        for (number, iteration) in self.iterations.iter().enumerate() {
            let (starts, waits) = (self.starts(rank, number), self.waits(rank, number));
            let [last, before] = iteration.latest;
            let ready = if starts == last { before } else { last };
            let leave = self.leave(rank, number);
            let request_id = number as u64;
            writer.enter(iteration.begins[rank as usize], Region::Compute)?;
            writer.leave(starts - GAP)?;
            writer.enter(starts, Region::Iallreduce)?;
            writer.record(starts + 20, &Event::NonBlockingCollectiveRequest { request_id })?;
            writer.book("mpi_nbc_hidden_wait", ready.min(waits) - (starts + CALL));
            writer.leave(starts + CALL)?;
            writer.enter(starts + CALL + GAP, Region::Compute)?;
            writer.leave(waits - GAP)?;
            writer.enter(waits, Region::Wait)?;
            let (collective_op, communicator, root) = (CollectiveOp::ALLREDUCE, WORLD, UNDEFINED);
            let (size_sent, size_received) = (8, 8);
            writer.record(
                leave - 20,
                &Event::NonBlockingCollectiveComplete {
                    collective_op,
                    communicator,
                    root,
                    size_sent,
                    size_received,
                    request_id,
                },
            )?;
            writer.book("mpi_nbc_wait_nxn", ready - waits);
            writer.book("mpi_nbc_completion", leave - ready.max(waits));
            writer.leave(leave)?;
        }
        Ok(())
    }

    fn end(&self, rank: u32) -> i64 {
        self.begin(rank, self.iterations.len()) - GAP
    }
}
