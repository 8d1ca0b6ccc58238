//! Where each call of MPI arrives.

use crate::callers::{self, Caller};
use crate::calls;
use crate::context::Context;
use crate::real::Returned;
use crate::table::{Class, FUNCTIONS, Function, LARGE, Owner, PROFILING, number};
use crate::{armci, fault, kept, posix, process, real, thread, thread_starts};
use std::arch::naked_asm;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// The call goes on to MPI and nothing else happens.
pub(crate) const PASS: u8 = 0;
/// Not recorded, but what later calls need is kept.
pub(crate) const KEEP: u8 = 1;
/// Recorded.
pub(crate) const RECORD: u8 = 2;
/// Begins, ends or switches the recording.
pub(crate) const SPECIAL: u8 = 3;

/// What happens to each function now. Before MPI_Init, and once recording is off, only those that begin it are looked at.
pub(crate) static MODES: [AtomicU8; FUNCTIONS.len()] = {
    let mut modes = [const { AtomicU8::new(PASS) }; FUNCTIONS.len()];
    let mut i = 0;
    while i < modes.len() {
        if FUNCTIONS[i].class.begins() {
            modes[i] = AtomicU8::new(SPECIAL);
        }
        i += 1;
    }
    modes
};

/// Number of registers that hold arguments.
#[cfg(target_arch = "x86_64")]
const REGISTERS: usize = 6;
#[cfg(target_arch = "aarch64")]
const REGISTERS: usize = 8;

/// What [`catch`] makes of a call: the registers with arguments, the caller's frame pointer, the return address, and then the
/// arguments on the stack. Everything is a word, and arguments are addressed as words from its beginning. Before it lies the first
/// argument in a floating-point register, on x86-64.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Frame(*mut usize);

impl Frame {
    /// The frame at an address.
    pub(crate) fn at(address: usize) -> Self {
        Self(address as *mut usize)
    }

    /// Where it lies.
    pub(crate) fn address(self) -> usize {
        self.0 as usize
    }

    /// The word at a place given by [`Function::roles`](crate::table::Function::roles).
    pub(crate) fn word(self, place: u8) -> usize {
        // SAFETY: places come from the table, which lists the arguments that the caller passed.
        unsafe { *self.0.add(usize::from(place)) }
    }

    /// Changes an argument. The words of its arguments belong to the called function, registers and stack alike.
    pub(crate) fn set(self, place: u8, value: usize) {
        // SAFETY: as above.
        unsafe { *self.0.add(usize::from(place)) = value }
    }

    /// Argument `i`.
    pub(crate) fn argument(self, i: usize) -> usize {
        self.word(if i < REGISTERS { i } else { i + 2 } as u8)
    }

    /// The first argument in a floating-point register.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn float(self) -> f64 {
        // SAFETY: `catch` stored the word.
        f64::from_bits(unsafe { *self.0.sub(2) } as u64)
    }

    /// Return address, stack pointer and frame pointer in the caller, after the return.
    pub(crate) fn caller(self) -> (usize, usize, usize) {
        // SAFETY: `catch` stored these words.
        unsafe { (*self.0.add(REGISTERS + 1), self.0.add(REGISTERS + 2) as usize, *self.0.add(REGISTERS)) }
    }
}

/// Makes a [`Frame`] and calls [`hook`]; the number of the symbol is in a scratch register.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
pub(crate) unsafe extern "C-unwind" fn catch() -> Returned {
    naked_asm!(
        ".cfi_startproc",
        "push rbp",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbp, -16",
        "sub rsp, 64",
        ".cfi_adjust_cfa_offset 64",
        "movq [rsp], xmm0",
        "mov [rsp + 16], rdi",
        "mov [rsp + 24], rsi",
        "mov [rsp + 32], rdx",
        "mov [rsp + 40], rcx",
        "mov [rsp + 48], r8",
        "mov [rsp + 56], r9",
        "mov edi, eax",
        "lea rsi, [rsp + 16]",
        "call {hook}",
        "add rsp, 64",
        ".cfi_adjust_cfa_offset -64",
        "pop rbp",
        ".cfi_adjust_cfa_offset -8",
        ".cfi_restore rbp",
        "ret",
        ".cfi_endproc",
        hook = sym hook,
    )
}

