//! Bytes as other writers leave them.

use std::path::Path;

use super::common::{Lines, expected};
use whywait_otf2::enums::{GroupType, MappingType, Paradigm, RegionRole, Type};
use whywait_otf2::records::{ClockOffset, ClockProperties, IdPairs, MappingTable, StringRefs, TypedValue, UNDEFINED};
use whywait_otf2::{Anchor, AttributeValue, Definitions, Event, LocalDefinitions, LocationReader, OddityKind};

const CHUNK: u64 = 1 << 20;

/// The bytes of a text of hexadecimal numbers.
fn bytes(hex: &str) -> Vec<u8> {
    hex.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

const HEADER: &str = "03 42  01 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00 ";

fn definitions(records: &str) -> Definitions {
    let file = bytes(&format!("{HEADER}{records} 02 01"));
    Definitions::from_bytes(Path::new("traces.def"), file, CHUNK).unwrap().0
}

fn events(file: &str, local: LocalDefinitions) -> (Vec<String>, Option<String>) {
    let path = Path::new("traces/0.evt");
    let reader = LocationReader::from_bytes(path, bytes(file), CHUNK, local);
    let mut sink = Lines::default();
    let summary = reader.read_events(&mut Vec::new(), &mut sink).unwrap();
    (sink.lines, summary.truncated.map(|error| error.to_string()))
}

#[test]
fn global_definitions_of_ping_pong() {
    let read = definitions(
        "05 12 04 20 2C E2 7C 07 88 83 66 FF F4 47 1A 04 94 63 ED 18
         0A 02 00 00
         0A 0A 01 01 6D 61 63 68 69 6E 65 00",
    );
    let clock = ClockProperties {
        timer_resolution: 2_095_197_216,
        global_offset: 0x1A_47F4_FF66_8388,
        trace_length: 0x18ED_6394,
        realtime_timestamp: u64::MAX,
    };
    assert_eq!(read.clock_properties, [clock]);
    assert_eq!((read.string(0), read.string(1)), ("", "machine"));
}

#[test]
fn events_of_ping_pong() {
    let (lines, truncated) = events(
        "03 42  01 00 00 00 00 00 00 00  02 00 00 00 00 00 00 00
         05 1D 5A 70 FF F4 47 1A 00
         06 08 01 01  01 02 04 02 E9 67
         53 03 01 08 00
         05 7F 49 71 FF F4 47 1A 00
         0C 01 03
         02 01",
        LocalDefinitions::default(),
    );
    let program = Event::ProgramBegin { program_name: 8, program_arguments: StringRefs::new(&[]) };
    let attribute = AttributeValue { id: 2, value: TypedValue { kind: Type::UINT64, bits: 26601 } };
    assert_eq!(
        lines,
        [
            expected(0x1A_47F4_FF70_5A1D, &program, &[attribute]),
            expected(0x1A_47F4_FF71_497F, &Event::Enter { region: 3 }, &[]),
        ]
    );
    assert_eq!(truncated, None);
}

#[test]
fn local_definitions_of_ping_pong() {
    let file = bytes(&format!(
        "{HEADER} 05 09 06  01 03 00  01 01  01 02  00
         06 11 78 C0 94 17 F5 47 1A 00  00  00 00 00 00 00 00 00 00
         06 11 B4 AA 53 18 F5 47 1A 00  00  00 00 00 00 00 00 00 00
         02 01"
    ));
    let (read, oddities) = LocalDefinitions::from_bytes(Path::new("traces/0.def"), file, CHUNK).unwrap();
    let offset = |time| ClockOffset { time, offset: 0, standard_deviation: 0.0 };
    let expected = LocalDefinitions {
        mapping_tables: vec![MappingTable { mapping_type: MappingType::COMM, id_map: IdPairs::Dense(vec![1, 2, 0]) }],
        clock_offsets: vec![offset(0x1A_47F5_1794_C078), offset(0x1A_47F5_1853_AAB4)],
        definitions: Vec::new(),
    };
    assert_eq!(read, expected);
    assert!(oddities.is_empty());
}

#[test]
fn tails_that_old_writers_do_not_know() {
    let read = definitions(
        "0B 04 00 01 01 0B
         0D 04 00 00 01 00
         0F 09 01 07 01 02 00 16 00 00 00
         12 08 00 00 06 01 02 00 01 01
         14 04 00 01 00 01
         16 04 00 00 00 FF
         18 03 00 00 00
         1A 04 00 00 01 03",
    );
    assert_eq!(read.attribute(0).unwrap().description, UNDEFINED);
    assert_eq!(read.location_group(0).unwrap().creating_location_group, UNDEFINED);
    let region = read.region(7).unwrap();
    assert_eq!((region.name, region.canonical_name), (2, 2));
    assert_eq!((region.region_role, region.paradigm), (RegionRole::BARRIER, Paradigm::MPI));
    let group = read.group(0).unwrap();
    assert_eq!((group.group_type, group.paradigm), (GroupType::COMM_LOCATIONS, Paradigm::MPI));
    assert_eq!(group.members, [0, 1]);
    assert_eq!(read.metric_class(0).unwrap().recorder_kind.name(), Some("UNKNOWN"));
    assert_eq!(read.comm(0).unwrap().flags.name(), Some("NONE"));
    assert_eq!(read.rma_win(0).unwrap().flags.name(), Some("CREATE_DESTROY_EVENTS"));
    let property = &read.system_tree_node_properties[0];
    assert_eq!(property.value, TypedValue { kind: Type::STRING, bits: 3 });
}

#[test]
fn a_record_may_be_longer_but_not_shorter_than_known() {
    assert_eq!(definitions("0A 05 00 61 00 FF FF").string(0), "a");
    let file = bytes(&format!("{HEADER} 16 02 00 00 02 01"));
    let error = Definitions::from_bytes(Path::new("traces.def"), file, CHUNK).unwrap_err();
    assert_eq!(error.to_string(), "traces.def, byte 22: Comm: expected a compressed 32-bit integer");
}

#[test]
fn what_stands_before_an_event() {
    let list = |id| format!("06 06 01 01 01 {id:02X} 01 2A");
    let file = format!(
        "{HEADER}
         0C 01 07
         {} 05 09 00 00 00 00 00 00 00 {} 0D 01 07
         05 0A 00 00 00 00 00 00 00 05 0B 00 00 00 00 00 00 00 0C FF",
        list(1),
        list(2)
    );
    let (lines, truncated) = events(&file, LocalDefinitions::default());
    let attribute = |id| AttributeValue { id, value: TypedValue { kind: Type::UINT8, bits: 0x2A } };
    assert_eq!(
        lines,
        [
            // No time so far.
            expected(0, &Event::Enter { region: 7 }, &[]),
            // Two lists accumulate, with a timestamp between them.
            expected(9, &Event::Leave { region: 7 }, &[attribute(1), attribute(2)]),
            expected(11, &Event::Enter { region: UNDEFINED }, &[]),
        ]
    );
    assert!(truncated.unwrap().contains("end of file mark"));
}

#[test]
fn strings_that_are_not_utf_8() {
    let file = bytes(&format!("{HEADER} 0A 04 00 61 FF 00 0A 06 01 01 EF BF BD 00 02 01"));
    let (read, oddities) = Definitions::from_bytes(Path::new("traces.def"), file, CHUNK).unwrap();
    assert_eq!((read.string(0), read.string(1)), ("a\u{FFFD}", "\u{FFFD}"));
    let noted = oddities.iter().filter(|oddity| oddity.kind == OddityKind::NotUtf8);
    assert_eq!(noted.map(|oddity| oddity.place.offset).collect::<Vec<_>>(), [18]);
}

#[test]
fn a_group_of_ranks_that_shares_its_id() {
    let read = definitions(
        "12 0A 00 00 00 01 01 00 04 04 00 00
         12 0A 00 00 00 01 01 00 05 04 00 00
         16 06 00 00 00 FF 00 00",
    );
    assert_eq!(read.group(0).unwrap().group_type, GroupType::COMM_LOCATIONS);
    assert_eq!(read.comm_group(0).unwrap().group_type, GroupType::COMM_GROUP);
}

#[test]
fn anchors_of_all_formats() {
    let head = "54 46 32 00";
    let body = "03 01 01  00 00 10 00 00 00 00 00  00 00 40 00 00 00 00 00  01 01
                01 00 00 00 00 00 00 00  02 00 00 00 00 00 00 00  6D 00 63 00 00";
    let late = "01 00 00 00 41 00 42 00  08 07 06 05 04 03 02 01";
    let last = "00 00 00 00 00 00 00 00 02 01 00";
    let read = |format: u8, rest: &str| {
        let file = bytes(&format!("03 42 4F {head} {format:02X} 01 {body} {rest}"));
        Anchor::from_bytes(Path::new("traces.otf2"), &file).unwrap()
    };
    let (first, oddities) = read(1, "");
    assert_eq!((first.machine_name.as_str(), first.trace_format), ("m", 1));
    assert!(oddities.is_empty());
    let (second, oddities) = read(2, late);
    assert_eq!(second.properties, [("A".to_owned(), "B".to_owned())]);
    assert_eq!(second.trace_id, 0x0102_0304_0506_0708);
    assert!(oddities.is_empty());
    let (third, oddities) = read(3, &format!("{late} {last}"));
    assert_eq!(third.trace_id, second.trace_id);
    assert!(oddities.is_empty());
}
