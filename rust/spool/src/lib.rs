//! The spool: what the recorder writes while a program runs, and what finishing reads.
//!
//! A directory `.spool` in the archive holds, for each process with rank R in MPI_COMM_WORLD,
//!
//! * `R.wwd`: definitions, a header and then entries, appended one by one ([`EntryHeader`], [`Entry`]),
//! * `R.T.wws`: the calls of its thread T, a [`FileHeader`] in the first [`PAGE`] bytes and then slots of 64 bytes,
//! * `R.T.wwp`: the samples of its thread T, if it has any: a [`SamplesHeader`], then slots that are [`Sample`],
//!   [`Nodes`], or [`SampledCode`].
//!
//! All are valid at any time: a process may end between any two instructions. All numbers are little-endian.
//! The recorder and the reader share this crate, which depends on nothing.
//!
//! # Slots
//!
//! A file of slots grows by chunks of [`CHUNK`] bytes, which follow each other without a gap. The first 8 bytes of a slot
//! say what it is: 0 is the end of the data, a value with the bit [`EXTENSION`] is an extension, anything else is the
//! time at which a call was entered: a [`Call`]. Extensions belong to the call before them, but for [`Node`],
//! [`Stall`], [`Switch`] and [`Counters`] of kind COUNTERS_ENTER, which stand before the call that follows. Time is in ticks of the clock of the file's header.
//!
//! The first half of a call's slot was written on entry, the second on return. `leave` is 0 if the call never returned;
//! then only the first half and the extension [`Wide`] count.
//!
//! # Polling
//!
//! Of a run of tests that found nothing (MPI_Test, MPI_Iprobe, ...) with nothing else recorded and little computed in between, only the first
//! from each place (function and call path) is recorded. Those after the first have [`flags::POLLS`]; further ones are counted in [`Polls`]. If the run ends with a test
//! from one of these places that finds something, that has [`flags::POLLED`].
//!
//! # Functions
//!
//! [`Call::function`] is an index into the lists `function` of `rust/record/mpi.toml`, `threads.toml`, `shmem.toml`, `posix.toml` and `armci.toml`, in the order of these files. Functions whose names
//! end in `_c` are no entries of their own: they record the plain function and the flag [`flags::LARGE`]. Which fields a
//! call fills follows from the `class` of its function:
//!
//! | class | entry: `peer`, `tag`, `object`, `bytes` | return: `source`, `arrived_tag`, `received`, `id` |
//! | --- | --- | --- |
//! | `plain`, `init`, `finalize`, `abort`, `pcontrol`, `type_free`, `comm_name`, `win_name`, `status` | -, -, communicator if there is one, - | - |
//! | `shmem_test` | - | flag (1 if the condition holds), -, -, - |
//! | `probe` | source, tag, communicator, - | source and tag found ([`PEER_UNDEFINED`] if none) |
//! | `send` | destination, tag, communicator, bytes | - |
//! | `recv` | source, tag, communicator, size of the buffer | real source, real tag, bytes, - |
//! | `mrecv` | -, -, communicator of the message's probe, size of the buffer | as `recv` |
//! | `sendrecv` | destination, send tag, communicator, bytes sent; while it has not returned, with [`flags::ASKED`] also the source and tag to receive | real source, real tag, bytes received, - |
//! | `isend` | as `send` | -, -, -, request |
//! | `irecv`, `imrecv` | as `recv`, `mrecv` | -, -, -, request |
//! | `isendrecv` | as `send` | source and tag to receive, -, request of the send; that of the receive is one more |
//! | `send_init`, `recv_init` | as `isend`, `irecv`; bytes of all partitions | -, -, -, request |
//! | `pready`, `parrived` | first partition, last one (less than the first: none), communicator, number of partitions; more ranges in [`Partitions`] | flag (1 if the partition has arrived), -, -, request |
//! | `start` | as `isend`, `irecv` if [`Call::kind`] is SEND, RECEIVE; for COLLECTIVE see [`Collective`] | -, -, -, request |
//! | `startall` | - | [`Requests`] and [`Collective`] in the order of the array |
//! | `wait`, `test`, `waitany`, `testany` | - | if [`Call::kind`] is not NONE: `source`, `arrived_tag`, `received`, `id` of the one completed, and its communicator, window or file in `object`; kind COLLECTIVE, or [`flags::LISTED`]: in extensions |
//! | `test` that found nothing | - | kind NONE, `id` of the request (0 if it was none of a message) |
//! | `waitall`, `testall`, `waitsome`, `testsome` | - | [`Requests`] and [`Collective`] in the order of the array (of the indices) |
//! | `request_free`, `cancel` | - | -, -, -, request |
//! | `coll` | root, -, communicator, bytes of the own send part | -, -, bytes of the own receive part, - |
//! | `icoll`, `coll_init` | as `coll` | as `coll`, and request |
//! | `comm_create`, `comm_create_group`, `comm_from_group`, `intercomm_create`, `intercomm_merge`, `comm_idup` | -, -, old communicator, - | -, -, -, new communicator ([`NONE`] if the caller is no member); for `comm_idup` `received` is the request |
//! | `comm_free` | -, -, communicator, - | - |
//! | `win_create` | -, -, communicator, - | -, -, -, new window |
//! | `win_free`, `win_fence`, `win_plain` | -, assert of the fence, window, - | - |
//! | `win_group`: `post`, `start` | group, -, window, - | - |
//! | `win_end`: `complete`, `wait`, `test` | group of the epoch that ends, -, window, - | flag (1 if it ended), -, -, - |
//! | `win_lock`, `win_unlock` | target ([`PEER_ALL`] in the `_all` forms), [`LOCK_EXCLUSIVE`] or [`LOCK_SHARED`], window, - | - |
//! | `win_flush`, `win_flush_local` | target, -, window, - | - |
//! | `rma` | target, -, window, bytes (of the elements moved to or from the target) | -, -, -, matching id |
//! | `rma_request` | as `rma` | as `rma`; when completed, `id` is the matching id |
//! | `atomic`, `atomic_request` | target, -, window, *elements* sent | -, -, *elements* received, matching id |
//! | `file_open` | -, mode, communicator, - | -, -, -, new file |
//! | `file_close`, `file_plain` | -, -, file, - | - |
//! | `file_seek` | 0, 1 or 2 for from the beginning, the present position, the end ([`PEER_UNDEFINED`]: unknown); lower half of the offset; file; upper half | -, -, new position, - |
//! | `io`, `io_begin` | -, -, file, bytes asked for | -, -, bytes done (`io`), - |
//! | `io_end` | -, -, file, - | -, -, bytes done |
//! | `iio` | -, -, file, bytes asked for | -, -, -, request |
//! | `thread_lock` | -, -, lock, - | -, -, -, acquisition order (0: not acquired) |
//! | `thread_unlock` | -, -, lock ([`NONE`] if the thread was not seen to acquire it), acquisition order | - |
//! | `thread_condition` | -, -, mutex, acquisition order of its release | -, -, -, that of its acquisition (0: none) |
//! | `thread_create` | -, -, -, number of the new thread | - |
//! | `thread_join` | - | -, -, -, number of the thread that ended (0: unknown) |
//! | `shmem_put`, `shmem_get`, `shmem_atomic` | PE, -, -, bytes (of one element of an atomic operation) | - |
//! | `shmem_lock`, `shmem_try_lock`, `shmem_unlock` | -, -, lower half of the address of the lock, upper half | flag (0 if `shmem_try_lock` got it), -, -, - |
//! | `shmem_coll` | first PE, logarithm of the stride, number of PEs ([`NONE`]: all), bytes of the own part | - |
//! | `shmem_init`, `shmem_finalize`, `shmem_wait` | - | - |
//! | `posix_open` | -, flags of `open`, -, - | -, -, -, file ([`NONE`]: unknown) |
//! | `posix_close`, `posix_flush`, `posix_status`, `posix_dup` | -, -, file, - | - |
//! | `posix_io`, `posix_char`, `posix_scan` | -, -, file, bytes asked for (0: not known) | -, -, bytes done, - |
//! | `posix_seek` | as `file_seek` | as `file_seek` |
//! | `posix_map` | -, -, file, bytes | - |
//! | `posix_name`, `posix_close_range`, `posix_aio_wait` | - | - |
//! | `posix_copy` | -, file that is read, file that is written, bytes asked for | -, -, bytes done, - |
//! | `posix_aio` | -, -, file, bytes asked for | -, -, -, request |
//! | `posix_aio_list` | - | [`Requests`], with 1 for a write and 0 for a read in the place of a peer |
//! | `posix_aio_end` | -, -, file, - | 1 if the operation failed or was cancelled, -, bytes done, request (0: its begin is not known) |
//! | `armci_put`, `armci_get`, `armci_atomic`, `armci_rmw` | process, -, -, bytes | see `armci_wait`, but for `armci_rmw`: address of the handle of a non-blocking operation |
//! | `armci_wait` | process ([`PEER_ALL`] if none is named), -, -, - | 1 if ARMCI stands on windows of MPI, -, -, address of the handle (0: none) |
//! | `armci_fence` | process or [`PEER_ALL`], -, -, - | - |
//! | `armci_lock`, `armci_unlock` | process, number of the mutex there, -, - | - |
//! | `armci_coll` | - | - |
//! | `omp` | [`BEGINS`] or [`ENDS`], threads asked for, team or lock, acquisition order; a moment | -, -, address of the construct (0: unknown), number of the task |
//! | `thread_begin`, `thread_end` | -; a moment: entered and returned at once | -, -, -, number of the thread |
//!
//! "Part" of a collective operation: what the arguments of the caller name, count times size of the type, for the v and w forms the sum over
//! all processes; with MPI_IN_PLACE as if the buffer were given; for Gatherv and Scatterv of the side
//! that has one block, that block. 0 for an argument that is not significant. Request ids, and matching ids of RMA operations, are counted from 1 for each process;
//! a persistent request keeps its id. A failed call ([`flags::FAILED`]) has no message: only the region counts.

