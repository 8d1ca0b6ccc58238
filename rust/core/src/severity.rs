//! Severities: a value for each metric, call path, and location.

use bitcode::{Decode, Encode};

use crate::ids::{CallPathId, LocationId};
use crate::schema::MetricSet;
use crate::trace::CallTree;

pub use crate::schema::{CostMetric, Metric};

/// One cell.
#[derive(Clone, Copy, Debug, PartialEq, Encode, Decode)]
pub struct Cell<M, V> {
    /// Metric.
    pub metric: M,
    /// Call path.
    pub callpath: CallPathId,
    /// The location.
    pub location: LocationId,
    /// Ticks, occurrences or bytes.
    pub value: V,
}

/// An integer cell, whose sum does not depend on the order.
pub type Severity = Cell<Metric, i64>;

/// A real-valued cell, ticks.
pub type Cost = Cell<CostMetric, f64>;

/// Bytes or elements that a record claims, as the value of a cell.
pub fn volume(claimed: u64) -> i64 {
    i64::try_from(claimed).unwrap_or(i64::MAX)
}

/// Sums contributions to cells, one location at a time.
#[derive(Debug)]
pub struct Accumulator<M: MetricSet = Metric> {
    /// A row of metrics for each call path.
    cells: Vec<M::Value>,
    /// Indexes of non-zero cells; one that returned to zero in between is listed twice.
    touched: Vec<usize>,
    rows: Vec<Cell<M, M::Value>>,
}

impl<M: MetricSet> Accumulator<M> {
    /// An accumulator for all call paths of a tree.
    pub fn new(tree: &CallTree) -> Self {
        Self { cells: vec![M::Value::default(); M::ALL.len() * tree.len()], touched: Vec::new(), rows: Vec::new() }
    }

    /// Adds to a cell of the current location.
    #[inline]
    pub fn add(&mut self, metric: M, callpath: CallPathId, value: M::Value) {
        let at = callpath.index() * M::ALL.len() + metric.number();
        let cell = &mut self.cells[at];
        if *cell == M::Value::default() {
            if value == M::Value::default() {
                return;
            }
            self.touched.push(at);
        }
        *cell = M::sum(*cell, value);
    }

    /// Finishes the contributions to a location.
    pub fn end_location(&mut self, location: LocationId) {
        self.end_locations(|_| location);
    }

    /// Ends the contributions to locations, given by call path.
    pub fn end_locations(&mut self, location: impl Fn(CallPathId) -> LocationId) {
        for at in self.touched.drain(..) {
            let value = std::mem::take(&mut self.cells[at]);
            if value != M::Value::default() {
                let (callpath, metric) = (CallPathId::at(at / M::ALL.len()), M::ALL[at % M::ALL.len()]);
                self.rows.push(Cell { metric, callpath, location: location(callpath), value });
            }
        }
    }

    /// All non-zero cells.
    pub fn finish(self) -> Vec<Cell<M, M::Value>> {
        self.rows
    }
}

/// Sorts by metric, call path and location, and sums the contributions of several stages to one cell, in their order.
pub fn combine<M: MetricSet>(rows: Vec<Cell<M, M::Value>>) -> Vec<Cell<M, M::Value>> {
    let key = |row: &Cell<M, M::Value>| (row.metric, row.callpath, row.location);
    let mut rows = sorted(rows);
    rows.dedup_by(|later, earlier| {
        let same = key(later) == key(earlier);
        if same {
            earlier.value = M::sum(earlier.value, later.value);
        }
        same
    });
    rows.retain(|row| row.value != M::Value::default());
    rows
}

/// Sorts by metric, call path and location, stably.
fn sorted<M: MetricSet>(mut rows: Vec<Cell<M, M::Value>>) -> Vec<Cell<M, M::Value>> {
    let callpaths = rows.iter().map(|row| row.callpath.index() + 1).max().unwrap_or(0);
    let groups = M::ALL.len() * callpaths;
    if groups > rows.len() || u32::try_from(rows.len()).is_err() {
        rows.sort_by_key(|row| (row.metric, row.callpath, row.location));
        return rows;
    }
    // A counting sort by metric and call path leaves groups that are mostly in order already.
    let group = |row: &Cell<M, M::Value>| row.metric.number() * callpaths + row.callpath.index();
    let mut next = vec![0; groups + 1];
    for row in &rows {
        next[group(row) + 1] += 1;
    }
    for i in 0..groups {
        next[i + 1] += next[i];
    }
    let mut order = vec![0u32; rows.len()];
    for (row, number) in rows.iter().zip(0..) {
        let at = &mut next[group(row)];
        order[*at] = number;
        *at += 1;
    }
    let mut sorted: Vec<_> = order.into_iter().map(|number| rows[number as usize]).collect();
    for same in sorted.chunk_by_mut(|a, b| (a.metric, a.callpath) == (b.metric, b.callpath)) {
        same.sort_by_key(|row| row.location);
    }
    sorted
}

