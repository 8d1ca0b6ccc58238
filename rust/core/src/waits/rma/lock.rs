//! Lock Contention: a process waits for another to release a lock.
//!
//! ```text
//!  holder  --[ Lock ]====[ Unlock |]--------
//!  waiter  -----[ Lock | or put or Unlock   ]--
//!               |-----------------|  waiting
//! ```
//!
//! *Holder*: the owner of the lock before (matching/ownership.rs); of several that shared it, the last to release it.
//! *Blocked activity*: among the waiter's calls that may block (lock, operations on the lock's target, calls that
//! complete them, unlock), the one with the record of the acquisition if these are right; else the one that overlaps the
//! holder's release; if several do, the one with the longest overlap.
//!
//! *Definition*: waiting = min(Leave(release), Leave(activity)) − Enter(activity), if positive. A call that ends
//! several epochs has one wait, the longest. There is no wait if the release falls between two calls of the waiter.
//!
//! *Source*: specification.md#lock-contention; thesis, wait-state pattern 7, algorithm 2.

use std::cmp::Reverse;

use crate::Result;
use crate::diagnostics::Diagnostics;
use crate::ids::{InstanceId, LocationId};
use crate::matching::epochs::Epochs;
use crate::matching::ownership::{HandOver, hand_overs};
use crate::parallel::exchange::Inbox;
use crate::parallel::iter::prelude::*;
use crate::trace::{Shard, Trace};

/// A call that waited for the release of a lock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contention {
    /// Location and region instance of the waiting call.
    pub(super) call: (LocationId, InstanceId),
    /// Waiting time, ticks.
    pub(super) waiting: i64,
    /// Location and region instance of the release.
    pub(super) release: (LocationId, InstanceId),
    /// Leave of the release, ticks.
    pub(super) released: i64,
    /// Whether only the order of releases tells the holder.
    pub(super) is_inferred: bool,
}

/// The calls that waited, ordered by region instance; one list per shard.
pub(super) fn detect(trace: &Trace, epochs: &[Epochs]) -> Result<(Vec<Vec<Contention>>, Diagnostics)> {
    let (hand_overs, diagnostics) = hand_overs(trace, epochs)?;
    let received = hand_overs.into_par_iter().zip(trace.par_shards().zip(epochs));
    Ok((received.map(|(own, (shard, epochs))| contend(shard, epochs, &own)).collect(), diagnostics))
}

/// Lock Contention, given the releases that each epoch needed: thesis, wait-state pattern 7.
fn contend(shard: &Shard, epochs: &Epochs, hand_overs: &Inbox<HandOver>) -> Vec<Contention> {
    let waited = |hand_over: &HandOver| {
        let (instance, waiting) = hand_over.blocked(shard, epochs)?;
        // An epoch belongs to a process, and another of its threads may be the one that waits.
        let call = (shard.location_of_instance(instance), instance);
        let HandOver { release, leave: released, is_proven, .. } = *hand_over;
        Some(Contention { call, waiting, release, released, is_inferred: !is_proven })
    };
    let mut contentions: Vec<Contention> =
        hand_overs.rows().filter(|hand_over| hand_over.is_last).filter_map(waited).collect();
    contentions.sort_by_key(|contention| (contention.call.1, Reverse(contention.waiting)));
    contentions.dedup_by_key(|contention| contention.call.1);
    contentions
}
