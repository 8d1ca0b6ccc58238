//! What the system's allocator does with freed memory.

#![allow(unsafe_code)]

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::arena::is_limited;

/// Number of live [`Kept`] guards.
static KEEPERS: Mutex<u32> = Mutex::new(0);

/// Guard: while one lives, freed memory stays with the process.
#[derive(Debug)]
pub struct Kept(());

fn keepers() -> MutexGuard<'static, u32> {
    KEEPERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps freed memory. The stages of an analysis allocate and free hundreds of megabytes in turn; otherwise, the system
/// would take these back and clear them for the next stage. With a memory limit, nothing is kept.
pub fn keep() -> Option<Kept> {
    if is_limited() {
        return None;
    }
    let mut keepers = keepers();
    *keepers += 1;
    if *keepers == 1 {
        set_trimming(-1);
    }
    Some(Kept(()))
}

impl Drop for Kept {
    fn drop(&mut self) {
        let mut keepers = keepers();
        *keepers -= 1;
        if *keepers == 0 {
            set_trimming(2 * LARGEST);
            give_back();
        }
    }
}

/// The largest threshold of glibc above which a block gets a mapping of its own. A process that has freed such a block
/// has this threshold, and returns memory at the end of the heap beyond twice this size.
const LARGEST: i32 = 32 << 20;

#[cfg(target_env = "gnu")]
fn set_trimming(threshold: i32) {
    // SAFETY: the calls only change when the allocator asks the system for memory.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGEST);
        libc::mallopt(libc::M_TRIM_THRESHOLD, threshold);
    }
}

#[cfg(target_env = "gnu")]
fn give_back() {
    // SAFETY: the call only returns free pages.
    unsafe { libc::malloc_trim(0) };
}

/// Other allocators decide for themselves.
#[cfg(not(target_env = "gnu"))]
fn set_trimming(_: i32) {}

#[cfg(not(target_env = "gnu"))]
fn give_back() {}
