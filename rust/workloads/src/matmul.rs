//! SRUMMA as Global Arrays has it (thesis, section 5.4): two matrices of 4096 x 4096 elements are multiplied on any number
//! of processes. While a process works on two blocks it gets the next two; at last it waits for all of its operations,
//! and in a barrier. The more processes, the more gets and the smaller the blocks.

use crate::Start;
use crate::armci::{Call, Program};
use crate::definitions::Region;
use crate::grid::Grid;
use crate::meeting::{Kind, TRANSFER};
use crate::noise::Purpose;

/// Elements of 8 bytes along a side of the matrices.
const SIDE: u64 = 4096;
/// The work of all processes for a product, in units of work.
const PRODUCT: i64 = 15_200_000;

pub(crate) struct Matmul<'a> {
    start: &'a Start,
    grid: Grid,
    /// Pairs of blocks that a process multiplies.
    steps: usize,
    /// Ticks of a byte's way come from a torus of 425 MB/s.
    bytes: u64,
}

/// Gets of a process: 8 sqrt(P) where P is a square, 7 sqrt(2 P) elsewhere. That is table A.9 of the thesis.
fn gets(ranks: u32) -> u32 {
    let side = ranks.isqrt();
    if side * side == ranks { 8 * side } else { 7 * (2 * ranks).isqrt() }
}

impl<'a> Matmul<'a> {
    pub(crate) fn new(start: &'a Start) -> Self {
        let steps = (gets(start.ranks) / 2) as usize;
        let bytes = (2 * SIDE * SIDE / u64::from(start.ranks)).max(8);
        Self { start, grid: Grid::new(start.ranks), steps, bytes }
    }

    /// The get of a step: a block of the first matrix comes from the row, one of the second from the column. Every process
    /// begins with another one.
    fn get(&self, rank: u32, step: usize, is_second: bool) -> Call {
        let Grid { width, height } = self.grid;
        let step = step as u32;
        let target = if is_second {
            self.grid.around(rank, 0, 1 + step % (height - 1).max(1))
        } else {
            self.grid.around(rank, 1 + step % (width - 1).max(1), 0)
        };
        Call::Begin { target, bytes: self.bytes, ticks: TRANSFER + 40 * self.bytes as i64 / 17 }
    }

    /// Work on two blocks.
    fn work(&self, rank: u32, step: u64) -> Call {
        let shares = i64::from(self.start.ranks) * self.steps as i64;
        let ticks = i128::from(self.start.work(rank, step)) * i128::from(PRODUCT) / i128::from(shares);
        Call::Work(Some(Region::Compute), ticks as i64)
    }

    /// Ticks of `ARMCI_AllFence`: it asks every process.
    fn fence(&self, rank: u32, product: usize) -> i64 {
        let one = i64::from(self.start.spec.work) / 4;
        let all = one * i64::from(self.start.ranks);
        all + self.start.noise.below(all / 2, Purpose::Operation, rank, product as u64)
    }
}

/// Calls of a step but for the last, which gets nothing.
const STEP: usize = 5;

impl Program for Matmul<'_> {
    fn call(&self, rank: u32, number: usize) -> Option<Call> {
        // Two gets and waits before, and work, fence and barrier behind.
        let length = 4 + STEP * (self.steps - 1) + 3;
        let (product, place) = (number / length, number % length);
        if product == self.start.spec.iterations as usize {
            return None;
        }
        let work = |step: usize| self.work(rank, (product * self.steps + step) as u64);
        let Some(place) = place.checked_sub(4) else {
            return Some(if place < 2 { self.get(rank, 0, place == 1) } else { Call::Wait });
        };
        let (step, part) = (place / STEP, place % STEP);
        Some(match (self.steps - 1 - step, part) {
            (0, 0) => work(step),
            (0, 1) => Call::AllFence(self.fence(rank, product)),
            (0, _) => Call::Meet(Kind::BARRIER),
            (_, 0 | 1) => self.get(rank, step + 1, part == 1),
            (_, 2) => work(step),
            _ => Call::Wait,
        })
    }
}
