//! Asynchronous operations of POSIX on files: one call begins them, another one takes their result.

use crate::completions::List;
use crate::context::Context;
use crate::fault;
use crate::format::{IO_POSIX, NONE, PEER_UNDEFINED, Request as Item, RequestKind, flags};
use crate::posix::file;
use crate::requests::new_ids;
use crate::table::{Class, Role};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Numbers of operations whose result was not taken, by the addresses of their control blocks.
static BEGUN: Mutex<BTreeMap<usize, u64>> = Mutex::new(BTreeMap::new());

/// More operations than these, no list has: the kernel's own has half of it.
const MOST: usize = 1 << 17;

/// What a control block asks for.
fn control(address: usize) -> Option<&'static libc::aiocb> {
    // SAFETY: the program passed it to the C library.
    unsafe { (address as *const libc::aiocb).as_ref() }
}

/// A new number for an operation. It must be known before the operation begins: its result may be taken before the call returns.
fn begins(address: usize) -> u64 {
    let id = new_ids(1);
    BEGUN.lock().unwrap_or_else(PoisonError::into_inner).insert(address, id);
    id
}

/// The number of an operation whose result is taken; 0 if its begin was not recorded.
fn ends(address: usize) -> u64 {
    BEGUN.lock().unwrap_or_else(PoisonError::into_inner).remove(&address).unwrap_or(0)
}

/// Writes the first half of the slot of a call.
pub(crate) fn enter(context: &mut Context) {
    let address = context.word(Role::Control);
    match context.function.class {
        Class::PosixAio => {
            let (object, bytes) =
                control(address).map_or((NONE, 0), |asked| (file(asked.aio_fildes, IO_POSIX, b""), asked.aio_nbytes));
            context.request.id = begins(address);
            context.enter(PEER_UNDEFINED, 0, object, bytes as u64);
        }
        Class::PosixAioList => {
            context.flags |= flags::LISTED;
            context.enter(PEER_UNDEFINED, 0, NONE, 0);
            list(context);
        }
        Class::PosixAioEnd => {
            let object = control(address).map_or(NONE, |asked| file(asked.aio_fildes, IO_POSIX, b""));
            context.request.id = ends(address);
            context.enter(PEER_UNDEFINED, 0, object, 0);
        }
        _ => context.enter(PEER_UNDEFINED, 0, NONE, 0),
    }
}

/// Writes the second half.
pub(crate) fn leave(context: &mut Context) {
    let (id, value) = (context.request.id, context.value.cast_signed());
    let failed = value as std::ffi::c_int == -1;
    if context.function.class == Class::PosixAioEnd {
        // The operation was cancelled, or failed. The call that says so did not.
        context.leave(i32::from(failed), 0, u64::try_from(value).unwrap_or(0), id);
        return;
    }
    if failed {
        context.code = fault::errno().max(1);
    }
    context.leave(0, 0, 0, id);
}

/// Writes what each control block of a list asks for.
fn list(context: &mut Context) {
    let (blocks, count) = (context.word(Role::List), usize::try_from(context.int(Role::N)).unwrap_or(0));
    let mut list = List { waiting: None };
    for place in 0..if blocks == 0 { 0 } else { count.min(MOST) } {
        // SAFETY: the program passed so many addresses to the C library.
        let address = unsafe { (blocks as *const usize).add(place).read() };
        let Some(asked) = control(address) else { continue };
        if ![libc::LIO_READ, libc::LIO_WRITE].contains(&asked.aio_lio_opcode) {
            continue;
        }
        let (id, bytes) = (begins(address), asked.aio_nbytes as u64);
        let object = file(asked.aio_fildes, IO_POSIX, b"") & Item::OBJECT | (RequestKind::File as u32) << 28;
        let item = Item {
            id: [id as u32, (id >> 32) as u32],
            bytes: [bytes as u32, (bytes >> 32) as u32],
            peer: i32::from(asked.aio_lio_opcode == libc::LIO_WRITE),
            tag: 0,
            object,
        };
        list.item(context, item);
    }
    list.flush(context);
}
