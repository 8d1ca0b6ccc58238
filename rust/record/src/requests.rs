//! Requests under way: what a handle means, from the call that made it to the one that completes it.
//!
//! A handle is taken out of the table before the call that may complete it. So one that MPI gives away again meanwhile, to another thread, always means
//! the newer request. Several requests may share a handle: they are kept in order.

use crate::format::RequestKind;
use std::cell::UnsafeCell;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What is known of a request.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "independent of each other")]
pub(crate) struct Request {
    pub(crate) handle: usize,
    pub(crate) id: u64,
    /// Bytes of the message, or of the caller's part of a collective operation.
    pub(crate) bytes: u64,
    pub(crate) received: u64,
    /// Peer or root.
    pub(crate) peer: i32,
    pub(crate) tag: i32,
    /// Communicator, window or file.
    pub(crate) object: u32,
    /// The function that made it, and flags of that call.
    pub(crate) function: u16,
    pub(crate) flags: u16,
    pub(crate) kind: RequestKind,
    /// A send that is a receive as well, with the next id: from whom, with what tag.
    pub(crate) receives: bool,
    pub(crate) from: i32,
    pub(crate) from_tag: i32,
    /// Number of partitions of the message, else 0.
    pub(crate) partitions: u32,
    pub(crate) persistent: bool,
    /// Started; always true unless persistent.
    pub(crate) active: bool,
    pub(crate) cancelled: bool,
    /// The present call only asks of it.
    pub(crate) stays: bool,
    /// Place in the array of the present call.
    pub(crate) place: u32,
}

impl Request {
    /// Nothing that the recorder knows.
    pub(crate) const UNKNOWN: Self = Self {
        handle: 0,
        id: 0,
        bytes: 0,
        received: 0,
        peer: 0,
        tag: 0,
        object: crate::format::NONE,
        function: 0,
        flags: 0,
        kind: RequestKind::None,
        receives: false,
        from: 0,
        from_tag: 0,
        partitions: 0,
        persistent: false,
        active: true,
        cancelled: false,
        stays: false,
        place: 0,
    };

    /// Whether its completion is in the status.
    pub(crate) fn needs_status(&self) -> bool {
        self.active
            && (self.receives || self.cancelled || matches!(self.kind, RequestKind::Receive | RequestKind::File))
    }
}

static IDS: AtomicU64 = AtomicU64::new(1);

/// A new id, the first of `count`.
pub(crate) fn new_ids(count: u64) -> u64 {
    IDS.fetch_add(count, Ordering::Relaxed)
}

const SHARDS: usize = 64;
const END: u32 = u32::MAX;

/// A table of handles: chained hashing in shards, each with a lock that is held for a few instructions.
pub(crate) struct Requests {
    shards: [Shard; SHARDS],
}

#[repr(align(64))]
struct Shard {
    locked: AtomicBool,
    content: UnsafeCell<Content>,
}

// SAFETY: the content is reached under the lock only.
unsafe impl Sync for Shard {}

struct Content {
    /// First entry of each chain; a power of two of them.
    heads: Vec<u32>,
    entries: Vec<(Request, u32)>,
    free: u32,
    count: usize,
}

/// Requests of the program.
pub(crate) static REQUESTS: Requests = Requests::new();
/// Matched messages: of their requests, only the communicator counts.
pub(crate) static MESSAGES: Requests = Requests::new();

/// Spreads handles, which differ in low bits or in the middle.
fn spread(handle: usize) -> usize {
    handle.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20
}

impl Requests {
    const fn new() -> Self {
        Self {
            shards: [const {
                Shard {
                    locked: AtomicBool::new(false),
                    content: UnsafeCell::new(Content { heads: Vec::new(), entries: Vec::new(), free: END, count: 0 }),
                }
            }; SHARDS],
        }
    }

    fn with<T>(&self, handle: usize, f: impl FnOnce(&mut Content) -> T) -> T {
        let shard = &self.shards[spread(handle) % SHARDS];
        while shard.locked.compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
            spin_loop();
        }
        // SAFETY: the lock is held.
        let result = f(unsafe { &mut *shard.content.get() });
        shard.locked.store(false, Ordering::Release);
        result
    }

    /// Adds a request, behind those with the same handle.
    pub(crate) fn put(&self, request: Request) {
        self.with(request.handle, |content| content.insert(request, false));
    }

    /// Puts a request back that was taken out, before those with the same handle.
    pub(crate) fn put_back(&self, request: Request) {
        self.with(request.handle, |content| content.insert(request, true));
    }

    /// The first request with a handle, which stays: other threads may ask for it as well.
    pub(crate) fn get(&self, handle: usize) -> Option<Request> {
        self.with(handle, |content| content.find(handle))
    }

    /// Takes the first request with a handle out.
    pub(crate) fn take(&self, handle: usize) -> Option<Request> {
        self.with(handle, |content| content.remove(handle))
    }
}

