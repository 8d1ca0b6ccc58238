//! Calls of ARMCI: the first half of their slots, and what they do with MPI.

use crate::context::Context;
use crate::format::{NONE, PEER_ALL, PEER_UNDEFINED};
use crate::table::{Class, Role};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// ARMCI stands on windows of MPI: all that is under way is complete when it waits for one operation.
static HAS_WINDOWS: AtomicBool = AtomicBool::new(false);

/// A call within one of ARMCI makes a window.
pub(crate) fn makes_window() {
    HAS_WINDOWS.store(true, Relaxed);
}

/// Writes the first half of the slot of a call.
pub(super) fn enter(context: &mut Context) {
    let target = |context: &Context, other| if context.has(Role::Target) { context.int(Role::Target) } else { other };
    match context.function.class {
        Class::ArmciPut | Class::ArmciGet | Class::ArmciAtomic | Class::ArmciRmw => {
            let bytes = bytes(context);
            context.enter(target(context, PEER_UNDEFINED), 0, NONE, bytes);
        }
        Class::ArmciWait | Class::ArmciFence => context.enter(target(context, PEER_ALL), 0, NONE, 0),
        Class::ArmciLock | Class::ArmciUnlock => {
            context.enter(target(context, PEER_UNDEFINED), context.int(Role::Mutex), NONE, 0);
        }
        _ => context.enter(PEER_UNDEFINED, 0, NONE, 0),
    }
}

/// Writes the second half: of operations, the handle of the one that the call begins or completes.
pub(super) fn leave(context: &mut Context) {
    match context.function.class {
        Class::ArmciPut | Class::ArmciGet | Class::ArmciAtomic | Class::ArmciWait => {
            let handle = context.word(Role::Handle) as u64;
            context.leave(i32::from(HAS_WINDOWS.load(Relaxed)), 0, 0, handle);
        }
        _ => context.leave(0, 0, 0, 0),
    }
}

/// Bytes that an operation moves.
fn bytes(context: &Context) -> u64 {
    let product = |a: i32, b: i32| u64::try_from(i64::from(a) * i64::from(b)).unwrap_or(0);
    // SAFETY: of the words at an address, the program passed as many as are asked for.
    let int = |address: usize, place: usize| unsafe { (address as *const i32).add(place).read() };
    if context.has(Role::Levels) {
        let counts = context.word(Role::Scounts);
        let levels = usize::try_from(context.int(Role::Levels)).unwrap_or(0);
        return if counts == 0 {
            0
        } else {
            (0..=levels).fold(1, |bytes: u64, level| bytes.wrapping_mul(u64::try_from(int(counts, level)).unwrap_or(0)))
        };
    }
    if context.has(Role::Vectors) {
        // Of two pointers, and two numbers of the type int, whose product counts: their order is not the same everywhere.
        let vectors = context.word(Role::Vectors);
        let count = if vectors == 0 { 0 } else { usize::try_from(context.int(Role::N)).unwrap_or(0) };
        let of_vector = |vector: usize| product(int(vectors, 6 * vector + 4), int(vectors, 6 * vector + 5));
        return (0..count).fold(0, |bytes: u64, vector| bytes.wrapping_add(of_vector(vector)));
    }
    if context.has(Role::N) {
        return u64::try_from(context.int(Role::N)).unwrap_or(0);
    }
    // Of Rmw, the operation tells the size, but not by the same numbers everywhere: Global Arrays count with the type long.
    u64::from(context.function.element).max(if context.function.class == Class::ArmciRmw { 8 } else { 0 })
}
