//! Progress of a decoder, and how to stop it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Progress of reading, and a request to stop.
#[derive(Debug, Default)]
pub struct Progress {
    /// Events read so far.
    pub events: AtomicU64,
    cancelled: AtomicBool,
}

impl Progress {
    /// Asks the work to stop at the next opportunity.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether the work should stop.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}
