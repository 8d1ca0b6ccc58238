//! Changes of how calls wait, for the whole run.

use super::changes::cut::MessageCut;
use super::changes::moves::Overlap;
use super::changes::selection::Selection;
use super::graph::network::Network;
use crate::ids::CallPathId;
use crate::{Error, Result};

/// Changes of how calls wait, which apply to the whole run.
#[derive(Clone, Debug)]
pub struct Model {
    /// Whether to estimate transfers that no receive had to wait for.
    pub estimates: bool,
    /// Whether one-sided operations complete without calls at their target.
    pub asynchronous_progress: bool,
    /// Messages of more bytes use rendezvous, others are eager, whatever they used before.
    pub eager_limit: Option<u64>,
    /// Sends from these call paths use rendezvous (true) or are eager.
    pub protocols: Vec<(Vec<bool>, bool)>,
    /// Regions to cut with everything they enclose.
    pub cut_regions: Vec<Selection>,
    /// Messages to cut: those that match any of these.
    pub cut_messages: Vec<MessageCut>,
    /// Calls whose wait comes later.
    pub overlaps: Vec<Overlap>,
    /// Calls that send and receive, to be split into a send and a receive.
    pub splits: Vec<Selection>,
    /// The network, if not the measured one. [`super::Hypothesis::Network`] has the calls that do not wait.
    pub network: Option<Network>,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            estimates: true,
            asynchronous_progress: false,
            eager_limit: None,
            protocols: Vec::new(),
            cut_regions: Vec::new(),
            cut_messages: Vec::new(),
            overlaps: Vec::new(),
            splits: Vec::new(),
            network: None,
        }
    }
}

impl Model {
    /// Whether a message uses rendezvous in the changed run; `is_named` means that its call determines the protocol.
    pub(super) fn rendezvous(&self, callpath: CallPathId, bytes: u64, was: bool, is_named: bool) -> bool {
        let chosen = self.protocols.iter().rev().find(|(callpaths, _)| callpaths[callpath]);
        match (chosen, self.eager_limit) {
            (Some(&(_, rendezvous)), _) => rendezvous,
            (None, Some(limit)) if !is_named => bytes > limit,
            _ => was,
        }
    }

    /// Refuses changes that the simulation cannot make together.
    pub(super) fn check(&self) -> Result<()> {
        let moves = !self.overlaps.is_empty() || !self.splits.is_empty();
        let refuse = |why: &str| Err(Error::Usage(why.into()));
        if moves && self.cuts() {
            return refuse("write the run without what is cut (-o), and overlap or split calls of that run");
        }
        if self.network.is_some() && !self.splits.is_empty() {
            return refuse("write the run with split calls (-o), and simulate another network of that run");
        }
        Ok(())
    }

    /// Whether something is cut.
    pub(super) fn cuts(&self) -> bool {
        !self.cut_regions.is_empty() || !self.cut_messages.is_empty()
    }

    /// Whether calls may wait for something that they did not wait for in the measured run.
    pub(super) fn adds_waits(&self) -> bool {
        self.eager_limit.is_some()
            || !self.splits.is_empty()
            || self.protocols.iter().any(|(_, rendezvous)| *rendezvous)
    }
}
