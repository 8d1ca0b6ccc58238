//! What a thread of the program has: its slots, and whether it is in a call.

use crate::abi;
use crate::callers;
use crate::clock::now;
use crate::counters::Counters;
use crate::fault::{self, Uncancelled};
use crate::format::flags;
use crate::format::{CHUNK, Call, Counters as Values, Extension, NONE, Node, Nodes, SLOT, Stall, Switch, extension};
use crate::frame::Frame;
use crate::locks::Held;
use crate::real::{self, own};
use crate::requests::{Request, put_back};
use crate::runs::Run;
use crate::spool::{self, Chunk, Slots};
use crate::table::{Class, FUNCTIONS, Function, LARGE, Owner, PROFILING, number};
use crate::unwind::Paths;
use crate::{helper, state};
use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering, compiler_fence};
use std::sync::{Mutex, OnceLock};

/// State of a thread that made a call. It lies behind one thread-local pointer.
pub(crate) struct Thread {
    /// The frame of the call that the thread is in, 0 outside.
    frame: usize,
    /// Where that call returns to.
    returns_to: usize,
    /// The slot of the call, until its second half is written.
    pub(crate) open: *mut Call,
    /// The destructor of the thread's key was called once.
    ends: bool,
    /// Where the next slot goes, where the present chunk asks for attention, and where it ends.
    cursor: *mut u8,
    attention: *mut u8,
    end: *mut u8,
    chunk: Chunk,
    /// Chunks that were filled, and which the present call may still need.
    full: Vec<Chunk>,
    file: Mutex<Slots>,
    /// The chunk that the helper made ready.
    ready: AtomicPtr<u8>,
    /// The helper was asked for one.
    asked: AtomicBool,
    /// Tests that found nothing.
    pub(crate) run: Run,
    /// Where calls go that are not recorded.
    scratch: Call,
    switches: u64,
    pub(crate) types: Types,
    pub(crate) paths: Paths,
    counters: Option<Counters>,
    /// Requests that the present call may complete.
    pub(crate) taken: Vec<Request>,
    /// Locks that the thread has.
    pub(crate) held: Vec<Held>,
    /// Number among the threads of the process, in the order of first calls.
    pub(crate) number: u32,
    /// How many parallel regions of OpenMP the thread is in.
    pub(crate) level: u32,
    /// How many tasks it made.
    pub(crate) tasks: u64,
    /// Number of the thread among those that the program made, 0 if it was not seen to be made.
    pub(crate) sequence: u64,
    /// Statuses for a program that does not ask for them.
    pub(crate) statuses: Vec<u64>,
}

thread_local! {
    static THREAD: Cell<*mut Thread> = const { Cell::new(ptr::null_mut()) };
    /// The state is being made: what that calls is not recorded.
    static REGISTERS: Cell<bool> = const { Cell::new(false) };
}

static COUNT: AtomicU32 = AtomicU32::new(0);
static KEY: OnceLock<libc::pthread_key_t> = OnceLock::new();

/// What the sampler, if there is one, has to do with a thread that makes its first call.
pub(crate) struct Sampler {
    /// The number that it has already, if it is sampled.
    pub(crate) number: fn() -> Option<u32>,
    /// Its state is known from now on.
    pub(crate) calls: fn(*mut Thread),
}

static SAMPLER: OnceLock<Sampler> = OnceLock::new();

/// Tells a sampler of threads from now on.
pub(crate) fn tell(sampler: Sampler) {
    let _ = SAMPLER.set(sampler);
}

/// Makes the key whose destructor tells of the end of a thread, when the library is loaded: the C library allocates for the values of later keys.
pub(crate) fn prepare() {
    let mut key = 0;
    // SAFETY: the pointer is valid, and the destructor gets a thread's state.
    if unsafe { libc::pthread_key_create(&raw mut key, Some(ended)) } == 0 {
        let _ = KEY.set(key);
    }
}

