//! BT-RMA (thesis, section 5.2): the benchmark BT with both of its exchanges by one-sided operations. In each iteration
//! every rank exchanges faces with its six neighbors, then solves along three dimensions, in each forth and back over
//! its sqrt(P) cells, with an exchange between two cells. After the last iteration faces are exchanged once more.

use crate::collective::{CALL, Departure, Kind};
use crate::definitions::Region;
use crate::gats::Epoch;
use crate::grid::Grid;
use crate::script::{Blocking, Costs, Script, Step};
use crate::{Machine, Start};

/// How the exchanges are synchronized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variant {
    /// Both by fences.
    Fence,
    /// That of the faces by fences, that of the solver by post, start, complete and wait.
    GatsFence,
    /// Both by post, start, complete and wait, on one window.
    GatsSingle,
    /// The same with a window for each buffer, which is exposed as early as possible.
    GatsMulti,
}

const SOLVERS: [Region; 3] = [Region::SolveX, Region::SolveY, Region::SolveZ];
/// Neighbors come in opposite pairs, one per dimension.
const NEIGHBORS: usize = 2 * SOLVERS.len();
/// The cost of calls on a machine, relative to the time of a cell.
struct Calls {
    /// Number of calls of post, start, complete and wait in that time; `None` if they cost next to nothing.
    groups: Option<i64>,
    puts: i64,
    /// Pairs that a fence synchronizes.
    pairs: i64,
    blocking: Blocking,
}

/// The figures of a machine in the tables of the thesis: those of `fence-only`, except for groups.
fn calls(machine: Machine) -> Calls {
    match machine {
        Machine::Jump2 => Calls { groups: None, puts: 40, pairs: 600, blocking: Blocking::Put },
        Machine::Jugene => Calls { groups: Some(125), puts: 107, pairs: 660, blocking: Blocking::Start },
        Machine::Juqueen => Calls { groups: Some(105), puts: 260, pairs: 28_000, blocking: Blocking::Start },
    }
}

/// Bytes of a face, and of the border that a cell passes on.
const FACE: u64 = 1 << 18;
const BORDER: u64 = 1 << 14;

/// A rank's neighbors: along each dimension the next one and the one before.
fn neighbors(grid: Grid, rank: u32) -> [u32; NEIGHBORS] {
    let Grid { width, height } = grid;
    [(1, 0), (width - 1, 0), (0, 1), (0, height - 1), (1, 1), (width - 1, height - 1)]
        .map(|(right, down)| grid.around(rank, right, down))
}

/// The steps of one rank.
struct Rank {
    variant: Variant,
    neighbors: [u32; NEIGHBORS],
    /// Neighbors, sorted and unique, without the rank itself.
    partners: Vec<u32>,
    first_group: u32,
}

impl Rank {
    fn new(variant: Variant, grid: Grid, rank: u32) -> Self {
        let neighbors = neighbors(grid, rank);
        let mut partners: Vec<u32> = neighbors.into_iter().filter(|&neighbor| neighbor != rank).collect();
        partners.sort_unstable();
        partners.dedup();
        Self { variant, neighbors, partners, first_group: rank * (NEIGHBORS as u32 + 1) }
    }

    /// The group of each single neighbor, and that of all.
    fn groups(&self) -> Vec<Vec<u32>> {
        self.neighbors.iter().map(|&neighbor| vec![neighbor]).chain([self.partners.clone()]).collect()
    }

    fn epoch(&self, buffer: usize, group: usize) -> Epoch {
        let window = if self.variant == Variant::GatsMulti { buffer as u32 } else { 0 };
        Epoch { window, group: self.first_group + group as u32 }
    }

