//! What the families find in one shard, until it is booked.

use rustc_hash::FxHashMap;

use crate::ids::{CallPathId, InstanceId, LocationId};
use crate::matching::epochs::Epochs;
use crate::severity::{Accumulator, Metric, volume};
use crate::trace::columns::Operation;
use crate::trace::regions::Library;
use crate::trace::{Shard, Trace};
use crate::waits::collective_sync::CollectiveSync;
use crate::waits::{Findings, WaitState};

/// Wait states and counts of a shard, in any order.
#[derive(Debug, Default)]
pub(super) struct Waits {
    pub states: Vec<WaitState>,
    /// Sums by location, call path and metric.
    counts: FxHashMap<(LocationId, CallPathId, Metric), i64>,
    pub collective_syncs: Vec<CollectiveSync>,
}

impl Waits {
    pub(super) fn count(&mut self, location: LocationId, callpath: CallPathId, metric: Metric, value: i64) {
        *self.counts.entry((location, callpath, metric)).or_insert(0) += value;
    }

    /// Pairs of processes that a call synchronizes, and how many of them share data (thesis, section 3.2.2).
    pub(super) fn count_pairs(
        &mut self,
        shard: &Shard,
        library: Library,
        call: (LocationId, InstanceId),
        (size, needed): (u32, u32),
    ) {
        let [all, unneeded] = match library {
            Library::Mpi => [Metric::PairSyncs, Metric::PairSyncsUnneeded],
            Library::Shmem => [Metric::ShmemPairSyncs, Metric::ShmemPairSyncsUnneeded],
            Library::Armci => [Metric::ArmciPairSyncs, Metric::ArmciPairSyncsUnneeded],
            Library::Pgas => [Metric::PgasPairSyncs, Metric::PgasPairSyncsUnneeded],
        };
        let callpath = shard.callpath(call.1);
        self.count(call.0, callpath, all, size.into());
        self.count(call.0, callpath, unneeded, size.saturating_sub(needed).into());
    }

    /// Counts the pairs of calls that complete operations at passive targets; those of MPI on request.
    pub(super) fn count_passive_syncs(&mut self, trace: &Trace, shard: &Shard, epochs: &Epochs, with_mpi: bool) {
        for sync in &epochs.passive_syncs {
            let library = trace.class(shard, sync.instance).library().unwrap_or(Library::Mpi);
            if with_mpi || library != Library::Mpi {
                self.count_pairs(shard, library, (sync.location, sync.instance), (sync.size, sync.needed));
            }
        }
    }

    /// Adds the transferred volumes and sums up by call path.
    pub(super) fn book(mut self, trace: &Trace, shard: &Shard) -> Findings {
        // Each stage finds its waits in order; the analysis sorts those of a location together with all others.
        self.states.sort_by_key(|wait| wait.location);
        let mut counts: Vec<_> = self.counts.into_iter().collect();
        counts.sort_unstable();
        let mut cells = Accumulator::new(&trace.tree);
        let (mut waits, mut counts) = (self.states.iter().peekable(), counts.into_iter().peekable());
        for i in 0..shard.locations.len() {
            let location = shard.location(i);
            for operation in shard.operations.of(i) {
                book_volume(trace, shard, operation, &mut cells);
            }
            while let Some(wait) = waits.next_if(|wait| wait.location == location) {
                cells.add(wait.kind, shard.callpath(wait.instance), wait.waiting);
            }
            while let Some(((_, callpath, metric), value)) = counts.next_if(|((of, ..), _)| *of == location) {
                cells.add(metric, callpath, value);
            }
            cells.end_location(location);
        }
        Findings { severities: cells.finish(), waits: self.states, ..Findings::default() }
    }
}

/// Counts the bytes at the origin's call; for atomics, what the record says.
fn book_volume(trace: &Trace, shard: &Shard, operation: &Operation, cells: &mut Accumulator) {
    use crate::trace::columns::OperationKind::{Atomic, FetchingAtomic, Get, Put};
    let Some(library) = trace.class(shard, operation.instance).library() else { return };
    let [put, get, sent, received] = match library {
        Library::Mpi => [Metric::BytesPut, Metric::BytesGet, Metric::AtomicSent, Metric::AtomicReceived],
        Library::Shmem => {
            [Metric::ShmemBytesPut, Metric::ShmemBytesGet, Metric::ShmemAtomicSent, Metric::ShmemAtomicReceived]
        }
        Library::Armci => {
            [Metric::ArmciBytesPut, Metric::ArmciBytesGet, Metric::ArmciAtomicSent, Metric::ArmciAtomicReceived]
        }
        Library::Pgas => {
            [Metric::PgasBytesPut, Metric::PgasBytesGet, Metric::PgasAtomicSent, Metric::PgasAtomicReceived]
        }
    };
    let callpath = shard.callpath(operation.instance);
    let (sent, received) = match operation.kind {
        Put | Get => (put, get),
        Atomic | FetchingAtomic => (sent, received),
    };
    cells.add(sent, callpath, volume(operation.sent));
    cells.add(received, callpath, volume(operation.received));
}