/// Has [`ended`] called when the thread ends, or once more if it is ending.
fn tell_of_end(thread: *mut Thread) {
    if let Some(key) = KEY.get() {
        // SAFETY: the key exists.
        unsafe { libc::pthread_setspecific(*key, thread.cast()) };
    }
}

/// A thread within a call of MPI. Calls that MPI makes itself, or a function of the program that MPI calls, are part of it.
pub(crate) struct Inside(*mut Thread);

impl Deref for Inside {
    type Target = Thread;
    fn deref(&self) -> &Thread {
        // SAFETY: the thread's own state, which lives until the thread ends.
        unsafe { &*self.0 }
    }
}

impl DerefMut for Inside {
    fn deref_mut(&mut self) -> &mut Thread {
        // SAFETY: as above; `frame` makes this the only one.
        unsafe { &mut *self.0 }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        if !self.open.is_null() {
            // An exception, or a thread that is cancelled, leaves the call.
            self.abandon(Some(now()));
        }
        self.frame = 0;
    }
}

/// The state of this thread; null before its first call.
pub(crate) fn current() -> *mut Thread {
    THREAD.with(Cell::get)
}

/// A number for another thread.
pub(crate) fn next_number() -> u32 {
    COUNT.fetch_add(1, Ordering::Relaxed)
}

/// What a thread does that a signal interrupts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doing {
    /// It runs code of the program.
    Program,
    /// It is in a function that the recorder catches.
    Call(u16),
    /// It runs code of the recorder.
    Apart,
}

/// What the thread does that a signal interrupts, with its stack pointer (0: not on its own stack).
///
/// # Safety
/// The state must be null, or that of this thread.
pub(crate) unsafe fn doing(thread: *const Thread, sp: usize) -> Doing {
    if thread.is_null() {
        return Doing::Program;
    }
    // SAFETY: so the caller says; the thread may be writing these fields, each of which is a word.
    let (frame, open) =
        unsafe { (ptr::read_volatile(&raw const (*thread).frame), ptr::read_volatile(&raw const (*thread).open)) };
    match frame {
        0 => Doing::Program,
        APART => Doing::Apart,
        // It left the call by `longjmp`.
        _ if sp > frame => Doing::Program,
        _ if open.is_null() => Doing::Call(u16::MAX),
        // SAFETY: the slot of a call, which stays mapped until it returns.
        _ => Doing::Call(unsafe { ptr::read_volatile(&raw const (*open).function) }),
    }
}

/// In [`Thread::frame`]: the thread runs code of the recorder, and no call.
const APART: usize = usize::MAX;

/// Enters a call, unless the thread is in one.
#[inline]
pub(crate) fn enter(frame: Frame, owner: Owner) -> Option<Inside> {
    let mut thread = THREAD.with(Cell::get);
    if thread.is_null() {
        thread = register()?;
    }
    // SAFETY: the thread's own state.
    let state = unsafe { &mut *thread };
    if state.frame != 0 && !state.is_left(frame, owner) {
        return None;
    }
    // A signal handler may come in between, and must not take the call for one that was left.
    state.returns_to = frame.caller().0;
    compiler_fence(Ordering::SeqCst);
    state.frame = frame.address();
    Some(Inside(thread))
}

/// The state of this thread, if it is in a call of ARMCI and makes a further one of MPI.
pub(crate) fn in_armci(further: Owner) -> Option<&'static mut Thread> {
    // SAFETY: the thread's own state, which nobody uses until the further call returns.
    unsafe { current().as_mut() }.filter(|thread| thread.is_in_armci(further))
}

/// Enters the recorder where there is no call, unless the thread is in it or in a call.
pub(crate) fn enter_apart() -> Option<Inside> {
    let mut thread = THREAD.with(Cell::get);
    if thread.is_null() {
        thread = register()?;
    }
    // SAFETY: the thread's own state.
    let state = unsafe { &mut *thread };
    if state.frame != 0 {
        return None;
    }
    state.frame = APART;
    Some(Inside(thread))
}

