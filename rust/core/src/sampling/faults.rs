//! Page faults: the time in the system that they take, which samples of them divide.
//!
//! A clock that stands still in the system sees nothing of the work that the kernel does for a function at new memory. But what
//! the thread used of the system by each sample says how much time in the system a fault takes.
//!
//! *Source*: docs/specification.md#page-faults.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::paths::Placed;
use super::strata::Stratum;
use crate::ids::CallPathId;
use crate::trace::{Shard, Trace};

/// Page faults of a location.
pub(super) struct Faults {
    /// Time in the system for each, ticks.
    cost: f64,
    /// How many each divided call path has.
    counts: FxHashMap<CallPathId, u64>,
}

impl Faults {
    /// Those of the shard's i-th location within a window, ticks.
    pub(super) fn of(
        trace: &Trace,
        (shard, i): (&Shard, usize),
        placed: &[Placed],
        is_divided: &[bool],
        window: Option<&Range<i64>>,
    ) -> Self {
        let rows = shard.call_samples.range(i);
        let mut line = Line::default();
        let mut counts: FxHashMap<CallPathId, u64> = FxHashMap::default();
        for (sample, placed) in shard.call_samples.rows[rows.clone()].iter().zip(&placed[rows]) {
            let usage = shard.usages.get(sample.usage as usize).copied().unwrap_or_default();
            let faults = usage.minor_faults + usage.major_faults;
            line.add(faults as f64, usage.system_time as f64 * 1e-6 * trace.resolution as f64);
            if faults > 0
                && window.is_none_or(|window| window.contains(&sample.time))
                && let Some(callpath) = around(trace, placed.recorded, is_divided)
            {
                *counts.entry(callpath).or_default() += faults;
            }
        }
        Self { cost: line.slope(), counts }
    }

    /// For each call path the share of the time in the system, or without a core, that its faults take.
    pub(super) fn shares(&self, strata: &[Stratum]) -> FxHashMap<CallPathId, f64> {
        let mut away: FxHashMap<CallPathId, i64> = FxHashMap::default();
        for stratum in strata.iter().filter(|stratum| stratum.is_resolved()) {
            *away.entry(stratum.recorded).or_default() += stratum.away().unwrap_or_default();
        }
        let share = |(&callpath, &count): (&CallPathId, &u64)| {
            let away = away.get(&callpath).copied().filter(|&away| away > 0)? as f64;
            Some((callpath, (self.cost * count as f64 / away).min(1.0)))
        };
        self.counts.iter().filter_map(share).collect()
    }
}

/// The innermost divided call path that a recorded one is, or is in: what is used in a call of a library is that of its caller.
pub(super) fn around(trace: &Trace, mut callpath: CallPathId, is_divided: &[bool]) -> Option<CallPathId> {
    while callpath.is_some() && !is_divided[callpath.index()] {
        callpath = trace.tree.parent(callpath);
    }
    callpath.is_some().then_some(callpath)
}

/// A line through points by least squares.
#[derive(Default)]
struct Line {
    count: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
}

impl Line {
    fn add(&mut self, x: f64, y: f64) {
        self.count += 1.0;
        self.x += x;
        self.y += y;
        self.xx += x * x;
        self.xy += x * y;
    }

    /// What y grows by with x: at least nothing, and at most all of y.
    fn slope(&self) -> f64 {
        if self.x == 0.0 {
            return 0.0;
        }
        let whole = self.y / self.x;
        let spread = self.xx - self.x * self.x / self.count;
        let slope = (self.xy - self.x * self.y / self.count) / spread;
        // Where all points have the same x, all of y is due to it.
        if spread > 1e-9 * self.xx { slope.clamp(0.0, whole) } else { whole }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slope(points: &[(f64, f64)]) -> f64 {
        let mut line = Line::default();
        for &(x, y) in points {
            line.add(x, y);
        }
        line.slope()
    }

    #[test]
    fn faults_take_what_grows_with_them() {
        // 3 for each, and 5 in any case.
        assert!((slope(&[(0.0, 5.0), (10.0, 35.0), (20.0, 65.0)]) - 3.0).abs() < 1e-12);
        assert!((slope(&[(10.0, 30.0), (10.0, 50.0)]) - 4.0).abs() < 1e-12);
        // Neither less than nothing nor more than all.
        assert!(slope(&[(0.0, 9.0), (10.0, 1.0)]).abs() < 1e-12);
        assert!((slope(&[(1.0, 0.0), (2.0, 9.0)]) - 3.0).abs() < 1e-12);
        assert!(slope(&[(0.0, 4.0)]).abs() < 1e-12);
    }
}
