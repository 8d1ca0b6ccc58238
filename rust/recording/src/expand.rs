//! Slots of a process to events: the records that Score-P writes for the same calls.
//!
//! The threads of a process are merged by time, because one may complete what another has started.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;
use whywait_otf2::enums::{CollectiveOp, IoSeekOption, LockType, MeasurementMode, Paradigm, RmaSyncLevel, Type};
use whywait_otf2::records::{AttributeValue, StringRefs, TypedValue, UNDEFINED};
use whywait_otf2::{ArchiveWriter, Attributes, Event};

use crate::armci::Armci;
use crate::collectives;
use crate::constructs::Constructs;
use crate::contexts::Contexts;
use crate::counters::Classes;
use crate::error::{Error, Result};
use crate::files::{Files, Modes};
use crate::format::{self, Call, Extension, LOCK_SHARED, NONE, PEER_ALL, RequestKind, flags};
use crate::functions::{Class, FUNCTIONS, Function};
use crate::model::{ArmciWindow, Model, Regions, location};
use crate::openmp::{Ended, OpenMp};
use crate::partitions::Partitioned;
use crate::paths::Paths;
use crate::posix;
use crate::requests::{Request, listed, wide};
use crate::rma::{Completion, Pending};
use crate::samples::{Reader, Symbolized};
use crate::shmem::Shmem;
use crate::shmem_windows::Windows;
use crate::spool::{Process, Slot, extension, word};
use crate::survey::Survey;
use crate::thread::{Out, Samples, Thread};
use crate::unify::{Id, Local, LocalComm, LocalFile, LocalWindow};
use crate::worlds;

/// A process to expand.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    /// Its rank.
    pub(crate) rank: u32,
    /// What it left.
    pub(crate) process: &'a Process,
    /// Its ids.
    pub(crate) local: &'a Local,
    /// Survey and call paths of each thread.
    pub(crate) threads: &'a [(u32, Survey, Paths)],
    /// Name of its program, a string.
    pub(crate) program: u32,
    /// The most functions of a call path, innermost ones.
    pub(crate) depth: u32,
    /// The threads that it makes.
    pub(crate) contingent: Option<u32>,
    /// Its constructs of OpenMP.
    pub(crate) constructs: &'a Constructs,
    /// Its counters: of the first thread, and of the others.
    pub(crate) counters: (Classes, Classes),
    /// The windows of OpenSHMEM, if the program uses it.
    pub(crate) shmem: Option<&'a Windows>,
    /// The window of ARMCI, if the program uses it.
    pub(crate) armci: Option<ArmciWindow>,
    /// The samples of its threads, and the metric of their counts if anything was sampled in the run.
    pub(crate) samples: &'a BTreeMap<u32, Symbolized>,
    pub(crate) metric: Option<u32>,
    /// Written into the local definitions.
    pub(crate) clock_offsets: &'a [whywait_otf2::records::ClockOffset],
}

