//! What the names of a run are in a file.

use super::findings::Finding;
use crate::schema::Metric;

/// How a call is numbered: type and value of its event, and the state of the thread in it.
pub type Numbered = (u32, u32, u8);

/// What a run's names are in a file.
pub struct Words<'a> {
    /// The display name of a metric.
    pub label: &'a dyn Fn(Metric) -> String,
    /// What is found.
    pub findings: Vec<Finding>,
    /// The number of a call of MPI by its name without `MPI_`, in lower case, or of one of POSIX threads by its name.
    pub number: &'a (dyn Fn(&str) -> Option<Numbered> + Sync),
}
