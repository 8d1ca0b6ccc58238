//! Cuts: removes regions with everything they enclose, and messages (whatif.md#what-can-be-changed).
//!
//! What is cut on one side vanishes on the other: both sides of a message, the other call of a message without a
//! partner, the calls of all members of a collective operation. A call vanishes once nothing is left that it served;
//! one that also serves others stays, without the arc. What follows moves forward by the length of what vanished; the
//! time before it stays with the caller.

use std::ops::RangeInclusive;

use whywait_otf2::Event;

use super::selection::{Selection, in_selection};
use crate::ids::{CallPathId, InstanceId, LocationId};
use crate::matching::threads::teams::Teams;
use crate::trace::{Shard, Trace};
use crate::whatif::graph::builder::Builder;
use crate::{Error, Result};

/// How a property of a message is compared with a number, such as `u64::eq`.
pub type Compare = fn(&u64, &u64) -> bool;

/// Selects messages to cut: all conditions must hold.
#[derive(Clone, Debug)]
pub struct MessageCut {
    /// Property, how it is compared, and the value to compare with.
    pub conditions: Vec<(Key, Compare, u64)>,
    /// Call paths of the sending calls; all if there are none.
    pub callpaths: Vec<bool>,
}

/// A property of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// Bytes.
    Size,
    /// Tag.
    Tag,
    /// Rank of the sender.
    From,
    /// Rank of the receiver.
    To,
    /// Id of the communicator.
    Comm,
}

impl MessageCut {
    /// Whether a message is cut; `value` returns its properties.
    pub(in crate::whatif) fn holds(&self, callpath: CallPathId, value: impl Fn(Key) -> u64) -> bool {
        self.callpaths.get(callpath.index()) != Some(&false)
            && self.conditions.iter().all(|(key, holds, number)| holds(&value(*key), number))
    }
}

/// A message that vanishes: shard and row of its send, and the position of its receive's shard among those of this process, and
/// its row.
pub(in crate::whatif) type GoneMessage = [(u32, u32); 2];

/// What is cut.
#[derive(Debug, Default)]
pub(in crate::whatif) struct Cut {
    /// Sorted, disjoint ranges of events that vanish at each location of this process; empty if nothing is cut.
    ranges: Vec<Vec<RangeInclusive<u32>>>,
    /// Sorted, disjoint ranges of the numbers of the calls that vanish, those of other processes of the analysis included.
    calls: Vec<(u32, u32)>,
    /// Ranges that are parts of a team whose fork vanishes: first positions.
    pub teams: Vec<(LocationId, u32)>,
    /// Rows of sends and receives that vanish, by shard.
    pub sends: Vec<Vec<bool>>,
    pub receives: Vec<Vec<bool>>,
    /// For each call of this process, how many messages it serves, and how many of these are cut.
    served: Vec<(u32, u32)>,
}

impl Cut {
    /// Finds the events that the regions enclose. Collective.
    pub(in crate::whatif) fn new(trace: &Trace, builder: &Builder, regions: &[Selection]) -> Result<Self> {
        let locations = trace.definitions.locations.len();
        let mut cut = Self { ranges: vec![Vec::new(); locations], ..Self::default() };
        for selection in regions {
            let found = in_selection(trace, selection, |_, ranges| ranges)?;
            for (location, ranges) in found {
                cut.ranges[location].extend(ranges);
            }
        }
        cut.add_teams(trace);
        cut.ranges.iter_mut().for_each(join);
        if trace.exchange.any(cut.has_library(trace))? {
            return Err(Error::Usage("MPI_Init and MPI_Finalize cannot be cut".into()));
        }
        cut.tell(trace, builder)?;
        cut.sends = trace.shards.iter().map(|shard| vec![false; shard.sends.rows.len()]).collect();
        cut.receives = trace.shards.iter().map(|shard| vec![false; shard.receives.rows.len()]).collect();
        Ok(cut)
    }

