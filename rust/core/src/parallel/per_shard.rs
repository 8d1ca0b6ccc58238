//! Rows of all shards, kept in one vector per shard.

use std::iter::Flatten;
use std::ops::Index;

use crate::Result;
use crate::parallel::exchange::{Exchange, Row};

/// Rows in one part per shard, numbered consecutively without copying them together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerShard<T> {
    parts: Vec<Vec<T>>,
    /// Number of the first row of each part, and of all rows.
    first: Vec<usize>,
}

impl<T> PerShard<T> {
    /// The rows of each shard.
    pub fn new(parts: Vec<Vec<T>>) -> Self {
        let mut first = vec![0];
        first.extend(parts.iter().scan(0, |rows, part| {
            *rows += part.len();
            Some(*rows)
        }));
        Self { parts, first }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.first[self.parts.len()]
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All rows.
    pub fn iter(&self) -> Flatten<std::slice::Iter<'_, Vec<T>>> {
        self.parts.iter().flatten()
    }

    /// The rows of each shard.
    pub fn of_shards(&self) -> impl Iterator<Item = &[T]> {
        self.parts.iter().map(Vec::as_slice)
    }

    /// The rows of the i-th shard, with the number of the first.
    pub fn of(&self, i: usize) -> (usize, &[T]) {
        (self.first[i], &self.parts[i])
    }

    /// Number of the first row of the i-th shard; after the last shard, that of all rows.
    pub fn before(&self, i: usize) -> usize {
        self.first[i]
    }

    /// The row with a number.
    pub fn get(&self, number: usize) -> Option<&T> {
        let part = self.first.partition_point(|&first| first <= number) - 1;
        self.parts.get(part)?.get(number - self.first[part])
    }
}

impl<T: Row> PerShard<T> {
    /// Adds the rows of all other shards at the first process; the other processes keep their own.
    pub fn gather(mut self, exchange: &Exchange) -> Result<Self> {
        let lengths = exchange.gather(self.parts.iter().map(Vec::len).collect::<Vec<_>>())?;
        if !exchange.is_root() {
            exchange.gather_slices(&self.parts, drop)?;
            return Ok(self);
        }
        let mut expected = lengths.into_iter().skip(1).flatten();
        let mut missing = 0;
        let parts = &mut self.parts;
        let mut next_part = |parts: &mut Vec<Vec<T>>| {
            for length in expected.by_ref() {
                parts.push(Vec::with_capacity(length));
                if length > 0 {
                    return length;
                }
            }
            0
        };
        exchange.gather_slices(&[], |mut slice: Vec<T>| {
            if missing == 0 {
                missing = next_part(parts);
            }
            missing = missing.saturating_sub(slice.len());
            if let Some(part) = parts.last_mut() {
                part.append(&mut slice);
            }
        })?;
        next_part(parts);
        Ok(Self::new(self.parts))
    }
}

impl<T> Index<usize> for PerShard<T> {
    type Output = T;

    fn index(&self, number: usize) -> &T {
        self.get(number).expect("a number of a row")
    }
}

impl<'a, T> IntoIterator for &'a PerShard<T> {
    type Item = &'a T;
    type IntoIter = Flatten<std::slice::Iter<'a, Vec<T>>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn rows_are_numbered_through(parts in prop::collection::vec(prop::collection::vec(0u8..9, 0..4), 0..6)) {
            let flat = parts.concat();
            let rows = PerShard::new(parts.clone());
            prop_assert_eq!((rows.len(), rows.is_empty()), (flat.len(), flat.is_empty()));
            prop_assert_eq!(rows.iter().copied().collect::<Vec<_>>(), flat.clone());
            for number in 0..flat.len() + 2 {
                prop_assert_eq!(rows.get(number), flat.get(number));
            }
            for (i, part) in parts.iter().enumerate() {
                let (first, of_shard) = rows.of(i);
                prop_assert_eq!(of_shard, part.as_slice());
                prop_assert_eq!(&flat[first..first + part.len()], part.as_slice());
            }
        }
    }
}
