//! What was written.

/// The files beside a trace.
#[derive(Clone, Debug, Default)]
pub struct Beside {
    /// What numbers mean (`.pcf`).
    pub labels: String,
    /// Names of objects (`.row`).
    pub names: String,
    /// Windows and histograms of what the analysis found (`.cfg`).
    pub views: String,
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Threads.
    pub threads: u64,
    /// Calls and other regions.
    pub calls: u64,
    /// Messages.
    pub messages: u64,
    /// Wait states.
    pub wait_states: u64,
    /// Stretches of the critical path.
    pub critical_path: u64,
    /// Lines.
    pub records: u64,
}
