//! The worst wait states: the longest of each cell, as many as a report has room for.
//!
//! A *place* in the program is a kind and a call path; a *cell* is a place on one location. The worst of each place come
//! first, then the worst of every cell, the second worst of every cell, and so on.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use crate::waits::longest::{Longest, keep};

/// Maximum number for a cell, and number for a place whatever its cells are.
const OF_CELL: usize = 20;

/// The properties of a wait state that matter here.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    /// Number of its kind.
    pub kind: u32,
    /// Waiting call path.
    pub callpath: u32,
    /// Waiting location.
    pub location: u32,
    /// Waiting time, seconds; not negative.
    pub waiting: f64,
}

/// The wait states of a kind at a call path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WaitCount {
    /// Number of their kind.
    pub kind: u32,
    /// Waiting call path.
    pub callpath: u32,
    /// Number of wait states.
    pub count: u64,
}

/// A wait state by its length (the bits of seconds, which are in the order of the values) and its row.
type Length = (i64, Reverse<usize>);

/// Kind, call path, and location.
type Cell = (u32, u32, u32);

/// The longest wait states of each cell.
#[derive(Debug)]
enum Cells {
    /// The longest of each.
    Several(FxHashMap<Cell, Longest>),
    /// Only the longest one of each: these alone fill the report.
    One(FxHashMap<Cell, Length>),
}

/// Collects the longest wait states of every cell.
#[derive(Debug)]
pub struct WorstWaits {
    limit: usize,
    cells: Cells,
    /// By kind and call path: number of wait states, and the longest.
    places: FxHashMap<(u32, u32), (u64, Longest)>,
}

impl WorstWaits {
    /// Collects for a report that takes at most `limit` wait states.
    pub fn new(limit: usize) -> Self {
        Self { limit, cells: Cells::Several(FxHashMap::default()), places: FxHashMap::default() }
    }

    /// Adds the wait state in a row of a table.
    pub fn add(&mut self, row: usize, wait: Wait) {
        let Wait { kind, callpath, location, waiting } = wait;
        let length = (waiting.to_bits().cast_signed(), Reverse(row));
        let (count, longest) = self.places.entry((kind, callpath)).or_default();
        *count += 1;
        keep(longest, length, OF_CELL);
        self.cells.add((kind, callpath, location), length, self.limit);
    }

    /// Adds the wait states that others collected.
    #[must_use]
    pub fn with(mut self, other: Self) -> Self {
        #[expect(clippy::iter_over_hash_type, reason = "each place takes one part")]
        for (place, (number, lengths)) in other.places {
            let (count, longest) = self.places.entry(place).or_default();
            *count += number;
            for Reverse(length) in lengths {
                keep(longest, length, OF_CELL);
            }
        }
        match other.cells {
            Cells::Several(cells) =>
            {
                #[expect(clippy::iter_over_hash_type, reason = "each cell takes one part")]
                for (cell, lengths) in cells {
                    for Reverse(length) in lengths {
                        self.cells.add(cell, length, self.limit);
                    }
                }
            }
            Cells::One(cells) => {
                self.cells.keep_one();
                #[expect(clippy::iter_over_hash_type, reason = "each cell takes one part")]
                for (cell, length) in cells {
                    self.cells.add(cell, length, self.limit);
                }
            }
        }
        self
    }

    /// The rows of the worst wait states, the longest first; and all places, sorted.
    ///
    /// Of equally long wait states, the first counts as longer.
    pub fn worst(self) -> (Vec<usize>, Vec<WaitCount>) {
        let Self { limit, cells, places } = self;
        let is_of_place = |(kind, callpath, _): Cell, length: Length| {
            let longest = places.get(&(kind, callpath)).and_then(|(_, longest)| longest.peek());
            longest.is_some_and(|shortest| length >= shortest.0)
        };
        // First those of places, and then the longest of each cell, the second longest, and so on.
        let mut chosen: Vec<(usize, Reverse<Length>)> =
            places.values().flat_map(|(_, longest)| longest).map(|&length| (0, length)).collect();
        match cells {
            Cells::Several(cells) => chosen.extend(cells.into_iter().flat_map(|(cell, longest)| {
                let longest = (1..).zip(longest.into_sorted_vec());
                longest.filter(move |&(_, Reverse(length))| !is_of_place(cell, length))
            })),
            Cells::One(cells) => {
                let rest = cells.into_iter().filter(|&(cell, length)| !is_of_place(cell, length));
                chosen.extend(rest.map(|(_, length)| (1, Reverse(length))));
            }
        }
        if chosen.len() > limit {
            chosen.select_nth_unstable(limit);
            chosen.truncate(limit);
        }
        chosen.sort_unstable_by_key(|&(_, length)| length);
        let rows = chosen.into_iter().map(|(_, Reverse((_, Reverse(row))))| row).collect();
        let place = |((kind, callpath), (count, _))| WaitCount { kind, callpath, count };
        let mut places: Vec<WaitCount> = places.into_iter().map(place).collect();
        places.sort_unstable();
        (rows, places)
    }
}

