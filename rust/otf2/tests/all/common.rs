//! Records of every kind, and a sink that remembers what it receives.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use whywait_otf2::enums::{self, MappingType, Type};
use whywait_otf2::records::{
    Attribute, CallingContext, CallingContextProperty, Callpath, CallpathParameter, Callsite, CartCoordinate,
    CartDimension, CartTopology, ClockOffset, ClockProperties, Comm, Definition, Group, IdPairs, InterComm,
    InterruptGenerator, IoDirectory, IoFileProperty, IoHandle, IoParadigm, IoPreCreatedHandleState, IoProperty,
    IoRegularFile, Location, LocationGroup, LocationGroupProperty, LocationProperty, MappingTable, MetricClass,
    MetricClassRecorder, MetricInstance, MetricMember, MetricValues, Paradigm, ParadigmProperty, Parameter, Region,
    RmaWin, SourceCodeLocation, StringRefs, SystemTreeNode, SystemTreeNodeDomain, SystemTreeNodeProperty, Text,
    TypedValue, UnknownDefinition, Value,
};
use whywait_otf2::wire::ByteOrder;
use whywait_otf2::{
    Anchor, ArchiveWriter, AttributeValue, Attributes, Event, EventSink, LocalDefinitions, WriteOptions,
};

/// Values of a metric event.
const METRICS: &[TypedValue] = &[
    TypedValue { kind: Type::UINT64, bits: 0 },
    TypedValue { kind: Type::INT64, bits: u64::MAX },
    TypedValue { kind: Type::DOUBLE, bits: 0x3FF8_0000_0000_0000 },
];

