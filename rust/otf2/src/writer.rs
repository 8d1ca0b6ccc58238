//! Archives to disk: typed records in, chunked files and an anchor out.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::anchor::Anchor;
use crate::archive::{Archive, LocalDefinitions, Oddity, OddityKind};
use crate::enums::{Compression, FileSubstrate};
use crate::error::{Error, Place, Result};
use crate::file::{CHUNK_BEGIN, CHUNK_SIZES, END_OF_BUFFER, END_OF_CHUNK, END_OF_FILE, HEADER_SIZE};
use crate::records::{
    AttributeValue, Attributes, CLOCK_OFFSET, Definition, Event, EventSink, MAPPING_TABLE, MetricValues, Record,
    TIMESTAMP, TIMESTAMP_SIZE, TypedValue,
};
use crate::wire::{ByteOrder, Encoder};

/// How to write an archive.
#[derive(Debug, Clone, Default)]
pub struct WriteOptions {
    /// Machine, creator, chunk sizes, and so on. The writer sets counts, substrate, and compression; it writes the
    /// current formats only.
    pub anchor: Anchor,
    /// Byte order of all files.
    pub byte_order: ByteOrder,
}

/// An archive being written. It becomes readable with [`finish`](Self::finish), which writes the anchor last.
#[derive(Debug)]
pub struct ArchiveWriter {
    anchor_path: PathBuf,
    locations: PathBuf,
    options: WriteOptions,
    shared: Mutex<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    definitions: Vec<Definition>,
    /// Number of events of the locations that are complete.
    events: HashMap<u64, u64>,
}

impl ArchiveWriter {
    /// Begins the archive `name` in the directory `directory`, which is created if needed. An archive of that name must
    /// not exist.
    pub fn create(directory: &Path, name: &str, mut options: WriteOptions) -> Result<Self> {
        let locations = directory.join(name);
        let anchor_path = directory.join(format!("{name}.otf2"));
        if anchor_path.exists() {
            return Err(Error::Io {
                path: anchor_path,
                source: io::Error::new(io::ErrorKind::AlreadyExists, "already exists"),
            });
        }
        for size in [options.anchor.event_chunk_size, options.anchor.definition_chunk_size] {
            if size < SMALLEST_CHUNK || size > *CHUNK_SIZES.end() {
                return Err(Error::Unwritable {
                    path: anchor_path,
                    record: "anchor".into(),
                    why: format!("a chunk of {size} bytes is too small or too large").into(),
                });
            }
        }
        fs::create_dir_all(&locations).map_err(Error::io(&locations))?;
        options.anchor.anchor_format = 3;
        options.anchor.trace_format = 2;
        options.anchor.substrate = FileSubstrate::POSIX;
        options.anchor.compression = Compression::NONE;
        Ok(Self { anchor_path, locations, options, shared: Mutex::default() })
    }

    /// Adds a global definition. A definition should come before those that refer to it. The number of events of a
    /// location is set by [`finish`](Self::finish).
    pub fn define(&self, definition: impl Into<Definition>) {
        self.shared().definitions.push(definition.into());
    }

