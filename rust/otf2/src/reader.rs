//! Sends the events of one location, in file order, to a sink.

use std::ops::Range;
use std::path::Path;

use crate::clock::ClockCorrection;
use crate::definitions::LocalDefinitions;
use crate::enums::{MappingType, Type};
use crate::error::{Error, Place, Result};
use crate::file::{CHUNK_BEGIN, Chunk, ChunkFile, END_EXPECTED, END_OF_BUFFER, END_OF_CHUNK, END_OF_FILE};
use crate::idmap::IdMaps;
use crate::oddity::{Oddity, OddityKind};
use crate::records::{
    ATTRIBUTE_LIST, Attributes, ClockOffset, ENTER, Event, EventSink, LEAVE, SAMPLE, TIMESTAMP, TIMESTAMP_SIZE,
    Translator, TypedValue,
};
use crate::wire::{Fault, WINDOW, Window, load};

/// What a reader delivered.
#[derive(Debug, Default)]
#[must_use]
pub struct ReadSummary {
    /// Number of events.
    pub events: u64,
    /// What is missing if the file ends too early. All complete records before it were delivered.
    pub truncated: Option<Error>,
    /// Other oddities of the file.
    pub oddities: Vec<Oddity>,
}

/// The event file of a location, with its translation tables and clock correction.
#[derive(Debug)]
pub struct LocationReader {
    events: ChunkFile,
    local: LocalDefinitions,
    maps: IdMaps,
    clock: ClockCorrection,
    oddities: Vec<Oddity>,
    /// Number of events according to the global definitions.
    claimed_events: Option<u64>,
}

/// Local ids below this number are translated without looking at the kind of their table.
const SMALL: usize = 256;

/// Largest number of values in a short metric record; each takes at least two bytes.
const SHORT: usize = 8;

/// How the records of a chunk end.
enum End {
    OfChunk,
    OfFile,
}

impl LocationReader {
    pub(crate) fn new(
        events: ChunkFile,
        local: LocalDefinitions,
        oddities: Vec<Oddity>,
        claimed_events: Option<u64>,
    ) -> Self {
        let maps = IdMaps::new(local.mapping_tables.iter().map(|table| (table.mapping_type, &table.id_map)));
        let clock = ClockCorrection::new(local.clock_offsets.iter().map(ClockOffset::point));
        Self { events, local, maps, clock, oddities, claimed_events }
    }

    /// A reader of events in memory; `path` appears in errors.
    pub fn from_bytes(path: &Path, events: Vec<u8>, chunk_size: u64, local: LocalDefinitions) -> Self {
        Self::new(ChunkFile::from_bytes(path.to_owned(), events, chunk_size), local, Vec::new(), None)
    }

    /// Reads ids and times as they stand in the file.
    #[must_use]
    pub fn raw(mut self) -> Self {
        self.maps = IdMaps::default();
        self.clock = ClockCorrection::new([]);
        self
    }

    /// Corrects times by other clock offsets than those of the file.
    #[must_use]
    pub fn with_clock_offsets(mut self, offsets: &[ClockOffset]) -> Self {
        self.clock = ClockCorrection::new(offsets.iter().map(ClockOffset::point));
        self
    }

    /// The event file.
    pub fn path(&self) -> &Path {
        self.events.path()
    }

    /// The content of the local definition file.
    pub fn local_definitions(&self) -> &LocalDefinitions {
        &self.local
    }

    /// Oddities of the local definitions.
    pub fn oddities(&self) -> &[Oddity] {
        &self.oddities
    }

    /// Number of chunks of the event file.
    pub fn chunk_count(&self) -> u64 {
        self.events.chunk_count()
    }

    /// Size of the event file in bytes.
    pub fn event_file_size(&self) -> u64 {
        self.events.size()
    }

    /// Sends all events to `sink`, reading chunk by chunk through `buffer`. If the file is malformed, the error comes
    /// after the events before it; they remain with the sink.
    pub fn read_events(&self, buffer: &mut Vec<u8>, sink: &mut dyn EventSink) -> Result<ReadSummary> {
        self.read_events_inlined(buffer, sink)
    }

