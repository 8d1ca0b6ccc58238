//! Errors as Python exceptions.

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyKeyboardInterrupt, PyOSError};
use pyo3::prelude::*;
use whywait_otf2::source;

create_exception!(whywait, Error, PyException, "Base of all errors of this package.");
create_exception!(whywait, ArchiveError, Error, "The file is at fault: missing, cut off, or not what it says it is.");
create_exception!(whywait, TraceError, Error, "The content of the trace is at fault: unmatched or inconsistent.");
create_exception!(whywait, UsageError, Error, "The caller is at fault.");

/// The Python exception for an error of the reader.
pub(crate) fn archive_error(error: whywait_otf2::Error) -> PyErr {
    match error {
        // Given the errno first, Python chooses the subclass: FileNotFoundError, PermissionError, ...
        whywait_otf2::Error::Io { path, source } => match source.raw_os_error() {
            Some(number) => PyOSError::new_err((number, source.to_string(), path.display().to_string())),
            None => PyOSError::new_err(format!("{}: {source}", path.display())),
        },
        error => ArchiveError::new_err(error.to_string()),
    }
}

/// The Python exception for an error of the analysis.
pub(crate) fn core_error(error: whywait_core::Error) -> PyErr {
    match error {
        whywait_core::Error::Archive(error) => archive_error(error),
        whywait_core::Error::Trace(text) => TraceError::new_err(text),
        error @ whywait_core::Error::Internal(_) => Error::new_err(error.to_string()),
        whywait_core::Error::Usage(text) => UsageError::new_err(text),
        whywait_core::Error::Write(error) => error.into(),
        whywait_core::Error::Interrupted => PyKeyboardInterrupt::new_err(()),
    }
}

/// The Python exception for an error of a reader of another tool's traces.
pub(crate) fn source_error(error: source::Error) -> PyErr {
    match error {
        source::Error::Io(error) => archive_error(error),
        error @ source::Error::Damaged { .. } => ArchiveError::new_err(error.to_string()),
        error => UsageError::new_err(error.to_string()),
    }
}
