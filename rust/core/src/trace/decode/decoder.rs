//! The decoder: the state between two events, the order of time, and where each record goes.

use rustc_hash::FxHashMap;
use whywait_otf2::Definitions;
use whywait_otf2::enums::{LockType, Paradigm, RmaAtomicType, RmaSyncType, Type};
use whywait_otf2::records::TypedValue;
use whywait_otf2::{Attributes, Event, EventSink};

use super::envelopes::{Envelope, KnownComm};
use super::frames::{CallPathTotals, Contexts, Folded, Frame, OUTSIDE, Stream, Tasks};
use super::open_io::OpenIo;
use super::room::Room;
use super::strays::{Begun, Partitioned, Stray, StrayKind, Strays, Touched};
use crate::diagnostics::{DiagnosticKind, Diagnostics, Place};
use crate::ids::{CallPathId, CommId, InstanceId, LocationId, NONE, ProcessId, RegionKey, WindowId};
use crate::trace::bounds::Bounds;
use crate::trace::columns::{
    Fork, IoKind, Nonblocking, OpenRequest, OperationKind, RequestOf, SyncKind, Synchronization, TaskWait, ThreadStep,
};
use crate::trace::counters::Position;
use crate::trace::counters::book::{CounterBook, LocationHistory};
use crate::trace::definition_index::DefinitionIndex;
use crate::trace::id_map::IdMap;
use crate::trace::regions::Regions;
use crate::trace::shard::{LocationSpan, ProfileCell, Shard};
use crate::trace::task_paths::KnownTasks;
use crate::trace::task_stacks::{TaskId, created, switched_to};

/// The part of a shard's events after which its rows are extrapolated.
const SAMPLE: usize = 16;

/// The parameter by which the measurement of accelerators numbers the calls that launch kernels.
const CALL_SITE: &str = "callsite id";

/// Ids of the parameters that a program records, sorted.
fn program_parameters(definitions: &Definitions) -> Vec<u32> {
    let own = definitions.parameters.iter().filter(|parameter| definitions.string(parameter.name) != CALL_SITE);
    let mut ids: Vec<u32> = own.map(|parameter| parameter.id).collect();
    ids.sort_unstable();
    ids
}

/// State between two events of a location.
pub(super) struct State {
    pub(super) index: LocationId,
    pub(super) process: ProcessId,
    pub(super) span: LocationSpan,
    /// The innermost region, whose time is running.
    pub(super) top: Frame,
    /// The regions around it; at the bottom the frame outside of all regions.
    pub(super) outer: Vec<Frame>,
    /// Recursive calls that are part of outer ones, the innermost last.
    pub(super) folded: Vec<Folded>,
    /// The time up to which the innermost region is booked.
    pub(super) since: i64,
    /// Time of the last event.
    pub(super) now: i64,
    /// Events up to this time need no check: none before the first event, and none after the begin of a buffer flush
    /// that is not yet in the columns.
    pub(super) until: i64,
    /// Begin and end of that flush.
    pub(super) flush: Option<(i64, i64)>,
    pub(super) collective_begin: Option<i64>,
    /// Whether its process has other threads.
    pub(super) has_threads: bool,
    /// If it is a stream of an accelerator, where each region matters: what is open on it.
    pub(super) stream: Option<Box<Stream>>,
    /// Rows of sends by request id; [`crate::trace::NONE`] for sends to `MPI_PROC_NULL`. A send and a receive may share
    /// one request (`MPI_Isendrecv`).
    pub(super) sends: IdMap<u32>,
    /// Receives by request id: the instances that posted them.
    pub(super) receives: IdMap<InstanceId>,
    /// Non-blocking collective operations by request id: the instances that started them.
    pub(super) nonblocking: FxHashMap<u64, InstanceId>,
    /// Probed messages by message id, and those whose receive was posted by request id.
    pub(super) probed: FxHashMap<u64, Envelope>,
    pub(super) posted: FxHashMap<u64, Envelope>,
    /// The latest operation by matching id, and for each operation of the location the one before it with the same id:
    /// measurement systems give one id to several, and may number the operations of each window anew.
    pub(super) operations: IdMap<u32>,
    /// Calls of the collective operation on a window that has begun, and the region of the first.
    pub(super) collective_calls: (RegionKey, Vec<InstanceId>),
    pub(super) same_id: Vec<u32>,
    /// For a thread other than the master, the call path below which its regions belong.
    pub(super) root: CallPathId,
    /// Number of regions below those of the task that runs; 0 without one.
    pub(super) base: usize,
    /// Forks without a join so far.
    pub(super) forks: Vec<u32>,
    /// Teams that the location is part of.
    pub(super) teams: Vec<u32>,
    /// Barriers of these teams so far, those of the innermost last, and where each team's begin.
    pub(super) barriers: Vec<InstanceId>,
    pub(super) first_barriers: Vec<u32>,
    /// Likewise their taskwait and taskgroup constructs.
    pub(super) taskwaits: Vec<TaskWait>,
    pub(super) first_taskwaits: Vec<u32>,
    /// Its explicit tasks.
    pub(super) tasks: Tasks,
    /// Number of forks of each team that others have done so far.
    pub(super) parts: FxHashMap<CommId, u32>,
    /// Operations on files.
    pub(super) io: OpenIo,
    /// Its calling contexts.
    pub(super) contexts: Contexts,
    /// The latest value of each parameter.
    pub(super) parameters: FxHashMap<u32, u64>,
    /// Number of records other than Enter and Leave.
    pub(super) records: u64,
}

