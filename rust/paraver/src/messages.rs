//! Messages: by which calls they are sent, posted, received, and completed.

use std::collections::VecDeque;

use crate::calls::{self, Part};
use crate::processes::{Comms, Processes};
use crate::scan;
use crate::thread::{Thread, Visit, What};

/// What a call does with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Act {
    Send,
    Post,
    Receive,
    /// It completes a non-blocking send, which is inferred.
    Complete,
}

/// A message and a call of a thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Link {
    /// The visit that is the call.
    pub(crate) visit: u32,
    pub(crate) act: Act,
    /// Which message.
    pub(crate) message: u32,
}

/// A message between calls.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message {
    pub(crate) comm: u32,
    /// Ranks in the communicator.
    pub(crate) sender: u32,
    pub(crate) receiver: u32,
    pub(crate) size: u64,
    pub(crate) tag: u32,
    /// Whether a later call completes the send, and the receive.
    pub(crate) is_pending_send: bool,
    pub(crate) is_pending_receive: bool,
}

/// What is odd in messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Odd {
    /// Those that no call sends or receives.
    pub(crate) without_call: u64,
    /// Those of calls that are not whole.
    pub(crate) of_cut_call: u64,
    /// Those that arrive before they are sent.
    pub(crate) backward: u64,
    /// Those between applications.
    pub(crate) foreign: u64,
    /// Receiving calls in which no message ends.
    pub(crate) without_message: u64,
}

/// All messages, and what the calls of each thread do with them.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    pub(crate) list: Vec<Message>,
    /// By thread, in order of calls.
    pub(crate) links: Vec<Vec<Link>>,
    /// Threads with receives without a message.
    pub(crate) unmatched: Vec<u32>,
    /// Calls that probably complete non-blocking sends.
    pub(crate) inferred: u64,
    pub(crate) odd: Odd,
}

impl Messages {
    /// Finds the calls of messages.
    pub(crate) fn new(
        mut records: Vec<scan::Message>,
        threads: &[Thread],
        (processes, comms): (&Processes, &mut Comms),
        inference: bool,
    ) -> Self {
        let mut messages = Self { links: room(&records, threads.len()), ..Self::default() };
        messages.list.reserve_exact(records.len());
        records.retain(|record| messages.add(record, threads, processes, comms));
        let Self { list, links, inferred, odd, unmatched } = &mut messages;
        for (number, (thread, links)) in (0..).zip(threads.iter().zip(links.iter_mut())) {
            // Receives complete in the order in which they were posted.
            links.sort_unstable_by_key(|link| {
                let record = &records[link.message as usize];
                let since = if link.act == Act::Send { record.sent[0] } else { record.received[0] };
                (link.visit, link.act, since, link.message)
            });
            let count = without_message(thread, links);
            odd.without_message += count;
            unmatched.extend((count > 0).then_some(number));
            if inference {
                let completions = complete(thread, links, list);
                *inferred += completions.len() as u64;
                links.extend(completions);
                links.sort_by_key(|link| (link.visit, link.act));
            }
            links.shrink_to_fit();
        }
        messages
    }

    /// Adds a message, if it is known which calls send and receive it.
    fn add(&mut self, record: &scan::Message, threads: &[Thread], processes: &Processes, comms: &mut Comms) -> bool {
        let [from, to] = [record.sender, record.receiver].map(|thread| processes.of_threads[thread as usize]);
        let application = processes.list[from as usize].application;
        if application != processes.list[to as usize].application {
            self.odd.foreign += 1;
            return false;
        }
        let (sender, receiver) = (&threads[record.sender as usize], &threads[record.receiver as usize]);
        let sending = sender.sends(record.sent);
        let received = receiver.receives(record.received);
        let (Some(sending), Some((received, posted))) = (sending, received) else {
            self.odd.without_call += 1;
            return false;
        };
        if !sender.is_whole(sending) || !receiver.is_whole(received) {
            self.odd.of_cut_call += 1;
            return false;
        }
        self.odd.backward += u64::from(record.received[1] < record.sent[0]);
        let comm = comms.between(application, from, to);
        let rank = |process| comms.list[comm as usize].rank(process).unwrap_or(0);
        let message = self.list.len() as u32;
        self.list.push(Message {
            comm,
            sender: rank(from),
            receiver: rank(to),
            size: record.size.max(0).cast_unsigned(),
            tag: (record.tag & 0xffff_ffff) as u32,
            is_pending_send: false,
            is_pending_receive: posted.is_some(),
        });
        self.links[record.sender as usize].push(Link { visit: sending, act: Act::Send, message });
        let links = &mut self.links[record.receiver as usize];
        links.extend(posted.map(|visit| Link { visit, act: Act::Post, message }));
        links.push(Link { visit: received, act: Act::Receive, message });
        true
    }
}