/// Makes a [`Frame`] and calls [`hook`]; the number of the symbol is in a scratch register.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
pub(crate) unsafe extern "C-unwind" fn catch() -> Returned {
    naked_asm!(
        ".cfi_startproc",
        "sub sp, sp, #80",
        ".cfi_adjust_cfa_offset 80",
        "stp x29, x30, [sp, #64]",
        ".cfi_offset x29, -16",
        ".cfi_offset x30, -8",
        "stp x0, x1, [sp]",
        "stp x2, x3, [sp, #16]",
        "stp x4, x5, [sp, #32]",
        "stp x6, x7, [sp, #48]",
        "add x29, sp, #64",
        "mov w0, w16",
        "mov x1, sp",
        "bl {hook}",
        "ldp x29, x30, [sp, #64]",
        "add sp, sp, #80",
        ".cfi_adjust_cfa_offset -80",
        ".cfi_restore x29",
        ".cfi_restore x30",
        "ret",
        ".cfi_endproc",
        hook = sym hook,
    )
}

/// The same for a call with arguments that vary, which goes on to a function that takes a `va_list`: the number of the symbol and the bytes of those
/// that do not vary are in scratch registers.
///
/// Below the frame lie all registers that may hold arguments, and the list, as the calling convention has them.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
pub(crate) unsafe extern "C-unwind" fn catch_variadic() -> Returned {
    naked_asm!(
        ".cfi_startproc",
        "push rbp",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbp, -16",
        "sub rsp, 272",
        ".cfi_adjust_cfa_offset 272",
        "movq [rsp + 208], xmm0",
        "mov [rsp + 224], rdi",
        "mov [rsp + 232], rsi",
        "mov [rsp + 240], rdx",
        "mov [rsp + 248], rcx",
        "mov [rsp + 256], r8",
        "mov [rsp + 264], r9",
        "mov [rsp + 32], rdi",
        "mov [rsp + 40], rsi",
        "mov [rsp + 48], rdx",
        "mov [rsp + 56], rcx",
        "mov [rsp + 64], r8",
        "mov [rsp + 72], r9",
        "test al, al",
        "je 2f",
        "movaps [rsp + 80], xmm0",
        "movaps [rsp + 96], xmm1",
        "movaps [rsp + 112], xmm2",
        "movaps [rsp + 128], xmm3",
        "movaps [rsp + 144], xmm4",
        "movaps [rsp + 160], xmm5",
        "movaps [rsp + 176], xmm6",
        "movaps [rsp + 192], xmm7",
        "2:",
        "mov [rsp], r11d",
        "mov dword ptr [rsp + 4], 48",
        "lea rax, [rsp + 288]",
        "mov [rsp + 8], rax",
        "lea rax, [rsp + 32]",
        "mov [rsp + 16], rax",
        "mov [rsp + r11 + 224], rsp",
        "mov edi, r10d",
        "lea rsi, [rsp + 224]",
        "call {hook}",
        "add rsp, 272",
        ".cfi_adjust_cfa_offset -272",
        "pop rbp",
        ".cfi_adjust_cfa_offset -8",
        ".cfi_restore rbp",
        "ret",
        ".cfi_endproc",
        hook = sym hook,
    )
}

