//! The transport between the processes of an analysis: Python moves the bytes.

use std::sync::{Mutex, PoisonError, mpsc};

use bytes::Bytes;
use pyo3::prelude::*;
use pyo3_bytes::PyBytes;
use whywait_core::parallel::exchange::Transport;
use whywait_core::{Error, Result};

use crate::job::CallerThreadTasks;

/// The processes as a Python object with `size`, `rank` and `deliver(list[Buffer]) -> list[Buffer]`, which must not
/// modify the buffers that it returns.
#[derive(Debug)]
pub(crate) struct Ranks {
    size: usize,
    rank: usize,
    python: Py<PyAny>,
}

impl Ranks {
    pub(crate) fn new(ranks: &Bound<'_, PyAny>) -> PyResult<Self> {
        let number = |name: &str| ranks.getattr(name)?.extract();
        Ok(Self { size: number("size")?, rank: number("rank")?, python: ranks.clone().unbind() })
    }
}

/// The processes as a transport for the analysis, and for the collective functions of its result.
pub(crate) struct PythonTransport {
    ranks: Ranks,
    /// Does the exchanges in the calling thread of the current job.
    tasks: Mutex<Option<CallerThreadTasks>>,
}

impl PythonTransport {
    pub(crate) fn new(ranks: Ranks) -> Self {
        Self { ranks, tasks: Mutex::new(None) }
    }

    /// Does a job whose exchanges are these tasks of the calling thread.
    pub(crate) fn during<T>(&self, tasks: CallerThreadTasks, job: impl FnOnce() -> T) -> T {
        self.set(Some(tasks));
        let done = job();
        self.set(None);
        done
    }

    fn set(&self, tasks: Option<CallerThreadTasks>) {
        *self.tasks.lock().unwrap_or_else(PoisonError::into_inner) = tasks;
    }
}

impl std::fmt::Debug for PythonTransport {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.ranks.fmt(formatter)
    }
}

impl Transport for PythonTransport {
    fn size(&self) -> usize {
        self.ranks.size
    }

    fn rank(&self) -> usize {
        self.ranks.rank
    }

    fn deliver(&self, outgoing: Vec<Bytes>) -> Result<Vec<Bytes>> {
        let (sender, arrived) = mpsc::sync_channel(1);
        let python = Python::attach(|py| self.ranks.python.clone_ref(py));
        if let Some(tasks) = &*self.tasks.lock().unwrap_or_else(PoisonError::into_inner) {
            tasks(Box::new(move |py| {
                let parcels: Vec<PyBytes> = outgoing.into_iter().map(PyBytes::new).collect();
                let arrived: Vec<PyBytes> = python.call_method1(py, "deliver", (parcels,))?.extract(py)?;
                let _ = sender.send(arrived.into_iter().map(PyBytes::into_inner).collect());
                Ok(())
            }));
        }
        // If the task was dropped, the calling thread has the error.
        arrived.recv().map_err(|_| Error::Interrupted)
    }
}
