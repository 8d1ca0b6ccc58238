//! States of threads: where a thread does nothing useful without a call that says so.

use crate::scan::State;

/// The state of useful work.
const RUNNING: i32 = 1;
/// The state of nothing, which is that between records as well.
const IDLE: i32 = 0;

/// A time in which a thread does nothing useful, outside of calls or inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gap {
    pub(crate) begin: i64,
    pub(crate) end: i64,
    pub(crate) region: u32,
}

/// The times up to `end` in which a thread is in another state than running, in order; none without any state.
pub(crate) fn gaps(mut states: Vec<State>, end: i64, mut region: impl FnMut(i32) -> u32) -> Vec<Gap> {
    if !states.is_sorted_by_key(|state| state.begin) {
        states.sort_by_key(|state| state.begin);
    }
    let mut gaps: Vec<Gap> = Vec::new();
    let mut add = |begin: i64, end: i64, kind: i32| {
        if begin >= end || kind == RUNNING {
            return;
        }
        let region = region(kind);
        match gaps.last_mut() {
            Some(last) if last.end == begin && last.region == region => last.end = end,
            _ => gaps.push(Gap { begin, end, region }),
        }
    };
    let mut known = if states.is_empty() { end } else { 0 };
    for state in &states {
        add(known, state.begin, IDLE);
        add(state.begin.max(known), state.end, state.kind);
        known = known.max(state.begin).max(state.end);
    }
    add(known, end, IDLE);
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_running_is_a_gap() {
        let state = |begin, end, kind| State { begin, end, kind };
        let states = vec![state(2, 4, 1), state(6, 7, 12), state(4, 5, 13), state(6, 9, 1), state(9, 3, 1)];
        let gaps = gaps(states, 12, |state| state as u32);
        let times: Vec<(i64, i64, u32)> = gaps.iter().map(|gap| (gap.begin, gap.end, gap.region)).collect();
        assert_eq!(times, [(0, 2, 0), (4, 5, 13), (5, 6, 0), (6, 7, 12), (9, 12, 0)]);
        assert!(super::gaps(Vec::new(), 12, |_| 0).is_empty());
    }
}
