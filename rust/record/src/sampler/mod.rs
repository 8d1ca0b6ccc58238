//! Samples of where threads are between their calls, by signals of clocks of their CPU time.
//!
//! The program must not suffer. The signal is SIGURG, which does nothing where no handler is: a program that takes it back, or that executes
//! another one while it is pending, does not end. Where anything speaks against sampling there is none, and the recording says why.

mod alarm;
mod handler;
mod kernel;
mod python;
mod store;
mod walk;

use crate::fault::Uncancelled;
use crate::format::{Entry, Mechanism, NONE};
use crate::spool::{Payload, Stop};
use crate::thread::{self, Thread};
use crate::{helper, modules, stack, state};
use alarm::Alarm;
use handler::{ON, Own, PLAN, Plan, State};
use std::cell::{Cell, UnsafeCell};
use std::ffi::{c_int, c_void};
use std::io::Error;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use store::Store;
use walk::Walker;

/// Its default action is to do nothing.
const SIGNAL: c_int = libc::SIGURG;
/// Bytes for the frame of the signal, where a thread has no place for it, and for the handler.
const SIGNAL_STACK: usize = 24 << 10;
const HANDLER_STACK: usize = 64 << 10;

thread_local! {
    /// The number of the thread's state, and one more; 0 if it has none.
    static NUMBER: Cell<usize> = const { Cell::new(0) };
}

static KEY: OnceLock<libc::pthread_key_t> = OnceLock::new();
/// Numbers of states whose threads have ended.
static FREE: Mutex<Vec<usize>> = Mutex::new(Vec::new());
/// Why threads are not sampled, with how many.
static REFUSED: Mutex<Vec<(String, u32)>> = Mutex::new(Vec::new());
/// A thread is sampled.
static STARTED: AtomicBool = AtomicBool::new(false);
/// It has ended before the process.
static ENDED: AtomicBool = AtomicBool::new(false);

/// Makes what must be there before the program runs, when the library is loaded into a process that is to be sampled.
pub(crate) fn prepare() {
    let mut key = 0;
    // SAFETY: the pointer is valid, and the destructor gets the number of a state.
    if unsafe { libc::pthread_key_create(&raw mut key, Some(thread_ends)) } == 0 {
        let _ = KEY.set(key);
    }
}

/// Whether threads that are made are to be sampled.
pub(crate) fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Begins to sample the process and this thread, so often in a second of CPU time.
pub(crate) fn begin(rate: u32, has_helper: bool) {
    match plan(rate, has_helper) {
        Ok(plan) => {
            let (signal, own) = (plan.signal, plan.own.clone());
            if PLAN.set(plan).is_ok() && install(signal, &own) {
                ON.store(true, Ordering::Release);
                thread::tell(thread::Sampler { number, calls });
                helper::look_after(is_on, look);
                thread_begins();
                helper::begin();
            } else {
                refuse(NONE, "another library handles signals");
            }
        }
        Err(why) => refuse(NONE, &why),
    }
}

/// What to do, or what speaks against it.
fn plan(rate: u32, has_helper: bool) -> Result<Plan, String> {
    let tick = tick();
    // A clock of the kernel below 5.9 raises its signal inside system calls.
    let timers = is_kernel_since(5, 9);
    let mut period = 1_000_000_000 / u64::from(rate.max(1));
    if KEY.get().is_none() || !has_helper {
        return Err("it needs the recorder's helper".into());
    }
    let action = kernel::action(SIGNAL);
    if action.handler != libc::SIG_DFL {
        return Err("the program handles signal 23 (SIGURG)".into());
    }
    let alarm = Alarm::new(SIGNAL, 0, tick, timers).map_err(|error| {
        if timers { error.to_string() } else { "this kernel's timers may end system calls early".to_owned() }
    })?;
    if alarm.file().is_none() && period < shortest(tick) {
        period = shortest(tick);
        let most = 1_000_000_000 / period;
        refuse(0, &format!("{rate} samples a second: this machine's timers give at most {most}; perf is not allowed"));
    }
    modules::refreshed().ok_or("its objects are not known")?;
    let own = handler::own_code();
    if own.is_empty() {
        Err("its objects are not known".into())
    } else {
        Ok(Plan { signal: SIGNAL, period, tick, timers, own })
    }
}

/// The shortest period of timers, which expire at ticks: another would follow these.
fn shortest(tick: u64) -> u64 {
    tick * 5 / 2
}

