//! Finds the epochs of one-sided communication, and the epoch of each operation.
//!
//! The records of a process are read in order of time, over all its threads. An operation belongs to the first of the
//! following that is open: lock epoch on its target, lock epoch on the whole window, access epoch whose group contains
//! its target, fence epoch of its window.
//!
//! *Source*: specification.md#epochs; thesis, section 3.1; docs/one-sided.md lists the decisions.

use rustc_hash::{FxHashMap, FxHashSet};

use super::epochs::{
    Access, Asked, Change, CollectivePart, Completion, Epoch, Epochs, Exposure, Groups, LockEpoch, Notification,
    PassiveSync,
};
use crate::Result;
use crate::diagnostics::{DiagnosticKind, Place};
use crate::ids::{GroupId, InstanceId, LocationId, ProcessId, WindowId};
use crate::parallel::iter::prelude::*;
use crate::trace::columns::{ALL, Operation, SyncKind, Synchronization};
use crate::trace::regions::Library;
use crate::trace::{RegionClass, Shard, Trace};

/// Finds the epochs of all shards; none if there is no one-sided communication in the run.
pub fn find(trace: &Trace) -> Result<Option<Vec<Epochs>>> {
    let has_any = |shard: &Shard| !shard.operations.rows.is_empty() || !shard.synchronizations.rows.is_empty();
    let found = trace.exchange.any(trace.shards.iter().any(has_any))?;
    Ok(found.then(|| trace.par_shards().map(|shard| of_shard(trace, shard)).collect()))
}

/// Whether there are calls of GASPI or UPC, and no record tells what they did. Collective.
pub fn is_silent(trace: &Trace) -> Result<bool> {
    let classes = [RegionClass::Gaspi, RegionClass::GaspiFinalize, RegionClass::Upc, RegionClass::UpcTest];
    if !classes.iter().any(|&class| trace.regions.has(class)) {
        return Ok(false);
    }
    let has_any = |shard: &Shard| {
        let operations = shard.operations.rows.iter().map(|operation| operation.instance);
        let synchronizations = shard.synchronizations.rows.iter().map(|sync| sync.instance);
        let mut calls = operations.chain(synchronizations);
        calls.any(|call| trace.class(shard, call).library() == Some(Library::Pgas))
    };
    Ok(!trace.exchange.any(trace.shards.iter().any(has_any))?)
}

fn of_shard(trace: &Trace, shard: &Shard) -> Epochs {
    let mut epochs = Epochs { epoch_of: vec![Epoch::Open; shard.operations.rows.len()], ..Epochs::default() };
    if shard.operations.rows.is_empty() && shard.synchronizations.rows.is_empty() {
        return epochs;
    }
    let is_notification = |sync: &Synchronization| matches!(sync.kind, SyncKind::Notify { .. });
    let has_notifications = shard.synchronizations.rows.iter().any(is_notification);
    for process in shard.processes {
        let state = ProcessState { accessed: has_notifications.then(FxHashSet::default), ..ProcessState::default() };
        let mut reader = Reader { trace, shard, epochs: &mut epochs, process, state };
        reader.read();
    }
    let of = |select: fn(Epoch) -> Option<u32>| epochs.epoch_of.iter().map(move |&epoch| select(epoch));
    let of_collective = Groups::new(
        epochs.collectives.len(),
        of(|epoch| if let Epoch::Collective(part) = epoch { Some(part) } else { None }),
    );
    let of_access = Groups::new(
        epochs.accesses.len(),
        of(|epoch| if let Epoch::Access(access) = epoch { Some(access) } else { None }),
    );
    let of_lock =
        Groups::new(epochs.locks.len(), of(|epoch| if let Epoch::Lock(lock) = epoch { Some(lock) } else { None }));
    (epochs.of_collective, epochs.of_access, epochs.of_lock) = (of_collective, of_access, of_lock);
    // Completions are found in the order of the operations, so they are almost sorted.
    epochs.completions.sort();
    epochs.completions.dedup();
    let Epochs { passive_syncs, completions, .. } = &mut epochs;
    for sync in passive_syncs {
        let first = completions.partition_point(|completion| completion.instance < sync.instance);
        let own = completions[first..].iter().take_while(|completion| completion.instance == sync.instance);
        sync.needed = own.count() as u32;
    }
    epochs
}

