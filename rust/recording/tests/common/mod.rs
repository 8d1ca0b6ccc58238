//! Spools as the recorder writes them, and archives as text.
#![allow(dead_code, reason = "each test uses a part")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use whywait_otf2::records::AttributeValue;
use whywait_otf2::{Archive, Attributes, Definitions, Event, EventSink};
use whywait_recording::format::{
    Call, DEFINITIONS_MAGIC, DIRECTORY, Entry, Extension, Mechanism, NONE, PAGE, SAMPLES_MAGIC, SLOTS_MAGIC, VERSION,
    extension,
};

/// A directory that is removed with the value.
#[derive(Debug)]
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("whywait-recording-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join(DIRECTORY)).unwrap();
        Self(path)
    }

    pub(crate) fn spool(&self, file: &str) -> PathBuf {
        self.0.join(DIRECTORY).join(file)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The number of a function.
pub(crate) fn function(name: &str) -> u16 {
    let table = include_str!(concat!(env!("OUT_DIR"), "/functions.rs"));
    let names = table.lines().filter_map(|line| line.trim().strip_prefix("Function::new(\"")?.split('"').next());
    names.into_iter().position(|found| found == name).unwrap().try_into().unwrap()
}

/// A call of a function.
pub(crate) fn call(name: &str, enter: u64, leave: u64) -> Call {
    Call { function: function(name), enter, leave, object: NONE, peer: -4, ..Call::default() }
}

/// Words of a call, as in its slot.
pub(crate) fn words(call: &Call) -> [u64; 8] {
    let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    [
        call.enter,
        u64::from(call.function) | u64::from(call.flags) << 16 | u64::from(call.node) << 32,
        pair(call.peer.cast_unsigned(), call.tag.cast_unsigned()),
        pair(call.object, call.bytes),
        call.leave,
        pair(call.source.cast_unsigned(), call.arrived_tag.cast_unsigned()),
        call.received,
        call.id,
    ]
}

/// An item of an extension `Requests`: kind, id, bytes, peer, tag, object.
pub(crate) type Item = (u32, u64, u64, i32, i32, u32);

/// Words of an extension with one or two requests.
pub(crate) fn requests(items: &[Item]) -> [u64; 8] {
    let mut halves = [0_u32; 14];
    for (item, (kind, id, bytes, peer, tag, object)) in halves.chunks_mut(7).zip(items) {
        item.copy_from_slice(&[
            *id as u32,
            (*id >> 32) as u32,
            *bytes as u32,
            (*bytes >> 32) as u32,
            peer.cast_unsigned(),
            tag.cast_unsigned(),
            object | kind << 28,
        ]);
    }
    let mut words = [extension(Extension::Requests, items.len() as u8), 0, 0, 0, 0, 0, 0, 0];
    for (word, pair) in words[1..].iter_mut().zip(halves.chunks(2)) {
        *word = u64::from(pair[0]) | u64::from(pair[1]) << 32;
    }
    words
}

/// Files of one process.
#[derive(Debug)]
pub(crate) struct Process {
    rank: u32,
    definitions: Vec<u8>,
}

impl Process {
    pub(crate) fn new(rank: u32, size: u32) -> Self {
        Self::with_options(rank, size, "groups=all")
    }

    pub(crate) fn with_options(rank: u32, size: u32, options: &str) -> Self {
        let mut definitions = header(DEFINITIONS_MAGIC, rank, 0);
        definitions.truncate(32);
        let mut process = Self { rank, definitions };
        let mut start = Fields::default();
        start.u32(rank).u32(size).u32(1000 + rank).u32(1).u64(1_000_000_000).u64(10).bytes(&[7; 16]).u64(0);
        for text in ["mpich", "/usr/lib/libmpi.so", "MPICH 4", "node0", "/home/me/solver", "1", options] {
            start.text(text);
        }
        process.entry(Entry::Start, &start);
        process
    }

    pub(crate) fn entry(&mut self, kind: Entry, fields: &Fields) {
        let kind = kind as u32;
        let mut hash = crc32fast::Hasher::new();
        hash.update(&kind.to_le_bytes());
        hash.update(&fields.0);
        for word in [fields.0.len() as u32, hash.finalize(), kind] {
            self.definitions.extend(word.to_le_bytes());
        }
        self.definitions.extend(&fields.0);
    }

    pub(crate) fn end(&mut self, time: u64) {
        let mut end = Fields::default();
        end.u64(time).u32(0);
        self.entry(Entry::End, &end);
    }

    /// Writes the definitions and the slots of thread 0.
    pub(crate) fn write(&self, to: &Scratch, slots: &[[u64; 8]]) {
        fs::write(to.spool(&format!("{}.wwd", self.rank)), &self.definitions).unwrap();
        self.thread(to, 0, slots);
    }

    /// Writes the slots of a thread.
    pub(crate) fn thread(&self, to: &Scratch, thread: u32, slots: &[[u64; 8]]) {
        let mut bytes = header(SLOTS_MAGIC, self.rank, thread);
        bytes.extend(slots.iter().flatten().flat_map(|word| word.to_le_bytes()));
        bytes.extend([0; 640]);
        fs::write(to.spool(&format!("{}.{thread}.wws", self.rank)), bytes).unwrap();
    }
}

impl Process {
    /// Writes the samples of a thread.
    pub(crate) fn samples(&self, to: &Scratch, thread: u32, mechanism: Mechanism, period: u64, slots: &[[u64; 8]]) {
        let mut bytes = header(SAMPLES_MAGIC, self.rank, thread);
        bytes[40..44].copy_from_slice(&(mechanism as u32).to_le_bytes());
        bytes[48..56].copy_from_slice(&period.to_le_bytes());
        bytes.extend(slots.iter().flatten().flat_map(|word| word.to_le_bytes()));
        bytes.extend([0; 640]);
        fs::write(to.spool(&format!("{}.{thread}.wwp", self.rank)), bytes).unwrap();
    }
}

fn header(magic: [u8; 4], rank: u32, thread: u32) -> Vec<u8> {
    let mut header = magic.to_vec();
    header.extend(VERSION.to_le_bytes());
    header.extend([9; 16]);
    header.extend(rank.to_le_bytes());
    header.extend(thread.to_le_bytes());
    header.resize(PAGE, 0);
    header
}

/// Fields of an entry.
#[derive(Debug, Default)]
pub(crate) struct Fields(pub(crate) Vec<u8>);

impl Fields {
    pub(crate) fn u32(&mut self, value: u32) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn u64(&mut self, value: u64) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        self.u32(text.len() as u32).bytes(text.as_bytes())
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend(bytes);
        self
    }
}

