//! Sums, one location at a time, and on request each of their increments.

use bitcode::{Decode, Encode};

use super::sums::Counts;
use crate::ids::{CallPathId, LocationId};
use crate::schema::QueueMetric;

/// An increment of a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Moment {
    /// The sum.
    pub metric: QueueMetric,
    /// Call path.
    pub callpath: CallPathId,
    /// The location.
    pub location: LocationId,
    /// Time, ticks.
    pub time: i64,
    /// Amount.
    pub value: i64,
}

/// Sums, one location at a time, and their increments on request.
pub(super) struct Ledger {
    pub(super) counts: Counts,
    pub(super) moments: Option<Vec<Moment>>,
    /// Index of the location's first increment.
    first: usize,
}

impl Ledger {
    /// Continues existing sums.
    pub(super) fn new(counts: Counts, has_moments: bool) -> Self {
        Self { counts, moments: has_moments.then(Vec::new), first: 0 }
    }

    /// Adds to a sum of the current location.
    pub(super) fn add(&mut self, metric: QueueMetric, callpath: CallPathId, time: impl FnOnce() -> i64) {
        self.counts.add(metric, callpath, 1);
        if let Some(moments) = &mut self.moments {
            moments.push(Moment { metric, callpath, location: LocationId::NONE, time: time(), value: 1 });
        }
    }

    /// Finishes the contributions to a location.
    pub(super) fn end_location(&mut self, location: LocationId) {
        self.counts.end_location(location);
        if let Some(moments) = &mut self.moments {
            moments[self.first..].iter_mut().for_each(|moment| moment.location = location);
            self.first = moments.len();
        }
    }
}
