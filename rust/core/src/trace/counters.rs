//! Counters: the values of metric records, booked on call paths while the events are read.
//!
//! A *sample* is a value of a counter at a time. What a counter grew by between two samples of a location belongs to the
//! call paths that ran there in between, in proportion to their time: of a strict counter, which is sampled at every
//! Enter and Leave, that is one call path. A level that holds until the next sample, or since the last one, is integrated
//! over the same interval. A value that holds only at its time belongs to the call path that runs then.
//!
//! What lies outside of all regions is booked on no call path, so that all cells of a location add up to last value less
//! first value.
//!
//! *Source*: COUNTERS 2.4; OTF2's definitions of metric modes.

use std::ops::AddAssign;

use bitcode::{Decode, Encode};
use rustc_hash::FxHashMap;
use whywait_otf2::Definitions;
use whywait_otf2::enums::{Base, MetricMode, MetricOccurrence, MetricType, Type};
use whywait_otf2::records::{MetricValues, TypedValue};

use super::calltree::NO_CALLPATH;
use super::columns::Events;

/// What a counter's values say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A total so far: what counts is how it grows.
    Total,
    /// A change.
    Change {
        /// Whether it is that of the interval that begins with the sample, not of the one that ends.
        next: bool,
        /// Whether it is that of the moment.
        point: bool,
    },
    /// A level that holds for an interval.
    Level {
        /// Whether for the one that begins with the sample.
        next: bool,
    },
    /// A level at the moment.
    Samples,
}

/// A counter: members of metric classes that mean the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Name.
    pub name: String,
    /// Description.
    pub description: String,
    /// Unit.
    pub unit: String,
    /// Where it comes from.
    pub metric_type: MetricType,
    /// What its values are said to be.
    pub mode: MetricMode,
    /// Whether values are floating point numbers.
    pub is_real: bool,
    /// Base of the factor of its values.
    pub base: Base,
    /// Exponent of the factor of its values.
    pub exponent: i64,
    /// When it is sampled.
    pub occurrence: MetricOccurrence,
}

impl Counter {
    /// What its values say, by their mode.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self.mode {
            MetricMode::ABSOLUTE_POINT => Kind::Samples,
            MetricMode::ABSOLUTE_LAST => Kind::Level { next: false },
            MetricMode::ABSOLUTE_NEXT => Kind::Level { next: true },
            MetricMode::RELATIVE_POINT => Kind::Change { next: false, point: true },
            MetricMode::RELATIVE_LAST => Kind::Change { next: false, point: false },
            MetricMode::RELATIVE_NEXT => Kind::Change { next: true, point: false },
            _ => Kind::Total,
        }
    }

    /// What a recorded value has to be multiplied with.
    #[must_use]
    pub fn factor(&self) -> f64 {
        let base: f64 = if self.base == Base::BINARY { 2.0 } else { 10.0 };
        match i32::try_from(self.exponent) {
            Ok(exponent) if exponent.abs() <= 300 => base.powi(exponent),
            _ => 1.0,
        }
    }

    /// Whether a total that falls was reset; of others one must think that they are no totals.
    #[must_use]
    pub fn is_trusted(&self) -> bool {
        matches!(self.metric_type, MetricType::PAPI | MetricType::RUSAGE)
    }
}

/// All counters of a run.
#[derive(Debug, Default)]
pub struct Counters {
    /// The counters.
    pub all: Vec<Counter>,
    /// Indexes of the counters of each metric class and instance, by OTF2 id.
    members: FxHashMap<u32, Vec<u32>>,
}

