//! Partners of messages, as records name them.

use crate::ids::{CommId, InstanceId, ProcessId};

/// Whether a rank is `MPI_PROC_NULL` (negative in every MPI; not every tool omits such records) or OTF2's
/// "undefined".
pub(super) fn names_nobody(rank: u32) -> bool {
    rank > i32::MAX as u32
}

/// The properties of a received message.
#[derive(Clone, Copy)]
pub(super) struct Envelope {
    pub(super) sender: u32,
    pub(super) communicator: u32,
    pub(super) tag: u32,
    /// Region instance of the matched probe that found it, or none.
    pub(super) probe: InstanceId,
}

/// Cache of the last communicator: programs use few.
#[derive(Clone, Copy)]
pub(super) struct KnownComm<'a> {
    pub(super) id: u32,
    pub(super) comm: CommId,
    /// The processes by rank, if all members see the same ones.
    pub(super) members: &'a [ProcessId],
}
