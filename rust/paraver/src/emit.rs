//! The events of a thread, in the records of Score-P.

use std::iter::Peekable;

use whywait_otf2::enums::{CollectiveRoot, Paradigm, Type};
use whywait_otf2::records::TypedValue;
use whywait_otf2::{Attributes, Event, EventSink};

use crate::collectives::Operation;
use crate::lives::LifeLink;
use crate::messages::{Act, Link, Message};
use crate::openmp::{self, ALONE, PART};
use crate::pthreads::{self, LIFE};
use crate::records::Line;
use crate::states::Gap;
use crate::teams::LockLink;
use crate::thread::{NONE, Thread, Visit};

/// The team of a thread's process.
#[derive(Clone, Copy)]
pub(crate) struct Team {
    pub(crate) comm: u32,
    pub(crate) threads: u32,
    /// Whether the thread is the one that forks.
    pub(crate) forks: bool,
    /// The thread by itself, where nobody knows who is in its team.
    pub(crate) alone: u32,
}

/// A thread as its events are sent.
pub(crate) struct Emitter<'a> {
    pub(crate) thread: &'a Thread,
    /// Regions of the run for those of the thread.
    pub(crate) regions: &'a [u32],
    /// Whether each of these is the program's own, and not a call of a library.
    pub(crate) is_own: &'a [bool],
    /// Types of counters, by the number of the metric.
    pub(crate) counters: &'a [u32],
    pub(crate) operations: &'a [Option<Operation>],
    pub(crate) links: &'a [Link],
    pub(crate) messages: &'a [Message],
    pub(crate) locks: &'a [LockLink],
    /// The threads that it makes and awaits, and that it is.
    pub(crate) lives: &'a [LifeLink],
    /// The communicator of the threads of its process that others make.
    pub(crate) made: u32,
    pub(crate) team: Option<Team>,
}

/// What is left to send.
struct Rest<'a> {
    links: &'a [Link],
    gaps: Peekable<Box<dyn Iterator<Item = Gap> + 'a>>,
    samples: Peekable<Box<dyn Iterator<Item = Line<'a>> + 'a>>,
    /// Up to when all is sent.
    since: i64,
}

fn record(sink: &mut dyn EventSink, time: i64, record: &Event<'_>) {
    sink.record(time, record, &Attributes::NONE);
}