impl State {
    fn new(index: LocationId, process: ProcessId) -> Self {
        Self {
            index,
            process,
            span: LocationSpan::default(),
            top: OUTSIDE,
            outer: Vec::with_capacity(64),
            folded: Vec::new(),
            since: i64::MIN,
            // Behind `until`, so that no time passes without a check.
            now: i64::MIN + 1,
            until: i64::MIN,
            flush: None,
            collective_begin: None,
            has_threads: false,
            stream: None,
            sends: IdMap::default(),
            receives: IdMap::default(),
            nonblocking: FxHashMap::default(),
            probed: FxHashMap::default(),
            posted: FxHashMap::default(),
            operations: IdMap::default(),
            collective_calls: (Regions::UNDEFINED, Vec::new()),
            same_id: Vec::new(),
            root: CallPathId::NONE,
            base: 0,
            forks: Vec::new(),
            teams: Vec::new(),
            barriers: Vec::new(),
            first_barriers: Vec::new(),
            taskwaits: Vec::new(),
            first_taskwaits: Vec::new(),
            tasks: Tasks::default(),
            parts: FxHashMap::default(),
            io: OpenIo::default(),
            contexts: Contexts::default(),
            parameters: FxHashMap::default(),
            records: 0,
        }
    }

    /// The outermost region.
    pub(super) fn outermost(&self) -> Option<Frame> {
        match self.outer[..] {
            [] => None,
            [_] => Some(self.top),
            [_, first, ..] => Some(first),
        }
    }
}

/// Fills the columns of a shard, one location after the other.
pub struct Decoder<'a> {
    pub(super) regions: &'a Regions,
    pub(super) index: &'a DefinitionIndex,
    pub(super) bounds: Bounds,
    pub(super) definitions: &'a Definitions,
    pub(super) shard: Shard,
    pub(super) diagnostics: Diagnostics,
    /// Whether the run has windows.
    pub(super) one_sided: bool,
    /// Number of regions around a call from which on recursion is folded.
    pub(super) fold_from: usize,
    pub(super) last_comm: Option<KnownComm<'a>>,
    /// Cache of the latest window: its id and number, with its communicator.
    pub(super) last_window: Option<(u32, (WindowId, CommId))>,
    /// One entry per call path, for the current location.
    pub(super) totals: Vec<CallPathTotals>,
    /// Ids of the parameters that the program records, sorted.
    pub(super) parameters: Vec<u32>,
    /// The call paths of calling contexts from which work on streams was launched.
    pub(super) launch_paths: FxHashMap<u32, CallPathId>,
    pub(super) book: CounterBook<'a>,
    /// Buffer for the values of a metric record.
    pub(super) values: Vec<TypedValue>,
    /// The forks of each team of the current process.
    pub(super) forks: FxHashMap<CommId, Vec<u32>>,
    pub(super) room: Room,
    /// Requests that threads of the current process have begun or completed for others.
    pub(super) strays: Strays,
    /// Messages of the current process that have partitions.
    pub(super) partitioned: Partitioned,
    /// Tasks whose calls may not nest in those of the threads that run them, and whether that is certain.
    pub(super) moved_tasks: FxHashMap<TaskId, bool>,
    /// The tasks of the current process.
    pub(super) known_tasks: KnownTasks,
    pub(super) state: State,
}

