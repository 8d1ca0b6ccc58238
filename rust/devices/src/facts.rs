//! What is known of a set of traces besides its events.

/// How the members of the operations of a group were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Method {
    /// By the number of the operation that all members have in common.
    CommsId,
    /// By the number of the operation in its group.
    Sequence,
    /// By the order of calls, as the library does.
    Calls,
    /// By the order of operations in the group: inferred.
    #[default]
    Order,
    /// By the order of all operations of all ranks, since no group is known: inferred.
    AllRanks,
    /// By call path and time, since operations name no group: inferred.
    CallPath,
}

impl Method {
    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CommsId => "identifier",
            Self::Sequence => "sequence number",
            Self::Calls => "the order of calls",
            Self::Order => "order (inferred)",
            Self::AllRanks => "order of all operations (inferred)",
            Self::CallPath => "call path and time (inferred)",
        }
    }
}

/// What is known of a group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupFacts {
    /// Its name.
    pub name: String,
    /// Its ranks, if they are known.
    pub ranks: Vec<u32>,
    /// Number of its ranks.
    pub size: usize,
    /// Number of its ranks whose files are there.
    pub known: usize,
    /// How members were found.
    pub method: Method,
    /// Number of operations that all known ranks take part in.
    pub instances: u64,
    /// Number of others, whose root is not known, so that it is not known who waits.
    pub undecided: u64,
    /// Number of members of no such operation.
    pub unmatched: u64,
    /// Whether files of ranks are missing, so that waits are lower bounds.
    pub is_partial: bool,
    /// From the begin of the last known member to the end of each member, summed up, ns.
    pub time_after_last: i64,
    /// Number of sends and receives.
    pub message_parts: u64,
    /// Number of messages that both sides know.
    pub messages: u64,
    /// Its communicators.
    pub comms: Vec<u32>,
}

/// What is known of a rank.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RankFacts {
    /// Its number.
    pub rank: u32,
    /// Its file.
    pub file: String,
    /// Its node, if it is named.
    pub host: Option<String>,
    /// When its profiler began and ended, ns.
    pub window: (i64, i64),
    /// Numbers of its steps.
    pub steps: Vec<i64>,
    /// Number of events of the file.
    pub events: u64,
    /// Number of works without a launch.
    pub unlaunched: u64,
    /// Number of works.
    pub works: u64,
}

/// The shapes of the inputs of a kernel, where they are recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShapeFacts {
    /// Its name.
    pub kernel: String,
    /// Ranks with the same shapes, the number of distinct ones, and the most frequent of these.
    pub groups: Vec<(Vec<u32>, u32, String)>,
}

/// What is known of a set of traces besides its events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Number of ranks of the run.
    pub world_size: u32,
    /// The ranks whose files are there.
    pub ranks: Vec<RankFacts>,
    /// Numbers of the steps that all ranks have.
    pub steps: Vec<i64>,
    /// The groups that communicate.
    pub groups: Vec<GroupFacts>,
    /// The shapes of kernels, by their names.
    pub shapes: Vec<ShapeFacts>,
    /// Versions of libraries and drivers, by name.
    pub versions: Vec<(String, String)>,
    /// What was recorded of what can be: stacks, shapes, modules, memory, synchronizations.
    pub recorded: Vec<&'static str>,
    /// Cycles of the profiler's schedule, and which one was read.
    pub cycles: usize,
    /// The cycle that was read, from 1.
    pub cycle: usize,
    /// Files that were left out, and why.
    pub left_out: Vec<(String, String)>,
}

impl Facts {
    /// The ranks without a file.
    pub fn missing(&self) -> impl Iterator<Item = u32> {
        let mut known = self.ranks.iter().map(|rank| rank.rank).peekable();
        (0..self.world_size).filter(move |rank| {
            let is_known = known.peek() == Some(rank);
            if is_known {
                known.next();
            }
            !is_known
        })
    }

    /// The steps that all ranks have.
    pub fn shared_steps(ranks: &[RankFacts]) -> Vec<i64> {
        let Some((first, rest)) = ranks.split_first() else { return Vec::new() };
        let is_shared = |step: &i64| rest.iter().all(|rank| rank.steps.binary_search(step).is_ok());
        first.steps.iter().copied().filter(is_shared).collect()
    }

    /// As properties of an archive, so that they are known of what is written from these traces as well.
    pub(crate) fn properties(&self, tool: &str) -> Vec<(String, String)> {
        let mut all = Vec::new();
        let mut add = |name: &str, value: String| {
            if !value.is_empty() {
                all.push((format!("WHYWAIT::{tool}::{name}"), value));
            }
        };
        add("WORLD_SIZE", self.world_size.to_string());
        add("RECORDED", self.recorded.join(", "));
        add("VERSIONS", lines(self.versions.iter().map(|(name, version)| format!("{name} {version}")), ", "));
        add("MISSING_RANKS", lines(self.missing().map(|rank| rank.to_string()), ", "));
        // With how many ranks they have, since archives define those with a file only.
        let partial = self.groups.iter().filter(|group| group.is_partial);
        let partial = partial.flat_map(|group| group.comms.iter().map(|comm| format!("{comm}:{}", group.size)));
        add("PARTIAL_COMMUNICATORS", lines(partial, ", "));
        all
    }
}

fn lines(items: impl Iterator<Item = String>, between: &str) -> String {
    items.collect::<Vec<_>>().join(between)
}