impl Job<'_> {
    /// When the process began and ended, by its own clock.
    #[must_use]
    pub(crate) fn span(&self) -> (u64, u64) {
        let definitions = &self.process.definitions;
        let spans = self.threads.iter().filter_map(|(_, survey, _)| survey.span);
        let (first, last) = spans.fold((u64::MAX, 0), |(first, last), (from, to)| (first.min(from), last.max(to)));
        let start = definitions.start.as_ref().map_or(u64::MAX, |start| start.time);
        let begin = if start == u64::MAX && first == u64::MAX { 0 } else { start.min(first) };
        (begin, definitions.end.map_or(0, |(time, _)| time).max(last).max(begin))
    }

    /// Writes the events of all threads, and returns the contexts of locations. `stop` is asked now and then whether to give up.
    pub(crate) fn write(
        &self,
        to: &ArchiveWriter,
        regions: &Regions,
        model: Model,
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<(u64, Contexts)>> {
        let span = self.span();
        let has_samples = self.metric.is_some();
        let mut threads = Vec::new();
        for (number, survey, paths) in self.threads {
            let slots = (self.process.slots(*number)?, survey.slots);
            let to = to.location(location(self.rank, *number))?;
            let counters = if *number == 0 { self.counters.0 } else { self.counters.1 };
            let samples = match (self.samples.get(number), self.process.samples.get(number), self.metric) {
                (Some(symbols), Some(path), Some(metric)) => {
                    Some(Samples::new(Reader::open(path, symbols.slots)?, symbols, metric))
                }
                _ => None,
            };
            let out = Out::new(to, counters, has_samples);
            threads.push(Thread::new(*number, out, slots, paths, self.depth, samples));
        }
        if threads.is_empty() {
            let mut out = Out::new(to.location(location(self.rank, 0))?, Classes::default(), false);
            self.begin(&mut out, regions, span.0);
            out.put(span.1, &Event::ProgramEnd { exit_status: UNKNOWN_STATUS });
            out.finish(self.clock_offsets)?;
            return Ok(Vec::new());
        }
        self.begin(&mut threads[0].out, regions, span.0);
        let partitioned = self.threads.iter().flat_map(|(_, survey, _)| &survey.partitioned);
        let partitioned = partitioned.map(|(request, count)| (*request, *count));
        let mut state = State {
            local: self.local,
            contingent: self.contingent,
            openmp: OpenMp::new(self.constructs),
            regions,
            model,
            modes: Modes::of(self.process),
            pending: Pending::default(),
            files: Files::default(),
            shmem: Shmem::new(self.shmem),
            partitioned: Partitioned::new(partitioned),
            armci: Armci::new(self.armci),
            ignored: FxHashSet::default(),
            unrecorded: worlds::unrecorded(&self.process.definitions),
        };
        let folds = model == Model::Full;
        for thread in &mut threads {
            thread.load(folds)?;
        }
        let mut count = 0_u32;
        while let Some(next) = earliest(&threads) {
            if let Some((team, time)) = state.call(&mut threads[next])? {
                for thread in &mut threads {
                    state.openmp.close_team(thread, team, time, regions);
                }
            }
            threads[next].load(folds)?;
            count = count.wrapping_add(1);
            if count.is_multiple_of(1 << 16) && stop() {
                return Err(Error::Interrupted);
            }
        }
        let lost = &self.process.definitions.lost;
        let mut contexts = Vec::new();
        for ((number, ..), mut thread) in self.threads.iter().zip(threads) {
            if thread.constructs.is_empty() {
                thread.sample_until(span.1, thread.open.is_some(), regions)?;
            }
            thread.end(regions, span.1);
            thread.sample_until(span.1, false, regions)?;
            for (_, time, ..) in lost.iter().filter(|(thread, ..)| [*number, NONE].contains(thread)) {
                thread.out.put(*time, &Event::MeasurementOnOff { measurement_mode: MeasurementMode::OFF });
            }
            if *number == self.threads[0].0 {
                thread.out.put(span.1, &Event::ProgramEnd { exit_status: UNKNOWN_STATUS });
            }
            let found = thread.out.finish(self.clock_offsets)?;
            contexts.extend(found.map(|found| (location(self.rank, *number), found)));
        }
        Ok(contexts)
    }

    fn begin(&self, out: &mut Out<'_>, regions: &Regions, time: u64) {
        let pid = self.process.definitions.start.as_ref().map_or(0, |start| u64::from(start.pid));
        let value = TypedValue { kind: Type::UINT64, bits: pid };
        let attributes = [AttributeValue { id: regions.process_id, value }];
        let event = Event::ProgramBegin { program_name: self.program, program_arguments: StringRefs::new(&[]) };
        out.put_with(time, &event, &Attributes::new(&attributes));
    }
}

/// What OTF2 writes for an exit status that is not known.
const UNKNOWN_STATUS: i64 = i64::MIN;

/// The thread that enters a call next.
fn earliest(threads: &[Thread<'_>]) -> Option<usize> {
    let next = threads.iter().enumerate().filter_map(|(index, thread)| Some((thread.next.as_ref()?.enter, index)));
    next.min().map(|(_, index)| index)
}

/// What must be remembered between the calls of a process.
struct State<'a> {
    local: &'a Local,
    contingent: Option<u32>,
    openmp: OpenMp<'a>,
    regions: &'a Regions,
    model: Model,
    modes: Modes,
    pending: Pending,
    files: Files,
    shmem: Shmem<'a>,
    partitioned: Partitioned,
    armci: Armci,
    /// Requests that Score-P does not know.
    ignored: FxHashSet<u64>,
    /// Communicators to processes of which nothing was recorded.
    unrecorded: FxHashSet<u32>,
}

