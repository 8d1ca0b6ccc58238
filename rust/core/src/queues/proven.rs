//! Messages that were certainly unexpected: a later one from the same sender was complete before their receive was posted.
//!
//! Messages of a process on a communicator reach their receiver in the order of their sends, so the earlier one had arrived. MPI
//! promises this of the messages of one thread. Libraries number the messages of all threads as they are sent: one is later than
//! another if its send began when that of the other had returned.

use super::sums::CellKey;
use crate::ids::{CommId, LocationId, ProcessId};

/// A message of a receiver.
pub(super) struct Seen {
    /// The sender and the communicator.
    pub(super) channel: (ProcessId, CommId),
    /// When the call that sends it began, and its number among the sends of the sender's shard.
    pub(super) sent: (i64, u32),
    /// The thread that sent it, and when this call returned, ticks.
    pub(super) thread: LocationId,
    pub(super) returned: i64,
    /// When its receive was posted and complete, ticks.
    pub(super) posted: i64,
    pub(super) completed: i64,
    /// Where its receive was posted.
    pub(super) place: CellKey,
}

/// Passes on the messages of a process that were certainly unexpected.
pub(super) fn proven(messages: &mut [Seen], mut take: impl FnMut(&Seen)) {
    messages.sort_unstable_by_key(|message| (message.channel, message.thread, message.sent));
    let mut is_taken = vec![false; messages.len()];
    let mut first = 0;
    for of_thread in messages.chunk_by(|a, b| (a.channel, a.thread) == (b.channel, b.thread)) {
        let mut first_complete = i64::MAX;
        for (i, message) in of_thread.iter().enumerate().rev() {
            is_taken[first + i] = first_complete <= message.posted;
            first_complete = first_complete.min(message.completed);
        }
        first += of_thread.len();
    }
    let mut first = 0;
    for of_channel in messages.chunk_by(|a, b| a.channel == b.channel) {
        if of_channel.iter().any(|message| message.thread != of_channel[0].thread) {
            of_threads(of_channel, &mut is_taken[first..first + of_channel.len()]);
        }
        first += of_channel.len();
    }
    messages.iter().zip(is_taken).filter(|&(_, is_taken)| is_taken).for_each(|(message, _)| take(message));
}

/// Marks the messages of several threads on a channel that were certainly unexpected.
fn of_threads(messages: &[Seen], is_taken: &mut [bool]) {
    let mut by_sent: Vec<(i64, i64)> = messages.iter().map(|message| (message.sent.0, message.completed)).collect();
    by_sent.sort_unstable();
    // From then on, the first to be complete.
    let mut first_complete = i64::MAX;
    for (_, completed) in by_sent.iter_mut().rev() {
        first_complete = first_complete.min(*completed);
        *completed = first_complete;
    }
    for (message, is_taken) in messages.iter().zip(is_taken) {
        let later = by_sent.partition_point(|&(sent, _)| sent < message.returned);
        *is_taken |= by_sent.get(later).is_some_and(|&(_, completed)| completed <= message.posted);
    }
}