/// First call of a thread.
#[cold]
fn register() -> Option<*mut Thread> {
    if REGISTERS.with(|registers| registers.replace(true)) {
        return None;
    }
    let mut thread = ptr::null_mut();
    let _uncancelled = Uncancelled::new();
    fault::caught(|| {
        let Some(spool) = spool::get() else { return };
        let number = SAMPLER.get().and_then(|sampler| (sampler.number)()).unwrap_or_else(next_number);
        let first = Slots::create(spool, number).map_err(spool::Stop::Error).and_then(|mut file| {
            let chunk = file.chunk(spool)?;
            Ok((file, chunk))
        });
        match first {
            Ok((file, chunk)) => {
                let mut new = Box::new(Thread {
                    frame: 0,
                    returns_to: 0,
                    open: ptr::null_mut(),
                    ends: false,
                    cursor: ptr::null_mut(),
                    attention: ptr::null_mut(),
                    end: ptr::null_mut(),
                    chunk,
                    full: Vec::with_capacity(4),
                    file: Mutex::new(file),
                    ready: AtomicPtr::new(ptr::null_mut()),
                    asked: AtomicBool::new(false),
                    run: Run::NONE,
                    scratch: Call::default(),
                    switches: state::switches(),
                    types: Types::default(),
                    paths: Paths::new(),
                    counters: Counters::new(number == 0),
                    taken: Vec::with_capacity(128),
                    held: Vec::with_capacity(16),
                    number,
                    level: 0,
                    tasks: 0,
                    sequence: 0,
                    statuses: Vec::new(),
                });
                new.begin(chunk);
                thread = Box::into_raw(new);
            }
            Err(stop) => state::lost(stop),
        }
    });
    REGISTERS.with(|registers| registers.set(false));
    if thread.is_null() {
        return None;
    }
    THREAD.with(|place| place.set(thread));
    tell_of_end(thread);
    helper::thread_begins(is_main());
    if let Some(sampler) = SAMPLER.get() {
        (sampler.calls)(thread);
    }
    Some(thread)
}

/// Whether this is the thread that the process began with.
fn is_main() -> bool {
    // SAFETY: they have no arguments.
    unsafe { libc::getpid() == libc::gettid() }
}

/// Runs code of the recorder outside of a call: what that calls is not recorded, nor what a signal handler calls meanwhile.
pub(crate) fn apart(work: impl FnOnce()) {
    if THREAD.with(Cell::get).is_null() {
        let before = REGISTERS.with(|registers| registers.replace(true));
        work();
        REGISTERS.with(|registers| registers.set(before));
    } else {
        let _inside = enter_apart();
        work();
    }
}

/// The thread ends: its last chunk is closed. The state itself stays, as the helper may look at it.
unsafe extern "C" fn ended(thread: *mut libc::c_void) {
    // SAFETY: the value is the thread's state.
    let thread = unsafe { &mut *thread.cast::<Thread>() };
    if !std::mem::replace(&mut thread.ends, true) {
        // Destructors of the program come first.
        tell_of_end(thread);
        return;
    }
    // For good: what is called from now on is not recorded.
    thread.frame = APART;
    fault::caught(|| {
        thread.tell_end();
        thread.close();
        helper::thread_ends(is_main());
    });
}

impl Thread {
    /// Whether the thread is in a call of ARMCI, and the owner of a further one is MPI.
    fn is_in_armci(&self, further: Owner) -> bool {
        // SAFETY: the slot of the call, which stays mapped until that returns.
        let call = unsafe { self.open.as_ref() }.filter(|_| further == Owner::Mpi && self.frame != APART);
        let function = call.and_then(|call| FUNCTIONS.get(usize::from(call.function)));
        function.is_some_and(|function| function.owner == Owner::Armci)
    }

