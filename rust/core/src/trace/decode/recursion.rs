//! Recursion: a call of a function that is on its own call path already may be folded into that call.
//!
//! ```text
//!  f ---[ g ---[ f ---[ g ... ]--- ]--- ]---      recorded
//!  f ---[ g ---]--------[ g ... ]--[ g ---]---    folded: while the inner f runs, the outer one does
//! ```
//!
//! The call tree then has no function twice on a path, and its size does not grow with the depth of the recursion.

use super::decoder::Decoder;
use super::frames::Folded;
use crate::diagnostics::DiagnosticKind;
use crate::ids::RegionKey;
use crate::trace::regions::{RegionClass, Regions};

impl Decoder<'_> {
    /// Whether a region is program code, of which a call need not be told from others.
    fn is_foldable(&self, key: RegionKey) -> bool {
        let class = self.regions.class(key);
        class == RegionClass::Other && !Regions::is_pause(key) && !Regions::is_program(key) && !self.regions.is_io(key)
    }

    /// Enters a region that is on the call path already by returning to it; returns whether it is.
    #[cold]
    #[inline(never)]
    pub(super) fn fold(&mut self, time: i64, key: RegionKey) -> bool {
        if self.state.stream.is_some() || !self.is_foldable(key) {
            return false;
        }
        let mut between = Vec::new();
        // Not beyond the calls of the task that runs.
        let depth = self.state.outer.len() - self.state.base;
        let mut open = std::iter::once(&self.state.top).chain(self.state.outer.iter().skip(1).rev()).take(depth);
        loop {
            let Some(frame) = open.next() else { return false };
            if frame.key == key {
                break;
            }
            if frame.instance.is_some() || !self.is_foldable(frame.key) {
                return false;
            }
            between.push(frame.key);
        }
        drop(open);
        between.reverse();
        for _ in &between {
            self.pop(time);
        }
        if let Some(total) = self.totals.get_mut(self.state.top.callpath.index()) {
            total.visits += 1;
        }
        self.note(DiagnosticKind::FoldedRecursion, time);
        self.state.folded.push(Folded { key, depth: self.state.outer.len(), between });
        true
    }

    /// Leaves a region that was folded; returns whether it was.
    pub(super) fn unfold(&mut self, time: i64, key: RegionKey) -> bool {
        let depth = self.state.outer.len();
        let is_innermost = |folded: &Folded| folded.depth == depth && folded.key == key;
        if self.state.top.key != key || !self.state.folded.last().is_some_and(is_innermost) {
            return false;
        }
        for between in self.state.folded.pop().into_iter().flat_map(|folded| folded.between) {
            self.push(time, between);
            // It has been visited before.
            if let Some(total) = self.totals.get_mut(self.state.top.callpath.index()) {
                total.visits -= 1;
            }
        }
        true
    }

    /// Forgets what was folded into regions that are no longer open.
    pub(super) fn forget_folded(&mut self) {
        let depth = self.state.outer.len();
        while self.state.folded.last().is_some_and(|folded| folded.depth > depth) {
            self.state.folded.pop();
        }
    }
}
