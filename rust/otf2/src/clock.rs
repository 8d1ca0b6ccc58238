//! Local time to global time, piecewise linear between the measured clock offsets.

use crate::records::ClockOffset;

/// Adding this number to a double of magnitude below 2^51 leaves its integer part, rounded half to even, in the low
/// bits of the mantissa. Baseline x86-64 has no instruction that rounds.
const MAGIC: f64 = 6_755_399_441_055_744.0;
const MAGIC_LIMIT: f64 = 2_251_799_813_685_248.0;

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

/// Where in the intervals a location's time has arrived; it moves only forwards, as that of the official reader.
#[derive(Debug, Clone, Copy)]
pub struct ClockCursor<'a> {
    current: Interval,
    rest: &'a [Interval],
}

const NO_CORRECTION: Interval = Interval { begin: 0, end: u64::MAX, offset: 0, slope: 0.0 };

impl ClockCorrection {
    /// The correction that `offsets` (by strictly increasing time) describe. Less than two offsets mean none; an
    /// offset that is not later than the one before is left out.
    #[must_use]
    pub fn new(offsets: &[ClockOffset]) -> Self {
        let mut intervals = Vec::new();
        let mut begin: Option<&ClockOffset> = None;
        for end in offsets {
            if let Some(begin) = begin {
                if end.time <= begin.time {
                    continue;
                }
                intervals.push(Interval {
                    begin: begin.time,
                    end: end.time,
                    offset: begin.offset,
                    slope: end.offset.wrapping_sub(begin.offset) as f64 / (end.time - begin.time) as f64,
                });
            }
            begin = Some(end);
        }
        Self { intervals: intervals.into() }
    }

    /// Whether times stay as they are.
    #[must_use]
    pub fn is_identity(&self) -> bool {
        self.intervals.is_empty()
    }

    /// A cursor at the first interval.
    #[must_use]
    pub fn cursor(&self) -> ClockCursor<'_> {
        match &*self.intervals {
            [] => ClockCursor { current: NO_CORRECTION, rest: &[] },
            [first, rest @ ..] => ClockCursor { current: *first, rest },
        }
    }
}

impl ClockCursor<'_> {
    /// Global time in ticks of a local time in ticks.
    #[inline]
    pub fn correct(&mut self, time: u64) -> i64 {
        if time > self.current.end && !self.rest.is_empty() {
            self.advance(time);
        }
        let Interval { begin, offset, slope, .. } = self.current;
        let ahead = time.wrapping_sub(begin) as i64;
        // Differences beyond 63 bits do not fit the signed conversion, which is the fast one.
        let distance = if (time >= begin) == (ahead >= 0) { ahead as f64 } else { far(time, begin) };
        (time as i64).wrapping_add(offset).wrapping_add(round_half_even(slope * distance))
    }

    #[cold]
    fn advance(&mut self, time: u64) {
        while time > self.current.end
            && let [next, rest @ ..] = self.rest
        {
            self.current = *next;
            self.rest = rest;
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
    } else {
        x.round_ties_even() as i64
    }
}
