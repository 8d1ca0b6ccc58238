//! Long work in a thread of its own, so that this one can answer Ctrl-C and show progress.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use pyo3::prelude::*;

/// Does `job` in a thread of its own; calls `tick` again and again, and `cancel` once `tick` has failed.
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
    let mut failed = Ok(());
    loop {
        let waited = py.detach(move || (result.recv_timeout(pause), result));
        result = waited.1;
        match waited.0 {
            Ok(value) => return failed.map(|()| value),
            Err(RecvTimeoutError::Timeout) if failed.is_ok() => {
                failed = tick();
                if failed.is_err() {
                    cancel();
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(pyo3::panic::PanicException::new_err("the work stopped unexpectedly; please report this"));
            }
        }
    }
}
