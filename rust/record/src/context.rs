//! A call under way: its arguments by role, and the two halves of its slot.

use crate::abi::{self, Abi};
use crate::clock::now;
use crate::comms::{self, Comm, Origin};
use crate::files::{self, File};
use crate::format::{Call, Extension, NONE, NOTE_UNKNOWN_COMM, RequestKind, Wide, flags};
use crate::frame::{Frame, Returned};
use crate::requests::{REQUESTS, Request, new_ids};
use crate::state;
use crate::status::{Status, is_truncation};
use crate::table::{Function, LARGE, NO, Role};
use crate::thread::Thread;
use crate::windows::{self, Window};
use std::ffi::c_int;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};

/// A call under way.
pub(crate) struct Context<'a> {
    pub(crate) function: &'static Function,
    pub(crate) index: usize,
    pub(crate) large: bool,
    pub(crate) frame: Frame,
    pub(crate) thread: &'a mut Thread,
    pub(crate) abi: &'static Abi,
    pub(crate) record: bool,
    pub(crate) slot: *mut Call,
    /// Where the thread's next slot would have gone before the call.
    pub(crate) from: *mut u8,
    pub(crate) flags: u16,
    pub(crate) code: c_int,
    /// What the function returned, if it is a word.
    pub(crate) value: usize,
    pub(crate) leave: u64,
    // What `before` leaves for `after`.
    pub(crate) comm: Option<&'static Comm>,
    pub(crate) window: Option<&'static Window>,
    pub(crate) file: Option<&'static File>,
    pub(crate) handle: usize,
    pub(crate) request: Request,
    pub(crate) origin: Option<Origin>,
}

impl<'a> Context<'a> {
    pub(crate) fn new(
        function: &'static Function,
        index: usize,
        large: bool,
        frame: Frame,
        thread: &'a mut Thread,
        record: bool,
    ) -> Self {
        Self {
            function,
            index,
            large,
            frame,
            thread,
            abi: abi::get(),
            record,
            slot: std::ptr::null_mut(),
            from: std::ptr::null_mut(),
            flags: if large { flags::LARGE } else { 0 },
            code: 0,
            value: 0,
            leave: 0,
            comm: None,
            window: None,
            file: None,
            handle: 0,
            request: Request::UNKNOWN,
            origin: None,
        }
    }

    /// The function returned. A message that was longer than its buffer did arrive.
    #[inline]
    pub(crate) fn returned(&mut self, returned: &Returned) {
        self.leave = now();
        self.code = self.function.code(returned);
        self.value = returned.word;
        if self.code != 0 && self.function.class.receives() && is_truncation(self.code) {
            self.code = 0;
        }
    }

    pub(crate) fn symbol(&self) -> usize {
        self.index * 4 + if self.large { LARGE } else { 0 }
    }

    pub(crate) fn has(&self, role: Role) -> bool {
        self.function.roles[role as usize] != NO
    }

    /// An argument; 0 if the function has none of this role.
    #[inline]
    pub(crate) fn word(&self, role: Role) -> usize {
        match self.function.roles[role as usize] {
            NO => 0,
            place => self.frame.word(place),
        }
    }

    #[inline]
    pub(crate) fn int(&self, role: Role) -> i32 {
        self.word(role) as i32
    }

    /// A number of elements.
    #[inline]
    pub(crate) fn count(&self, role: Role) -> u64 {
        let word = self.word(role);
        let count = if self.large { word as i64 } else { i64::from(word as i32) };
        u64::try_from(count).unwrap_or(0)
    }

    /// Bytes of so many elements.
    #[inline]
    pub(crate) fn bytes(&mut self, count: Role, datatype: Role) -> u64 {
        match self.count(count) {
            0 => 0,
            count => count.wrapping_mul(self.thread.type_size(self.word(datatype))),
        }
    }

    #[inline]
    pub(crate) fn peer(&self, role: Role) -> i32 {
        self.abi.peer(self.int(role))
    }

    #[inline]
    pub(crate) fn tag(&self, role: Role) -> i32 {
        self.abi.tag(self.int(role))
    }

    /// Looks the communicator up, and returns its number.
    pub(crate) fn communicator(&mut self) -> u32 {
        self.comm = comms::get(self.word(Role::Comm));
        match self.comm {
            None => {
                if self.abi.mask(self.word(Role::Comm)) != self.abi.comm_null {
                    state::note(NOTE_UNKNOWN_COMM);
                }
                NONE
            }
            Some(comm) => comm.id,
        }
    }

    pub(crate) fn window(&mut self) -> u32 {
        self.window = windows::get(self.word(Role::Win));
        self.window.map_or(NONE, |window| window.id)
    }

    pub(crate) fn file(&mut self) -> u32 {
        self.file = files::get(self.word(Role::File));
        self.file.map_or(NONE, |file| file.id)
    }

    /// The status for the call: the program's, or the recorder's own in its place.
    pub(crate) fn ensure_status(&mut self) {
        let place = self.function.roles[Role::Status as usize];
        if place != NO && self.frame.word(place) == self.abi.status_ignore {
            self.frame.set(place, self.own_statuses(1));
        }
    }

    pub(crate) fn ensure_statuses(&mut self, count: usize) {
        let place = self.function.roles[Role::Statuses as usize];
        if place != NO && self.frame.word(place) == self.abi.status_ignore {
            self.frame.set(place, self.own_statuses(count));
        }
    }

    pub(crate) fn own_statuses(&mut self, count: usize) -> usize {
        let words = count.saturating_mul(self.abi.status) / 8 + 8;
        if self.thread.statuses.len() < words {
            self.thread.statuses.resize(words, 0);
        }
        self.thread.statuses.as_mut_ptr().expose_provenance()
    }

