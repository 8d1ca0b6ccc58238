//! Measures the reader on a generated trace of a stencil code: `bench DIRECTORY [MILLIONS OF EVENTS] [LOCATIONS]`.
//! The trace is written first unless the directory holds one.

use std::fmt::Display;
use std::hint::black_box;
use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

use whywait_otf2::enums::{
    CollectiveOp, GroupFlag, GroupType, GroupTypePre12, LocationGroupType, LocationType, MappingType, Paradigm,
    RegionFlag, RegionRole, RegionType,
};
use whywait_otf2::records::{
    ClockOffset, ClockProperties, Comm, Group, IdPairs, Location, LocationGroup, MappingTable, Region, SystemTreeNode,
    Text, UNDEFINED,
};
use whywait_otf2::{
    Archive, ArchiveWriter, Attributes, Event, EventSink, LocalDefinitions, LocationWriter, WriteOptions,
};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// User functions, then MPI functions.
const REGIONS: [&str; 14] = [
    "main",
    "iterate",
    "sweep_red",
    "sweep_black",
    "row",
    "residual",
    "pack",
    "unpack",
    "exchange",
    "MPI_Irecv",
    "MPI_Isend",
    "MPI_Waitall",
    "MPI_Allreduce",
    "MPI_Finalize",
];

/// Writes events whose times increase by a few ticks each.
struct Clock<'a, 'b> {
    to: &'a mut LocationWriter<'b>,
    time: u64,
}

impl Clock<'_, '_> {
    fn write(&mut self, event: Event<'_>) -> whywait_otf2::Result<()> {
        self.time += 37 + self.time % 64;
        self.to.write(self.time, &event, &Attributes::NONE)
    }

    fn within(
        &mut self,
        region: u32,
        body: impl FnOnce(&mut Self) -> whywait_otf2::Result<()>,
    ) -> whywait_otf2::Result<()> {
        self.write(Event::Enter { region })?;
        body(self)?;
        self.write(Event::Leave { region })
    }

    fn iteration(&mut self, rank: u32, ranks: u32) -> whywait_otf2::Result<()> {
        let neighbours = [(rank + 1) % ranks, (rank + ranks - 1) % ranks];
        let communicator = 0;
        let (msg_tag, msg_length) = (1, 8192);
        self.within(1, |to| {
            for sweep in [2, 3] {
                to.within(sweep, |to| {
                    for _ in 0..6 {
                        to.within(4, |_| Ok(()))?;
                    }
                    Ok(())
                })?;
            }
            to.within(8, |to| {
                for request_id in 0..2 {
                    to.within(9, |to| to.write(Event::MpiIrecvRequest { request_id }))?;
                }
                to.within(6, |_| Ok(()))?;
                for (receiver, request_id) in neighbours.into_iter().zip(2..) {
                    let event = Event::MpiIsend { receiver, communicator, msg_tag, msg_length, request_id };
                    to.within(10, |to| to.write(event))?;
                }
                to.within(11, |to| {
                    for (sender, request_id) in neighbours.into_iter().zip(0..) {
                        to.write(Event::MpiIrecv { sender, communicator, msg_tag, msg_length, request_id })?;
                    }
                    for request_id in 2..4 {
                        to.write(Event::MpiIsendComplete { request_id })?;
                    }
                    Ok(())
                })?;
                to.within(7, |_| Ok(()))
            })?;
            to.within(5, |_| Ok(()))?;
            to.within(12, |to| {
                to.write(Event::MpiCollectiveBegin {})?;
                to.write(Event::MpiCollectiveEnd {
                    collective_op: CollectiveOp::ALLREDUCE,
                    communicator,
                    root: UNDEFINED,
                    size_sent: 8,
                    size_received: 8,
                })
            })
        })
    }
}

