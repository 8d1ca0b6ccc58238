//! From event records to columns: one pass over each location.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustc_hash::FxHashMap;
use whywait_otf2::Definitions;
use whywait_otf2::enums::{LockType, Paradigm, RmaAtomicType, RmaSyncLevel, RmaSyncType};
use whywait_otf2::records::MetricValues;
use whywait_otf2::{Attributes, Event, EventSink};

use super::NONE;
use super::bounds::Bounds;
use super::calltree::NO_CALLPATH;
use super::columns::{
    ALL, Collective, Fork, LocationSpan, Lock, Nonblocking, OpenRequest, Operation, OperationKind, ProfileCell,
    Received, Sent, Shard, SyncKind, Synchronization, TaskRun, Team, Thread, ThreadStep,
};
use super::counter_book::{Book, Fault, Position};
use super::definition_index::{Comm, DefinitionIndex, Members};
use super::id_map::IdMap;
use super::regions::{RegionClass, Regions};
use crate::diagnostics::{DiagnosticKind, Diagnostics};

/// How far the reading has come, and whether it shall stop.
#[derive(Debug, Default)]
pub struct Progress {
    /// Events read so far.
    pub events: AtomicU64,
    cancelled: AtomicBool,
}

impl Progress {
    /// Asks the work to stop at the next opportunity.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether the work shall stop.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

/// A region that has been entered and not left.
#[derive(Clone, Copy)]
struct Frame {
    callpath: u32,
    /// Key of the region.
    key: u32,
    /// Position of the Enter.
    enter: u32,
    /// The region instance, once something asked for it.
    instance: u32,
}

/// What stands around the regions: nothing.
const OUTSIDE: Frame = Frame { callpath: NO_CALLPATH, key: NONE, enter: NONE, instance: NONE };

/// What is booked on a call path at the current location.
#[derive(Clone, Copy)]
struct Account {
    visits: u64,
    /// Exclusive time, ticks.
    time: i64,
    /// Whether each instance of the region matters, even without records inside.
    remembered: bool,
}

/// Whether a rank is none: `MPI_PROC_NULL`, which is negative everywhere and which not every tool leaves out, or
/// OTF2's "undefined".
fn names_nobody(rank: u32) -> bool {
    rank > i32::MAX as u32
}

/// What a receive knows of its message.
#[derive(Clone, Copy)]
struct Envelope {
    sender: u32,
    communicator: u32,
    tag: u32,
    /// Region instance of the matched probe that has found it before, or [`NONE`].
    probe: u32,
}

/// What must be remembered between two events of a location.
struct State {
    index: u32,
    process: u32,
    span: LocationSpan,
    /// The innermost region, whose time is running.
    top: Frame,
    /// The regions around it, with what is outside of all at the bottom.
    outer: Vec<Frame>,
    /// Since when the time of the innermost region is not booked yet.
    since: i64,
    /// Time of the last event.
    now: i64,
    /// An event up to this time can follow without further ado: none before the first, and none behind the begin of a
    /// buffer flush that is not yet in the columns.
    until: i64,
    /// Begin and end of that flush.
    flush: Option<(i64, i64)>,
    collective_begin: Option<i64>,
    /// Sends by request id: their rows, or [`NONE`] of what was sent to nobody. One request may be that of a send and of
    /// a receive (`MPI_Isendrecv`).
    sends: IdMap<u32>,
    /// Receives by request id: the instances that posted them.
    receives: IdMap<u32>,
    /// Messages that were probed, by message id; and those whose receive was posted, by request id.
    probed: FxHashMap<u64, Envelope>,
    posted: FxHashMap<u64, Envelope>,
    /// Non-blocking collective operations by request id: the instances that started them.
    nonblocking: FxHashMap<u64, u32>,
    /// The latest operation by matching id, and for each operation of the location the one before it with the same id:
    /// measurement systems give one id to several, and may number the operations of each window anew.
    operations: IdMap<u32>,
    same_id: Vec<u32>,
    /// Call path below which the regions of a thread stand that is not the master.
    root: u32,
    /// Forks that were not joined yet.
    forks: Vec<u32>,
    /// Teams that the location is part of.
    teams: Vec<u32>,
    /// Barriers of these teams so far, those of the innermost last, and where each team's begin.
    barriers: Vec<u32>,
    first_barriers: Vec<u32>,
    /// Since when an explicit task runs.
    task: Option<i64>,
    /// Number of parts in each team so far.
    parts: FxHashMap<u32, u32>,
    /// Number of records other than Enter and Leave.
    records: u64,
}

impl State {
    fn new(index: u32, process: u32) -> Self {
        Self {
            index,
            process,
            span: LocationSpan::default(),
            top: OUTSIDE,
            outer: Vec::with_capacity(64),
            since: i64::MIN,
            now: i64::MIN,
            until: i64::MIN,
            flush: None,
            collective_begin: None,
            sends: IdMap::default(),
            receives: IdMap::default(),
            probed: FxHashMap::default(),
            posted: FxHashMap::default(),
            nonblocking: FxHashMap::default(),
            operations: IdMap::default(),
            same_id: Vec::new(),
            root: NO_CALLPATH,
            forks: Vec::new(),
            teams: Vec::new(),
            barriers: Vec::new(),
            first_barriers: Vec::new(),
            task: None,
            parts: FxHashMap::default(),
            records: 0,
        }
    }

