//! How one field is read, written, translated and shown; the record tables name a codec for each field.

use std::marker::PhantomData;

use super::value::{Element, List, TypedValue, Value};
use crate::clock::ClockCursor;
use crate::enums::{Space, Type};
use crate::idmap::IdMaps;
use crate::wire::{Decoder, Encoder, Fault, Window};

/// Translates ids and times of a location into global ones.
#[derive(Debug, Clone)]
pub(crate) struct Translator<'a> {
    pub(crate) maps: &'a IdMaps,
    pub(crate) clock: ClockCursor<'a>,
}

/// A record of definitions.
pub(crate) trait Record: Sized {
    /// Reads the fields.
    fn read(from: &mut Decoder<'_>) -> Result<Self, Fault>;
    /// Appends the fields.
    fn write(&self, to: &mut Encoder);
    /// Calls `f` with each id in the record.
    fn ids(&self, f: &mut dyn FnMut(Id));
}

/// An id in a definition.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Id {
    pub(crate) space: Space,
    pub(crate) number: u64,
    /// Whether the definition is the one that has this id, as opposed to referring to it.
    pub(crate) own: bool,
}

/// Encoding of a field.
pub(crate) trait Codec<'a> {
    type Value;

    fn read(from: &mut Decoder<'a>) -> Result<Self::Value, Fault>;
    fn write(value: &Self::Value, to: &mut Encoder);
    fn show<'v>(value: &'v Self::Value) -> Value<'v>
    where
        'a: 'v;

    /// Reads a value of fixed width or a compressed number; other values are not read this way.
    #[inline(always)]
    fn read_window(_from: &mut Window<'_>) -> Option<Self::Value> {
        None
    }

    /// Calls `f` with each id in the value, for definitions.
    fn ids(_value: &Self::Value, _f: &mut dyn FnMut(Id)) {}

    /// The value with local ids and times replaced by global ones.
    #[inline(always)]
    fn translated<'t: 'a>(value: Self::Value, _by: &mut Translator<'t>) -> Self::Value {
        value
    }
}

/// A field of an event without data borrowed from the file.
pub(crate) trait Detached {
    type Kept: 'static;

    fn detached(self) -> Self::Kept;
}

impl<T: Element> Detached for List<'_, T>
where
    T: 'static,
{
    type Kept = List<'static, T>;

    fn detached(self) -> List<'static, T> {
        List::new(&[])
    }
}

/// Declares the codec of a type with one encoding.
macro_rules! plain {
    ($(
        $type:ty: |$from:ident| $read:expr, |$window:ident| $read_window:expr,
        |$to:ident, $written:ident| $write:expr, |$shown:ident| $show:expr;
    )*) => {
        $(
            impl Detached for $type {
                type Kept = Self;

                fn detached(self) -> Self {
                    self
                }
            }

            impl<'a> Codec<'a> for $type {
                type Value = Self;

                #[inline(always)]
                fn read($from: &mut Decoder<'a>) -> Result<Self, Fault> {
                    $read
                }

                #[inline(always)]
                fn read_window($window: &mut Window<'_>) -> Option<Self> {
                    $read_window
                }

                #[inline(always)]
                fn write($written: &Self, $to: &mut Encoder) {
                    $write;
                }

                fn show<'v>($shown: &'v Self) -> Value<'v>
                where
                    'a: 'v,
                {
                    $show
                }
            }
        )*
    };
}

plain! {
    u8: |from| from.u8(), |from| from.u8(), |to, value| to.u8(*value), |value| Value::U8(*value);
    u32: |from| from.u32(), |from| from.u32(), |to, value| to.u32(*value), |value| Value::U32(*value);
    u64: |from| from.u64(), |from| from.u64(), |to, value| to.u64(*value), |value| Value::U64(*value);
    i64: |from| from.i64(), |from| from.i64(), |to, value| to.i64(*value), |value| Value::I64(*value);
    f64: |from| from.full_u64().map(f64::from_bits), |from| from.full_u64().map(f64::from_bits),
        |to, value| to.full_u64(value.to_bits()), |value| Value::F64(*value);
    String: |from| from.text().map(|text| String::from_utf8_lossy(text).into_owned()), |_from| None,
        |to, value| to.text(value), |value| Value::Str(value);
    TypedValue: |from| from.u8().and_then(|kind| TypedValue::read_as(Type(kind), from)), |_from| None,
        |to, value| { to.u8(value.kind.0); value.write_bits(to); }, |value| Value::Typed(*value);
}

