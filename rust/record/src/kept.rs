//! Communicators that calls make or end: what later calls need of them, whether these calls are recorded or not.

use crate::comms::{self, Origin};
use crate::context::Context;
use crate::format::{BY_ACCEPT, BY_CONNECT, BY_JOIN, BY_OTHERS, BY_PARENT, BY_SPAWN, COMM_WORLD, CommName, NONE};
use crate::table::{Class, Role, number};
use crate::{real, thread};
use std::sync::atomic::Ordering;

/// Whether a call within one of another library makes or ends something that calls outside may need.
pub(crate) fn is_kept(class: Class) -> bool {
    matches!(
        class,
        Class::CommCreate
            | Class::CommCreateGroup
            | Class::CommFree
            | Class::IntercommCreate
            | Class::IntercommMerge
            | Class::TypeFree
    )
}

/// Before a call: what must not change meanwhile. Returns the number of its communicator.
pub(crate) fn before(context: &mut Context) -> u32 {
    match context.function.class {
        Class::CommCreate | Class::CommIdup | Class::IntercommMerge => {
            let object = context.communicator();
            let handle = context.word(Role::Comm);
            context.origin = context.comm.map(|comm| Origin::child(comm, handle));
            object
        }
        Class::CommFree => {
            context.handle = context.abi.load(context.word(Role::Comm), 0);
            context.comm = comms::remove(context.handle);
            context.comm.map_or(NONE, |comm| comm.id)
        }
        Class::TypeFree => NONE,
        _ => {
            let object = if context.has(Role::Comm) { context.communicator() } else { NONE };
            context.origin = Some(origin(context));
            object
        }
    }
}

/// After a call. Returns the number of the communicator that it made.
pub(crate) fn after(context: &mut Context) -> u32 {
    match context.function.class {
        Class::CommFree => {
            if let Some(comm) = context.comm.filter(|_| context.code != 0) {
                comms::restore(context.handle, comm);
            }
            NONE
        }
        Class::TypeFree => {
            thread::forget_types();
            NONE
        }
        _ => new_communicator(context),
    }
}

/// How a communicator comes to be that is not made by all of its parent, or reaches processes of another world.
fn origin(context: &Context) -> Origin {
    let named = |name, tag| Origin { name, parent: NONE, k: 0, tag, text: String::new(), abroad: None };
    match context.function.class {
        Class::CommCreateGroup => {
            let parent = context.comm.map_or(NONE, |comm| comm.id);
            let abroad = context.comm.filter(|comm| comm.foreign).map(|_| context.word(Role::Comm));
            Origin { parent, abroad, ..named(CommName::Group, context.int(Role::Tag)) }
        }
        Class::IntercommCreate => named(CommName::Inter, context.int(Role::Tag)),
        Class::CommFromGroup => Origin { text: real::text(context.word(Role::Text)), ..named(CommName::Session, 0) },
        _ => foreign(context),
    }
}

/// How one comes to be that leads to processes of another world.
fn foreign(context: &Context) -> Origin {
    let how = match context.index {
        number::COMM_SPAWN | number::COMM_SPAWN_MULTIPLE => BY_SPAWN,
        number::COMM_GET_PARENT => BY_PARENT,
        number::COMM_ACCEPT => BY_ACCEPT,
        number::COMM_CONNECT => BY_CONNECT,
        number::COMM_JOIN => BY_JOIN,
        _ => BY_OTHERS,
    };
    let (parent, k) = match context.comm {
        Some(comm) => (comm.id, comm.children.fetch_add(1, Ordering::Relaxed)),
        None if how == BY_PARENT => (COMM_WORLD, NONE),
        None => (NONE, 0),
    };
    // Only the root has to name the port.
    let is_root = context.comm.is_some_and(|comm| context.has(Role::Root) && comm.rank == context.int(Role::Root));
    let text = if is_root && context.has(Role::Text) { real::text(context.word(Role::Text)) } else { String::new() };
    Origin { name: CommName::Foreign, parent, k, tag: how, text, abroad: None }
}

/// Enters the communicator that the call made.
fn new_communicator(context: &Context) -> u32 {
    let handle = context.abi.load(context.word(Role::Newcomm), 0);
    let known = if context.index == number::COMM_GET_PARENT { comms::get(handle) } else { None };
    match (known, context.origin.as_ref()) {
        (Some(known), _) => known.id,
        (None, Some(origin)) if context.code == 0 => {
            // A duplicate that is still being made must not be asked, but it is like its parent.
            let like = if context.function.class == Class::CommIdup { context.word(Role::Comm) } else { handle };
            comms::add(handle, origin, like)
        }
        _ => NONE,
    }
}
