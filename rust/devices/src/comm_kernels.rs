//! Which kernels communicate: those of known libraries, and others that a user names.

use regex_lite::Regex;

use crate::kinds::Kind;

/// Kernels that communicate and are not known to, by name.
#[derive(Debug, Clone, Default)]
pub struct CommKernels(Vec<(Regex, Kind)>);

impl CommKernels {
    /// Adds some: `REGEX=KIND`; why it cannot otherwise.
    pub fn add(&mut self, text: &str) -> Result<(), String> {
        let (pattern, kind) = text
            .rsplit_once('=')
            .ok_or_else(|| format!("{text}: expected REGEX=KIND, as in my_reduce.*=all_reduce"))?;
        let pattern = Regex::new(pattern).map_err(|error| format!("{text}: {error}"))?;
        let kind = Kind::named(kind).ok_or_else(|| format!("{text}: {kind} is no kind of communication"))?;
        self.0.push((pattern, kind));
        Ok(())
    }

    /// The kind of a kernel by its name, if it communicates.
    pub fn kind(&self, name: &str) -> Option<Kind> {
        let own = self.0.iter().find(|(pattern, _)| pattern.is_match(name)).map(|(_, kind)| *kind);
        own.or_else(|| Kind::of_kernel(name))
    }
}
