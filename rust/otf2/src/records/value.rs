//! Values of fields and attributes.

use crate::enums::{MappingType, Type};
use crate::idmap::IdMaps;
use crate::wire::{Decoder, Encoder, Fault};

/// A value whose type is known only at run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TypedValue {
    /// Type of the value.
    pub kind: Type,
    /// Its bits: integers of any width zero-extended, floating point numbers as IEEE bits, references as ids.
    pub bits: u64,
}

impl TypedValue {
    /// The value as field value.
    pub fn value(self) -> Value<'static> {
        let bits = self.bits;
        match self.kind {
            Type::INT8 => Value::I64(i64::from(bits as i8)),
            Type::INT16 => Value::I64(i64::from(bits as i16)),
            Type::INT32 => Value::I64(i64::from(bits as i32)),
            Type::INT64 => Value::I64(bits as i64),
            Type::FLOAT => Value::F64(f64::from(f32::from_bits(bits as u32))),
            Type::DOUBLE => Value::F64(f64::from_bits(bits)),
            _ => Value::U64(bits),
        }
    }

    /// Reads a value of the given type as attributes and properties hold it.
    pub(crate) fn read_as(kind: Type, from: &mut Decoder<'_>) -> Result<Self, Fault> {
        let bits = match kind {
            Type::UINT8 | Type::INT8 => u64::from(from.u8()?),
            Type::UINT16 | Type::INT16 => u64::from(from.u16()?),
            Type::FLOAT => u64::from(from.full_u32()?),
            Type::DOUBLE => from.full_u64()?,
            _ if kind.is_32_bit() => u64::from(from.u32()?),
            _ => from.u64()?,
        };
        Ok(Self { kind, bits })
    }

    /// Writes the value without its type.
    pub(crate) fn write_bits(self, to: &mut Encoder) {
        match self.kind {
            Type::UINT8 | Type::INT8 => to.u8(self.bits as u8),
            Type::UINT16 | Type::INT16 => to.u16(self.bits as u16),
            Type::FLOAT => to.full_u32(self.bits as u32),
            Type::DOUBLE => to.full_u64(self.bits),
            Type::INT32 => to.i32(self.bits as i32),
            Type::INT64 => to.i64(self.bits as i64),
            _ if self.kind.is_32_bit() => to.u32(self.bits as u32),
            _ => to.u64(self.bits),
        }
    }
}

impl Type {
    /// Whether values take a compressed 32-bit integer.
    const fn is_32_bit(self) -> bool {
        match self {
            Type::UINT32 | Type::INT32 => true,
            Type::LOCATION => false,
            Type(kind) => kind >= Type::STRING.0 && kind <= Type::LOCATION_GROUP.0,
        }
    }
}