/// A call: recorded if it is not part of another one.
unsafe extern "C-unwind" fn hook(symbol: usize, frame: Frame) -> Returned {
    let index = symbol >> 2;
    let mode = MODES.get(index).map_or(PASS, |mode| mode.load(Relaxed));
    if mode == PASS {
        return real::call(symbol, frame);
    }
    let Some(function) = FUNCTIONS.get(index) else { return real::call(symbol, frame) };
    let of_system = function.owner == Owner::System;
    if of_system && !is_of_program(function, frame) {
        return if index == number::PTHREAD_CREATE {
            thread_starts::create(symbol, frame)
        } else {
            posix::passes(function, frame);
            real::call(symbol, frame)
        };
    }
    if index == number::PTHREAD_CREATE && !process::wants_threads() {
        return thread_starts::create(symbol, frame);
    }
    let mut errno = of_system.then(fault::Errno::new);
    if mode == SPECIAL && function.class.begins() {
        return process::begin(symbol, function, frame);
    }
    let Some(mut thread) = thread::enter(frame, function.owner) else {
        posix::passes(function, frame);
        drop(errno);
        return within(symbol, function, frame);
    };
    let records = mode != KEEP && !(mode == RECORD && is_hidden(symbol, function, frame));
    let mut context = Context::new(function, index, symbol & LARGE != 0, frame, &mut thread, records);
    let fine = fault::caught(|| calls::before(&mut context));
    if let Some(errno) = &errno {
        errno.set_back();
    }
    let returned = real::call(symbol, frame);
    if let Some(errno) = &mut errno {
        errno.keep();
    }
    context.returned(&returned);
    if fine {
        fault::caught(|| calls::after(&mut context));
    }
    returned
}

/// Makes a call within another one. What calls of MPI within one of ARMCI make is there for those outside, too.
#[cold]
#[inline(never)]
fn within(symbol: usize, function: &'static Function, frame: Frame) -> Returned {
    if process::ends(function.class) {
        fault::caught(process::finalizing);
    }
    let makes = function.class == Class::WinCreate || kept::is_kept(function.class);
    let Some(thread) = thread::in_armci(function.owner).filter(|_| makes) else { return real::call(symbol, frame) };
    if function.class == Class::WinCreate {
        armci::makes_window();
        return real::call(symbol, frame);
    }
    let mut context = Context::new(function, symbol >> 2, symbol & LARGE != 0, frame, thread, false);
    let fine = fault::caught(|| {
        kept::before(&mut context);
    });
    let returned = real::call(symbol, frame);
    context.returned(&returned);
    if fine {
        fault::caught(|| {
            kept::after(&mut context);
        });
    }
    returned
}

/// Whether a call of the C library is the program's, and one that is recorded.
fn is_of_program(function: &Function, frame: Frame) -> bool {
    match callers::of(frame.caller().0) {
        Caller::Library => false,
        Caller::Agent => function.class.is_of_files() && posix::concerns(function, frame),
        Caller::Program => !function.class.is_of_files() || posix::concerns(function, frame),
    }
}

/// Whether the program itself calls a `PMPI_` function where `MPI_` would lead here, which is how it keeps a call from tools.
///
/// Languages call these functions as well, but in MPI's own libraries; and another tool that comes first has no other way.
fn is_hidden(symbol: usize, function: &Function, frame: Frame) -> bool {
    symbol & PROFILING != 0
        && function.owner == Owner::Mpi
        && callers::count(frame.caller().0)
        && real::is_first(symbol)
}

impl Class {
    /// Whether a call of it takes requests out of the table before it may complete them.
    pub(crate) const fn takes_requests(self) -> bool {
        matches!(
            self,
            Self::Wait
                | Self::Waitany
                | Self::Waitall
                | Self::Waitsome
                | Self::Test
                | Self::Testany
                | Self::Testall
                | Self::Testsome
                | Self::Start
                | Self::Startall
                | Self::RequestFree
                | Self::Cancel
        )
    }

    /// Whether a call of it may end with one message that was received.
    pub(crate) const fn receives(self) -> bool {
        matches!(
            self,
            Self::Recv | Self::Mrecv | Self::Sendrecv | Self::Wait | Self::Test | Self::Waitany | Self::Testany
        )
    }

    /// Whether it is about files, and no function of MPI.
    pub(crate) const fn is_of_files(self) -> bool {
        matches!(
            self,
            Self::PosixOpen
                | Self::PosixClose
                | Self::PosixIo
                | Self::PosixChar
                | Self::PosixScan
                | Self::PosixFlush
                | Self::PosixSeek
                | Self::PosixDup
                | Self::PosixStatus
                | Self::PosixMap
                | Self::PosixName
        )
    }

    /// Whether a call of the program begins the recording.
    const fn begins(self) -> bool {
        matches!(self, Self::Init | Self::SessionInit | Self::ShmemInit)
    }
}
