//! What messages are at their senders: protocols, sizes, and whether threads may have disturbed their order.

use bitcode::{Decode, Encode};
use rayon::prelude::*;

use super::{Message, QueueMetric, Sums};
use crate::Result;
use crate::ids::LocationId;
use crate::matching::protocol::{Limits, Protocol};
use crate::trace::{Shard, Trace};

/// What a sender gets to know of its message.
#[derive(Clone, Copy, Encode, Decode)]
struct Verdict {
    row: u32,
    /// 0 eager, 1 rendezvous, 2 undecided.
    protocol: u8,
    is_local: bool,
}

/// Bounds of sizes, and what counts messages up to them.
const SIZES: [(u64, QueueMetric); 6] = [
    (0, QueueMetric::Size0),
    (64, QueueMetric::Size64),
    (1 << 10, QueueMetric::Size1Ki),
    (8 << 10, QueueMetric::Size8Ki),
    (64 << 10, QueueMetric::Size64Ki),
    (1 << 20, QueueMetric::Size1Mi),
];

/// Communicators with more members are large (COUNTERS, decision 15).
const MEMBERS: usize = 64;

/// Counts matched messages at their senders, and parts in collective operations, shard by shard.
pub(super) fn count(trace: &Trace, messages: &[Vec<Message>], limits: &Limits) -> Result<Vec<Sums>> {
    let outgoing = messages.par_iter().map(|messages| {
        let mut outbox = trace.exchange.outbox();
        for message in messages {
            let protocol = match message.protocol {
                Protocol::Eager => 0,
                Protocol::Rendezvous => 1,
                Protocol::Undecided => 2,
            };
            let verdict = Verdict { row: message.row, protocol, is_local: message.is_local };
            outbox.push(trace.shard_of[message.location], verdict);
        }
        outbox
    });
    let incoming = trace.exchange.alltoallv(outgoing.collect())?;
    let sums = incoming.into_par_iter().zip(&trace.shards).map(|(inbox, shard)| {
        let mut sums = Sums::default();
        let mut is_matched = vec![false; shard.sends.rows.len()];
        for verdict in inbox.rows() {
            is_matched[verdict.row as usize] = true;
            count_message(shard, *verdict, limits, &mut sums);
        }
        out_of_sequence(trace, shard, &is_matched, &mut sums);
        collectives(trace, shard, limits, &mut sums);
        sums
    });
    Ok(sums.collect())
}

fn count_message(shard: &Shard, verdict: Verdict, limits: &Limits, sums: &mut Sums) {
    let send = &shard.sends.rows[verdict.row as usize];
    let place = (shard.callpath(send.instance), shard.location_of(&shard.sends, verdict.row));
    let bytes = i64::try_from(send.bytes).unwrap_or(i64::MAX);
    let (messages, amount) = match verdict.protocol {
        0 => (QueueMetric::Eager, QueueMetric::EagerBytes),
        1 => (QueueMetric::Rendezvous, QueueMetric::RendezvousBytes),
        _ => (QueueMetric::Undecided, QueueMetric::UndecidedBytes),
    };
    sums.add(messages, place, 1);
    sums.add(amount, place, bytes);
    let size =
        SIZES.iter().find(|(bound, _)| send.bytes <= *bound).map_or(QueueMetric::SizeMore, |(_, metric)| *metric);
    sums.add(size, place, 1);
    if !limits.is_eager(verdict.is_local, send.bytes, Protocol::Undecided) {
        sums.add(QueueMetric::AboveLimit, place, 1);
    }
}

/// A send call that takes time, its thread, and its row.
#[derive(Clone, Copy)]
struct Call {
    enter: i64,
    leave: i64,
    location: LocationId,
    row: u32,
}

