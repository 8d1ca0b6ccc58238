//! The simulated run: its records, as a recording to analyze or to write.

mod record_times;
pub(super) mod simulated;
mod stamps;
