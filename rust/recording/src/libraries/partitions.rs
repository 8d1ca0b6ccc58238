//! Messages in partitions: their begins say how many, and the calls in between which ones they make ready or have found.
//!
//! OTF2 has no records of them. Begins are those of other messages, with an attribute; the calls in between name the request in a
//! record of a test that does not complete it, with two.

use rustc_hash::{FxHashMap, FxHashSet};
use whywait_otf2::enums::Type;
use whywait_otf2::records::{AttributeValue, TypedValue};
use whywait_otf2::{Attributes, Event};

use crate::format::{Call, Extension, RANGES};
use crate::model::{PARTITION_RANGE, PARTITIONS};
use crate::spool::{Slot, extension, word};
use crate::thread::Out;

/// The requests of a process whose messages have partitions.
#[derive(Debug, Default)]
pub(crate) struct Partitioned {
    /// Their numbers of partitions.
    counts: FxHashMap<u64, u32>,
    /// Those whose begin was written.
    begun: FxHashSet<u64>,
}

impl Partitioned {
    /// Requests with their numbers of partitions.
    pub(crate) fn new(counts: impl Iterator<Item = (u64, u32)>) -> Self {
        Self { counts: counts.collect(), begun: FxHashSet::default() }
    }

    /// Writes the begin of a message.
    #[inline]
    pub(crate) fn begin(&mut self, out: &mut Out<'_>, time: u64, event: &Event<'_>, request: u64) {
        match self.counts.get(&request) {
            None => out.put(time, event),
            Some(count) => {
                self.begun.insert(request);
                out.put_with(time, event, &Attributes::new(&[attribute(PARTITIONS, *count)]));
            }
        }
    }

    /// Writes which partitions a call has made ready, or has found.
    pub(crate) fn found(&self, out: &mut Out<'_>, call: &Call, after: &[Slot]) {
        if !self.begun.contains(&call.id) {
            return;
        }
        let first = (call.peer, call.tag);
        for (first, last) in std::iter::once(first).chain(after.iter().flat_map(ranges)) {
            if let (Ok(first), Ok(last)) = (u32::try_from(first), u32::try_from(last)) {
                let range = [attribute(PARTITION_RANGE[0], first), attribute(PARTITION_RANGE[1], last)];
                out.put_with(call.leave, &Event::MpiRequestTest { request_id: call.id }, &Attributes::new(&range));
            }
        }
    }

    /// Writes that a call has not found its partition.
    pub(crate) fn missed(&self, out: &mut Out<'_>, call: &Call) {
        if self.begun.contains(&call.id) {
            out.put(call.leave, &Event::MpiRequestTest { request_id: call.id });
        }
    }
}

fn attribute(id: u32, value: u32) -> AttributeValue {
    AttributeValue { id, value: TypedValue { kind: Type::UINT32, bits: value.into() } }
}

/// The ranges in an extension.
pub(crate) fn ranges(slot: &Slot) -> impl Iterator<Item = (i32, i32)> + '_ {
    let items = match extension(slot) {
        Some((kind, items)) if kind == Extension::Partitions as u8 => items.min(RANGES),
        _ => 0,
    };
    (1..=items).map(|item| {
        let both = word(slot, item);
        (both as u32 as i32, (both >> 32) as u32 as i32)
    })
}
