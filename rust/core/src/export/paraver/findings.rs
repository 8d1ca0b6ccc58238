//! Findings: which call paths they are about.

use rustc_hash::FxHashMap;

use crate::ids::{CallPathId, LocationId};
use crate::trace::Trace;

/// Type of events: the number of a finding about an instance of a call path.
pub(super) const FINDING: u32 = 97_000_008;

/// A finding, and the call paths that it is about.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Its place among the findings, from 1.
    pub number: u32,
    /// What it says.
    pub label: String,
    /// The call paths to blame.
    pub callpaths: Vec<CallPathId>,
    /// The ranks to blame; empty if these are all.
    pub ranks: Vec<u32>,
}

/// The findings about each call path, in their order.
pub(super) struct Findings<'a> {
    of: FxHashMap<CallPathId, Vec<&'a Finding>>,
}

impl<'a> Findings<'a> {
    pub(super) fn new(all: &'a [Finding]) -> Self {
        let mut of: FxHashMap<CallPathId, Vec<&Finding>> = FxHashMap::default();
        for finding in all {
            for callpath in &finding.callpaths {
                of.entry(*callpath).or_default().push(finding);
            }
        }
        Self { of }
    }

    /// The number of the first finding about a call path at a location.
    pub(super) fn at(&self, trace: &Trace, callpath: CallPathId, location: LocationId) -> Option<i64> {
        let of_path = self.of.get(&callpath)?;
        let process = trace.definitions.locations[location].process;
        let rank = trace.definitions.processes.get(process.index()).map(|process| process.rank);
        let is_about =
            |finding: &&&Finding| finding.ranks.is_empty() || rank.is_some_and(|rank| finding.ranks.contains(&rank));
        of_path.iter().find(is_about).map(|finding| finding.number.into())
    }
}
