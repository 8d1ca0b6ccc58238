//! What is known of a trace besides events.

/// What is known of a trace besides events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Tasks of each application that is read.
    pub tasks: Vec<u32>,
    /// What was done to the file after it was recorded, as its comments say.
    pub history: Vec<String>,
    /// The window of the original of a cut trace, ticks: begin, end, and length of the original.
    pub cut: Option<[i64; 3]>,
    /// Levels of callers.
    pub callers: usize,
    /// Names of counters.
    pub counters: Vec<String>,
    /// Whether functions are recorded by themselves, and not with calls alone.
    pub has_functions: bool,
    /// Whether there are calls of MPI.
    pub has_mpi: bool,
    /// Number of messages, and of collective operations.
    pub messages: u64,
    /// See `messages`.
    pub operations: u64,
    /// Number of calls that complete non-blocking sends by inference.
    pub inferred: u64,
    /// Number of records.
    pub records: u64,
}

impl Facts {
    /// Reads the comments of a trace: `DATE:CUTTER:FILE:"original":offset:begin:end`.
    pub(crate) fn comments(&mut self, comments: &[String]) {
        for comment in comments {
            let mut words = comment.split(':');
            let Some(tool) = words.nth(1).filter(|tool| matches!(*tool, "CUTTER" | "FILTER" | "SCTRACE")) else {
                continue;
            };
            self.history.push(tool.to_lowercase());
            let numbers: Vec<i64> = comment.rsplit(':').map_while(|word| word.trim().parse().ok()).collect();
            if let (true, [length, end, begin, ..]) = (tool == "CUTTER", &numbers[..]) {
                self.cut = Some([*begin, *end, *length]);
            }
        }
    }
}
