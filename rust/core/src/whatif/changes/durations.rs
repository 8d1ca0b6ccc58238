//! Changes of durations: segments with new lengths.

use crate::ids::LocationId;

/// A segment with a new length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::whatif) struct Change {
    /// Position of the event that ends it.
    pub position: u32,
    /// The list of hypotheses it belongs to.
    pub lane: u32,
    /// Its growth over the measured length, waiting included, ticks.
    pub growth: i64,
}

/// The changed segments of each location, by position, under one list of hypotheses or several.
#[derive(Clone, Debug, Default)]
pub struct Shape(pub(in crate::whatif) Vec<Vec<Change>>);

impl Shape {
    /// The changed segments of a location.
    pub(in crate::whatif) fn of(&self, location: LocationId) -> &[Change] {
        self.0.get(location.index()).map_or(&[], Vec::as_slice)
    }
}
