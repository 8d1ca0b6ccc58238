//! Long work in a thread of its own, so that this one can answer Ctrl-C and show progress.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use whywait_core::failure::guard;

use crate::errors::core_error;

/// How long to wait for a job that was cancelled. It ends when it looks at that next, which may take a while; who asked
/// for the end shall not have to wait for it.
const PATIENCE: Duration = Duration::from_millis(100);

/// Something that only this thread may do, for the job.
type CallerThreadTask = Box<dyn FnOnce(Python<'_>) -> PyResult<()> + Send>;

/// Where the job leaves tasks; once something has failed they are dropped.
pub(crate) type CallerThreadTasks = Box<dyn Fn(CallerThreadTask) + Send + Sync>;

enum Message<T> {
    CallerThreadTask(CallerThreadTask),
    Done(whywait_core::Result<T>),
}

/// Does a short job in this thread, while others may use Python.
pub(crate) fn detached<T: Send>(py: Python<'_>, job: impl FnOnce() -> T + Send) -> PyResult<T> {
    py.detach(|| guard(job)).map_err(core_error)
}

/// Does `job` in a thread of its own; calls `tick` again and again, and `cancel` once `tick` has failed. What `tick`
/// says is returned when the job has ended, or soon after.
pub(crate) fn wait<T: Send + 'static>(
    py: Python<'_>,
    job: impl FnOnce() -> T + Send + 'static,
    pause: Duration,
    tick: impl FnMut() -> PyResult<()>,
    cancel: impl Fn(),
) -> PyResult<T> {
    serve(py, |_| job(), pause, tick, cancel)
}

/// The same for a job that has tasks, which can fail like `tick`.
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
        // The receiver is gone only if nobody waits any more: there is nobody left to tell.
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
