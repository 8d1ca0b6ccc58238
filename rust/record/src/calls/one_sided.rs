//! MPI's windows: their synchronization, and the operations on them.

use super::names::name;
use crate::context::Context;
use crate::format::{LOCK_EXCLUSIVE, LOCK_SHARED, NAME_WINDOW, NONE, PEER_ALL, PEER_UNDEFINED, RequestKind};
use crate::requests::{REQUESTS, Request};
use crate::table::{Class, Role, number};
use crate::windows;
use std::sync::atomic::Ordering;

/// Second half of an RMA operation.
fn leave_operation(context: &mut Context) {
    if context.code != 0 || context.window.is_none() {
        context.leave(0, 0, 0, 0);
        return;
    }
    let id = windows::operation();
    if context.has(Role::Request) {
        let handle = context.abi.load(context.word(Role::Request), 0);
        let kind = if context.index == number::RGET { RequestKind::Get } else { RequestKind::Put };
        let object = context.window.map_or(NONE, |window| window.id);
        if handle != context.abi.request_null {
            REQUESTS.put(Request { handle, id, object, kind, ..Request::UNKNOWN });
        }
    }
    let received = match context.function.class {
        Class::Atomic | Class::AtomicRequest if context.has(Role::Rcount) => context.count(Role::Rcount),
        Class::Atomic if !context.has(Role::Scount) => 1,
        _ => 0,
    };
    context.leave(0, 0, received, id);
}

/// Writes the first half of the slot of a call, and keeps what must not change meanwhile.
pub(super) fn enter(context: &mut Context) {
    match context.function.class {
        Class::WinCreate => {
            let object = context.communicator();
            context.enter(PEER_UNDEFINED, 0, object, 0);
        }
        Class::WinFree => {
            context.handle = context.abi.load(context.word(Role::Win), 0);
            context.window = windows::remove(context.handle);
            let object = context.window.map_or(NONE, |window| window.id);
            context.enter(PEER_UNDEFINED, 0, object, 0);
        }
        Class::WinName | Class::WinPlain | Class::WinFence => {
            let object = context.window();
            context.enter(PEER_UNDEFINED, context.int(Role::Assert), object, 0);
        }
        Class::WinGroup => {
            let object = context.window();
            let group = windows::group(context.word(Role::Group));
            if let Some(window) = context.window {
                let epoch = if context.index == number::WIN_POST { &window.exposure } else { &window.access };
                epoch.store(group, Ordering::Relaxed);
            }
            context.enter(group, context.int(Role::Assert), object, 0);
        }
        Class::WinEnd => {
            let object = context.window();
            let group = context.window.map_or(-1, |window| {
                let epoch = if context.index == number::WIN_COMPLETE { &window.access } else { &window.exposure };
                epoch.load(Ordering::Relaxed)
            });
            context.enter(group, 0, object, 0);
        }
        Class::WinLock | Class::WinUnlock | Class::WinFlush | Class::WinFlushLocal => {
            let object = context.window();
            let target = if context.has(Role::Target) { context.peer(Role::Target) } else { PEER_ALL };
            let exclusive = context.has(Role::Lock) && context.int(Role::Lock) == context.abi.lock_exclusive;
            let lock = if exclusive || context.function.class != Class::WinLock { LOCK_EXCLUSIVE } else { LOCK_SHARED };
            context.enter(target, lock, object, 0);
        }
        Class::Rma | Class::RmaRequest => {
            let object = context.window();
            let (target, bytes) = (context.peer(Role::Target), context.bytes(Role::Scount, Role::Stype));
            context.enter(target, 0, object, bytes);
        }
        Class::Atomic | Class::AtomicRequest => {
            let object = context.window();
            let elements = if context.has(Role::Scount) { context.count(Role::Scount) } else { 1 };
            context.enter(context.peer(Role::Target), 0, object, elements);
        }
        _ => {}
    }
}

/// Writes the second half, and what later calls need.
pub(super) fn leave(context: &mut Context) {
    let fine = context.code == 0;
    match context.function.class {
        Class::WinName => name(context, NAME_WINDOW, context.window.map(|window| window.id)),
        Class::WinCreate => {
            let handle = context.abi.load(context.word(Role::Newwin), 0);
            let new = if fine { windows::add(handle, context.comm, context.index) } else { NONE };
            context.leave(0, 0, 0, u64::from(new));
        }
        Class::WinFree => {
            if let Some(window) = context.window.filter(|_| !fine) {
                windows::restore(context.handle, window);
            }
            context.leave(0, 0, 0, 0);
        }
        Class::WinEnd => {
            let ended = fine && (!context.has(Role::Flag) || context.returned_int(Role::Flag) != 0);
            if let Some(window) = context.window.filter(|_| ended) {
                let epoch = if context.index == number::WIN_COMPLETE { &window.access } else { &window.exposure };
                epoch.store(-1, Ordering::Relaxed);
            }
            context.leave(i32::from(ended), 0, 0, 0);
        }
        Class::Rma | Class::RmaRequest | Class::Atomic | Class::AtomicRequest => leave_operation(context),
        _ => context.leave(0, 0, 0, 0),
    }
}
