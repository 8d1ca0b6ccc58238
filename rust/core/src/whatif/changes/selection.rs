//! The instances of call paths that a hypothesis changes.

use std::ops::RangeInclusive;

use rustc_hash::FxHashMap;

use crate::ids::{CallPathId, LocationId};
use crate::parallel::iter::prelude::*;
use crate::trace::{Shard, Trace};
use crate::{Error, Result};

/// The instances that a hypothesis changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// As the user wrote it.
    pub text: String,
    /// Call paths whose instances are selected, by number.
    pub roots: Vec<bool>,
    /// Call paths whose time counts within those, by number; if empty, only their own.
    pub below: Vec<bool>,
    /// Only one segment of each instance.
    pub part: Option<Part>,
    /// Locations, by index; all if empty.
    pub locations: Vec<bool>,
    /// Numbers of instances of each call path and location.
    pub instances: Option<Numbers>,
    /// Only instances entered between two times, ticks.
    pub window: Option<(i64, i64)>,
}

/// A segment of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The n-th; 0 is that before the first call.
    Nth(u32),
    /// The one before the Leave.
    Last,
}

/// Numbers of instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// From the first to the second.
    Range(u64, u64),
    /// The last one.
    Last,
}

/// Tells which instances of a location are selected, in order of their Enters.
pub(in crate::whatif) struct Chooser<'a> {
    selection: &'a Selection,
    shard: &'a Shard,
    /// Position of the location in the shard.
    i: usize,
    is_here: bool,
    /// Instances of each call path so far.
    visits: FxHashMap<CallPathId, u64>,
    /// Number of instances after the filters by path, ranks, numbers and window.
    pub left: [u64; 4],
}

impl<'a> Chooser<'a> {
    pub(in crate::whatif) fn new(selection: &'a Selection, shard: &'a Shard, i: usize) -> Self {
        let location = shard.location(i).index();
        let is_here = selection.locations.is_empty() || selection.locations[location];
        Self { selection, shard, i, is_here, visits: FxHashMap::default(), left: [0; 4] }
    }

    /// Whether the instance that begins now is selected.
    fn chooses(&mut self, callpath: CallPathId, time: i64) -> bool {
        self.selection.roots[callpath] && self.takes(callpath, time)
    }

    /// Whether the instance of a selected call path that begins now is selected.
    #[inline]
    pub(in crate::whatif) fn takes(&mut self, callpath: CallPathId, time: i64) -> bool {
        if self.selection.instances.is_none() && self.selection.window.is_none() {
            self.left[0] += 1;
            self.left[1..].iter_mut().for_each(|left| *left += u64::from(self.is_here));
            return self.is_here;
        }
        self.chooses_by_number_and_time(callpath, time)
    }

    fn chooses_by_number_and_time(&mut self, callpath: CallPathId, time: i64) -> bool {
        let counted = self.selection.instances.is_none_or(|numbers| {
            let number = self.visits.entry(callpath).or_insert(0);
            *number += 1;
            match numbers {
                Numbers::Range(from, to) => (from..=to).contains(&(*number - 1)),
                Numbers::Last => {
                    let cell = self.shard.profile.of(self.i).iter().find(|cell| cell.callpath == callpath);
                    cell.is_none_or(|cell| *number == cell.visits)
                }
            }
        });
        let within = self.selection.window.is_none_or(|(from, to)| from <= time && time < to);
        let passed = [true, self.is_here, self.is_here && counted, self.is_here && counted && within];
        for (left, passed) in self.left.iter_mut().zip(passed) {
            *left += u64::from(passed);
        }
        passed[3]
    }
}

/// Why nothing is selected, from the number of instances after each filter; `None` if something is.
pub(in crate::whatif) fn refusal(left: impl Iterator<Item = [u64; 4]>) -> Option<&'static str> {
    match left.fold([0u64; 4], |sum, of| std::array::from_fn(|i| sum[i] + of[i])) {
        [0, ..] => Some("the run has no instance of it"),
        [_, 0, ..] => Some("the ranks have no instance of it"),
        [_, _, 0, _] => Some("there are no instances with these numbers"),
        [_, _, _, 0] => Some("no instance begins in the window"),
        _ => None,
    }
}

/// What `find` makes of the positions of the events from Enter to Leave of the selected instances, without nested ones, for
/// each location of this process; an error if nothing is selected anywhere. Collective.
pub(in crate::whatif) fn in_selection<T: Send>(
    trace: &Trace,
    selection: &Selection,
    find: impl Fn(LocationId, Vec<RangeInclusive<u32>>) -> T + Sync,
) -> Result<Vec<(LocationId, T)>> {
    let at = |location| {
        let location = LocationId::at(location);
        let (ranges, left) = entered(trace, selection, location);
        ((location, find(location, ranges)), left)
    };
    let (found, left): (Vec<_>, Vec<_>) = trace.own_locations().into_par_iter().map(at).unzip();
    match refusal(trace.exchange.allgather(left)?.into_iter().flatten()) {
        Some(why) => Err(Error::Usage(format!("{} selects nothing: {why}", selection.text))),
        None => Ok(found),
    }
}

/// Positions of the events from Enter to Leave of the selected instances of a location, without nested ones; and the
/// number of instances after each filter.
fn entered(trace: &Trace, selection: &Selection, location: LocationId) -> (Vec<RangeInclusive<u32>>, [u64; 4]) {
    let shard = trace.shard(location);
    let i = shard.local(location);
    let mut chooser = Chooser::new(selection, shard, i);
    let mut ranges = Vec::new();
    let (mut depth, mut begun) = (0u32, None);
    for position in shard.event_offsets[i]..shard.event_offsets[i + 1] {
        if shard.events.is_leave(position) {
            depth = depth.saturating_sub(1);
            if let Some((from, _)) = begun.take_if(|(_, outside)| *outside == depth) {
                ranges.push(from..=position);
            }
        } else {
            let chosen = chooser.chooses(shard.events.callpath(position), shard.events.time[position as usize]);
            if chosen && begun.is_none() {
                begun = Some((position, depth));
            }
            depth += 1;
        }
    }
    (ranges, chooser.left)
}
