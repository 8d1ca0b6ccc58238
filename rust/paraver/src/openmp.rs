//! Regions of OpenMP: which types of events open them.

use whywait_otf2::enums::RegionRole;

/// Type of events: a parallel region, on the thread that forks.
pub(crate) const PARALLEL: u32 = 60_000_001;
/// Type of events: the body of a parallel region, on each thread.
pub(crate) const OUTLINED: u32 = 60_000_018;
/// Type of events: what threads do with locks.
pub(crate) const LOCK: u32 = 60_000_006;
/// The same, in critical sections without a name.
const UNNAMED_LOCK: u32 = 60_000_007;
/// Type of events: loops and other constructs that share work.
pub(crate) const WORKSHARING: u32 = 60_000_002;
/// Type of events: a barrier.
pub(crate) const BARRIER: u32 = 60_000_005;
/// Type of events: the barrier at the end of a parallel region.
pub(crate) const JOIN: u32 = 60_000_016;
/// Types of events of newer versions.
const NEWER: std::ops::RangeInclusive<u32> = 60_000..=60_018;
/// Type of events: the address of a lock.
pub(crate) const LOCK_ADDRESS: u32 = 60_000_032;
/// Stands for the part of a thread other than the one that forks: it has no events.
pub(crate) const PART: u32 = 60_000_000;

/// Stands for a parallel region of which nobody knows who is in the team.
pub(crate) const ALONE: u32 = 60_000_099;

/// Values of a lock: a thread asks for it, has it, gives it back.
pub(crate) const ASKS: i64 = 3;
/// See [`ASKS`].
pub(crate) const GIVES: i64 = 5;
/// See [`ASKS`].
pub(crate) const HAS: i64 = 6;

pub(crate) const fn is_parallel(kind: u32) -> bool {
    kind == PARALLEL
}

pub(crate) const fn is_barrier(kind: u32) -> bool {
    matches!(kind, BARRIER | JOIN)
}

pub(crate) const fn is_lock(kind: u32) -> bool {
    matches!(kind, LOCK | UNNAMED_LOCK)
}

/// Whether a type says what threads of OpenMP do.
pub(crate) fn is_openmp(kind: u32) -> bool {
    NEWER.contains(&kind) || is_parallel(kind) || kind == OUTLINED || role(kind).is_some()
}

/// The role of a region, and its name.
pub(crate) fn role(kind: u32) -> Option<(RegionRole, &'static str)> {
    Some(match kind {
        _ if is_parallel(kind) || kind == PART => (RegionRole::PARALLEL, "OpenMP parallel"),
        _ if is_lock(kind) => (RegionRole::CRITICAL, "OpenMP lock"),
        WORKSHARING => (RegionRole::WORKSHARE, "OpenMP worksharing"),
        BARRIER => (RegionRole::BARRIER, "OpenMP barrier"),
        JOIN => (RegionRole::IMPLICIT_BARRIER, "OpenMP join"),
        _ => return None,
    })
}
