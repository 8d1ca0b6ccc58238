//! Finds wait states of parallel programs. The records of a run become columns, columns become matched communication,
//! and from that follow wait states, causes, and severities.
//!
//! Data flows in one direction: [`trace`] → [`matching`] → [`waits`] → [`causes`] → [`critical_path`]. [`analysis`]
//! drives the stages, [`query`], [`export`], and [`whatif`] ask a finished analysis, and [`parallel`] spreads the work.
#![deny(unsafe_code)]

#[macro_use]
mod named;

pub mod account;
pub mod analysis;
mod by_location;
pub mod causes;
pub mod clocks;
pub mod counters;
pub mod critical_path;
pub mod diagnostics;
pub mod error;
pub mod export;
pub mod focus;
mod galloping_search;
pub mod ids;
pub mod io;
pub mod matching;
pub mod parallel;
pub mod query;
pub mod queues;
pub mod sampling;
pub mod schema;
pub mod severity;
pub mod trace;
pub mod waits;
pub mod whatif;
pub mod window;

pub use error::{Error, Result};
