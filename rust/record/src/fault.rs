//! What happens when the recorder itself fails: a line on standard error, and the program goes on.

use crate::process;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};

/// One line on standard error.
pub(crate) fn say(text: &str) {
    let line = format!("whywait: {text}\n");
    // SAFETY: pointer and length are those of the line.
    unsafe { libc::write(2, line.as_ptr().cast(), line.len()) };
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
