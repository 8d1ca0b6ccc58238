//! Numbers to bytes.

use super::ByteOrder;

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

    /// The bytes written since the last [`clear`](Self::clear).
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Byte order of the output.
    #[must_use]
    pub const fn order(&self) -> ByteOrder {
        self.order
    }

    /// Discards the output and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.refusal = None;
    }

    /// Discards what is behind the first bytes.
    pub fn truncate(&mut self, size: usize) {
        self.bytes.truncate(size);
        self.refusal = None;
    }

    /// Adds the same byte until there are so many.
    pub fn fill(&mut self, size: usize, byte: u8) {
        self.bytes.resize(size, byte);
    }

    /// Replaces eight bytes.
    pub fn replace_u64(&mut self, at: usize, value: u64) {
        let end = self.bytes.len();
        self.full_u64(value);
        self.bytes.copy_within(end.., at);
        self.bytes.truncate(end);
    }

    /// The reason why something could not be written, if any.
    #[inline]
    #[must_use]
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
        self.bytes.extend_from_slice(bytes);
    }

    /// One raw byte.
    #[inline]
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
    #[inline]
    pub fn full_u64(&mut self, value: u64) {
        match self.order {
            ByteOrder::Little => self.raw(&value.to_le_bytes()),
            ByteOrder::Big => self.raw(&value.to_be_bytes()),
        }
    }

    /// A compressed unsigned integer of 32 bits.
    #[inline]
    pub fn u32(&mut self, value: u32) {
        if value == u32::MAX {
            self.u8(0xFF);
        } else {
            self.compressed(u64::from(value));
        }
    }

    /// A compressed unsigned integer of 64 bits.
    #[inline]
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

    #[inline]
    fn compressed(&mut self, value: u64) {
        let size = (71 - value.leading_zeros() as usize) / 8;
        let bytes = match self.order {
            ByteOrder::Little => value.to_le_bytes(),
            ByteOrder::Big => value.checked_shl(64 - 8 * size as u32).unwrap_or(0).to_be_bytes(),
        };
        // Nine bytes at once, of which some go again: a copy of a size that is known takes two instructions.
        let mut all = [size as u8; 9];
        all[1..].copy_from_slice(&bytes);
        self.bytes.extend_from_slice(&all);
        self.bytes.truncate(self.bytes.len() - 8 + size);
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
    #[inline]
    pub fn payload(&mut self, write: impl FnOnce(&mut Self)) {
        let begin = self.bytes.len();
        self.u8(0);
        write(self);
        let length = self.bytes.len() - begin - 1;
        if length < 0xFF {
            self.bytes[begin] = length as u8;
        } else {
            self.lengthen(begin, length as u64);
        }
    }

    /// Makes room for a length of nine bytes: rare enough that moving the payload is cheaper than knowing its size beforehand.
    #[cold]
    fn lengthen(&mut self, begin: usize, length: u64) {
        let raw = match self.order {
            ByteOrder::Little => length.to_le_bytes(),
            ByteOrder::Big => length.to_be_bytes(),
        };
        self.bytes[begin] = 0xFF;
        self.bytes.splice(begin + 1..=begin, raw);
    }
}
