//! Flows between written slices: from sends to receives, from causes to waits, from transfers to their destinations, from
//! creations of tasks to their starts.

use std::ops::Range;

use rayon::prelude::*;

use super::selection::{Selection, WrittenEvents};
use super::written::Written;
use crate::Result;
use crate::export::threads::each_started_elsewhere;
use crate::ids::LocationId;
use crate::matching::messages;
use crate::matching::transfers::Transfer;
use crate::parallel::per_shard::PerShard;
use crate::trace::Trace;
use crate::waits::WaitState;

/// By how much a level changes at a time.
pub(super) type Change = (i64, i64);

/// An end of a flow at an Enter or Leave of a shard.
#[derive(Clone, Copy)]
pub(super) struct End {
    pub(super) position: u32,
    pub(super) flow: u64,
    /// Whether the flow starts there.
    pub(super) starts: bool,
    /// Bytes of a message.
    pub(super) bytes: u64,
}

/// The flows between written slices.
pub(super) struct Flows<'a> {
    trace: &'a Trace,
    selection: &'a Selection,
    kept: &'a [WrittenEvents],
    /// By shard; sorted at the end.
    pub(super) ends: Vec<Vec<End>>,
    /// For each wait the flow from its cause, or 0.
    pub(super) caused: Vec<u64>,
    /// For each transfer its flow, or 0.
    pub(super) transferred: Vec<u64>,
    /// Changes of the bytes in flight by messages from or to written processes.
    pub(super) sent: Vec<Change>,
    last: u64,
    pub(super) written: Written,
}

impl<'a> Flows<'a> {
    pub(super) fn new(trace: &'a Trace, selection: &'a Selection, kept: &'a [WrittenEvents]) -> Self {
        Self {
            trace,
            selection,
            kept,
            ends: trace.shards.iter().map(|_| Vec::new()).collect(),
            caused: Vec::new(),
            transferred: Vec::new(),
            sent: Vec::new(),
            last: 0,
            written: Written::default(),
        }
    }

    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    pub(super) fn of_messages(&mut self) -> Result<()> {
        let (trace, kept, selection) = (self.trace, self.kept, self.selection);
        // For each message, its sender and the position of the Leave that completes the receive.
        let (found, _) = messages::match_all(trace, |index, shard, matches| {
            let receives = shard.receives.rows.iter().enumerate();
            let found = receives.filter_map(|(row, receive)| {
                let send = matches.send(row)?;
                let from = trace.shard_of[send.location];
                let enter = trace.shards[from as usize].instances.enter[send.instance];
                let leave = shard.instances.leave[receive.instance];
                let is_shown = kept[from as usize].has(enter) && kept[index].has(leave);
                let counts = selection.has(trace, send.location)
                    || selection.has(trace, shard.location_of_instance(receive.instance));
                (is_shown || counts).then_some((from, enter, send.bytes, leave, is_shown))
            });
            found.collect::<Vec<_>>()
        })?;
        for (to, found) in found.into_iter().enumerate() {
            for (from, enter, bytes, leave, is_shown) in found {
                let sent = trace.shards[from as usize].events.time[enter as usize];
                let received = trace.shards[to].events.time[leave as usize];
                if sent < received {
                    in_flight(&mut self.sent, sent, received, bytes);
                }
                if !is_shown {
                    continue;
                }
                if sent >= received {
                    self.written.backwards += 1;
                    continue;
                }
                let flow = self.next();
                self.ends[from as usize].push(End { position: enter, flow, starts: true, bytes });
                self.ends[to].push(End { position: leave, flow, starts: false, bytes });
                self.written.messages += 1;
            }
        }
        Ok(())
    }

    /// A flow ends with the last stretch of its wait.
    pub(super) fn of_causes(&mut self, waits: &PerShard<WaitState>, stretches: &[(usize, Range<i64>)]) {
        self.caused = vec![0; waits.len()];
        for of_wait in stretches.chunk_by(|a, b| a.0 == b.0) {
            let (number, time) = of_wait[of_wait.len() - 1].clone();
            let wait = &waits[number];
            let is_shown = self.selection.has(self.trace, wait.location) && self.selection.lasts(time.start, time.end);
            if wait.cause_instance.is_none() || !is_shown {
                continue;
            }
            let from = self.trace.shard_of[wait.cause_location] as usize;
            let enter = self.trace.shards[from].instances.enter[wait.cause_instance];
            if !self.kept[from].has(enter) {
                continue;
            }
            if self.trace.shards[from].events.time[enter as usize] > time.end {
                self.written.backwards += 1;
                continue;
            }
            let flow = self.next();
            self.caused[number] = flow;
            self.ends[from].push(End { position: enter, flow, starts: true, bytes: 0 });
            self.written.causes += 1;
        }
    }

