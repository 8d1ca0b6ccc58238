//! Calls that make, name and free communicators, and data types.

use super::names::name;
use crate::context::Context;
use crate::format::{NAME_COMM, NONE, PEER_UNDEFINED, RequestKind};
use crate::kept;
use crate::requests::Request;
use crate::table::Class;

/// Writes the first half of the slot of a call, and keeps what must not change meanwhile.
pub(super) fn enter(context: &mut Context) {
    match context.function.class {
        Class::TypeFree => context.enter(PEER_UNDEFINED, 0, NONE, 0),
        Class::CommCreate
        | Class::CommIdup
        | Class::IntercommMerge
        | Class::CommCreateGroup
        | Class::IntercommCreate
        | Class::CommFromGroup
        | Class::CommForeign
        | Class::CommFree => {
            let object = kept::before(context);
            context.enter(PEER_UNDEFINED, 0, object, 0);
        }
        Class::CommName => {
            let object = context.communicator();
            context.enter(PEER_UNDEFINED, 0, object, 0);
        }
        _ => {}
    }
}

/// Writes the second half, and what later calls need.
pub(super) fn leave(context: &mut Context) {
    match context.function.class {
        Class::CommIdup => {
            let new = kept::after(context);
            context.request = Request {
                kind: if context.comm.is_some() { RequestKind::Communicator } else { RequestKind::None },
                object: context.comm.map_or(NONE, |comm| comm.id),
                peer: PEER_UNDEFINED,
                ..Request::UNKNOWN
            };
            let request = context.made(1);
            context.leave(0, 0, request, u64::from(new));
        }
        Class::CommCreate
        | Class::IntercommMerge
        | Class::CommCreateGroup
        | Class::IntercommCreate
        | Class::CommFromGroup
        | Class::CommForeign => {
            let new = kept::after(context);
            context.leave(0, 0, 0, u64::from(new));
        }
        Class::CommFree | Class::TypeFree => {
            kept::after(context);
            context.leave(0, 0, 0, 0);
        }
        Class::CommName => name(context, NAME_COMM, context.comm.map(|comm| comm.id)),
        _ => context.leave(0, 0, 0, 0),
    }
}
