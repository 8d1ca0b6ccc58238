//! Whether transfers of non-blocking requests progress while their process computes.
//!
//! ```text
//!  ---[ Irecv ]--- computes ------------------[ Wait: as long as a transfer ]---
//!                  ^ both sides are ready
//! ```
//!
//! A call that completes requests finds everything done if the library moves data meanwhile. If it takes as long as calls
//! that waited for their partner and then for the data, nothing has moved before.

use bitcode::{Decode, Encode};
use rustc_hash::FxHashMap;

use super::calls::{Calls, innermost, sum_by_callpath};
use crate::Result;
use crate::account::activities::Activity;
use crate::account::floors::Kind;
use crate::ids::{CallPathId, InstanceId, LocationId};
use crate::matching::messages;
use crate::parallel::exchange::{Inbox, Outbox};
use crate::parallel::iter::prelude::*;
use crate::trace::{NONE, Shard};

/// The calls of a call path that complete requests whose transfers had enough time before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unprogressed {
    /// The call path.
    pub callpath: CallPathId,
    /// The function that computes before most of them.
    pub during: CallPathId,
    /// Calls that take as long as if nothing had moved, and all of them.
    pub calls: u64,
    /// All calls whose transfers had enough time.
    pub all: u64,
    /// What the former take, as far as such calls need it, and beyond, ticks.
    pub needed: i64,
    /// What they take beyond that, ticks.
    pub excess: i64,
}

/// Requests are posted so many floors before they are completed, and both sides are ready.
const AHEAD: i64 = 5;
/// The share of the floor of a call that waited.
const SHARE: f64 = 0.8;
/// Smaller ones need their latency in any case, bytes.
const BYTES: u64 = 8192;
/// Events before a call in which computation is looked for.
const LOOK_BACK: u32 = 32;
/// Fewest calls.
const CALLS: u64 = 20;

/// A call that completes requests which were posted early enough.
#[derive(Clone, Copy, Encode, Decode)]
struct Candidate {
    callpath: CallPathId,
    during: CallPathId,
    begin: i64,
    /// The time in which its transfers should be done.
    enough: i64,
    is_long: bool,
    needed: i64,
    excess: i64,
    /// When the last partner was ready, as far as it is known.
    ready: i64,
}

/// A call by its location and the end of it.
type Key = (LocationId, i64);

pub(super) fn find(calls: &Calls<'_>) -> Result<Vec<Unprogressed>> {
    let trace = calls.trace;
    let of_shards: Vec<Vec<(Key, Candidate)>> = trace
        .par_shards()
        .map(|shard| shard.locations.flat_map(|location| candidates(calls, shard, location)).collect())
        .collect();
    let mut all: FxHashMap<Key, Candidate> = of_shards.into_iter().flatten().collect();
    if (trace.exchange.sum(all.values().filter(|one| one.is_long).count())? as u64) < CALLS {
        return Ok(Vec::new());
    }
    // When the partners are ready: the sender of a receive, and the receiver of a send, which may be elsewhere.
    let (ready, _) = messages::match_all(trace, |_, shard, matches| {
        let mut ready: Vec<(Key, i64)> = Vec::new();
        let mut elsewhere: Vec<(Key, i64)> = Vec::new();
        for i in 0..shard.locations.len() {
            for row in shard.receives.range(i) {
                let (receive, Some(send)) = (&shard.receives.rows[row], matches.send(row)) else { continue };
                let of_receive = (shard.location(i), shard.leave(receive.instance));
                let of_send = (send.location, send.complete_leave);
                if all.contains_key(&of_receive) {
                    ready.push((of_receive, send.enter));
                }
                if receive.request.is_none() {
                    continue;
                }
                if !trace.owns(send.location) {
                    elsewhere.push((of_send, shard.enter(receive.request)));
                } else if all.contains_key(&of_send) {
                    ready.push((of_send, shard.enter(receive.request)));
                }
            }
        }
        (ready, elsewhere)
    })?;
    let (ready, elsewhere): (Vec<_>, Vec<_>) = ready.into_iter().unzip();
    let mut outgoing: Vec<Outbox<(Key, i64)>> = trace.shards.iter().map(|_| trace.exchange.outbox()).collect();
    for row in elsewhere.into_iter().flatten() {
        // Only a process with shards has matches.
        outgoing[0].push(trace.shard_of[row.0.0], row);
    }
    let arrived = trace.exchange.alltoallv(outgoing)?;
    let arrived = arrived.into_iter().flat_map(Inbox::into_vec);
    for (key, time) in ready.into_iter().flatten().chain(arrived) {
        if let Some(one) = all.get_mut(&key) {
            one.ready = one.ready.max(time);
        }
    }
    let enough = |one: &Candidate| one.ready > i64::MIN && one.begin - one.ready >= one.enough;
    let mut rows = trace.exchange.gatherv(all.into_iter().filter(|(_, one)| enough(one)))?;
    rows.sort_unstable_by_key(|&(key, _)| key);
    let rows = rows.into_iter().map(|(_, one)| {
        let (number, needed, excess) = if one.is_long { (1, one.needed, one.excess) } else { (0, 0, 0) };
        Unprogressed { callpath: one.callpath, during: one.during, calls: number, all: 1, needed, excess }
    });
    let add = |sum: &mut Unprogressed, row: &Unprogressed| {
        sum.calls += row.calls;
        sum.all += row.all;
        sum.needed += row.needed;
        sum.excess += row.excess;
    };
    let mut sums = sum_by_callpath(rows.collect(), |row| row.callpath, add);
    sums.retain(|row| row.calls >= CALLS && 2 * row.calls >= row.all);
    Ok(sums)
}

