//! The parts of a nested column: the entries of each different row once, and the order of the rows.

use std::ops::Range;

use crate::hybrid;

/// The rows of a nested column.
#[derive(Debug, Default)]
pub(crate) struct Order {
    /// The number of the part that holds each row, and in how many rows it repeats.
    pub(crate) runs: Vec<(u32, u32)>,
    /// In how many rows each part occurs.
    times: Vec<usize>,
}

impl Order {
    /// Adds rows with the same entries.
    pub(crate) fn push(&mut self, part: u32, times: usize) {
        let rows = u32::try_from(times).expect("rows of a group");
        match self.runs.last_mut() {
            Some((last, before)) if *last == part => *before += rows,
            _ => self.runs.push((part, rows)),
        }
        let at = part as usize;
        if at >= self.times.len() {
            self.times.resize(at + 1, 0);
        }
        self.times[at] += times;
    }

    /// How much all rows have, given how much each part has.
    pub(crate) fn sum(&self, of_part: impl Iterator<Item = usize>) -> usize {
        self.times.iter().zip(of_part).map(|(times, of_part)| times * of_part).sum()
    }
}

/// The parts of a leaf, and their order.
pub(crate) type Parts<'a> = (&'a [Part], &'a Order);

/// Append numbers of a leaf: all, or those of its parts in their order; `of_part` is where a part has its own.
pub(crate) fn append<T: Copy + PartialEq + Into<u32>>(
    numbers: &[T],
    parts: Option<Parts<'_>>,
    of_part: fn(&Part) -> &Range<usize>,
    width: u32,
    data: &mut Vec<u8>,
) {
    let Some((parts, order)) = parts else { return hybrid::encode(numbers, width, data) };
    let count = order.sum(parts.iter().map(|part| of_part(part).len()));
    hybrid::join(parts.iter().map(|part| &numbers[of_part(part).clone()]), &order.runs, count, width, data);
}

/// The entries of a row in a leaf.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) levels: Range<usize>,
    pub(crate) values: Range<usize>,
}
