//! Messages that were certainly unexpected: a later one from the same sender was complete before their receive was posted.
//!
//! Messages of a thread on a communicator reach their receiver in order, so whatever the library does, the earlier one had arrived.

use super::sums::CellKey;
use crate::ids::{CommId, LocationId};

/// A message of a receiver.
pub(super) struct Seen {
    /// The sending thread and the communicator.
    pub(super) channel: (LocationId, CommId),
    /// When it was sent, and its number among the sends of the sender's shard.
    pub(super) sent: (i64, u32),
    /// When its receive was posted and complete, ticks.
    pub(super) posted: i64,
    pub(super) completed: i64,
    /// Where its receive was posted.
    pub(super) place: CellKey,
}

/// Passes on the messages of a process that were certainly unexpected.
pub(super) fn proven(messages: &mut [Seen], mut take: impl FnMut(&Seen)) {
    messages.sort_unstable_by_key(|message| (message.channel, message.sent));
    for of_channel in messages.chunk_by(|a, b| a.channel == b.channel) {
        let mut first_complete = i64::MAX;
        for message in of_channel.iter().rev() {
            if first_complete <= message.posted {
                take(message);
            }
            first_complete = first_complete.min(message.completed);
        }
    }
}