impl<'a> Decoder<'a> {
    /// A decoder for a block of processes and their locations.
    pub fn new(
        definitions: &'a Definitions,
        regions: &'a Regions,
        index: &'a DefinitionIndex,
        bounds: Bounds,
        shard: Shard,
    ) -> Self {
        Self {
            regions,
            index,
            bounds,
            definitions,
            shard,
            diagnostics: Diagnostics::default(),
            one_sided: !index.windows.is_empty(),
            fold_from: index.fold_from,
            last_comm: None,
            last_window: None,
            totals: Vec::new(),
            parameters: program_parameters(definitions),
            launch_paths: FxHashMap::default(),
            book: CounterBook::new(index),
            values: Vec::new(),
            forks: FxHashMap::default(),
            room: Room::default(),
            strays: Strays::default(),
            partitioned: Partitioned::new(definitions),
            moved_tasks: FxHashMap::default(),
            known_tasks: KnownTasks::default(),
            state: State::new(LocationId::NONE, ProcessId::NONE),
        }
    }

    /// Begins a location; its events follow.
    pub fn begin_location(&mut self, index: LocationId) {
        let location = &self.index.locations[index];
        let (process, is_stream) = (location.process, location.is_stream());
        if process != self.state.process {
            self.forks.clear();
            self.known_tasks.begin_process();
            self.settle_strays();
        }
        if is_stream != self.state.stream.is_some() {
            // Instances that matter on streams differ from those on threads.
            self.totals.clear();
        }
        // The next location probably needs as much capacity.
        let mut operations = std::mem::take(&mut self.state.operations);
        let mut same_id = std::mem::take(&mut self.state.same_id);
        operations.clear();
        same_id.clear();
        let own = self.index.processes.get(process.index()).into_iter().flat_map(|process| process.locations);
        let has_threads = own.filter(|&other| self.index.locations[other].is_thread()).nth(1).is_some();
        self.state = State { has_threads, operations, same_id, ..State::new(index, process) };
        if is_stream {
            self.state.stream = Some(Box::new(Stream::new(self.times_of_streams())));
        }
        if self.shard.event_offsets.is_empty() {
            self.shard.event_offsets.push(0);
            self.shard.instance_offsets.push(0);
        }
    }

    /// Ends a location: closes what is open, fixes the ends of its rows.
    pub fn end_location(&mut self, events: u64, truncated: Option<String>) {
        self.settle_flush(i64::MAX);
        self.end_io();
        let last = if self.state.span.first == i64::MAX { i64::MIN } else { self.state.now };
        while !self.state.teams.is_empty() {
            self.end_team();
        }
        self.end_tasks(last);
        self.leave_callers(last);
        let open = self.state.outer.len();
        let never_left = (open - self.open_callers() + self.state.folded.len()) as u64;
        for _ in 0..open {
            self.pop(last);
        }
        self.end_threads();
        let index = self.state.index;
        let place = Place::at(index, last);
        self.diagnostics.count(DiagnosticKind::NeverLeft, never_left, Some(place));
        let pending = self.state.nonblocking.len() as u64;
        self.diagnostics.count(DiagnosticKind::PendingRequest, pending, Some(place));
        self.leave_requests();
        self.state.span.last = last;
        self.state.span.events = events;
        self.room.earlier += events as usize;
        if let Some(message) = truncated {
            self.state.span.truncated = true;
            self.diagnostics.explain(DiagnosticKind::Truncated, place, message);
        }

        let shard = &mut self.shard;
        for (callpath, total) in self.totals.iter_mut().enumerate() {
            let CallPathTotals { visits, time, .. } = *total;
            if time != 0 || visits != 0 {
                shard.profile.rows.push(ProfileCell { callpath: CallPathId::at(callpath), visits, time });
                (total.visits, total.time) = (0, 0);
            }
        }
        let history = LocationHistory { events: &shard.events, tree: &shard.tree };
        let position = Position { events: shard.events.len() as u32, callpath: CallPathId::NONE, depth: 0 };
        self.book.end_location(index, (last, position), history, &mut shard.counters);
        shard.event_offsets.push(shard.events.len() as u32);
        shard.instance_offsets.push(shard.instances.enter.len() as u32);
        shard.sends.end_location();
        shard.receives.end_location();
        shard.requests.end_location();
        shard.collectives.end_location();
        shard.nonblocking.end_location();
        shard.operations.end_location();
        shard.synchronizations.end_location();
        shard.forks.end_location();
        shard.teams.end_location();
        shard.barriers.end_location();
        shard.taskwaits.end_location();
        shard.locks.end_location();
        shard.threads.end_location();
        shard.tasks.end_location();
        shard.io.end_location();
        shard.parameters.end_location();
        shard.call_samples.end_location();
        shard.profile.end_location();
        shard.spans.push(self.state.span);
    }

