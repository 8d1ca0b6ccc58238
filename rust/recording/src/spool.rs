//! Reads a spool: what processes defined, and the slots of their threads.
//!
//! Processes may have ended at any moment, so everything up to the first thing that is not whole is used, and what was
//! left out is noted with file and offset.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::format::{
    Call, DEFINITIONS_MAGIC, EXTENSION, Entry, IO_ISO_C, NAME_PROGRAM, NONE, PAGE, SAMPLES_MAGIC, SLOT, SLOTS_MAGIC,
    VERSION,
};

/// One slot as it is in the file.
pub(crate) type Slot = [u8; SLOT];

/// The files of a run by rank.
#[derive(Debug, Default)]
pub(crate) struct Spool {
    /// What each rank left; ranks may be missing.
    pub(crate) ranks: BTreeMap<u32, Process>,
    /// The worlds that the ranks are in; empty if there is only one.
    pub(crate) worlds: Vec<World>,
    /// What could not be read.
    pub(crate) damage: Vec<String>,
}

/// Ranks of a run that have an `MPI_COMM_WORLD` of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct World {
    pub(crate) first: u32,
    pub(crate) size: u32,
}

/// What one process left.
#[derive(Debug, Default)]
pub(crate) struct Process {
    /// Number of its world.
    pub(crate) world: usize,
    /// Its definitions.
    pub(crate) definitions: Definitions,
    /// Its files of slots by thread; none for threads with samples alone.
    pub(crate) threads: BTreeMap<u32, Option<PathBuf>>,
    /// Its files of samples by thread.
    pub(crate) samples: BTreeMap<u32, PathBuf>,
}

impl Process {
    /// The slots of a thread.
    pub(crate) fn slots(&self, thread: u32) -> Result<Slots> {
        match self.threads.get(&thread) {
            Some(Some(path)) => Slots::open(path),
            _ => Ok(Slots::none()),
        }
    }
}

/// First entry of a process.
#[derive(Debug, Default, Clone)]
pub(crate) struct Start {
    /// Number of processes in `MPI_COMM_WORLD`.
    pub(crate) size: u32,
    /// Process id.
    pub(crate) pid: u32,
    /// Which clock.
    pub(crate) clock: u32,
    /// Its estimated frequency.
    pub(crate) frequency: u64,
    /// Time of the start.
    pub(crate) time: u64,
    /// Identifies the clock together with the namespace.
    pub(crate) boot: [u8; 16],
    /// Time namespace.
    pub(crate) namespace: u64,
    /// `mpich`, `openmpi` or `mpi5`.
    pub(crate) abi: String,
    /// What it calls itself.
    pub(crate) library_version: String,
    /// Name of the machine.
    pub(crate) host: String,
    /// Path of the program.
    pub(crate) program: String,
    /// Version of the recorder.
    pub(crate) recorder: String,
    /// Options of the recorder.
    pub(crate) options: String,
}

/// A communicator as one process sees it; see [`crate::format::CommName`].
#[derive(Debug, Default, Clone)]
pub(crate) struct CommEntry {
    pub(crate) id: u32,
    pub(crate) parent: u32,
    pub(crate) name: u32,
    pub(crate) k: u32,
    pub(crate) lead: u32,
    pub(crate) remote_lead: u32,
    pub(crate) tag: i32,
    pub(crate) rank: u32,
    pub(crate) size: u32,
    pub(crate) remote_size: u32,
    pub(crate) world_rank: u32,
    pub(crate) members: Vec<u32>,
    pub(crate) text: String,
    pub(crate) time: u64,
}

/// A window, or a file.
#[derive(Debug, Default, Clone)]
pub(crate) struct ObjectEntry {
    pub(crate) id: u32,
    pub(crate) comm: u32,
    pub(crate) k: u32,
    /// Function that made a window; mode of a file.
    pub(crate) kind: u32,
    pub(crate) name: String,
}

/// A file that is no file of MPI.
#[derive(Debug, Default, Clone, PartialEq, Eq, Hash)]
pub(crate) struct PosixEntry {
    /// `IO_POSIX` or `IO_ISO_C`.
    pub(crate) paradigm: u32,
    /// [`FILE_PATH`](crate::format::FILE_PATH) or another.
    pub(crate) kind: u32,
    pub(crate) name: String,
}

/// A loaded object.
#[derive(Debug, Clone)]
pub(crate) struct ModuleEntry {
    pub(crate) time: u64,
    pub(crate) base: u64,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) build_id: Vec<u8>,
    pub(crate) path: String,
}

