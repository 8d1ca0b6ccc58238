//! Bytes to numbers.

use super::{ByteOrder, Fault};

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
    pub const fn order(&self) -> ByteOrder {
        self.order
    }

    /// Advances by `count` bytes, at most to the limit.
    #[inline]
    pub fn skip(&mut self, count: usize) {
        self.position += count.min(self.remaining());
    }

    /// Position in the bytes.
    pub const fn position(&self) -> usize {
        self.position
    }

    /// Number of bytes before the limit.
    #[inline]
    pub const fn remaining(&self) -> usize {
        self.end - self.position
    }

    /// Whether the limit is reached.
    pub const fn is_empty(&self) -> bool {
        self.position >= self.end
    }

    /// The byte at the current position.
    pub fn peek(&self) -> Option<u8> {
        if self.is_empty() { None } else { self.bytes.get(self.position).copied() }
    }

    /// A fault at the current position.
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

    /// Reads the length of a record; returns a decoder of the payload, and advances past it.
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
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.position..self.end]
    }
}

/// Reads the numbers of a short record from a window of the bytes, least significant byte first. Every number is read
/// from within the window, so none needs a check of its own: the end of the record shows whether it stayed within its
/// bounds. On `None`, a [`Decoder`] reads the record again, and reports what is wrong, if anything.
#[derive(Debug)]
pub(crate) struct Window<'a> {
    bytes: &'a [u8; WINDOW],
    position: usize,
}

/// Positions in a window at which a number can begin; a power of two.
const STARTS: usize = 64;

/// Size of a window in bytes: a number has ten at most, with its type.
pub(crate) const WINDOW: usize = STARTS + 9;

#[expect(clippy::unnecessary_wraps, reason = "what reads a field asks for all kinds of numbers alike")]
impl<'a> Window<'a> {
    /// A window from `position` on.
    #[inline(always)]
    pub(crate) const fn new(bytes: &'a [u8; WINDOW], position: usize) -> Self {
        Self { bytes, position }
    }

    /// The end of what was read, if all of it lies in the window.
    #[inline(always)]
    pub(crate) fn end(&self) -> Option<usize> {
        self.end_within(self.position)
    }

    /// The end of a record, if it and all that was read in the record lie in the window.
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

    /// A raw byte and a compressed unsigned integer of 64 bits.
    #[inline(always)]
    pub(crate) fn u8_and_u64(&mut self) -> Option<(u8, u64)> {
        let &[byte, size, ref raw @ ..] = self.bytes[self.position % STARTS..].first_chunk::<10>()?;
        let size = usize::from(size);
        if let Some(mask) = MASK.get(size) {
            self.position += 2 + size;
            return Some((byte, u64::from_le_bytes(*raw) & mask));
        }
        self.position += 2;
        (size == 0xFF).then_some((byte, u64::MAX))
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
