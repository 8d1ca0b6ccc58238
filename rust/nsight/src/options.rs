//! How reports are read.

use whywait_devices::CommKernels;

/// How reports are read.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Whether names are as they are in the file: otherwise numbers that name one of many alike are replaced.
    pub all_names: bool,
    /// Kernels that communicate and are not known to, by name.
    pub kernels: CommKernels,
}
