//! What happens when the recorder itself fails: a line on standard error, and the program goes on.

use crate::process;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};

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

/// `errno` as the program has it: it is set back when this goes. MPI's functions may change it, but of the C library's, each does it in its own way.
pub(crate) struct Errno(c_int);

impl Errno {
    pub(crate) fn new() -> Self {
        // SAFETY: the thread's own variable.
        Self(unsafe { *libc::__errno_location() })
    }

    /// Before the program's function is called.
    pub(crate) fn set_back(&self) {
        // SAFETY: the thread's own variable.
        unsafe { *libc::__errno_location() = self.0 };
    }

    /// The program's function returned.
    pub(crate) fn keep(&mut self) {
        // SAFETY: the thread's own variable.
        self.0 = unsafe { *libc::__errno_location() };
    }
}

impl Drop for Errno {
    fn drop(&mut self) {
        self.set_back();
    }
}

/// Runs the recorder's own code. A panic in it ends the recording, and not the program; false is returned.
pub(crate) fn caught(code: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(code)).is_ok()
}

/// Panics of the recorder's code are told in one line.
pub(crate) fn prepare() {
    set_hook(Box::new(|info| {
        process::stop(crate::format::LOST_BUG, "a fault of the recorder");
        let place = info.location().map_or_else(String::new, |place| format!(" at {place}"));
        say(&format!("recording stops: a fault of the recorder{place}; please report it"));
    }));
}
