//! Everything with a name, declared once: metrics, patterns, cost classes, and tables.
//!
//! Detectors, costs, the metric tree, reports and documents are generated from these rows or checked against them.

#[macro_use]
mod rows;

pub mod cost_classes;
pub mod metrics;
pub mod patterns;
pub mod queue_metrics;
pub mod tables;

pub(crate) use cost_classes::Classes;
pub use cost_classes::{Class, CostMetric};
pub use metrics::{Metric, MetricSet, Unit};
pub use patterns::{Paradigm, Pattern, Position};
pub use queue_metrics::QueueMetric;
pub use tables::{Column, Table};