/// A counter.
#[derive(Debug, Default, Clone, PartialEq, Eq, Hash)]
pub(crate) struct CounterEntry {
    /// [`CounterSource`](crate::format::CounterSource)
    pub(crate) source: u32,
    /// OTF2's metric mode.
    pub(crate) mode: u32,
    pub(crate) exponent: i32,
    pub(crate) name: String,
    pub(crate) unit: String,
    pub(crate) description: String,
}

/// Everything that a process defined.
#[derive(Debug, Default)]
pub(crate) struct Definitions {
    /// Missing if the file is damaged at its very beginning.
    pub(crate) start: Option<Start>,
    /// When it ended, and why, if it could say so.
    pub(crate) end: Option<(u64, u32)>,
    /// Ticks, monotonic and real time in ns.
    pub(crate) clocks: Vec<(u64, u64, u64)>,
    /// Own ticks, ticks of rank 0, round trip.
    pub(crate) syncs: Vec<(u64, u64, u64)>,
    /// Communicators in the order in which they were made.
    pub(crate) comms: Vec<CommEntry>,
    /// Cartesian topologies: the communicator, and size, periodicity and own coordinate by dimension.
    pub(crate) topologies: Vec<(u32, Vec<[u32; 3]>)>,
    /// Cores of the machine, and those that the process may use.
    pub(crate) cores: Option<(u32, Vec<u32>)>,
    /// Groups of epochs.
    pub(crate) groups: Vec<(u32, Vec<u32>)>,
    /// Windows.
    pub(crate) windows: Vec<ObjectEntry>,
    /// Files.
    pub(crate) files: Vec<ObjectEntry>,
    /// Files that are none of MPI, by number.
    pub(crate) posix: Vec<PosixEntry>,
    /// Names that the program gave, and its own: what, id, text.
    pub(crate) names: Vec<(u32, u32, String)>,
    /// Loaded objects.
    pub(crate) modules: Vec<ModuleEntry>,
    /// Functions of Python by id: name, file, line.
    pub(crate) codes: Vec<(u32, String, String, u32)>,
    /// Counters by number.
    pub(crate) counters: Vec<CounterEntry>,
    /// Counters that could not be read: name and reason.
    pub(crate) missing_counters: Vec<(String, String)>,
    /// Thread, time, reason and text of what was lost.
    pub(crate) lost: Vec<(u32, u64, u32, String)>,
    /// Counted events.
    pub(crate) notes: Vec<(u32, u64)>,
    /// How many threads were not sampled, and why.
    pub(crate) unsampled: Vec<(u32, String)>,
}

impl Spool {
    /// Reads the definitions in a directory and lists the files of slots.
    pub(crate) fn open(directory: &Path) -> Result<Self> {
        let mut spool = Self::default();
        let mut run: Option<([u8; 16], PathBuf)> = None;
        let mut paths: Vec<PathBuf> = fs::read_dir(directory)
            .and_then(|entries| entries.map(|entry| entry.map(|entry| entry.path())).collect())
            .map_err(Error::io(directory))?;
        paths.sort();
        for path in paths {
            let Some(file) = Name::of(&path) else { continue };
            let header = match Header::read(&path) {
                Ok(header) => header,
                Err(Error::Damaged { text, .. }) => {
                    spool.damage.push(text);
                    continue;
                }
                Err(error) => return Err(error),
            };
            if header.rank != file.rank || file.thread.is_some_and(|thread| thread != header.thread) {
                spool.damage.push(format!(
                    "{}: it is of rank {}, thread {}",
                    path.display(),
                    header.rank,
                    header.thread
                ));
                continue;
            }
            match &run {
                Some((run, first)) if *run != header.run => {
                    spool.damage.push(format!("{}: it is of another run than {}", path.display(), first.display()));
                    continue;
                }
                _ => run = Some((header.run, path.clone())),
            }
            let process = spool.ranks.entry(file.rank).or_default();
            match file.thread {
                Some(thread) if file.has_samples => {
                    process.threads.entry(thread).or_default();
                    process.samples.insert(thread, path);
                }
                Some(thread) => drop(process.threads.insert(thread, Some(path))),
                None => process.definitions = Definitions::read(&path, &mut spool.damage)?,
            }
        }
        Ok(spool)
    }
}

