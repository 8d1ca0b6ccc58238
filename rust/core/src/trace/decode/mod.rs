//! From event records to columns: one pass over each location.

mod calls;
mod counters;
mod decoder;
mod details;
mod envelopes;
mod frames;
mod messages;
mod one_sided;
mod parameters;
mod progress;
mod room;
mod streams;
mod threads;

pub use decoder::Decoder;
pub(super) use details::DetailCollector;
pub use progress::Progress;
pub(crate) use streams::times_of_streams;