/// Counts messages whose send overlaps one of another thread to the same process and communicator.
fn out_of_sequence(trace: &Trace, shard: &Shard, is_matched: &[bool], sums: &mut Sums) {
    for process in shard.processes {
        let locations = shard.local_locations(trace.definitions.processes[process].locations);
        if locations.clone().filter(|&i| !shard.sends.range(i).is_empty()).count() < 2 {
            continue;
        }
        let mut calls = Vec::new();
        for i in locations {
            for row in shard.sends.range(i).filter(|&row| is_matched[row]) {
                let send = &shard.sends.rows[row];
                let (enter, leave) = (shard.enter(send.instance), shard.leave(send.instance));
                if enter < leave {
                    let call = Call { enter, leave, location: shard.location(i), row: row as u32 };
                    calls.push(((send.peer, send.comm), call));
                }
            }
        }
        calls.sort_unstable_by_key(|(channel, call)| (*channel, call.enter, call.row));
        for calls in calls.chunk_by(|a, b| a.0 == b.0) {
            let calls: Vec<Call> = calls.iter().map(|(_, call)| *call).collect();
            for (call, overlaps) in calls.iter().zip(overlapping(&calls)) {
                if overlaps {
                    let callpath = shard.callpath(shard.sends.rows[call.row as usize].instance);
                    sums.add(QueueMetric::OutOfSequencePossible, (callpath, call.location), 1);
                }
            }
        }
    }
}

/// The best of something by thread, and the best of all other threads.
#[derive(Clone, Copy, Default)]
struct Best([Option<(i64, LocationId)>; 2]);

impl Best {
    fn take(&mut self, value: i64, location: LocationId) {
        let [first, second] = &mut self.0;
        match first {
            Some((_, same)) if *same == location => *first = (*first).max(Some((value, location))),
            Some((best, _)) if *best >= value => *second = (*second).max(Some((value, location))),
            _ => {
                *second = *first;
                *first = Some((value, location));
            }
        }
    }

    fn of_others(&self, location: LocationId) -> Option<i64> {
        self.0.iter().flatten().find(|(_, other)| *other != location).map(|(value, _)| *value)
    }
}

/// Whether each call overlaps one of another thread; calls are sorted by their Enters.
fn overlapping(calls: &[Call]) -> Vec<bool> {
    let mut overlaps = vec![false; calls.len()];
    let mut latest_leave = Best::default();
    for (call, overlaps) in calls.iter().zip(&mut overlaps) {
        *overlaps |= latest_leave.of_others(call.location).is_some_and(|leave| leave > call.enter);
        latest_leave.take(call.leave, call.location);
    }
    let mut earliest_enter = Best::default();
    for (call, overlaps) in calls.iter().zip(&mut overlaps).rev() {
        *overlaps |= earliest_enter.of_others(call.location).is_some_and(|enter| -enter < call.leave);
        earliest_enter.take(-call.enter, call.location);
    }
    overlaps
}

/// Counts parts in collective operations by bytes and members.
fn collectives(trace: &Trace, shard: &Shard, limits: &Limits, sums: &mut Sums) {
    // Collective operations have no locality: the limit between nodes counts, if there is one.
    let [local, remote] = limits.known();
    let limit = remote.or(local).unwrap_or(u64::MAX);
    for i in 0..shard.locations.len() {
        for part in shard.collectives.of(i) {
            let is_large = part.sent.max(part.received) > limit;
            let has_many = trace.definitions.comms[part.comm].size > MEMBERS;
            let metric = match (is_large, has_many) {
                (false, false) => QueueMetric::CollectiveSmallSmall,
                (false, true) => QueueMetric::CollectiveSmallLarge,
                (true, false) => QueueMetric::CollectiveLargeSmall,
                (true, true) => QueueMetric::CollectiveLargeLarge,
            };
            sums.add(metric, (shard.callpath(part.instance), shard.location(i)), 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn overlaps_are_those_of_all_pairs(calls in prop::collection::vec((0i64..30, 1i64..8, (0u32..3).prop_map(LocationId::new)), 0..20)) {
            let mut calls: Vec<Call> = (0..).zip(calls)
                .map(|(row, (enter, length, location))| Call { enter, leave: enter + length, location, row })
                .collect();
            calls.sort_unstable_by_key(|call| (call.enter, call.row));
            let naive: Vec<bool> = calls.iter().map(|a| calls.iter().any(|b| {
                a.location != b.location && a.enter < b.leave && b.enter < a.leave
            })).collect();
            prop_assert_eq!(overlapping(&calls), naive);
        }
    }
}