/// How long a tick of the kernel is, in ns.
fn tick() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is valid.
    unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC_COARSE, &raw mut time) };
    (time.tv_nsec as u64).clamp(1_000_000, 10_000_000)
}

fn is_kernel_since(major: u32, minor: u32) -> bool {
    let text = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = text.split(|letter: char| !letter.is_ascii_digit()).filter_map(|number| number.parse().ok());
    (numbers.next().unwrap_or(0_u32), numbers.next().unwrap_or(0_u32)) >= (major, minor)
}

/// Installs the handler; returns whether it is what the kernel calls.
fn install(signal: c_int, own: &std::ops::Range<usize>) -> bool {
    // SAFETY: a set and an action on the stack, which are filled in.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler::handle as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
        libc::sigfillset(&raw mut action.sa_mask);
        libc::sigaction(signal, &raw const action, ptr::null_mut());
    }
    walk::learn_restorer(signal);
    is_installed(signal, own)
}

fn is_installed(signal: c_int, own: &std::ops::Range<usize>) -> bool {
    own.contains(&kernel::action(signal).handler)
}

/// Begins to sample this thread, unless it is sampled.
pub(crate) fn thread_begins() {
    let Some(plan) = PLAN.get().filter(|_| is_on() && NUMBER.with(Cell::get) == 0) else { return };
    let _uncancelled = Uncancelled::new();
    if let Err(why) = start(plan) {
        refuse(1, &why);
    }
}

fn start(plan: &'static Plan) -> Result<(), String> {
    let free = FREE.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let (number, state) = match free.and_then(|number| Some((number, handler::numbered(number)?))) {
        Some(known) => known,
        None => handler::add(new_state()?).ok_or("there are too many")?,
    };
    // SAFETY: the state is nobody's, and its clock is stopped.
    let own = unsafe { &mut *state.own.get() };
    let started = own.start(plan, number, state);
    if started.is_err() {
        state.owner.store(0, Ordering::Release);
        (own.alarm, own.faults) = (None, None);
        FREE.lock().unwrap_or_else(PoisonError::into_inner).push(number);
    }
    started
}

/// A state with its two stacks.
fn new_state() -> Result<State, String> {
    const LENGTH: usize = SIGNAL_STACK + HANDLER_STACK;
    const PROTECTION: c_int = libc::PROT_READ | libc::PROT_WRITE;
    const KIND: c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping.
    let stacks = unsafe { libc::mmap(ptr::null_mut(), LENGTH, PROTECTION, KIND, -1, 0) };
    let walker = (stacks != libc::MAP_FAILED).then(Walker::new).flatten();
    let walker = walker.ok_or_else(|| Error::last_os_error().to_string())?;
    let end = stacks as usize + LENGTH;
    // What is written first must not fault in the handler.
    for page in (end - HANDLER_STACK / 2..end).step_by(crate::format::PAGE) {
        // SAFETY: within the mapping.
        unsafe { (page as *mut u8).write_volatile(0) };
    }
    Ok(State {
        owner: AtomicUsize::new(0),
        calls: AtomicPtr::new(ptr::null_mut()),
        files: [const { AtomicI32::new(-1) }; 2],
        stack: [const { AtomicUsize::new(0) }; 2],
        own_stack: end,
        own: UnsafeCell::new(Own::new(walker)),
    })
}

