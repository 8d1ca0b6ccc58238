//! Matching of messages: the n-th send from one process to another with a communicator and tag meets the n-th receive.
//!
//! Receives count in the order of their completion.
//!
//! *Source*: specification.md#matching-of-messages-and-collective-operations.

use bitcode::{Decode, Encode};
use rustc_hash::FxHashMap;

use super::time_order::in_time_order;
use crate::Result;
use crate::diagnostics::{DiagnosticKind, Diagnostics, Place};
use crate::ids::{CallPathId, CommId, InstanceId, LocationId, ProcessId};
use crate::parallel::exchange::{Inbox, Outbox};
use crate::parallel::iter::prelude::*;
use crate::parallel::rounds::Rounds;
use crate::trace::{NONE, Shard, Trace};

/// The data of a send that the receiving side needs.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct SendInfo {
    /// Time of the send record, ticks.
    pub time: i64,
    /// Enter of the send call, ticks.
    pub enter: i64,
    /// Enter of the call that completed the send, ticks; `i64::MAX` if nothing did.
    pub complete_enter: i64,
    /// Leave of the call that completed the send, ticks; `i64::MIN` if nothing did.
    pub complete_leave: i64,
    /// Whether that call completed nothing else; if not, it may have waited for another operation.
    pub is_alone: bool,
    /// Bytes sent.
    pub bytes: u64,
    /// Sending process.
    pub source: ProcessId,
    /// Receiving process.
    pub destination: ProcessId,
    /// Communicator.
    pub comm: CommId,
    /// Tag.
    pub tag: u32,
    /// Sending location.
    pub location: LocationId,
    /// Region instance of the send call.
    pub instance: InstanceId,
    /// Region instance of the call that completed the send, if any.
    pub complete: InstanceId,
    /// Its call path.
    pub callpath: CallPathId,
    /// Row of the send in its shard.
    pub row: u32,
}

/// The sends that arrived at a shard, matched with its receives.
#[derive(Debug)]
pub struct Matches<'a> {
    sends: Vec<&'a SendInfo>,
    /// For each receive of the shard the position in `sends`, or [`NONE`].
    matched: Vec<u32>,
}

impl Matches<'_> {
    /// The send that belongs to a receive.
    #[must_use]
    #[inline]
    pub fn send(&self, receive: usize) -> Option<&SendInfo> {
        self.sends.get(self.matched[receive] as usize).copied()
    }
}

/// Matches all messages, round by round, and hands each receiving shard its matches.
///
/// Returns the result of `consume` for each shard, in order, and the diagnostics.
pub fn match_all<R: Send>(
    trace: &Trace,
    consume: impl Fn(usize, &Shard, &Matches) -> R + Sync,
) -> Result<(Vec<R>, Diagnostics)> {
    let total = trace.exchange.sum(trace.shards.iter().map(|shard| shard.sends.rows.len()).sum())?;
    let mut results = Vec::with_capacity(trace.shards.len());
    let mut diagnostics = Diagnostics::default();
    let rounds = Rounds::new(&trace.exchange, total * size_of::<SendInfo>());
    for round in 0..rounds.count {
        let is_served = |owner: u32| rounds.serves(owner, round);
        let outgoing = trace.par_shards().map(|shard| post(trace, shard, is_served)).collect();
        let mut incoming = trace.exchange.alltoallv(outgoing)?;
        let served = rounds.own(&trace.exchange, round);
        let incoming: Vec<_> = incoming.drain(served.clone()).collect();
        let matched: Vec<(R, Diagnostics)> = served
            .into_par_iter()
            .zip(incoming)
            .map(|(index, inbox)| {
                let shard = &trace.shards[index];
                let mut diagnostics = Diagnostics::default();
                let matches = match_shard(trace, shard, &inbox, &mut diagnostics);
                (consume(index, shard, &matches), diagnostics)
            })
            .collect();
        for (result, shard_notes) in matched {
            results.push(result);
            diagnostics.merge(shard_notes);
        }
    }
    Ok((results, diagnostics))
}

/// The sends of a shard whose receivers are served.
fn post(trace: &Trace, shard: &Shard, is_served: impl Fn(u32) -> bool) -> Outbox<SendInfo> {
    let mut outbox = trace.exchange.outbox();
    let completed = completions(shard);
    for process in shard.processes {
        let locations = shard.local_locations(trace.definitions.processes[process].locations);
        let ranges: Vec<_> = locations.clone().map(|i| shard.sends.range(i)).collect();
        let location_of = |row| match locations.len() {
            1 => shard.location(locations.start),
            _ => shard.location_of(&shard.sends, row),
        };
        for row in in_time_order(&ranges, |row| shard.sends.rows[row].time) {
            let send = &shard.sends.rows[row as usize];
            let owner = trace.owner(send.peer);
            if send.cancelled || !is_served(owner) {
                continue;
            }
            let complete = (send.complete.is_some()).then_some(send.complete);
            outbox.push(
                owner,
                SendInfo {
                    time: send.time,
                    enter: shard.enter(send.instance),
                    complete_enter: complete.map_or(i64::MAX, |instance| shard.enter(instance)),
                    complete_leave: complete.map_or(i64::MIN, |instance| shard.leave(instance)),
                    is_alone: complete.is_some_and(|instance| completed[instance] == 1),
                    bytes: send.bytes,
                    source: process,
                    destination: send.peer,
                    comm: send.comm,
                    tag: send.tag,
                    location: location_of(row),
                    instance: send.instance,
                    complete: send.complete,
                    callpath: shard.callpath(send.instance),
                    row,
                },
            );
        }
    }
    outbox
}

