//! Paraver's traces as recordings.
//!
//! ```text
//!  lines --scan--> records of threads --thread--> calls --messages, collectives--> who communicates --emit--> events
//! ```
//!
//! [`detect()`] says whether a path is such a trace, and [`open()`] reads it. What an analysis needs is in records as
//! Score-P writes them; what has no record is in [`Facts`]. Nothing here knows what waits.

#![deny(unsafe_code)]

pub mod calls;
mod collectives;
mod definitions;
mod detect;
mod emit;
mod facts;
mod header;
mod labels;
mod lives;
mod messages;
mod open;
mod openmp;
mod options;
mod parallel;
mod polling;
mod processes;
mod pthreads;
mod recording;
mod records;
mod regions;
mod scan;
mod states;
mod teams;
mod thread;
mod versions;

pub use detect::detect;
pub use facts::Facts;
pub use open::open;
pub use options::Options;
pub use recording::ParaverRecording;
pub use whywait_otf2::source::{Error, Result};
