//! What each fuzz target does with any bytes. `rust/otf2/tests/all/fuzz.rs` includes this file as well and replays the
//! corpus, so that `./test` needs neither nightly Rust nor cargo-fuzz.

use std::hint::black_box;
use std::path::Path;

use whywait_otf2::enums::MappingType;
use whywait_otf2::records::{ClockOffset, IdPairs, MappingTable, Value};
use whywait_otf2::{Anchor, Attributes, Definitions, Event, EventSink, LocalDefinitions, LocationReader};

/// Any bytes as anchor file.
pub fn anchor(bytes: &[u8]) {
    if let Err(error) = Anchor::from_bytes(Path::new("traces.otf2"), bytes) {
        assert!(error.offset().is_some_and(|offset| offset <= bytes.len() as u64));
    }
}

/// Any bytes as definition files, global and local, in chunks of a small size that the first byte chooses.
pub fn definitions(bytes: &[u8]) {
    let Some((chunk, file)) = bytes.split_first() else { return };
    let chunk_size = 19 + 16 * u64::from(*chunk);
    match Definitions::from_bytes(Path::new("traces.def"), file.to_vec(), chunk_size) {
        Ok((definitions, oddities)) => {
            for definition in definitions.iter() {
                definition.visit(&mut |name, value| {
                    black_box((name, value));
                });
            }
            for comm in &definitions.comms {
                black_box((definitions.comm_group(comm.group), definitions.string(comm.name)));
            }
            black_box(oddities);
        }
        Err(error) => assert!(error.offset().is_some_and(|offset| offset <= file.len() as u64)),
    }
    match LocalDefinitions::from_bytes(Path::new("0.def"), file.to_vec(), chunk_size) {
        Ok((local, _)) => {
            black_box(LocationReader::from_bytes(Path::new("0.evt"), Vec::new(), chunk_size, local));
        }
        Err(error) => assert!(error.offset().is_some_and(|offset| offset <= file.len() as u64)),
    }
}

/// Looks at everything it receives.
#[derive(Default)]
struct Look {
    events: u64,
}

impl EventSink for Look {
    fn enter(&mut self, time: i64, region: u32) {
        self.events += 1;
        black_box((time, region));
    }

    fn leave(&mut self, time: i64, region: u32) {
        self.enter(time, region);
    }

    fn record(&mut self, time: i64, record: &Event<'_>, attributes: &Attributes<'_>) {
        self.events += 1;
        black_box(time);
        record.visit(&mut |name, value| match value {
            Value::Metrics(values) => assert_eq!(values.iter().count(), values.len()),
            Value::Strings(values) => assert_eq!(values.iter().count(), values.len()),
            value => {
                black_box((name, value));
            }
        });
        self.attributed(attributes);
    }

    fn attributed(&mut self, attributes: &Attributes<'_>) {
        for attribute in attributes {
            black_box(attribute);
        }
    }
}

fn local() -> LocalDefinitions {
    LocalDefinitions {
        mapping_tables: (0..15)
            .map(|kind| MappingTable {
                mapping_type: MappingType(kind),
                id_map: match kind % 3 {
                    0 => IdPairs::Dense(vec![1, 2, 0]),
                    1 => IdPairs::Sparse(vec![(1 << 20, 3), (5, 1 << 33)]),
                    _ => IdPairs::Dense(vec![0]),
                },
            })
            .collect(),
        clock_offsets: [(1000, -7), (2000, 1 << 50), (1 << 63, i64::MIN)]
            .map(|(time, offset)| ClockOffset { time, offset, standard_deviation: 0.0 })
            .to_vec(),
        definitions: Vec::new(),
    }
}

/// Any bytes as events of a location that translates ids and corrects times, in chunks of a small size that the first
/// byte chooses. All chunks at once and one by one must agree on what they deliver.
pub fn events(bytes: &[u8]) {
    let Some((chunk, file)) = bytes.split_first() else { return };
    let chunk_size = 19 + 16 * u64::from(*chunk);
    let reader = LocationReader::from_bytes(Path::new("0.evt"), file.to_vec(), chunk_size, local());
    let mut buffer = Vec::new();
    let mut whole = Look::default();
    match reader.read_events(&mut buffer, &mut whole) {
        Ok(summary) => {
            assert_eq!(summary.events, whole.events);
            // A file that ends before its last chunk is the one case in which chunks know more than the whole.
            if summary.truncated.is_none() && summary.oddities.is_empty() {
                let mut parts = Look::default();
                for chunk in 0..reader.chunk_count() {
                    if reader.read_chunks(chunk..chunk + 1, &mut buffer, &mut parts).is_err() {
                        return;
                    }
                }
                assert_eq!(parts.events, whole.events);
            }
        }
        Err(error) => assert!(error.offset().is_some_and(|offset| offset <= file.len() as u64)),
    }
}