impl Counters {
    /// Reads the definitions: a counter is a member of a class, the same for all members that are defined alike.
    #[must_use]
    pub fn new(definitions: &Definitions) -> Self {
        let mut counters = Self::default();
        let members: FxHashMap<u32, _> = definitions.metric_members.iter().map(|member| (member.id, member)).collect();
        for class in &definitions.metric_classes {
            let indexes: Option<Vec<u32>> = class
                .metric_members
                .iter()
                .map(|id| {
                    let member = members.get(id)?;
                    let text = |id| definitions.string(id).to_owned();
                    let counter = Counter {
                        name: text(member.name),
                        description: text(member.description),
                        unit: text(member.unit),
                        metric_type: member.metric_type,
                        mode: member.metric_mode,
                        is_real: member.value_type == Type::DOUBLE,
                        base: member.base,
                        exponent: member.exponent,
                        occurrence: class.metric_occurrence,
                    };
                    let known = counters.all.iter().position(|other| *other == counter);
                    Some(known.unwrap_or_else(|| {
                        counters.all.push(counter);
                        counters.all.len() - 1
                    }) as u32)
                })
                .collect();
            if let Some(indexes) = indexes {
                counters.members.entry(class.id).or_insert(indexes);
            }
        }
        for instance in &definitions.metric_instances {
            if let Some(class) = counters.members.get(&instance.metric_class).cloned() {
                counters.members.entry(instance.id).or_insert(class);
            }
        }
        counters
    }

    /// The counters that a metric record has values of; `None` if its class is not defined.
    #[must_use]
    pub fn of(&self, metric: u32) -> Option<&[u32]> {
        self.members.get(&metric).map(Vec::as_slice)
    }
}

/// A number as recorded: an integer, or a floating point number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Encode, Decode)]
pub struct Number {
    /// Of counters whose values are integers.
    pub integer: i128,
    /// Of counters whose values are floating point numbers.
    pub real: f64,
}

impl Number {
    fn of(value: TypedValue, is_real: bool) -> Option<Self> {
        match (value.kind, is_real) {
            (Type::INT64, false) => Some(Self { integer: i128::from(value.bits as i64), real: 0.0 }),
            (Type::UINT64, false) => Some(Self { integer: i128::from(value.bits), real: 0.0 }),
            (Type::DOUBLE, true) => Some(Self { integer: 0, real: f64::from_bits(value.bits) }),
            _ => None,
        }
    }

    /// The number, not scaled.
    #[must_use]
    pub fn value(self) -> f64 {
        self.integer as f64 + self.real
    }

    fn less(self, other: Self) -> Self {
        Self { integer: self.integer.saturating_sub(other.integer), real: self.real - other.real }
    }

    fn times(self, ticks: i64) -> Self {
        Self { integer: self.integer.saturating_mul(i128::from(ticks)), real: self.real * ticks as f64 }
    }

    /// The part of the number that belongs to the first of all ticks: whole parts that add up to it.
    fn share(self, ticks: i128, all: i128) -> Self {
        // Wide enough: intervals are shorter than 2^62 ticks, and what does not fit keeps its order of magnitude.
        let integer = match self.integer.checked_mul(ticks) {
            Some(product) => product.div_euclid(all),
            None => (self.integer / all).saturating_mul(ticks),
        };
        Self { integer, real: self.real * (ticks as f64 / all as f64) }
    }
}

impl AddAssign for Number {
    fn add_assign(&mut self, other: Self) {
        // Of integrals of values near 2^64 the sum need not fit.
        self.integer = self.integer.saturating_add(other.integer);
        self.real += other.real;
    }
}

/// What a counter comes to at a call path of a location.
#[derive(Clone, Copy, Debug, PartialEq, Encode, Decode)]
pub struct Sums {
    /// What a total grew by, what changes add up to, what a level is when integrated over ticks.
    pub amount: Number,
    /// Ticks in which a level is known.
    pub ticks: i64,
    /// Sum of the samples, where they hold at their time.
    pub sampled: Number,
    /// Number of samples.
    pub samples: u64,
    /// The least and the largest value.
    pub range: (f64, f64),
}

impl Default for Sums {
    fn default() -> Self {
        let range = (f64::INFINITY, f64::NEG_INFINITY);
        Self { amount: Number::default(), ticks: 0, sampled: Number::default(), samples: 0, range }
    }
}

impl Sums {
    fn see(&mut self, value: Number) {
        self.range = (self.range.0.min(value.value()), self.range.1.max(value.value()));
    }
}

/// A cell: a counter at a call path of a location.
#[derive(Clone, Copy, Debug, PartialEq, Encode, Decode)]
pub struct CounterCell {
    /// Index of the counter.
    pub counter: u32,
    /// Call path, or [`NO_CALLPATH`] outside of all regions.
    pub callpath: u32,
    /// Index of the location.
    pub location: u32,
    /// What is known of it.
    pub sums: Sums,
}

