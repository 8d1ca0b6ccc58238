//! Cuts of one-sided synchronization: it can only be cut with its whole epoch, at all partners, because otherwise
//! memory would be accessed outside an epoch (whatif.md#what-can-be-changed).

use rustc_hash::{FxHashMap, FxHashSet};
use whywait_otf2::enums::CollectiveOp;

use super::cut::Cut;
use crate::ids::{InstanceId, ProcessId, WindowId};
use crate::matching::active_targets::{Posted, exposures};
use crate::matching::epochs::Epochs;
use crate::matching::windows::{Part, match_all};
use crate::trace::regions::Library;
use crate::trace::{Shard, Trace};
use crate::whatif::graph::builder::Builder;
use crate::{Error, Result};

/// Operations that create a window.
const MAKING: [CollectiveOp; 2] = [CollectiveOp::CREATE_HANDLE, CollectiveOp::CREATE_HANDLE_AND_ALLOCATE];

/// Fails if a needed synchronization is cut. Collective.
pub(in crate::whatif) fn refuse_open(trace: &Trace, builder: &Builder, epochs: &[Epochs], cut: &Cut) -> Result<()> {
    if !trace.exchange.any(!epochs.is_empty())? {
        return Ok(());
    }
    let calls = Calls { trace, builder, cut };
    let fences = fences_stay_closed(&calls, epochs)?;
    let general = general_epochs_stay_closed(&calls, epochs)?;
    let is_open = !(fences && general && locks_stay_closed(&calls, epochs));
    if !trace.exchange.any(is_open)? {
        return Ok(());
    }
    Err(Error::Usage(
        "one-sided synchronization can only be cut with its whole epoch, at all partners: others would access memory \
         outside of an epoch"
            .into(),
    ))
}

struct Calls<'a> {
    trace: &'a Trace,
    builder: &'a Builder,
    cut: &'a Cut,
}

impl Calls<'_> {
    fn is_cut(&self, shard: &Shard, call: InstanceId) -> bool {
        call.is_some() && self.cut.has(shard.location_of_instance(call), shard.instances.enter[call])
    }

    /// Whether some operations, given by their rows, are all cut.
    fn are_cut(&self, shard: &Shard, rows: &[u32]) -> bool {
        rows.iter().all(|&row| self.is_cut(shard, shard.operations.rows[row as usize].instance))
    }

    /// Whether the calls that begin and end an epoch are cut together with its operations, or stay; operations alone
    /// may vanish.
    fn is_whole(&self, shard: &Shard, ends: [InstanceId; 2], rows: &[u32]) -> bool {
        let mut ends = ends.into_iter().filter(|call| call.is_some()).map(|call| self.is_cut(shard, call));
        let is_cut = ends.next().unwrap_or(false);
        ends.all(|end| end == is_cut) && (!is_cut || self.are_cut(shard, rows))
    }
}

/// A fence vanishes for all its members, with what they did since the previous one; what they do until the next one
/// must have a fence before it. The creation of a window vanishes with all operations on it, and its end for all its
/// members.
fn fences_stay_closed(calls: &Calls<'_>, epochs: &[Epochs]) -> Result<bool> {
    let trace = calls.trace;
    let is_cut = |part: &Part| calls.cut.has_call(calls.builder.instance(trace, (part.location, part.begin)));
    let (alike, _) = match_all(trace, epochs, |parts| {
        let cut = parts.iter().filter(|part| is_cut(part)).count();
        cut == 0 || cut == parts.len()
    })?;
    for ((shard, epochs), alike) in trace.shards.iter().zip(epochs).zip(&alike) {
        let mut parts: Vec<usize> = (0..epochs.collectives.len()).collect();
        parts.sort_by_key(|&part| {
            let part = &epochs.collectives[part];
            (part.process, part.window, part.sequence)
        });
        // For each window, whether its first fences are cut.
        let mut open: FxHashMap<(ProcessId, WindowId), bool> = FxHashMap::default();
        let mut unmade: FxHashSet<(ProcessId, WindowId)> = FxHashSet::default();
        for number in parts {
            let part = &epochs.collectives[number];
            let rows = epochs.of_collective.of(number);
            let is_cut = calls.is_cut(shard, part.instance);
            let is_open = open.get(&(part.process, part.window)) == Some(&true);
            let is_whole = if is_cut {
                // A barrier of another library does not end an epoch.
                alike[number] == Some(true) && (part.library != Library::Mpi || calls.are_cut(shard, rows))
            } else {
                alike[number] != Some(false) && (!is_open || calls.are_cut(shard, rows))
            };
            if is_cut && MAKING.contains(&CollectiveOp(part.operation)) {
                unmade.insert((part.process, part.window));
            }
            if !is_whole {
                return Ok(false);
            }
            if part.is_fence() {
                let open = open.entry((part.process, part.window)).or_insert(true);
                *open &= is_cut;
            }
        }
        if !unmade.is_empty() && !nothing_is_done(calls, shard, epochs, &unmade) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether all operations on some windows are cut.
fn nothing_is_done(
    calls: &Calls<'_>,
    shard: &Shard,
    epochs: &Epochs,
    windows: &FxHashSet<(ProcessId, WindowId)>,
) -> bool {
    let is_gone = |process, window, call| !windows.contains(&(process, window)) || calls.is_cut(shard, call);
    let origin = |call| calls.trace.definitions.locations[shard.location_of_instance(call)].process;
    let mut operations = shard.operations.rows.iter();
    epochs.collectives.iter().all(|part| is_gone(part.process, part.window, part.instance))
        && epochs.accesses.iter().all(|of| is_gone(of.process, of.window, of.start))
        && epochs.exposures.iter().all(|of| is_gone(of.process, of.window, of.post))
        && epochs.locks.iter().all(|of| is_gone(of.process, of.window, of.acquire))
        && operations.all(|of| is_gone(origin(of.instance), of.window, of.instance))
}

/// An access epoch vanishes with its operations and the exposure epochs of its targets, an exposure epoch with the
/// access epochs of its origins.
fn general_epochs_stay_closed(calls: &Calls<'_>, epochs: &[Epochs]) -> Result<bool> {
    let trace = calls.trace;
    let shards = || trace.shards.iter().zip(epochs);
    let are_whole = |(shard, epochs): (&Shard, &Epochs)| {
        let mut exposures = epochs.exposures.iter();
        exposures.all(|exposure| calls.is_whole(shard, [exposure.post, exposure.wait], &[]))
    };
    let exposures = exposures(trace, epochs)?;
    if !shards().all(are_whole) {
        return Ok(false);
    }
    let vanishes = |of: &Posted| calls.cut.has_call(calls.builder.instance(trace, of.post));
    for ((shard, epochs), exposures) in shards().zip(&exposures) {
        for (number, access) in epochs.accesses.iter().enumerate() {
            if !calls.is_whole(shard, [access.start, access.complete], epochs.of_access.of(number)) {
                return Ok(false);
            }
            let is_cut = calls.is_cut(shard, access.start);
            if exposures.of(number).iter().flatten().any(|of| vanishes(of) != is_cut) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// The calls of a lock epoch vanish together, with its operations.
fn locks_stay_closed(calls: &Calls<'_>, epochs: &[Epochs]) -> bool {
    calls.trace.shards.iter().zip(epochs).all(|(shard, epochs)| {
        let mut locks = epochs.locks.iter().enumerate();
        locks.all(|(number, lock)| calls.is_whole(shard, [lock.acquire, lock.release], epochs.of_lock.of(number)))
    })
}
