//! What is added to a clock over the run: a line, or one of several pieces.
//!
//! *Source*: clocks.md#lines.

use bitcode::{Decode, Encode};

use super::fit::{Line, piece};
use super::timing::Pieces;

/// What is added to a clock: values at knots at equal distances over the run, ticks.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(super) struct Course {
    pub(super) values: Vec<f64>,
    pub(super) length: f64,
}

impl Course {
    pub(super) fn line(line: Line, length: f64) -> Self {
        Self { values: vec![line.value, line.at(length)], length }
    }

    pub(super) fn pieces(&self) -> usize {
        self.values.len() - 1
    }

    /// What it adds at a time.
    pub(super) fn at(&self, time: f64) -> f64 {
        let width = self.length / self.pieces() as f64;
        let piece = piece(time, self.length, self.pieces());
        let share = time / width - piece as f64;
        self.values[piece] + share * (self.values[piece + 1] - self.values[piece])
    }

    pub(super) fn with_pieces(&self, pieces: usize) -> Self {
        let width = self.length / pieces as f64;
        Self { values: (0..=pieces).map(|knot| self.at(knot as f64 * width)).collect(), length: self.length }
    }

    pub(super) fn is_zero(&self) -> bool {
        self.values.iter().all(|&value| value == 0.0)
    }

    /// What it adds at the begin and at the end.
    pub(super) fn ends(&self) -> (f64, f64) {
        (self.values[0], self.values[self.pieces()])
    }

    /// The function of time of a run that begins at a tick; `None` if it adds nothing.
    pub(super) fn to_pieces(&self, begin: i64) -> Option<Pieces> {
        if self.is_zero() {
            return None;
        }
        let knot = |number: usize| begin + (self.length * number as f64 / self.pieces() as f64).round() as i64;
        Some(Pieces { knots: (0..=self.pieces()).map(knot).collect(), values: self.values.clone() })
    }
}
