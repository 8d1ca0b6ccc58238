//! Reports of Nsight Systems: how they are read, and what is known of them.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use whywait_nsight::{Facts, Options, ReportFacts};

use crate::errors::UsageError;

/// How reports are read.
pub(crate) fn options(paths: Option<&str>, comm_kernels: &[String]) -> PyResult<Options> {
    let mut options = Options { all_names: paths == Some("all"), ..Options::default() };
    for kernels in comm_kernels {
        options.kernels.add(kernels).map_err(UsageError::new_err)?;
    }
    Ok(options)
}

/// What is known of reports besides events and ranks.
pub(crate) fn facts<'py>(py: Python<'py>, facts: &Facts) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    all.set_item("reports", facts.reports.iter().map(|report| of_report(py, report)).collect::<PyResult<Vec<_>>>()?)?;
    all.set_item("tables", facts.tables.clone())?;
    all.set_item("unread", facts.unread.clone())?;
    all.set_item("clocks", facts.clocks)?;
    all.set_item("separate_clocks", facts.has_separate_clocks)?;
    all.set_item("untested", facts.untested.clone())?;
    all.set_item("untraced", facts.untraced.clone())?;
    all.set_item("notes", facts.notes.clone())?;
    all.set_item("findings", facts.findings.clone())?;
    Ok(all)
}

fn of_report<'py>(py: Python<'py>, facts: &ReportFacts) -> PyResult<Bound<'py, PyDict>> {
    let report = PyDict::new(py);
    report.set_item("file", &facts.file)?;
    report.set_item("product", &facts.product)?;
    report.set_item("schema", &facts.schema)?;
    report.set_item("host", &facts.host)?;
    report.set_item("ranks", facts.ranks.clone())?;
    Ok(report)
}