/// How many sends and receives each region instance completed; 2 for any more.
fn completions(shard: &Shard) -> Vec<u8> {
    let mut completed = vec![0u8; shard.instances.enter.len()];
    let sends = shard.sends.rows.iter().map(|send| send.complete).filter(|complete| *complete != InstanceId::NONE);
    for instance in sends.chain(shard.receives.rows.iter().map(|receive| receive.instance)) {
        let completed = &mut completed[instance];
        *completed = (*completed + 1).min(2);
    }
    completed
}

/// All messages between two processes with one communicator and tag.
#[derive(Default)]
struct Channel {
    first: u32,
    last: u32,
    sends: u32,
    receives: u32,
    /// Position of its first receive, for the report.
    first_receive: u32,
}

fn match_shard<'a>(
    trace: &Trace,
    shard: &Shard,
    inbox: &'a Inbox<SendInfo>,
    diagnostics: &mut Diagnostics,
) -> Matches<'a> {
    let sends: Vec<&SendInfo> = inbox.rows().collect();
    let mut ids: FxHashMap<(ProcessId, ProcessId, CommId, u32), u32> = FxHashMap::default();
    let mut channels: Vec<Channel> = Vec::new();
    let mut channel = |key| {
        *ids.entry(key).or_insert_with(|| {
            channels.push(Channel { first: NONE, last: NONE, first_receive: NONE, ..Channel::default() });
            channels.len() as u32 - 1
        })
    };
    let send_channel: Vec<u32> =
        sends.iter().map(|send| channel((send.destination, send.source, send.comm, send.tag))).collect();
    let mut receive_channel = vec![NONE; shard.receives.rows.len()];
    let mut order = Vec::with_capacity(shard.receives.rows.len());
    for process in shard.processes {
        let locations = shard.local_locations(trace.definitions.processes[process].locations);
        let ranges: Vec<_> = locations.map(|i| shard.receives.range(i)).collect();
        for row in in_time_order(&ranges, |row| shard.receives.rows[row].time) {
            let receive = &shard.receives.rows[row as usize];
            receive_channel[row as usize] = channel((process, receive.peer, receive.comm, receive.tag));
            order.push(row);
        }
    }

    let mut next = vec![NONE; sends.len()];
    for (position, &id) in send_channel.iter().enumerate() {
        let channel = &mut channels[id as usize];
        match channel.last {
            NONE => channel.first = position as u32,
            last => next[last as usize] = position as u32,
        }
        channel.last = position as u32;
        channel.sends += 1;
    }
    for &row in &order {
        let channel = &mut channels[receive_channel[row as usize] as usize];
        channel.receives += 1;
        channel.first_receive = channel.first_receive.min(row);
    }
    for channel in &mut channels {
        report(trace, shard, channel, &sends, diagnostics);
    }

    let mut matched = vec![NONE; shard.receives.rows.len()];
    for row in order {
        let channel = &mut channels[receive_channel[row as usize] as usize];
        if channel.first != NONE {
            matched[row as usize] = channel.first;
            channel.first = next[channel.first as usize];
        }
    }
    Matches { sends, matched }
}

/// Reports what is left over in a channel, and excludes the channel if it is unclear which send is missing.
fn report(trace: &Trace, shard: &Shard, channel: &mut Channel, sends: &[&SendInfo], diagnostics: &mut Diagnostics) {
    let send = sends.get(channel.first as usize);
    if channel.sends > channel.receives {
        let place = send.map(|send| Place::at(send.location, send.time));
        diagnostics.count(DiagnosticKind::UnmatchedSend, u64::from(channel.sends - channel.receives), place);
    } else if channel.receives > channel.sends {
        let row = channel.first_receive;
        let receive = &shard.receives.rows[row as usize];
        let place = Place::at(shard.location_of(&shard.receives, row), receive.time);
        diagnostics.count(DiagnosticKind::UnmatchedReceive, u64::from(channel.receives - channel.sends), Some(place));
        // A sender with a truncated file lacks only its last sends; the earlier ones still match in order.
        if !trace.is_truncated(receive.peer) {
            channel.first = NONE;
        }
    }
}
