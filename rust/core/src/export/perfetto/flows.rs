//! Flows between written slices: from sends to receives, from causes to waits, from transfers to their destinations, from
//! creations of tasks to their starts.

use std::ops::Range;

use bitcode::{Decode, Encode};
use rayon::prelude::*;

use super::selection::{Selection, WrittenEvents};
use super::written::Written;
use crate::Result;
use crate::export::threads::each_started_elsewhere;
use crate::ids::{InstanceId, LocationId};
use crate::matching::messages;
use crate::matching::transfers::Transfer;
use crate::parallel::per_shard::PerShard;
use crate::trace::Trace;
use crate::waits::WaitState;

/// By how much a level changes at a time.
pub(super) type Change = (i64, i64);

/// An end of a flow at an Enter or Leave of a shard.
#[derive(Clone, Copy, Encode, Decode)]
pub(super) struct End {
    pub(super) position: u32,
    pub(super) flow: u64,
    /// Whether the flow starts there.
    pub(super) starts: bool,
    /// Bytes of a message.
    pub(super) bytes: u64,
}

/// A call of any process of the analysis: its shard, and its region instance.
type Call = (u32, InstanceId);

/// The flows between written slices. Those of all processes of the analysis are numbered through; each has the ends in its
/// shards.
pub(super) struct Flows<'a> {
    trace: &'a Trace,
    selection: &'a Selection,
    kept: &'a [WrittenEvents],
    /// By shard; sorted at the end.
    pub(super) ends: Vec<Vec<End>>,
    /// At the first process: for each wait the flow from its cause, or 0.
    pub(super) caused: Vec<u64>,
    /// At the first process: for each transfer its flow, or 0.
    pub(super) transferred: Vec<u64>,
    /// Changes of the bytes in flight by messages from or to written processes; at the first process.
    pub(super) sent: Vec<Change>,
    /// Number of the last flow of all processes.
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

    /// Numbers the next flows, process by process; returns the number before those of this one. Collective.
    fn number(&mut self, own: u64) -> Result<u64> {
        let counts = self.trace.exchange.allgather(own)?;
        let before = self.last + counts[..self.trace.exchange.rank()].iter().sum::<u64>();
        self.last += counts.iter().sum::<u64>();
        Ok(before)
    }

    /// Position of a shard of this process.
    fn here(&self, shard: u32) -> usize {
        (shard - self.trace.exchange.own().start) as usize
    }

    /// Times of the Enters of calls that are written, ticks. Collective.
    fn written_enters(&self, calls: &[Call]) -> Result<Vec<Option<i64>>> {
        self.trace.exchange.ask(
            calls,
            |&(shard, _)| shard,
            |&(shard, call)| {
                let i = self.here(shard);
                let enter = self.trace.shards[i].instances.enter[call];
                self.kept[i].has(enter).then(|| self.trace.shards[i].events.time[enter as usize])
            },
        )
    }

    /// Lets flows start at the Enters of calls, each with its number and bytes. Collective.
    fn start(&mut self, flows: Vec<(Call, u64, u64)>) -> Result<()> {
        let mut outgoing = vec![Vec::new(); self.trace.exchange.processes()];
        for flow in flows {
            outgoing[self.trace.exchange.process_of(flow.0.0)].push(flow);
        }
        for ((shard, call), flow, bytes) in self.trace.exchange.alltoall(outgoing)?.into_iter().flatten() {
            let i = self.here(shard);
            let position = self.trace.shards[i].instances.enter[call];
            self.ends[i].push(End { position, flow, starts: true, bytes });
        }
        Ok(())
    }

    /// From sends to receives. Collective.
    pub(super) fn of_messages(&mut self) -> Result<()> {
        let (trace, kept, selection) = (self.trace, self.kept, self.selection);
        // For each message, its sender, when it was sent and received, and the position of the Leave that completes the
        // receive if that is written.
        let (found, _) = messages::match_all(trace, |index, shard, matches| {
            let receives = shard.receives.rows.iter().enumerate();
            let found = receives.filter_map(|(row, receive)| {
                let send = matches.send(row)?;
                let leave = shard.instances.leave[receive.instance];
                let counts = selection.has(trace, send.location)
                    || selection.has(trace, shard.location_of_instance(receive.instance));
                let times = (send.enter, shard.events.time[leave as usize]);
                let from = (trace.shard_of[send.location], send.instance);
                counts.then_some((from, times, send.bytes, kept[index].has(leave).then_some(leave)))
            });
            found.collect::<Vec<_>>()
        })?;
        let in_order = || found.iter().enumerate().flat_map(|(to, found)| found.iter().map(move |one| (to, one)));
        let mut sent = Vec::new();
        for &(_, (from, to), bytes, _) in in_order().map(|(_, one)| one).filter(|(_, (from, to), ..)| from < to) {
            in_flight(&mut sent, from, to, bytes);
        }
        self.sent = trace.exchange.gatherv(sent)?;
        let shown: Vec<_> = in_order()
            .filter_map(|(to, &(from, times, bytes, leave))| Some((from, times, bytes, (to, leave?))))
            .collect();
        let is_written = self.written_enters(&shown.iter().map(|&(from, ..)| from).collect::<Vec<_>>())?;
        let mut both: Vec<_> = shown.into_iter().zip(is_written).filter(|(_, enter)| enter.is_some()).collect();
        let all = both.len();
        both.retain(|((_, (from, to), ..), _)| from < to);
        self.written.backwards += (all - both.len()) as u64;
        self.written.messages += both.len() as u64;
        let before = self.number(both.len() as u64)?;
        let mut starts = Vec::with_capacity(both.len());
        for (flow, ((from, _, bytes, (to, position)), _)) in (before + 1..).zip(both) {
            self.ends[to].push(End { position, flow, starts: false, bytes });
            starts.push((from, flow, bytes));
        }
        self.start(starts)
    }

    /// From causes to waits; a flow ends with the last stretch of its wait. The first process has all stretches. Collective.
    pub(super) fn of_causes(&mut self, waits: &PerShard<WaitState>, stretches: &[(usize, Range<i64>)]) -> Result<()> {
        self.caused = vec![0; if stretches.is_empty() { 0 } else { waits.len() }];
        let mut shown: Vec<(usize, i64, Call)> = Vec::new();
        for of_wait in stretches.chunk_by(|a, b| a.0 == b.0) {
            let (number, time) = of_wait[of_wait.len() - 1].clone();
            let wait = &waits[number];
            let is_shown = self.selection.has(self.trace, wait.location) && self.selection.lasts(time.start, time.end);
            if wait.cause_instance.is_some() && is_shown {
                shown.push((number, time.end, (self.trace.shard_of[wait.cause_location], wait.cause_instance)));
            }
        }
        let enters = self.written_enters(&shown.iter().map(|&(.., call)| call).collect::<Vec<_>>())?;
        let mut starts = Vec::new();
        for ((number, end, call), enter) in shown.into_iter().zip(enters) {
            match enter {
                None => {}
                Some(enter) if enter > end => self.written.backwards += 1,
                Some(_) => {
                    self.caused[number] = self.last + starts.len() as u64 + 1;
                    starts.push((call, self.caused[number], 0));
                }
            }
        }
        self.written.causes = starts.len() as u64;
        self.number(starts.len() as u64)?;
        self.start(starts)
    }

    /// From transfers to the calls after which the data are there. The first process has all transfers. Collective.
    pub(super) fn of_transfers(&mut self, transfers: &[Transfer]) -> Result<()> {
        self.transferred = vec![0; transfers.len()];
        let is_shown = |transfer: &Transfer| is_shown(self.trace, self.selection, transfer);
        let shown = transfers.iter().enumerate().filter(|(_, transfer)| is_shown(transfer));
        let shown: Vec<(usize, i64)> = shown.filter_map(|(number, transfer)| Some((number, transfer.end?))).collect();
        // A call of the destination, or of the origin if only the origin knows when the data arrived.
        let places = |&(number, end): &(usize, i64)| {
            [transfers[number].destination, transfers[number].origin.0].map(|place| (place, end))
        };
        let asked: Vec<(LocationId, i64)> = shown.iter().flat_map(places).collect();
        let leaves = self.trace.exchange.ask(
            &asked,
            |&(place, _)| self.trace.shard_of[place],
            |&(place, time)| self.leave_at(place, time),
        )?;
        let mut outgoing = vec![Vec::new(); self.trace.exchange.processes()];
        let mut flow = self.last;
        for ((number, end), found) in shown.iter().zip(asked.chunks(2).zip(leaves.chunks(2))) {
            let mut calls = found.0.iter().zip(found.1);
            let Some((place, position)) = calls.find_map(|(&(place, _), &leave)| Some((place, leave?))) else {
                continue;
            };
            if *end < transfers[*number].time {
                self.written.backwards += 1;
                continue;
            }
            flow += 1;
            self.transferred[*number] = flow;
            let shard = self.trace.shard_of[place];
            let end = End { position, flow, starts: false, bytes: 0 };
            outgoing[self.trace.exchange.process_of(shard)].push((shard, end));
        }
        self.written.transfer_flows = flow - self.last;
        self.number(self.written.transfer_flows)?;
        for (shard, end) in self.trace.exchange.alltoall(outgoing)?.into_iter().flatten() {
            let i = self.here(shard);
            self.ends[i].push(end);
        }
        Ok(())
    }

    /// From the calls that create tasks to the tasks, where they start on another thread. Collective.
    pub(super) fn of_tasks(&mut self) -> Result<()> {
        let (trace, kept) = (self.trace, self.kept);
        let mut found = Vec::new();
        for (i, shard) in trace.shards.iter().enumerate() {
            each_started_elsewhere(shard, |task| {
                if task.creator.1.is_none() || task.runner.1.is_none() {
                    return;
                }
                let places = [task.creator.1, task.runner.1].map(|call| shard.instances.enter[call]);
                if places.iter().all(|&position| kept[i].has(position)) {
                    found.push((i, places));
                }
            });
        }
        self.written.tasks = found.len() as u64;
        let before = self.number(found.len() as u64)?;
        for (flow, (i, [create, start])) in (before + 1..).zip(found) {
            self.ends[i].push(End { position: create, flow, starts: true, bytes: 0 });
            self.ends[i].push(End { position: start, flow, starts: false, bytes: 0 });
        }
        Ok(())
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
        let kept = &self.kept[self.trace.position(location)];
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
pub(super) struct Ends<'a>(&'a [End]);

impl<'a> Ends<'a> {
    /// Those from a position on.
    pub(super) fn from(ends: &'a [End], position: u32) -> Self {
        Self(&ends[ends.partition_point(|end| end.position < position)..])
    }

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
