//! Counters that are read at both ends of each recorded call: those of the kernel for the thread, its core, events that the kernel
//! counts (perf), and performance variables of MPI.
//!
//! Which ones there are is found out once, in [`begin`], and is the same for all threads of the process. Those of MPI belong to the
//! process and are read by the thread that called MPI_Init only.

use crate::format::{COUNTERS, CounterSource, Entry, NONE};
use crate::meaning::{ACCUMULATED, LEVEL, Meaning, POINT};
use crate::mpi_counters::{self, Variable};
use crate::spool::Payload;
use crate::state;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// What is read.
#[derive(Default)]
struct Plan {
    rusage: bool,
    core: bool,
    /// Type and number of each event of perf.
    perf: Vec<(u32, u64)>,
    mpi: Vec<Variable>,
}

static PLAN: OnceLock<Plan> = OnceLock::new();
/// Whether MPI ends, and has nothing more to count.
static ENDED: AtomicBool = AtomicBool::new(false);

/// Fields of `struct rusage` that Linux counts for threads.
const RUSAGE: [(&str, u32, i32, &str, &str); 7] = [
    ("ru_utime", ACCUMULATED, -6, "s", "time in the program"),
    ("ru_stime", ACCUMULATED, -6, "s", "time in the kernel"),
    ("ru_maxrss", LEVEL, 3, "bytes", "most memory that the process had"),
    ("ru_minflt", ACCUMULATED, 0, "#", "page faults without I/O"),
    ("ru_majflt", ACCUMULATED, 0, "#", "page faults with I/O"),
    ("ru_nvcsw", ACCUMULATED, 0, "#", "context switches because the thread slept"),
    ("ru_nivcsw", ACCUMULATED, 0, "#", "context switches because another thread got the core"),
];

const HARDWARE: u32 = 0;
const SOFTWARE: u32 = 1;
/// Events of perf by the names that its tools give them.
const PERF: [(&str, u32, u64, i32, &str); 12] = [
    ("cycles", HARDWARE, 0, 0, "#"),
    ("instructions", HARDWARE, 1, 0, "#"),
    ("cache-references", HARDWARE, 2, 0, "#"),
    ("cache-misses", HARDWARE, 3, 0, "#"),
    ("branches", HARDWARE, 4, 0, "#"),
    ("branch-misses", HARDWARE, 5, 0, "#"),
    ("cpu-clock", SOFTWARE, 0, -9, "s"),
    ("task-clock", SOFTWARE, 1, -9, "s"),
    ("page-faults", SOFTWARE, 2, 0, "#"),
    ("context-switches", SOFTWARE, 3, 0, "#"),
    ("cpu-migrations", SOFTWARE, 4, 0, "#"),
    ("major-faults", SOFTWARE, 6, 0, "#"),
];

/// Finds out what can be counted of a list such as `rusage,core,instructions,mpi:*unexpected*`, and says so in the spool. The
/// process has an MPI_COMM_WORLD if it called MPI_Init.
pub(crate) fn begin(names: &[String], has_world: bool) {
    let mut plan = Plan::default();
    let mut found = Vec::new();
    let has = |name: &str| names.iter().any(|known| known == name);
    if has("rusage") {
        plan.rusage = true;
        found.extend(RUSAGE.map(|(name, mode, exponent, unit, description)| {
            let (name, description) = (name.into(), description.into());
            (CounterSource::Rusage, Meaning { name, mode, exponent, unit, description })
        }));
    }
    if has("core") {
        plan.core = true;
        let (name, description) = ("core".into(), "number of the core that ran the thread".into());
        found.push((CounterSource::Core, Meaning { name, mode: POINT, exponent: 0, unit: "", description }));
    }
    for (name, kind, number, exponent, unit) in PERF.into_iter().filter(|event| has(event.0)) {
        match open(kind, number, -1) {
            Ok(fd) => {
                // SAFETY: just opened, and only to see whether that can be done.
                unsafe { libc::close(fd) };
                plan.perf.push((kind, number));
                let (name, description) = (name.into(), "event of perf".into());
                found.push((CounterSource::Perf, Meaning { name, mode: ACCUMULATED, exponent, unit, description }));
            }
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => missing(name, "this machine does not count it"),
            Err(error) => missing(name, &error.to_string()),
        }
    }
    for pattern in names.iter().filter_map(|name| name.strip_prefix("mpi")) {
        let pattern = pattern.strip_prefix(':').unwrap_or("*");
        let before = plan.mpi.len();
        for (variable, meaning) in mpi_counters::find(pattern, has_world) {
            if found.iter().all(|(_, known)| known.name != meaning.name) {
                plan.mpi.push(variable);
                found.push((CounterSource::Mpi, meaning));
            }
        }
        if plan.mpi.len() == before {
            missing(&format!("mpi:{pattern}"), "this MPI has no such performance variable");
        }
    }
    for (number, (source, meaning)) in found.iter().enumerate() {
        define(number as u32, *source as u32, meaning);
    }
    if !found.is_empty() {
        let _ = PLAN.set(plan);
    }
}

