//! MPI's collective operations.

use crate::comms::Comm;
use crate::context::Context;
use crate::format::{NONE, PEER_NULL, PEER_ROOT, PEER_UNDEFINED, RequestKind, flags};
use crate::requests::Request;
use crate::table::{Class, Role};

/// Bytes of an array of blocks.
fn sum(context: &mut Context, blocks: usize, counts: Role, datatype: Role, datatypes: Role) -> u64 {
    let array = context.word(counts);
    if array == 0 {
        return 0;
    }
    let types = context.has(datatypes).then(|| context.word(datatypes));
    let mut total = 0_u64;
    let mut elements = 0_u64;
    for block in 0..blocks {
        // SAFETY: the program passed an array of so many counts to MPI.
        let count = unsafe {
            if context.large {
                (array as *const i64).add(block).read()
            } else {
                i64::from((array as *const i32).add(block).read())
            }
        };
        let count = u64::try_from(count).unwrap_or(0);
        match types {
            Some(types) if count > 0 => {
                let size = context.thread.type_size(context.abi.load(types, block));
                total = total.wrapping_add(count.wrapping_mul(size));
            }
            _ => elements = elements.wrapping_add(count),
        }
    }
    match types {
        None if elements > 0 => elements.wrapping_mul(context.thread.type_size(context.word(datatype))),
        _ => total,
    }
}

/// One block of such an array.
fn block(context: &mut Context, rank: i32, counts: Role, datatype: Role) -> u64 {
    let array = context.word(counts);
    let Some(rank) = usize::try_from(rank).ok().filter(|_| array != 0) else { return 0 };
    // SAFETY: as above.
    let count = unsafe {
        if context.large {
            (array as *const i64).add(rank).read()
        } else {
            i64::from((array as *const i32).add(rank).read())
        }
    };
    u64::try_from(count).unwrap_or(0).wrapping_mul(context.thread.type_size(context.word(datatype)))
}

/// Bytes of the caller's part of a collective operation: sent, received.
fn parts(context: &mut Context, comm: &Comm, root: i32) -> (u64, u64) {
    let function = context.function;
    let rooted = context.has(Role::Root);
    let inter = comm.remote > 0;
    let is_root = if inter { root == PEER_ROOT } else { root == comm.rank };
    if rooted && root == PEER_NULL {
        return (0, 0);
    }
    let (out, into) = comm.blocks(function.neighbours);
    let in_place = |role| context.has(role) && context.word(role) == context.abi.in_place;
    let (sends_in_place, receives_in_place) = (in_place(Role::Sbuf), in_place(Role::Rbuf));
    if sends_in_place || receives_in_place {
        context.flags |= flags::IN_PLACE;
    }
    // What is significant at the root only, and what the root of an intercommunicator has no part in. One count stands for both sides.
    let one = !context.has(Role::Rcount) && !context.has(Role::Rcounts);
    let sends = !rooted || one || (if function.scatters { is_root } else { !(inter && is_root) });
    let receives = !rooted || (if function.scatters { !(inter && is_root) } else { is_root });
    let has_sent = context.has(Role::Scount) || context.has(Role::Scounts);
    let has_received = context.has(Role::Rcount) || context.has(Role::Rcounts);
    let sent = if !has_sent || !sends || (sends_in_place && has_received) {
        0
    } else if context.has(Role::Scounts) {
        sum(context, out, Role::Scounts, Role::Stype, Role::Stypes)
    } else {
        context.bytes(Role::Scount, Role::Stype)
    };
    let received = if !has_received || !receives || receives_in_place {
        0
    } else if context.has(Role::Rcounts) {
        sum(context, into, Role::Rcounts, Role::Rtype, Role::Rtypes)
    } else {
        context.bytes(Role::Rcount, Role::Rtype)
    };
    let reduces = !has_sent && context.has(Role::Rcounts);
    if reduces {
        // Reduce_scatter: everything goes in, the own block comes out.
        let own = block(context, comm.rank, Role::Rcounts, Role::Rtype);
        return (received, own);
    }
    if sends_in_place && has_received && sends {
        let own = context.has(Role::Scount) && context.has(Role::Rcounts);
        let sent = if own { block(context, comm.rank, Role::Rcounts, Role::Rtype) } else { received };
        return (sent, received);
    }
    if receives_in_place && receives {
        let own = context.has(Role::Scounts) && context.has(Role::Rcount);
        return (sent, if own { block(context, comm.rank, Role::Scounts, Role::Stype) } else { sent });
    }
    match (has_sent, has_received) {
        (true, false) => (sent, sent),
        (false, true) => (received, received),
        _ => (sent, received),
    }
}

/// First half of a collective operation.
fn enter_collective(context: &mut Context) {
    let object = context.communicator();
    let root = if context.has(Role::Root) { context.peer(Role::Root) } else { PEER_UNDEFINED };
    let (sent, received) = context.comm.map_or((0, 0), |comm| parts(context, comm, root));
    context.request = Request {
        kind: if object == NONE { RequestKind::None } else { RequestKind::Collective },
        peer: root,
        object,
        bytes: sent,
        received,
        ..Request::UNKNOWN
    };
    context.enter(root, 0, object, sent);
}

/// Writes the first half of the slot of a call, and keeps what must not change meanwhile.
pub(super) fn enter(context: &mut Context) {
    match context.function.class {
        Class::Coll | Class::Icoll | Class::CollInit => enter_collective(context),
        _ => {}
    }
}

/// Writes the second half, and what later calls need.
pub(super) fn leave(context: &mut Context) {
    match context.function.class {
        Class::Icoll => {
            let id = context.made(1);
            context.leave(0, 0, context.request.received, id);
        }
        Class::CollInit => {
            (context.request.persistent, context.request.active) = (true, false);
            let id = context.made(1);
            context.leave(0, 0, context.request.received, id);
        }
        Class::Coll => context.leave(0, 0, context.request.received, 0),
        _ => context.leave(0, 0, 0, 0),
    }
}
