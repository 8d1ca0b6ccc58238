//! Primitive encodings of the format: bytes to numbers and back, checked at every step.

/// What the decoder stumbled over. Becomes an [`Error`](crate::Error) where file and record are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// Position in the decoded bytes.
    pub offset: usize,
    /// What the format demands there.
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
    /// The order that the second byte of a chunk stands for.
    #[must_use]
    pub const fn from_mark(mark: u8) -> Option<Self> {
        match mark {
            0x42 => Some(ByteOrder::Little),
            0x23 => Some(ByteOrder::Big),
            _ => None,
        }
    }

    /// The byte that stands for this order.
    #[must_use]
    pub const fn mark(self) -> u8 {
        match self {
            ByteOrder::Little => 0x42,
            ByteOrder::Big => 0x23,
        }
    }
}

/// Reads primitives from bytes, never beyond a limit that may lie before the end of the bytes.
#[derive(Debug, Clone, Copy)]
pub struct Decoder<'a> {
    bytes: &'a [u8],
    position: usize,
    end: usize,
    order: ByteOrder,
}

/// Bits that the size byte 0..=8 of a compressed integer selects.
const MASK: [u64; 9] =
    [0, 0xFF, 0xFFFF, 0xFF_FFFF, 0xFFFF_FFFF, 0xFF_FFFF_FFFF, 0xFFFF_FFFF_FFFF, 0xFF_FFFF_FFFF_FFFF, u64::MAX];

