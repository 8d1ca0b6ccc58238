//! The result of an analysis, shared by all functions that query it.

use std::collections::BTreeMap;
use std::sync::Arc;

use pyo3::prelude::*;
use whywait_core::analysis::Analysis as CoreAnalysis;
use whywait_core::ids::RegionKey;

/// The result of an analysis.
#[pyclass(frozen, module = "whywait._native")]
pub(crate) struct Analysis {
    pub(crate) result: Arc<CoreAnalysis>,
    /// Distinct regions of the call tree, and for each call path its region among them.
    pub(crate) regions: Vec<RegionKey>,
    pub(crate) region_of: Vec<u32>,
}

impl Analysis {
    pub(crate) fn new(result: CoreAnalysis) -> Self {
        let mut regions = Vec::new();
        let mut index: BTreeMap<RegionKey, u32> = BTreeMap::new();
        let region_of = result.trace.tree.nodes().iter().map(|node| {
            *index.entry(node.region).or_insert_with(|| {
                regions.push(node.region);
                regions.len() as u32 - 1
            })
        });
        let region_of = region_of.collect();
        Self { result: Arc::new(result), regions, region_of }
    }

    pub(crate) fn seconds(&self, ticks: i64) -> f64 {
        ticks as f64 / self.result.trace.resolution as f64
    }

    /// The tick of a time in seconds since the begin of the trace.
    pub(crate) fn tick(&self, seconds: f64) -> i64 {
        self.begin().saturating_add((seconds * self.result.trace.resolution as f64).round() as i64)
    }

    pub(crate) fn begin(&self) -> i64 {
        self.result.trace.span().map_or(0, |(first, _)| first)
    }
}
