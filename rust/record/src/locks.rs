//! Locks of threads: which one an address means, and who has it for the how manyth time.

use crate::handles::Handles;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// A lock. The address keeps its number: a new lock at the place of an old one goes on with its order, which harms nobody.
pub(crate) struct Lock {
    id: u32,
    /// How often it was acquired.
    count: AtomicU32,
}

static LOCKS: Handles<Lock> = Handles::new();
static IDS: AtomicU32 = AtomicU32::new(0);
static NEW: Mutex<()> = Mutex::new(());

/// A lock that a thread has.
#[derive(Clone, Copy)]
pub(crate) struct Held {
    address: usize,
    id: u32,
    order: u32,
    /// How often the thread acquired it without releasing it.
    depth: u32,
}

fn lock(address: usize) -> &'static Lock {
    LOCKS.get(address).unwrap_or_else(|| {
        let _one = NEW.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || LOCKS.insert(address, Lock { id: IDS.fetch_add(1, Relaxed), count: AtomicU32::new(0) });
        LOCKS.get(address).unwrap_or_else(new)
    })
}

/// Number of the lock at an address.
pub(crate) fn id(address: usize) -> u32 {
    lock(address).id
}

/// The thread has a lock now; the lock itself sees to it that others have it before or after. Returns its number and the order.
pub(crate) fn acquired(held: &mut Vec<Held>, address: usize) -> (u32, u32) {
    if let Some(known) = held.iter_mut().rev().find(|known| known.address == address) {
        known.depth += 1;
        return (known.id, known.order);
    }
    let lock = lock(address);
    let order = lock.count.fetch_add(1, Relaxed).wrapping_add(1);
    held.push(Held { address, id: lock.id, order, depth: 1 });
    (lock.id, order)
}

/// The thread is about to release a lock; none if it is not known to have it.
pub(crate) fn releases(held: &mut Vec<Held>, address: usize) -> Option<(u32, u32)> {
    let at = held.iter().rposition(|known| known.address == address)?;
    let known = held.get_mut(at)?;
    known.depth -= 1;
    let (id, order, depth) = (known.id, known.order, known.depth);
    if depth == 0 {
        held.swap_remove(at);
    }
    Some((id, order))
}
