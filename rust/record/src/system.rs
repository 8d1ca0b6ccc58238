//! Functions of the C library, as the recorder's own exports of the same names hide them.
//!
//! The loader's lookups take locks, and allocate when they do not find a name. A hook of the C library must do neither: an allocator calls it with its own
//! lock held, perhaps before any constructor ran. So the symbol tables of the loaded objects are read here, without the loader.

use std::ffi::{CStr, c_char, c_void};
use std::ptr;

/// What the loader tells debuggers of an object. Of its further fields nothing is used.
#[repr(C)]
pub(crate) struct LinkMap {
    base: usize,
    pub(crate) name: *const c_char,
    dynamic: *const Dynamic,
    next: *const LinkMap,
}

/// The loader's list of objects, in the order in which names are looked up.
#[repr(C)]
struct Debug {
    version: i32,
    objects: *const LinkMap,
}

#[repr(C)]
struct Dynamic {
    tag: i64,
    value: usize,
}

unsafe extern "C" {
    /// The loader's own, which debuggers read.
    static _r_debug: Debug;
    /// The dynamic section of this library, which the linker names.
    static _DYNAMIC: Dynamic;
}

/// The next definition of a name after this library, as `dlsym(RTLD_NEXT, ...)` finds it among the objects that were loaded with the program; 0 if
/// there is none.
pub(crate) fn next(name: &CStr) -> usize {
    let mut objects = objects().skip_while(|object| !ptr::eq(object.dynamic, &raw const _DYNAMIC));
    objects.next();
    objects.find_map(|object| Tables::of(object)?.address(name)).unwrap_or(0)
}

/// The first definition of a name; 0 if there is none.
pub(crate) fn first(name: &CStr) -> usize {
    objects().find_map(|object| Tables::of(object)?.address(name)).unwrap_or(0)
}

/// Whether an object is loaded whose file name begins in one of some ways.
pub(crate) fn is_loaded(names: &[&str]) -> bool {
    objects().filter(|object| !object.name.is_null()).any(|object| {
        // SAFETY: the loader's names are strings.
        let path = unsafe { CStr::from_ptr(object.name) }.to_bytes();
        let file = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        names.iter().any(|name| file.starts_with(name.as_bytes()))
    })
}

/// The loaded objects. The list only grows at its end, but for what the program unloads, which are not those it started with.
fn objects() -> impl Iterator<Item = &'static LinkMap> {
    // SAFETY: the loader's own list, which it keeps whole for debuggers.
    let first = unsafe { _r_debug.objects.as_ref() };
    // SAFETY: as above.
    std::iter::successors(first, |object| unsafe { object.next.as_ref() })
}

/// The symbols that an object defines for others.
struct Tables {
    base: usize,
    symbols: *const libc::Elf64_Sym,
    names: *const c_char,
    /// The hash table of GNU's linker.
    hashes: *const u32,
    /// A version for each symbol, if any has one.
    versions: *const u16,
}

/// In the number of a version: it is an old one.
const HIDDEN: u16 = 1 << 15;

impl Tables {
    fn of(object: &LinkMap) -> Option<Self> {
        const DT_NULL: i64 = 0;
        const DT_STRTAB: i64 = 5;
        const DT_SYMTAB: i64 = 6;
        const DT_GNU_HASH: i64 = 0x6fff_fef5;
        const DT_VERSYM: i64 = 0x6fff_fff0;
        let (mut symbols, mut names, mut hashes, mut versions) = (0, 0, 0, 0);
        let mut entry = object.dynamic;
        // SAFETY: the dynamic section of a loaded object ends in an entry of this kind.
        while let Some(&Dynamic { tag, value }) = unsafe { entry.as_ref() }.filter(|entry| entry.tag != DT_NULL) {
            // The loader relocates these, but not in objects that it must not write to.
            let address = if value < object.base { object.base.wrapping_add(value) } else { value };
            match tag {
                DT_STRTAB => names = address,
                DT_SYMTAB => symbols = address,
                DT_GNU_HASH => hashes = address,
                DT_VERSYM => versions = address,
                _ => {}
            }
            entry = entry.wrapping_add(1);
        }
        (symbols != 0 && names != 0 && hashes != 0).then_some(Self {
            base: object.base,
            symbols: symbols as *const libc::Elf64_Sym,
            names: names as *const c_char,
            hashes: hashes as *const u32,
            versions: versions as *const u16,
        })
    }

    /// The address of a function, of the version that is used by default.
    fn address(&self, name: &CStr) -> Option<usize> {
        let hash = hash(name);
        // SAFETY: the tables of a loaded object have this layout; indices come from it.
        unsafe {
            let [buckets, bias, words, _] = *self.hashes.cast::<[u32; 4]>();
            if buckets == 0 {
                return None;
            }
            // Words of 64 bits, which tell most names that are not there, come before the buckets.
            let first_bucket = self.hashes.add(4 + 2 * words as usize);
            let chains = first_bucket.add(buckets as usize);
            let mut index = *first_bucket.add((hash % buckets) as usize);
            while index >= bias {
                let link = *chains.add((index - bias) as usize);
                if link | 1 == hash | 1 && self.is_function(index as usize, name) {
                    return Some(self.base.wrapping_add((*self.symbols.add(index as usize)).st_value as usize));
                }
                if link & 1 == 1 {
                    break;
                }
                index += 1;
            }
        }
        None
    }

    /// # Safety
    /// There must be a symbol of this index.
    unsafe fn is_function(&self, index: usize, name: &CStr) -> bool {
        const STT_FUNC: u8 = 2;
        const STB_LOCAL: u8 = 0;
        // SAFETY: so the caller says.
        unsafe {
            let symbol = &*self.symbols.add(index);
            symbol.st_value != 0
                && symbol.st_shndx != 0
                && symbol.st_info & 15 == STT_FUNC
                && symbol.st_info >> 4 != STB_LOCAL
                && (self.versions.is_null() || *self.versions.add(index) & HIDDEN == 0)
                && CStr::from_ptr(self.names.add(symbol.st_name as usize)) == name
        }
    }
}

/// The hash of a name in tables of GNU's linker.
fn hash(name: &CStr) -> u32 {
    name.to_bytes().iter().fold(5381, |hash: u32, byte| hash.wrapping_mul(33).wrapping_add(u32::from(*byte)))
}

/// What `_dl_find_object` fills in.
#[repr(C)]
pub(crate) struct Found {
    flags: u64,
    start: *mut c_void,
    end: *mut c_void,
    pub(crate) object: *const LinkMap,
    rest: [u64; 9],
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_the_loader(name: &CStr) -> usize {
        // SAFETY: the name is a string.
        unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) as usize }
    }

    #[test]
    fn functions_are_those_that_the_loader_finds() {
        for name in [c"pthread_mutex_lock", c"pthread_cond_wait", c"pthread_cond_clockwait", c"getpid", c"dlsym"] {
            assert_eq!(next(name), by_the_loader(name), "{name:?}");
        }
        assert_eq!((next(c"pthread_no_such_function"), first(c"pthread_no_such_function")), (0, 0));
    }

    #[test]
    fn hashes_are_those_of_the_linker() {
        // The examples of the description of the format.
        assert_eq!((hash(c""), hash(c"printf"), hash(c"exit")), (0x1505, 0x156b_2bb8, 0x7c96_7e3f));
    }
}
