//! States of threads: where a thread does nothing useful without a call that says so.

use rustc_hash::FxHashMap;

use crate::records::{Records, State};

/// The state of useful work.
const RUNNING: i32 = 1;
/// The state of a thread that is not recorded.
const DISABLED: i32 = 14;
/// The states of threads in calls that communicate.
const COMMUNICATION: [i32; 9] = [3, 4, 6, 8, 9, 10, 11, 13, 16];
/// The state of nothing, which is that between records as well.
const IDLE: i32 = 0;

/// A time in which a thread does nothing useful, outside of calls or inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gap {
    pub(crate) begin: i64,
    pub(crate) end: i64,
    pub(crate) region: u32,
}

/// What a thread does besides running, from its states.
#[derive(Debug, Default)]
pub(crate) struct Gaps {
    /// In order.
    states: Records,
    end: i64,
    /// The region of each state.
    regions: FxHashMap<i32, u32>,
}

impl Gaps {
    /// The times up to `end` in which a thread is in another state than running; none without any state.
    pub(crate) fn new(states: Records, end: i64, mut region: impl FnMut(i32) -> u32) -> Self {
        let gaps = Self { states: states.into_states(), end, regions: FxHashMap::default() };
        let mut regions = FxHashMap::default();
        for (.., state) in gaps.stretches() {
            regions.entry(state).or_insert_with(|| region(state));
        }
        Self { regions, ..gaps }
    }

    /// Begin, end and state of each stretch.
    fn stretches(&self) -> impl Iterator<Item = (i64, i64, i32)> {
        let end = State { begin: self.end, end: self.end, kind: RUNNING };
        let has_states = self.states.states().next().is_some();
        let mut known = 0;
        let stretches = self.states.states().chain(has_states.then_some(end)).flat_map(move |state| {
            let idle = (known, state.begin, IDLE);
            let own = (state.begin.max(known), state.end, state.kind);
            known = known.max(state.begin).max(state.end);
            [idle, own]
        });
        stretches.filter(|(begin, end, state)| begin < end && *state != RUNNING)
    }

    /// The times in which nothing is recorded, in order.
    pub(crate) fn pauses(&self) -> impl Iterator<Item = (i64, i64)> {
        self.stretches().filter(|stretch| stretch.2 == DISABLED).map(|(begin, end, _)| (begin, end))
    }

    /// The times in states of communication, in order.
    pub(crate) fn communication(&self) -> impl Iterator<Item = (i64, i64)> {
        let stretches = self.stretches().filter(|stretch| COMMUNICATION.contains(&stretch.2));
        stretches.map(|(begin, end, _)| (begin, end))
    }

    /// The times, in order; those of one region that follow each other are one.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Gap> {
        let mut gaps = self.stretches().map(|(begin, end, state)| Gap { begin, end, region: self.regions[&state] });
        let mut next = gaps.next();
        std::iter::from_fn(move || {
            let mut gap = next.take()?;
            next = gaps.next();
            while let Some(more) = next.filter(|more| more.begin == gap.end && more.region == gap.region) {
                gap.end = more.end;
                next = gaps.next();
            }
            Some(gap)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_running_is_a_gap() {
        let mut states = Records::default();
        for (begin, end, kind) in [(2, 4, 1), (6, 7, 12), (4, 5, 13), (6, 9, 1), (9, 3, 1)] {
            states.state(State { begin, end, kind });
        }
        let gaps = Gaps::new(states, 12, |state| state as u32);
        let times: Vec<(i64, i64, u32)> = gaps.iter().map(|gap| (gap.begin, gap.end, gap.region)).collect();
        assert_eq!(times, [(0, 2, 0), (4, 5, 13), (5, 6, 0), (6, 7, 12), (9, 12, 0)]);
        assert_eq!(Gaps::new(Records::default(), 12, |_| 0).iter().count(), 0);
    }
}
