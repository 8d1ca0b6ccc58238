//! Severities: a value for each metric, call path and location.

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

/// A cell that is counted or measured: its sum does not depend on the order.
pub type Severity = Cell<Metric, i64>;

/// A cell that is a share of something: a real number of ticks.
pub type Cost = Cell<CostMetric, f64>;

/// Bytes or elements that a record claims, as the value of a cell.
#[must_use]
pub fn volume(claimed: u64) -> i64 {
    i64::try_from(claimed).unwrap_or(i64::MAX)
}

/// Sums contributions to the cells of one location after the other.
#[derive(Debug)]
pub struct Accumulator<M: MetricSet = Metric> {
    /// A row of metrics for each call path.
    cells: Vec<M::Value>,
    touched: Vec<CallPathId>,
    is_touched: Vec<bool>,
    rows: Vec<Cell<M, M::Value>>,
}

impl<M: MetricSet> Accumulator<M> {
    /// An accumulator for all call paths of a tree.
    #[must_use]
    pub fn new(tree: &CallTree) -> Self {
        Self {
            cells: vec![M::Value::default(); M::ALL.len() * tree.len()],
            touched: Vec::new(),
            is_touched: vec![false; tree.len()],
            rows: Vec::new(),
        }
    }

    /// Adds to a cell of the current location.
    #[inline]
    pub fn add(&mut self, metric: M, callpath: CallPathId, value: M::Value) {
        if !self.is_touched[callpath] {
            self.is_touched[callpath] = true;
            self.touched.push(callpath);
        }
        let cell = &mut self.cells[callpath.index() * M::ALL.len() + metric.number()];
        *cell = M::sum(*cell, value);
    }

    /// Ends the contributions to a location.
    pub fn end_location(&mut self, location: LocationId) {
        for callpath in self.touched.drain(..) {
            self.is_touched[callpath] = false;
            let begin = callpath.index() * M::ALL.len();
            let cells = &mut self.cells[begin..begin + M::ALL.len()];
            for (&metric, value) in M::ALL.iter().zip(cells) {
                if *value != M::Value::default() {
                    self.rows.push(Cell { metric, callpath, location, value: *value });
                    *value = M::Value::default();
                }
            }
        }
    }

    /// All cells that are not zero.
    #[must_use]
    pub fn finish(self) -> Vec<Cell<M, M::Value>> {
        self.rows
    }
}

/// Sorts by metric, call path and location, and adds up what several stages contributed to one cell, in their order.
#[must_use]
pub fn combine<M: MetricSet>(mut rows: Vec<Cell<M, M::Value>>) -> Vec<Cell<M, M::Value>> {
    let key = |row: &Cell<M, M::Value>| (row.metric, row.callpath, row.location);
    rows.sort_by_key(key);
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

/// What of each cell is left without some of it; both are sorted, as [`combine`] does.
///
/// Both are sums of shares, rounded in each addition: what is left of a cell by that is nothing.
#[must_use]
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
}
