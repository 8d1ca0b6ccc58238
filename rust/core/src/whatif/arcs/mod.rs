//! Who waits for whom: the arcs of the graph, one file for each kind of communication.

pub(super) mod collectives;
pub(super) mod devices;
pub(super) mod intercomms;
pub(super) mod messages;
pub(super) mod one_sided;
pub(super) mod threads;
mod waited;
