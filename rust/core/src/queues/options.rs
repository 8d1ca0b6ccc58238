//! Options of the replay.

/// Options of the replay.
#[derive(Clone, Debug)]
pub struct Options {
    /// When messages arrive.
    pub arrival: Arrival,
    /// Which messages share a queue.
    pub lists: Lists,
    /// The bins of levels over time.
    pub bins: Bins,
    /// Whether to return every increment of the sums, and every step of the levels.
    pub moments: bool,
}

/// The bins of levels over time.
#[derive(Clone, Debug, PartialEq)]
pub enum Bins {
    /// This many bins of equal width over the run; 0 for none.
    Number(usize),
    /// Bins between these times, seconds since the begin of the trace, in increasing order.
    Edges(Vec<f64>),
}

impl Bins {
    /// The edges of the bins of a run, ticks; empty for none.
    pub(super) fn edges(&self, (first, last): (i64, i64), resolution: u64) -> Vec<i64> {
        let length = i128::from(last) - i128::from(first);
        match self {
            Self::Number(0) => Vec::new(),
            &Self::Number(bins) => (0..=bins).map(|bin| first + (length * bin as i128 / bins as i128) as i64).collect(),
            Self::Edges(edges) => {
                let tick = |edge: &f64| ((edge * resolution as f64).round() as i128).clamp(0, length);
                edges.iter().map(|edge| first + tick(edge) as i64).collect()
            }
        }
    }
}

/// When a message arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// When its receiver first looks for messages.
    Progress,
    /// After a typical transfer of its class.
    Estimate,
    /// As soon as its send begins.
    Send,
}

/// Which messages share a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lists {
    /// Those of one pair of processes and one communicator.
    Pair,
    /// Those to one process with one communicator.
    Receiver,
}
