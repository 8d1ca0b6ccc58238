//! Errors, by who has to fix them.

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong; each variant says whose fault it is.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is not an archive, is corrupt, or has an unknown format.
    #[error(transparent)]
    Archive(#[from] whywait_otf2::Error),
    /// Records of the trace contradict each other.
    #[error("{0}")]
    Trace(String),
    /// The caller asked for something impossible.
    #[error("{0}")]
    Usage(String),
    /// The system failed to write.
    #[error(transparent)]
    Write(#[from] std::io::Error),
    /// A defect in this program, with the place where it failed.
    #[error("the analysis failed, {0}; please report this")]
    Internal(String),
    /// The caller interrupted the work.
    #[error("interrupted")]
    Interrupted,
}
