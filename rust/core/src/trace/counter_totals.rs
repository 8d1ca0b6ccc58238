//! The quick way to book totals that are sampled at every Enter and Leave.
//!
//! ```text
//!  samples   100       300         900      1000
//!  main      [   200    .           .    100 ]          main grows by 300
//!  foo       .          [    600    ]        .          foo by 600
//! ```
//!
//! With nothing between two samples but the event that the first stands before, what a total grew by belongs to the call
//! path that runs at the second. Whatever is not that simple (the first sample, a total that falls, an event without a
//! sample, a value above 2^63) takes the general way of [`super::counter_book`], and the next sample is quick again.

use whywait_otf2::enums::Type;
use whywait_otf2::records::TypedValue;

use super::columns::Events;
use super::counters::{Number, Position, Sums};

/// The totals of a metric class at one location.
#[derive(Debug)]
pub(super) struct Totals {
    members: Vec<Member>,
    /// Time of the latest sample, and where the events stood; none if the next one takes the general way.
    before: Option<(i64, Position)>,
    /// Number of times that samples have become quick: since the last one no total has fallen.
    epoch: u64,
    rows: Vec<Row>,
    /// By row and member: what was booked since the row was begun.
    cells: Vec<Cell>,
    /// By row and member: what was booked before.
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
    /// When it was begun.
    epoch: u64,
    /// Number of samples since then.
    samples: u64,
}

/// A total at a call path. It does not fall: its first sample is the least, its last one the largest.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    grown: i64,
    sampled: i64,
    first: i64,
    last: i64,
}

impl Cell {
    /// Hands growth and sum over: what they become need not fit.
    #[cold]
    #[inline(never)]
    fn spill(&mut self, sums: &mut Sums) {
        sums.amount += Number::whole(std::mem::take(&mut self.grown));
        sums.sampled += Number::whole(std::mem::take(&mut self.sampled));
    }
}

impl Totals {
    /// Of so many members.
    pub(super) fn new(members: usize) -> Self {
        let member = Member { kind: Type::NONE, latest: 0 };
        Self {
            members: vec![member; members],
            before: None,
            epoch: 0,
            rows: Vec::new(),
            cells: Vec::new(),
            sums: Vec::new(),
        }
    }

    /// Goes on from a record that took the general way, if all of its values are integers that fit.
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

    /// Leaves the next record to the general way; says when the latest was, where the events stood, and its values.
    pub(super) fn pause(&mut self) -> Option<(i64, Position, impl Iterator<Item = Number>)> {
        let (time, position) = self.before.take()?;
        Some((time, position, self.members.iter().map(|member| Number::whole(member.latest))))
    }

    /// Books the values of a record in a row; or nothing, if that is not simple.
    #[inline(always)]
    pub(super) fn take(
        &mut self,
        values: &[TypedValue],
        (time, position): (i64, Position),
        row: usize,
        events: &Events,
    ) -> bool {
        let Some((since, before)) = &mut self.before else { return false };
        let between = position.events - before.events;
        let is_next = between == 0 || (between == 1 && events.time.get(before.events as usize) == Some(since));
        let grows = |(member, value): (&Member, &TypedValue)| {
            let growth = (value.bits as i64).checked_sub(member.latest);
            member.kind == value.kind && growth.is_some_and(|growth| growth >= 0)
        };
        if !is_next || values.len() != self.members.len() || !self.members.iter().zip(values).all(grows) {
            return false;
        }
        (*since, *before) = (time, position);
        match self.rows.get_mut(row) {
            Some(Row { epoch, samples }) if *epoch == self.epoch => *samples += 1,
            _ => self.begin(row, values),
        }
        let cells = &mut self.cells[row * values.len()..][..values.len()];
        for (i, ((member, value), cell)) in self.members.iter_mut().zip(values).zip(cells).enumerate() {
            let value = value.bits as i64;
            let growth = value - member.latest;
            if cell.grown.checked_add(growth).is_none() || cell.sampled.checked_add(value).is_none() {
                cell.spill(&mut self.sums[row * values.len() + i]);
            }
            cell.grown += growth;
            cell.sampled += value;
            cell.last = value;
            member.latest = value;
        }
        true
    }

    /// Begins a row with its first sample, anew if totals may have fallen meanwhile.
    #[cold]
    #[inline(never)]
    fn begin(&mut self, row: usize, values: &[TypedValue]) {
        let members = self.members.len();
        if self.rows.len() <= row {
            self.rows.resize(row + 1, Row::default());
            self.cells.resize((row + 1) * members, Cell::default());
            self.sums.resize((row + 1) * members, Sums::default());
        }
        self.end(row);
        self.rows[row] = Row { epoch: self.epoch, samples: 1 };
        for (cell, value) in self.cells[row * members..].iter_mut().zip(values) {
            cell.first = value.bits as i64;
        }
    }

    /// Hands over what was booked since a row was begun.
    fn end(&mut self, row: usize) {
        let members = self.members.len();
        let samples = std::mem::take(&mut self.rows[row].samples);
        if samples == 0 {
            return;
        }
        let all = row * members..(row + 1) * members;
        for (cell, sums) in self.cells[all.clone()].iter_mut().zip(&mut self.sums[all]) {
            cell.spill(sums);
            sums.samples += samples;
            sums.see(Number::whole(cell.first));
            sums.see(Number::whole(cell.last));
        }
    }

    /// What was booked, by row and member.
    pub(super) fn finish(mut self) -> Vec<Sums> {
        for row in 0..self.rows.len() {
            self.end(row);
        }
        self.sums
    }
}
