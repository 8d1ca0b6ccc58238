//! The threads of the analysis.

use rayon::ThreadPool;

use crate::{Error, Result};

/// Prefix of the threads' names.
pub(crate) const NAME: &str = "whywait-";

/// A pool of `threads` threads, or of one per core for 0.
///
/// Each analysis makes its own pool: a global one would survive a fork without its threads.
pub fn new(threads: usize) -> Result<ThreadPool> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|i| format!("{NAME}{i}"))
        .build()
        .map_err(|error| Error::Usage(format!("cannot start {threads} threads: {error}")))
}
