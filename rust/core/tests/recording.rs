//! A run that is no archive: definitions and events made in memory go through the whole analysis, and come back from
//! the archive that it is written to.

use std::path::Path;
use std::sync::Arc;

use whywait_core::analysis::{Analysis, Monitor, Options, analyze};
use whywait_core::counters::{Stretch, changes};
use whywait_core::diagnostics::DiagnosticKind;
use whywait_core::export::archive;
use whywait_core::ids::LocationId;
use whywait_core::severity::Metric;
use whywait_core::trace::decode::Progress;
use whywait_core::whatif::{Hypothesis, Model, Selection, Simulated, Simulator};
use whywait_otf2::enums::{
    Base, CommFlag, GroupFlag, GroupType, GroupTypePre12, LocationGroupType, LocationType, MetricMode,
    MetricOccurrence, MetricType, Paradigm, RecorderKind, RegionFlag, RegionRole, RegionType, Type,
};
use whywait_otf2::records::{
    CallingContext, ClockProperties, Comm, Definition, Group, Location, LocationGroup, MetricClass, MetricMember,
    MetricValues, Region, SystemTreeNode, Text, TypedValue, UNDEFINED,
};
use whywait_otf2::{
    Anchor, Archive, Attributes, Definitions, Event, EventSink, EventStream, Events, ReadSummary, Recording, Result,
};

const STRINGS: [&str; 7] = ["", "node", "rank", "main", "MPI_Send", "MPI_Recv", "instructions"];
// Their ids.
const NONE: u32 = 0;
const NODE: u32 = 1;
const RANK: u32 = 2;
const MAIN: u32 = 3;
const SEND: u32 = 4;
const RECV: u32 = 5;
const COUNTER: u32 = 6;
const LENGTH: u64 = 10;

