//! What the system's allocator does with memory that is given back to it.

#![allow(unsafe_code)]

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::arena::is_limited;

/// Number of those who want it kept.
static KEEPERS: Mutex<u32> = Mutex::new(0);

/// As long as one of these lives, memory that was freed stays with the process for whoever asks next.
#[derive(Debug)]
pub struct Kept(());

fn keepers() -> MutexGuard<'static, u32> {
    KEEPERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps freed memory. Stages of an analysis take and free hundreds of megabytes in turns; otherwise the system would
/// take each of these back, and fill it with zeros for the next. With a memory limit nothing is kept.
#[must_use]
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

/// The largest block that the allocator of glibc can have among the others. It treats all as it does these, and gives
/// back twice as much at the end of its memory, in any process that has freed such a block.
const LARGEST: i32 = 32 << 20;

#[cfg(target_env = "gnu")]
fn set_trimming(threshold: i32) {
    // SAFETY: the calls change nothing but when the allocator asks the system for memory.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGEST);
        libc::mallopt(libc::M_TRIM_THRESHOLD, threshold);
    }
}

#[cfg(target_env = "gnu")]
fn give_back() {
    // SAFETY: the call only gives free pages back.
    unsafe { libc::malloc_trim(0) };
}

/// Other allocators have their own ways.
#[cfg(not(target_env = "gnu"))]
fn set_trimming(_: i32) {}

#[cfg(not(target_env = "gnu"))]
fn give_back() {}
