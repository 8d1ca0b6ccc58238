//! Where the stack of a thread is, by the kernel's list of mappings: the C library allocates to answer that.

use crate::fault::Uncancelled;
use std::ffi::c_void;
use std::ops::Range;

unsafe extern "C" {
    /// The loader's own: where the stack of the first thread began.
    static __libc_stack_end: *const c_void;
}

/// The stack that this thread was given; empty if it cannot be known.
pub(crate) fn of_thread() -> Range<usize> {
    let _uncancelled = Uncancelled::new();
    // SAFETY: these have no arguments.
    let (is_main, own) = unsafe { (libc::getpid() == libc::gettid(), libc::pthread_self() as usize) };
    // The C library keeps what it knows of a thread at the end of its stack.
    // SAFETY: the loader set it before anything ran.
    let address = if is_main { unsafe { __libc_stack_end as usize } } else { own };
    let mut before = 0;
    let mut found = 0..0;
    for_each_mapping(|mapping| {
        if mapping.contains(&address) {
            found = mapping;
        } else if found.is_empty() {
            before = mapping.end;
        }
    });
    if is_main && found.start > before {
        // It grows.
        let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: 0 };
        // SAFETY: it writes to the structure only.
        unsafe { libc::getrlimit(libc::RLIMIT_STACK, &raw mut limit) };
        found.start = before.max(found.end.saturating_sub(limit.rlim_cur as usize)).min(found.start);
    }
    found
}

/// Reads the mappings of the process, which are in ascending order, without allocating.
pub(crate) fn for_each_mapping(mut each: impl FnMut(Range<usize>)) {
    // SAFETY: the path is a string.
    let file = unsafe { libc::open(c"/proc/self/maps".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if file < 0 {
        return;
    }
    let mut buffer = [0_u8; 4096];
    // Of a line such as `7f00-7f80 r--p ...`: both numbers, and which of them is being read, or 2 after them.
    let (mut numbers, mut at) = ([0_usize; 2], 0);
    loop {
        // SAFETY: pointer and length are those of the buffer.
        let length = unsafe { libc::read(file, buffer.as_mut_ptr().cast(), buffer.len()) };
        let Some(read) = usize::try_from(length).ok().filter(|length| *length > 0) else { break };
        for byte in &buffer[..read] {
            match (byte, numbers.get_mut(at)) {
                (b'\n', _) => (numbers, at) = ([0; 2], 0),
                (b'-', Some(_)) => at = 1,
                (b' ', Some(_)) => {
                    at = 2;
                    each(numbers[0]..numbers[1]);
                }
                (digit, Some(number)) => {
                    *number = *number << 4 | char::from(*digit).to_digit(16).unwrap_or(0) as usize;
                }
                (_, None) => {}
            }
        }
    }
    // SAFETY: it was opened above.
    unsafe { libc::close(file) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the C library says.
    fn expected() -> Range<usize> {
        // SAFETY: an attribute object that the first call sets up and the last one frees.
        unsafe {
            let mut attributes = std::mem::zeroed();
            assert_eq!(libc::pthread_getattr_np(libc::pthread_self(), &raw mut attributes), 0);
            let (mut start, mut size) = (std::ptr::null_mut(), 0);
            assert_eq!(libc::pthread_attr_getstack(&raw const attributes, &raw mut start, &raw mut size), 0);
            libc::pthread_attr_destroy(&raw mut attributes);
            start as usize..start as usize + size
        }
    }

    #[test]
    fn a_stack_is_where_the_c_library_put_it() {
        let here = 0_u8;
        let (found, expected) = (of_thread(), expected());
        assert!(found.contains(&(&raw const here as usize)));
        // The C library counts the guard, or not.
        assert!(found.end >= expected.end && found.start <= expected.start + (1 << 16), "{found:x?} {expected:x?}");
    }
}