/// Declares the codecs of named numbers.
macro_rules! named {
    ($( $name:ident($width:ident) )*) => {
        $(
            impl Detached for crate::enums::$name {
                type Kept = Self;

                fn detached(self) -> Self {
                    self
                }
            }

            impl<'a> Codec<'a> for crate::enums::$name {
                type Value = Self;

                #[inline(always)]
                fn read(from: &mut Decoder<'a>) -> Result<Self, Fault> {
                    from.$width().map(Self)
                }

                #[inline(always)]
                fn read_window(from: &mut Window<'_>) -> Option<Self> {
                    from.$width().map(Self)
                }

                #[inline(always)]
                fn write(value: &Self, to: &mut Encoder) {
                    to.$width(value.0);
                }

                fn show<'v>(value: &'v Self) -> Value<'v>
                where
                    'a: 'v,
                {
                    Value::Enum { number: u32::from(value.0), name: value.name() }
                }
            }
        )*
    };
}

named! {
    Type(u8) MappingType(u8) Paradigm(u8) ParadigmClass(u8) ParadigmProperty(u8)
    SystemTreeDomain(u8) LocationGroupType(u8) LocationType(u8) RegionRole(u8) RegionType(u8) RegionFlag(u32)
    GroupType(u8) GroupTypePre12(u8) GroupFlag(u32) Base(u8) MetricOccurrence(u8) MetricType(u8) MetricMode(u8)
    MetricScope(u8) RecorderKind(u8) ParameterType(u8) CartPeriodicity(u8) InterruptGeneratorMode(u8)
    IoParadigmClass(u8) IoParadigmFlag(u32) IoParadigmProperty(u8) IoHandleFlag(u32) IoAccessMode(u8)
    IoStatusFlag(u32) CommFlag(u32) RmaWinFlag(u32) MeasurementMode(u8) CollectiveOp(u8)
    RmaSyncType(u8) RmaSyncLevel(u32) LockType(u8) RmaAtomicType(u8) IoCreationFlag(u32) IoSeekOption(u8)
    IoOperationMode(u8) IoOperationFlag(u32)
}

/// A reference that the translation table with number `KIND` translates.
pub(crate) struct Ref<const KIND: u8>;

impl<'a, const KIND: u8> Codec<'a> for Ref<KIND> {
    type Value = u32;

    #[inline(always)]
    fn read(from: &mut Decoder<'a>) -> Result<u32, Fault> {
        from.u32()
    }

    #[inline(always)]
    fn read_window(from: &mut Window<'_>) -> Option<u32> {
        from.u32()
    }

    #[inline(always)]
    fn write(value: &u32, to: &mut Encoder) {
        to.u32(*value);
    }

    fn show<'v>(value: &'v u32) -> Value<'v>
    where
        'a: 'v,
    {
        Value::U32(*value)
    }

    #[inline(always)]
    fn translated<'t: 'a>(value: u32, by: &mut Translator<'t>) -> u32 {
        by.maps.get::<KIND>(value)
    }
}

/// An id by which a definition refers to another one.
pub(crate) struct To<const SPACE: u8, T = u32>(PhantomData<T>);

/// The id of a definition itself.
pub(crate) struct Own<const SPACE: u8, T = u32>(PhantomData<T>);

/// Declares codecs of ids in definitions, which differ only in the meaning of the id.
macro_rules! ids {
    ($( $name:ident $own:literal )*) => {
        $(
            impl<'a, T, const SPACE: u8> Codec<'a> for $name<SPACE, T>
            where
                T: Codec<'a, Value = T> + Copy + Into<u64>,
            {
                type Value = T;

                fn read(from: &mut Decoder<'a>) -> Result<T, Fault> {
                    T::read(from)
                }

                #[inline]
                fn write(value: &T, to: &mut Encoder) {
                    T::write(value, to);
                }

                fn show<'v>(value: &'v T) -> Value<'v>
                where
                    'a: 'v,
                {
                    T::show(value)
                }

                fn ids(value: &T, f: &mut dyn FnMut(Id)) {
                    let id: u64 = (*value).into();
                    // "Undefined" is all ones in the width of the id.
                    if id != u64::MAX >> (64 - 8 * size_of::<T>()) {
                        f(Id { space: Space(SPACE), number: id, own: $own });
                    }
                }
            }
        )*
    };
}

ids! { To false Own true }

/// An uncompressed time in ticks of the location's clock.
pub(crate) struct Time;

impl<'a> Codec<'a> for Time {
    type Value = i64;

    fn read(from: &mut Decoder<'a>) -> Result<i64, Fault> {
        from.full_u64().map(|time| time as i64)
    }

