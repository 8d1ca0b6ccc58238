//! What a stage finds in one shard.

use super::device_part::DevicePart;
use super::wait_state::WaitState;
use crate::diagnostics::Diagnostics;
use crate::matching::threads::locks::ThreadLock;
use crate::severity::Severity;

/// The findings of a stage in one shard.
#[derive(Debug, Default)]
pub struct Findings {
    /// Contributions to severities.
    pub severities: Vec<Severity>,
    /// Wait states of the shard's locations.
    pub waits: Vec<WaitState>,
    /// Inconsistencies of the trace.
    pub diagnostics: Diagnostics,
    /// The locks of the threads of each process, which later stages use as well.
    pub(crate) locks: Vec<Vec<ThreadLock>>,
    /// The parts of kernels in the communication of devices, from which their waits follow.
    pub(crate) device_parts: Vec<DevicePart>,
}

impl Findings {
    /// Adds the findings of a later stage.
    pub fn merge(&mut self, later: Findings) {
        append(&mut self.severities, later.severities);
        append(&mut self.waits, later.waits);
        self.diagnostics.merge(later.diagnostics);
        append(&mut self.locks, later.locks);
        append(&mut self.device_parts, later.device_parts);
    }
}

/// Appends rows without moving the existing ones, where possible.
fn append<T>(rows: &mut Vec<T>, mut later: Vec<T>) {
    if rows.capacity() == 0 {
        *rows = later;
    } else {
        rows.append(&mut later);
    }
}