/// Where a location computes longest just before an event, but not before a time.
fn computed(calls: &Calls<'_>, shard: &Shard, position: u32, since: i64) -> Option<CallPathId> {
    let time = |position: u32| shard.events.time[position as usize];
    let before = (position.saturating_sub(LOOK_BACK)..position).rev().map(|before| before + 1);
    let pieces = before.take_while(|&end| time(end - 1) >= since).filter_map(|end| {
        let callpath = innermost(calls.trace, shard, end);
        let is_own = callpath.is_some() && calls.callpaths.activities[callpath] == Activity::Own;
        is_own.then(|| (time(end) - time(end - 1), callpath))
    });
    pieces.max_by_key(|&(ticks, _)| ticks).map(|(_, callpath)| callpath)
}

/// The calls of a location that complete requests which were posted early enough.
fn candidates(calls: &Calls<'_>, shard: &Shard, location: LocationId) -> Vec<(Key, Candidate)> {
    let i = shard.local(location);
    // By call that completes requests: bytes, and the end of the last call that posts one.
    let mut of_calls: FxHashMap<InstanceId, (u64, i64)> = FxHashMap::default();
    let mut add = |complete: InstanceId, post: InstanceId, bytes: u64| {
        if complete.is_some() && post.is_some() && complete != post && shard.instances.leave[complete] != NONE {
            let (sum, posted) = of_calls.entry(complete).or_insert((0, i64::MIN));
            *sum = sum.saturating_add(bytes);
            *posted = shard.leave(post).max(*posted);
        }
    };
    for send in shard.sends.of(i) {
        add(send.complete, send.instance, send.bytes);
    }
    for receive in shard.receives.of(i) {
        add(receive.instance, receive.request, receive.bytes);
    }
    let candidate = |(complete, (bytes, posted)): (InstanceId, (u64, i64))| {
        if bytes < BYTES {
            return None;
        }
        let call = calls.at(location, shard.instances.leave[complete])?;
        let kind = calls.kind(&call);
        let waited = Kind { exposed: true, ..kind };
        let floors = &calls.floors.all;
        let floor = floors[floors.binary_search_by_key(&waited, |floor| floor.kind).ok()?].floor;
        let begin = shard.enter(complete);
        let enough = floor.checked_mul(AHEAD)?;
        if kind.exposed || begin - posted < enough {
            return None;
        }
        let during = computed(calls, shard, shard.instances.enter[complete], posted)?;
        let candidate = Candidate {
            callpath: shard.callpath(complete),
            during,
            begin,
            enough,
            is_long: call.ticks as f64 >= SHARE * floor as f64,
            needed: call.ticks.min(call.floor),
            excess: call.excess(),
            ready: i64::MIN,
        };
        Some(((location, shard.leave(complete)), candidate))
    };
    of_calls.into_iter().filter_map(candidate).collect()
}
