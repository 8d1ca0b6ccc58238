//! The function of time that the two passes find.

use bitcode::{Decode, Encode};

use crate::galloping_search::partition_point_near;

/// A shift shrinks by one tick in so many.
pub(super) const DECAY: i64 = 100_000;
/// A move before a jump grows by one tick in so many.
pub(super) const SLOPE: i64 = 100;

/// Times of jumps, and the shifts there, ticks.
pub(super) type Jumps = Vec<(i64, i64)>;

/// Where a time was found among jumps and knots.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::clocks) struct Near {
    jump: usize,
    knot: usize,
}

/// What is added to a clock, ticks.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
pub(in crate::clocks) struct Logical {
    pub(super) jumps: Jumps,
    /// Shifted times, and what is added until and from there; linear between them, and nothing outside.
    pub(super) knots: Vec<(i64, i64, i64)>,
}

impl Logical {
    /// Whether it adds nothing.
    pub(in crate::clocks) fn is_zero(&self) -> bool {
        self.jumps.is_empty()
    }

    /// The corrected time of a time, ticks.
    pub(in crate::clocks) fn apply(&self, time: i64) -> i64 {
        let time = self.shifted(time, self.jumps.partition_point(|jump| jump.0 <= time));
        self.advanced(time, self.knots.partition_point(|knot| knot.0 < time))
    }

    /// The same, of a time close to the one before.
    pub(in crate::clocks) fn apply_near(&self, time: i64, near: &mut Near) -> i64 {
        near.jump = partition_point_near(&self.jumps, near.jump, |jump| jump.0 <= time);
        let time = self.shifted(time, near.jump);
        near.knot = partition_point_near(&self.knots, near.knot, |knot| knot.0 < time);
        self.advanced(time, near.knot)
    }

    /// A time behind so many jumps, shifted.
    fn shifted(&self, time: i64, jumps: usize) -> i64 {
        // A damaged time may be anywhere.
        time.saturating_add(jumps.checked_sub(1).map_or(0, |last| decayed(self.jumps[last], time)))
    }

    /// A shifted time behind so many knots, with what is added before jumps.
    fn advanced(&self, time: i64, knots: usize) -> i64 {
        time + match (knots.checked_sub(1).map(|before| self.knots[before]), self.knots.get(knots)) {
            (_, Some(&(at, until, _))) if at == time => until,
            (Some(before), Some(&next)) => between(before, next, time),
            _ => 0,
        }
    }

    /// The steepest growth of what is added before a jump, and the time in which it grows by more than [`SLOPE`] allows,
    /// ticks.
    pub(in crate::clocks) fn stretch(&self) -> (f64, i64) {
        let (mut steepest, mut stretched): (f64, i64) = (0.0, 0);
        for pair in self.knots.windows(2) {
            let (grown, length) = (pair[1].1 - pair[0].2, pair[1].0 - pair[0].0);
            steepest = steepest.max(grown as f64 / length as f64);
            // A tick is rounding.
            if (grown - 1).saturating_mul(SLOPE) > length {
                stretched += length;
            }
        }
        (steepest, stretched)
    }
}

/// The shift at a time: that of the last jump, decayed.
pub(super) fn shift(jumps: &[(i64, i64)], time: i64) -> i64 {
    let before = jumps.partition_point(|jump| jump.0 <= time);
    before.checked_sub(1).map_or(0, |last| decayed(jumps[last], time))
}

pub(super) fn decayed((at, shift): (i64, i64), time: i64) -> i64 {
    (shift - time.saturating_sub(at) / DECAY).max(0)
}

/// The value between two knots, rounded down.
pub(super) fn between((begin, _, from): (i64, i64, i64), (end, to, _): (i64, i64, i64), at: i64) -> i64 {
    from + (i128::from(to - from) * i128::from(at - begin)).div_euclid(i128::from(end - begin)) as i64
}
