//! CGPOP (thesis, section 5.3; `EuroMPI`'13, section 5.3): the solver of an ocean model. In each iteration every rank
//! works in `matrix_mod_matvec` and in its caller, then puts its halo to its neighbors along a line, between post,
//! start, complete and wait. Of two ranks, a quarter of the line from its ends, one at a time has more to do. The
//! original has a barrier before the exchange, which some ranks leave later than others.
//!
//! The publications do not specify how the load varies. Here the first of the two ranks has more work in 72 of 100
//! iterations, the other one in the rest: with the barrier, all ranks wait for both; without it, neighbors wait for
//! their own. The free parameters (these shares, and the parts of the work) are chosen to yield the published times.

use crate::Start;
use crate::collective::{Departure, Kind};
use crate::definitions::Region;
use crate::gats::Epoch;
use crate::noise::Purpose;
use crate::script::{Blocking, Costs, Script, Step};

/// Bytes of a halo.
const HALO: u64 = 1 << 12;
/// Iterations of a hundred in which the first of the two has more work.
const FIRST: usize = 72;
/// Parts of the work, of a hundred: in `matrix_mod_matvec`, in its caller before the exchange, and between its puts and
/// the wait for those of the neighbors.
const MATVEC: i64 = 50;
const BEFORE: i64 = 25;
const BETWEEN: i64 = 25;
/// A part of the work that is random, of a hundred.
const RANDOM: i64 = 2;

/// More work of a rank in an iteration, if it is one of the two.
fn excess(start: &Start, rank: u32, iteration: usize) -> i64 {
    // The golden ratio spreads the shares evenly.
    let is_first = iteration * 618 % 1000 < 10 * FIRST;
    let busy = if is_first { start.ranks / 4 } else { start.ranks * 3 / 4 };
    if rank == busy { (f64::from(start.spec.work) * start.spec.imbalance) as i64 } else { 0 }
}

pub(crate) fn script(start: &Start, has_barrier: bool) -> Script<'_> {
    let neighbors = |rank: u32| -> Vec<u32> {
        rank.checked_sub(1).into_iter().chain(Some(rank + 1).filter(|&next| next < start.ranks)).collect()
    };
    let iteration = |rank: u32| {
        let epoch = Epoch { window: 0, group: rank };
        let mut steps = vec![Step::Work(Region::Matvec), Step::Pause];
        steps.extend(has_barrier.then_some(Step::Collective(Kind::BARRIER)));
        steps.extend([Step::Post(epoch), Step::Start(epoch)]);
        steps.extend(neighbors(rank).into_iter().map(|target| Step::Put { window: 0, target, bytes: HALO }));
        steps.extend([Step::Complete(epoch), Step::Pause, Step::Wait(epoch)]);
        steps
    };
    let work = move |rank: u32, iteration: usize, position: usize| {
        let random = start.noise.below(RANDOM + 1, Purpose::Work, rank, (3 * iteration + position.min(2)) as u64);
        let (part, more) = match position {
            0 => (MATVEC, 3 * excess(start, rank, iteration) / 4),
            1 => (BEFORE, excess(start, rank, iteration) / 4),
            _ => (BETWEEN, 0),
        };
        i64::from(start.spec.work) * part / 100 * (100 + random) / 100 + more
    };
    let each = |steps: &dyn Fn(u32) -> Vec<Step>| (0..start.ranks).map(steps).collect();
    Script {
        windows: 1,
        groups: (0..start.ranks).map(neighbors).collect(),
        first: each(&|_| vec![Step::Enter(Region::Esolver), Step::Enter(Region::Pcg)]),
        body: each(&iteration),
        last: each(&|_| vec![Step::Leave, Step::Leave]),
        work: Box::new(work),
        blocking: Blocking::Start,
        barrier: Departure { of_thousand: 68, late: i64::from(start.spec.work) * 3 / 16, ..Departure::default() },
        costs: Costs { call: i64::from(start.spec.work) / 150, put: i64::from(start.spec.work) / 35, fence: 0 },
    }
}