    pub(crate) fn status(&self) -> Option<Status> {
        let address = self.word(Role::Status);
        (address != self.abi.status_ignore && address != 0).then_some(Status(address))
    }

    /// An `int` that the call returned.
    pub(crate) fn returned_int(&self, role: Role) -> i32 {
        let address = self.word(role);
        // SAFETY: the program passed the address for MPI to write to.
        if address == 0 { 0 } else { unsafe { (address as *const i32).read() } }
    }

    /// Writes the first half of the slot. The time is taken last.
    #[inline]
    pub(crate) fn enter(&mut self, peer: i32, tag: i32, object: u32, bytes: u64) {
        self.from = self.thread.cursor();
        let node = if self.record { self.thread.path(self.function, self.frame) } else { 0 };
        if self.record {
            self.thread.count(Extension::CountersEnter);
        }
        let slot = self.thread.call(self.record);
        (self.slot, self.thread.open) = (slot, slot);
        let mut flags = self.flags;
        if bytes > u64::from(u32::MAX) && self.record {
            flags |= flags::WIDE;
            self.flags = flags;
            self.thread.extension(Extension::Wide, 0, Wide { head: 0, bytes });
        }
        // SAFETY: a slot of this thread, or its scratch. The reader sees it once the time is there.
        unsafe {
            (*slot).function = self.index as u16;
            (*slot).flags = flags;
            (*slot).node = node;
            (*slot).peer = peer;
            (*slot).tag = tag;
            (*slot).object = object;
            (*slot).bytes = bytes as u32;
            AtomicU64::from_ptr(&raw mut (*slot).enter).store(now(), Ordering::Release);
        }
    }

    /// Adds to the first half whom a call that sends is to receive from.
    pub(crate) fn asks(&mut self, source: i32, tag: i32) {
        // SAFETY: as in `enter`.
        if let Some(slot) = unsafe { self.slot.as_mut() } {
            (slot.source, slot.arrived_tag) = (source, tag);
            // The process may end between any two instructions: the flag comes last.
            let flags = self.flags | flags::ASKED;
            // SAFETY: the field is aligned and lives as long as the slot.
            unsafe { AtomicU16::from_ptr(&raw mut slot.flags).store(flags, Ordering::Release) };
        }
    }

    /// Writes the second half of the slot.
    #[inline]
    pub(crate) fn leave(&mut self, source: i32, tag: i32, received: u64, id: u64) {
        let source = if self.code == 0 {
            source
        } else {
            self.flags |= flags::FAILED;
            self.code
        };
        if self.record && !self.slot.is_null() {
            self.thread.count(Extension::CountersLeave);
        }
        // SAFETY: as in `enter`; a call that has not entered has no slot.
        if let Some(slot) = unsafe { self.slot.as_mut() } {
            slot.flags = self.flags;
            slot.source = source;
            slot.arrived_tag = tag;
            slot.received = received;
            slot.id = id;
            // SAFETY: the field is aligned and lives as long as the slot.
            unsafe { AtomicU64::from_ptr(&raw mut slot.leave).store(self.leave, Ordering::Release) };
            self.thread.open = std::ptr::null_mut();
        }
    }

    pub(crate) fn extension<T>(&mut self, kind: Extension, items: u8, content: T) {
        if self.record {
            self.thread.extension(kind, items, content);
        }
    }

    /// The request in the first half of the slot.
    pub(crate) fn enter_request(&mut self, request: &Request) {
        self.set_kind(request.kind);
        self.enter(request.peer, request.tag, request.object, request.bytes);
    }

    pub(crate) fn set_kind(&mut self, kind: RequestKind) {
        self.flags |= (kind as u16) << flags::KIND_SHIFT;
    }

    /// Remembers the request that the call made, and returns its id.
    pub(crate) fn made(&mut self, ids: u64) -> u64 {
        let handle = self.abi.load(self.word(Role::Request), 0);
        // Without its start, a completion means nothing; a persistent request may be started when recording is on again.
        let wanted = self.record || self.request.persistent;
        if self.code != 0 || !wanted || self.request.kind == RequestKind::None || handle == self.abi.request_null {
            return 0;
        }
        let first = new_ids(ids);
        // Of both, only the receive.
        let id = if ids == 2 && self.request.kind == RequestKind::Receive { first + 1 } else { first };
        REQUESTS.put(Request { handle, id, function: self.index as u16, flags: self.flags, ..self.request });
        first
    }

    /// Takes the requests of the call's array out of the table.
    pub(crate) fn take_all(&mut self) {
        let array = self.word(Role::Requests);
        let count = self.int(Role::N).max(0) as usize;
        self.thread.taken.clear();
        for place in 0..count {
            let handle = self.abi.load(array, place);
            if handle != self.abi.request_null
                && let Some(request) = REQUESTS.take(handle)
            {
                self.thread.taken.push(Request { place: place as u32, stays: self.function.asks, ..request });
            }
        }
        let needs = |request: &Request| request.needs_status();
        if self.thread.taken.iter().any(needs) {
            self.ensure_statuses(count);
            self.ensure_status();
        }
    }

    /// The request of the call, taken out of the table.
    pub(crate) fn take_one(&mut self) {
        let by_value = self.has(Role::Active).then(|| self.abi.mask(self.word(Role::Active)));
        let handle = by_value.unwrap_or_else(|| self.abi.load(self.word(Role::Request), 0));
        self.thread.taken.clear();
        self.request = Request::UNKNOWN;
        if handle != self.abi.request_null
            && let Some(request) = REQUESTS.take(handle)
        {
            self.request = Request { stays: self.function.asks, ..request };
            self.thread.taken.push(self.request);
        }
    }

    /// Whether there is a request.
    pub(crate) fn taken(&self) -> bool {
        self.request.handle != 0
    }
}