    /// A fork vanishes with its whole team.
    fn add_teams(&mut self, trace: &Trace) {
        for shard in &trace.shards {
            for process in shard.processes {
                let teams = Teams::new(shard, &trace.definitions.processes[process]);
                let parts = teams.iter().flat_map(|team| team.recorded().map(move |part| (team, part)));
                for (team, part) in parts.filter(|(team, part)| part.location != team.forker()) {
                    let (forker, time) = (team.forker(), team.fork().fork);
                    let inside = self.ranges[forker].iter().any(|range| {
                        let times = &shard.events.time;
                        times[*range.start() as usize] <= time && time < times[*range.end() as usize]
                    });
                    if inside {
                        let instance = part.team.instance.index();
                        let range = shard.instances.enter[instance]..=shard.instances.leave[instance];
                        self.teams.push((part.location, *range.start()));
                        self.ranges[part.location].push(range);
                    }
                }
            }
        }
    }

    /// Whether the start or shutdown of the library vanishes on some processes only.
    fn has_library(&self, trace: &Trace) -> bool {
        let has = |shard: &Shard, location, call| {
            trace.class(shard, call).is_start_or_end() && self.has(location, shard.instances.enter[call])
        };
        trace.shards.iter().any(|shard| {
            let mut locations = shard.locations.into_iter().filter(|&location| !self.of(location).is_empty());
            locations.any(|location| shard.instances_of(location).any(|call| has(shard, location, call)))
        })
    }

    /// Lets all processes of the analysis know the calls that vanish. Collective.
    pub(in crate::whatif) fn tell(&mut self, trace: &Trace, builder: &Builder) -> Result<()> {
        let mut own: Vec<(u32, u32)> = Vec::new();
        for (i, shard) in trace.shards.iter().enumerate() {
            for location in shard.locations.into_iter().filter(|&location| !self.of(location).is_empty()) {
                for call in shard.instances_of(location) {
                    let number = builder.first_of(i) + call.number();
                    match own.last_mut() {
                        _ if !self.has(location, shard.instances.enter[call]) => {}
                        Some((_, last)) if *last + 1 == number => *last = number,
                        _ => own.push((number, number)),
                    }
                }
            }
        }
        self.calls = trace.exchange.allgather(own)?.concat();
        Ok(())
    }

    /// Whether nothing is cut in this process of the analysis.
    pub(in crate::whatif) fn is_empty(&self) -> bool {
        self.ranges.iter().all(Vec::is_empty)
    }

    /// The events that vanish at a location.
    pub(in crate::whatif) fn of(&self, location: LocationId) -> &[RangeInclusive<u32>] {
        self.ranges.get(location.index()).map_or(&[], Vec::as_slice)
    }

    /// Whether an event vanishes.
    pub(in crate::whatif) fn has(&self, location: LocationId, position: u32) -> bool {
        let ranges = self.of(location);
        let next = ranges.partition_point(|range| *range.end() < position);
        ranges.get(next).is_some_and(|range| range.contains(&position))
    }

    /// Whether the time before an event vanishes.
    pub(in crate::whatif) fn encloses(&self, location: LocationId, position: u32) -> bool {
        let ranges = self.of(location);
        let next = ranges.partition_point(|range| *range.end() < position);
        ranges.get(next).is_some_and(|range| *range.start() < position)
    }

    /// Whether a call vanishes, given by its number.
    pub(in crate::whatif) fn has_call(&self, number: u32) -> bool {
        let next = self.calls.partition_point(|&(_, last)| last < number);
        self.calls.get(next).is_some_and(|&(first, _)| first <= number)
    }

    /// Counts the messages that calls serve.
    pub(in crate::whatif) fn count(&mut self, trace: &Trace, builder: &Builder) {
        self.served = vec![(0, 0); builder.own().len()];
        for (i, shard) in trace.shards.iter().enumerate() {
            let sends = (0..shard.sends.rows.len()).flat_map(|row| shard.calls_of_send(row));
            let receives = (0..shard.receives.rows.len()).flat_map(|row| shard.calls_of_receive(row));
            for call in sends.chain(receives) {
                self.served[slot(builder, i, call)].0 += 1;
            }
        }
    }

