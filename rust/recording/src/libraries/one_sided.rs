//! MPI's windows: their synchronization, and the operations on them.

use whywait_otf2::Event;
use whywait_otf2::enums::{CollectiveOp, LockType, RmaSyncLevel};
use whywait_otf2::records::UNDEFINED;

use super::library::{Called, Process, Records};
use super::pending::{Completion, Pending};
use crate::format::{Call, LOCK_SHARED, PEER_ALL, RequestKind};
use crate::functions::{Class, Function};
use crate::requests::Request;
use crate::thread::Out;
use crate::unify::{Id, LocalWindow};

/// Operations of a process.
#[derive(Debug, Default)]
pub(crate) struct OneSided {
    pending: Pending,
}

impl OneSided {
    fn transfer(&mut self, out: &mut Out<'_>, function: &Function, call: &Call, bytes: u64, win: Id) {
        let Ok(remote) = u32::try_from(call.peer) else { return };
        let (matching_id, is_get) = (call.id, function.is_get());
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
        out.put(call.enter, &event);
        self.pending.start(win, call.peer, matching_id, is_get);
    }
}

impl Records for OneSided {
    fn enter(&mut self, out: &mut Out<'_>, called: &Called<'_>, process: &mut Process<'_>) {
        let Called { function, call, bytes, .. } = called;
        let time = call.enter;
        if function.class == Class::WinCreate {
            out.put(time, &Event::RmaCollectiveBegin {});
        }
        let Some(window) = process.window(call.object) else { return };
        match function.class {
            Class::WinFree | Class::WinFence => out.put(time, &Event::RmaCollectiveBegin {}),
            Class::WinGroup => group_sync(out, time, call, RmaSyncLevel::PROCESS, process),
            Class::WinEnd => match function.name {
                "MPI_Win_wait" => group_sync(out, time, call, BOTH, process),
                "MPI_Win_test" if called.returned() => {
                    let level = if call.source == 0 { RmaSyncLevel::NONE } else { BOTH };
                    group_sync(out, time, call, level, process);
                }
                _ => {}
            },
            Class::WinLock => {
                let lock_type = if call.tag == LOCK_SHARED { LockType::SHARED } else { LockType::EXCLUSIVE };
                let remote = remote(call.peer);
                out.put(time, &Event::RmaRequestLock { win: window.id, remote, lock_id: 0, lock_type });
            }
            Class::Rma | Class::RmaRequest | Class::Atomic | Class::AtomicRequest if called.returned() => {
                self.transfer(out, function, call, *bytes, window.id);
            }
            _ => {}
        }
    }

    fn leave(&mut self, out: &mut Out<'_>, called: &Called<'_>, process: &mut Process<'_>) {
        let Called { function, call, .. } = called;
        let time = call.leave;
        let number = if function.class == Class::WinCreate { call.id as u32 } else { call.object };
        let Some(window) = process.window(number) else { return };
        let win = window.id;
        let target = (call.peer != PEER_ALL).then_some(call.peer);
        let mut note = |matching_id, how| complete(out, time, win, matching_id, how);
        match function.class {
            Class::WinCreate => {
                out.put(time, &Event::RmaWinCreate { win });
                let operation = if window.is_allocated {
                    CollectiveOp::CREATE_HANDLE_AND_ALLOCATE
                } else {
                    CollectiveOp::CREATE_HANDLE
                };
                collective(out, time, window, operation, RmaSyncLevel::PROCESS);
            }
            Class::WinFree => {
                self.pending.free(win);
                out.put(time, &Event::RmaWinDestroy { win });
                let operation = if window.is_allocated {
                    CollectiveOp::DESTROY_HANDLE_AND_DEALLOCATE
                } else {
                    CollectiveOp::DESTROY_HANDLE
                };
                collective(out, time, window, operation, RmaSyncLevel::PROCESS);
            }
            Class::WinFence => {
                self.pending.end_epoch(win, note);
                collective(out, time, window, CollectiveOp::BARRIER, BOTH);
            }
            Class::WinEnd if function.name == "MPI_Win_complete" => {
                let any = self.pending.end_epoch(win, note);
                group_sync(out, if any { time } else { call.enter }, call, BOTH, process);
            }
            Class::WinUnlock => {
                let any = self.pending.flush(win, target, note);
                let event = Event::RmaReleaseLock { win, remote: remote(call.peer), lock_id: 0 };
                out.put(if any { time } else { call.enter }, &event);
            }
            Class::WinFlush => drop(self.pending.flush(win, target, note)),
            Class::WinFlushLocal => self.pending.flush_local(win, target, &mut note),
            _ => {}
        }
    }

    fn completes(&mut self, out: &mut Out<'_>, time: u64, request: &Request, process: &mut Process<'_>) {
        if let Some(window) = process.window(request.object) {
            let note = |matching_id, how| complete(out, time, window.id, matching_id, how);
            self.pending.request(window.id, request.id, request.kind == RequestKind::Get as u8, note);
        }
    }
}

/// Synchronizes processes and memory.
const BOTH: RmaSyncLevel = RmaSyncLevel(RmaSyncLevel::PROCESS.0 | RmaSyncLevel::MEMORY.0);

fn remote(peer: i32) -> u32 {
    u32::try_from(peer).unwrap_or(UNDEFINED)
}

fn complete(out: &mut Out<'_>, time: u64, win: Id, matching_id: u64, how: Completion) {
    match how {
        Completion::Local => out.put(time, &Event::RmaOpCompleteNonBlocking { win, matching_id }),
        Completion::Remote => out.put(time, &Event::RmaOpCompleteRemote { win, matching_id }),
    }
}

fn group_sync(out: &mut Out<'_>, time: u64, call: &Call, sync_level: RmaSyncLevel, process: &Process<'_>) {
    if let (Some(window), Some(group)) = (process.window(call.object), process.group(call.peer)) {
        out.put(time, &Event::RmaGroupSync { sync_level, win: window.id, group });
    }
}

fn collective(
    out: &mut Out<'_>,
    time: u64,
    window: LocalWindow,
    collective_op: CollectiveOp,
    sync_level: RmaSyncLevel,
) {
    let (win, root) = (window.id, UNDEFINED);
    out.put(time, &Event::RmaCollectiveEnd { collective_op, sync_level, win, root, bytes_sent: 0, bytes_received: 0 });
}
