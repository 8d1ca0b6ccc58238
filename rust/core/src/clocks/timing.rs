//! Corrected time as an increasing function of recorded time.

use bitcode::{Decode, Encode};

use super::clc::{Logical, Near};

/// What is added to a clock: linear between knots, and beyond the first and the last.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(super) struct Pieces {
    /// Times of the knots, ticks; at least two.
    pub(super) knots: Vec<i64>,
    /// What is added there, ticks.
    pub(super) values: Vec<f64>,
}

impl Pieces {
    /// What is added at a time, ticks.
    #[inline]
    fn at(&self, time: i64) -> f64 {
        let piece = self.knots.partition_point(|&knot| knot <= time).clamp(1, self.knots.len() - 1) - 1;
        let (begin, end) = (self.knots[piece], self.knots[piece + 1]);
        let slope = (self.values[piece + 1] - self.values[piece]) / (end - begin) as f64;
        self.values[piece] + slope * (time - begin) as f64
    }
}

/// A function of time: first a line of pieces, then a logical clock.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
pub(super) struct Timing {
    pub(super) pieces: Option<Pieces>,
    pub(super) logical: Logical,
}

impl Timing {
    /// Adds as many ticks to every time.
    pub(super) fn constant(ticks: i64) -> Self {
        let pieces = (ticks != 0).then(|| Pieces { knots: vec![0, 1], values: vec![ticks as f64; 2] });
        Self { pieces, ..Self::default() }
    }

    /// Whether time stays as it is.
    pub(super) fn is_identity(&self) -> bool {
        self.pieces.is_none() && self.logical.is_zero()
    }

    /// What is added to a time, ticks.
    pub(super) fn added(&self, time: i64) -> i64 {
        self.apply(time) - time
    }

    /// The corrected time of a recorded one, ticks.
    #[inline]
    pub(super) fn apply(&self, time: i64) -> i64 {
        let time = self.on_line(time);
        if self.logical.is_zero() { time } else { self.logical.apply(time) }
    }

    /// The same, of a time close to the one before.
    #[inline]
    pub(super) fn apply_near(&self, time: i64, near: &mut Near) -> i64 {
        let time = self.on_line(time);
        if self.logical.is_zero() { time } else { self.logical.apply_near(time, near) }
    }

    #[inline]
    fn on_line(&self, time: i64) -> i64 {
        match &self.pieces {
            None => time,
            // A damaged time may be anywhere.
            Some(pieces) => time.saturating_add(pieces.at(time).round_ties_even() as i64),
        }
    }
}
