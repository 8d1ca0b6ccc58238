//! Errors in an archive, and their place.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::wire::Fault;

/// Result of reading or writing an archive.
pub type Result<T> = std::result::Result<T, Error>;

/// A file and a byte in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Place {
    /// The file.
    pub path: PathBuf,
    /// Offset from the begin of the file in bytes.
    pub offset: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, byte {}", self.path.display(), self.offset)
    }
}

/// An error in an archive.
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
    /// The path names no archive, or more than one.
    #[error("{}: {why}", path.display())]
    NoArchive {
        /// The path as given.
        path: PathBuf,
        /// Why it does not name an archive.
        why: Cow<'static, str>,
    },
    /// The archive uses a part of the format that is not supported.
    #[error("{place}: {what}")]
    Unsupported {
        /// Where the archive says so.
        place: Place,
        /// The unsupported feature.
        what: Cow<'static, str>,
    },
    /// Bytes that do not follow the format.
    #[error("{place}: {record}: expected {expected}")]
    Malformed {
        /// Where the bytes are.
        place: Place,
        /// Name of the record.
        record: Cow<'static, str>,
        /// What the format requires there.
        expected: Cow<'static, str>,
    },
    /// The file ends too early.
    #[error("{place}: the file ends within {record}: expected {expected}")]
    Truncated {
        /// Where the bytes end.
        place: Place,
        /// Name of the record that is cut.
        record: Cow<'static, str>,
        /// What should follow.
        expected: Cow<'static, str>,
    },
    /// A record that the format cannot express.
    #[error("{}: cannot write {record}: {why}", path.display())]
    Unwritable {
        /// The file being written.
        path: PathBuf,
        /// Name of the record.
        record: Cow<'static, str>,
        /// Why it cannot be written.
        why: Cow<'static, str>,
    },
}

impl Error {
    /// The file of the error.
    pub fn path(&self) -> &Path {
        match self {
            Error::Io { path, .. } | Error::NoArchive { path, .. } | Error::Unwritable { path, .. } => path,
            Error::Unsupported { place, .. } | Error::Malformed { place, .. } | Error::Truncated { place, .. } => {
                &place.path
            }
        }
    }

    /// Byte offset in the file, if the error has one.
    pub fn offset(&self) -> Option<u64> {
        match self {
            Error::Unsupported { place, .. } | Error::Malformed { place, .. } | Error::Truncated { place, .. } => {
                Some(place.offset)
            }
            Error::Io { .. } | Error::NoArchive { .. } | Error::Unwritable { .. } => None,
        }
    }

    /// The error of a decoder in the bytes from offset `base` of a file.
    pub(crate) fn fault(path: &Path, base: u64, record: &'static str, fault: Fault) -> Error {
        let place = Place { path: path.to_owned(), offset: base + fault.offset as u64 };
        let (record, expected) = (record.into(), fault.expected.into());
        if fault.cut {
            Error::Truncated { place, record, expected }
        } else {
            Error::Malformed { place, record, expected }
        }
    }

    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::Io { path, source }
    }
}
