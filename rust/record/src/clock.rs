//! Time: the processor's counter where the kernel trusts it, else its monotonic clock.

use crate::format::{CLOCK_CNTVCT, CLOCK_MONOTONIC, CLOCK_TSC};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static COUNTER: AtomicBool = AtomicBool::new(false);

/// A reading of all clocks at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    pub(crate) ticks: u64,
    pub(crate) monotonic: u64,
    pub(crate) realtime: u64,
}

#[cfg(target_arch = "x86_64")]
fn counter() -> u64 {
    // SAFETY: every x86-64 processor has it.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(target_arch = "aarch64")]
fn counter() -> u64 {
    let ticks: u64;
    // SAFETY: Linux lets programs read this register.
    unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
    ticks
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is valid.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// Now, in ticks.
#[inline]
pub(crate) fn now() -> u64 {
    if COUNTER.load(Relaxed) { counter() } else { read(libc::CLOCK_MONOTONIC) }
}

/// Processor time that the thread has used, in nanoseconds.
pub(crate) fn of_thread() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Chooses the clock; once, before the first reading.
pub(crate) fn choose() {
    COUNTER.store(trusted(), Relaxed);
}

#[cfg(target_arch = "x86_64")]
fn trusted() -> bool {
    use std::arch::x86_64::__cpuid;
    // What Linux calls constant_tsc and nonstop_tsc.
    const INVARIANT: u32 = 1 << 8;
    const POWER: u32 = 0x8000_0007;
    let source = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    __cpuid(0x8000_0000).eax >= POWER
        && __cpuid(POWER).edx & INVARIANT != 0
        && source.is_ok_and(|name| name.trim() == "tsc")
}

#[cfg(target_arch = "aarch64")]
fn trusted() -> bool {
    true
}

/// The clock's number in the spool.
pub(crate) fn kind() -> u32 {
    match (COUNTER.load(Relaxed), cfg!(target_arch = "x86_64")) {
        (false, _) => CLOCK_MONOTONIC,
        (true, true) => CLOCK_TSC,
        (true, false) => CLOCK_CNTVCT,
    }
}

/// Reads the clocks together: the tightest of 32 attempts.
pub(crate) fn reading() -> Reading {
    let mut best = (u64::MAX, Reading { ticks: 0, monotonic: 0, realtime: 0 });
    for _ in 0..32 {
        let before = now();
        let monotonic = read(libc::CLOCK_MONOTONIC);
        let after = now();
        let width = after.wrapping_sub(before);
        if width < best.0 {
            best = (
                width,
                Reading { ticks: before.wrapping_add(width / 2), monotonic, realtime: read(libc::CLOCK_REALTIME) },
            );
        }
    }
    best.1
}

/// Ticks per second between two readings.
pub(crate) fn frequency(from: Reading, to: Reading) -> u64 {
    if !COUNTER.load(Relaxed) {
        return 1_000_000_000;
    }
    let (ticks, ns) = (to.ticks.wrapping_sub(from.ticks), to.monotonic.wrapping_sub(from.monotonic));
    if ns == 0 { 0 } else { (u128::from(ticks) * 1_000_000_000 / u128::from(ns)) as u64 }
}

/// Id of this boot of the machine: processes where it is the same, and the time namespace, share their clock.
pub(crate) fn boot_id() -> [u8; 16] {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: Vec<u8> =
        text.bytes().filter_map(|byte| char::from(byte).to_digit(16)).map(|digit| digit as u8).collect();
    let mut id = [0; 16];
    for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = pair[0] << 4 | pair[1];
    }
    id
}

/// Number of the time namespace, 0 if the kernel has none.
pub(crate) fn time_namespace() -> u64 {
    std::fs::metadata("/proc/self/ns/time").map_or(0, |file| std::os::unix::fs::MetadataExt::ino(&file))
}
