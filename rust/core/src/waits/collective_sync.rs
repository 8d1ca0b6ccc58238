//! Who met whom in an operation of many: what the search for causes needs beyond the wait states.

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
    /// Location and region instance that all waited for; [`crate::trace::NONE`] twice if nobody is to blame.
    pub cause: (LocationId, InstanceId),
    /// Waiting time, ticks.
    pub waiting: i64,
    /// Time after the synchronization that counts as work, ticks.
    pub completion: i64,
    /// The same of the cause, ticks.
    pub cause_completion: i64,
    /// Index of the communicator; [`crate::trace::NONE`]: all processes.
    pub comm: CommId,
    /// With whom.
    pub with: Participants,
}

/// With whom a member of a communicator synchronized.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Participants {
    /// All members.
    All,
    /// Some: position among [`CollectiveSyncs::sets`].
    Set(u32),
    /// The cause alone.
    Cause,
}

/// Collective synchronizations of all instances of one owner.
#[derive(Debug, Default)]
pub struct CollectiveSyncs {
    /// Parts, instance by instance.
    pub parts: Vec<CollectiveSync>,
    /// Sorted processes of those instances in which not all members synchronized.
    pub sets: Vec<Vec<ProcessId>>,
}
