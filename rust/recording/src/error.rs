//! What can keep a recording from becoming an archive.

use std::io;
use std::path::{Path, PathBuf};

/// Result of reading a spool or writing its archive.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a recording cannot be finished.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file of the spool has another version.
    #[error("{}: version {version} of the format of recordings: finish it with the whywait that recorded it", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// A file of the spool is useless.
    #[error("{text}")]
    Damaged {
        /// Which, where and why.
        text: String,
    },
    /// There is nothing to finish.
    #[error("{}: {why}", path.display())]
    Nothing {
        /// The directory.
        path: PathBuf,
        /// What is missing.
        why: String,
    },
    /// Ranks were recorded in different ways.
    #[error("ranks {first} and {second} were recorded with different {what}: {values}")]
    Different {
        /// A rank.
        first: u32,
        /// Another.
        second: u32,
        /// In what they differ.
        what: &'static str,
        /// The two values.
        values: String,
    },
    /// The program is not done.
    #[error("{}: rank {rank} (process {pid}) is still running; finish the recording when it has ended", path.display())]
    Running {
        /// The directory.
        path: PathBuf,
        /// A rank that runs.
        rank: u32,
        /// Its process on this machine.
        pid: u32,
    },
    /// The operating system refused, or the archive cannot be written.
    #[error(transparent)]
    Archive(#[from] whywait_otf2::Error),
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    pub(crate) fn io(path: &Path) -> impl Fn(io::Error) -> Self {
        move |source| Self::Archive(whywait_otf2::Error::Io { path: path.to_owned(), source })
    }
}
