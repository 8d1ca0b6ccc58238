//! How traces are read.

use whywait_devices::CommKernels;

/// What is on call paths of hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Paths {
    /// Annotations and operators.
    Op,
    /// Modules, frames of the user, and long calls of others as well.
    #[default]
    Module,
    /// All Python frames.
    Python,
    /// All Python frames, and names as they are in the file.
    All,
}

impl Paths {
    /// The choice with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "op" => Some(Self::Op),
            "module" => Some(Self::Module),
            "python" => Some(Self::Python),
            "all" => Some(Self::All),
            _ => None,
        }
    }
}

/// How traces are read.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// What is on call paths of hosts.
    pub paths: Paths,
    /// Which cycle of the profiler's schedule, from 1; the last one unless given.
    pub cycle: Option<usize>,
    /// Whether memory in use is read where there are many samples of it as well.
    pub memory: bool,
    /// Kernels that communicate and are not known to, by name.
    pub kernels: CommKernels,
}
