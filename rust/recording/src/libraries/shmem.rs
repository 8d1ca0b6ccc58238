//! OpenSHMEM: its windows, and the records of its calls, as Score-P writes them.
//!
//! There is one window of all PEs, one of each PE alone, and one for each active set that a collective operation used. PE n is rank n of MPI
//! below it.

use rustc_hash::FxHashSet;
use whywait_otf2::Event;
use whywait_otf2::enums::{CollectiveOp, LockType, RmaAtomicType, RmaSyncLevel};
use whywait_otf2::records::UNDEFINED;

use super::library::{Called, Process, Records};
use crate::format::{Call, flags};
use crate::functions::Class;
use crate::shmem_windows::{Set, Windows};
use crate::thread::Out;
use crate::unify::Id;

/// What must be remembered between the calls of a PE.
#[derive(Debug)]
pub(crate) struct Shmem<'a> {
    windows: Option<&'a Windows>,
    /// Matching id of what is put or got until the next barrier of all.
    matching: u64,
    /// There was something since the last one.
    moved: bool,
    /// Active sets of which the PE has a window.
    made: FxHashSet<Id>,
}

/// All that OpenSHMEM's collective operations synchronize.
const BOTH: RmaSyncLevel = RmaSyncLevel(RmaSyncLevel::PROCESS.0 | RmaSyncLevel::MEMORY.0);

impl<'a> Shmem<'a> {
    pub(crate) fn new(windows: Option<&'a Windows>) -> Self {
        Self { windows, matching: 0, moved: false, made: FxHashSet::default() }
    }
}

impl Records for Shmem<'_> {
    fn enter(&mut self, out: &mut Out<'_>, called: &Called<'_>, _process: &mut Process<'_>) {
        let Called { function, ref call, bytes, .. } = *called;
        let Some(windows) = self.windows else { return };
        let (win, time, matching_id) = (windows.all, call.enter, self.matching);
        let remote = u32::try_from(call.peer).ok().filter(|remote| *remote < windows.size);
        match (function.class, remote) {
            (Class::ShmemPut, Some(remote)) => {
                self.moved = true;
                out.put(time, &Event::RmaPut { win, remote, bytes, matching_id });
            }
            (Class::ShmemGet, Some(remote)) => {
                self.moved = true;
                out.put(time, &Event::RmaGet { win, remote, bytes, matching_id });
            }
            (Class::ShmemAtomic, Some(remote)) => {
                let (atomic_type, sent, received) = atomic(function.name);
                let (bytes_sent, bytes_received) = (bytes.wrapping_mul(sent), bytes.wrapping_mul(received));
                let event = Event::RmaAtomic { win, remote, atomic_type, bytes_sent, bytes_received, matching_id };
                out.put(time, &event);
            }
            (Class::ShmemWait, _) => out.put(time, &Event::RmaWaitChange { win }),
            (Class::ShmemTest, _) if call.flags & flags::POLLED != 0 => out.put(time, &Event::RmaWaitChange { win }),
            (Class::ShmemLock | Class::ShmemTryLock | Class::ShmemUnlock, _) => {
                lock(out, win, function.class, call, bytes);
            }
            (Class::ShmemColl, _) if windows.of(Set::of(call)).is_some() => {
                out.put(time, &Event::RmaCollectiveBegin {});
            }
            _ => {}
        }
    }

    fn leave(&mut self, out: &mut Out<'_>, called: &Called<'_>, _process: &mut Process<'_>) {
        let Called { function, ref call, bytes, .. } = *called;
        let Some(windows) = self.windows else { return };
        let (win, time, matching_id) = (windows.all, call.leave, self.matching);
        match function.class {
            Class::ShmemInit => {
                for win in [windows.all, windows.own] {
                    out.put(time, &Event::RmaWinCreate { win });
                }
            }
            Class::ShmemFinalize => {
                let mut made: Vec<Id> = [windows.all, windows.own].into_iter().chain(self.made.drain()).collect();
                made.sort_unstable();
                for win in made {
                    out.put(time, &Event::RmaWinDestroy { win });
                }
            }
            Class::ShmemPut | Class::ShmemGet if !function.name.ends_with("_nbi") => {
                out.put(time, &Event::RmaOpCompleteBlocking { win, matching_id });
            }
            Class::ShmemAtomic => out.put(time, &Event::RmaOpCompleteBlocking { win, matching_id }),
            Class::ShmemColl => {
                let (Some(collective_op), Some((win, size))) = (function.operation, windows.of(Set::of(call))) else {
                    return;
                };
                if win > windows.own && self.made.insert(win) {
                    out.put(time, &Event::RmaWinCreate { win });
                }
                if function.name == "shmem_barrier_all" && std::mem::take(&mut self.moved) {
                    self.matching += 1;
                    out.put(time, &Event::RmaOpCompleteRemote { win, matching_id });
                }
                let others = u64::from(size.saturating_sub(1)).wrapping_mul(bytes);
                let bytes_received = if collective_op == CollectiveOp::BCAST { bytes } else { others };
                let event = Event::RmaCollectiveEnd {
                    collective_op,
                    sync_level: BOTH,
                    win,
                    root: UNDEFINED,
                    bytes_sent: others,
                    bytes_received,
                };
                out.put(time, &event);
            }
            _ => {}
        }
    }
}