fn generate(directory: &Path, events: u64, ranks: u32) -> Outcome {
    let writer = ArchiveWriter::create(directory, "traces", WriteOptions::default())?;
    writer.define(ClockProperties {
        timer_resolution: 1_000_000_000,
        global_offset: 0,
        trace_length: 1 << 50,
        realtime_timestamp: u64::MAX,
    });
    let text = |id: u32, string: &str| {
        writer.define(Text { id, string: string.to_owned() });
    };
    text(0, "");
    for (id, name) in (1..).zip(REGIONS) {
        text(id, name);
    }
    text(100, "machine");
    text(101, "MPI_COMM_WORLD");
    writer.define(SystemTreeNode { id: 0, name: 100, class_name: 100, parent: UNDEFINED });
    for rank in 0..ranks {
        writer.define(LocationGroup {
            id: rank,
            name: 0,
            location_group_type: LocationGroupType::PROCESS,
            system_tree_parent: 0,
            creating_location_group: UNDEFINED,
        });
        writer.define(Location {
            id: u64::from(rank),
            name: 0,
            location_type: LocationType::CPU_THREAD,
            number_of_events: 0,
            location_group: rank,
        });
    }
    for id in 0..REGIONS.len() as u32 {
        let (region_role, paradigm) = match id {
            9 | 10 => (RegionRole::POINT2POINT, Paradigm::MPI),
            12 => (RegionRole::COLL_ALL2ALL, Paradigm::MPI),
            11 | 13 => (RegionRole::FUNCTION, Paradigm::MPI),
            _ => (RegionRole::FUNCTION, Paradigm::COMPILER),
        };
        let region_flags = RegionFlag::NONE;
        writer.define(Region {
            id,
            name: id + 1,
            description: 0,
            region_type: RegionType::of(region_role, paradigm, region_flags),
            source_file: 0,
            begin_line_number: 0,
            end_line_number: 0,
            canonical_name: id + 1,
            region_role,
            paradigm,
            region_flags,
        });
    }
    for (id, group_type) in [(0, GroupType::COMM_LOCATIONS), (1, GroupType::COMM_GROUP)] {
        let group_flags = GroupFlag::NONE;
        writer.define(Group {
            id,
            name: 0,
            group_type_pre12: GroupTypePre12::of(group_type, Paradigm::MPI, group_flags),
            members: (0..u64::from(ranks)).collect(),
            group_type,
            paradigm: Paradigm::MPI,
            group_flags,
        });
    }
    writer.define(Comm { id: 0, name: 101, group: 1, parent: UNDEFINED, flags: whywait_otf2::enums::CommFlag::NONE });
    for rank in 0..ranks {
        let mut location = writer.location(u64::from(rank))?;
        let mut clock = Clock { to: &mut location, time: 1_000_000 };
        clock.write(Event::Enter { region: 0 })?;
        while clock.to.events() < events / u64::from(ranks) {
            clock.iteration(rank, ranks)?;
        }
        clock.write(Event::Leave { region: 0 })?;
        let last = clock.time;
        location.finish(&LocalDefinitions {
            // Not the identity, so that translation is part of the measurement.
            mapping_tables: vec![MappingTable {
                mapping_type: MappingType::COMM,
                id_map: IdPairs::Dense(vec![0, 2, 1]),
            }],
            clock_offsets: vec![
                ClockOffset { time: 1_000_000, offset: 1234, standard_deviation: 0.0 },
                ClockOffset { time: last, offset: 9876, standard_deviation: 0.0 },
            ],
            definitions: Vec::new(),
        })?;
    }
    Ok(writer.finish()?)
}

/// Sums the events that it receives.
#[derive(Default)]
struct Sums {
    regions: i64,
    others: i64,
}

impl EventSink for Sums {
    fn enter(&mut self, time: i64, region: u32) {
        self.regions = self.regions.wrapping_sub(time + i64::from(region));
    }

    fn leave(&mut self, time: i64, region: u32) {
        self.regions = self.regions.wrapping_add(time + i64::from(region));
    }

    fn record(&mut self, time: i64, record: &Event<'_>, _: &Attributes<'_>) {
        self.others = self.others.wrapping_add(time + i64::from(record.id()));
    }
}

/// Stores time and region of Enter and Leave, 12 bytes each.
#[derive(Default)]
struct Columns {
    times: Vec<i64>,
    regions: Vec<u32>,
    others: Sums,
}

impl EventSink for Columns {
    fn enter(&mut self, time: i64, region: u32) {
        self.times.push(time);
        self.regions.push(region << 1);
    }

    fn leave(&mut self, time: i64, region: u32) {
        self.times.push(time);
        self.regions.push(region << 1 | 1);
    }

    fn record(&mut self, time: i64, record: &Event<'_>, attributes: &Attributes<'_>) {
        self.others.record(time, record, attributes);
    }
}

fn say(line: impl Display) {
    let _ = writeln!(io::stdout(), "{line}");
}

/// Best rate of some passes over all locations.
fn measure<S: EventSink>(name: &str, archive: &Archive, mut sink: impl FnMut(u64) -> S) -> Outcome {
    let mut buffer = Vec::new();
    let mut best = f64::MAX;
    let mut events = 0;
    for _ in 0..5 {
        let mut seconds = 0.0;
        events = 0;
        for location in &archive.definitions().locations {
            let mut sink = sink(location.number_of_events);
            let begin = Instant::now();
            events += archive.location(location.id)?.read_events(&mut buffer, &mut sink)?.events;
            seconds += begin.elapsed().as_secs_f64();
            black_box(&mut sink);
        }
        best = best.min(seconds);
    }
    say(format_args!("{name}: {events} events in {best:.3} s, {:.1} M events/s", events as f64 / best / 1e6));
    Ok(())
}

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().collect();
    let directory = Path::new(arguments.get(1).ok_or("usage: bench DIRECTORY [MILLIONS OF EVENTS] [LOCATIONS]")?);
    if !directory.join("traces.otf2").exists() {
        let number = |at: usize, or: u32| arguments.get(at).map_or(Ok(or), |text| text.parse());
        let begin = Instant::now();
        generate(directory, u64::from(number(2, 20)?) * 1_000_000, number(3, 4)?)?;
        say(format_args!("written in {:.3} s", begin.elapsed().as_secs_f64()));
    }
    let begin = Instant::now();
    let archive = Archive::open(directory)?;
    say(format_args!("opened in {:.6} s", begin.elapsed().as_secs_f64()));
    let begin = Instant::now();
    for location in &archive.definitions().locations {
        black_box(archive.location(location.id)?);
    }
    let each = begin.elapsed().as_secs_f64() / archive.definitions().locations.len() as f64;
    say(format_args!("{:.1} us to open and close a location", each * 1e6));
    measure("decode and sum", &archive, |_| Sums::default())?;
    measure("decode into columns", &archive, |events| Columns {
        times: Vec::with_capacity(events as usize),
        regions: Vec::with_capacity(events as usize),
        others: Sums::default(),
    })
}