impl Own {
    /// Gives the state to this thread, and starts its clock.
    fn start(&mut self, plan: &'static Plan, number: usize, state: &'static State) -> Result<(), String> {
        let made = || Alarm::new(plan.signal, handler::mark(number), plan.tick, plan.timers);
        let mut alarm = made().map_err(|error| error.to_string())?;
        if alarm.file().is_some_and(|file| !handler::knows_file(file, number)) {
            alarm = Alarm::timer(plan.signal, handler::mark(number), plan.tick).map_err(|error| error.to_string())?;
        }
        let mechanism = alarm.mechanism();
        self.period = if mechanism == Mechanism::Timer { plan.period.max(shortest(plan.tick)) } else { plan.period };
        let calls = thread::current();
        // SAFETY: the thread's own state, or null.
        let known = unsafe { calls.as_ref() }.map(|thread| thread.number);
        // A file without samples of a thread that made no call goes to another.
        let reuses = known.is_none() && self.store.as_ref().is_some_and(|store| store.mechanism == mechanism);
        if !reuses {
            if let Some(store) = self.store.take() {
                store.close();
            }
            let number = known.unwrap_or_else(thread::next_number);
            let made = Store::create(number, mechanism, self.period);
            self.store = Some(made.map_err(|stop| match stop {
                Stop::Limit => "the size given by --max-size is reached".to_owned(),
                Stop::Error(error) => error.to_string(),
            })?);
        }
        self.walker.reset();
        // To look for it takes longer than all else here: the helper does so for many threads at once.
        // SAFETY: these have no arguments.
        let is_main = unsafe { libc::getpid() == libc::gettid() };
        let looks = is_main || !STARTED.swap(true, Ordering::Relaxed);
        state.set_stack(&if looks { stack::of_thread() } else { 0..0 });
        self.random = now_as_seed(number);
        state.calls.store(calls, Ordering::Relaxed);
        use_stack(state);
        // Time in the kernel has no samples of perf's clock: page faults have some of their own.
        let faults = alarm.file().and_then(|_| Alarm::faults(plan.signal).ok());
        self.faults = faults.filter(|faults| faults.file().is_some_and(|file| handler::knows_file(file, number)));
        for (place, alarm) in state.files.iter().zip([Some(&alarm), self.faults.as_ref()]) {
            place.store(alarm.and_then(Alarm::file).unwrap_or(-1), Ordering::Relaxed);
        }
        self.alarm = Some(alarm);
        state.owner.store(kernel::own_thread(), Ordering::Release);
        NUMBER.with(|place| place.set(number + 1));
        if let Some(key) = KEY.get() {
            // SAFETY: the key exists.
            unsafe { libc::pthread_setspecific(*key, ptr::without_provenance(number + 1)) };
        }
        // Threads may inherit that everything is blocked.
        kernel::block(plan.signal, false);
        self.begin();
        if !looks {
            helper::hurry();
        }
        Ok(())
    }
}

fn now_as_seed(number: usize) -> u64 {
    (crate::clock::now() ^ (number as u64).rotate_left(32)) | 1
}

/// Gives the thread a place for frames of signals, if it has none: its stack may be one of the program's own making, and small.
fn use_stack(state: &State) {
    // SAFETY: structures on the stack, of which the first is filled in.
    unsafe {
        let mut present: libc::stack_t = std::mem::zeroed();
        libc::sigaltstack(ptr::null(), &raw mut present);
        if present.ss_flags & libc::SS_DISABLE != 0 {
            let new = libc::stack_t { ss_sp: signal_stack(state), ss_flags: 0, ss_size: SIGNAL_STACK };
            libc::sigaltstack(&raw const new, ptr::null_mut());
        }
    }
}

fn signal_stack(state: &State) -> *mut c_void {
    ptr::with_exposed_provenance_mut(state.own_stack - HANDLER_STACK - SIGNAL_STACK)
}

/// The number of this thread among those of the process, if it is sampled; the recorder's state of it is known from now on.
pub(crate) fn number() -> Option<u32> {
    let state = handler::numbered(NUMBER.with(Cell::get).checked_sub(1)?)?;
    // SAFETY: the store is replaced only when the thread begins and ends.
    unsafe { (*state.own.get()).store.as_ref() }.map(|store| store.number)
}

/// The thread made its first call.
pub(crate) fn calls(thread: *mut Thread) {
    if let Some(state) = NUMBER.with(Cell::get).checked_sub(1).and_then(handler::numbered) {
        state.calls.store(thread, Ordering::Release);
    } else {
        thread_begins();
    }
}

/// The thread ends.
unsafe extern "C" fn thread_ends(number: *mut c_void) {
    let number = (number as usize).wrapping_sub(1);
    // Later, clocks do nothing; in a child of the process, somebody may have held the lock for ever.
    let (Some(state), Some(plan), true) = (handler::numbered(number), PLAN.get(), is_on()) else { return };
    // For good: what is pending must not come.
    kernel::block(plan.signal, true);
    state.owner.store(0, Ordering::Release);
    let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the handler does not come any more, and the helper looks at states while it has the lock.
    let own = unsafe { &mut *state.own.get() };
    for alarm in [own.alarm.take(), own.faults.take()].into_iter().flatten() {
        alarm.stop();
    }
    state.files.iter().for_each(|file| file.store(-1, Ordering::Relaxed));
    // SAFETY: structures on the stack, of which the first is filled in.
    unsafe {
        let mut present: libc::stack_t = std::mem::zeroed();
        libc::sigaltstack(ptr::null(), &raw mut present);
        if present.ss_sp == signal_stack(state) {
            present.ss_flags = libc::SS_DISABLE;
            libc::sigaltstack(&raw const present, ptr::null_mut());
        }
    }
    let made_calls = !state.calls.swap(ptr::null_mut(), Ordering::Relaxed).is_null();
    if let Some(store) = own.store.take_if(|store| made_calls || store.written() > 0) {
        store.close();
    }
    NUMBER.with(|place| place.set(0));
    free.push(number);
}