/// Every event of the format, and some that it does not know yet.
pub(crate) fn events() -> Vec<Event<'static>> {
    vec![
        Event::BufferFlush { stop_time: 0 },
        Event::MeasurementOnOff { measurement_mode: enums::MeasurementMode(2) },
        Event::Enter { region: u32::MAX },
        Event::Leave { region: 70_000 },
        Event::MpiSend { receiver: 0, communicator: 255, msg_tag: 256, msg_length: 4_294_967_295 },
        Event::MpiIsend {
            receiver: 70_000,
            communicator: 0,
            msg_tag: 255,
            msg_length: u64::MAX,
            request_id: 4_294_967_295,
        },
        Event::MpiIsendComplete { request_id: 1_099_511_627_776 },
        Event::MpiIrecvRequest { request_id: 0 },
        Event::MpiRecv { sender: 255, communicator: 256, msg_tag: u32::MAX, msg_length: 1_099_511_627_776 },
        Event::MpiIrecv {
            sender: 0,
            communicator: 255,
            msg_tag: 256,
            msg_length: 4_294_967_295,
            request_id: 1_099_511_627_776,
        },
        Event::MpiRequestTest { request_id: 0 },
        Event::MpiRequestCancelled { request_id: 65_536 },
        Event::MpiCollectiveBegin {},
        Event::MpiCollectiveEnd {
            collective_op: enums::CollectiveOp(77),
            communicator: u32::MAX,
            root: 70_000,
            size_sent: 0,
            size_received: 65_536,
        },
        Event::OmpFork { number_of_requested_threads: 256 },
        Event::OmpJoin {},
        Event::OmpAcquireLock { lock_id: u32::MAX, acquisition_order: 70_000 },
        Event::OmpReleaseLock { lock_id: 0, acquisition_order: 255 },
        Event::OmpTaskCreate { task_id: u64::MAX },
        Event::OmpTaskSwitch { task_id: 4_294_967_295 },
        Event::OmpTaskComplete { task_id: 1_099_511_627_776 },
        Event::Metric { metric: 0, values: MetricValues::new(METRICS) },
        Event::ParameterString { parameter: 256, string: u32::MAX },
        Event::ParameterInt { parameter: 70_000, value: -1 },
        Event::ParameterUnsignedInt { parameter: 255, value: u64::MAX },
        Event::RmaWinCreate { win: u32::MAX },
        Event::RmaWinDestroy { win: 70_000 },
        Event::RmaCollectiveBegin {},
        Event::RmaCollectiveEnd {
            collective_op: enums::CollectiveOp(2),
            sync_level: enums::RmaSyncLevel(77),
            win: 256,
            root: u32::MAX,
            bytes_sent: 1_099_511_627_776,
            bytes_received: 0,
        },
        Event::RmaGroupSync { sync_level: enums::RmaSyncLevel(1), win: 256, group: u32::MAX },
        Event::RmaRequestLock { win: 70_000, remote: 0, lock_id: 65_536, lock_type: enums::LockType(2) },
        Event::RmaAcquireLock { win: u32::MAX, remote: 70_000, lock_id: 0, lock_type: enums::LockType(2) },
        Event::RmaTryLock { win: 256, remote: u32::MAX, lock_id: 1_099_511_627_776, lock_type: enums::LockType(2) },
        Event::RmaReleaseLock { win: 255, remote: 256, lock_id: 4_294_967_295 },
        Event::RmaSync { win: 70_000, remote: 0, sync_type: enums::RmaSyncType(1) },
        Event::RmaWaitChange { win: 256 },
        Event::RmaPut { win: u32::MAX, remote: 70_000, bytes: 0, matching_id: 65_536 },
        Event::RmaGet { win: 256, remote: u32::MAX, bytes: 1_099_511_627_776, matching_id: 0 },
        Event::RmaAtomic {
            win: 255,
            remote: 256,
            atomic_type: enums::RmaAtomicType(1),
            bytes_sent: 1_099_511_627_776,
            bytes_received: 0,
            matching_id: 65_536,
        },
        Event::RmaOpCompleteBlocking { win: 256, matching_id: 4_294_967_295 },
        Event::RmaOpCompleteNonBlocking { win: 70_000, matching_id: 0 },
        Event::RmaOpTest { win: 255, matching_id: u64::MAX },
        Event::RmaOpCompleteRemote { win: u32::MAX, matching_id: 1_099_511_627_776 },
        Event::ThreadFork { model: enums::Paradigm(1), number_of_requested_threads: 255 },
        Event::ThreadJoin { model: enums::Paradigm(2) },
        Event::ThreadTeamBegin { thread_team: u32::MAX },
        Event::ThreadTeamEnd { thread_team: 70_000 },
        Event::ThreadAcquireLock { model: enums::Paradigm(0), lock_id: 255, acquisition_order: 256 },
        Event::ThreadReleaseLock { model: enums::Paradigm(1), lock_id: 70_000, acquisition_order: 0 },
        Event::ThreadTaskCreate { thread_team: 255, creating_thread: 256, generation_number: u32::MAX },
        Event::ThreadTaskSwitch { thread_team: 70_000, creating_thread: 0, generation_number: 255 },
        Event::ThreadTaskComplete { thread_team: 256, creating_thread: u32::MAX, generation_number: 70_000 },
        Event::ThreadCreate { thread_contingent: 0, sequence_count: 65_536 },
        Event::ThreadBegin { thread_contingent: 256, sequence_count: 4_294_967_295 },
        Event::ThreadWait { thread_contingent: 70_000, sequence_count: 0 },
        Event::ThreadEnd { thread_contingent: 255, sequence_count: u64::MAX },
        Event::CallingContextEnter { calling_context: u32::MAX, unwind_distance: 70_000 },
        Event::CallingContextLeave { calling_context: 0 },
        Event::CallingContextSample { calling_context: 255, unwind_distance: 256, interrupt_generator: u32::MAX },
        Event::IoCreateHandle {
            handle: 70_000,
            mode: enums::IoAccessMode(77),
            creation_flags: enums::IoCreationFlag(1),
            status_flags: enums::IoStatusFlag(0),
        },
        Event::IoDestroyHandle { handle: u32::MAX },
        Event::IoDuplicateHandle { old_handle: 70_000, new_handle: 0, status_flags: enums::IoStatusFlag(0) },
        Event::IoSeek {
            handle: 256,
            offset_request: 1_234_567_890_123,
            whence: enums::IoSeekOption(1),
            offset_result: 0,
        },
        Event::IoChangeStatusFlags { handle: 255, status_flags: enums::IoStatusFlag(77) },
        Event::IoDeleteFile { io_paradigm: 37, file: 70_000 },
        Event::IoOperationBegin {
            handle: 0,
            mode: enums::IoOperationMode(77),
            operation_flags: enums::IoOperationFlag(1),
            bytes_request: 4_294_967_295,
            matching_id: 1_099_511_627_776,
        },
        Event::IoOperationTest { handle: 0, matching_id: 65_536 },
        Event::IoOperationIssued { handle: 256, matching_id: 4_294_967_295 },
        Event::IoOperationComplete { handle: 70_000, bytes_result: 0, matching_id: 65_536 },
        Event::IoOperationCancelled { handle: 256, matching_id: 4_294_967_295 },
        Event::IoAcquireLock { handle: 70_000, lock_type: enums::LockType(0) },
        Event::IoReleaseLock { handle: 255, lock_type: enums::LockType(77) },
        Event::IoTryLock { handle: u32::MAX, lock_type: enums::LockType(0) },
        Event::ProgramBegin { program_name: 0, program_arguments: StringRefs::new(&[1, u32::MAX, 300]) },
        Event::ProgramEnd { exit_status: i64::MIN },
        Event::NonBlockingCollectiveRequest { request_id: 4_294_967_295 },
        Event::NonBlockingCollectiveComplete {
            collective_op: enums::CollectiveOp(2),
            communicator: 0,
            root: 255,
            size_sent: u64::MAX,
            size_received: 4_294_967_295,
            request_id: 1_099_511_627_776,
        },
        Event::CommCreate { communicator: 0 },
        Event::CommDestroy { communicator: 255 },
        Event::MpiProbe { sender: 256, communicator: u32::MAX, tag: 70_000, message_id: 0 },
        Event::MpiMrecv { message_id: 65_536, msg_length: u64::MAX },
        Event::MpiImrecvRequest { message_id: 4_294_967_295, request_id: 1_099_511_627_776 },
        Event::MpiImrecv { request_id: 0, msg_length: 65_536 },
        Event::Unknown { id: 200, payload: &[1, 2, 3] },
        Event::Unknown { id: 201, payload: &[7; 300] },
    ]
}

