//! Pauses: the measurement system writes its buffer, or is switched off.
//!
//! The growth of a counter between two samples is distributed over the remaining time. So each location has its own
//! time axis, which excludes pauses.

use crate::trace::calltree::CallTree;
use crate::trace::{Regions, Shard};

/// The pauses of a location.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Pauses {
    /// Begin, end, and ticks of the pauses before.
    all: Vec<(i64, i64, i64)>,
}

impl Pauses {
    /// Finds the pauses of the i-th location of a shard.
    pub(super) fn of(tree: &CallTree, shard: &Shard, i: usize) -> Self {
        let is_pause: Vec<bool> = tree.nodes().iter().map(|node| Regions::is_pause(node.region)).collect();
        let mut pauses = Self::default();
        if is_pause.contains(&true) {
            let (mut at, end) = (shard.event_offsets[i], shard.event_offsets[i + 1]);
            while let Some(enter) = shard.events.next_enter(at..end, &is_pause) {
                // Nothing happens in a pause.
                let leave = (enter + 1).min(end - 1);
                pauses.add(shard.events.time[enter as usize], shard.events.time[leave as usize]);
                at = enter + 1;
            }
        }
        pauses
    }

    fn add(&mut self, begin: i64, end: i64) {
        let before = self.all.last().map_or(0, |(begin, end, before)| before + end - begin);
        self.all.push((begin, end, before));
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Converts a time to the time axis of the location.
    pub(super) fn running(&self, time: i64) -> i64 {
        match self.all.partition_point(|(begin, ..)| *begin <= time).checked_sub(1) {
            None => time,
            Some(latest) => {
                let (begin, end, before) = self.all[latest];
                time - before - (time.min(end) - begin)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_location_stands_still_in_pauses() {
        let mut pauses = Pauses::default();
        pauses.add(10, 14);
        pauses.add(14, 15);
        pauses.add(20, 30);
        assert_eq!([5, 10, 12, 14, 15, 18, 25, 31].map(|time| pauses.running(time)), [5, 10, 10, 10, 10, 13, 15, 16]);
    }
}
