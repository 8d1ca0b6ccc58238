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
use crate::matching::epochs::{CollectivePart, Epochs, accessed};
use crate::matching::fifo::Fifo;
use crate::matching::notifications::{Sent, matched};
use crate::matching::ownership::hand_overs;
use crate::matching::windows;
use crate::parallel::iter::prelude::*;
use crate::trace::regions::Library;
use crate::trace::{Shard, Trace};

/// Location and time of a call's Enter or Leave.
type At = (LocationId, i64);

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
struct Accessed {
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
                outbox.push(trace.owner(target), Accessed { target, window, sequence, location, enter, leave });
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

/// One side of a pair of epochs, for the other.
#[derive(Clone, Copy, Encode, Decode)]
struct Side {
    window: WindowId,
    /// The process that it is for, and its own.
    to: ProcessId,
    from: ProcessId,
    /// The Enter of the call that the other one waits for; none if it is missing.
    enter: Option<At>,
}

/// Posts come before the end of the epochs that access their process.
fn posts(trace: &Trace, epochs: &[Epochs]) -> Result<Vec<Found>> {
    let outgoing = trace.par_shards().zip(epochs).map(|(shard, epochs)| {
        let mut outbox = trace.exchange.outbox();
        for exposure in &epochs.exposures {
            let enter = Some((exposure.location, shard.enter(exposure.post)));
            for &to in trace.definitions.group_members(exposure.group, &exposure.process) {
                outbox.push(trace.owner(to), Side { window: exposure.window, to, from: exposure.process, enter });
            }
        }
        outbox
    });
    let incoming = trace.exchange.alltoallv(outgoing.collect())?;
    let found = incoming.into_par_iter().zip(trace.par_shards().zip(epochs)).map(|(inbox, (shard, epochs))| {
        let mut found = Found::default();
        let mut posts = Fifo::new(inbox.rows(), |post| (post.window, post.to, post.from));
        let mut targets: Vec<ProcessId> = Vec::new();
        for (position, access) in epochs.accesses.iter().enumerate() {
            accessed(shard, epochs.of_access.of(position), &mut targets);
            for &target in trace.definitions.group_members(access.group, &access.process) {
                let post = posts.take(&(access.window, access.process, target));
                if access.complete.is_some()
                    && targets.binary_search(&target).is_ok()
                    && let Some(enter) = post.and_then(|post| post.enter)
                {
                    found.link(Kind::Post, enter, (access.location, shard.leave(access.complete)));
                }
            }
        }
        found
    });
    Ok(found.collect())
}

/// Origins complete before their target has waited.
fn completes(trace: &Trace, epochs: &[Epochs]) -> Result<Vec<Found>> {
    let outgoing = trace.par_shards().zip(epochs).map(|(shard, epochs)| {
        let mut outbox = trace.exchange.outbox();
        for access in &epochs.accesses {
            let enter = access.complete.is_some().then(|| (access.location, shard.enter(access.complete)));
            for &to in trace.definitions.group_members(access.group, &access.process) {
                outbox.push(trace.owner(to), Side { window: access.window, to, from: access.process, enter });
            }
        }
        outbox
    });
    let incoming = trace.exchange.alltoallv(outgoing.collect())?;
    let found = incoming.into_par_iter().zip(trace.par_shards().zip(epochs)).map(|(inbox, (shard, epochs))| {
        let mut found = Found::default();
        let mut completes = Fifo::new(inbox.rows(), |side| (side.window, side.to, side.from));
        for exposure in &epochs.exposures {
            for &origin in trace.definitions.group_members(exposure.group, &exposure.process) {
                let complete = completes.take(&(exposure.window, exposure.process, origin));
                if exposure.wait.is_some()
                    && let Some(enter) = complete.and_then(|complete| complete.enter)
                {
                    found.link(Kind::Complete, enter, (exposure.location, shard.leave(exposure.wait)));
                }
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
