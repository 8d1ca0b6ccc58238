//! States of threads: where a thread does nothing useful without a call that says so.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::records::{Records, State};

/// Types of events: what the recorder does. It writes its buffer, records or does not, and records all or not.
const FLUSH: u32 = 40_000_003;
/// See [`FLUSH`].
const RECORDING: u32 = 40_000_012;
/// See [`FLUSH`].
const MODE: u32 = 40_000_018;
/// The mode in which all calls are recorded; in others, only how many there were.
const DETAILED: i64 = 1;

/// The state of useful work.
const RUNNING: i32 = 1;
/// The state of a thread that is not recorded.
const DISABLED: i32 = 14;
/// The state of a thread whose buffer is written.
const FLUSHING: i32 = 12;
/// The states of threads in calls that communicate.
const COMMUNICATION: [i32; 9] = [3, 4, 6, 8, 9, 10, 11, 13, 16];
/// The state of nothing, which is that between records as well.
const IDLE: i32 = 0;

/// An event of the recorder: when, its type, and its value.
pub(crate) type Switch = (i64, u32, i64);

/// Whether a type says what the recorder does.
pub(crate) const fn is_switch(kind: u32) -> bool {
    matches!(kind, FLUSH | RECORDING | MODE)
}

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
    pub(crate) fn new(states: Records, switches: &[Switch], end: i64, mut region: impl FnMut(i32) -> u32) -> Self {
        let mut states = states.into_states();
        for (kind, state) in [(FLUSH, FLUSHING), (RECORDING, DISABLED), (MODE, DISABLED)] {
            states = within(states, &stretches(switches, kind, state, end), end);
        }
        let gaps = Self { states, end, regions: FxHashMap::default() };
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

/// When the recorder does something, as a type of events says.
fn stretches(switches: &[Switch], kind: u32, state: i32, end: i64) -> Vec<State> {
    let begins = |value: i64| match kind {
        FLUSH => value != 0,
        RECORDING => value == 0,
        _ => value != DETAILED,
    };
    let mut found: Vec<State> = Vec::new();
    let mut since = None;
    for &(time, _, value) in switches.iter().filter(|switch| switch.1 == kind) {
        if begins(value) {
            since = since.or(Some(time));
        } else if let Some(begin) = since.take() {
            found.push(State { begin, end: time, kind: state });
        }
    }
    found.extend(since.map(|begin| State { begin, end, kind: state }));
    found
}

/// States with others that count instead, both in order.
fn within(states: Records, others: &[State], end: i64) -> Records {
    // The usual recorder writes states as well.
    let is_state = |state: &State| others.first().is_some_and(|other| other.kind == state.kind);
    let known: FxHashSet<(i64, i64)> = states.states().filter(is_state).map(|state| (state.begin, state.end)).collect();
    if others.iter().all(|other| known.contains(&(other.begin, other.end))) {
        return states;
    }
    let running = State { begin: 0, end, kind: RUNNING };
    let has_any = states.states().next().is_some();
    let mut all = others.to_vec();
    for state in states.states().chain((!has_any).then_some(running)) {
        let mut begin = state.begin;
        let first = others.partition_point(|other| other.end <= state.begin);
        for other in others[first..].iter().take_while(|other| other.begin < state.end) {
            all.push(State { begin, end: other.begin.max(begin), ..state });
            begin = other.end;
        }
        all.push(State { begin: begin.min(state.end), ..state });
    }
    all.retain(|state| state.begin < state.end);
    all.sort_by_key(|state| state.begin);
    let mut merged = Records::default();
    for state in all {
        merged.state(state);
    }
    merged
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
        let gaps = Gaps::new(states, &[], 12, |state| state as u32);
        let times: Vec<(i64, i64, u32)> = gaps.iter().map(|gap| (gap.begin, gap.end, gap.region)).collect();
        assert_eq!(times, [(0, 2, 0), (4, 5, 13), (5, 6, 0), (6, 7, 12), (9, 12, 0)]);
        assert_eq!(Gaps::new(Records::default(), &[], 12, |_| 0).iter().count(), 0);
    }
}