/// Subtracts `some` from `cells`; both are sorted as by [`combine`].
///
/// Both are rounded sums of shares: a difference within that rounding counts as zero.
pub fn less(mut cells: Vec<Cost>, some: &[Cost]) -> Vec<Cost> {
    const ROUNDING: f64 = 1e-12;
    let key = |cell: &Cost| (cell.metric, cell.callpath, cell.location);
    let mut some = some.iter().peekable();
    cells.retain_mut(|cell| {
        while some.next_if(|gone| key(gone) < key(cell)).is_some() {}
        let Some(gone) = some.next_if(|gone| key(gone) == key(cell)) else { return true };
        let all = cell.value;
        cell.value -= gone.value;
        cell.value > all * ROUNDING
    });
    cells
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_gone_of_a_cell_leaves_no_rounding() {
        let cell = |callpath, value| Cost {
            metric: CostMetric::DelayUnattributed,
            callpath: CallPathId::new(callpath),
            location: LocationId::new(0),
            value,
        };
        let all = vec![cell(0, 0.1 + 0.2), cell(1, 3.0), cell(2, 1.0)];
        assert_eq!(less(all, &[cell(0, 0.3), cell(2, 0.25)]), [cell(1, 3.0), cell(2, 0.75)]);
    }

    #[test]
    fn cells_add_up_and_zeros_vanish() {
        let row = |callpath, location, value| Severity {
            metric: Metric::Time,
            callpath: CallPathId::new(callpath),
            location,
            value,
        };
        let rows = combine(vec![
            row(1, LocationId::new(0), 5),
            row(0, LocationId::new(1), 2),
            row(1, LocationId::new(0), -5),
            row(0, LocationId::new(1), 3),
            row(0, LocationId::new(0), 1),
        ]);
        assert_eq!(rows, [row(0, LocationId::new(0), 1), row(0, LocationId::new(1), 5)]);
    }

    proptest! {
        /// Few rows are sorted, many are counted.
        #[test]
        fn few_and_many_cells_add_up(
            rows in prop_oneof![
                prop::collection::vec((0usize..3, 0u32..2, 0u32..9, -2i64..3), 0..20),
                prop::collection::vec((0usize..3, 0u32..2, 0u32..300, -2i64..3), 600..900),
            ],
        ) {
            let mut expected = BTreeMap::new();
            for &(metric, callpath, location, value) in &rows {
                *expected.entry((metric, callpath, location)).or_insert(0) += value;
            }
            expected.retain(|_, value| *value != 0);
            let cell = |(metric, callpath, location, value): (usize, u32, u32, i64)| Severity {
                metric: Metric::ALL[metric],
                callpath: CallPathId::new(callpath),
                location: LocationId::new(location),
                value,
            };
            let expected: Vec<_> = expected.into_iter().map(|((m, c, l), value)| cell((m, c, l, value))).collect();
            prop_assert_eq!(combine(rows.into_iter().map(cell).collect()), expected);
        }
    }

    #[test]
    fn a_cell_that_came_back_to_zero_counts_once() {
        let mut tree = CallTree::default();
        tree.merge(&[crate::trace::CallPath { parent: CallPathId::NONE, region: crate::ids::RegionKey::new(0) }]);
        let mut cells = Accumulator::new(&tree);
        for value in [0, 5, -5, 0, 7] {
            cells.add(Metric::Time, CallPathId::new(0), value);
        }
        cells.end_location(LocationId::new(0));
        cells.add(Metric::Time, CallPathId::new(0), 1);
        cells.end_location(LocationId::new(1));
        let values: Vec<_> = cells.finish().iter().map(|cell| (cell.location.index(), cell.value)).collect();
        assert_eq!(values, [(0, 7), (1, 1)]);
    }
}
