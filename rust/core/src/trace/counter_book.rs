//! Booking the counters of a location on its call paths, while its events are read.
//!
//! A *sample* is a value of a counter at a time. What a counter grew by between two samples of a location belongs to the
//! call paths that ran there in between, in proportion to their time: of a strict counter, which is sampled at every
//! Enter and Leave, that is one call path. A level that holds until the next sample, or since the last one, is integrated
//! over the same interval, and one that is known at its samples as a line from one to the other. A change of a moment
//! belongs to the call path that runs then.
//!
//! What lies outside of all regions is booked on no call path, so that all cells of a location add up to last value less
//! first value.
//!
//! Samples that speak of a process or a machine are kept: [`crate::counters`] divides them.
//!
//! *Source*: COUNTERS 2.4.

use rustc_hash::FxHashMap;
use whywait_otf2::enums::Type;
use whywait_otf2::records::MetricValues;

use super::columns::Events;
use super::counters::{CounterCell, Counters, Kind, Number, Sample, Sums};
use crate::ids::{CallPathId, LocationId};

/// The latest sample of a counter at the current location.
#[derive(Clone, Copy)]
struct Latest {
    time: i64,
    value: Number,
    /// Where the events stood.
    position: Position,
}

/// What belongs to the time between two samples.
#[derive(Clone, Copy, Default)]
struct Interval {
    /// Growth, change, or the integral of a level.
    amount: Number,
    /// Twice the integral of what is known at its samples.
    area: Number,
    /// The level that holds.
    level: Option<Number>,
    /// Whether a level is known.
    is_known: bool,
}

/// Where the events of a location stand at a sample.
#[derive(Clone, Copy)]
pub struct Position {
    /// Number of events of the shard.
    pub events: u32,
    /// The innermost region.
    pub callpath: CallPathId,
    /// Number of regions around the sample.
    pub depth: u32,
}

/// What is wrong with a metric record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Its class is unknown, or has another number of members or other types.
    Unknown,
    /// A total has fallen that was reset.
    Reset,
    /// A value is not a number.
    NotANumber,
}

/// Books the samples of one location after the other.
#[derive(Debug, Default)]
pub struct Book {
    latest: Vec<Option<Latest>>,
    /// The latest values that are kept, by metric and counter.
    kept: FxHashMap<(u32, u32), Number>,
    /// Position of the cells of each call path of the current location, one behind for [`CallPathId::NONE`].
    rows: FxHashMap<CallPathId, usize>,
    cells: Vec<Sums>,
    /// Counters that have fallen somewhere.
    fell: Vec<bool>,
    counters: usize,
}

impl std::fmt::Debug for Latest {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} at {}", self.value.value(), self.time)
    }
}

impl Book {
    /// A book for so many counters.
    #[must_use]
    pub fn new(counters: usize) -> Self {
        Self { latest: vec![None; counters], fell: vec![false; counters], counters, ..Self::default() }
    }

    /// Counters that have fallen somewhere.
    #[must_use]
    pub fn fell(&self) -> &[bool] {
        &self.fell
    }

    fn sums(&mut self, callpath: CallPathId, counter: u32) -> &mut Sums {
        let (cells, counters) = (&mut self.cells, self.counters);
        let row = *self.rows.entry(callpath).or_insert_with(|| {
            cells.resize(cells.len() + counters, Sums::default());
            cells.len() / counters - 1
        });
        &mut self.cells[row * counters + counter as usize]
    }