impl State<'_> {
    /// Writes the events of a thread's next call. Returns the team of OpenMP whose parallel region is over with it.
    #[inline]
    fn call(&mut self, thread: &mut Thread<'_>) -> Result<Option<Ended>> {
        let Some(call) = thread.next else { return Ok(None) };
        let function = &FUNCTIONS[usize::from(call.function)];
        thread.sample_before(&call, self.regions)?;
        if let Some(region) = thread.open.take() {
            thread.out.leave(call.enter, region);
        }
        thread.write_before(self.regions)?;
        let is_known = self.model == Model::Full || (function.is_in_scorep7() && call.flags & flags::LARGE == 0);
        if self.model == Model::Scorep7 && (!is_known || function.class == Class::Imrecv) {
            self.ignored.insert(call.id);
            if function.class == Class::Isendrecv {
                self.ignored.insert(call.id.wrapping_add(1));
            }
        }
        if !is_known {
            // Values that do not change are not repeated.
            thread.out.count(&thread.before, Extension::CountersEnter);
            thread.out.count(&thread.after, Extension::CountersLeave);
            return Ok(None);
        }
        if function.class == Class::Omp {
            return Ok(self.openmp.moment(thread, &call, self.regions));
        }
        if function.is_moment() {
            self.moment(thread, function, &call);
            return Ok(None);
        }
        thread.end_barrier(self.regions);
        thread.sample_until(call.enter, false, self.regions)?;
        let polled = call.flags & flags::POLLED != 0 && self.model == Model::Full;
        let polling = self.regions.polling.get(&call.function).copied().filter(|_| polled);
        let is_unrecorded = !self.unrecorded.is_empty() && function.is_with(call.object, &self.unrecorded);
        let unrecorded = self.regions.unrecorded.get(&call.function).copied().filter(|_| is_unrecorded);
        let region = unrecorded.or(polling).or(self.regions.mpi[usize::from(call.function)]);
        thread.follow_path(call.node, call.enter, self.regions);
        let out = &mut thread.out;
        out.count(&thread.before, Extension::CountersEnter);
        out.count_process(call.enter);
        if let Some(region) = region {
            out.enter(call.enter, region);
        }
        let bytes = if call.flags & flags::WIDE == 0 { u64::from(call.bytes) } else { wide(&thread.after) };
        let returned = call.leave != 0;
        let failed = returned && call.flags & flags::FAILED != 0;
        if function.class == Class::ThreadCondition {
            Self::lock(out, call.enter, call.object, bytes, false);
        }
        if !failed && function.class.is_of_shmem() {
            self.shmem.enter(out, function, &call, bytes);
        } else if !failed && function.class.is_of_files() {
            posix::enter(out, function, &call, bytes, &thread.after, &mut self.files, self.local);
        } else if !failed && function.class.is_of_armci() {
            self.armci.enter(out, function, &call, bytes);
        } else if !failed {
            self.on_entry(out, function, &call, bytes, &thread.after);
        }
        if returned {
            thread.sample_until(call.leave, true, self.regions)?;
        }
        let out = &mut thread.out;
        if !failed && returned && function.class.is_of_shmem() {
            self.shmem.leave(out, function, &call, bytes);
        } else if !failed && returned && function.class.is_of_files() {
            posix::leave(out, function, &call, bytes, &mut self.files, self.local);
        } else if !failed && returned && function.class.is_of_armci() {
            self.armci.leave(out, function, &call);
        } else if !failed && returned {
            self.on_return(out, function, &call, bytes, &thread.after);
        }
        if returned {
            self.completions(out, function, &call, &thread.after);
            // Also calls that failed: time was up, or the owner had died.
            if matches!(function.class, Class::ThreadLock | Class::ThreadCondition) {
                Self::lock(out, call.leave, call.object, call.id, true);
            }
            out.count(&thread.after, Extension::CountersLeave);
            out.count_process(call.leave);
            if let Some(region) = region {
                out.leave(call.leave, region);
                if !polled && function.tests() {
                    tests_in_vain(out, region, &call, &thread.after);
                }
            }
        } else {
            thread.open = region;
        }
        Ok(None)
    }

    /// A thread begins or ends.
    fn moment(&self, thread: &mut Thread<'_>, function: &Function, call: &Call) {
        let Some(thread_contingent) = self.contingent else { return };
        let (time, sequence_count) = (call.enter, call.id);
        if function.class == Class::ThreadBegin {
            thread.out.put(time, &Event::ThreadBegin { thread_contingent, sequence_count });
            thread.begun = Some(time);
        } else {
            thread.leave_functions(time, self.regions);
            thread.out.put(time, &Event::ThreadEnd { thread_contingent, sequence_count });
        }
    }

    /// A thread has or gives up a lock.
    fn lock(out: &mut Out<'_>, time: u64, lock_id: u32, order: u64, acquires: bool) {
        let Ok(acquisition_order) = u32::try_from(order) else { return };
        let model = Paradigm::PTHREAD;
        if order == 0 || lock_id == NONE {
            return;
        }
        if acquires {
            out.put(time, &Event::ThreadAcquireLock { model, lock_id, acquisition_order });
        } else {
            out.put(time, &Event::ThreadReleaseLock { model, lock_id, acquisition_order });
        }
    }

    fn comm(&self, id: u32) -> Option<LocalComm> {
        self.local.comms.get(&id).copied()
    }

    fn window(&self, id: u32) -> Option<LocalWindow> {
        self.local.windows.get(&id).copied()
    }

    fn file(&self, id: u32) -> Option<LocalFile> {
        self.local.files.get(&id).copied()
    }

    /// Records with the time of entry.
    #[inline]
    fn on_entry(&mut self, out: &mut Out<'_>, function: &Function, call: &Call, bytes: u64, after: &[Slot]) {
        let time = call.enter;
        match function.class {
            Class::Send | Class::Sendrecv => self.send(out, time, call, bytes, None),
            Class::Isend | Class::Isendrecv if call.leave != 0 => self.send(out, time, call, bytes, Some(call.id)),
            Class::Start if call.kind() == RequestKind::Send as u8 && call.leave != 0 => {
                self.send(out, time, call, bytes, Some(call.id));
            }
            Class::Startall => {
                for request in after.iter().flat_map(listed).filter(|request| request.kind == RequestKind::Send as u8) {
                    let Request { id, bytes, peer, tag, object, .. } = request;
                    let call = Call { peer, tag, object, ..*call };
                    self.send(out, time, &call, bytes, Some(id));
                }
            }
            Class::Coll if function.operation.is_some() && self.comm(call.object).is_some() => {
                out.put(time, &Event::MpiCollectiveBegin {});
            }
            Class::WinCreate => out.put(time, &Event::RmaCollectiveBegin {}),
            Class::WinFree | Class::WinFence if self.window(call.object).is_some() => {
                out.put(time, &Event::RmaCollectiveBegin {});
            }
            Class::WinGroup => self.group_sync(out, time, call, RmaSyncLevel::PROCESS),
            Class::WinEnd => match function.name {
                "MPI_Win_wait" => self.group_sync(out, time, call, BOTH),
                "MPI_Win_test" if call.leave != 0 => {
                    self.group_sync(out, time, call, if call.source == 0 { RmaSyncLevel::NONE } else { BOTH });
                }
                _ => {}
            },
            Class::WinLock => {
                if let Some(window) = self.window(call.object) {
                    let lock_type = if call.tag == LOCK_SHARED { LockType::SHARED } else { LockType::EXCLUSIVE };
                    let remote = remote(call.peer);
                    out.put(time, &Event::RmaRequestLock { win: window.id, remote, lock_id: 0, lock_type });
                }
            }
            Class::Rma | Class::RmaRequest | Class::Atomic | Class::AtomicRequest if call.leave != 0 => {
                self.transfer(out, function, call, bytes);
            }
            Class::ThreadUnlock => Self::lock(out, time, call.object, bytes, false),
            Class::ThreadCreate => {
                if let Some(thread_contingent) = self.contingent.filter(|_| bytes != 0) {
                    out.put(time, &Event::ThreadCreate { thread_contingent, sequence_count: bytes });
                }
            }
            Class::Io | Class::IoBegin | Class::Iio => {
                if let Some(file) = self.file(call.object) {
                    let (mode, operation_flags) = function.file_operation();
                    let matching_id = self.files.start(function.class, call);
                    let handle = file.id;
                    out.put(
                        time,
                        &Event::IoOperationBegin { handle, mode, operation_flags, bytes_request: bytes, matching_id },
                    );
                }
            }
            _ => {}
        }
    }

    /// Records with the time of return.
    #[inline]
    fn on_return(&mut self, out: &mut Out<'_>, function: &Function, call: &Call, bytes: u64, after: &[Slot]) {
        let time = call.leave;
        match function.class {
            Class::Recv | Class::Sendrecv => self.receive(out, call),
            Class::Mrecv if self.model == Model::Full => self.receive(out, call),
            Class::Irecv => self.request(out, call, call.id),
            Class::Imrecv if self.model == Model::Full => self.request(out, call, call.id),
            Class::Isendrecv => self.request(out, call, call.id.wrapping_add(1)),
            Class::Start if call.kind() == RequestKind::Receive as u8 => self.request(out, call, call.id),
            Class::Parrived if call.source == 0 => self.partitioned.missed(out, call),
            Class::Pready | Class::Parrived => self.partitioned.found(out, call, after),
            Class::Coll => {
                if let (Some(collective_op), Some(comm)) = (function.operation, self.comm(call.object)) {
                    let (size_sent, size_received) =
                        collectives::bytes(collective_op, &comm, call.peer, bytes, call.received);
                    let root = collectives::root(call.peer);
                    out.put(
                        time,
                        &Event::MpiCollectiveEnd {
                            collective_op,
                            communicator: comm.id,
                            root,
                            size_sent,
                            size_received,
                        },
                    );
                }
            }
            Class::Icoll if self.model == Model::Full && function.operation.is_some() && call.id != 0 => {
                out.put(time, &Event::NonBlockingCollectiveRequest { request_id: call.id });
            }
            Class::CommIdup if self.model == Model::Full && call.received != 0 => {
                out.put(time, &Event::NonBlockingCollectiveRequest { request_id: call.received });
            }
            Class::CommCreate
            | Class::CommCreateGroup
            | Class::CommFromGroup
            | Class::IntercommCreate
            | Class::IntercommMerge
                if self.model == Model::Full =>
            {
                if let Some(comm) = self.comm(call.id as u32).filter(|_| call.id < u64::from(NONE)) {
                    out.put(time, &Event::CommCreate { communicator: comm.id });
                }
            }
            Class::CommFree if self.model == Model::Full => {
                if let Some(comm) = self.comm(call.object) {
                    out.put(time, &Event::CommDestroy { communicator: comm.id });
                }
            }
            Class::WinCreate => {
                if let Some(window) = self.window(call.id as u32) {
                    out.put(time, &Event::RmaWinCreate { win: window.id });
                    let operation = if window.is_allocated {
                        CollectiveOp::CREATE_HANDLE_AND_ALLOCATE
                    } else {
                        CollectiveOp::CREATE_HANDLE
                    };
                    window_collective(out, time, window, operation, RmaSyncLevel::PROCESS);
                }
            }
            Class::WinFree => {
                if let Some(window) = self.window(call.object) {
                    self.pending.free(window.id);
                    out.put(time, &Event::RmaWinDestroy { win: window.id });
                    let operation = if window.is_allocated {
                        CollectiveOp::DESTROY_HANDLE_AND_DEALLOCATE
                    } else {
                        CollectiveOp::DESTROY_HANDLE
                    };
                    window_collective(out, time, window, operation, RmaSyncLevel::PROCESS);
                }
            }
            Class::WinFence => {
                if let Some(window) = self.window(call.object) {
                    self.pending.end_epoch(window.id, |matching, how| complete(out, time, window.id, matching, how));
                    window_collective(out, time, window, CollectiveOp::BARRIER, BOTH);
                }
            }
            Class::WinEnd if function.name == "MPI_Win_complete" => {
                if let Some(window) = self.window(call.object) {
                    let any = self
                        .pending
                        .end_epoch(window.id, |matching, how| complete(out, time, window.id, matching, how));
                    self.group_sync(out, if any { time } else { call.enter }, call, BOTH);
                }
            }
            Class::WinUnlock => {
                if let Some(window) = self.window(call.object) {
                    let target = (call.peer != PEER_ALL).then_some(call.peer);
                    let note = |matching, how| complete(out, time, window.id, matching, how);
                    let any = self.pending.flush(window.id, target, note);
                    let remote = remote(call.peer);
                    let time = if any { time } else { call.enter };
                    out.put(time, &Event::RmaReleaseLock { win: window.id, remote, lock_id: 0 });
                }
            }
            Class::WinFlush | Class::WinFlushLocal => {
                if let Some(window) = self.window(call.object) {
                    let target = (call.peer != PEER_ALL).then_some(call.peer);
                    let note = |matching, how| complete(out, time, window.id, matching, how);
                    if function.class == Class::WinFlush {
                        self.pending.flush(window.id, target, note);
                    } else {
                        self.pending.flush_local(window.id, target, note);
                    }
                }
            }
            Class::FileOpen => {
                if let Some(file) = self.file(call.id as u32) {
                    let (mode, creation_flags, status_flags) = self.modes.flags(file.mode, self.model);
                    out.put(time, &Event::IoCreateHandle { handle: file.id, mode, creation_flags, status_flags });
                }
            }
            Class::FileClose => {
                if let Some(file) = self.file(call.object) {
                    if self.modes.deletes(file.mode) {
                        out.put(time, &Event::IoDeleteFile { io_paradigm: 0, file: file.path });
                    }
                    out.put(time, &Event::IoDestroyHandle { handle: file.id });
                }
            }
            Class::FileSeek => {
                if let (Some(file), Ok(from)) = (self.file(call.object), u8::try_from(call.peer)) {
                    let offset = u64::from(call.tag.cast_unsigned()) | bytes << 32;
                    out.put(
                        time,
                        &Event::IoSeek {
                            handle: file.id,
                            offset_request: offset.cast_signed(),
                            whence: IoSeekOption(from),
                            offset_result: call.received,
                        },
                    );
                }
            }
            Class::ThreadJoin => {
                if let Some(thread_contingent) = self.contingent.filter(|_| call.id != 0) {
                    out.put(time, &Event::ThreadWait { thread_contingent, sequence_count: call.id });
                }
            }
            Class::Io | Class::IoEnd => {
                if let (Some(file), Some(matching_id)) =
                    (self.file(call.object), self.files.end(function.class, u64::from(call.object)))
                {
                    let bytes_result = call.received;
                    out.put(time, &Event::IoOperationComplete { handle: file.id, bytes_result, matching_id });
                }
            }
            _ => {}
        }
    }

    /// What completion functions completed, and Startall started.
    #[inline]
    fn completions(&mut self, out: &mut Out<'_>, function: &Function, call: &Call, after: &[Slot]) {
        let time = call.leave;
        let failed = call.flags & flags::FAILED != 0;
        match function.class {
            Class::Start | Class::Startall => {
                for request in after.iter().flat_map(listed) {
                    if request.kind == RequestKind::Receive as u8 {
                        self.request(out, &Call { peer: request.peer, ..*call }, request.id);
                    } else if request.kind == RequestKind::Collective as u8
                        && self.model == Model::Full
                        && FUNCTIONS.get(usize::from(request.function)).is_some_and(|made| made.operation.is_some())
                    {
                        out.put(time, &Event::NonBlockingCollectiveRequest { request_id: request.id });
                    }
                }
            }
            Class::Wait | Class::Waitany | Class::Test | Class::Testany if call.flags & flags::LISTED == 0 => {
                let kind = call.kind();
                if kind == RequestKind::Collective as u8 {
                    self.complete_listed(out, time, after);
                } else if kind != RequestKind::None as u8 && !failed {
                    let Call { id, received: bytes, source: peer, arrived_tag: tag, object, .. } = *call;
                    self.complete(out, time, &Request { kind, id, bytes, peer, tag, object, received: 0, function: 0 });
                } else if function.class == Class::Test && call.id != 0 && !failed && !self.ignored.contains(&call.id) {
                    out.put(time, &Event::MpiRequestTest { request_id: call.id });
                }
            }
            Class::Wait
            | Class::Waitany
            | Class::Waitall
            | Class::Waitsome
            | Class::Test
            | Class::Testany
            | Class::Testall
            | Class::Testsome => self.complete_listed(out, time, after),
            _ => {}
        }
    }

    fn complete_listed(&mut self, out: &mut Out<'_>, time: u64, after: &[Slot]) {
        for request in after.iter().flat_map(listed) {
            self.complete(out, time, &request);
        }
    }

    #[inline]
    fn complete(&mut self, out: &mut Out<'_>, time: u64, request: &Request) {
        let Request { kind, id: request_id, bytes, .. } = *request;
        let is = |of: RequestKind| kind == of as u8;
        if !self.ignored.is_empty()
            && self.ignored.contains(&request_id)
            && !is(RequestKind::Put)
            && !is(RequestKind::Get)
        {
            return;
        }
        // A communicator that is duplicated completes like a collective operation, but is none that OTF2 names.
        let made = FUNCTIONS.get(usize::from(request.function)).filter(|_| is(RequestKind::Collective));
        let is_duplicate = made.is_some_and(|made| made.class == Class::CommIdup);
        if is(RequestKind::Send) {
            out.put(time, &Event::MpiIsendComplete { request_id });
        } else if is(RequestKind::Receive) {
            if let (Some(comm), Ok(sender)) = (self.comm(request.object), u32::try_from(request.peer)) {
                let (communicator, msg_tag, msg_length) = (comm.id, request.tag.cast_unsigned(), bytes);
                out.put(time, &Event::MpiIrecv { sender, communicator, msg_tag, msg_length, request_id });
            }
        } else if is(RequestKind::Cancelled) {
            out.put(time, &Event::MpiRequestCancelled { request_id });
        } else if is(RequestKind::Collective) && !is_duplicate {
            if let (Model::Full, Some(collective_op), Some(comm)) =
                (self.model, made.and_then(|made| made.operation), self.comm(request.object))
            {
                let (size_sent, size_received) =
                    collectives::bytes(collective_op, &comm, request.peer, bytes, request.received);
                let root = collectives::root(request.peer);
                let communicator = comm.id;
                let event = Event::NonBlockingCollectiveComplete {
                    collective_op,
                    communicator,
                    root,
                    size_sent,
                    size_received,
                    request_id,
                };
                out.put(time, &event);
            }
        } else if is_duplicate {
            if let (Model::Full, Some(comm)) = (self.model, self.comm(request.object)) {
                let event = Event::NonBlockingCollectiveComplete {
                    collective_op: CollectiveOp::CREATE_HANDLE,
                    communicator: comm.id,
                    root: UNDEFINED,
                    size_sent: 0,
                    size_received: 0,
                    request_id,
                };
                out.put(time, &event);
            }
        } else if is(RequestKind::Put) || is(RequestKind::Get) {
            if let Some(window) = self.window(request.object) {
                let note = |matching, how| complete(out, time, window.id, matching, how);
                self.pending.request(window.id, request_id, is(RequestKind::Get), note);
            }
        } else if is(RequestKind::File)
            && let (Some(file), Some(matching_id)) = (self.file(request.object), self.files.end(Class::Iio, request_id))
        {
            out.put(time, &Event::IoOperationComplete { handle: file.id, bytes_result: bytes, matching_id });
        }
    }

    #[inline]
    fn send(&mut self, out: &mut Out<'_>, time: u64, call: &Call, msg_length: u64, request: Option<u64>) {
        let (Some(comm), Ok(receiver)) = (self.comm(call.object), u32::try_from(call.peer)) else { return };
        let (communicator, msg_tag) = (comm.id, call.tag.cast_unsigned());
        match request {
            None => out.put(time, &Event::MpiSend { receiver, communicator, msg_tag, msg_length }),
            Some(request_id) if self.ignored.contains(&request_id) => {}
            Some(request_id) => {
                let event = Event::MpiIsend { receiver, communicator, msg_tag, msg_length, request_id };
                self.partitioned.begin(out, time, &event, request_id);
            }
        }
    }

    #[inline]
    fn receive(&self, out: &mut Out<'_>, call: &Call) {
        if let (Some(comm), Ok(sender)) = (self.comm(call.object), u32::try_from(call.source)) {
            let (communicator, msg_tag, msg_length) = (comm.id, call.arrived_tag.cast_unsigned(), call.received);
            out.put(call.leave, &Event::MpiRecv { sender, communicator, msg_tag, msg_length });
        }
    }

    /// The request of a receive, unless it is one from nobody, or from a process that was not recorded.
    #[inline]
    fn request(&mut self, out: &mut Out<'_>, call: &Call, request_id: u64) {
        let is_known = !self.ignored.contains(&request_id) && !self.unrecorded.contains(&call.object);
        if request_id != 0 && call.peer != format::PEER_NULL && is_known {
            self.partitioned.begin(out, call.leave, &Event::MpiIrecvRequest { request_id }, request_id);
        }
    }

    fn group_sync(&self, out: &mut Out<'_>, time: u64, call: &Call, sync_level: RmaSyncLevel) {
        let group = u32::try_from(call.peer).ok().and_then(|group| self.local.groups.get(&group));
        if let (Some(window), Some(group)) = (self.window(call.object), group) {
            out.put(time, &Event::RmaGroupSync { sync_level, win: window.id, group: *group });
        }
    }

    fn transfer(&mut self, out: &mut Out<'_>, function: &Function, call: &Call, bytes: u64) {
        let (Some(window), Ok(remote)) = (self.window(call.object), u32::try_from(call.peer)) else { return };
        let (win, matching_id, time) = (window.id, call.id, call.enter);
        let is_get = function.is_get();
        let event = match function.class {
            Class::Atomic | Class::AtomicRequest => Event::RmaAtomic {
                win,
                remote,
                atomic_type: function.atomic(),
                bytes_sent: bytes,
                bytes_received: call.received,
                matching_id,
            },
            _ if is_get => Event::RmaGet { win, remote, bytes, matching_id },
            _ => Event::RmaPut { win, remote, bytes, matching_id },
        };
        out.put(time, &event);
        self.pending.start(win, call.peer, matching_id, is_get);
    }
}

