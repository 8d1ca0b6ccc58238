//! What-if simulation: computes a changed run from a measured one.
//!
//! ```text
//!  trace, epochs ──> graph (who waits for whom) ──┐
//!  hypotheses ─────> shape (what takes how long) ──┴──> retime (when everything happens)
//! ```
//!
//! Kept as measured: all durations except waits, the partners of communication, and their order. Computed anew: every
//! wait. So the simulated run without hypotheses equals the measured one, to the tick.
//!
//! *Source*: M.-A. Hermanns, Jül-4297 (2008), 3.4 and chapter 4, for the hypotheses; the model is described in whatif.md#how-it-works.

mod arcs;
mod assumptions;
mod changes;
mod graph;
mod model;
mod retime;
mod run;
mod simulator;

pub use arcs::messages::Transfer;
pub use assumptions::{Assumption, Assumptions};
pub use changes::balance::{Balance, Balancing};
pub use changes::cut::{Compare, Key, MessageCut};
pub use changes::durations::Shape;
pub use changes::hypotheses::Hypothesis;
pub use changes::moves::Overlap;
pub use changes::selection::{Numbers, Part, Selection};
pub use graph::network::Network;
pub use model::Model;
pub use run::simulated::Simulated;
pub use simulator::{Simulation, Simulator};
