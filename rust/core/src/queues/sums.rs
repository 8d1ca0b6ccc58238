//! Sums of the replayed counters.

use rustc_hash::FxHashMap;

use crate::ids::{CallPathId, LocationId};
use crate::schema::{MetricSet, QueueMetric};
use crate::severity::Accumulator;

/// A sum of a metric at a call path and a location.
pub type Cell = crate::severity::Cell<QueueMetric, i64>;

/// Sums, one location at a time.
pub(super) type Counts = Accumulator<QueueMetric>;

/// A call path at a location.
pub(super) type CellKey = (CallPathId, LocationId);

/// Sums at places, in any order.
#[derive(Default)]
pub(super) struct Sums(FxHashMap<CellKey, [i64; QueueMetric::ALL.len()]>);

impl Sums {
    pub(super) fn add(&mut self, metric: QueueMetric, place: CellKey, value: i64) {
        let sums = self.0.entry(place).or_insert([0; QueueMetric::ALL.len()]);
        let sum = &mut sums[metric.number()];
        *sum = QueueMetric::sum(*sum, value);
    }

    pub(super) fn cells(self) -> impl Iterator<Item = Cell> {
        self.0.into_iter().flat_map(|((callpath, location), sums)| {
            let cells = QueueMetric::ALL.iter().zip(sums).filter(|(_, value)| *value != 0);
            cells.map(move |(&metric, value)| Cell { metric, callpath, location, value })
        })
    }
}
