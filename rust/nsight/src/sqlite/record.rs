//! Rows: a header with the type of each value, then the values.

use std::borrow::Cow;

use super::Encoding;

/// A number of 1 to 9 bytes, and its length.
#[inline]
pub(super) fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    // Nearly all have one.
    match bytes.first() {
        Some(byte) if byte & 0x80 == 0 => Some((u64::from(*byte), 1)),
        _ => long_varint(bytes),
    }
}

fn long_varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0;
    for (at, byte) in bytes.iter().take(8).enumerate() {
        value = value << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((value, at + 1));
        }
    }
    Some((value << 8 | u64::from(*bytes.get(8)?), 9))
}

/// A value in a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Field {
    #[default]
    Null,
    /// The number of the row.
    RowNumber,
    Constant(i64),
    /// Offset and length.
    Integer(usize, usize),
    Real(usize),
    Text(usize, usize),
    Blob(usize, usize),
}

/// Which columns of a record are wanted.
pub(super) struct Record {
    /// By column up to the last one that is wanted: where it goes.
    places: Vec<Option<usize>>,
    row_number: Option<usize>,
}

impl Record {
    pub(super) fn new(wanted: &[Option<usize>], row_number: Option<usize>) -> Self {
        let count = wanted.iter().flatten().max().map_or(0, |last| last + 1);
        let mut places = vec![None; count];
        for (place, column) in wanted.iter().enumerate() {
            if let Some(column) = column {
                places[*column] = Some(place);
            }
        }
        Self { places, row_number }
    }

    /// Finds the wanted values of a payload; whether it can be read.
    pub(super) fn find(&self, payload: &[u8], fields: &mut [Field]) -> bool {
        fields.fill(Field::Null);
        self.walk(payload, fields).is_some()
    }

    fn walk(&self, payload: &[u8], fields: &mut [Field]) -> Option<()> {
        let (length, start) = varint(payload)?;
        let length = usize::try_from(length).ok().filter(|length| *length <= payload.len() && *length >= start)?;
        let (mut at, mut value) = (start, length);
        for (column, place) in self.places.iter().enumerate() {
            if at >= length {
                break;
            }
            let (kind, size) = varint(&payload[at..length])?;
            at += size;
            let (field, size) = field(kind, value)?;
            let end = value.checked_add(size).filter(|end| *end <= payload.len())?;
            value = end;
            let field = if self.row_number == Some(column) && field == Field::Null { Field::RowNumber } else { field };
            if let Some(place) = place {
                fields[*place] = field;
            }
        }
        Some(())
    }
}

/// The value of a type at an offset, and its length.
fn field(kind: u64, at: usize) -> Option<(Field, usize)> {
    Some(match kind {
        0 => (Field::Null, 0),
        1..=4 => (Field::Integer(at, kind as usize), kind as usize),
        5 => (Field::Integer(at, 6), 6),
        6 => (Field::Integer(at, 8), 8),
        7 => (Field::Real(at), 8),
        8 | 9 => (Field::Constant(kind as i64 - 8), 0),
        10 | 11 => return None,
        _ => {
            let length = usize::try_from((kind - 12) / 2).ok()?;
            (if kind.is_multiple_of(2) { Field::Blob(at, length) } else { Field::Text(at, length) }, length)
        }
    })
}

/// The wanted values of a row.
#[derive(Debug)]
pub struct Row<'a> {
    payload: &'a [u8],
    fields: &'a [Field],
    number: i64,
    encoding: Encoding,
    is_odd: bool,
}

impl<'a> Row<'a> {
    pub(super) const fn new(payload: &'a [u8], fields: &'a [Field], number: i64, encoding: Encoding) -> Self {
        Self { payload, fields, number, encoding, is_odd: false }
    }

    pub(super) const fn is_odd(&self) -> bool {
        self.is_odd
    }

    /// Says that the row cannot be used.
    pub const fn leave_out(&mut self) {
        self.is_odd = true;
    }

