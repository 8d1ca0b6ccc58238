//! Local time to global time, piecewise linear between the measured clock offsets.

/// Adding this number to a double of magnitude below 2^51 leaves its integer part, rounded half to even, in the low
/// bits of the mantissa. Baseline x86-64 has no instruction that rounds.
const MAGIC: f64 = 6_755_399_441_055_744.0;
const MAGIC_LIMIT: f64 = 2_251_799_813_685_248.0;

/// 2^63, the smallest number that does not fit.
const TOO_LARGE: f64 = 9_223_372_036_854_775_808.0;

/// The part between two offset measurements.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Interval {
    begin: u64,
    end: u64,
    offset: i64,
    slope: f64,
}

/// Clock correction of a location.
#[derive(Debug, Clone, PartialEq)]
pub struct ClockCorrection {
    intervals: Box<[Interval]>,
}

/// The current interval of a location; it only advances, as in the official reader.
#[derive(Debug, Clone, Copy)]
pub struct ClockCursor<'a> {
    current: Interval,
    /// Last time of the current interval; the last interval has no end.
    until: u64,
    rest: &'a [Interval],
}

const NO_CORRECTION: Interval = Interval { begin: 0, end: u64::MAX, offset: 0, slope: 0.0 };

impl ClockCorrection {
    /// The correction that measurements describe, each a local time and the offset then. Less than two mean none; one that is not
    /// later than the one before is left out.
    pub fn new(offsets: impl IntoIterator<Item = (u64, i64)>) -> Self {
        let mut intervals = Vec::new();
        let mut measured: Option<(u64, i64)> = None;
        for (end, to) in offsets {
            if let Some((begin, offset)) = measured {
                if end <= begin {
                    continue;
                }
                let slope = to.wrapping_sub(offset) as f64 / (end - begin) as f64;
                intervals.push(Interval { begin, end, offset, slope });
            }
            measured = Some((end, to));
        }
        Self { intervals: intervals.into() }
    }

    /// A cursor at the first interval.
    pub fn cursor(&self) -> ClockCursor<'_> {
        match &*self.intervals {
            [] => ClockCursor::new(&NO_CORRECTION, &[]),
            [first, rest @ ..] => ClockCursor::new(first, rest),
        }
    }
}

impl<'a> ClockCursor<'a> {
    fn new(current: &Interval, rest: &'a [Interval]) -> Self {
        Self { current: *current, until: if rest.is_empty() { u64::MAX } else { current.end }, rest }
    }

    /// Global time in ticks of a local time in ticks.
    #[inline(always)]
    pub fn correct(&mut self, time: u64) -> i64 {
        if time > self.until {
            self.advance(time);
        }
        let Interval { begin, offset, slope, .. } = self.current;
        // Differences beyond 63 bits do not fit the signed conversion, which is the fast one.
        let distance =
            if (time ^ begin) >> 63 == 0 { time.wrapping_sub(begin) as i64 as f64 } else { far(time, begin) };
        (time as i64).wrapping_add(offset).wrapping_add(round_half_even(slope * distance))
    }

    #[cold]
    fn advance(&mut self, time: u64) {
        while time > self.until
            && let [next, rest @ ..] = self.rest
        {
            *self = Self::new(next, rest);
        }
    }
}

#[cold]
fn far(time: u64, begin: u64) -> f64 {
    if time >= begin { (time - begin) as f64 } else { -((begin - time) as f64) }
}

#[inline]
fn round_half_even(x: f64) -> i64 {
    if x.abs() < MAGIC_LIMIT {
        ((x + MAGIC).to_bits() as i64).wrapping_sub(MAGIC.to_bits() as i64)
    } else if x.abs() < TOO_LARGE {
        x.round_ties_even() as i64
    } else {
        // Converts as the official reader does on x86.
        i64::MIN
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn correction(offsets: &[(u64, i64)]) -> ClockCorrection {
        ClockCorrection::new(offsets.iter().copied())
    }

    fn corrected(offsets: &[(u64, i64)], times: &[u64]) -> Vec<i64> {
        let correction = correction(offsets);
        let mut cursor = correction.cursor();
        times.iter().map(|time| cursor.correct(*time)).collect()
    }

    #[test]
    fn less_than_two_offsets_correct_nothing() {
        assert_eq!(corrected(&[], &[0, 7, u64::MAX]), [0, 7, -1]);
        assert_eq!(corrected(&[(5, 100)], &[0, 7, 1 << 63]), [0, 7, i64::MIN]);
    }

    #[test]
    fn between_before_and_behind() {
        let offsets = [(100, 0), (200, 10), (300, 30)];
        let times = [0, 100, 150, 200, 201, 300, 400];
        // A time at the end of an interval still belongs to it.
        assert_eq!(corrected(&offsets, &times), [-10, 100, 155, 210, 211, 330, 450]);
    }

    #[test]
    fn halves_round_to_even() {
        let offsets = [(0, 0), (4, 2)];
        assert_eq!(corrected(&offsets, &[1, 2, 3, 5]), [1, 3, 5, 7]);
        assert_eq!(corrected(&[(0, 0), (4, -2)], &[1, 2, 3, 5]), [1, 1, 1, 3]);
    }

    #[test]
    fn the_cursor_moves_only_forwards() {
        assert_eq!(corrected(&[(0, 0), (10, 0), (20, 100)], &[15, 5]), [65, -45]);
    }

    #[test]
    fn offsets_out_of_order_are_left_out() {
        assert_eq!(correction(&[(10, 1), (10, 5), (9, 3), (20, 2)]), correction(&[(10, 1), (20, 2)]));
    }

    /// As the official reader on x86, where a number that does not fit becomes the smallest integer.
    fn converted(x: f64) -> i64 {
        if x.abs() < 2.0f64.powi(63) { x.round_ties_even() as i64 } else { i64::MIN }
    }

    #[test]
    fn what_does_not_fit() {
        assert_eq!(corrected(&[(0, 0), (1, 1 << 40)], &[1 << 40]), [i64::MIN + (1 << 40)]);
    }

    proptest! {
        #[test]
        fn rounding_is_that_of_the_processor(bits: u64, small in -1e16_f64..1e16, half in -1_000_000_i64..1_000_000) {
            for x in [f64::from_bits(bits), small, half as f64 / 2.0] {
                prop_assert_eq!(round_half_even(x), converted(x), "{}", x);
            }
        }

        #[test]
        fn the_formula_as_it_stands(
            begin: u64, span in 1..u64::MAX, from: i64, to: i64, time: u64, near in 0_u64..1 << 40,
        ) {
            let (begin, end) = match begin.checked_add(span) {
                Some(end) => (begin, end),
                None => (begin - (begin.wrapping_add(span) + 1).min(begin), u64::MAX),
            };
            prop_assume!(begin < end);
            for time in [time, begin.saturating_add(near), begin.saturating_sub(near)] {
                let slope = to.wrapping_sub(from) as f64 / (end - begin) as f64;
                let distance =
                    if time >= begin { (time - begin) as f64 } else { -((begin - time) as f64) };
                let rounded = converted(slope * distance);
                let expected = (time as i64).wrapping_add(from).wrapping_add(rounded);
                prop_assert_eq!(corrected(&[(begin, from), (end, to)], &[time]), [expected]);
            }
        }
    }
}
