//! Waiting for non-blocking collective operations, in the calls that complete them.
//!
//! ```text
//!  0  ---i[ I... ]-- work --c[ Wait      |  ]--      i starts the operation, c completes it
//!  1  ----------------------------i[ I...]-----      ready(0) = Enter of the latest i that 0 needs
//!               |-- hidden --|-- waiting -|--| completion
//! ```
//!
//! With `ready`, the latest Enter of the calls that start the operation at the members whose data p needs:
//!
//! * waiting = min(ready, L(c)) − E(c) if positive; a test never waits
//! * completion = L(c) − max(E(c), min(ready, L(c)))
//! * hidden = `[min(ready, E(c)) − L(i)]+`, in the call that starts the operation
//!
//! Members that wait in an operation of all with all at `ready` synchronize with each other then.
//!
//! A call that completes several requests waits once: for the longest of its operations, from the end of its wait for
//! messages on.
//!
//! *Source*: specification.md#non-blocking-collective-operations.

use bitcode::{Decode, Encode};
use rustc_hash::FxHashMap;

use super::collective_sync::{CollectiveSync, CollectiveSyncs, Participants};
use super::findings::Findings;
use super::wait_state::WaitState;
use crate::Result;
use crate::diagnostics::{DiagnosticKind, Diagnostics, Place};
use crate::ids::{CallPathId, InstanceId, LocationId, ProcessId};
use crate::matching::collectives::{Kind, neighbors};
use crate::matching::flow::{Flow, Needs};
use crate::matching::nonblocking::{Part, any, check, instances, parts};
use crate::parallel::exchange::{Inbox, Outbox};
use crate::parallel::iter::prelude::*;
use crate::severity::{Metric, Severity};
use crate::trace::topologies::Topology;
use crate::trace::{Shard, Trace};

/// What a member needs.
#[derive(Clone, Copy, Debug, Encode, Decode)]
struct Ready {
    row: u32,
    kind: Metric,
    /// When the last of the others starts the operation, ticks; none if it needs nobody.
    at: i64,
    cause: (LocationId, InstanceId),
}

/// Detects all waits for non-blocking collective operations: one entry per shard; none if there are no operations.
/// `found` has the waits for messages; the synchronizations of members are added to `syncs`, by owner.
pub(crate) fn detect(
    trace: &Trace,
    found: &[Findings],
    syncs: &mut [CollectiveSyncs],
) -> Result<Option<(Vec<Findings>, Diagnostics)>> {
    if !any(trace)? {
        return Ok(None);
    }
    let (ready, diagnostics) = ready(trace, syncs)?;
    let findings = ready.into_par_iter().zip(trace.par_shards()).zip(found);
    Ok(Some((findings.map(|((inbox, shard), found)| book(trace, shard, &inbox, found)).collect(), diagnostics)))
}

/// What the members of all operations need, by shard.
fn ready(trace: &Trace, syncs: &mut [CollectiveSyncs]) -> Result<(Vec<Inbox<Ready>>, Diagnostics)> {
    let evaluated = parts(trace)?.into_par_iter().zip(syncs);
    let evaluated: Vec<(Outbox<Ready>, Diagnostics)> =
        evaluated.map(|(parts, syncs)| evaluate(trace, &parts, syncs)).collect();
    let mut diagnostics = Diagnostics::default();
    let mut outgoing = Vec::with_capacity(evaluated.len());
    for (outbox, notes) in evaluated {
        outgoing.push(outbox);
        diagnostics.merge(notes);
    }
    Ok((trace.exchange.alltoallv(outgoing)?, diagnostics))
}

/// A location's part in an operation, from the call that starts it to the one that completes it; times in ticks.
#[derive(Clone, Debug, Encode, Decode)]
pub(crate) struct Operation {
    pub location: LocationId,
    /// That of the call that starts it.
    pub callpath: CallPathId,
    pub begin: i64,
    pub end: i64,
    /// Begin and end of the time in which it would have waited for others, had it not computed; empty if they are the same.
    pub hidden: (i64, i64),
}

