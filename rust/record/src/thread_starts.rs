//! Threads that the program makes: which is which, when they begin and end, and who waits for their end.

use crate::context::Context;
use crate::fault;
use crate::frame::{Frame, Returned};
use crate::modes::{MODES, RECORD};
use crate::real;
use crate::sampler;
use crate::table::{FUNCTIONS, Role, number};
use crate::thread;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

static SEQUENCE: AtomicU64 = AtomicU64::new(0);
/// Numbers of threads by their ids. Those of threads that are never joined stay, until an id comes again.
static THREADS: Mutex<BTreeMap<usize, u64>> = Mutex::new(BTreeMap::new());

type Routine = unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void;

/// What a new thread does.
struct Start {
    routine: Routine,
    argument: *mut c_void,
    /// Its number; 0 if it is not recorded.
    sequence: u64,
}

/// Before pthread_create: the new thread begins in [`run`]. Returns its number.
pub(crate) fn prepare(context: &mut Context) -> u64 {
    let roles = &context.function.roles;
    let (routine, argument) = (roles[Role::Routine as usize], roles[Role::Argument as usize]);
    let address = context.frame.word(routine);
    if address == 0 {
        return 0;
    }
    let sequence = SEQUENCE.fetch_add(1, Relaxed) + 1;
    let start = Box::new(Start {
        // SAFETY: the program passed it as a thread's function.
        routine: unsafe { std::mem::transmute::<usize, Routine>(address) },
        argument: context.frame.word(argument) as *mut c_void,
        sequence,
    });
    context.handle = Box::into_raw(start) as usize;
    context.frame.set(routine, run as *const () as usize);
    context.frame.set(argument, context.handle);
    sequence
}

/// pthread_create failed: nobody will take what [`prepare`] made.
pub(crate) fn give_up(context: &Context) {
    if context.handle != 0 {
        // SAFETY: from `prepare`, and no thread has it.
        drop(unsafe { Box::from_raw(context.handle as *mut Start) });
    }
}

/// The function of each new thread. Nothing is left to do after the program's own: it may not return but exit.
unsafe extern "C-unwind" fn run(start: *mut c_void) -> *mut c_void {
    // SAFETY: from `prepare`, for this thread alone.
    let Start { routine, argument, sequence } = *unsafe { Box::from_raw(start.cast::<Start>()) };
    fault::caught(|| {
        if sequence == 0 {
            thread::apart(sampler::thread_begins);
            return;
        }
        thread::apart(|| made(sequence));
        begins(sequence);
        thread::apart(sampler::thread_begins);
    });
    // SAFETY: what the program asked for.
    unsafe { routine(argument) }
}

/// pthread_create where it is not recorded: the new thread is sampled.
pub(crate) fn create(symbol: usize, frame: Frame) -> Returned {
    let roles = FUNCTIONS.get(symbol >> 2).map(|function| {
        let roles = &function.roles;
        (roles[Role::Routine as usize], roles[Role::Argument as usize])
    });
    let (Some((routine, argument)), true) = (roles, sampler::is_on() && !sampler::is_own(frame.caller().0)) else {
        return real::call(symbol, frame);
    };
    let address = frame.word(routine);
    if address == 0 {
        return real::call(symbol, frame);
    }
    let start = Box::into_raw(Box::new(Start {
        // SAFETY: the caller passed it as a thread's function.
        routine: unsafe { std::mem::transmute::<usize, Routine>(address) },
        argument: frame.word(argument) as *mut c_void,
        sequence: 0,
    }));
    frame.set(routine, run as *const () as usize);
    frame.set(argument, start as usize);
    let returned = real::call(symbol, frame);
    if returned.word as u32 != 0 {
        // SAFETY: just made, and no thread has it.
        drop(unsafe { Box::from_raw(start) });
    }
    returned
}

/// This thread is the one that was made with a number.
fn made(sequence: u64) {
    // SAFETY: it has no arguments.
    let id = unsafe { libc::pthread_self() } as usize;
    THREADS.lock().unwrap_or_else(PoisonError::into_inner).insert(id, sequence);
}

fn begins(sequence: u64) {
    if MODES.get(number::THREAD_BEGIN).is_some_and(|mode| mode.load(Relaxed) == RECORD)
        && let Some(mut thread) = thread::enter_apart()
    {
        thread.sequence = sequence;
        thread.tell_of(number::THREAD_BEGIN);
    }
}

/// The number of a thread that was joined; 0 if it was not seen to be made.
pub(crate) fn joined(id: usize) -> u64 {
    THREADS.lock().unwrap_or_else(PoisonError::into_inner).remove(&id).unwrap_or(0)
}
