//! Flows between written slices: from sends to receives, from causes to waits, from transfers to their destinations, from
//! creations of tasks to their starts.

use std::ops::Range;

use bitcode::{Decode, Encode};
use rayon::slice::ParallelSliceMut as _;

use super::written::Written;
use crate::Result;
use crate::analysis::Analysis;
use crate::export::selection::{Selection, WrittenEvents};
use crate::export::threads::each_started_elsewhere;
use crate::ids::{InstanceId, LocationId};
use crate::matching::messages;
use crate::matching::transfers::Transfer;
use crate::trace::{NONE, Trace};

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

/// A message that is received in this process of the analysis.
struct Message {
    from: Call,
    /// Position of the Leave that completes the receive; [`NONE`] if that is not written.
    to: u32,
    /// Enter of the sending call, and that Leave, ticks.
    times: (i64, i64),
    bytes: u64,
}

/// Messages with the positions of the shards that receive them.
fn in_order(found: &[Vec<Message>]) -> impl Iterator<Item = (usize, &Message)> {
    found.iter().enumerate().flat_map(|(to, found)| found.iter().map(move |message| (to, message)))
}

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

    /// Whether the Enters of calls are written. Collective.
    fn are_written(&self, calls: &[Call]) -> Result<Vec<bool>> {
        let is_written = |&(shard, call): &Call| {
            let i = self.trace.exchange.position(shard);
            self.kept[i].has(self.trace.shards[i].instances.enter[call])
        };
        self.trace.exchange.ask(calls, |&(shard, _)| shard, is_written)
    }

    /// Lets flows start at the Enters of calls, each with its number and bytes. Collective.
    fn start(&mut self, flows: impl Iterator<Item = (Call, u64, u64)>) -> Result<()> {
        let trace = self.trace;
        let shard = |&((shard, _), ..): &(Call, u64, u64)| shard;
        trace.exchange.to_owners(flows, shard, |((shard, call), flow, bytes)| {
            let i = trace.exchange.position(shard);
            let position = trace.shards[i].instances.enter[call];
            self.ends[i].push(End { position, flow, starts: true, bytes });
        })
    }

    /// From sends to receives. Collective.
    pub(super) fn of_messages(&mut self) -> Result<()> {
        let (trace, kept, selection) = (self.trace, self.kept, self.selection);
        let (mut found, _) = messages::match_all(trace, |index, shard, matches| {
            let receives = shard.receives.rows.iter().enumerate();
            let found = receives.filter_map(|(row, receive)| {
                let send = matches.send(row)?;
                let leave = shard.instances.leave[receive.instance];
                let counts = selection.has(trace, send.location)
                    || selection.has(trace, shard.location_of_instance(receive.instance));
                counts.then(|| Message {
                    from: (trace.shard_of[send.location], send.instance),
                    to: if kept[index].has(leave) { leave } else { NONE },
                    times: (send.enter, shard.events.time[leave as usize]),
                    bytes: send.bytes,
                })
            });
            found.collect::<Vec<_>>()
        })?;
        let mut sent = Vec::new();
        for Message { times: (from, to), bytes, .. } in found.iter().flatten() {
            if from < to {
                in_flight(&mut sent, *from, *to, *bytes);
            }
        }
        self.sent = trace.exchange.gatherv(sent)?;
        for found in &mut found {
            found.retain(|message| message.to != NONE);
        }
        let senders: Vec<Call> = found.iter().flatten().map(|message| message.from).collect();
        let mut are_written = self.are_written(&senders)?.into_iter();
        drop(senders);
        for found in &mut found {
            found.retain(|_| are_written.next() == Some(true));
            let both = found.len();
            found.retain(|message| message.times.0 < message.times.1);
            self.written.backwards += (both - found.len()) as u64;
            self.written.messages += found.len() as u64;
        }
        let before = self.number(self.written.messages)?;
        for (flow, (to, message)) in (before + 1..).zip(in_order(&found)) {
            self.ends[to].push(End { position: message.to, flow, starts: false, bytes: message.bytes });
        }
        let numbered = (before + 1..).zip(in_order(&found));
        self.start(numbered.map(|(flow, (_, message))| (message.from, flow, message.bytes)))
    }

    /// From causes to waits; a flow ends with the last stretch of its wait. The first process has all stretches. Collective.
    pub(super) fn of_causes(&mut self, analysis: &Analysis, stretches: &[(usize, Range<i64>)]) -> Result<()> {
        self.caused = vec![0; if stretches.is_empty() { 0 } else { analysis.waits.len() }];
        let mut shown: Vec<(usize, bool)> = Vec::new();
        let mut calls: Vec<Call> = Vec::new();
        for of_wait in stretches.chunk_by(|a, b| a.0 == b.0) {
            let (number, time) = of_wait[of_wait.len() - 1].clone();
            let wait = &analysis.waits[number];
            let is_shown = self.selection.has(self.trace, wait.location) && self.selection.lasts(time.start, time.end);
            if let Some(cause) = analysis.cause(wait).filter(|_| is_shown) {
                shown.push((number, cause.enter <= time.end));
                calls.push((self.trace.shard_of[wait.cause_location], wait.cause_instance));
            }
        }
        let mut starts = Vec::new();
        for (((number, is_forward), call), is_written) in shown.into_iter().zip(&calls).zip(self.are_written(&calls)?) {
            if is_written && is_forward {
                self.caused[number] = self.last + starts.len() as u64 + 1;
                starts.push((*call, self.caused[number], 0));
            } else if is_written {
                self.written.backwards += 1;
            }
        }
        self.written.causes = starts.len() as u64;
        self.number(starts.len() as u64)?;
        self.start(starts.into_iter())
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
        let mut ends = Vec::new();
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
            ends.push((self.trace.shard_of[place], End { position, flow, starts: false, bytes: 0 }));
        }
        self.written.transfer_flows = flow - self.last;
        self.number(self.written.transfer_flows)?;
        let exchange = &self.trace.exchange;
        exchange.to_owners(ends, |&(shard, _)| shard, |(shard, end)| self.ends[exchange.position(shard)].push(end))
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
