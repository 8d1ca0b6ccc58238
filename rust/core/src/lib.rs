//! Finds wait states of parallel programs. The records of an OTF2 archive become columns, columns become matched
//! communication, and from that follow wait states, causes, and severities.
//!
//! Data flows in one direction: [`trace`] → [`matching`] → [`waits`] → [`severity`]. [`analysis`] drives the stages.
#![deny(unsafe_code)]

pub mod account;
pub mod analysis;
pub mod blame;
pub mod causes;
pub mod communication;
pub mod counters;
pub mod critical_path;
pub mod diagnostics;
pub mod error;
pub mod exchange;
pub mod export;
pub mod failure;
pub mod focus;
mod galloping_search;
pub mod ids;
pub mod instances;
pub mod iterations;
pub mod matching;
pub mod per_shard;
pub mod pool;
pub mod queues;
pub mod remote_calls;
pub mod schema;
pub mod severity;
pub mod trace;
pub mod transfers;
pub mod waits;
pub mod whatif;
pub mod window;

pub use error::{Error, Result};