#![expect(clippy::doc_markdown, reason = "MPI's own names")]

/// Version of the format; a reader refuses newer ones.
pub const VERSION: u32 = 3;
/// First bytes of a file of slots.
pub const SLOTS_MAGIC: [u8; 4] = *b"WWSP";
/// First bytes of a file of samples.
pub const SAMPLES_MAGIC: [u8; 4] = *b"WWPS";
/// First bytes of a file of definitions.
pub const DEFINITIONS_MAGIC: [u8; 4] = *b"WWDF";
/// Name of the spool's directory in the archive.
pub const DIRECTORY: &str = ".spool";
/// Size of the header of a file of slots; the slots follow.
pub const PAGE: usize = 4096;
/// Size of a chunk of slots.
pub const CHUNK: usize = 4 << 20;
/// Size of a chunk of samples.
pub const SAMPLES_CHUNK: usize = 64 << 10;
/// Size of a slot.
pub const SLOT: usize = 64;

/// Set in the first word of an extension slot. The kind is in bits 0 to 7, the number of its items in bits 8 to 15.
pub const EXTENSION: u64 = 1 << 63;

/// No object: the function has none, it is not known to the recorder, or the caller is not in it.
pub const NONE: u32 = u32::MAX;

/// Peer MPI_PROC_NULL.
pub const PEER_NULL: i32 = -1;
/// Peer MPI_ANY_SOURCE.
pub const PEER_ANY: i32 = -2;
/// Root MPI_ROOT, on an intercommunicator.
pub const PEER_ROOT: i32 = -3;
/// No peer.
pub const PEER_UNDEFINED: i32 = -4;
/// All targets of a window.
pub const PEER_ALL: i32 = -5;
/// Tag MPI_ANY_TAG.
pub const TAG_ANY: i32 = -1;

