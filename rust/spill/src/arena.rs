//! Large blocks in a mapped file, and the thread that keeps the process below its limit.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::extents::Extents;
use crate::resident::resident;
use crate::{Error, Limit};

/// Sizes of blocks are multiples of this, and it is the largest alignment of a block in the file. It need not be the
/// size of a page: pages are dropped by [`SLICE`], whatever blocks they hold.
const UNIT: usize = 4096;
/// Smallest block that goes to the file.
const LARGE: usize = 16 << 10;
/// Size of the reserved address range; the file is only as long as what is in use.
const SPAN: usize = 4 << 40;
/// The file grows in steps of this size.
const STEP: usize = 64 << 20;
/// Bytes that are dropped from memory at a time.
const SLICE: usize = 16 << 20;
/// Rough upper bound of the bytes that threads bring into memory in a microsecond; decides how often to check.
const PAGING_RATE: u64 = 8 << 10;

/// Bytes that threads may bring in before the watching thread is scheduled on a busy machine.
const LAG: u64 = 128 << 20;

/// First address of the blocks; 0 before the first limit.
static BASE: AtomicUsize = AtomicUsize::new(0);
/// The process that made the mapping: a forked child must not change what it shares with its parent.
static OWNER: AtomicU32 = AtomicU32::new(0);
/// The limit in bytes; 0 without one.
static LIMIT: AtomicU64 = AtomicU64::new(0);
/// The system's error number if the file could not grow, else 0.
static FAILURE: AtomicI32 = AtomicI32::new(0);
/// Whether the watching thread runs.
static WATCHED: AtomicBool = AtomicBool::new(false);
static ARENA: Mutex<Option<Arena>> = Mutex::new(None);
/// End of the last block in the file; 0 if there is none.
static END: AtomicUsize = AtomicUsize::new(0);
/// The next slice to drop, round-robin over the file. The watching thread takes no lock: it must not wait for a thread
/// that is itself not scheduled.
static HAND: AtomicUsize = AtomicUsize::new(0);

/// The file and its free space.
#[derive(Debug)]
struct Arena {
    directory: PathBuf,
    file: File,
    /// Bytes reserved on disk.
    reserved: usize,
    extents: Extents,
}

fn arena() -> MutexGuard<'static, Option<Arena>> {
    ARENA.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Arena {
    /// Creates the file and maps it to the reserved addresses.
    fn open(directory: &Path) -> Result<Self, Error> {
        let unusable = |source| Error::Directory { directory: directory.to_owned(), source };
        let file = unlinked(directory).map_err(unusable)?;
        if is_in_memory(&file).map_err(unusable)? {
            return Err(Error::InMemory(directory.to_owned()));
        }
        let (address, fixed) = match BASE.load(Ordering::Relaxed) {
            0 => (0, 0),
            base => (base, libc::MAP_FIXED),
        };
        // SAFETY: either the kernel chooses a range of addresses, or the mapping replaces our own of the same size, in
        // which there is no block.
        let mapped = unsafe {
            libc::mmap(
                ptr::with_exposed_provenance_mut(address),
                SPAN,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_NORESERVE | fixed,
                file.as_raw_fd(),
                0,
            )
        };
        if mapped == libc::MAP_FAILED {
            return Err(unusable(io::Error::last_os_error()));
        }
        BASE.store(mapped.expose_provenance(), Ordering::Release);
        OWNER.store(std::process::id(), Ordering::Release);
        Ok(Self { directory: directory.to_owned(), file, reserved: 0, extents: Extents::new(SPAN) })
    }

    /// Allocates `size` bytes, anywhere or at offset `at`, and returns the offset.
    fn take(&mut self, size: usize, at: Option<usize>) -> Option<usize> {
        let offset = match at {
            None => self.extents.take(size)?,
            Some(offset) => self.extents.take_at(offset..offset + size).then_some(offset)?,
        };
        if let Err(error) = self.reserve(offset + size) {
            FAILURE.store(error.raw_os_error().unwrap_or(libc::EIO), Ordering::Relaxed);
            self.extents.give(offset..offset + size);
            return None;
        }
        END.store(self.extents.end(), Ordering::SeqCst);
        Some(offset)
    }

    /// Reserves disk space, so that no later access can fail for lack of it.
    fn reserve(&mut self, end: usize) -> io::Result<()> {
        if end > self.reserved {
            // If a whole step does not fit on the disk, the exact size may.
            let step = end.next_multiple_of(STEP);
            let reserved = allocate(&self.file, self.reserved, step).map(|()| step);
            self.reserved = reserved.or_else(|_| allocate(&self.file, self.reserved, end).map(|()| end))?;
        }
        Ok(())
    }

    /// Frees a part of the file. The disk space stays reserved until the file is empty, because many kernels write pages
    /// before they punch a hole into them.
    fn give(&mut self, part: Range<usize>) {
        self.extents.give(part);
        let end = self.extents.end();
        END.store(end, Ordering::SeqCst);
        if end == 0 && self.file.set_len(0).is_ok() {
            self.reserved = 0;
        }
    }
}

