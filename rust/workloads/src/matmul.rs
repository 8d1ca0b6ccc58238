//! SRUMMA as Global Arrays has it (thesis, section 5.4): two matrices of 4096 x 4096 elements are multiplied on any
//! number of processes. A process gets two blocks at a time and works on them; at last it waits for all of its
//! operations, and in a barrier. The more processes, the more gets and the smaller the blocks. Gets overlap each other
//! but no work: in this model everybody is in the library as often as another works, so that otherwise none would have
//! to wait.

use crate::Start;
use crate::armci::{Call, Program};
use crate::collective::{Kind, TRANSFER};
use crate::definitions::Region;
use crate::grid::Grid;
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

    /// The get of a step: a block of the first matrix comes from the row, one of the second from the column. Every
    /// process begins with another one.
    fn get(&self, rank: u32, step: usize, is_second: bool) -> Call {
        let Grid { width, height } = self.grid;
        let step = step as u32;
        let target = if is_second {
            self.grid.around(rank, 0, 1 + step % (height - 1).max(1))
        } else {
            self.grid.around(rank, 1 + step % (width - 1).max(1), 0)
        };
        let ticks = TRANSFER + 40 * self.bytes as i64 / 17;
        // The way is longer or shorter.
        let way = self.start.noise.below(ticks, Purpose::Operation, rank, u64::from(target) << 32);
        Call::Begin { target, bytes: self.bytes, ticks: ticks + way }
    }

    /// Work on two blocks.
    fn work(&self, rank: u32, step: u64) -> Call {
        let shares = i64::from(self.start.ranks) * self.steps as i64;
        let ticks = i128::from(self.start.work(rank, step)) * i128::from(PRODUCT) / i128::from(shares);
        Call::Work(Some(Region::Compute), ticks as i64)
    }

    /// Ticks of `ARMCI_AllFence`, which contacts every process: 0.375 of a unit of work each, as in table A.10 for
    /// 32,768 processes, with a variation that yields the waiting of the barrier there.
    fn fence(&self, rank: u32, product: usize) -> i64 {
        let all = i64::from(self.start.spec.work) * 3 / 8 * i64::from(self.start.ranks);
        all * 3 / 10 + self.start.noise.below(all * 14 / 10, Purpose::Operation, rank, product as u64)
    }
}

/// Calls of a step: two gets, two waits, work.
const STEP: usize = 5;

impl Program for Matmul<'_> {
    fn call(&self, rank: u32, number: usize) -> Option<Call> {
        // Fence and barrier follow.
        let length = STEP * self.steps + 2;
        let (product, place) = (number / length, number % length);
        if product == self.start.spec.iterations as usize {
            return None;
        }
        let (step, part) = (place / STEP, place % STEP);
        Some(match part {
            0 if step == self.steps => Call::AllFence(self.fence(rank, product)),
            _ if step == self.steps => Call::Collective(Kind::BARRIER),
            0 | 1 => self.get(rank, step, part == 1),
            2 | 3 => Call::Wait,
            _ => self.work(rank, (product * self.steps + step) as u64),
        })
    }
}