/// A construct of OpenMP begins.
pub const BEGINS: i32 = 1;
/// A construct of OpenMP ends.
pub const ENDS: i32 = 2;

/// Lock type MPI_LOCK_EXCLUSIVE.
pub const LOCK_EXCLUSIVE: i32 = 0;
/// Lock type MPI_LOCK_SHARED.
pub const LOCK_SHARED: i32 = 1;

/// Communicator MPI_COMM_WORLD.
pub const COMM_WORLD: u32 = 0;
/// Communicator MPI_COMM_SELF.
pub const COMM_SELF: u32 = 1;

/// First page of `R.T.wws` (zeros after it).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FileHeader {
    /// [`SLOTS_MAGIC`]
    pub magic: [u8; 4],
    /// [`VERSION`].
    pub version: u32,
    /// Id of the run, the same in all files of a spool.
    pub run: [u8; 16],
    /// Rank in MPI_COMM_WORLD.
    pub rank: u32,
    /// Number of the thread, in the order of first calls.
    pub thread: u32,
    /// Process id.
    pub pid: u32,
    /// Thread id of the kernel.
    pub tid: u32,
}

/// First page of `R.T.wwp` (zeros after it).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SamplesHeader {
    /// With [`SAMPLES_MAGIC`].
    pub file: FileHeader,
    /// [`Mechanism`]
    pub mechanism: u32,
    /// Zero.
    pub unused: u32,
    /// Mean CPU time from one sample to the next, in ns.
    pub period: u64,
}

