//! Reading the records of a run again, for what is too large to keep.

use whywait_otf2::{EventSink, ReadSummary, Result};

use super::load::Trace;
use crate::ids::LocationId;

/// A trace whose records may be read again. A function that takes it costs a pass over the locations it asks for.
#[derive(Clone, Copy, Debug)]
pub struct Reread<'a> {
    /// The trace.
    pub trace: &'a Trace,
}

impl Trace {
    /// Gives access to records that are not kept.
    pub fn reread(&self) -> Reread<'_> {
        Reread { trace: self }
    }
}

impl Reread<'_> {
    /// Sends the records of a location to `sink` once more. After an error, those before it remain with the sink.
    pub fn location(self, location: LocationId, sink: &mut dyn EventSink) -> Result<ReadSummary> {
        let id = self.trace.definitions.locations[location].id;
        self.trace.recording().events(id)?.read(&mut Vec::new(), sink)
    }
}
