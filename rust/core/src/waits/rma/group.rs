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
//! *Matching*: by window and pair of processes, the n-th access epoch of the origin that names the target meets the n-th
//! exposure epoch of the target that names the origin.
//!
//! *Late Post*: where the origin blocks depends on the library. The last post of the group lies in complete: waiting =
//! Enter(post) − Enter(complete); or else in start, likewise; or else the post of an operation's own target lies in the
//! operation, likewise (the first such operation). One booking an epoch. A post at the very end of a call counts.
//!
//! *Early Wait*: waiting = min(last Enter(complete), Leave(wait)) − Enter(wait), if positive. `MPI_Win_test` never waits.
//! *Late Complete*, a part of it: since the last operation of any origin on the target has left its call.
//!
//! *Pairs*: complete, wait and a successful test synchronize with all of their group; unneeded are those with whom no
//! data was exchanged.
//!
//! *Source*: thesis 3.2, patterns 4 and 5, and 3.3; PATTERNS 4.4, 4.5, 4.8.

use bitcode::{Decode, Encode};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Waits, last_of, origin_of};
use crate::Result;
use crate::exchange::{Inbox, Outbox};
use crate::matching::epochs::{Access, Epochs, Exposure, PairNumbers};
use crate::severity::Metric;
use crate::trace::{NONE, Shard, Trace};
use crate::waits::WaitState;

/// Which of the epochs of a pair of processes: window, own process, partner, number.
type Pair = (u32, u32, u32, u32);

/// A post, for one of its origins.
#[derive(Clone, Copy, Encode, Decode)]
struct Post {
    pair: Pair,
    /// Process that posts.
    target: u32,
    /// Location and region instance of the post.
    call: (u32, u32),
    enter: i64,
}

/// An access epoch, for one of its targets.
#[derive(Clone, Copy, Encode, Decode)]
struct Done {
    pair: Pair,
    /// Process that accesses.
    origin: u32,
    /// Location and region instance of complete; the instance is [`NONE`] if it is missing.
    call: (u32, u32),
    enter: i64,
    /// Leave of the last operation on the target, ticks; `i64::MIN` without any.
    last_operation: i64,
}

pub(super) fn detect(trace: &Trace, epochs: &[Epochs], waits: &mut [Waits]) -> Result<()> {
    let shards = || trace.shards.iter().zip(epochs);
    let posts = trace.exchange.to_owner(shards().map(|(shard, epochs)| posts(trace, shard, epochs)).collect())?;
    let dones = trace.exchange.to_owner(shards().map(|(shard, epochs)| dones(trace, shard, epochs)).collect())?;
    for ((((shard, epochs), posts), dones), waits) in shards().zip(posts).zip(dones).zip(waits) {
        book_accesses(trace, shard, epochs, &posts, waits);
        book_exposures(trace, shard, epochs, &dones, waits);
    }
    Ok(())
}

fn posts(trace: &Trace, shard: &Shard, epochs: &Epochs) -> Outbox<Post> {
    let mut outbox = trace.exchange.outbox();
    let mut numbers = PairNumbers::default();
    for exposure in &epochs.exposures {
        let Exposure { process: target, window, .. } = *exposure;
        for &origin in trace.world.group_members(exposure.group, &exposure.process) {
            let number = numbers.next(window, target, origin);
            let post = Post {
                pair: (window, origin, target, number),
                target,
                call: (exposure.location, exposure.post),
                enter: shard.enter(exposure.post),
            };
            outbox.push(trace.owner(origin), post);
        }
    }
    outbox
}

fn dones(trace: &Trace, shard: &Shard, epochs: &Epochs) -> Outbox<Done> {
    let mut outbox = trace.exchange.outbox();
    let mut numbers = PairNumbers::default();
    let mut last: FxHashMap<u32, i64> = FxHashMap::default();
    for (position, access) in epochs.accesses.iter().enumerate() {
        let Access { process: origin, window, complete, .. } = *access;
        last.clear();
        for &row in epochs.of_access.of(position) {
            let operation = &shard.operations.rows[row as usize];
            let leave = shard.leave(operation.instance);
            last.entry(operation.target).and_modify(|last| *last = leave.max(*last)).or_insert(leave);
        }
        for &target in trace.world.group_members(access.group, &access.process) {
            let number = numbers.next(window, origin, target);
            let done = Done {
                pair: (window, target, origin, number),
                origin,
                call: (access.location, complete),
                enter: if complete == NONE { i64::MIN } else { shard.enter(complete) },
                last_operation: last.get(&target).copied().unwrap_or(i64::MIN),
            };
            outbox.push(trace.owner(target), done);
        }
    }
    outbox
}

