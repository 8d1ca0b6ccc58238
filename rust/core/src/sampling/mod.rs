//! What samples of the call path say about the computation between events (docs/specification.md#samples-of-the-call-path).

mod paths;
mod rows;

pub use paths::{Placed, Sampling};
pub use rows::Sample;
