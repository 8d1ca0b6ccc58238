//! Errors, by who has to fix them.

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong; each variant says whose fault it is.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file: not an archive, corrupt, of an unknown format.
    #[error(transparent)]
    Archive(#[from] whywait_otf2::Error),
    /// The content: records that contradict each other.
    #[error("{0}")]
    Trace(String),
    /// The caller asked for something impossible.
    #[error("{0}")]
    Usage(String),
    /// The system refused what was to be written.
    #[error(transparent)]
    Write(#[from] std::io::Error),
    /// This program: where it failed.
    #[error("the analysis failed, {0}; please report this")]
    Internal(String),
    /// The caller interrupted the work.
    #[error("interrupted")]
    Interrupted,
}
