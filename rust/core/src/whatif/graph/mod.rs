//! The dependency graph: how it is built, its steps, and what its arcs take.

pub(super) mod border;
pub(super) mod builder;
pub(super) mod network;
pub(super) mod steps;
