//! How traces are read.

use regex_lite::Regex;
use whywait_devices::Kind;

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
    pub kernels: Vec<(Regex, Kind)>,
}

impl Options {
    /// Adds kernels that communicate: `REGEX=KIND`.
    pub fn add_kernels(&mut self, text: &str) -> crate::Result<()> {
        let wrong = |why: String| crate::Error::Option(format!("{text}: {why}"));
        let (pattern, kind) = text
            .rsplit_once('=')
            .ok_or_else(|| wrong("expected REGEX=KIND, as in my_reduce.*=all_reduce".to_owned()))?;
        let pattern = Regex::new(pattern).map_err(|error| wrong(error.to_string()))?;
        let kind = Kind::named(kind).ok_or_else(|| wrong(format!("{kind} is no kind of communication")))?;
        self.kernels.push((pattern, kind));
        Ok(())
    }

    /// The kind of a kernel by its name, if it communicates.
    pub(crate) fn kernel(&self, name: &str) -> Option<Kind> {
        let own = self.kernels.iter().find(|(pattern, _)| pattern.is_match(name)).map(|(_, kind)| *kind);
        own.or_else(|| Kind::of_kernel(name))
    }
}
