//! Whether a call is the program's own. MPI, OpenMP, Python and the C library have threads and locks of their own, which are part of
//! what the program asked them for; and MPI's libraries for Fortran call `PMPI_` functions for it.

use crate::system::{self, Found};
use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// Files whose calls are not the program's, by how their names begin.
const OTHERS: [&str; 30] = [
    "libwhywait_record",
    "libmpi",
    "libopen-",
    "liboshmem",
    "libpmix",
    "libprrte",
    "libpmi",
    "mca_",
    "libevent",
    "libhwloc",
    "libucp.",
    "libucs.",
    "libuct.",
    "libucm.",
    "libucc.",
    "libfabric",
    "libpsm",
    "libibverbs",
    "librdmacm",
    "libomp",
    "libiomp",
    "libgomp",
    "libc.so",
    "libpthread",
    "ld-linux",
    "libpython",
    "python3",
    "libjemalloc",
    "libtcmalloc",
    "libmimalloc",
];

/// Answers by return address: the address and, in the lowest bit, the answer.
static KNOWN: [AtomicUsize; 4096] = [const { AtomicUsize::new(0) }; 4096];

/// Whether the call that returns to an address counts.
#[inline]
pub(crate) fn count(address: usize) -> bool {
    let at = (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52) & (KNOWN.len() - 1);
    match KNOWN.get(at) {
        Some(known) if known.load(Relaxed) >> 1 == address => known.load(Relaxed) & 1 == 1,
        Some(place) => {
            let answer = look_up(address);
            place.store(address << 1 | usize::from(answer), Relaxed);
            answer
        }
        None => false,
    }
}

type FindObject = unsafe extern "C" fn(*mut c_void, *mut Found) -> i32;

/// The address of `_dl_find_object`, which takes no lock; 0 before glibc 2.35, which does not have it.
static FIND: AtomicUsize = AtomicUsize::new(0);
/// Calls of the executable are the program's own.
static PROGRAM: AtomicBool = AtomicBool::new(true);

/// Finds out what [`count`] needs, when the library is loaded.
pub(crate) fn prepare() {
    FIND.store(system::first(c"_dl_find_object"), Relaxed);
    PROGRAM.store(is_of_program(crate::title::executable().as_bytes()), Relaxed);
}

#[cold]
fn look_up(address: usize) -> bool {
    let name = match FIND.load(Relaxed) {
        0 => {
            // SAFETY: an empty record, which the call fills in.
            let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
            // SAFETY: the pointer is valid.
            if unsafe { libc::dladdr(address as *const c_void, &raw mut info) } == 0 {
                return false;
            }
            info.dli_fname
        }
        find => {
            // SAFETY: the loader's own function of this name.
            let find = unsafe { std::mem::transmute::<usize, FindObject>(find) };
            // SAFETY: an empty record, which the call fills in.
            let mut found: Found = unsafe { std::mem::zeroed() };
            // SAFETY: both pointers are valid.
            if unsafe { find(address as *mut c_void, &raw mut found) } != 0 || found.object.is_null() {
                return false;
            }
            // SAFETY: the loader's description of an object, which the caller's frame keeps loaded.
            unsafe { (*found.object).name }
        }
    };
    // SAFETY: the loader's names are strings.
    let path = if name.is_null() { c"" } else { unsafe { CStr::from_ptr(name) } }.to_bytes();
    match path.rsplit(|byte| *byte == b'/').next() {
        None | Some([]) => PROGRAM.load(Relaxed),
        Some(file) => is_of_program(file),
    }
}

fn is_of_program(file: &[u8]) -> bool {
    !OTHERS.iter().any(|other| file.starts_with(other.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_the_program_count() {
        prepare();
        assert!(look_up(calls_of_the_program_count as *const () as usize));
        assert!(!look_up(libc::getpid as *const () as usize));
        assert!(!count(16), "nothing is loaded there");
        for (file, expected) in [("libstdc++.so.6", true), ("libmpich.so.12", false), ("python3.12", false)] {
            assert_eq!(is_of_program(file.as_bytes()), expected, "{file}");
        }
    }
}
