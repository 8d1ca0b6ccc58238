//! What a hypothesis changes: the instances it selects, their new durations, what is cut, and what is moved.

pub(super) mod balance;
pub(super) mod cut;
pub(super) mod durations;
pub(super) mod hypotheses;
pub(super) mod moves;
pub(super) mod requests;
mod segments;
pub(super) mod selection;
pub(super) mod side;
pub(super) mod whole_epochs;
