//! Traces of PyTorch's profiler: which paths are such, and how they are read.

use std::path::Path;

use pyo3::prelude::*;
use whywait_kineto::{Options, Paths, detect, is_other_chrome_trace};

use crate::errors::UsageError;

/// Whether a path names traces of PyTorch's profiler; an archive in the same directory comes first.
pub(crate) fn names_traces(path: &Path) -> bool {
    let is_archive = |path: &Path| path.extension().is_some_and(|extension| extension == "otf2");
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let has_archive = is_archive(path) || entries.into_iter().any(|entry| is_archive(&entry.path()));
    !has_archive && (detect(path).is_some() || is_other_chrome_trace(path))
}

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