/// What is open at a process on a window.
#[derive(Default)]
struct WindowState {
    /// Operations since the last collective call.
    fence: Vec<u32>,
    /// Access epoch.
    access: Option<u32>,
    /// Exposure epoch.
    exposure: Option<u32>,
    /// Lock epoch by target, for MPI.
    locks: FxHashMap<ProcessId, u32>,
    /// Number of collective calls.
    calls: u32,
}

/// What is open at a process.
#[derive(Default)]
struct ProcessState {
    windows: FxHashMap<WindowId, WindowState>,
    /// Lock epoch by window, target and lock id, for other libraries than MPI.
    held: FxHashMap<(WindowId, ProcessId, u64), u32>,
    /// Other libraries than MPI: operations that the next quiet or barrier completes at their targets, by library.
    unfinished: [Vec<u32>; Library::COUNT],
    /// For each `MPI_Win_flush_all`, by region instance, the window on which it completes operations.
    flushed: FxHashMap<InstanceId, WindowId>,
    /// Calls of the next collective operation that returned before it could end.
    asked: Vec<InstanceId>,
    /// Processes accessed since the last notification to them, if there are any notifications.
    accessed: Option<FxHashSet<ProcessId>>,
}

struct Reader<'a> {
    trace: &'a Trace,
    shard: &'a Shard,
    epochs: &'a mut Epochs,
    process: ProcessId,
    state: ProcessState,
}

/// A record: a row of one of the two column sets.
#[derive(Clone, Copy)]
enum Record {
    Operation(u32),
    Synchronization(u32),
}

