//! Messages: which send belongs to which receive, and which calls of the receiver need which calls of the sender.
//!
//! A call that completes a receive, or that has found a message before, ends only after the call that sent it began. Wait
//! states, costs and critical path, constraints of clocks, and the simulator take these needs from here.
//!
//! A message in partitions is sent by the call that makes the last one ready. What completes its receive needs all calls that
//! make partitions ready, and a call that has found a partition those that make a part of it ready.

use bitcode::{Decode, Encode};

use super::channels::pair;
use super::probes::{self, Probes};
use super::send_info::SendInfo;
use super::time_order::in_time_order;
use crate::Result;
use crate::diagnostics::Diagnostics;
use crate::ids::{InstanceId, LocationId};
use crate::parallel::exchange::{Inbox, Outbox};
use crate::parallel::iter::prelude::*;
use crate::parallel::rounds::Rounds;
use crate::severity::Metric;
use crate::trace::columns::Partitions;
use crate::trace::{RegionClass, Shard, Trace};

/// Partitions of a message that a call of its sender made ready.
#[derive(Clone, Copy, Debug, Encode, Decode)]
struct Ready {
    /// Shard of the sender, with the row of the send in it.
    shard: u32,
    partitions: Partitions,
    /// Location and Enter of the call, ticks.
    location: LocationId,
    enter: i64,
    /// The call that began the message.
    begin: InstanceId,
}

/// The sends that arrived at a shard, matched with its receives.
#[derive(Debug)]
pub struct Matches<'a> {
    sends: Vec<&'a SendInfo>,
    /// For each receive of the shard the position in `sends`, or [`NONE`](crate::trace::NONE).
    matched: Vec<u32>,
    /// Partitions of these messages, by shard and row of the send and in the order of their Enters.
    ready: Vec<Ready>,
    shard_of: &'a [u32],
}

impl Matches<'_> {
    /// The send that belongs to a receive.
    #[inline]
    pub fn send(&self, receive: usize) -> Option<&SendInfo> {
        self.sends.get(self.matched[receive] as usize).copied()
    }

    /// The calls of its sender that serve a message.
    pub(crate) fn calls_of_send(&self, send: &SendInfo) -> impl Iterator<Item = InstanceId> {
        let ready = self.ready(send).iter();
        let of_partitions =
            ready.clone().take(1).map(|ready| ready.begin).chain(ready.map(|ready| ready.partitions.instance));
        [send.instance, send.complete].into_iter().chain(of_partitions).filter(|call| call.is_some())
    }

    /// The partitions of a message.
    fn ready(&self, send: &SendInfo) -> &[Ready] {
        if self.ready.is_empty() {
            return &[];
        }
        let of = (self.shard_of[send.location], send.row);
        let rows = &self.ready[self.ready.partition_point(|ready| (ready.shard, ready.partitions.row) < of)..];
        &rows[..rows.partition_point(|ready| (ready.shard, ready.partitions.row) == of)]
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
    /// Whether it is the last of those that records tell of, which bounds the times of both.
    pub is_bound: bool,
    /// The call of the receiver, and when it had what it needs at the latest, ticks.
    pub call: InstanceId,
    pub proven: i64,
    /// The call of the sender, with its Enter and the time of its record, ticks.
    pub sender: (LocationId, InstanceId),
    pub enter: i64,
    pub sent: i64,
}

impl Need {
    /// The same for a call that makes partitions ready.
    fn of_partitions(self, ready: &Ready) -> Self {
        let sender = (ready.location, ready.partitions.instance);
        Self { sender, enter: ready.enter, sent: ready.enter, ..self }
    }

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
    /// It has found a partition of the message.
    Finds,
}

