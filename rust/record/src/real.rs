//! The program's MPI library, and the functions of it that calls go on to.
//!
//! The recorder has no undefined symbol of MPI: a library that was loaded with local scope, as Python loads it, could not resolve one.

use crate::abi;
use crate::hook::Frame;
use crate::system;
use crate::table::{ARMCI, FUNCTIONS, Function, LARGE, NO, Owner, PROFILING, Role, number as of};
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering::Relaxed};

/// Addresses of the functions behind the symbols: 0 if not yet looked up, [`MISSING`] if there is none.
static REAL: [AtomicUsize; FUNCTIONS.len() * 4] = [const { AtomicUsize::new(0) }; FUNCTIONS.len() * 4];
const MISSING: usize = 1;

/// A loaded library.
pub(crate) struct Library {
    handle: usize,
    /// Where it is loaded.
    base: usize,
    pub(crate) path: PathBuf,
    /// Another MPI that is loaded as well.
    pub(crate) rival: Option<PathBuf>,
}

static LIBRARY: OnceLock<Option<Library>> = OnceLock::new();

/// MPI's library in this process.
pub(crate) fn library() -> Option<&'static Library> {
    if let Some(found) = LIBRARY.get() {
        return found.as_ref();
    }
    let found = find()?;
    let library = LIBRARY.get_or_init(|| Some(found)).as_ref();
    if let Some(library) = library {
        abi::set(library);
    }
    library
}

/// Paths of all loaded objects; the program itself has an empty one.
pub(crate) fn objects() -> Vec<PathBuf> {
    unsafe extern "C" fn add(info: *mut libc::dl_phdr_info, _: usize, list: *mut c_void) -> c_int {
        // SAFETY: the loader passes a valid description, and `list` is the vector below.
        let (list, name) = unsafe { (&mut *list.cast::<Vec<PathBuf>>(), (*info).dlpi_name) };
        let path = if name.is_null() {
            PathBuf::new()
        } else {
            // SAFETY: the loader's names are strings.
            PathBuf::from(OsStr::from_bytes(unsafe { CStr::from_ptr(name) }.to_bytes()))
        };
        list.push(path);
        0
    }
    let mut list = Vec::new();
    // SAFETY: the callback gets the vector that it expects.
    unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut list).cast()) };
    list
}

fn symbol(handle: *mut c_void, name: &CStr) -> usize {
    // SAFETY: handles come from the loader.
    unsafe { libc::dlsym(handle, name.as_ptr()) as usize }
}

/// Where the object is loaded that an address belongs to.
fn base_of(address: usize) -> usize {
    // SAFETY: an empty record, which `dladdr` fills in.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is valid.
    let found = unsafe { libc::dladdr(address as *const c_void, &raw mut info) };
    if found == 0 { 0 } else { info.dli_fbase as usize }
}

/// Looks for an object that is named as MPI's library and defines its functions itself.
fn find() -> Option<Library> {
    let mut found: Vec<Library> = Vec::new();
    for path in objects() {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !name.starts_with("libmpi") || !name.contains(".so") {
            continue;
        }
        let Ok(text) = CString::new(path.as_os_str().as_bytes()) else { continue };
        // SAFETY: the object is loaded; nothing runs. The handle is kept, so that the library stays.
        let handle = unsafe { libc::dlopen(text.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY) };
        if handle.is_null() {
            continue;
        }
        let init = symbol(handle, c"PMPI_Init");
        let base = base_of(init);
        // Libraries of Fortran and C++ reach the function through what they depend on.
        // SAFETY: an empty record, which `dladdr` fills in.
        let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
        // SAFETY: the pointer is valid, and the name is a string if the call succeeds.
        let own = init != 0
            && unsafe { libc::dladdr(init as *const c_void, &raw mut info) } != 0
            && same_file(unsafe { CStr::from_ptr(info.dli_fname) }, &path);
        if own && found.iter().all(|library| library.base != base) {
            found.push(Library { handle: handle as usize, base, path, rival: None });
        } else {
            // SAFETY: gives back what was opened above.
            unsafe { libc::dlclose(handle) };
        }
    }
    // With two of them, the one that the program's calls would reach; else the one that is complete in itself.
    let next = base_of(symbol(libc::RTLD_NEXT, c"MPI_Init"));
    let chosen = found.iter().position(|library| library.base == next);
    let chosen =
        chosen.or_else(|| found.iter().position(|library| library.path.to_string_lossy().contains("libmpi_abi")));
    let chosen = chosen.unwrap_or(0);
    if chosen >= found.len() {
        return None;
    }
    let mut library = found.swap_remove(chosen);
    library.rival = found.pop().map(|other| other.path);
    Some(library)
}

fn same_file(name: &CStr, path: &Path) -> bool {
    name.to_bytes() == path.as_os_str().as_bytes()
}

