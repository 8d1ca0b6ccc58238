//! Waiting in general active-target synchronization: post, start, complete, wait.
//!
//! ```text
//!  origin  --[ Start ][put][ Complete |      ]------
//!  target  ---------------------------[ Post ]--[ Wait ]
//!                          |----------|  Late Post, here in complete
//!
//!  origin  --[ Start ][put]-----------[ Complete ]--
//!  target  --[ Post ]--[ Wait |       |   ]---------
//!                      |--------------|  Early Wait
//!                             |-------|  Late Complete
//! ```
//!
//! *Matching*: by window and pair of processes, the n-th access epoch of the origin that names the target meets the
//! n-th exposure epoch of the target that names the origin.
//!
//! *Late Post*: where the origin blocks depends on the library. If the last post of the group lies in complete, waiting
//! = Enter(post) − Enter(complete). Otherwise, if it lies in start, the same with start. Otherwise, the same with the
//! first operation that contains the post of its own target. One wait per epoch. A post at the very end of a call
//! counts.
//!
//! *Early Wait*: waiting = min(last Enter(complete), Leave(wait)) − Enter(wait), if positive. `MPI_Win_test` never
//! waits. *Late Complete*, a part of it: since the last operation of any origin on the target has left its call.
//!
//! *Pairs*: complete, wait and a successful test synchronize with every member of their group; pairs that exchanged no
//! data are unneeded.
//!
//! *Source*: Late Post: specification.md#late-post, thesis, wait-state pattern 3. Early Wait and Late Complete:
//! specification.md#early-wait-and-late-complete, thesis, wait-state patterns 4 and 5. Detection: thesis, section
//! 3.3.1. Pairs: specification.md#pair-wise-synchronizations.

use bitcode::{Decode, Encode};

use super::operations::{last_of, origin_of};
use super::shard_waits::Waits;
use crate::Result;
use crate::ids::{InstanceId, LocationId, ProcessId, WindowId};
use crate::matching::epochs::{Access, Epochs, Exposure};
use crate::matching::fifo::Fifo;
use crate::parallel::exchange::{Inbox, Outbox};
use crate::parallel::iter::prelude::*;
use crate::severity::Metric;
use crate::trace::regions::Library;
use crate::trace::{Shard, Trace};
use crate::waits::WaitState;

/// A post, for one of its origins.
#[derive(Clone, Copy, Encode, Decode)]
struct Post {
    window: WindowId,
    origin: ProcessId,
    /// Process that posts.
    target: ProcessId,
    /// Location and region instance of the post.
    call: (LocationId, InstanceId),
    enter: i64,
}

/// The end of an access epoch, for one of its targets.
#[derive(Clone, Copy, Encode, Decode)]
struct AccessEnd {
    window: WindowId,
    target: ProcessId,
    /// Process that accesses.
    origin: ProcessId,
    /// Location and region instance of complete; the instance is none if it is missing.
    call: (LocationId, InstanceId),
    enter: i64,
    /// Leave of the last operation on the target, ticks; `i64::MIN` without any.
    last_operation: i64,
}

pub(super) fn detect(trace: &Trace, epochs: &[Epochs], waits: &mut [Waits]) -> Result<()> {
    let shards = || trace.par_shards().zip(epochs);
    let posts = shards().map(|(shard, epochs)| posts(trace, shard, epochs)).collect();
    let posts = trace.exchange.alltoallv(posts)?;
    let received = posts.into_par_iter().zip(shards()).zip(&mut *waits);
    received.for_each(|((posts, (shard, epochs)), waits)| book_accesses(trace, shard, epochs, &posts, waits));
    let access_ends = shards().map(|(shard, epochs)| access_ends(trace, shard, epochs)).collect();
    let access_ends = trace.exchange.alltoallv(access_ends)?;
    let received = access_ends.into_par_iter().zip(shards()).zip(waits);
    received
        .for_each(|((access_ends, (shard, epochs)), waits)| book_exposures(trace, shard, epochs, &access_ends, waits));
    Ok(())
}

fn posts(trace: &Trace, shard: &Shard, epochs: &Epochs) -> Outbox<Post> {
    let mut outbox = trace.exchange.outbox();
    for exposure in &epochs.exposures {
        let Exposure { process: target, window, .. } = *exposure;
        let call = (exposure.location, exposure.post);
        let enter = shard.enter(exposure.post);
        for &origin in trace.definitions.group_members(exposure.group, &exposure.process) {
            outbox.push(trace.owner(origin), Post { window, origin, target, call, enter });
        }
    }
    outbox
}

