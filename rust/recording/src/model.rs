//! What definitions and events agree on: which records are written, and the numbers of what they refer to.

use rustc_hash::FxHashMap;

use crate::unify::Id;

/// Which records to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Model {
    /// All that are known.
    #[default]
    Full,
    /// Those that Score-P 7.1 writes.
    Scorep7,
}

/// What the events of all processes refer to.
#[derive(Debug)]
pub(crate) struct Regions {
    /// Region of each MPI function that is used, unless it was dropped: then its records are in the function that calls it.
    pub(crate) mpi: Vec<Option<u32>>,
    /// Region of the runs of tests that each of them ended.
    pub(crate) polling: FxHashMap<u16, u32>,
    /// Region of those of its calls that are with processes of which nothing was recorded.
    pub(crate) unrecorded: FxHashMap<u16, u32>,
    /// Region of the first function on call paths; the others follow.
    pub(crate) functions: u32,
    /// The attribute that holds a process id.
    pub(crate) process_id: u32,
}

/// The attribute of the beginning of a program.
pub(crate) const PROCESS_ID: u32 = 0;
/// The attribute of samples in calls: where in the code they were.
pub(crate) const ADDRESS: u32 = 1;
/// The attribute of the begin of a message in partitions: how many.
pub(crate) const PARTITIONS: u32 = 2;
/// The attributes of what a call makes ready, or has found: the first and the last partition.
pub(crate) const PARTITION_RANGE: [u32; 2] = [3, 4];

/// The window, and how many processes it has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ArmciWindow {
    pub(crate) id: Id,
    pub(crate) size: u32,
}

/// The place of a thread in the archive.
pub(crate) fn location(rank: u32, thread: u32) -> u64 {
    u64::from(thread) << 32 | u64::from(rank)
}