/// What interrupts a thread for a sample.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// The event `task-clock` of perf, in user code.
    Perf = 0,
    /// A timer of the thread's CPU time, which expires at ticks of the kernel.
    Timer = 1,
}

/// One call of an MPI function.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default)]
pub struct Call {
    /// Time of entry.
    pub enter: u64,
    /// Index of the function.
    pub function: u16,
    /// See [`flags`]; the kind of a request in the bits from [`flags::KIND_SHIFT`]. Part of it is written on return.
    pub flags: u16,
    /// Call path: the number of a [`Node`] of this thread, 0 if unknown.
    pub node: u32,
    /// Destination, source, root or target.
    pub peer: i32,
    /// Tag, lock type, assert or mode.
    pub tag: i32,
    /// Communicator, window or file: the id of its definition entry, or [`NONE`].
    pub object: u32,
    /// Bytes (elements for atomic operations, requests for calls that complete them); if [`flags::WIDE`] is set, [`Wide`] holds it.
    pub bytes: u32,
    /// Time of return, 0 if the call never returned.
    pub leave: u64,
    /// Real source; flag. Error code if [`flags::FAILED`] is set.
    pub source: i32,
    /// Real tag.
    pub arrived_tag: i32,
    /// Bytes received or done.
    pub received: u64,
    /// Id of a request, an RMA operation or a new object.
    pub id: u64,
}

/// Bits of [`Call::flags`].
pub mod flags {
    /// The `_c` function was called.
    pub const LARGE: u16 = 1;
    /// The MPI has no such function: another one was called in its place, or an error returned.
    pub const FALLBACK: u16 = 1 << 1;
    /// The call returned an error; `source` is its code. For completions in an array: MPI_ERR_IN_STATUS, and those that are listed
    /// did complete.
    pub const FAILED: u16 = 1 << 2;
    /// `bytes` is in an extension [`Wide`](super::Wide).
    pub const WIDE: u16 = 1 << 3;
    /// What was completed or started is listed in extensions.
    pub const LISTED: u16 = 1 << 4;
    /// MPI_IN_PLACE was given.
    pub const IN_PLACE: u16 = 1 << 5;
    /// `source` and `arrived_tag` are what a call that has not returned is to receive.
    pub const ASKED: u16 = 1 << 6;
    /// A test that found nothing, and goes on with a run of such tests.
    pub const POLLS: u16 = 1 << 7;
    /// A test that found something at the end of such a run.
    pub const POLLED: u16 = 1 << 8;
    /// First bit of the [`RequestKind`](super::RequestKind), of four.
    pub const KIND_SHIFT: u32 = 12;
}

/// What a request is for.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// No request, or one that the recorder does not know.
    None = 0,
    /// A send.
    Send = 1,
    /// A receive.
    Receive = 2,
    /// A non-blocking or persistent collective operation: details in [`Collective`].
    Collective = 3,
    /// MPI_Rput, MPI_Raccumulate, MPI_Rget_accumulate: local completion; `id` is the matching id, the object is the window.
    Put = 4,
    /// MPI_Rget: local and remote completion; as Put.
    Get = 5,
    /// An operation on a file, which is the object.
    File = 6,
    /// A message that was cancelled.
    Cancelled = 7,
    /// MPI_Comm_idup and its kin; the object is the old communicator.
    Communicator = 8,
}

impl Call {
    /// Kind of the request that a call completed or started, as the number of a [`RequestKind`].
    pub const fn kind(&self) -> u8 {
        (self.flags >> flags::KIND_SHIFT) as u8
    }
}

/// Kind of an extension, in the lowest byte of its first word.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extension {
    /// [`Wide`]
    Wide = 1,
    /// [`Requests`]
    Requests = 2,
    /// [`Collective`]
    Collective = 3,
    /// [`Nodes`]
    Nodes = 4,
    /// [`Stall`]
    Stall = 5,
    /// [`Switch`]
    Switch = 6,
    /// [`Counters`] at the entry of the next call.
    CountersEnter = 7,
    /// [`Counters`] at the return of the call.
    CountersLeave = 8,
    /// [`Polls`]
    Polls = 9,
    /// [`Partitions`]
    Partitions = 10,
    /// [`Sample`]
    Sample = 16,
    /// [`SampledCode`]
    SampledCode = 17,
    /// [`Text`]
    Text = 18,
}

/// First word of an extension slot.
pub const fn extension(kind: Extension, items: u8) -> u64 {
    EXTENSION | kind as u64 | (items as u64) << 8
}

