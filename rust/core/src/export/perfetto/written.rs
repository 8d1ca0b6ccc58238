//! What a file holds.

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    /// Tracks of counters.
    pub counters: u64,
    /// Omitted flows, which would go backwards in time.
    pub backwards: u64,
    /// Bytes of the file.
    pub bytes: u64,
}
