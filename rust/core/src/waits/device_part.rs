//! The part of a kernel in an operation of several devices, from which its wait follows.

use bitcode::{Decode, Encode};

use crate::ids::{CommId, InstanceId, LocationId};
use crate::severity::Metric;

/// The part of a kernel in an operation of several devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct DevicePart {
    /// The metric of the wait.
    pub kind: Metric,
    /// Location and region instance.
    pub kernel: (LocationId, InstanceId),
    /// From its begin until all that it needs have begun, ticks.
    pub waiting: i64,
    /// What of that is exposed, ticks.
    pub exposed: i64,
    /// The kernel that it waits for: location and region instance.
    pub cause: (LocationId, InstanceId),
    /// Communicator and number of the operation, if each of its members needs all others.
    pub tie: Option<(CommId, u32)>,
    /// The communicator; none for a message.
    pub comm: CommId,
    /// What it sends or receives, whichever is more, bytes.
    pub bytes: u64,
}

impl DevicePart {
    /// The part in a message.
    pub(crate) fn of_message(
        kind: Metric,
        kernel: (LocationId, InstanceId),
        waiting: i64,
        cause: (LocationId, InstanceId),
        bytes: u64,
    ) -> Self {
        Self { kind, kernel, waiting: waiting.max(0), exposed: 0, cause, tie: None, comm: CommId::NONE, bytes }
    }
}
