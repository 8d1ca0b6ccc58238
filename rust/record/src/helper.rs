//! Threads of the recorder. The helper makes chunks ready before they are needed; it starts when the first chunk is half full, or at the beginning
//! where threads are recorded.
//!
//! A process whose main thread calls `pthread_exit` ends with its last thread, which must be one of the program.

use std::ffi::c_void;
use std::panic::AssertUnwindSafe;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// What is asked for: a function, and what it is to be called with.
type Work = (fn(usize), usize);
/// Whether the sampler runs, and how it is looked after.
type Sampler = (fn() -> bool, fn());

static ENABLED: AtomicBool = AtomicBool::new(true);
static RUNS: AtomicBool = AtomicBool::new(false);
static ASKING: Mutex<Vec<Work>> = Mutex::new(Vec::new());
static WAKE: Condvar = Condvar::new();
static SAMPLER: OnceLock<Sampler> = OnceLock::new();
/// Those that were started.
static STARTED: Mutex<Vec<Started>> = Mutex::new(Vec::new());
/// The main thread is known, and tells when it ends.
static MAIN_TELLS: AtomicBool = AtomicBool::new(false);
static MAIN_ENDS: AtomicBool = AtomicBool::new(false);
/// They are to end.
static STOPS: AtomicBool = AtomicBool::new(false);
/// How often the sampler is looked after, and whether other threads live where that matters.
const INTERVAL: Duration = Duration::from_millis(100);
/// Bytes of their stacks.
const STACK: usize = 256 << 10;

/// A thread that is sampled has begun.
static HURRIES: AtomicBool = AtomicBool::new(false);
/// How long others are waited for that begin with it.
const PATIENCE: Duration = Duration::from_millis(5);

/// A thread of the recorder.
struct Started {
    thread: libc::pthread_t,
    has_ended: Arc<AtomicBool>,
}

/// What a thread is to do, and where it says that it has ended.
struct Task {
    work: Box<dyn FnOnce() + Send>,
    has_ended: Arc<AtomicBool>,
}

/// Looks after the sampler from now on, while it runs.
pub(crate) fn look_after(runs: fn() -> bool, look: fn()) {
    let _ = SAMPLER.set((runs, look));
}

/// Has the sampler looked after soon.
pub(crate) fn hurry() {
    if !HURRIES.swap(true, Relaxed) {
        WAKE.notify_all();
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

/// A thread of the program is known from now on.
pub(crate) fn thread_begins(is_main: bool) {
    if is_main {
        MAIN_TELLS.store(true, Relaxed);
    }
}

/// A thread of the program is about to end. With the last one, those of the recorder end first.
pub(crate) fn thread_ends(is_main: bool) {
    if is_main {
        MAIN_ENDS.store(true, Relaxed);
    }
    if is_watching() && STARTED.lock().is_ok_and(|started| !started.is_empty()) {
        let is_last = threads_of_program() == Some(1);
        STOPS.store(is_last, Relaxed);
        // Between its look at these and its sleep, a thread has the lock.
        drop(ASKING.lock());
        WAKE.notify_all();
        if is_last {
            disable();
            let started = std::mem::take(&mut *STARTED.lock().unwrap_or_else(PoisonError::into_inner));
            for thread in started {
                // SAFETY: it was started, and is joined nowhere else.
                unsafe { libc::pthread_join(thread.thread, ptr::null_mut()) };
            }
        }
    }
}

/// Whether the process may end with its last thread.
fn is_watching() -> bool {
    MAIN_ENDS.load(Relaxed) || !MAIN_TELLS.load(Relaxed)
}

/// Whether a thread of the recorder is to end. The last two of the program may have ended at once, and neither known that it was the last.
fn is_to_end() -> bool {
    STOPS.load(Relaxed) || is_watching() && threads_of_program() == Some(0)
}

/// How many threads of the program have not ended. The main thread leaves a trace until the process ends.
fn threads_of_program() -> Option<usize> {
    // A file, as the C library allocates for directories.
    let status = std::fs::read_to_string("/proc/self/stat").ok()?;
    // After the name: the state of the main thread, and as the 18th the number of threads.
    let mut fields = status.rsplit(')').next()?.split_whitespace();
    let has_ended = fields.next()? == "Z";
    let tasks: usize = fields.nth(16)?.parse().ok()?;
    let own = STARTED.lock().ok()?.iter().filter(|thread| !thread.has_ended.load(Relaxed)).count();
    tasks.checked_sub(own + usize::from(has_ended))
}

/// Sleeps, in a thread of the recorder. Returns whether it goes on.
pub(crate) fn sleep(time: Duration) -> bool {
    let begin = Instant::now();
    let mut asking = ASKING.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        if is_to_end() {
            return false;
        }
        let rest = time.saturating_sub(begin.elapsed());
        if rest.is_zero() {
            return true;
        }
        let next = if is_watching() { rest.min(INTERVAL) } else { rest };
        asking = WAKE.wait_timeout(asking, next).unwrap_or_else(PoisonError::into_inner).0;
    }
}

/// Has a function called soon, unless threads do all themselves.
pub(crate) fn ask(work: fn(usize), with: usize) {
    begin();
    if ENABLED.load(Relaxed) {
        ASKING.lock().unwrap_or_else(PoisonError::into_inner).push((work, with));
        WAKE.notify_all();
    }
}

/// Starts a thread of the recorder; signals are for the program's threads.
///
/// Threads of the standard library have values with destructors, for which the C library allocates: an arena for the thread.
pub(crate) fn start(work: impl FnOnce() + Send + 'static) -> bool {
    let has_ended = Arc::new(AtomicBool::new(false));
    let task = Box::into_raw(Box::new(Task { work: Box::new(work), has_ended: Arc::clone(&has_ended) }));
    // SAFETY: sets of signals and attributes on the stack, initialized before they are used; the task is the thread's if there is one.
    unsafe {
        let (mut all, mut before, mut attributes, mut thread) =
            (std::mem::zeroed(), std::mem::zeroed(), std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        libc::pthread_attr_init(&raw mut attributes);
        libc::pthread_attr_setstacksize(&raw mut attributes, STACK);
        let mut code = libc::pthread_create(&raw mut thread, &raw const attributes, perform, task.cast());
        if code == libc::EINVAL {
            // The program has more memory for each thread than that.
            code = libc::pthread_create(&raw mut thread, ptr::null(), perform, task.cast());
        }
        libc::pthread_attr_destroy(&raw mut attributes);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut());
        if code != 0 {
            drop(Box::from_raw(task));
            return false;
        }
        STARTED.lock().unwrap_or_else(PoisonError::into_inner).push(Started { thread, has_ended });
        true
    }
}

/// Does a thread's task.
extern "C" fn perform(task: *mut c_void) -> *mut c_void {
    // SAFETY: `start` made it for this thread.
    let Task { work, has_ended } = *unsafe { Box::from_raw(task.cast::<Task>()) };
    // SAFETY: a name that ends with a zero.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"whywait".as_ptr()) };
    // A panic was told.
    let _ = std::panic::catch_unwind(AssertUnwindSafe(work));
    has_ended.store(true, Relaxed);
    ptr::null_mut()
}

fn run() {
    loop {
        let mut asking = ASKING.lock().unwrap_or_else(PoisonError::into_inner);
        while asking.is_empty() {
            if is_to_end() {
                return;
            }
            if is_watching() || SAMPLER.get().is_some_and(|(runs, _)| runs()) {
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
