//! Questions to a finished analysis.

pub mod blame;
pub mod communication;
pub mod iterations;
pub mod locks;
pub mod parameters;
pub mod tasks;
pub mod worst_waits;
