//! Broken archives: cut at every byte, every byte changed. An error with file and offset or a partial result; never a
//! panic, a hang, or memory out of proportion.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fs;
use std::path::Path;

use super::common::{Files, Lines, Scratch, definitions};
use whywait_otf2::wire::ByteOrder;
use whywait_otf2::{
    Anchor, Archive, ArchiveWriter, Attributes, Definitions, Error, Event, EventSink, LocalDefinitions, LocationReader,
    OddityKind, Result, WriteOptions,
};

/// Counts the bytes that the current thread holds.
struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn count(change: isize) {
    // Not available while a thread ends, when nothing is measured any more.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + change);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(held.get())));
    });
}

// SAFETY: every call goes to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Peak memory of `work` in bytes, beyond the memory held before.
fn peak<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    PEAK.set(before);
    let result = work();
    (result, (PEAK.get() - before) as usize)
}

/// Checks that the memory `work` takes is in proportion to `bytes`.
fn frugal<T>(bytes: usize, what: &str, work: impl FnOnce() -> T) -> T {
    let (result, peak) = peak(work);
    assert!(peak <= (16 << 10) + 100 * bytes, "{what}: {peak} bytes of memory for {bytes} bytes");
    result
}

/// Counts events and visits everything in them.
#[derive(Default)]
struct Count {
    events: u64,
    values: u64,
}

impl EventSink for Count {
    fn enter(&mut self, _: i64, _: u32) {
        self.events += 1;
    }

    fn leave(&mut self, _: i64, _: u32) {
        self.events += 1;
    }

    fn record(&mut self, _: i64, record: &Event<'_>, attributes: &Attributes<'_>) {
        self.events += 1;
        match record {
            Event::Metric { values, .. } => self.values += values.iter().count() as u64,
            Event::ProgramBegin { program_arguments, .. } => {
                assert_eq!(program_arguments.iter().count(), program_arguments.len());
            }
            _ => {}
        }
        self.attributed(attributes);
    }

    fn attributed(&mut self, attributes: &Attributes<'_>) {
        self.values += attributes.iter().count() as u64;
    }
}

const EVENT_CHUNK: u64 = 700;
const DEFINITION_CHUNK: u64 = 1 << 10;

fn files(name: &str, byte_order: ByteOrder) -> Files {
    Files::new(name, byte_order, EVENT_CHUNK, DEFINITION_CHUNK)
}

/// Hands `read` the file with one byte changed, for every byte and some values.
fn with_each_byte_changed(bytes: &[u8], mut read: impl FnMut(&[u8])) {
    let mut bytes = bytes.to_owned();
    for at in 0..bytes.len() {
        let original = bytes[at];
        for changed in [original ^ 1, original ^ 0x80, 0x00, 0xFF] {
            bytes[at] = changed;
            read(&bytes);
        }
        bytes[at] = original;
    }
}

fn read_anchor(bytes: &[u8]) -> Result<()> {
    Anchor::from_bytes(Path::new("traces.otf2"), bytes).map(|_| ())
}

fn read_definitions(bytes: &[u8]) -> Result<bool> {
    let path = Path::new("traces.def");
    let (definitions, oddities) = Definitions::from_bytes(path, bytes.to_owned(), DEFINITION_CHUNK)?;
    for definition in definitions.iter() {
        definition.visit(&mut |_, _| {});
    }
    Ok(oddities.iter().any(|oddity| oddity.kind == OddityKind::Truncated))
}

fn read_local(bytes: &[u8]) -> Result<bool> {
    let path = Path::new("traces/0.def");
    let (local, oddities) = LocalDefinitions::from_bytes(path, bytes.to_owned(), DEFINITION_CHUNK)?;
    // Building the tables is part of it.
    let _ = LocationReader::from_bytes(path, Vec::new(), EVENT_CHUNK, local);
    Ok(oddities.iter().any(|oddity| oddity.kind == OddityKind::Truncated))
}

fn read_events(bytes: &[u8]) -> Result<bool> {
    let path = Path::new("traces/0.evt");
    let reader = LocationReader::from_bytes(path, bytes.to_owned(), EVENT_CHUNK, LocalDefinitions::default());
    let mut sink = Count::default();
    let summary = reader.read_events(&mut Vec::new(), &mut sink)?;
    assert_eq!(summary.events, sink.events);
    Ok(summary.truncated.is_some())
}

/// A file: its name, its bytes, and a reader that returns whether they are truncated.
type Case<'a> = (&'static str, &'a [u8], fn(&[u8]) -> Result<bool>);

/// Every error names the file and a byte in it or at its end.
fn check_error(error: &Error, length: usize) {
    assert!(error.to_string().starts_with("traces"), "{error}");
    let offset = error.offset().expect("an offset");
    assert!(offset <= length as u64, "{error}");
    assert!(error.to_string().contains(&format!("byte {offset}")), "{error}");
}

