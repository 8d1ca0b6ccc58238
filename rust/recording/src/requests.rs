//! Requests that a call completed or started, as extensions list them.

use crate::format::{Call, Extension, NONE, Request as RawRequest, RequestKind, flags};
use crate::functions::Class;
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

/// Requests that a call started, as far as extensions list them.
pub(crate) fn started(class: Class, after: &[Slot]) -> impl Iterator<Item = Request> + '_ {
    let lists = matches!(class, Class::Start | Class::Startall);
    after.iter().filter(move |_| lists).flat_map(listed)
}

/// Requests that a call completed.
pub(crate) fn completed<'a>(class: Class, call: &Call, after: &'a [Slot]) -> impl Iterator<Item = Request> + use<'a> {
    let has_one = matches!(class, Class::Wait | Class::Waitany | Class::Test | Class::Testany);
    let lists = has_one || matches!(class, Class::Waitall | Class::Waitsome | Class::Testall | Class::Testsome);
    let is_one = has_one && call.flags & flags::LISTED == 0;
    let kind = call.kind();
    let lists = lists && (!is_one || kind == RequestKind::Collective as u8);
    let failed = call.flags & flags::FAILED != 0;
    let one = (is_one && !lists && kind != RequestKind::None as u8 && !failed).then_some(Request {
        kind,
        id: call.id,
        bytes: call.received,
        peer: call.source,
        tag: call.arrived_tag,
        object: call.object,
        received: 0,
        function: 0,
    });
    one.into_iter().chain(after.iter().filter(move |_| lists).flat_map(listed))
}

/// Whether no record of Score-P 7.1 tells of the requests that a function makes.
pub(crate) fn are_unknown(class: Class) -> bool {
    class == Class::Imrecv
}

/// The ids of the requests that a call may have made.
pub(crate) fn made(class: Class, call: &Call) -> impl Iterator<Item = u64> + use<> {
    let second = (class == Class::Isendrecv).then_some(call.id.wrapping_add(1));
    std::iter::once(call.id).chain(second)
}

/// The bytes of a call that has too many for its slot.
pub(crate) fn wide(after: &[Slot]) -> u64 {
    let wide = after.iter().find(|slot| extension(slot).is_some_and(|(kind, _)| kind == Extension::Wide as u8));
    wide.map_or(0, |slot| word(slot, 1))
}
