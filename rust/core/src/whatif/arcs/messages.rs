//! Arcs of point-to-point communication, and transfer times of messages.
//!
//! A call that completes a receive waits for the start of the send. A send waits for its receive if it uses
//! *rendezvous*; an *eager* send does not wait (whatif.md#how-it-works). [`crate::matching::protocol`] decides between
//! the two; where neither times nor names prove it, a Late Receiver that was found tells that the send waited.
//!
//! *Hidden transfers*: a receive whose message has already arrived shows only the cost of a copy. Its transfer time,
//! and the own time of a call that had to wait, are estimated from others of its class: the lower median of `L - Z`
//! over calls that had to wait (Z is the latest start of a transfer), and the minimum of `L - E` over calls of its
//! region that did not.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::waited::own_waits;
use crate::Result;
use crate::analysis::Analysis;
use crate::ids::{CallPathId, InstanceId, ProcessId, RegionKey};
use crate::matching::messages::{Needs, Reason, match_all};
use crate::matching::protocol::{Limits, Protocol, ProtocolClassifier};
use crate::parallel::exchange::{Inbox, Outbox};
use crate::parallel::iter::prelude::*;
use crate::severity::Metric;
use crate::trace::{NONE, RegionClass, Trace};
use crate::whatif::assumptions::{Assumption, Assumptions};
use crate::whatif::changes::cut::{Cut, GoneMessage, Key};
use crate::whatif::graph::builder::{Builder, NO_CLASS, OWN, Raw, enter};
use crate::whatif::graph::network::Network;
use crate::whatif::model::Model;

/// Classes with fewer samples give no estimate.
const SAMPLES: usize = 5;

/// A matched message.
#[expect(clippy::struct_excessive_bools, reason = "they are independent")]
struct Message {
    /// Numbers of the calls: starting and completing the send, posting and completing the receive; [`NONE`] for a
    /// missing completion.
    calls: [u32; 4],
    /// The Enters that arcs need: start of the send, post of the receive.
    since: [i64; 2],
    bytes: u64,
    protocol: Protocol,
    is_local: bool,
    /// Call path of the sending call.
    callpath: CallPathId,
    /// Whether that call determines the protocol.
    is_named: bool,
    /// Whether the completion of the send was found to wait for the receive.
    has_late_receiver: bool,
    /// Whether it is cut in the changed run.
    is_cut: bool,
    /// Region of the call that completes the receive.
    region: RegionKey,
}

impl Message {
    /// Class of the transfer: size by power of two, locality and protocol.
    fn class(&self) -> u16 {
        let is_rendezvous = self.protocol == Protocol::Rendezvous;
        (size_class(self.bytes) << 2) | (u16::from(self.is_local) << 1) | u16::from(is_rendezvous)
    }
}

/// What else cannot end before a call of the sender has begun: calls that look for the message, and the one that completes its
/// receive if it needs further calls.
struct Further {
    /// Position of the message.
    message: usize,
    reason: Reason,
    /// Numbers of the call and of the sender's call, and the Enter of that.
    call: u32,
    sender: u32,
    since: i64,
}

/// Sizes by power of two, and 0.
fn size_class(bytes: u64) -> u16 {
    (u64::BITS - bytes.leading_zeros()) as u16
}

/// A class of messages and its transfer time.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// Whether sender and receiver are on one node.
    pub is_local: bool,
    /// Whether they use rendezvous.
    pub is_rendezvous: bool,
    /// Mean size, bytes.
    pub bytes: f64,
    /// Lower median of the transfers, ticks.
    pub ticks: i64,
}

/// Sum of bytes and number of the messages of each class.
pub(in crate::whatif) type Sizes = BTreeMap<u16, (u128, u64)>;

fn sizes(found: &[Vec<Message>]) -> Sizes {
    let of = |messages: &Vec<Message>| {
        let mut sizes = Sizes::default();
        for message in messages {
            let (bytes, count) = sizes.entry(message.class()).or_default();
            *bytes += u128::from(message.bytes);
            *count += 1;
        }
        sizes
    };
    found.par_iter().map(of).reduce(Sizes::default, sum)
}

fn sum(mut all: Sizes, other: Sizes) -> Sizes {
    for (class, (bytes, count)) in other {
        let of = all.entry(class).or_default();
        (of.0, of.1) = (of.0 + bytes, of.1 + count);
    }
    all
}