    /// From the calls that create tasks to the tasks, where they start on another thread.
    pub(super) fn of_tasks(&mut self) {
        let (trace, kept) = (self.trace, self.kept);
        for (number, shard) in trace.shards.iter().enumerate() {
            each_started_elsewhere(shard, |task| {
                if task.creator.1.is_none() || task.runner.1.is_none() {
                    return;
                }
                let [create, start] = [task.creator.1, task.runner.1].map(|call| shard.instances.enter[call]);
                if kept[number].has(create) && kept[number].has(start) {
                    let flow = self.next();
                    self.ends[number].push(End { position: create, flow, starts: true, bytes: 0 });
                    self.ends[number].push(End { position: start, flow, starts: false, bytes: 0 });
                    self.written.tasks += 1;
                }
            });
        }
    }

    pub(super) fn of_transfers(&mut self, transfers: &[Transfer]) {
        self.transferred = vec![0; transfers.len()];
        for (number, transfer) in transfers.iter().enumerate() {
            let Some(end) = transfer.end else { continue };
            if !is_shown(self.trace, self.selection, transfer) {
                continue;
            }
            // A call of the destination, or of the origin if only the origin knows when the data arrived.
            let places = [transfer.destination, transfer.origin.0];
            let call = places.into_iter().find_map(|place| Some((place, self.leave_at(place, end)?)));
            let Some((place, leave)) = call else { continue };
            let to = self.trace.shard_of[place] as usize;
            if end < transfer.time {
                self.written.backwards += 1;
                continue;
            }
            let flow = self.next();
            self.transferred[number] = flow;
            self.ends[to].push(End { position: leave, flow, starts: false, bytes: 0 });
            self.written.transfer_flows += 1;
        }
    }

    /// Puts the ends in the order of their positions.
    pub(super) fn sort(&mut self) {
        for ends in &mut self.ends {
            ends.par_sort_unstable_by_key(|end| (end.position, end.flow));
        }
    }

    /// The innermost written call of a location that is left at a time.
    fn leave_at(&self, location: LocationId, time: i64) -> Option<u32> {
        let shard = self.trace.shard(location);
        let kept = &self.kept[self.trace.shard_of[location] as usize];
        let i = shard.local(location);
        let (start, end) = (shard.event_offsets[i], shard.event_offsets[i + 1]);
        let times = &shard.events.time[start as usize..end as usize];
        let first = start + times.partition_point(|&event| event < time) as u32;
        (first..end)
            .take_while(|&position| shard.events.time[position as usize] == time)
            .find(|&position| shard.events.is_leave(position) && kept.has(position))
    }
}

/// Whether a transfer is written; its source decides.
pub(super) fn is_shown(trace: &Trace, selection: &Selection, transfer: &Transfer) -> bool {
    let end = transfer.end.map_or(transfer.time, |end| end.max(transfer.time));
    selection.has(trace, transfer.source) && selection.lasts(transfer.time, end)
}

/// Ends of flows in the order of their positions.
pub(super) struct Ends<'a>(pub(super) &'a [End]);

impl<'a> Ends<'a> {
    /// The ends at a position; positions must be requested in order.
    #[inline]
    pub(super) fn at(&mut self, position: u32) -> &'a [End] {
        let rest = self.0;
        let from = rest.iter().take_while(|end| end.position < position).count();
        let count = rest[from..].iter().take_while(|end| end.position == position).count();
        self.0 = &rest[from + count..];
        &rest[from..from + count]
    }
}

/// Adds the changes in flight of one message or transfer.
pub(super) fn in_flight(changes: &mut Vec<Change>, from: i64, to: i64, bytes: u64) {
    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
    changes.extend([(from, bytes), (to, -bytes)]);
}
