//! From event records to columns: one pass over each location.

mod calls;
mod contexts;
mod counters;
mod decoder;
mod details;
mod envelopes;
mod frames;
mod io;
mod messages;
mod one_sided;
mod open_io;
mod parameters;
mod progress;
mod recursion;
mod room;
mod strays;
mod streams;
mod tasks;
mod threads;

pub use decoder::Decoder;
pub(super) use details::DetailCollector;
pub use progress::Progress;
pub(crate) use streams::times_of_streams;
