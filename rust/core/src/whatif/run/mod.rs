//! The simulated run: its records, as a source for another analysis and as an archive.

mod record_times;
mod replay;
pub(super) mod simulated;
mod stamps;
mod write;