/// Numbers of the calls that waited for a late receiver and of those that posted the receives, for the shards of these.
/// Collective.
fn late_receivers(analysis: &Analysis, builder: &Builder) -> Result<FxHashSet<(u32, u32)>> {
    let trace = &analysis.trace;
    let mut outgoing: Vec<Outbox<(u32, u32)>> = trace.shards.iter().map(|_| trace.exchange.outbox()).collect();
    for wait in
        own_waits(analysis).filter(|wait| matches!(wait.kind, Metric::LateReceiver | Metric::ExchangeLateReceiver))
    {
        let calls = [(wait.location, wait.instance), (wait.cause_location, wait.cause_instance)];
        let [sent, posted] = calls.map(|call| builder.instance(trace, call));
        outgoing[trace.position(wait.location)].push(trace.shard_of[wait.cause_location], (sent, posted));
    }
    Ok(trace.exchange.alltoallv(outgoing)?.iter().flat_map(Inbox::rows).copied().collect())
}

/// Finds the arcs of all messages; returns the sizes of their classes. Collective.
pub(in crate::whatif) fn collect(
    analysis: &Analysis,
    model: &Model,
    cut: &mut Cut,
    builder: &mut Builder,
    assumptions: &mut Assumptions,
) -> Result<Sizes> {
    let trace = &analysis.trace;
    let late_receivers = late_receivers(analysis, builder)?;
    let classifier = ProtocolClassifier::new(trace);
    let (found, _) = match_all(trace, |index, shard, matches| {
        let needs = Needs::new(trace, shard, matches);
        let (mut messages, mut further, mut gone) = (Vec::new(), Vec::new(), Vec::new());
        for (row, receive) in shard.receives.rows.iter().enumerate() {
            let Some(send) = matches.send(row) else { continue };
            let (callpath, complete) = (send.callpath, send.complete);
            let posted = shard.enter(receive.request);
            let at_sender = |instance| builder.instance(trace, (send.location, instance));
            let here = |instance: InstanceId| builder.first_of(index) + instance.number();
            let calls = [
                at_sender(send.instance),
                if complete == InstanceId::NONE { NONE } else { at_sender(complete) },
                here(receive.request),
                here(receive.instance),
            ];
            let is_cut = model.cuts() && {
                let rank = |process: ProcessId| u64::from(trace.definitions.processes[process].rank);
                let value = |key| match key {
                    Key::Size => send.bytes,
                    Key::Tag => send.tag.into(),
                    Key::From => rank(send.source),
                    Key::To => rank(send.destination),
                    Key::Comm => trace.definitions.comms[send.comm].id.into(),
                };
                matches.calls_of_send(send).map(at_sender).any(|call| cut.has_call(call))
                    || shard.calls_of_receive(row).map(here).any(|call| cut.has_call(call))
                    || model.cut_messages.iter().any(|of| of.holds(callpath, value))
            };
            if is_cut {
                gone.push([(trace.shard_of[send.location], send.row), (index as u32, row as u32)]);
            }
            further.extend(needs.of(row).skip(1).map(|need| Further {
                message: messages.len(),
                reason: need.reason,
                call: here(need.call),
                sender: builder.instance(trace, need.sender),
                since: need.enter,
            }));
            messages.push(Message {
                calls,
                is_cut,
                since: [send.enter, posted],
                bytes: send.bytes,
                protocol: classifier.protocol(send, posted),
                is_local: classifier.is_local(send),
                callpath,
                is_named: classifier.is_fixed(callpath),
                has_late_receiver: late_receivers.contains(&(calls[1], calls[2])),
                region: trace.tree.region(shard.callpath(receive.instance)),
            });
        }
        (messages, (further, gone))
    })?;
    let (mut found, rest): (Vec<Vec<Message>>, Vec<_>) = found.into_iter().unzip();
    let (further, gone): (Vec<Vec<Further>>, Vec<Vec<GoneMessage>>) = rest.into_iter().unzip();
    if model.cuts() {
        cut.count(trace, builder);
        cut.messages(trace, builder, &gone)?;
        cut.partnerless(trace, builder);
    }
    decide(analysis.limits, &mut found, assumptions);
    let arcs: Vec<Vec<Raw>> = found
        .par_iter()
        .zip(&further)
        .map(|(messages, further)| {
            let of_messages = messages.iter().flat_map(|message| match &model.network {
                None => arcs(message, model),
                Some(network) => on_network(message, model, network),
            });
            let further = further.iter().map(|need| match &model.network {
                None => further_arc(&messages[need.message], need),
                Some(network) => further_on_network(&messages[need.message], need, network),
            });
            of_messages.chain(further).collect()
        })
        .collect();
    for mut arcs in arcs {
        builder.raws.append(&mut arcs);
    }
    Ok(trace.exchange.allgather(sizes(&found))?.into_iter().fold(Sizes::default(), sum))
}

