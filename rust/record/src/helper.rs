//! A thread of the recorder that makes chunks ready before they are needed. It starts when the first chunk is half full, or at the beginning where
//! threads are recorded.

use crate::sampler;
use crate::thread::Thread;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

static ENABLED: AtomicBool = AtomicBool::new(true);
static RUNS: AtomicBool = AtomicBool::new(false);
static ASKING: Mutex<Vec<usize>> = Mutex::new(Vec::new());
static WAKE: Condvar = Condvar::new();
/// How often the sampler is looked after.
const INTERVAL: Duration = Duration::from_millis(100);

/// A thread that is sampled has begun.
static HURRIES: AtomicBool = AtomicBool::new(false);
/// How long others are waited for that begin with it.
const PATIENCE: Duration = Duration::from_millis(5);

/// Has the sampler looked after soon.
pub(crate) fn hurry() {
    if !HURRIES.swap(true, Relaxed) {
        WAKE.notify_one();
    }
}

/// Threads get their chunks themselves.
pub(crate) fn disable() {
    ENABLED.store(false, Relaxed);
}

/// Starts the thread, unless it runs.
pub(crate) fn begin() {
    if ENABLED.load(Relaxed) && !RUNS.swap(true, Relaxed) && !start(run) {
        disable();
    }
}

/// Asks for the next chunk of a thread. The state of a thread is never freed.
pub(crate) fn ask(thread: &Thread) {
    begin();
    if !ENABLED.load(Relaxed) {
        return;
    }
    thread.asks();
    ASKING.lock().unwrap_or_else(PoisonError::into_inner).push(std::ptr::from_ref(thread).expose_provenance());
    WAKE.notify_one();
}

/// Starts a thread of the recorder; signals are for the program's threads.
pub(crate) fn start(work: impl FnOnce() + Send + 'static) -> bool {
    // SAFETY: sets of signals on the stack, initialized before they are used.
    unsafe {
        let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let started = std::thread::Builder::new().name("whywait".into()).stack_size(256 << 10).spawn(work).is_ok();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        started
    }
}

fn run() {
    loop {
        let mut asking = ASKING.lock().unwrap_or_else(PoisonError::into_inner);
        while asking.is_empty() {
            if sampler::is_on() {
                asking = WAKE.wait_timeout(asking, INTERVAL).unwrap_or_else(PoisonError::into_inner).0;
                break;
            }
            asking = WAKE.wait(asking).unwrap_or_else(PoisonError::into_inner);
        }
        let threads = std::mem::take(&mut *asking);
        drop(asking);
        for thread in threads {
            // SAFETY: states of threads are never freed, and `prepare` touches only what is shared.
            unsafe { (*std::ptr::with_exposed_provenance::<Thread>(thread)).prepare() };
        }
        if HURRIES.swap(false, Relaxed) {
            std::thread::sleep(PATIENCE);
        }
        sampler::look();
    }
}