/// Whether an address is in the recorder's own code.
pub(crate) fn is_own(address: usize) -> bool {
    PLAN.get().is_some_and(|plan| plan.own.contains(&address))
}

/// Does what handlers cannot; from time to time, in the helper.
pub(crate) fn look() {
    let Some(plan) = PLAN.get().filter(|_| is_on()) else { return };
    if !is_installed(plan.signal, &plan.own) {
        end("the program took signal 23 (SIGURG)");
        return;
    }
    if !LISTING.swap(true, Ordering::Acquire) {
        modules::refreshed();
        LISTING.store(false, Ordering::Release);
    }
    // No thread begins or ends meanwhile.
    let _free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
    find_stacks();
    for state in handler::all().filter(|state| state.owner.load(Ordering::Acquire) != 0) {
        // SAFETY: the store is shared, and stays while the lock is held.
        if let Some(store) = unsafe { &(*state.own.get()).store } {
            store.prepare();
        }
    }
}

/// Finds the stacks of threads that have begun: the C library keeps what it knows of a thread at the end of its stack.
fn find_stacks() {
    let unknown = || {
        let states = handler::all().map(|state| (state, state.owner.load(Ordering::Acquire)));
        states.filter(|(state, owner)| *owner != 0 && state.stack[1].load(Ordering::Acquire) == 0)
    };
    if unknown().next().is_some() {
        stack::for_each_mapping(|mapping| {
            unknown().filter(|(_, owner)| mapping.contains(owner)).for_each(|(state, _)| state.set_stack(&mapping));
        });
    }
}

/// Samples are taken no more, though the process goes on.
fn end(why: &str) {
    if ON.swap(false, Ordering::AcqRel) && !ENDED.swap(true, Ordering::Relaxed) {
        let _free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        for state in handler::all().filter(|state| state.owner.load(Ordering::Acquire) != 0) {
            // SAFETY: clocks stay while the lock is held, and any thread may stop them.
            let own = unsafe { &*state.own.get() };
            own.alarm.iter().chain(&own.faults).for_each(Alarm::stop);
        }
        refuse(NONE, &format!("from then on: {why}"));
    }
}

/// The recording ends.
pub(crate) fn stop() {
    ON.store(false, Ordering::Release);
    for (why, count) in REFUSED.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        tell(count, &why);
    }
}

/// The helper has the loader list the objects: a child of the process that is made meanwhile would find the loader locked for ever.
static LISTING: AtomicBool = AtomicBool::new(false);

/// Before a child of the process is made.
pub(crate) fn forks() {
    // The helper is quick, unless it waits for this very thread.
    const PATIENCE: usize = 10_000;
    for _ in 0..if is_on() { PATIENCE } else { 0 } {
        if !LISTING.swap(true, Ordering::Acquire) {
            return;
        }
        // SAFETY: it has no arguments.
        unsafe { libc::sched_yield() };
    }
}

/// The child was made.
pub(crate) fn has_forked() {
    LISTING.store(false, Ordering::Release);
}

/// Nothing is sampled in a child of the process.
pub(crate) fn forked() {
    ON.store(false, Ordering::Release);
}

/// Notes why so many threads are not sampled: at once for the first, and at the end for all.
fn refuse(count: u32, why: &str) {
    let mut refused = REFUSED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, all)) = refused.iter_mut().find(|(known, _)| known == why) {
        *all = all.saturating_add(count);
        return;
    }
    refused.push((why.to_owned(), count));
    drop(refused);
    tell(count, why);
}

fn tell(count: u32, why: &str) {
    state::define(Entry::Unsampled, &Payload::default().u32(count).text(why));
}
