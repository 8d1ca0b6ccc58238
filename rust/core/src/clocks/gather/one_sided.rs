//! One-sided communication: windows, fences, access and exposure epochs, locks, notifications; OpenSHMEM and ARMCI.
//!
//! All times are Enter and Leave of calls, as in the wait states (docs/one-sided.md).

use bitcode::{Decode, Encode};
use rustc_hash::FxHashMap;
use whywait_otf2::enums::CollectiveOp;

use crate::Result;
use crate::clocks::constraints::Found;
use crate::clocks::kind::Kind;
use crate::ids::{LocationId, ProcessId, WindowId};
use crate::matching::active_targets::{Accessed, accesses, exposures};
use crate::matching::epochs::{CollectivePart, Epochs, accessed};
use crate::matching::notifications::{Sent, matched};
use crate::matching::ownership::hand_overs;
use crate::matching::windows;
use crate::parallel::iter::prelude::*;
use crate::trace::regions::Library;
use crate::trace::{Shard, Trace};

/// The constraints of one-sided communication.
pub(super) fn collect(trace: &Trace, epochs: &[Epochs]) -> Result<Vec<Found>> {
    let mut found = meetings(trace, epochs)?;
    found.extend(fences(trace, epochs)?);
    found.extend(posts(trace, epochs)?);
    found.extend(completes(trace, epochs)?);
    found.extend(locks(trace, epochs)?);
    found.extend(notifications(trace, epochs)?);
    Ok(found)
}

/// Calls that all members of a window leave after all have entered.
fn meetings(trace: &Trace, epochs: &[Epochs]) -> Result<Vec<Found>> {
    let of_owner = |parts: Vec<windows::Part>| {
        let mut found = Found::default();
        for members in windows::instances(&parts).filter(|members| windows::is_complete(trace, members)) {
            let windows::Part { library, operation, root, .. } = members[0];
            let kind = match library {
                _ if !windows::always_synchronizes(library, operation, root) => continue,
                Library::Mpi => Kind::Window,
                // Start-up bounds nothing.
                _ if CollectiveOp(operation) == CollectiveOp::CREATE_HANDLE => continue,
                _ => Kind::Shmem,
            };
            found.meeting(kind, members.iter().map(|part| (part.location, (part.enter, part.leave))));
        }
        found
    };
    Ok(windows::parts(trace, epochs)?.into_par_iter().map(of_owner).collect())
}

/// The fences before and after an origin's operations on a target, for the target.
#[derive(Clone, Copy, Encode, Decode)]
struct AccessedFence {
    target: ProcessId,
    window: WindowId,
    sequence: u32,
    location: LocationId,
    /// Enter and Leave of the origin's closing fence.
    enter: i64,
    leave: i64,
}

fn fences(trace: &Trace, epochs: &[Epochs]) -> Result<Vec<Found>> {
    let outgoing = trace.par_shards().zip(epochs).map(|(shard, epochs)| {
        let mut outbox = trace.exchange.outbox();
        let mut targets: Vec<ProcessId> = Vec::new();
        for (position, part) in epochs.collectives.iter().enumerate().filter(|(_, part)| part.is_fence()) {
            accessed(shard, epochs.of_collective.of(position), &mut targets);
            let CollectivePart { window, sequence, location, instance, .. } = *part;
            let (enter, leave) = (shard.enter(instance), shard.leave(instance));
            for &target in targets.iter().filter(|target| **target != part.process) {
                outbox.push(trace.owner(target), AccessedFence { target, window, sequence, location, enter, leave });
            }
        }
        outbox
    });
    let incoming = trace.exchange.alltoallv(outgoing.collect())?;
    let found = incoming.into_par_iter().zip(trace.par_shards().zip(epochs)).map(|(inbox, (shard, epochs))| {
        let mut found = Found::default();
        // The fences of each process on each window, and the last one before each.
        let mut fences: FxHashMap<(ProcessId, WindowId, u32), (&CollectivePart, Option<&CollectivePart>)> =
            FxHashMap::default();
        let mut last: FxHashMap<(ProcessId, WindowId), &CollectivePart> = FxHashMap::default();
        for part in epochs.collectives.iter().filter(|part| part.is_fence()) {
            let before = last.insert((part.process, part.window), part);
            fences.insert((part.process, part.window, part.sequence), (part, before));
        }
        for access in inbox.rows() {
            let Some((closing, opening)) = fences.get(&(access.target, access.window, access.sequence)) else {
                continue;
            };
            let leave = (closing.location, shard.leave(closing.instance));
            found.link(Kind::Fence, (access.location, access.enter), leave);
            if let Some(opening) = opening {
                let enter = (opening.location, shard.enter(opening.instance));
                found.link(Kind::Fence, enter, (access.location, access.leave));
            }
        }
        found
    });
    Ok(found.collect())
}

