//! Written records are read back unchanged, in every byte order and chunk size.

use std::fs;

use super::common::{Lines, Scratch, attributes, definitions, events, expected, local, values};
use whywait_otf2::enums::{LocationType, Type};
use whywait_otf2::records::{
    Definition, DefinitionRef, Location, MetricValues, StringRefs, Text, TypedValue, UNDEFINED,
};
use whywait_otf2::wire::ByteOrder;
use whywait_otf2::{
    Anchor, Archive, ArchiveWriter, AttributeValue, Attributes, Event, LocalDefinitions, OddityKind, OpenOptions,
    WriteOptions, copy_archive,
};

/// A time, an event, and its attributes.
type Item = (u64, Event<'static>, Vec<AttributeValue>);

fn location(id: u64) -> Location {
    Location { id, name: 0, location_type: LocationType::CPU_THREAD, number_of_events: 0, location_group: 0 }
}

fn options(byte_order: ByteOrder, event_chunk_size: u64) -> WriteOptions {
    let anchor = Anchor {
        event_chunk_size,
        definition_chunk_size: 1 << 10,
        machine_name: "machine".to_owned(),
        creator: "test".to_owned(),
        description: "déjà vu".to_owned(),
        properties: vec![("A::B".to_owned(), "true".to_owned())],
        trace_id: 0x0102_0304_0506_0708,
        ..Anchor::default()
    };
    WriteOptions { anchor, byte_order }
}

/// Each kind of event with and without attributes, at a new time and at the same one.
fn stream() -> Vec<Item> {
    let all = attributes();
    let mut stream = Vec::new();
    for (index, event) in (0..).zip(events()) {
        let time = 100 + index / 2 * 25;
        stream.push((time, event, Vec::new()));
        stream.push((time, event, all[..index as usize % all.len()].to_vec()));
    }
    stream
}

fn write(scratch: &Scratch, options: WriteOptions, stream: &[Item]) {
    let writer = ArchiveWriter::create(scratch.path(), "traces", options).unwrap();
    for definition in definitions() {
        writer.define(definition);
    }
    writer.define(location(7));
    let mut events = writer.location(7).unwrap();
    for (time, event, attributes) in stream {
        events.write(*time, event, &Attributes::new(attributes)).unwrap();
    }
    events.finish(&local()).unwrap();
    writer.finish().unwrap();
}

fn check_every_record(byte_order: ByteOrder, chunk_size: u64, mmap: bool) {
    let scratch = Scratch::new(&format!("every-{byte_order:?}-{chunk_size}-{mmap}"));
    let stream = stream();
    let options = options(byte_order, chunk_size);
    write(&scratch, options.clone(), &stream);
    let archive = Archive::open_with(scratch.path(), OpenOptions { mmap }).unwrap();

    let events = stream.len() as u64;
    let written: Vec<Definition> = definitions()
        .into_iter()
        .map(|mut definition| {
            if let Definition::Location(location) = &mut definition {
                location.number_of_events = 0;
            }
            definition
        })
        .chain([Location { number_of_events: events, ..location(7) }.into()])
        .collect();
    let read: Vec<Definition> = archive.definitions().iter().map(DefinitionRef::to_owned).collect();
    assert_eq!(read, written);

    let anchor = archive.anchor();
    assert_eq!(anchor.number_of_global_definitions, written.len() as u64);
    assert_eq!(anchor.number_of_locations, 2);
    let uncounted = Anchor { number_of_locations: 0, number_of_global_definitions: 0, ..anchor.clone() };
    assert_eq!(uncounted, options.anchor);

    let reader = archive.location(7).unwrap().raw();
    assert_eq!(*reader.local_definitions(), local());
    let mut sink = Lines::default();
    let summary = reader.read_events(&mut Vec::new(), &mut sink).unwrap();
    assert_eq!(summary.events, events);
    assert!(summary.truncated.is_none() && summary.oddities.is_empty(), "{summary:?}");
    let lines: Vec<String> =
        stream.iter().map(|(time, event, attributes)| expected(*time, event, attributes)).collect();
    assert_eq!(sink.lines, lines);
}

#[test]
fn every_record_comes_back() {
    for byte_order in [ByteOrder::Little, ByteOrder::Big] {
        for chunk_size in [640, 4096, 1 << 20] {
            for mmap in [false, true] {
                check_every_record(byte_order, chunk_size, mmap);
            }
        }
    }
}

#[test]
fn chunks_read_one_by_one_are_the_whole() {
    let scratch = Scratch::new("chunks");
    write(&scratch, options(ByteOrder::Little, 640), &stream());
    let archive = Archive::open(scratch.path()).unwrap();
    let reader = archive.location(7).unwrap();
    assert!(reader.chunk_count() > 5);
    let (mut whole, mut parts) = (Lines::default(), Lines::default());
    let all = reader.read_events(&mut Vec::new(), &mut whole).unwrap();
    let mut events = 0;
    for chunk in 0..reader.chunk_count() {
        let summary = reader.read_chunks(chunk..chunk + 1, &mut Vec::new(), &mut parts).unwrap();
        events += summary.events;
    }
    assert_eq!(events, all.events);
    assert_eq!(whole, parts);
}

#[test]
fn a_copy_is_the_same() {
    let (from, to) = (Scratch::new("copy-from"), Scratch::new("copy-to"));
    write(&from, options(ByteOrder::Big, 1024), &stream());
    let original = Archive::open(&from.path().join("traces.otf2")).unwrap();
    copy_archive(&original, to.path(), options(ByteOrder::Little, 2048)).unwrap();
    let copy = Archive::open(to.path()).unwrap();
    assert!(original.definitions().iter().eq(copy.definitions().iter()));
    let [a, b] = [&original, &copy].map(|archive| {
        let reader = archive.location(7).unwrap();
        let mut sink = Lines::default();
        let _ = reader.read_events(&mut Vec::new(), &mut sink).unwrap();
        (sink, reader.local_definitions().clone())
    });
    assert_eq!(a, b);
}

#[test]
fn ids_and_times_are_translated() {
    let scratch = Scratch::new("translated");
    let program =
        |program_name, arguments| Event::ProgramBegin { program_name, program_arguments: StringRefs::new(arguments) };
    let value = |kind, bits| TypedValue { kind, bits };
    let attributes = vec![
        AttributeValue { id: 300, value: value(Type::REGION, 70_000) },
        AttributeValue { id: 2, value: value(Type::UINT32, 1) },
    ];
    let stream = [
        (100, Event::Enter { region: 1 }, attributes),
        (600, Event::Leave { region: 300 }, Vec::new()),
        (600, program(1, &[0, 4, UNDEFINED]), Vec::new()),
        (600, Event::BufferFlush { stop_time: 1100 }, Vec::new()),
    ];
    write(&scratch, options(ByteOrder::Little, 1 << 20), &stream);
    let archive = Archive::open(scratch.path()).unwrap();
    let mut sink = Lines::default();
    let reader = archive.location(7).unwrap();
    let _ = reader.read_events(&mut Vec::new(), &mut sink).unwrap();
    let half = 600 + (1 << 39) - 25;
    let translated = [
        AttributeValue { id: 7, value: value(Type::REGION, 0) },
        AttributeValue { id: 2, value: value(Type::UINT32, 1) },
    ];
    let lines = [
        expected(50, &Event::Enter { region: 1000 }, &translated),
        expected(half, &Event::Leave { region: 7 }, &[]),
        expected(half, &program(1, &[3, 4, UNDEFINED]), &[]),
        expected(half, &Event::BufferFlush { stop_time: 1100 + (1 << 40) }, &[]),
    ];
    assert_eq!(sink.lines, lines);
}

#[test]
fn locations_are_written_by_several_threads() {
    let scratch = Scratch::new("threads");
    let options = options(ByteOrder::Little, 4096);
    let writer = ArchiveWriter::create(scratch.path(), "traces", options).unwrap();
    for id in 0..9 {
        writer.define(location(id));
    }
    std::thread::scope(|scope| {
        for id in 0..8 {
            let writer = &writer;
            scope.spawn(move || {
                let mut events = writer.location(id).unwrap();
                for time in 0..=id {
                    events.write(time, &Event::Enter { region: 1 }, &Attributes::NONE).unwrap();
                }
                events.finish(&LocalDefinitions::default()).unwrap();
            });
        }
    });
    writer.finish().unwrap();
    let archive = Archive::open(scratch.path()).unwrap();
    let locations = &archive.definitions().locations;
    let counts: Vec<u64> = locations.iter().map(|location| location.number_of_events).collect();
    assert_eq!(counts, [1, 2, 3, 4, 5, 6, 7, 8, 0]);
    let mut sink = Lines::default();
    let reader = archive.location(8).unwrap();
    let summary = reader.read_events(&mut Vec::new(), &mut sink).unwrap();
    assert!(summary.truncated.is_none() && summary.oddities.is_empty() && sink.lines.is_empty());
}

#[test]
fn what_the_format_cannot_express_is_refused() {
    let scratch = Scratch::new("refused");
    let options = options(ByteOrder::Little, 256);
    let writer = ArchiveWriter::create(scratch.path(), "traces", options).unwrap();
    let mut events = writer.location(0).unwrap();
    let mut refused = |event| events.write(0, &event, &Attributes::NONE).expect_err("a refusal").to_string();
    let many = [values()[1]; 300];
    let error = refused(Event::Metric { metric: 0, values: MetricValues::new(&many) });
    assert!(error.contains("Metric") && error.contains("too many"), "{error}");
    let error = refused(Event::Unknown { id: 2, payload: &[] });
    assert!(error.contains("control"), "{error}");
    let error = refused(Event::Unknown { id: 99, payload: &[0; 256] });
    assert!(error.contains("do not fit"), "{error}");
    events.write(0, &Event::Enter { region: 1 }, &Attributes::NONE).unwrap();
    events.finish(&LocalDefinitions::default()).unwrap();
    writer.define(location(0));
    writer.define(Text { id: 0, string: "a\0b".to_owned() });
    let error = writer.finish().unwrap_err().to_string();
    assert!(error.contains("NUL"), "{error}");
    assert!(Archive::open(scratch.path()).is_err(), "no anchor without a whole archive");
}

#[test]
fn an_archive_is_not_overwritten() {
    let scratch = Scratch::new("overwrite");
    write(&scratch, options(ByteOrder::Little, 1024), &[]);
    assert!(ArchiveWriter::create(scratch.path(), "traces", WriteOptions::default()).is_err());
}

#[test]
fn paths_name_one_archive() {
    let scratch = Scratch::new("paths");
    let path = scratch.path();
    let error = || Archive::open(path).unwrap_err().to_string();
    assert!(error().contains("no anchor file"));
    write(&scratch, options(ByteOrder::Little, 1024), &[]);
    assert_eq!(Archive::open(path).unwrap().name(), "traces");
    fs::write(path.join("other.otf2"), b"x").unwrap();
    assert!(error().contains("other.otf2, traces.otf2"));
    assert_eq!(Archive::open(&path.join("traces.otf2")).unwrap().name(), "traces");
    let error = Archive::open(&path.join("other.otf2")).unwrap_err().to_string();
    assert!(error.contains("other.otf2, byte 0: anchor"), "{error}");
}

#[test]
fn an_anchor_may_have_any_name() {
    let scratch = Scratch::new("name");
    let path = scratch.path();
    let writer = ArchiveWriter::create(path, "run.1", WriteOptions::default()).unwrap();
    writer.define(location(0));
    writer.finish().unwrap();
    let archive = Archive::open(path).unwrap();
    assert_eq!(archive.name(), "run.1");
    assert!(archive.location(0).is_ok());
    fs::rename(path.join("run.1.otf2"), path.join("run.1.anchor")).unwrap();
    assert!(Archive::open(&path.join("run.1.anchor")).is_err(), "no definitions of that name");
    fs::rename(path.join("run.1.def"), path.join("run.1.anchor.def")).unwrap();
    assert_eq!(Archive::open(&path.join("run.1.anchor")).unwrap().name(), "run.1.anchor");
}

#[test]
fn missing_files_are_told_apart() {
    let scratch = Scratch::new("missing");
    let stream = [(5, Event::Enter { region: 1 }, Vec::new())];
    write(&scratch, options(ByteOrder::Little, 1024), &stream);
    fs::remove_file(scratch.path().join("traces/7.def")).unwrap();
    let archive = Archive::open(scratch.path()).unwrap();
    let mut sink = Lines::default();
    let reader = archive.location(7).unwrap();
    let _ = reader.read_events(&mut Vec::new(), &mut sink).unwrap();
    // Identity without local definitions.
    assert_eq!(sink.lines, [expected(5, &Event::Enter { region: 1 }, &[])]);
    fs::remove_file(scratch.path().join("traces/7.evt")).unwrap();
    let error = archive.location(7).unwrap_err().to_string();
    assert!(error.contains("7.evt"), "{error}");
}

#[test]
fn oddities_do_not_stop_anybody() {
    let scratch = Scratch::new("odd");
    let options = options(ByteOrder::Little, 1 << 20);
    let writer = ArchiveWriter::create(scratch.path(), "traces", options).unwrap();
    let huge = u32::MAX - 1;
    for (id, string) in [(huge, "first"), (huge, "second")] {
        writer.define(Text { id, string: string.to_owned() });
    }
    writer.define(location(3));
    writer.define(Text { id: 0, string: "late".to_owned() });
    writer.finish().unwrap();
    let archive = Archive::open(scratch.path()).unwrap();
    let definitions = archive.definitions();
    assert_eq!(definitions.string(huge), "first");
    assert_eq!(definitions.strings.len(), 3);
    assert_eq!(definitions.string(definitions.location(3).unwrap().name), "late");
    let of_definitions = archive.oddities().iter().filter(|o| o.place.path.ends_with("traces.def"));
    let kinds: Vec<OddityKind> = of_definitions.map(|oddity| oddity.kind).collect();
    assert_eq!(
        kinds,
        [OddityKind::Duplicate, OddityKind::Missing, OddityKind::ForwardReference, OddityKind::DanglingReference,]
    );
}