fn access_ends(trace: &Trace, shard: &Shard, epochs: &Epochs) -> Outbox<AccessEnd> {
    let mut outbox = trace.exchange.outbox();
    // Leave of the last operation on each member of the group.
    let mut last: Vec<i64> = Vec::new();
    for (position, access) in epochs.accesses.iter().enumerate() {
        let Access { process: origin, window, complete, .. } = *access;
        let group = trace.definitions.group_members(access.group, &access.process);
        last.clear();
        last.resize(group.len(), i64::MIN);
        for &row in epochs.of_access.of(position) {
            let operation = &shard.operations.rows[row as usize];
            if let Ok(member) = group.binary_search(&operation.target) {
                last[member] = last[member].max(shard.leave(operation.instance));
            }
        }
        let call = (access.location, complete);
        let enter = if complete.is_none() { i64::MIN } else { shard.enter(complete) };
        for (&target, &last_operation) in group.iter().zip(&last) {
            outbox.push(trace.owner(target), AccessEnd { window, target, origin, call, enter, last_operation });
        }
    }
    outbox
}

fn book_accesses(trace: &Trace, shard: &Shard, epochs: &Epochs, posts: &Inbox<Post>, waits: &mut Waits) {
    let mut posts = Fifo::new(posts.rows(), |post| (post.window, post.origin, post.target));
    let mut partners: Vec<&Post> = Vec::new();
    let mut targets: Vec<ProcessId> = Vec::new();
    for (position, access) in epochs.accesses.iter().enumerate() {
        let Access { process: origin, window, location, .. } = *access;
        let group = trace.definitions.group_members(access.group, &access.process);
        partners.clear();
        partners.extend(group.iter().filter_map(|&target| posts.take(&(window, origin, target))));
        if access.complete.is_none() {
            continue;
        }
        let rows = epochs.of_access.of(position);
        targets.clear();
        targets.extend(rows.iter().map(|&row| shard.operations.rows[row as usize].target));
        targets.sort_unstable();
        targets.dedup();
        let pairs = (group.len() as u32, targets.len() as u32);
        waits.count_pairs(shard, Library::Mpi, (location, access.complete), pairs);
        waits.states.extend(late_post(shard, access, rows, &partners));
    }
}

/// The Late Post of an access epoch: thesis, wait-state pattern 3; `partners` are sorted by target.
fn late_post(shard: &Shard, access: &Access, rows: &[u32], partners: &[&Post]) -> Option<WaitState> {
    let last = last_of(partners.iter().copied(), |post| (post.enter, post.target))?;
    let blocked = |instance: InstanceId, post: &Post| {
        let enter = shard.enter(instance);
        (enter < post.enter && post.enter <= shard.leave(instance)).then_some(post.enter - enter)
    };
    for instance in [access.complete, access.start] {
        if let Some(waiting) = blocked(instance, last) {
            let call = (shard.location_of_instance(instance), instance);
            return Some(WaitState::new(Metric::LatePostSync, call, waiting, last.call));
        }
    }
    rows.iter().find_map(|&row| {
        let operation = &shard.operations.rows[row as usize];
        let own = partners.binary_search_by_key(&operation.target, |post| post.target).ok()?;
        let waiting = blocked(operation.instance, partners[own])?;
        let call = (origin_of(shard, row), operation.instance);
        Some(WaitState::new(Metric::LatePostComm, call, waiting, partners[own].call))
    })
}

fn book_exposures(trace: &Trace, shard: &Shard, epochs: &Epochs, access_ends: &Inbox<AccessEnd>, waits: &mut Waits) {
    let mut access_ends =
        Fifo::new(access_ends.rows(), |access_end| (access_end.window, access_end.target, access_end.origin));
    let mut partners: Vec<&AccessEnd> = Vec::new();
    for exposure in &epochs.exposures {
        let Exposure { process: target, window, location, wait, .. } = *exposure;
        let group = trace.definitions.group_members(exposure.group, &exposure.process);
        partners.clear();
        partners.extend(group.iter().filter_map(|&origin| access_ends.take(&(window, target, origin))));
        if wait.is_none() {
            continue;
        }
        let accessing = partners.iter().filter(|access_end| access_end.last_operation != i64::MIN).count();
        let pairs = (group.len() as u32, accessing as u32);
        waits.count_pairs(shard, Library::Mpi, (location, wait), pairs);
        if !exposure.tested {
            book_early_wait(shard, exposure, &partners, waits);
        }
    }
}

/// Early Wait and Late Complete: thesis, wait-state patterns 4 and 5.
fn book_early_wait(shard: &Shard, exposure: &Exposure, partners: &[&AccessEnd], waits: &mut Waits) {
    let complete = || partners.iter().copied().filter(|access_end| access_end.call.1.is_some());
    let Some(last) = last_of(complete(), |access_end| (access_end.enter, access_end.origin)) else { return };
    let enter = shard.enter(exposure.wait);
    let until = last.enter.min(shard.leave(exposure.wait));
    if until <= enter {
        return;
    }
    let call = (exposure.location, exposure.wait);
    waits.states.push(WaitState::new(Metric::EarlyWait, call, until - enter, last.call));
    let since = complete().map(|access_end| access_end.last_operation).fold(enter, i64::max);
    if until > since {
        waits.states.push(WaitState::new(Metric::LateComplete, call, until - since, last.call));
    }
}
