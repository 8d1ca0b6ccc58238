//! What NCCL says of a call in the binary data of its range.
//!
//! Number of the domain, number of the layout, length and offset, of 8 bytes each; then the values that the layout names. NVIDIA
//! does not document this: data of any other form are not read, and counted.

use rustc_hash::FxHashMap;

/// Length of what precedes the values.
const HEADER: usize = 32;

/// What a call of NCCL says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Payload {
    /// The communicator: the same number on all ranks.
    pub(crate) comm: Option<u64>,
    /// Number of its ranks, and the own one, where it is made.
    pub(crate) size: Option<u64>,
    pub(crate) rank: Option<u64>,
    pub(crate) bytes: Option<u64>,
    pub(crate) root: Option<u64>,
    pub(crate) peer: Option<u64>,
}

/// What a value of a layout is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    Comm,
    Size,
    Rank,
    Bytes,
    Root,
    Peer,
}

impl Payload {
    const fn value(&mut self, value: Value) -> &mut Option<u64> {
        match value {
            Value::Comm => &mut self.comm,
            Value::Size => &mut self.size,
            Value::Rank => &mut self.rank,
            Value::Bytes => &mut self.bytes,
            Value::Root => &mut self.root,
            Value::Peer => &mut self.peer,
        }
    }
}

/// A value of a layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    value: Value,
    offset: usize,
    length: usize,
}

/// Where the values of a call are.
#[derive(Debug, Default)]
struct Layout {
    entries: Vec<Entry>,
    /// Whether they are in the same place, which says that places mean something else.
    overlap: bool,
}

/// The layouts of a report, by domain and number.
#[derive(Debug, Default)]
pub(crate) struct Layouts(FxHashMap<(i64, i64), Layout>);

impl Layouts {
    /// Adds a value of a layout, if it is of interest.
    pub(crate) fn add(&mut self, layout: (i64, i64), name: &str, kind: i64, offset: usize) {
        let value = match name {
            "NCCL communicator ID" => Value::Comm,
            "No. of ranks" => Value::Size,
            "Rank" => Value::Rank,
            "Message size [bytes]" => Value::Bytes,
            "Root" => Value::Root,
            "Peer rank" => Value::Peer,
            _ => return,
        };
        // The types of whole numbers, as the library of ranges counts them.
        let length = match kind {
            5 | 6 | 15 | 16 => 4,
            7..=10 | 17 | 18 | 22 => 8,
            _ => return,
        };
        let own = Entry { value, offset, length };
        let Layout { entries, overlap } = self.0.entry(layout).or_default();
        // Each process says it.
        if !entries.contains(&own) {
            *overlap |=
                entries.iter().any(|other| offset < other.offset + other.length && other.offset < offset + length);
            entries.push(own);
        }
    }

    /// Reads what a call says; nothing if its layout is not known or does not fit.
    pub(crate) fn read(&self, bytes: &[u8]) -> Option<Payload> {
        let word = |at: usize| -> Option<u64> { Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?)) };
        let layout = (word(0)?.cast_signed(), word(8)?.cast_signed());
        let (length, offset) = (usize::try_from(word(16)?).ok()?, usize::try_from(word(24)?).ok()?);
        let values = bytes.get(offset.max(HEADER)..)?;
        let values = &values[..length.min(values.len())];
        let mut payload = Payload::default();
        for Entry { value, offset, length } in &self.0.get(&layout).filter(|layout| !layout.overlap)?.entries {
            let own = values.get(*offset..offset + length)?;
            *payload.value(*value) = match <[u8; 4]>::try_from(own) {
                // Negative numbers stand for none.
                Ok(short) => u64::try_from(i32::from_le_bytes(short)).ok(),
                Err(_) => Some(u64::from_le_bytes(own.try_into().ok()?)),
            };
        }
        Some(payload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_where_the_layout_says() {
        let mut layouts = Layouts::default();
        layouts.add((1, 70), "NCCL communicator ID", 18, 0);
        layouts.add((1, 70), "Peer rank", 5, 8);
        layouts.add((1, 70), "Reduction operation", 5, 12);
        let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        let bytes = words(&[1, 70, 16, 32, 0x1234, 3]);
        let read = Payload { comm: Some(0x1234), peer: Some(3), ..Payload::default() };
        assert_eq!(layouts.read(&bytes), Some(read));
        let none = words(&[1, 70, 16, 32, 0x1234, u64::from(u32::MAX)]);
        assert_eq!(layouts.read(&none).unwrap().peer, None);
        assert_eq!(layouts.read(&words(&[1, 71, 16, 32, 0, 0])), None, "another layout");
        for length in 0..44 {
            assert_eq!(layouts.read(&bytes[..length]), None, "{length}");
        }
        // Another process says the same, or that two values are in one place.
        layouts.add((1, 70), "Peer rank", 5, 8);
        assert_eq!(layouts.read(&bytes), Some(read));
        layouts.add((1, 70), "Root", 5, 4);
        assert_eq!(layouts.read(&bytes), None);
    }
}
