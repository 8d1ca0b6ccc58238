//! Files of POSIX and of C's standard library: which one a descriptor or a stream stands for, and what calls do with it.
//!
//! Descriptors that were opened unseen, before the recording or by other libraries, are looked up when they are first used.

use crate::context::Context;
use crate::fault;
use crate::format::{Entry, FILE_OTHER, FILE_PATH, FILE_STANDARD, IO_ISO_C, IO_POSIX, NONE, PEER_UNDEFINED};
use crate::frame::Frame;
use crate::real;
use crate::spool::{self, Payload};
use crate::state;
use crate::table::{Class, Function, NO, Role, number};
use std::collections::BTreeMap;
use std::ffi::{CStr, c_int};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Descriptors from this one on are looked up for each call.
const DESCRIPTORS: usize = 1 << 16;

/// Numbers of the files that descriptors stand for, plus one: as a file of POSIX, and as that of a stream. 0 if that is not known.
static KNOWN: [[AtomicU32; 2]; DESCRIPTORS] = [const { [const { AtomicU32::new(0) }; 2] }; DESCRIPTORS];

/// Numbers of files by what they are and their names.
static FILES: Mutex<BTreeMap<(u32, Vec<u8>), u32>> = Mutex::new(BTreeMap::new());

fn known(fd: c_int) -> Option<&'static [AtomicU32; 2]> {
    KNOWN.get(usize::try_from(fd).ok()?)
}

/// The descriptor is closed, or stands for another file from now on.
fn forget(fd: c_int) {
    for number in known(fd).into_iter().flatten() {
        number.store(0, Relaxed);
    }
}

/// The same of all from the first of a call to the last, if it names one.
fn forget_range(first: usize, last: Option<usize>) {
    // Of arguments that are half a word, the rest is not defined.
    let last = last.map_or(c_int::MAX.cast_unsigned(), |last| last as u32) as usize;
    for number in KNOWN.iter().take(last.saturating_add(1)).skip(first as u32 as usize).flatten() {
        // Most were never used, and need no memory.
        if number.load(Relaxed) != 0 {
            number.store(0, Relaxed);
        }
    }
}

/// The number of the file under a descriptor; [`NONE`] if there is none. One that cannot be looked up has the path by which it was opened.
pub(crate) fn file(fd: c_int, paradigm: u32, path: &[u8]) -> u32 {
    let place = known(fd).map(|known| &known[paradigm as usize]);
    if let Some(number) = place.map(|place| place.load(Relaxed)).filter(|number| *number != 0) {
        return number - 1;
    }
    let Some(number) = look_up(fd, paradigm, path) else { return NONE };
    if let Some(place) = place {
        place.store(number + 1, Relaxed);
    }
    number
}

#[cold]
fn look_up(fd: c_int, paradigm: u32, path: &[u8]) -> Option<u32> {
    let link = std::fs::read_link(format!("/proc/self/fd/{fd}"));
    let (kind, name) = match &link {
        Ok(link) => named(fd, link.as_os_str().as_bytes()),
        Err(_) if path.is_empty() => return None,
        Err(_) => (FILE_PATH, path),
    };
    let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
    let next = files.len() as u32;
    Some(*files.entry((paradigm, name.to_vec())).or_insert_with(|| {
        state::define(Entry::PosixFile, &Payload::default().u32(next).u32(paradigm).u32(kind).text(name));
        next
    }))
}

/// What a descriptor is called for which the kernel has a name: a path, or that of a kind of thing without one, such as `pipe:[4711]`.
fn named(fd: c_int, link: &[u8]) -> (u32, &[u8]) {
    const STANDARD: [&[u8]; 3] = [b"stdin", b"stdout", b"stderr"];
    let is_path = link.starts_with(b"/");
    match usize::try_from(fd).ok().and_then(|fd| STANDARD.get(fd)) {
        // A terminal, or what the launcher made of it.
        Some(name) if !is_path || link.starts_with(b"/dev/") => (FILE_STANDARD, name),
        _ if is_path => (FILE_PATH, link.strip_suffix(b" (deleted)").unwrap_or(link)),
        _ => {
            let name = link.strip_prefix(b"anon_inode:").unwrap_or(link);
            let end = name.iter().position(|byte| *byte == b':').unwrap_or(name.len());
            (FILE_OTHER, &name[..end])
        }
    }
}