/// Sets or removes the memory limit of the process. Blocks that are in the file stay there.
pub fn limit(limit: Option<Limit>) -> Result<(), Error> {
    let Some(Limit { bytes, directory }) = limit else {
        LIMIT.store(0, Ordering::Relaxed);
        return Ok(());
    };
    {
        let mut arena = arena();
        let (empty, own) = (END.load(Ordering::SeqCst) == 0, OWNER.load(Ordering::Acquire) == std::process::id());
        match &*arena {
            Some(arena) if !empty && own && arena.directory == directory => {}
            _ if !empty => return Err(Error::InUse(directory)),
            _ => {
                *arena = Some(Arena::open(&directory)?);
                // Threads do not survive a fork.
                WATCHED.fetch_and(own, Ordering::SeqCst);
            }
        }
    }
    FAILURE.store(0, Ordering::Relaxed);
    LIMIT.store(bytes, Ordering::SeqCst);
    if !WATCHED.swap(true, Ordering::SeqCst) {
        let watcher = thread::Builder::new().name("whywait-memory".to_owned()).spawn(watch);
        watcher.map_err(|source| Error::Directory { directory, source })?;
    }
    Ok(())
}

/// Whether there is a limit.
pub(crate) fn is_limited() -> bool {
    LIMIT.load(Ordering::Relaxed) > 0
}

/// Directory and error of a block that could not be put into the file since the last [`limit`]. The block is in memory
/// instead, so only the limit is broken; the caller should end.
pub fn failure() -> Option<(PathBuf, io::Error)> {
    match FAILURE.load(Ordering::Relaxed) {
        0 => None,
        number => Some((arena().as_ref()?.directory.clone(), io::Error::from_raw_os_error(number))),
    }
}

