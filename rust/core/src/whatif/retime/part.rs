//! How the part of a segment before a step changes with the segment.

use crate::ids::LocationId;
use crate::trace::Shard;
use crate::whatif::changes::durations::Change;
use crate::whatif::graph::steps::Graph;

/// A step in a segment that changes; measured times, ticks.
pub(super) struct Part {
    /// Own time since the place before.
    pub own: i64,
    /// Own time of the segment before that place.
    spent: i64,
    /// Own time of the whole segment.
    length: i64,
    /// Time of the whole segment, waiting included.
    measured: i64,
    /// Whether it ends the segment, which is where a segment of length 0 gets all of its new time.
    is_last: bool,
}

impl Part {
    /// The part of its segment before a step.
    pub(super) fn new(graph: &Graph, shard: &Shard, location: LocationId, index: usize) -> Self {
        let position = graph.steps[index].position;
        let begin = shard.events.time[position as usize - 1];
        let measured = shard.events.time[position as usize] - begin;
        let first = graph.steps_of(location).start;
        let is_last = !graph.kinds[index].is_stop();
        if is_last && (index == first || graph.steps[index - 1].position < position) {
            // Usually the segment has only this step.
            let own = graph.steps[index].slack + measured;
            return Self { own, spent: 0, length: own, measured, is_last };
        }
        let from = (first..index).rev().take_while(|&before| graph.steps[before].position == position).last();
        let (length, _) = graph.segments(shard, location).from(from.unwrap_or(index)).before(position);
        let mut since = begin;
        let (mut spent, mut own) = (0, 0);
        for step in from.unwrap_or(index)..=index {
            spent += own;
            own = graph.steps[step].slack + graph.times[step] - since;
            since = graph.times[step];
        }
        Self { own, spent, length, measured, is_last }
    }

    /// Own ticks of the segment under a change.
    fn length_under(&self, change: &Change) -> i64 {
        self.measured + change.growth
    }

    /// Own ticks since the place before.
    pub(super) fn own_under(&self, change: &Change) -> i64 {
        let new = self.length_under(change);
        if self.length == 0 {
            return if self.is_last { new } else { 0 };
        }
        scaled(self.spent + self.own, new, self.length) - scaled(self.spent, new, self.length)
    }

    /// The new weight of an arc; offsets of clocks do not change.
    pub(super) fn weight_under(&self, change: &Change, weight: i64) -> i64 {
        match weight {
            _ if weight <= 0 => weight,
            _ if weight == self.own => self.own_under(change),
            _ => scaled(weight, self.length_under(change), self.length),
        }
    }
}

/// `ticks * new / old`; `new` if `old` is 0.
#[inline]
fn scaled(ticks: i64, new: i64, old: i64) -> i64 {
    if old == new || (ticks == 0 && old != 0) {
        ticks
    } else if old == 0 || ticks == old {
        new
    } else if let Some(product) = ticks.checked_mul(new) {
        product / old
    } else {
        (i128::from(ticks) * i128::from(new) / i128::from(old)) as i64
    }
}