/// Events as text.
struct Lines<'a> {
    definitions: &'a Definitions,
    regions: &'a [String],
    text: Vec<String>,
}

impl EventSink for Lines<'_> {
    fn enter(&mut self, time: i64, region: u32) {
        self.text.push(format!("{time} Enter {}", self.regions[region as usize]));
    }

    fn leave(&mut self, time: i64, region: u32) {
        self.text.push(format!("{time} Leave {}", self.regions[region as usize]));
    }

    /// Those of messages with their attributes.
    fn record(&mut self, time: i64, record: &Event<'_>, attributes: &Attributes<'_>) {
        let mut line = format!("{time} {record:?}");
        let is_of_message = line.contains(" Mpi");
        for AttributeValue { id, value } in attributes.into_iter().filter(|_| is_of_message) {
            let known = self.definitions.attributes.iter().find(|attribute| attribute.id == id).unwrap();
            write!(line, " {}={}", self.definitions.string(known.name), value.bits).unwrap();
        }
        self.text.push(line);
    }
}

/// The events of a location of the archive in a directory, without the program's begin and end.
pub(crate) fn events(directory: &Path, location: u64) -> Vec<String> {
    let archive = Archive::open(directory).unwrap();
    let definitions = archive.definitions();
    let regions: Vec<String> =
        definitions.regions.iter().map(|region| definitions.strings[region.name as usize].string.clone()).collect();
    let mut lines = Lines { definitions, regions: &regions, text: Vec::new() };
    let summary = archive.location(location).unwrap().read_events(&mut Vec::new(), &mut lines).unwrap();
    assert!(summary.truncated.is_none());
    lines.text.retain(|line| !line.contains("Program"));
    lines.text
}