/// Rank 0 works for 5 ticks before it sends; rank 1 receives at once.
///
/// ```text
///  0  main 0........5 [Send] 6...........10
///  1  main 0.2 [Recv         ] 7.........10
/// ```
#[derive(Debug)]
struct Toy {
    anchor: Anchor,
    definitions: Definitions,
    events: [Vec<(i64, Event<'static>)>; 2],
}

fn definitions() -> Vec<Definition> {
    let mut all: Vec<Definition> = vec![
        ClockProperties { timer_resolution: 1, global_offset: 0, trace_length: LENGTH, realtime_timestamp: u64::MAX }
            .into(),
    ];
    all.extend((0..).zip(STRINGS).map(|(id, string)| Text { id, string: string.to_owned() }.into()));
    all.push(SystemTreeNode { id: 0, name: NODE, class_name: NODE, parent: UNDEFINED }.into());
    for rank in 0..2 {
        let group = LocationGroup {
            id: rank,
            name: RANK,
            location_group_type: LocationGroupType::PROCESS,
            system_tree_parent: 0,
            creating_location_group: UNDEFINED,
        };
        let location = Location {
            id: rank.into(),
            name: RANK,
            location_type: LocationType::CPU_THREAD,
            number_of_events: 0,
            location_group: rank,
        };
        all.extend([group.into(), location.into()]);
    }
    for (name, region_role, paradigm) in [
        (MAIN, RegionRole::FUNCTION, Paradigm::COMPILER),
        (SEND, RegionRole::POINT2POINT, Paradigm::MPI),
        (RECV, RegionRole::POINT2POINT, Paradigm::MPI),
    ] {
        let region = Region {
            id: name,
            name,
            description: NONE,
            region_type: RegionType::of(region_role, paradigm, RegionFlag::NONE),
            source_file: NONE,
            begin_line_number: 0,
            end_line_number: 0,
            canonical_name: name,
            region_role,
            paradigm,
            region_flags: RegionFlag::NONE,
        };
        all.push(region.into());
    }
    for (id, group_type) in [(0, GroupType::COMM_LOCATIONS), (1, GroupType::COMM_GROUP)] {
        let (paradigm, group_flags) = (Paradigm::MPI, GroupFlag::NONE);
        let group_type_pre12 = GroupTypePre12::of(group_type, paradigm, group_flags);
        let members = vec![0, 1];
        all.push(Group { id, name: NONE, group_type_pre12, members, group_type, paradigm, group_flags }.into());
    }
    all.push(Comm { id: 0, name: NONE, group: 1, parent: UNDEFINED, flags: CommFlag::NONE }.into());
    let member = MetricMember {
        id: 0,
        name: COUNTER,
        description: NONE,
        metric_type: MetricType::PAPI,
        metric_mode: MetricMode::ACCUMULATED_START,
        value_type: Type::UINT64,
        base: Base::DECIMAL,
        exponent: 0,
        unit: NONE,
    };
    let class = MetricClass {
        id: 0,
        metric_members: vec![0],
        metric_occurrence: MetricOccurrence::SYNCHRONOUS_STRICT,
        recorder_kind: RecorderKind::CPU,
    };
    all.extend([member.into(), class.into()]);
    all
}

const fn counter(value: &'static [TypedValue]) -> Event<'static> {
    Event::Metric { metric: 0, values: MetricValues::new(value) }
}

impl Toy {
    fn new() -> Self {
        const ZERO: &[TypedValue] = &[TypedValue { kind: Type::UINT64, bits: 0 }];
        const MANY: &[TypedValue] = &[TypedValue { kind: Type::UINT64, bits: 50 }];
        let call = |region, begin, end, inside: Vec<(i64, Event<'static>)>| {
            let mut events = vec![(begin, Event::Enter { region })];
            events.extend(inside);
            events.push((end, Event::Leave { region }));
            events
        };
        let message = Event::MpiSend { receiver: 1, communicator: 0, msg_tag: 7, msg_length: 8 };
        let received = Event::MpiRecv { sender: 0, communicator: 0, msg_tag: 7, msg_length: 8 };
        let mut work = vec![(0, counter(ZERO)), (5, counter(MANY))];
        work.extend(call(SEND, 5, 6, vec![(5, message)]));
        let sender = call(MAIN, 0, 10, work);
        let receiver = call(MAIN, 0, 10, call(RECV, 2, 7, vec![(7, received)]));
        let definitions = Definitions::from_records(definitions());
        Self { anchor: Anchor::default(), definitions, events: [sender, receiver] }
    }
}

impl Recording for Toy {
    fn path(&self) -> &Path {
        Path::new("toy")
    }

    fn name(&self) -> &'static str {
        "toy"
    }

    fn anchor(&self) -> &Anchor {
        &self.anchor
    }

    fn definitions(&self) -> &Definitions {
        &self.definitions
    }

    fn events(&self, location: u64) -> Result<Events<'_>> {
        Ok(Events::new(ToyEvents(&self.events[location as usize])))
    }
}

struct ToyEvents<'a>(&'a [(i64, Event<'static>)]);

impl EventStream for ToyEvents<'_> {
    fn read(&self, sink: &mut dyn EventSink) -> Result<ReadSummary> {
        for (time, event) in self.0 {
            match event {
                Event::Enter { region } => sink.enter(*time, *region),
                Event::Leave { region } => sink.leave(*time, *region),
                other => sink.record(*time, other, &Attributes::NONE),
            }
        }
        Ok(ReadSummary { events: self.0.len() as u64, ..ReadSummary::default() })
    }
}

fn analyzed(recording: Arc<dyn Recording>) -> Analysis {
    analyze(recording, &Options::default(), None, &Monitor::default()).unwrap()
}

/// The late sender, the critical path, and the growth of the counter on rank 0.
fn assert_result(analysis: &Analysis, work: i64) {
    let waits: Vec<_> = analysis.waits.iter().map(|wait| (wait.kind, wait.location, wait.waiting)).collect();
    assert_eq!(waits, [(Metric::LateSender, LocationId::new(1), work - 2)]);
    let path = &analysis.causes.as_ref().unwrap().path;
    assert_eq!(path.iter().map(|segment| segment.to - segment.from).sum::<i64>(), work + 5);
    let whole = Stretch { location: LocationId::new(0), begin: 0, end: work, callpath: None };
    let grown = changes(analysis.trace.reread(), &analysis.counters.kinds, &[whole], false).unwrap();
    assert_eq!(grown.iter().map(|change| change.amount).collect::<Vec<_>>(), [50.0]);
}

#[test]
fn a_run_in_memory_is_analyzed_like_its_archive() {
    let toy = Arc::new(Toy::new());
    assert_result(&analyzed(toy.clone()), 5);
    let directory = std::env::temp_dir().join(format!("whywait-toy-{}", std::process::id()));
    let trace = analyzed(toy.clone()).trace;
    archive::write(&*toy, &trace, (&directory, "toy"), &Progress::default()).unwrap();
    let written = Archive::open(&directory);
    let analysis = written.map(|archive| analyzed(Arc::new(archive)));
    std::fs::remove_dir_all(&directory).unwrap();
    // The counter is read again after the directory is gone, so only the rest can be compared.
    let waits = analysis.unwrap().waits;
    assert_eq!(waits.iter().map(|wait| wait.waiting).collect::<Vec<_>>(), [3]);
}

/// Contexts that are circles or not defined cost their event, and samples in them belong to what runs.
#[test]
fn broken_calling_contexts_are_left_out() {
    let context = |id, region, parent| CallingContext { id, region, source_code_location: UNDEFINED, parent };
    let mut all = definitions();
    let contexts = [context(0, MAIN, UNDEFINED), context(1, SEND, 0), context(2, MAIN, 3), context(3, RECV, 2)];
    all.extend(contexts.map(Definition::from));
    let enter = |calling_context| Event::CallingContextEnter { calling_context, unwind_distance: 9 };
    let leave = |calling_context| Event::CallingContextLeave { calling_context };
    let sample =
        |calling_context| Event::CallingContextSample { calling_context, unwind_distance: 9, interrupt_generator: 0 };
    let events = vec![
        (0, enter(1)),
        (2, sample(2)),
        (3, sample(77)),
        (4, leave(77)),
        (5, leave(1)),
        (6, enter(3)),
        (7, leave(3)),
        (8, enter(77)),
        (9, leave(0)),
    ];
    let toy = Toy { definitions: Definitions::from_records(all), events: [events, Vec::new()], ..Toy::new() };
    let analysis = analyzed(Arc::new(toy));
    let (trace, shard) = (&analysis.trace, &analysis.trace.shards[0]);
    let name = |event| trace.regions.name(trace.records(), trace.tree.region(shard.events.callpath(event)));
    let seen: Vec<_> = shard.events_of(LocationId::new(0)).map(|at| (shard.events.time[at], name(at as u32))).collect();
    let nested = [(0, "main"), (0, "MPI_Send"), (5, "MPI_Send"), (5, "main")];
    assert_eq!(seen, [&nested[..], &[(6, "MPI_Recv"), (7, "MPI_Recv")]].concat());
    let samples = analysis.sampling.rows(trace).unwrap();
    let running = shard.events.callpath(1);
    assert!(samples.iter().all(|sample| sample.recorded == running), "{samples:?}");
    assert_eq!(samples.len(), 2);
    let found = |kind| analysis.diagnostics.occurrences(kind);
    assert_eq!((found(DiagnosticKind::UnknownRecord), found(DiagnosticKind::LeaveWithoutEnter)), (3, 1));
}

#[test]
fn a_simulated_run_is_a_recording_of_another() {
    let analysis = Arc::new(analyzed(Arc::new(Toy::new())));
    let progress = Progress::default();
    let simulator = Arc::new(Simulator::new(&analysis, &Model::default(), &progress).unwrap());
    let main: Vec<bool> = (0..analysis.trace.tree.len()).map(|callpath| callpath == 0).collect();
    let selection = Selection {
        text: "main".to_owned(),
        roots: main.clone(),
        below: main,
        part: None,
        locations: vec![true, false],
        instances: None,
        window: None,
    };
    let twice = Hypothesis::Scale { selection, factor: 2.0, min_span: 0 };
    let simulation = Arc::new(simulator.simulate(&analysis, &[twice], &progress).unwrap());
    let run = Simulated::new(analysis, simulator, simulation, "main twice".to_owned()).unwrap();
    assert_eq!(run.anchor().properties, [("WHYWAIT::HYPOTHESES".to_owned(), "main twice".to_owned())]);
    let result = analyzed(Arc::new(run));
    let waits: Vec<i64> = result.waits.iter().map(|wait| wait.waiting).collect();
    assert_eq!(waits, [8], "the receiver waits for ten ticks of work less its own two");
}
