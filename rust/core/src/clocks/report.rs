//! What is known about the clocks of a run, and what was done about them.

use super::census::Census;
use super::domains::Domain;
use crate::ids::LocationId;

named! {
    /// What the violations say about the clocks.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Verdict {
        /// Nothing is violated.
        None = "none",
        /// All amounts are below what clocks resolve.
        Noise = "noise",
        /// The measured offsets of the processes of a node contradict each other.
        MeasuredOffsets = "measured offsets",
        /// Clocks differ; how was not asked.
        Differ = "differ",
        /// Clocks differ by an offset each.
        Offset = "offset",
        /// Clocks differ by an offset and a drift each.
        Drift = "drift",
        /// No line for each clock satisfies all constraints.
        NotLinear = "not linear",
        /// No times satisfy all constraints: events were matched wrongly.
        Impossible = "impossible",
    }
}

/// A step of the correction, and what is violated behind it.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// `measured` for the times as they are read, or the name of a method.
    pub name: &'static str,
    /// Whether the run is read so; otherwise the step did not help.
    pub is_kept: bool,
    /// Number of violations.
    pub violated: u64,
    /// Their largest amount, ticks.
    pub worst: i64,
    /// Sum of their amounts, ticks.
    pub sum: i64,
}

/// The clock of a process.
#[derive(Clone, Copy, Debug, Default)]
pub struct OfProcess {
    /// Its node: equal for processes of one node.
    pub node: u32,
    /// Measured offsets at the begin and the end of the run, ticks.
    pub measured: Option<(i64, i64)>,
    /// What the correction adds to its first and last time, and what is largest in size, ticks.
    pub moved: (i64, i64, i64),
    /// Violations that it takes part in, as recorded.
    pub violated: u64,
    /// Number of its clock domain.
    pub domain: u32,
}

/// A clock domain.
#[derive(Clone, Copy, Debug)]
pub struct OfDomain {
    /// Its first location.
    pub first: LocationId,
    /// Number of its locations.
    pub locations: u32,
    /// Whether it is a device.
    pub is_device: bool,
    /// The domain that its line is relative to; its own if it has none.
    pub reference: u32,
    /// Number of pieces of its line; 0 without one.
    pub pieces: u32,
    /// What its line adds at the begin and at the end of the run, ticks; `None` if no lines were fitted.
    pub added: Option<(f64, f64)>,
    /// How far its line may be from the truth, ticks; `None` if nothing says so.
    pub uncertainty: Option<f64>,
}

/// What constraints say about the clocks of two domains.
#[derive(Clone, Copy, Debug)]
pub struct OfPair {
    /// The domains.
    pub domains: (u32, u32),
    /// Number of lower and upper bounds of the difference.
    pub bounds: (u64, u64),
    /// What must be added to the clock of the second, at the begin of the run, ticks, and its drift.
    pub line: (f64, f64),
    /// Least distance to a bound, ticks; negative if no line satisfies all.
    pub margin: f64,
    /// The values at the begin and at the end that satisfy all bounds, ticks.
    pub ranges: Option<[(f64, f64); 2]>,
}

/// The clocks of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// What the violations say.
    pub verdict: Verdict,
    /// The times as they are read, and the steps that were tried.
    pub steps: Vec<Step>,
    /// Violations of the times as they are read.
    pub census: Census,
    /// The clock of each process.
    pub processes: Vec<OfProcess>,
    /// Number of nodes whose processes had different clock offsets, of these processes, and of the functions.
    pub differing: (u32, u32, u32),
    /// The clock domains.
    pub domains: Vec<OfDomain>,
    /// Pairs of domains with bounds from both sides, if lines were fitted; per domain at most 16, the least uncertain.
    pub pairs: Vec<OfPair>,
    /// Violations that are left.
    pub left: Census,
    /// What the clocks of processes and devices are moved by, of those moved most, by their first locations: at
    /// [`BINS`](super::census::BINS) + 1 times from the begin to the end of the run, ticks.
    pub moves: Vec<(LocationId, Vec<i64>)>,
    /// The steepest stretch of an interval by the logical clock, and the share of all time that is stretched more than
    /// its slope.
    pub stretch: (f64, f64),
    /// What has a clock of its own.
    pub domain: Domain,
    /// Least time between cause and effect, ticks.
    pub latency: i64,
    /// The span of the run as it is read, ticks.
    pub span: (i64, i64),
}

impl Report {
    /// The steps that were taken.
    pub fn done(&self) -> impl Iterator<Item = &'static str> {
        self.steps.iter().skip(1).filter(|step| step.is_kept).map(|step| step.name)
    }

    /// What the correction moves most, ticks.
    pub fn moved(&self) -> i64 {
        self.processes.iter().map(|process| process.moved.2.abs()).max().unwrap_or(0)
    }
}
