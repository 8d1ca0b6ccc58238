//! What a file holds.

use bitcode::{Decode, Encode};

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Written {
    /// Locations.
    pub threads: u64,
    /// Region instances.
    pub calls: u64,
    /// Wait states.
    pub wait_states: u64,
    /// Flows of messages.
    pub messages: u64,
    /// Flows from causes to waits.
    pub causes: u64,
    /// One-sided transfers.
    pub transfers: u64,
    /// Flows from the creations of tasks to their starts on other threads.
    pub tasks: u64,
    /// Times in which threads own locks that others wait for.
    pub locks: u64,
    /// Non-blocking collective operations.
    pub operations: u64,
    /// Flows of one-sided transfers.
    pub transfer_flows: u64,
    /// Stretches of the critical path.
    pub critical_path: u64,
    /// Samples of the call path.
    pub samples: u64,
    /// Tracks of counters.
    pub counters: u64,
    /// Omitted flows, which would go backwards in time.
    pub backwards: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

impl Written {
    /// The sums of two parts.
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            threads: self.threads + other.threads,
            calls: self.calls + other.calls,
            wait_states: self.wait_states + other.wait_states,
            messages: self.messages + other.messages,
            causes: self.causes + other.causes,
            transfers: self.transfers + other.transfers,
            tasks: self.tasks + other.tasks,
            locks: self.locks + other.locks,
            operations: self.operations + other.operations,
            transfer_flows: self.transfer_flows + other.transfer_flows,
            critical_path: self.critical_path + other.critical_path,
            samples: self.samples + other.samples,
            counters: self.counters + other.counters,
            backwards: self.backwards + other.backwards,
            bytes: self.bytes + other.bytes,
        }
    }
}
