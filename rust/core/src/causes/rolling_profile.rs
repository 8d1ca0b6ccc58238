//! The growing profile of a location, divided into blocks, from which the profile since any block is obtained without
//! visiting call paths that did not run since then.
//!
//! Each call path stores its total time, and its total before each block in which it ran. Call paths are linked in
//! order of last use. So the profile since a block costs one step per call path that ran since then, and a search among
//! the blocks of each.

use crate::galloping_search::partition_point_near;
use crate::ids::CallPathId;

/// No block.
const NEVER_RAN: u32 = u32::MAX;

/// The state of a call path at the current location.
#[derive(Clone, Copy, Debug)]
struct State {
    /// Ticks so far, and before the last block in which it ran.
    ticks: i64,
    before: i64,
    /// That block; [`NEVER_RAN`] if it has not.
    block: u32,
    /// One past the previous block in which it ran; 0 if there is none.
    earlier: u32,
    /// Neighbors in the order of recent use: the more recent, the less recent.
    newer: CallPathId,
    older: CallPathId,
}

const NEVER: State =
    State { ticks: 0, before: 0, block: NEVER_RAN, earlier: 0, newer: CallPathId::NONE, older: CallPathId::NONE };

/// Ticks by call path.
#[derive(Debug)]
pub(crate) struct RollingProfile {
    states: Vec<State>,
    /// For each call path the blocks in which it ran, with its ticks before.
    history: Vec<Vec<(u32, i64)>>,
    newest: CallPathId,
    block: u32,
    /// The earliest block that can still be queried.
    first: u32,
}

impl RollingProfile {
    /// An empty profile for this many call paths.
    pub(crate) fn new(callpaths: usize) -> Self {
        Self {
            states: vec![NEVER; callpaths],
            history: vec![Vec::new(); callpaths],
            newest: CallPathId::NONE,
            block: 0,
            first: 0,
        }
    }

    /// Removes all entries.
    pub(crate) fn clear(&mut self) {
        let mut next = self.newest;
        while next.is_some() {
            let state = std::mem::replace(&mut self.states[next], NEVER);
            self.history[next].clear();
            next = state.older;
        }
        self.newest = CallPathId::NONE;
        self.block = 0;
        self.first = 0;
    }

    /// Drops the history that only queries of earlier blocks need.
    pub(crate) fn forget_before(&mut self, block: u32) {
        self.first = block;
    }

    /// Begins the next block; returns its number. The first block is 0 and needs no beginning.
    pub(crate) fn cut(&mut self) -> u32 {
        self.block += 1;
        self.block
    }

    /// Adds ticks to the current block.
    #[inline]
    pub(crate) fn add(&mut self, callpath: CallPathId, ticks: i64) {
        if self.states[callpath].block != self.block {
            self.touch(callpath);
        }
        self.states[callpath].ticks += ticks;
    }

    #[inline(never)]
    fn touch(&mut self, callpath: CallPathId) {
        let State { ticks, block, newer, older, .. } = self.states[callpath];
        let history = &mut self.history[callpath];
        if block < self.first {
            // The whole history is before the first block.
            history.clear();
        }
        history.push((self.block, ticks));
        if block != NEVER_RAN {
            match self.states.get_mut(newer.index()) {
                None => self.newest = older,
                Some(newer) => newer.older = older,
            }
            if let Some(older) = self.states.get_mut(older.index()) {
                older.newer = newer;
            }
        }
        if let Some(newest) = self.states.get_mut(self.newest.index()) {
            newest.newer = callpath;
        }
        let earlier = if block == NEVER_RAN { 0 } else { block + 1 };
        self.states[callpath] =
            State { ticks, before: ticks, block: self.block, earlier, newer: CallPathId::NONE, older: self.newest };
        self.newest = callpath;
    }

    /// All call paths that ran, and their ticks; the latest first.
    pub(crate) fn all(&self) -> impl Iterator<Item = (CallPathId, i64)> {
        self.recent().map(|(callpath, state)| (callpath, state.ticks))
    }

    /// Call paths that ran in a block or later, and their ticks since then; the latest first.
    pub(crate) fn since(&self, block: u32) -> impl Iterator<Item = (CallPathId, i64)> {
        self.recent().take_while(move |(_, state)| state.block >= block).map(move |(callpath, state)| {
            // Most intervals are short, so the call path ran in only one of their blocks.
            let before = if state.earlier <= block { state.before } else { self.before(callpath, block) };
            (callpath, state.ticks - before)
        })
    }

    /// All call paths that ran, the latest first.
    fn recent(&self) -> impl Iterator<Item = (CallPathId, &State)> {
        let mut next = self.newest;
        std::iter::from_fn(move || {
            let callpath = next;
            let state = self.states.get(callpath.index())?;
            next = state.older;
            Some((callpath, state))
        })
    }

    /// Ticks of a call path before a block.
    #[inline(never)]
    fn before(&self, callpath: CallPathId, block: u32) -> i64 {
        let history = &self.history[callpath];
        let first = partition_point_near(history, history.len(), |entry| entry.0 < block);
        history[first].1
    }

    /// Removes everything in the current block.
    pub(crate) fn drop_block(&mut self) {
        let mut next = self.newest;
        while let Some(state) = self.states.get_mut(next.index()).filter(|state| state.block == self.block) {
            state.ticks = state.before;
            next = state.older;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_block_can_be_taken_back() {
        let mut profile = RollingProfile::new(2);
        profile.add(CallPathId::new(0), 5);
        profile.cut();
        profile.add(CallPathId::new(0), 7);
        profile.add(CallPathId::new(1), 1);
        profile.drop_block();
        assert_eq!(profile.since(0).collect::<Vec<_>>(), [(CallPathId::new(1), 0), (CallPathId::new(0), 5)]);
    }

    proptest! {
        #[test]
        fn equals_the_sum_over_the_blocks(
            blocks in prop::collection::vec((prop::collection::vec(((0u32..6).prop_map(CallPathId::new), -3i64..9), 0..5), 0u8..8), 1..40),
        ) {
            let mut profile = RollingProfile::new(6);
            let (blocks, forgets): (Vec<_>, Vec<_>) = blocks.into_iter().unzip();
            for round in 0..3 {
                let mut first = 0;
                for (number, steps) in blocks.iter().enumerate() {
                    if number > 0 {
                        prop_assert_eq!(profile.cut(), number as u32);
                    }
                    // The last round no longer queries what lies far back.
                    if round == 2 && forgets[number] == 0 {
                        first = number;
                        profile.forget_before(number as u32);
                    }
                    for &(callpath, ticks) in steps {
                        profile.add(callpath, ticks);
                    }
                    for since in first..=number {
                        let mut expected = [None; 6];
                        for &(callpath, ticks) in blocks[since..=number].iter().flatten() {
                            *expected[callpath].get_or_insert(0) += ticks;
                        }
                        let mut found = [None; 6];
                        for (callpath, ticks) in profile.since(since as u32) {
                            prop_assert!(found[callpath].replace(ticks).is_none(), "round {}", round);
                        }
                        prop_assert_eq!(found, expected);
                    }
                }
                let mut expected = [None; 6];
                for &(callpath, ticks) in blocks.iter().flatten() {
                    *expected[callpath].get_or_insert(0) += ticks;
                }
                let mut found = [None; 6];
                for (callpath, ticks) in profile.all() {
                    prop_assert!(found[callpath].replace(ticks).is_none(), "round {}", round);
                }
                prop_assert_eq!(found, expected);
                profile.clear();
            }
        }
    }
}
