//! Wait states: one file per family of patterns, with the definition, formula, guards, and source of each.
//!
//! The stage that calls a family passes what it needs from other shards: matched messages ([`late_sender`],
//! [`late_receiver`]), instances of collective operations ([`collective`]), epochs ([`rma`]). Families that need only
//! their own shard are listed in [`OF_ONE_SHARD`].

pub mod collective;
pub mod collective_sync;
pub mod counts;
pub mod device;
pub(crate) mod device_part;
mod findings;
pub mod interval;
pub mod late_receiver;
pub mod late_sender;
mod locks;
pub mod longest;
pub(crate) mod nonblocking;
pub(crate) mod posix;
pub mod remote_calls;
pub mod rma;
pub(crate) mod tasks;
pub mod threads;
mod wait_state;

pub use findings::Findings;
pub use wait_state::{LimitingFactor, WaitState, kinds};

use crate::trace::{Shard, Trace};

/// Detectors that need only the events of one shard.
pub const OF_ONE_SHARD: &[fn(&Trace, &Shard) -> Findings] = &[counts::book, threads::detect];
