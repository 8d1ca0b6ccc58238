//! Moves: communication that goes on while the program computes, and calls that are split (whatif.md#overlap).
//!
//! A blocking call becomes one that only starts its communication, and a wait that comes later; an existing wait comes
//! later. The trace does not show which code touches the buffer of a message, so a wait passes computation only: it
//! stays before the next call of a communication library or for I/O, and in the function that made the call, unless
//! `after` names a function behind which it is to stand. It passes other waits and starts that are moved as well, as long
//! as no message that may have been received is sent.
//!
//! The graph needs no new events for this: what a call waits for moves to a [stop](Kind::Gate) between two events.
//! Only the [run that is written](crate::whatif::run) has them.

use std::ops::{Range, RangeInclusive};

use rustc_hash::{FxHashMap, FxHashSet};

use super::selection::{Selection, in_selection};
use crate::ids::{CallPathId, InstanceId, LocationId};
use crate::trace::regions::mpi_call;
use crate::trace::{Shard, Trace};
use crate::whatif::assumptions::{Assumption, Assumptions};
use crate::whatif::graph::builder::{Builder, Node, OWN, Raw, enter};
use crate::whatif::graph::steps::Kind;
use crate::{Error, Result};

/// Calls whose wait comes later.
#[derive(Clone, Debug)]
pub struct Overlap {
    /// The calls, or regions around them.
    pub selection: Selection,
    /// Call paths behind which the waits are to stand, by number; if empty, as far as they may go.
    pub after: Vec<bool>,
}

/// What a call becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::whatif) enum Becomes {
    /// It waits for requests, and does so later.
    Later,
    /// A non-blocking send, synchronous or not, and a wait.
    Isend,
    Issend,
    /// A non-blocking receive, and a wait.
    Irecv,
    /// A non-blocking send and receive, and a wait for both.
    Both,
    /// A send, then a receive.
    SendThenReceive,
}

/// A call that is moved or split.
#[derive(Clone, Copy, Debug)]
pub(in crate::whatif) struct Move {
    /// Position of its Enter; that of its Leave is the next.
    pub enter: u32,
    pub becomes: Becomes,
    /// Position of the event before which it waits now. For a split, the Leave of the call.
    pub before: u32,
    /// Whether it waits right behind the event before that one, instead of right before this one.
    pub is_behind: bool,
    pub instance: InstanceId,
    /// Number of its stop.
    pub stop: u32,
}

/// The calls that are moved or split.
#[derive(Debug, Default)]
pub(in crate::whatif) struct Moves {
    /// Those of this process of the analysis, by location and in order.
    of: Vec<Vec<Move>>,
    /// Whether any process has some.
    any: bool,
}

