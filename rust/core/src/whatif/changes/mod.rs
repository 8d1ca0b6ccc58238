//! What a hypothesis changes: the instances it selects, their new durations, and what is cut.

pub(super) mod balance;
pub(super) mod cut;
pub(super) mod durations;
pub(super) mod hypotheses;
pub(super) mod requests;
mod segments;
pub(super) mod selection;
pub(super) mod side;
pub(super) mod whole_epochs;
