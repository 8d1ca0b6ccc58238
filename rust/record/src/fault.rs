//! What happens when the recorder itself fails: a line on standard error, and the program goes on.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// One line on standard error.
pub(crate) fn say(text: &str) {
    let line = format!("whywait: {text}\n");
    // SAFETY: pointer and length are those of the line.
    unsafe { libc::write(2, line.as_ptr().cast(), line.len()) };
}

/// While it lives, nobody cancels the thread: what opens, writes or extends a file would be a point where that happens, in a call that is none.
pub(crate) struct Uncancelled(c_int);

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
}

impl Uncancelled {
    pub(crate) fn new() -> Self {
        const PTHREAD_CANCEL_DISABLE: c_int = 1;
        let mut old = 0;
        // SAFETY: the pointer is valid.
        unsafe { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &raw mut old) };
        Self(old)
    }
}

impl Drop for Uncancelled {
    fn drop(&mut self) {
        // SAFETY: the state that the thread had.
        unsafe { pthread_setcancelstate(self.0, std::ptr::null_mut()) };
    }
}

/// The program's `errno`.
pub(crate) fn errno() -> c_int {
    // SAFETY: the thread's own variable.
    unsafe { *libc::__errno_location() }
}

/// Sets it.
pub(crate) fn set_errno(value: c_int) {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = value };
}

/// Runs the recorder's own code. A panic in it ends the recording, and not the program; false is returned.
pub(crate) fn caught(code: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(code)).is_ok()
}
