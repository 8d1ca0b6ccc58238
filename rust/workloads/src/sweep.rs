//! Pipelined wavefronts as in SWEEP3D: sweeps start from each corner of a grid of ranks in turn. For each block of a
//! sweep, a rank receives from two neighbors, computes, and sends to the two others.

use whywait_otf2::Result;

use crate::collective::{CALL, Collective, GAP, Kind};
use crate::definitions::Region;
use crate::event_writer::EventWriter;
use crate::grid::Grid;
use crate::late_senders::RecentLateSenders;
use crate::messages::{receive, received, send};
use crate::{Schedule, Start};

/// Blocks of a sweep.
const BLOCKS: usize = 4;
/// Sweeps of an iteration: one from each corner.
const CORNERS: usize = 4;
/// Bytes of a border.
const BYTES: u64 = 8192;

pub(crate) struct Sweep<'a> {
    start: &'a Start,
    grid: Grid,
    /// For each block of the run, when each rank finishes its computation.
    ready: Vec<Vec<i64>>,
    barrier: Collective,
}

/// The upstream and downstream neighbors of a rank in a sweep.
struct Neighbours {
    before: [Option<u32>; 2],
    behind: [Option<u32>; 2],
}

impl<'a> Sweep<'a> {
    pub(crate) fn new(start: &'a Start) -> Self {
        let mut sweep = Self { start, grid: Grid::new(start.ranks), ready: Vec::new(), barrier: start.init };
        for block in 0..start.spec.iterations as usize * CORNERS * BLOCKS {
            let sum = start.work_of_all(block as u64);
            let mut ready = vec![0; start.ranks as usize];
            for rank in sweep.along(block) {
                ready[rank as usize] = sweep.taken(rank, block, &ready) + start.work_or_mean(rank, block as u64, sum);
            }
            sweep.ready.push(ready);
        }
        sweep.barrier = start.collective_in_loop(0, |rank| sweep.begin(rank, sweep.ready.len()));
        sweep
    }

    /// Whether a sweep moves left, and whether it moves up.
    fn corner(block: usize) -> (bool, bool) {
        let corner = block / BLOCKS % CORNERS;
        (corner & 1 == 1, corner & 2 == 2)
    }

    /// The ranks in topological order: each follows those that it waits for.
    fn along(&self, block: usize) -> impl Iterator<Item = u32> + use<> {
        let Grid { width, height } = self.grid;
        let (left, up) = Self::corner(block);
        (0..width * height).map(move |place| {
            let (x, y) = (place % width, place / width);
            let (x, y) = (if left { width - 1 - x } else { x }, if up { height - 1 - y } else { y });
            y * width + x
        })
    }

    fn neighbours(&self, rank: u32, block: usize) -> Neighbours {
        let (left, up) = Self::corner(block);
        let mut of = [None; 4];
        for (direction, neighbour) in self.grid.neighbours(rank) {
            of[direction] = Some(neighbour);
        }
        let [west, east, north, south] = of;
        let (from_x, to_x) = if left { (east, west) } else { (west, east) };
        let (from_y, to_y) = if up { (south, north) } else { (north, south) };
        Neighbours { before: [from_x, from_y], behind: [to_x, to_y] }
    }

    /// When a rank begins to send a block in a direction (0: along x).
    fn sent(&self, rank: u32, block: usize, direction: usize, ready: i64) -> i64 {
        let earlier = self.neighbours(rank, block).behind[..direction].iter().flatten().count() as i64;
        ready + GAP + earlier * (CALL + GAP)
    }

    fn begin(&self, rank: u32, block: usize) -> i64 {
        match block.checked_sub(1) {
            Some(before) => self.sent(rank, before, 2, self.ready[before][rank as usize]),
            None => self.start.end(rank),
        }
    }

    /// When a rank has received its input.
    fn taken(&self, rank: u32, block: usize, ready: &[i64]) -> i64 {
        let neighbours = self.neighbours(rank, block);
        let from = neighbours.before.into_iter().enumerate().filter_map(|(way, from)| Some((way, from?)));
        from.fold(self.begin(rank, block), |enter, (way, from)| {
            received(enter, self.sent(from, block, way, ready[from as usize])) + GAP
        })
    }
}

impl Schedule for Sweep<'_> {
    fn write(&self, writer: &mut EventWriter<'_>, rank: u32) -> Result<()> {
        let mut recent = RecentLateSenders::default();
        for (block, ready) in self.ready.iter().enumerate() {
            let neighbours = self.neighbours(rank, block);
            let mut enter = self.begin(rank, block);
            for (way, from) in neighbours.before.into_iter().enumerate() {
                let Some(from) = from else { continue };
                let sent = self.sent(from, block, way, ready[from as usize]);
                receive(writer, &mut recent, enter, (from, sent), BYTES)?;
                enter = received(enter, sent) + GAP;
            }
            let own = ready[rank as usize];
            writer.enter(enter, Region::Compute)?;
            writer.leave(own)?;
            for (way, to) in neighbours.behind.into_iter().enumerate() {
                if let Some(to) = to {
                    send(writer, self.sent(rank, block, way, own), to, BYTES)?;
                }
            }
        }
        self.barrier.write(writer, &Kind::BARRIER, rank, self.begin(rank, self.ready.len()))
    }

    fn end(&self, rank: u32) -> i64 {
        self.barrier.leave(rank)
    }
}
