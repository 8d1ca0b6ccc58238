//! Messages: which send belongs to which receive, and which calls of the receiver need which calls of the sender.
//!
//! A call that completes a receive, or that has found a message before, ends only after the call that sent it began. Wait
//! states, costs and critical path, constraints of clocks, and the simulator take these [`Need`]s from here.

use super::channels::pair;
use super::probes::{self, Probes};
use super::send_info::SendInfo;
use super::time_order::in_time_order;
use crate::Result;
use crate::diagnostics::Diagnostics;
use crate::ids::{InstanceId, LocationId};
use crate::parallel::exchange::Outbox;
use crate::parallel::iter::prelude::*;
use crate::parallel::rounds::Rounds;
use crate::severity::Metric;
use crate::trace::{RegionClass, Shard, Trace};

/// The sends that arrived at a shard, matched with its receives.
#[derive(Debug)]
pub struct Matches<'a> {
    sends: Vec<&'a SendInfo>,
    /// For each receive of the shard the position in `sends`, or [`NONE`](crate::trace::NONE).
    matched: Vec<u32>,
}

impl Matches<'_> {
    /// The send that belongs to a receive.
    #[must_use]
    #[inline]
    pub fn send(&self, receive: usize) -> Option<&SendInfo> {
        self.sends.get(self.matched[receive] as usize).copied()
    }

    /// The calls of its sender that serve a message.
    pub(crate) fn calls_of_send(&self, send: &SendInfo) -> impl Iterator<Item = InstanceId> {
        [send.instance, send.complete].into_iter().filter(|call| call.is_some())
    }
}

/// A call of a receiver needs one of its sender: it cannot end before that has begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Need {
    /// What the call does.
    pub reason: Reason,
    /// Whether a record says so; if not, it is inferred.
    pub is_recorded: bool,
    /// Whether the call needs none of this message that begins later.
    pub is_last: bool,
    /// The call of the receiver, and when it had what it needs at the latest, ticks.
    pub call: InstanceId,
    pub proven: i64,
    /// The call of the sender, with its Enter and the time of its record, ticks.
    pub sender: (LocationId, InstanceId),
    pub enter: i64,
    pub sent: i64,
}

impl Need {
    /// Whether its wait is to be marked as inferred; that of a probe says so by its kind.
    pub(crate) fn is_inferred(&self) -> bool {
        !self.is_recorded && self.reason != Reason::Probes
    }
}

/// What a call of a receiver does with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// It completes the receive.
    Completes,
    /// It has found the message, which a later call receives.
    Probes,
}

impl Reason {
    /// The wait of a call, by its class, for the last one that it needs; none if the call never waits, or if that is found
    /// with its other messages.
    pub(crate) fn wait(self, class: RegionClass) -> Option<Metric> {
        (self == Self::Probes && class == RegionClass::Probe).then_some(Metric::ProbeLateSender)
    }
}

/// The needs of a shard's receivers.
pub(crate) struct Needs<'a> {
    shard: &'a Shard,
    matches: &'a Matches<'a>,
    probes: Probes,
}

impl<'a> Needs<'a> {
    /// Those of matched messages.
    pub(crate) fn new(trace: &Trace, shard: &'a Shard, matches: &'a Matches) -> Self {
        Self { shard, matches, probes: probes::find(trace, shard) }
    }

    /// The needs that come with the message of a receive: first that of the call that completes it, for the call that
    /// sends. None without a send.
    pub(crate) fn of(&self, row: usize) -> impl Iterator<Item = Need> {
        let Self { shard, matches, probes } = self;
        let receive = &shard.receives.rows[row];
        let send = matches.send(row);
        let completes = send.map(|send| Need {
            reason: Reason::Completes,
            is_recorded: true,
            is_last: true,
            call: receive.instance,
            proven: receive.time,
            sender: (send.location, send.instance),
            enter: send.enter,
            sent: send.time,
        });
        let probes = completes.and_then(|need| {
            let (call, is_recorded) = probes.get(shard, row as u32, need.enter)?;
            Some(Need { reason: Reason::Probes, is_recorded, call, proven: shard.leave(call), ..need })
        });
        completes.into_iter().chain(probes)
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
                let sends: Vec<&SendInfo> = inbox.rows().collect();
                let matched = pair(trace, shard, &sends, &mut diagnostics);
                let matches = Matches { sends, matched };
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
