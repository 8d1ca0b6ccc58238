//! The signal handler that takes a sample.
//!
//! It runs on a stack of its own, as that of the program may be small, and no other signal of the thread comes meanwhile.

use super::alarm::Alarm;
use super::kernel;
use super::store::Store;
use super::walk::{Place, Walker};
use crate::clock::now;
use crate::format::{FAULTS, Mechanism, Sample, sample};
use crate::thread::{self, Doing, Thread};
use crate::{modules, state};
use std::arch::naked_asm;
use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicUsize, Ordering};

/// What is sampled of a process.
pub(super) struct Plan {
    pub(super) signal: c_int,
    /// Mean CPU time from one sample to the next, and from one tick of the kernel to the next, in ns.
    pub(super) period: u64,
    pub(super) tick: u64,
    /// Whether timers may be used.
    pub(super) timers: bool,
    /// Where the recorder's own code is.
    pub(super) own: Range<usize>,
}

pub(super) static PLAN: OnceLock<Plan> = OnceLock::new();
/// Samples are taken.
pub(super) static ON: AtomicBool = AtomicBool::new(false);

/// What a sampled thread has. It stays when the thread ends, for another one.
pub(super) struct State {
    /// The thread; 0 if there is none.
    pub(super) owner: AtomicUsize,
    /// What the recorder has of the thread; null before its first call.
    pub(super) calls: AtomicPtr<Thread>,
    /// The descriptors of its events of perf, the clock and page faults; negative if there are none.
    pub(super) files: [AtomicI32; 2],
    /// Where the thread's stack begins and ends; 0 until it is known.
    pub(super) stack: [AtomicUsize; 2],
    /// Where the handler's stack ends.
    pub(super) own_stack: usize,
    pub(super) own: UnsafeCell<Own>,
}

/// What the handler uses; other code of the thread does so only while its clock is stopped.
pub(super) struct Own {
    pub(super) walker: Walker,
    pub(super) alarm: Option<Alarm>,
    pub(super) faults: Option<Alarm>,
    pub(super) store: Option<Store>,
    /// Makes periods uneven: they must not follow those of the program.
    pub(super) random: u64,
    /// Mean CPU time from one sample to the next, in ns.
    pub(super) period: u64,
    /// CPU time at the last sample, as far as the clock counts it, and when the next is due.
    last: u64,
    due: u64,
    /// Page faults from one sample of these to the next, and how many the thread has had when the next is due.
    fault_period: u64,
    faults_due: u64,
    /// How many samples of page faults there were since some CPU time.
    recent: u64,
    recent_faults: u32,
}

impl Own {
    pub(super) fn new(walker: Walker) -> Self {
        Self {
            walker,
            alarm: None,
            faults: None,
            store: None,
            random: 1,
            period: 0,
            last: 0,
            due: 0,
            fault_period: FAULTS,
            faults_due: 0,
            recent: 0,
            recent_faults: 0,
        }
    }
}

/// A clock is set again if it is late by so many periods. What the kernel says of time in it is not exact.
const OVERDUE: u64 = 4;
/// More samples of page faults than this in so many ns are too many.
const MANY: u32 = 20;
const RECENT: u64 = 100_000_000;

// SAFETY: `own` is used as said there; the helper uses only its store and clock, which are shared.
unsafe impl Sync for State {}

/// States by number: signals of timers bring these.
const STATES: usize = 4096;
static TABLE: [AtomicPtr<State>; STATES] = [const { AtomicPtr::new(ptr::null_mut()) }; STATES];
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// Numbers of states, and one more, by descriptor: signals of perf bring these.
static FILES: [AtomicU32; STATES] = [const { AtomicU32::new(0) }; STATES];

/// Tells the recorder's timers from those of the program.
const MARK: usize = 0x7757 << 32;

/// What the signal of a state's timer brings.
pub(super) fn mark(number: usize) -> usize {
    MARK | number
}

/// Adds a state; none if there are too many.
pub(super) fn add(state: State) -> Option<(usize, &'static State)> {
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let Some(place) = TABLE.get(number) else {
        COUNT.fetch_sub(1, Ordering::Relaxed);
        return None;
    };
    let state = Box::into_raw(Box::new(state));
    place.store(state, Ordering::Release);
    // SAFETY: just made, and never freed.
    Some((number, unsafe { &*state }))
}

/// All states.
pub(super) fn all() -> impl Iterator<Item = &'static State> {
    // SAFETY: null, or never freed.
    TABLE.iter().filter_map(|place| unsafe { place.load(Ordering::Acquire).as_ref() })
}

/// The state with a number.
pub(super) fn numbered(number: usize) -> Option<&'static State> {
    // SAFETY: as above.
    unsafe { TABLE.get(number)?.load(Ordering::Acquire).as_ref() }
}