/// Bytes that do not fit 32 bits; follows its call.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default)]
pub struct Wide {
    /// See [`extension`].
    pub head: u64,
    /// In the place of [`Call::bytes`].
    pub bytes: u64,
}

/// Up to two requests that a call completed, or started (Startall); follows its call.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default)]
pub struct Requests {
    /// See [`extension`]; one or two items.
    pub head: u64,
    /// The requests.
    pub items: [Request; 2],
}

/// One request that was completed or started.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Request {
    /// Id of the request, or matching id of the RMA operation; low word first.
    pub id: [u32; 2],
    /// Bytes received (completed receive), bytes sent (started send), bytes done (file); low word first.
    pub bytes: [u32; 2],
    /// Source of a completed receive; peer of what was started.
    pub peer: i32,
    /// Its tag.
    pub tag: i32,
    /// Communicator, window or file in the lower 28 bits (all ones: unknown), [`RequestKind`] above.
    pub object: u32,
}

impl Request {
    /// Bits of `object` that hold the id of the communicator, window or file.
    pub const OBJECT: u32 = (1 << 28) - 1;
}

/// A collective operation that was completed, or started (Start, Startall); follows its call.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default)]
pub struct Collective {
    /// See [`extension`].
    pub head: u64,
    /// Id of the request.
    pub id: u64,
    /// As [`Call::bytes`] of the function that made the request.
    pub bytes: u64,
    /// As [`Call::received`] of the function that made the request.
    pub received: u64,
    /// Root.
    pub root: i32,
    /// Communicator.
    pub object: u32,
    /// Index of the function that made the request.
    pub function: u16,
    /// Its flags.
    pub flags: u16,
}

/// Up to three new nodes of the tree of call paths; before the first call that has them.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default)]
pub struct Nodes {
    /// See [`extension`]; one to three items.
    pub head: u64,
    /// Zeros.
    pub unused: u64,
    /// The nodes.
    pub items: [Node; 3],
}

/// A node of a thread's tree of call paths.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Node {
    /// Return address in this frame (that of the call is one less), 0 if it could not be found out; with [`Node::PYTHON`] the id of a [`Entry::Code`].
    pub address: u64,
    /// Its own number, from 1 on.
    pub node: u32,
    /// The caller's node, 0 for none.
    pub parent: u32,
}

impl Node {
    /// Set in the address of a function of Python.
    pub const PYTHON: u64 = 1 << 63;
}

/// The recorder itself held up the thread, to get a new chunk; before the next call.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default)]
pub struct Stall {
    /// See [`extension`].
    pub head: u64,
    /// When it began.
    pub from: u64,
    /// When it ended.
    pub to: u64,
}

/// Recording was switched on or off (MPI_Pcontrol, `--window`); before the next call.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default)]
pub struct Switch {
    /// See [`extension`].
    pub head: u64,
    /// When.
    pub time: u64,
    /// 1: on from here, 0: off from here.
    pub on: u64,
}

/// Further tests that found nothing, from places from which the run of tests has recorded one; follows the last of these.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default)]
pub struct Polls {
    /// See [`extension`].
    pub head: u64,
    /// When the last of them returned.
    pub until: u64,
    /// How many they are.
    pub count: u64,
    /// How long all of them took together.
    pub inside: u64,
}

/// Number of ranges in [`Partitions`].
pub const RANGES: usize = 7;

/// Further partitions that a call made ready; follows it.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default)]
pub struct Partitions {
    /// See [`extension`]; one to seven items.
    pub head: u64,
    /// The first and the last one of each range.
    pub items: [[i32; 2]; RANGES],
}

/// Where a thread was at a moment of its CPU time.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// See [`extension`]; the number of items holds [`sample`] flags.
    pub head: u64,
    /// When.
    pub time: u64,
    /// The path of what called the function, in the tree of this file; 0 for none, or if it was not followed.
    pub node: u32,
    /// The function of MPI that the thread was in, with [`sample::INSIDE`].
    pub function: u16,
    /// Zero.
    pub unused: u16,
    /// Address of the next instruction, and one more: so one less is in the function, as for [`Node::address`].
    pub address: u64,
    /// CPU time of the thread, in ns.
    pub cpu: u64,
    /// Of it in the kernel, in us. This and the following counts are the low halves of what the kernel has counted for the thread.
    pub system: u32,
    /// Page faults without and with I/O.
    pub faults: [u32; 2],
    /// Context switches because the thread slept, and because another thread got the core.
    pub switches: [u32; 2],
    /// Samples before this one that found no room.
    pub lost: u32,
}

