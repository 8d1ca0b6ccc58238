//! The queues of receivers: unexpected messages, posted receives, what overtakes what.

use super::levels::{Level, Quantity, follow, in_flight};
use super::{Lists, Message, Options, QueueMetric, Sums, attempts};
use crate::trace::{Shard, Trace};

/// What the queues of a shard's processes show.
pub(super) struct Replayed {
    pub(super) sums: Sums,
    pub(super) levels: Vec<Level>,
}

/// Replays the queues of all processes of a shard.
pub(super) fn replay(
    trace: &Trace,
    shard: &Shard,
    messages: &mut [Message],
    options: &Options,
    is_eager: impl Fn(&Message) -> bool,
) -> Replayed {
    // In a channel the order of the sends is the number; of equal times that of the file.
    messages.sort_unstable_by_key(|m| (m.destination, m.comm, m.source, m.sent, m.row));
    let mut sums = Sums::default();
    let place = |message: &Message| (shard.callpath(message.request), shard.location_of_instance(message.request));
    for channel in messages.chunk_by_mut(|a, b| (a.destination, a.comm, a.source) == (b.destination, b.comm, b.source))
    {
        let mut earliest = i64::MAX;
        for (number, message) in channel.iter_mut().enumerate().rev() {
            message.number = number as u32;
            if earliest < message.posted {
                sums.add(QueueMetric::Overtaken, place(message), 1);
            }
            earliest = earliest.min(message.posted);
        }
    }
    for message in &*messages {
        let place = place(message);
        let Message { sent, arrival, posted, .. } = *message;
        if sent < posted {
            sums.add(QueueMetric::UnexpectedPossible, place, 1);
        }
        if arrival < posted {
            sums.add(QueueMetric::Unexpected, place, 1);
            sums.add(QueueMetric::UnexpectedTime, place, posted - arrival);
            if is_eager(message) {
                sums.add(QueueMetric::UnexpectedBytes, place, i64::try_from(message.bytes).unwrap_or(i64::MAX));
            }
        } else {
            sums.add(QueueMetric::PostedTime, place, arrival - posted);
        }
    }
    let same_queue = |a: &Message, b: &Message| {
        (a.destination, a.comm) == (b.destination, b.comm) && (options.lists == Lists::Receiver || a.source == b.source)
    };
    for queue in messages.chunk_by(same_queue) {
        attempts::of_queue(queue, |message, attempts| {
            sums.add(QueueMetric::MatchAttempts, place(message), attempts.into());
        });
    }
    let mut levels = Vec::new();
    if let Some(span) = trace.span() {
        for messages in messages.chunk_by(|a, b| a.destination == b.destination) {
            let location = trace.definitions.master(messages[0].destination);
            let mut level = |quantity, changes| levels.extend(follow(quantity, location, changes, span, options.bins));
            let unexpected = || messages.iter().filter(|message| message.arrival < message.posted);
            let steps = |from, to, by: i64| [(from, by), (to, -by)];
            level(Quantity::Unexpected, unexpected().flat_map(|m| steps(m.arrival, m.posted, 1)).collect());
            let eager = unexpected().filter(|message| is_eager(message));
            let bytes = |message: &Message| i64::try_from(message.bytes).unwrap_or(i64::MAX);
            level(Quantity::UnexpectedData, eager.flat_map(|m| steps(m.arrival, m.posted, bytes(m))).collect());
            let posted = messages.iter().filter(|message| message.posted < message.arrival);
            level(Quantity::Posted, posted.flat_map(|m| steps(m.posted, m.arrival, 1)).collect());
            level(Quantity::InFlight, messages.iter().flat_map(in_flight).collect());
        }
    }
    Replayed { sums, levels }
}
