//! SQLite exports of Nsight Systems, one or several reports of a run, as one recording.
//!
//! ```text
//!  pages --sqlite--> rows --report--> spans, work, calls by process --build--> ranks --open--> recording
//! ```
//!
//! [`detect()`] says which files of a path are such exports, and [`open()`] reads them. Who takes part in which operation of
//! NCCL, and the records that an analysis reads, are found by `whywait-devices`. An export holds the environment of the job,
//! keys among it: of these tables, the names of machines are read and nothing else. Nothing here knows what waits.

#![deny(unsafe_code)]

mod build;
mod clocks;
mod constructs;
mod detect;
mod facts;
mod host;
mod mpi;
mod names;
mod nccl;
mod open;
mod options;
mod payload;
mod report;
mod rows;
mod samples;
mod schema;
pub mod sqlite;
mod system;
mod teams;

pub use detect::detect;
pub use facts::{Facts, ReportFacts};
pub use open::{Opened, open};
pub use options::Options;
pub use whywait_otf2::source::{Error, Result};
