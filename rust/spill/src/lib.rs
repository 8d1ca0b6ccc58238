//! A memory allocator whose large blocks can lie in a file, so that what an analysis keeps may be larger than memory.
//!
//! [`Allocator`] passes everything on to the system until [`limit`] is called. From then on large blocks come from a
//! shared mapping of an unlinked file. Their pages count as memory of the process while it uses them; when the process
//! comes near the limit, pages are dropped from its memory, in turn over the whole file. What stands in them stays in
//! the file: the next access brings them back, from the kernel's cache while there is memory to spare, else from disk.
//!
//! So no stage of the analysis needs to know what is in memory, and the limit holds as long as small blocks, stacks and
//! the pages in use at a time fit into it.
//!
//! Without a limit, memory that a stage frees can be kept for the next ([`keep`]).

#[cfg(target_os = "linux")]
mod arena;
#[cfg(target_os = "linux")]
mod extents;
#[cfg(target_os = "linux")]
mod heap;
#[cfg(target_os = "linux")]
mod resident;

#[cfg(not(target_os = "linux"))]
mod unsupported;
#[cfg(not(target_os = "linux"))]
use unsupported as arena;
#[cfg(not(target_os = "linux"))]
use unsupported as heap;
#[cfg(not(target_os = "linux"))]
use unsupported as resident;

use std::io;
use std::path::PathBuf;

pub use arena::{Allocator, failure, limit};
pub use heap::{Kept, keep};
pub use resident::{peak, resident};

/// How much memory the process may take, and where the rest goes.
#[derive(Clone, Debug)]
pub struct Limit {
    /// Bytes of memory.
    pub bytes: u64,
    /// Directory of the file; it must be on a disk.
    pub directory: PathBuf,
}

/// Why memory cannot be limited.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The directory cannot hold such a file.
    #[error("cannot keep data in {}: {source}", directory.display())]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The directory is in memory itself.
    #[error("cannot keep data in {}: it is in memory, not on a disk", .0.display())]
    InMemory(PathBuf),
    /// Another directory was asked for while a result is still in the first.
    #[error("cannot keep data in {}: an earlier result is still in use elsewhere", .0.display())]
    InUse(PathBuf),
    /// The operating system is not Linux.
    #[error("a memory limit is supported on Linux only")]
    Unsupported,
}
