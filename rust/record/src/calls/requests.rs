//! Calls that start, test, complete and free requests.

use crate::completions::{List, failed, is_collective, leave_any, leave_completed, leave_some};
use crate::context::Context;
use crate::format::{NONE, NOTE_FREED_RECEIVE, PEER_UNDEFINED, Request as Item, RequestKind, flags};
use crate::requests::{Request, put_back};
use crate::state;
use crate::table::{Class, Role};

/// First half of a call that completes requests: how many, and one that it may wait for. If it never returns, nothing else tells.
fn enter_completion(context: &mut Context, request: &Request, count: usize) {
    let flags = context.flags;
    let (mut kind, mut peer, mut tag) = (request.kind, request.peer, request.tag);
    if !request.active {
        kind = RequestKind::None;
    } else if request.receives {
        (kind, peer, tag) = (RequestKind::Receive, request.from, request.from_tag);
    }
    context.set_kind(kind);
    context.enter(peer, tag, request.object, count as u64 & u64::from(u32::MAX));
    // What did complete is not known yet.
    context.flags = flags;
}

/// Writes the first half of the slot of a call, and keeps what must not change meanwhile.
pub(super) fn enter(context: &mut Context) {
    match context.function.class {
        Class::Start => {
            context.take_one();
            let request = context.request;
            context.enter_request(&request);
        }
        Class::Wait | Class::Test => {
            context.take_one();
            if context.request.needs_status() {
                context.ensure_status();
            }
            let request = context.request;
            enter_completion(context, &request, usize::from(context.taken()));
        }
        Class::Startall => {
            context.take_all();
            context.enter(PEER_UNDEFINED, 0, NONE, 0);
        }
        Class::Waitany | Class::Waitall | Class::Waitsome | Class::Testany | Class::Testall | Class::Testsome => {
            context.take_all();
            let active = |request: &&Request| request.active;
            let taken = &context.thread.taken;
            let receives = |request: &&Request| request.receives || request.kind == RequestKind::Receive;
            let first = taken.iter().filter(active).find(receives).or_else(|| taken.iter().find(active));
            let (first, count) = (first.copied().unwrap_or(Request::UNKNOWN), taken.iter().filter(active).count());
            enter_completion(context, &first, count);
        }
        Class::RequestFree | Class::Cancel => {
            context.take_one();
            context.enter(PEER_UNDEFINED, 0, NONE, 0);
        }
        _ => {}
    }
}

/// Writes the second half, and what later calls need.
pub(super) fn leave(context: &mut Context) {
    let fine = context.code == 0;
    match context.function.class {
        Class::Start => {
            let request = context.request;
            if context.taken() {
                put_back(&Request { active: fine || request.active, ..request });
            }
            if fine && is_collective(&request) {
                context.flags |= flags::LISTED;
                List { waiting: None }.collective(context, &request);
            }
            context.leave(0, 0, 0, request.id);
        }
        Class::Startall => {
            let taken = std::mem::take(&mut context.thread.taken);
            context.flags |= flags::LISTED;
            let mut list = List { waiting: None };
            for request in taken.iter().filter(|_| fine) {
                if is_collective(request) {
                    list.collective(context, request);
                } else {
                    let item = Item {
                        id: [request.id as u32, (request.id >> 32) as u32],
                        bytes: [request.bytes as u32, (request.bytes >> 32) as u32],
                        peer: request.peer,
                        tag: request.tag,
                        object: request.object & Item::OBJECT | (request.kind as u32) << 28,
                    };
                    list.item(context, item);
                }
            }
            list.flush(context);
            for request in taken.iter().rev() {
                put_back(&Request { active: fine || request.active, ..*request });
            }
            context.leave(0, 0, 0, 0);
            context.thread.taken = taken;
        }
        Class::Wait => {
            let request = context.request;
            if fine && context.taken() {
                let status = context.status();
                leave_completed(context, &request, status);
            } else {
                failed(&request);
                context.leave(0, 0, 0, 0);
            }
        }
        Class::Test => {
            let request = context.request;
            if !fine {
                failed(&request);
                context.leave(0, 0, 0, 0);
            } else if context.returned_int(Role::Flag) == 0 {
                put_back(&request);
                context.leave(0, 0, 0, if request.active { request.id } else { 0 });
            } else if context.taken() {
                let status = context.status();
                leave_completed(context, &request, status);
            } else {
                context.leave(0, 0, 0, 0);
            }
        }
        Class::Waitany | Class::Testany => {
            let found = context.has(Role::Flag) && context.returned_int(Role::Flag) != 0 || !context.has(Role::Flag);
            let index = context.returned_int(Role::Index);
            leave_any(context, (found && index >= 0).then_some(index));
        }
        Class::Waitall | Class::Testall => {
            let all = !context.has(Role::Flag) || context.code != 0 || context.returned_int(Role::Flag) != 0;
            let count = if all { context.int(Role::N).max(0) as usize } else { 0 };
            leave_some(context, count, |k| k);
        }
        Class::Waitsome | Class::Testsome => {
            let count = context.returned_int(Role::Outcount).max(0) as usize;
            let indices = context.word(Role::Indices);
            // SAFETY: MPI wrote so many indices.
            leave_some(context, count, |k| unsafe { (indices as *const i32).add(k).read() } as usize);
        }
        Class::RequestFree => {
            let request = context.request;
            if !fine {
                put_back(&request);
            } else if request.active && request.kind == RequestKind::Receive {
                state::note(NOTE_FREED_RECEIVE);
            }
            context.leave(0, 0, 0, request.id);
        }
        Class::Cancel => {
            let request = context.request;
            put_back(&Request { cancelled: fine || request.cancelled, ..request });
            context.leave(0, 0, 0, request.id);
        }
        _ => context.leave(0, 0, 0, 0),
    }
}