    /// Notes the requests that are open at the end of a location: another thread may complete them.
    fn leave_requests(&mut self) {
        let location = self.state.index;
        let open = |begin: InstanceId, of| OpenRequest { begin, end: InstanceId::NONE, of };
        for (id, &instance) in self.state.receives.iter() {
            let row = self.shard.requests.rows.len() as u32;
            self.shard.requests.rows.push(open(instance, RequestOf::Receive));
            let time = self.shard.enter(instance);
            let request = (StrayKind::Receive, id);
            self.strays.begun.push(Stray { request, time, location, instance, row: NONE, open: row });
        }
        for (id, &row) in self.state.sends.iter() {
            // Without a row, it is to MPI_PROC_NULL.
            let send = self.shard.sends.rows.get(row as usize);
            let (time, instance) = send.map_or((i64::MIN, InstanceId::NONE), |send| (send.time, send.instance));
            self.strays.begun.push(Stray { request: (StrayKind::Send, id), time, location, instance, row, open: NONE });
        }
        let collectives = self.state.nonblocking.values().map(|&begin| open(begin, RequestOf::Collective));
        self.shard.requests.rows.extend(collectives);
    }

    /// Joins what the threads of a process have begun and completed for each other; the rest is inconsistent.
    fn settle_strays(&mut self) {
        let mut strays = std::mem::take(&mut self.strays);
        let shard = &mut self.shard;
        strays.join(|begin, end| match begin.request.0 {
            StrayKind::Send => {
                if let Some(send) = shard.sends.rows.get_mut(begin.row as usize) {
                    send.complete = end.instance;
                }
            }
            StrayKind::Receive => {
                shard.requests.rows[begin.open as usize].begin = InstanceId::NONE;
                if let Some(receive) = shard.receives.rows.get_mut(end.row as usize) {
                    receive.request = begin.instance;
                    self.partitioned.received(begin.request.1, begin.instance, end.row);
                }
            }
        });
        for Stray { time, location, .. } in strays.ended {
            self.diagnostics.add(DiagnosticKind::UnknownRequest, location, time);
        }
        for Stray { location, .. } in strays.begun {
            let span = self.shard.spans.get(self.shard.local(location));
            let time = span.map_or(i64::MIN, |span| span.last);
            self.diagnostics.add(DiagnosticKind::PendingRequest, location, time);
        }
        self.partitioned.settle(&mut self.shard, &mut self.diagnostics);
    }

    /// The columns and the diagnostics.
    pub fn finish(mut self) -> (Shard, Diagnostics) {
        self.settle_strays();
        let unknown = self.shard.task_instances.iter().filter(|task| task.created == i64::MIN).count();
        self.diagnostics.count(DiagnosticKind::UnknownTask, unknown as u64, None);
        let mut shard = self.shard;
        shard.has_fallen = self.book.has_fallen().to_vec();
        shard.shrink();
        (shard, self.diagnostics)
    }

    /// Number of events of the current location so far.
    pub fn decoded(&self) -> u64 {
        let before = self.shard.event_offsets.last().copied().unwrap_or(0);
        self.state.records + self.shard.events.len() as u64 - u64::from(before)
    }

    /// Number of Enters and Leaves of the current location in the columns so far.
    pub fn positions(&self) -> usize {
        self.shard.events.len() - self.shard.event_offsets.last().map_or(0, |&before| before as usize)
    }

    /// Time of the last record, ticks; that of the record before if its own is implausible.
    pub fn now(&self) -> i64 {
        self.state.now
    }

