//! The threads of the analysis.

use rayon::ThreadPool;

use crate::{Error, Result};

/// What the names of the threads begin with.
pub(crate) const NAME: &str = "whywait-";

/// A pool of `threads` threads, as many as there are cores for 0.
///
/// A pool of its own, made for each analysis: a global one would survive a fork without its threads.
pub fn new(threads: usize) -> Result<ThreadPool> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|i| format!("{NAME}{i}"))
        .build()
        .map_err(|error| Error::Usage(format!("cannot start {threads} threads: {error}")))
}