    /// The outermost region.
    fn outermost(&self) -> Option<Frame> {
        match self.outer[..] {
            [] => None,
            [_] => Some(self.top),
            [_, first, ..] => Some(first),
        }
    }
}

/// The communicator that was named last: a program uses few.
#[derive(Clone, Copy)]
struct KnownComm<'a> {
    id: u32,
    comm: u32,
    /// The processes by rank, if they are the same for everybody.
    members: &'a [u32],
}

/// Fills the columns of a shard, one location after the other.
pub struct Decoder<'a> {
    regions: &'a Regions,
    index: &'a DefinitionIndex,
    bounds: Bounds,
    definitions: &'a Definitions,
    shard: Shard,
    diagnostics: Diagnostics,
    /// Whether the run has windows.
    one_sided: bool,
    last_comm: Option<KnownComm<'a>>,
    /// Id and index of the window that was named last, with its communicator.
    last_window: Option<(u32, (u32, u32))>,
    /// By call path, at the current location.
    accounts: Vec<Account>,
    book: Book,
    /// Parts of the current process' teams at the threads that forked: (team, number of the part) to the fork.
    forks: FxHashMap<(u32, u32), u32>,
    state: State,
}

impl<'a> Decoder<'a> {
    /// A decoder for a block of processes and their locations.
    #[must_use]
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
            last_comm: None,
            last_window: None,
            accounts: Vec::new(),
            book: Book::new(index.counters.all.len()),
            forks: FxHashMap::default(),
            state: State::new(NONE, NONE),
        }
    }

    /// Begins a location; its events follow.
    pub fn begin_location(&mut self, index: u32) {
        let process = self.index.locations[index as usize].process;
        if process != self.state.process {
            self.forks.clear();
        }
        // What took room at one location will at the next.
        let mut operations = std::mem::take(&mut self.state.operations);
        let mut same_id = std::mem::take(&mut self.state.same_id);
        operations.clear();
        same_id.clear();
        self.state = State { operations, same_id, ..State::new(index, process) };
        if self.shard.event_offsets.is_empty() {
            self.shard.event_offsets.push(0);
            self.shard.instance_offsets.push(0);
        }
    }

    /// Ends a location: closes what is open, fixes the ends of its rows.
    pub fn end_location(&mut self, events: u64, truncated: Option<String>) {
        self.settle_flush(i64::MAX);
        let last = if self.state.span.first == i64::MAX { i64::MIN } else { self.state.now };
        self.switch_task(last, 0);
        while !self.state.teams.is_empty() {
            self.end_team();
        }
        let open = self.state.outer.len() as u64;
        for _ in 0..open {
            self.pop(last);
        }
        let index = self.state.index;
        let place = Some(crate::diagnostics::Place { location: index, time: last });
        self.diagnostics.count(DiagnosticKind::NeverLeft, open, place);
        let pending = self.state.sends.len() + self.state.receives.len();
        let receives = self.state.receives.values();
        self.shard.requests.rows.extend(receives.map(|&begin| OpenRequest { begin, end: NONE, is_send: false }));
        self.diagnostics.count(DiagnosticKind::PendingRequest, pending as u64, place);
        self.state.span.last = last;
        self.state.span.events = events;
        if let Some(message) = truncated {
            self.state.span.truncated = true;
            self.diagnostics.explain(DiagnosticKind::Truncated, index, last, message);
        }

        let shard = &mut self.shard;
        for (callpath, account) in self.accounts.iter_mut().enumerate() {
            let Account { visits, time, .. } = *account;
            if time != 0 || visits != 0 {
                shard.profile.rows.push(ProfileCell { callpath: callpath as u32, visits, time });
                (account.visits, account.time) = (0, 0);
            }
        }
        let events = &shard.events;
        let position = Position { events: events.len() as u32, callpath: NO_CALLPATH, depth: 0 };
        let parent = |callpath: u32| shard.tree.nodes()[callpath as usize].parent;
        self.book.hold(&self.index.counters, (last, position), events, parent);
        self.book.end_location(index, &mut shard.counters);
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
        shard.locks.end_location();
        shard.tasks.end_location();
        shard.threads.end_location();
        shard.profile.end_location();
        shard.spans.push(self.state.span);
    }

    /// The columns, and what was odd.
    #[must_use]
    pub fn finish(self) -> (Shard, Diagnostics) {
        let mut shard = self.shard;
        shard.fell = self.book.fell().to_vec();
        shard.shrink();
        (shard, self.diagnostics)
    }

    /// Number of events of the current location so far.
    #[must_use]
    pub fn decoded(&self) -> u64 {
        let before = self.shard.event_offsets.last().copied().unwrap_or(0);
        self.state.records + self.shard.events.len() as u64 - u64::from(before)
    }

    /// Number of sends and receives so far, of all locations of the block.
    #[must_use]
    pub fn messages(&self) -> (usize, usize) {
        (self.shard.sends.rows.len(), self.shard.receives.rows.len())
    }

    /// Number of Enters and Leaves of the current location so far: those that the columns have.
    #[must_use]
    pub fn positions(&self) -> usize {
        self.shard.events.len() - self.shard.event_offsets.last().map_or(0, |&before| before as usize)
    }

    /// What was odd so far.
    pub fn diagnostics(&mut self) -> &mut Diagnostics {
        &mut self.diagnostics
    }

    fn note(&mut self, kind: DiagnosticKind, time: i64) {
        self.diagnostics.add(kind, self.state.index, time);
    }

    /// Moves on to `time`; returns the time that is valid.
    #[inline(always)]
    fn advance(&mut self, time: i64) -> i64 {
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

    /// Books the time of the innermost region up to `time`.
    #[inline(always)]
    fn book(&mut self, time: i64) {
        if let Some(account) = self.accounts.get_mut(self.state.top.callpath as usize) {
            account.time += time - self.state.since;
        }
        self.state.since = time;
    }

    #[inline(always)]
    fn enter_key(&mut self, time: i64, key: u32) {
        let time = self.advance(time);
        self.push(time, key);
    }

    #[inline(always)]
    fn push(&mut self, time: i64, key: u32) {
        self.book(time);
        let parent = if self.state.outer.is_empty() { self.state.root } else { self.state.top.callpath };
        let callpath = self.shard.tree.child(parent, key);
        let enter = self.shard.events.enter(time, callpath);
        self.state.outer.push(self.state.top);
        self.state.top = Frame { callpath, key, enter, instance: NONE };
        if let Some(account) = self.accounts.get_mut(callpath as usize)
            && !account.remembered
        {
            account.visits += 1;
        } else {
            self.visit(callpath, key);
        }
    }

    /// Counts a visit of a call path that is new or whose instances matter.
    #[inline(never)]
    fn visit(&mut self, callpath: u32, key: u32) {
        let class = self.regions.class(key);
        while self.accounts.len() <= callpath as usize {
            let region = self.regions.class(self.shard.tree.region(self.accounts.len() as u32));
            // Any call of a library may be where one-sided communication makes progress.
            let remembered = region.is_remembered() || (self.one_sided && region.library().is_some());
            self.accounts.push(Account { visits: 0, time: 0, remembered });
        }
        let account = &mut self.accounts[callpath as usize];
        account.visits += 1;
        if account.remembered {
            self.remember(class);
        }
    }

    /// Opens the instance of a region that matters even without records inside.
    fn remember(&mut self, class: RegionClass) {
        use RegionClass::{ArmciAllFence, FlushAll, ShmemAllocate, ShmemFinalize, ShmemFree, ShmemQuiet};
        let Some(instance) = self.instance() else { return };
        if class.is_shutdown() {
            self.state.span.shutdown = instance;
        }
        match class {
            RegionClass::Init if self.state.span.init == NONE => self.state.span.init = instance,
            RegionClass::Finalize if self.state.span.finalize == NONE => self.state.span.finalize = instance,
            RegionClass::ExplicitBarrier | RegionClass::ImplicitBarrier if !self.state.teams.is_empty() => {
                self.state.barriers.push(instance);
            }
            ShmemAllocate | ShmemFree | ShmemFinalize | ShmemQuiet | ArmciAllFence | FlushAll => {
                self.synchronize(self.state.now, NONE, NONE, 0, SyncKind::Unrecorded);
            }
            RegionClass::Parallel => {
                if let Some(&team) = self.state.teams.last() {
                    let team = &mut self.shard.teams.rows[team as usize];
                    if team.instance == NONE {
                        team.instance = instance;
                    }
                }
            }
            _ => {}
        }
    }

    #[inline(always)]
    fn leave_key(&mut self, time: i64, key: u32) {
        let time = self.advance(time);
        if self.state.top.key == key {
            self.pop(time);
        } else {
            self.leave_out_of_order(time, key);
        }
    }

    #[cold]
    #[inline(never)]
    fn leave_out_of_order(&mut self, time: i64, key: u32) {
        // At the bottom stands what no Leave names.
        let Some(depth) = self.state.outer.iter().skip(1).rposition(|frame| frame.key == key) else {
            self.note(DiagnosticKind::LeaveWithoutEnter, time);
            return;
        };
        while self.state.outer.len() > depth + 1 {
            self.note(DiagnosticKind::NeverLeft, time);
            self.pop(time);
        }
        self.pop(time);
    }

    #[inline(always)]
    fn pop(&mut self, time: i64) {
        if let Some(around) = self.state.outer.pop() {
            self.book(time);
            let left = std::mem::replace(&mut self.state.top, around);
            let leave = self.shard.events.leave(time, left.callpath);
            if left.instance != NONE {
                self.shard.instances.leave[left.instance as usize] = leave;
            }
        }
    }

    /// Puts a buffer flush into the columns, as soon as an event behind its begin arrives.
    ///
    /// The measurement system flushes while it records an event whose time is already taken: the flush stands behind
    /// all events of the same time.
    #[inline(never)]
    fn settle_flush(&mut self, time: i64) {
        if let Some((begin, end)) = self.state.flush
            && time > begin
        {
            self.state.flush = None;
            self.state.until = self.bounds.last;
            self.enter_key(begin, Regions::BUFFER_FLUSH);
            let end = self.advance(end.min(time));
            self.pop(end);
        }
    }

    /// The region instance around the current event; `None` outside of any region.
    #[inline(always)]
    fn instance(&mut self) -> Option<u32> {
        let top = &mut self.state.top;
        if top.instance == NONE {
            if top.callpath == NO_CALLPATH {
                return None;
            }
            top.instance = self.shard.instances.open(top.enter);
        }
        Some(top.instance)
    }

    /// The region instance around a communication record, which must be there.
    #[inline(always)]
    fn communicating(&mut self, time: i64) -> Option<u32> {
        let instance = self.instance();
        if instance.is_none() {
            self.note(DiagnosticKind::OutsideRegion, time);
        }
        instance
    }

    /// Index of a communicator.
    #[inline(always)]
    fn known_comm(&mut self, id: u32) -> Option<KnownComm<'a>> {
        match self.last_comm {
            Some(known) if known.id == id => Some(known),
            _ => self.find_comm(id),
        }
    }

    #[inline(never)]
    fn find_comm(&mut self, id: u32) -> Option<KnownComm<'a>> {
        let comm = self.index.comm(id)?;
        let members = match &self.index.comms[comm as usize].members {
            Members::Processes(by_rank) | Members::Some { all: by_rank, .. } => &by_rank[..],
            _ => &[],
        };
        self.last_comm = Some(KnownComm { id, comm, members });
        self.last_comm
    }

    /// Index of a window and that of its communicator, likewise.
    #[inline]
    fn known_window(&mut self, id: u32) -> Option<(u32, u32)> {
        if let Some((last, window)) = self.last_window
            && last == id
        {
            return Some(window);
        }
        let window = self.index.window(id)?;
        let window = (window, self.index.windows[window as usize].comm);
        self.last_window = Some((id, window));
        Some(window)
    }

    /// Index of a communicator and the process behind a rank in it.
    #[inline(always)]
    fn peer(&mut self, time: i64, communicator: u32, rank: u32) -> Option<(u32, u32)> {
        if let Some(known) = self.last_comm
            && known.id == communicator
            && let Some(&peer) = known.members.get(rank as usize)
        {
            return Some((known.comm, peer));
        }
        self.find_peer(time, communicator, rank)
    }

    #[inline(never)]
    fn find_peer(&mut self, time: i64, communicator: u32, rank: u32) -> Option<(u32, u32)> {
        let Some(KnownComm { comm, .. }) = self.known_comm(communicator) else {
            self.note(DiagnosticKind::UnknownCommunicator, time);
            return None;
        };
        let Some(peer) = self.index.comms[comm as usize].peer(rank, self.state.process) else {
            if names_nobody(rank) {
                return None;
            }
            let unknown = self.index.comms[comm as usize].members == Members::Unknown;
            self.note(if unknown { DiagnosticKind::UnknownCommunicator } else { DiagnosticKind::UnknownPeer }, time);
            return None;
        };
        Some((comm, peer))
    }

    fn send(&mut self, time: i64, receiver: u32, communicator: u32, tag: u32, bytes: u64, request: Option<u64>) {
        let Some(instance) = self.communicating(time) else { return };
        let peer = self.peer(time, communicator, receiver);
        if let Some(request) = request {
            let row = if peer.is_some() { self.shard.sends.rows.len() as u32 } else { NONE };
            self.state.sends.insert(request, row);
        }
        let Some((comm, peer)) = peer else { return };
        let complete = if request.is_some() { NONE } else { instance };
        self.shard.sends.rows.push(Sent { time, bytes, instance, complete, peer, comm, tag, cancelled: false });
    }

    /// A completed receive; `posted` is the instance that posted it where that is another call.
    fn receive(&mut self, time: i64, message: Envelope, bytes: u64, posted: Option<u32>) {
        let Some(instance) = self.communicating(time) else { return };
        let Some((comm, peer)) = self.peer(time, message.communicator, message.sender) else { return };
        let request = posted.unwrap_or(instance);
        if message.probe != NONE {
            self.shard.probes.push((self.shard.receives.rows.len() as u32, message.probe));
        }
        self.shard.receives.rows.push(Received { time, bytes, instance, request, peer, comm, tag: message.tag });
    }

    fn complete_receive(&mut self, time: i64, message: Envelope, bytes: u64, request: u64) {
        let posted = self.state.receives.remove(request);
        if posted.is_none() {
            self.note(DiagnosticKind::UnknownRequest, time);
        }
        self.receive(time, message, bytes, posted);
    }

    fn post_receive(&mut self, time: i64, request: u64, probed: Option<Envelope>) {
        if let Some(instance) = self.communicating(time) {
            self.state.receives.insert(request, instance);
            if let Some(message) = probed {
                self.state.posted.insert(request, message);
            }
        }
    }

    fn complete_send(&mut self, time: i64, request: u64) {
        let Some(instance) = self.communicating(time) else { return };
        match self.state.sends.remove(request) {
            Some(row) => {
                if let Some(send) = self.shard.sends.rows.get_mut(row as usize) {
                    send.complete = instance;
                }
            }
            None => self.note(DiagnosticKind::UnknownRequest, time),
        }
    }

    fn cancel(&mut self, time: i64, request: u64) {
        let (sent, posted) = (self.state.sends.remove(request), self.state.receives.remove(request));
        let end = self.instance().unwrap_or(NONE);
        if let Some(row) = sent {
            if let Some(send) = self.shard.sends.rows.get_mut(row as usize) {
                send.cancelled = true;
                self.shard.requests.rows.push(OpenRequest { begin: send.instance, end, is_send: true });
            }
        } else if let Some(begin) = posted {
            self.shard.requests.rows.push(OpenRequest { begin, end, is_send: false });
        } else {
            self.note(DiagnosticKind::UnknownRequest, time);
        }
    }

    fn collective(&mut self, time: i64, operation: u8, communicator: u32, root: u32, sent: u64, received: u64) {
        let begin = self.state.collective_begin.take();
        let Some(instance) = self.communicating(time) else { return };
        let Some(KnownComm { comm, .. }) = self.known_comm(communicator) else {
            self.note(DiagnosticKind::UnknownCommunicator, time);
            return;
        };
        // A begin record may be missing, or left over from a call whose end is.
        let enter = self.shard.enter(instance);
        let begin = begin.map_or(enter, |begin| begin.max(enter));
        self.shard.collectives.rows.push(Collective {
            begin,
            end: time,
            sent,
            received,
            instance,
            comm,
            root,
            operation,
        });
    }

    /// Index of a window and its communicator, which must be there; none of a window of threads and streams, in which
    /// measurement systems record copies between the memories of a host and its devices.
    fn window(&mut self, time: i64, id: u32) -> Option<(u32, &'a Comm)> {
        let known = self.known_window(id);
        let window = known.and_then(|(window, comm)| Some((window, self.index.comms.get(comm as usize)?)));
        if window.is_none() {
            self.note(DiagnosticKind::UnknownCommunicator, time);
        }
        window.filter(|(_, comm)| !matches!(comm.members, Members::Locations(_)))
    }

    /// The process behind a rank in a window; [`ALL`] where the record names none.
    fn target(&mut self, time: i64, comm: &Comm, remote: u32) -> Option<u32> {
        let target = comm.peer(remote, self.state.process).or(names_nobody(remote).then_some(ALL));
        if target.is_none() {
            let unknown = comm.members == Members::Unknown;
            self.note(if unknown { DiagnosticKind::UnknownCommunicator } else { DiagnosticKind::UnknownPeer }, time);
        }
        target
    }

    fn operate(&mut self, time: i64, win: u32, remote: u32, moved: (u64, u64), id: u64, kind: OperationKind) {
        let Some((window, comm)) = self.window(time, win) else { return };
        let Some(instance) = self.communicating(time) else { return };
        let Some(target) = self.target(time, comm, remote) else { return };
        // MPI_PROC_NULL: nothing happens.
        if target == ALL {
            return;
        }
        let row = self.shard.operations.rows.len() as u32;
        let before = self.state.operations.insert(id, row).unwrap_or(NONE);
        self.state.same_id.push(before);
        self.shard.operations.rows.push(Operation {
            time,
            sent: moved.0,
            received: moved.1,
            instance,
            window,
            target,
            done_local: NONE,
            done_remote: NONE,
            kind,
        });
    }

    /// Completes all operations with an id that are still open.
    fn complete_operations(&mut self, time: i64, win: u32, id: u64, done: fn(&mut Operation) -> &mut u32) {
        let Some((window, _)) = self.window(time, win) else { return };
        let Some(instance) = self.communicating(time) else { return };
        let first = self.shard.operations.rows.len() - self.state.same_id.len();
        let mut row = self.state.operations.get(id).copied().unwrap_or(NONE);
        while let Some(operation) = self.shard.operations.rows.get_mut(row as usize) {
            if operation.window == window {
                let done = done(operation);
                if *done != NONE {
                    break;
                }
                *done = instance;
            }
            row = self.state.same_id[row as usize - first];
        }
    }

    fn synchronize(&mut self, time: i64, window: u32, target: u32, lock: u64, kind: SyncKind) {
        if let Some(instance) = self.communicating(time) {
            self.synchronize_in(instance, time, window, target, lock, kind);
        }
    }

    fn synchronize_in(&mut self, instance: u32, time: i64, window: u32, target: u32, lock: u64, kind: SyncKind) {
        let after = self.shard.operations.rows.len() as u32;
        let row = Synchronization { time, lock, instance, window, target, after, kind };
        self.shard.synchronizations.rows.push(row);
    }

    fn synchronize_group(&mut self, time: i64, level: RmaSyncLevel, win: u32, group: u32) {
        let Some((window, _)) = self.window(time, win) else { return };
        let kind = match self.index.group(group) {
            _ if level == RmaSyncLevel::NONE => SyncKind::FailedTest,
            Some(group) => SyncKind::Group(group),
            None => return self.note(DiagnosticKind::UnknownCommunicator, time),
        };
        self.synchronize(time, window, NONE, 0, kind);
    }

    fn synchronize_lock(&mut self, time: i64, win: u32, remote: u32, lock: u64, kind: SyncKind) {
        if let Some((window, comm)) = self.window(time, win)
            && let Some(target) = self.target(time, comm, remote)
        {
            self.synchronize(time, window, target, lock, kind);
        }
    }

    fn sample(&mut self, time: i64, metric: u32, values: MetricValues<'_>) {
        let state = &self.state;
        let counters = &self.index.counters;
        if !counters.is_of_recorder(self.index, metric, state.index) {
            let at = (time, state.index);
            let kept = self.book.keep(counters, (metric, values), at, &mut self.shard.samples);
            return self.note_fault(kept, time);
        }
        let events = &self.shard.events;
        let (callpath, depth) = (state.top.callpath, state.outer.len() as u32);
        let position = Position { events: events.len() as u32, callpath, depth };
        let parent = |callpath: u32| self.shard.tree.nodes()[callpath as usize].parent;
        let booked = self.book.sample(counters, (metric, values), (time, position), events, parent);
        self.note_fault(booked, time);
    }

    fn note_fault(&mut self, result: Result<(), Fault>, time: i64) {
        let kind = match result {
            Ok(()) => return,
            Err(Fault::Unknown) => DiagnosticKind::Metric,
            Err(Fault::NotANumber) => DiagnosticKind::MetricNotANumber,
            Err(Fault::Reset) => DiagnosticKind::MetricReset,
        };
        self.note(kind, time);
    }

    fn begin_team(&mut self, time: i64, communicator: u32) {
        let comm = self.index.comm(communicator).unwrap_or(NONE);
        let part = self.state.parts.entry(comm).or_insert(0);
        let key = (comm, *part);
        *part += 1;
        let begun = self.state.forks.last().copied().filter(|fork| {
            // A fork belongs to the first team that its thread begins; deeper teams have forks of their own.
            !self.state.teams.iter().any(|&team| self.shard.teams.rows[team as usize].fork == *fork)
        });
        let fork = match begun {
            Some(fork) => {
                self.forks.insert(key, fork);
                fork
            }
            None => self.forks.get(&key).copied().unwrap_or(NONE),
        };
        if fork == NONE {
            self.note(DiagnosticKind::UnknownTeam, time);
        } else if self.state.outer.is_empty() {
            self.state.root = self.shard.forks.rows[fork as usize].callpath;
        }
        self.state.teams.push(self.shard.teams.rows.len() as u32);
        self.state.first_barriers.push(self.state.barriers.len() as u32);
        self.shard.teams.rows.push(Team { comm, fork, instance: NONE, barriers: 0, barriers_end: 0 });
    }

    fn end_team(&mut self) {
        if let (Some(team), Some(first)) = (self.state.teams.pop(), self.state.first_barriers.pop()) {
            // Barriers of deeper teams have gone with these.
            let barriers = &mut self.shard.barriers.rows;
            let begin = barriers.len() as u32;
            barriers.extend(self.state.barriers.drain(first as usize..));
            let team = &mut self.shard.teams.rows[team as usize];
            (team.barriers, team.barriers_end) = (begin, barriers.len() as u32);
        }
        if self.state.teams.is_empty() {
            self.state.root = NO_CALLPATH;
        }
    }

    /// Another task runs from now on: an explicit one, or the thread's own, which has the number 0.
    fn switch_task(&mut self, time: i64, number: u64) {
        if let Some(begin) = self.state.task.take() {
            self.shard.tasks.rows.push(TaskRun { begin, end: time });
        }
        if number != 0 {
            self.state.task = Some(time);
            self.note(DiagnosticKind::Tasks, time);
        }
    }

    fn lock(&mut self, time: i64, paradigm: u8, lock: u32, order: u32, acquired: bool) {
        // Old measurement systems wrote order 0 where they did not know it.
        if order != 0 {
            let instance = self.instance().unwrap_or(NONE);
            self.shard.locks.rows.push(Lock { time, instance, lock, order, paradigm, acquired });
        }
    }

    fn thread(&mut self, time: i64, thread: (u32, u64), step: ThreadStep) {
        self.shard.threads.rows.push(Thread { time, thread, step });
    }

    /// Brings the stack to a calling context, of which the innermost `fresh` nodes were newly entered.
    fn calling_context(&mut self, time: i64, context: u32, fresh: u32) {
        let mut path = Vec::new();
        let mut next = context;
        while let Some(node) = self.definitions.calling_context(next) {
            path.push(self.regions.key(node.region));
            if path.len() > self.definitions.calling_contexts.len() {
                break;
            }
            next = node.parent;
        }
        path.reverse();
        // Calling contexts know nothing of the program that stands at the root.
        let base = usize::from(self.state.outermost().is_some_and(|frame| frame.key & Regions::PROGRAM != 0));
        let open = self.state.outer.iter().chain([&self.state.top]).skip(1 + base);
        let common = open.zip(&path).take_while(|(frame, key)| frame.key == **key);
        let keep = base + common.count().min(path.len().saturating_sub(fresh as usize));
        while self.state.outer.len() > keep {
            self.pop(time);
        }
        for &key in &path[keep - base..] {
            self.push(time, key);
        }
    }
}

