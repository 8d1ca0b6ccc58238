//! Call paths.

/// Call paths of a thread.
pub(crate) struct Paths;

impl Paths {
    pub(crate) fn new() -> Self {
        Self
    }
}

pub(crate) fn begin(_on: bool, _depth: usize) {}
