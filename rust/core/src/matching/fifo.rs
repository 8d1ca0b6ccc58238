//! Rows that belong together by their order: the n-th of one side meets the n-th of the other.

use std::hash::Hash;

use rustc_hash::FxHashMap;

use crate::trace::NONE;

/// Rows by key, those of a key in the order of their arrival.
#[derive(Debug)]
pub struct Fifo<'a, K, T> {
    rows: Vec<&'a T>,
    /// After each row the next one of its key, or [`NONE`].
    next: Vec<u32>,
    /// First row that was not taken, and last row.
    ends: FxHashMap<K, (u32, u32)>,
}

impl<'a, K: Eq + Hash, T> Fifo<'a, K, T> {
    /// Lines up rows.
    pub fn new(rows: impl Iterator<Item = &'a T>, key: impl Fn(&T) -> K) -> Self {
        let rows: Vec<&T> = rows.collect();
        let mut next = vec![NONE; rows.len()];
        let mut ends: FxHashMap<K, (u32, u32)> = FxHashMap::default();
        for (position, row) in (0..).zip(&rows) {
            ends.entry(key(row))
                .and_modify(|(_, last)| {
                    next[*last as usize] = position;
                    *last = position;
                })
                .or_insert((position, position));
        }
        Self { rows, next, ends }
    }

    /// The next row of a key.
    pub fn take(&mut self, key: &K) -> Option<&'a T> {
        let (first, _) = self.ends.get_mut(key)?;
        let row = *self.rows.get(*first as usize)?;
        *first = self.next[*first as usize];
        Some(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_in_the_order_of_their_arrival() {
        let rows = [("a", 1), ("b", 2), ("a", 3)];
        let mut fifo = Fifo::new(rows.iter(), |row| row.0);
        let taken = ["a", "b", "b", "a", "a", "c"].map(|key| fifo.take(&key).map(|row| row.1));
        assert_eq!(taken, [Some(1), Some(2), None, Some(3), None, None]);
    }
}
