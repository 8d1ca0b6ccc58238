//! OpenMP, as its runtime tells of it: OMPT, the interface for tools of OpenMP 5.0, which LLVM's runtime has.
//!
//! The runtime asks for [`ompt_start_tool`] when it starts, and calls back at the beginning and the end of each construct. Those become moments: slots of
//! calls that take no time. Tasks that are executed at once, or that are not tied to a thread, are part of what made them.

use crate::format::{BEGINS, Call, ENDS, NONE};
use crate::modes::{MODES, RECORD};
use crate::table::number;
use crate::thread::{self, Inside};
use crate::{fault, locks, state};
use std::arch::asm;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;

type Callback = *const ();
type SetCallback = unsafe extern "C" fn(c_int, Callback) -> c_int;
type Lookup = unsafe extern "C" fn(*const c_char) -> Option<SetCallback>;

/// What the runtime wants to know of a tool.
#[repr(C)]
struct StartTool {
    initialize: unsafe extern "C" fn(Lookup, c_int, *mut u64) -> c_int,
    finalize: unsafe extern "C" fn(*mut u64),
    data: u64,
}

/// The runtime of OpenMP starts: it gets the callbacks if threads are to be recorded.
#[unsafe(no_mangle)]
extern "C" fn ompt_start_tool(_: c_uint, _: *const c_char) -> *mut c_void {
    if !state::wants_threads() {
        return ptr::null_mut();
    }
    Box::into_raw(Box::new(StartTool { initialize, finalize, data: 0 })).cast()
}

unsafe extern "C" fn initialize(lookup: Lookup, _: c_int, _: *mut u64) -> c_int {
    // SAFETY: the runtime's own function.
    let Some(set) = (unsafe { lookup(c"ompt_set_callback".as_ptr()) }) else { return 0 };
    let callbacks: [(c_int, Callback); 12] = [
        (3, parallel_begin as *const ()),
        (4, parallel_end as *const ()),
        (5, task_create as *const ()),
        (6, task_schedule as *const ()),
        (7, implicit_task as *const ()),
        (17, mutex_released as *const ()),
        (20, work as *const ()),
        (21, masked as *const ()),
        (23, sync_region as *const ()),
        (26, mutex_acquire as *const ()),
        (27, mutex_acquired as *const ()),
        (28, nest_lock as *const ()),
    ];
    for (event, callback) in callbacks {
        // SAFETY: a callback of the type that the event has.
        unsafe { set(event, callback) };
    }
    1
}

unsafe extern "C" fn finalize(_: *mut u64) {}

/// A parallel region, as its threads find it in the runtime's data.
struct Parallel {
    /// The thread that forked and how deep the region is nested: regions of one such pair come one after the other.
    key: u32,
    code: usize,
}

/// In [`Parallel::key`]: bits of the depth.
const DEPTH: u32 = 8;

/// The thread, if moments of this kind are recorded.
fn recorded(function: usize) -> Option<Inside> {
    let is_on = MODES.get(function).is_some_and(|mode| mode.load(Relaxed) == RECORD);
    if is_on { thread::enter_apart() } else { None }
}

