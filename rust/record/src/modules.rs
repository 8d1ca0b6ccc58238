//! Loaded objects: how to unwind their frames.
//!
//! Unwind tables are read from the files and not from the program's memory, so that an object that is unloaded cannot pull them away.

use crate::clock::now;
use crate::fault::Uncancelled;
use crate::format::{Entry, PAGE};
use crate::spool::Payload;
use crate::state;
use framehop::{ExplicitModuleSectionInfo, Module, MustNotAllocateDuringUnwind, Unwinder, UnwinderNative};
use std::ffi::{CStr, OsStr, c_int, c_void};
use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, Ordering};

/// What is known of the loaded objects at a time.
pub(crate) struct Modules {
    pub(crate) unwinder: UnwinderNative<&'static [u8], MustNotAllocateDuringUnwind>,
    /// Ranges of addresses, ascending, and the paths of their files: empty for the program itself.
    ranges: Vec<(Range<usize>, PathBuf)>,
    /// The loader's counts of what it loaded and unloaded.
    counts: (u64, u64),
}

static CURRENT: AtomicPtr<Modules> = AtomicPtr::new(std::ptr::null_mut());
static LISTING: Mutex<()> = Mutex::new(());

/// An object as the loader describes it.
struct Object {
    path: PathBuf,
    base: usize,
    range: Range<usize>,
    build_id: Vec<u8>,
    /// Addresses in the file's own numbering, and where they are in the file: loadable segments.
    segments: Vec<(Range<u64>, u64)>,
    /// Of `.eh_frame_hdr`.
    header: Option<Range<u64>>,
}

impl Modules {
    fn find(&self, address: usize) -> Option<&(Range<usize>, PathBuf)> {
        let after = self.ranges.partition_point(|(range, _)| range.start <= address);
        after.checked_sub(1).and_then(|at| self.ranges.get(at)).filter(|(range, _)| range.contains(&address))
    }

    /// The object that an address is in.
    pub(crate) fn range_of(&self, address: usize) -> Option<Range<usize>> {
        self.find(address).map(|(range, _)| range.clone())
    }

    /// The path of its file; empty for the program itself.
    pub(crate) fn path_of(&self, address: usize) -> Option<&Path> {
        self.find(address).map(|(_, path)| path.as_path())
    }

    /// Whether an address is in a known object.
    pub(crate) fn knows(&self, address: usize) -> bool {
        self.range_of(address).is_some()
    }
}

/// The objects listed last.
pub(crate) fn current() -> Option<&'static Modules> {
    // SAFETY: null, or leaked by `list`.
    unsafe { CURRENT.load(Ordering::Acquire).as_ref() }
}

/// Lists the objects again if the loader changed anything since.
#[cold]
pub(crate) fn refreshed() -> Option<&'static Modules> {
    let _uncancelled = Uncancelled::new();
    let _one = LISTING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let old = current();
    if old.is_none_or(|old| old.counts != counts()) {
        let new = list(old);
        CURRENT.store(Box::into_raw(Box::new(new)), Ordering::Release);
    }
    current()
}

fn counts() -> (u64, u64) {
    unsafe extern "C" fn read(info: *mut libc::dl_phdr_info, _: usize, counts: *mut c_void) -> c_int {
        // SAFETY: the loader passes a valid description, and `counts` is the pair below.
        unsafe { *counts.cast() = ((*info).dlpi_adds, (*info).dlpi_subs) };
        1
    }
    let mut counts = (0_u64, 0_u64);
    // SAFETY: the callback gets the pair that it expects.
    unsafe { libc::dl_iterate_phdr(Some(read), (&raw mut counts).cast()) };
    counts
}

fn objects() -> Vec<Object> {
    unsafe extern "C" fn add(info: *mut libc::dl_phdr_info, _: usize, list: *mut c_void) -> c_int {
        // SAFETY: the loader passes a valid description, and `list` is the vector below.
        unsafe { (*list.cast::<Vec<Object>>()).extend(describe(&*info)) };
        0
    }
    let mut list: Vec<Object> = Vec::new();
    // SAFETY: the callback gets the vector that it expects.
    unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut list).cast()) };
    list
}

