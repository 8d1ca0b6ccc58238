//! The Python module of whywait: converts arguments and errors, returns Arrow tables, and releases the GIL.
#![deny(unsafe_code)]
#![expect(clippy::needless_pass_by_value, reason = "arguments arrive from Python by value")]

mod account;
mod analysis;
mod analyze;
mod arrow;
mod blame;
mod clocks;
mod counters;
mod devices;
mod errors;
mod estimate;
mod export_paraver;
mod factors;
mod import;
mod io;
mod job;
mod kineto;
mod loops;
mod memory;
mod nsight;
mod options;
mod output;
mod paraver;
mod perfetto;
mod progress;
mod queues;
mod ranks;
mod reasons;
mod recording;
mod records;
mod regions;
mod rows;
mod run;
mod sampling;
mod schema;
mod sources;
mod stragglers;
mod tables;
mod timeline;
mod traced;
mod waits;
mod whatif;
mod workloads;
mod worst_waits;

use pyo3::pymodule;

/// The compiled part of whywait, private to the package.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::account::{account_groups, account_rows, device_rows};
    #[pymodule_export]
    use super::analysis::Analysis;
    #[pymodule_export]
    use super::analyze::analyze;
    #[pymodule_export]
    use super::arrow::Table;
    #[pymodule_export]
    use super::blame::blame;
    #[pymodule_export]
    use super::errors::{ArchiveError, Error, TraceError, UsageError};
    #[pymodule_export]
    use super::export_paraver::write_paraver;
    #[pymodule_export]
    use super::import::import_counters;
    #[pymodule_export]
    use super::loops::{declared_loops, find_communication, find_iterations};
    #[pymodule_export]
    use super::memory::{limit_memory, peak_memory};
    #[pymodule_export]
    use super::perfetto::write_perfetto;
    #[pymodule_export]
    use super::queues::{queue_levels, queue_metrics};
    #[pymodule_export]
    use super::recording::{finish_recording, is_unfinished_recording};
    #[pymodule_export]
    use super::regions::{region_terms, unknown_libraries};
    #[pymodule_export]
    use super::run::{Run, copy_archive};
    #[pymodule_export]
    use super::sampling::sampled_metrics;
    #[pymodule_export]
    use super::schema::{cost_classes, patterns, stored_metrics, tables};
    #[pymodule_export]
    use super::sources::{anchor_beside, identity_files, source_of};
    #[pymodule_export]
    use super::stragglers::find_stragglers;
    #[pymodule_export]
    use super::timeline::{timeline, timeline_calls};
    #[pymodule_export]
    use super::whatif::{Simulation, Simulator};
    #[pymodule_export]
    use super::workloads::{generate, measure, workloads};
    #[pymodule_export]
    use super::worst_waits::worst_waits;
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