/// Decides the protocols that times do not prove.
fn decide(limits: Limits, found: &mut [Vec<Message>], assumptions: &mut Assumptions) {
    let mut undecided = 0;
    for message in found.iter_mut().flatten().filter(|message| message.protocol == Protocol::Undecided) {
        if message.has_late_receiver {
            message.protocol = Protocol::Rendezvous;
            continue;
        }
        undecided += 1;
        let is_eager = limits.is_eager(message.is_local, message.bytes, message.protocol);
        message.protocol = if is_eager { Protocol::Eager } else { Protocol::Rendezvous };
    }
    assumptions.count(Assumption::UndecidedProtocol, undecided);
}

/// Arcs of a message.
type Arcs = std::iter::Flatten<std::array::IntoIter<Option<Raw>, 6>>;

/// The arcs of a message on a given network: a receive ends when the message arrives, and so does a rendezvous send; an
/// eager send takes a fixed time (whatif.md#networks).
fn on_network(message: &Message, model: &Model, network: &Network) -> Arcs {
    let &Message { calls: [start, sent, posted, received], since: [s, q], bytes, protocol, is_local, .. } = message;
    let was = protocol == Protocol::Rendezvous;
    let becomes = model.rendezvous(message.callpath, bytes, was, message.is_named);
    let tau = network.transfer(bytes, is_local);
    let kept = !message.is_cut;
    let arc = |target, call, from, at, cost| {
        let source = if call == from { OWN } else { enter(from) };
        Some(Raw { kept, cost, ..Raw::new(target, source, at) })
    };
    let own = |target, cost| Some(Raw { kept, ..Raw::own(target, cost) });
    let mut arcs = [None; 6];
    arcs[0] = own(received, network.receive);
    if becomes {
        arcs[1] = arc(received, received, start, s, tau + network.receive);
        arcs[2] = arc(received, received, posted, q, tau + network.receive);
        if sent != NONE {
            arcs[3] = arc(sent, sent, posted, q, tau + network.send);
            arcs[4] = arc(sent, sent, start, s, tau + network.send);
        }
    } else {
        arcs[1] = arc(received, received, start, s, network.send + tau + network.receive);
    }
    // The call that starts the send, unless it also completes it.
    arcs[5] = own(start, network.send).filter(|_| !becomes || sent != start);
    arcs.into_iter().flatten()
}

/// The arcs of a message.
fn arcs(message: &Message, model: &Model) -> Arcs {
    let &Message { calls: [start, sent, posted, received], since: [s, q], bytes, protocol, .. } = message;
    let was = protocol == Protocol::Rendezvous;
    let stays = !message.is_cut;
    let becomes = stays && model.rendezvous(message.callpath, bytes, was, message.is_named);
    let class = message.class();
    let since = if was { s.max(q) } else { s };
    let mut arcs = [None; 6];
    arcs[0] = Some(Raw { since, class, region: message.region, kept: stays, ..Raw::new(received, enter(start), s) });
    if was || becomes {
        let source = if posted == received { OWN } else { enter(posted) };
        let raw = Raw::new(received, source, q);
        arcs[1] = Some(Raw { class, since: if was { since } else { q }, measured: was, kept: becomes, ..raw });
        if sent != NONE {
            let raw = Raw { measured: was, kept: becomes, ..Raw::new(sent, enter(posted), q) };
            arcs[2] = (sent != posted).then_some(raw);
            arcs[3] = (sent != start).then_some(Raw { source: enter(start), since: s, ..raw });
        }
    }
    arcs.into_iter().flatten()
}

