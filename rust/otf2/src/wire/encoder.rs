//! Numbers to bytes.

use super::ByteOrder;

/// Appends primitives to a buffer.
#[derive(Debug, Clone, Default)]
pub struct Encoder {
    /// What was written, and room for more: a number whose size is known goes where it belongs in one store.
    buffer: Vec<u8>,
    /// Where the room begins.
    end: usize,
    order: ByteOrder,
    refusal: Option<&'static str>,
}

impl Encoder {
    /// An empty encoder.
    pub const fn new(order: ByteOrder) -> Self {
        Self { buffer: Vec::new(), end: 0, order, refusal: None }
    }

    /// The bytes written since the last [`clear`](Self::clear).
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[..self.end]
    }

    /// Byte order of the output.
    pub const fn order(&self) -> ByteOrder {
        self.order
    }

    /// Discards the output and keeps the memory.
    pub fn clear(&mut self) {
        self.end = 0;
        self.refusal = None;
    }

    /// Discards what is behind the first bytes.
    pub fn truncate(&mut self, size: usize) {
        self.end = self.end.min(size);
        self.refusal = None;
    }

    /// Adds the same byte until there are so many.
    pub fn fill(&mut self, size: usize, byte: u8) {
        let count = size.saturating_sub(self.end);
        self.room(count).fill(byte);
        self.end += count;
    }

    /// Replaces eight bytes.
    pub fn replace_u64(&mut self, at: usize, value: u64) {
        let end = std::mem::replace(&mut self.end, at);
        self.full_u64(value);
        self.end = end;
    }

    /// The reason why something could not be written, if any.
    #[inline]
    pub const fn refusal(&self) -> Option<&'static str> {
        self.refusal
    }

    /// Marks the record as one that the format cannot express.
    pub fn refuse(&mut self, why: &'static str) {
        self.refusal = Some(why);
    }

    /// Raw bytes.
    #[inline]
    pub fn raw(&mut self, bytes: &[u8]) {
        self.room(bytes.len()).copy_from_slice(bytes);
        self.end += bytes.len();
    }

    /// One raw byte.
    #[inline(always)]
    pub fn u8(&mut self, value: u8) {
        self.store([value], 1);
    }

    /// Two raw bytes.
    pub fn u16(&mut self, value: u16) {
        match self.order {
            ByteOrder::Little => self.store(value.to_le_bytes(), 2),
            ByteOrder::Big => self.store(value.to_be_bytes(), 2),
        }
    }

    /// Four raw bytes.
    pub fn full_u32(&mut self, value: u32) {
        match self.order {
            ByteOrder::Little => self.store(value.to_le_bytes(), 4),
            ByteOrder::Big => self.store(value.to_be_bytes(), 4),
        }
    }

    /// Eight raw bytes.
    #[inline(always)]
    pub fn full_u64(&mut self, value: u64) {
        match self.order {
            ByteOrder::Little => self.store(value.to_le_bytes(), 8),
            ByteOrder::Big => self.store(value.to_be_bytes(), 8),
        }
    }

    /// A compressed unsigned integer of 32 bits.
    #[inline(always)]
    pub fn u32(&mut self, value: u32) {
        if value == u32::MAX {
            self.u8(0xFF);
        } else {
            self.compressed(u64::from(value));
        }
    }

    /// A compressed unsigned integer of 64 bits.
    #[inline(always)]
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

    #[inline(always)]
    fn compressed(&mut self, value: u64) {
        let size = (71 - value.leading_zeros()) / 8;
        // Most are ids, tags, and the like: one store for the size and the number.
        if value < 1 << 56 && self.order == ByteOrder::Little {
            self.store((value << 8 | u64::from(size)).to_le_bytes(), 1 + size as usize);
        } else {
            self.compressed_any(value, size);
        }
    }

    #[cold]
    fn compressed_any(&mut self, value: u64, size: u32) {
        let all = match self.order {
            ByteOrder::Little => (u128::from(value) << 8 | u128::from(size)).to_le_bytes(),
            ByteOrder::Big => (u128::from(size) << 120 | u128::from(value) << (120 - 8 * size)).to_be_bytes(),
        };
        self.store(all, 1 + size as usize);
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
    #[inline(always)]
    pub fn payload(&mut self, write: impl FnOnce(&mut Self)) {
        let begin = self.end;
        self.u8(0);
        write(self);
        let length = self.end - begin - 1;
        if length < 0xFF {
            self.buffer[begin] = length as u8;
        } else {
            self.lengthen(begin, length as u64);
        }
    }

    /// A record without a length that has one number, after a stamp if there is one, in a single store. Does nothing and returns
    /// false for big-endian output and for a number that stands for none.
    #[inline]
    pub fn short(&mut self, stamp: Option<(u8, u64)>, record: u8, number: u32) -> bool {
        if self.order != ByteOrder::Little || number == u32::MAX {
            return false;
        }
        let size = (39 - number.leading_zeros()) / 8;
        let record = u128::from(u64::from(number) << 16 | u64::from(size) << 8 | u64::from(record));
        let count = 2 + size as usize;
        match stamp {
            Some((stamp, time)) => {
                let all = record << 72 | u128::from(time) << 8 | u128::from(stamp);
                self.store(all.to_le_bytes(), 9 + count);
            }
            None => self.store(record.to_le_bytes(), count),
        }
        true
    }

    /// Makes room for a length of nine bytes: rare enough that moving the payload is cheaper than knowing its size beforehand.
    #[cold]
    fn lengthen(&mut self, begin: usize, length: u64) {
        let raw = match self.order {
            ByteOrder::Little => length.to_le_bytes(),
            ByteOrder::Big => length.to_be_bytes(),
        };
        self.buffer[begin] = 0xFF;
        self.room(raw.len());
        self.buffer.copy_within(begin + 1..self.end, begin + 1 + raw.len());
        self.end += raw.len();
        self.buffer[begin + 1..][..raw.len()].copy_from_slice(&raw);
    }

    /// Writes bytes of which the first ones count: a copy of a size that is known takes an instruction or two.
    #[inline(always)]
    fn store<const N: usize>(&mut self, bytes: [u8; N], count: usize) {
        match self.buffer.get_mut(self.end..).and_then(<[u8]>::first_chunk_mut) {
            Some(room) => *room = bytes,
            None => self.room(N).copy_from_slice(&bytes),
        }
        self.end += count;
    }

    /// The next bytes to be written.
    #[cold]
    fn room(&mut self, count: usize) -> &mut [u8] {
        if self.buffer.len() - self.end < count {
            self.buffer.resize((self.end + count).next_power_of_two().max(64), 0);
        }
        &mut self.buffer[self.end..][..count]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_record_is_what_its_parts_are() {
        for number in [0, 1, 255, 256, 65_535, 65_536, 1 << 24, u32::MAX - 1, u32::MAX] {
            for stamp in [None, Some((5, 0x1234_5678_9abc_def0))] {
                for order in [ByteOrder::Little, ByteOrder::Big] {
                    let (mut parts, mut whole) = (Encoder::new(order), Encoder::new(order));
                    if let Some((stamp, time)) = stamp {
                        parts.u8(stamp);
                        parts.full_u64(time);
                    }
                    parts.u8(12);
                    parts.u32(number);
                    let is_short = whole.short(stamp, 12, number);
                    assert_eq!(is_short, order == ByteOrder::Little && number != u32::MAX);
                    assert_eq!(whole.bytes(), if is_short { parts.bytes() } else { &[] });
                }
            }
        }
    }
}
