//! Wait states of parallel programs: from the records of an OTF2 archive to columns, from columns to matched
//! communication, from there to wait states and severities.
//!
//! One direction of data flow: [`trace`] → [`matching`] → [`waits`] → [`severity`]; [`analysis`] is the conductor.
#![deny(unsafe_code)]

pub mod analysis;
pub mod calls;
pub mod causes;
pub mod error;
pub mod exchange;
pub mod matching;
mod near;
pub mod notes;
pub mod parts;
pub mod path;
pub mod perfetto;
pub mod pool;
pub mod severity;
pub mod timeline;
pub mod trace;
pub mod transfers;
pub mod waits;
pub mod window;

pub use error::{Error, Result};