impl Emitter<'_> {
    /// Sends all events.
    pub(crate) fn send(&self, sink: &mut dyn EventSink) {
        let thread = self.thread;
        let first = thread.visits.first().map_or(0, |visit| visit.begin);
        let gaps: Box<dyn Iterator<Item = Gap>> = Box::new(thread.gaps.iter());
        let samples: Box<dyn Iterator<Item = Line<'_>>> = Box::new(thread.samples.lines());
        let mut rest = Rest { links: self.links, gaps: gaps.peekable(), samples: samples.peekable(), since: first };
        let mut ends: Vec<(u32, &[Link])> = Vec::new();
        for (at, visit) in (0..).zip(&thread.visits) {
            for (open, links) in ends.drain(visit.depth as usize..).rev() {
                self.leave(open, links, &mut rest, sink);
            }
            self.between(visit.begin, ends.last().map(|(open, _)| *open), &mut rest, sink);
            if let Some(team) = self.team(visit) {
                let Team { comm: thread_team, threads: number_of_requested_threads, forks, .. } = team;
                if forks {
                    let model = Paradigm::OPENMP;
                    record(sink, visit.begin, &Event::ThreadFork { model, number_of_requested_threads });
                }
                record(sink, visit.begin, &Event::ThreadTeamBegin { thread_team });
            }
            let what = thread.what(visit);
            if let Some((thread_contingent, sequence_count)) = self.life(at).filter(|_| what.kind == LIFE) {
                record(sink, visit.begin, &Event::ThreadBegin { thread_contingent, sequence_count });
            }
            for caller in &what.callers {
                sink.enter(visit.begin, self.region(*caller));
            }
            sink.enter(visit.begin, self.region(what.region));
            if let Some((thread_contingent, sequence_count)) = self.life(at).filter(|_| what.makes_thread()) {
                record(sink, visit.begin, &Event::ThreadCreate { thread_contingent, sequence_count });
            }
            self.lock(at, visit, true, sink);
            let before = rest.links.partition_point(|link| link.visit < at);
            let own = rest.links[before..].partition_point(|link| link.visit == at);
            let links = &rest.links[before..before + own];
            rest.links = &rest.links[before + own..];
            if self.operation(at).is_some() {
                record(sink, visit.begin, &Event::MpiCollectiveBegin {});
            }
            let sends = links.partition_point(|link| link.act == Act::Send);
            for link in &links[..sends] {
                self.link(link, visit.begin, sink);
            }
            ends.push((at, &links[sends..]));
        }
        while let Some((open, links)) = ends.pop() {
            self.leave(open, links, &mut rest, sink);
        }
    }

    fn region(&self, region: u32) -> u32 {
        self.regions.get(region as usize).copied().unwrap_or(NONE)
    }

    fn leave(&self, visit: u32, links: &[Link], rest: &mut Rest<'_>, sink: &mut dyn EventSink) {
        let at = visit;
        let visit = &self.thread.visits[at as usize];
        self.between(visit.end, Some(at), rest, sink);
        for link in links {
            self.link(link, visit.end, sink);
        }
        if let Some((operation, collective)) = self.operation(at) {
            let Operation { comm: communicator, kind: collective_op, root } = operation;
            let root = root.unwrap_or(CollectiveRoot::NONE.0);
            let known = &self.thread.collectives[collective];
            let [size_sent, size_received] = [known.sent, known.received].map(|size| size.max(0).cast_unsigned());
            let event = Event::MpiCollectiveEnd { collective_op, communicator, root, size_sent, size_received };
            record(sink, visit.end, &event);
        }
        self.lock(at, visit, false, sink);
        let what = self.thread.what(visit);
        let life = self.life(at).filter(|_| !what.makes_thread());
        if let Some((thread_contingent, sequence_count)) = life.filter(|_| what.kind != LIFE) {
            record(sink, visit.end, &Event::ThreadWait { thread_contingent, sequence_count });
        }
        sink.leave(visit.end, self.region(what.region));
        for caller in what.callers.iter().rev() {
            sink.leave(visit.end, self.region(*caller));
        }
        if let Some((thread_contingent, sequence_count)) = life.filter(|_| what.kind == LIFE) {
            record(sink, visit.end, &Event::ThreadEnd { thread_contingent, sequence_count });
        }
        if let Some(Team { comm: thread_team, forks, .. }) = self.team(visit) {
            record(sink, visit.end, &Event::ThreadTeamEnd { thread_team });
            if forks {
                record(sink, visit.end, &Event::ThreadJoin { model: Paradigm::OPENMP });
            }
        }
    }

    /// The team whose region a visit is.
    fn team(&self, visit: &Visit) -> Option<Team> {
        let team = self.team?;
        match self.thread.what(visit).kind {
            ALONE => Some(Team { comm: team.alone, threads: 1, forks: true, ..team }),
            PART if !team.forks => Some(team),
            kind if openmp::is_parallel(kind) && team.forks => Some(team),
            _ => None,
        }
    }

    /// Sends what a visit does with a lock: it gives it back at its begin, or has it at its end.
    fn lock(&self, at: u32, visit: &Visit, is_release: bool, sink: &mut dyn EventSink) {
        let model = match self.thread.what(visit).kind {
            pthreads::CALLS => Paradigm::PTHREAD,
            kind if openmp::is_lock(kind) => Paradigm::OPENMP,
            _ => return,
        };
        let from = self.locks.partition_point(|link| (link.visit, link.is_release) < (at, is_release));
        let link = self.locks.get(from).filter(|link| (link.visit, link.is_release) == (at, is_release));
        let Some(&LockLink { lock: lock_id, order: acquisition_order, .. }) = link else { return };
        if is_release {
            record(sink, visit.begin, &Event::ThreadReleaseLock { model, lock_id, acquisition_order });
        } else {
            record(sink, visit.end, &Event::ThreadAcquireLock { model, lock_id, acquisition_order });
        }
    }

    /// The thread that a visit makes, awaits, or is: its communicator, and its number there.
    fn life(&self, visit: u32) -> Option<(u32, u64)> {
        let at = self.lives.binary_search_by_key(&visit, |link| link.visit).ok()?;
        Some((self.made, self.lives[at].thread))
    }

    /// Sends samples up to a time, and what the thread does besides running in a region of its own.
    fn between(&self, until: i64, around: Option<u32>, rest: &mut Rest<'_>, sink: &mut dyn EventSink) {
        let visit = around.map(|visit| &self.thread.visits[visit as usize]);
        let is_own = visit.is_some_and(|visit| self.is_own[self.thread.what(visit).region as usize]);
        while let Some(gap) = rest.gaps.peek().copied().filter(|gap| gap.begin < until) {
            let (begin, end) = (gap.begin.max(rest.since), gap.end.min(until));
            if is_own && begin < end {
                self.samples(begin, rest, sink);
                sink.enter(begin, self.region(gap.region));
                self.samples(end, rest, sink);
                sink.leave(end, self.region(gap.region));
            }
            if gap.end > until {
                break;
            }
            rest.gaps.next();
        }
        self.samples(until, rest, sink);
        rest.since = until;
    }

    fn samples(&self, until: i64, rest: &mut Rest<'_>, sink: &mut dyn EventSink) {
        while let Some(line) = rest.samples.next_if(|line| line.time <= until) {
            for (kind, value) in line.pairs() {
                if let Ok(metric) = self.counters.binary_search(&kind) {
                    let value = TypedValue { kind: Type::UINT64, bits: value.cast_unsigned() };
                    sink.metric(line.time.max(rest.since), metric as u32, &[value]);
                }
            }
        }
    }

    /// The operation of a visit, and where the call is among collective ones.
    fn operation(&self, visit: u32) -> Option<(Operation, usize)> {
        let at = self.thread.collectives.binary_search_by_key(&visit, |call| call.visit).ok()?;
        Some(((*self.operations.get(at)?)?, at))
    }

    fn link(&self, link: &Link, time: i64, sink: &mut dyn EventSink) {
        let message = &self.messages[link.message as usize];
        let Message { comm: communicator, sender, receiver, size: msg_length, tag: msg_tag, .. } = *message;
        // The two ends of a message can be in one process.
        let [sent, received] = [0, 1].map(|end| 2 * u64::from(link.message) + end);
        let event = match link.act {
            Act::Send if message.is_pending_send => {
                Event::MpiIsend { receiver, communicator, msg_tag, msg_length, request_id: sent }
            }
            Act::Send => Event::MpiSend { receiver, communicator, msg_tag, msg_length },
            Act::Post => Event::MpiIrecvRequest { request_id: received },
            Act::Receive if message.is_pending_receive => {
                Event::MpiIrecv { sender, communicator, msg_tag, msg_length, request_id: received }
            }
            Act::Receive => Event::MpiRecv { sender, communicator, msg_tag, msg_length },
            Act::Complete => Event::MpiIsendComplete { request_id: sent },
        };
        record(sink, time, &event);
    }
}
