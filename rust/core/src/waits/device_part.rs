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
}

impl DevicePart {
    /// The part in a message; `None` if it waits for nobody.
    pub(crate) fn of_message(
        kind: Metric,
        kernel: (LocationId, InstanceId),
        waiting: i64,
        cause: (LocationId, InstanceId),
    ) -> Option<Self> {
        (waiting > 0).then_some(Self { kind, kernel, waiting, exposed: 0, cause, tie: None })
    }
}