/// The arc of a further need.
fn further_arc(message: &Message, need: &Further) -> Raw {
    let raw = Raw { kept: !message.is_cut, ..Raw::new(need.call, enter(need.sender), need.since) };
    if need.reason != Reason::Completes {
        return raw;
    }
    let [_, posted] = message.since;
    let since = if message.protocol == Protocol::Rendezvous { need.since.max(posted) } else { need.since };
    Raw { since, class: message.class(), ..raw }
}

/// The same on a given network: the message has to arrive.
fn further_on_network(message: &Message, need: &Further, network: &Network) -> Raw {
    let arrives = network.send + network.transfer(message.bytes, message.is_local);
    let cost = if need.reason == Reason::Completes { arrives + network.receive } else { arrives };
    Raw { cost, kept: !message.is_cut, ..Raw::new(need.call, enter(need.sender), need.since) }
}

/// Estimated times of transfers and calls, by class.
#[derive(Debug, Default)]
pub(in crate::whatif) struct Estimates {
    /// Transfer time by class, ticks.
    transfers: FxHashMap<u16, i64>,
    /// Minimum time of a call whose messages have already arrived, ticks.
    calls: FxHashMap<CallClass, i64>,
}

/// The lower median of the samples of each class that has enough of them. Collective: each class has a process that
/// gets its samples.
fn medians(trace: &Trace, samples: FxHashMap<u16, Vec<i64>>) -> Result<FxHashMap<u16, i64>> {
    let processes = trace.exchange.processes();
    let mut samples: Vec<(u16, Vec<i64>)> = samples.into_iter().collect();
    let mut outgoing = Vec::with_capacity(processes);
    for process in 0..processes {
        outgoing.push(samples.extract_if(.., |(class, _)| usize::from(*class) % processes == process).collect());
    }
    let mut all: FxHashMap<u16, Vec<i64>> = FxHashMap::default();
    let arrived: Vec<Vec<(u16, Vec<i64>)>> = trace.exchange.alltoall(outgoing)?;
    for (class, mut samples) in arrived.into_iter().flatten() {
        all.entry(class).or_default().append(&mut samples);
    }
    let median = |(class, mut samples): (u16, Vec<i64>)| {
        let middle = (samples.len() - 1) / 2;
        (samples.len() >= SAMPLES).then(|| (class, *samples.select_nth_unstable(middle).1))
    };
    let medians: Vec<(u16, i64)> = all.into_iter().filter_map(median).collect();
    Ok(trace.exchange.allgather(medians)?.into_iter().flatten().collect())
}

/// Class of calls: region, number and size of messages.
type CallClass = (RegionKey, u16, u16);

/// The properties of a call that follow from its arcs.
struct Seen {
    /// Latest begin of a transfer, at most the Leave.
    latest: i64,
    /// Class of the transfer that begins then.
    class: u16,
    /// Class of the call, if it does nothing but receive messages.
    call: Option<CallClass>,
}

fn see(arcs: &[Raw], leave: i64) -> Seen {
    let mut seen = Seen { latest: i64::MIN, class: NO_CLASS, call: None };
    let (mut receives, mut largest, mut others) = (0u16, 0, false);
    let mut region = RegionKey::NONE;
    for raw in arcs {
        if raw.measured && raw.since.min(leave) > seen.latest {
            (seen.latest, seen.class) = (raw.since.min(leave), raw.class);
        }
        others |= raw.class == NO_CLASS;
        if raw.region.is_some() {
            receives = receives.saturating_add(1);
            largest = largest.max(raw.class);
            region = raw.region;
        }
    }
    if receives > 0 && !others {
        seen.call = Some((region, size_class(receives.into()), largest >> 2));
    }
    seen
}

