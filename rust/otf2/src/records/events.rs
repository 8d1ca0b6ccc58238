//! Event records, and who receives them.

use super::attributes::Attributes;
use super::codec::{Borrowed, Codec, Detached, Ref, Time, Translator};
use super::value::{MetricValues, StringRefs, TypedValue, Value};
use crate::enums::{
    CollectiveOp, IoAccessMode, IoCreationFlag, IoOperationFlag, IoOperationMode, IoSeekOption, IoStatusFlag, LockType,
    MeasurementMode, Paradigm, RmaAtomicType, RmaSyncLevel, RmaSyncType,
};
use crate::wire::{Decoder, Encoder, Fault, Window};

/// Receives events. Times are corrected global ticks and references are ids of the global definitions, unless the
/// location is read raw.
pub trait EventSink {
    /// A region begins.
    fn enter(&mut self, time: i64, region: u32);
    /// A region ends.
    fn leave(&mut self, time: i64, region: u32);
    /// Any other event.
    fn record(&mut self, time: i64, record: &Event<'_>, attributes: &Attributes<'_>);
    /// Comes before an [`enter`](Self::enter) or [`leave`](Self::leave) that carries attributes.
    fn attributed(&mut self, _attributes: &Attributes<'_>) {}
    /// A short [`Event::Metric`] without attributes: counters can be sampled at every event.
    fn metric(&mut self, time: i64, metric: u32, values: &[TypedValue]) {
        let values = MetricValues::new(values);
        self.record(time, &Event::Metric { metric, values }, &Attributes::NONE);
    }
    /// Comes after each chunk of an event file.
    fn end_chunk(&mut self) {}
}

/// Numbers of the mapping types, for the table of events.
mod to {
    use crate::enums::MappingType;

    pub(super) const CALLING_CONTEXT: u8 = MappingType::CALLING_CONTEXT.0;
    pub(super) const COMM: u8 = MappingType::COMM.0;
    pub(super) const GROUP: u8 = MappingType::GROUP.0;
    pub(super) const INTERRUPT_GENERATOR: u8 = MappingType::INTERRUPT_GENERATOR.0;
    pub(super) const IO_FILE: u8 = MappingType::IO_FILE.0;
    pub(super) const IO_HANDLE: u8 = MappingType::IO_HANDLE.0;
    pub(super) const METRIC: u8 = MappingType::METRIC.0;
    pub(super) const PARAMETER: u8 = MappingType::PARAMETER.0;
    pub(super) const REGION: u8 = MappingType::REGION.0;
    pub(super) const RMA_WIN: u8 = MappingType::RMA_WIN.0;
    pub(super) const STRING: u8 = MappingType::STRING.0;
}

use to::{
    CALLING_CONTEXT, COMM, GROUP, INTERRUPT_GENERATOR, IO_FILE, IO_HANDLE, METRIC, PARAMETER, REGION, RMA_WIN, STRING,
};

/// The codec of a field: its own type if no other is named.
macro_rules! codec {
    ($type:ty) => {
        $type
    };
    ($type:ty, $codec:ty) => {
        $codec
    };
}

/// The name of a field: that of the format where it differs from ours.
macro_rules! label {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident, $label:literal) => {
        $label
    };
}

pub(super) use {codec, label};

/// The payload of an event: with a length in front unless the event is bare.
macro_rules! framed {
    ($from:ident) => {
        &mut $from.payload()?
    };
    ($from:ident, bare) => {
        &mut *$from
    };
}

/// The same in a window: its end, once all fields are read.
macro_rules! framed_window {
    ($from:ident, |$inner:ident| $fields:block) => {{
        let end = $from.payload()?;
        let $inner = &mut *$from;
        let event = $fields;
        (event, $from.end_within(end)?)
    }};
    ($from:ident, bare, |$inner:ident| $fields:block) => {{
        let $inner = &mut *$from;
        let event = $fields;
        (event, $from.end()?)
    }};
}

