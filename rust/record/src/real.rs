//! The program's MPI library, and the functions of it that calls go on to.
//!
//! The recorder has no undefined symbol of MPI: a library that was loaded with local scope, as Python loads it, could not resolve one.

use crate::abi;
use crate::frame::{Frame, Returned};
use crate::library::{Library, base_of, find, symbol};
use crate::system;
use crate::table::{FUNCTIONS, Function, LARGE, NO, Owner, PROFILING, Role, number as of};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering::Relaxed};

/// Addresses of the functions behind the symbols: 0 if not yet looked up, [`MISSING`] if there is none.
static REAL: [AtomicUsize; FUNCTIONS.len() * 4] = [const { AtomicUsize::new(0) }; FUNCTIONS.len() * 4];
const MISSING: usize = 1;

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
pub(crate) fn remembered(number: usize, address: usize) -> usize {
    let address = if address == 0 { MISSING } else { address };
    if let Some(place) = REAL.get(number) {
        place.store(address, Relaxed);
    }
    address
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

/// What a C string holds.
pub(crate) fn text(address: usize) -> String {
    if address == 0 {
        return String::new();
    }
    // SAFETY: the program passed it to MPI as a string.
    unsafe { CStr::from_ptr(ptr::with_exposed_provenance::<c_char>(address)) }.to_string_lossy().into_owned()
}
