//! System calls without the C library: its functions may be another library's, which need not be made for signal handlers.

use std::arch::asm;
use std::ffi::{c_int, c_long};

/// A system call; what it returns, which is negative for an error.
fn call(number: c_long, [a, b, c, d]: [usize; 4]) -> isize {
    long_call(number, [a, b, c, d, 0, 0])
}

fn long_call(number: c_long, arguments: [usize; 6]) -> isize {
    let returned: isize;
    // SAFETY: callers pass what the kernel expects; it keeps all registers but these.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => returned,
            in("rdi") arguments[0],
            in("rsi") arguments[1],
            in("rdx") arguments[2],
            in("r10") arguments[3],
            in("r8") arguments[4],
            in("r9") arguments[5],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    returned
}

/// What identifies this thread as long as it lives: the address of its control block.
pub(super) fn own_thread() -> usize {
    let address: usize;
    // SAFETY: by the ABI, the block begins with its own address.
    unsafe { asm!("mov {}, qword ptr fs:[0]", out(reg) address, options(nostack, readonly, preserves_flags)) };
    address
}

/// CPU time of this thread, in ns.
pub(super) fn cpu_time() -> u64 {
    let mut time = [0_u64; 2];
    call(libc::SYS_clock_gettime, [libc::CLOCK_THREAD_CPUTIME_ID as usize, time.as_mut_ptr() as usize, 0, 0]);
    time[0].wrapping_mul(1_000_000_000).wrapping_add(time[1])
}

/// What the kernel has counted for this thread.
#[derive(Clone, Copy, Default)]
pub(super) struct Usage {
    /// CPU time in the kernel, in us.
    pub(super) system: u64,
    /// Page faults without and with I/O.
    pub(super) faults: [u64; 2],
    /// Context switches because it slept, and because another thread got the core.
    pub(super) switches: [u64; 2],
}

/// Reads what the kernel has counted for this thread.
pub(super) fn usage() -> Usage {
    // Of struct rusage, each field is a word: two for each time, then fourteen counts.
    let mut words = [0_u64; 18];
    call(libc::SYS_getrusage, [libc::RUSAGE_THREAD as usize, words.as_mut_ptr() as usize, 0, 0]);
    Usage {
        system: words[2].wrapping_mul(1_000_000).wrapping_add(words[3]),
        faults: [words[8], words[9]],
        switches: [words[16], words[17]],
    }
}

/// Sets a timer to expire once after so many ns; 0: never.
pub(super) fn set_timer(timer: c_int, ns: u64) {
    let setting = [0, 0, ns / 1_000_000_000, ns % 1_000_000_000];
    call(libc::SYS_timer_settime, [timer as usize, 0, setting.as_ptr() as usize, 0]);
}

/// Copies memory of this process, given by address and length of each part, to `to`; returns how many bytes were there.
pub(super) fn read(parts: &[[usize; 2]], to: *mut u8, length: usize) -> usize {
    if parts.is_empty() {
        return 0;
    }
    let local = [to as usize, length];
    let own = call(libc::SYS_getpid, [0; 4]) as usize;
    let (from, to) = ((&raw const local) as usize, parts.as_ptr() as usize);
    let read = long_call(libc::SYS_process_vm_readv, [own, from, 1, to, parts.len(), 0]);
    usize::try_from(read).unwrap_or(0)
}

/// `ioctl`.
pub(super) fn control(file: c_int, request: usize, argument: usize) -> isize {
    call(libc::SYS_ioctl, [file as usize, request, argument, 0])
}

/// What the kernel does with a signal, as it has it.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Action {
    pub(super) handler: usize,
    pub(super) flags: u64,
    /// Where handlers return to.
    pub(super) restorer: usize,
    pub(super) mask: u64,
}

/// The action of a signal.
pub(super) fn action(signal: c_int) -> Action {
    let mut action = Action::default();
    let size = size_of_val(&action.mask);
    call(libc::SYS_rt_sigaction, [signal as usize, 0, (&raw mut action) as usize, size]);
    action
}

/// Blocks or unblocks a signal in this thread.
pub(super) fn block(signal: c_int, blocks: bool) {
    let mask = 1_u64 << (signal - 1);
    let how = if blocks { libc::SIG_BLOCK } else { libc::SIG_UNBLOCK };
    call(libc::SYS_rt_sigprocmask, [how as usize, (&raw const mask) as usize, 0, size_of_val(&mask)]);
}
