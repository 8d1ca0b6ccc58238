//! The files of the spool: definitions, and chunks of slots mapped into memory.
//!
//! They are open only while something is done to them: so the program's own descriptors have the numbers that they have without the recorder, and a
//! program that closes all that it finds closes none of ours.

use crate::format::{
    CHUNK, DEFINITIONS_MAGIC, DefinitionsHeader, Entry, FileHeader, Mechanism, PAGE, SAMPLES_CHUNK, SAMPLES_MAGIC,
    SLOTS_MAGIC, SamplesHeader, VERSION,
};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};

/// The spool of this process.
pub(crate) struct Spool {
    directory: PathBuf,
    /// Where the files belong, if they are kept on the node at first.
    pub(crate) home: PathBuf,
    pub(crate) pid: u32,
    run: [u8; 16],
    pub(crate) rank: u32,
    pub(crate) size: u32,
    limit: u64,
    taken: AtomicU64,
    /// Path of the file of definitions; entries are written one at a time.
    definitions: Mutex<PathBuf>,
}

static SPOOL: OnceLock<Spool> = OnceLock::new();

/// The spool, once there is one.
pub(crate) fn get() -> Option<&'static Spool> {
    SPOOL.get()
}

/// Why there is no further chunk.
#[derive(Debug)]
pub(crate) enum Stop {
    Limit,
    Error(io::Error),
}

/// A header as it is written.
fn bytes_of<T: Copy>(value: &T) -> &[u8] {
    // SAFETY: the headers have no padding.
    unsafe { std::slice::from_raw_parts((&raw const *value).cast::<u8>(), size_of::<T>()) }
}

impl Spool {
    /// Makes the file of definitions.
    pub(crate) fn create(
        directory: PathBuf,
        home: PathBuf,
        run: [u8; 16],
        rank: u32,
        size: u32,
        limit: u64,
    ) -> io::Result<&'static Self> {
        let path = directory.join(format!("{rank}.wwd"));
        let mut file = OpenOptions::new().append(true).create_new(true).open(&path)?;
        check_limit(size_of::<DefinitionsHeader>() as u64)?;
        let header = DefinitionsHeader { magic: DEFINITIONS_MAGIC, version: VERSION, run, rank, unused: 0 };
        file.write_all(bytes_of(&header))?;
        let (pid, taken) = (std::process::id(), AtomicU64::new(0));
        let spool = Self { directory, home, pid, run, rank, size, limit, taken, definitions: Mutex::new(path) };
        Ok(SPOOL.get_or_init(|| spool))
    }

    /// Appends an entry, by one write.
    pub(crate) fn define(&self, kind: Entry, Payload(payload): &Payload) -> io::Result<()> {
        let kind = kind as u32;
        let mut entry = Vec::with_capacity(12 + payload.len());
        let crc = crc32(crc32(0, &kind.to_le_bytes()), payload);
        for word in [payload.len() as u32, crc, kind] {
            entry.extend_from_slice(&word.to_le_bytes());
        }
        entry.extend_from_slice(payload);
        let path = self.definitions.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut file = OpenOptions::new().append(true).open(&*path)?;
        check_limit(file.metadata()?.len() + entry.len() as u64)?;
        file.write_all(&entry)
    }
}

/// An error if the process may not make a file so long (`ulimit -f`). Whoever tries gets a signal that ends the program.
fn check_limit(length: u64) -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: it writes to the structure only.
    let is_known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) } == 0;
    if is_known && length > limit.rlim_cur { Err(io::Error::from_raw_os_error(libc::EFBIG)) } else { Ok(()) }
}

