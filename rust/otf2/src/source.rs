//! Why the traces of another tool cannot be read as a recording: the same for all readers of such traces.

use std::io;
use std::path::{Path, PathBuf};

/// Result of reading the traces of another tool.
pub type Result<T> = std::result::Result<T, Error>;

/// Why the traces of another tool cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused.
    #[error(transparent)]
    Io(crate::Error),
    /// The path names no traces of one run.
    #[error("{}: {why}", path.display())]
    NoTrace {
        /// The path as given.
        path: PathBuf,
        /// What it is instead.
        why: String,
    },
    /// A file that is not what it says it is, or of which too much cannot be read.
    #[error("{}: {why}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// An option that does not fit.
    #[error("{0}")]
    Option(String),
}

impl Error {
    /// An error of the system, or of a file that is not what it should be.
    pub fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| match source.kind() {
            io::ErrorKind::InvalidData => Self::Damaged { path, why: source.to_string() },
            _ => Self::Io(crate::Error::Io { path, source }),
        }
    }

    /// A path that names no traces of one run.
    pub fn no_trace(path: &Path, why: impl Into<String>) -> Self {
        Self::NoTrace { path: path.to_owned(), why: why.into() }
    }

    /// A damaged file.
    pub fn damaged(path: &Path, why: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), why: why.into() }
    }
}
