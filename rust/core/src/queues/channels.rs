//! Channels of a receiver: the messages from one process with one communicator.
//!
//! Nearly all messages are received in the order in which they were sent and arrived. Then no message overtakes
//! another, and each is compared only with its partner; comparing it with the previous message is enough to tell. Other
//! channels are sorted.

use super::attempts::{self, Queued};
use super::options::Lists;
use crate::ids::{CommId, ProcessId};
use crate::trace::NONE;

/// A message, in order of the receives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// Enter of the call that starts the send, ticks, and the row of the send, which determine the message's number.
    pub(super) sent: (i64, u32),
    /// When it arrives, ticks.
    pub(super) arrival: i64,
    /// When its receive is posted, ticks.
    pub(super) posted: i64,
}

/// A channel.
pub(super) struct Channel<R> {
    source: ProcessId,
    comm: CommId,
    /// The next one from the same process, or [`NONE`].
    next: u32,
    latest: Step,
    is_in_order: bool,
    /// Data of the caller.
    pub(super) kept: R,
}

impl<R> Channel<R> {
    /// Adds the next received message.
    #[inline]
    pub(super) fn take(&mut self, step: Step) {
        let before = &self.latest;
        let follows = before.sent < step.sent && before.arrival <= step.arrival && before.posted <= step.posted;
        // A message that arrives at the time when another one is posted is in the queue during that search.
        let meets = before.posted == before.arrival && before.arrival == step.arrival;
        self.is_in_order &= follows && !meets;
        self.latest = step;
    }
}

/// The channels of one receiver at a time.
pub(super) struct Channels<R> {
    /// By sending process, or [`NONE`].
    first: Vec<u32>,
    all: Vec<Channel<R>>,
}

impl<R: Default> Channels<R> {
    pub(super) fn new(processes: usize) -> Self {
        Self { first: vec![NONE; processes], all: Vec::new() }
    }

    /// The number of a channel.
    #[inline]
    pub(super) fn number(&mut self, source: ProcessId, comm: CommId) -> usize {
        let mut number = self.first[source.index()];
        while let Some(channel) = self.all.get(number as usize) {
            if channel.comm == comm {
                return number as usize;
            }
            number = channel.next;
        }
        let next = std::mem::replace(&mut self.first[source.index()], self.all.len() as u32);
        let latest = Step { sent: (i64::MIN, 0), arrival: i64::MIN, posted: i64::MIN };
        self.all.push(Channel { source, comm, next, latest, is_in_order: true, kept: R::default() });
        self.all.len() - 1
    }

    /// A channel by its number.
    #[inline]
    pub(super) fn get(&mut self, number: usize) -> &mut Channel<R> {
        &mut self.all[number]
    }

    /// Whether the messages of a channel are in order, so that their queue needs no search.
    pub(super) fn is_in_order(&self, number: usize, lists: Lists) -> bool {
        // Unknown if other channels share the queue.
        self.all[number].is_in_order && (lists == Lists::Pair || self.all.len() == 1)
    }

    /// Whether the messages of all channels are in order.
    pub(super) fn are_in_order(&self, lists: Lists) -> bool {
        (0..self.all.len()).all(|number| self.is_in_order(number, lists))
    }

    /// Finishes the receiver; returns the caller's data of each channel.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = R> {
        for channel in &self.all {
            self.first[channel.source.index()] = NONE;
        }
        self.all.drain(..).map(|channel| channel.kept)
    }
}

/// What is counted in the queues of a receiver.
pub(super) enum Found {
    /// A message whose receive was posted after that of a later one of its channel.
    Overtaken,
    /// Comparisons with entries other than the partner.
    Comparisons(u32),
}

/// Replays the queues of a receiver.
pub(super) fn search(messages: &mut [Queued], lists: Lists, mut count: impl FnMut(&Queued, Found)) {
    // Each thread received the messages of a channel in order, or nearly so; a stable sort merges ordered runs.
    messages.sort_by_key(|message| (message.comm, message.source, message.sent));
    for channel in messages.chunk_by_mut(|a, b| (a.comm, a.source) == (b.comm, b.source)) {
        let mut earliest = i64::MAX;
        for (number, message) in channel.iter_mut().enumerate().rev() {
            message.number = number as u32;
            if earliest < message.posted {
                count(message, Found::Overtaken);
            }
            earliest = earliest.min(message.posted);
        }
    }
    let same_queue = |a: &Queued, b: &Queued| a.comm == b.comm && (lists == Lists::Receiver || a.source == b.source);
    for queue in messages.chunk_by(same_queue) {
        attempts::with_others(queue, |message, others| count(message, Found::Comparisons(others)));
    }
}
