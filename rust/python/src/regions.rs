//! Paradigms and roles of regions.

use pyo3::prelude::*;
use whywait_core::trace::region_terms::terms;
use whywait_core::trace::unknown_libraries::all;

/// Paradigms and roles of regions in the terms of Cube, from their names, paradigms, and roles as recorded.
#[pyfunction]
pub(crate) fn region_terms(regions: Vec<(String, String, String)>) -> Vec<(String, String)> {
    regions.iter().map(|(name, paradigm, role)| terms(name, paradigm, role)).collect()
}

/// The names of communication libraries whose waiting is not known.
#[pyfunction]
pub(crate) fn unknown_libraries() -> Vec<&'static str> {
    all().collect()
}
