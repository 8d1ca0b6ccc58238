//! The traces of PyTorch's profiler, one file a rank, as one recording.
//!
//! ```text
//!  files --inflate--> bytes --scan--> columns --rank--> calls, work, members
//! ```
//!
//! [`detect()`] says whether a path is such a set, and [`open()`] reads it: who takes part in which operation, and the records
//! that an analysis reads, are found by `whywait-devices`. Nothing here knows what waits.

#![deny(unsafe_code)]

mod backward;
mod columns;
mod cycles;
mod detect;
mod elements;
mod gloo;
mod infer;
mod info;
mod json;
mod launches;
mod members;
mod names;
mod nesting;
mod numbering;
mod numbers;
mod open;
mod options;
mod rank;
mod regions;
pub mod scan;
mod shapes;
mod steps;
mod survey;
mod thread;
mod window;

pub use detect::{detect, is_other_chrome_trace};
pub use open::open;
pub use options::{Options, Paths};
pub use whywait_otf2::source::{Error, Result};