/// What the name of a file says.
struct Name {
    rank: u32,
    thread: Option<u32>,
    has_samples: bool,
}

impl Name {
    fn of(path: &Path) -> Option<Self> {
        let (name, kind) = path.file_name()?.to_str()?.rsplit_once('.')?;
        match kind {
            "wwd" => Some(Self { rank: name.parse().ok()?, thread: None, has_samples: false }),
            "wws" | "wwp" => {
                let (rank, thread) = name.split_once('.')?;
                let (rank, thread) = (rank.parse().ok()?, Some(thread.parse().ok()?));
                Some(Self { rank, thread, has_samples: kind == "wwp" })
            }
            _ => None,
        }
    }
}

/// What the headers of both kinds of files have in common.
struct Header {
    run: [u8; 16],
    rank: u32,
    thread: u32,
}

impl Header {
    fn read(path: &Path) -> Result<Self> {
        let mut bytes = [0; 32];
        let damaged = |what: &str| Error::Damaged { text: format!("{}, byte 0: {what}", path.display()) };
        File::open(path).and_then(|mut file| file.read_exact(&mut bytes)).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => damaged("the header is not whole"),
            _ => Error::io(path)(error),
        })?;
        if ![SLOTS_MAGIC, SAMPLES_MAGIC, DEFINITIONS_MAGIC].iter().any(|magic| bytes.starts_with(magic)) {
            return Err(damaged("it is no file of a recorder"));
        }
        let mut fields = Fields(&bytes[4..]);
        let version = fields.u32().unwrap_or(0);
        if version != VERSION {
            return Err(Error::Version { path: path.to_owned(), version });
        }
        let run = fields.bytes(16).and_then(|bytes| bytes.try_into().ok()).unwrap_or_default();
        Ok(Self { run, rank: fields.u32().unwrap_or(0), thread: fields.u32().unwrap_or(0) })
    }
}

/// Length of the header of a file of definitions.
const DEFINITIONS_HEADER: usize = 32;
/// Length of the header of an entry.
const ENTRY_HEADER: usize = 12;

impl Definitions {
    /// What the program is called, if that is not the name of its executable.
    pub(crate) fn title(&self) -> Option<&str> {
        self.names.iter().find(|(what, ..)| *what == NAME_PROGRAM).map(|(.., text)| text.as_str())
    }

    fn read(path: &Path, damage: &mut Vec<String>) -> Result<Self> {
        let bytes = fs::read(path).map_err(Error::io(path))?;
        let mut definitions = Self::default();
        let mut at = DEFINITIONS_HEADER;
        while at < bytes.len() {
            match entry(&bytes[at..]) {
                // Space that was reserved and not used.
                None if bytes[at..].iter().all(|byte| *byte == 0) => break,
                None => {
                    damage.push(format!("{}, byte {at}: the entry is not whole", path.display()));
                    break;
                }
                Some((kind, payload)) => {
                    if definitions.add(kind, Fields(payload)).is_none() {
                        damage.push(format!("{}, byte {at}: the entry of kind {kind} has no meaning", path.display()));
                    }
                    at += ENTRY_HEADER + payload.len();
                }
            }
        }
        Ok(definitions)
    }