/// Posts come before the end of the epochs that access their process.
fn posts(trace: &Trace, epochs: &[Epochs]) -> Result<Vec<Found>> {
    let met = exposures(trace, epochs)?.into_par_iter().zip(trace.par_shards().zip(epochs));
    let found = met.map(|(exposures, (shard, epochs))| {
        let mut found = Found::default();
        let mut targets: Vec<ProcessId> = Vec::new();
        for (position, access) in epochs.accesses.iter().enumerate().filter(|(_, access)| access.complete.is_some()) {
            accessed(shard, epochs.of_access.of(position), &mut targets);
            let posted = exposures.of(position).iter().flatten();
            for posted in posted.filter(|posted| targets.binary_search(&posted.target).is_ok()) {
                let end = (access.location, shard.leave(access.complete));
                found.link(Kind::Post, (posted.post.0, posted.enter), end);
            }
        }
        found
    });
    Ok(found.collect())
}

/// Origins complete before their target has waited.
fn completes(trace: &Trace, epochs: &[Epochs]) -> Result<Vec<Found>> {
    let met = accesses(trace, epochs)?.into_par_iter().zip(trace.par_shards().zip(epochs));
    let found = met.map(|(accesses, (shard, epochs))| {
        let mut found = Found::default();
        for (position, exposure) in epochs.exposures.iter().enumerate().filter(|(_, of)| of.wait.is_some()) {
            let completed = accesses.of(position).iter().flatten().filter(|of| of.complete.1.is_some());
            for Accessed { complete, enter, .. } in completed {
                found.link(Kind::Complete, (complete.0, *enter), (exposure.location, shard.leave(exposure.wait)));
            }
        }
        found
    });
    Ok(found.collect())
}

/// Releases come before what proves that the next epoch owns the lock. An inferred order bounds nothing.
fn locks(trace: &Trace, epochs: &[Epochs]) -> Result<Vec<Found>> {
    let (hand_overs, _) = hand_overs(trace, epochs)?;
    let found = hand_overs.into_par_iter().zip(trace.par_shards().zip(epochs)).map(|(own, (shard, epochs))| {
        let mut found = Found::default();
        for hand_over in own.rows().filter(|hand_over| hand_over.is_proven) {
            let Some(proof) = hand_over.proof(shard, epochs) else { continue };
            let location = epochs.locks[hand_over.epoch as usize].location;
            let owned = (shard.owner(location, proof), shard.leave(proof));
            found.link(Kind::Lock, (hand_over.release.0, hand_over.enter), owned);
        }
        found
    });
    Ok(found.collect())
}

/// A process notifies before another one has waited for it. A match that its time tells bounds nothing.
fn notifications(trace: &Trace, epochs: &[Epochs]) -> Result<Vec<Found>> {
    let waited = |(sent, (shard, epochs)): (Vec<Option<Sent>>, (&Shard, &Epochs))| {
        let mut found = Found::default();
        for (row, sent) in epochs.notifications.iter().zip(sent) {
            if let Some(sent) = sent.filter(|sent| !sent.is_inferred) {
                found.link(Kind::Notify, (sent.call.0, sent.enter), (row.location, shard.leave(row.instance)));
            }
        }
        found
    };
    Ok(matched(trace, epochs)?.into_par_iter().zip(trace.par_shards().zip(epochs)).map(waited).collect())
}