impl<'a> Decoder<'a> {
    /// A decoder at the begin of `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8], order: ByteOrder) -> Self {
        Self { bytes, position: 0, end: bytes.len(), order }
    }

    /// The same bytes from `position` on.
    #[must_use]
    pub fn at(mut self, position: usize) -> Self {
        self.position = position.min(self.end);
        self
    }

    /// The same bytes, ending at `end` at the latest.
    #[must_use]
    pub fn until(mut self, end: usize) -> Self {
        self.end = self.end.min(end).max(self.position);
        self
    }

    /// The same bytes, read in another order.
    #[must_use]
    pub const fn with_order(mut self, order: ByteOrder) -> Self {
        self.order = order;
        self
    }

    /// Byte order of the numbers.
    #[must_use]
    pub const fn order(&self) -> ByteOrder {
        self.order
    }

    /// Moves on by `count` bytes, to the limit at most.
    #[inline]
    pub fn skip(&mut self, count: usize) {
        self.position += count.min(self.remaining());
    }

    /// Position in the bytes.
    #[must_use]
    pub const fn position(&self) -> usize {
        self.position
    }

    /// Number of bytes before the limit.
    #[must_use]
    pub const fn remaining(&self) -> usize {
        self.end - self.position
    }

    /// Whether the limit is reached.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.position >= self.end
    }

    /// The byte at the current position.
    #[must_use]
    pub fn peek(&self) -> Option<u8> {
        if self.is_empty() { None } else { self.bytes.get(self.position).copied() }
    }

    /// A fault at the current position.
    #[must_use]
    pub const fn fault(&self, expected: &'static str) -> Fault {
        Fault { offset: self.position, expected, cut: false }
    }

    #[cold]
    const fn ran_out(&self, expected: &'static str) -> Fault {
        Fault { offset: self.position, expected, cut: self.end == self.bytes.len() }
    }

    /// The next `count` bytes.
    #[inline(always)]
    pub fn take(&mut self, count: usize, expected: &'static str) -> Result<&'a [u8], Fault> {
        if count > self.remaining() {
            return Err(self.ran_out(expected));
        }
        let taken = &self.bytes[self.position..self.position + count];
        self.position += count;
        Ok(taken)
    }

    /// One raw byte.
    #[inline(always)]
    pub fn u8(&mut self) -> Result<u8, Fault> {
        Ok(self.take(1, "a byte")?[0])
    }

    /// Two raw bytes.
    pub fn u16(&mut self) -> Result<u16, Fault> {
        let raw = self.take(2, "2 bytes")?;
        let raw = [raw[0], raw[1]];
        Ok(match self.order {
            ByteOrder::Little => u16::from_le_bytes(raw),
            ByteOrder::Big => u16::from_be_bytes(raw),
        })
    }

    /// Four raw bytes.
    pub fn full_u32(&mut self) -> Result<u32, Fault> {
        let raw = self.take(4, "4 bytes")?;
        let raw = [raw[0], raw[1], raw[2], raw[3]];
        Ok(match self.order {
            ByteOrder::Little => u32::from_le_bytes(raw),
            ByteOrder::Big => u32::from_be_bytes(raw),
        })
    }

    /// Eight raw bytes.
    #[inline]
    pub fn full_u64(&mut self) -> Result<u64, Fault> {
        let raw = load(self.take(8, "8 bytes")?);
        Ok(match self.order {
            ByteOrder::Little => raw,
            ByteOrder::Big => raw.swap_bytes(),
        })
    }

    /// A compressed unsigned integer of 32 bits.
    #[inline(always)]
    pub fn u32(&mut self) -> Result<u32, Fault> {
        Ok(self.compressed::<4>()? as u32)
    }

    /// A compressed unsigned integer of 64 bits.
    #[inline(always)]
    pub fn u64(&mut self) -> Result<u64, Fault> {
        self.compressed::<8>()
    }

    /// A compressed signed integer of 64 bits.
    #[inline(always)]
    pub fn i64(&mut self) -> Result<i64, Fault> {
        Ok(self.u64()? as i64)
    }

    #[inline(always)]
    fn compressed<const WIDTH: usize>(&mut self) -> Result<u64, Fault> {
        // One load covers the longest encoding wherever nine bytes are at hand; what lies behind the number is masked.
        if let Some(window) = self.bytes.get(self.position..).and_then(|rest| rest.first_chunk::<9>()) {
            let size = usize::from(window[0]);
            if size <= WIDTH && size < self.remaining() {
                let raw = load(&window[1..]);
                self.position += 1 + size;
                return Ok(match self.order {
                    ByteOrder::Little => raw & MASK[size],
                    ByteOrder::Big => raw.swap_bytes().checked_shr(64 - 8 * size as u32).unwrap_or(0),
                });
            }
        }
        self.compressed_bytewise::<WIDTH>()
    }

    #[cold]
    fn compressed_bytewise<const WIDTH: usize>(&mut self) -> Result<u64, Fault> {
        let expected = if WIDTH == 4 { "a compressed 32-bit integer" } else { "a compressed 64-bit integer" };
        let size = self.peek().ok_or(self.ran_out(expected))?;
        if size == 0xFF {
            self.position += 1;
            return Ok(MASK[WIDTH]);
        }
        if usize::from(size) > WIDTH {
            return Err(self.fault(if WIDTH == 4 {
                "a compressed 32-bit integer (size byte 0 to 4 or 255)"
            } else {
                "a compressed 64-bit integer (size byte 0 to 8 or 255)"
            }));
        }
        let encoded = self.take(1 + usize::from(size), expected)?;
        let join = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        Ok(match self.order {
            ByteOrder::Little => encoded[1..].iter().rev().fold(0, join),
            ByteOrder::Big => encoded[1..].iter().fold(0, join),
        })
    }

    /// Bytes up to the next NUL, which is consumed.
    pub fn text(&mut self) -> Result<&'a [u8], Fault> {
        let rest = &self.bytes[self.position..self.end];
        let length = rest.iter().position(|byte| *byte == 0).ok_or(self.ran_out("a string with its final NUL"))?;
        self.position += length + 1;
        Ok(&rest[..length])
    }

    /// Reads the length of a record; gives a decoder of the payload and moves on to what follows it.
    #[inline(always)]
    pub fn payload(&mut self) -> Result<Decoder<'a>, Fault> {
        let begin = self.position;
        let length = match self.u8()? {
            0xFF => self.full_u64()?,
            short => u64::from(short),
        };
        if length > self.remaining() as u64 {
            self.position = begin;
            return Err(self.ran_out("as many bytes as the length of the record says"));
        }
        let mut payload = *self;
        self.position += length as usize;
        payload.end = self.position;
        Ok(payload)
    }

    /// The bytes that come next, if there are enough of them and the least significant byte of a number comes first.
    #[inline(always)]
    pub(crate) fn window(&self) -> Option<&'a [u8; WINDOW]> {
        if self.order == ByteOrder::Big {
            return None;
        }
        self.rest().first_chunk()
    }

    /// All bytes before the limit.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.position..self.end]
    }
}