/// Every definition of the format, and one that it does not know yet.
pub(crate) fn definitions() -> Vec<Definition> {
    vec![
        ClockProperties {
            timer_resolution: u64::MAX,
            global_offset: 4_294_967_295,
            trace_length: 1_099_511_627_776,
            realtime_timestamp: 0,
        }
        .into(),
        Paradigm { paradigm: enums::Paradigm(1), name: 256, paradigm_class: enums::ParadigmClass(2) }.into(),
        ParadigmProperty { paradigm: enums::Paradigm(77), property: enums::ParadigmProperty(1), value: values()[5] }
            .into(),
        IoParadigm {
            id: 15,
            identification: u32::MAX,
            name: 70_000,
            io_paradigm_class: enums::IoParadigmClass(0),
            io_paradigm_flags: enums::IoParadigmFlag(2),
            properties: vec![IoProperty { property: enums::IoParadigmProperty(0), value: values()[11] }],
        }
        .into(),
        Text { id: u32::MAX, string: "café ".repeat(60) }.into(),
        Attribute { id: 0, name: 255, value_type: enums::Type(1), description: u32::MAX }.into(),
        SystemTreeNode { id: 70_000, name: 0, class_name: 255, parent: 256 }.into(),
        LocationGroup {
            id: u32::MAX,
            name: 70_000,
            location_group_type: enums::LocationGroupType(1),
            system_tree_parent: 255,
            creating_location_group: 256,
        }
        .into(),
        Location {
            id: 4_294_967_295,
            name: 70_000,
            location_type: enums::LocationType(0),
            number_of_events: 65_536,
            location_group: 256,
        }
        .into(),
        Region {
            id: u32::MAX,
            name: 70_000,
            description: 0,
            region_type: enums::RegionType(77),
            source_file: 256,
            begin_line_number: u32::MAX,
            end_line_number: 70_000,
            canonical_name: 0,
            region_role: enums::RegionRole(1),
            paradigm: enums::Paradigm(0),
            region_flags: enums::RegionFlag(2),
        }
        .into(),
        Callsite { id: 70_000, source_file: 0, line_number: 255, entered_region: 256, left_region: u32::MAX }.into(),
        Callpath { id: 70_000, parent: 0, region: 255 }.into(),
        Group {
            id: 256,
            name: u32::MAX,
            group_type_pre12: enums::GroupTypePre12(0),
            members: vec![0, 1 << 40, u64::MAX],
            group_type: enums::GroupType(77),
            paradigm: enums::Paradigm(1),
            group_flags: enums::GroupFlag(0),
        }
        .into(),
        MetricMember {
            id: 70_000,
            name: 0,
            description: 255,
            metric_type: enums::MetricType(0),
            metric_mode: enums::MetricMode(2),
            value_type: enums::Type(77),
            base: enums::Base(1),
            exponent: 0,
            unit: 256,
        }
        .into(),
        MetricClass {
            id: u32::MAX,
            metric_members: vec![1, u32::MAX, 300],
            metric_occurrence: enums::MetricOccurrence(0),
            recorder_kind: enums::RecorderKind(2),
        }
        .into(),
        MetricInstance {
            id: 256,
            metric_class: u32::MAX,
            recorder: 1_099_511_627_776,
            metric_scope: enums::MetricScope(2),
            scope: 65_536,
        }
        .into(),
        Comm { id: 256, name: u32::MAX, group: 70_000, parent: 0, flags: enums::CommFlag(1) }.into(),
        Parameter { id: 256, name: u32::MAX, parameter_type: enums::ParameterType(77) }.into(),
        RmaWin { id: 0, name: 255, comm: 256, flags: enums::RmaWinFlag(77) }.into(),
        MetricClassRecorder { metric: 70_000, recorder: 0 }.into(),
        SystemTreeNodeProperty { system_tree_node: 255, name: 256, string_value: u32::MAX, value: values()[9] }.into(),
        SystemTreeNodeDomain { system_tree_node: 0, system_tree_domain: enums::SystemTreeDomain(77) }.into(),
        LocationGroupProperty { location_group: 256, name: u32::MAX, string_value: 70_000, value: values()[15] }.into(),
        LocationProperty { location: 65_536, name: 256, string_value: u32::MAX, value: values()[19] }.into(),
        CartDimension { id: 0, name: 255, size: 256, cart_periodicity: enums::CartPeriodicity(77) }.into(),
        CartTopology { id: 70_000, name: 0, communicator: 255, cart_dimensions: vec![1, u32::MAX, 300] }.into(),
        CartCoordinate { cart_topology: u32::MAX, rank: 70_000, coordinates: vec![1, u32::MAX, 300] }.into(),
        SourceCodeLocation { id: 255, file: 256, line_number: u32::MAX }.into(),
        CallingContext { id: 70_000, region: 0, source_code_location: 255, parent: 256 }.into(),
        CallingContextProperty { calling_context: u32::MAX, name: 70_000, value: values()[12] }.into(),
        InterruptGenerator {
            id: 255,
            name: 256,
            interrupt_generator_mode: enums::InterruptGeneratorMode(77),
            base: enums::Base(1),
            exponent: -1,
            period: 65_536,
        }
        .into(),
        IoFileProperty { io_file: 256, name: u32::MAX, value: values()[21] }.into(),
        IoRegularFile { id: 0, name: 255, scope: 256 }.into(),
        IoDirectory { id: u32::MAX, name: 70_000, scope: 0 }.into(),
        IoHandle {
            id: 255,
            name: 256,
            file: u32::MAX,
            io_paradigm: 174,
            io_handle_flags: enums::IoHandleFlag(1),
            comm: 255,
            parent: 256,
        }
        .into(),
        IoPreCreatedHandleState {
            io_handle: u32::MAX,
            mode: enums::IoAccessMode(1),
            status_flags: enums::IoStatusFlag(0),
        }
        .into(),
        CallpathParameter { callpath: 255, parameter: 256, value: values()[12] }.into(),
        InterComm {
            id: 70_000,
            name: 0,
            group_a: 255,
            group_b: 256,
            common_communicator: u32::MAX,
            flags: enums::CommFlag(2),
        }
        .into(),
        Definition::Unknown(UnknownDefinition { id: 200, payload: vec![1, 2, 3] }),
    ]
}