impl Library {
    /// Address of a variable of the library: that which the whole program uses, be it a copy in the program.
    pub(crate) fn variable(&self, name: &CStr) -> Option<usize> {
        let address = match symbol(libc::RTLD_DEFAULT, name) {
            0 => symbol(self.handle as *mut c_void, name),
            address => address,
        };
        (address != 0).then_some(address)
    }
}

/// Looks a function up.
#[cold]
fn resolve(number: usize) -> usize {
    let Some(function) = FUNCTIONS.get(number >> 2) else { return MISSING };
    match function.owner {
        Owner::Mpi => {}
        // An allocator may call before this library is prepared.
        Owner::System => return remembered(number, system::next(function.name)),
        // The library's own, or that of another tool, which calls its `pshmem_` function.
        Owner::Shmem | Owner::Armci => return remembered(number, symbol(libc::RTLD_NEXT, function.name)),
    }
    let Some(library) = library() else { return MISSING };
    let name = full_name(function, number);
    // SAFETY: both end in their only zero.
    let (profiling, plain) =
        unsafe { (CStr::from_bytes_with_nul_unchecked(&name), CStr::from_bytes_with_nul_unchecked(&name[1..])) };
    let handle = library.handle as *mut c_void;
    let mut address = 0;
    if number & PROFILING == 0 {
        // Another tool that comes after this one sees the call, and calls the PMPI function itself.
        address = symbol(libc::RTLD_NEXT, plain);
        if address != 0 && base_of(address) == library.base {
            address = 0;
        }
    }
    if address == 0 {
        address = symbol(handle, profiling);
    }
    if address == 0 {
        // Some removed functions have no second name.
        address = symbol(handle, plain);
    }
    remembered(number, address)
}

/// The name of a function of MPI or its twin, with `PMPI_` and the zero at its end.
fn full_name(function: &Function, number: usize) -> Vec<u8> {
    let twin: &[u8] = if number & LARGE == 0 { b"" } else { b"_c" };
    [function.name.to_bytes(), twin, b"\0"].concat()
}

/// Whether the program's calls of a function by its plain name come here first, and not to another tool.
pub(crate) fn is_first(number: usize) -> bool {
    /// By function and twin: not known, no, or yes.
    static FIRST: [AtomicU8; FUNCTIONS.len() * 2] = [const { AtomicU8::new(0) }; FUNCTIONS.len() * 2];
    let (Some(known), Some(function)) = (FIRST.get(number >> 1), FUNCTIONS.get(number >> 2)) else { return false };
    if known.load(Relaxed) == 0 {
        let name = full_name(function, number);
        // SAFETY: it ends in its only zero.
        let plain = unsafe { CStr::from_bytes_with_nul_unchecked(&name[1..]) };
        let is_first = base_of(symbol(libc::RTLD_DEFAULT, plain)) == base_of(is_first as *const () as usize);
        known.store(1 + u8::from(is_first), Relaxed);
    }
    known.load(Relaxed) == 2
}

/// Remembers what was found.
fn remembered(number: usize, address: usize) -> usize {
    let address = if address == 0 { MISSING } else { address };
    if let Some(place) = REAL.get(number) {
        place.store(address, Relaxed);
    }
    address
}

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

/// Finds the functions of the C library, when the library is loaded.
pub(crate) fn prepare() {
    for (index, function) in FUNCTIONS.iter().enumerate().filter(|(_, function)| function.owner == Owner::System) {
        remembered(index * 4, system::next(function.name));
    }
}

#[inline]
fn address(number: usize) -> usize {
    match REAL.get(number).map_or(MISSING, |place| place.load(Relaxed)) {
        0 => resolve(number),
        address => address,
    }
}

/// Whether the MPI has a function, given by the number of a symbol.
pub(crate) fn exists(number: usize) -> bool {
    address(number) > MISSING
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
    /// The error code of MPI and of functions of threads; others have none, or return nothing.
    pub(crate) fn code(&self, function: &Function) -> c_int {
        let has_none = !matches!(function.owner, Owner::Mpi | Owner::System) || function.class.is_of_files();
        if has_none { 0 } else { self.word as c_int }
    }

    fn of_code(code: c_int) -> Self {
        Self {
            word: code as usize,
            #[cfg(target_arch = "x86_64")]
            float: 0.0,
        }
    }
}

/// Calls a function with so many words, and with what goes in a floating-point register.
macro_rules! go {
    ($address:expr, $frame:expr, $($i:literal)*) => {{
        #[cfg(target_arch = "x86_64")]
        let returned = std::mem::transmute::<usize, unsafe extern "C-unwind" fn($(go!(@word $i)),*, f64) -> Returned>($address)(
            $($frame.argument($i)),*, $frame.float()
        );
        #[cfg(not(target_arch = "x86_64"))]
        let returned = std::mem::transmute::<usize, unsafe extern "C-unwind" fn($(go!(@word $i)),*) -> Returned>($address)(
            $($frame.argument($i)),*
        );
        returned
    }};
    (@word $i:literal) => { usize };
}

