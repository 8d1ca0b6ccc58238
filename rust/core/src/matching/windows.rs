//! Matching of collective operations on windows: the n-th call of each member is one instance.
//!
//! OpenSHMEM's allocations leave no record; they count as calls of all processes on a window of their own.

use bitcode::{Decode, Encode};
use whywait_otf2::enums::CollectiveOp;

use super::epochs::{CollectivePart, Epochs};
use crate::Result;
use crate::diagnostics::{DiagnosticKind, Diagnostics, Place};
use crate::ids::{InstanceId, LocationId, ProcessId, WindowId};
use crate::parallel::exchange::{Outbox, Row};
use crate::parallel::iter::prelude::*;
use crate::trace::definition_index::Members;
use crate::trace::regions::Library;
use crate::trace::{Shard, Trace};

/// The part of one process in an instance.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct Part {
    /// Enter of the call in which the process arrives, ticks.
    pub enter: i64,
    /// Leave of the call, ticks.
    pub leave: i64,
    window: WindowId,
    sequence: u32,
    /// The process.
    pub process: ProcessId,
    /// The location.
    pub location: LocationId,
    /// Region instance of the call in which it arrives.
    pub begin: InstanceId,
    /// Shard of the process, and position among its collective calls.
    pub position: (u32, u32),
    /// The operation, a value of `CollectiveOp`.
    pub operation: u8,
    /// The root, or none.
    pub root: ProcessId,
    /// The library that the call belongs to.
    pub library: Library,
}

/// Whether nobody leaves such an operation before all have entered it. A fence without operations need not synchronize
/// (MPI 4.1, section 12.5.1), nor does an operation with a root; others are barriers.
pub(crate) fn always_synchronizes(library: Library, operation: u8, root: ProcessId) -> bool {
    match library {
        Library::Mpi => CollectiveOp(operation) != CollectiveOp::BARRIER,
        _ => !comes_from_root(library, operation) && Direction::of(library, operation, root) == Direction::Everybody,
    }
}

/// Whether the root of an operation has what all others wait for.
pub(crate) fn comes_from_root(library: Library, operation: u8) -> bool {
    match CollectiveOp(operation) {
        CollectiveOp::BCAST => true,
        CollectiveOp::SCATTER | CollectiveOp::SCATTERV => library == Library::Pgas,
        _ => false,
    }
}

/// Who waits for whom in a collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Everybody for everybody, or it is not known.
    Everybody,
    /// Everybody for the root.
    FromRoot,
    /// The root for everybody.
    ToRoot,
}

impl Direction {
    /// That of an operation, a value of `CollectiveOp`, whose root is known. In MPI, windows have no such operations; what
    /// measurement systems record as root in OpenSHMEM is none.
    pub(crate) fn of(library: Library, operation: u8, root: ProcessId) -> Self {
        match CollectiveOp(operation) {
            _ if library != Library::Pgas || root.is_none() => Self::Everybody,
            _ if comes_from_root(library, operation) => Self::FromRoot,
            CollectiveOp::GATHER | CollectiveOp::GATHERV | CollectiveOp::REDUCE => Self::ToRoot,
            _ => Self::Everybody,
        }
    }
}

/// The parts in all collective operations on windows, by the shard that evaluates them: instance by instance, ordered by
/// process.
pub(crate) fn parts(trace: &Trace, epochs: &[Epochs]) -> Result<Vec<Vec<Part>>> {
    let outgoing = trace.par_shards().zip(trace.exchange.own()).zip(epochs).map(|((shard, i), epochs)| {
        let mut outbox = trace.exchange.outbox();
        for (position, part) in epochs.collectives.iter().enumerate() {
            // Nobody waits for a call on a window that one process has to itself.
            let comm = trace
                .definitions
                .windows
                .get(part.window.index())
                .and_then(|_| trace.definitions.window_comm(part.window));
            if comm.is_none_or(|comm| !matches!(*comm.members, Members::OwnProcess)) {
                let owner = trace.exchange.evaluator(part.window.number(), part.sequence);
                outbox.push(owner, row(shard, part, (i, position as u32)));
            }
        }
        outbox
    });
    let sorted = trace.exchange.alltoallv(outgoing.collect())?.into_par_iter().map(|inbox| {
        let mut parts: Vec<Part> = inbox.into_vec();
        // The parts of each process are in order, so a stable sort only merges them.
        parts.sort_by_key(|part| (part.window, part.sequence, part.process));
        parts
    });
    Ok(sorted.collect())
}

/// The instances among parts.
pub(crate) fn instances(parts: &[Part]) -> impl Iterator<Item = &[Part]> {
    parts.chunk_by(|a, b| (a.window, a.sequence) == (b.window, b.sequence))
}

/// Whether all members of the window take part in an instance.
pub(crate) fn is_complete(trace: &Trace, instance: &[Part]) -> bool {
    instance.len() == size(trace, instance[0].window)
}

/// Matches all collective operations on windows. `evaluate` receives the parts of each complete instance, ordered by
/// process, and all of them get its answer. Returns, for each shard, an answer per row of [`Epochs::collectives`].
pub fn match_all<R: Row + Copy>(
    trace: &Trace,
    epochs: &[Epochs],
    evaluate: impl Fn(&[Part]) -> R + Sync,
) -> Result<(Vec<Vec<Option<R>>>, Diagnostics)> {
    let evaluated: Vec<(Outbox<(u32, R)>, Diagnostics)> = parts(trace, epochs)?
        .into_par_iter()
        .map(|parts| {
            let mut outbox = trace.exchange.outbox();
            let mut diagnostics = Diagnostics::default();
            for instance in instances(&parts) {
                if is_complete(trace, instance) {
                    let answer = evaluate(instance);
                    for Part { position: (shard, position), .. } in instance {
                        outbox.push(*shard, (*position, answer));
                    }
                } else {
                    let place = Place::at(instance[0].location, instance[0].enter);
                    diagnostics.count(DiagnosticKind::IncompleteCollective, 1, Some(place));
                }
            }
            (outbox, diagnostics)
        })
        .collect();
    let mut diagnostics = Diagnostics::default();
    let mut outgoing = Vec::with_capacity(evaluated.len());
    for (outbox, owner_notes) in evaluated {
        outgoing.push(outbox);
        diagnostics.merge(owner_notes);
    }
    let answers = trace.exchange.alltoallv(outgoing)?.into_par_iter().zip(epochs).map(|(inbox, epochs)| {
        let mut answers = vec![None; epochs.collectives.len()];
        for &(position, answer) in inbox.rows() {
            answers[position as usize] = Some(answer);
        }
        answers
    });
    Ok((answers.collect(), diagnostics))
}

fn row(shard: &Shard, part: &CollectivePart, position: (u32, u32)) -> Part {
    Part {
        enter: shard.enter(part.begin),
        leave: shard.leave(part.instance),
        window: part.window,
        sequence: part.sequence,
        process: part.process,
        location: part.location,
        begin: part.begin,
        position,
        operation: part.operation,
        root: part.root,
        library: part.library,
    }
}

fn size(trace: &Trace, window: WindowId) -> usize {
    if window.is_none() {
        return trace.definitions.processes.len();
    }
    trace.definitions.window_comm(window).map_or(0, |comm| comm.size)
}
