//! A call as it arrives, and what its function returned.

use std::ffi::c_int;

/// Number of registers that hold arguments.
#[cfg(target_arch = "x86_64")]
const REGISTERS: usize = 6;
#[cfg(target_arch = "aarch64")]
const REGISTERS: usize = 8;

/// What `hook::catch` makes of a call: the registers with arguments, the caller's frame pointer, the return address, and then the
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
        // SAFETY: `hook::catch` stored the word.
        f64::from_bits(unsafe { *self.0.sub(2) } as u64)
    }

    /// Return address, stack pointer and frame pointer in the caller, after the return.
    pub(crate) fn caller(self) -> (usize, usize, usize) {
        // SAFETY: `hook::catch` stored these words.
        unsafe { (*self.0.add(REGISTERS + 1), self.0.add(REGISTERS + 2) as usize, *self.0.add(REGISTERS)) }
    }
}

/// What a function returned: it may be in either register, and who called it knows which. A `long double` stays in a register that
/// nothing here uses.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Returned {
    pub(crate) word: usize,
    #[cfg(target_arch = "x86_64")]
    float: f64,
}

impl Returned {
    /// What a function returns that fails so.
    pub(crate) fn of_code(code: c_int) -> Self {
        Self {
            word: code as usize,
            #[cfg(target_arch = "x86_64")]
            float: 0.0,
        }
    }
}