/// The parts in all operations of this process of the analysis. Collective.
pub(crate) fn operations(trace: &Trace) -> Result<Vec<Operation>> {
    if !any(trace)? {
        return Ok(Vec::new());
    }
    let of_shard = |(inbox, shard): (Inbox<Ready>, &Shard)| -> Vec<Operation> {
        let rows = &shard.nonblocking.rows;
        let mut ready = vec![i64::MIN; rows.len()];
        for one in inbox.rows() {
            ready[one.row as usize] = one.at;
        }
        let part = |location: LocationId, number: usize| {
            let (post, complete) = (rows[number].post, rows[number].complete);
            let leave = shard.leave(post);
            Operation {
                location,
                callpath: shard.callpath(post),
                begin: shard.enter(post),
                end: shard.leave(complete),
                hidden: (leave, ready[number].min(shard.enter(complete)).max(leave)),
            }
        };
        let of_location = |location| shard.nonblocking.range(shard.local(location)).map(move |n| part(location, n));
        shard.locations.into_iter().flat_map(of_location).collect()
    };
    let mut syncs: Vec<CollectiveSyncs> = trace.shards.iter().map(|_| CollectiveSyncs::default()).collect();
    let of_shards: Vec<_> = ready(trace, &mut syncs)?.0.into_par_iter().zip(trace.par_shards()).map(of_shard).collect();
    Ok(of_shards.into_iter().flatten().collect())
}

fn evaluate(trace: &Trace, parts: &[Part], syncs: &mut CollectiveSyncs) -> (Outbox<Ready>, Diagnostics) {
    let mut outbox = trace.exchange.outbox();
    let mut diagnostics = Diagnostics::default();
    let mut sets: FxHashMap<Vec<ProcessId>, u32> = FxHashMap::default();
    let mut waiting: Vec<(&Part, i64)> = Vec::new();
    for members in instances(parts) {
        let first = &members[0];
        match check(trace, members) {
            Ok(()) => {
                let topology = trace.definitions.topologies.of(first.comm);
                waiting.clear();
                needs(members, topology, &mut diagnostics, |part, ready| {
                    if part.waits < ready.at && ready.at <= part.end {
                        waiting.push((part, ready.at));
                    }
                    outbox.push(trace.shard_of[part.location], ready);
                });
                if matches!(Kind::of(first.operation), Kind::Barrier | Kind::AllToAll) {
                    synchronize(trace, &mut waiting, &mut sets, syncs);
                }
            }
            Err(kind) => {
                diagnostics.count(kind, 1, Some(Place { location: first.location, time: Some(first.begin) }));
            }
        }
    }
    (outbox, diagnostics)
}

/// Members that waited until the last one started the operation synchronized with each other then. Their waits are pairs
/// of each with that last one.
fn synchronize(
    trace: &Trace,
    waiting: &mut Vec<(&Part, i64)>,
    sets: &mut FxHashMap<Vec<ProcessId>, u32>,
    syncs: &mut CollectiveSyncs,
) {
    let met = waiting.iter().map(|&(_, at)| at).max().unwrap_or(i64::MIN);
    waiting.retain(|&(_, at)| at == met);
    let Some(&(first, _)) = waiting.first().filter(|_| waiting.len() > 1) else { return };
    let mut members: Vec<ProcessId> =
        waiting.iter().map(|(part, _)| trace.definitions.locations[part.location].process).collect();
    members.sort_unstable();
    let set = *sets.entry(members).or_insert_with_key(|members| {
        syncs.sets.push(members.clone());
        syncs.sets.len() as u32 - 1
    });
    let kind = match Kind::of(first.operation) {
        Kind::Barrier => Metric::NonblockingBarrierWait,
        _ => Metric::NonblockingWaitNxN,
    };
    syncs.parts.extend(waiting.iter().map(|(part, _)| CollectiveSync {
        kind,
        call: (part.location, part.complete),
        cause: (LocationId::NONE, InstanceId::NONE),
        waiting: 0,
        completion: part.end - met,
        cause_completion: 0,
        comm: part.comm,
        with: Participants::Set(set),
    }));
}

/// The part that begins last, with the lowest rank on a tie.
fn latest<'a>(parts: impl Iterator<Item = &'a Part>) -> Option<&'a Part> {
    parts.reduce(|last, part| if part.begin > last.begin { part } else { last })
}

