//! Transfers of one-sided communication: from a source, which their data leave, to a destination, where they arrive.
//!
//! ```text
//!  origin       --[ put ]-----[ complete ]--
//!                 |  origin, start
//!  destination  --------------------[ wait ]--
//!                                          |  end
//! ```
//!
//! *Origin*: the record of the operation, where somebody asks for the transfer. *Start*: at the source, which is the
//! origin for what writes and the target for what brings something back; with the stamp of the origin, since a target
//! records nothing. *End*: at the destination, the Leave of the call after which its data are known to be there.
//!
//! *Blocking interfaces* (OpenSHMEM, ARMCI): the end of the call that completes the operation locally.
//! *MPI*: a transfer ends in the synchronization that completes it. In a lock epoch the first that does among flush, wait
//! for a request, unlock; in an access epoch complete, in a fence epoch the fence: at the origin for what brings
//! something back; for what writes the target's wait or successful test, and the target's part of the fence. Without such
//! a call it has no end.
//!
//! *Source*: specification.md#transfers; basic and extended event model: Euro-Par'05, sections 3.1 and 3.2; thesis,
//! section 3.1.

use bitcode::{Decode, Encode};
use rustc_hash::FxHashMap;

use crate::Result;
use crate::exchange::Outbox;
use crate::ids::{CallPathId, InstanceId, LocationId, ProcessId, WindowId};
use crate::matching::epochs::{Epoch, Epochs, PairNumbers};
use crate::trace::columns::{Operation, OperationKind};
use crate::trace::regions::Library;
use crate::trace::{Shard, Trace};

/// One transfer; locations are indexes, times ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Transfer {
    /// The operation.
    pub kind: OperationKind,
    /// What completes it.
    pub epoch: EpochKind,
    /// The window.
    pub window: WindowId,
    /// Bytes (atomics: the larger of what the record says for both ways).
    pub bytes: u64,
    /// Who asked for it, and in which region instance of its shard.
    pub origin: (LocationId, InstanceId),
    /// Call path of that.
    pub callpath: CallPathId,
    /// When it was asked for, and also when it started.
    pub time: i64,
    /// Where the data come from; of a target the master thread.
    pub source: LocationId,
    /// Where they go.
    pub destination: LocationId,
    /// When they were there, if that is known.
    pub end: Option<i64>,
}

/// The kind of epoch a transfer belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum EpochKind {
    /// None that was closed.
    None,
    /// Between fences.
    Fence,
    /// From start to complete.
    Access,
    /// From lock to unlock.
    Lock,
}

/// An epoch at the target.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
struct AtTarget {
    window: WindowId,
    target: ProcessId,
    /// The process that accesses; none for fences, which are for all.
    origin: ProcessId,
    /// Number of the exposure epoch for this origin, or of the fence.
    number: u32,
}

/// What ends a transfer.
#[derive(Clone, Copy)]
enum End {
    /// Nothing.
    Never,
    /// A region instance of the origin's process.
    Here(InstanceId),
    /// The end of an epoch at the target.
    There(AtTarget),
}

/// All transfers, by location of the origin and time.
pub fn find(trace: &Trace, epochs: &[Epochs]) -> Result<Vec<Transfer>> {
    let shards = || trace.shards.iter().zip(epochs);
    let ends: Vec<Vec<End>> = shards().map(|(shard, epochs)| ends(trace, shard, epochs)).collect();
    let questions = trace.exchange.own().zip(&ends).map(|(from, ends)| ask(trace, from, ends)).collect();
    let answers = trace.exchange.alltoallv(questions)?.into_iter().zip(shards()).map(|(questions, (shard, epochs))| {
        let leaves = leaves(trace, shard, epochs);
        let mut outbox = trace.exchange.outbox();
        for &(from, epoch) in questions.rows() {
            if let Some(&leave) = leaves.get(&epoch) {
                outbox.push(from, (epoch, leave));
            }
        }
        outbox
    });
    let answers = trace.exchange.alltoallv(answers.collect())?;
    let mut transfers = Vec::new();
    for (((shard, epochs), ends), answers) in shards().zip(&ends).zip(answers) {
        let there: FxHashMap<AtTarget, i64> = answers.rows().copied().collect();
        for i in 0..shard.locations.len() {
            for row in shard.operations.range(i) {
                let end = match ends[row] {
                    End::Never => None,
                    End::Here(instance) => Some(shard.leave(instance)),
                    End::There(epoch) => there.get(&epoch).copied(),
                };
                transfers.push(transfer(trace, shard, epochs, shard.location(i), row, end));
            }
        }
    }
    Ok(transfers)
}

