//! Requests that a call completes, and what is recorded of each.

use crate::format::{Collective, Extension, Request as Item, RequestKind, Requests, flags};
use crate::requests::{REQUESTS, Request, put_back};
use crate::status::{Status, is_truncation};
use crate::table::Role;

use crate::context::Context;

/// What a request that was completed becomes in the spool, and then in the table.
pub(crate) fn completed(request: &Request, status: Option<Status>) -> Item {
    if request.persistent || request.stays {
        REQUESTS.put_back(Request { active: false, cancelled: false, ..*request });
    }
    if !request.active || request.kind == RequestKind::None {
        return Item::default();
    }
    let mut item = Item { object: request.object & Item::OBJECT, ..Item::default() };
    let mut kind = request.kind;
    if let Some(status) = status.filter(|_| request.needs_status()) {
        if request.cancelled && status.cancelled() {
            kind = RequestKind::Cancelled;
        } else if kind != RequestKind::Send {
            let mut bytes = status.bytes();
            if kind == RequestKind::Receive {
                (item.peer, item.tag) = (status.source(), status.tag());
                // MPICH does not fill in the status of MPI_Isendrecv.
                if request.receives && (differs(request.from, item.peer) || differs(request.from_tag, item.tag)) {
                    (item.peer, item.tag, bytes) = (request.from, request.from_tag, request.received);
                }
            }
            item.bytes = [bytes as u32, (bytes >> 32) as u32];
        }
    }
    item.id = [request.id as u32, (request.id >> 32) as u32];
    item.object |= (kind as u32) << 28;
    item
}

/// Whether a status has something else than what was asked for, wildcards aside.
pub(crate) fn differs(asked: i32, found: i32) -> bool {
    asked >= 0 && asked != found
}

/// The receive of a request that is a send as well.
pub(crate) fn completed_receive(request: &Request, status: Option<Status>) -> Option<Request> {
    (request.receives && request.kind == RequestKind::Send && status.is_some()).then_some(Request {
        id: request.id + 1,
        kind: RequestKind::Receive,
        persistent: false,
        stays: false,
        ..*request
    })
}

/// Lists requests in extensions, two to a slot.
pub(crate) struct List {
    pub(crate) waiting: Option<Item>,
}

impl List {
    pub(crate) fn item(&mut self, context: &mut Context, item: Item) {
        if item.object >> 28 == 0 {
            return;
        }
        match self.waiting.take() {
            None => self.waiting = Some(item),
            Some(first) => context.extension(Extension::Requests, 2, Requests { head: 0, items: [first, item] }),
        }
    }

    pub(crate) fn flush(&mut self, context: &mut Context) {
        if let Some(item) = self.waiting.take() {
            context.extension(Extension::Requests, 1, Requests { head: 0, items: [item, Item::default()] });
        }
    }

    pub(crate) fn collective(&mut self, context: &mut Context, request: &Request) {
        self.flush(context);
        let content = Collective {
            head: 0,
            id: request.id,
            bytes: request.bytes,
            received: request.received,
            root: request.peer,
            object: request.object,
            function: request.function,
            flags: request.flags & !(0xf << flags::KIND_SHIFT),
        };
        context.extension(Extension::Collective, 1, content);
    }

    /// A completed request.
    pub(crate) fn completed(&mut self, context: &mut Context, request: &Request, status: Option<Status>) {
        let item = completed(request, status);
        if is_collective(request) {
            if request.active {
                self.collective(context, request);
            }
            return;
        }
        self.item(context, item);
        if request.active
            && let Some(receive) = completed_receive(request, status)
        {
            let item = completed(&receive, status);
            self.item(context, item);
        }
    }
}

pub(crate) fn is_collective(request: &Request) -> bool {
    matches!(request.kind, RequestKind::Collective | RequestKind::Communicator)
}

/// Second half of a call that completed one request.
pub(crate) fn leave_completed(context: &mut Context, request: &Request, status: Option<Status>) {
    if is_collective(request) || request.receives {
        context.flags |= flags::LISTED;
        let mut list = List { waiting: None };
        list.completed(context, request, status);
        list.flush(context);
        if is_collective(request) && request.active {
            context.set_kind(request.kind);
        }
        context.leave(0, 0, 0, request.id);
        return;
    }
    let item = completed(request, status);
    let kind = item.object >> 28;
    context.flags |= (kind as u16) << flags::KIND_SHIFT;
    if kind != 0
        // SAFETY: the slot of the call, or the scratch.
        && let Some(slot) = unsafe { context.slot.as_mut() }
    {
        slot.object = request.object;
    }
    let received = u64::from(item.bytes[0]) | u64::from(item.bytes[1]) << 32;
    context.leave(item.peer, item.tag, received, if kind == 0 { 0 } else { request.id });
}

/// Second half of a call on one of an array: `index` is its place, if one was completed.
pub(crate) fn leave_any(context: &mut Context, index: Option<i32>) {
    let taken = std::mem::take(&mut context.thread.taken);
    let mut done = None;
    for request in taken.iter().rev() {
        if index == i32::try_from(request.place).ok() && index.is_some() {
            done = Some(*request);
        } else {
            put_back(request);
        }
    }
    match done {
        Some(request) if context.code == 0 => {
            let status = context.status();
            leave_completed(context, &request, status);
        }
        Some(request) => {
            failed(&request);
            context.leave(0, 0, 0, 0);
        }
        None => context.leave(0, 0, 0, 0),
    }
    context.thread.taken = taken;
}

/// A request that ended in an error: a persistent one can be started again, and one that was only asked for is still there.
pub(crate) fn failed(request: &Request) {
    if request.persistent || request.stays {
        put_back(&Request { active: false, ..*request });
    }
}

/// Second half of a call that may complete several of an array: `count` of them, where `place(k)` is the place of the one whose status
/// is the `k`-th.
pub(crate) fn leave_some(context: &mut Context, count: usize, place: impl Fn(usize) -> usize) {
    let mut taken = std::mem::take(&mut context.thread.taken);
    let statuses = context.word(Role::Statuses);
    let array = (statuses != context.abi.status_ignore && statuses != 0).then_some(Status(statuses));
    let in_status = context.code == context.abi.in_status;
    if context.code == 0 || in_status {
        let mut list = List { waiting: None };
        context.flags |= flags::LISTED;
        for k in 0..count {
            let wanted = place(k) as u32;
            let at = match taken.get(k) {
                Some(request) if request.place == wanted => Ok(k),
                _ => taken.binary_search_by_key(&wanted, |request| request.place),
            };
            let Some(request) = at.ok().and_then(|at| taken.get_mut(at)) else { continue };
            let status = array.map(|array| array.at(k));
            let error = if in_status { status.map_or(context.code, Status::error) } else { 0 };
            let error = if error != 0 && is_truncation(error) { 0 } else { error };
            if error == context.abi.pending && in_status {
                continue;
            }
            let done = *request;
            request.handle = 0;
            if error == 0 {
                list.completed(context, &done, status);
            } else {
                failed(&done);
            }
        }
        list.flush(context);
    }
    // The last first, so that equal handles keep their order.
    taken.iter().rev().for_each(put_back);
    context.leave(0, 0, 0, 0);
    context.thread.taken = taken;
}
