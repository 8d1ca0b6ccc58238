//! The events of a location.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use whywait_otf2::enums::{CollectiveOp, CollectiveRoot, Paradigm, Type};
use whywait_otf2::records::TypedValue;
use whywait_otf2::{AttributeValue, Attributes, Event, EventSink};

use crate::NONE;
use crate::definitions::{CORRELATION, EVENT, LAUNCH_PATH, SAMPLER, STEP, STREAM, location};
use crate::kinds::{Flow, Kind};
use crate::matching::{Message, Operation};
use crate::members::Member;
use crate::rank::{Memory, Rank, Stream, Work};
use crate::teams::Task;
use crate::thread::{Detail, Sample, Thread, Visit};

/// A rank as its events are sent.
pub(crate) struct Emitter<'a> {
    pub(crate) place: usize,
    pub(crate) rank: &'a Rank,
    /// Regions and call paths of the run for those of the rank.
    pub(crate) regions: &'a [u32],
    pub(crate) contexts: &'a [u32],
    /// The communicator of its first team.
    pub(crate) first_team: u32,
    /// The devices whose memory is known, by the number of the metric.
    pub(crate) memories: &'a [Option<i64>],
    /// Operations and messages of the rank's members.
    pub(crate) operations: &'a [Option<Operation>],
    pub(crate) messages: &'a [(u32, Message)],
}

/// How long a thread had no core up to a time that only grows.
struct Off<'a> {
    ahead: &'a [(i64, i64)],
    /// The sum of those before.
    before: i64,
    /// Whether it is recorded.
    is_known: bool,
}

impl Off<'_> {
    fn until(&mut self, time: i64) -> u64 {
        while let Some(((begin, end), rest)) = self.ahead.split_first().filter(|((_, end), _)| *end <= time) {
            self.before += end - begin;
            self.ahead = rest;
        }
        let within = self.ahead.first().map_or(0, |(begin, _)| (time - begin).max(0));
        (self.before + within).cast_unsigned()
    }
}

/// Attributes of one event: no more than there are.
struct List {
    values: [AttributeValue; 4],
    count: usize,
}

impl List {
    const fn new() -> Self {
        let none = AttributeValue { id: 0, value: TypedValue { kind: Type::NONE, bits: 0 } };
        Self { values: [none; 4], count: 0 }
    }

    fn add(&mut self, id: u32, kind: Type, bits: u64) {
        self.values[self.count] = AttributeValue { id, value: TypedValue { kind, bits } };
        self.count += 1;
    }

    fn send(&self, sink: &mut dyn EventSink) {
        if self.count > 0 {
            sink.attributed(&Attributes::new(&self.values[..self.count]));
        }
    }
}

fn record(sink: &mut dyn EventSink, time: i64, record: &Event<'_>) {
    sink.record(time, record, &Attributes::NONE);
}