/// The latest sample of a counter at the current location.
#[derive(Clone, Copy)]
struct Latest {
    time: i64,
    value: Number,
    /// Where the events stood.
    position: Position,
}

/// Where the events of a location stand at a sample.
#[derive(Clone, Copy)]
pub struct Position {
    /// Number of events of the shard.
    pub events: u32,
    /// The innermost region.
    pub callpath: u32,
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
    /// Position of the cells of each call path of the current location, one behind for [`NO_CALLPATH`].
    rows: FxHashMap<u32, usize>,
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

    fn sums(&mut self, callpath: u32, counter: u32) -> &mut Sums {
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
        parent: impl Fn(u32) -> u32,
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
            let amount = match kind {
                Kind::Total => {
                    let growth = value.less(before.value);
                    if growth.value() < 0.0 {
                        self.fell[index as usize] = true;
                        if counter.is_trusted() {
                            result = Err(Fault::Reset);
                            Number::default()
                        } else {
                            growth
                        }
                    } else {
                        growth
                    }
                }
                Kind::Change { next: true, .. } => before.value,
                Kind::Change { .. } => value,
                Kind::Level { next: true } => before.value.times(span),
                Kind::Level { next: false } => value.times(span),
                Kind::Samples => continue,
            };
            let level = match kind {
                Kind::Level { next } => Some(if next { before.value } else { value }),
                _ => None,
            };
            self.divide(index, amount, level, &before, (time, position), events, &parent);
        }
        result
    }

    /// Divides what belongs to an interval over the call paths that ran in it.
    #[expect(clippy::too_many_arguments, reason = "an interval, and what is known of it")]
    fn divide(
        &mut self,
        counter: u32,
        amount: Number,
        level: Option<Number>,
        before: &Latest,
        (time, position): (i64, Position),
        events: &Events,
        parent: &impl Fn(u32) -> u32,
    ) {
        let mut book = |callpath: u32, amount: Number, ticks: i64| {
            let sums = self.sums(callpath, counter);
            sums.amount += amount;
            if let Some(level) = level {
                sums.ticks += ticks;
                if ticks > 0 {
                    sums.see(level);
                }
            }
        };
        let all = time - before.time;
        // Nothing between the samples but the event that the first stands before.
        let between = before.position.events..position.events;
        let first = events.time.get(between.start as usize);
        if all == 0 || between.is_empty() || (between.len() == 1 && first == Some(&before.time)) {
            return book(position.callpath, amount, all);
        }
        let (mut callpath, mut depth) = (before.position.callpath, before.position.depth);
        let (mut since, mut given) = (before.time, Number::default());
        let mut segment = |callpath: u32, since: i64, until: i64| {
            if until > since {
                let sum = amount.share(i128::from(until - before.time), i128::from(all));
                book(callpath, sum.less(given), until - since);
                given = sum;
            }
        };
        for event in between {
            let until = events.time[event as usize].clamp(since, time);
            segment(if depth == 0 { NO_CALLPATH } else { callpath }, since, until);
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

    /// Ends a location: appends its cells, by call path and counter.
    pub fn end_location(&mut self, location: u32, cells: &mut Vec<CounterCell>) {
        let mut rows: Vec<(u32, usize)> = self.rows.drain().collect();
        rows.sort_unstable();
        for (callpath, row) in rows {
            let of_row = &self.cells[row * self.counters..(row + 1) * self.counters];
            let is_used = |sums: &Sums| *sums != Sums::default();
            let used = (0..).zip(of_row).filter(|(_, sums)| is_used(sums));
            cells.extend(used.map(|(counter, &sums)| CounterCell { counter, callpath, location, sums }));
        }
        self.cells.clear();
        self.latest.fill(None);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn shares_add_up(amount in any::<i64>(), mut cuts in prop::collection::vec(0i64..1000, 0..9)) {
            cuts.sort_unstable();
            let number = Number { integer: amount.into(), real: 0.0 };
            let upto = |ticks: i64| number.share(ticks.into(), 1000).integer;
            let bounds: Vec<i64> = [0].into_iter().chain(cuts).chain([1000]).collect();
            let sum: i128 = bounds.windows(2).map(|pair| upto(pair[1]) - upto(pair[0])).sum();
            prop_assert_eq!(sum, i128::from(amount));
        }
    }
}
