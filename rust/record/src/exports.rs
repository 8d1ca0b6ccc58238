//! The symbols under which the recorder catches functions.

use crate::hook::catch;
#[cfg(target_arch = "x86_64")]
use crate::hook::catch_variadic;
use crate::real::remembered;
use crate::table::FUNCTIONS;
use std::arch::naked_asm;
use std::ffi::{CStr, c_char, c_int};

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

include!(concat!(env!("OUT_DIR"), "/exports.rs"));

/// Catches a function of a library that is inside the program: it is called under another name. Returns where the program's calls of
/// it go from now on, 0 if it is not known here.
///
/// # Safety
/// The name must be a string, and the address that of the function.
#[unsafe(no_mangle)]
unsafe extern "C" fn whywait_catch(name: *const c_char, real: usize) -> usize {
    // SAFETY: so the caller says.
    let name = unsafe { CStr::from_ptr(name) };
    let known = ARMCI.iter().find(|(index, _)| FUNCTIONS.get(*index).is_some_and(|function| function.name == name));
    known.map_or(0, |(index, caught)| {
        remembered(index * 4, real);
        *caught as usize
    })
}
