//! Which processes synchronized with which in a collective operation. The search for causes needs this even where
//! nobody waited.

use bitcode::{Decode, Encode};

use crate::ids::{CommId, InstanceId, LocationId, ProcessId};
use crate::severity::Metric;

/// A process's part in an operation in which it synchronized with others, whether it waited or not.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct CollectiveSync {
    /// The pattern, by the metric that waiting in it is booked on.
    pub kind: Metric,
    /// Location and region instance.
    pub call: (LocationId, InstanceId),
    /// Location and region instance that all waited for; [`crate::trace::NONE`] twice if there is no single cause.
    pub cause: (LocationId, InstanceId),
    /// Waiting time, ticks.
    pub waiting: i64,
    /// Time after the synchronization that counts as work, ticks.
    pub completion: i64,
    /// The same for the cause, ticks.
    pub cause_completion: i64,
    /// Index of the communicator; [`crate::trace::NONE`]: all processes.
    pub comm: CommId,
    /// The processes it synchronized with.
    pub with: Participants,
}

/// The members of a communicator that a process synchronized with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Participants {
    /// All members.
    All,
    /// Some of them: an index into [`CollectiveSyncs::sets`].
    Set(u32),
    /// Only the cause.
    Cause,
}

/// Collective synchronizations of all instances of one owner.
#[derive(Debug, Default)]
pub struct CollectiveSyncs {
    /// Each member's part, grouped by instance.
    pub parts: Vec<CollectiveSync>,
    /// Sorted processes of each instance in which only some members synchronized.
    pub sets: Vec<Vec<ProcessId>>,
}