/// Before MPI_Finalize: from now on, nothing of MPI is read.
pub(crate) fn finalizing() {
    ENDED.store(true, Ordering::Release);
}

/// In the place of a value that was not written yet: nothing is this long.
const UNWRITTEN: u64 = u64::MAX;

fn define(number: u32, source: u32, meaning: &Meaning) {
    let payload = Payload::default().u32(number).u32(source).u32(meaning.mode).i32(meaning.exponent);
    let payload = payload.text(&meaning.name).text(meaning.unit).text(&meaning.description);
    state::define(Entry::Counter, &payload);
}

/// Says that a counter cannot be had.
fn missing(name: &str, why: &str) {
    let (name, description) = (name.to_owned(), why.to_owned());
    define(NONE, 0, &Meaning { name, mode: 0, exponent: 0, unit: "", description });
}

/// Opens an event of perf for this thread: with what the kernel does for it if that is allowed, else without.
fn open(kind: u32, number: u64, group: i32) -> std::io::Result<i32> {
    // struct perf_event_attr, of the first version that all kernels know.
    const SIZE: u32 = 64;
    const GROUP: u64 = 1 << 3;
    const EXCLUDE_KERNEL: u64 = 1 << 5;
    const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
    let mut attributes = [0_u64; 8];
    attributes[0] = u64::from(kind) | u64::from(SIZE) << 32;
    attributes[1] = number;
    attributes[4] = GROUP;
    for flags in [0, EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR] {
        attributes[5] = flags;
        // SAFETY: the structure is as long as it says.
        let fd = unsafe { libc::syscall(libc::SYS_perf_event_open, attributes.as_ptr(), 0, -1, group, CLOSE_ON_EXEC) };
        if fd >= 0 {
            return Ok(fd as i32);
        }
        let error = std::io::Error::last_os_error();
        // Of events of software, what the kernel does is all there is.
        if kind == SOFTWARE || error.raw_os_error() != Some(libc::EACCES) {
            return Err(error);
        }
    }
    Err(std::io::ErrorKind::PermissionDenied.into())
}

const CLOSE_ON_EXEC: u64 = 1 << 3;

/// Counters of a thread.
pub(crate) struct Counters {
    plan: &'static Plan,
    /// The events of perf: the first leads the group that is read at once.
    perf: Vec<i32>,
    with_mpi: bool,
    values: Vec<u64>,
    /// As they were written last.
    written: Vec<u64>,
    /// Where the kernel and MPI write.
    buffer: Vec<u64>,
}

impl Counters {
    /// Those of this thread, if counters are wanted; the first thread has those of the process.
    pub(crate) fn new(first: bool) -> Option<Self> {
        let plan = PLAN.get()?;
        let mut perf = Vec::new();
        for (kind, number) in &plan.perf {
            match open(*kind, *number, perf.first().copied().unwrap_or(-1)) {
                Ok(fd) => perf.push(fd),
                Err(_) => break,
            }
        }
        if perf.len() < plan.perf.len() {
            close(&mut perf);
        }
        let count = if plan.rusage { RUSAGE.len() } else { 0 } + usize::from(plan.core) + plan.perf.len();
        let with_mpi = first && !plan.mpi.is_empty();
        let count = count + if with_mpi { plan.mpi.len() } else { 0 };
        Some(Self {
            plan,
            perf,
            with_mpi,
            values: vec![0; count],
            written: vec![UNWRITTEN; count],
            buffer: vec![0; if with_mpi { mpi_counters::ELEMENTS } else { 0 }.max(plan.perf.len() + 1)],
        })
    }

