//! Whether calls that send take until their receiver calls the library: the transfer needs both of them.
//!
//! ```text
//!  sender    ---[ Send: needed | held up       ]---
//!  receiver  [ Irecv ]-------- computes -----[ Wait ]---
//! ```

use rayon::prelude::*;

use super::calls::{Calls, sum_by_callpath};
use crate::account::activities::Activity;
use crate::ids::{CallPathId, LocationId};
use crate::trace::columns::Sent;
use crate::trace::{NONE, Shard};

/// The calls of a call path that send or complete sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldUp {
    /// The call path.
    pub callpath: CallPathId,
    /// Calls that are held up by a receiver that does not call the library.
    pub calls: u64,
    /// Their excess, ticks.
    pub ticks: i64,
    /// The excess of all calls that send at least as much as the smallest of these, ticks.
    pub all: i64,
    /// The smallest and the largest message that is held up, bytes.
    pub bytes: (u64, u64),
}

/// The share of an excess that lies before the receiver's next call.
const BEFORE: f64 = 0.8;

pub(super) fn find(calls: &Calls<'_>) -> Vec<HeldUp> {
    let of_shards: Vec<Vec<Slow>> =
        calls.trace.par_shards().map(|shard| shard.locations.flat_map(|of| slow(calls, shard, of)).collect()).collect();
    let all: Vec<Slow> = of_shards.into_iter().flatten().collect();
    let Some(least) = all.iter().filter(|call| call.is_held).map(|call| call.bytes).min() else { return Vec::new() };
    let rows = all.iter().filter(|call| call.bytes >= least).map(|call| {
        let (number, ticks) = if call.is_held { (1, call.excess) } else { (0, 0) };
        let bytes = if call.is_held { (call.bytes, call.bytes) } else { (u64::MAX, 0) };
        HeldUp { callpath: call.callpath, calls: number, ticks, all: call.excess, bytes }
    });
    let rows = rows.collect();
    let mut sums = sum_by_callpath(
        rows,
        |row| row.callpath,
        |sum: &mut HeldUp, row| {
            sum.calls += row.calls;
            sum.ticks += row.ticks;
            sum.all += row.all;
            sum.bytes = (sum.bytes.0.min(row.bytes.0), sum.bytes.1.max(row.bytes.1));
        },
    );
    sums.retain(|row| row.calls > 0);
    sums
}

/// A call with an excess that sends.
struct Slow {
    callpath: CallPathId,
    excess: i64,
    bytes: u64,
    is_held: bool,
}

fn slow(calls: &Calls<'_>, shard: &Shard, location: LocationId) -> Vec<Slow> {
    let mut found: Vec<(u32, Slow)> = Vec::new();
    for send in shard.sends.of(shard.local(location)) {
        if send.complete.is_none() || shard.instances.leave[send.complete] == NONE {
            continue;
        }
        let leave = shard.instances.leave[send.complete];
        let Some(call) = calls.at(location, leave).filter(|call| call.excess() > 0) else { continue };
        let is_held = is_held(calls, send, shard.events.time[leave as usize], call.excess());
        let callpath = shard.callpath(send.complete);
        found.push((leave, Slow { callpath, excess: call.excess(), bytes: send.bytes, is_held }));
    }
    // Of a call that completes several sends, the one that is held up counts.
    found.sort_by_key(|(leave, slow)| (*leave, !slow.is_held));
    found.dedup_by_key(|(leave, _)| *leave);
    found.into_iter().map(|(_, slow)| slow).collect()
}

/// Whether the receiver computes while a call takes longer than it needs, and calls the library before it ends.
fn is_held(calls: &Calls<'_>, send: &Sent, end: i64, excess: i64) -> bool {
    let trace = calls.trace;
    let Some(process) = trace.definitions.processes.get(send.peer.index()) else { return false };
    let receiver = process.locations.start;
    let begin = end - excess;
    if process.locations.len() == 0 || !calls.computes(receiver, begin) {
        return false;
    }
    let shard = trace.shard(receiver);
    let i = shard.local(receiver);
    let events = shard.event_offsets[i]..shard.event_offsets[i + 1];
    let times = &shard.events.time[events.start as usize..events.end as usize];
    let first = events.start + times.partition_point(|&time| time <= begin) as u32;
    let is_call = |position: &u32| {
        let callpath = shard.events.callpath(*position);
        let activity = calls.callpaths.activities[callpath];
        !shard.events.is_leave(*position) && activity.is_library() && activity != Activity::Io
    };
    let mut within = (first..events.end).take_while(|&position| shard.events.time[position as usize] <= end);
    let next = within.find(is_call).map(|position| shard.events.time[position as usize]);
    next.is_some_and(|next| (next - begin) as f64 >= BEFORE * excess as f64)
}
