//! POSIX threads: locks, and who makes and awaits whom.

use crate::context::Context;
use crate::format::{NONE, PEER_UNDEFINED};
use crate::table::{Class, Role};
use crate::{locks, thread_starts};

/// Writes the first half of the slot of a call, and keeps what must not change meanwhile.
pub(super) fn enter(context: &mut Context) {
    match context.function.class {
        Class::ThreadLock => context.enter(PEER_UNDEFINED, 0, locks::id(context.word(Role::Lock)), 0),
        Class::ThreadUnlock | Class::ThreadCondition => {
            let lock = context.word(Role::Lock);
            let released = locks::releases(&mut context.thread.held, lock);
            let (lock, order) = released.unwrap_or((NONE, 0));
            context.enter(PEER_UNDEFINED, 0, lock, u64::from(order));
        }
        Class::ThreadCreate => {
            let sequence = thread_starts::prepare(context);
            context.enter(PEER_UNDEFINED, 0, NONE, sequence);
        }
        Class::ThreadJoin => context.enter(PEER_UNDEFINED, 0, NONE, 0),
        _ => {}
    }
}

/// Writes the second half, and what later calls need.
pub(super) fn leave(context: &mut Context) {
    let fine = context.code == 0;
    match context.function.class {
        Class::ThreadLock | Class::ThreadCondition => {
            // A mutex is acquired also if its owner died, and a condition wait acquires it again when time is up.
            let waited = context.function.class == Class::ThreadCondition && context.code == libc::ETIMEDOUT;
            let acquired = fine || waited || context.code == libc::EOWNERDEAD;
            let lock = context.word(Role::Lock);
            let (_, order) = if acquired { locks::acquired(&mut context.thread.held, lock) } else { (NONE, 0) };
            context.leave(0, 0, 0, u64::from(order));
        }
        Class::ThreadCreate => {
            if !fine {
                thread_starts::give_up(context);
            }
            context.leave(0, 0, 0, 0);
        }
        Class::ThreadJoin => {
            let sequence = if fine { thread_starts::joined(context.word(Role::Thread)) } else { 0 };
            context.leave(0, 0, 0, sequence);
        }
        _ => context.leave(0, 0, 0, 0),
    }
}