    /// Begins the files of a location. Locations can be written by several threads at a time.
    pub fn location(&self, id: u64) -> Result<LocationWriter<'_>> {
        let path = self.locations.join(format!("{id}.evt"));
        let file = ChunkWriter::create(path, self.options.anchor.event_chunk_size, self.options.byte_order)?;
        Ok(LocationWriter { archive: self, id, file, time: None })
    }

    /// Writes the local definitions of a location, in the place of those it was finished with.
    pub fn define_locally(&self, id: u64, local: &LocalDefinitions) -> Result<()> {
        let path = self.locations.join(format!("{id}.def"));
        let order = self.options.byte_order;
        let mut file = ChunkWriter::create(path, self.options.anchor.definition_chunk_size, order)?;
        let mut record = Encoder::new(order);
        for table in &local.mapping_tables {
            file.local_record(MAPPING_TABLE, "MappingTable", table, &mut record)?;
        }
        for offset in &local.clock_offsets {
            file.local_record(CLOCK_OFFSET, "ClockOffset", offset, &mut record)?;
        }
        for definition in &local.definitions {
            record.clear();
            if let MAPPING_TABLE | CLOCK_OFFSET = definition.borrowed().id() {
                record.refuse("a local definition file cannot hold this record");
            }
            definition.borrowed().write(&mut record);
            file.record(definition.borrowed().kind(), &record)?;
        }
        file.finish()
    }

    /// The locations that are complete, with their number of events.
    pub fn written(&self) -> Vec<(u64, u64)> {
        self.shared().events.iter().map(|(&id, &events)| (id, events)).collect()
    }

    /// Notes a location whose files another process has written to the same directory; an error if they are not there.
    pub fn written_elsewhere(&self, id: u64, events: u64) -> Result<()> {
        let path = self.locations.join(format!("{id}.evt"));
        fs::metadata(&path).map_err(Error::io(&path))?;
        self.shared().events.insert(id, events);
        Ok(())
    }

    /// Writes definitions and anchor. Locations that are defined but were not written become empty.
    pub fn finish(self) -> Result<()> {
        let defined: Vec<u64> = self
            .shared()
            .definitions
            .iter()
            .filter_map(|definition| match definition {
                Definition::Location(location) => Some(location.id),
                _ => None,
            })
            .collect();
        for id in &defined {
            if !self.shared().events.contains_key(id) {
                self.location(*id)?.finish(&LocalDefinitions::default())?;
            }
        }
        let Shared { mut definitions, events } = self.shared.into_inner().unwrap_or_else(PoisonError::into_inner);
        for definition in &mut definitions {
            if let Definition::Location(location) = definition {
                location.number_of_events = events.get(&location.id).copied().unwrap_or(0);
            }
        }

        let mut path = self.locations.into_os_string();
        path.push(".def");
        let order = self.options.byte_order;
        let mut file = ChunkWriter::create(path.into(), self.options.anchor.definition_chunk_size, order)?;
        let mut record = Encoder::new(order);
        for definition in &definitions {
            record.clear();
            definition.borrowed().write(&mut record);
            file.record(definition.borrowed().kind(), &record)?;
        }
        file.finish()?;

        let mut anchor = self.options.anchor;
        anchor.number_of_locations = defined.len() as u64;
        anchor.number_of_global_definitions = definitions.len() as u64;
        record.clear();
        anchor.write(&mut record);
        refused(&record, "anchor", &self.anchor_path)?;
        // Renamed only once it is complete, so that a reader finds a whole archive or none.
        let unfinished = self.anchor_path.with_extension("otf2.part");
        fs::write(&unfinished, record.bytes()).map_err(Error::io(&unfinished))?;
        fs::rename(&unfinished, &self.anchor_path).map_err(Error::io(&self.anchor_path))
    }

    fn shared(&self) -> std::sync::MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The files of one location being written.
#[derive(Debug)]
#[must_use = "the events are complete only after `finish`"]
pub struct LocationWriter<'a> {
    archive: &'a ArchiveWriter,
    id: u64,
    file: ChunkWriter,
    /// Time of the last event.
    time: Option<u64>,
}

impl LocationWriter<'_> {
    /// Appends an event. `time` and the ids in the event are those of the location: ticks of its own clock, not less
    /// than those of the event before.
    #[inline]
    pub fn write(&mut self, time: u64, event: &Event<'_>, attributes: &Attributes<'_>) -> Result<()> {
        // Most events of any trace, and the shortest.
        if let Event::Enter { region } | Event::Leave { region } = event
            && attributes.are_none()
            && self.file.chunk.bytes().len() + TIMESTAMP_SIZE + REGION_SIZE + END_SIZE <= self.file.chunk_size
        {
            let stamp = (self.time != Some(time)).then_some((TIMESTAMP, time));
            if self.file.chunk.short(stamp, event.id(), *region) {
                self.time = Some(time);
                self.file.events += 1;
                return Ok(());
            }
        }
        self.write_any(time, event, attributes)
    }

    fn write_any(&mut self, time: u64, event: &Event<'_>, attributes: &Attributes<'_>) -> Result<()> {
        let chunk = &mut self.file.chunk;
        let begin = chunk.bytes().len();
        if self.time != Some(time) {
            chunk.u8(TIMESTAMP);
            chunk.full_u64(time);
        }
        let record = chunk.bytes().len();
        attributes.write(chunk);
        event.write(chunk);
        if let Event::Unknown { id: END_OF_CHUNK..=CHUNK_BEGIN | 5 | 6, .. } = event {
            chunk.refuse("the number of the record is that of a control record");
        }
        let size = chunk.bytes().len() - record;
        if chunk.refusal().is_some() || begin + TIMESTAMP_SIZE + size + END_SIZE > self.file.chunk_size {
            self.file.move_to_next(begin, record, time, event.name())?;
        }
        self.time = Some(time);
        self.file.events += 1;
        Ok(())
    }

    /// Number of events so far.
    pub fn events(&self) -> u64 {
        self.file.events
    }

    /// Completes the events and writes the local definitions.
    pub fn finish(self, local: &LocalDefinitions) -> Result<()> {
        let Self { archive, id, file, .. } = self;
        let events = file.events;
        file.finish()?;
        archive.define_locally(id, local)?;
        archive.shared().events.insert(id, events);
        Ok(())
    }
}

