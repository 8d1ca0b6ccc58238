//! The loaded MPI library, and what else is loaded.

use std::ffi::{CStr, CString, OsStr, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A loaded library.
pub(crate) struct Library {
    pub(crate) handle: usize,
    /// Where it is loaded.
    pub(crate) base: usize,
    pub(crate) path: PathBuf,
    /// Another MPI that is loaded as well.
    pub(crate) rival: Option<PathBuf>,
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

/// The address of a symbol; 0 if there is none.
pub(crate) fn symbol(handle: *mut c_void, name: &CStr) -> usize {
    // SAFETY: handles come from the loader.
    unsafe { libc::dlsym(handle, name.as_ptr()) as usize }
}

/// Where the object is loaded that an address belongs to.
pub(crate) fn base_of(address: usize) -> usize {
    // SAFETY: an empty record, which `dladdr` fills in.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is valid.
    let found = unsafe { libc::dladdr(address as *const c_void, &raw mut info) };
    if found == 0 { 0 } else { info.dli_fbase as usize }
}

/// Looks for an object that is named as MPI's library and defines its functions itself.
pub(crate) fn find() -> Option<Library> {
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

/// A loaded object other than MPI that records already.
pub(crate) fn other_recorder() -> Option<String> {
    const NAMES: [&str; 4] = ["libscorep", "libeztrace-", "libmpitrace", "libseqtrace"];
    objects().iter().find_map(|path| {
        let name = path.file_name()?.to_str()?;
        NAMES.iter().any(|prefix| name.starts_with(prefix)).then(|| path.display().to_string())
    })
}
