//! Calls that begin and end MPI, and those of which only their time is recorded.

use crate::clock::now;
use crate::context::Context;
use crate::format::{NONE, PEER_UNDEFINED};
use crate::frame::Frame;
use crate::table::{Class, Function, Role};
use crate::thread::Thread;
use crate::{process, state};

/// The call of MPI_Init, which returned before there was a spool.
pub(crate) fn first(function: &'static Function, index: usize, frame: Frame, thread: &mut Thread, enter: u64) {
    let record = state::options().is_some_and(|options| options.groups.contains(&function.group));
    let mut context = Context::new(function, index, false, frame, thread, record);
    context.enter(PEER_UNDEFINED, 0, NONE, 0);
    // SAFETY: the slot was just written; its thread is this one.
    if let Some(slot) = unsafe { context.slot.as_mut() } {
        slot.enter = enter;
    }
    context.leave = now();
    context.leave(0, 0, 0, 0);
}

/// Writes the first half of the slot of a call, and keeps what must not change meanwhile.
pub(super) fn enter(context: &mut Context) {
    match context.function.class {
        Class::Plain | Class::Init | Class::SessionInit | Class::ShmemInit => {
            let object = if context.has(Role::Comm) { context.communicator() } else { NONE };
            context.enter(PEER_UNDEFINED, 0, object, 0);
        }
        Class::Finalize | Class::ShmemFinalize => {
            context.enter(PEER_UNDEFINED, 0, NONE, 0);
            process::finalizing();
        }
        Class::Abort => {
            let object = if context.has(Role::Comm) { context.communicator() } else { NONE };
            context.enter(PEER_UNDEFINED, 0, object, 0);
            process::aborting();
        }
        Class::Pcontrol => process::control(context.int(Role::Flag)),
        _ => {}
    }
}

/// Writes the second half, and what later calls need.
pub(super) fn leave(context: &mut Context) {
    match context.function.class {
        Class::Finalize | Class::ShmemFinalize => {
            context.thread.switched();
            context.leave(0, 0, 0, 0);
            process::finalized();
        }
        Class::Pcontrol => {}
        _ => context.leave(0, 0, 0, 0),
    }
}
