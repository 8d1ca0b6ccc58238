//! Teams of threads, and the tasks that they run.

/// The threads of a process that carry out a parallel region.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Team {
    /// Their places in the process; the one that forks comes first.
    pub threads: Vec<u32>,
}

/// A task of a team.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    /// The team, in the rank's `teams`.
    pub team: u32,
    /// The thread that creates it, by its place in the team.
    pub creator: u32,
    /// Its number in the process, from 1.
    pub number: u32,
}