/// The descriptor of a stream; -1 if it has none.
fn descriptor(stream: usize) -> c_int {
    // SAFETY: the program passed the stream to the C library.
    if stream == 0 { -1 } else { unsafe { libc::fileno(stream as *mut libc::FILE) } }
}

impl Context<'_> {
    /// What the call is about, a descriptor or a stream: its descriptor, and which of both it is. Without either, it is standard input or output.
    fn descriptor(&self) -> (c_int, u32) {
        if self.has(Role::Fd) {
            (self.int(Role::Fd), IO_POSIX)
        } else if self.has(Role::Stream) {
            (descriptor(self.word(Role::Stream)), IO_ISO_C)
        } else {
            (c_int::from(!self.function.reads), IO_ISO_C)
        }
    }

    fn posix_file(&self) -> u32 {
        let (fd, paradigm) = self.descriptor();
        file(fd, paradigm, b"")
    }

    /// Bytes that the call is to read or write; 0 if only its end tells.
    fn bytes_asked(&self) -> u64 {
        if self.has(Role::Scount) {
            self.word(Role::Scount) as u64
        } else if self.has(Role::Size) {
            (self.word(Role::Size) as u64).wrapping_mul(self.word(Role::Items) as u64)
        } else if self.has(Role::Vector) {
            vector(self.word(Role::Vector), self.int(Role::Items))
        } else if self.has(Role::String) {
            length(self.word(Role::String)) + u64::from(!self.has(Role::Stream))
        } else {
            u64::from(self.function.class == Class::PosixChar)
        }
    }

    /// Bytes that it has read or written.
    fn bytes_done(&self) -> u64 {
        let value = self.value.cast_signed();
        // What functions return that return an `int` is half a word.
        let is_error = value as c_int == -1;
        match self.function.class {
            Class::PosixScan => 0,
            Class::PosixChar => u64::from(!is_error),
            _ if self.has(Role::Line) => length(self.value),
            _ if self.has(Role::String) => {
                if is_error {
                    0
                } else {
                    self.bytes_asked()
                }
            }
            _ if self.has(Role::Size) => (value as u64).wrapping_mul(self.word(Role::Size) as u64),
            // Of functions that print, an `int`.
            _ if self.has(Role::Scount) || self.has(Role::Vector) => u64::try_from(value).unwrap_or(0),
            _ => u64::try_from(value as c_int).unwrap_or(0),
        }
    }

    /// How a file is opened, as flags of `open`.
    fn open_flags(&self) -> c_int {
        if self.has(Role::Access) {
            return flags_of(real::text(self.word(Role::Access)).as_bytes());
        }
        match self.index {
            _ if self.has(Role::Mode) => self.int(Role::Mode),
            number::CREAT | number::CREAT64 => libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC,
            _ => libc::O_RDWR | libc::O_CREAT | libc::O_EXCL,
        }
    }

    /// Whether the call opened a stream, and not a descriptor.
    fn opens_stream(&self) -> bool {
        self.has(Role::Access) || !self.has(Role::Text)
    }
}

/// What `fopen` makes of its second argument.
fn flags_of(access: &[u8]) -> c_int {
    let has = |letter| access.contains(&letter);
    let (mode, further) = match access.first() {
        Some(b'w') => (libc::O_WRONLY, libc::O_CREAT | libc::O_TRUNC),
        Some(b'a') => (libc::O_WRONLY, libc::O_CREAT | libc::O_APPEND),
        _ => (libc::O_RDONLY, 0),
    };
    let mode = if has(b'+') { libc::O_RDWR } else { mode };
    let exclusive = if has(b'x') { libc::O_EXCL } else { 0 };
    mode | further | exclusive | if has(b'e') { libc::O_CLOEXEC } else { 0 }
}

/// Bytes of a text; 0 if there is none.
fn length(text: usize) -> u64 {
    // SAFETY: the program passed it to the C library as a string, or got it from there.
    if text == 0 { 0 } else { unsafe { CStr::from_ptr(text as *const std::ffi::c_char) }.count_bytes() as u64 }
}

/// Bytes of so many buffers.
fn vector(buffers: usize, count: c_int) -> u64 {
    /// More than these, no system call takes.
    const MOST: usize = 1024;
    let count = usize::try_from(count).unwrap_or(0);
    if buffers == 0 || count > MOST {
        return 0;
    }
    // SAFETY: the program passed so many of them to the C library.
    let buffers = unsafe { std::slice::from_raw_parts(buffers as *const libc::iovec, count) };
    buffers.iter().fold(0, |sum, buffer| sum + buffer.iov_len as u64)
}

