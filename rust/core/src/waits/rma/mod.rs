//! Wait states in one-sided communication: one file per family of patterns.
//!
//! All times are Enter and Leave of calls, never time stamps of records: most records repeat the stamp before them.
//!
//! *Source*: specification.md#one-sided-communication; thesis, chapter 3. Where the definitions leave a choice,
//! docs/one-sided.md says how it is made.

pub mod fence;
pub mod gats;
pub mod lock;
pub mod notification;
pub mod progress;
pub mod wait_until;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::collective_sync::CollectiveSync;
use super::{Findings, WaitState};
use crate::Result;
use crate::diagnostics::Diagnostics;
use crate::ids::{CallPathId, InstanceId, LocationId};
use crate::matching::epochs::Epochs;
use crate::severity::{Accumulator, Metric, volume};
use crate::trace::columns::Operation;
use crate::trace::regions::Library;
use crate::trace::{Shard, Trace};

/// The findings in one-sided communication; one entry per shard.
#[derive(Debug, Default)]
pub struct OneSided {
    /// Wait states, severities, inconsistencies.
    pub findings: Vec<Findings>,
    /// Epochs.
    pub epochs: Vec<Epochs>,
    /// Synchronizations in collective operations on windows.
    pub collective_syncs: Vec<Vec<CollectiveSync>>,
}

/// Detects all wait states of one-sided communication, given its epochs and the findings in messages, and on request
/// the synchronizations of collective calls. With `thesis_pairs`, needed pairs of fences count in both directions, and
/// MPI calls that synchronize with passive targets have pairs, as in the thesis.
pub fn detect(
    trace: &Trace,
    mut epochs: Vec<Epochs>,
    messages: &[Findings],
    (with_meetings, thesis_pairs): (bool, bool),
) -> Result<(OneSided, Diagnostics)> {
    let mut diagnostics = Diagnostics::default();
    for epochs in &mut epochs {
        diagnostics.merge(std::mem::take(&mut epochs.diagnostics));
    }
    let mut waits: Vec<Waits> = trace.shards.iter().map(|_| Waits::default()).collect();
    diagnostics.merge(fence::detect(trace, &epochs, &mut waits, (with_meetings, thesis_pairs))?);
    gats::detect(trace, &epochs, &mut waits)?;
    let (contentions, lock_notes) = lock::detect(trace, &epochs)?;
    diagnostics.merge(lock_notes);
    progress::detect(trace, &epochs, &contentions, messages, &mut waits)?;
    wait_until::detect(trace, &epochs, &mut waits)?;
    notification::detect(trace, &epochs, &mut waits)?;
    for ((shard, epochs), waits) in trace.shards.iter().zip(&epochs).zip(&mut waits) {
        waits.count_passive_syncs(trace, shard, epochs, thesis_pairs);
    }
    let collective_syncs = waits.iter_mut().map(|waits| std::mem::take(&mut waits.collective_syncs)).collect();
    let findings = trace.par_shards().zip(waits).map(|(shard, waits)| waits.book(trace, shard)).collect();
    Ok((OneSided { findings, epochs, collective_syncs }, diagnostics))
}

/// Wait states and counts of a shard, in any order.
#[derive(Debug, Default)]
struct Waits {
    states: Vec<WaitState>,
    /// Sums by location, call path and metric.
    counts: FxHashMap<(LocationId, CallPathId, Metric), i64>,
    collective_syncs: Vec<CollectiveSync>,
}

impl Waits {
    fn count(&mut self, location: LocationId, callpath: CallPathId, metric: Metric, value: i64) {
        *self.counts.entry((location, callpath, metric)).or_insert(0) += value;
    }

    /// Pairs of processes that a call synchronizes, and how many of them share data (thesis, section 3.2.2).
    fn count_pairs(
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
        };
        let callpath = shard.callpath(call.1);
        self.count(call.0, callpath, all, size.into());
        self.count(call.0, callpath, unneeded, size.saturating_sub(needed).into());
    }

    /// Counts the pairs of calls that complete operations at passive targets; those of MPI on request.
    fn count_passive_syncs(&mut self, trace: &Trace, shard: &Shard, epochs: &Epochs, with_mpi: bool) {
        for sync in &epochs.passive_syncs {
            let library = trace.class(shard, sync.instance).library().unwrap_or(Library::Mpi);
            if with_mpi || library != Library::Mpi {
                self.count_pairs(shard, library, (sync.location, sync.instance), (sync.size, sync.needed));
            }
        }
    }

    /// Adds the transferred volumes and sums up by call path.
    fn book(mut self, trace: &Trace, shard: &Shard) -> Findings {
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
        Findings { severities: cells.finish(), waits: self.states, diagnostics: Diagnostics::default() }
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
    };
    let callpath = shard.callpath(operation.instance);
    let (sent, received) = match operation.kind {
        Put | Get => (put, get),
        Atomic | FetchingAtomic => (sent, received),
    };
    cells.add(sent, callpath, volume(operation.sent));
    cells.add(received, callpath, volume(operation.received));
}

/// The candidate with the latest time, with the lowest process on a tie.
fn last_of<T: Copy, P: Ord>(candidates: impl IntoIterator<Item = T>, key: impl Fn(&T) -> (i64, P)) -> Option<T> {
    candidates.into_iter().reduce(|last, candidate| {
        let ((time, process), (last_time, last_process)) = (key(&candidate), key(&last));
        if time > last_time || (time == last_time && process < last_process) { candidate } else { last }
    })
}

/// A set of region instances of a shard, as bits.
#[derive(Debug)]
struct InstanceSet(Vec<u64>);

impl InstanceSet {
    fn new(shard: &Shard, instances: impl Iterator<Item = InstanceId>) -> Self {
        let mut bits = vec![0; shard.instances.enter.len().div_ceil(64)];
        // "No instance" is in no set.
        for instance in instances.filter(|&instance| instance.is_some()) {
            bits[instance.index() / 64] |= 1 << (instance.number() % 64);
        }
        Self(bits)
    }

    fn contains(&self, instance: InstanceId) -> bool {
        self.0[instance.index() / 64] >> (instance.number() % 64) & 1 != 0
    }
}

/// Location of an operation's origin.
fn origin_of(shard: &Shard, row: u32) -> LocationId {
    shard.location_of(&shard.operations, row)
}

/// The region instances of an operation and of the calls that complete it.
fn calls_of(operation: &Operation) -> impl Iterator<Item = InstanceId> {
    [operation.instance, operation.done_local, operation.done_remote].into_iter().filter(|&instance| instance.is_some())
}