    /// Adds an entry; none if its fields are not whole.
    fn add(&mut self, kind: u32, mut from: Fields<'_>) -> Option<()> {
        let is = |entry: Entry| kind == entry as u32;
        if is(Entry::Start) {
            from.u32()?;
            self.start = Some(Start {
                size: from.u32()?,
                pid: from.u32()?,
                clock: from.u32()?,
                frequency: from.u64()?,
                time: from.u64()?,
                boot: from.bytes(16)?.try_into().ok()?,
                namespace: from.u64()?,
                abi: from.text()?,
                // The path of MPI's library comes first.
                library_version: from.text().and_then(|_| from.text())?,
                host: from.text()?,
                program: from.text()?,
                recorder: from.text()?,
                options: from.text()?,
            });
        } else if is(Entry::End) {
            self.end = Some((from.u64()?, from.u32()?));
        } else if is(Entry::Clock) {
            self.clocks.push((from.u64()?, from.u64()?, from.u64()?));
        } else if is(Entry::Sync) {
            self.syncs.push((from.u64()?, from.u64()?, from.u64()?));
        } else if is(Entry::Comm) {
            let mut comm = CommEntry {
                id: from.u32()?,
                parent: from.u32()?,
                name: from.u32()?,
                k: from.u32()?,
                lead: from.u32()?,
                remote_lead: from.u32()?,
                tag: from.u32()?.cast_signed(),
                rank: from.u32()?,
                size: from.u32()?,
                remote_size: from.u32()?,
                world_rank: from.u32()?,
                ..CommEntry::default()
            };
            // The numbers of neighbours.
            from.bytes(8)?;
            comm.members = from.list()?;
            comm.text = from.text()?;
            comm.time = from.u64()?;
            self.comms.push(comm);
        } else if is(Entry::Topology) {
            let (comm, dimensions) = (from.u32()?, from.u32()?);
            let dimension = |_| Some([from.u32()?, from.u32()?, from.u32()?]);
            self.topologies.push((comm, (0..dimensions).map(dimension).collect::<Option<_>>()?));
        } else if is(Entry::Cores) {
            self.cores = Some((from.u32()?, from.list()?));
        } else if is(Entry::Group) {
            self.groups.push((from.u32()?, from.list()?));
        } else if is(Entry::Window) {
            let (id, comm, k, kind) = (from.u32()?, from.u32()?, from.u32()?, from.u32()?);
            self.windows.push(ObjectEntry { id, comm, k, kind, name: String::new() });
        } else if is(Entry::File) {
            let (id, comm, k, kind) = (from.u32()?, from.u32()?, from.u32()?, from.u32()?);
            self.files.push(ObjectEntry { id, comm, k, kind, name: from.text()? });
        } else if is(Entry::PosixFile) {
            let (number, paradigm, kind) = (from.u32()?, from.u32()?, from.u32()?);
            if number as usize != self.posix.len() || paradigm > IO_ISO_C {
                return None;
            }
            self.posix.push(PosixEntry { paradigm, kind, name: from.text()? });
        } else if is(Entry::Name) {
            self.names.push((from.u32()?, from.u32()?, from.text()?));
        } else if is(Entry::Module) {
            self.modules.push(ModuleEntry {
                time: from.u64()?,
                base: from.u64()?,
                start: from.u64()?,
                end: from.u64()?,
                build_id: from.string()?.to_vec(),
                path: from.text()?,
            });
        } else if is(Entry::Code) {
            let (id, line) = (from.u32()?, from.u32()?);
            self.codes.push((id, from.text()?, from.text()?, line));
        } else if is(Entry::Lost) {
            self.lost.push((from.u32()?, from.u64()?, from.u32()?, from.text()?));
        } else if is(Entry::Note) {
            self.notes.push((from.u32()?, from.u64()?));
        } else if is(Entry::Unsampled) {
            let (count, why) = (from.u32()?, from.text()?);
            match self.unsampled.iter_mut().find(|(_, known)| *known == why) {
                Some(known) => known.0 = count,
                None => self.unsampled.push((count, why)),
            }
        } else if is(Entry::Counter) {
            let number = from.u32()?;
            let counter = CounterEntry {
                source: from.u32()?,
                mode: from.u32()?,
                exponent: from.u32()?.cast_signed(),
                name: from.text()?,
                unit: from.text()?,
                description: from.text()?,
            };
            if number == NONE {
                self.missing_counters.push((counter.name, counter.description));
            } else if number as usize == self.counters.len() {
                self.counters.push(counter);
            } else {
                return None;
            }
        } else {
            return None;
        }
        Some(())
    }
}

impl Definitions {
    /// A time of the process as real time in ns, by the nearest reading of both clocks.
    pub(crate) fn realtime(&self, ticks: u64) -> u64 {
        let frequency = self.start.as_ref().map_or(1, |start| start.frequency.max(1));
        let nearest = self.clocks.iter().min_by_key(|(at, ..)| at.abs_diff(ticks));
        let &(at, _, realtime) = nearest.unwrap_or(&(0, 0, 0));
        let between = i128::from(ticks) - i128::from(at);
        let since = between * 1_000_000_000 / i128::from(frequency);
        u64::try_from(i128::from(realtime) + since).unwrap_or(0)
    }
}

/// The next entry: its kind and payload, if it is whole.
fn entry(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let mut header = Fields(bytes);
    let (length, crc, kind) = (header.u32()? as usize, header.u32()?, header.u32()?);
    let payload = header.bytes(length)?;
    let mut hash = crc32fast::Hasher::new();
    hash.update(&kind.to_le_bytes());
    hash.update(payload);
    (hash.finalize() == crc).then_some((kind, payload))
}

