//! The fast path for totals that are sampled at every Enter and Leave.
//!
//! ```text
//!  samples   100       300         900      1000
//!  main      [   200    .           .    100 ]          main grows by 300
//!  foo       .          [    600    ]        .          foo by 600
//! ```
//!
//! If there is no event between two samples except the one of the first, the growth of a total belongs to the call path
//! that runs at the second. Anything else (the first sample, a total that falls, an event without a sample, a value above
//! 2^63) takes the slow path of [`super::book`]; the next sample is on the fast path again.

use whywait_otf2::enums::Type;
use whywait_otf2::records::TypedValue;

use super::definitions::Position;
use super::values::{Number, Sums};
use crate::trace::columns::Events;

/// The totals of a metric class at one location.
#[derive(Debug)]
pub(super) struct Totals {
    members: Vec<Member>,
    /// Time and position of the latest sample; `None` if the next one takes the slow path.
    before: Option<(i64, Position)>,
    /// Number of times that the fast path was resumed; within an epoch, no total falls.
    epoch: u64,
    rows: Vec<Row>,
    /// Sums of each row and member in the current epoch.
    cells: Vec<Cell>,
    /// First value of each row and member in the current epoch.
    first: Vec<i64>,
    /// Sums of each row and member in earlier epochs.
    sums: Vec<Sums>,
}

/// A total.
#[derive(Clone, Copy, Debug)]
struct Member {
    kind: Type,
    latest: i64,
}

/// A call path.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    /// Epoch of its cells.
    epoch: u64,
    /// Number of samples in this epoch.
    samples: u64,
}

/// A total at a call path in one epoch. It does not fall, so the first sample is the minimum, the latest the maximum.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    sampled: i128,
    /// Less than 2^64: at most the difference between first and last sample of the epoch.
    grown: u64,
    latest: i64,
}

impl Totals {
    /// Totals of a class with this number of members.
    pub(super) fn new(members: usize) -> Self {
        let member = Member { kind: Type::NONE, latest: 0 };
        Self {
            members: vec![member; members],
            before: None,
            epoch: 0,
            rows: Vec::new(),
            cells: Vec::new(),
            first: Vec::new(),
            sums: Vec::new(),
        }
    }

    /// Resumes after a record on the slow path, if all its values are integers that fit.
    pub(super) fn resume(&mut self, values: &[TypedValue], at: (i64, Position)) {
        let fits = |value: &TypedValue| match value.kind {
            Type::INT64 => true,
            Type::UINT64 => i64::try_from(value.bits).is_ok(),
            _ => false,
        };
        if values.len() == self.members.len() && values.iter().all(fits) {
            for (member, value) in self.members.iter_mut().zip(values) {
                *member = Member { kind: value.kind, latest: value.bits as i64 };
            }
            self.before = Some(at);
            self.epoch += 1;
        }
    }

    /// Leaves the next record to the slow path; returns time, position, and values of the latest one.
    pub(super) fn pause(&mut self) -> Option<(i64, Position, impl Iterator<Item = Number>)> {
        let (time, position) = self.before.take()?;
        Some((time, position, self.members.iter().map(|member| Number::from_integer(member.latest))))
    }

    /// Books the values of a record in a row; `false` if it needs the slow path.
    #[inline(always)]
    pub(super) fn book(
        &mut self,
        values: &[TypedValue],
        (time, position): (i64, Position),
        row: usize,
        events: &Events,
    ) -> bool {
        let Some((since, before)) = &mut self.before else { return false };
        let between = position.events - before.events;
        let is_next = between == 0 || (between == 1 && events.time.get(before.events as usize) == Some(since));
        let members = &mut self.members[..];
        let number = members.len();
        if !is_next || values.len() != number {
            return false;
        }
        // Totals seldom fall, so one branch checks all of them.
        let mut grow = true;
        for i in 0..number {
            grow &= members[i].kind == values[i].kind;
            grow &= members[i].latest <= values[i].bits as i64;
        }
        if !grow {
            return false;
        }
        (*since, *before) = (time, position);
        match self.rows.get_mut(row) {
            Some(Row { epoch, samples }) if *epoch == self.epoch => *samples += 1,
            _ => self.begin(row, values),
        }
        let members = &mut self.members[..number];
        let cells = &mut self.cells[row * number..][..number];
        for i in 0..number {
            let (Member { latest, .. }, cell) = (&mut members[i], &mut cells[i]);
            let value = values[i].bits as i64;
            cell.grown = cell.grown.wrapping_add(value.wrapping_sub(*latest) as u64);
            cell.sampled = cell.sampled.wrapping_add(i128::from(value));
            cell.latest = value;
            *latest = value;
        }
        true
    }

    /// Begins an epoch of a row with its first sample.
    #[cold]
    #[inline(never)]
    fn begin(&mut self, row: usize, values: &[TypedValue]) {
        let members = self.members.len();
        if self.rows.len() <= row {
            self.rows.resize(row + 1, Row::default());
            self.cells.resize((row + 1) * members, Cell::default());
            self.first.resize((row + 1) * members, 0);
            self.sums.resize((row + 1) * members, Sums::default());
        }
        self.end(row);
        self.rows[row] = Row { epoch: self.epoch, samples: 1 };
        for (first, value) in self.first[row * members..].iter_mut().zip(values) {
            *first = value.bits as i64;
        }
    }

    /// Ends the epoch of a row: adds its cells to the sums.
    fn end(&mut self, row: usize) {
        let members = self.members.len();
        let samples = std::mem::take(&mut self.rows[row].samples);
        if samples == 0 {
            return;
        }
        let all = row * members..(row + 1) * members;
        let cells = self.cells[all.clone()].iter_mut().zip(&self.first[all.clone()]);
        for ((cell, &first), sums) in cells.zip(&mut self.sums[all]) {
            let Cell { sampled, grown, latest } = std::mem::take(cell);
            sums.amount += Number { integer: i128::from(grown), real: 0.0 };
            sums.sampled += Number { integer: sampled, real: 0.0 };
            sums.samples += samples;
            sums.extend_range(Number::from_integer(first));
            sums.extend_range(Number::from_integer(latest));
        }
    }

    /// The sums of each row and member.
    pub(super) fn finish(mut self) -> Vec<Sums> {
        for row in 0..self.rows.len() {
            self.end(row);
        }
        self.sums
    }
}