/// Whether signals of an event can be told by its descriptor; if so, they are from now on.
pub(super) fn knows_file(file: c_int, number: usize) -> bool {
    let place = &FILES[file as usize % STATES];
    let is_other = numbered((place.load(Ordering::Relaxed) as usize).wrapping_sub(1)).is_some_and(|state| {
        let others = state.files.each_ref().map(|other| other.load(Ordering::Relaxed));
        let clashes = |other: &c_int| *other != file && *other as usize % STATES == file as usize % STATES;
        others.iter().any(|other| *other >= 0 && clashes(other))
    });
    if !is_other {
        place.store(number as u32 + 1, Ordering::Release);
    }
    !is_other
}

/// The state of the thread that a signal is for, if a clock of the recorder sent it, and whether it is that of page faults.
///
/// # Safety
/// The information must be the kernel's.
unsafe fn state_of(info: *const libc::siginfo_t) -> Option<(&'static State, bool)> {
    // Both kinds of signals have their word at the same place: a timer its value, perf its descriptor.
    const WORD: usize = 3;
    // SAFETY: so the caller says.
    let (code, word) = unsafe { ((*info).si_code, info.cast::<usize>().add(WORD).read()) };
    let state = match code {
        libc::SI_TIMER if word & !0xffff_ffff == MARK => numbered(word & 0xffff_ffff).map(|state| (state, false)),
        POLL_FIRST..=POLL_LAST => {
            let file = word as u32;
            let number = FILES[file as usize % STATES].load(Ordering::Acquire);
            numbered((number as usize).wrapping_sub(1)).and_then(|state| {
                let is_of = |known: &AtomicI32| known.load(Ordering::Relaxed) == file.cast_signed();
                state.files.iter().position(is_of).map(|event| (state, event == 1))
            })
        }
        _ => None,
    };
    state.filter(|(state, _)| state.owner.load(Ordering::Relaxed) == kernel::own_thread())
}

// Of siginfo.h: why a descriptor sends a signal.
const POLL_FIRST: c_int = 1;
const POLL_LAST: c_int = 6;

/// Handles the signal.
pub(super) unsafe extern "C" fn handle(_: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    if !ON.load(Ordering::Relaxed) {
        return;
    }
    // SAFETY: the kernel passes both, and the state has a stack that nobody uses.
    unsafe {
        if let Some((state, is_fault)) = state_of(info) {
            on_stack(state, context.cast(), state.own_stack, is_fault);
        }
    }
}

/// Calls [`take`] on another stack.
#[unsafe(naked)]
unsafe extern "C" fn on_stack(state: &State, context: *const libc::ucontext_t, stack: usize, is_fault: bool) {
    naked_asm!(
        ".cfi_startproc",
        "push rbp",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbp, -16",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "mov rsp, rdx",
        "call {take}",
        "mov rsp, rbp",
        "pop rbp",
        ".cfi_def_cfa rsp, 8",
        "ret",
        ".cfi_endproc",
        take = sym take,
    )
}

/// Takes a sample, and sets the clock for the next.
unsafe extern "C" fn take(state: &State, context: *const libc::ucontext_t, _: usize, is_fault: bool) {
    let Some(plan) = PLAN.get() else { return };
    // SAFETY: the thread's handler uses it, which does not come twice; the kernel stored the context.
    let (own, place) = unsafe { (&mut *state.own.get(), Place::of(&*context)) };
    if !state::is_recording() {
        return;
    }
    let reading = own.read();
    if !state::is_switched_off() && !plan.own.contains(&place.address) {
        own.sample(state, place, is_fault, &reading);
    }
    own.set(is_fault, &reading);
}

/// What the kernel says of the thread at a sample.
struct Reading {
    cpu: u64,
    usage: kernel::Usage,
    /// CPU time as far as the clock counts it.
    counted: u64,
}

/// A period of three to five quarters of the mean.
pub(super) fn uneven(random: &mut u64, mean: u64) -> u64 {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    mean - mean / 4 + *random % (mean / 2).max(1)
}

impl State {
    /// The thread's stack; empty if it is not known.
    fn stack(&self) -> Range<usize> {
        let [begin, end] = self.stack.each_ref().map(|end| end.load(Ordering::Acquire));
        begin..end
    }

    pub(super) fn set_stack(&self, stack: &Range<usize>) {
        // Until the end is there, it is empty.
        self.stack[1].store(0, Ordering::Release);
        self.stack[0].store(stack.start, Ordering::Release);
        self.stack[1].store(stack.end, Ordering::Release);
    }
}

impl Own {
    /// Sets the clock that has interrupted the thread for the next time, and also the other one if its signal must have been lost: while signals are
    /// blocked, of two only one is kept.
    fn set(&mut self, is_fault: bool, reading: &Reading) {
        let (cpu, faults) = (reading.counted, reading.usage.faults[0]);
        if is_fault {
            self.recent_faults += 1;
            if cpu.saturating_sub(self.recent) > RECENT {
                (self.recent, self.recent_faults) = (cpu, 0);
            } else if self.recent_faults >= MANY {
                // A program that faults all the time is sampled less often.
                self.fault_period = self.fault_period.saturating_mul(2);
                (self.recent, self.recent_faults) = (cpu, 0);
            }
        }
        if !is_fault || cpu > self.due.saturating_add(OVERDUE * self.period) {
            let period = uneven(&mut self.random, self.period);
            self.due = cpu + period;
            self.alarm.iter().for_each(|alarm| alarm.set(period));
        }
        if is_fault || faults > self.faults_due.saturating_add(OVERDUE.saturating_mul(self.fault_period)) {
            let period = uneven(&mut self.random, self.fault_period);
            self.faults_due = faults + period;
            self.faults.iter().for_each(|alarm| alarm.set(period));
        }
    }

