//! Room for the rows of a shard, whose number is known only for events: the others are extrapolated from the first ones.

use super::Decoder;

/// The part of a shard's events after which its rows are extrapolated.
const SAMPLE: usize = 16;

/// The events whose rows need room.
#[derive(Default)]
pub(super) struct Room {
    /// Number of events in the files of the shard, until there is room for their rows.
    expected: Option<usize>,
    /// Number of events of earlier locations.
    pub(super) earlier: usize,
}

impl Decoder<'_> {
    /// Makes room for a number of events, and later for their other rows.
    pub fn expect(&mut self, events: usize) {
        self.shard.events.reserve(events);
        self.room.expected = Some(events);
    }

    /// Makes room for the rows of the expected events once enough of them are there to extrapolate.
    pub(super) fn extrapolate(&mut self) {
        let Some(expected) = self.room.expected else { return };
        let read = self.room.earlier + self.decoded() as usize;
        if read > expected / SAMPLE {
            self.room.expected = None;
            let missing = expected.saturating_sub(read);
            // Some slack, because a program does not always do the same; no file has more rows than events.
            let more = |rows| ((rows as f64 * missing as f64 / read as f64 * 1.1) as usize).min(missing);
            self.shard.reserve(self.shard.rows().map(more));
        }
    }
}
