//! Whether a call is the program's own. MPI, OpenMP, Python and the C library have threads, locks and files of their own, which are part of
//! what the program asked them for; and MPI's libraries for Fortran call `PMPI_` functions for it.

use crate::modules;
use crate::system::{self, Found};
use std::ffi::{CStr, c_void};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Files whose calls are not the program's, by how their names begin.
const OTHERS: [&str; 28] = [
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
    "libjemalloc",
    "libtcmalloc",
    "libmimalloc",
];

/// Files that have locks of their own, but do with files what the program asks them for: the interpreter of Python.
const AGENTS: [&str; 2] = ["libpython", "python3"];

/// Whose code calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Caller {
    /// A library that does it for itself.
    Library = 0,
    /// One that does with files what the program asks for, and all else for itself.
    Agent = 1,
    Program = 2,
}

impl Caller {
    fn numbered(number: usize) -> Self {
        match number {
            0 => Self::Library,
            1 => Self::Agent,
            _ => Self::Program,
        }
    }
}

/// Answers by return address: the address and, in the lowest two bits, the [`Caller`].
static KNOWN: [AtomicUsize; 4096] = [const { AtomicUsize::new(0) }; 4096];

/// Whether the call that returns to an address is the program's own.
#[inline]
pub(crate) fn count(address: usize) -> bool {
    of(address) == Caller::Program
}

/// Whose code a call returns to.
#[inline]
pub(crate) fn of(address: usize) -> Caller {
    let at = (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52) & (KNOWN.len() - 1);
    let Some(place) = KNOWN.get(at) else { return Caller::Library };
    let known = place.load(Relaxed);
    if known >> 2 == address {
        return Caller::numbered(known & 3);
    }
    let Some(answer) = look_up(address) else { return Caller::Library };
    place.store(address << 2 | answer as usize, Relaxed);
    answer
}

type FindObject = unsafe extern "C" fn(*mut c_void, *mut Found) -> i32;

/// The address of `_dl_find_object`, which takes no lock; 0 before glibc 2.35, which does not have it. There, only objects that were listed are known:
/// all else takes a lock.
static FIND: AtomicUsize = AtomicUsize::new(0);
/// Whose calls those of the executable are.
static EXECUTABLE: AtomicUsize = AtomicUsize::new(Caller::Program as usize);

/// Finds out what [`count`] needs, when the library is loaded.
pub(crate) fn prepare() {
    FIND.store(system::first(c"_dl_find_object"), Relaxed);
    EXECUTABLE.store(of_file(crate::title::executable().as_bytes()) as usize, Relaxed);
}

/// Lists the loaded objects, at the beginning of the recording, if nothing else tells of them.
pub(crate) fn begin() {
    if FIND.load(Relaxed) == 0 {
        modules::refreshed();
    }
}

/// Whose code is at an address; none if the object is not known, which may be so for now only.
#[cold]
fn look_up(address: usize) -> Option<Caller> {
    let path = match FIND.load(Relaxed) {
        0 => modules::current()?.path_of(address)?.as_os_str().as_bytes(),
        find => found_by(find, address)?.to_bytes(),
    };
    Some(match path.rsplit(|byte| *byte == b'/').next() {
        None | Some([]) => Caller::numbered(EXECUTABLE.load(Relaxed)),
        Some(file) => of_file(file),
    })
}

/// The path of the object at an address, by the loader's function for it.
fn found_by(find: usize, address: usize) -> Option<&'static CStr> {
    // SAFETY: the loader's own function of this name.
    let find = unsafe { std::mem::transmute::<usize, FindObject>(find) };
    // SAFETY: an empty record, which the call fills in.
    let mut found: Found = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are valid.
    if unsafe { find(address as *mut c_void, &raw mut found) } != 0 || found.object.is_null() {
        return None;
    }
    // SAFETY: the loader's description of an object, which the caller's frame keeps loaded; its names are strings.
    unsafe {
        let name = (*found.object).name;
        Some(if name.is_null() { c"" } else { CStr::from_ptr(name) })
    }
}

fn of_file(file: &[u8]) -> Caller {
    let is = |names: &[&str]| names.iter().any(|name| file.starts_with(name.as_bytes()));
    match () {
        () if is(&AGENTS) => Caller::Agent,
        () if is(&OTHERS) => Caller::Library,
        () => Caller::Program,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_the_program_count() {
        prepare();
        assert_eq!(of(calls_of_the_program_count as *const () as usize), Caller::Program);
        // By the loader's function, and by the list of objects.
        for find in [FIND.load(Relaxed), 0] {
            FIND.store(find, Relaxed);
            begin();
            assert_eq!(look_up(calls_of_the_program_count as *const () as usize), Some(Caller::Program));
            assert_eq!(look_up(libc::getpid as *const () as usize), Some(Caller::Library));
            assert_eq!(look_up(16), None, "nothing is loaded there");
        }
        prepare();
        assert!(!count(16));
        for (file, expected) in
            [("libstdc++.so.6", Caller::Program), ("libmpich.so.12", Caller::Library), ("python3.12", Caller::Agent)]
        {
            assert_eq!(of_file(file.as_bytes()), expected, "{file}");
        }
    }
}
