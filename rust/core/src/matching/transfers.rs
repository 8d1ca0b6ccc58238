//! Transfers of one-sided communication, from the source of the data to its destination.
//!
//! ```text
//!  origin       --[ put ]-----[ complete ]--
//!                 |  origin, start
//!  destination  --------------------[ wait ]--
//!                                          |  end
//! ```
//!
//! *Origin*: the record of the operation that requests the transfer. *Start*: at the source, which is the origin for
//! writes and the target for reads, with the origin's time stamp, since the target records nothing. *End*: at the
//! destination, the Leave of the call after which the data are known to have arrived.
//!
//! *Blocking interfaces* (OpenSHMEM, ARMCI): the end of the call that completes the operation locally.
//! *MPI*: a transfer ends in the synchronization that completes it. In a lock epoch, that is the first of flush, wait
//! for the request, and unlock that completes it. For reads, it is the origin's complete or fence; for writes, the
//! target's wait or successful test, or the target's fence. Without such a call, a transfer has no end.
//!
//! *Source*: specification.md#transfers; basic and extended event model: Euro-Par'05, sections 3.1 and 3.2; thesis,
//! section 3.1.

use bitcode::{Decode, Encode};
use rustc_hash::FxHashMap;

use crate::Result;
use crate::ids::{CallPathId, GroupId, InstanceId, LocationId, ProcessId, WindowId};
use crate::matching::epochs::{Access, Epoch, Epochs, PairNumbers};
use crate::parallel::exchange::Inbox;
use crate::parallel::iter::prelude::*;
use crate::trace::columns::{Operation, OperationKind};
use crate::trace::regions::Library;
use crate::trace::{Shard, Trace};

/// One transfer; locations are indexes, times ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Transfer {
    /// The operation.
    pub kind: OperationKind,
    /// The kind of epoch it belongs to.
    pub epoch: EpochKind,
    /// The window.
    pub window: WindowId,
    /// Bytes (atomics: the larger of what the record says for both ways).
    pub bytes: u64,
    /// The requesting location, and its region instance.
    pub origin: (LocationId, InstanceId),
    /// Call path of the request.
    pub callpath: CallPathId,
    /// Time of the request, which is also its start.
    pub time: i64,
    /// The source of the data; for a target, its master thread.
    pub source: LocationId,
    /// The destination of the data.
    pub destination: LocationId,
    /// When the data had arrived, if known.
    pub end: Option<i64>,
}

/// The kind of epoch a transfer belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum EpochKind {
    /// No epoch that was closed.
    None,
    /// Between fences.
    Fence,
    /// From start to complete.
    Access,
    /// From lock to unlock.
    Lock,
}

/// An epoch at the target.
#[derive(Clone, Copy, Encode, Decode)]
struct TargetEpoch {
    window: WindowId,
    target: ProcessId,
    /// The accessing process; none for fences, which serve all.
    origin: ProcessId,
    /// Number of the exposure epoch for this origin, or of the fence.
    number: u32,
}

/// Asks the shard of a target for the end of an epoch.
#[derive(Clone, Copy, Encode, Decode)]
struct Question {
    /// The shard that asks.
    from: u32,
    /// Position of the epoch among those that it asks for.
    position: u32,
    epoch: TargetEpoch,
}

/// Data by epoch at a target.
///
/// There are many epochs but few pairs of processes, so the epochs of a pair are a vector indexed by number.
#[derive(Default)]
struct ByEpoch<T>(FxHashMap<(WindowId, ProcessId, ProcessId), Vec<T>>);

impl<T: Clone + Default> ByEpoch<T> {
    fn of_pair(&mut self, epoch: TargetEpoch) -> &mut Vec<T> {
        self.0.entry((epoch.window, epoch.target, epoch.origin)).or_default()
    }

    fn slot(&mut self, epoch: TargetEpoch) -> &mut T {
        let number = epoch.number as usize;
        let epochs = self.of_pair(epoch);
        if epochs.len() <= number {
            epochs.resize(number + 1, T::default());
        }
        &mut epochs[number]
    }

    fn get(&self, epoch: TargetEpoch) -> Option<&T> {
        self.0.get(&(epoch.window, epoch.target, epoch.origin))?.get(epoch.number as usize)
    }
}

/// Ends of epochs; `None` for epochs that are never closed.
type Ends = ByEpoch<Option<i64>>;

/// What ends a transfer.
#[derive(Clone, Copy)]
enum End {
    /// Nothing.
    Never,
    /// A region instance of the origin's process.
    Here(InstanceId),
    /// The end of an epoch at the target: its position among those that the shard asks for.
    There(u32),
}

/// All transfers, by location of the origin and time.
pub fn find(trace: &Trace, epochs: &[Epochs]) -> Result<Vec<Transfer>> {
    let of_shards = of_shards(trace, epochs, |transfers| transfers.collect::<Vec<_>>())?;
    Ok(of_shards.concat())
}

