//! ARMCI: the records of its calls, on one window of all processes. Process n is rank n of MPI below it.

use std::collections::BTreeMap;

use whywait_otf2::Event;
use whywait_otf2::enums::{CollectiveOp, LockType, RmaAtomicType, RmaSyncLevel, RmaSyncType};
use whywait_otf2::records::UNDEFINED;

use super::library::{Called, Process, Records};
use crate::format::{Call, PEER_ALL};
use crate::functions::{Class, Function};
use crate::model::ArmciWindow;
use crate::thread::Out;
use crate::unify::Id;

/// A non-blocking operation that its process has not waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct UnderWay {
    handle: u64,
    target: u32,
    matching_id: u64,
}

/// What must be remembered between the calls of a process.
#[derive(Debug)]
pub(crate) struct Armci {
    window: Option<ArmciWindow>,
    /// The matching id of the last operation.
    last: u64,
    under_way: Vec<UnderWay>,
    /// Operations that change data at a target, until a fence.
    unfenced: BTreeMap<u32, Vec<u64>>,
}

/// All that collective operations synchronize.
const BOTH: RmaSyncLevel = RmaSyncLevel(RmaSyncLevel::PROCESS.0 | RmaSyncLevel::MEMORY.0);

impl Armci {
    pub(crate) fn new(window: Option<ArmciWindow>) -> Self {
        Self { window, last: 0, under_way: Vec::new(), unfenced: BTreeMap::new() }
    }
}

impl Records for Armci {
    fn enter(&mut self, out: &mut Out<'_>, called: &Called<'_>, _process: &mut Process<'_>) {
        let Called { function, ref call, bytes, .. } = *called;
        let Some(window) = self.window else { return };
        if function.class == Class::ArmciColl {
            out.put(call.enter, &Event::RmaCollectiveBegin {});
            return;
        }
        let Some(remote) = target(window, call) else { return };
        let win = window.id;
        let atomic = |atomic_type, bytes_received, matching_id| Event::RmaAtomic {
            win,
            remote,
            atomic_type,
            bytes_sent: bytes,
            bytes_received,
            matching_id,
        };
        let matching_id = self.last + 1;
        let event = match function.class {
            Class::ArmciPut => Event::RmaPut { win, remote, bytes, matching_id },
            Class::ArmciGet => Event::RmaGet { win, remote, bytes, matching_id },
            Class::ArmciAtomic => atomic(RmaAtomicType::ACCUMULATE, 0, matching_id),
            Class::ArmciRmw => atomic(RmaAtomicType::FETCH_AND_ADD, bytes, matching_id),
            _ => return,
        };
        self.last = matching_id;
        out.put(call.enter, &event);
    }

    fn leave(&mut self, out: &mut Out<'_>, called: &Called<'_>, _process: &mut Process<'_>) {
        let Called { function, ref call, .. } = *called;
        let Some(window) = self.window else { return };
        let (win, time) = (window.id, call.leave);
        match function.class {
            Class::ArmciWait => {
                // The first ones are complete first.
                let last =
                    self.under_way.extract_if(.., |one| completes(function, call, one)).map(|one| one.matching_id);
                last.for_each(|matching_id| out.put(time, &Event::RmaOpCompleteNonBlocking { win, matching_id }));
            }
            Class::ArmciFence => self.fence(out, time, window, (call.peer != PEER_ALL).then_some(call.peer)),
            Class::ArmciColl => {
                // That of messages does not wait for data.
                if function.name == "ARMCI_Barrier" {
                    self.fence(out, time, window, None);
                }
                let collective_op = function.operation.unwrap_or(CollectiveOp::BARRIER);
                let (root, bytes_sent, bytes_received) = (UNDEFINED, 0, 0);
                let sync_level = BOTH;
                let end = Event::RmaCollectiveEnd { collective_op, sync_level, win, root, bytes_sent, bytes_received };
                out.put(time, &end);
            }
            _ => {
                if let Some(remote) = target(window, call) {
                    self.operation(out, function, call, (win, remote));
                }
            }
        }
    }
}

