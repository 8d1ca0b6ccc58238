//! Runs long work in a separate thread, so that the calling thread can handle Ctrl-C and show progress.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use whywait_core::parallel::failure::guard;

use crate::errors::core_error;

/// How long to wait for a cancelled job. It ends when it next checks for cancellation, which may take a while, and the
/// user should not have to wait for that.
const PATIENCE: Duration = Duration::from_millis(100);

/// A task that only the calling thread may do, for the job.
type CallerThreadTask = Box<dyn FnOnce(Python<'_>) -> PyResult<()> + Send>;

/// Submits tasks from the job; after a failure they are dropped.
pub(crate) type CallerThreadTasks = Box<dyn Fn(CallerThreadTask) + Send + Sync>;

enum Message<T> {
    CallerThreadTask(CallerThreadTask),
    Done(whywait_core::Result<T>),
}

/// Runs a short job in this thread with the GIL released.
pub(crate) fn detached<T: Send>(py: Python<'_>, job: impl FnOnce() -> T + Send) -> PyResult<T> {
    py.detach(|| guard(job)).map_err(core_error)
}

/// Runs `job` in a separate thread; calls `tick` repeatedly, and `cancel` once `tick` fails. Returns the error of
/// `tick` when the job has ended, or shortly after.
pub(crate) fn wait<T: Send + 'static>(
    py: Python<'_>,
    job: impl FnOnce() -> T + Send + 'static,
    pause: Duration,
    tick: impl FnMut() -> PyResult<()>,
    cancel: impl Fn(),
) -> PyResult<T> {
    serve(py, |_| job(), pause, tick, cancel)
}

/// The same for a job with tasks, which can fail like `tick`.
pub(crate) fn serve<T: Send + 'static>(
    py: Python<'_>,
    job: impl FnOnce(CallerThreadTasks) -> T + Send + 'static,
    pause: Duration,
    mut tick: impl FnMut() -> PyResult<()>,
    cancel: impl Fn(),
) -> PyResult<T> {
    let (sender, mut messages) = mpsc::channel();
    std::thread::spawn(move || {
        let tasks = sender.clone();
        // The receiver is gone only after the caller has given up, so the task can be dropped.
        let result = guard(|| job(Box::new(move |task| drop(tasks.send(Message::CallerThreadTask(task))))));
        let _ = sender.send(Message::Done(result));
    });
    let mut failed: Option<(PyErr, Instant)> = None;
    loop {
        let waited = py.detach(move || (messages.recv_timeout(pause), messages));
        messages = waited.1;
        let done = match waited.0 {
            Ok(Message::Done(result)) => {
                return failed.map_or_else(|| result.map_err(core_error), |(error, _)| Err(error));
            }
            Ok(Message::CallerThreadTask(task)) if failed.is_none() => task(py),
            Err(RecvTimeoutError::Timeout) if failed.is_none() => tick(),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(core_error(whywait_core::Error::Internal(String::from("its thread is gone"))));
            }
            _ => Ok(()),
        };
        if let Err(error) = done {
            cancel();
            failed = Some((error, Instant::now()));
        }
        failed = match failed {
            Some((error, since)) if since.elapsed() > PATIENCE => return Err(error),
            waiting => waiting,
        };
    }
}
