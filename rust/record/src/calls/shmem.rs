//! Calls of OpenSHMEM: the first half of their slots. All that finishing needs is among the arguments.

use super::life;
use crate::context::Context;
use crate::format::{NONE, PEER_UNDEFINED};
use crate::table::{Class, Role};

/// Writes the first half of the slot of a call.
pub(super) fn enter(context: &mut Context) {
    let element = u64::from(context.function.element);
    // A number of elements is a `size_t` or an `int`; functions without one have one element.
    let bytes = if context.has(Role::Scount) {
        (context.word(Role::Scount) as u64).wrapping_mul(element)
    } else if context.has(Role::N) {
        u64::try_from(context.int(Role::N)).unwrap_or(0).wrapping_mul(element)
    } else {
        element
    };
    match context.function.class {
        Class::ShmemPut | Class::ShmemGet | Class::ShmemAtomic => {
            context.enter(context.int(Role::Target), 0, NONE, bytes);
        }
        Class::ShmemLock | Class::ShmemTryLock | Class::ShmemUnlock => {
            let lock = context.word(Role::Lock) as u64;
            context.enter(PEER_UNDEFINED, 0, lock as u32, lock >> 32);
        }
        Class::ShmemInit | Class::ShmemFinalize => life::enter(context),
        Class::ShmemColl if context.has(Role::Members) => {
            let members = context.int(Role::Members).cast_unsigned();
            context.enter(context.int(Role::Start), context.int(Role::Stride), members, bytes);
        }
        Class::ShmemColl => context.enter(PEER_UNDEFINED, 0, NONE, bytes),
        _ => context.enter(PEER_UNDEFINED, 0, NONE, 0),
    }
}

/// Writes the second half.
pub(super) fn leave(context: &mut Context) {
    match context.function.class {
        Class::ShmemInit | Class::ShmemFinalize => life::leave(context),
        // Zero: the lock was free, or the condition does not hold.
        Class::ShmemTryLock | Class::ShmemTest => context.leave(i32::from(context.value as i32 != 0), 0, 0, 0),
        _ => context.leave(0, 0, 0, 0),
    }
}
