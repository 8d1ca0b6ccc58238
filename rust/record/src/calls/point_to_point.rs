//! MPI's messages, also in partitions.

use crate::context::Context;
use crate::format::{Extension, NONE, PEER_ANY, PEER_NULL, PEER_UNDEFINED, Partitions, RequestKind};
use crate::requests::{MESSAGES, REQUESTS, Request};
use crate::table::{Class, Role};

/// First half of a message that is sent, received, or prepared.
fn enter_message(context: &mut Context, kind: RequestKind) {
    let object = if context.has(Role::Message) {
        let handle = context.abi.load(context.word(Role::Message), 0);
        context.handle = handle;
        let message = if handle == context.abi.message_no_proc { None } else { MESSAGES.take(handle) };
        context.request = message.unwrap_or(Request::UNKNOWN);
        context.request.object
    } else {
        context.communicator()
    };
    let sends = kind == RequestKind::Send;
    let mut peer = context.peer(if sends { Role::Dest } else { Role::Source });
    if context.has(Role::Message) {
        peer = if object == NONE { PEER_NULL } else { PEER_ANY };
    }
    let mut bytes = context.bytes(Role::Scount, Role::Stype);
    let partitions = u32::try_from(context.int(Role::Partitions)).unwrap_or(0);
    if context.has(Role::Partitions) {
        bytes = bytes.wrapping_mul(partitions.into());
    }
    let tag = context.tag(Role::Tag);
    let mut request = Request { bytes, peer, tag, object, kind, partitions, ..Request::UNKNOWN };
    if sends && context.has(Role::Source) {
        // Both; either may be to nobody.
        (request.from, request.from_tag) = (context.peer(Role::Source), context.tag(Role::Rtag));
        request.received = if context.has(Role::Rcount) { context.bytes(Role::Rcount, Role::Rtype) } else { bytes };
        request.receives = request.from != PEER_NULL;
    }
    if object == NONE || (peer == PEER_NULL && !request.receives) {
        request.kind = RequestKind::None;
    } else if peer == PEER_NULL {
        request.kind = RequestKind::Receive;
    }
    context.request = request;
    context.enter(peer, tag, object, bytes);
    if sends && context.has(Role::Source) {
        context.asks(request.from, request.from_tag);
    }
}

/// First half of a call that makes partitions ready, or asks for one: their request, and which they are.
fn enter_partitions(context: &mut Context) {
    let handle = context.abi.mask(context.word(Role::Active));
    context.request = REQUESTS.get(handle).unwrap_or(Request::UNKNOWN);
    let mut ranges = Vec::new();
    if context.has(Role::List) {
        let list = context.word(Role::List) as *const i32;
        for i in 0..usize::try_from(context.int(Role::N)).unwrap_or(0) {
            // SAFETY: the program passed an array of so many partitions.
            extend(&mut ranges, unsafe { list.add(i).read() });
        }
    } else {
        let first = context.int(Role::Partition);
        ranges.push((first, if context.has(Role::Last) { context.int(Role::Last) } else { first }));
    }
    let mut ranges = ranges.into_iter();
    let (first, last) = ranges.next().unwrap_or((0, -1));
    let request = context.request;
    context.enter(first, last, request.object, request.partitions.into());
    while ranges.len() > 0 {
        let mut content = Partitions::default();
        let count =
            content.items.iter_mut().zip(&mut ranges).map(|(item, (first, last))| *item = [first, last]).count();
        context.extension(Extension::Partitions, count as u8, content);
    }
}

/// Adds a partition to ranges of them.
fn extend(ranges: &mut Vec<(i32, i32)>, partition: i32) {
    match ranges.last_mut() {
        Some((_, last)) if last.checked_add(1) == Some(partition) => *last = partition,
        _ => ranges.push((partition, partition)),
    }
}

/// Second half of a blocking receive.
fn leave_received(context: &mut Context) {
    match context.status().filter(|_| context.code == 0) {
        Some(status) => {
            let source = status.source();
            let bytes = if source == PEER_NULL { 0 } else { status.bytes() };
            context.leave(source, status.tag(), bytes, 0);
        }
        None => context.leave(PEER_NULL, 0, 0, 0),
    }
}

fn leave_probed(context: &mut Context) {
    let found = context.code == 0 && (!context.has(Role::Flag) || context.returned_int(Role::Flag) != 0);
    match context.status().filter(|_| found) {
        Some(status) => context.leave(status.source(), status.tag(), 0, 0),
        None => context.leave(PEER_UNDEFINED, 0, 0, 0),
    }
}

/// Writes the first half of the slot of a call, and keeps what must not change meanwhile.
pub(super) fn enter(context: &mut Context) {
    match context.function.class {
        Class::Send | Class::Isend | Class::SendInit | Class::Isendrecv => enter_message(context, RequestKind::Send),
        Class::Sendrecv => {
            context.ensure_status();
            enter_message(context, RequestKind::Send);
        }
        Class::Recv | Class::Mrecv => {
            context.ensure_status();
            enter_message(context, RequestKind::Receive);
        }
        Class::Irecv | Class::Imrecv | Class::RecvInit => enter_message(context, RequestKind::Receive),
        Class::Probe | Class::Mprobe => {
            let (peer, tag) = (context.peer(Role::Source), context.tag(Role::Tag));
            let object = context.communicator();
            context.enter(peer, tag, object, 0);
        }
        Class::Pready | Class::Parrived => enter_partitions(context),
        _ => {}
    }
}

/// Writes the second half, and what later calls need.
pub(super) fn leave(context: &mut Context) {
    let fine = context.code == 0;
    match context.function.class {
        Class::Recv | Class::Mrecv | Class::Sendrecv => leave_received(context),
        Class::Isend | Class::Irecv | Class::Imrecv => {
            let id = context.made(1);
            context.leave(0, 0, context.request.received, id);
        }
        Class::SendInit | Class::RecvInit => {
            (context.request.persistent, context.request.active) = (true, false);
            let id = context.made(1);
            context.leave(0, 0, context.request.received, id);
        }
        Class::Isendrecv => {
            let id = context.made(2);
            context.leave(context.request.from, context.request.from_tag, 0, id);
        }
        Class::Pready => context.leave(0, 0, 0, context.request.id),
        Class::Parrived => {
            let arrived = fine && context.returned_int(Role::Flag) != 0;
            context.leave(i32::from(arrived), 0, 0, context.request.id);
        }
        Class::Probe => leave_probed(context),
        Class::Mprobe => {
            let found = fine && (!context.has(Role::Flag) || context.returned_int(Role::Flag) != 0);
            let handle = context.abi.load(context.word(Role::Message), 0);
            if let Some(comm) = context
                .comm
                .filter(|_| found && handle != context.abi.message_no_proc && handle != context.abi.message_null)
            {
                MESSAGES.put(Request { handle, object: comm.id, ..Request::UNKNOWN });
            }
            leave_probed(context);
        }
        _ => context.leave(0, 0, 0, 0),
    }
}