fn argument(function: &Function, frame: Frame, role: Role) -> Option<usize> {
    let place = function.roles[role as usize];
    (place != NO).then(|| frame.word(place))
}

/// Whether a call is one that is recorded: it is about a file, and of this process.
pub(crate) fn concerns(function: &Function, frame: Frame) -> bool {
    let mode = argument(function, frame, Role::Mode).map(|mode| mode as c_int);
    match (function.class, mode) {
        (Class::PosixMap, Some(mode)) => mode & libc::MAP_ANONYMOUS == 0,
        (Class::PosixDup, Some(command)) if ![libc::F_DUPFD, libc::F_DUPFD_CLOEXEC].contains(&command) => false,
        // After `vfork`, a child has the memory of its parent, and descriptors of its own.
        (Class::PosixOpen | Class::PosixClose | Class::PosixCloseRange | Class::PosixDup, _) => {
            // SAFETY: it has no arguments.
            let own = unsafe { libc::getpid() }.cast_unsigned();
            spool::get().is_none_or(|spool| spool.pid == own)
        }
        _ => true,
    }
}

/// A call that is not recorded may close a descriptor all the same.
pub(crate) fn passes(function: &Function, frame: Frame) {
    match (function.class, argument(function, frame, Role::Stream)) {
        (Class::PosixOpen | Class::PosixClose, Some(stream)) => forget(descriptor(stream)),
        (Class::PosixClose, None) => forget(argument(function, frame, Role::Fd).unwrap_or(usize::MAX) as c_int),
        (Class::PosixCloseRange, _) => {
            let first = argument(function, frame, Role::Fd).unwrap_or(usize::MAX);
            forget_range(first, argument(function, frame, Role::Newfd));
        }
        (Class::PosixDup, _) => forget(argument(function, frame, Role::Newfd).unwrap_or(usize::MAX) as c_int),
        _ => {}
    }
}

/// Writes the first half of the slot of a call.
pub(crate) fn enter(context: &mut Context) {
    match context.function.class {
        Class::PosixOpen => {
            if context.has(Role::Stream) {
                forget(context.descriptor().0);
            }
            context.enter(PEER_UNDEFINED, context.open_flags(), NONE, 0);
        }
        Class::PosixClose => {
            let (fd, paradigm) = context.descriptor();
            // What was never used needs no name now.
            let number = known(fd).map_or(0, |known| known[paradigm as usize].load(Relaxed));
            // Before the call: after it, another thread may have opened something under the number.
            forget(fd);
            context.enter(PEER_UNDEFINED, 0, number.wrapping_sub(1), 0);
        }
        Class::PosixDup => {
            let object = context.posix_file();
            if context.has(Role::Newfd) && context.int(Role::Newfd) != context.int(Role::Fd) {
                forget(context.int(Role::Newfd));
            }
            context.enter(PEER_UNDEFINED, 0, object, 0);
        }
        Class::PosixSeek => {
            let (object, offset) = (context.posix_file(), context.word(Role::Offset) as u64);
            let whence = context.int(Role::Whence);
            let origins = [libc::SEEK_SET, libc::SEEK_CUR, libc::SEEK_END];
            // Where a stream is then, only the first of them tells.
            let known = if context.has(Role::Fd) { &origins[..] } else { &origins[..1] };
            let from = known.iter().position(|known| *known == whence);
            context.enter(from.map_or(PEER_UNDEFINED, |from| from as i32), offset as i32, object, offset >> 32);
        }
        Class::PosixIo | Class::PosixChar | Class::PosixScan | Class::PosixMap => {
            let (object, bytes) = (context.posix_file(), context.bytes_asked());
            context.enter(PEER_UNDEFINED, 0, object, bytes);
        }
        Class::PosixCopy => {
            let from = file(context.int(Role::From), IO_POSIX, b"");
            let (object, bytes) = (context.posix_file(), context.bytes_asked());
            context.enter(PEER_UNDEFINED, from.cast_signed(), object, bytes);
        }
        Class::PosixCloseRange => {
            passes(context.function, context.frame);
            context.enter(PEER_UNDEFINED, 0, NONE, 0);
        }
        Class::PosixFlush | Class::PosixStatus => {
            let object = context.posix_file();
            context.enter(PEER_UNDEFINED, 0, object, 0);
        }
        _ => context.enter(PEER_UNDEFINED, 0, NONE, 0),
    }
}

