//! The queues of receivers: unexpected messages, posted receives, and overtaking.

use super::arrival::Estimate;
use super::attempts::Queued;
use super::channels::{Channels, Found, Step, search};
use super::in_flight::{self, Slices};
use super::levels::{Change, Course, Detail, Level, Quantity, size, sort_by_time};
use super::message::{Message, calls, posted};
use super::options::Lists;
use super::polling::Looks;
use super::proven::{Seen, proven};
use super::senders::Alike;
use super::sums::{Counts, Sums};
use crate::ids::{CallPathId, LocationId, ProcessId};
use crate::matching::protocol::Limits;
use crate::parallel::exchange::Outbox;
use crate::schema::QueueMetric;
use crate::severity::volume;
use crate::trace::columns::Received;
use crate::trace::{Shard, Trace};

/// The results for the messages of a shard's receivers.
pub(super) struct Replayed {
    pub(super) counts: Counts,
    /// Sums at senders, and match attempts of queues that are not in order.
    pub(super) sums: Sums,
    pub(super) levels: Vec<Level>,
    /// Received messages of processes that send on several threads: rows of sends, by their shard.
    pub(super) matched: Outbox<u32>,
    /// Changes of the bytes in flight, for the level of the whole run.
    pub(super) in_flight: Outbox<in_flight::Step>,
}

/// A message with its receive.
pub(super) struct Met<'a> {
    pub(super) message: &'a Message,
    receive: &'a Received,
    /// Call path and time (q) of the call that posts the receive.
    pub(super) callpath: CallPathId,
    pub(super) posted: i64,
    /// When the message arrives (a).
    arrival: i64,
    /// When its receive is complete (d).
    completed: i64,
    is_eager: bool,
}

/// The messages of a shard's receivers.
#[derive(Clone, Copy)]
pub(super) struct Receivers<'a> {
    pub(super) trace: &'a Trace,
    pub(super) shard: &'a Shard,
    pub(super) messages: &'a [Option<Message>],
    pub(super) limits: Limits,
    pub(super) arrivals: Arrivals<'a>,
}