    /// Takes the values of a metric record.
    pub fn sample(
        &mut self,
        counters: &Counters,
        (metric, values): (u32, MetricValues<'_>),
        (time, position): (i64, Position),
        events: &Events,
        parent: impl Fn(CallPathId) -> CallPathId,
    ) -> Result<(), Fault> {
        let members = counters.of(metric).filter(|members| members.len() == values.len()).ok_or(Fault::Unknown)?;
        let mut result = Ok(());
        for (&index, value) in members.iter().zip(&values) {
            let counter = &counters.all[index as usize];
            let Some(value) = Number::of(value, counter.is_real) else {
                result = Err(Fault::Unknown);
                continue;
            };
            if !value.real.is_finite() {
                result = Err(Fault::NotANumber);
                continue;
            }
            let before = self.latest[index as usize].replace(Latest { time, value, position });
            let here = self.sums(position.callpath, index);
            here.samples += 1;
            here.sampled += value;
            let kind = counter.kind();
            if !matches!(kind, Kind::Level { .. }) {
                here.see(value);
            }
            if kind == (Kind::Change { next: false, point: true }) {
                here.amount += value;
                continue;
            }
            let Some(before) = before else { continue };
            let span = time - before.time;
            let mut interval = Interval::default();
            match kind {
                Kind::Total => {
                    interval.amount = value.less(before.value);
                    let has_fallen = interval.amount.value() < 0.0;
                    self.fell[index as usize] |= has_fallen;
                    if !counter.is_trusted() {
                        // It may turn out to be a level.
                        interval.area = value.plus(before.value).times(span);
                        interval.is_known = true;
                    } else if has_fallen {
                        result = Err(Fault::Reset);
                        interval.amount = Number::default();
                    }
                }
                Kind::Change { next: true, .. } => interval.amount = before.value,
                Kind::Change { .. } => interval.amount = value,
                Kind::Level { next } => {
                    let level = if next { before.value } else { value };
                    interval = Interval { amount: level.times(span), level: Some(level), is_known: true, ..interval };
                }
                Kind::Samples => {
                    interval.area = value.plus(before.value).times(span);
                    interval.is_known = true;
                }
            }
            self.divide(index, &interval, &before, (time, position), events, &parent);
        }
        result
    }

    /// Keeps the values of a metric record that does not speak of its location.
    pub fn keep(
        &mut self,
        counters: &Counters,
        (metric, values): (u32, MetricValues<'_>),
        (time, location): (i64, LocationId),
        samples: &mut Vec<Sample>,
    ) -> Result<(), Fault> {
        let members = counters.of(metric).filter(|members| members.len() == values.len()).ok_or(Fault::Unknown)?;
        let mut result = Ok(());
        for (&index, typed) in members.iter().zip(&values) {
            let counter = &counters.all[index as usize];
            let Some(value) = Number::of(typed, counter.is_real) else {
                result = Err(Fault::Unknown);
                continue;
            };
            if !value.real.is_finite() {
                result = Err(Fault::NotANumber);
                continue;
            }
            let before = self.kept.insert((metric, index), value);
            let has_fallen = before.is_some_and(|before| value.less(before).value() < 0.0);
            if has_fallen && counter.kind() == Kind::Total {
                self.fell[index as usize] = true;
                if counter.is_trusted() {
                    result = Err(Fault::Reset);
                }
            }
            let is_unsigned = typed.kind == Type::UINT64;
            samples.push(Sample { metric, counter: index, location, is_unsigned, time, bits: typed.bits });
        }
        result
    }

    /// Divides what belongs to an interval over the call paths that ran in it.
    fn divide(
        &mut self,
        counter: u32,
        interval: &Interval,
        before: &Latest,
        (time, position): (i64, Position),
        events: &Events,
        parent: &impl Fn(CallPathId) -> CallPathId,
    ) {
        let mut book = |callpath: CallPathId, amount: Number, area: Number, ticks: i64| {
            let sums = self.sums(callpath, counter);
            sums.amount += amount;
            sums.area += area;
            if interval.is_known {
                sums.ticks += ticks;
            }
            if let Some(level) = interval.level.filter(|_| ticks > 0) {
                sums.see(level);
            }
        };
        let all = time - before.time;
        // Nothing between the samples but the event that the first stands before.
        let between = before.position.events..position.events;
        let first = events.time.get(between.start as usize);
        if all == 0 || between.is_empty() || (between.len() == 1 && first == Some(&before.time)) {
            return book(position.callpath, interval.amount, interval.area, all);
        }
        let (mut callpath, mut depth) = (before.position.callpath, before.position.depth);
        let (mut since, mut given) = (before.time, [Number::default(); 2]);
        let mut segment = |callpath: CallPathId, since: i64, until: i64| {
            if until > since {
                let share = |sum: Number| sum.share(i128::from(until - before.time), i128::from(all));
                let [amount, area] = [share(interval.amount), share(interval.area)];
                book(callpath, amount.less(given[0]), area.less(given[1]), until - since);
                given = [amount, area];
            }
        };
        for event in between {
            let until = events.time[event as usize].clamp(since, time);
            segment(if depth == 0 { CallPathId::NONE } else { callpath }, since, until);
            since = until;
            let of = events.callpath(event);
            if events.is_leave(event) {
                depth = depth.saturating_sub(1);
                callpath = parent(of);
            } else {
                depth += 1;
                callpath = of;
            }
        }
        segment(position.callpath, since, time);
    }

    /// Lets levels that hold until their next sample hold until the last event of the location.
    pub fn hold(
        &mut self,
        counters: &Counters,
        (last, position): (i64, Position),
        events: &Events,
        parent: impl Fn(CallPathId) -> CallPathId,
    ) {
        for index in 0..self.latest.len() {
            let Some(before) = self.latest[index].filter(|before| before.time < last) else { continue };
            if counters.all[index].kind() == (Kind::Level { next: true }) {
                let (amount, level) = (before.value.times(last - before.time), Some(before.value));
                let interval = Interval { amount, level, is_known: true, ..Interval::default() };
                self.divide(index as u32, &interval, &before, (last, position), events, &parent);
            }
        }
    }

    /// Ends a location: appends its cells, by call path and counter.
    pub fn end_location(&mut self, location: LocationId, cells: &mut Vec<CounterCell>) {
        let mut rows: Vec<(CallPathId, usize)> = self.rows.drain().collect();
        rows.sort_unstable();
        for (callpath, row) in rows {
            let of_row = &self.cells[row * self.counters..(row + 1) * self.counters];
            let is_used = |sums: &Sums| *sums != Sums::default();
            let used = (0..).zip(of_row).filter(|(_, sums)| is_used(sums));
            cells.extend(used.map(|(counter, &sums)| CounterCell { counter, callpath, location, sums }));
        }
        self.cells.clear();
        self.latest.fill(None);
        self.kept.clear();
    }
}
