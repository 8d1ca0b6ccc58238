//! Memory of the process: limit and peak.

use std::path::PathBuf;

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use whywait_spill::{Allocator, Error, Limit};

use crate::errors::UsageError;
use crate::run::Run;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// Memory that any analysis takes, bytes.
const FIXED: u64 = 24 << 20;
/// Working memory of a thread, bytes.
const PER_THREAD: u64 = 24 << 20;
/// Memory that a location keeps, bytes.
const PER_LOCATION: u64 = 1 << 10;

/// Limits the memory of the process while it analyzes `run` and keeps the result, or opens one; the rest is spilled to a
/// file in `directory`, by default that for temporary files. Removes the limit if `size` is `None`.
///
/// A limit that is too small is an error once the run is open: before, nobody knows how much it needs.
#[pyfunction]
#[pyo3(signature = (run, size, directory, *, threads=None))]
pub(crate) fn limit_memory(
    run: Option<&Run>,
    size: Option<u64>,
    directory: Option<PathBuf>,
    threads: Option<usize>,
) -> PyResult<()> {
    if let Some(bytes) = size {
        let threads = threads.or_else(|| std::thread::available_parallelism().ok().map(Into::into)).unwrap_or(1);
        let locations = run.map_or(0, |run| run.recording().definitions().locations.len() as u64);
        let own = whywait_spill::resident().unwrap_or(0);
        let needed = own + FIXED + PER_THREAD * threads as u64 + PER_LOCATION * locations;
        if bytes < needed && run.is_none() {
            return Ok(());
        }
        if bytes < needed {
            let mib = |bytes: u64| bytes.div_ceil(1 << 20);
            return Err(UsageError::new_err(format!(
                "a memory limit of {} MiB is too small: this trace needs {} MiB with {threads} thread(s)",
                bytes >> 20,
                mib(needed)
            )));
        }
    }
    let directory = directory.unwrap_or_else(std::env::temp_dir);
    whywait_spill::limit(size.map(|bytes| Limit { bytes, directory })).map_err(|error| match error {
        Error::Directory { ref directory, ref source } => match source.raw_os_error() {
            Some(number) => PyOSError::new_err((number, source.to_string(), directory.display().to_string())),
            None => PyOSError::new_err(error.to_string()),
        },
        Error::InMemory(_) | Error::InUse(_) | Error::Unsupported => UsageError::new_err(error.to_string()),
    })
}

/// The peak memory of the process so far in bytes, if the system provides it.
#[pyfunction]
pub(crate) fn peak_memory() -> Option<u64> {
    whywait_spill::peak()
}

/// Runs `work`; memory that it frees stays with the process until it ends.
pub(crate) fn keeping<T>(work: impl FnOnce() -> T) -> T {
    let _kept = whywait_spill::keep();
    work()
}

/// Fails if spilling to disk has failed.
pub(crate) fn check() -> PyResult<()> {
    whywait_spill::failure().map_or(Ok(()), |(directory, error)| {
        Err(PyOSError::new_err((error.raw_os_error(), error.to_string(), directory.display().to_string())))
    })
}