impl Reason {
    /// The wait of a call, by its class, for the last one that it needs; none if the call never waits, or if that is found
    /// with its other messages.
    pub(crate) fn wait(self, class: RegionClass) -> Option<Metric> {
        match (self, class) {
            (Self::Probes, RegionClass::Probe) => Some(Metric::ProbeLateSender),
            (Self::Finds, RegionClass::Wait) => Some(Metric::LateSender),
            _ => None,
        }
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
            is_bound: true,
            call: receive.instance,
            proven: receive.time,
            sender: (send.location, send.instance),
            enter: send.enter,
            sent: send.time,
        });
        let probes = completes.and_then(|need| {
            let (call, is_recorded) = probes.get(shard, row as u32, need.enter)?;
            let proven = shard.leave(call);
            Some(Need { reason: Reason::Probes, is_recorded, is_bound: is_recorded, call, proven, ..need })
        });
        completes.into_iter().chain(probes).chain(self.partitions(row, completes))
    }

    /// The needs of partitions, but for that of the call that completes the receive, for the last one.
    ///
    /// Many libraries send nothing before all partitions are ready. So if a call that has found one ended only then, it needed all,
    /// which is inferred.
    fn partitions(&self, row: usize, completes: Option<Need>) -> impl Iterator<Item = Need> {
        let ready = self.matches.send(row).map_or(&[][..], |send| self.matches.ready(send));
        let (last, earlier) = ready.split_last().unzip();
        let found = last.map_or(&[][..], |_| Partitions::of(&self.shard.arrived, row));
        let earlier = completes.into_iter().flat_map(move |need| {
            let need = Need { is_last: false, is_bound: false, ..need };
            earlier.into_iter().flatten().map(move |ready| need.of_partitions(ready))
        });
        let found = completes.into_iter().zip(last).flat_map(move |(need, last)| {
            found.iter().flat_map(move |found| {
                let (call, proven) = (found.instance, self.shard.leave(found.instance));
                let need = Need { reason: Reason::Finds, call, proven, ..need };
                let is_own = move |ready: &&Ready| ready.partitions.overlap(found);
                let needed = move |ready: &&Ready| is_own(ready) || last.enter <= proven;
                let latest = ready.iter().rposition(|ready| needed(&ready));
                let bound = ready.iter().rposition(|ready| is_own(&ready));
                let needs = ready.iter().enumerate().filter(move |(_, ready)| needed(ready));
                needs.map(move |(i, ready)| Need {
                    is_recorded: is_own(&ready),
                    is_last: Some(i) == latest,
                    is_bound: Some(i) == bound,
                    ..need.of_partitions(ready)
                })
            })
        });
        earlier.chain(found)
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
    let has_partitions = trace.exchange.any(trace.shards.iter().any(|shard| !shard.ready.is_empty()))?;
    let mut results = Vec::with_capacity(trace.shards.len());
    let mut diagnostics = Diagnostics::default();
    let rounds = Rounds::new(&trace.exchange, total * size_of::<SendInfo>());
    for round in 0..rounds.count {
        let is_served = |owner: u32| rounds.serves(owner, round);
        let outgoing = trace.par_shards().map(|shard| post(trace, shard, is_served)).collect();
        let mut incoming = trace.exchange.alltoallv(outgoing)?;
        let served = rounds.own(&trace.exchange, round);
        let incoming: Vec<_> = incoming.drain(served.clone()).collect();
        let mut ready = vec![Vec::new(); served.len()];
        if has_partitions {
            let outgoing = trace.par_shards().map(|shard| post_partitions(trace, shard, is_served)).collect();
            let mut arrived = trace.exchange.alltoallv(outgoing)?;
            ready = arrived.drain(served.clone()).map(Inbox::into_vec).collect();
        }
        let matched: Vec<(R, Diagnostics)> = served
            .into_par_iter()
            .zip(incoming)
            .zip(ready)
            .map(|((index, inbox), mut ready)| {
                let shard = &trace.shards[index];
                let mut diagnostics = Diagnostics::default();
                let sends: Vec<&SendInfo> = inbox.rows().collect();
                let matched = pair(trace, shard, &sends, &mut diagnostics);
                ready.sort_by_key(|ready| (ready.shard, ready.partitions.row, ready.enter));
                let matches = Matches { sends, matched, ready, shard_of: &trace.shard_of };
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
            let ready = Partitions::of(&shard.ready, row as usize).last();
            let instance = ready.map_or(send.instance, |ready| ready.instance);
            let (time, location) = match ready {
                Some(_) => (shard.enter(instance), shard.location_of_instance(instance)),
                None => (send.time, location_of(row)),
            };
            outbox.push(
                owner,
                SendInfo {
                    time,
                    enter: shard.enter(instance),
                    leave: shard.leave(instance),
                    complete_enter: complete.map_or(i64::MAX, |instance| shard.enter(instance)),
                    complete_leave: complete.map_or(i64::MIN, |instance| shard.leave(instance)),
                    is_alone: complete.is_some_and(|instance| completed[instance] == 1),
                    bytes: send.bytes,
                    source: process,
                    destination: send.peer,
                    comm: send.comm,
                    tag: send.tag,
                    location,
                    instance,
                    complete: send.complete,
                    callpath: shard.callpath(instance),
                    row,
                },
            );
        }
    }
    outbox
}

/// The partitions that the calls of a shard made ready of messages whose receivers are served.
fn post_partitions(trace: &Trace, shard: &Shard, is_served: impl Fn(u32) -> bool) -> Outbox<Ready> {
    let mut outbox = trace.exchange.outbox();
    for &partitions in &shard.ready {
        let send = &shard.sends.rows[partitions.row as usize];
        let owner = trace.owner(send.peer);
        if !send.cancelled && is_served(owner) {
            let location = shard.location_of_instance(partitions.instance);
            let (enter, begin) = (shard.enter(partitions.instance), send.instance);
            outbox.push(owner, Ready { shard: trace.shard_of[location], partitions, location, enter, begin });
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