/// # Safety
/// The description must be the loader's.
unsafe fn describe(info: &libc::dl_phdr_info) -> Option<Object> {
    let base = info.dlpi_addr as usize;
    // SAFETY: the loader's table of headers, and its names, are valid.
    let (headers, name) = unsafe {
        let name = if info.dlpi_name.is_null() { c"" } else { CStr::from_ptr(info.dlpi_name) };
        (std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)), name)
    };
    let mut object = Object {
        path: PathBuf::from(OsStr::from_bytes(name.to_bytes())),
        base,
        range: 0..0,
        build_id: Vec::new(),
        segments: Vec::new(),
        header: None,
    };
    let loaded = |header: &libc::Elf64_Phdr| {
        headers.iter().any(|load| {
            load.p_type == libc::PT_LOAD
                && header.p_vaddr >= load.p_vaddr
                && header.p_vaddr.wrapping_add(header.p_memsz) <= load.p_vaddr.wrapping_add(load.p_memsz)
        })
    };
    for header in headers {
        let range = header.p_vaddr..header.p_vaddr.wrapping_add(header.p_memsz);
        match header.p_type {
            libc::PT_LOAD => {
                object.segments.push((header.p_vaddr..header.p_vaddr.wrapping_add(header.p_filesz), header.p_offset));
                if header.p_flags & libc::PF_X != 0 {
                    let code = base.wrapping_add(range.start as usize)..base.wrapping_add(range.end as usize);
                    object.range = match object.range {
                        none if none.is_empty() => code,
                        known => known.start.min(code.start)..known.end.max(code.end),
                    };
                }
            }
            libc::PT_GNU_EH_FRAME => object.header = Some(range),
            libc::PT_NOTE if loaded(header) => {
                let start = base.wrapping_add(header.p_vaddr as usize) as *const u8;
                // SAFETY: these notes lie in a loaded segment.
                let notes = unsafe { std::slice::from_raw_parts(start, header.p_memsz as usize) };
                object.build_id = build_id(notes).unwrap_or(object.build_id);
            }
            _ => {}
        }
    }
    (!object.range.is_empty()).then_some(object)
}

/// The build id among notes.
fn build_id(mut notes: &[u8]) -> Option<Vec<u8>> {
    const BUILD_ID: u32 = 3;
    loop {
        let word = |at: usize| Some(u32::from_le_bytes(notes.get(at..at + 4)?.try_into().ok()?));
        let (name, content, kind) = (word(0)? as usize, word(4)? as usize, word(8)?);
        let start = 12 + name.next_multiple_of(4);
        if kind == BUILD_ID && notes.get(12..12 + name)? == b"GNU\0" {
            return notes.get(start..start + content).map(<[u8]>::to_vec);
        }
        notes = notes.get(start + content.next_multiple_of(4)..)?;
    }
}

/// What the loader calls the functions that the kernel maps into each process. There is no such file.
const VDSO: &str = "linux-vdso.so.1";

/// The bytes of an object's file from an address in the file's numbering to the end of its segment, mapped for good. The rest of the file may be large,
/// and the program's address space limited.
fn mapped(object: &Object, address: u64) -> Option<&'static [u8]> {
    let (range, offset) = object.segments.iter().find(|(range, _)| range.contains(&address))?;
    if object.path.as_os_str() == VDSO {
        // SAFETY: the kernel's own code, which it maps into each process for good.
        return Some(unsafe {
            let length = (range.end - address) as usize;
            std::slice::from_raw_parts(object.base.wrapping_add(address as usize) as *const u8, length)
        });
    }
    let path = if object.path.as_os_str().is_empty() { Path::new("/proc/self/exe") } else { &object.path };
    let file = File::open(path).ok()?;
    let from = offset + (address - range.start);
    let end = (offset + (range.end - range.start)).min(file.metadata().ok()?.len());
    let page = from - from % PAGE as u64;
    let length = usize::try_from(end.checked_sub(page)?).ok()?;
    // SAFETY: a new private mapping of a file.
    let bytes = unsafe {
        let fd = file.as_raw_fd();
        let at = libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ, libc::MAP_PRIVATE, fd, page as libc::off_t);
        (at != libc::MAP_FAILED).then(|| std::slice::from_raw_parts(at.cast::<u8>(), length))
    };
    bytes?.get((from - page) as usize..)
}