/// Reads the numbers of a short record from a window of the bytes, least significant byte first. Whatever a number
/// claims, it is taken from within the window, so that no number is checked alone: that the record stayed within its
/// bounds shows at its end. `None` leaves the record to a [`Decoder`], which says what is wrong, if anything is.
#[derive(Debug)]
pub(crate) struct Window<'a> {
    bytes: &'a [u8; WINDOW],
    position: usize,
}

/// Positions in a window at which a number can begin; a power of two.
const STARTS: usize = 64;

/// Size of a window in bytes: a number has nine at most.
pub(crate) const WINDOW: usize = STARTS + 8;

#[expect(clippy::unnecessary_wraps, reason = "what reads a field asks for all kinds of numbers alike")]
impl<'a> Window<'a> {
    /// A window from `position` on.
    #[inline(always)]
    pub(crate) const fn new(bytes: &'a [u8; WINDOW], position: usize) -> Self {
        Self { bytes, position }
    }

    /// Where what was read ends, if it all lies in the window.
    #[inline(always)]
    pub(crate) fn end(&self) -> Option<usize> {
        self.end_within(self.position)
    }

    /// The end of a record, if it lies in the window and so does all that was read in the record.
    #[inline(always)]
    pub(crate) fn end_within(&self, end: usize) -> Option<usize> {
        (self.position <= end && end <= STARTS).then_some(end)
    }

    /// Reads the length of a record; returns the position behind it.
    #[inline(always)]
    pub(crate) fn payload(&mut self) -> Option<usize> {
        let length = self.u8()?;
        (length != 0xFF).then_some(self.position + usize::from(length))
    }

    /// One raw byte.
    #[inline(always)]
    pub(crate) fn u8(&mut self) -> Option<u8> {
        let byte = self.bytes[self.position % STARTS];
        self.position += 1;
        Some(byte)
    }

    /// Eight raw bytes.
    #[inline(always)]
    pub(crate) fn full_u64(&mut self) -> Option<u64> {
        let raw = load(&self.bytes[self.position % STARTS..]);
        self.position += 8;
        Some(raw)
    }

    /// A compressed unsigned integer of 32 bits.
    #[inline(always)]
    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.compressed::<4>().map(|number| number as u32)
    }

    /// A compressed unsigned integer of 64 bits.
    #[inline(always)]
    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.compressed::<8>()
    }

    /// A compressed signed integer of 64 bits.
    #[inline(always)]
    pub(crate) fn i64(&mut self) -> Option<i64> {
        self.u64().map(|number| number as i64)
    }

    #[inline(always)]
    fn compressed<const WIDTH: usize>(&mut self) -> Option<u64> {
        let at = self.position % STARTS;
        let size = usize::from(self.bytes[at]);
        if size <= WIDTH {
            self.position += 1 + size;
            return Some(load(&self.bytes[at + 1..]) & MASK[size]);
        }
        self.position += 1;
        (size == 0xFF).then_some(MASK[WIDTH])
    }
}

/// The first eight bytes, least significant first.
#[inline(always)]
pub(crate) fn load(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |raw| u64::from_le_bytes(*raw))
}

