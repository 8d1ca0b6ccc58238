//! Why traces cannot be read.

use std::io;
use std::path::{Path, PathBuf};

/// Result of reading traces.
pub type Result<T> = std::result::Result<T, Error>;

/// Why traces cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The path does not name traces of PyTorch's profiler.
    #[error("{}: {why}", path.display())]
    NoTrace {
        /// The path as given.
        path: PathBuf,
        /// What it is instead.
        why: String,
    },
    /// A file of which too much cannot be read.
    #[error("{}: {why}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is damaged.
        why: String,
    },
    /// An option that does not fit.
    #[error("{0}")]
    Option(String),
}

impl Error {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::Io { path, source }
    }
}