    /// Removes messages that are received in this process. Collective.
    pub(in crate::whatif) fn messages(
        &mut self,
        trace: &Trace,
        builder: &Builder,
        gone: &[Vec<GoneMessage>],
    ) -> Result<()> {
        for &[_, (i, row)] in gone.iter().flatten() {
            let (i, row) = (i as usize, row as usize);
            self.receives[i][row] = true;
            self.serve_less(builder, i, trace.shards[i].calls_of_receive(row));
        }
        let sends = gone.iter().flatten().map(|&[send, _]| send);
        trace.exchange.to_owners(
            sends,
            |&(shard, _)| shard,
            |(shard, row)| {
                let (i, row) = (trace.exchange.position(shard), row as usize);
                self.sends[i][row] = true;
                self.serve_less(builder, i, trace.shards[i].calls_of_send(row));
            },
        )
    }

    /// Records that calls of a shard serve one message less.
    fn serve_less(&mut self, builder: &Builder, i: usize, calls: impl Iterator<Item = InstanceId>) {
        for call in calls {
            self.served[slot(builder, i, call)].1 += 1;
        }
    }

    /// Removes sends and receives without a partner if either of their calls vanishes.
    pub(in crate::whatif) fn partnerless(&mut self, trace: &Trace, builder: &Builder) {
        for (i, shard) in trace.shards.iter().enumerate() {
            let mut sends = std::mem::take(&mut self.sends[i]);
            for (row, gone) in sends.iter_mut().enumerate() {
                *gone = *gone || self.vanishes(builder, i, || shard.calls_of_send(row));
            }
            self.sends[i] = sends;
            let mut receives = std::mem::take(&mut self.receives[i]);
            for (row, gone) in receives.iter_mut().enumerate() {
                *gone = *gone || self.vanishes(builder, i, || shard.calls_of_receive(row));
            }
            self.receives[i] = receives;
        }
    }

    /// Whether one of the calls of a message in a shard vanishes; then none of them serves it.
    fn vanishes<T: Iterator<Item = InstanceId>>(&mut self, builder: &Builder, i: usize, calls: impl Fn() -> T) -> bool {
        let is_gone = calls().any(|call| self.has_call(builder.first_of(i) + call.number()));
        if is_gone {
            self.serve_less(builder, i, calls());
        }
        is_gone
    }

    /// Removes the calls that serve nothing anymore, and those of `also`. Returns whether anything is cut anywhere.
    /// Collective.
    pub(in crate::whatif) fn settle(&mut self, trace: &Trace, builder: &Builder, also: Vec<u32>) -> Result<bool> {
        let first = builder.own().start;
        let gone = self.served.iter().zip(first..).filter(|((all, cut), _)| *all > 0 && all == cut);
        let mut calls: Vec<u32> = gone.map(|(_, call)| call).collect();
        trace.exchange.to_owners(also, |&call| builder.shard_of(call), |call| calls.push(call))?;
        for call in calls {
            let (position, instance) = builder.place(call);
            let shard = &trace.shards[position];
            let location = shard.location_of_instance(instance);
            let range = shard.instances.enter[instance]..=shard.instances.leave[instance];
            self.ranges[location].push(range);
        }
        self.ranges.iter_mut().for_each(join);
        trace.exchange.any(!self.is_empty())
    }

    /// Removes ranges of events.
    pub(in crate::whatif) fn remove(&mut self, events: Vec<(LocationId, Vec<RangeInclusive<u32>>)>) {
        for (location, events) in events {
            self.ranges[location].extend(events);
            join(&mut self.ranges[location]);
        }
    }