impl EventSink for Decoder<'_> {
    #[inline(always)]
    fn enter(&mut self, time: i64, region: u32) {
        self.enter_key(time, self.regions.key(region));
    }

    #[inline(always)]
    fn leave(&mut self, time: i64, region: u32) {
        self.leave_key(time, self.regions.key(region));
    }

    #[inline(always)]
    fn record(&mut self, time: i64, record: &Event<'_>, _: &Attributes<'_>) {
        let time = self.advance(time);
        self.state.records += 1;
        match *record {
            Event::MpiSend { receiver, communicator, msg_tag, msg_length } => {
                self.send(time, receiver, communicator, msg_tag, msg_length, None);
            }
            Event::MpiIsend { receiver, communicator, msg_tag, msg_length, request_id } => {
                self.send(time, receiver, communicator, msg_tag, msg_length, Some(request_id));
            }
            Event::MpiIsendComplete { request_id } => self.complete_send(time, request_id),
            Event::MpiIrecvRequest { request_id } => self.post_receive(time, request_id, None),
            Event::MpiRecv { sender, communicator, msg_tag: tag, msg_length } => {
                self.receive(time, Envelope { sender, communicator, tag, probe: NONE }, msg_length, None);
            }
            Event::MpiIrecv { sender, communicator, msg_tag: tag, msg_length, request_id } => {
                self.complete_receive(
                    time,
                    Envelope { sender, communicator, tag, probe: NONE },
                    msg_length,
                    request_id,
                );
            }
            Event::MpiRequestCancelled { request_id } => self.cancel(time, request_id),
            Event::MpiProbe { sender, communicator, tag, message_id } => {
                let probe = self.instance().unwrap_or(NONE);
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
                self.note(DiagnosticKind::NonBlockingCollective, time);
                if let Some(instance) = self.instance() {
                    self.state.nonblocking.insert(request_id, instance);
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
                if let (Some(post), Some(complete)) = (post, self.instance())
                    && let Some(KnownComm { comm, .. }) = self.known_comm(communicator)
                {
                    let operation = collective_op.0;
                    let row = Nonblocking { post, complete, sent, received, comm, root, operation };
                    self.shard.nonblocking.rows.push(row);
                }
            }
            Event::Metric { metric, values } => self.sample(time, metric, values),
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
            Event::ProgramBegin { program_name, .. } => self.enter_key(time, Regions::PROGRAM | program_name),
            Event::ProgramEnd { .. } => {
                if let Some(program) = self.state.outermost()
                    && program.key & Regions::PROGRAM != 0
                {
                    self.leave_key(time, program.key);
                }
            }
            Event::ThreadFork { .. } | Event::OmpFork { .. } => {
                self.state.forks.push(self.shard.forks.rows.len() as u32);
                self.shard.forks.rows.push(Fork { fork: time, join: i64::MIN, callpath: self.state.top.callpath });
            }
            Event::ThreadJoin { .. } | Event::OmpJoin {} => {
                if let Some(fork) = self.state.forks.pop() {
                    self.shard.forks.rows[fork as usize].join = time;
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
            Event::ThreadTaskSwitch { generation_number, .. } => self.switch_task(time, generation_number.into()),
            Event::OmpTaskSwitch { task_id } => self.switch_task(time, task_id),
            Event::ThreadTaskComplete { .. } | Event::OmpTaskComplete { .. } => self.switch_task(time, 0),
            Event::CallingContextEnter { calling_context, unwind_distance }
            | Event::CallingContextSample { calling_context, unwind_distance, .. } => {
                self.calling_context(time, calling_context, unwind_distance.saturating_sub(1));
            }
            Event::CallingContextLeave { calling_context } => {
                let parent = self.definitions.calling_context(calling_context).map_or(u32::MAX, |node| node.parent);
                self.calling_context(time, parent, 0);
            }
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
            Event::RmaCollectiveEnd { collective_op, win, .. } => {
                if let Some((window, _)) = self.window(time, win) {
                    self.synchronize(time, window, NONE, 0, SyncKind::Collective(collective_op.0));
                }
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
                    self.synchronize(time, window, NONE, 0, SyncKind::WaitChange);
                }
            }
            // What only orders memory synchronizes with nobody.
            Event::RmaSync { win, remote, sync_type }
                if matches!(sync_type, RmaSyncType::NOTIFY_IN | RmaSyncType::NOTIFY_OUT) =>
            {
                let is_incoming = sync_type == RmaSyncType::NOTIFY_IN;
                self.synchronize_lock(time, win, remote, 0, SyncKind::Notify { is_incoming });
            }
            // Score-P destroys the windows of OpenSHMEM outside of any region: no call, and nothing to complain of.
            Event::RmaWinDestroy { win } => {
                if let (Some(window), Some(instance)) = (self.index.window(win), self.instance()) {
                    self.synchronize_in(instance, time, window, NONE, 0, SyncKind::Destroy);
                }
            }
            Event::Unknown { .. } => self.note(DiagnosticKind::UnknownRecord, time),
            _ => {}
        }
    }
}
