//! When a wait happened: the part of its call that it covers.
//!
//! ```text
//!  ---[ call: waits |       completion ]---
//!     ^ most waits begin    ^ completion ends
//! ```
//!
//! A wait begins with its call, or with the begin record of a collective operation, from which its length is measured.
//! Completion ends with the call or with the end record. Late Complete ends with the Early Wait that contains it. A
//! device waits before its kernel: launch latency ends when the kernel begins, and starvation ends when that latency
//! begins. If a call waits for a lock and then for progress or a signal, that wait begins at the release of the lock.
//! Waits for tasks, and those at barriers in which tasks run, are in parts, between tasks that their thread runs.

use std::ops::Range;

use super::wait_state::WaitState;
use crate::ids::InstanceId;
use crate::schema::{Class, Metric, Pattern, Position};
use crate::trace::columns::Collective;
use crate::trace::{Shard, Trace};

/// The window that everything lies in.
pub(crate) const ANY_TIME: Range<i64> = i64::MIN..i64::MAX;

/// Begin of each wait state, ticks.
///
/// `waits` must be ordered by location and time, as the analysis returns them.
pub fn begins(trace: &Trace, waits: &[WaitState]) -> Vec<i64> {
    let mut begins = Vec::with_capacity(waits.len());
    each_stretch(trace, waits, |number, time| {
        if number == begins.len() {
            begins.push(time.start);
        }
    });
    begins
}

/// Passes on when each wait state happened: the positions of the states in their order, and one or more stretches of each.
///
/// `waits` must be ordered by location and time, as the analysis returns them.
pub(crate) fn each_stretch(trace: &Trace, waits: &[WaitState], mut book: impl FnMut(usize, Range<i64>)) {
    let mut first = 0;
    for of_location in waits.chunk_by(|a, b| a.location == b.location) {
        each_near(trace, of_location, &[ANY_TIME], |i, time| book(first + i, time));
        first += of_location.len();
    }
}

/// Passes the stretches of the wait states of a location to `book`, with the positions of the states. Those of calls outside
/// all windows may be left out.
pub(crate) fn each_near(
    trace: &Trace,
    waits: &[WaitState],
    windows: &[Range<i64>],
    mut book: impl FnMut(usize, Range<i64>),
) {
    let Some(first) = waits.first() else { return };
    let shard = trace.shard(first.location);
    let mut operations = Operations::new(shard.collectives.of(shard.local(first.location)));
    let mut after = 0;
    for of_call in waits.chunk_by(|a, b| a.instance == b.instance) {
        let first = after;
        after += of_call.len();
        // Waits lie in their call, or next to it.
        let instance = of_call[0].instance;
        let around = of_call.iter().fold(0i64, |sum, wait| sum.saturating_add(wait.waiting));
        let (from, to) = (shard.enter(instance).saturating_sub(around), shard.leave(instance).saturating_add(around));
        if !windows.iter().any(|window| from <= window.end && to >= window.start) {
            continue;
        }
        for (number, wait) in (first..).zip(of_call) {
            if let Some(parts) = parts(shard, wait) {
                for &(begin, end) in parts {
                    book(number, begin..end);
                }
            } else {
                let begin = begin(shard, wait, of_call, &mut operations);
                book(number, begin..begin.saturating_add(wait.waiting));
            }
        }
    }
}

/// The parts of a wait between tasks that its thread runs, if it has some.
fn parts<'a>(shard: &'a Shard, wait: &WaitState) -> Option<&'a [(i64, i64)]> {
    let parts = match wait.kind {
        Metric::OmpExplicitBarrierWait | Metric::OmpImplicitBarrierWait => {
            shard.arrivals.get(&wait.instance).map(|barrier| &barrier.idle)
        }
        _ if shard.wait_parts.is_empty() => None,
        kind => shard.wait_parts.get(&(wait.instance, kind)),
    };
    // Where records are missing, it is not known what the thread does.
    let length = |parts: &[(i64, i64)]| parts.iter().map(|(begin, end)| end - begin).sum::<i64>();
    parts.map(Vec::as_slice).filter(|parts| !parts.is_empty() && length(parts) == wait.waiting)
}

