//! Systems without a memory limit: everything goes to the system's allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io;
use std::path::PathBuf;

use crate::{Error, Limit};

/// The system's allocator.
#[derive(Debug)]
pub struct Allocator;

// SAFETY: everything is passed on to the system.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's obligations are the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        unsafe { System.realloc(block, layout, size) }
    }
}

/// Refuses any limit.
pub fn limit(limit: Option<Limit>) -> Result<(), Error> {
    limit.map_or(Ok(()), |_| Err(Error::Unsupported))
}

/// Never fails.
pub fn failure() -> Option<(PathBuf, io::Error)> {
    None
}

/// Guard returned by [`keep`].
#[derive(Debug)]
pub struct Kept(());

/// Does nothing: the system's allocator decides.
pub fn keep() -> Option<Kept> {
    None
}

/// Memory of the process in bytes; unknown here.
pub fn resident() -> Option<u64> {
    None
}

/// Peak memory of the process in bytes; unknown here.
pub fn peak() -> Option<u64> {
    None
}