/// Declares all events: number, name, `bare` if the record has no length, and its fields in file order. A field has a
/// type and, where the type alone does not say it, a codec.
macro_rules! events {
    ($(
        $id:literal $name:ident $($bare:ident)? {
            $( $field:ident $([$label:literal])? : $type:ty $(as $codec:ty)? ),* $(,)?
        }
    )*) => {
        /// An event. References are ids of the global definitions, times are corrected, unless read raw.
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub enum Event<'a> {
            $(
                #[doc = concat!("Record ", stringify!($id), ".")]
                $name { $(
                    #[doc = concat!("`", label!($field $(, $label)?), "`: `", stringify!($type), "`", $( ", `", stringify!($codec), "`", )? ".")]
                    $field: $type,
                )* },
            )*
            /// A record that this version does not know.
            Unknown {
                /// Number of the record.
                id: u8,
                /// Its bytes.
                payload: &'a [u8],
            },
        }

        impl<'a> Event<'a> {
            /// Number of the record.
            #[inline]
            pub const fn id(&self) -> u8 {
                match self {
                    $( Event::$name { .. } => $id, )*
                    Event::Unknown { id, .. } => *id,
                }
            }

            /// Name of the record in OTF2.
            pub const fn name(&self) -> &'static str {
                Self::name_of(self.id())
            }

            /// Name in OTF2 of the record with this number.
            pub const fn name_of(id: u8) -> &'static str {
                match id {
                    $( $id => stringify!($name), )*
                    _ => "Unknown",
                }
            }

            /// The event with empty lists: it borrows nothing from the file any more.
            pub fn without_lists(&self) -> Event<'static> {
                match *self {
                    $( Event::$name { $( $field ),* } => Event::$name { $( $field: $field.detached() ),* }, )*
                    Event::Unknown { id, .. } => Event::Unknown { id, payload: &[] },
                }
            }

            /// Calls `f` with name and value of each field in file order.
            pub fn visit(&self, f: &mut impl FnMut(&'static str, Value<'_>)) {
                match self {
                    $(
                        Event::$name { $( $field ),* } => {
                            $( f(label!($field $(, $label)?), <codec!($type $(, $codec)?) as Codec<'a>>::show($field)); )*
                        }
                    )*
                    Event::Unknown { .. } => {}
                }
            }

            /// Reads what follows the record number `id`.
            #[inline(never)]
            pub(crate) fn read<'t: 'a>(
                id: u8,
                from: &mut Decoder<'a>,
                by: &mut Translator<'t>,
            ) -> Result<Self, Fault> {
                match id {
                    $(
                        $id => {
                            let _from = framed!(from $(, $bare)?);
                            $( let $field = <codec!($type $(, $codec)?) as Codec<'a>>::read(_from)?; )*
                            Ok(Event::$name { $(
                                $field: <codec!($type $(, $codec)?) as Codec<'a>>::translated($field, by),
                            )* })
                        }
                    )*
                    _ => Ok(Event::Unknown { id, payload: from.payload()?.rest() }),
                }
            }

            /// Reads what follows the record number `id` if it is short and well-formed: sends the event to `sink`
            /// and returns where it ends.
            ///
            /// Each event is sent where its record is known, so that the sink's code for other records takes no time.
            #[inline(always)]
            pub(crate) fn send_short<'t: 'a>(
                id: u8,
                from: &mut Window<'_>,
                by: &mut Translator<'t>,
                time: i64,
                sink: &mut (impl EventSink + ?Sized),
            ) -> Option<usize> {
                match id {
                    $(
                        $id => {
                            let (event, end) = framed_window!(from, $($bare,)? |_from| {
                                $( let $field = <codec!($type $(, $codec)?) as Codec<'a>>::read_window(_from)?; )*
                                Event::$name { $(
                                    $field: <codec!($type $(, $codec)?) as Codec<'a>>::translated($field, by),
                                )* }
                            });
                            sink.record(time, &event, &Attributes::NONE);
                            Some(end)
                        }
                    )*
                    _ => None,
                }
            }

            /// Appends the record.
            pub(crate) fn write(&self, to: &mut Encoder) {
                match self {
                    $(
                        Event::$name { $( $field ),* } => {
                            to.u8($id);
                            events!(@write to, $($bare)?, |_to| {
                                $( <codec!($type $(, $codec)?) as Codec<'a>>::write($field, _to); )*
                            });
                        }
                    )*
                    Event::Unknown { id, payload } => {
                        to.u8(*id);
                        to.payload(|to| to.raw(payload));
                    }
                }
            }
        }
    };
    (@write $to:ident, bare, |$inner:ident| $body:block) => {{ let $inner = $to; $body }};
    (@write $to:ident, , |$inner:ident| $body:block) => { $to.payload(|$inner| $body) };
}

events! {
    10 BufferFlush { stop_time: i64 as Time }
    11 MeasurementOnOff { measurement_mode: MeasurementMode }
    12 Enter bare { region: u32 as Ref<REGION> }
    13 Leave bare { region: u32 as Ref<REGION> }
    14 MpiSend { receiver: u32, communicator: u32 as Ref<COMM>, msg_tag: u32, msg_length: u64 }
    15 MpiIsend { receiver: u32, communicator: u32 as Ref<COMM>, msg_tag: u32, msg_length: u64, request_id: u64 }
    16 MpiIsendComplete bare { request_id: u64 }
    17 MpiIrecvRequest bare { request_id: u64 }
    18 MpiRecv { sender: u32, communicator: u32 as Ref<COMM>, msg_tag: u32, msg_length: u64 }
    19 MpiIrecv { sender: u32, communicator: u32 as Ref<COMM>, msg_tag: u32, msg_length: u64, request_id: u64 }
    20 MpiRequestTest bare { request_id: u64 }
    21 MpiRequestCancelled bare { request_id: u64 }
    22 MpiCollectiveBegin {}
    23 MpiCollectiveEnd {
        collective_op: CollectiveOp, communicator: u32 as Ref<COMM>, root: u32, size_sent: u64, size_received:
        u64,
    }
    24 OmpFork bare { number_of_requested_threads: u32 }
    25 OmpJoin {}
    26 OmpAcquireLock { lock_id: u32, acquisition_order: u32 }
    27 OmpReleaseLock { lock_id: u32, acquisition_order: u32 }
    28 OmpTaskCreate bare { task_id: u64 }
    29 OmpTaskSwitch bare { task_id: u64 }
    30 OmpTaskComplete bare { task_id: u64 }
    31 Metric { metric: u32 as Ref<METRIC>, values ["metric_values"]: MetricValues<'a> as Borrowed<u8, TypedValue> }
    32 ParameterString { parameter: u32 as Ref<PARAMETER>, string: u32 as Ref<STRING> }
    33 ParameterInt { parameter: u32 as Ref<PARAMETER>, value: i64 }
    34 ParameterUnsignedInt { parameter: u32 as Ref<PARAMETER>, value: u64 }
    35 RmaWinCreate { win: u32 as Ref<RMA_WIN> }
    36 RmaWinDestroy { win: u32 as Ref<RMA_WIN> }
    37 RmaCollectiveBegin {}
    38 RmaCollectiveEnd {
        collective_op: CollectiveOp, sync_level: RmaSyncLevel, win: u32 as Ref<RMA_WIN>, root: u32,
        bytes_sent: u64, bytes_received: u64,
    }
    39 RmaGroupSync { sync_level: RmaSyncLevel, win: u32 as Ref<RMA_WIN>, group: u32 as Ref<GROUP> }
    40 RmaRequestLock { win: u32 as Ref<RMA_WIN>, remote: u32, lock_id: u64, lock_type: LockType }
    41 RmaAcquireLock { win: u32 as Ref<RMA_WIN>, remote: u32, lock_id: u64, lock_type: LockType }
    42 RmaTryLock { win: u32 as Ref<RMA_WIN>, remote: u32, lock_id: u64, lock_type: LockType }
    43 RmaReleaseLock { win: u32 as Ref<RMA_WIN>, remote: u32, lock_id: u64 }
    44 RmaSync { win: u32 as Ref<RMA_WIN>, remote: u32, sync_type: RmaSyncType }
    45 RmaWaitChange { win: u32 as Ref<RMA_WIN> }
    46 RmaPut { win: u32 as Ref<RMA_WIN>, remote: u32, bytes: u64, matching_id: u64 }
    47 RmaGet { win: u32 as Ref<RMA_WIN>, remote: u32, bytes: u64, matching_id: u64 }
    48 RmaAtomic {
        win: u32 as Ref<RMA_WIN>, remote: u32, atomic_type ["type"]: RmaAtomicType, bytes_sent: u64,
        bytes_received: u64, matching_id: u64,
    }
    49 RmaOpCompleteBlocking { win: u32 as Ref<RMA_WIN>, matching_id: u64 }
    50 RmaOpCompleteNonBlocking { win: u32 as Ref<RMA_WIN>, matching_id: u64 }
    51 RmaOpTest { win: u32 as Ref<RMA_WIN>, matching_id: u64 }
    52 RmaOpCompleteRemote { win: u32 as Ref<RMA_WIN>, matching_id: u64 }
    53 ThreadFork { model: Paradigm, number_of_requested_threads: u32 }
    54 ThreadJoin { model: Paradigm }
    55 ThreadTeamBegin { thread_team: u32 as Ref<COMM> }
    56 ThreadTeamEnd { thread_team: u32 as Ref<COMM> }
    57 ThreadAcquireLock { model: Paradigm, lock_id: u32, acquisition_order: u32 }
    58 ThreadReleaseLock { model: Paradigm, lock_id: u32, acquisition_order: u32 }
    59 ThreadTaskCreate { thread_team: u32 as Ref<COMM>, creating_thread: u32, generation_number: u32 }
    60 ThreadTaskSwitch { thread_team: u32 as Ref<COMM>, creating_thread: u32, generation_number: u32 }
    61 ThreadTaskComplete { thread_team: u32 as Ref<COMM>, creating_thread: u32, generation_number: u32 }
    62 ThreadCreate { thread_contingent: u32 as Ref<COMM>, sequence_count: u64 }
    63 ThreadBegin { thread_contingent: u32 as Ref<COMM>, sequence_count: u64 }
    64 ThreadWait { thread_contingent: u32 as Ref<COMM>, sequence_count: u64 }
    65 ThreadEnd { thread_contingent: u32 as Ref<COMM>, sequence_count: u64 }
    66 CallingContextEnter { calling_context: u32 as Ref<CALLING_CONTEXT>, unwind_distance: u32 }
    67 CallingContextLeave { calling_context: u32 as Ref<CALLING_CONTEXT> }
    68 CallingContextSample {
        calling_context: u32 as Ref<CALLING_CONTEXT>, unwind_distance: u32, interrupt_generator: u32 as
        Ref<INTERRUPT_GENERATOR>,
    }
    69 IoCreateHandle {
        handle: u32 as Ref<IO_HANDLE>, mode: IoAccessMode, creation_flags: IoCreationFlag, status_flags:
        IoStatusFlag,
    }
    70 IoDestroyHandle { handle: u32 as Ref<IO_HANDLE> }
    71 IoDuplicateHandle {
        old_handle: u32 as Ref<IO_HANDLE>, new_handle: u32 as Ref<IO_HANDLE>, status_flags: IoStatusFlag,
    }
    72 IoSeek { handle: u32 as Ref<IO_HANDLE>, offset_request: i64, whence: IoSeekOption, offset_result: u64 }
    73 IoChangeStatusFlags { handle: u32 as Ref<IO_HANDLE>, status_flags: IoStatusFlag }
    74 IoDeleteFile { io_paradigm: u8, file: u32 as Ref<IO_FILE> }
    75 IoOperationBegin {
        handle: u32 as Ref<IO_HANDLE>, mode: IoOperationMode, operation_flags: IoOperationFlag, bytes_request:
        u64, matching_id: u64,
    }
    76 IoOperationTest { handle: u32 as Ref<IO_HANDLE>, matching_id: u64 }
    77 IoOperationIssued { handle: u32 as Ref<IO_HANDLE>, matching_id: u64 }
    78 IoOperationComplete { handle: u32 as Ref<IO_HANDLE>, bytes_result: u64, matching_id: u64 }
    79 IoOperationCancelled { handle: u32 as Ref<IO_HANDLE>, matching_id: u64 }
    80 IoAcquireLock { handle: u32 as Ref<IO_HANDLE>, lock_type: LockType }
    81 IoReleaseLock { handle: u32 as Ref<IO_HANDLE>, lock_type: LockType }
    82 IoTryLock { handle: u32 as Ref<IO_HANDLE>, lock_type: LockType }
    83 ProgramBegin { program_name: u32 as Ref<STRING>, program_arguments: StringRefs<'a> as Borrowed<u32, u32> }
    84 ProgramEnd { exit_status: i64 }
    85 NonBlockingCollectiveRequest { request_id: u64 }
    86 NonBlockingCollectiveComplete {
        collective_op: CollectiveOp, communicator: u32 as Ref<COMM>, root: u32, size_sent: u64, size_received:
        u64, request_id: u64,
    }
    87 CommCreate { communicator: u32 as Ref<COMM> }
    88 CommDestroy { communicator: u32 as Ref<COMM> }
    89 MpiProbe { sender: u32, communicator: u32 as Ref<COMM>, tag: u32, message_id: u64 }
    90 MpiMrecv { message_id: u64, msg_length: u64 }
    91 MpiImrecvRequest { message_id: u64, request_id: u64 }
    92 MpiImrecv { request_id: u64, msg_length: u64 }
}

/// Number of the record of an Enter.
pub(crate) const ENTER: u8 = Event::Enter { region: 0 }.id();
/// Number of the record of a Leave.
pub(crate) const LEAVE: u8 = Event::Leave { region: 0 }.id();
/// Number of the record of a sample of counters.
pub(crate) const SAMPLE: u8 = Event::Metric { metric: 0, values: MetricValues::new(&[]) }.id();
