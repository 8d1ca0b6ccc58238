//! Primitive encodings of the format: bytes to numbers and back, checked at every step.

mod decoder;
mod encoder;

pub use decoder::Decoder;
pub(crate) use decoder::{WINDOW, Window, load};
pub use encoder::Encoder;

/// A fault that the decoder found. Becomes an [`Error`](crate::Error) where file and record are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// Position in the decoded bytes.
    pub offset: usize,
    /// What the format requires there.
    pub expected: &'static str,
    /// Whether the bytes as such ended, as opposed to a record that contradicts itself.
    pub cut: bool,
}

/// Byte order of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ByteOrder {
    /// Least significant byte first.
    #[default]
    Little,
    /// Most significant byte first.
    Big,
}

impl ByteOrder {
    /// The order that the second byte of a chunk denotes.
    pub const fn from_mark(mark: u8) -> Option<Self> {
        match mark {
            0x42 => Some(ByteOrder::Little),
            0x23 => Some(ByteOrder::Big),
            _ => None,
        }
    }

    /// The byte that denotes this order.
    pub const fn mark(self) -> u8 {
        match self {
            ByteOrder::Little => 0x42,
            ByteOrder::Big => 0x23,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ORDERS: [ByteOrder; 2] = [ByteOrder::Little, ByteOrder::Big];

    fn encoded(order: ByteOrder, write: impl FnOnce(&mut Encoder)) -> Vec<u8> {
        let mut encoder = Encoder::new(order);
        write(&mut encoder);
        encoder.bytes().to_owned()
    }

    #[test]
    fn compressed_integers_as_specified() {
        let little = |write: fn(&mut Encoder)| encoded(ByteOrder::Little, write);
        assert_eq!(little(|to| to.u64(0)), [0]);
        assert_eq!(little(|to| to.u64(255)), [1, 0xFF]);
        assert_eq!(little(|to| to.u64(256)), [2, 0, 1]);
        assert_eq!(little(|to| to.u32(u32::MAX)), [0xFF]);
        assert_eq!(little(|to| to.u64(u64::from(u32::MAX))), [4, 0xFF, 0xFF, 0xFF, 0xFF]);
        assert_eq!(little(|to| to.u64(u64::MAX)), [0xFF]);
        let minus_two = [8, 0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF];
        assert_eq!(little(|to| to.i64(-2)), minus_two);
        assert_eq!(encoded(ByteOrder::Big, |to| to.u64(0x0102)), [2, 1, 2]);
    }

    #[test]
    fn encodings_need_not_be_minimal() {
        for order in ORDERS {
            for padding in [0, 20] {
                let mut bytes = vec![4, 0, 0, 0, 0];
                bytes[if order == ByteOrder::Little { 1 } else { 4 }] = 7;
                bytes.resize(bytes.len() + padding, 0xAA);
                assert_eq!(Decoder::new(&bytes, order).u32(), Ok(7));
            }
        }
        // No sign extension.
        assert_eq!(Decoder::new(&[1, 0x80], ByteOrder::Little).i64(), Ok(128));
        assert_eq!(Decoder::new(&[0xFF], ByteOrder::Little).i64(), Ok(-1));
    }

    #[test]
    fn impossible_sizes_are_faults() {
        for padding in [0, 20] {
            let mut bytes = vec![5];
            bytes.resize(6 + padding, 0);
            let mut from = Decoder::new(&bytes, ByteOrder::Little);
            let fault = from.u32().unwrap_err();
            assert!(!fault.cut && fault.offset == 0 && fault.expected.contains("32-bit"));
            assert_eq!(from.u64(), Ok(0));
            let bytes = vec![9; 10 + padding];
            assert!(Decoder::new(&bytes, ByteOrder::Little).u64().is_err());
        }
    }

    #[test]
    fn nothing_is_read_beyond_a_record() {
        let bytes = [2, 8, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];
        let mut payload = Decoder::new(&bytes, ByteOrder::Little).payload().unwrap();
        let fault = payload.u64().unwrap_err();
        assert!(!fault.cut, "the record contradicts itself, the file goes on");
        let fault = Decoder::new(&bytes[..2], ByteOrder::Little).payload().unwrap_err();
        assert!(fault.cut && fault.offset == 0);
    }

    #[test]
    fn long_payloads() {
        for order in ORDERS {
            for length in [0, 254, 255, 256, 70_000] {
                let bytes = encoded(order, |to| to.payload(|to| to.raw(&vec![7; length])));
                let mut from = Decoder::new(&bytes, order);
                assert_eq!(from.payload().unwrap().rest(), vec![7; length]);
                assert!(from.is_empty());
            }
        }
    }

    proptest! {
        #[test]
        fn primitives_come_back(
            small: u32, large: u64, signed: i64, narrow: i32, text in "[^\0]*", shift in 0..64, padding in 0_usize..12,
        ) {
            for order in ORDERS {
                let (large, signed) = (large >> shift, signed >> shift);
                let mut bytes = encoded(order, |to| {
                    to.u32(small);
                    to.u64(large);
                    to.i64(signed);
                    to.i32(narrow);
                    to.text(&text);
                    to.u16(small as u16);
                    to.full_u32(small);
                    to.full_u64(large);
                });
                let length = bytes.len();
                bytes.resize(length + padding, 0xFF);
                let mut from = Decoder::new(&bytes, order).until(length);
                prop_assert_eq!(from.u32(), Ok(small));
                prop_assert_eq!(from.u64(), Ok(large));
                prop_assert_eq!(from.i64(), Ok(signed));
                prop_assert_eq!(from.u32(), Ok(narrow as u32));
                prop_assert_eq!(from.text(), Ok(text.as_bytes()));
                prop_assert_eq!(from.u16(), Ok(small as u16));
                prop_assert_eq!(from.full_u32(), Ok(small));
                prop_assert_eq!(from.full_u64(), Ok(large));
                prop_assert!(from.is_empty());
            }
        }
    }
}
