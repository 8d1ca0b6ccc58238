//! One-sided operations and their synchronization.

use whywait_otf2::enums::RmaSyncLevel;

use super::decoder::Decoder;
use super::envelopes::names_nobody;
use crate::diagnostics::DiagnosticKind;
use crate::ids::{CommId, InstanceId, ProcessId, WindowId};
use crate::trace::NONE;
use crate::trace::columns::{ALL, Operation, OperationKind, SyncKind, Synchronization};
use crate::trace::definition_index::{Comm, Members};

impl<'a> Decoder<'a> {
    /// Index of a window, and that of its communicator.
    #[inline]
    pub(super) fn known_window(&mut self, id: u32) -> Option<(WindowId, CommId)> {
        if let Some((last, window)) = self.last_window
            && last == id
        {
            return Some(window);
        }
        let window = self.index.window(id)?;
        let window = (window, self.index.windows[window].comm);
        self.last_window = Some((id, window));
        Some(window)
    }

    /// Index of a window and its communicator, which must be there; `None` for a window of threads and streams, on
    /// which measurement systems record copies between the memories of a host and its devices.
    pub(super) fn window(&mut self, time: i64, id: u32) -> Option<(WindowId, &'a Comm)> {
        let known = self.known_window(id);
        let window = known.and_then(|(window, comm)| Some((window, self.index.comms.get(comm.index())?)));
        if window.is_none() {
            self.note(DiagnosticKind::UnknownCommunicator, time);
        }
        window.filter(|(_, comm)| !matches!(*comm.members, Members::Locations(_)))
    }

    /// The process behind a rank in a window; [`ALL`] where the record names none.
    pub(super) fn target(&mut self, time: i64, comm: &Comm, remote: u32) -> Option<ProcessId> {
        let target = comm.peer(remote, self.state.process).or(names_nobody(remote).then_some(ALL));
        if target.is_none() {
            let unknown = *comm.members == Members::Unknown;
            self.note(if unknown { DiagnosticKind::UnknownCommunicator } else { DiagnosticKind::UnknownPeer }, time);
        }
        target
    }

    pub(super) fn operate(
        &mut self,
        time: i64,
        win: u32,
        remote: u32,
        moved: (u64, u64),
        id: u64,
        kind: OperationKind,
    ) {
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
            done_local: InstanceId::NONE,
            done_remote: InstanceId::NONE,
            kind,
        });
    }

    /// Completes all operations with an id that are still open.
    pub(super) fn complete_operations(
        &mut self,
        time: i64,
        win: u32,
        id: u64,
        done: fn(&mut Operation) -> &mut InstanceId,
    ) {
        let Some((window, _)) = self.window(time, win) else { return };
        let Some(instance) = self.communicating(time) else { return };
        let first = self.shard.operations.rows.len() - self.state.same_id.len();
        let mut row = self.state.operations.get(id).copied().unwrap_or(NONE);
        while let Some(operation) = self.shard.operations.rows.get_mut(row as usize) {
            if operation.window == window {
                let done = done(operation);
                if done.is_some() {
                    break;
                }
                *done = instance;
            }
            row = self.state.same_id[row as usize - first];
        }
    }

    /// A collective operation on a window begins, perhaps to end in a later call.
    pub(super) fn begin_collective(&mut self) {
        let Some(instance) = self.instance() else { return };
        let (region, calls) = &mut self.state.collective_calls;
        *region = self.state.top.key;
        calls.clear();
        calls.push(instance);
    }

    /// A call may ask for the end of a collective operation again.
    pub(super) fn continue_collective(&mut self, instance: InstanceId) {
        let (region, calls) = &mut self.state.collective_calls;
        if *region == self.state.top.key && !calls.is_empty() {
            calls.push(instance);
        }
    }

    /// A collective operation on a window ends in this call. Calls of the same function since its begin have waited for it as
    /// well.
    pub(super) fn end_collective(&mut self, time: i64, win: u32, root: u32, operation: u8) {
        let Some((window, comm)) = self.window(time, win) else { return };
        let Some(instance) = self.communicating(time) else { return };
        let root = comm.peer(root, self.state.process).unwrap_or(ProcessId::NONE);
        let mut calls = std::mem::take(&mut self.state.collective_calls.1);
        let begin = calls.first().copied().unwrap_or(instance);
        if self.state.collective_calls.0 == self.state.top.key {
            for &call in calls.iter().filter(|&&call| call != instance) {
                self.synchronize_in(call, time, window, ProcessId::NONE, 0, SyncKind::Asked);
            }
        }
        calls.clear();
        self.state.collective_calls.1 = calls;
        self.synchronize_in(instance, time, window, root, 0, SyncKind::Collective { operation, begin });
    }

    pub(super) fn synchronize(&mut self, time: i64, window: WindowId, target: ProcessId, lock: u64, kind: SyncKind) {
        if let Some(instance) = self.communicating(time) {
            self.synchronize_in(instance, time, window, target, lock, kind);
        }
    }

    pub(super) fn synchronize_in(
        &mut self,
        instance: InstanceId,
        time: i64,
        window: WindowId,
        target: ProcessId,
        lock: u64,
        kind: SyncKind,
    ) {
        let after = self.shard.operations.rows.len() as u32;
        let row = Synchronization { time, lock, instance, window, target, after, kind };
        self.shard.synchronizations.rows.push(row);
    }

    pub(super) fn synchronize_group(&mut self, time: i64, level: RmaSyncLevel, win: u32, group: u32) {
        let Some((window, _)) = self.window(time, win) else { return };
        let kind = match self.index.group(group) {
            _ if level == RmaSyncLevel::NONE => SyncKind::FailedTest,
            Some(group) => SyncKind::Group(group),
            None => return self.note(DiagnosticKind::UnknownCommunicator, time),
        };
        self.synchronize(time, window, ProcessId::NONE, 0, kind);
    }

    pub(super) fn synchronize_lock(&mut self, time: i64, win: u32, remote: u32, lock: u64, kind: SyncKind) {
        if let Some((window, comm)) = self.window(time, win)
            && let Some(target) = self.target(time, comm, remote)
        {
            self.synchronize(time, window, target, lock, kind);
        }
    }
}