fn book_accesses(trace: &Trace, shard: &Shard, epochs: &Epochs, posts: &Inbox<Post>, waits: &mut Waits) {
    let posts: FxHashMap<Pair, &Post> = posts.rows().map(|post| (post.pair, post)).collect();
    let mut numbers = PairNumbers::default();
    let mut partners: Vec<&Post> = Vec::new();
    let mut targets: FxHashSet<u32> = FxHashSet::default();
    for (position, access) in epochs.accesses.iter().enumerate() {
        let Access { process: origin, window, location, .. } = *access;
        let group = trace.world.group_members(access.group, &access.process);
        partners.clear();
        for &target in group {
            let number = numbers.next(window, origin, target);
            partners.extend(posts.get(&(window, origin, target, number)).copied());
        }
        if access.complete == NONE {
            continue;
        }
        let rows = epochs.of_access.of(position);
        targets.clear();
        targets.extend(rows.iter().map(|&row| shard.operations.rows[row as usize].target));
        waits.count(location, access.complete, Metric::PairSyncs, group.len() as i64);
        waits.count(location, access.complete, Metric::PairSyncsUnneeded, (group.len() - targets.len()) as i64);
        waits.states.extend(late_post(shard, access, rows, &partners));
    }
}

/// The Late Post of an access epoch; `partners` are sorted by target.
fn late_post(shard: &Shard, access: &Access, rows: &[u32], partners: &[&Post]) -> Option<WaitState> {
    let last = last_of(partners.iter().copied(), |post| (post.enter, post.target))?;
    let blocked = |instance: u32, post: &Post| {
        let enter = shard.enter(instance);
        (enter < post.enter && post.enter <= shard.leave(instance)).then_some(post.enter - enter)
    };
    for instance in [access.complete, access.start] {
        if let Some(waiting) = blocked(instance, last) {
            return Some(WaitState::new(Metric::LatePostSync, (access.location, instance), waiting, last.call));
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

fn book_exposures(trace: &Trace, shard: &Shard, epochs: &Epochs, dones: &Inbox<Done>, waits: &mut Waits) {
    let dones: FxHashMap<Pair, &Done> = dones.rows().map(|done| (done.pair, done)).collect();
    let mut numbers = PairNumbers::default();
    let mut partners: Vec<&Done> = Vec::new();
    for exposure in &epochs.exposures {
        let Exposure { process: target, window, location, wait, .. } = *exposure;
        let group = trace.world.group_members(exposure.group, &exposure.process);
        partners.clear();
        for &origin in group {
            let number = numbers.next(window, target, origin);
            partners.extend(dones.get(&(window, target, origin, number)).copied());
        }
        if wait == NONE {
            continue;
        }
        let accessing = partners.iter().filter(|done| done.last_operation != i64::MIN).count();
        waits.count(location, wait, Metric::PairSyncs, group.len() as i64);
        waits.count(location, wait, Metric::PairSyncsUnneeded, (group.len() - accessing) as i64);
        if !exposure.tested {
            book_early_wait(shard, exposure, &partners, waits);
        }
    }
}

fn book_early_wait(shard: &Shard, exposure: &Exposure, partners: &[&Done], waits: &mut Waits) {
    let complete = || partners.iter().copied().filter(|done| done.call.1 != NONE);
    let Some(last) = last_of(complete(), |done| (done.enter, done.origin)) else { return };
    let enter = shard.enter(exposure.wait);
    let until = last.enter.min(shard.leave(exposure.wait));
    if until <= enter {
        return;
    }
    let call = (exposure.location, exposure.wait);
    waits.states.push(WaitState::new(Metric::EarlyWait, call, until - enter, last.call));
    let since = complete().map(|done| done.last_operation).fold(enter, i64::max);
    if until > since {
        waits.states.push(WaitState::new(Metric::LateComplete, call, until - since, last.call));
    }
}
