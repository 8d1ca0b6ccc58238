//! Why a trace cannot be read.

use std::io;
use std::path::{Path, PathBuf};

/// Result of reading a trace.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a trace cannot be read.
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
    /// The path names no trace, or several.
    #[error("{}: {why}", path.display())]
    NoTrace {
        /// The path as given.
        path: PathBuf,
        /// What it is instead.
        why: String,
    },
    /// A file that is not what it says it is, or that has nothing to analyze.
    #[error("{}: {why}", path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A file that ends within a record.
    #[error(
        "{}: line {line} is cut off: {records} whole records before it; --truncated analyzes these, \
         or keep them with: {command}", path.display()
    )]
    Cut {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: u64,
        /// Number of records in the lines before.
        records: u64,
        /// What keeps the lines before.
        command: String,
    },
}

impl Error {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::Io { path, source }
    }

    pub(crate) fn refused(path: &Path, why: impl Into<String>) -> Error {
        Error::Refused { path: path.to_owned(), why: why.into() }
    }
}
