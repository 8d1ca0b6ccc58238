//! The critical path: the longest chain of dependent activities, found backwards.
//!
//! ```text
//!  0  [=Init=][===== f =====][ Send ]--------
//!                            \ handed over
//!  1  [ Init ][ f ][ Recv... =][== g ==][ Finalize
//! ```
//!
//! The search starts where the last process enters `MPI_Finalize`, `shmem_finalize` or `ARMCI_Finalize`, and follows
//! that location back in time to `MPI_Init`. At a wait it moves to the cause: just before the call that began late, or
//! just after the release that others waited for. At a barrier between threads it moves to the thread that arrived
//! last, and at a fork to the master. From a call that waited for a device it moves to the kernel, and from a kernel to
//! what delayed it: its launch, or a kernel on another stream. The launch latency belongs to the kernel.
//!
//! Where clocks disagree, a cause may lie behind what it caused: then its part of the path ends where that begins, so the path
//! is never longer than the run.
//!
//! *Scalasca 2.6* does not hand the path over in one-sided communication, and hands it to all threads that arrived
//! last.
//!
//! *Source*: specification.md#construction; thesis, sections 4.2 and 4.3.2, definitions 21 and 22, figures 4.7 to 4.9.

mod exits;
mod handovers;
mod impact;
mod stretch;
mod walk;

use crate::Result;
use crate::causes::{CostModel, Table};
use crate::diagnostics::{DiagnosticKind, Diagnostics};
use crate::severity::{Cost, Severity};
use crate::trace::Trace;

pub use stretch::Segment;
pub(crate) use stretch::Stretch;
use walk::Walk;

/// The critical path and the indicators derived from it.
#[derive(Debug, Default)]
pub(crate) struct CriticalPath {
    /// Time on the path and its activities by call path, for the locations of this process.
    pub severities: Vec<Severity>,
    /// Impacts.
    pub costs: Vec<Cost>,
    /// The path in the order of time; of several processes the first has it.
    pub segments: Vec<Segment>,
    /// What the path is made of on the locations of this process, by location.
    pub stretches: Vec<Stretch>,
    /// What was odd.
    pub diagnostics: Diagnostics,
}

/// Follows the path, and computes the indicators derived from it.
pub(crate) fn find(trace: &Trace, tables: &[Table], model: CostModel) -> Result<CriticalPath> {
    let mut walk = Walk::new(trace, tables, model);
    let circular = walk.follow()?;
    let (stretches, segments, mut own) = walk.book()?;
    let mut segments = trace.exchange.gather(segments)?.concat();
    segments.sort_by_key(|(number, segment)| (segment.from, segment.to, *number));
    let mut path = trace.exchange.allgather(own.clone())?.concat();
    path.sort_unstable_by_key(|cell| (cell.callpath, cell.location));
    let (severities, costs) = impact::assess(trace, tables, &path, model)?;
    own.extend(severities);
    let mut diagnostics = Diagnostics::default();
    // One process reports it for all.
    for (location, time) in circular.into_iter().filter(|_| trace.exchange.is_root()) {
        diagnostics.add(DiagnosticKind::CircularWaits, location, time);
    }
    Ok(CriticalPath {
        severities: own,
        costs,
        segments: segments.into_iter().map(|(_, segment)| segment).collect(),
        stretches,
        diagnostics,
    })
}