/// Where `.eh_frame` is, by the beginning of `.eh_frame_hdr`.
fn eh_frame(header: &[u8], address: u64) -> Option<u64> {
    // Version 1, and the encoding that linkers use: relative to the field, 4 bytes, signed.
    if header.get(..2)? != [1, 0x1b] {
        return None;
    }
    let offset = i32::from_le_bytes(header.get(4..8)?.try_into().ok()?);
    Some(address.wrapping_add(4).wrapping_add_signed(i64::from(offset)))
}

/// What framehop needs of an object.
fn module(object: &Object) -> Option<Module<&'static [u8]>> {
    let address = object.header.clone()?;
    let from_header = mapped(object, address.start)?;
    let header = from_header.get(..(address.end - address.start) as usize).unwrap_or(from_header);
    let frames_at = eh_frame(header, address.start)?;
    // They mostly follow their header.
    let after = frames_at.checked_sub(address.start).and_then(|distance| from_header.get(distance as usize..));
    let frames = after.filter(|frames| !frames.is_empty()).or_else(|| mapped(object, frames_at))?;
    let sections = ExplicitModuleSectionInfo {
        base_svma: 0,
        eh_frame_svma: Some(frames_at..frames_at + frames.len() as u64),
        eh_frame: Some(frames),
        eh_frame_hdr_svma: Some(address),
        eh_frame_hdr: Some(header),
        ..ExplicitModuleSectionInfo::default()
    };
    let range = object.range.start as u64..object.range.end as u64;
    Some(Module::new(String::new(), range, object.base as u64, sections))
}

/// Lists all objects; those that are new become definitions.
fn list(old: Option<&Modules>) -> Modules {
    let counts = counts();
    let mut unwinder = UnwinderNative::new();
    let mut ranges = Vec::new();
    let time = now();
    for object in objects() {
        ranges.push((object.range.clone(), object.path.clone()));
        if let Some(module) = module(&object) {
            unwinder.add_module(module);
        }
        if old.is_none_or(|old| !old.ranges.iter().any(|(range, _)| *range == object.range) || old.counts.1 != counts.1)
        {
            let payload = Payload::default()
                .u64(time)
                .u64(object.base as u64)
                .u64(object.range.start as u64)
                .u64(object.range.end as u64)
                .text(&object.build_id)
                .text(object.path.as_os_str().as_bytes());
            state::define(Entry::Module, &payload);
        }
    }
    ranges.sort_by_key(|(range, _)| range.start);
    Modules { unwinder, ranges, counts }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_ids_are_found_among_notes() {
        let mut notes = Vec::new();
        for (kind, content) in [(1_u32, &[1_u8; 16][..]), (3, &[7; 20])] {
            notes.extend_from_slice(&4_u32.to_le_bytes());
            notes.extend_from_slice(&(content.len() as u32).to_le_bytes());
            notes.extend_from_slice(&kind.to_le_bytes());
            notes.extend_from_slice(b"GNU\0");
            notes.extend_from_slice(content);
        }
        assert_eq!(build_id(&notes), Some(vec![7; 20]));
        assert_eq!(build_id(&notes[..40]), None);
    }

    #[test]
    fn this_program_is_known() {
        let modules = list(None);
        assert!(modules.knows(this_program_is_known as *const () as usize));
        assert!(!modules.knows(8));
        let name = |address| modules.path_of(address).and_then(Path::file_name).unwrap_or_default().to_owned();
        assert!(name(libc::getpid as *const () as usize).to_string_lossy().starts_with("libc."));
        assert_eq!(modules.path_of(this_program_is_known as *const () as usize), Some(Path::new("")));
    }
}