/// Goes on to the function with the arguments of a call. More words than it has parameters do no harm in the calling conventions
/// that this is for.
pub(crate) fn call(number: usize, frame: Frame) -> Returned {
    let address = address(number);
    if address <= MISSING {
        return missing(number, frame);
    }
    // SAFETY: the address is that of a function with the caller's arguments, as many words as the table says.
    unsafe {
        match FUNCTIONS.get(number >> 2).map_or(0, |function| function.arguments) {
            0..=6 => go!(address, frame, 0 1 2 3 4 5),
            7..=10 => go!(address, frame, 0 1 2 3 4 5 6 7 8 9),
            _ => go!(address, frame, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15),
        }
    }
}

/// Whether an argument is a number of elements that an `int` cannot hold.
fn wide(number: usize, frame: Frame) -> bool {
    FUNCTIONS.get(number >> 2).is_some_and(|function| {
        [Role::Scount, Role::Rcount, Role::Tcount].iter().any(|role| {
            let place = function.roles[*role as usize];
            place != NO && c_int::try_from(frame.word(place).cast_signed()).is_err()
        })
    })
}

/// The MPI has no such function: the plain one stands in for its twin where nothing is lost by it.
#[cold]
fn missing(number: usize, frame: Frame) -> Returned {
    let unsupported = || Returned::of_code(abi::get().unsupported);
    let narrows = FUNCTIONS.get(number >> 2).is_some_and(|function| function.narrows);
    if number & LARGE == 0 {
        return unsupported();
    }
    let plain = number & !LARGE;
    if narrows && exists(plain) && !wide(number, frame) {
        return call(plain, frame);
    }
    // These had functions for large numbers before.
    let older = match number >> 2 {
        of::TYPE_SIZE => of::TYPE_SIZE_X,
        of::TYPE_GET_EXTENT => of::TYPE_GET_EXTENT_X,
        of::TYPE_GET_TRUE_EXTENT => of::TYPE_GET_TRUE_EXTENT_X,
        of::GET_ELEMENTS => of::GET_ELEMENTS_X,
        of::STATUS_SET_ELEMENTS => of::STATUS_SET_ELEMENTS_X,
        _ => return unsupported(),
    };
    let older = older * 4 + (number & PROFILING);
    if exists(older) { call(older, frame) } else { unsupported() }
}

/// Whether [`call`] does not call the very function.
pub(crate) fn falls_back(number: usize) -> bool {
    !exists(number)
}

type Ten = unsafe extern "C-unwind" fn(usize, usize, usize, usize, usize, usize, usize, usize, usize, usize) -> c_int;

/// Calls a function of MPI for the recorder's own sake.
pub(crate) fn own_function<const N: usize>(function: usize, arguments: [usize; N]) -> c_int {
    own_symbol(function * 4 + PROFILING, arguments)
}

/// The same by the number of the symbol.
pub(crate) fn own_symbol<const N: usize>(number: usize, arguments: [usize; N]) -> c_int {
    let address = address(number);
    if address <= MISSING {
        return abi::get().unsupported;
    }
    let a = |i| arguments.get(i).copied().unwrap_or(0);
    // SAFETY: as for `call`.
    unsafe {
        let function = std::mem::transmute::<usize, Ten>(address);
        function(a(0), a(1), a(2), a(3), a(4), a(5), a(6), a(7), a(8), a(9))
    }
}

/// Calls a function of MPI for the recorder's own sake: `own!(COMM_RANK, comm, &raw mut rank)`.
macro_rules! own {
    ($function:ident $(, $argument:expr)* $(,)?) => {
        $crate::real::own_function($crate::table::number::$function, [$(($argument) as usize),*])
    };
}
pub(crate) use own;

/// A loaded object other than MPI that records already.
pub(crate) fn other_recorder() -> Option<String> {
    const NAMES: [&str; 4] = ["libscorep", "libeztrace-", "libmpitrace", "libseqtrace"];
    objects().iter().find_map(|path| {
        let name = path.file_name()?.to_str()?;
        NAMES.iter().any(|prefix| name.starts_with(prefix)).then(|| path.display().to_string())
    })
}

/// What a C string holds.
pub(crate) fn text(address: usize) -> String {
    if address == 0 {
        return String::new();
    }
    // SAFETY: the program passed it to MPI as a string.
    unsafe { CStr::from_ptr(ptr::with_exposed_provenance::<c_char>(address)) }.to_string_lossy().into_owned()
}
