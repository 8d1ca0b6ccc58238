//! The communication of a simulation with `NWChem` (thesis, section 5.5): each process takes tasks of very different
//! sizes, for which it draws a number, gets blocks from anywhere, works, and accumulates its result anywhere. Most
//! operations are carried out by the network, some need their target. At last there is a barrier. Only ARMCI was
//! recorded, so that all calls have one call path.

use crate::Start;
use crate::armci::{Call, Program};
use crate::collective::{Kind, TRANSFER};
use crate::definitions::Region;
use crate::noise::Purpose;

/// Tasks of a process before a barrier.
const TASKS: usize = 4;
/// Steps of a task: a number, two gets, work, the result.
const TASK: usize = 5;
/// One of this many operations needs its target.
const NEEDS: i64 = 64;
/// Maximum bytes of a block.
const BLOCK: i64 = 1 << 20;

pub(crate) struct Nwchem<'a> {
    pub(crate) start: &'a Start,
}

impl Nwchem<'_> {
    fn draw(&self, limit: i64, rank: u32, number: usize, what: u64) -> i64 {
        self.start.noise.below(limit, Purpose::Operation, rank, 4 * number as u64 + what)
    }

    fn operation(&self, region: Region, rank: u32, number: usize) -> Call {
        let bytes = if region == Region::ArmciRmw { 8 } else { 8 + self.draw(BLOCK / 8, rank, number, 0) as u64 * 8 };
        let target = self.draw(i64::from(self.start.ranks), rank, number, 1) as u32;
        let needs = self.draw(NEEDS, rank, number, 2) == 0;
        Call::Blocking { region, target, bytes, ticks: TRANSFER + 2 * bytes as i64, needs }
    }
}

impl Program for Nwchem<'_> {
    fn call(&self, rank: u32, number: usize) -> Option<Call> {
        let length = TASKS * TASK + 1;
        let (iteration, place) = (number / length, number % length);
        if iteration == self.start.spec.iterations as usize {
            return None;
        }
        Some(match (place == TASKS * TASK, place % TASK) {
            (true, _) => Call::Collective(Kind::ARMCI_BARRIER),
            (false, 0) => self.operation(Region::ArmciRmw, rank, number),
            (false, 3) => Call::Work(None, self.start.work(rank, number as u64)),
            (false, 4) => self.operation(Region::ArmciAcc, rank, number),
            (false, _) => self.operation(Region::ArmciGet, rank, number),
        })
    }
}
