//! One-sided synchronization that is cut: it vanishes with its whole epoch, at all partners, or not at all, because memory
//! would be used outside of an epoch (whatif.md#what-can-be-changed).

use rustc_hash::FxHashMap;

use super::cut::Cut;
use crate::ids::{InstanceId, LocationId, ProcessId, WindowId};
use crate::matching::epochs::{Epochs, PairNumbers};
use crate::matching::windows::match_all;
use crate::trace::{Shard, Trace};
use crate::{Error, Result};

/// An error if synchronization is cut that is needed.
pub(super) fn refuse_open(trace: &Trace, epochs: &[Epochs], cut: &Cut) -> Result<()> {
    if cut.is_empty() || epochs.is_empty() {
        return Ok(());
    }
    let calls = Calls { trace, cut };
    if fences_stay_closed(&calls, epochs)?
        && general_epochs_stay_closed(&calls, epochs)
        && locks_stay_closed(&calls, epochs)
    {
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
    cut: &'a Cut,
}

impl Calls<'_> {
    fn is_cut(&self, shard: &Shard, call: InstanceId) -> bool {
        call.is_some() && self.cut.has_instance(self.trace, (shard.location_of_instance(call), call))
    }

    /// Whether some operations, given by their rows, are all cut.
    fn are_cut(&self, shard: &Shard, rows: &[u32]) -> bool {
        rows.iter().all(|&row| self.is_cut(shard, shard.operations.rows[row as usize].instance))
    }

    /// Whether the calls that begin and end an epoch are cut with its operations, or stay; operations may vanish alone.
    fn is_whole(&self, shard: &Shard, ends: [InstanceId; 2], rows: &[u32]) -> bool {
        let mut ends = ends.into_iter().filter(|call| call.is_some()).map(|call| self.is_cut(shard, call));
        let is_cut = ends.next().unwrap_or(false);
        ends.all(|end| end == is_cut) && (!is_cut || self.are_cut(shard, rows))
    }
}

/// A fence vanishes for all its members, with what they did since the one before; what they do until the next one must have
/// a fence before it. The making of a window stays.
fn fences_stay_closed(calls: &Calls<'_>, epochs: &[Epochs]) -> Result<bool> {
    let trace = calls.trace;
    let is_cut = |(location, instance): (LocationId, InstanceId)| calls.cut.has_instance(trace, (location, instance));
    let (alike, _) = match_all(trace, epochs, |parts| {
        let cut = parts.iter().filter(|part| is_cut((part.location, part.instance))).count();
        cut == 0 || cut == parts.len()
    })?;
    for ((shard, epochs), alike) in trace.shards.iter().zip(epochs).zip(&alike) {
        let mut parts: Vec<usize> = (0..epochs.collectives.len()).collect();
        parts.sort_by_key(|&part| {
            let part = &epochs.collectives[part];
            (part.process, part.window, part.sequence)
        });
        // Of each window whether its first fences are cut.
        let mut open: FxHashMap<(ProcessId, WindowId), bool> = FxHashMap::default();
        for number in parts {
            let part = &epochs.collectives[number];
            let rows = epochs.of_collective.of(number);
            let is_cut = calls.is_cut(shard, part.instance);
            let is_open = open.get(&(part.process, part.window)) == Some(&true);
            let is_whole = if is_cut {
                part.is_fence() && alike[number] == Some(true) && calls.are_cut(shard, rows)
            } else {
                alike[number] != Some(false) && (!is_open || calls.are_cut(shard, rows))
            };
            if !is_whole {
                return Ok(false);
            }
            if part.is_fence() {
                let open = open.entry((part.process, part.window)).or_insert(true);
                *open &= is_cut;
            }
        }
    }
    Ok(true)
}

/// An access epoch vanishes with its operations and the exposure epochs of its targets, an exposure epoch with the access
/// epochs of its origins.
fn general_epochs_stay_closed(calls: &Calls<'_>, epochs: &[Epochs]) -> bool {
    let trace = calls.trace;
    // By window, origin, target and number whether the exposure vanishes.
    let mut exposed: FxHashMap<(WindowId, ProcessId, ProcessId, u32), bool> = FxHashMap::default();
    for (shard, epochs) in trace.shards.iter().zip(epochs) {
        let mut numbers = PairNumbers::default();
        for exposure in &epochs.exposures {
            if !calls.is_whole(shard, [exposure.post, exposure.wait], &[]) {
                return false;
            }
            let is_cut = calls.is_cut(shard, exposure.post);
            for &origin in trace.definitions.group_members(exposure.group, &exposure.process) {
                let n = numbers.next(exposure.window, exposure.process, origin);
                exposed.insert((exposure.window, origin, exposure.process, n), is_cut);
            }
        }
    }
    for (shard, epochs) in trace.shards.iter().zip(epochs) {
        let mut numbers = PairNumbers::default();
        for (number, access) in epochs.accesses.iter().enumerate() {
            if !calls.is_whole(shard, [access.start, access.complete], epochs.of_access.of(number)) {
                return false;
            }
            let is_cut = calls.is_cut(shard, access.start);
            for &target in trace.definitions.group_members(access.group, &access.process) {
                let n = numbers.next(access.window, access.process, target);
                let exposure = exposed.remove(&(access.window, access.process, target, n));
                if exposure.is_some_and(|exposure| exposure != is_cut) {
                    return false;
                }
            }
        }
    }
    true
}

/// The calls of a lock epoch vanish together, with its operations.
fn locks_stay_closed(calls: &Calls<'_>, epochs: &[Epochs]) -> bool {
    calls.trace.shards.iter().zip(epochs).all(|(shard, epochs)| {
        let mut locks = epochs.locks.iter().enumerate();
        locks.all(|(number, lock)| calls.is_whole(shard, [lock.acquire, lock.release], epochs.of_lock.of(number)))
    })
}
