//! Ranks on a two-dimensional grid, as square as their number allows.

/// Directions come in pairs of opposites: west, east, north, south.
pub(crate) type Direction = usize;

/// The direction back.
pub(crate) fn opposite(direction: Direction) -> Direction {
    direction ^ 1
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    pub(crate) width: u32,
    pub(crate) height: u32,
}

impl Grid {
    pub(crate) fn new(ranks: u32) -> Self {
        let height = (1..=ranks.isqrt()).rev().find(|&side| ranks.is_multiple_of(side)).unwrap_or(1);
        Self { width: ranks / height, height }
    }

    /// The neighbours of a rank inside the grid, with their directions.
    pub(crate) fn neighbours(self, rank: u32) -> impl Iterator<Item = (Direction, u32)> {
        let (x, y) = (rank % self.width, rank / self.width);
        [
            (x > 0).then(|| rank - 1),
            (x + 1 < self.width).then(|| rank + 1),
            (y > 0).then(|| rank - self.width),
            (y + 1 < self.height).then(|| rank + self.width),
        ]
        .into_iter()
        .enumerate()
        .filter_map(|(direction, neighbour)| Some((direction, neighbour?)))
    }

    /// The neighbour of a rank in a direction.
    pub(crate) fn position(self, rank: u32, direction: Direction) -> usize {
        self.neighbours(rank).take_while(|&(towards, _)| towards != direction).count()
    }

    /// The rank some steps away, with wrap-around.
    pub(crate) fn around(self, rank: u32, right: u32, down: u32) -> u32 {
        let (x, y) = (rank % self.width, rank / self.width);
        (y + down) % self.height * self.width + (x + right) % self.width
    }
}