fn transfer(
    trace: &Trace,
    shard: &Shard,
    epochs: &Epochs,
    origin: LocationId,
    row: usize,
    end: Option<i64>,
) -> Transfer {
    let Operation { time, sent, received, instance, window, target, kind, .. } = shard.operations.rows[row];
    let target =
        if trace.definitions.locations[origin].process == target { origin } else { trace.definitions.master(target) };
    let (source, destination) = if kind.is_fetching() { (target, origin) } else { (origin, target) };
    let epoch = match epochs.epoch_of[row] {
        Epoch::Lock(_) => EpochKind::Lock,
        Epoch::Access(_) => EpochKind::Access,
        Epoch::Collective(part) if epochs.collectives[part as usize].is_fence() => EpochKind::Fence,
        Epoch::Collective(_) | Epoch::Open => EpochKind::None,
    };
    let (origin, callpath) = ((origin, instance), shard.callpath(instance));
    Transfer { kind, epoch, window, bytes: sent.max(received), origin, callpath, time, source, destination, end }
}

/// What ends each operation of a shard.
fn ends(trace: &Trace, shard: &Shard, epochs: &Epochs) -> Vec<End> {
    let mut numbers = PairNumbers::default();
    let mut number_of: FxHashMap<(u32, ProcessId), u32> = FxHashMap::default();
    for (position, access) in epochs.accesses.iter().enumerate() {
        for &target in trace.definitions.group_members(access.group, &access.process) {
            number_of.insert((position as u32, target), numbers.next(access.window, access.process, target));
        }
    }
    let first =
        |calls: &[InstanceId]| calls.iter().find(|call| call.is_some()).map_or(End::Never, |&call| End::Here(call));
    let end = |(operation, &epoch): (&Operation, &Epoch)| {
        let &Operation { instance, window, target, done_local, done_remote, .. } = operation;
        if trace.class(shard, instance).library() != Some(Library::Mpi) {
            return first(&[done_local, instance]);
        }
        let answered = operation.kind.is_fetching();
        match epoch {
            Epoch::Open => End::Never,
            Epoch::Lock(lock) => {
                let release = epochs.locks[lock as usize].release;
                if answered { first(&[done_local, done_remote, release]) } else { first(&[done_remote, release]) }
            }
            Epoch::Access(access) => {
                let of = &epochs.accesses[access as usize];
                match number_of.get(&(access, target)) {
                    Some(&number) if !answered => End::There(AtTarget { window, target, origin: of.process, number }),
                    _ => first(&[of.complete]),
                }
            }
            Epoch::Collective(part) => {
                let part = &epochs.collectives[part as usize];
                if !part.is_fence() {
                    End::Never
                } else if answered || target == part.process {
                    End::Here(part.instance)
                } else {
                    End::There(AtTarget { window, target, origin: ProcessId::NONE, number: part.sequence })
                }
            }
        }
    };
    shard.operations.rows.iter().zip(&epochs.epoch_of).map(end).collect()
}

/// Asks the targets, once for each epoch.
fn ask(trace: &Trace, from: u32, ends: &[End]) -> Outbox<(u32, AtTarget)> {
    let asked = ends.iter().filter_map(|&end| if let End::There(epoch) = end { Some(epoch) } else { None });
    let mut epochs: Vec<AtTarget> = asked.collect();
    epochs.sort_unstable();
    epochs.dedup();
    let mut outbox = trace.exchange.outbox();
    for epoch in epochs {
        outbox.push(trace.owner(epoch.target), (from, epoch));
    }
    outbox
}

/// When the epochs that others may ask for end.
fn leaves(trace: &Trace, shard: &Shard, epochs: &Epochs) -> FxHashMap<AtTarget, i64> {
    let mut leaves = FxHashMap::default();
    for part in epochs.collectives.iter().filter(|part| part.is_fence()) {
        let epoch =
            AtTarget { window: part.window, target: part.process, origin: ProcessId::NONE, number: part.sequence };
        leaves.insert(epoch, shard.leave(part.instance));
    }
    let mut numbers = PairNumbers::default();
    for exposure in &epochs.exposures {
        for &origin in trace.definitions.group_members(exposure.group, &exposure.process) {
            let number = numbers.next(exposure.window, exposure.process, origin);
            if exposure.wait.is_some() {
                let epoch = AtTarget { window: exposure.window, target: exposure.process, origin, number };
                leaves.insert(epoch, shard.leave(exposure.wait));
            }
        }
    }
    leaves
}