/// Links of each thread, with room for those of its messages.
fn room(records: &[scan::Message], threads: usize) -> Vec<Vec<Link>> {
    let mut counts = vec![0; threads];
    for record in records {
        counts[record.sender as usize] += 1;
        counts[record.receiver as usize] += 1;
    }
    counts.into_iter().map(Vec::with_capacity).collect()
}

impl Thread {
    fn call(&self, at: usize) -> Option<&Visit> {
        self.calls.get(at).map(|visit| &self.visits[*visit as usize])
    }

    /// Whether it is known when a call began and ended, and what it is.
    fn is_whole(&self, visit: u32) -> bool {
        self.what(&self.visits[visit as usize]).value != 0
    }

    /// The places among calls of those that begin at a time.
    fn beginning(&self, time: i64) -> impl Iterator<Item = usize> {
        let first = self.calls.partition_point(|visit| self.visits[*visit as usize].begin < time);
        (first..self.calls.len()).take_while(move |at| self.call(*at).is_some_and(|call| call.begin == time))
    }

    /// The places among calls of those that end at a time.
    fn ending(&self, time: i64) -> impl Iterator<Item = usize> {
        let first = self.calls.partition_point(|visit| self.visits[*visit as usize].end < time);
        (first..self.calls.len()).take_while(move |at| self.call(*at).is_some_and(|call| call.end == time))
    }

    /// The call that sends a message: it begins then, or, where it starts a persistent request, is open then.
    fn sends(&self, [begin, left]: [i64; 2]) -> Option<u32> {
        let ends = |at: &usize| self.call(*at).is_some_and(|call| call.end == left);
        let found = self.beginning(begin).find(ends).or_else(|| self.beginning(begin).next());
        let at = found.or_else(|| {
            let after = self.calls.partition_point(|visit| self.visits[*visit as usize].begin <= begin);
            after.checked_sub(1).filter(|at| self.call(*at).is_some_and(|call| begin <= call.end))
        })?;
        Some(self.calls[at])
    }

    /// The call that receives a message, and the one that posted the receive if it is another one.
    fn receives(&self, [posted, arrived]: [i64; 2]) -> Option<(u32, Option<u32>)> {
        let begins = |at: &usize| self.call(*at).is_some_and(|call| call.begin == posted);
        if let Some(at) = self.ending(arrived).find(begins) {
            return Some((self.calls[at], None));
        }
        let received = self.ending(arrived).next()?;
        let post = self.ending(posted).next().or_else(|| self.beginning(posted).next());
        let post = post.filter(|at| *at < received).map(|at| self.calls[at]);
        Some((self.calls[received], post))
    }
}

/// Number of receiving calls in which no message ends.
fn without_message(thread: &Thread, links: &[Link]) -> u64 {
    let receives = |what: &What| what.kind == calls::POINT_TO_POINT && matches!(what.value, 2 | 192);
    let is_served = |at: u32| {
        let from = links.partition_point(|link| (link.visit, link.act) < (at, Act::Receive));
        links.get(from).is_some_and(|link| link.visit == at && link.act == Act::Receive)
    };
    let calls = thread.calls.iter().filter(|at| {
        let visit = &thread.visits[**at as usize];
        receives(thread.what(visit)) && !is_served(**at)
    });
    calls.count() as u64
}

/// Which calls complete non-blocking sends. Of those that complete one request, the oldest if no receive ends in them; of
/// those that complete all, all. A call in which no receive ends has something to complete: sends that the completing calls
/// right before it seemed to complete along with receives.
fn complete(thread: &Thread, links: &[Link], messages: &mut [Message]) -> Vec<Link> {
    let mut pending: VecDeque<u32> = VecDeque::new();
    let mut completions: Vec<Link> = Vec::new();
    // Completions from here on were along with receives, and can be those of the next call.
    let mut movable = 0;
    let mut rest = links;
    for &visit in &thread.calls {
        let before = rest.partition_point(|link| link.visit < visit);
        let own = rest[before..].partition_point(|link| link.visit == visit);
        let of_call = &rest[before..before + own];
        rest = &rest[before + own..];
        let receives = of_call.iter().any(|link| link.act == Act::Receive);
        let part = calls::part(thread.what(&thread.visits[visit as usize]).value.into());
        let count = match part {
            Part::CompletesOne if receives => continue,
            Part::CompletesOne => 1,
            Part::CompletesAll => usize::MAX,
            Part::Starts | Part::Other => {
                let sends = of_call.iter().filter(|link| link.act == Act::Send && part == Part::Starts);
                pending.extend(sends.map(|link| link.message));
                movable = completions.len();
                continue;
            }
        };
        if pending.is_empty() && !receives {
            let moved = count.min(completions.len() - movable);
            completions[movable..movable + moved].iter_mut().for_each(|completion| completion.visit = visit);
            movable += moved;
            continue;
        }
        for message in pending.drain(..count.min(pending.len())) {
            messages[message as usize].is_pending_send = true;
            completions.push(Link { visit, act: Act::Complete, message });
        }
        if !receives {
            movable = completions.len();
        }
    }
    completions
}
