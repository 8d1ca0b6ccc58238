//! Counters: what the trace defines, and their values by call path, booked while events are read.

pub mod book;
mod definitions;
mod totals;
mod values;

pub use definitions::{Counter, Counters, Fault, Kind, Position, Reading};
pub use values::{CounterCell, Number, Sample, Sums};
