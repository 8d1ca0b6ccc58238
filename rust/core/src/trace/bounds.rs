//! Bounds of plausible time stamps: a stamp outside them is damaged.
//!
//! The clock properties of an archive say when the run began and how long it took. If clocks disagree, stamps may lie
//! outside, but by no more than the length of the run, or an hour if that is longer. If the clock properties do not fit
//! the events, the bounds come from the events themselves.
//!
//! Bounds are never more than [`WIDEST`] ticks apart, so that a thousand durations add up without overflow, whatever a
//! damaged file contains.

use std::ops::RangeInclusive;

use whywait_otf2::Recording;
use whywait_otf2::records::ClockProperties;

use super::definition_index::DefinitionIndex;
use crate::parallel::iter::prelude::*;

/// Largest distance of the bounds, ticks: a double represents every integer up to here.
const WIDEST: i64 = 1 << 53;

/// No real clock comes near this time, and differences of times below it cannot overflow.
const LATEST: i64 = 1 << 61;

/// Number of locations whose first event is compared with the clock properties.
const ASKED: usize = 5;

/// The plausible times of a run's events, ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Earliest plausible time.
    pub first: i64,
    /// Latest plausible time.
    pub last: i64,
    /// Begin of the run, as far as it is known before its events are read.
    pub begin: i64,
}

impl Bounds {
    /// The bounds of a recorded run.
    pub fn new(recording: &dyn Recording, definitions: &DefinitionIndex) -> Self {
        let step = definitions.locations.len().div_ceil(ASKED).max(1);
        let busy = definitions.locations.iter().step_by(step).filter(|location| location.events > 0);
        let busy: Vec<_> = busy.collect();
        let first = |location: &super::locations::Location| recording.events(location.id).ok()?.first_time();
        let firsts = busy.into_par_iter().filter_map(first).collect();
        Self::agreed(recording.definitions().clock_properties.first().and_then(Self::by), firsts)
    }

    fn by(clock: &ClockProperties) -> Option<Self> {
        Self::stated(clock.global_offset, clock.trace_length, clock.timer_resolution)
    }

    /// The bounds by the clock properties; `None` if these are implausible.
    fn stated(begin: u64, length: u64, resolution: u64) -> Option<Self> {
        let (begin, length) = (i64::try_from(begin).ok()?, i64::try_from(length).ok()?);
        let hour = i64::try_from(resolution).unwrap_or(i64::MAX).saturating_mul(3600);
        let margin = length.max(hour).min((WIDEST - length.min(WIDEST)) / 2);
        let is_plausible = length > 0 && length <= WIDEST && begin < LATEST - WIDEST;
        is_plausible.then(|| Self { first: begin - margin, last: begin + length + margin, begin })
    }

    /// The stated bounds, or bounds around the sampled first events if most of these lie outside.
    fn agreed(stated: Option<Self>, mut firsts: Vec<i64>) -> Self {
        firsts.sort_unstable();
        if let Some(stated) = stated {
            let within = firsts.iter().filter(|&&time| stated.range().contains(&time)).count();
            if 2 * within >= firsts.len() {
                return stated;
            }
        }
        let limit = LATEST - WIDEST;
        let begin = firsts.get(firsts.len() / 2).copied().unwrap_or(0).clamp(-limit, limit);
        Self { first: begin - WIDEST / 2, last: begin + WIDEST / 2, begin }
    }

    /// All plausible times.
    pub fn range(self) -> RangeInclusive<i64> {
        self.first..=self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000_000_000;

    #[test]
    fn a_run_may_lie_beside_what_its_clock_says_by_its_length_or_an_hour() {
        let bounds = Bounds::stated(1 << 60, 5_000_000_000, 1_000_000_000).unwrap();
        assert_eq!(bounds.range(), (1 << 60) - HOUR..=(1 << 60) + 5_000_000_000 + HOUR);
        let long = Bounds::stated(0, 5 * HOUR as u64, 1_000_000_000).unwrap();
        assert_eq!(long.range(), -5 * HOUR..=10 * HOUR);
    }

    #[test]
    fn no_bounds_are_wider_than_sums_allow() {
        for (length, resolution) in [(1, u64::MAX), (WIDEST as u64 - 1, 1), (1 << 40, 1 << 62)] {
            let bounds = Bounds::stated(7, length, resolution).unwrap();
            assert!(bounds.last - bounds.first <= WIDEST, "{length} {resolution}");
        }
        for (begin, length) in [(0, 0), (0, u64::MAX), (u64::MAX, 5), (1 << 62, 5), (0, 1 << 54)] {
            assert_eq!(Bounds::stated(begin, length, 1), None, "{begin} {length}");
        }
    }

    #[test]
    fn events_outvote_clock_properties_that_do_not_fit_them() {
        let stated = Bounds::stated(0, 100, 1);
        assert_eq!(Bounds::agreed(stated, vec![10, 20, i64::MAX]), stated.unwrap());
        let measured = Bounds::agreed(stated, vec![i64::MIN, 1 << 50, (1 << 50) + 9]);
        assert!(measured.begin == 1 << 50 && measured.range().contains(&(1 << 51)));
        assert!(Bounds::agreed(None, vec![i64::MAX]).last < LATEST);
        assert!(Bounds::agreed(None, vec![]).range().contains(&0));
    }
}
