//! Exports for other tools and for the timeline of the report.

pub mod archive;
pub mod perfetto;
pub mod timeline;
