//! Traces of PyTorch's profiler: how they are read.

use pyo3::prelude::*;
use whywait_kineto::{Options, Paths};

use crate::errors::UsageError;

/// How traces are read.
pub(crate) fn options(
    paths: Option<&str>,
    cycle: Option<usize>,
    comm_kernels: &[String],
    memory: bool,
) -> PyResult<Options> {
    let mut options = Options { cycle, memory, ..Options::default() };
    if let Some(name) = paths {
        let wrong = || UsageError::new_err(format!("{name}: no such call paths (op, module, python, all)"));
        options.paths = Paths::named(name).ok_or_else(wrong)?;
    }
    for kernels in comm_kernels {
        options.kernels.add(kernels).map_err(UsageError::new_err)?;
    }
    Ok(options)
}