/// CRC-32 of IEEE 802.3, continued from that of what came before. Entries are few and short: no table is worth it.
fn crc32(before: u32, bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| (crc >> 1) ^ (0xedb8_8320 & 0_u32.wrapping_sub(crc & 1));
    !bytes.iter().fold(!before, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}

/// Moves the files of the process to the archive, if they are elsewhere; they stay where they are if that fails.
pub(crate) fn move_home() {
    let Some(spool) = get().filter(|spool| spool.directory != spool.home) else { return };
    let own = |name: &str| name.strip_prefix(&spool.rank.to_string()).is_some_and(|rest| rest.starts_with('.'));
    let moved =
        std::fs::create_dir_all(&spool.home).and_then(|()| std::fs::read_dir(&spool.directory)).and_then(|entries| {
            for entry in entries {
                let entry = entry?;
                if entry.file_name().to_str().is_some_and(own) {
                    std::fs::copy(entry.path(), spool.home.join(entry.file_name()))?;
                    std::fs::remove_file(entry.path())?;
                }
            }
            // The last one to leave removes the directory.
            let _ = std::fs::remove_dir(&spool.directory);
            Ok(())
        });
    if let Err(error) = moved {
        crate::fault::say(&format!("rank {}'s spool stays in {}: {error}", spool.rank, spool.directory.display()));
    }
}

/// The payload of an entry.
#[derive(Default)]
pub(crate) struct Payload(Vec<u8>);

impl Payload {
    pub(crate) fn u32(mut self, value: u32) -> Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(crate) fn i32(self, value: i32) -> Self {
        self.u32(value.cast_unsigned())
    }

    pub(crate) fn u64(mut self, value: u64) -> Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(crate) fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn text(self, text: impl AsRef<[u8]>) -> Self {
        let bytes = text.as_ref();
        self.u32(bytes.len() as u32).raw(bytes)
    }
}

/// A file of slots of one thread, which grows by chunks.
#[derive(Debug)]
pub(crate) struct Slots {
    path: PathBuf,
    /// Bytes of a chunk.
    size: usize,
    /// Chunks that the file has.
    chunks: u64,
}

/// A mapped chunk; it is unmapped by [`unmap`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk {
    pub(crate) address: *mut u8,
    pub(crate) size: usize,
}

// SAFETY: a chunk belongs to the thread that has it.
unsafe impl Send for Chunk {}

impl Slots {
    /// Makes the file of a thread's calls, with its header.
    pub(crate) fn create(spool: &Spool, thread: u32) -> io::Result<Self> {
        Self::with_header(spool, thread, "wws", CHUNK, &header(spool, SLOTS_MAGIC, thread))
    }

    /// A file that is not there.
    #[cfg(test)]
    pub(crate) fn nowhere() -> Self {
        Self { path: PathBuf::new(), size: SAMPLES_CHUNK, chunks: 0 }
    }

    /// Makes the file of a thread's samples.
    pub(crate) fn of_samples(spool: &Spool, thread: u32, mechanism: Mechanism, period: u64) -> io::Result<Self> {
        let file = header(spool, SAMPLES_MAGIC, thread);
        let header = SamplesHeader { file, mechanism: mechanism as u32, unused: 0, period };
        Self::with_header(spool, thread, "wwp", SAMPLES_CHUNK, &header)
    }

    fn with_header<T: Copy>(spool: &Spool, thread: u32, kind: &str, size: usize, header: &T) -> io::Result<Self> {
        let path = spool.directory.join(format!("{}.{thread}.{kind}", spool.rank));
        let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
        check_limit(size_of::<T>() as u64)?;
        file.write_all(bytes_of(header))?;
        Ok(Self { path, size, chunks: 0 })
    }