/// Little-endian fields, one after the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.bytes(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.bytes(8)?.try_into().ok().map(u64::from_le_bytes)
    }

    fn string(&mut self) -> Option<&'a [u8]> {
        let length = self.u32()? as usize;
        self.bytes(length)
    }

    fn text(&mut self) -> Option<String> {
        Some(String::from_utf8_lossy(self.string()?).into_owned())
    }

    fn list(&mut self) -> Option<Vec<u32>> {
        let length = self.u32()? as usize;
        let bytes = self.bytes(length.checked_mul(4)?)?;
        Some(bytes.chunks_exact(4).filter_map(|word| word.try_into().ok().map(u32::from_le_bytes)).collect())
    }
}

/// Reads the slots of one thread in pieces.
#[derive(Debug)]
pub(crate) struct Slots {
    path: PathBuf,
    file: Option<File>,
    buffer: Vec<u8>,
    /// The part of the buffer that is not read yet.
    at: usize,
    end: usize,
    /// Offset in the file of the end of the buffer.
    offset: u64,
}

/// How much is read at a time.
const PIECE: usize = 256 << 10;

impl Slots {
    /// Begins at the first slot of a file.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let mut file = File::open(path).map_err(Error::io(path))?;
        io::Seek::seek(&mut file, io::SeekFrom::Start(PAGE as u64)).map_err(Error::io(path))?;
        Ok(Self { path: path.to_owned(), file: Some(file), buffer: vec![0; PIECE], at: 0, end: 0, offset: PAGE as u64 })
    }

    /// None.
    pub(crate) fn none() -> Self {
        Self { path: PathBuf::new(), file: None, buffer: Vec::new(), at: 0, end: 0, offset: 0 }
    }

    /// The next slot; none at the end of the data.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<&Slot>> {
        let is_there = self.peek()?.is_some();
        let at = self.at;
        self.at += if is_there { SLOT } else { 0 };
        Ok(if is_there { self.buffer[at..].first_chunk() } else { None })
    }

    /// The same without going on behind it.
    #[inline]
    pub(crate) fn peek(&mut self) -> Result<Option<&Slot>> {
        if self.at == self.end {
            self.fill()?;
        }
        let slot = self.buffer[self.at..self.end].first_chunk::<SLOT>();
        Ok(slot.filter(|slot| word(slot, 0) != 0))
    }

    /// Goes on behind a slot that [`peek`](Self::peek) found.
    #[inline]
    pub(crate) fn skip(&mut self) {
        self.at += SLOT;
    }

    #[cold]
    fn fill(&mut self) -> Result<()> {
        self.at = 0;
        self.end = 0;
        let Some(file) = &mut self.file else { return Ok(()) };
        while self.end < PIECE {
            match file.read(&mut self.buffer[self.end..]) {
                Ok(0) => break,
                Ok(count) => self.end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io(&self.path)(error)),
            }
        }
        self.offset += self.end as u64;
        // A slot that is cut off does not count.
        self.end -= self.end % SLOT;
        Ok(())
    }

    /// Where the slot that was read last is.
    pub(crate) fn place(&self) -> String {
        let offset = self.offset - (self.end - self.at) as u64;
        format!("{}, byte {}", self.path.display(), offset.saturating_sub(SLOT as u64))
    }
}

/// A word of a slot.
#[inline]
pub(crate) fn word(slot: &Slot, number: usize) -> u64 {
    slot.as_chunks::<8>().0.get(number).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Kind of an extension, and how many items it claims to have; none for a call.
#[inline]
pub(crate) fn extension(slot: &Slot) -> Option<(u8, usize)> {
    let head = word(slot, 0);
    (head & EXTENSION != 0).then_some((head as u8, (head >> 8) as u8 as usize))
}

/// A slot as a call.
#[inline]
pub(crate) fn call(slot: &Slot) -> Call {
    let (second, third, fourth, sixth) = (word(slot, 1), word(slot, 2), word(slot, 3), word(slot, 5));
    Call {
        enter: word(slot, 0),
        function: second as u16,
        flags: (second >> 16) as u16,
        node: (second >> 32) as u32,
        peer: third as i32,
        tag: (third >> 32) as i32,
        object: fourth as u32,
        bytes: (fourth >> 32) as u32,
        leave: word(slot, 4),
        source: sixth as i32,
        arrived_tag: (sixth >> 32) as i32,
        received: word(slot, 6),
        id: word(slot, 7),
    }
}