    /// Whether the call that the thread is in was left by `longjmp`, by a further call: that of a function which the call itself calls has the call's
    /// return address further out on its stack.
    #[cold]
    fn is_left(&mut self, further: Frame, owner: Owner) -> bool {
        // A call of ARMCI is many of MPI, each of which would look at the stack.
        if self.frame == APART || self.is_in_armci(owner) || !callers::count(further.caller().0) {
            return false;
        }
        let call = Frame::at(self.frame);
        // On stacks of the program's own making, the order of frames says nothing.
        if !self.paths.is_on_stack(self.frame) || !self.paths.is_on_stack(further.address()) {
            return false;
        }
        let left = further.address() >= self.frame
            || call.caller().0 != self.returns_to
            || !self.paths.passes(further.caller(), call.caller().1);
        if left {
            self.abandon(None);
        }
        left
    }

    /// Ends a call that did not return. If it is not known when it was left, it ends where it began: what comes after may be the program's.
    #[cold]
    fn abandon(&mut self, time: Option<u64>) {
        // SAFETY: a slot of this thread, or its scratch.
        let Some(call) = (unsafe { std::mem::replace(&mut self.open, ptr::null_mut()).as_mut() }) else { return };
        let class = FUNCTIONS.get(usize::from(call.function)).map(|function| function.class);
        if class.is_some_and(Class::takes_requests) {
            self.taken.drain(..).rev().for_each(|request| put_back(&request));
        }
        call.flags |= flags::FAILED;
        let time = time.unwrap_or(call.enter);
        // SAFETY: the field is aligned and lives as long as the slot.
        unsafe { AtomicU64::from_ptr(&raw mut call.leave).store(time, Ordering::Release) };
    }

    /// The thread, which the program made, is about to end.
    fn tell_end(&mut self) {
        if self.sequence != 0 {
            self.tell_of(number::THREAD_END);
        }
    }

    /// Writes that a thread that the program made begins or ends.
    pub(crate) fn tell_of(&mut self, function: usize) {
        let (function, id) = (function as u16, self.sequence);
        self.moment(Call { function, object: NONE, id, ..Call::default() });
    }

    fn begin(&mut self, chunk: Chunk) {
        self.chunk = chunk;
        self.cursor = chunk.address;
        self.end = chunk.address.wrapping_add(CHUNK);
        self.attention = chunk.address.wrapping_add(CHUNK / 2);
        self.run = Run::NONE;
    }

    fn close(&mut self) {
        self.full.drain(..).for_each(spool::unmap);
        (self.paths, self.counters) = (Paths::new(), None);
        (self.taken, self.statuses) = (Vec::new(), Vec::new());
        let mut unused = (self.end as usize).wrapping_sub(self.cursor as usize);
        if self.end.is_null() {
            return;
        }
        spool::unmap(self.chunk);
        let file = self.file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        self.asked.store(false, Ordering::Relaxed);
        let ready = self.ready.swap(ptr::null_mut(), Ordering::Acquire);
        if !ready.is_null() {
            spool::unmap(Chunk { address: ready, size: CHUNK });
            unused += CHUNK;
        }
        file.close(unused);
        (self.cursor, self.attention, self.end) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    }

    /// A new slot of zeros, null if recording is off.
    #[inline]
    pub(crate) fn slot(&mut self) -> *mut u8 {
        if self.cursor >= self.attention && !self.turn() {
            return ptr::null_mut();
        }
        let slot = self.cursor;
        self.cursor = slot.wrapping_add(SLOT);
        slot
    }

    /// Where the next slot goes; null if recording is off.
    pub(crate) fn cursor(&self) -> *mut u8 {
        self.cursor
    }

    /// Takes back the slots from a place in the present chunk on. What was written with them is not known any more.
    pub(crate) fn retract(&mut self, from: *mut u8) {
        let length = (self.cursor as usize).saturating_sub(from as usize);
        // SAFETY: written slots of the present chunk; without its first word, a slot is the end of what a reader sees.
        unsafe {
            AtomicU64::from_ptr(from.cast()).store(0, Ordering::Release);
            from.write_bytes(0, length);
        }
        self.cursor = from;
        if let Some(counters) = &mut self.counters {
            counters.forget();
        }
    }