#[test]
fn a_file_cut_anywhere_is_read_as_far_as_it_goes() {
    for byte_order in [ByteOrder::Little, ByteOrder::Big] {
        let files = files(&format!("cut-{byte_order:?}"), byte_order);
        // Nobody needs what follows the end of file mark.
        for length in 0..files.anchor.len() - 3 {
            let bytes = &files.anchor[..length];
            match frugal(length, "anchor", || read_anchor(bytes)) {
                Ok(()) => assert_eq!(length, files.anchor.len() - 3, "only the mark may lack"),
                Err(error) => {
                    check_error(&error, length);
                    assert!(matches!(error, Error::Truncated { .. }), "{error}");
                }
            }
        }
        let readers: [Case<'_>; 3] = [
            ("definitions", &files.definitions, read_definitions),
            ("local definitions", &files.local, read_local),
            ("events", &files.events, read_events),
        ];
        for (what, bytes, read) in readers {
            assert!(!read(bytes).unwrap() && !read(&bytes[..bytes.len() - 1]).unwrap());
            for length in 0..bytes.len() - 1 {
                let truncated = frugal(length, what, || read(&bytes[..length]))
                    .unwrap_or_else(|error| panic!("{what} cut at {length}: {error}"));
                assert!(truncated, "{what} cut at {length}");
            }
        }
    }
}

#[test]
fn all_complete_events_before_a_cut_are_delivered() {
    let files = files("complete", ByteOrder::Little);
    let read = |bytes: &[u8]| {
        let path = Path::new("traces/0.evt");
        let local = LocalDefinitions::default();
        let reader = LocationReader::from_bytes(path, bytes.to_owned(), EVENT_CHUNK, local);
        let mut sink = Lines::default();
        let _ = reader.read_events(&mut Vec::new(), &mut sink).unwrap();
        sink.lines
    };
    let all = read(&files.events);
    let mut before = 0;
    for length in 0..=files.events.len() {
        let some = read(&files.events[..length]);
        assert!(all.starts_with(&some) && some.len() >= before && some.len() <= before + 1);
        before = some.len();
    }
    assert_eq!(before, all.len());
}

#[test]
fn a_changed_byte_does_no_harm() {
    for byte_order in [ByteOrder::Little, ByteOrder::Big] {
        let files = files(&format!("flip-{byte_order:?}"), byte_order);
        let readers: [Case<'_>; 4] = [
            ("anchor", &files.anchor, |bytes| read_anchor(bytes).map(|()| false)),
            ("definitions", &files.definitions, read_definitions),
            ("local definitions", &files.local, read_local),
            ("events", &files.events, read_events),
        ];
        for (what, bytes, read) in readers {
            with_each_byte_changed(bytes, |bytes| {
                if let Err(error) = frugal(bytes.len(), what, || read(bytes)) {
                    check_error(&error, bytes.len());
                }
            });
        }
    }
}

/// An archive on disk with one file replaced, read to the end.
fn read_whole(path: &Path) -> Result<u64> {
    let archive = Archive::open(path)?;
    let mut events = 0;
    for location in &archive.definitions().locations {
        let reader = archive.location(location.id)?;
        events += reader.read_events(&mut Vec::new(), &mut Count::default())?.events;
    }
    Ok(events)
}

#[test]
fn an_anchor_with_a_changed_byte_opens_or_tells_why() {
    let scratch = Scratch::new("anchor");
    let writer = ArchiveWriter::create(scratch.path(), "traces", WriteOptions::default()).unwrap();
    for definition in definitions() {
        writer.define(definition);
    }
    writer.finish().unwrap();
    let path = scratch.path().join("traces.otf2");
    with_each_byte_changed(&fs::read(&path).unwrap(), |bytes| {
        fs::write(&path, bytes).unwrap();
        if let Err(error) = frugal(4 << 10, "archive", || read_whole(scratch.path())) {
            assert!(error.path().starts_with(scratch.path()), "{error}");
        }
    });
}

#[test]
fn a_count_claims_no_memory() {
    // A group that claims four thousand million members in a record of a few bytes.
    let mut file = vec![3, 0x42, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    file.extend([18, 8, 1, 1, 0, 0, 0xFF, 1, 1, 0]);
    file.extend([2, 1]);
    let error = frugal(file.len(), "group", || read_definitions(&file)).unwrap_err();
    check_error(&error, file.len());
    assert!(error.to_string().contains("Group"), "{error}");
}

#[test]
fn what_is_not_supported_is_named() {
    let files = files("unsupported", ByteOrder::Little);
    let said = |at: usize, value: u8| {
        let mut bytes = files.anchor.clone();
        bytes[at] = value;
        read_anchor(&bytes).unwrap_err().to_string()
    };
    assert!(said(7, 0).contains("anchor format 1, 2 or 3"));
    assert!(said(8, 3).contains("trace format 1 or 2"));
    assert!(said(28, 2).contains("SION"));
    assert!(said(29, 2).contains("ZLIB"));
}