/// Passes the transfers that each shard requested, ordered by location and time, to `consume`.
pub(crate) fn of_shards<R: Send>(
    trace: &Trace,
    epochs: &[Epochs],
    consume: impl Fn(&mut dyn Iterator<Item = Transfer>) -> R + Sync,
) -> Result<Vec<R>> {
    let shards = || trace.par_shards().zip(epochs);
    let ends: Vec<(Vec<End>, Vec<TargetEpoch>)> = shards().map(|(shard, epochs)| ends(trace, shard, epochs)).collect();
    let ask = |((_, awaited), from): (&(_, Vec<TargetEpoch>), u32)| {
        let mut outbox = trace.exchange.outbox();
        for (epoch, position) in awaited.iter().zip(0..) {
            outbox.push(trace.owner(epoch.target), Question { from, position, epoch: *epoch });
        }
        outbox
    };
    let questions = ends.par_iter().zip(trace.exchange.own()).map(ask).collect();
    let answer = |(questions, (shard, epochs)): (Inbox<Question>, (&Shard, &Epochs))| {
        let leaves = leaves(trace, shard, epochs);
        let mut outbox = trace.exchange.outbox();
        for &Question { from, position, epoch } in questions.rows() {
            if let Some(&Some(leave)) = leaves.get(epoch) {
                outbox.push(from, (position, leave));
            }
        }
        outbox
    };
    let answers = trace.exchange.alltoallv(questions)?.into_par_iter().zip(shards()).map(answer).collect();
    let answers = trace.exchange.alltoallv(answers)?;
    let found = shards().zip(ends).zip(answers).map(|(((shard, epochs), (ends, awaited)), answers)| {
        let mut there = vec![None; awaited.len()];
        for &(position, leave) in answers.rows() {
            there[position as usize] = Some(leave);
        }
        let end = |row: usize| match ends[row] {
            End::Never => None,
            End::Here(instance) => Some(shard.leave(instance)),
            End::There(position) => there[position as usize],
        };
        let rows = (0..shard.locations.len()).flat_map(|i| shard.operations.range(i).map(move |row| (i, row)));
        consume(&mut rows.map(|(i, row)| transfer(trace, shard, epochs, shard.location(i), row, end(row))))
    });
    Ok(found.collect())
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

/// Numbers of the access epochs of a shard among those of the same two processes on the same window.
#[derive(Default)]
struct AccessNumbers {
    /// For each epoch, where its numbers begin; it has one number per member of its group.
    first: Vec<u32>,
    of_members: Vec<u32>,
    positions: FxHashMap<(GroupId, ProcessId), u32>,
}

impl AccessNumbers {
    fn of(trace: &Trace, accesses: &[Access]) -> Self {
        let mut numbers = Self::default();
        let mut of_pairs = PairNumbers::default();
        for access in accesses {
            numbers.first.push(numbers.of_members.len() as u32);
            for (position, &target) in trace.definitions.group_members(access.group, &access.process).iter().enumerate()
            {
                numbers.of_members.push(of_pairs.next(access.window, access.process, target));
                numbers.positions.insert((access.group, target), position as u32);
            }
        }
        numbers
    }

    /// The number of an access epoch for a target; `None` if the target is not in its group.
    fn get(&self, position: u32, access: &Access, target: ProcessId) -> Option<u32> {
        let member = self.positions.get(&(access.group, target))?;
        Some(self.of_members[(self.first[position as usize] + member) as usize])
    }
}

/// What ends each operation of a shard, and the epochs at targets among that.
fn ends(trace: &Trace, shard: &Shard, epochs: &Epochs) -> (Vec<End>, Vec<TargetEpoch>) {
    let numbers = AccessNumbers::of(trace, &epochs.accesses);
    let mut awaited = Vec::new();
    // Counted from 1.
    let mut positions = ByEpoch::<u32>::default();
    let mut there = |epoch: TargetEpoch| {
        let position = positions.slot(epoch);
        if *position == 0 {
            awaited.push(epoch);
            *position = awaited.len() as u32;
        }
        End::There(*position - 1)
    };
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
                match numbers.get(access, of, target) {
                    Some(number) if !answered => there(TargetEpoch { window, target, origin: of.process, number }),
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
                    there(TargetEpoch { window, target, origin: ProcessId::NONE, number: part.sequence })
                }
            }
        }
    };
    let ends = shard.operations.rows.iter().zip(&epochs.epoch_of).map(end).collect();
    (ends, awaited)
}

/// Ends of the epochs at the targets of this shard.
fn leaves(trace: &Trace, shard: &Shard, epochs: &Epochs) -> Ends {
    let mut leaves = Ends::default();
    for part in epochs.collectives.iter().filter(|part| part.is_fence()) {
        let epoch =
            TargetEpoch { window: part.window, target: part.process, origin: ProcessId::NONE, number: part.sequence };
        *leaves.slot(epoch) = Some(shard.leave(part.instance));
    }
    for exposure in &epochs.exposures {
        let leave = exposure.wait.is_some().then(|| shard.leave(exposure.wait));
        for &origin in trace.definitions.group_members(exposure.group, &exposure.process) {
            let epoch = TargetEpoch { window: exposure.window, target: exposure.process, origin, number: 0 };
            leaves.of_pair(epoch).push(leave);
        }
    }
    leaves
}