impl Reader<'_> {
    fn read(&mut self) {
        let locations = self.shard.local_locations(self.trace.definitions.processes[self.process].locations);
        let busy = |i: &usize| {
            !self.shard.operations.range(*i).is_empty() || !self.shard.synchronizations.range(*i).is_empty()
        };
        let busy: Vec<usize> = locations.filter(busy).collect();
        if let [location] = busy[..] {
            for row in in_order(self.shard, location) {
                self.read_record(location, row);
            }
        } else {
            let mut rows: Vec<(i64, usize, Record)> = Vec::new();
            for location in busy {
                rows.extend(in_order(self.shard, location).map(|row| (self.time(row), location, row)));
            }
            rows.sort_by_key(|(time, ..)| *time);
            for (_, location, row) in rows {
                self.read_record(location, row);
            }
        }
        self.finish();
    }

    fn time(&self, row: Record) -> i64 {
        match row {
            Record::Operation(row) => self.shard.operations.rows[row as usize].time,
            Record::Synchronization(row) => self.shard.synchronizations.rows[row as usize].time,
        }
    }

    fn open(&mut self, window: WindowId) -> &mut WindowState {
        self.state.windows.entry(window).or_default()
    }

    fn class(&self, instance: InstanceId) -> RegionClass {
        self.trace.class(self.shard, instance)
    }

    fn read_record(&mut self, location: usize, row: Record) {
        let here = self.shard.location(location);
        match row {
            Record::Operation(row) => {
                let Operation { instance, time, done_local, done_remote, .. } =
                    self.shard.operations.rows[row as usize];
                let is_known = |call: InstanceId| call.is_some() && self.class(call).library().is_some();
                if ![instance, done_local, done_remote].into_iter().any(is_known) {
                    self.foreign(here, instance, time);
                }
                self.operation(row);
            }
            Record::Synchronization(row) => {
                let sync = self.shard.synchronizations.rows[row as usize];
                let is_known = self.class(sync.instance).library().is_some();
                if is_known || matches!(sync.kind, SyncKind::Destroy | SyncKind::Unrecorded) {
                    self.synchronization(here, &sync);
                } else {
                    self.foreign(here, sync.instance, sync.time);
                }
            }
        }
    }

    /// Notes a record in a call of no library whose communication is known.
    fn foreign(&mut self, location: LocationId, instance: InstanceId, time: i64) {
        let place = Place::at(location, time);
        let diagnostics = &mut self.epochs.diagnostics;
        if diagnostics.occurrences(DiagnosticKind::ForeignOneSided) > 0 {
            return diagnostics.count(DiagnosticKind::ForeignOneSided, 1, Some(place));
        }
        let region = self.trace.tree.region(self.shard.callpath(instance));
        let detail = self.trace.regions.get(region).map_or_else(
            || "outside of all functions".to_owned(),
            |region| format!("{}, paradigm {}", region.name, region.paradigm.name().unwrap_or("UNKNOWN")),
        );
        diagnostics.explain(DiagnosticKind::ForeignOneSided, place, detail);
    }

    fn operation(&mut self, row: u32) {
        let operation = &self.shard.operations.rows[row as usize];
        let library = self.class(operation.instance).library();
        self.complete(operation);
        let Operation { window, target, done_remote, .. } = *operation;
        if let Some(accessed) = &mut self.state.accessed {
            accessed.insert(target);
        }
        if library != Some(Library::Mpi) {
            if let Some(library) = library.filter(|_| !operation.kind.is_fetching()) {
                self.state.unfinished[library as usize].push(row);
            }
            return;
        }
        if done_remote.is_some() && self.class(done_remote) == RegionClass::FlushAll {
            self.state.flushed.insert(done_remote, window);
        }
        let open = self.state.windows.entry(window).or_default();
        if !open.locks.is_empty()
            && let Some(&lock) = open.locks.get(&target).or_else(|| open.locks.get(&ALL))
        {
            self.epochs.epoch_of[row as usize] = Epoch::Lock(lock);
            return;
        }
        if let Some(access) = open.access {
            let group = self.epochs.accesses[access as usize].group;
            if self.trace.definitions.group_members(group, &self.process).binary_search(&target).is_ok() {
                self.epochs.epoch_of[row as usize] = Epoch::Access(access);
                return;
            }
        }
        open.fence.push(row);
    }

    /// Notes the calls that may need the target for an operation: those that complete it, even if only here, since a library
    /// may wait for the target to do so; and in most other libraries than MPI the operation itself.
    fn complete(&mut self, operation: &Operation) {
        let Operation { instance, target, done_local, done_remote, kind, .. } = *operation;
        if done_remote.is_some() {
            self.completion(done_remote, target);
        }
        if done_local.is_some() && (done_local != instance || kind.is_fetching()) {
            self.completion(done_local, target);
        }
        if self.class(instance).waits_in_operations() {
            self.completion(instance, target);
        }
    }

    fn completion(&mut self, instance: InstanceId, target: ProcessId) {
        let completion = Completion { instance, target };
        if self.epochs.completions.last() != Some(&completion) {
            self.epochs.completions.push(completion);
        }
    }

    fn synchronization(&mut self, location: LocationId, sync: &Synchronization) {
        match sync.kind {
            SyncKind::Collective { operation, begin } => self.collective(location, sync, operation, begin),
            SyncKind::Asked => self.state.asked.push(sync.instance),
            SyncKind::Group(group) => self.group(location, sync, group),
            SyncKind::Request { shared } => self.lock(location, sync, shared, true),
            SyncKind::Acquire { shared } => self.lock(location, sync, shared, false),
            SyncKind::Release => self.release(location, sync),
            SyncKind::WaitChange => {
                self.epochs.changes.push(Change { process: self.process, location, instance: sync.instance });
            }
            SyncKind::Notify { is_incoming } => self.notify(location, sync, is_incoming),
            SyncKind::Destroy => {
                self.open(sync.window).fence.clear();
            }
            SyncKind::Unrecorded => self.unrecorded(location, sync),
            SyncKind::FailedTest => {}
        }
    }

    fn collective(&mut self, location: LocationId, sync: &Synchronization, operation: u8, begin: InstanceId) {
        let Some(library) = self.class(sync.instance).library() else { return };
        // Some tools record what others only imply by the name of the call.
        let last = self.epochs.collectives.last();
        if last.is_some_and(|part| part.instance == sync.instance && part.window.is_none()) {
            self.epochs.collectives.pop();
            self.open(WindowId::NONE).calls -= 1;
        }
        let part = self.part(location, sync, operation, library);
        if library != Library::Mpi && self.class(begin).library() == Some(library) {
            self.epochs.collectives[part as usize].begin = begin;
        }
        let asked = self.state.asked.drain(..).map(|instance| Asked { part, instance });
        self.epochs.asked.extend(asked);
        // Creating and freeing complete nothing, but what was pending belongs to no later fence either.
        let open = self.state.windows.entry(sync.window).or_default();
        for row in open.fence.drain(..) {
            self.epochs.epoch_of[row as usize] = Epoch::Collective(part);
        }
        if library != Library::Mpi && self.epochs.collectives[part as usize].completes() {
            for row in self.finish_all(library, sync.instance) {
                self.epochs.epoch_of[row as usize] = Epoch::Collective(part);
            }
        }
    }

    /// The operations that a call completes at their targets: all except those that are already complete, for example
    /// because a lock was released.
    fn finish_all(&mut self, library: Library, instance: InstanceId) -> Vec<u32> {
        let enter = self.shard.enter(instance);
        let mut rows = std::mem::take(&mut self.state.unfinished[library as usize]);
        rows.retain(|&row| {
            let done_remote = self.shard.operations.rows[row as usize].done_remote;
            done_remote.is_none() || self.shard.enter(done_remote) >= enter
        });
        rows
    }

    /// A process notifies another one, or is notified (thesis, section 3.1: the sync event).
    fn notify(&mut self, location: LocationId, sync: &Synchronization, is_incoming: bool) {
        let Synchronization { window, target: partner, lock: id, instance, .. } = *sync;
        let is_unknown = partner == ALL && !is_incoming;
        if is_unknown || self.class(instance).library().is_none() {
            return;
        }
        let is_needed = !is_incoming && self.state.accessed.as_mut().is_some_and(|accessed| accessed.remove(&partner));
        let process = self.process;
        let row = Notification { window, process, partner, id, location, instance, is_incoming, is_needed };
        self.epochs.notifications.push(row);
    }

    fn passive_sync(&mut self, location: LocationId, instance: InstanceId, size: usize) {
        self.epochs.passive_syncs.push(PassiveSync { location, instance, size: size as u32, needed: 0 });
    }

    /// Number of processes that share a window.
    fn window_size(&self, window: WindowId) -> usize {
        let is_own = self.trace.definitions.is_own_window(window);
        if is_own { 1 } else { self.trace.definitions.window_comm(window).map_or(0, |comm| comm.size) }
    }

    fn part(&mut self, location: LocationId, sync: &Synchronization, operation: u8, library: Library) -> u32 {
        let open = self.open(sync.window);
        let sequence = open.calls;
        open.calls += 1;
        self.epochs.collectives.push(CollectivePart {
            process: self.process,
            location,
            begin: sync.instance,
            instance: sync.instance,
            window: sync.window,
            sequence,
            operation,
            root: sync.target,
            library,
        });
        self.epochs.collectives.len() as u32 - 1
    }

    /// Calls without a record of their own.
    fn unrecorded(&mut self, location: LocationId, sync: &Synchronization) {
        const ALLOCATE: u8 = 19;
        const DEALLOCATE: u8 = 20;
        match self.class(sync.instance) {
            RegionClass::ShmemQuiet => {
                for row in self.finish_all(Library::Shmem, sync.instance) {
                    self.completion(sync.instance, self.shard.operations.rows[row as usize].target);
                }
                self.passive_sync(location, sync.instance, self.trace.definitions.processes.len());
            }
            // Its memory is that of all processes.
            RegionClass::ArmciAllFence => {
                self.passive_sync(location, sync.instance, self.trace.definitions.processes.len());
            }
            RegionClass::FlushAll => {
                // Nothing says which window it is about but what it completes, or that there is only one.
                let mut locked = self.state.windows.iter().filter(|(_, open)| !open.locks.is_empty());
                let only = locked.next().filter(|_| locked.next().is_none()).map(|(&window, _)| window);
                if let Some(window) = self.state.flushed.remove(&sync.instance).or(only) {
                    self.passive_sync(location, sync.instance, self.window_size(window));
                }
            }
            RegionClass::ShmemAllocate => {
                self.part(location, sync, ALLOCATE, Library::Shmem);
            }
            RegionClass::ShmemFree | RegionClass::ShmemFinalize => {
                self.part(location, sync, DEALLOCATE, Library::Shmem);
            }
            _ => {}
        }
    }

    fn group(&mut self, location: LocationId, sync: &Synchronization, group: GroupId) {
        let Synchronization { window, instance, .. } = *sync;
        let process = self.process;
        match self.class(instance) {
            RegionClass::Start => {
                self.open(window).access = Some(self.epochs.accesses.len() as u32);
                let access = Access { process, location, window, group, start: instance, complete: InstanceId::NONE };
                self.epochs.accesses.push(access);
            }
            RegionClass::Complete => {
                if let Some(access) = self.open(window).access.take() {
                    self.epochs.accesses[access as usize].complete = instance;
                }
            }
            RegionClass::Post => {
                self.open(window).exposure = Some(self.epochs.exposures.len() as u32);
                let exposure = Exposure {
                    process,
                    location,
                    window,
                    group,
                    post: instance,
                    wait: InstanceId::NONE,
                    tested: false,
                };
                self.epochs.exposures.push(exposure);
            }
            class @ (RegionClass::WinWait | RegionClass::WinTest) => {
                if let Some(exposure) = self.open(window).exposure.take() {
                    let exposure = &mut self.epochs.exposures[exposure as usize];
                    exposure.wait = instance;
                    exposure.tested = class == RegionClass::WinTest;
                }
            }
            _ => {}
        }
    }

    fn lock(&mut self, location: LocationId, sync: &Synchronization, shared: bool, requested: bool) {
        let Some(library) = self.class(sync.instance).library() else { return };
        let mpi = library == Library::Mpi;
        // Score-P writes a Request where the test got the lock, the thesis' model an Acquire.
        let tried = !mpi && (requested || self.class(sync.instance).is_test());
        // With MPI an Acquire comes after the Request.
        if mpi
            && !requested
            && let Some(&position) = self.open(sync.window).locks.get(&sync.target)
        {
            self.epochs.locks[position as usize].granted = (sync.instance, sync.time);
            return;
        }
        let position = self.epochs.locks.len() as u32;
        self.epochs.locks.push(LockEpoch {
            lock: sync.lock,
            process: self.process,
            location,
            window: sync.window,
            target: sync.target,
            acquire: sync.instance,
            release: InstanceId::NONE,
            granted: (InstanceId::NONE, i64::MIN),
            shared,
            blocking: !mpi,
            tried,
            library,
        });
        if mpi {
            self.open(sync.window).locks.insert(sync.target, position);
        } else {
            self.state.held.insert((sync.window, sync.target, sync.lock), position);
        }
    }

    fn release(&mut self, location: LocationId, sync: &Synchronization) {
        let mpi = self.class(sync.instance).library() == Some(Library::Mpi);
        let lock = if mpi {
            self.open(sync.window).locks.remove(&sync.target)
        } else {
            self.state.held.remove(&(sync.window, sync.target, sync.lock))
        };
        let Some(lock) = lock else {
            self.epochs.diagnostics.add(DiagnosticKind::UnknownRequest, location, sync.time);
            return;
        };
        self.epochs.locks[lock as usize].release = sync.instance;
        // The record names the target: the lock itself must be released there.
        if mpi && sync.target != ALL {
            self.completion(sync.instance, sync.target);
        } else if mpi {
            self.passive_sync(location, sync.instance, self.window_size(sync.window));
        }
    }

    fn finish(&mut self) {
        let on_window = |open: &WindowState| {
            open.locks.len() + usize::from(open.access.is_some()) + usize::from(open.exposure.is_some())
        };
        let open = self.state.held.len() + self.state.windows.values().map(on_window).sum::<usize>();
        if open > 0 {
            let location = self.trace.definitions.master(self.process);
            let time = self.shard.spans[self.shard.local(location)].last;
            self.epochs.diagnostics.count(DiagnosticKind::OpenEpoch, open as u64, Some(Place::at(location, time)));
        }
    }
}

/// Rows of a location in the order of their records.
fn in_order(shard: &Shard, location: usize) -> impl Iterator<Item = Record> {
    let mut operations = shard.operations.range(location).peekable();
    let mut synchronizations = shard.synchronizations.range(location).peekable();
    std::iter::from_fn(move || match (operations.peek(), synchronizations.peek()) {
        (Some(&operation), Some(&sync)) if operation >= shard.synchronizations.rows[sync].after as usize => {
            synchronizations.next().map(|row| Record::Synchronization(row as u32))
        }
        (None, Some(_)) => synchronizations.next().map(|row| Record::Synchronization(row as u32)),
        _ => operations.next().map(|row| Record::Operation(row as u32)),
    })
}