/// Appends primitives to a buffer.
#[derive(Debug, Clone, Default)]
pub struct Encoder {
    bytes: Vec<u8>,
    order: ByteOrder,
    refusal: Option<&'static str>,
}

impl Encoder {
    /// An empty encoder.
    #[must_use]
    pub const fn new(order: ByteOrder) -> Self {
        Self { bytes: Vec::new(), order, refusal: None }
    }

    /// What was written since the last [`clear`](Self::clear).
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Byte order of what is written.
    #[must_use]
    pub const fn order(&self) -> ByteOrder {
        self.order
    }

    /// Forgets what was written and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.refusal = None;
    }

    /// Why something could not be written, if so.
    #[must_use]
    pub const fn refusal(&self) -> Option<&'static str> {
        self.refusal
    }

    /// Marks the record as one that the format cannot express.
    pub fn refuse(&mut self, why: &'static str) {
        self.refusal = Some(why);
    }

    /// Raw bytes.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// One raw byte.
    pub fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    /// Two raw bytes.
    pub fn u16(&mut self, value: u16) {
        match self.order {
            ByteOrder::Little => self.raw(&value.to_le_bytes()),
            ByteOrder::Big => self.raw(&value.to_be_bytes()),
        }
    }

    /// Four raw bytes.
    pub fn full_u32(&mut self, value: u32) {
        match self.order {
            ByteOrder::Little => self.raw(&value.to_le_bytes()),
            ByteOrder::Big => self.raw(&value.to_be_bytes()),
        }
    }

    /// Eight raw bytes.
    pub fn full_u64(&mut self, value: u64) {
        match self.order {
            ByteOrder::Little => self.raw(&value.to_le_bytes()),
            ByteOrder::Big => self.raw(&value.to_be_bytes()),
        }
    }

    /// A compressed unsigned integer of 32 bits.
    pub fn u32(&mut self, value: u32) {
        if value == u32::MAX {
            self.u8(0xFF);
        } else {
            self.compressed(u64::from(value));
        }
    }

    /// A compressed unsigned integer of 64 bits.
    pub fn u64(&mut self, value: u64) {
        if value == u64::MAX {
            self.u8(0xFF);
        } else {
            self.compressed(value);
        }
    }

    /// A compressed signed integer of 32 bits; negative values take full width.
    pub fn i32(&mut self, value: i32) {
        self.compressed(u64::from(value as u32));
    }

    /// A compressed signed integer of 64 bits; negative values take full width.
    pub fn i64(&mut self, value: i64) {
        self.compressed(value as u64);
    }

    fn compressed(&mut self, value: u64) {
        let size = (71 - value.leading_zeros() as usize) / 8;
        self.u8(size as u8);
        match self.order {
            ByteOrder::Little => self.raw(&value.to_le_bytes()[..size]),
            ByteOrder::Big => self.raw(&value.to_be_bytes()[8 - size..]),
        }
    }

    /// A string and its final NUL.
    pub fn text(&mut self, text: &str) {
        if text.as_bytes().contains(&0) {
            self.refuse("a string contains NUL");
        }
        self.raw(text.as_bytes());
        self.u8(0);
    }

    /// A length and the payload that `write` appends.
    pub fn payload(&mut self, write: impl FnOnce(&mut Self)) {
        let begin = self.bytes.len();
        self.u8(0);
        write(self);
        let length = self.bytes.len() - begin - 1;
        if length < 0xFF {
            self.bytes[begin] = length as u8;
        } else {
            // Rare enough that moving the payload is cheaper than knowing its size beforehand.
            let raw = match self.order {
                ByteOrder::Little => (length as u64).to_le_bytes(),
                ByteOrder::Big => (length as u64).to_be_bytes(),
            };
            self.bytes[begin] = 0xFF;
            self.bytes.splice(begin + 1..=begin, raw);
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