/// Where the program is now: an address in this function, its stack pointer and frame pointer.
#[expect(clippy::inline_always, reason = "it reads the registers of the function that calls it")]
#[inline(always)]
fn here() -> (usize, usize, usize) {
    let (address, stack, frame): (usize, usize, usize);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads registers.
    unsafe {
        asm!("lea {}, [rip]", "mov {}, rsp", "mov {}, rbp", out(reg) address, out(reg) stack, out(reg) frame, options(nomem, nostack));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: reads registers.
    unsafe {
        asm!("adr {}, .", "mov {}, sp", "mov {}, x29", out(reg) address, out(reg) stack, out(reg) frame, options(nomem, nostack));
    }
    (address, stack, frame)
}

/// A construct begins: with the call path.
#[inline(never)]
fn begins(thread: &mut Inside, function: usize, call: Call) {
    let node = thread.path_of(here(), true);
    thread.moment(Call { function: function as u16, node, peer: BEGINS, ..call });
}

fn ends(thread: &mut Inside, function: usize, call: Call) {
    thread.moment(Call { function: function as u16, peer: ENDS, ..call });
}

/// A moment without anything else.
fn plain(code: usize) -> Call {
    Call { object: NONE, received: code as u64, ..Call::default() }
}

const BEGIN: c_int = 1;

/// A construct begins or ends.
fn construct(function: usize, endpoint: c_int, code: usize) {
    fault::caught(|| {
        let Some(mut thread) = recorded(function) else { return };
        if endpoint == BEGIN {
            begins(&mut thread, function, plain(code));
        } else {
            ends(&mut thread, function, plain(code));
        }
    });
}

unsafe extern "C" fn parallel_begin(
    _: *mut u64,
    _: *const c_void,
    parallel: *mut usize,
    requested: c_uint,
    _: c_int,
    code: usize,
) {
    fault::caught(|| {
        let Some(mut thread) = recorded(number::OMP_FORK) else { return };
        let key = thread.number << DEPTH | (thread.level + 1).min((1 << DEPTH) - 1);
        begins(&mut thread, number::OMP_FORK, Call { tag: requested.cast_signed(), object: key, ..plain(code) });
        // SAFETY: the runtime keeps a word for the tool in each region.
        unsafe { *parallel = Box::into_raw(Box::new(Parallel { key, code })) as usize };
    });
}

unsafe extern "C" fn parallel_end(parallel: *mut usize, _: *mut u64, _: c_int, code: usize) {
    fault::caught(|| {
        // SAFETY: from `parallel_begin`, and no thread looks at it any more.
        let region = unsafe { std::mem::replace(&mut *parallel, 0) };
        if region == 0 {
            return;
        }
        // SAFETY: as above.
        let region = unsafe { Box::from_raw(region as *mut Parallel) };
        if let Some(mut thread) = recorded(number::OMP_FORK) {
            ends(&mut thread, number::OMP_FORK, Call { object: region.key, ..plain(code) });
        }
    });
}

unsafe extern "C" fn implicit_task(
    endpoint: c_int,
    parallel: *mut usize,
    task: *mut u64,
    _: c_uint,
    _: c_uint,
    flags: c_int,
) {
    const INITIAL: c_int = 1;
    // The task remembers that its beginning was recorded, and how deep the thread was before.
    const BEGUN: u64 = 1 << 63;
    fault::caught(|| {
        if flags & INITIAL != 0 {
            return;
        }
        // SAFETY: the runtime's own words, or null; a region's is from `parallel_begin`.
        let (region, task) =
            unsafe { (parallel.as_ref().and_then(|word| (*word as *const Parallel).as_ref()), task.as_mut()) };
        let (Some(mut thread), Some(task)) = (recorded(number::OMP_PARALLEL), task) else { return };
        if let (BEGIN, Some(region)) = (endpoint, region) {
            *task = BEGUN | u64::from(thread.level);
            thread.level = region.key & ((1 << DEPTH) - 1);
            begins(&mut thread, number::OMP_PARALLEL, Call { object: region.key, ..plain(region.code) });
        } else if endpoint != BEGIN && *task & BEGUN != 0 {
            thread.level = *task as u32;
            *task = 0;
            ends(&mut thread, number::OMP_PARALLEL, plain(0));
        }
    });
}

unsafe extern "C" fn sync_region(kind: c_int, endpoint: c_int, _: *mut u64, _: *mut u64, code: usize) {
    let function = match kind {
        1 | 3 | 4 => number::OMP_BARRIER,
        2 | 8..=10 => number::OMP_IMPLICIT_BARRIER,
        5 => number::OMP_TASKWAIT,
        6 => number::OMP_TASKGROUP,
        _ => return,
    };
    construct(function, endpoint, code);
}

unsafe extern "C" fn work(kind: c_int, endpoint: c_int, _: *mut u64, _: *mut u64, _: u64, code: usize) {
    match kind {
        1 => construct(number::OMP_FOR, endpoint, code),
        2 => construct(number::OMP_SECTIONS, endpoint, code),
        3 if endpoint == BEGIN => {
            construct(number::OMP_SINGLE, endpoint, code);
            construct(number::OMP_SINGLE_SBLOCK, endpoint, code);
        }
        3 => {
            construct(number::OMP_SINGLE_SBLOCK, endpoint, code);
            construct(number::OMP_SINGLE, endpoint, code);
        }
        4 => construct(number::OMP_SINGLE, endpoint, code),
        _ => {}
    }
}

unsafe extern "C" fn masked(endpoint: c_int, _: *mut u64, _: *mut u64, code: usize) {
    construct(number::OMP_MASTER, endpoint, code);
}

// Kinds of locks.
const CRITICAL: c_int = 5;
const TEST: [c_int; 2] = [2, 4];

fn is_lock(kind: c_int) -> bool {
    (1..=CRITICAL).contains(&kind)
}

/// The thread asks for a lock.
unsafe extern "C" fn mutex_acquire(kind: c_int, _: c_uint, _: c_uint, _: usize, code: usize) {
    // One that is only tested does not make anybody wait.
    if is_lock(kind) && !TEST.contains(&kind) {
        construct(if kind == CRITICAL { number::OMP_CRITICAL } else { number::OMP_SET_LOCK }, BEGIN, code);
    }
}

/// It has it.
unsafe extern "C" fn mutex_acquired(kind: c_int, lock: usize, code: usize) {
    fault::caught(|| {
        if !is_lock(kind) {
            return;
        }
        let function = if kind == CRITICAL { number::OMP_CRITICAL_SBLOCK } else { number::OMP_SET_LOCK };
        let Some(mut thread) = recorded(function) else { return };
        let (id, order) = locks::acquired(&mut thread.held, lock);
        let call = Call { object: id, bytes: order, ..plain(code) };
        if kind == CRITICAL {
            begins(&mut thread, function, call);
        } else {
            // Of one that was tested, only the lock itself is recorded.
            ends(&mut thread, function, Call { tag: i32::from(TEST.contains(&kind)), ..call });
        }
    });
}

unsafe extern "C" fn mutex_released(kind: c_int, lock: usize, code: usize) {
    fault::caught(|| {
        if !is_lock(kind) {
            return;
        }
        let function = if kind == CRITICAL { number::OMP_CRITICAL_SBLOCK } else { number::OMP_UNSET_LOCK };
        let Some(mut thread) = recorded(function) else { return };
        let (id, order) = locks::releases(&mut thread.held, lock).unwrap_or((NONE, 0));
        let call = Call { object: id, bytes: order, ..plain(code) };
        if kind == CRITICAL {
            ends(&mut thread, function, call);
        } else {
            begins(&mut thread, function, call);
        }
    });
}

/// A lock that the thread already has is acquired or released once more.
unsafe extern "C" fn nest_lock(endpoint: c_int, lock: usize, _: usize) {
    fault::caught(|| {
        if let Some(mut thread) = recorded(number::OMP_SET_LOCK) {
            if endpoint == BEGIN {
                let (id, order) = locks::acquired(&mut thread.held, lock);
                ends(&mut thread, number::OMP_SET_LOCK, Call { object: id, bytes: order, ..plain(0) });
            } else if let Some((id, order)) = locks::releases(&mut thread.held, lock) {
                begins(&mut thread, number::OMP_UNSET_LOCK, Call { object: id, bytes: order, ..plain(0) });
            }
        }
    });
}

/// In the number of a task: bits of its number among those of the thread that made it.
const GENERATION: u32 = 40;

unsafe extern "C" fn task_create(_: *mut u64, _: *const c_void, task: *mut u64, flags: c_int, _: c_int, code: usize) {
    const EXPLICIT: c_int = 4;
    const APART: c_int = 0x0800_0000 | 0x1000_0000;
    fault::caught(|| {
        if flags & EXPLICIT == 0 || flags & APART != 0 {
            return;
        }
        let Some(mut thread) = recorded(number::OMP_CREATE_TASK) else { return };
        thread.tasks += 1;
        let id = u64::from(thread.number + 1) << GENERATION | thread.tasks;
        // SAFETY: the runtime keeps a word for the tool in each task.
        unsafe { *task = id };
        begins(&mut thread, number::OMP_CREATE_TASK, Call { id, ..plain(code) });
    });
}

/// The number of a task that [`task_create`] saw; the words of others have other meanings.
fn task_of(word: *const u64) -> Option<u64> {
    // SAFETY: the runtime's own word, or null.
    let id = unsafe { word.as_ref() }?;
    (*id >> 63 == 0 && *id >> GENERATION != 0).then_some(*id)
}

unsafe extern "C" fn task_schedule(prior: *const u64, status: c_int, next: *const u64) {
    const COMPLETE: c_int = 1;
    const CANCELLED: c_int = 3;
    fault::caught(|| {
        let (prior, next) = (task_of(prior), task_of(next));
        let Some(mut thread) = recorded(number::OMP_TASK) else { return };
        let ended = status == COMPLETE || status == CANCELLED;
        if let Some(id) = prior.filter(|_| ended) {
            ends(&mut thread, number::OMP_TASK, Call { id, ..plain(0) });
        }
        // After the end of a task, the one around it goes on.
        if let Some(id) = next.filter(|_| !ended || prior.is_none()) {
            begins(&mut thread, number::OMP_TASK, Call { id, ..plain(0) });
        }
    });
}