/// A field of a record, for tables that treat all records alike.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// Unsigned, 8 bits; an id of an I/O paradigm too.
    U8(u8),
    /// Unsigned, 32 bits; most ids.
    U32(u32),
    /// Unsigned, 64 bits.
    U64(u64),
    /// Signed; a time in ticks too.
    I64(i64),
    /// Floating point.
    F64(f64),
    /// Text.
    Str(&'a str),
    /// A named number.
    Enum {
        /// The number.
        number: u32,
        /// Its name; combined flags and numbers unknown to this version have none.
        name: Option<&'static str>,
    },
    /// A value with its own type.
    Typed(TypedValue),
    /// Ids or ranks.
    U32s(&'a [u32]),
    /// Ids, or members of a group.
    U64s(&'a [u64]),
    /// Values of a metric event.
    Metrics(MetricValues<'a>),
    /// Ids of strings in an event.
    Strings(StringRefs<'a>),
    /// Values of the properties of an I/O paradigm.
    IoProperties(&'a [super::IoProperty]),
    /// Entries of a translation table.
    IdPairs(&'a super::IdPairs),
}

/// A variable number of values in an event, decoded when iterated over.
#[derive(Debug, Clone, Copy)]
pub struct List<'a, T> {
    repr: Repr<'a, T>,
}

#[derive(Debug, Clone, Copy)]
enum Repr<'a, T> {
    /// Checked when the event was decoded, so that iteration cannot fail.
    Encoded {
        from: Decoder<'a>,
        count: u32,
        maps: &'a IdMaps,
    },
    Given(&'a [T]),
}

/// Types and raw values of a metric event, in the order of the members of its class.
pub type MetricValues<'a> = List<'a, TypedValue>;

/// Ids of strings in an event.
pub type StringRefs<'a> = List<'a, u32>;

#[expect(private_bounds, reason = "the two instances have public names")]
impl<'a, T: Element> List<'a, T> {
    /// A list to be written.
    pub const fn new(values: &'a [T]) -> Self {
        Self { repr: Repr::Given(values) }
    }

    /// Number of values.
    pub const fn len(&self) -> usize {
        match &self.repr {
            Repr::Encoded { count, .. } => *count as usize,
            Repr::Given(values) => values.len(),
        }
    }

    /// Whether there are no values.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values in order.
    pub const fn iter(&self) -> ListIter<'a, T> {
        ListIter { rest: self.repr }
    }

    pub(crate) fn read(from: &mut Decoder<'a>, count: u32) -> Result<Self, Fault> {
        let begin = *from;
        for _ in 0..count {
            T::read(from)?;
        }
        Ok(Self { repr: Repr::Encoded { from: begin, count, maps: IdMaps::IDENTITY } })
    }

    pub(crate) fn translated(mut self, by: &'a IdMaps) -> Self {
        if let Repr::Encoded { maps, .. } = &mut self.repr {
            *maps = by;
        }
        self
    }
}

impl<T: Element> PartialEq for List<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<'a, T: Element> IntoIterator for &List<'a, T> {
    type Item = T;
    type IntoIter = ListIter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Iterator over the values of a [`List`].
#[derive(Debug, Clone)]
pub struct ListIter<'a, T> {
    rest: Repr<'a, T>,
}

impl<T: Element> Iterator for ListIter<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        match &mut self.rest {
            Repr::Encoded { from, count, maps } => {
                *count = count.checked_sub(1)?;
                T::read(from).ok().map(|value| value.translated(maps))
            }
            Repr::Given(values) => {
                let (first, rest) = values.split_first()?;
                *values = rest;
                Some(*first)
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = List { repr: self.rest }.len();
        (left, Some(left))
    }
}

impl<T: Element> ExactSizeIterator for ListIter<'_, T> {}

/// A value of a list in an event.
pub(crate) trait Element: Copy + PartialEq {
    fn read(from: &mut Decoder<'_>) -> Result<Self, Fault>;
    fn write(self, to: &mut Encoder);
    fn translated(self, maps: &IdMaps) -> Self;
    fn show(list: List<'_, Self>) -> Value<'_>;
}

impl Element for TypedValue {
    fn read(from: &mut Decoder<'_>) -> Result<Self, Fault> {
        Ok(Self { kind: Type(from.u8()?), bits: from.u64()? })
    }

    fn write(self, to: &mut Encoder) {
        to.u8(self.kind.0);
        to.u64(self.bits);
    }

    fn translated(self, _maps: &IdMaps) -> Self {
        self
    }

    fn show(list: List<'_, Self>) -> Value<'_> {
        Value::Metrics(list)
    }
}

impl Element for u32 {
    fn read(from: &mut Decoder<'_>) -> Result<Self, Fault> {
        from.u32()
    }

    fn write(self, to: &mut Encoder) {
        to.u32(self);
    }

    fn translated(self, maps: &IdMaps) -> Self {
        maps.get::<{ MappingType::STRING.0 }>(self)
    }

    fn show(list: List<'_, Self>) -> Value<'_> {
        Value::Strings(list)
    }
}