/// A value of every type, unknown ones included, with as many bits as its width allows.
pub(crate) fn values() -> Vec<TypedValue> {
    (0..28)
        .map(|kind| {
            let bits = match Type(kind) {
                Type::UINT8 | Type::INT8 => 0x81,
                Type::UINT16 | Type::INT16 => 0x8001,
                Type::UINT32 | Type::INT32 | Type::FLOAT => 0x8000_0001,
                Type::NONE | Type::UINT64 | Type::INT64 | Type::DOUBLE | Type::LOCATION => 0x8000_0000_0000_0001,
                Type(kind) if kind > Type::LOCATION_GROUP.0 => u64::MAX,
                _ => 0xFFFF_FFFF,
            };
            TypedValue { kind: Type(kind), bits }
        })
        .collect()
}

/// An attribute of every type.
pub(crate) fn attributes() -> Vec<AttributeValue> {
    (0..).zip(values()).map(|(id, value)| AttributeValue { id, value }).collect()
}

/// Local definitions with translations of every type, dense and sparse.
pub(crate) fn local() -> LocalDefinitions {
    LocalDefinitions {
        mapping_tables: (0..15)
            .map(|kind| MappingTable {
                mapping_type: MappingType(kind),
                id_map: if kind % 2 == 0 {
                    IdPairs::Dense(vec![3, 1, 0, 2])
                } else {
                    IdPairs::Sparse(vec![(1, 1000), (300, 7), (70_000, 0)])
                },
            })
            .collect(),
        clock_offsets: vec![
            ClockOffset { time: 100, offset: -50, standard_deviation: 0.5 },
            ClockOffset { time: 1100, offset: 1 << 40, standard_deviation: 0.0 },
            ClockOffset { time: 2100, offset: i64::MIN, standard_deviation: -1.0 },
        ],
        // Records 5 and 6 of a local file are the two above.
        definitions: definitions().split_off(2),
    }
}

