//! The trace in memory: definitions by dense indexes, events as columns, one call tree.
#![allow(
    clippy::inline_always,
    reason = "what is done with each event is one loop; left to itself, the compiler keeps the parts as calls"
)]

mod bounds;
pub(crate) mod call_details;
pub mod call_samples;
pub mod calltree;
pub mod chunks;
pub mod columns;
pub mod counters;
pub mod decode;
pub mod definition_index;
pub mod device_calls;
pub(crate) mod devices;
mod id_map;
pub mod io_handles;
pub mod load;
pub mod locations;
pub mod management;
pub mod nodes;
pub mod region_terms;
pub mod regions;
mod reread;
pub mod shard;
pub(crate) mod task_paths;
pub mod task_stacks;
pub mod topologies;
pub mod unknown_libraries;

pub use bounds::Bounds;
pub use calltree::{CallPath, CallTree};
pub use definition_index::DefinitionIndex;
pub use load::Trace;
pub use regions::{RegionClass, Regions};
pub use reread::Reread;
pub use shard::Shard;

pub use crate::ids::NONE;
