//! Match attempts: the number of entries that a message or a receive is compared with in the search for its partner.
//!
//! One queue holds posted receives in order of posting, another one unexpected messages in order of arrival; on a tie,
//! the message with the lower number comes first. An arriving message searches the former, a posted receive the latter,
//! up to its partner:
//!
//! ```text
//! arrival at a:  q <= a:  1 + #{m': q' < q and a' > a}     post at q:  a <  q:  1 + #{m': a' < a and q' > q}
//!                q >  a:  #{m': q' <= a < a'}                          a >= q:  #{m': a' <= q < q'}
//! ```
//!
//! So each is compared with its partner once. If messages arrive and are received in order of their numbers, there are
//! no other comparisons; this file counts the additional ones.
//!
//! *Source*: counters.md#counters-of-messages-and-queues.

use super::sums::CellKey;
use crate::ids::{CommId, ProcessId};

/// A message in a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queued {
    pub(super) source: ProcessId,
    pub(super) comm: CommId,
    /// Enter of the call that starts the send, ticks, and the row of the send.
    pub(super) sent: (i64, u32),
    pub(super) arrival: i64,
    pub(super) posted: i64,
    /// Number of the message in its channel.
    pub(super) number: u32,
    /// Where its receive was posted.
    pub(super) place: CellKey,
}

/// Numbers of entries before a position, kept while entries come and go (Fenwick).
struct Entries {
    sums: Vec<u32>,
    number: u32,
}

impl Entries {
    fn new(size: usize) -> Self {
        Self { sums: vec![0; size + 1], number: 0 }
    }

    fn change(&mut self, position: u32, by: i32) {
        self.number = self.number.wrapping_add_signed(by);
        let mut at = position as usize + 1;
        while at < self.sums.len() {
            self.sums[at] = self.sums[at].wrapping_add_signed(by);
            at += at & at.wrapping_neg();
        }
    }

    /// Number of entries before a position.
    fn before(&self, position: u32) -> u32 {
        let mut at = position as usize;
        let mut sum = 0;
        while at > 0 {
            sum += self.sums[at];
            at &= at - 1;
        }
        sum
    }
}

/// Positions of the messages in an order.
fn order(messages: &[Queued], time: impl Fn(&Queued) -> i64) -> (Vec<u32>, Vec<u32>) {
    let key = |(message, i): (&Queued, u32)| (time(message), message.number, message.source, i);
    let mut keys: Vec<_> = messages.iter().zip(0..).map(key).collect();
    // Most of them come in order, or in the orders of several threads, which a stable sort merges.
    keys.sort();
    let order: Vec<u32> = keys.into_iter().map(|(.., i)| i).collect();
    let mut position = vec![0; messages.len()];
    for (at, &i) in (0..).zip(&order) {
        position[i as usize] = at;
    }
    (order, position)
}

/// Passes the additional comparisons of each message of a queue, at its arrival and at its receive, to `count`.
pub(super) fn with_others(messages: &[Queued], mut count: impl FnMut(&Queued, u32)) {
    if messages.len() < 2 {
        return;
    }
    let (by_post, in_post) = order(messages, |message| message.posted);
    let (by_arrival, in_arrival) = order(messages, |message| message.arrival);
    // Posted receives whose message is still to come, in order of posting; messages whose receive is still to come, in
    // order of arrival.
    let (mut posted, mut unexpected) = (Entries::new(messages.len()), Entries::new(messages.len()));
    let (mut posts, mut arrivals) = (&by_post[..], &by_arrival[..]);
    while let Some(now) =
        [posts.first().map(|&i| messages[i as usize].posted), arrivals.first().map(|&i| messages[i as usize].arrival)]
            .into_iter()
            .flatten()
            .min()
    {
        // All entries of one time are inserted before any of them searches.
        let (posts_now, rest) =
            posts.split_at(posts.iter().take_while(|&&i| messages[i as usize].posted == now).count());
        posts = rest;
        let number = arrivals.iter().take_while(|&&i| messages[i as usize].arrival == now).count();
        let (arrivals_now, rest) = arrivals.split_at(number);
        arrivals = rest;
        for &i in posts_now.iter().filter(|&&i| messages[i as usize].arrival >= now) {
            posted.change(in_post[i as usize], 1);
        }
        for &i in arrivals_now.iter().filter(|&&i| messages[i as usize].posted >= now) {
            unexpected.change(in_arrival[i as usize], 1);
        }
        for &i in posts_now {
            let message = &messages[i as usize];
            if message.arrival <= now {
                unexpected.change(in_arrival[i as usize], -1);
            }
            let is_found = message.arrival < now;
            count(message, if is_found { unexpected.before(in_arrival[i as usize]) } else { unexpected.number });
        }
        for &i in arrivals_now {
            let message = &messages[i as usize];
            if message.posted <= now {
                posted.change(in_post[i as usize], -1);
            }
            let is_found = message.posted <= now;
            count(message, if is_found { posted.before(in_post[i as usize]) } else { posted.number });
        }
    }
}
