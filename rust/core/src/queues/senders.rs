//! Counts of messages at their senders: protocols, sizes, and possible disorder between threads.

use super::ledger::Ledger;
use super::message::Message;
use super::sums::{CellKey, Sums};
use crate::ids::LocationId;
use crate::matching::protocol::{Limits, Protocol};
use crate::parallel::exchange::Inbox;
use crate::schema::QueueMetric;
use crate::severity::volume;
use crate::trace::columns::COLLECTIVE_IO;
use crate::trace::{Shard, Trace};

/// Bounds of sizes, and the metrics that count messages up to them.
const SIZES: [(u64, QueueMetric); 6] = [
    (0, QueueMetric::Size0),
    (64, QueueMetric::Size64),
    (1 << 10, QueueMetric::Size1Ki),
    (8 << 10, QueueMetric::Size8Ki),
    (64 << 10, QueueMetric::Size64Ki),
    (1 << 20, QueueMetric::Size1Mi),
];

/// Communicators with more members are large (counters.md#counters-of-messages-and-queues).
const MEMBERS: usize = 64;

/// Consecutive messages with the same properties.
#[derive(Clone, Copy, Default)]
pub(super) struct Alike {
    message: Option<Message>,
    number: i64,
}

impl Alike {
    /// Counts a message; books the previous ones if their properties differ.
    #[inline]
    pub(super) fn take(&mut self, message: &Message, sums: &mut Sums, limits: Limits) {
        let like = |message: &Message| (message.place(), message.bytes, message.protocol);
        if self.message.as_ref().map(like) != Some(like(message)) {
            let before = std::mem::replace(self, Self { message: Some(*message), number: 0 });
            before.book(limits, |metric, place, value| sums.add(metric, place, value));
        }
        self.number += 1;
    }

    /// A single message.
    pub(super) fn one(message: &Message) -> Self {
        Self { message: Some(*message), number: 1 }
    }

    /// Books them at their sender.
    pub(super) fn book(self, limits: Limits, mut add: impl FnMut(QueueMetric, CellKey, i64)) {
        let Some(message) = self.message else { return };
        let (messages, amount) = match message.protocol {
            Protocol::Eager => (QueueMetric::Eager, QueueMetric::EagerBytes),
            Protocol::Rendezvous => (QueueMetric::Rendezvous, QueueMetric::RendezvousBytes),
            Protocol::Undecided => (QueueMetric::Undecided, QueueMetric::UndecidedBytes),
        };
        let size = SIZES.iter().find(|(bound, _)| message.bytes <= *bound);
        let size = size.map_or(QueueMetric::SizeMore, |(_, metric)| *metric);
        let mut add = |metric, value| add(metric, message.place(), value);
        add(messages, self.number);
        add(amount, volume(message.bytes).saturating_mul(self.number));
        add(size, self.number);
        if !limits.is_eager(message.is_local, message.bytes, Protocol::Undecided) {
            add(QueueMetric::AboveLimit, self.number);
        }
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

/// Counts messages whose send overlaps one of another thread to the same process and communicator; `matched` has the
/// rows of received messages.
pub(super) fn out_of_sequence(trace: &Trace, shard: &Shard, matched: &Inbox<u32>, ledger: &mut Ledger) {
    if matched.is_empty() {
        return;
    }
    let mut is_matched = vec![false; shard.sends.rows.len()];
    matched.rows().for_each(|&row| is_matched[row as usize] = true);
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
        // Those of each thread are in order: a stable sort merges them.
        calls.sort_by_key(|(channel, call)| (*channel, call.enter, call.row));
        let mut disturbed = Vec::new();
        for calls in calls.chunk_by(|a, b| a.0 == b.0) {
            let calls: Vec<Call> = calls.iter().map(|(_, call)| *call).collect();
            disturbed
                .extend(calls.iter().zip(overlapping(&calls)).filter(|(_, overlaps)| *overlaps).map(|(&call, _)| call));
        }
        disturbed.sort_unstable_by_key(|call| call.location);
        for calls in disturbed.chunk_by(|a, b| a.location == b.location) {
            for call in calls {
                let callpath = shard.callpath(shard.sends.rows[call.row as usize].instance);
                ledger.add(QueueMetric::OutOfSequencePossible, callpath, || call.enter);
            }
            ledger.end_location(calls[0].location);
        }
    }
}

/// The largest value with its thread, and the largest of all other threads.
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
pub(super) fn collectives(trace: &Trace, shard: &Shard, limits: Limits, ledger: &mut Ledger) {
    // Collective operations have no locality, so the limit between nodes applies, if known.
    let [local, remote] = limits.known();
    let limit = remote.or(local).unwrap_or(u64::MAX);
    for i in 0..shard.locations.len() {
        for part in shard.collectives.of(i).iter().filter(|part| part.operation != COLLECTIVE_IO) {
            let is_large = part.sent.max(part.received) > limit;
            let has_many = trace.definitions.comms[part.comm].size > MEMBERS;
            let metric = match (is_large, has_many) {
                (false, false) => QueueMetric::CollectiveSmallSmall,
                (false, true) => QueueMetric::CollectiveSmallLarge,
                (true, false) => QueueMetric::CollectiveLargeSmall,
                (true, true) => QueueMetric::CollectiveLargeLarge,
            };
            ledger.add(metric, shard.callpath(part.instance), || shard.enter(part.instance));
        }
        ledger.end_location(shard.location(i));
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
