//! Threads of the host: what is on call paths, when, and what is recorded with it.

/// A number of 64 bits in two halves, so that what holds it has no gaps: of visits there are as many as events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wide([u32; 2]);

impl Wide {
    /// From a number.
    pub const fn new(number: u64) -> Self {
        Self([number as u32, (number >> 32) as u32])
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0[0] as u64 | (self.0[1] as u64) << 32
    }
}

/// A call, operator, frame or annotation on a call path.
#[derive(Debug, Clone, Copy)]
pub struct Visit {
    /// When it begins and ends, ns.
    pub begin: i64,
    /// See `begin`.
    pub end: i64,
    /// What it is, in the rank's `regions`.
    pub region: u32,
    /// What is recorded with it.
    pub detail: Detail,
}

/// What is recorded where a visit begins.
#[derive(Debug, Clone, Copy)]
pub enum Detail {
    /// Nothing.
    None,
    /// The number that a call and what it launches have in common.
    Correlation(Wide),
    /// The number of a step, of two's complement.
    Step(Wide),
    /// The operation that a call issues, in `members`.
    Operation(u32),
    /// The operation that is awaited.
    Wait(u32),
    /// The call, in `calls`.
    Call(u32),
    /// The thread's part in a parallel region: the team, in `teams`.
    Team(u32),
    /// A task that runs, in `tasks`.
    Task(u32),
    /// The task that a call creates, in `tasks`.
    Creation(u32),
}

/// What a thread was seen in.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// When, ns.
    pub time: i64,
    /// The call path, in the rank's `contexts`, or none of these outside of all regions.
    pub context: u32,
}

/// A thread of the host.
#[derive(Debug)]
pub struct Thread {
    /// Its number in the operating system.
    pub id: i64,
    /// Its name.
    pub name: String,
    /// What it does, in order of begins, each within those that are open.
    pub visits: Vec<Visit>,
    /// Whether the steps of the program are its own.
    pub has_steps: bool,
    /// Samples of its call path, in order of time.
    pub samples: Vec<Sample>,
    /// When it had no core, in order of time; nothing if that is not recorded.
    pub off: Vec<(i64, i64)>,
}

impl Thread {
    /// The only thread of a process that recorded no host.
    pub(crate) fn empty() -> Self {
        Self {
            id: 0,
            name: "host (not recorded)".to_owned(),
            visits: Vec::new(),
            has_steps: false,
            samples: Vec::new(),
            off: Vec::new(),
        }
    }
}
