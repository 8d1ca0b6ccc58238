//! When a wait was: the part of its call in which it lies.
//!
//! ```text
//!  ---[ call: waits |       completion ]---
//!     ^ most waits begin    ^ completion ends
//! ```
//!
//! A wait begins with its call; in a collective operation with the begin record in it, since that is what its length
//! counts from. Completion ends with the call, or with the end record. Late Complete ends with the Early Wait that it is
//! a part of. Progress, where the same call waited for a lock first, begins when that had been released.

use super::{LimitingFactor, WaitState};
use crate::severity::Metric;
use crate::trace::columns::Collective;
use crate::trace::{Shard, Trace};

/// Begin of each wait state, ticks; it ends its waiting time later.
///
/// The waits are in the order in which the analysis returns them: by location and time.
#[must_use]
pub fn begins(trace: &Trace, waits: &[WaitState]) -> Vec<i64> {
    let mut begins = Vec::with_capacity(waits.len());
    for of_call in waits.chunk_by(|a, b| (a.location, a.instance) == (b.location, b.instance)) {
        let shard = trace.shard(of_call[0].location);
        begins.extend(of_call.iter().map(|wait| begin(shard, wait, of_call)));
    }
    begins
}

fn begin(shard: &Shard, wait: &WaitState, of_call: &[WaitState]) -> i64 {
    let (enter, leave) = (shard.enter(wait.instance), shard.leave(wait.instance));
    let record = || collective(shard, wait).map_or((enter, leave), |row| (row.begin, row.end));
    let other = |is: fn(Metric) -> bool| of_call.iter().find(|other| is(other.kind)).map_or(0, |other| other.waiting);
    match wait.kind {
        Metric::BarrierWait | Metric::WaitNxN | Metric::LateBroadcast | Metric::EarlyReduce | Metric::EarlyScan => {
            record().0
        }
        Metric::BarrierCompletion | Metric::NxNCompletion => record().1 - wait.waiting,
        Metric::InitCompletion => leave - wait.waiting,
        Metric::LateComplete => enter + other(|kind| kind == Metric::EarlyWait).max(wait.waiting) - wait.waiting,
        kind if wait.last == LimitingFactor::Progress && !is_contention(kind) => enter + other(is_contention),
        _ => enter,
    }
}

fn is_contention(kind: Metric) -> bool {
    matches!(
        kind,
        Metric::LockContentionSync
            | Metric::LockContentionComm
            | Metric::ShmemLockContentionSync
            | Metric::ShmemLockContentionComm
            | Metric::ArmciLockContentionSync
            | Metric::ArmciLockContentionComm
    )
}

/// The records of the collective operation that a call is.
fn collective<'a>(shard: &'a Shard, wait: &WaitState) -> Option<&'a Collective> {
    let rows = shard.collectives.of((wait.location - shard.locations.start) as usize);
    let enter = shard.enter(wait.instance);
    let from = rows.partition_point(|row| row.begin < enter);
    rows[from..]
        .iter()
        .take_while(|row| row.begin <= shard.leave(wait.instance))
        .find(|row| row.instance == wait.instance)
}
