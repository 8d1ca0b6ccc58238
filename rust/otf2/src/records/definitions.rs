//! Definition records.

use super::codec::{Codec, Counted, Full, Id, Own, Record, To};
use super::events::{codec, label};
use super::value::{TypedValue, Value};
use crate::enums::{self, IoParadigmProperty};
use crate::idmap::IdPairs;
use crate::wire::{Decoder, Encoder, Fault};

/// Numbers of the spaces of ids, for the table of definitions.
mod to {
    use crate::enums::Space;

    pub(super) const STRING: u8 = Space::STRING.0;
    pub(super) const IO_PARADIGM: u8 = Space::IO_PARADIGM.0;
    pub(super) const ATTRIBUTE: u8 = Space::ATTRIBUTE.0;
    pub(super) const SYSTEM_TREE_NODE: u8 = Space::SYSTEM_TREE_NODE.0;
    pub(super) const LOCATION_GROUP: u8 = Space::LOCATION_GROUP.0;
    pub(super) const LOCATION: u8 = Space::LOCATION.0;
    pub(super) const REGION: u8 = Space::REGION.0;
    pub(super) const CALLSITE: u8 = Space::CALLSITE.0;
    pub(super) const CALLPATH: u8 = Space::CALLPATH.0;
    pub(super) const GROUP: u8 = Space::GROUP.0;
    pub(super) const METRIC_MEMBER: u8 = Space::METRIC_MEMBER.0;
    pub(super) const METRIC: u8 = Space::METRIC.0;
    pub(super) const COMM: u8 = Space::COMM.0;
    pub(super) const PARAMETER: u8 = Space::PARAMETER.0;
    pub(super) const RMA_WIN: u8 = Space::RMA_WIN.0;
    pub(super) const CART_DIMENSION: u8 = Space::CART_DIMENSION.0;
    pub(super) const CART_TOPOLOGY: u8 = Space::CART_TOPOLOGY.0;
    pub(super) const SOURCE_CODE_LOCATION: u8 = Space::SOURCE_CODE_LOCATION.0;
    pub(super) const CALLING_CONTEXT: u8 = Space::CALLING_CONTEXT.0;
    pub(super) const INTERRUPT_GENERATOR: u8 = Space::INTERRUPT_GENERATOR.0;
    pub(super) const IO_FILE: u8 = Space::IO_FILE.0;
    pub(super) const IO_HANDLE: u8 = Space::IO_HANDLE.0;
}

use to::{
    ATTRIBUTE, CALLING_CONTEXT, CALLPATH, CALLSITE, CART_DIMENSION, CART_TOPOLOGY, COMM, GROUP, INTERRUPT_GENERATOR,
    IO_FILE, IO_HANDLE, IO_PARADIGM, LOCATION, LOCATION_GROUP, METRIC, METRIC_MEMBER, PARAMETER, REGION, RMA_WIN,
    SOURCE_CODE_LOCATION, STRING, SYSTEM_TREE_NODE,
};

/// "Undefined" of a 32-bit reference.
pub const UNDEFINED: u32 = u32::MAX;

