//! Messages: by which calls they are sent, posted, received, and completed.

use std::collections::VecDeque;
use std::ops::Range;

use rustc_hash::FxHashMap;

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
        let mut ends = Ends::new(&records, threads).into_iter();
        records.retain(|record| {
            let ends = ends.next().unwrap_or_default();
            messages.add(record, ends, threads, (&*processes, &mut *comms))
        });
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
    fn add(
        &mut self,
        record: &scan::Message,
        ends: Ends,
        threads: &[Thread],
        (processes, comms): (&Processes, &mut Comms),
    ) -> bool {
        let [from, to] = [record.sender, record.receiver].map(|thread| processes.of_threads[thread as usize]);
        let application = processes.list[from as usize].application;
        if application != processes.list[to as usize].application {
            self.odd.foreign += 1;
            return false;
        }
        let (sender, receiver) = (&threads[record.sender as usize], &threads[record.receiver as usize]);
        let Ends { sending, received, posted } = ends;
        let (Some(sending), Some(received)) = (sending, received) else {
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
    fn beginning(&self, time: i64) -> Range<usize> {
        self.at(time, |call| call.begin)
    }

    /// The places among calls of those that end at a time.
    fn ending(&self, time: i64) -> Range<usize> {
        self.at(time, |call| call.end)
    }

    fn at(&self, time: i64, of: impl Fn(&Visit) -> i64) -> Range<usize> {
        let of = |visit: &u32| of(&self.visits[*visit as usize]);
        let first = self.calls.partition_point(|visit| of(visit) < time);
        first..first + self.calls[first..].partition_point(|visit| of(visit) <= time)
    }

    /// Which of some calls takes a message: the first one that can, and has not taken as many as it can. `other` is the
    /// other time of these calls, if it is known.
    fn takes(&self, calls: Range<usize>, other: Option<i64>, role: Role, taken: &mut Taken) -> Option<usize> {
        let share = |at: usize| role.share(self.what(&self.visits[self.calls[at] as usize]).value);
        let is_it = |at: &usize| {
            let has_time = |call: &Visit| other.is_none_or(|time| role.other(call) == time);
            self.call(*at).is_some_and(has_time) && share(*at) != Share::None
        };
        if calls.len() < 2 {
            return calls.into_iter().find(is_it);
        }
        let from = taken.entry((role, calls.start, other)).or_insert(calls.start);
        let found = (*from..calls.end).find(is_it)?;
        *from = found + usize::from(share(found) == Share::One);
        Some(found)
    }

    /// The call that sends a message: it begins then, or, where it starts a persistent request, is open then.
    fn sends(&self, [begin, left]: [i64; 2], taken: &mut Taken) -> Option<u32> {
        let begun = self.beginning(begin);
        let found = self.takes(begun.clone(), Some(left), Role::Send, taken);
        let found = found.or_else(|| begun.clone().find(|at| self.call(*at).is_some_and(|call| call.end == left)));
        let at = found.or_else(|| begun.clone().next()).or_else(|| {
            let before = begun.end.checked_sub(1);
            before.filter(|at| self.call(*at).is_some_and(|call| begin <= call.end))
        })?;
        Some(self.calls[at])
    }

    /// The call that receives a message, and the one that posted the receive if it is another one.
    fn receives(&self, [posted, arrived]: [i64; 2], taken: &mut Taken) -> Option<(u32, Option<u32>)> {
        let ended = self.ending(arrived);
        if let Some(at) = self.takes(ended.clone(), Some(posted), Role::Receive, taken) {
            return Some((self.calls[at], None));
        }
        let completing = self.takes(ended.clone(), None, Role::Complete, taken);
        let begins = |at: &usize| self.call(*at).is_some_and(|call| call.begin == posted);
        if let (None, Some(at)) = (completing, ended.clone().find(begins)) {
            return Some((self.calls[at], None));
        }
        let received = completing.or_else(|| ended.clone().next())?;
        let posting = self.ending(posted);
        let post = self.takes(posting.clone(), None, Role::Post, taken);
        let post = post.or_else(|| posting.clone().next()).or_else(|| self.beginning(posted).next());
        let post = post.filter(|at| *at < received).map(|at| self.calls[at]);
        Some((self.calls[received], post))
    }
}

/// What a call can do with messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Role {
    Send,
    /// From the post to the end.
    Receive,
    Post,
    /// It completes what another call posted.
    Complete,
}

/// With how many messages a call can do that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Share {
    None,
    One,
    Many,
}

impl Role {
    fn share(self, value: i32) -> Share {
        match (self, value) {
            (Self::Send, 1 | 3 | 33..=38 | 41 | 42 | 123)
            | (Self::Receive, 2 | 41 | 42 | 192)
            | (Self::Post, 4 | 123 | 193)
            | (Self::Complete, 5 | 39 | 59 | 126) => Share::One,
            // What is not whole can be anything.
            (_, 0) | (Self::Send | Self::Post, 124) | (Self::Complete, 6 | 60 | 125 | 128) => Share::Many,
            _ => Share::None,
        }
    }

    /// The time of a call by which it was not found.
    fn other(self, call: &Visit) -> i64 {
        if self == Self::Send { call.end } else { call.begin }
    }
}

/// From which call on those of one time, by the first of them and their other time, can take a message.
type Taken = FxHashMap<(Role, usize, Option<i64>), usize>;

/// The calls of a message.
#[derive(Debug, Clone, Copy, Default)]
struct Ends {
    sending: Option<u32>,
    received: Option<u32>,
    /// The call that posted the receive, if it is another one.
    posted: Option<u32>,
}

impl Ends {
    /// Those of all messages. Several calls of a thread can have the same times where ticks are long: then those that
    /// send, and those that were posted, first take what comes first.
    fn new(records: &[scan::Message], threads: &[Thread]) -> Vec<Self> {
        let mut found = vec![Self::default(); records.len()];
        let mut taken: Vec<Taken> = vec![Taken::default(); threads.len()];
        for (record, ends) in records.iter().zip(&mut found) {
            let sender = record.sender as usize;
            ends.sending = threads[sender].sends(record.sent, &mut taken[sender]);
        }
        let mut order: Vec<u32> = (0..records.len() as u32).collect();
        order.sort_by_key(|at| {
            let record = &records[*at as usize];
            (record.receiver, record.received[1], record.received[0])
        });
        for at in order {
            let record = &records[at as usize];
            let receiver = record.receiver as usize;
            if let Some((received, posted)) = threads[receiver].receives(record.received, &mut taken[receiver]) {
                (found[at as usize].received, found[at as usize].posted) = (Some(received), posted);
            }
        }
        found
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
