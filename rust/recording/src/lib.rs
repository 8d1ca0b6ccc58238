//! From what the recorder left of a run to an OTF2 archive.
//!
//! ```text
//! spool --survey--> functions, call paths, times --symbols, unify--> definitions --expand--> events of the archive
//! ```
//!
//! The slots are read twice: the first time to learn what occurs, so that definitions have the same numbers whichever
//! process comes first, the second time to write the events, one process at a time on each core.

#![deny(unsafe_code)]

mod clocks;
mod constructs;
mod contexts;
mod cores;
mod counters;
mod definitions;
mod ends;
mod error;
mod expand;
mod files;
mod finish;
mod function_ids;
mod functions;
mod interfaces;
mod libraries;
mod messages;
mod model;
mod openmp;
mod paths;
mod requests;
mod samples;
mod sampling;
mod selection;
mod shmem_windows;
mod spool;
mod survey;
mod symbols;
mod thread;
mod unify;
mod worlds;

pub use error::{Error, Result};
pub use finish::{Options, Progress, Summary, finish, is_unfinished};
pub use model::Model;
pub use whywait_spool as format;