impl Moves {
    /// Finds the calls that may be moved or split, and where they go; counts those that must stay. Collective.
    pub(in crate::whatif) fn new(
        trace: &Trace,
        overlaps: &[Overlap],
        splits: &[Selection],
        assumptions: &mut Assumptions,
    ) -> Result<Self> {
        if overlaps.is_empty() && splits.is_empty() {
            return Ok(Self::default());
        }
        let becomes = kinds(trace);
        let mut all: Vec<Vec<Move>> = vec![Vec::new(); trace.definitions.locations.len()];
        let mut chosen = |selection: &Selection, find: &Find<'_>| -> Result<u64> {
            let found = in_selection(trace, selection, |location, ranges| find(location, &ranges))?;
            if !trace.exchange.any(found.iter().any(|(_, (moves, stay))| !moves.is_empty() || *stay > 0))? {
                let why = "there is no call in it that can be changed so";
                return Err(Error::Usage(format!("{} selects nothing: {why}", selection.text)));
            }
            let stay = found.iter().map(|(_, (_, stay))| stay).sum();
            for (location, (moves, _)) in found {
                all[location].extend(moves);
            }
            Ok(stay)
        };
        for overlap in overlaps {
            let find = |location, ranges: &[_]| overlapped(trace, &becomes, location, ranges, &overlap.after);
            assumptions.count(Assumption::NothingToPass, chosen(&overlap.selection, &find)?);
        }
        for selection in splits {
            chosen(selection, &|location, ranges| (split(trace, &becomes, location, ranges), 0))?;
        }
        for moves in &mut all {
            moves.sort_by_key(|of| of.enter);
        }
        let is_twice = |moves: &Vec<Move>| moves.windows(2).any(|pair| pair[0].enter == pair[1].enter);
        if trace.exchange.any(all.iter().any(is_twice))? {
            return Err(Error::Usage("a call can only be moved or split once".into()));
        }
        let any = trace.exchange.any(!all.iter().all(Vec::is_empty))?;
        Ok(Self { of: all, any })
    }

    /// Whether nothing is moved at any process of the analysis.
    pub(in crate::whatif) fn is_empty(&self) -> bool {
        !self.any
    }

    /// What is moved at a location.
    pub(in crate::whatif) fn of(&self, location: LocationId) -> &[Move] {
        self.of.get(location.index()).map_or(&[], |moves| moves)
    }

    /// The moved calls of this process of the analysis.
    pub(in crate::whatif) fn calls(&self) -> impl Iterator<Item = (LocationId, &Move)> {
        self.of
            .iter()
            .enumerate()
            .flat_map(|(location, moves)| moves.iter().map(move |of| (LocationId::at(location), of)))
    }

    /// Moves the arcs, which are sorted, to the places where calls wait now. Calls without arcs wait for nobody: they stay.
    /// Collective.
    pub(in crate::whatif) fn apply(
        &mut self,
        trace: &Trace,
        builder: &mut Builder,
        assumptions: &mut Assumptions,
    ) -> Result<()> {
        let (mut moved, mut time) = (0, 0);
        let mut split = 0;
        let mut starts: Vec<Raw> = Vec::new();
        // Arcs are sorted only until the first has moved.
        let arcs_of = |call: u32| {
            let first = builder.raws.partition_point(|raw| raw.target < call);
            first..first + builder.raws[first..].partition_point(|raw| raw.target == call)
        };
        let calls = self.calls().map(|(location, of)| builder.instance(trace, (location, of.instance)));
        let arcs: FxHashMap<u32, Range<usize>> = calls.map(|call| (call, arcs_of(call))).collect();
        let own = self.of.iter_mut().enumerate().filter(|(_, moves)| !moves.is_empty());
        for (location, moves) in own {
            let location = LocationId::at(location);
            let shard = trace.shard(location);
            let times = &shard.events.time;
            let mut ended = FxHashSet::default();
            moves.retain_mut(|of| {
                let call = builder.instance(trace, (location, of.instance));
                let arcs = arcs[&call].clone();
                let begin = times[of.enter as usize];
                let leave = times[of.enter as usize + 1];
                let latest =
                    builder.raws[arcs.clone()].iter().filter(|raw| raw.measured).map(|raw| raw.since.min(leave));
                let latest = latest.max().map_or(begin, |latest| latest.max(begin));
                if of.becomes == Becomes::SendThenReceive {
                    of.stop = builder.stop(location, of.before, begin, Kind::Gate);
                    let target = builder.stop_target(of.stop);
                    builder.judged.insert(call, (latest, leave));
                    builder.judged.insert(target, (latest, leave));
                    split += 1;
                    let (mut sends, mut receives) = (false, false);
                    for raw in &mut builder.raws[arcs.clone()] {
                        if raw.region.is_none() && raw.source != OWN {
                            raw.target = target;
                            sends = true;
                        } else {
                            receives = true;
                        }
                    }
                    // The send has all of the time if nothing is received.
                    if sends && !receives {
                        starts.push(Raw::own(call, 0));
                    }
                    return true;
                }
                if arcs.is_empty() {
                    assumptions.count(Assumption::NothingToPass, 1);
                    return false;
                }
                let at = times[of.before as usize - usize::from(of.is_behind)];
                // The time before an event ends before the waits that stand right before it.
                if !of.is_behind && ended.insert(of.before) {
                    builder.stop(location, of.before, at, Kind::Point);
                }
                of.stop = builder.stop(location, of.before, at, Kind::Gate);
                let target = builder.stop_target(of.stop);
                builder.judged.insert(target, (begin, leave));
                for raw in &mut builder.raws[arcs.clone()] {
                    raw.target = target;
                    // The transfer now begins when the receive is posted.
                    if raw.source == OWN && raw.measured {
                        raw.source = enter(call);
                    }
                }
                starts.push(Raw::own(call, 0));
                (moved, time) = (moved + 1, time + leave - latest);
                true
            });
        }
        builder.raws.extend(starts);
        assumptions.concern(Assumption::Overlapped, moved, time);
        assumptions.count(Assumption::Split, split);
        self.any = trace.exchange.any(!self.of.iter().all(Vec::is_empty))?;
        Ok(())
    }

    /// Lets messages to calls that are split be received from where the second parts begin. Collective.
    pub(in crate::whatif) fn redirect(&self, trace: &Trace, builder: &mut Builder) -> Result<()> {
        let split = self.calls().filter(|(_, of)| of.becomes == Becomes::SendThenReceive);
        let split: FxHashMap<Node, u32> =
            split.map(|(location, of)| (enter(builder.instance(trace, (location, of.instance))), of.stop)).collect();
        builder.redirect(|raw| raw.region.is_none(), |node| split.get(&node).copied())
    }
}

/// Finds moves among ranges of events of a location, and how many calls must stay.
type Find<'a> = dyn Fn(LocationId, &[RangeInclusive<u32>]) -> (Vec<Move>, u64) + Sync + 'a;

/// What the calls of each call path can become.
fn kinds(trace: &Trace) -> Vec<Option<Becomes>> {
    let of = |region| {
        let region = trace.regions.get(region)?;
        Some(match mpi_call(&region.name, region.paradigm)?.as_str() {
            "wait" | "waitall" => Becomes::Later,
            "send" => Becomes::Isend,
            "ssend" => Becomes::Issend,
            "recv" => Becomes::Irecv,
            "sendrecv" => Becomes::Both,
            _ => return None,
        })
    };
    trace.tree.nodes().iter().map(|node| of(node.region)).collect()
}

