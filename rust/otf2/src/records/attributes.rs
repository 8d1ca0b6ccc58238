//! Attribute lists of events.

use super::codec::Codec;
use super::value::TypedValue;
use crate::enums::{MappingType, Type};
use crate::idmap::IdMaps;
use crate::wire::{Decoder, Encoder, Fault};

/// Number of the attribute list record.
pub(crate) const ATTRIBUTE_LIST: u8 = 6;
/// Number of the timestamp record.
pub(crate) const TIMESTAMP: u8 = 5;
/// Size of the timestamp record in bytes.
pub(crate) const TIMESTAMP_SIZE: usize = 9;

/// An attribute of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AttributeValue {
    /// Id of the attribute.
    pub id: u32,
    /// Its value.
    pub value: TypedValue,
}

/// The attributes of one event, decoded when iterated over.
#[derive(Debug, Clone, Copy)]
pub struct Attributes<'a> {
    repr: Repr<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Repr<'a> {
    /// From the first attribute list record to the begin of the event. Each list in between was checked, so that
    /// iteration cannot fail.
    Encoded {
        from: Decoder<'a>,
        maps: &'a IdMaps,
    },
    Given(&'a [AttributeValue]),
}

impl<'a> Attributes<'a> {
    /// No attributes.
    pub const NONE: Attributes<'static> = Attributes::new(&[]);

    /// Attributes to be written.
    pub const fn new(attributes: &'a [AttributeValue]) -> Self {
        Self { repr: Repr::Given(attributes) }
    }

    /// Whether there are no attributes.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// The attributes in file order.
    pub const fn iter(&self) -> AttributesIter<'a> {
        match self.repr {
            Repr::Encoded { from, maps } => AttributesIter { rest: Rest::Encoded { from, maps, list: None, left: 0 } },
            Repr::Given(attributes) => AttributesIter { rest: Rest::Given(attributes) },
        }
    }

    /// Attributes in the bytes that `from` decodes.
    pub(crate) const fn encoded(from: Decoder<'a>, maps: &'a IdMaps) -> Self {
        Self { repr: Repr::Encoded { from, maps } }
    }

    /// Checks one list, starting after its record number.
    pub(crate) fn check(from: &mut Decoder<'_>) -> Result<(), Fault> {
        let mut list = from.payload()?;
        for _ in 0..list.u32()? {
            read(&mut list)?;
        }
        Ok(())
    }

    /// Whether there certainly are none.
    #[inline]
    pub(crate) fn are_none(&self) -> bool {
        matches!(self.repr, Repr::Given([]))
    }

    /// Appends the list record; nothing if it would be empty.
    #[inline]
    pub(crate) fn write(&self, to: &mut Encoder) {
        if !self.are_none() {
            self.write_list(to);
        }
    }

    fn write_list(&self, to: &mut Encoder) {
        let count = self.iter().count();
        if count == 0 {
            return;
        }
        to.u8(ATTRIBUTE_LIST);
        to.payload(|to| {
            to.u32(count as u32);
            for attribute in self {
                to.u32(attribute.id);
                TypedValue::write(&attribute.value, to);
            }
        });
    }
}

fn read(from: &mut Decoder<'_>) -> Result<AttributeValue, Fault> {
    let id = from.u32()?;
    let kind = Type(from.u8()?);
    Ok(AttributeValue { id, value: TypedValue::read_as(kind, from)? })
}

impl<'a> IntoIterator for &Attributes<'a> {
    type Item = AttributeValue;
    type IntoIter = AttributesIter<'a>;

    fn into_iter(self) -> AttributesIter<'a> {
        self.iter()
    }
}

/// Iterator over [`Attributes`].
#[derive(Debug, Clone)]
pub struct AttributesIter<'a> {
    rest: Rest<'a>,
}

#[derive(Debug, Clone)]
enum Rest<'a> {
    Encoded { from: Decoder<'a>, maps: &'a IdMaps, list: Option<Decoder<'a>>, left: u32 },
    Given(&'a [AttributeValue]),
}

impl Iterator for AttributesIter<'_> {
    type Item = AttributeValue;

    fn next(&mut self) -> Option<AttributeValue> {
        match &mut self.rest {
            Rest::Given(attributes) => {
                let (first, rest) = attributes.split_first()?;
                *attributes = rest;
                Some(*first)
            }
            Rest::Encoded { from, maps, list, left } => {
                while *left == 0 {
                    // Several lists before an event accumulate, with timestamps between them.
                    match from.u8().ok()? {
                        ATTRIBUTE_LIST => {
                            let mut next = from.payload().ok()?;
                            *left = next.u32().ok()?;
                            *list = Some(next);
                        }
                        _ => {
                            from.full_u64().ok()?;
                        }
                    }
                }
                *left -= 1;
                let AttributeValue { id, value } = read(list.as_mut()?).ok()?;
                Some(AttributeValue {
                    id: maps.get::<{ MappingType::ATTRIBUTE.0 }>(id),
                    value: TypedValue { kind: value.kind, bits: maps.value(value.kind, value.bits) },
                })
            }
        }
    }
}
