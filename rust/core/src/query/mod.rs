//! Questions to a finished analysis.

pub mod blame;
pub mod communication;
pub mod iterations;
pub mod library_calls;
pub mod locks;
pub mod loops;
pub mod parameters;
pub mod stragglers;
pub mod tasks;
mod waited;
pub mod worst_waits;
