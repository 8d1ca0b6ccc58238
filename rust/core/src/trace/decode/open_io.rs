//! Operations on files between begin and completion.

use rustc_hash::FxHashMap;

use crate::ids::InstanceId;

/// Handle and matching id: what the records of an operation have in common.
pub(super) type Name = (u32, u64);

/// Operations of a location that have begun.
#[derive(Default)]
pub(super) struct OpenIo {
    /// Rows of those that do not block.
    pub(super) nonblocking: FxHashMap<Name, u32>,
    /// Those that block, the innermost last.
    pub(super) blocking: Vec<Blocking>,
    /// The latest call that completed operations which other calls began, and up to when it did.
    pub(super) awaited: Option<(InstanceId, i64)>,
}

/// The most operations that block and contain each other; with more, ends are missing.
pub(super) const DEEPEST: usize = 64;

/// An operation that blocks.
pub(super) struct Blocking {
    pub(super) name: Name,
    pub(super) row: u32,
    pub(super) is_collective: bool,
    /// Depth of the region that stands for it, if no call for I/O is around it.
    pub(super) region: Option<usize>,
}