    /// Adds a chunk to the file and maps it. Its space is reserved first: a file with holes, mapped and written on a full file system, kills the
    /// program.
    pub(crate) fn chunk(&mut self, spool: &Spool) -> Result<Chunk, Stop> {
        let size = self.size as u64;
        if spool.taken.fetch_add(size, Relaxed) + size > spool.limit {
            spool.taken.fetch_sub(size, Relaxed);
            return Err(Stop::Limit);
        }
        let offset = PAGE as u64 + self.chunks * size;
        check_limit(offset + size).map_err(Stop::Error)?;
        let offset = offset as libc::off_t;
        let file = OpenOptions::new().read(true).write(true).open(&self.path).map_err(Stop::Error)?;
        let fd = file.as_raw_fd();
        // SAFETY: the file is open.
        match unsafe { libc::posix_fallocate(fd, offset, self.size as libc::off_t) } {
            0 => {}
            // Containers may refuse the system call.
            libc::EPERM | libc::ENOSYS => fill(&file, offset as u64, self.size).map_err(Stop::Error)?,
            code => return Err(Stop::Error(io::Error::from_raw_os_error(code))),
        }
        // SAFETY: a new mapping of the file just extended.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                self.size,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                fd,
                offset,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(Stop::Error(io::Error::last_os_error()));
        }
        self.chunks += 1;
        Ok(Chunk { address: address.cast(), size: self.size })
    }

    /// Cuts the file after the slots used, when the thread ends.
    pub(crate) fn close(&self, unused: usize) {
        let length = PAGE as u64 + (self.chunks * self.size as u64).saturating_sub(unused as u64);
        // Only a matter of space.
        let _ = OpenOptions::new().write(true).open(&self.path).and_then(|file| file.set_len(length));
    }
}

fn header(spool: &Spool, magic: [u8; 4], thread: u32) -> FileHeader {
    // SAFETY: these calls cannot fail.
    let (pid, tid) = unsafe { (libc::getpid(), libc::gettid()) };
    let (pid, tid) = (pid.cast_unsigned(), tid.cast_unsigned());
    FileHeader { magic, version: VERSION, run: spool.run, rank: spool.rank, thread, pid, tid }
}

/// Writes zeros where a chunk will be.
fn fill(file: &File, offset: u64, size: usize) -> io::Result<()> {
    static ZEROS: [u8; 16 * PAGE] = [0; 16 * PAGE];
    (0..size / ZEROS.len()).try_for_each(|part| file.write_all_at(&ZEROS, offset + (part * ZEROS.len()) as u64))
}

/// Makes the pages of a chunk ready for writing, which on the first write would cost more than all that is written to them.
/// Kernels before 5.14 do not know this, and nothing is lost.
pub(crate) fn populate(chunk: Chunk) {
    // SAFETY: changes no content; if the thread unmapped the chunk meanwhile, an error comes back.
    unsafe { libc::madvise(chunk.address.cast(), chunk.size, libc::MADV_POPULATE_WRITE) };
}

/// Unmaps a chunk that is full.
pub(crate) fn unmap(chunk: Chunk) {
    // SAFETY: nobody writes to it any more.
    unsafe { libc::munmap(chunk.address.cast(), chunk.size) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc_of_the_standard_example() {
        assert_eq!(crc32(0, b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(crc32(0, b"12345"), b"6789"), 0xcbf4_3926);
    }

    #[test]
    fn chunks_follow_the_header() {
        let directory = std::env::temp_dir().join(format!("whywait-spool-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let spool = Spool {
            directory: directory.clone(),
            home: directory.clone(),
            pid: 0,
            run: [7; 16],
            rank: 3,
            size: 4,
            limit: 2 * CHUNK as u64,
            taken: AtomicU64::new(0),
            definitions: Mutex::new(directory.join("3.wwd")),
        };
        let mut slots = Slots::create(&spool, 1).unwrap();
        let first = slots.chunk(&spool).unwrap();
        let second = slots.chunk(&spool).unwrap();
        assert!(matches!(slots.chunk(&spool), Err(Stop::Limit)));
        // SAFETY: both chunks are mapped.
        unsafe {
            first.address.write(1);
            second.address.write(2);
        }
        unmap(first);
        unmap(second);
        slots.close(CHUNK - 64);
        let bytes = std::fs::read(directory.join("3.1.wws")).unwrap();
        assert_eq!(
            (&bytes[..4], bytes[PAGE], bytes[PAGE + CHUNK], bytes.len()),
            (&b"WWSP"[..], 1, 2, PAGE + CHUNK + 64)
        );
        std::fs::remove_dir_all(directory).unwrap();
    }
}
