//! When a wait was: the part of its call in which it lies.
//!
//! ```text
//!  ---[ call: waits |       completion ]---
//!     ^ most waits begin    ^ completion ends
//! ```
//!
//! A wait begins with its call; in a collective operation with the begin record in it, since that is what its length
//! counts from. Completion ends with the call, or with the end record. Late Complete ends with the Early Wait that it is
//! a part of. Waits of devices lie before their kernel: latency ends with its begin, and starving with that of latency.
//! Progress, where the same call waited for a lock first, begins when that had been released.

use std::ops::Range;

use super::WaitState;
use crate::schema::{Class, Metric, Pattern, Position};
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
    let other =
        |is: &dyn Fn(Metric) -> bool| of_call.iter().find(|other| is(other.kind)).map_or(0, |other| other.waiting);
    let position = Pattern::of(wait.kind).map_or(Position::Begin, |pattern| pattern.position);
    match position {
        Position::Begin => enter,
        Position::BeginRecord => record().0,
        Position::End => leave - wait.waiting,
        Position::EndRecord => record().1 - wait.waiting,
        Position::EndOfWhole => {
            let whole = Pattern::of(wait.kind).and_then(|pattern| pattern.part_of);
            enter + other(&|kind| Some(kind) == whole).max(wait.waiting) - wait.waiting
        }
        Position::Ahead => enter - wait.waiting,
        Position::AheadOfLatency => enter - other(&|kind| kind == Metric::GpuLaunchLatency) - wait.waiting,
        Position::BeginOfWhole => {
            let whole = Pattern::of(wait.kind).and_then(|pattern| pattern.part_of);
            let whole = of_call.iter().find(|other| Some(other.kind) == whole);
            whole.map_or(enter, |whole| begin(shard, whole, of_call))
        }
        Position::AfterContention => enter + other(&|kind| Class::of(kind) == Some(Class::Lock)),
    }
}

/// The records of the collective operation that a call is.
fn collective<'a>(shard: &'a Shard, wait: &WaitState) -> Option<&'a Collective> {
    let rows = shard.collectives.of(shard.local(wait.location));
    let enter = shard.enter(wait.instance);
    let from = rows.partition_point(|row| row.begin < enter);
    rows[from..]
        .iter()
        .take_while(|row| row.begin <= shard.leave(wait.instance))
        .find(|row| row.instance == wait.instance)
}

/// Length of what two spans have in common, ticks.
pub(crate) fn overlap(window: &Range<i64>, span: Range<i64>) -> i64 {
    (span.end.min(window.end) - span.start.max(window.start)).max(0)
}
