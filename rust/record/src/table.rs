//! The functions of MPI, of threads, of OpenSHMEM, of files and of ARMCI, and the symbols under which the recorder catches them.
//!
//! Both names of a function, `MPI_X` and `PMPI_X`, and those of its twin `X_c`, lead to `hook` with a number: four times
//! that of the function, plus [`LARGE`] for the twin, plus [`PROFILING`] for `PMPI_`.

use crate::hook::catch;
#[cfg(target_arch = "x86_64")]
use crate::hook::catch_variadic;
use std::arch::naked_asm;
use std::ffi::{CStr, c_int};

/// The symbol is that of the `_c` function.
pub(crate) const LARGE: usize = 2;
/// The symbol begins with PMPI.
pub(crate) const PROFILING: usize = 1;

/// In [`Function::roles`]: no such argument.
pub(crate) const NO: u8 = u8::MAX;

/// Whose function it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Owner {
    Mpi,
    /// The C library.
    System,
    Shmem,
    Armci,
}

/// What the recorder knows of a function.
#[allow(clippy::struct_excessive_bools, reason = "independent of each other")]
pub(crate) struct Function {
    /// `PMPI_X`, or the name itself of a function of another library.
    pub(crate) name: &'static CStr,
    pub(crate) owner: Owner,
    pub(crate) class: Class,
    pub(crate) group: Group,
    /// The twin differs only in numbers of elements, so that the plain function can stand in for it.
    pub(crate) narrows: bool,
    /// Of a rooted operation: the root sends.
    pub(crate) scatters: bool,
    /// Collective over the neighbours in a topology.
    pub(crate) neighbours: bool,
    /// Asks whether something has come, and returns at once.
    pub(crate) tests: bool,
    /// Of files: it reads, and does not write.
    pub(crate) reads: bool,
    pub(crate) arguments: u8,
    /// Bytes of an element that the name tells of, else 0.
    pub(crate) element: u8,
    /// Where an argument lies in the frame of a call, by its [`Role`].
    pub(crate) roles: [u8; ROLES],
}

macro_rules! export {
    ($($name:ident = $number:literal;)*) => { $(
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)]
        unsafe extern "C-unwind" fn $name() -> c_int {
            #[cfg(target_arch = "x86_64")]
            naked_asm!("mov eax, {number}", "jmp {catch}", number = const $number, catch = sym catch);
            #[cfg(target_arch = "aarch64")]
            naked_asm!("mov w16, #{number}", "b {catch}", number = const $number, catch = sym catch);
        }
    )* };
}

/// Functions with arguments that vary, after so many that do not.
#[cfg(target_arch = "x86_64")]
macro_rules! export_variadic {
    ($($name:ident = $number:literal, $named:literal;)*) => { $(
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $name() -> c_int {
            naked_asm!(
                "mov r10d, {number}",
                "mov r11d, {bytes}",
                "jmp {catch}",
                number = const $number,
                bytes = const 8 * $named,
                catch = sym catch_variadic,
            );
        }
    )* };
}

include!(concat!(env!("OUT_DIR"), "/table.rs"));