impl Cells {
    /// Adds a wait state; with more cells than the limit, one of each is enough.
    fn add(&mut self, cell: Cell, length: Length, limit: usize) {
        match self {
            Self::Several(cells) => {
                keep(cells.entry(cell).or_default(), length, OF_CELL);
                if cells.len() > limit {
                    self.keep_one();
                }
            }
            Self::One(cells) => {
                let longest = cells.entry(cell).or_insert(length);
                *longest = length.max(*longest);
            }
        }
    }

    /// Forgets all but the longest wait state of each cell.
    fn keep_one(&mut self) {
        if let Self::Several(cells) = self {
            let longest =
                |(cell, lengths): (Cell, Longest)| Some((cell, lengths.into_iter().map(|Reverse(it)| it).max()?));
            *self = Self::One(std::mem::take(cells).into_iter().filter_map(longest).collect());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition, word by word.
    fn expected(waits: &[Wait], limit: usize) -> Vec<usize> {
        let rank = |row: usize, is_same: &dyn Fn(&Wait) -> bool| {
            let longer = |&(other, wait): &(usize, &Wait)| {
                is_same(wait) && wait.waiting.total_cmp(&waits[row].waiting).reverse().then(other.cmp(&row)).is_lt()
            };
            waits.iter().enumerate().filter(longer).count()
        };
        let turn = |row: usize| {
            let own = &waits[row];
            let is_of_place = |wait: &Wait| (wait.kind, wait.callpath) == (own.kind, own.callpath);
            let in_cell = rank(row, &|wait| is_of_place(wait) && wait.location == own.location);
            (in_cell < OF_CELL).then(|| if rank(row, &is_of_place) < OF_CELL { 0 } else { in_cell + 1 })
        };
        let mut rows: Vec<_> = (0..waits.len()).filter_map(|row| Some((turn(row)?, row))).collect();
        let length = |row: usize| Reverse(waits[row].waiting.to_bits());
        rows.sort_by_key(|&(turn, row)| (turn, length(row), row));
        rows.truncate(limit);
        rows.sort_by_key(|&(_, row)| (length(row), row));
        rows.into_iter().map(|(_, row)| row).collect()
    }

    proptest! {
        #[test]
        fn parts_choose_what_sorting_does(
            waits in prop::collection::vec((0u32..2, 0u32..2, 0u32..3, 0u32..40), 0..300),
            cut in 0.0..1.0,
            limit in 0usize..150,
        ) {
            let wait = |&(kind, callpath, location, waiting): &(u32, u32, u32, u32)| {
                Wait { kind, callpath, location, waiting: f64::from(waiting) / 8.0 }
            };
            let waits: Vec<Wait> = waits.iter().map(wait).collect();
            let cut = (waits.len() as f64 * cut) as usize;
            let mut parts = [WorstWaits::new(limit), WorstWaits::new(limit)];
            for (row, &wait) in waits.iter().enumerate() {
                parts[usize::from(row >= cut)].add(row, wait);
            }
            let [first, second] = parts;
            let (rows, places) = second.with(first).worst();
            prop_assert_eq!(rows, expected(&waits, limit));
            prop_assert!(places.is_sorted_by(|a, b| (a.kind, a.callpath) < (b.kind, b.callpath)));
            prop_assert_eq!(places.iter().map(|place| place.count).sum::<u64>(), waits.len() as u64);
        }
    }
}
