//! A thread of the recorder that makes chunks ready before they are needed. It starts when the first chunk is half full, or at the beginning where
//! threads are recorded.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// What is asked for: a function, and what it is to be called with.
type Work = (fn(usize), usize);
/// Whether the sampler runs, and how it is looked after.
type Sampler = (fn() -> bool, fn());

static ENABLED: AtomicBool = AtomicBool::new(true);
static RUNS: AtomicBool = AtomicBool::new(false);
static ASKING: Mutex<Vec<Work>> = Mutex::new(Vec::new());
static WAKE: Condvar = Condvar::new();
static SAMPLER: OnceLock<Sampler> = OnceLock::new();
/// How often the sampler is looked after.
const INTERVAL: Duration = Duration::from_millis(100);

/// A thread that is sampled has begun.
static HURRIES: AtomicBool = AtomicBool::new(false);
/// How long others are waited for that begin with it.
const PATIENCE: Duration = Duration::from_millis(5);

/// Looks after the sampler from now on, while it runs.
pub(crate) fn look_after(runs: fn() -> bool, look: fn()) {
    let _ = SAMPLER.set((runs, look));
}

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

/// Has a function called soon, unless threads do all themselves.
pub(crate) fn ask(work: fn(usize), with: usize) {
    begin();
    if ENABLED.load(Relaxed) {
        ASKING.lock().unwrap_or_else(PoisonError::into_inner).push((work, with));
        WAKE.notify_one();
    }
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
            if SAMPLER.get().is_some_and(|(runs, _)| runs()) {
                asking = WAKE.wait_timeout(asking, INTERVAL).unwrap_or_else(PoisonError::into_inner).0;
                break;
            }
            asking = WAKE.wait(asking).unwrap_or_else(PoisonError::into_inner);
        }
        let asked = std::mem::take(&mut *asking);
        drop(asking);
        for (work, with) in asked {
            work(with);
        }
        if HURRIES.swap(false, Relaxed) {
            std::thread::sleep(PATIENCE);
        }
        if let Some((_, look)) = SAMPLER.get() {
            look();
        }
    }
}