/// Bytes of an entry to or an exit from a region, at most.
const REGION_SIZE: usize = 6;
/// Bytes that stay free in a chunk for the end of the file.
const END_SIZE: usize = 2;
/// Smallest size of a chunk in bytes. The official library requires more; tests use less.
const SMALLEST_CHUNK: u64 = 64;

/// A chunked file being written.
#[derive(Debug)]
struct ChunkWriter {
    path: PathBuf,
    file: File,
    chunk_size: usize,
    /// The current chunk, header included.
    chunk: Encoder,
    /// Number of events in the file.
    events: u64,
}

impl ChunkWriter {
    fn create(path: PathBuf, chunk_size: u64, order: ByteOrder) -> Result<Self> {
        let file = File::create(&path).map_err(Error::io(&path))?;
        let chunk = Encoder::new(order);
        let mut writer = Self { path, file, chunk_size: chunk_size as usize, chunk, events: 0 };
        writer.begin();
        Ok(writer)
    }

    /// Begins a chunk; the number of its last event is not known yet.
    fn begin(&mut self) {
        self.chunk.clear();
        self.chunk.raw(&[CHUNK_BEGIN, self.chunk.order().mark()]);
        self.chunk.full_u64(self.events + 1);
        self.chunk.full_u64(0);
    }

    /// Makes room for a record: in another chunk, if this one is full.
    fn reserve(&mut self, record: &'static str, size: usize) -> Result<()> {
        if self.chunk.bytes().len() + size + END_SIZE <= self.chunk_size {
            return Ok(());
        }
        if HEADER_SIZE + size + END_SIZE > self.chunk_size {
            return Err(Error::Unwritable {
                path: self.path.clone(),
                record: record.into(),
                why: format!("{size} bytes do not fit a chunk of {} bytes", self.chunk_size).into(),
            });
        }
        self.chunk.fill(self.chunk_size, END_OF_CHUNK);
        self.flush()?;
        self.begin();
        Ok(())
    }

    /// Moves an event, which begins at `record` after its timestamp at `begin`, to the next chunk: it does not fit this one. Or takes
    /// it away again, if it cannot be written.
    #[cold]
    fn move_to_next(&mut self, begin: usize, record: usize, time: u64, name: &'static str) -> Result<()> {
        let bytes = self.chunk.bytes()[record..].to_vec();
        let fine = refused(&self.chunk, name, &self.path);
        self.chunk.truncate(begin);
        fine?;
        self.reserve(name, bytes.len() + TIMESTAMP_SIZE)?;
        self.chunk.u8(TIMESTAMP);
        self.chunk.full_u64(time);
        self.chunk.raw(&bytes);
        Ok(())
    }

    fn record(&mut self, name: &'static str, record: &Encoder) -> Result<()> {
        refused(record, name, &self.path)?;
        self.reserve(name, record.bytes().len())?;
        self.chunk.raw(record.bytes());
        Ok(())
    }

    fn local_record(&mut self, id: u8, name: &'static str, fields: &impl Record, through: &mut Encoder) -> Result<()> {
        through.clear();
        through.u8(id);
        through.payload(|to| fields.write(to));
        self.record(name, through)
    }

    fn flush(&mut self) -> Result<()> {
        self.chunk.replace_u64(HEADER_SIZE - 8, self.events);
        self.file.write_all(self.chunk.bytes()).map_err(Error::io(&self.path))
    }

    fn finish(mut self) -> Result<()> {
        self.chunk.raw(&[END_OF_FILE, END_OF_BUFFER]);
        self.flush()
    }
}

