//! How a trace is read.

/// How a trace is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Further types of events that are regions.
    pub types: Vec<u32>,
    /// The only application that is read, from 1; all of them unless given.
    pub application: Option<u32>,
    /// Whether a file that ends within a record is read up to there.
    pub truncated: bool,
    /// Whether calls complete the non-blocking sends that they probably complete, which is not recorded.
    pub inference: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { types: Vec::new(), application: None, truncated: false, inference: true }
    }
}
