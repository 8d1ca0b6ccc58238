//! What an analysis reads: the definitions of a run, and the events of its locations with corrected times.
//!
//! An [`Archive`](crate::Archive) is one implementation. Others may compute their events, or read another format.

use std::fmt;
use std::ops::Range;
use std::path::Path;

use crate::anchor::Anchor;
use crate::definitions::Definitions;
use crate::error::Result;
use crate::oddity::Oddity;
use crate::reader::{LocationReader, ReadSummary};
use crate::records::{Attributes, ClockOffset, Definition, Event, EventSink, Location, TypedValue};

/// A recorded run.
pub trait Recording: fmt::Debug + Send + Sync {
    /// Where it is.
    fn path(&self) -> &Path;

    /// Its name, `traces` for those of Score-P.
    fn name(&self) -> &str;

    /// How it was recorded, as an anchor file says.
    fn anchor(&self) -> &Anchor;

    /// All definitions.
    fn definitions(&self) -> &Definitions;

    /// Defects found so far.
    fn oddities(&self) -> &[Oddity] {
        &[]
    }

    /// The events of the location with this id.
    fn events(&self, location: u64) -> Result<Events<'_>>;

    /// About how many events a location has, by which the work on them is divided.
    fn expected_events(&self, location: &Location) -> u64 {
        location.number_of_events
    }
}

/// A source of events other than a file.
pub trait EventStream: Send + Sync {
    /// Sends all events to `sink`, in order of time.
    fn read(&self, sink: &mut dyn EventSink) -> Result<ReadSummary>;

    /// Time of the first event, ticks.
    fn first_time(&self) -> Option<i64> {
        let mut first = FirstTime(None);
        // Errors are reported when all events are read.
        let _ = self.read(&mut first);
        first.0
    }

    /// Definitions in the id space of the location.
    fn local_definitions(&self) -> &[Definition] {
        &[]
    }
}

/// The events of a location.
pub struct Events<'a>(Source<'a>);

#[expect(clippy::large_enum_variant, reason = "one is made for each location, and read at once")]
enum Source<'a> {
    File(LocationReader),
    Stream(Box<dyn EventStream + 'a>),
}

impl fmt::Debug for Events<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Source::File(reader) => reader.fmt(f),
            Source::Stream(_) => f.write_str("EventStream"),
        }
    }
}

impl From<LocationReader> for Events<'_> {
    fn from(reader: LocationReader) -> Self {
        Self(Source::File(reader))
    }
}

impl<'a> Events<'a> {
    /// Events that do not come from a file.
    pub fn new(stream: impl EventStream + 'a) -> Self {
        Self(Source::Stream(Box::new(stream)))
    }

    /// Corrects times by other clock offsets than those of the file. Other sources have no clock offsets.
    #[must_use]
    pub fn with_clock_offsets(self, offsets: &[ClockOffset]) -> Self {
        match self.0 {
            Source::File(reader) => reader.with_clock_offsets(offsets).into(),
            Source::Stream(stream) => Self(Source::Stream(stream)),
        }
    }

    /// The clock offsets of the file, as they were measured.
    pub fn clock_offsets(&self) -> &[ClockOffset] {
        match &self.0 {
            Source::File(reader) => &reader.local_definitions().clock_offsets,
            Source::Stream(_) => &[],
        }
    }

    /// Sends all events to `sink`; files are read chunk by chunk through `buffer`. After an error, the events before it
    /// remain with the sink.
    pub fn read(&self, buffer: &mut Vec<u8>, sink: &mut dyn EventSink) -> Result<ReadSummary> {
        match &self.0 {
            Source::File(reader) => reader.read_events(buffer, sink),
            Source::Stream(stream) => stream.read(sink),
        }
    }

    /// As [`read`](Self::read), compiled for one kind of sink: faster, and a lot of code.
    pub fn read_inlined<S: EventSink>(&self, buffer: &mut Vec<u8>, sink: &mut S) -> Result<ReadSummary> {
        match &self.0 {
            Source::File(reader) => reader.read_events_inlined(buffer, sink),
            Source::Stream(stream) => stream.read(sink),
        }
    }

    /// Number of chunks that can be read independently.
    pub fn chunk_count(&self) -> u64 {
        match &self.0 {
            Source::File(reader) => reader.chunk_count(),
            Source::Stream(_) => 1,
        }
    }

    /// Sends the events of some chunks to `sink`.
    pub fn read_chunks(
        &self,
        chunks: Range<u64>,
        buffer: &mut Vec<u8>,
        sink: &mut dyn EventSink,
    ) -> Result<ReadSummary> {
        match &self.0 {
            Source::File(reader) => reader.read_chunks(chunks, buffer, sink),
            Source::Stream(stream) if chunks.contains(&0) => stream.read(sink),
            Source::Stream(_) => Ok(ReadSummary::default()),
        }
    }

    /// Time of the first event, ticks; `None` if there is none, or if it cannot be read.
    pub fn first_time(&self) -> Option<i64> {
        let reader = match &self.0 {
            Source::File(reader) => reader,
            Source::Stream(stream) => return stream.first_time(),
        };
        let mut first = FirstTime(None);
        // Errors are reported when all events are read.
        let _ = reader.read_chunks(0..1, &mut Vec::new(), &mut first);
        first.0
    }

    /// Size of the event file in bytes, if there is one.
    pub fn file_size(&self) -> Option<u64> {
        match &self.0 {
            Source::File(reader) => Some(reader.event_file_size()),
            Source::Stream(_) => None,
        }
    }

    /// Definitions in the id space of the location.
    pub fn local_definitions(&self) -> &[Definition] {
        match &self.0 {
            Source::File(reader) => &reader.local_definitions().definitions,
            Source::Stream(stream) => stream.local_definitions(),
        }
    }
}

/// The number of events that something sends.
pub fn count_events(send: impl FnOnce(&mut dyn EventSink)) -> u64 {
    let mut counter = Counter(0);
    send(&mut counter);
    counter.0
}

struct Counter(u64);

impl EventSink for Counter {
    fn enter(&mut self, _: i64, _: u32) {
        self.0 += 1;
    }

    fn leave(&mut self, _: i64, _: u32) {
        self.0 += 1;
    }

    fn record(&mut self, _: i64, _: &Event<'_>, _: &Attributes<'_>) {
        self.0 += 1;
    }

    fn metric(&mut self, _: i64, _: u32, _: &[TypedValue]) {
        self.0 += 1;
    }
}

struct FirstTime(Option<i64>);

impl EventSink for FirstTime {
    fn enter(&mut self, time: i64, _: u32) {
        self.0.get_or_insert(time);
    }

    fn leave(&mut self, time: i64, _: u32) {
        self.0.get_or_insert(time);
    }

    fn record(&mut self, time: i64, _: &Event<'_>, _: &Attributes<'_>) {
        self.0.get_or_insert(time);
    }
}
