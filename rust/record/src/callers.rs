//! Whether a call is the program's own. MPI, OpenMP, Python and the C library have threads and locks of their own, which are part of
//! what the program asked them for; and MPI's libraries for Fortran call `PMPI_` functions for it.

use std::ffi::{CStr, c_char, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

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

/// What `_dl_find_object` fills in.
#[repr(C)]
struct Found {
    flags: u64,
    map_start: *mut c_void,
    map_end: *mut c_void,
    link_map: *const LinkMap,
    rest: [u64; 9],
}

#[repr(C)]
struct LinkMap {
    base: usize,
    name: *const c_char,
}

type FindObject = unsafe extern "C" fn(*mut c_void, *mut Found) -> i32;

#[cold]
fn look_up(address: usize) -> bool {
    // It takes no lock, unlike dladdr, for which a thread that holds a lock of the program must not wait.
    static FIND: OnceLock<Option<FindObject>> = OnceLock::new();
    let find = FIND.get_or_init(|| {
        // SAFETY: the loader's own function of this name and type.
        unsafe {
            let address = libc::dlsym(libc::RTLD_DEFAULT, c"_dl_find_object".as_ptr());
            (!address.is_null()).then(|| std::mem::transmute::<*mut c_void, FindObject>(address))
        }
    });
    let name = if let Some(find) = find {
        // SAFETY: an empty record, which the call fills in.
        let mut found: Found = unsafe { std::mem::zeroed() };
        // SAFETY: both pointers are valid.
        if unsafe { find(address as *mut c_void, &raw mut found) } != 0 || found.link_map.is_null() {
            return false;
        }
        // SAFETY: the loader's description of an object, which the caller's frame keeps loaded.
        unsafe { (*found.link_map).name }
    } else {
        // SAFETY: an empty record, which the call fills in.
        let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
        // SAFETY: the pointer is valid.
        if unsafe { libc::dladdr(address as *const c_void, &raw mut info) } == 0 {
            return false;
        }
        info.dli_fname
    };
    // SAFETY: the loader's names are strings.
    let path = if name.is_null() { c"" } else { unsafe { CStr::from_ptr(name) } }.to_string_lossy();
    if path.is_empty() {
        // The program itself.
        static PROGRAM: OnceLock<bool> = OnceLock::new();
        return *PROGRAM.get_or_init(|| is_of_program(&crate::title::executable()));
    }
    is_of_program(path.rsplit('/').next().unwrap_or_default())
}

fn is_of_program(name: &str) -> bool {
    !OTHERS.iter().any(|other| name.starts_with(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_the_program_count() {
        assert!(look_up(calls_of_the_program_count as *const () as usize));
        assert!(!look_up(libc::getpid as *const () as usize));
        assert!(!count(16), "nothing is loaded there");
        assert!(is_of_program("libstdc++.so.6") && !is_of_program("libmpich.so.12") && !is_of_program("python3.12"));
    }
}
