//! Why reports cannot be read.

use std::io;
use std::path::{Path, PathBuf};

/// Result of reading reports.
pub type Result<T> = std::result::Result<T, Error>;

/// Why reports cannot be read.
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
    /// The path does not name reports of one run.
    #[error("{}: {why}", path.display())]
    NoRun {
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
}

impl Error {
    /// An error of the system, or of a file that is not what it should be.
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_owned();
        move |source| match source.kind() {
            io::ErrorKind::InvalidData => Error::Damaged { path, why: source.to_string() },
            _ => Error::Io { path, source },
        }
    }

    pub(crate) fn damaged(path: &Path, why: impl Into<String>) -> Error {
        Error::Damaged { path: path.to_owned(), why: why.into() }
    }

    pub(crate) fn no_run(path: &Path, why: impl Into<String>) -> Error {
        Error::NoRun { path: path.to_owned(), why: why.into() }
    }
}