    /// The range of plausible times of records.
    pub fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// Number of sends and receives so far, of all locations of the block.
    pub fn messages(&self) -> (usize, usize) {
        (self.shard.sends.rows.len(), self.shard.receives.rows.len())
    }

    /// The inconsistencies so far.
    pub fn diagnostics(&mut self) -> &mut Diagnostics {
        &mut self.diagnostics
    }

    pub(super) fn note(&mut self, kind: DiagnosticKind, time: i64) {
        self.diagnostics.add(kind, self.state.index, time);
    }

    /// Advances to `time`; returns it, or the time that replaces it if it is out of order or implausible.
    #[inline(always)]
    pub(super) fn advance(&mut self, time: i64) -> i64 {
        if self.state.now <= time && time <= self.state.until {
            self.state.now = time;
            return time;
        }
        self.advance_slowly(time)
    }

    #[cold]
    #[inline(never)]
    fn advance_slowly(&mut self, time: i64) -> i64 {
        self.settle_flush(time);
        let is_first = self.state.span.first == i64::MAX;
        let mut time = time;
        if !self.bounds.range().contains(&time) {
            time = if is_first { self.bounds.begin } else { self.state.now };
            self.note(DiagnosticKind::ImpossibleTime, time);
        }
        if is_first {
            self.state.span.first = time;
            self.state.since = time;
        } else if time < self.state.now {
            self.note(DiagnosticKind::TimeBackwards, time);
            return self.state.now;
        }
        self.state.until = self.state.flush.map_or(self.bounds.last, |(begin, _)| begin);
        self.state.now = time;
        time
    }
}