/// What a call does with a lock. A reader knows from Enter and Leave when the lock was had, and from the record only that it was.
fn lock(out: &mut Out<'_>, win: Id, class: Class, call: &Call, upper: u64) {
    let (remote, lock_id, lock_type) = (UNDEFINED, u64::from(call.object) | upper << 32, LockType::EXCLUSIVE);
    let event = match class {
        Class::ShmemUnlock => Event::RmaReleaseLock { win, remote, lock_id },
        Class::ShmemLock => Event::RmaAcquireLock { win, remote, lock_id, lock_type },
        // So Score-P says that it got the lock, and that it did not.
        _ if call.source == 0 && call.leave != 0 => Event::RmaRequestLock { win, remote, lock_id, lock_type },
        _ => Event::RmaTryLock { win, remote, lock_id, lock_type },
    };
    out.put(call.enter, &event);
}

/// The kind of an atomic operation, and how many elements it sends and brings back.
fn atomic(name: &str) -> (RmaAtomicType, u64, u64) {
    let name = name.rsplit_once("atomic_").map_or_else(|| name.rsplit('_').next().unwrap_or(name), |(_, name)| name);
    match name {
        "inc" => (RmaAtomicType::INCREMENT, 0, 0),
        "fadd" | "fetch_add" => (RmaAtomicType::FETCH_AND_ADD, 1, 1),
        "finc" | "fetch_inc" => (RmaAtomicType::FETCH_AND_INCREMENT, 0, 1),
        "swap" => (RmaAtomicType::SWAP, 1, 1),
        "cswap" | "compare_swap" => (RmaAtomicType::COMPARE_AND_SWAP, 2, 1),
        "fetch" => (RmaAtomicType::FETCH_AND_ACCUMULATE, 0, 1),
        "fetch_and" | "fetch_or" | "fetch_xor" => (RmaAtomicType::FETCH_AND_ACCUMULATE, 1, 1),
        _ => (RmaAtomicType::ACCUMULATE, 1, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(start: u32, stride: u32, size: u32) -> Set {
        Set { start, stride, size }
    }

    #[test]
    fn active_sets_that_are_all_or_one_are_the_predefined_windows() {
        let sets = [set(0, 0, 4), set(1, 1, 2), set(3, 5, 1), set(2, 1, 2), set(0, 70, 2)].into_iter().collect();
        let (windows, definitions) = Windows::new(4, 10, &sets);
        assert_eq!(definitions[2..], [("Active set 1:1:2".to_owned(), Some(vec![1, 3]))]);
        assert_eq!(windows.of(None), Some((10, 4)));
        assert_eq!(windows.of(Some(set(0, 0, 4))), Some((10, 4)));
        assert_eq!(windows.of(Some(set(3, 5, 1))), Some((11, 1)));
        assert_eq!(windows.of(Some(set(1, 1, 2))), Some((12, 2)));
        // A PE that does not exist, and a stride that no number has.
        assert_eq!(windows.of(Some(set(2, 1, 2))), None);
        assert_eq!(windows.of(Some(set(0, 70, 2))), None);
    }

    #[test]
    fn names_say_what_atomic_operations_move() {
        assert_eq!(atomic("shmem_long_add"), (RmaAtomicType::ACCUMULATE, 1, 0));
        assert_eq!(atomic("shmem_long_cswap"), (RmaAtomicType::COMPARE_AND_SWAP, 2, 1));
        assert_eq!(atomic("shmem_ctx_ulong_atomic_fetch_inc"), (RmaAtomicType::FETCH_AND_INCREMENT, 0, 1));
        assert_eq!(atomic("shmem_int_atomic_compare_swap"), (RmaAtomicType::COMPARE_AND_SWAP, 2, 1));
        assert_eq!(atomic("shmem_double_fetch"), (RmaAtomicType::FETCH_AND_ACCUMULATE, 0, 1));
        assert_eq!(atomic("shmem_int32_atomic_xor"), (RmaAtomicType::ACCUMULATE, 1, 0));
    }
}