    /// Sets both clocks for the first time.
    pub(super) fn begin(&mut self) {
        self.fault_period = FAULTS;
        (self.due, self.faults_due) = (0, 0);
        let reading = self.read();
        (self.last, self.recent, self.recent_faults) = (reading.counted, 0, 0);
        self.set(false, &reading);
    }

    fn read(&self) -> Reading {
        let (cpu, usage) = (kernel::cpu_time(), kernel::usage());
        let is_of_perf = self.store.as_ref().is_some_and(|store| store.mechanism == Mechanism::Perf);
        // The clock of perf stands still in the kernel.
        let in_kernel = if is_of_perf { usage.system * 1000 } else { 0 };
        Reading { cpu, usage, counted: cpu.saturating_sub(in_kernel) }
    }

    fn sample(&mut self, state: &State, place: Place, is_fault: bool, reading: &Reading) {
        let time = now();
        let Self { walker, store, last, period, .. } = self;
        let Some(store) = store else { return };
        let stack = state.stack();
        let sp = if stack.contains(&place.sp) { place.sp } else { 0 };
        // SAFETY: the thread's own state.
        let doing = unsafe { thread::doing(state.calls.load(Ordering::Relaxed), sp) };
        // SAFETY: this is the thread's handler.
        if doing == Doing::Apart || !unsafe { store.has_room() } {
            return;
        }
        let Reading { cpu, usage, counted } = *reading;
        let (function, (node, mut flags)) = match doing {
            Doing::Call(function) => {
                walker.added_count = 0;
                (function, (0, sample::INSIDE))
            }
            // SAFETY: this is the thread's handler, and there is room.
            _ => (0, unsafe { walker.walk(place, &stack, store) }),
        };
        if is_fault {
            flags |= sample::FAULT;
        } else {
            flags |= if counted.saturating_sub(*last) > 3 * *period { sample::LATE } else { 0 };
            *last = counted;
        }
        let sample = Sample {
            head: 0,
            time,
            node,
            function,
            unused: 0,
            address: place.address as u64 + 1,
            cpu,
            system: usage.system as u32,
            faults: usage.faults.map(|count| count as u32),
            switches: usage.switches.map(|count| count as u32),
            lost: 0,
        };
        let added = walker.added.get(..walker.added_count).unwrap_or_default();
        // SAFETY: this is the thread's handler, and there is room.
        unsafe { store.write(added, flags, sample) };
    }
}

/// Where the recorder's own code is; empty before the objects were listed.
pub(super) fn own_code() -> Range<usize> {
    modules::current().and_then(|modules| modules.range_of(own_code as *const () as usize)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_around_their_mean() {
        let (mut random, mean) = (7, 10_000_000);
        let periods: Vec<u64> = (0..10_000).map(|_| uneven(&mut random, mean)).collect();
        let found = periods.iter().sum::<u64>() / periods.len() as u64;
        assert!(found.abs_diff(mean) < mean / 100, "{found}");
        assert!(periods.iter().all(|period| (mean * 3 / 4..=mean * 5 / 4).contains(period)));
    }

    #[test]
    fn what_the_kernel_says_is_what_the_c_library_says() {
        // SAFETY: a record of numbers, which the call fills in.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        let before = kernel::cpu_time();
        let mut pages = vec![0_u8; 4 << 20];
        pages.iter_mut().step_by(4096).for_each(|page| *page = 1);
        let own = kernel::usage();
        // SAFETY: the pointer is valid.
        unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
        assert!(kernel::cpu_time() >= before && crate::clock::of_thread() - before < 1_000_000_000);
        assert!(own.faults[0].abs_diff(usage.ru_minflt as u64) < 100 && own.faults[0] > 0, "{:?}", own.faults);
        assert!(own.switches[1].abs_diff(usage.ru_nivcsw as u64) < 100);
        // SAFETY: it has no arguments.
        assert_eq!(kernel::own_thread(), unsafe { libc::pthread_self() } as usize);
    }

    #[test]
    fn signals_of_others_are_left_alone() {
        // SAFETY: records of numbers.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        for code in [libc::SI_USER, libc::SI_TIMER, libc::SI_QUEUE, POLL_FIRST, POLL_LAST] {
            info.si_code = code;
            for word in [0, 1, MARK, MARK | 5, MARK | STATES, usize::MAX] {
                // SAFETY: where the kernel puts the value of a timer.
                unsafe { (&raw mut info).cast::<usize>().add(3).write(word) };
                // SAFETY: as the kernel would write it.
                assert!(unsafe { state_of(&raw const info) }.is_none());
            }
        }
    }
}
