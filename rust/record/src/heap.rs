//! Memory of the recorder's own, straight from the kernel.
//!
//! The program's allocator may be anything, and may be what called: a hook that allocated there would wait for a lock that its own thread holds, or
//! call itself without end. Blocks are powers of two, from lists of free ones; few are ever made.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

#[global_allocator]
static HEAP: Heap = Heap {
    locked: AtomicBool::new(false),
    lists: UnsafeCell::new(Lists { free: [ptr::null_mut(); CLASSES], next: ptr::null_mut(), left: 0 }),
};

/// The smallest block; those of the last class are half a region.
const SMALLEST: usize = 64;
const CLASSES: usize = 12;
const REGION: usize = SMALLEST << CLASSES;

/// The heap. Nothing is called while it is locked but the kernel, and no signal handler of the program gets here while its thread is in the
/// recorder, so the lock is free soon.
struct Heap {
    locked: AtomicBool,
    lists: UnsafeCell<Lists>,
}

struct Lists {
    /// Free blocks by size; each begins with the address of the next.
    free: [*mut u8; CLASSES],
    /// What is left of the last region.
    next: *mut u8,
    left: usize,
}

// SAFETY: the lists are used by who holds the lock.
unsafe impl Sync for Heap {}

/// The class of blocks for a layout; none if it is for a mapping of its own.
fn class(layout: Layout) -> Option<usize> {
    let blocks = layout.size().div_ceil(SMALLEST).next_power_of_two();
    let class = blocks.trailing_zeros() as usize;
    (class < CLASSES && layout.align() <= SMALLEST).then_some(class)
}

/// New memory, which is zero; null if there is none.
fn mapped(size: usize) -> *mut u8 {
    const PROTECTION: libc::c_int = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping.
    let address =
        unsafe { libc::mmap(ptr::null_mut(), size, PROTECTION, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0) };
    if address == libc::MAP_FAILED { ptr::null_mut() } else { address.cast() }
}

impl Heap {
    fn with<T>(&self, work: impl FnOnce(&mut Lists) -> T) -> T {
        while self.locked.swap(true, Ordering::Acquire) {
            // SAFETY: it has no arguments.
            unsafe { libc::sched_yield() };
        }
        // SAFETY: the lock is held.
        let done = work(unsafe { &mut *self.lists.get() });
        self.locked.store(false, Ordering::Release);
        done
    }
}

#[expect(clippy::cast_ptr_alignment, reason = "blocks are aligned as their sizes are")]
impl Lists {
    fn take(&mut self, class: usize) -> *mut u8 {
        let Some(free) = self.free.get_mut(class) else { return ptr::null_mut() };
        if !free.is_null() {
            let block = *free;
            // SAFETY: a free block begins with the address of the next.
            *free = unsafe { block.cast::<*mut u8>().read() };
            return block;
        }
        let size = SMALLEST << class;
        if self.left < size {
            let region = mapped(REGION);
            if region.is_null() {
                return region;
            }
            (self.next, self.left) = (region, REGION);
        }
        let block = self.next;
        (self.next, self.left) = (block.wrapping_add(size), self.left - size);
        block
    }

    fn give(&mut self, class: usize, block: *mut u8) {
        if let Some(free) = self.free.get_mut(class) {
            // SAFETY: the block has room for an address, and nobody uses it.
            unsafe { block.cast::<*mut u8>().write(*free) };
            *free = block;
        }
    }
}

// SAFETY: blocks are as large and aligned as asked for, and belong to one owner at a time.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match class(layout) {
            Some(class) => self.with(|lists| lists.take(class)),
            // Pages are aligned as strictly as anything here.
            None => mapped(layout.size()),
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if class(layout).is_none() {
            return mapped(layout.size());
        }
        // SAFETY: as the caller's; the block is that large.
        unsafe {
            let block = self.alloc(layout);
            if !block.is_null() {
                block.write_bytes(0, layout.size());
            }
            block
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match class(layout) {
            Some(class) => self.with(|lists| lists.give(class, block)),
            // SAFETY: such a block is a mapping of this size.
            None => unsafe {
                libc::munmap(block.cast(), layout.size());
            },
        }
    }
}

/// In a child of the process: whichever thread held the lock does not exist there, so the lists begin anew.
pub(crate) fn forked() {
    HEAP.locked.store(false, Ordering::Release);
    HEAP.with(|lists| *lists = Lists { free: [ptr::null_mut(); CLASSES], next: ptr::null_mut(), left: 0 });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_do_not_overlap_and_are_used_again() {
        let sizes = [1, 63, 64, 65, 4096, 100_000, REGION / 2, REGION, 3 * REGION + 1];
        let layouts = sizes.map(|size| Layout::from_size_align(size, if size > 64 { 64 } else { 8 }).unwrap());
        for round in 0..3_u8 {
            // SAFETY: blocks are used within their sizes, and given back once.
            unsafe {
                let blocks: Vec<*mut u8> = layouts.iter().map(|layout| HEAP.alloc(*layout)).collect();
                for (i, (block, layout)) in blocks.iter().zip(&layouts).enumerate() {
                    assert!(!block.is_null() && (*block as usize).is_multiple_of(layout.align()));
                    block.write_bytes(i as u8 + round, layout.size());
                }
                for (i, (block, layout)) in blocks.iter().zip(&layouts).enumerate() {
                    let bytes = std::slice::from_raw_parts(*block, layout.size());
                    assert!(bytes.iter().all(|byte| *byte == i as u8 + round));
                    HEAP.dealloc(*block, *layout);
                }
                let zeroed = HEAP.alloc_zeroed(layouts[4]);
                assert!(std::slice::from_raw_parts(zeroed, sizes[4]).iter().all(|byte| *byte == 0));
                HEAP.dealloc(zeroed, layouts[4]);
            }
        }
    }
}