impl EventSink for Decoder<'_> {
    fn end_chunk(&mut self) {
        self.extrapolate();
    }

    #[inline(always)]
    fn enter(&mut self, time: i64, region: u32) {
        if self.state.stream.is_some() {
            return self.enter_on_stream(time, region);
        }
        self.enter_key(time, self.regions.key(region));
    }

    #[inline(always)]
    fn leave(&mut self, time: i64, region: u32) {
        if self.state.stream.is_some() {
            return self.leave_on_stream(time, region);
        }
        self.leave_key(time, self.regions.key(region));
    }

    #[inline(always)]
    fn metric(&mut self, time: i64, metric: u32, values: &[TypedValue]) {
        if self.state.stream.is_some() && self.leave_out(time) {
            return;
        }
        if self.index.usage_classes.contains(metric) && self.update_usage(metric, values.iter().copied()) {
            return;
        }
        let time = self.advance(time);
        self.state.records += 1;
        self.sample(time, metric, values);
    }

    #[inline(always)]
    fn record(&mut self, time: i64, record: &Event<'_>, attributes: &Attributes<'_>) {
        if self.state.stream.is_some() && (self.leave_out(time) || self.copy(time, record)) {
            return;
        }
        match *record {
            Event::CallingContextSample { calling_context, interrupt_generator, .. } => {
                let address = attributes.into_iter().find(|named| self.index.addresses.contains(&named.id));
                let address = address.filter(|named| named.value.kind == Type::STRING);
                let address = address.and_then(|named| u32::try_from(named.value.bits).ok()).unwrap_or(NONE);
                return self.sample_context(time, calling_context, interrupt_generator, address);
            }
            Event::Metric { metric, values }
                if self.index.usage_classes.contains(metric) && self.update_usage(metric, values.iter()) =>
            {
                return;
            }
            _ => {}
        }
        let time = self.advance(time);
        self.state.records += 1;
        match *record {
            Event::MpiSend { receiver, communicator, msg_tag, msg_length } => {
                self.send(time, receiver, communicator, msg_tag, msg_length, None);
            }
            Event::MpiIsend { receiver, communicator, msg_tag, msg_length, request_id } => {
                self.send(time, receiver, communicator, msg_tag, msg_length, Some(request_id));
                if let Some(count) = self.partitioned.count(attributes) {
                    let row = self.state.sends.get(request_id).copied().unwrap_or(NONE);
                    self.begin_partitions(request_id, Begun { time, count, sends: true, row });
                }
            }
            Event::MpiRequestTest { request_id: request } => {
                if let Some(range) = self.partitioned.range(attributes)
                    && let Some(instance) = self.communicating(time)
                {
                    let location = self.state.index;
                    self.partitioned.touch(Touched { request, time, location, instance, range });
                }
            }
            Event::MpiIsendComplete { request_id } => self.complete_send(time, request_id),
            Event::MpiIrecvRequest { request_id } => {
                self.post_receive(time, request_id, None);
                if let Some(count) = self.partitioned.count(attributes) {
                    self.begin_partitions(request_id, Begun { time, count, sends: false, row: NONE });
                }
            }
            Event::MpiRecv { sender, communicator, msg_tag: tag, msg_length } => {
                self.receive(time, Envelope { sender, communicator, tag, probe: InstanceId::NONE }, msg_length, None);
            }
            Event::MpiIrecv { sender, communicator, msg_tag: tag, msg_length, request_id } => {
                let row = self.shard.receives.rows.len();
                self.complete_receive(
                    time,
                    Envelope { sender, communicator, tag, probe: InstanceId::NONE },
                    msg_length,
                    request_id,
                );
                if let Some(receive) = self.shard.receives.rows.get(row) {
                    self.partitioned.received(request_id, receive.request, row as u32);
                }
            }
            Event::MpiRequestCancelled { request_id } => self.cancel(time, request_id),
            Event::MpiProbe { sender, communicator, tag, message_id } => {
                let probe = self.instance().unwrap_or(InstanceId::NONE);
                self.state.probed.insert(message_id, Envelope { sender, communicator, tag, probe });
            }
            Event::MpiMrecv { message_id, msg_length } => match self.state.probed.remove(&message_id) {
                Some(message) => self.receive(time, message, msg_length, None),
                None => self.note(DiagnosticKind::UnknownRequest, time),
            },
            Event::MpiImrecvRequest { message_id, request_id } => {
                let probed = self.state.probed.remove(&message_id);
                self.post_receive(time, request_id, probed);
            }
            Event::MpiImrecv { request_id, msg_length } => {
                match (self.state.receives.remove(request_id), self.state.posted.remove(&request_id)) {
                    (Some(posted), Some(message)) => self.receive(time, message, msg_length, Some(posted)),
                    _ => self.note(DiagnosticKind::UnknownRequest, time),
                }
            }
            Event::MpiCollectiveBegin {} => self.state.collective_begin = Some(time),
            Event::MpiCollectiveEnd { collective_op, communicator, root, size_sent, size_received } => {
                self.collective(time, collective_op.0, communicator, root, size_sent, size_received);
            }
            Event::NonBlockingCollectiveRequest { request_id } => {
                if let Some(instance) = self.instance()
                    && self.state.nonblocking.insert(request_id, instance).is_some()
                {
                    self.note(DiagnosticKind::PendingRequest, time);
                }
            }
            Event::NonBlockingCollectiveComplete {
                collective_op,
                communicator,
                root,
                size_sent: sent,
                size_received: received,
                request_id,
            } => {
                let post = self.state.nonblocking.remove(&request_id);
                if post.is_none() {
                    self.note(DiagnosticKind::UnknownRequest, time);
                }
                if let (Some(post), Some(complete)) = (post, self.instance())
                    && let Some(KnownComm { comm, .. }) = self.known_comm(communicator)
                {
                    let operation = collective_op.0;
                    let row = Nonblocking { post, complete, sent, received, comm, root, operation };
                    self.shard.nonblocking.rows.push(row);
                }
            }
            Event::ThreadCreate { thread_contingent, sequence_count } => {
                self.thread(time, (thread_contingent, sequence_count), ThreadStep::Create);
            }
            Event::ThreadBegin { thread_contingent, sequence_count } => {
                self.thread(time, (thread_contingent, sequence_count), ThreadStep::Begin);
            }
            Event::ThreadEnd { thread_contingent, sequence_count } => {
                self.thread(time, (thread_contingent, sequence_count), ThreadStep::End);
            }
            Event::ThreadWait { thread_contingent, sequence_count } => {
                self.thread(time, (thread_contingent, sequence_count), ThreadStep::Wait);
            }
            Event::Metric { metric, values } => {
                let mut listed = std::mem::take(&mut self.values);
                listed.clear();
                listed.extend(&values);
                self.sample(time, metric, &listed);
                self.values = listed;
            }
            Event::ParameterInt { parameter, value } => self.parameter(time, parameter, value.cast_unsigned()),
            Event::ParameterUnsignedInt { parameter, value } => self.parameter(time, parameter, value),
            Event::ParameterString { parameter, string } => self.parameter(time, parameter, string.into()),
            Event::BufferFlush { stop_time } => {
                self.state.flush = Some((time, stop_time.max(time)));
                self.state.until = time;
            }
            Event::MeasurementOnOff { measurement_mode } => {
                if measurement_mode.0 == 1 {
                    self.leave_key(time, Regions::MEASUREMENT_OFF);
                } else {
                    self.enter_key(time, Regions::MEASUREMENT_OFF);
                }
            }
            Event::ProgramBegin { program_name, .. } => self.enter_key(time, Regions::program(program_name)),
            Event::ProgramEnd { .. } => {
                if let Some(program) = self.state.outermost()
                    && Regions::is_program(program.key)
                {
                    self.leave_key(time, program.key);
                }
            }
            Event::ThreadFork { .. } | Event::OmpFork { .. } => {
                let row = self.shard.forks.rows.len() as u32;
                self.note_fork(row);
                self.state.forks.push(row);
                self.shard.forks.rows.push(Fork { fork: time, join: i64::MIN, callpath: self.state.top.callpath });
            }
            Event::ThreadJoin { .. } | Event::OmpJoin {} => {
                if let Some(fork) = self.state.forks.pop() {
                    self.shard.forks.rows[fork as usize].join = time;
                }
            }
            Event::ThreadTeamBegin { thread_team } => self.begin_team(time, thread_team),
            Event::ThreadTeamEnd { .. } => self.end_team(),
            Event::ThreadAcquireLock { model, lock_id, acquisition_order } => {
                self.lock(time, model.0, lock_id, acquisition_order, true);
            }
            Event::ThreadReleaseLock { model, lock_id, acquisition_order } => {
                self.lock(time, model.0, lock_id, acquisition_order, false);
            }
            Event::OmpAcquireLock { lock_id, acquisition_order } => {
                self.lock(time, Paradigm::OPENMP.0, lock_id, acquisition_order, true);
            }
            Event::OmpReleaseLock { lock_id, acquisition_order } => {
                self.lock(time, Paradigm::OPENMP.0, lock_id, acquisition_order, false);
            }
            Event::ThreadTaskCreate { .. } | Event::OmpTaskCreate { .. } => {
                if let Some(task) = created(record) {
                    self.create_task(time, task);
                }
            }
            Event::ThreadTaskSwitch { .. }
            | Event::OmpTaskSwitch { .. }
            | Event::ThreadTaskComplete { .. }
            | Event::OmpTaskComplete { .. } => {
                if let Some(task) = switched_to(record) {
                    self.switch_task(time, task);
                }
            }
            Event::CallingContextEnter { calling_context, .. } => self.enter_context(time, calling_context),
            Event::CallingContextLeave { calling_context } => self.leave_context(time, calling_context),
            Event::RmaPut { win, remote, bytes, matching_id } => {
                self.operate(time, win, remote, (bytes, 0), matching_id, OperationKind::Put);
            }
            Event::RmaGet { win, remote, bytes, matching_id } => {
                self.operate(time, win, remote, (0, bytes), matching_id, OperationKind::Get);
            }
            Event::RmaAtomic { win, remote, atomic_type, bytes_sent, bytes_received, matching_id } => {
                let kind = match atomic_type {
                    RmaAtomicType::ACCUMULATE | RmaAtomicType::INCREMENT => OperationKind::Atomic,
                    _ => OperationKind::FetchingAtomic,
                };
                self.operate(time, win, remote, (bytes_sent, bytes_received), matching_id, kind);
            }
            Event::RmaOpCompleteBlocking { win, matching_id }
            | Event::RmaOpCompleteNonBlocking { win, matching_id } => {
                self.complete_operations(time, win, matching_id, |operation| &mut operation.done_local);
            }
            Event::RmaOpCompleteRemote { win, matching_id } => {
                self.complete_operations(time, win, matching_id, |operation| &mut operation.done_remote);
            }
            Event::RmaCollectiveBegin {} => self.begin_collective(),
            Event::RmaCollectiveEnd { collective_op, win, root, .. } => {
                self.end_collective(time, win, root, collective_op.0);
            }
            Event::RmaGroupSync { sync_level, win, group } => self.synchronize_group(time, sync_level, win, group),
            Event::RmaRequestLock { win, remote, lock_id, lock_type } => {
                let shared = lock_type == LockType::SHARED;
                self.synchronize_lock(time, win, remote, lock_id, SyncKind::Request { shared });
            }
            Event::RmaAcquireLock { win, remote, lock_id, lock_type } => {
                let shared = lock_type == LockType::SHARED;
                self.synchronize_lock(time, win, remote, lock_id, SyncKind::Acquire { shared });
            }
            Event::RmaReleaseLock { win, remote, lock_id } => {
                self.synchronize_lock(time, win, remote, lock_id, SyncKind::Release);
            }
            Event::RmaWaitChange { win } => {
                if let Some((window, _)) = self.window(time, win) {
                    self.synchronize(time, window, ProcessId::NONE, 0, SyncKind::WaitChange);
                }
            }
            // Calls that only order memory accesses synchronize with nobody.
            Event::RmaSync { win, remote, sync_type }
                if matches!(sync_type, RmaSyncType::NOTIFY_IN | RmaSyncType::NOTIFY_OUT) =>
            {
                let is_incoming = sync_type == RmaSyncType::NOTIFY_IN;
                let id = attributes.into_iter().find(|named| self.index.notifications.contains(&named.id));
                let id = Synchronization::notification(id.map(|named| named.value.bits));
                self.synchronize_lock(time, win, remote, id, SyncKind::Notify { is_incoming });
            }
            // Score-P destroys the windows of OpenSHMEM outside of any region, which is not an inconsistency.
            Event::RmaWinDestroy { win } => {
                if let (Some(window), Some(instance)) = (self.index.window(win), self.instance()) {
                    self.synchronize_in(instance, time, window, ProcessId::NONE, 0, SyncKind::Destroy);
                }
            }
            Event::IoOperationBegin { handle, mode, operation_flags, matching_id, .. } => {
                self.begin_io(time, (handle, matching_id), mode, operation_flags);
            }
            Event::IoOperationIssued { handle, matching_id } => self.issue_io(time, (handle, matching_id)),
            Event::IoOperationComplete { handle, bytes_result, matching_id } => {
                self.complete_io(time, (handle, matching_id), Some(bytes_result));
            }
            Event::IoOperationCancelled { handle, matching_id } => self.complete_io(time, (handle, matching_id), None),
            Event::IoCreateHandle { handle, .. } => self.manage_io(time, handle, IoKind::Open),
            Event::IoDestroyHandle { handle } => self.manage_io(time, handle, IoKind::Close),
            Event::IoDuplicateHandle { new_handle, .. } => self.manage_io(time, new_handle, IoKind::Duplicate),
            Event::IoSeek { handle, .. } => self.manage_io(time, handle, IoKind::Seek),
            Event::IoChangeStatusFlags { handle, .. } => self.manage_io(time, handle, IoKind::Status),
            Event::IoAcquireLock { handle, .. }
            | Event::IoReleaseLock { handle, .. }
            | Event::IoTryLock { handle, .. } => self.manage_io(time, handle, IoKind::Lock),
            Event::IoDeleteFile { io_paradigm, file } => self.delete_file(time, io_paradigm, file),
            Event::Unknown { .. } => self.note(DiagnosticKind::UnknownRecord, time),
            _ => {}
        }
    }
}

impl Decoder<'_> {
    /// The current call begins a message in partitions.
    fn begin_partitions(&mut self, request: u64, message: Begun) {
        if let Some(instance) = self.instance() {
            self.partitioned.begin(request, instance, message);
        }
    }

    /// Makes room for a number of events, and later for their other rows.
    pub fn expect(&mut self, events: usize) {
        self.shard.events.reserve(events);
        self.room.expected = Some(events);
    }

    /// Makes room for the rows of the expected events once enough of them are there to extrapolate.
    fn extrapolate(&mut self) {
        let Some(expected) = self.room.expected else { return };
        let read = self.room.earlier + self.decoded() as usize;
        if read > expected / SAMPLE {
            self.room.expected = None;
            let missing = expected.saturating_sub(read);
            // Some slack, because a program does not always do the same; no file has more rows than events.
            let more = |rows| ((rows as f64 * missing as f64 / read as f64 * 1.1) as usize).min(missing);
            self.shard.reserve(self.shard.rows().map(more));
        }
    }
}
