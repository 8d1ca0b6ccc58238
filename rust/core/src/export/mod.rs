//! An analysis as other tools and the report's timeline take it.

pub mod perfetto;
pub mod timeline;
