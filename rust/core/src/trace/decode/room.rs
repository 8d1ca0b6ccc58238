//! Room for the rows of a shard, whose number is known only for events: the others are extrapolated from the first ones.

/// The events whose rows need room.
#[derive(Default)]
pub(super) struct Room {
    /// Number of events in the files of the shard, until there is room for their rows.
    pub(super) expected: Option<usize>,
    /// Number of events of earlier locations.
    pub(super) earlier: usize,
}