fn records(records: &[Event<'_>], time: i64, sink: &mut dyn EventSink) {
    for each in records {
        record(sink, time, each);
    }
}

impl Emitter<'_> {
    fn region(&self, region: u32) -> u32 {
        self.regions.get(region as usize).copied().unwrap_or(NONE)
    }

    /// Sends the events of the thread at a place, with samples of memory.
    pub(crate) fn thread(&self, at: usize, thread: &Thread, samples: &[Memory], sink: &mut dyn EventSink) {
        let mut open: Vec<&Visit> = Vec::new();
        let mut memory = samples.iter().copied();
        let mut seen = thread.samples.as_slice();
        let mut off = Off { ahead: &thread.off, before: 0, is_known: !thread.off.is_empty() };
        for visit in &thread.visits {
            while let Some(ended) = open.pop_if(|open| open.end <= visit.begin) {
                self.memory(&mut memory, ended.end, sink);
                self.samples(&mut seen, ended.end, sink);
                self.off(&mut off, ended.end, sink);
                self.leave(at, ended, &open, sink);
            }
            self.memory(&mut memory, visit.begin, sink);
            self.samples(&mut seen, visit.begin, sink);
            self.off(&mut off, visit.begin, sink);
            self.enter(at, visit, sink);
            open.push(visit);
        }
        while let Some(ended) = open.pop() {
            self.memory(&mut memory, ended.end, sink);
            self.samples(&mut seen, ended.end, sink);
            self.off(&mut off, ended.end, sink);
            self.leave(at, ended, &open, sink);
        }
        self.memory(&mut memory, i64::MAX, sink);
        self.samples(&mut seen, i64::MAX, sink);
    }

    /// Sends how long a thread had no core up to the time of an event.
    fn off(&self, off: &mut Off<'_>, time: i64, sink: &mut dyn EventSink) {
        if off.is_known {
            let values = [TypedValue { kind: Type::UINT64, bits: off.until(time) }];
            sink.metric(time, self.memories.len() as u32, &values);
        }
    }

    /// Sends samples of call paths up to a time.
    fn samples(&self, ahead: &mut &[Sample], until: i64, sink: &mut dyn EventSink) {
        while let Some((sample, rest)) = ahead.split_first().filter(|(sample, _)| sample.time < until) {
            *ahead = rest;
            if let Some(calling_context) = self.contexts.get(sample.context as usize).copied() {
                let (unwind_distance, interrupt_generator) = (0, SAMPLER);
                let event = Event::CallingContextSample { calling_context, unwind_distance, interrupt_generator };
                record(sink, sample.time, &event);
            }
        }
    }

    /// Sends samples of memory up to a time.
    fn memory(&self, samples: &mut (impl Iterator<Item = Memory> + Clone), until: i64, sink: &mut dyn EventSink) {
        loop {
            let mut ahead = samples.clone();
            let Some(sample) = ahead.next().filter(|sample| sample.time <= until) else { return };
            *samples = ahead;
            if let Some(metric) = self.memories.iter().position(|device| *device == sample.device) {
                let values = [sample.allocated, sample.reserved].map(|bits| TypedValue { kind: Type::UINT64, bits });
                sink.metric(sample.time, metric as u32, &values);
            }
        }
    }

    /// Leaves a visit of the thread at a place; `open` are those around it.
    fn leave(&self, at: usize, visit: &Visit, open: &[&Visit], sink: &mut dyn EventSink) {
        match visit.detail {
            Detail::Operation(member) if !self.is_pending(member) => self.receive(member, visit.end, sink),
            Detail::Call(call) => records(self.rank.calls.records(call).1, visit.end, sink),
            Detail::Wait(member) => {
                self.complete(member, visit.end, sink);
                self.receive(member, visit.end, sink);
            }
            _ => {}
        }
        sink.leave(visit.end, self.region(visit.region));
        match visit.detail {
            Detail::Team(team) => {
                record(sink, visit.end, &Event::ThreadTeamEnd { thread_team: self.first_team + team });
                if self.forks(at, team) {
                    record(sink, visit.end, &Event::ThreadJoin { model: Paradigm::OPENMP });
                }
            }
            Detail::Task(task) => {
                let (thread_team, creating_thread, generation_number) = self.task(task);
                let ended = Event::ThreadTaskComplete { thread_team, creating_thread, generation_number };
                record(sink, visit.end, &ended);
                // The task in which it ran goes on.
                let is_boundary = |visit: &&&Visit| matches!(visit.detail, Detail::Task(_) | Detail::Team(_));
                let around = open.iter().rev().find(is_boundary);
                if let Some(Detail::Task(task)) = around.map(|visit| visit.detail) {
                    self.switch_to(task, visit.end, sink);
                }
            }
            _ => {}
        }
    }

    /// Whether the thread at a place forks a team.
    fn forks(&self, at: usize, team: u32) -> bool {
        let team = self.rank.teams.get(team as usize);
        team.and_then(|team| team.threads.first()).is_some_and(|first| *first as usize == at)
    }

    /// A task as records name it.
    fn task(&self, task: u32) -> (u32, u32, u32) {
        let Task { team, creator, number } = self.rank.tasks[task as usize];
        (self.first_team + team, creator, number)
    }

    fn switch_to(&self, task: u32, time: i64, sink: &mut dyn EventSink) {
        let (thread_team, creating_thread, generation_number) = self.task(task);
        record(sink, time, &Event::ThreadTaskSwitch { thread_team, creating_thread, generation_number });
    }

    /// Enters a visit of the thread at a place.
    fn enter(&self, at: usize, visit: &Visit, sink: &mut dyn EventSink) {
        let (time, region) = (visit.begin, self.region(visit.region));
        match visit.detail {
            Detail::None | Detail::Wait(_) => sink.enter(time, region),
            Detail::Team(team) => {
                if self.forks(at, team) {
                    let threads = self.rank.teams[team as usize].threads.len();
                    let (model, number_of_requested_threads) = (Paradigm::OPENMP, threads as u32);
                    record(sink, time, &Event::ThreadFork { model, number_of_requested_threads });
                }
                record(sink, time, &Event::ThreadTeamBegin { thread_team: self.first_team + team });
                sink.enter(time, region);
            }
            Detail::Task(task) => {
                self.switch_to(task, time, sink);
                sink.enter(time, region);
            }
            Detail::Creation(task) => {
                sink.enter(time, region);
                let (thread_team, creating_thread, generation_number) = self.task(task);
                let created = Event::ThreadTaskCreate { thread_team, creating_thread, generation_number };
                record(sink, time, &created);
            }
            Detail::Call(call) => {
                sink.enter(time, region);
                records(self.rank.calls.records(call).0, time, sink);
            }
            Detail::Operation(member) => {
                sink.enter(time, region);
                if self.operation(member).is_some() {
                    record(sink, time, &Event::NonBlockingCollectiveRequest { request_id: member.into() });
                }
                self.send(member, time, sink);
            }
            Detail::Correlation(number) => {
                let number = number.get();
                let mut list = List::new();
                list.add(CORRELATION, Type::UINT64, number);
                if let Some(awaits) = self.rank.syncs.get(&number) {
                    let is_named = |stream: &Stream| Some((stream.device, stream.number)) == awaits.stream;
                    if let Some(at) = self.rank.streams.iter().position(is_named) {
                        list.add(STREAM, Type::UINT64, location(self.place, self.rank.threads.len() + at));
                    }
                    if let Some(event) = awaits.event {
                        list.add(EVENT, Type::UINT64, event);
                    }
                }
                list.send(sink);
                sink.enter(time, region);
            }
            Detail::Step(number) => {
                sink.enter(time, region);
                let value = number.get().cast_signed();
                record(sink, time, &Event::ParameterInt { parameter: STEP, value });
            }
        }
    }

    /// Sends the events of a stream. Work may overlap: what began first may end last.
    pub(crate) fn stream(&self, stream: &Stream, sink: &mut dyn EventSink) {
        let works = self.rank.works.get(stream.works.clone()).unwrap_or_default();
        let mut open: BinaryHeap<Reverse<(i64, usize)>> = BinaryHeap::new();
        for (at, work) in works.iter().enumerate() {
            while let Some(Reverse((end, other))) = open.peek().copied()
                && end <= work.begin
            {
                open.pop();
                self.end(&works[other], sink);
            }
            self.begin(work, sink);
            open.push(Reverse((work.end, at)));
        }
        while let Some(Reverse((_, work))) = open.pop() {
            self.end(&works[work], sink);
        }
    }

    fn begin(&self, work: &Work, sink: &mut dyn EventSink) {
        let mut list = List::new();
        if let Some(number) = work.correlation {
            list.add(CORRELATION, Type::UINT64, number.get());
        }
        if let Some(context) = self.contexts.get(work.context as usize) {
            list.add(LAUNCH_PATH, Type::CALLING_CONTEXT, (*context).into());
        }
        list.send(sink);
        sink.enter(work.begin, self.region(work.region));
        if self.operation(work.member).is_some() {
            record(sink, work.begin, &Event::MpiCollectiveBegin {});
        }
        self.send(work.member, work.begin, sink);
    }

    fn end(&self, work: &Work, sink: &mut dyn EventSink) {
        self.receive(work.member, work.end, sink);
        if let Some((operation, (size_sent, size_received))) = self.operation(work.member) {
            let CollectiveRecord { collective_op, communicator, root } = operation;
            let event = Event::MpiCollectiveEnd { collective_op, communicator, root, size_sent, size_received };
            record(sink, work.end, &event);
        }
        sink.leave(work.end, self.region(work.region));
    }

    /// The completion of an operation of a library for CPUs.
    fn complete(&self, member: u32, time: i64, sink: &mut dyn EventSink) {
        let request_id = member.into();
        if let Some((operation, (size_sent, size_received))) = self.operation(member) {
            let CollectiveRecord { collective_op, communicator, root } = operation;
            let event = Event::NonBlockingCollectiveComplete {
                collective_op,
                communicator,
                root,
                size_sent,
                size_received,
                request_id,
            };
            record(sink, time, &event);
        }
        if self.messages_of(member).any(|message| message.is_send) {
            record(sink, time, &Event::MpiIsendComplete { request_id });
        }
    }

    /// Whether a member is issued by a call and completes later.
    fn is_pending(&self, member: u32) -> bool {
        self.rank.members.get(member as usize).is_some_and(|member| member.host.is_some())
    }

    /// The messages that a member sends, and the requests for those that it will receive.
    fn send(&self, member: u32, time: i64, sink: &mut dyn EventSink) {
        let (is_pending, request_id) = (self.is_pending(member), member.into());
        for message in self.messages_of(member) {
            let Message { comm: communicator, peer: receiver, tag: msg_tag, bytes: msg_length, .. } = *message;
            let event = match (message.is_send, is_pending) {
                (true, false) => Event::MpiSend { receiver, communicator, msg_tag, msg_length },
                (true, true) => Event::MpiIsend { receiver, communicator, msg_tag, msg_length, request_id },
                (false, true) => Event::MpiIrecvRequest { request_id },
                (false, false) => continue,
            };
            record(sink, time, &event);
        }
    }

    /// The messages that a member receives.
    fn receive(&self, member: u32, time: i64, sink: &mut dyn EventSink) {
        let (is_pending, request_id) = (self.is_pending(member), member.into());
        for message in self.messages_of(member).filter(|message| !message.is_send) {
            let Message { comm: communicator, peer: sender, tag: msg_tag, bytes: msg_length, .. } = *message;
            let event = if is_pending {
                Event::MpiIrecv { sender, communicator, msg_tag, msg_length, request_id }
            } else {
                Event::MpiRecv { sender, communicator, msg_tag, msg_length }
            };
            record(sink, time, &event);
        }
    }

    /// The operation of a member, and the bytes that it sends and receives.
    fn operation(&self, number: u32) -> Option<(CollectiveRecord, (u64, u64))> {
        let Operation { comm: communicator, kind, root } = (*self.operations.get(number as usize)?)?;
        let member = self.rank.members.get(number as usize)?;
        let is_root = member.root == Some(self.rank.number);
        let root = if root == NONE { CollectiveRoot::NONE.0 } else { root };
        let operation = CollectiveRecord { collective_op: kind.operation(), communicator, root };
        Some((operation, sizes(kind, is_root, member)))
    }

    fn messages_of(&self, member: u32) -> impl Iterator<Item = &Message> {
        let from = self.messages.partition_point(|(other, _)| *other < member);
        let own = self.messages[from..].iter().take_while(move |(other, _)| *other == member);
        own.map(|(_, message)| message)
    }
}

/// What all records of an operation say.
struct CollectiveRecord {
    collective_op: CollectiveOp,
    communicator: u32,
    root: u32,
}

/// Bytes that a member sends and receives: none where its part in such an operation does not, else at least one.
fn sizes(kind: Kind, is_root: bool, member: &Member) -> (u64, u64) {
    let (sends, receives) = match kind.flow() {
        Flow::AllToAll => (true, true),
        Flow::OneToAll => (is_root, !is_root),
        Flow::AllToOne => (!is_root, is_root),
        Flow::Message => (false, false),
    };
    let size = |does: bool, bytes: u64| if does { bytes.max(1) } else { 0 };
    (size(sends, member.sent), size(receives, member.received))
}
