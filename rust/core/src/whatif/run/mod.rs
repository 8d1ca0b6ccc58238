//! The simulated run: its records, as a recording to analyze or to write.

mod inserted;
mod record_times;
pub(super) mod simulated;
mod stamps;
