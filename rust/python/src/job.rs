//! Long work in a thread of its own, so that this one can answer Ctrl-C and show progress.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use pyo3::prelude::*;

/// How long to wait for a job that was cancelled. It ends when it looks at that next, which may take a while; who asked
/// for the end shall not have to wait for it.
const PATIENCE: Duration = Duration::from_millis(100);

/// Does `job` in a thread of its own; calls `tick` again and again, and `cancel` once `tick` has failed. What `tick`
/// says is returned when the job has ended, or soon after.
pub(crate) fn wait<T: Send + 'static>(
    py: Python<'_>,
    job: impl FnOnce() -> T + Send + 'static,
    pause: Duration,
    mut tick: impl FnMut() -> PyResult<()>,
    cancel: impl Fn(),
) -> PyResult<T> {
    let (done, mut result) = mpsc::channel();
    std::thread::spawn(move || {
        // The receiver is gone only if the interpreter is: nobody is left to tell.
        let _ = done.send(job());
    });
    let mut failed = None;
    loop {
        let waited = py.detach(move || (result.recv_timeout(pause), result));
        result = waited.1;
        match waited.0 {
            Ok(value) => return failed.map_or(Ok(value), |(error, _)| Err(error)),
            Err(RecvTimeoutError::Timeout) => match failed {
                None => {
                    if let Err(error) = tick() {
                        cancel();
                        failed = Some((error, Instant::now()));
                    }
                }
                Some((error, since)) if since.elapsed() > PATIENCE => return Err(error),
                waiting => failed = waiting,
            },
            Err(RecvTimeoutError::Disconnected) => {
                return Err(pyo3::panic::PanicException::new_err("the work stopped unexpectedly; please report this"));
            }
        }
    }
}