/// Writes the second half.
pub(crate) fn leave(context: &mut Context) {
    let value = context.value.cast_signed();
    let failed = match context.function.class {
        Class::PosixOpen if context.opens_stream() => value == 0,
        Class::PosixSeek | Class::PosixMap if context.has(Role::Fd) => value == -1,
        Class::PosixSeek => value as c_int == -1,
        // What reads nothing because the file ends is no failure.
        _ if !context.has(Role::Fd) && !context.has(Role::Text) => false,
        _ => value as c_int == -1,
    };
    if failed {
        context.code = fault::errno().max(1);
        context.leave(0, 0, 0, u64::from(NONE));
        return;
    }
    let (mut received, mut id) = (0, 0);
    match context.function.class {
        Class::PosixOpen => id = u64::from(opened(context)),
        Class::PosixDup => {
            let (from, fd) = (context.int(Role::Fd), value as c_int);
            let number = file(from, IO_POSIX, b"");
            if let (Some(known), true) = (known(fd), number != NONE && fd != from) {
                forget(fd);
                known[IO_POSIX as usize].store(number + 1, Relaxed);
            }
        }
        Class::PosixSeek => {
            received = if context.has(Role::Fd) { value as u64 } else { context.word(Role::Offset) as u64 };
        }
        Class::PosixIo | Class::PosixChar | Class::PosixScan | Class::PosixCopy => received = context.bytes_done(),
        _ => {}
    }
    context.leave(0, 0, received, id);
}

/// The number of the file that the call has opened.
fn opened(context: &Context) -> u32 {
    let path = if context.has(Role::Text) { real::text(context.word(Role::Text)) } else { String::new() };
    if context.opens_stream() {
        let fd = descriptor(context.value);
        // A stream that was made of a descriptor is the same file.
        if !context.has(Role::Fd) {
            forget(fd);
        }
        return file(fd, IO_ISO_C, path.as_bytes());
    }
    let fd = context.value as c_int;
    forget(fd);
    file(fd, IO_POSIX, path.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_named_by_what_they_stand_for() {
        for (fd, link, expected) in [
            (3, "/data/input (deleted)", (FILE_PATH, "/data/input")),
            (0, "/data/input", (FILE_PATH, "/data/input")),
            (0, "/dev/pts/1", (FILE_STANDARD, "stdin")),
            (2, "pipe:[4711]", (FILE_STANDARD, "stderr")),
            (9, "/dev/null", (FILE_PATH, "/dev/null")),
            (9, "socket:[12]", (FILE_OTHER, "socket")),
            (9, "anon_inode:[eventfd]", (FILE_OTHER, "[eventfd]")),
        ] {
            assert_eq!(named(fd, link.as_bytes()), (expected.0, expected.1.as_bytes()), "{link}");
        }
    }

    #[test]
    fn streams_are_opened_as_the_c_library_does_it() {
        for (access, expected) in [
            ("r", libc::O_RDONLY),
            ("rb+", libc::O_RDWR),
            ("w", libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC),
            ("wx", libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC | libc::O_EXCL),
            ("a+e", libc::O_RDWR | libc::O_CREAT | libc::O_APPEND | libc::O_CLOEXEC),
        ] {
            assert_eq!(flags_of(access.as_bytes()), expected, "{access}");
        }
    }

    #[test]
    fn lengths_are_those_of_memory() {
        let buffers = [3, 5].map(|iov_len| libc::iovec { iov_base: std::ptr::null_mut(), iov_len });
        let address = (&raw const buffers).expose_provenance();
        assert_eq!((vector(address, 2), vector(address, -1), vector(0, 2)), (8, 0, 0));
        assert_eq!((length(c"text".as_ptr().expose_provenance()), length(0)), (4, 0));
    }

    #[test]
    fn a_closed_descriptor_is_forgotten() {
        known(70).unwrap()[IO_ISO_C as usize].store(6, Relaxed);
        assert_eq!(file(70, IO_ISO_C, b""), 5);
        forget(70);
        assert_eq!(file(70, IO_ISO_C, b""), NONE);
        forget(-1);
        assert!(known(-1).is_none() && known(c_int::MAX).is_none());
    }
}
