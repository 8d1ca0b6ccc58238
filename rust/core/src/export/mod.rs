//! Exports for other tools and for the timeline of the report.

pub mod perfetto;
pub mod timeline;
