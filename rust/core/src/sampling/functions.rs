//! What samples say about functions between events.

use super::costs::FunctionCost;
use super::profile::FunctionTime;

/// Times and costs of sampled call paths; of several processes, the first has them.
#[derive(Debug, Default)]
pub struct Functions {
    /// How long each ran in the focus.
    pub times: Vec<FunctionTime>,
    /// What they cost others.
    pub costs: Vec<FunctionCost>,
}