    /// Whether a value is null.
    #[must_use]
    pub fn is_null(&self, column: usize) -> bool {
        self.fields[column] == Field::Null
    }

    /// A whole number; nothing if it is null, or if it is not one.
    pub fn integer(&mut self, column: usize) -> Option<i64> {
        let value = match self.fields[column] {
            Field::Null => return None,
            Field::RowNumber => Some(self.number),
            Field::Constant(value) => Some(value),
            Field::Integer(at, length) => Some(big_endian(&self.payload[at..at + length])),
            Field::Real(at) => whole(f64::from_bits(big_endian(&self.payload[at..at + 8]).cast_unsigned())),
            Field::Text(..) => self.text(column).and_then(|text| text.trim().parse().ok()),
            Field::Blob(..) => None,
        };
        self.is_odd |= value.is_none();
        value
    }

    /// Text; nothing if it is null or something else.
    #[must_use]
    pub fn text(&self, column: usize) -> Option<Cow<'a, str>> {
        let Field::Text(at, length) = self.fields[column] else { return None };
        let bytes = &self.payload[at..at + length];
        let wide = |of: fn([u8; 2]) -> u16| {
            let units = bytes.chunks_exact(2).map(|pair| of([pair[0], pair[1]]));
            Cow::Owned(char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect())
        };
        Some(match self.encoding {
            Encoding::Utf8 => String::from_utf8_lossy(bytes),
            Encoding::Utf16Little => wide(u16::from_le_bytes),
            Encoding::Utf16Big => wide(u16::from_be_bytes),
        })
    }

    /// Bytes; nothing if it is null or something else.
    #[must_use]
    pub fn bytes(&self, column: usize) -> Option<&'a [u8]> {
        match self.fields[column] {
            Field::Blob(at, length) => Some(&self.payload[at..at + length]),
            _ => None,
        }
    }
}

/// A number in the order of the network, with a sign.
fn big_endian(bytes: &[u8]) -> i64 {
    let first = bytes.first().map_or(0, |first| i64::from(first.cast_signed()));
    bytes.iter().skip(1).fold(first, |value, byte| value << 8 | i64::from(*byte))
}

fn whole(value: f64) -> Option<i64> {
    let is_exact = value.fract() == 0.0 && value.abs() < 9e15;
    is_exact.then_some(value as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_as_many_bytes_as_they_need() {
        assert_eq!(varint(&[0x7f]), Some((127, 1)));
        assert_eq!(varint(&[0x81, 0x00]), Some((128, 2)));
        assert_eq!(varint(&[0xff; 9]), Some((u64::MAX, 9)));
        assert_eq!(varint(&[0x80]), None);
        assert_eq!(big_endian(&[0xff, 0xfe]), -2);
        assert_eq!(big_endian(&[0x00, 0x80, 0x00]), 32_768);
    }

    #[test]
    fn values_are_read_as_what_they_should_be() {
        // A row number, 300, 2.0, the text "7", null, and the text "x".
        let header = [7, 0, 2, 7, 15, 0, 15];
        let mut payload = header.to_vec();
        payload.extend(300_i16.to_be_bytes());
        payload.extend(2.0_f64.to_be_bytes());
        payload.extend(b"7x");
        let columns: Vec<Option<usize>> = (0..7).map(Some).collect();
        let mut fields = [Field::Null; 7];
        let record = Record::new(&columns, Some(0));
        assert!(record.find(&payload, &mut fields));
        let mut row = Row::new(&payload, &fields, 41, Encoding::Utf8);
        let values: Vec<Option<i64>> = (0..5).map(|column| row.integer(column)).collect();
        assert_eq!(values, [Some(41), Some(300), Some(2), Some(7), None]);
        assert!(!row.is_odd());
        assert_eq!((row.text(5).as_deref(), row.text(6)), (Some("x"), None), "columns added later are null");
        assert_eq!((row.integer(5), row.is_odd()), (None, true));
        for length in 0..payload.len() {
            assert!(!record.find(&payload[..length], &mut fields), "{length}");
        }
    }
}