/// A function of Python in a file of samples, whose nodes have its number; before the nodes. The text follows: the name, then the file's.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default)]
pub struct SampledCode {
    /// See [`extension`]; the items are slots of [`Text`].
    pub head: u64,
    /// Its number in this file, from 1 on.
    pub id: u32,
    /// The line where it begins.
    pub line: u32,
    /// Bytes of the name, and of the file's.
    pub lengths: [u32; 2],
    /// Bytes of a character of each: 1, 2, or 4.
    pub widths: [u32; 2],
    /// Zeros.
    pub unused: [u64; 4],
}

/// Bytes in a [`Text`].
pub const TEXT: usize = 56;

/// Text that belongs to the slot before it.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
pub struct Text {
    /// See [`extension`].
    pub head: u64,
    /// The text.
    pub bytes: [u8; TEXT],
}

/// Page faults from one sample of these to the next, on average, unless there are very many.
pub const FAULTS: u64 = 500;

/// Flags of a [`Sample`].
pub mod sample {
    /// The thread was in a recorded call, whose path is that of the sample. Only the address was taken.
    pub const INSIDE: u8 = 1;
    /// The outermost frames are missing.
    pub const INCOMPLETE: u8 = 1 << 1;
    /// The thread was on a stack of the program's own making: there is no path.
    pub const OWN_STACK: u8 = 1 << 2;
    /// It came late, because signals were blocked.
    pub const LATE: u8 = 1 << 3;
    /// It came with a page fault of the program, one of [`FAULTS`](super::FAULTS) on average.
    pub const FAULT: u8 = 1 << 4;
}

/// Number of values in [`Counters`].
pub const COUNTERS: usize = 7;

/// Values of counters, in the order of their definitions ([`Entry::Counter`]): this block of [`COUNTERS`] of them. Blocks that
/// did not change since the thread wrote them last are left out.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// See [`extension`]; one to seven items, and the number of the block from bit 16 on.
    pub head: u64,
    /// The values.
    pub items: [u64; COUNTERS],
}

/// Where a counter comes from.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterSource {
    /// getrusage, for the thread.
    Rusage = 0,
    /// The core that runs the thread.
    Core = 1,
    /// An event of perf, for the thread.
    Perf = 2,
    /// A performance variable of MPI, for the process; only the first thread has it.
    Mpi = 3,
}

/// First bytes of `R.wwd`; entries follow.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DefinitionsHeader {
    /// [`DEFINITIONS_MAGIC`]
    pub magic: [u8; 4],
    /// [`VERSION`]
    pub version: u32,
    /// Id of the run.
    pub run: [u8; 16],
    /// Rank in MPI_COMM_WORLD.
    pub rank: u32,
    /// Zeros.
    pub unused: u32,
}

/// Before each entry of `R.wwd`. An entry that is cut off or whose checksum is wrong ends the file.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct EntryHeader {
    /// Length of the payload, without this header.
    pub length: u32,
    /// CRC-32 (IEEE 802.3) of the kind, in little-endian, and the payload.
    pub crc: u32,
    /// [`Entry`]
    pub kind: u32,
}

