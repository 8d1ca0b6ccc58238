//! The traces of PyTorch's profiler, one file a rank, as one recording.
//!
//! ```text
//!  files --inflate--> bytes --scan--> columns --rank--> calls, work, members --match--> operations --emit--> events
//! ```
//!
//! [`detect()`] says whether a path is such a set, and [`open()`] reads it. What an analysis needs is in records as other
//! tools write them for MPI with accelerators; what has no record is in [`Facts`]. Nothing here knows what waits.

#![deny(unsafe_code)]

mod align;
mod backward;
mod columns;
mod contexts;
mod cycles;
mod definitions;
mod detect;
mod emit;
mod error;
mod facts;
mod files;
mod gloo;
mod infer;
mod info;
mod json;
mod kinds;
mod launches;
mod matching;
mod members;
mod names;
mod nesting;
mod numbering;
mod numbers;
mod open;
mod options;
mod rank;
mod recording;
mod regions;
pub mod scan;
mod steps;
mod survey;
mod thread;
mod window;

pub use definitions::{WINDOW_BEGIN, WINDOW_END};
pub use detect::{detect, is_other_chrome_trace};
pub use error::{Error, Result};
pub use facts::{Facts, GroupFacts, Method, RankFacts};
pub use kinds::Kind;
pub use open::open;
pub use options::{Options, Paths};
pub use recording::{KinetoRecording, location_id};
