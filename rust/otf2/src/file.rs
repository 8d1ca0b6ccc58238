//! Files that consist of chunks.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::map::Map;
use crate::wire::{ByteOrder, Decoder, Fault};

/// Marks the begin of a chunk.
pub(crate) const CHUNK_BEGIN: u8 = 3;
/// Marks the end of the records of a chunk.
pub(crate) const END_OF_CHUNK: u8 = 0;
/// Follows the end of the file.
pub(crate) const END_OF_BUFFER: u8 = 1;
/// Marks the end of the records of a file.
pub(crate) const END_OF_FILE: u8 = 2;
/// Size of the header of a chunk in bytes.
pub(crate) const HEADER_SIZE: usize = 18;
/// Sizes of a chunk in bytes that the official library accepts.
pub(crate) const CHUNK_SIZES: std::ops::RangeInclusive<u64> = 256 << 10..=16 << 20;

/// Size of a page of memory on most machines.
const PAGE: usize = 4096;

/// A chunked file open for reading.
#[derive(Debug)]
pub(crate) struct ChunkFile {
    path: PathBuf,
    source: Source,
    size: u64,
    chunk_size: u64,
}

#[derive(Debug)]
enum Source {
    File(File),
    Map(Map),
    Bytes(Vec<u8>),
}

/// One chunk of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chunk<'a> {
    /// The complete chunk, positioned after the header.
    pub(crate) records: Decoder<'a>,
    /// Numbers of the first and the last event.
    pub(crate) events: (u64, u64),
    /// Offset of the chunk in the file.
    pub(crate) offset: u64,
    /// Whether no other chunk follows.
    pub(crate) is_last: bool,
}

impl ChunkFile {
    pub(crate) fn open(path: PathBuf, chunk_size: u64, mmap: bool) -> Result<Self> {
        let open = || -> io::Result<(Source, u64)> {
            let file = File::open(&path)?;
            let size = file.metadata()?.len();
            let source = if mmap && size > 0 { Source::Map(Map::new(&file)?) } else { Source::File(file) };
            Ok((source, size))
        };
        match open() {
            Ok((source, size)) => Ok(Self { path, source, size, chunk_size }),
            Err(source) => Err(Error::Io { path, source }),
        }
    }

    pub(crate) fn from_bytes(path: PathBuf, bytes: Vec<u8>, chunk_size: u64) -> Self {
        Self { path, size: bytes.len() as u64, source: Source::Bytes(bytes), chunk_size }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn chunk_count(&self) -> u64 {
        self.size.div_ceil(self.chunk_size)
    }

    /// Reads a chunk, into the buffer unless it is in memory anyway.
    pub(crate) fn chunk<'b>(&'b self, index: u64, buffer: &'b mut Vec<u8>) -> Result<Chunk<'b>> {
        let offset = index.saturating_mul(self.chunk_size).min(self.size);
        let size = (self.size - offset).min(self.chunk_size);
        let in_memory = |bytes: &'b [u8]| &bytes[offset as usize..(offset + size) as usize];
        let bytes = match &self.source {
            Source::File(file) => read_at(file, offset, size as usize, buffer).map_err(Error::io(&self.path))?,
            Source::Map(map) => in_memory(map),
            Source::Bytes(bytes) => in_memory(bytes),
        };
        let is_last = offset + size >= self.size;
        let mut records = Decoder::new(bytes, ByteOrder::Little);
        let events = header(&mut records).map_err(|fault| Error::fault(&self.path, offset, "chunk header", fault))?;
        Ok(Chunk { records, events, offset, is_last })
    }

    /// An error for a fault within a chunk. Only the last chunk can be cut short.
    pub(crate) fn fault(&self, chunk: &Chunk<'_>, record: &'static str, mut fault: Fault) -> Error {
        fault.cut &= chunk.is_last;
        Error::fault(&self.path, chunk.offset, record, fault)
    }

    /// Calls `f` with number, payload and offset of each record of a definition file. Returns what is missing at the
    /// end of the file, if anything.
    pub(crate) fn records(
        &self,
        name_of: fn(u8) -> &'static str,
        mut f: impl FnMut(u8, &mut Decoder<'_>, u64) -> std::result::Result<(), Fault>,
    ) -> Result<Option<Error>> {
        let mut buffer = Vec::new();
        for index in 0..self.chunk_count() {
            let chunk = match self.chunk(index, &mut buffer) {
                Err(error @ Error::Truncated { .. }) => return Ok(Some(error)),
                chunk => chunk?,
            };
            let mut records = chunk.records;
            loop {
                let offset = chunk.offset + records.position() as u64;
                let id = match records.u8() {
                    Ok(END_OF_CHUNK) | Err(_) if !chunk.is_last => break,
                    Ok(END_OF_FILE) => return Ok(None),
                    Ok(END_OF_CHUNK) | Err(_) => {
                        return Ok(Some(Error::fault(&self.path, offset, "definitions", END_EXPECTED)));
                    }
                    Ok(id) => id,
                };
                let read = records.payload().and_then(|mut payload| {
                    // A record that contradicts its own length is wrong wherever the file ends.
                    f(id, &mut payload, offset).map_err(|fault| Fault { cut: false, ..fault })
                });
                match read.map_err(|fault| self.fault(&chunk, name_of(id), fault)) {
                    Err(error @ Error::Truncated { .. }) => return Ok(Some(error)),
                    read => read?,
                }
            }
        }
        Ok(Some(Error::fault(&self.path, self.size, "definitions", END_EXPECTED)))
    }
}

/// A file without an end mark.
pub(crate) const END_EXPECTED: Fault = Fault { offset: 0, expected: "the end of file mark", cut: true };

/// Reads the header of a chunk: the byte order and the numbers of its events.
fn header(from: &mut Decoder<'_>) -> std::result::Result<(u64, u64), Fault> {
    let begin = *from;
    if from.u8()? != CHUNK_BEGIN {
        return Err(begin.fault("a chunk header (3)"));
    }
    let mark = from.u8()?;
    let order = ByteOrder::from_mark(mark).ok_or(begin.fault("a byte order mark (0x42 or 0x23)"))?;
    *from = from.with_order(order);
    Ok((from.full_u64()?, from.full_u64()?))
}

/// Reads bytes of a file through the buffer. Returns fewer if the file has become shorter.
fn read_at<'b>(file: &File, offset: u64, size: usize, buffer: &'b mut Vec<u8>) -> io::Result<&'b [u8]> {
    if buffer.len() < size + PAGE {
        buffer.resize(size + PAGE, 0);
    }
    // Some processors copy much more slowly to addresses a few bytes after the begin of a page, where large blocks
    // begin.
    let begin = buffer.as_ptr().align_offset(PAGE).min(PAGE);
    let buffer = &mut buffer[begin..begin + size];
    let mut filled = 0;
    while filled < size {
        match read_once(file, &mut buffer[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(&buffer[..filled])
}

#[cfg(unix)]
fn read_once(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, offset)
}

#[cfg(windows)]
fn read_once(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, offset)
}