/// The events that a sink received, one line each.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Lines {
    pub(crate) lines: Vec<String>,
    attributes: String,
}

impl EventSink for Lines {
    fn enter(&mut self, time: i64, region: u32) {
        self.record(time, &Event::Enter { region }, &Attributes::NONE);
    }

    fn leave(&mut self, time: i64, region: u32) {
        self.record(time, &Event::Leave { region }, &Attributes::NONE);
    }

    fn record(&mut self, time: i64, record: &Event<'_>, attributes: &Attributes<'_>) {
        if !attributes.is_empty() {
            self.attributed(attributes);
        }
        self.lines.push(line(time, record, &std::mem::take(&mut self.attributes)));
    }

    fn attributed(&mut self, attributes: &Attributes<'_>) {
        self.attributes = show(&attributes.iter().collect::<Vec<_>>());
    }
}

fn show(attributes: &[AttributeValue]) -> String {
    let mut text = String::new();
    for attribute in attributes {
        write!(text, " @{attribute:?}").unwrap();
    }
    text
}

fn line(time: i64, event: &Event<'_>, attributes: &str) -> String {
    let mut line = format!("{time} {} {}", event.id(), event.name());
    event.visit(&mut |name, value| {
        write!(line, " {name}=").unwrap();
        match value {
            Value::Metrics(list) => write!(line, "{:?}", list.iter().collect::<Vec<_>>()),
            Value::Strings(list) => write!(line, "{:?}", list.iter().collect::<Vec<_>>()),
            value => write!(line, "{value:?}"),
        }
        .unwrap();
    });
    if let Event::Unknown { payload, .. } = event {
        write!(line, " {payload:?}").unwrap();
    }
    line + attributes
}

/// The line that [`Lines`] keeps of an event.
pub(crate) fn expected(time: u64, event: &Event<'_>, attributes: &[AttributeValue]) -> String {
    line(time as i64, event, &show(attributes))
}

/// A directory that is removed in the end.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("whywait-otf2-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a scratch directory");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The files of an archive with every record that there is, in memory.
pub(crate) struct Files {
    pub anchor: Vec<u8>,
    pub definitions: Vec<u8>,
    pub local: Vec<u8>,
    pub events: Vec<u8>,
}

impl Files {
    pub(crate) fn new(name: &str, byte_order: ByteOrder, event_chunk_size: u64, definition_chunk_size: u64) -> Self {
        let scratch = Scratch::new(name);
        let anchor = Anchor {
            event_chunk_size,
            definition_chunk_size,
            creator: "whywait".to_owned(),
            properties: vec![("A::B".to_owned(), "true".to_owned())],
            ..Anchor::default()
        };
        let writer = ArchiveWriter::create(scratch.path(), "traces", WriteOptions { anchor, byte_order }).unwrap();
        for definition in definitions() {
            writer.define(definition);
        }
        let all = attributes();
        let mut location = writer.location(0).unwrap();
        for (time, event) in (100..).zip(events()) {
            let given = &all[time as usize % all.len()..][..usize::from(time % 3 == 0)];
            location.write(time, &event, &Attributes::new(given)).unwrap();
        }
        location.finish(&LocalDefinitions { definitions: Vec::new(), ..local() }).unwrap();
        writer.finish().unwrap();
        let read = |name: &str| std::fs::read(scratch.path().join(name)).unwrap();
        Self {
            anchor: read("traces.otf2"),
            definitions: read("traces.def"),
            local: read("traces/0.def"),
            events: read("traces/0.evt"),
        }
    }
}
