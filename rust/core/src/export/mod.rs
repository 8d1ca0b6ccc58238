//! Exports for other tools and for the timeline of the report.

pub mod archive;
pub mod calls;
mod clock;
pub mod paraver;
pub mod perfetto;
pub mod selection;
pub mod threads;
pub mod timeline;
