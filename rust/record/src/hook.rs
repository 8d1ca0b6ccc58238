//! Where each call of MPI arrives.

use crate::callers::{self, Caller};
use crate::calls;
use crate::context::Context;
use crate::frame::{Frame, Returned};
use crate::modes::{KEEP, MODES, PASS, RECORD, SPECIAL};
use crate::table::{FUNCTIONS, Function, LARGE, Owner, PROFILING, number};
use crate::{fault, kept, polling, posix, process, real, state, thread, thread_starts};
use std::arch::naked_asm;
use std::sync::atomic::Ordering::Relaxed;

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
    if index == number::PTHREAD_CREATE && !state::wants_threads() {
        return thread_starts::create(symbol, frame);
    }
    if mode == SPECIAL && function.class.begins() {
        return process::begin(symbol, function, frame, |thread, enter| {
            calls::first(function, index, frame, thread, enter);
        });
    }
    // MPI's functions may change it, but of the C library's, each does so in its own way.
    let errno = if of_system { fault::errno() } else { 0 };
    let Some(mut thread) = thread::enter(frame, function.owner) else {
        posix::passes(function, frame);
        if of_system {
            fault::set_errno(errno);
        }
        return within(symbol, function, frame);
    };
    let records = mode != KEEP && !(mode == RECORD && is_hidden(symbol, function, frame));
    let mut context = Context::new(function, index, symbol & LARGE != 0, frame, &mut thread, records);
    let fine = fault::caught(|| calls::before(&mut context));
    if of_system {
        fault::set_errno(errno);
    }
    let returned = real::call(symbol, frame);
    let errno = if of_system { fault::errno() } else { 0 };
    context.returned(&returned);
    if fine && fault::caught(|| calls::after(&mut context)) && function.tests {
        fault::caught(|| polling::tested(&mut context));
    }
    if of_system {
        fault::set_errno(errno);
    }
    returned
}

/// Makes a call within another one. What calls of MPI within one of ARMCI make is there for those outside, too.
#[cold]
#[inline(never)]
fn within(symbol: usize, function: &'static Function, frame: Frame) -> Returned {
    if function.class.ends() {
        fault::caught(process::finalizing);
    }
    let makes = function.class.makes_window() || kept::is_kept(function.class);
    let Some(thread) = thread::in_armci(function.owner).filter(|_| makes) else { return real::call(symbol, frame) };
    if function.class.makes_window() {
        calls::makes_window();
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
#[inline(never)]
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