/// An error if the encoder could not express a record.
fn refused(record: &Encoder, name: &'static str, path: &Path) -> Result<()> {
    match record.refusal() {
        None => Ok(()),
        Some(why) => Err(Error::Unwritable { path: path.to_owned(), record: name.into(), why: why.into() }),
    }
}

/// Samples of metrics that a copy has at a location of its own.
#[derive(Debug, Clone)]
pub struct SampledLocation {
    /// Id of the location.
    pub location: u64,
    /// Times in global ticks, ascending, each with the id of a metric class or instance, and a value for each member.
    pub samples: Vec<(u64, u32, Vec<TypedValue>)>,
}

/// Copies an archive, under the same name, to the directory `to`. Local times and ids stay as they are. Returns the
/// defects of the original; a truncated file is copied up to its end.
pub fn copy_archive(from: &Archive, to: &Path, options: WriteOptions) -> Result<Vec<Oddity>> {
    copy_and_add(from, to, options, Vec::new(), &[])
}

/// The same with further definitions, and the samples of locations that these define.
pub fn copy_and_add(
    from: &Archive,
    to: &Path,
    mut options: WriteOptions,
    further: Vec<Definition>,
    recordings: &[SampledLocation],
) -> Result<Vec<Oddity>> {
    let mut oddities = from.oddities().to_vec();
    options.anchor.number_of_snapshots = 0;
    options.anchor.number_of_thumbnails = 0;
    let writer = ArchiveWriter::create(to, from.name(), options)?;
    for definition in from.definitions().iter() {
        writer.define(definition.to_owned());
    }
    for definition in further {
        writer.define(definition);
    }
    for recording in recordings {
        let mut to = writer.location(recording.location)?;
        for (time, metric, values) in &recording.samples {
            let event = Event::Metric { metric: *metric, values: MetricValues::new(values) };
            to.write(*time, &event, &Attributes::NONE)?;
        }
        to.finish(&LocalDefinitions::default())?;
    }
    let mut buffer = Vec::new();
    for location in &from.definitions().locations {
        let reader = from.location(location.id)?.raw();
        let mut copy = WritingSink::new(writer.location(location.id)?);
        let summary = reader.read_events(&mut buffer, &mut copy)?;
        copy.finish(reader.local_definitions())?;
        oddities.extend(reader.oddities().iter().cloned().chain(summary.oddities));
        if let Some(error) = summary.truncated {
            let place = Place { path: error.path().to_owned(), offset: error.offset().unwrap_or(0) };
            oddities.push(Oddity { kind: OddityKind::Truncated, place, text: error.to_string() });
        }
    }
    writer.finish()?;
    Ok(oddities)
}

/// Writes the events that it receives to a location.
pub struct WritingSink<'a> {
    to: LocationWriter<'a>,
    attributes: Vec<AttributeValue>,
    failed: Result<()>,
}

impl<'a> WritingSink<'a> {
    /// Begins with no events.
    pub fn new(to: LocationWriter<'a>) -> Self {
        Self { to, attributes: Vec::new(), failed: Ok(()) }
    }

    /// Completes the files of the location, or returns the first error.
    pub fn finish(self, local: &LocalDefinitions) -> Result<()> {
        self.failed?;
        self.to.finish(local)
    }

    fn write(&mut self, time: i64, event: &Event<'_>, attributes: &Attributes<'_>) {
        if self.failed.is_ok() {
            self.failed = self.to.write(time as u64, event, attributes);
        }
    }

    fn region(&mut self, time: i64, event: &Event<'_>) {
        let attributes = std::mem::take(&mut self.attributes);
        self.write(time, event, &Attributes::new(&attributes));
        self.attributes = attributes;
        self.attributes.clear();
    }
}

impl EventSink for WritingSink<'_> {
    fn enter(&mut self, time: i64, region: u32) {
        self.region(time, &Event::Enter { region });
    }

    fn leave(&mut self, time: i64, region: u32) {
        self.region(time, &Event::Leave { region });
    }

    fn record(&mut self, time: i64, record: &Event<'_>, attributes: &Attributes<'_>) {
        self.write(time, record, attributes);
    }

    fn attributed(&mut self, attributes: &Attributes<'_>) {
        self.attributes.extend(attributes);
    }
}