/// Kinds of entries, each with the fields of its payload in order. A string is a u32, its length, and that many bytes (UTF-8 if
/// the program's is); nothing is padded.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// First entry. rank u32, size u32, pid u32, clock u32 ([`CLOCK_TSC`], [`CLOCK_MONOTONIC`], [`CLOCK_CNTVCT`]), ticks per second u64 (an estimate: see Clock), time
    /// of the start of the process or of the recorder u64, boot id 16 bytes, time namespace u64, ABI string (`mpich`, `openmpi`, `mpi5`), MPI library's
    /// path string, MPI library's version string, host string, path of the executable string, recorder's version string, options string. All ranks must agree
    /// in the last two.
    Start = 1,
    /// time u64, reason u32 ([`END_FINALIZED`], [`END_ABORTED`], [`END_EXITED`]). MPI_Finalize returned, MPI_Abort was called, the process left by exit.
    End = 2,
    /// ticks u64, CLOCK_MONOTONIC in ns u64, CLOCK_REALTIME in ns u64: read at the same moment. The first and the last give the frequency.
    Clock = 3,
    /// own ticks u64, rank 0's ticks u64, shortest round trip in own ticks u64: clocks of this process and rank 0 at the same moment. Only
    /// from one process of each node; the others of the node share its clock.
    Sync = 4,
    /// A communicator: see [`CommName`]. id u32, parent u32, name u32, k u32, lead u32, remote lead u32, tag i32, own rank u32, size u32, remote size
    /// u32 (0: an intracommunicator), own rank in MPI_COMM_WORLD u32, neighbours in u32, neighbours out u32 (0 without topology), number of members u32, members:
    /// their ranks in MPI_COMM_WORLD ([`NONE`] in another), u32 each, then text string, and the time u64. Members are listed (the own group's) only by rank 0
    /// of it, and only up to 1024.
    Comm = 5,
    /// A group of an epoch: id u32, number u32, ranks in MPI_COMM_WORLD u32 each, ascending as the program listed them.
    Group = 6,
    /// A window: id u32, communicator u32, k u32 (its number among those made on the communicator), kind u32: function index that made it.
    Window = 7,
    /// A file: id u32, communicator u32, k u32, mode i32 (as the program gave it), name string.
    File = 8,
    /// A name: what u32 ([`NAME_COMM`], [`NAME_WINDOW`], [`NAME_PROGRAM`]), id u32, text string.
    Name = 9,
    /// A loaded object: time u64, base u64 (address minus the address in the file), start u64, end u64, build id string (bytes), path string (empty:
    /// the program itself). Listed anew when objects were loaded later; the latest entry before a call counts.
    Module = 10,
    /// A function of Python: id u32, line u32, name string, file string.
    Code = 11,
    /// Something was lost: thread u32 ([`NONE`]: all), time u64, reason u32 ([`LOST_SPACE`], [`LOST_LIMIT`], [`LOST_BUG`], [`LOST_UNLOADED`]), text string. From there on nothing was recorded.
    Lost = 12,
    /// Counted events: what u32 ([`NOTE_UNKNOWN_COMM`], ...), count u64.
    Note = 13,
    /// A counter: number u32 ([`NONE`]: it cannot be read, for the reason in its description), [`CounterSource`] u32, OTF2's metric mode u32, exponent of ten
    /// i32, name string, unit string, description string. Numbers ascend from 0, those of threads before those of the process.
    Counter = 14,
    /// A Cartesian topology: id of the communicator u32, number of dimensions u32, then for each its size, whether it is periodic, and the own
    /// coordinate, u32 each.
    Topology = 15,
    /// Cores of the machine that run u32, number of those that the process may use u32, then their numbers, u32 each, ascending.
    Cores = 16,
    /// Something is not sampled: number of threads u32 ([`NONE`]: the process, from then on), why string. Of entries with the same reason, the last counts.
    Unsampled = 17,
    /// A file that is no file of MPI: number u32, counted from 0, whose u32 ([`IO_POSIX`] or [`IO_ISO_C`]), what u32 ([`FILE_PATH`], [`FILE_STANDARD`] or
    /// [`FILE_OTHER`]), name string.
    PosixFile = 18,
}

/// How a communicator got its name. Two entries of different processes are the same communicator if name, `k`, the set of both leads,
/// tag, text and the parents' *communicators* are equal. `lead` is the rank in MPI_COMM_WORLD of the own group's rank 0, `remote lead` that of the remote
/// group's ([`NONE`] for intracommunicators).
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommName {
    /// MPI_COMM_WORLD.
    World = 0,
    /// MPI_COMM_SELF.
    Itself = 1,
    /// Made by a call that is collective over the parent; `k` is the number of that call among those.
    Child = 2,
    /// MPI_Comm_create_group: parent, tag, and `k` among those of this parent, tag and lead.
    Group = 3,
    /// MPI_Intercomm_create: no parent; both leads, tag, and `k` among those.
    Inter = 4,
    /// MPI_Comm_create_from_group, MPI_Intercomm_create_from_groups: no parent; leads, text (the string tag), and `k` among those.
    Session = 5,
    /// To processes of another world: parent, the number of the call on it, and how in the tag ([`BY_SPAWN`], ...). The text is the name of the port, at the
    /// root only. Which of another world is its other side, finishing finds out.
    Foreign = 6,
    /// As Child, of a parent that reaches other worlds: the lead is a rank in the parent ([`NONE`] if that is an intercommunicator).
    Abroad = 7,
}

/// A foreign communicator was made by MPI_Comm_spawn.
pub const BY_SPAWN: i32 = 0;
/// It is that of MPI_Comm_get_parent.
pub const BY_PARENT: i32 = 1;
/// By MPI_Comm_accept.
pub const BY_ACCEPT: i32 = 2;
/// By MPI_Comm_connect.
pub const BY_CONNECT: i32 = 3;
/// By MPI_Comm_join.
pub const BY_JOIN: i32 = 4;
/// In another way, so that its other side is not known.
pub const BY_OTHERS: i32 = 5;