    /// Removes the arcs from and to vanished calls.
    pub(in crate::whatif) fn prune(&self, builder: &mut Builder) {
        let mut raws = std::mem::take(&mut builder.raws);
        for raw in &mut raws {
            let source = builder.call_of(raw.source);
            let is_gone = match builder.stop_of(raw.target) {
                Some(stop) => self.has(stop.location, stop.position),
                None => self.has_call(raw.target),
            };
            raw.kept &= !is_gone && !source.is_some_and(|call| self.has_call(call));
        }
        builder.raws = raws;
        let mut turns = std::mem::take(&mut builder.turns);
        turns.retain(|nodes| !nodes.iter().any(|&node| builder.call_of(node).is_some_and(|call| self.has_call(call))));
        builder.turns = turns;
    }
}

/// What vanishes at a location.
#[derive(Clone, Copy)]
pub(in crate::whatif) struct Gone<'a> {
    cut: &'a Cut,
    location: LocationId,
    /// Position of the first event.
    pub first: u32,
    /// For each send and receive, whether it vanishes.
    pub sends: &'a [bool],
    pub receives: &'a [bool],
}

impl<'a> Gone<'a> {
    /// What a cut removes from a location.
    pub(in crate::whatif) fn new(cut: &'a Cut, trace: &Trace, location: LocationId) -> Self {
        let position = trace.position(location);
        let shard = trace.shard(location);
        let i = shard.local(location);
        Self {
            cut,
            location,
            first: shard.event_offsets[i],
            sends: rows(&cut.sends, position, shard.sends.range(i)),
            receives: rows(&cut.receives, position, shard.receives.range(i)),
        }
    }

    /// Whether it is nothing.
    pub(in crate::whatif) fn is_empty(&self) -> bool {
        let vanishes = self.sends.contains(&true) || self.receives.contains(&true);
        !vanishes && self.cut.of(self.location).is_empty()
    }

    /// Whether the last of this many events vanishes.
    pub(in crate::whatif) fn event(&self, behind: usize) -> bool {
        behind > 0 && self.cut.has(self.location, self.first + behind as u32 - 1)
    }

    /// Whether a record after this many events vanishes.
    pub(in crate::whatif) fn record(&self, behind: usize, record: &Event<'_>) -> bool {
        let next = self.first + behind as u32;
        match record {
            // A thread's part in a team vanishes with its begin and end, which enclose its first region.
            Event::ThreadTeamBegin { .. } => {
                self.cut.encloses(self.location, next) || self.cut.teams.contains(&(self.location, next))
            }
            Event::ThreadTeamEnd { .. } => {
                let ends = |&(location, start): &(LocationId, u32)| {
                    location == self.location
                        && self.cut.of(location).iter().any(|range| *range.start() == start && *range.end() + 1 == next)
                };
                self.cut.encloses(self.location, next) || self.cut.teams.iter().any(ends)
            }
            _ => self.cut.encloses(self.location, next),
        }
    }
}

/// Position of a call of the i-th shard among all calls of this process.
fn slot(builder: &Builder, i: usize, call: InstanceId) -> usize {
    (builder.first_of(i) - builder.own().start + call.number()) as usize
}

/// What is known about some rows of a shard.
pub(in crate::whatif) fn rows<T>(all: &[Vec<T>], shard: usize, rows: std::ops::Range<usize>) -> &[T] {
    all.get(shard).map_or(&[], |of| &of[rows])
}

/// Sorts ranges, and joins those that overlap.
fn join(ranges: &mut Vec<RangeInclusive<u32>>) {
    ranges.sort_unstable_by_key(|range| (*range.start(), *range.end()));
    let mut joined: Vec<RangeInclusive<u32>> = Vec::with_capacity(ranges.len());
    for range in ranges.drain(..) {
        match joined.last_mut() {
            Some(last) if range.start() <= last.end() => {
                *last = *last.start()..=(*last.end()).max(*range.end());
            }
            _ => joined.push(range),
        }
    }
    *ranges = joined;
}
