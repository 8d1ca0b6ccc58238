//! The worst instances of wait states: the longest of each cell, as many as a report has room for.
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
pub struct Place {
    /// Number of their kind.
    pub kind: u32,
    /// Waiting call path.
    pub callpath: u32,
    /// Number of wait states.
    pub count: u64,
}

/// The longest wait states of a cell or a place, and the number of all.
#[derive(Debug, Default)]
struct Worst {
    count: u64,
    longest: Longest,
}

/// Collects the longest wait states of every cell.
#[derive(Debug, Default)]
pub struct Instances {
    /// By kind, call path, and location.
    cells: FxHashMap<(u32, u32, u32), Worst>,
}

impl Instances {
    /// Adds the wait state in a row of a table.
    pub fn add(&mut self, row: usize, wait: Wait) {
        let cell = self.cells.entry((wait.kind, wait.callpath, wait.location)).or_default();
        cell.count += 1;
        // The bits of floats that are not negative are in the order of their values.
        keep(&mut cell.longest, (wait.waiting.to_bits().cast_signed(), Reverse(row)), OF_CELL);
    }

    /// Adds the wait states that others collected.
    #[must_use]
    pub fn with(mut self, other: Self) -> Self {
        #[expect(clippy::iter_over_hash_type, reason = "each cell takes one part")]
        for (key, part) in other.cells {
            self.cells.entry(key).or_default().add(part);
        }
        self
    }

    /// The rows of the worst wait states, the longest first, at most `limit`; and all places, sorted.
    ///
    /// Of equally long wait states, the first counts as longer.
    #[must_use]
    pub fn worst(self, limit: usize) -> (Vec<usize>, Vec<Place>) {
        let mut sizes = [0; OF_CELL];
        let mut numbers = FxHashMap::default();
        let mut places: Vec<(Place, Longest)> = Vec::new();
        let mut cells: Vec<(usize, Vec<_>)> = Vec::with_capacity(self.cells.len());
        #[expect(clippy::iter_over_hash_type, reason = "rows and places are sorted")]
        for ((kind, callpath, _), Worst { count, longest }) in self.cells {
            let number = *numbers.entry((kind, callpath)).or_insert_with(|| {
                places.push((Place { kind, callpath, count: 0 }, Longest::default()));
                places.len() - 1
            });
            let (place, of_place) = &mut places[number];
            place.count += count;
            let longest = longest.into_sorted_vec();
            sizes.iter_mut().zip(&longest).for_each(|(size, _)| *size += 1);
            for &Reverse(wait) in &longest {
                keep(of_place, wait, OF_CELL);
            }
            cells.push((number, longest));
        }
        // The cells fill the report in this many turns, if there are enough wait states.
        let mut room = limit;
        let leaves_room = |&&size: &&usize| {
            let is_less = size < room;
            room = room.saturating_sub(size);
            is_less
        };
        let turns = sizes.iter().take_while(leaves_room).count() + 1;
        let mut chosen = Vec::new();
        for (number, longest) in cells {
            let shortest = places[number].1.peek();
            for (turn, wait) in (1..).zip(longest) {
                let is_of_place = shortest.is_some_and(|shortest| wait <= *shortest);
                if is_of_place || turn <= turns {
                    chosen.push((if is_of_place { 0 } else { turn }, wait));
                }
            }
        }
        chosen.sort_unstable();
        chosen.truncate(limit);
        chosen.sort_unstable_by_key(|&(_, wait)| wait);
        let rows = chosen.into_iter().map(|(_, Reverse((_, Reverse(row))))| row).collect();
        let mut places: Vec<Place> = places.into_iter().map(|(place, _)| place).collect();
        places.sort_unstable();
        (rows, places)
    }
}

impl Worst {
    fn add(&mut self, other: Self) {
        self.count += other.count;
        for Reverse(wait) in other.longest {
            keep(&mut self.longest, wait, OF_CELL);
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
            let mut parts = [Instances::default(), Instances::default()];
            for (row, &wait) in waits.iter().enumerate() {
                parts[usize::from(row >= cut)].add(row, wait);
            }
            let [first, second] = parts;
            let (rows, places) = second.with(first).worst(limit);
            prop_assert_eq!(rows, expected(&waits, limit));
            prop_assert!(places.is_sorted_by(|a, b| (a.kind, a.callpath) < (b.kind, b.callpath)));
            prop_assert_eq!(places.iter().map(|place| place.count).sum::<u64>(), waits.len() as u64);
        }
    }
}
