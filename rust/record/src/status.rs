//! What MPI says of a call: `MPI_Status` and error codes.

use crate::abi;
use crate::real::{exists, own, own_symbol};
use crate::table::{LARGE, PROFILING, number};
use std::ffi::c_int;

/// Whether an error says that a message was longer than its buffer.
#[cold]
pub(crate) fn is_truncation(code: c_int) -> bool {
    let mut class = 0;
    own!(ERROR_CLASS, code, &raw mut class) == 0 && class == abi::get().truncate
}

/// An `MPI_Status`, in the program's memory or the recorder's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Status(pub(crate) usize);

impl Status {
    fn field(self, offset: usize) -> i32 {
        // SAFETY: MPI filled in the status, and the field is within it.
        unsafe { ((self.0 + offset) as *const i32).read_unaligned() }
    }

    pub(crate) fn source(self) -> i32 {
        abi::get().peer(self.field(abi::get().status_source))
    }

    pub(crate) fn tag(self) -> i32 {
        abi::get().tag(self.field(abi::get().status_tag))
    }

    pub(crate) fn error(self) -> c_int {
        self.field(abi::get().status_error)
    }

    /// Element `i` of an array.
    pub(crate) fn at(self, i: usize) -> Self {
        Self(self.0.wrapping_add(i.wrapping_mul(abi::get().status)))
    }

    /// Bytes of the message.
    pub(crate) fn bytes(self) -> u64 {
        let large = number::GET_COUNT * 4 + LARGE + PROFILING;
        let mut count = -1_i64;
        let code = if exists(large) {
            own_symbol(large, [self.0, abi::get().byte, &raw mut count as usize])
        } else if exists(number::GET_ELEMENTS_X * 4 + PROFILING) {
            own!(GET_ELEMENTS_X, self.0, abi::get().byte, &raw mut count)
        } else {
            let mut short = -1_i32;
            let code = own!(GET_COUNT, self.0, abi::get().byte, &raw mut short);
            count = i64::from(short);
            code
        };
        if code == 0 { u64::try_from(count).unwrap_or(0) } else { 0 }
    }

    /// Whether the operation was cancelled.
    pub(crate) fn cancelled(self) -> bool {
        let mut flag = 0_i32;
        own!(TEST_CANCELLED, self.0, &raw mut flag) == 0 && flag != 0
    }
}
