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

use super::operations::{last_of, origin_of};
use super::shard_waits::Waits;
use crate::Result;
use crate::ids::{InstanceId, ProcessId};
use crate::matching::active_targets::{Accessed, Partners, Posted, accesses, exposures};
use crate::matching::epochs::{Access, Epochs, Exposure, accessed};
use crate::parallel::iter::prelude::*;
use crate::severity::Metric;
use crate::trace::regions::Library;
use crate::trace::{Shard, Trace};
use crate::waits::WaitState;

pub(super) fn detect(trace: &Trace, epochs: &[Epochs], waits: &mut [Waits]) -> Result<()> {
    let shards = || trace.par_shards().zip(epochs);
    let met = exposures(trace, epochs)?.into_par_iter().zip(shards()).zip(&mut *waits);
    met.for_each(|((exposures, (shard, epochs)), waits)| book_accesses(trace, shard, epochs, &exposures, waits));
    let met = accesses(trace, epochs)?.into_par_iter().zip(shards()).zip(waits);
    met.for_each(|((accesses, (shard, epochs)), waits)| book_exposures(trace, shard, epochs, &accesses, waits));
    Ok(())
}

fn book_accesses(trace: &Trace, shard: &Shard, epochs: &Epochs, exposures: &Partners<Posted>, waits: &mut Waits) {
    let mut partners: Vec<&Posted> = Vec::new();
    let mut targets: Vec<ProcessId> = Vec::new();
    for (position, access) in epochs.accesses.iter().enumerate().filter(|(_, access)| access.complete.is_some()) {
        let group = trace.definitions.group_members(access.group, &access.process);
        partners.clear();
        partners.extend(exposures.of(position).iter().flatten());
        let rows = epochs.of_access.of(position);
        accessed(shard, rows, &mut targets);
        let pairs = (group.len() as u32, targets.len() as u32);
        waits.count_pairs(shard, Library::Mpi, (access.location, access.complete), pairs);
        waits.states.extend(late_post(shard, access, rows, &partners));
    }
}

/// The Late Post of an access epoch: thesis, wait-state pattern 3; `partners` are sorted by target.
fn late_post(shard: &Shard, access: &Access, rows: &[u32], partners: &[&Posted]) -> Option<WaitState> {
    let last = last_of(partners.iter().copied(), |post| (post.enter, post.target))?;
    let blocked = |instance: InstanceId, post: &Posted| {
        let enter = shard.enter(instance);
        (enter < post.enter && post.enter <= shard.leave(instance)).then_some(post.enter - enter)
    };
    for instance in [access.complete, access.start] {
        if let Some(waiting) = blocked(instance, last) {
            let call = (shard.location_of_instance(instance), instance);
            return Some(WaitState::new(Metric::LatePostSync, call, waiting, last.post));
        }
    }
    rows.iter().find_map(|&row| {
        let operation = &shard.operations.rows[row as usize];
        let own = partners.binary_search_by_key(&operation.target, |post| post.target).ok()?;
        let waiting = blocked(operation.instance, partners[own])?;
        let call = (origin_of(shard, row), operation.instance);
        Some(WaitState::new(Metric::LatePostComm, call, waiting, partners[own].post))
    })
}

fn book_exposures(trace: &Trace, shard: &Shard, epochs: &Epochs, accesses: &Partners<Accessed>, waits: &mut Waits) {
    let mut partners: Vec<&Accessed> = Vec::new();
    for (position, exposure) in epochs.exposures.iter().enumerate().filter(|(_, exposure)| exposure.wait.is_some()) {
        let group = trace.definitions.group_members(exposure.group, &exposure.process);
        partners.clear();
        partners.extend(accesses.of(position).iter().flatten());
        let accessing = partners.iter().filter(|access_end| access_end.last_operation != i64::MIN).count();
        let pairs = (group.len() as u32, accessing as u32);
        waits.count_pairs(shard, Library::Mpi, (exposure.location, exposure.wait), pairs);
        if !exposure.tested {
            book_early_wait(shard, exposure, &partners, waits);
        }
    }
}

/// Early Wait and Late Complete: thesis, wait-state patterns 4 and 5.
fn book_early_wait(shard: &Shard, exposure: &Exposure, partners: &[&Accessed], waits: &mut Waits) {
    let complete = || partners.iter().copied().filter(|access_end| access_end.complete.1.is_some());
    let Some(last) = last_of(complete(), |access_end| (access_end.enter, access_end.origin)) else { return };
    let enter = shard.enter(exposure.wait);
    let until = last.enter.min(shard.leave(exposure.wait));
    if until <= enter {
        return;
    }
    let call = (exposure.location, exposure.wait);
    waits.states.push(WaitState::new(Metric::EarlyWait, call, until - enter, last.complete));
    let since = complete().map(|access_end| access_end.last_operation).fold(enter, i64::max);
    if until > since {
        waits.states.push(WaitState::new(Metric::LateComplete, call, until - since, last.complete));
    }
}
