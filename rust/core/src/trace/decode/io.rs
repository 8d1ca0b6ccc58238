//! Operations on files.

use whywait_otf2::enums::{IoOperationFlag, IoOperationMode};

use super::decoder::Decoder;
use super::open_io::{Blocking, DEEPEST, Name};
use crate::diagnostics::{DiagnosticKind, Place};
use crate::ids::{InstanceId, NONE};
use crate::trace::columns::{COLLECTIVE_IO, Collective, IoKind, IoOperation};
use crate::trace::io_handles::IoHandle;
use crate::trace::regions::Regions;

impl Decoder<'_> {
    pub(super) fn begin_io(&mut self, time: i64, name: Name, mode: IoOperationMode, flags: IoOperationFlag) {
        let kind = match mode {
            IoOperationMode::READ => IoKind::Read,
            IoOperationMode::WRITE => IoKind::Write,
            _ => IoKind::Flush,
        };
        let is_blocking = !flags.contains(IoOperationFlag::NON_BLOCKING);
        let is_own = is_blocking && !self.is_in_library();
        if is_own {
            self.push(time, Regions::IO);
        }
        let row = self.shard.io.rows.len() as u32;
        self.use_file(time, (name.0, 0), kind, i64::MIN);
        if is_blocking && self.state.io.blocking.len() < DEEPEST {
            let region = is_own.then_some(self.state.outer.len());
            let is_collective = flags.contains(IoOperationFlag::COLLECTIVE);
            self.state.io.blocking.push(Blocking { name, row, is_collective, region });
        } else {
            self.state.io.nonblocking.insert(name, row);
        }
    }

    pub(super) fn issue_io(&mut self, time: i64, name: Name) {
        match self.state.io.nonblocking.get(&name) {
            Some(&row) => self.shard.io.rows[row as usize].issued = time,
            // One that blocks is complete when it is issued.
            None if self.state.io.blocking.iter().any(|open| open.name == name) => {}
            None => self.note(DiagnosticKind::UnknownIo, time),
        }
    }

    /// Ends an operation: with this number of bytes, or without success.
    pub(super) fn complete_io(&mut self, time: i64, name: Name, bytes: Option<u64>) {
        let complete = self.instance().unwrap_or(InstanceId::NONE);
        let open = &mut self.state.io;
        let row = if let Some(position) = open.blocking.iter().rposition(|open| open.name == name) {
            let Blocking { row, is_collective, region, .. } = open.blocking.remove(position);
            if is_collective && bytes.is_some() {
                self.meet(time, name.0, row);
            }
            if region.is_some_and(|depth| depth == self.state.outer.len()) && self.state.top.key == Regions::IO {
                self.pop(time);
            }
            row
        } else if let Some(row) = open.nonblocking.remove(&name) {
            row
        } else {
            return self.note(DiagnosticKind::UnknownIo, time);
        };
        let Some(bytes) = bytes else { return };
        let mut awaited = 0;
        if complete.is_some() && self.shard.io.rows[row as usize].instance != complete {
            let since = self.state.io.awaited.filter(|&(call, _)| call == complete);
            awaited = time - since.map_or_else(|| self.shard.enter(complete), |(_, until)| until);
            self.state.io.awaited = Some((complete, time));
        }
        let operation = &mut self.shard.io.rows[row as usize];
        (operation.end, operation.bytes, operation.complete, operation.awaited) = (time, bytes, complete, awaited);
    }

    /// A collective read or write: its members meet.
    fn meet(&mut self, time: i64, handle: u32, row: u32) {
        let comm = self.index.io.handle(handle).map(|handle| handle.comm).filter(|comm| comm.is_some());
        let IoOperation { begin, instance, .. } = self.shard.io.rows[row as usize];
        if let Some(comm) = comm
            && instance.is_some()
        {
            let row = Collective {
                begin,
                end: time,
                sent: 0,
                received: 0,
                instance,
                comm,
                root: NONE,
                operation: COLLECTIVE_IO,
            };
            self.shard.collectives.rows.push(row);
        }
    }

    /// A record about a handle that takes no time by itself.
    pub(super) fn manage_io(&mut self, time: i64, handle: u32, kind: IoKind) {
        self.use_file(time, (handle, 0), kind, time);
    }

    pub(super) fn delete_file(&mut self, time: i64, paradigm: u8, file: u32) {
        self.use_file(time, (file, paradigm), IoKind::Delete, time);
    }

    fn use_file(&mut self, begin: i64, (of, paradigm): (u32, u8), kind: IoKind, end: i64) {
        let handle = self.index.io.handle(of).filter(|_| kind != IoKind::Delete);
        if handle.is_none() && kind != IoKind::Delete {
            self.note(DiagnosticKind::UnknownFile, begin);
        }
        self.settle_io();
        let caller = self.state.outer.last().is_some_and(|caller| self.regions.is_io(caller.key));
        let is_nested = caller || !self.state.io.blocking.is_empty() || handle.is_some_and(IoHandle::is_nested);
        let instance = self.instance().unwrap_or(InstanceId::NONE);
        let complete = if kind.is_operation() { InstanceId::NONE } else { instance };
        self.shard.io.rows.push(IoOperation {
            begin,
            issued: i64::MIN,
            end,
            awaited: 0,
            bytes: 0,
            instance,
            complete,
            of,
            paradigm,
            kind,
            is_nested,
        });
    }

    /// Operations whose call has returned no longer contain others.
    fn settle_io(&mut self) {
        let open = &mut self.state.io;
        let leaves = &self.shard.instances.leave;
        while let Some(last) = open.blocking.last() {
            let call = self.shard.io.rows[last.row as usize].instance;
            if leaves.get(call.index()).is_none_or(|&leave| leave == NONE) {
                break;
            }
            open.nonblocking.insert(last.name, last.row);
            open.blocking.pop();
        }
    }

    /// Whether the innermost region is a call for I/O, or of a library that does it.
    fn is_in_library(&self) -> bool {
        let key = self.state.top.key;
        self.regions.is_io(key) || self.regions.class(key).is_mpi()
    }

    /// Counts operations that are still open at the end of a location.
    pub(super) fn end_io(&mut self) {
        let open = self.state.io.nonblocking.len() + self.state.io.blocking.len();
        let place = Place::at(self.state.index, self.state.now);
        self.diagnostics.count(DiagnosticKind::PendingIo, open as u64, Some(place));
    }
}