    /// As [`read_events`](Self::read_events), compiled for one kind of sink: faster, and a lot of code.
    pub fn read_events_inlined<S: EventSink + ?Sized>(
        &self,
        buffer: &mut Vec<u8>,
        sink: &mut S,
    ) -> Result<ReadSummary> {
        let mut summary = self.read_range(0..self.chunk_count(), buffer, sink)?;
        if let Some(claimed) = self.claimed_events.filter(|claimed| *claimed != summary.events) {
            let text = format!("the location is said to have {claimed} events, the file holds {}", summary.events);
            summary.oddities.push(self.oddity(OddityKind::Count, 0, text));
        }
        Ok(summary)
    }

    /// Sends the events of some chunks to `sink`. Chunks decode independently of each other, so that threads can share
    /// a location; the clock correction starts anew with each call, which makes no difference as long as local times
    /// do not decrease.
    pub fn read_chunks(
        &self,
        chunks: Range<u64>,
        buffer: &mut Vec<u8>,
        sink: &mut dyn EventSink,
    ) -> Result<ReadSummary> {
        self.read_range(chunks, buffer, sink)
    }

    fn read_range<S: EventSink + ?Sized>(
        &self,
        chunks: Range<u64>,
        buffer: &mut Vec<u8>,
        sink: &mut S,
    ) -> Result<ReadSummary> {
        let mut summary = ReadSummary::default();
        let mut small = [0; SMALL];
        let regions = self.maps.of(MappingType::REGION);
        for (local, global) in small.iter_mut().enumerate() {
            *global = regions.get(local as u64) as u32;
        }
        let mut state = State {
            by: Translator { maps: &self.maps, clock: self.clock.cursor() },
            regions: small,
            values: [TypedValue { kind: Type::NONE, bits: 0 }; SHORT],
            time: 0,
            events: 0,
        };
        let whole_file = chunks.end >= self.chunk_count();
        for index in chunks.start..chunks.end.min(self.chunk_count()) {
            let chunk = match self.events.chunk(index, buffer) {
                Err(error @ Error::Truncated { .. }) => {
                    summary.truncated = Some(error);
                    return Ok(summary);
                }
                chunk => chunk?,
            };
            if index > 0 && index == chunks.start && !begins_with_time(&chunk) {
                let fault = chunk.records.fault("a timestamp at the begin of the chunk");
                return Err(self.events.fault(&chunk, "Timestamp", fault));
            }
            let before = state.events;
            let end = state.chunk(&chunk, sink);
            sink.end_chunk();
            summary.events = state.events;
            match end.map_err(|(record, fault)| self.events.fault(&chunk, record, fault)) {
                Err(error @ Error::Truncated { .. }) => {
                    summary.truncated = Some(error);
                    return Ok(summary);
                }
                Err(error) => return Err(error),
                Ok(end) => {
                    self.check_count(&chunk, state.events - before, &mut summary);
                    if matches!(end, End::OfFile) {
                        if !chunk.is_last {
                            let text = "chunks follow the end of file mark".to_owned();
                            summary.oddities.push(self.oddity(OddityKind::Trailing, chunk.offset, text));
                        }
                        return Ok(summary);
                    }
                }
            }
        }
        if whole_file {
            summary.truncated = Some(Error::fault(self.path(), self.events.size(), "events", END_EXPECTED));
        }
        Ok(summary)
    }

    /// Reports a chunk header with wrong numbers of events, once for all chunks.
    fn check_count(&self, chunk: &Chunk<'_>, events: u64, summary: &mut ReadSummary) {
        let (first, last) = chunk.events;
        if last.wrapping_sub(first).wrapping_add(1) != events && summary.oddities.is_empty() {
            let text = format!("the chunk header numbers events {first} to {last}, the chunk holds {events}");
            summary.oddities.push(self.oddity(OddityKind::Count, chunk.offset, text));
        }
    }

    fn oddity(&self, kind: OddityKind, offset: u64, text: String) -> Oddity {
        Oddity { kind, place: Place { path: self.path().to_owned(), offset }, text }
    }
}

fn begins_with_time(chunk: &Chunk<'_>) -> bool {
    matches!(chunk.records.peek(), Some(TIMESTAMP | ATTRIBUTE_LIST | END_OF_FILE | END_OF_CHUNK) | None)
}

/// State carried from one record to the next.
struct State<'a> {
    by: Translator<'a>,
    /// Global ids of the first local region ids.
    regions: [u32; SMALL],
    /// Room for the values of a metric record.
    values: [TypedValue; SHORT],
    /// Current time in global ticks.
    time: i64,
    events: u64,
}