    #[inline(always)]
    fn read_window(from: &mut Window<'_>) -> Option<i64> {
        from.full_u64().map(|time| time as i64)
    }

    #[inline]
    fn write(value: &i64, to: &mut Encoder) {
        to.full_u64(*value as u64);
    }

    fn show<'v>(value: &'v i64) -> Value<'v>
    where
        'a: 'v,
    {
        Value::I64(*value)
    }

    fn translated<'t: 'a>(value: i64, by: &mut Translator<'t>) -> i64 {
        by.clock.correct(value as u64)
    }
}

/// An uncompressed 64-bit integer.
pub(crate) struct Full;

impl<'a> Codec<'a> for Full {
    type Value = u64;

    fn read(from: &mut Decoder<'a>) -> Result<u64, Fault> {
        from.full_u64()
    }

    #[inline]
    fn write(value: &u64, to: &mut Encoder) {
        to.full_u64(*value);
    }

    fn show<'v>(value: &'v u64) -> Value<'v>
    where
        'a: 'v,
    {
        Value::U64(*value)
    }
}

/// Number of members of a group of fields.
pub(crate) trait Count {
    fn read(from: &mut Decoder<'_>) -> Result<u64, Fault>;
    fn write(count: usize, to: &mut Encoder);
}

/// Declares an integer as count of members.
macro_rules! counts {
    ($( $width:ident )*) => {
        $(
            impl Count for $width {
                #[inline(always)]
                fn read(from: &mut Decoder<'_>) -> Result<u64, Fault> {
                    from.$width().map(u64::from)
                }

                #[inline]
                fn write(count: usize, to: &mut Encoder) {
                    match $width::try_from(count) {
                        Ok(count) => to.$width(count),
                        Err(_) => to.refuse("too many members for the width of their count"),
                    }
                }
            }
        )*
    };
}

counts! { u8 u32 u64 }

/// A count of type `C` and as many values of `E`, which take at least one byte each.
pub(crate) struct Counted<C, E>(PhantomData<(C, E)>);

impl<'a, C: Count, E: Codec<'a, Value: Shown>> Codec<'a> for Counted<C, E> {
    type Value = Vec<E::Value>;

    fn read(from: &mut Decoder<'a>) -> Result<Self::Value, Fault> {
        let count = C::read(from)?;
        // Memory grows with the bytes at hand, not with the count that a file claims.
        if count > from.remaining() as u64 {
            return Err(from.fault("as many members as counted"));
        }
        (0..count).map(|_| E::read(from)).collect()
    }

    #[inline]
    fn write(values: &Self::Value, to: &mut Encoder) {
        C::write(values.len(), to);
        for value in values {
            E::write(value, to);
        }
    }

    fn show<'v>(values: &'v Self::Value) -> Value<'v>
    where
        'a: 'v,
    {
        E::Value::show(values)
    }

    fn ids(values: &Self::Value, f: &mut dyn FnMut(Id)) {
        for value in values {
            E::ids(value, f);
        }
    }
}

/// An owned value that occurs in lists.
pub(crate) trait Shown: Sized {
    fn show(values: &[Self]) -> Value<'_>;
}

impl Shown for u32 {
    fn show(values: &[Self]) -> Value<'_> {
        Value::U32s(values)
    }
}

impl Shown for u64 {
    fn show(values: &[Self]) -> Value<'_> {
        Value::U64s(values)
    }
}

impl Shown for super::IoProperty {
    fn show(values: &[Self]) -> Value<'_> {
        Value::IoProperties(values)
    }
}

/// A count of type `C` and a list of `E` that stays encoded.
pub(crate) struct Borrowed<C, E>(PhantomData<(C, E)>);

impl<'a, C: Count, E: Element + 'a> Codec<'a> for Borrowed<C, E> {
    type Value = List<'a, E>;

    fn read(from: &mut Decoder<'a>) -> Result<Self::Value, Fault> {
        let count = C::read(from)?;
        // Each value takes at least one byte, so that a wrong count cannot keep the check below busy.
        match u32::try_from(count) {
            Ok(count) if count as usize <= from.remaining() => List::read(from, count),
            _ => Err(from.fault("as many values as counted")),
        }
    }

    #[inline]
    fn write(values: &Self::Value, to: &mut Encoder) {
        C::write(values.len(), to);
        for value in values {
            value.write(to);
        }
    }

    fn show<'v>(values: &'v Self::Value) -> Value<'v>
    where
        'a: 'v,
    {
        E::show(*values)
    }

    fn translated<'t: 'a>(values: Self::Value, by: &mut Translator<'t>) -> Self::Value {
        values.translated(by.maps)
    }
}
