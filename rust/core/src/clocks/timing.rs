//! Corrected time as an increasing function of recorded time.

use bitcode::{Decode, Encode};

/// What is added to a clock: linear between knots, and beyond the first and the last.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct Pieces {
    /// Times of the knots, ticks; at least two.
    pub knots: Vec<i64>,
    /// What is added there, ticks.
    pub values: Vec<f64>,
}

impl Pieces {
    /// What is added at a time, ticks.
    #[must_use]
    #[inline]
    pub fn at(&self, time: i64) -> f64 {
        let piece = self.knots.partition_point(|&knot| knot <= time).clamp(1, self.knots.len() - 1) - 1;
        let (begin, end) = (self.knots[piece], self.knots[piece + 1]);
        let slope = (self.values[piece + 1] - self.values[piece]) / (end - begin) as f64;
        self.values[piece] + slope * (time - begin) as f64
    }
}

/// A function of time in steps, each applied to the result of the one before.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
pub struct Timing(Vec<Stage>);

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
enum Stage {
    Pieces(Pieces),
}

impl Timing {
    /// Adds a step that moves time by a piecewise linear function.
    pub fn add_pieces(&mut self, pieces: Pieces) {
        self.0.push(Stage::Pieces(pieces));
    }

    /// Whether time stays as it is.
    #[must_use]
    pub fn is_identity(&self) -> bool {
        self.0.is_empty()
    }

    /// The corrected time of a recorded one, ticks.
    #[must_use]
    #[inline]
    pub fn apply(&self, time: i64) -> i64 {
        self.0.iter().fold(time, |time, stage| match stage {
            Stage::Pieces(pieces) => time + pieces.at(time).round_ties_even() as i64,
        })
    }
}