    fn faces(&self) -> Vec<Step> {
        let put = |window, target| Step::Put { window, target, bytes: FACE };
        let all = self.epoch(0, NEIGHBORS);
        let puts = self.partners.iter().map(|&target| put(0, target));
        let mut steps = vec![Step::Enter(Region::CopyFaces)];
        match self.variant {
            Variant::Fence | Variant::GatsFence => {
                steps.push(Step::Collective(Kind::FENCE));
                steps.extend(puts);
                steps.push(Step::Collective(Kind::FENCE));
            }
            Variant::GatsSingle => {
                steps.extend([Step::Post(all), Step::Start(all)]);
                steps.extend(puts);
                steps.extend([Step::Complete(all), Step::Wait(all)]);
            }
            Variant::GatsMulti => {
                // The buffer that this rank puts to towards a neighbor, the neighbor fills from the opposite side.
                let access = |to: usize| self.epoch(to, to);
                let exposure = |to: usize| self.epoch(to, to ^ 1);
                steps.extend((0..NEIGHBORS).map(|to| Step::Post(exposure(to))));
                for (to, &neighbor) in self.neighbors.iter().enumerate() {
                    let epoch = access(to);
                    steps.extend([Step::Start(epoch), put(epoch.window, neighbor), Step::Complete(epoch)]);
                }
                steps.extend((0..NEIGHBORS).map(|to| Step::Wait(exposure(to))));
            }
        }
        steps.push(Step::Leave);
        steps
    }

    /// Forth to the next neighbor of a dimension, or back.
    fn sweep(&self, to: usize, cells: u32) -> Vec<Step> {
        let (access, exposure) = (self.epoch(NEIGHBORS + to, to), self.epoch(NEIGHBORS + to, to ^ 1));
        let put = Step::Put { window: access.window, target: self.neighbors[to], bytes: BORDER };
        let (post, work) = (Step::Post(exposure), Step::Work(Region::Compute));
        let (start, complete, wait) = (Step::Start(access), Step::Complete(access), Step::Wait(exposure));
        let exchange = match self.variant {
            Variant::Fence => vec![work, Step::Collective(Kind::FENCE), put, Step::Collective(Kind::FENCE)],
            Variant::GatsFence | Variant::GatsSingle => vec![work, post, start, put, complete, wait],
            Variant::GatsMulti => vec![post, work, start, put, complete, wait],
        };
        let mut steps = exchange.repeat(cells as usize - 1);
        steps.push(work);
        steps
    }

    fn iteration(&self, cells: u32, has_barriers: bool) -> Vec<Step> {
        let mut steps = self.faces();
        for (dimension, solver) in SOLVERS.into_iter().enumerate() {
            steps.push(Step::Enter(solver));
            steps.extend([2 * dimension, 2 * dimension + 1].into_iter().flat_map(|to| self.sweep(to, cells)));
            steps.push(Step::Leave);
            steps.extend(has_barriers.then_some(Step::Collective(Kind::BARRIER)));
        }
        steps
    }
}

pub(crate) fn script(start: &Start, variant: Variant) -> Script<'_> {
    let grid = Grid::new(start.ranks);
    let cells = start.ranks.isqrt();
    let ranks: Vec<Rank> = (0..start.ranks).map(|rank| Rank::new(variant, grid, rank)).collect();
    let windows = if variant == Variant::GatsMulti { 2 * NEIGHBORS as u32 } else { 1 };
    let last = |rank: &Rank| {
        let mut steps = rank.faces();
        steps.push(Step::Collective(Kind::BARRIER));
        steps.extend((1..windows).map(|window| Step::Collective(Kind::FREE.on(window))));
        steps
    };
    let body: Vec<Vec<Step>> = ranks.iter().map(|rank| rank.iteration(cells, start.spec.barriers)).collect();
    let length = body[0].len();
    let (cell, calls) = (i64::from(start.spec.work), calls(start.spec.machine));
    Script {
        windows,
        groups: ranks.iter().flat_map(Rank::groups).collect(),
        first: vec![(1..windows).map(|window| Step::Collective(Kind::CREATE.on(window))).collect(); ranks.len()],
        last: ranks.iter().map(last).collect(),
        body,
        work: Box::new(move |rank, iteration, position| start.work(rank, (iteration * length + position) as u64)),
        blocking: calls.blocking,
        barrier: Departure::default(),
        costs: Costs {
            call: calls.groups.map_or(CALL, |groups| CALL.max(cell / groups)),
            put: cell / calls.puts,
            fence: i64::from(start.ranks) * cell / calls.pairs,
        },
    }
}