/// Synchronizes processes and memory.
const BOTH: RmaSyncLevel = RmaSyncLevel(RmaSyncLevel::PROCESS.0 | RmaSyncLevel::MEMORY.0);

/// Further tests after one that found nothing either: one instance that is as long as all of them together, at their end.
fn tests_in_vain(out: &mut Out<'_>, region: u32, call: &Call, after: &[Slot]) {
    let is_polls = |slot: &&Slot| extension(slot).is_some_and(|(kind, _)| kind == Extension::Polls as u8);
    if let Some(slot) = after.iter().find(is_polls) {
        let (until, inside) = (word(slot, 1).max(call.leave), word(slot, 3));
        out.enter(until.saturating_sub(inside).max(call.leave), region);
        out.leave(until, region);
    }
}

fn remote(peer: i32) -> u32 {
    u32::try_from(peer).unwrap_or(UNDEFINED)
}

fn complete(out: &mut Out<'_>, time: u64, win: Id, matching_id: u64, how: Completion) {
    match how {
        Completion::Local => out.put(time, &Event::RmaOpCompleteNonBlocking { win, matching_id }),
        Completion::Remote => out.put(time, &Event::RmaOpCompleteRemote { win, matching_id }),
    }
}

fn window_collective(
    out: &mut Out<'_>,
    time: u64,
    window: LocalWindow,
    collective_op: CollectiveOp,
    sync_level: RmaSyncLevel,
) {
    let (win, root) = (window.id, UNDEFINED);
    out.put(time, &Event::RmaCollectiveEnd { collective_op, sync_level, win, root, bytes_sent: 0, bytes_received: 0 });
}
