//! Sums at one location after the other, and, on request alone, when they grow.

use bitcode::{Decode, Encode};

use super::{Counts, QueueMetric};
use crate::ids::{CallPathId, LocationId};

/// A sum grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Moment {
    /// The sum.
    pub metric: QueueMetric,
    /// Where.
    pub callpath: CallPathId,
    /// At which location.
    pub location: LocationId,
    /// When, ticks.
    pub time: i64,
    /// By how much.
    pub value: i64,
}

/// Sums at one location after the other, and when they grew, if somebody asks.
pub(super) struct Ledger {
    pub(super) counts: Counts,
    pub(super) moments: Option<Vec<Moment>>,
    /// First moment of the location.
    first: usize,
}

impl Ledger {
    /// Goes on with sums.
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

    /// Ends the contributions to a location.
    pub(super) fn end_location(&mut self, location: LocationId) {
        self.counts.end_location(location);
        if let Some(moments) = &mut self.moments {
            moments[self.first..].iter_mut().for_each(|moment| moment.location = location);
            self.first = moments.len();
        }
    }
}