fn begin(shard: &Shard, wait: &WaitState, of_call: &[WaitState], operations: &mut Operations<'_>) -> i64 {
    let (enter, leave) = (shard.enter(wait.instance), shard.leave(wait.instance));
    let mut record =
        || operations.of_call(wait.instance, enter, leave).map_or((enter, leave), |row| (row.begin, row.end));
    let other =
        |is: &dyn Fn(Metric) -> bool| of_call.iter().find(|other| is(other.kind)).map_or(0, |other| other.waiting);
    let position = Pattern::of(wait.kind).map_or(Position::Begin, |pattern| pattern.position);
    match position {
        Position::Begin => enter,
        Position::BeginRecord => record().0,
        Position::End | Position::BeforeEnd => leave - wait.waiting,
        Position::EndRecord => record().1 - wait.waiting,
        Position::EndOfWhole => {
            let whole = whole(wait, of_call).filter(|whole| whole.waiting >= wait.waiting);
            whole.map_or(enter, |whole| begin(shard, whole, of_call, operations) + whole.waiting - wait.waiting)
        }
        Position::Ahead => enter - wait.waiting,
        Position::AheadOfLatency => enter - other(&|kind| kind == Metric::GpuLaunchLatency) - wait.waiting,
        Position::BeginOfWhole => whole(wait, of_call).map_or(enter, |whole| begin(shard, whole, of_call, operations)),
        Position::AfterSenders => enter + other(&|kind| kind == Metric::LateSender),
        Position::AfterMessages => {
            let messages = of_call.iter().filter(|other| other.is_for_message()).map(|other| other.waiting);
            enter + messages.sum::<i64>().min(leave - enter)
        }
        Position::AfterContention => {
            let is_lock = |class: Class| matches!(class, Class::Lock | Class::ThreadLock);
            enter + other(&|kind| Pattern::class_of(kind).is_some_and(is_lock))
        }
    }
}

/// The wait in the same call that a wait is a part of.
fn whole<'a>(wait: &WaitState, of_call: &'a [WaitState]) -> Option<&'a WaitState> {
    let whole = Pattern::of(wait.kind).and_then(|pattern| pattern.part_of);
    of_call.iter().find(|other| Some(other.kind) == whole)
}

/// The collective operations of a location, for calls that mostly come in the order of time.
struct Operations<'a> {
    all: &'a [Collective],
    /// Those that begin at this time or later.
    rest: &'a [Collective],
    from: i64,
}

impl<'a> Operations<'a> {
    fn new(all: &'a [Collective]) -> Self {
        Self { all, rest: all, from: i64::MIN }
    }

    /// The collective operation that a call performs.
    fn of_call(&mut self, instance: InstanceId, enter: i64, leave: i64) -> Option<&'a Collective> {
        if enter < self.from {
            self.rest = self.all;
        }
        let before = self.rest.iter().take_while(|row| row.begin < enter).count();
        (self.rest, self.from) = (&self.rest[before..], enter);
        self.rest.iter().take_while(|row| row.begin <= leave).find(|row| row.instance == instance)
    }
}

/// The union of spans, as disjoint spans in the order of time.
pub(crate) fn union(mut spans: Vec<Range<i64>>) -> Vec<Range<i64>> {
    spans.retain(|span| !span.is_empty());
    spans.sort_unstable_by_key(|span| span.start);
    spans.dedup_by(|next, last| {
        let is_joined = next.start <= last.end;
        if is_joined {
            last.end = last.end.max(next.end);
        }
        is_joined
    });
    spans
}

/// Length of the overlap of two spans, ticks.
pub(crate) fn overlap(window: &Range<i64>, span: Range<i64>) -> i64 {
    (span.end.min(window.end) - span.start.max(window.start)).max(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_that_touch_are_one() {
        assert_eq!(union(vec![5..6, 0..2, 1..3, 3..4, 8..8]), [0..4, 5..6]);
    }
}