/// An unlinked file, which disappears with the process.
fn unlinked(directory: &Path) -> io::Result<File> {
    let path = directory.join(format!(".whywait-{}.spill", std::process::id()));
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

fn is_in_memory(file: &File) -> io::Result<bool> {
    let mut found = std::mem::MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the descriptor is open, and the structure is the system's own.
    if unsafe { libc::fstatfs(file.as_raw_fd(), found.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has filled it.
    let kind = unsafe { found.assume_init() }.f_type;
    Ok([0x0102_1994, 0x8584_58F6].contains(&(kind as u64)))
}

/// Reserves space on the disk.
fn allocate(file: &File, from: usize, to: usize) -> io::Result<()> {
    loop {
        // SAFETY: the call only changes the size of the file.
        match unsafe { libc::posix_fallocate64(file.as_raw_fd(), from as i64, (to - from) as i64) } {
            0 => return Ok(()),
            libc::EINTR => {}
            number => return Err(io::Error::from_raw_os_error(number)),
        }
    }
}

/// Enforces the limit while there is one, or while anything is in the file.
fn watch() {
    ask_for_short_turns();
    loop {
        let room = keep();
        if is_idle() {
            WATCHED.store(false, Ordering::SeqCst);
            // A limit set in between relied on this thread.
            if is_idle() || WATCHED.swap(true, Ordering::SeqCst) {
                return;
            }
        }
        // Until the next check, threads cannot bring in more than there is room for.
        thread::sleep(Duration::from_micros((room / PAGING_RATE).clamp(500, 50_000)));
    }
}

/// Asks for short time slices, so that the scheduler runs this thread sooner. Older kernels ignore the request.
fn ask_for_short_turns() {
    // SAFETY: zeros are a value of this structure.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    attributes.size = size_of::<libc::sched_attr>() as u32;
    attributes.sched_runtime = 100_000;
    // SAFETY: the call only reads the structure, and only changes the scheduling of this thread.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
}

/// Whether there is no limit and the file is empty.
fn is_idle() -> bool {
    LIMIT.load(Ordering::SeqCst) == 0 && END.load(Ordering::SeqCst) == 0
}

/// Drops pages if the process is near the limit; returns by how many bytes it may grow before the next check.
fn keep() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(u64::MAX);
    let limit = match LIMIT.load(Ordering::Relaxed) {
        0 => LAST.load(Ordering::Relaxed),
        limit => {
            LAST.store(limit, Ordering::Relaxed);
            limit
        }
    };
    let Some(now) = resident() else { return u64::MAX };
    // Other threads continue while this one waits to be scheduled.
    let high = limit - (limit / 4).max(LAG).min(limit / 2);
    let low = high / 4;
    if now <= high {
        return high - now;
    }
    let slices = END.load(Ordering::Relaxed).div_ceil(SLICE);
    let base = BASE.load(Ordering::Acquire);
    for _ in 0..slices {
        let slice = HAND.fetch_add(1, Ordering::Relaxed) % slices;
        // SAFETY: the pages belong to a shared mapping of a file, which keeps their content.
        unsafe { libc::madvise(ptr::with_exposed_provenance_mut(base + slice * SLICE), SLICE, libc::MADV_DONTNEED) };
        if resident().is_none_or(|now| now <= low) {
            break;
        }
    }
    0
}

/// The system's allocator for small blocks, and for large ones without a limit.
#[derive(Debug)]
pub struct Allocator;

impl Allocator {
    /// Whether large blocks go to the file.
    fn spills() -> bool {
        is_limited() && OWNER.load(Ordering::Acquire) == std::process::id()
    }

    /// An uninitialized block in the file; `None` if the block belongs elsewhere.
    fn spill(layout: Layout) -> Option<*mut u8> {
        if layout.size() < LARGE || layout.align() > UNIT || !Self::spills() {
            return None;
        }
        let offset = arena().as_mut()?.take(rounded(layout.size()), None)?;
        keep();
        Some(ptr::with_exposed_provenance_mut(BASE.load(Ordering::Acquire) + offset))
    }

    /// Offset of a block in the file, if it is there.
    fn offset(block: *mut u8) -> Option<usize> {
        let base = BASE.load(Ordering::Acquire);
        block.addr().checked_sub(base).filter(|&offset| base != 0 && offset < SPAN)
    }

    /// Frees a part of the file.
    fn give_back(part: Range<usize>) {
        // A forked child must not touch the blocks of its parent.
        if !part.is_empty()
            && OWNER.load(Ordering::Acquire) == std::process::id()
            && let Some(arena) = arena().as_mut()
        {
            arena.give(part);
        }
    }

    /// Resizes a block of the file in place, if there is room.
    fn resize(offset: usize, old: usize, new: usize) -> bool {
        let (old, new) = (offset + rounded(old), offset + rounded(new));
        if new > old {
            return Self::spills() && arena().as_mut().is_some_and(|arena| arena.take(new - old, Some(old)).is_some());
        }
        Self::give_back(new..old);
        true
    }
}

fn rounded(size: usize) -> usize {
    size.next_multiple_of(UNIT)
}

// SAFETY: a block in the file is a range of our mapping that no other block overlaps, with reserved disk space. Any other
// block is the system's.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's obligations are the same.
        Self::spill(layout).unwrap_or_else(|| unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match Self::spill(layout) {
            Some(block) => {
                // SAFETY: the block has at least this many bytes.
                unsafe { ptr::write_bytes(block, 0, layout.size()) };
                block
            }
            // SAFETY: the caller's obligations are the same.
            None => unsafe { System.alloc_zeroed(layout) },
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match Self::offset(block) {
            Some(offset) => Self::give_back(offset..offset + rounded(layout.size())),
            // SAFETY: the block came from the system.
            None => unsafe { System.dealloc(block, layout) },
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller guarantees that the size, rounded up to the alignment, does not overflow.
        let new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        let copied = match Self::offset(block) {
            Some(offset) if Self::resize(offset, layout.size(), size) => return block,
            // SAFETY: the caller's obligations are the same.
            Some(_) => unsafe { self.alloc(new) },
            None => match Self::spill(new) {
                Some(copied) => copied,
                // SAFETY: the block came from the system.
                None => return unsafe { System.realloc(block, layout, size) },
            },
        };
        if !copied.is_null() {
            // SAFETY: the blocks are distinct, and both have at least this many bytes.
            unsafe { ptr::copy_nonoverlapping(block, copied, layout.size().min(size)) };
            // SAFETY: the caller gives up the block.
            unsafe { self.dealloc(block, layout) };
        }
        copied
    }
}