impl Content {
    fn bucket(&self, handle: usize) -> usize {
        (spread(handle) / SHARDS) & self.heads.len().wrapping_sub(1)
    }

    fn insert(&mut self, request: Request, front: bool) {
        if self.count >= self.heads.len() {
            self.grow();
        }
        let new = if self.free == END {
            self.entries.push((request, END));
            (self.entries.len() - 1) as u32
        } else {
            let new = self.free;
            self.free = self.entries[new as usize].1;
            self.entries[new as usize] = (request, END);
            new
        };
        self.count += 1;
        self.link(new, front);
    }

    fn link(&mut self, new: u32, front: bool) {
        let bucket = self.bucket(self.entries[new as usize].0.handle);
        let head = self.heads[bucket];
        if front || head == END {
            self.entries[new as usize].1 = head;
            self.heads[bucket] = new;
            return;
        }
        let mut last = head;
        while self.entries[last as usize].1 != END {
            last = self.entries[last as usize].1;
        }
        self.entries[last as usize].1 = new;
    }

    /// The first request with a handle.
    fn find(&self, handle: usize) -> Option<Request> {
        if self.count == 0 {
            return None;
        }
        let mut at = self.heads[self.bucket(handle)];
        while at != END {
            let (request, next) = self.entries[at as usize];
            if request.handle == handle {
                return Some(request);
            }
            at = next;
        }
        None
    }

    fn remove(&mut self, handle: usize) -> Option<Request> {
        if self.count == 0 {
            return None;
        }
        let bucket = self.bucket(handle);
        let (mut before, mut at) = (END, self.heads[bucket]);
        while at != END {
            let (request, next) = self.entries[at as usize];
            if request.handle == handle {
                if before == END {
                    self.heads[bucket] = next;
                } else {
                    self.entries[before as usize].1 = next;
                }
                self.entries[at as usize].1 = self.free;
                self.free = at;
                self.count -= 1;
                return Some(request);
            }
            (before, at) = (at, next);
        }
        None
    }

    /// Doubles the number of chains, which keeps the order in each.
    #[cold]
    fn grow(&mut self) {
        let old = std::mem::take(&mut self.heads);
        self.heads = vec![END; (old.len() * 2).max(16)];
        for mut at in old {
            while at != END {
                let next = self.entries[at as usize].1;
                self.entries[at as usize].1 = END;
                self.link(at, false);
                at = next;
            }
        }
    }
}

/// Puts back what a call did not complete.
pub(crate) fn put_back(request: &Request) {
    if request.handle != 0 {
        REQUESTS.put_back(*request);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(handle: usize, id: u64) -> Request {
        Request { handle, id, ..Request::UNKNOWN }
    }

    fn take(table: &Requests, handle: usize) -> Option<u64> {
        table.take(handle).map(|request| request.id)
    }

    #[test]
    fn equal_handles_come_in_order() {
        let table = Requests::new();
        table.put(request(8, 1));
        table.put(request(8, 2));
        table.put(request(9, 3));
        assert_eq!(take(&table, 8), Some(1));
        table.put_back(request(8, 1));
        assert_eq!([take(&table, 8), take(&table, 8), take(&table, 8)], [Some(1), Some(2), None]);
        assert_eq!(table.get(9).map(|request| request.id), Some(3));
        assert_eq!(take(&table, 9), Some(3));
        assert!(table.get(9).is_none());
    }

    #[test]
    fn order_survives_growth() {
        let table = Requests::new();
        for id in 0..20_000 {
            table.put(request(64 * (id as usize % 5_000), id));
        }
        for id in 0..20_000 {
            assert_eq!(take(&table, 64 * (id as usize % 5_000)), Some(id));
        }
        assert_eq!(take(&table, 0), None);
        for handle in 0..SHARDS {
            assert_eq!(table.with(64 * handle, |content| content.count), 0);
        }
    }

    #[test]
    fn a_handle_used_again_by_another_thread_means_the_new_request() {
        let table = Requests::new();
        table.put(request(5, 1));
        let taken = table.take(5).unwrap();
        table.put(request(5, 2));
        // The call did not complete the first.
        table.put_back(taken);
        assert_eq!([take(&table, 5), take(&table, 5)], [Some(1), Some(2)]);
    }

    #[test]
    fn threads_at_once() {
        let table = Requests::new();
        std::thread::scope(|scope| {
            for thread in 0..4_usize {
                let table = &table;
                scope.spawn(move || {
                    for round in 0..200_u64 {
                        for i in 0..100_usize {
                            table.put(request(thread * 1000 + i + 1, round));
                        }
                        for i in 0..100_usize {
                            assert_eq!(take(table, thread * 1000 + i + 1), Some(round));
                        }
                    }
                });
            }
        });
    }
}