    /// The present chunk is half full, or full.
    #[cold]
    fn turn(&mut self) -> bool {
        if self.end.is_null() {
            return false;
        }
        if self.cursor < self.end {
            self.attention = self.end;
            self.asked.store(true, Ordering::Relaxed);
            helper::ask(prepare_chunk, ptr::from_ref(self).expose_provenance());
            return true;
        }
        let _uncancelled = Uncancelled::new();
        let from = now();
        let mut next = self.ready.swap(ptr::null_mut(), Ordering::Acquire);
        let late = next.is_null();
        if late {
            let mut file = self.file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            // The helper may have been at it when the lock was taken.
            next = self.ready.swap(ptr::null_mut(), Ordering::Acquire);
            if next.is_null() {
                match spool::get().map(|spool| file.chunk(spool)) {
                    Some(Ok(chunk)) => next = chunk.address,
                    stop => {
                        drop(file);
                        // The last chunk stays mapped: a call that has not returned may lie in it.
                        (self.cursor, self.attention, self.end) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
                        if let Some(Err(stop)) = stop {
                            state::lost(stop);
                        }
                        return false;
                    }
                }
            }
        }
        self.full.push(self.chunk);
        self.begin(Chunk { address: next, size: CHUNK });
        if late {
            self.extension(Extension::Stall, 0, Stall { head: 0, from, to: now() });
        }
        true
    }

    /// Writes a moment: a call that takes no time.
    pub(crate) fn moment(&mut self, call: Call) {
        self.switched();
        let slot: *mut Call = self.slot().cast();
        if !slot.is_null() {
            let time = now();
            // SAFETY: a slot has room for it. The reader sees it once the time is there, which comes last.
            unsafe {
                slot.write(Call { enter: 0, leave: time, ..call });
                AtomicU64::from_ptr(&raw mut (*slot).enter).store(time, Ordering::Release);
            }
        }
    }

    /// Writes an extension.
    pub(crate) fn extension<T>(&mut self, kind: Extension, items: u8, content: T) {
        const { assert!(size_of::<T>() == SLOT) };
        let slot = self.slot().cast::<T>();
        if !slot.is_null() {
            // SAFETY: a slot has room for it. All kinds begin with the head, where what they have there already stays.
            unsafe {
                slot.write(content);
                *slot.cast::<u64>() |= extension(kind, items);
            }
        }
    }

    /// Writes the counters: at the entry of the next call, or at the return of the last one.
    #[inline]
    pub(crate) fn count(&mut self, kind: Extension) {
        if self.counters.is_some() {
            self.write_counters(kind);
        }
    }

    /// Apart, so that a call without counters does not save the registers that this needs.
    #[cold]
    #[inline(never)]
    fn write_counters(&mut self, kind: Extension) {
        let _uncancelled = Uncancelled::new();
        let Some(mut counters) = self.counters.take() else { return };
        counters.read();
        let mut next = 0;
        while let Some((block, items, count)) = counters.changed(next) {
            self.extension(kind, count as u8, Values { head: (block as u64) << 16, items });
            next = block + 1;
        }
        self.counters = Some(counters);
    }

    /// The slot of a call; if nothing is to be recorded, one that nobody reads.
    #[inline]
    pub(crate) fn call(&mut self, record: bool) -> *mut Call {
        if record {
            let slot = self.slot();
            if !self.full.is_empty() {
                self.full.drain(..).for_each(spool::unmap);
            }
            if !slot.is_null() {
                return slot.cast();
            }
        }
        &raw mut self.scratch
    }

    /// The call path of a call. An allocator that holds a lock must not wait for the loader's, so it may not ask the loader.
    #[inline]
    pub(crate) fn path(&mut self, function: &Function, frame: Frame) -> u32 {
        self.path_of(frame.caller(), function.owner != Owner::System)
    }