impl Armci {
    /// An operation on one target returned.
    fn operation(&mut self, out: &mut Out<'_>, function: &Function, call: &Call, (win, remote): (Id, u32)) {
        let (time, matching_id) = (call.leave, self.last);
        // The number of a mutex at its target.
        let (lock_id, lock_type) = (u64::from(call.tag.cast_unsigned()), LockType::EXCLUSIVE);
        match function.class {
            Class::ArmciLock => out.put(time, &Event::RmaAcquireLock { win, remote, lock_id, lock_type }),
            Class::ArmciUnlock => out.put(time, &Event::RmaReleaseLock { win, remote, lock_id }),
            Class::ArmciPut | Class::ArmciGet | Class::ArmciAtomic | Class::ArmciRmw => {
                if function.name.starts_with("ARMCI_Nb") {
                    self.under_way.push(UnderWay { handle: call.id, target: remote, matching_id });
                } else {
                    out.put(time, &Event::RmaOpCompleteBlocking { win, matching_id });
                }
                if matches!(function.class, Class::ArmciPut | Class::ArmciAtomic) {
                    self.unfenced.entry(remote).or_default().push(matching_id);
                }
                if function.name.ends_with("_flag") {
                    out.put(time, &Event::RmaSync { win, remote, sync_type: RmaSyncType::NOTIFY_OUT });
                }
            }
            _ => {}
        }
    }

    /// All that changes data at a target, or at all, is complete.
    fn fence(&mut self, out: &mut Out<'_>, time: u64, window: ArmciWindow, target: Option<i32>) {
        let win = window.id;
        let mut complete = |operations: Vec<u64>| {
            for matching_id in operations {
                out.put(time, &Event::RmaOpCompleteRemote { win, matching_id });
            }
        };
        match target {
            Some(target) => complete(self.unfenced.remove(&target.cast_unsigned()).unwrap_or_default()),
            None => std::mem::take(&mut self.unfenced).into_values().for_each(complete),
        }
    }
}

/// The process that a call is about.
fn target(window: ArmciWindow, call: &Call) -> Option<u32> {
    u32::try_from(call.peer).ok().filter(|target| *target < window.size)
}

/// Whether a call that waits completes an operation: on windows of MPI, all of the process.
fn completes(function: &Function, call: &Call, operation: &UnderWay) -> bool {
    let has_windows = call.source != 0;
    has_windows
        || match function.name {
            "ARMCI_Wait" => call.id == operation.handle,
            "ARMCI_WaitProc" => call.peer.cast_unsigned() == operation.target,
            _ => true,
        }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::FUNCTIONS;

    fn completed(name: &str, call: Call) -> Vec<u64> {
        let function = FUNCTIONS.iter().find(|function| function.name == name).unwrap();
        let under_way = [(7, 1), (8, 2), (7, 2)].into_iter().zip(1..);
        let operations = under_way.map(|((handle, target), matching_id)| UnderWay { handle, target, matching_id });
        operations.filter(|one| completes(function, &call, one)).map(|one| one.matching_id).collect()
    }

    #[test]
    fn a_wait_completes_what_its_handle_is_of() {
        let call = Call { peer: PEER_ALL, id: 7, ..Call::default() };
        assert_eq!(completed("ARMCI_Wait", call), [1, 3]);
        assert_eq!(completed("ARMCI_WaitProc", Call { peer: 2, ..Call::default() }), [2, 3]);
        assert_eq!(completed("ARMCI_WaitAll", Call { peer: PEER_ALL, ..Call::default() }), [1, 2, 3]);
    }

    #[test]
    fn on_windows_of_mpi_it_completes_all() {
        assert_eq!(completed("ARMCI_Wait", Call { peer: PEER_ALL, id: 7, source: 1, ..Call::default() }), [1, 2, 3]);
    }
}