    /// Has all values written next.
    pub(crate) fn forget(&mut self) {
        self.written.fill(UNWRITTEN);
    }

    /// Reads all counters; then [`changed`](Self::changed) has them.
    pub(crate) fn read(&mut self) {
        let Self { plan, perf, values, buffer, .. } = self;
        let mut to = values.iter_mut();
        let mut put = |value: u64| {
            if let Some(place) = to.next() {
                *place = value;
            }
        };
        if plan.rusage {
            // SAFETY: a record of numbers, which the call fills in.
            let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
            // SAFETY: the pointer is valid.
            unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
            let microseconds = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
            put(microseconds(usage.ru_utime));
            put(microseconds(usage.ru_stime));
            // In units of 1024 bytes; they are written as multiples of 1000.
            put((usage.ru_maxrss as u64 * 1024).div_ceil(1000));
            for count in [usage.ru_minflt, usage.ru_majflt, usage.ru_nvcsw, usage.ru_nivcsw] {
                put(count as u64);
            }
        }
        if plan.core {
            // SAFETY: it has no arguments.
            put(unsafe { libc::sched_getcpu() } as u64);
        }
        if !plan.perf.is_empty() {
            if let Some(leader) = perf.first() {
                // SAFETY: pointer and length are those of the buffer.
                unsafe { libc::read(*leader, buffer.as_mut_ptr().cast(), (plan.perf.len() + 1) * 8) };
            }
            // The number of events comes first.
            buffer.iter().skip(1).take(plan.perf.len()).for_each(|value| put(*value));
        }
        if self.with_mpi {
            let has_ended = ENDED.load(Ordering::Acquire);
            for (variable, place) in plan.mpi.iter().zip(to) {
                match variable.mode {
                    _ if !has_ended => *place = variable.read(buffer),
                    // What there was has gone; a total stays what it was.
                    LEVEL => *place = 0,
                    _ => {}
                }
            }
        }
    }

    /// The next values to write, from this block on: its number, and up to [`COUNTERS`] values. Blocks without changes are left out.
    pub(crate) fn changed(&mut self, from: usize) -> Option<(usize, [u64; COUNTERS], usize)> {
        let Self { values, written, .. } = self;
        let blocks = values.chunks(COUNTERS).zip(written.chunks_mut(COUNTERS)).enumerate().skip(from);
        for (block, (new, old)) in blocks {
            if new != old {
                old.copy_from_slice(new);
                let mut items = [0; COUNTERS];
                items.iter_mut().zip(new).for_each(|(item, value)| *item = *value);
                return Some((block, items, new.len()));
            }
        }
        None
    }
}

impl Drop for Counters {
    fn drop(&mut self) {
        close(&mut self.perf);
    }
}

fn close(files: &mut Vec<i32>) {
    for fd in files.drain(..) {
        // SAFETY: opened by `open`.
        unsafe { libc::close(fd) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_blocks_that_changed_are_written() {
        let plan = Box::leak(Box::new(Plan { rusage: true, core: true, ..Plan::default() }));
        let _ = PLAN.set(std::mem::take(plan));
        let mut counters = Counters::new(true).unwrap();
        counters.read();
        let (block, items, count) = counters.changed(0).unwrap();
        assert_eq!((block, count), (0, COUNTERS));
        assert!(items[2] > 0, "the process has memory");
        assert_eq!(counters.changed(1).map(|(block, _, count)| (block, count)), Some((1, 1)));
        assert!(counters.changed(0).is_none());
        counters.values[7] += 1;
        assert_eq!(counters.changed(0).map(|(block, items, _)| (block, items[0])), Some((1, counters.values[7])));
    }
}
