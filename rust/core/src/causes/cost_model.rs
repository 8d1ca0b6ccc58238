//! The definitions that costs follow.

/// The definitions that costs follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CostModel {
    /// Those of the thesis, for every paradigm; the waiting time is conserved.
    #[default]
    Unified,
    /// The same, but no tick of a cause is charged for more than a tick of waiting: the excess of a wait over all of
    /// its causes is not attributed.
    Bounded,
    /// Those of Scalasca 2.6, for comparison: no costs of one-sided communication, direct costs of waits for messages
    /// clamped at the delay, shares of collective operations by its segments.
    Scalasca,
}