/// The calls in ranges of events that can become something, by the positions of their Enters; calls with events inside
/// are left out.
fn calls(
    trace: &Trace,
    becomes: &[Option<Becomes>],
    location: LocationId,
    ranges: &[RangeInclusive<u32>],
) -> Vec<(u32, InstanceId, Becomes)> {
    let shard = trace.shard(location);
    let mut found = Vec::new();
    if ranges.is_empty() {
        return found;
    }
    for instance in shard.instances_of(location) {
        let (enter, leave) = (shard.instances.enter[instance], shard.instances.leave[instance]);
        let Some(kind) = becomes[shard.callpath(instance).index()] else { continue };
        let range = ranges.partition_point(|range| *range.end() < enter);
        if leave == enter + 1 && ranges.get(range).is_some_and(|range| range.contains(&enter)) {
            found.push((enter, instance, kind));
        }
    }
    found.sort_unstable_by_key(|&(enter, ..)| enter);
    found
}

/// Where the waits of calls in ranges of events go, and how many calls must stay.
fn overlapped(
    trace: &Trace,
    becomes: &[Option<Becomes>],
    location: LocationId,
    ranges: &[RangeInclusive<u32>],
    after: &[bool],
) -> (Vec<Move>, u64) {
    let calls = calls(trace, becomes, location, ranges);
    let mut found: FxHashMap<u32, Move> = FxHashMap::default();
    // From the last to the first, so that a call goes where the next one goes.
    for &(enter, instance, kind) in calls.iter().rev() {
        let passes = |next: &Move| {
            let starts_send = |of: Becomes| matches!(of, Becomes::Isend | Becomes::Issend);
            match kind {
                Becomes::Later => next.becomes == Becomes::Later,
                Becomes::Irecv | Becomes::Both => next.becomes == Becomes::Irecv,
                _ => starts_send(next.becomes) || next.becomes == Becomes::Irecv,
            }
        };
        let next = |position: u32| found.get(&position).filter(|next| passes(next));
        if let Some((before, is_behind)) = destination(trace, location, enter + 2, after, &next) {
            found.insert(enter, Move { enter, becomes: kind, before, is_behind, instance, stop: 0 });
        }
    }
    let stay = (calls.len() - found.len()) as u64;
    let mut moves: Vec<Move> = found.into_values().collect();
    moves.sort_unstable_by_key(|of| of.enter);
    (moves, stay)
}

/// Where a wait that may pass the events from a position on goes: the event that it precedes, and whether it follows
/// right behind the one before. `next` is the move of a call that may be passed.
fn destination<'a>(
    trace: &Trace,
    location: LocationId,
    from: u32,
    after: &[bool],
    next: &impl Fn(u32) -> Option<&'a Move>,
) -> Option<(u32, bool)> {
    let shard = trace.shard(location);
    let end = shard.event_offsets[shard.local(location) + 1];
    let times = &shard.events.time;
    let anywhere = after.is_empty();
    // Something is passed if time goes by.
    let stop =
        |position: u32| (anywhere && times[position as usize] > times[from as usize - 1]).then_some((position, false));
    // The region of the function itself that is open, with its begin and call path.
    let (mut depth, mut open) = (0u32, (from, CallPathId::default()));
    for position in from..end {
        if shard.events.is_leave(position) {
            if depth == 0 && anywhere {
                return stop(position);
            }
            depth = depth.saturating_sub(1);
            if depth == 0 && after.get(open.1.index()) == Some(&true) {
                return Some((position + 1, true)).filter(|_| position + 1 < end);
            }
            continue;
        }
        if depth == 0 {
            open = (position, shard.events.callpath(position));
            if let Some(next) = next(position) {
                return Some((next.before, next.is_behind));
            }
        }
        if communicates(trace, shard, position) {
            return stop(open.0);
        }
        depth += 1;
    }
    None
}

/// Whether the region that is entered may touch the buffers of messages outside of the program's code.
fn communicates(trace: &Trace, shard: &Shard, position: u32) -> bool {
    let region = trace.tree.region(shard.events.callpath(position));
    trace.regions.class(region).library().is_some() || trace.regions.is_io(region)
}

/// The calls in ranges of events that send and receive.
fn split(
    trace: &Trace,
    becomes: &[Option<Becomes>],
    location: LocationId,
    ranges: &[RangeInclusive<u32>],
) -> Vec<Move> {
    let calls = calls(trace, becomes, location, ranges).into_iter();
    calls
        .filter(|&(.., kind)| kind == Becomes::Both)
        .map(|(enter, instance, _)| Move {
            enter,
            becomes: Becomes::SendThenReceive,
            before: enter + 1,
            is_behind: true,
            instance,
            stop: 0,
        })
        .collect()
}
