//! Individual calls for a picture: those of some locations that overlap a window of time, or none if they are too many.
//!
//! The management of a team of threads is one, too, in the function that forks.

use std::ops::Range;

use bitcode::{Decode, Encode};

use crate::Result;
use crate::ids::{CallPathId, LocationId};
use crate::parallel::iter::prelude::*;
use crate::trace::management::{Pass, management};
use crate::trace::{Shard, Trace};

/// A region instance, or the management of the team of a parallel region; times in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Call {
    /// The location.
    pub location: LocationId,
    /// Its call path, or that of the parallel region.
    pub callpath: CallPathId,
    /// Its begin.
    pub enter: i64,
    /// Its end.
    pub leave: i64,
    /// Whether it is the management of a team.
    pub is_management: bool,
}

/// Calls of some locations in a window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// By location in the order asked for, then by Enter, callers before callees; empty if there are more than allowed.
    pub rows: Vec<Call>,
    /// About how many there are: half of the Enter and Leave events.
    pub total: u64,
}

/// All calls of a run. Collective.
pub fn all(trace: &Trace, most: usize) -> Result<Calls> {
    let locations: Vec<LocationId> = (0..trace.definitions.locations.len()).map(LocationId::at).collect();
    within(trace, &locations, &(i64::MIN..i64::MAX), most)
}

/// The calls of some locations that overlap a window of time, at most this many; at the first process. Collective.
pub fn within(trace: &Trace, locations: &[LocationId], window: &Range<i64>, most: usize) -> Result<Calls> {
    let own = locations.iter().enumerate().filter(|(_, location)| trace.owns(**location));
    let places: Vec<(usize, Place<'_>)> =
        own.map(|(number, &location)| (number, Place::of(trace, location, window))).collect();
    let total = trace.exchange.sum(places.iter().map(|(_, place)| place.events.len()).sum())? / 2;
    if total > most {
        return Ok(Calls { rows: Vec::new(), total: total as u64 });
    }
    let rows: Vec<(usize, Vec<Call>)> =
        places.par_iter().map(|(number, place)| (*number, place.with_management(trace, window))).collect();
    let mut rows: Vec<(usize, Vec<Call>)> = trace.exchange.gather(rows)?.into_iter().flatten().collect();
    rows.sort_unstable_by_key(|&(number, _)| number);
    let rows = rows.into_iter().flat_map(|(_, rows)| rows).collect();
    Ok(Calls { rows, total: total as u64 })
}

/// The events of a location in a window.
struct Place<'a> {
    shard: &'a Shard,
    location: LocationId,
    /// All of its events, by position.
    all: Range<u32>,
    /// Those in the window.
    events: Range<u32>,
}

impl<'a> Place<'a> {
    fn of(trace: &'a Trace, location: LocationId, window: &Range<i64>) -> Self {
        let shard = trace.shard(location);
        let i = shard.local(location);
        let all = shard.event_offsets[i]..shard.event_offsets[i + 1];
        let times = &shard.events.time[all.start as usize..all.end as usize];
        let first = times.partition_point(|&time| time < window.start);
        let last = times.partition_point(|&time| time < window.end);
        Self { shard, location, events: all.start + first as u32..all.start + last as u32, all }
    }

    fn call(&self, callpath: CallPathId, time: Range<i64>, is_management: bool) -> Call {
        Call { location: self.location, callpath, enter: time.start, leave: time.end, is_management }
    }

    /// The calls, and the management of teams between them.
    fn with_management(&self, trace: &Trace, window: &Range<i64>) -> Vec<Call> {
        let mut calls = self.calls(trace);
        let management = management(self.shard, self.location);
        if management.is_empty() {
            return calls;
        }
        let events = &self.shard.events;
        let mut pass = Pass::new(&management);
        let mut add = |during, span| {
            pass.take(during, span, |part, callpath| calls.push(self.call(callpath, part, true)));
        };
        // Workers manage teams in no call, before their first event and after their last one, too.
        let mut since = window.start;
        let mut depth = self.open_before(trace).len();
        for position in self.events.start..=self.events.end {
            let until = if position < self.events.end { events.time[position as usize] } else { window.end };
            let during = if depth > 0 { events.running_after(&trace.tree, position - 1) } else { CallPathId::NONE };
            add(during, since..until);
            since = until;
            depth = if position < self.events.end && events.is_leave(position) {
                depth.saturating_sub(1)
            } else {
                depth + 1
            };
        }
        calls.sort_by_key(|call| call.enter);
        calls
    }

    fn calls(&self, trace: &Trace) -> Vec<Call> {
        let events = &self.shard.events;
        let time = |position: u32| events.time[position as usize];
        let mut rows: Vec<Call> = self.open_before(trace).into_iter().rev().collect();
        // What nobody leaves in the window lasts until its next Leave.
        let mut open: Vec<usize> = (0..rows.len()).collect();
        for position in self.events.start..self.all.end {
            if position >= self.events.end && open.is_empty() {
                break;
            }
            if events.is_leave(position) {
                if let Some(row) = open.pop() {
                    // Beyond the window, calls that begin there are skipped.
                    rows.get_mut(row).into_iter().for_each(|call| call.leave = time(position));
                }
            } else if position < self.events.end {
                open.push(rows.len());
                let enter = time(position);
                rows.push(self.call(events.callpath(position), enter..enter, false));
            } else {
                open.push(usize::MAX);
            }
        }
        rows
    }

    /// The calls that are open at the begin of the window, callees first.
    fn open_before(&self, trace: &Trace) -> Vec<Call> {
        let events = &self.shard.events;
        let mut found = Vec::new();
        let mut left = 0usize;
        for position in (self.all.start..self.events.start).rev() {
            if events.is_leave(position) {
                left += 1;
            } else if left > 0 {
                left -= 1;
            } else {
                let (enter, callpath) = (events.time[position as usize], events.callpath(position));
                found.push(self.call(callpath, enter..enter, false));
                if trace.tree.nodes()[callpath].parent == CallPathId::NONE {
                    break;
                }
            }
        }
        found
    }
}