impl Estimates {
    /// Collects the samples of all calls; the arcs are sorted. Collective.
    pub(in crate::whatif) fn new(trace: &Trace, builder: &Builder) -> Result<Self> {
        let mut transfers: FxHashMap<u16, Vec<i64>> = FxHashMap::default();
        let mut calls: FxHashMap<CallClass, (usize, i64)> = FxHashMap::default();
        for arcs in builder.raws.chunk_by(|a, b| a.target == b.target) {
            let target = arcs[0].target;
            if target >= builder.instances() {
                break;
            }
            let (shard, instance) = builder.place(target);
            let of = &trace.shards[shard];
            if trace.class(of, instance) == RegionClass::Test {
                continue;
            }
            let at = of.instances.leave[instance] as usize;
            let (begin, leave) = (of.events.time[at - 1], of.events.time[at]);
            let seen = see(arcs, leave);
            if seen.latest > begin {
                if seen.class != NO_CLASS {
                    transfers.entry(seen.class).or_default().push(leave - seen.latest);
                }
            } else if let Some(call) = seen.call {
                let (samples, least) = calls.entry(call).or_insert((0, i64::MAX));
                *samples += 1;
                *least = (*least).min(leave - begin);
            }
        }
        let own: Vec<(CallClass, usize, i64)> =
            calls.drain().map(|(call, (samples, least))| (call, samples, least)).collect();
        for (call, samples, least) in trace.exchange.allgather(own)?.into_iter().flatten() {
            let of = calls.entry(call).or_insert((0, i64::MAX));
            *of = (of.0 + samples, of.1.min(least));
        }
        calls.retain(|_, (samples, _)| *samples >= SAMPLES);
        let calls = calls.into_iter().map(|(call, (_, least))| (call, least)).collect();
        Ok(Self { transfers: medians(trace, transfers)?, calls })
    }

    /// The transfers that are known, by locality, protocol and size.
    pub(in crate::whatif) fn transfers(&self, sizes: &Sizes) -> Vec<Transfer> {
        let mut classes: Vec<(&u16, &i64)> = self.transfers.iter().collect();
        classes.sort_unstable_by_key(|&(class, _)| (class & 3, class >> 2));
        let transfer = |(class, &ticks): (&u16, &i64)| {
            let &(bytes, count) = sizes.get(class)?;
            let (is_local, is_rendezvous) = (class & 2 != 0, class & 1 != 0);
            Some(Transfer { is_local, is_rendezvous, bytes: bytes as f64 / count as f64, ticks })
        };
        classes.into_iter().filter_map(transfer).collect()
    }

    /// Number of calls whose messages had already arrived although others of their class had to wait, and the time of
    /// these calls, ticks: the effect of a change on them is an estimate.
    pub(in crate::whatif) fn hidden(&self, trace: &Trace, builder: &Builder) -> (u64, i64) {
        let of_call = |arcs: &[Raw]| {
            let (shard, instance) = builder.place(arcs[0].target);
            let of = &trace.shards[shard];
            let at = of.instances.leave[instance] as usize;
            let (begin, leave) = (of.events.time[at - 1], of.events.time[at]);
            let seen = see(arcs, leave);
            let is_known = arcs.iter().any(|raw| raw.measured && self.transfers.contains_key(&raw.class));
            (is_known && seen.latest <= begin).then_some(leave - begin)
        };
        let calls = builder.raws.chunk_by(|a, b| a.target == b.target);
        let calls = calls.take_while(|arcs| arcs[0].target < builder.instances());
        calls.filter_map(of_call).fold((0, 0), |(count, time), call| (count + 1, time + call))
    }

    /// The weights of the arcs to a call [`begin`, `leave`]: its own time, then those of the arcs
    /// (whatif.md#how-it-works).
    pub(in crate::whatif) fn weigh(&self, arcs: &[Raw], begin: i64, leave: i64, weights: &mut [i64]) {
        let seen = see(arcs, leave);
        let rest = leave - seen.latest.max(begin);
        let least = seen.call.and_then(|call| self.calls.get(&call)).map_or(rest, |least| rest.min(*least));
        let mut explained = false;
        for (raw, weight) in arcs.iter().zip(&mut weights[1..]) {
            let known = self.transfers.get(&raw.class);
            *weight = match known {
                // An arc that the measured run does not have can only be estimated.
                _ if !raw.measured => known.copied().unwrap_or(rest),
                _ if raw.since > leave => leave - raw.since,
                Some(&transfer) => transfer.min(leave - raw.since),
                None => rest,
            };
            explained |= raw.measured && raw.since + *weight == leave;
        }
        let own = if explained {
            least
        } else if seen.latest > begin {
            for (raw, weight) in arcs.iter().zip(&mut weights[1..]) {
                if raw.measured && raw.since == seen.latest {
                    *weight = rest;
                }
            }
            least
        } else {
            leave - begin
        };
        weights[0] = own;
        for (i, raw) in arcs.iter().enumerate().filter(|(_, raw)| raw.source == OWN && raw.kept) {
            let most = if raw.measured { leave - begin } else { i64::MAX };
            weights[0] = weights[0].max(weights[i + 1].min(most));
        }
    }
}
