//! A memory allocator that can keep large blocks in a file, so that an analysis may need more than the memory.
//!
//! [`Allocator`] passes everything on to the system until [`limit`] is called. From then on large blocks come from a
//! shared mapping of an unlinked file. When the process comes near the limit, pages of the file are dropped from its
//! memory in turn. Their content stays in the file: the next access brings them back, from the page cache while there
//! is free memory, else from disk.
//!
//! So stages of the analysis need not know what is in memory, and the limit holds as long as small blocks, stacks, and
//! the pages in use at a time fit into it.
//!
//! Without a limit, [`keep`] keeps memory that one stage frees for the next.

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

/// The memory that the process may take, and where the rest goes.
#[derive(Clone, Debug)]
pub struct Limit {
    /// Bytes of memory.
    pub bytes: u64,
    /// Directory of the file, on a disk.
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
