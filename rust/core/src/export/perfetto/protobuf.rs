//! The part of Protocol Buffers that writing a trace needs: fields of a message, appended to a buffer.
//!
//! *Source*: the encoding guide of Protocol Buffers, <https://protobuf.dev/programming-guides/encoding>.

/// A message that grows field by field.
#[derive(Debug, Default)]
pub(super) struct Message(pub(super) Vec<u8>);

const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const LENGTH: u32 = 2;

impl Message {
    fn raw(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    #[inline]
    fn key(&mut self, field: u32, wire_type: u32) {
        self.raw(u64::from(field << 3 | wire_type));
    }

    /// A number of type `uint`, `bool` or `enum`.
    #[inline]
    pub(super) fn number(&mut self, field: u32, value: u64) {
        self.key(field, VARINT);
        self.raw(value);
    }

    /// A number of type `int`, which may be negative.
    pub(super) fn signed(&mut self, field: u32, value: i64) {
        self.number(field, value as u64);
    }

    pub(super) fn fixed64(&mut self, field: u32, value: u64) {
        self.key(field, FIXED64);
        self.0.extend(value.to_le_bytes());
    }

    pub(super) fn double(&mut self, field: u32, value: f64) {
        self.fixed64(field, value.to_bits());
    }

    pub(super) fn text(&mut self, field: u32, value: &str) {
        self.key(field, LENGTH);
        self.raw(value.len() as u64);
        self.0.extend(value.as_bytes());
    }

    /// A nested message.
    #[inline]
    pub(super) fn message(&mut self, field: u32, fill: impl FnOnce(&mut Self)) {
        self.key(field, LENGTH);
        // Reserve one byte for the length: most messages are short, so it seldom has to grow.
        let at = self.0.len();
        self.0.push(0);
        fill(self);
        let length = self.0.len() - at - 1;
        if length < 0x80 {
            self.0[at] = length as u8;
        } else {
            let mut prefix = Self::default();
            prefix.raw(length as u64);
            self.0.splice(at..=at, prefix.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_guide() {
        let mut message = Message::default();
        message.number(1, 150);
        assert_eq!(message.0, [0x08, 0x96, 0x01]);
        let mut message = Message::default();
        message.text(2, "testing");
        assert_eq!(message.0, [0x12, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67]);
        let mut message = Message::default();
        message.message(3, |inner| inner.number(1, 150));
        assert_eq!(message.0, [0x1a, 0x03, 0x08, 0x96, 0x01]);
        let mut message = Message::default();
        message.signed(1, -2);
        assert_eq!(message.0, [0x08, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]);
    }

    #[test]
    fn a_long_message_moves_for_its_length() {
        let mut message = Message::default();
        message.message(1, |outer| {
            outer.message(2, |inner| inner.text(3, &"x".repeat(200)));
            outer.number(4, 1);
        });
        let inner = 3 + 200;
        let outer = 3 + inner + 2;
        assert_eq!(message.0[..3], [0x0a, (outer & 0x7f | 0x80) as u8, (outer >> 7) as u8]);
        assert_eq!(message.0[3..6], [0x12, (inner & 0x7f | 0x80) as u8, (inner >> 7) as u8]);
        assert_eq!(message.0[6..9], [0x1a, 0xc8, 0x01]);
        assert_eq!(message.0.len(), 3 + outer);
        assert_eq!(message.0[message.0.len() - 2..], [0x20, 0x01]);
    }
}