/// Declares one record: its fields in file order, each with a type and, where the type does not imply it, a codec.
/// Fields of the tail may be missing in older traces and then have the value after `=`.
macro_rules! record {
    (
        $(#[$doc:meta])* $name:ident
        { $( $field:ident $([$label:literal])? : $type:ty $(as $codec:ty)? ),* $(,)? }
        { $( $late:ident $([$late_label:literal])? : $late_type:ty $(as $late_codec:ty)? = $absent:expr ),* $(,)? }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name {
            $(
                #[doc = concat!("`", label!($field $(, $label)?), "` of the format.")]
                pub $field: $type,
            )*
            $(
                #[doc = concat!("`", label!($late $(, $late_label)?), "` of the format, absent in older traces.")]
                pub $late: $late_type,
            )*
        }

        impl $name {
            /// Calls `f` with name and value of each field in file order.
            pub fn visit(&self, f: &mut impl FnMut(&'static str, Value<'_>)) {
                $( f(label!($field $(, $label)?), <codec!($type $(, $codec)?) as Codec<'_>>::show(&self.$field)); )*
                $( f(label!($late $(, $late_label)?), <codec!($late_type $(, $late_codec)?) as Codec<'_>>::show(&self.$late)); )*
            }
        }

        impl Record for $name {
            fn read(from: &mut Decoder<'_>) -> Result<Self, Fault> {
                $( let $field = <codec!($type $(, $codec)?) as Codec<'_>>::read(from)?; )*
                record!(@tail from, $( $late: (codec!($late_type $(, $late_codec)?)) = $absent ),*);
                Ok(Self { $($field,)* $($late,)* })
            }

            fn write(&self, to: &mut Encoder) {
                $( <codec!($type $(, $codec)?) as Codec<'_>>::write(&self.$field, to); )*
                $( <codec!($late_type $(, $late_codec)?) as Codec<'_>>::write(&self.$late, to); )*
            }

            fn ids(&self, _f: &mut dyn FnMut(Id)) {
                $( <codec!($type $(, $codec)?) as Codec<'_>>::ids(&self.$field, _f); )*
                $( <codec!($late_type $(, $late_codec)?) as Codec<'_>>::ids(&self.$late, _f); )*
            }
        }
    };
    (@tail $from:ident, ) => {};
    (@tail $from:ident, $( $late:ident: ($codec:ty) = $absent:expr ),+) => {
        let ($($late,)+) = if $from.is_empty() {
            ($($absent,)+)
        } else {
            ($(<$codec as Codec<'_>>::read($from)?,)+)
        };
    };
}

/// Declares all global definitions: number, record, name in OTF2 where it differs, the list that collects them, and
/// the fields.
macro_rules! definitions {
    ($(
        $id:literal $name:ident $([$kind:literal])? in $list:ident { $($fields:tt)* } $(tail { $($tail:tt)* })?
    )*) => {
        $(
            record! {
                #[doc = concat!("Definition record ", stringify!($id), ".")]
                $name { $($fields)* } { $($($tail)*)? }
            }

            impl From<$name> for Definition {
                fn from(record: $name) -> Self {
                    Definition::$name(record)
                }
            }
        )*

        /// A definition of any kind.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Definition {
            $( #[doc = concat!("Record ", stringify!($id), ".")] $name($name), )*
            /// A record that this version does not know.
            Unknown(UnknownDefinition),
        }

        /// A definition of any kind, borrowed.
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub enum DefinitionRef<'a> {
            $( #[doc = concat!("Record ", stringify!($id), ".")] $name(&'a $name), )*
            /// A record that this version does not know.
            Unknown(&'a UnknownDefinition),
        }

        impl Definition {
            /// The definition, borrowed.
            pub const fn borrowed(&self) -> DefinitionRef<'_> {
                match self {
                    $( Definition::$name(record) => DefinitionRef::$name(record), )*
                    Definition::Unknown(record) => DefinitionRef::Unknown(record),
                }
            }

            /// Reads the payload of the record with number `id`.
            pub(crate) fn read(id: u8, payload: &mut Decoder<'_>) -> Result<Self, Fault> {
                Ok(match id {
                    $( $id => Definition::$name($name::read(payload)?), )*
                    _ => Definition::Unknown(UnknownDefinition { id, payload: payload.rest().to_owned() }),
                })
            }

            /// Name in OTF2 of the record with this number.
            pub const fn name_of(id: u8) -> &'static str {
                match id {
                    $( $id => label!($name $(, $kind)?), )*
                    _ => "Unknown",
                }
            }
        }

        impl DefinitionRef<'_> {
            /// Number of the record.
            pub const fn id(self) -> u8 {
                match self {
                    $( DefinitionRef::$name(_) => $id, )*
                    DefinitionRef::Unknown(record) => record.id,
                }
            }

            /// Name of the record in OTF2.
            pub const fn kind(self) -> &'static str {
                Definition::name_of(self.id())
            }

            /// The definition, copied.
            pub fn to_owned(self) -> Definition {
                match self {
                    $( DefinitionRef::$name(record) => Definition::$name(record.clone()), )*
                    DefinitionRef::Unknown(record) => Definition::Unknown(record.clone()),
                }
            }

            /// Calls `f` with name and value of each field in file order.
            pub fn visit(self, f: &mut impl FnMut(&'static str, Value<'_>)) {
                match self {
                    $( DefinitionRef::$name(record) => record.visit(f), )*
                    DefinitionRef::Unknown(_) => {}
                }
            }

            /// Calls `f` with each id in the record.
            pub(crate) fn ids(self, f: &mut dyn FnMut(Id)) {
                match self {
                    $( DefinitionRef::$name(record) => record.ids(f), )*
                    DefinitionRef::Unknown(_) => {}
                }
            }

            /// Appends the record.
            pub(crate) fn write(self, to: &mut Encoder) {
                to.u8(self.id());
                to.payload(|to| match self {
                    $( DefinitionRef::$name(record) => record.write(to), )*
                    DefinitionRef::Unknown(record) => to.raw(&record.payload),
                });
            }
        }

        /// Lists of definitions, one for each kind, each in file order.
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct Lists {
            $( #[doc = concat!("The ", stringify!($name), " records.")] pub $list: Vec<$name>, )*
            /// Records that this version does not know.
            pub unknown: Vec<UnknownDefinition>,
            order: Vec<(u8, u32)>,
        }

        impl Lists {
            /// Names in OTF2 of the kinds that occur, by record number.
            pub fn kinds(&self) -> Vec<&'static str> {
                let mut kinds = Vec::new();
                $( if !self.$list.is_empty() { kinds.push(label!($name $(, $kind)?)); } )*
                kinds
            }

            /// Definitions of the kind with this name in OTF2, in file order.
            pub fn of_kind<'a>(&'a self, kind: &str) -> Box<dyn Iterator<Item = DefinitionRef<'a>> + 'a> {
                match kind {
                    $( label!($name $(, $kind)?) => Box::new(self.$list.iter().map(DefinitionRef::$name)), )*
                    _ => Box::new(std::iter::empty()),
                }
            }

            /// All definitions in file order.
            pub fn iter(&self) -> impl Iterator<Item = DefinitionRef<'_>> {
                self.order.iter().map(|entry| self.entry(*entry))
            }

            /// The definition at a position of the file.
            pub fn at(&self, position: usize) -> Option<DefinitionRef<'_>> {
                self.order.get(position).map(|entry| self.entry(*entry))
            }

            fn entry(&self, (id, index): (u8, u32)) -> DefinitionRef<'_> {
                let index = index as usize;
                match id {
                    $( $id => DefinitionRef::$name(&self.$list[index]), )*
                    _ => DefinitionRef::Unknown(&self.unknown[index]),
                }
            }

            /// Number of definitions.
            pub const fn len(&self) -> usize {
                self.order.len()
            }

            /// Whether there are no definitions.
            pub const fn is_empty(&self) -> bool {
                self.order.is_empty()
            }

            /// Adds a definition at the end.
            pub(crate) fn push(&mut self, definition: Definition) {
                let id = definition.borrowed().id();
                let index = match definition {
                    $( Definition::$name(record) => { self.$list.push(record); self.$list.len() - 1 } )*
                    Definition::Unknown(record) => { self.unknown.push(record); self.unknown.len() - 1 }
                };
                self.order.push((id, index as u32));
            }
        }
    };
}

definitions! {
    5 ClockProperties in clock_properties {
        timer_resolution: u64, global_offset: u64, trace_length: u64,
    } tail {
        realtime_timestamp: u64 = u64::MAX,
    }
    6 Paradigm in paradigms {
        paradigm: enums::Paradigm, name: u32 as To<STRING>, paradigm_class: enums::ParadigmClass,
    }
    7 ParadigmProperty in paradigm_properties {
        paradigm: enums::Paradigm, property: enums::ParadigmProperty, value: TypedValue,
    }
    8 IoParadigm in io_paradigms {
        id: u8 as Own<IO_PARADIGM, u8>, identification: u32 as To<STRING>, name: u32 as To<STRING>,
        io_paradigm_class: enums::IoParadigmClass, io_paradigm_flags: enums::IoParadigmFlag,
        properties: Vec<IoProperty> as Counted<u8, IoProperty>,
    }
    10 Text ["String"] in strings { id: u32 as Own<STRING>, string: String }
    11 Attribute in attributes {
        id: u32 as Own<ATTRIBUTE>, name: u32 as To<STRING>, value_type ["type"]: enums::Type,
    } tail {
        description: u32 as To<STRING> = UNDEFINED,
    }
    12 SystemTreeNode in system_tree_nodes {
        id: u32 as Own<SYSTEM_TREE_NODE>, name: u32 as To<STRING>, class_name: u32 as To<STRING>,
        parent: u32 as To<SYSTEM_TREE_NODE>,
    }
    13 LocationGroup in location_groups {
        id: u32 as Own<LOCATION_GROUP>, name: u32 as To<STRING>, location_group_type: enums::LocationGroupType,
        system_tree_parent: u32 as To<SYSTEM_TREE_NODE>,
    } tail {
        creating_location_group: u32 as To<LOCATION_GROUP> = UNDEFINED,
    }
    14 Location in locations {
        id: u64 as Own<LOCATION, u64>, name: u32 as To<STRING>, location_type: enums::LocationType,
        number_of_events: u64, location_group: u32 as To<LOCATION_GROUP>,
    }
    15 Region in regions {
        id: u32 as Own<REGION>, name: u32 as To<STRING>, description: u32 as To<STRING>,
        region_type: enums::RegionType, source_file: u32 as To<STRING>, begin_line_number: u32, end_line_number: u32,
    } tail {
        canonical_name: u32 as To<STRING> = name, region_role: enums::RegionRole = region_type.meaning().0,
        paradigm: enums::Paradigm = region_type.meaning().1,
        region_flags: enums::RegionFlag = region_type.meaning().2,
    }
    16 Callsite in callsites {
        id: u32 as Own<CALLSITE>, source_file: u32 as To<STRING>, line_number: u32,
        entered_region: u32 as To<REGION>, left_region: u32 as To<REGION>,
    }
    17 Callpath in callpaths { id: u32 as Own<CALLPATH>, parent: u32 as To<CALLPATH>, region: u32 as To<REGION> }
    18 Group in groups {
        id: u32 as Own<GROUP>, name: u32 as To<STRING>, group_type_pre12: enums::GroupTypePre12,
        members: Vec<u64> as Counted<u32, u64>,
    } tail {
        group_type: enums::GroupType = group_type_pre12.meaning().0,
        paradigm: enums::Paradigm = group_type_pre12.meaning().1,
        group_flags: enums::GroupFlag = enums::GroupFlag::NONE,
    }
    19 MetricMember in metric_members {
        id: u32 as Own<METRIC_MEMBER>, name: u32 as To<STRING>, description: u32 as To<STRING>,
        metric_type: enums::MetricType, metric_mode: enums::MetricMode, value_type: enums::Type, base: enums::Base,
        exponent: i64, unit: u32 as To<STRING>,
    }
    20 MetricClass in metric_classes {
        id: u32 as Own<METRIC>, metric_members: Vec<u32> as Counted<u8, To<METRIC_MEMBER>>,
        metric_occurrence: enums::MetricOccurrence,
    } tail {
        recorder_kind: enums::RecorderKind = enums::RecorderKind::UNKNOWN,
    }
    21 MetricInstance in metric_instances {
        id: u32 as Own<METRIC>, metric_class: u32 as To<METRIC>, recorder: u64 as To<LOCATION, u64>,
        metric_scope: enums::MetricScope, scope: u64,
    }
    22 Comm in comms {
        id: u32 as Own<COMM>, name: u32 as To<STRING>, group: u32 as To<GROUP>, parent: u32 as To<COMM>,
    } tail {
        flags: enums::CommFlag = enums::CommFlag::NONE,
    }
    23 Parameter in parameters {
        id: u32 as Own<PARAMETER>, name: u32 as To<STRING>, parameter_type: enums::ParameterType,
    }
    24 RmaWin in rma_wins {
        id: u32 as Own<RMA_WIN>, name: u32 as To<STRING>, comm: u32 as To<COMM>,
    } tail {
        flags: enums::RmaWinFlag = enums::RmaWinFlag::CREATE_DESTROY_EVENTS,
    }
    25 MetricClassRecorder in metric_class_recorders { metric: u32 as To<METRIC>, recorder: u64 as To<LOCATION, u64> }
    26 SystemTreeNodeProperty in system_tree_node_properties {
        system_tree_node: u32 as To<SYSTEM_TREE_NODE>, name: u32 as To<STRING>, string_value: u32 as To<STRING>,
    } tail {
        value: TypedValue = string_property(string_value),
    }
    27 SystemTreeNodeDomain in system_tree_node_domains {
        system_tree_node: u32 as To<SYSTEM_TREE_NODE>, system_tree_domain: enums::SystemTreeDomain,
    }
    28 LocationGroupProperty in location_group_properties {
        location_group: u32 as To<LOCATION_GROUP>, name: u32 as To<STRING>, string_value: u32 as To<STRING>,
    } tail {
        value: TypedValue = string_property(string_value),
    }
    29 LocationProperty in location_properties {
        location: u64 as To<LOCATION, u64>, name: u32 as To<STRING>, string_value: u32 as To<STRING>,
    } tail {
        value: TypedValue = string_property(string_value),
    }
    30 CartDimension in cart_dimensions {
        id: u32 as Own<CART_DIMENSION>, name: u32 as To<STRING>, size: u32, cart_periodicity: enums::CartPeriodicity,
    }
    31 CartTopology in cart_topologies {
        id: u32 as Own<CART_TOPOLOGY>, name: u32 as To<STRING>, communicator: u32 as To<COMM>,
        cart_dimensions: Vec<u32> as Counted<u8, To<CART_DIMENSION>>,
    }
    32 CartCoordinate in cart_coordinates {
        cart_topology: u32 as To<CART_TOPOLOGY>, rank: u32, coordinates: Vec<u32> as Counted<u8, u32>,
    }
    33 SourceCodeLocation in source_code_locations {
        id: u32 as Own<SOURCE_CODE_LOCATION>, file: u32 as To<STRING>, line_number: u32,
    }
    34 CallingContext in calling_contexts {
        id: u32 as Own<CALLING_CONTEXT>, region: u32 as To<REGION>,
        source_code_location: u32 as To<SOURCE_CODE_LOCATION>, parent: u32 as To<CALLING_CONTEXT>,
    }
    35 CallingContextProperty in calling_context_properties {
        calling_context: u32 as To<CALLING_CONTEXT>, name: u32 as To<STRING>, value: TypedValue,
    }
    36 InterruptGenerator in interrupt_generators {
        id: u32 as Own<INTERRUPT_GENERATOR>, name: u32 as To<STRING>,
        interrupt_generator_mode: enums::InterruptGeneratorMode, base: enums::Base, exponent: i64, period: u64,
    }
    37 IoFileProperty in io_file_properties {
        io_file: u32 as To<IO_FILE>, name: u32 as To<STRING>, value: TypedValue,
    }
    38 IoRegularFile in io_regular_files {
        id: u32 as Own<IO_FILE>, name: u32 as To<STRING>, scope: u32 as To<SYSTEM_TREE_NODE>,
    }
    39 IoDirectory in io_directories {
        id: u32 as Own<IO_FILE>, name: u32 as To<STRING>, scope: u32 as To<SYSTEM_TREE_NODE>,
    }
    40 IoHandle in io_handles {
        id: u32 as Own<IO_HANDLE>, name: u32 as To<STRING>, file: u32 as To<IO_FILE>,
        io_paradigm: u8 as To<IO_PARADIGM, u8>, io_handle_flags: enums::IoHandleFlag, comm: u32 as To<COMM>,
        parent: u32 as To<IO_HANDLE>,
    }
    41 IoPreCreatedHandleState in io_pre_created_handle_states {
        io_handle: u32 as To<IO_HANDLE>, mode: enums::IoAccessMode, status_flags: enums::IoStatusFlag,
    }
    42 CallpathParameter in callpath_parameters {
        callpath: u32 as To<CALLPATH>, parameter: u32 as To<PARAMETER>, value: TypedValue,
    }
    43 InterComm in inter_comms {
        id: u32 as Own<COMM>, name: u32 as To<STRING>, group_a: u32 as To<GROUP>, group_b: u32 as To<GROUP>,
        common_communicator: u32 as To<COMM>, flags: enums::CommFlag,
    }
}

/// A definition record that this version does not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownDefinition {
    /// Number of the record.
    pub id: u8,
    /// Its bytes.
    pub payload: Vec<u8>,
}

record! {
    /// Translation of local ids of one kind: record 5 of a local definition file.
    MappingTable { mapping_type: enums::MappingType, id_map: IdPairs } {}
}

record! {
    /// Difference of the global clock to the local one at a local time: record 6 of a local definition file.
    ClockOffset { time: u64 as Full, offset: i64, standard_deviation: f64 } {}
}

impl ClockOffset {
    /// The local time and the difference.
    pub fn point(&self) -> (u64, i64) {
        (self.time, self.offset)
    }
}

/// Number of the record [`MappingTable`].
pub(crate) const MAPPING_TABLE: u8 = 5;
/// Number of the record [`ClockOffset`].
pub(crate) const CLOCK_OFFSET: u8 = 6;

impl<'a> Codec<'a> for IdPairs {
    type Value = Self;

    fn read(from: &mut Decoder<'a>) -> Result<Self, Fault> {
        let count = from.u64()?;
        let mode = from.u8()?;
        let least = match mode {
            0 => 1,
            1 => 2,
            _ => return Err(from.fault("a dense (0) or sparse (1) translation table")),
        };
        // Memory grows with the bytes at hand, not with the count that a file claims.
        if count > from.remaining() as u64 / least {
            return Err(from.fault("as many translation table entries as counted"));
        }
        if mode == 0 {
            (0..count).map(|_| from.u64()).collect::<Result<_, _>>().map(IdPairs::Dense)
        } else {
            (0..count).map(|_| Ok((from.u64()?, from.u64()?))).collect::<Result<_, _>>().map(IdPairs::Sparse)
        }
    }

    fn write(pairs: &Self, to: &mut Encoder) {
        match pairs {
            IdPairs::Dense(global) => {
                to.u64(global.len() as u64);
                to.u8(0);
                for id in global {
                    to.u64(*id);
                }
            }
            IdPairs::Sparse(pairs) => {
                to.u64(pairs.len() as u64);
                to.u8(1);
                for (local, global) in pairs {
                    to.u64(*local);
                    to.u64(*global);
                }
            }
        }
    }

    fn show<'v>(pairs: &'v Self) -> Value<'v>
    where
        'a: 'v,
    {
        Value::IdPairs(pairs)
    }
}

/// A property of an I/O paradigm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IoProperty {
    /// Which property.
    pub property: IoParadigmProperty,
    /// Its value.
    pub value: TypedValue,
}

impl<'a> Codec<'a> for IoProperty {
    type Value = Self;

    fn read(from: &mut Decoder<'a>) -> Result<Self, Fault> {
        Ok(Self { property: IoParadigmProperty(from.u8()?), value: TypedValue::read(from)? })
    }

    fn write(property: &Self, to: &mut Encoder) {
        to.u8(property.property.0);
        TypedValue::write(&property.value, to);
    }

    fn show<'v>(property: &'v Self) -> Value<'v>
    where
        'a: 'v,
    {
        Value::IoProperties(std::slice::from_ref(property))
    }
}

/// The value of a property in traces that know only strings.
const fn string_property(id: u32) -> TypedValue {
    TypedValue { kind: enums::Type::STRING, bits: id as u64 }
}