    /// The call path of a place given by a return address, the stack pointer, and the frame pointer there.
    #[expect(clippy::inline_always, reason = "otherwise each call saves and restores all registers for it")]
    #[inline(always)]
    pub(crate) fn path_of(&mut self, place: (usize, usize, usize), may_list: bool) -> u32 {
        self.switched();
        let node = self.paths.walk(place, may_list);
        if !self.paths.added.is_empty() {
            self.add_nodes();
        }
        node
    }

    /// Writes new nodes, three to a slot.
    #[cold]
    fn add_nodes(&mut self) {
        let added = std::mem::take(&mut self.paths.added);
        for nodes in added.chunks(3) {
            let mut items = [Node::default(); 3];
            items[..nodes.len()].copy_from_slice(nodes);
            self.extension(Extension::Nodes, nodes.len() as u8, Nodes { head: 0, unused: 0, items });
        }
        self.paths.added = added;
        self.paths.added.clear();
    }

    /// Tells of switches of the recording since the last call.
    #[inline]
    pub(crate) fn switched(&mut self) {
        if self.switches != state::switches() {
            self.tell();
        }
    }

    #[cold]
    fn tell(&mut self) {
        for (time, on) in state::switches_since(self.switches) {
            self.extension(Extension::Switch, 0, Switch { head: 0, time, on: u64::from(on) });
        }
        self.switches = state::switches();
        self.run = Run::NONE;
    }

    /// Has the next chunk made ready, by the helper.
    fn prepare(&self) {
        let mut file = self.file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // What fails here is tried again, and told, by the thread itself.
        if self.asked.swap(false, Ordering::Relaxed)
            && self.ready.load(Ordering::Relaxed).is_null()
            && let Some(Ok(chunk)) = spool::get().map(|spool| file.chunk(spool))
        {
            // Before the pages are ready: the thread must not wait for them.
            self.ready.store(chunk.address, Ordering::Release);
            drop(file);
            spool::populate(chunk);
        }
    }

    /// Size of an element of a type.
    #[inline]
    pub(crate) fn type_size(&mut self, datatype: usize) -> u64 {
        let handle = abi::get().mask(datatype);
        let epoch = TYPES_FREED.load(Ordering::Relaxed);
        if self.types.epoch != epoch {
            self.types = Types { epoch, ..Types::default() };
        }
        let place = handle.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61;
        match self.types.sizes.get(place) {
            Some(&(known, size)) if known == handle => size,
            _ => self.ask_type(handle, place),
        }
    }

    #[cold]
    fn ask_type(&mut self, handle: usize, place: usize) -> u64 {
        if !abi::get().is_type(handle) {
            return 0;
        }
        let mut size = -1_i64;
        let large = number::TYPE_SIZE * 4 + LARGE + PROFILING;
        let code = if real::exists(large) {
            real::own_symbol(large, [handle, &raw mut size as usize])
        } else if real::exists(number::TYPE_SIZE_X * 4 + PROFILING) {
            own!(TYPE_SIZE_X, handle, &raw mut size)
        } else {
            let mut short = -1_i32;
            let code = own!(TYPE_SIZE, handle, &raw mut short);
            size = i64::from(short);
            code
        };
        let size = if code == 0 { u64::try_from(size).unwrap_or(0) } else { 0 };
        if let Some(entry) = self.types.sizes.get_mut(place) {
            *entry = (handle, size);
        }
        size
    }
}

/// Has the next chunk of a thread made ready, by the helper.
fn prepare_chunk(thread: usize) {
    // SAFETY: states of threads are never freed, and `prepare` touches only what is shared.
    unsafe { (*ptr::with_exposed_provenance::<Thread>(thread)).prepare() };
}

/// Raised when a type is freed, as its handle may come again.
static TYPES_FREED: AtomicU64 = AtomicU64::new(0);

/// Forgets the sizes of all types, in all threads.
pub(crate) fn forget_types() {
    TYPES_FREED.fetch_add(1, Ordering::Relaxed);
}

/// Sizes of the types used last, by handle.
#[derive(Default)]
pub(crate) struct Types {
    epoch: u64,
    sizes: [(usize, u64); 8],
}
