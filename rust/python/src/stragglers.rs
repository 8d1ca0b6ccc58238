//! The metrics of stragglers: lengths of replayed runs.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use whywait_core::query::stragglers;

use crate::analysis::Analysis;

/// Lengths, in seconds, of the run of devices replayed as it is and if all or some of it were as in an ideal run, also with only
/// some groups of ranks repaired; None if devices do not communicate.
#[pyfunction]
#[pyo3(name = "stragglers")]
pub(crate) fn find_stragglers<'py>(
    py: Python<'py>,
    analysis: &Bound<'py, Analysis>,
    groups: Vec<Vec<u32>>,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let analysis = analysis.get();
    let Some(found) = py.detach(|| stragglers::find(&analysis.result.trace, &analysis.result.devices, &groups)) else {
        return Ok(None);
    };
    let seconds = |ticks: i64| analysis.seconds(ticks);
    let all = PyDict::new(py);
    all.set_item("length", seconds(found.length))?;
    all.set_item("ideal", seconds(found.ideal))?;
    all.set_item("ranks", found.of_ranks.iter().map(|&(rank, ticks)| (rank, seconds(ticks))).collect::<Vec<_>>())?;
    all.set_item("slowest", found.slowest.map(|(ranks, ticks)| (ranks, seconds(ticks))))?;
    all.set_item("groups", found.of_groups.iter().map(|&ticks| seconds(ticks)).collect::<Vec<_>>())?;
    let callpaths = found.of_callpaths.iter().map(|&(callpath, ticks)| (callpath.number(), seconds(ticks)));
    all.set_item("callpaths", callpaths.collect::<Vec<_>>())?;
    all.set_item("alone", found.is_alone)?;
    Ok(Some(all))
}
