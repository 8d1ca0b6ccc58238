//! Exports for other tools and for the timeline of the report.

pub mod archive;
pub mod calls;
pub mod perfetto;
pub mod threads;
pub mod timeline;