impl<'a> State<'a> {
    /// Sends the events of a chunk; a fault comes with the name of the record.
    fn chunk<'b, S: EventSink + ?Sized>(
        &mut self,
        chunk: &Chunk<'b>,
        sink: &mut S,
    ) -> std::result::Result<End, (&'static str, Fault)>
    where
        'a: 'b,
    {
        let mut records = chunk.records;
        // Position of the first attribute list of the next event.
        let mut pending: Option<usize> = None;
        loop {
            if pending.is_none()
                && let Some(window) = records.window()
                && let Some(size) = self.short_event(window, sink)
            {
                self.events += 1;
                records.skip(size);
                continue;
            }
            let begin = records;
            let id = match records.u8() {
                Ok(id) => id,
                // A full chunk without room for an end mark is as good as one with it.
                Err(_) if !chunk.is_last => return Ok(End::OfChunk),
                Err(_) => {
                    return Err(("events", Fault { offset: begin.position(), ..END_EXPECTED }));
                }
            };
            let named = |fault| (Event::name_of(id), fault);
            match id {
                TIMESTAMP => {
                    let time = records.full_u64().map_err(|fault| ("Timestamp", fault))?;
                    self.time = self.by.clock.correct(time);
                }
                ATTRIBUTE_LIST => {
                    Attributes::check(&mut records).map_err(|fault| ("AttributeList", fault))?;
                    pending.get_or_insert(begin.position());
                }
                END_OF_CHUNK if chunk.is_last => {
                    return Err(("events", Fault { offset: begin.position(), ..END_EXPECTED }));
                }
                END_OF_CHUNK => return Ok(End::OfChunk),
                END_OF_FILE => return Ok(End::OfFile),
                END_OF_BUFFER | CHUNK_BEGIN => return Err(("events", begin.fault("a record"))),
                _ => {
                    let event = Event::read(id, &mut records, &mut self.by).map_err(named)?;
                    let attributes = match pending.take() {
                        None => Attributes::NONE,
                        Some(first) => {
                            let lists = chunk.records.at(first).until(begin.position());
                            Attributes::encoded(lists, self.by.maps)
                        }
                    };
                    self.events += 1;
                    match event {
                        Event::Enter { region } => {
                            if !attributes.is_empty() {
                                sink.attributed(&attributes);
                            }
                            sink.enter(self.time, region);
                        }
                        Event::Leave { region } => {
                            if !attributes.is_empty() {
                                sink.attributed(&attributes);
                            }
                            sink.leave(self.time, region);
                        }
                        event => sink.record(self.time, &event, &attributes),
                    }
                }
            }
        }
    }

    /// Sends an event without attributes that is short, as most are, and returns its size together with that of the
    /// timestamp before it. `None` leaves all to be read again.
    #[inline(always)]
    fn short_event<S: EventSink + ?Sized>(&mut self, window: &[u8; WINDOW], sink: &mut S) -> Option<usize> {
        let mut position = 0;
        if window[0] == TIMESTAMP {
            self.time = self.by.clock.correct(load(&window[1..]));
            position = TIMESTAMP_SIZE;
        }
        let id = window[position];
        let time = self.time;
        if id == ENTER || id == LEAVE {
            // Most region ids take one byte.
            let (region, end) = if window[position + 1] == 1 {
                (self.regions[usize::from(window[position + 2])], position + 3)
            } else {
                let mut from = Window::new(window, position + 1);
                (self.by.maps.get::<{ MappingType::REGION.0 }>(from.u32()?), from.end()?)
            };
            if id == ENTER {
                sink.enter(time, region);
            } else {
                sink.leave(time, region);
            }
            return Some(end);
        }
        let mut from = Window::new(window, position + 1);
        if id == SAMPLE {
            return self.short_metric(from, sink);
        }
        Event::send_short(id, &mut from, &mut self.by, time, sink)
    }

    /// Sends a metric record.
    #[inline(always)]
    fn short_metric<S: EventSink + ?Sized>(&mut self, mut from: Window<'_>, sink: &mut S) -> Option<usize> {
        let end = from.payload()?;
        let metric = self.by.maps.get::<{ MappingType::METRIC.0 }>(from.u32()?);
        let count = usize::from(from.u8()?);
        let values = self.values.get_mut(..count)?;
        for value in values.iter_mut() {
            let (kind, bits) = from.u8_and_u64()?;
            *value = TypedValue { kind: Type(kind), bits };
        }
        let end = from.end_within(end)?;
        sink.metric(self.time, metric, values);
        Some(end)
    }
}