/// Clock: the x86 time stamp counter.
pub const CLOCK_TSC: u32 = 0;
/// Clock: CLOCK_MONOTONIC in ns.
pub const CLOCK_MONOTONIC: u32 = 1;
/// Clock: the virtual counter of aarch64.
pub const CLOCK_CNTVCT: u32 = 2;

/// Name of a communicator.
pub const NAME_COMM: u32 = 0;
/// Name of a window.
pub const NAME_WINDOW: u32 = 1;
/// Name of the program, where the executable only interprets it; its id is 0.
pub const NAME_PROGRAM: u32 = 2;

/// A file that a descriptor stands for.
pub const IO_POSIX: u32 = 0;
/// A file that a stream of stdio stands for.
pub const IO_ISO_C: u32 = 1;
/// Its name is a path.
pub const FILE_PATH: u32 = 0;
/// It was open from the start: `stdin`, `stdout` or `stderr`.
pub const FILE_STANDARD: u32 = 1;
/// It has no path: a pipe, a socket.
pub const FILE_OTHER: u32 = 2;

/// MPI_Finalize returned.
pub const END_FINALIZED: u32 = 0;
/// MPI_Abort was called.
pub const END_ABORTED: u32 = 1;
/// The process called exit without MPI_Finalize.
pub const END_EXITED: u32 = 2;

/// The file system is full, or the file could not be made.
pub const LOST_SPACE: u32 = 0;
/// The size given by `--max-size` is reached.
pub const LOST_LIMIT: u32 = 1;
/// A fault of the recorder.
pub const LOST_BUG: u32 = 2;
/// MPI's library was unloaded.
pub const LOST_UNLOADED: u32 = 3;

/// Calls on communicators that the recorder does not know.
pub const NOTE_UNKNOWN_COMM: u32 = 0;
/// Receives whose end is missing: MPI_Request_free on an active one.
pub const NOTE_FREED_RECEIVE: u32 = 1;

// What the launcher sets in the program's environment.

/// Absolute path of the archive. Without it the library does nothing. A second world of the same command (spawned, or a second mpiexec) finds the
/// archive taken, and makes `PATH-2`, `PATH-3`, ...: rank 0 claims one by making [`CLAIM`] in its spool.
pub const ENVIRONMENT_ARCHIVE: &str = "WHYWAIT_RECORD";
/// Options: `name=value`, separated by `;`. `groups=env,p2p,...` (names of groups of the table, without `all` and `-NAME`), `callpaths=1`, `depth=128`,
/// `python=auto|off|all`, `keep_tests=0`, `max_size=BYTES`, `window=FROM:TO` (seconds) or `window=call:N..M`, `sync=1`, `helper=1`, `quiet=0`, `counters=rusage,core,...`,
/// `sample=RATE` (samples of a thread in a second of its CPU time).
pub const ENVIRONMENT_OPTIONS: &str = "WHYWAIT_RECORD_OPTIONS";
/// Directory for the spool on the node, if it is not to be in the archive; files are moved when the process exits.
pub const ENVIRONMENT_SPOOL: &str = "WHYWAIT_RECORD_SPOOL";
/// Set by the recorder itself to 1 in a process that records, so that programs started by it do not.
pub const ENVIRONMENT_ACTIVE: &str = "WHYWAIT_RECORD_ACTIVE";
/// File in the spool that says which run it belongs to: 16 bytes.
pub const CLAIM: &str = "run";

/// File in the spool that says that the recorder was loaded into a program with MPI.
pub const PRESENT: &str = "loaded";

const _: () = assert!(
    size_of::<FileHeader>() <= PAGE
        && size_of::<Call>() == SLOT
        && size_of::<Wide>() == SLOT
        && size_of::<Requests>() == SLOT
        && size_of::<Collective>() == SLOT
        && size_of::<Nodes>() == SLOT
        && size_of::<Stall>() == SLOT
        && size_of::<Switch>() == SLOT
        && size_of::<Counters>() == SLOT
        && size_of::<Polls>() == SLOT
        && size_of::<Partitions>() == SLOT
        && size_of::<Sample>() == SLOT
        && size_of::<SampledCode>() == SLOT
        && size_of::<Text>() == SLOT
        && size_of::<SamplesHeader>() <= PAGE
        && size_of::<Request>() == 28
);
