//! Clocks of the CPU time of one thread that interrupt it once, until they are set again; and, as such a clock, its page faults.
//!
//! A clock of real time would end calls such as `nanosleep` and `poll` early, which are never restarted. These two do not: a thread that sleeps uses
//! no CPU time, perf's clock of user code raises no signal in the kernel, and the kernel's timer raises its own on the way back to user code.

use super::kernel;
use crate::format::Mechanism;
use std::ffi::c_int;
use std::io::{Error, Result};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A clock of a thread.
pub(super) enum Alarm {
    /// An event of perf: its descriptor, and what the kernel calls it.
    Perf { file: c_int, id: u64 },
    /// A timer: its number, and half of a tick in ns, by which it expires late on average.
    Timer { timer: c_int, late: u64 },
}

/// Descriptors of events are at least this: those of the program have the numbers that they have without them.
const LOWEST: c_int = 512;
/// Of the other descriptors of a process, events may take one in so many.
const SHARE: u64 = 4;
/// How many descriptors have been taken.
static TAKEN: AtomicU32 = AtomicU32::new(0);

// Requests of `ioctl` for events of perf.
const DISABLE: usize = 0x2401;
const REFRESH: usize = 0x2402;
const PERIOD: usize = 0x4008_2404;
const ID: usize = 0x8008_2407;

impl Alarm {
    /// An alarm of this thread for its page faults in user code, which is stopped; its period is a number of these.
    pub(super) fn faults(signal: c_int) -> Result<Self> {
        const PAGE_FAULTS: u64 = 2;
        Self::perf(signal, PAGE_FAULTS)
    }

    /// A clock of this thread that raises a signal, of perf if that is allowed. `value` comes with the signal of a timer. Both are stopped.
    pub(super) fn new(signal: c_int, value: usize, tick: u64, timers: bool) -> Result<Self> {
        const TASK_CLOCK: u64 = 1;
        match Self::perf(signal, TASK_CLOCK) {
            Err(_) if timers => Self::timer(signal, value, tick),
            made => made,
        }
    }

    fn perf(signal: c_int, event: u64) -> Result<Self> {
        // struct perf_event_attr, of the first version that all kernels know.
        const SIZE: u64 = 64;
        const SOFTWARE: u64 = 1;
        const DISABLED: u64 = 1;
        const EXCLUDE_KERNEL: u64 = 1 << 5;
        const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
        const CLOSE_ON_EXEC: usize = 1 << 3;
        let wakeups = 1;
        // The period is set whenever the event is.
        let period = 1_000_000_000;
        let flags = DISABLED | EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR;
        let attributes = [SOFTWARE | SIZE << 32, event, period, 0, 0, flags, wakeups, 0];
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: it writes to the structure only.
        unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
        if u64::from(TAKEN.load(Relaxed)) >= limit.rlim_cur.saturating_sub(LOWEST as u64) / SHARE {
            return Err(Error::from_raw_os_error(libc::EMFILE));
        }
        // SAFETY: the structure is as long as it says.
        let first = unsafe { libc::syscall(libc::SYS_perf_event_open, attributes.as_ptr(), 0, -1, -1, CLOSE_ON_EXEC) };
        let first = c_int::try_from(first).ok().filter(|file| *file >= 0).ok_or_else(Error::last_os_error)?;
        // SAFETY: a descriptor of this function.
        let (file, error) = unsafe {
            let file = libc::fcntl(first, libc::F_DUPFD_CLOEXEC, LOWEST);
            let error = Error::last_os_error();
            libc::close(first);
            (file, error)
        };
        if file < 0 {
            return Err(error);
        }
        TAKEN.fetch_add(1, Relaxed);
        let mut id = 0_u64;
        let made = Self::Perf { file, id: 0 };
        // SAFETY: it has no arguments.
        let owner = [F_OWNER_TID, unsafe { libc::gettid() }];
        // SAFETY: a descriptor of this function, and what each request expects.
        let fine = unsafe {
            libc::fcntl(file, F_SETOWN_EX, owner.as_ptr()) == 0
                && libc::fcntl(file, F_SETSIG, signal) == 0
                && libc::fcntl(file, libc::F_SETFL, libc::O_ASYNC) == 0
        } && kernel::control(file, ID, (&raw mut id) as usize) == 0;
        if !fine {
            return Err(Error::last_os_error());
        }
        std::mem::forget(made);
        Ok(Self::Perf { file, id })
    }

    /// A timer.
    pub(super) fn timer(signal: c_int, value: usize, tick: u64) -> Result<Self> {
        // struct sigevent: the value, the signal and how it is sent, and the thread.
        let mut event = [0_u64; 8];
        event[0] = value as u64;
        event[1] = signal as u64 | (libc::SIGEV_THREAD_ID as u64) << 32;
        // SAFETY: it has no arguments.
        event[2] = unsafe { libc::gettid() } as u64;
        let mut timer: c_int = 0;
        // SAFETY: both pointers are valid.
        let made = unsafe {
            libc::syscall(libc::SYS_timer_create, libc::CLOCK_THREAD_CPUTIME_ID, event.as_ptr(), &raw mut timer)
        };
        if made == 0 { Ok(Self::Timer { timer, late: tick / 2 }) } else { Err(Error::last_os_error()) }
    }

    pub(super) fn mechanism(&self) -> Mechanism {
        match self {
            Self::Perf { .. } => Mechanism::Perf,
            Self::Timer { .. } => Mechanism::Timer,
        }
    }

    /// The descriptor of an event.
    pub(super) fn file(&self) -> Option<c_int> {
        match self {
            Self::Perf { file, .. } => Some(*file),
            Self::Timer { .. } => None,
        }
    }

    /// Interrupts the thread once, after so many ns of CPU time.
    pub(super) fn set(&self, ns: u64) {
        match self {
            Self::Perf { file, .. } => {
                kernel::control(*file, PERIOD, (&raw const ns) as usize);
                kernel::control(*file, REFRESH, 1);
            }
            Self::Timer { timer, late } => kernel::set_timer(*timer, ns.saturating_sub(*late).max(1)),
        }
    }

    /// Stops the clock; any thread may do so.
    pub(super) fn stop(&self) {
        match self {
            Self::Perf { file, .. } if self.is_own() => {
                kernel::control(*file, DISABLE, 0);
            }
            Self::Perf { .. } => {}
            Self::Timer { timer, .. } => kernel::set_timer(*timer, 0),
        }
    }

    /// Whether the descriptor is still that of the event: the program may have closed it, and opened another.
    fn is_own(&self) -> bool {
        let Self::Perf { file, id } = self else { return true };
        let mut found = 0_u64;
        kernel::control(*file, ID, (&raw mut found) as usize) == 0 && (found == *id || *id == 0)
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        match *self {
            Self::Perf { file, .. } => {
                TAKEN.fetch_sub(1, Relaxed);
                if self.is_own() {
                    // SAFETY: it is the event's.
                    unsafe { libc::close(file) };
                }
            }
            // SAFETY: a timer of this process.
            Self::Timer { timer, .. } => unsafe {
                libc::syscall(libc::SYS_timer_delete, timer);
            },
        }
    }
}

// Of fcntl.h.
const F_SETSIG: c_int = 10;
const F_SETOWN_EX: c_int = 15;
const F_OWNER_TID: c_int = 0;
