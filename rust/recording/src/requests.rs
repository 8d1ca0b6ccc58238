//! Requests that a call completed or started, as extensions list them.

use crate::format::{Extension, NONE, Request as RawRequest, RequestKind};
use crate::spool::{Slot, extension, word};

/// A request that was completed or started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request {
    pub(crate) kind: u8,
    pub(crate) id: u64,
    pub(crate) bytes: u64,
    pub(crate) peer: i32,
    pub(crate) tag: i32,
    pub(crate) object: u32,
    /// Of a collective operation: own part received, function.
    pub(crate) received: u64,
    pub(crate) function: u16,
}

/// Requests in extensions.
pub(crate) fn listed(slot: &Slot) -> impl Iterator<Item = Request> + '_ {
    let (kind, items) = extension(slot).unwrap_or_default();
    let items = match kind {
        kind if kind == Extension::Requests as u8 => items.min(2),
        kind if kind == Extension::Collective as u8 => 1,
        _ => 0,
    };
    (0..items).map(move |item| {
        if kind == Extension::Collective as u8 {
            let (place, function) = (word(slot, 4), word(slot, 5));
            return Request {
                kind: RequestKind::Collective as u8,
                id: word(slot, 1),
                bytes: word(slot, 2),
                peer: place as i32,
                tag: 0,
                object: (place >> 32) as u32,
                received: word(slot, 3),
                function: function as u16,
            };
        }
        let half = |number: usize| {
            let mut bytes = [0; 4];
            let at = 8 + 28 * item + 4 * number;
            bytes.copy_from_slice(&slot[at..at + 4]);
            u32::from_le_bytes(bytes)
        };
        let both = |number: usize| u64::from(half(number)) | u64::from(half(number + 1)) << 32;
        let object = half(6) & RawRequest::OBJECT;
        Request {
            kind: (half(6) >> 28) as u8,
            id: both(0),
            bytes: both(2),
            peer: half(4).cast_signed(),
            tag: half(5).cast_signed(),
            object: if object == RawRequest::OBJECT { NONE } else { object },
            received: 0,
            function: 0,
        }
    })
}

/// The bytes of a call that has too many for its slot.
pub(crate) fn wide(after: &[Slot]) -> u64 {
    let wide = after.iter().find(|slot| extension(slot).is_some_and(|(kind, _)| kind == Extension::Wide as u8));
    wide.map_or(0, |slot| word(slot, 1))
}