/// What tells when messages arrive.
#[derive(Clone, Copy)]
pub(super) enum Arrivals<'a> {
    /// They do as soon as they are sent.
    Sent,
    /// A typical transfer.
    Estimated(&'a Estimate),
    /// The calls in which their receiver looks for them: whether those of each call path do.
    Seen(&'a [bool]),
}

impl<'a> Receivers<'a> {
    /// When a process looks for messages, if that tells when they arrive.
    pub(super) fn looks(&self, process: ProcessId) -> Option<Looks> {
        match self.arrivals {
            Arrivals::Seen(looking) => Some(Looks::new(self.trace, self.shard, process, looking)),
            Arrivals::Sent | Arrivals::Estimated(_) => None,
        }
    }

    /// Visits the messages of the i-th location in order of their receives; `looks` is that of its process.
    #[inline]
    pub(super) fn each(&self, i: usize, looks: Option<&Looks>, mut take: impl FnMut(&Met<'a>)) {
        let Self { trace, shard, messages, limits, arrivals } = *self;
        let estimate = match arrivals {
            Arrivals::Estimated(estimate) => Some(estimate),
            Arrivals::Sent | Arrivals::Seen(_) => None,
        };
        let mut latest = None;
        for (call, rows) in calls(shard, i) {
            let completed = shard.leave(call);
            let least = estimate
                .and_then(|estimate| estimate.of_call((trace, shard), call, &messages[rows.clone()], &mut latest));
            for (row, request) in posted(shard, rows) {
                let Some(message) = &messages[row] else { continue };
                let is_eager = message.is_eager(limits);
                let transfer = estimate.map_or(0, |estimate| estimate.of_message(message, is_eager, least));
                let there = message.sent + transfer;
                take(&Met {
                    message,
                    receive: &shard.receives.rows[row],
                    callpath: shard.callpath(request),
                    posted: shard.enter(request),
                    arrival: looks.map_or(there, |looks| looks.after(there)).min(completed),
                    completed,
                    is_eager,
                });
            }
        }
    }

    /// Replays the queues of all processes.
    pub(super) fn replay(&self, lists: Lists, detail: Detail) -> Replayed {
        let Self { trace, shard, limits, .. } = *self;
        let mut replayed = Replayed {
            counts: Counts::new(&trace.tree),
            sums: Sums::default(),
            levels: Vec::new(),
            matched: trace.exchange.outbox(),
            in_flight: trace.exchange.outbox(),
        };
        let Some(run) = trace.span() else { return replayed };
        let slices = Slices::new(run, &trace.exchange);
        let mut channels: Channels<Alike> = Channels::new(trace.definitions.processes.len());
        let mut courses = Courses::default();
        for process in shard.processes {
            let locations = shard.local_locations(trace.definitions.processes[process].locations);
            let looks = self.looks(process);
            courses.reserve(locations.clone().map(|i| shard.receives.range(i).len()).sum());
            for i in locations.clone() {
                self.each(i, looks.as_ref(), |met| {
                    let Met { message, receive, arrival, posted, .. } = *met;
                    count(met, |metric, value| replayed.counts.add(metric, met.callpath, value));
                    courses.take(met);
                    let number = channels.number(receive.peer, receive.comm);
                    let channel = channels.get(number);
                    channel.take(Step { sent: (message.sent, message.row), arrival, posted });
                    channel.kept.take(message, &mut replayed.sums, limits);
                    if trace.definitions.processes[receive.peer].locations.len() > 1 {
                        replayed.matched.push(trace.shard_of[message.location], message.row);
                    }
                });
                replayed.counts.end_location(shard.location(i));
            }
            if !channels.are_in_order(lists) {
                let (mut queued, mut seen) = (Vec::new(), Vec::new());
                for i in locations {
                    self.each(i, looks.as_ref(), |met| {
                        let number = channels.number(met.receive.peer, met.receive.comm);
                        if !channels.is_in_order(number, lists) {
                            queued.push(self::queued(met, shard.location(i)));
                            seen.push(self::seen(met, shard.location(i)));
                        }
                    });
                }
                // Of messages in order, none is posted after a later one.
                proven(&mut seen, |message| replayed.sums.add(QueueMetric::UnexpectedAtLeast, message.place, 1));
                search(&mut queued, lists, |message, found| match found {
                    Found::Overtaken => replayed.sums.add(QueueMetric::Overtaken, message.place, 1),
                    Found::Comparisons(number) => {
                        replayed.sums.add(QueueMetric::MatchAttempts, message.place, number.into());
                    }
                });
            }
            channels
                .drain()
                .for_each(|alike| alike.book(limits, |metric, place, value| replayed.sums.add(metric, place, value)));
            courses.sort();
            let location = trace.definitions.master(process);
            courses.levels(location, run, detail, &mut replayed.levels);
            slices.post(&courses.steps, &mut replayed.in_flight);
            courses.clear();
        }
        replayed
    }
}

/// Counts a message where its receive is posted, with the comparison with its partner.
#[inline]
pub(super) fn count(met: &Met, mut add: impl FnMut(QueueMetric, i64)) {
    let Met { message, posted, arrival, is_eager, .. } = *met;
    add(QueueMetric::MatchAttempts, 1);
    if message.sent < posted {
        add(QueueMetric::UnexpectedPossible, 1);
    }
    if arrival < posted {
        add(QueueMetric::Unexpected, 1);
        add(QueueMetric::UnexpectedTime, posted - arrival);
        if is_eager {
            add(QueueMetric::UnexpectedBytes, volume(message.bytes));
        }
    } else {
        add(QueueMetric::PostedTime, arrival - posted);
    }
}

/// The properties of a message that its queue needs.
pub(super) fn queued(met: &Met, location: LocationId) -> Queued {
    Queued {
        source: met.receive.peer,
        comm: met.receive.comm,
        sent: (met.message.sent, met.message.row),
        arrival: met.arrival,
        posted: met.posted,
        number: 0,
        place: (met.callpath, location),
    }
}

/// The properties of a message that tell whether it was certainly unexpected.
pub(super) fn seen(met: &Met, location: LocationId) -> Seen {
    Seen {
        channel: (met.receive.peer, met.receive.comm),
        sent: (met.message.sent, met.message.row),
        thread: met.message.location,
        returned: met.message.returned,
        posted: met.posted,
        completed: met.completed,
        place: (met.callpath, location),
    }
}

/// Times at which items enter and leave a queue.
#[derive(Default)]
struct Times {
    rises: Vec<Change>,
    falls: Vec<Change>,
}

impl Times {
    #[inline]
    fn stays(&mut self, from: i64, to: i64, by: u64) {
        self.rises.push((from, by));
        self.falls.push((to, by));
    }

    /// The same, if nobody asks how many there are: what goes at one time makes one change.
    #[inline]
    fn lasts(&mut self, from: i64, to: i64, by: u64) {
        self.rises.push((from, by));
        match self.falls.last_mut() {
            Some((time, sum)) if *time == to => *sum = sum.saturating_add(by),
            _ => self.falls.push((to, by)),
        }
    }

    fn sort(&mut self) {
        sort_by_time(&mut self.rises, |change| change.0);
        sort_by_time(&mut self.falls, |change| change.0);
    }

    /// Passes all changes in order of time to `take`, with their sign.
    fn each(&self, mut take: impl FnMut(i64, i64, u64)) {
        let mut falls = self.falls.iter().peekable();
        for &(time, by) in &self.rises {
            while let Some(&(time, by)) = falls.next_if(|fall| fall.0 <= time) {
                take(time, -1, by);
            }
            take(time, 1, by);
        }
        falls.for_each(|&(time, by)| take(time, -1, by));
    }

    fn clear(&mut self) {
        self.rises.clear();
        self.falls.clear();
    }
}

/// The queues of a process, and the messages in flight to it.
#[derive(Default)]
struct Courses {
    /// Unexpected messages with the bytes of eager ones, and whether there are any of these.
    unexpected: Times,
    has_data: bool,
    posted: Times,
    in_flight: Times,
    /// What is on the way, step by step.
    steps: Vec<in_flight::Step>,
}

impl Courses {
    /// Makes room for this many messages.
    fn reserve(&mut self, messages: usize) {
        for times in [&mut self.unexpected, &mut self.posted, &mut self.in_flight] {
            times.rises.reserve(messages);
            times.falls.reserve(messages);
        }
    }

    #[inline]
    fn take(&mut self, met: &Met) {
        let Met { message, posted, arrival, completed, is_eager, .. } = *met;
        if arrival < posted {
            self.unexpected.stays(arrival, posted, if is_eager { message.bytes } else { 0 });
            self.has_data |= is_eager;
        } else if posted < arrival {
            self.posted.lasts(posted, arrival, 1);
        }
        if message.sent < completed {
            self.in_flight.lasts(message.sent, completed, message.bytes);
        }
    }

    fn sort(&mut self) {
        self.unexpected.sort();
        self.posted.sort();
        self.in_flight.sort();
    }

    /// Appends the levels.
    fn levels(&mut self, location: LocationId, run: (i64, i64), detail: Detail, levels: &mut Vec<Level>) {
        let course = |quantity| Course::new(quantity, location, run, detail, (run.0, 0));
        if !self.unexpected.rises.is_empty() {
            let (mut messages, mut data) = (course(Quantity::Unexpected), course(Quantity::UnexpectedData));
            self.unexpected.each(|time, one, bytes| {
                messages.change(time, one);
                data.change(time, one * size(bytes));
            });
            levels.push(messages.end(run.1));
            levels.extend(self.has_data.then(|| data.end(run.1)));
        }
        if !self.posted.rises.is_empty() {
            let mut requests = course(Quantity::Posted);
            self.posted.each(|time, one, by| requests.change(time, one * size(by)));
            levels.push(requests.end(run.1));
        }
        if !self.in_flight.rises.is_empty() {
            let mut bytes = course(Quantity::InFlight);
            self.in_flight.each(|time, one, by| in_flight::Step::add(&mut self.steps, time, one * size(by)));
            self.steps.iter().for_each(|step| bytes.change(step.time, step.by));
            levels.push(bytes.end(run.1));
        }
    }

    fn clear(&mut self) {
        self.unexpected.clear();
        self.posted.clear();
        self.in_flight.clear();
        self.steps.clear();
        self.has_data = false;
    }
}