/// Passes on what each member needs, neighbors on a topology; `members` are sorted by rank.
fn needs<'a>(
    members: &'a [Part],
    topology: Option<&Topology>,
    diagnostics: &mut Diagnostics,
    mut pass: impl FnMut(&'a Part, Ready),
) {
    let operation = Kind::of(members[0].operation);
    let kind = match operation {
        Kind::Barrier => Metric::NonblockingBarrierWait,
        Kind::OneToAll => Metric::NonblockingLateBroadcast,
        Kind::AllToOne => Metric::NonblockingEarlyReduce,
        Kind::Scan => Metric::NonblockingEarlyScan,
        Kind::Neighborhood => Metric::NeighborWait,
        _ => Metric::NonblockingWaitNxN,
    };
    let Some(flow) = Flow::recorded(operation, members) else { return };
    // Of all that give, the latest for the others, and the latest of the others for it.
    let giving = || members.iter().filter(|part| flow.gives(*part));
    let last = latest(giving());
    let last_for_it = last.and_then(|last| latest(giving().filter(|other| other.rank != last.rank)));
    // The latest that gives of those of lower ranks.
    let mut before: Option<&Part> = None;
    for part in members {
        let last = match flow.needs {
            _ if !flow.takes(part) => None,
            Needs::All => last.filter(|last| last.rank != part.rank).or(last_for_it),
            Needs::Lower => before,
            Needs::Near => latest(topology.iter().flat_map(|topology| neighbors(topology, members, part.rank))),
        };
        if last.is_some_and(|last| last.begin > part.end) {
            // It cannot have completed before others started: the clocks disagree.
            diagnostics.add(DiagnosticKind::ClockViolationCollective, part.location, part.end);
        }
        let at = last.map_or(i64::MIN, |last| last.begin.min(part.end));
        let cause = last.map_or((LocationId::NONE, InstanceId::NONE), |last| (last.location, last.post));
        pass(part, Ready { row: part.row, kind, at, cause });
        if flow.gives(part) && before.is_none_or(|last| last.begin < part.begin) {
            before = Some(part);
        }
    }
}

/// The wait states and the hidden times of a shard.
fn book(trace: &Trace, shard: &Shard, inbox: &Inbox<Ready>, found: &Findings) -> Findings {
    let mut findings = Findings::default();
    let mut all: Vec<(&Ready, LocationId)> =
        inbox.rows().map(|ready| (ready, shard.location_of(&shard.nonblocking, ready.row))).collect();
    let operation = |ready: &Ready| &shard.nonblocking.rows[ready.row as usize];
    all.sort_by_key(|&(ready, location)| (location, operation(ready).complete, ready.row));
    // Waits for messages in the same calls.
    let mut messages: Vec<(InstanceId, i64)> = Vec::new();
    for wait in found.waits.iter().filter(|wait| wait.is_for_message()) {
        messages.push((wait.instance, wait.waiting));
    }
    messages.sort_unstable();
    for of_call in all.chunk_by(|a, b| operation(a.0).complete == operation(b.0).complete) {
        let location = of_call[0].1;
        let call = operation(of_call[0].0).complete;
        let (enter, leave) = (shard.enter(call), shard.leave(call));
        let mut severity = |metric, instance, value| {
            if value > 0 {
                findings.severities.push(Severity { metric, callpath: shard.callpath(instance), location, value });
            }
        };
        for (ready, _) in of_call {
            let post = operation(ready).post;
            let hidden = ready.at.min(enter).saturating_sub(shard.leave(post)).max(0);
            severity(Metric::NonblockingHidden, post, hidden);
        }
        let from = messages.partition_point(|&(instance, _)| instance < call);
        let of_messages = messages[from..].iter().take_while(|&&(instance, _)| instance == call);
        let waited = of_messages.map(|&(_, waiting)| waiting).sum::<i64>().min(leave - enter);
        let Some((last, _)) = of_call.iter().reduce(|last, next| if next.0.at > last.0.at { next } else { last })
        else {
            continue;
        };
        let is_test = trace.class(shard, call).is_test();
        let until = last.at.min(leave).max(enter);
        let waiting = until - enter - waited;
        let mut wait = |state: WaitState| {
            severity(state.kind, call, state.waiting);
            findings.waits.push(state);
        };
        if waiting > 0 && !is_test {
            wait(WaitState::new(last.kind, (location, call), waiting, last.cause));
        }
        let completion = leave - until.max(enter + waited);
        if completion > 0 && !is_test {
            wait(WaitState::without_cause(Metric::NonblockingCompletion, (location, call), completion));
        }
    }
    findings
}
