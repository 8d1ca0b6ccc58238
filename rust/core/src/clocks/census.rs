//! The census: which constraints are violated, by how much, and between whom.
//!
//! A target counts once: against the latest of its sources. *Source*: clocks.md#census.

use rustc_hash::FxHashMap;

use super::constraints::{Constraints, Moment, Part};
use super::kind::Kind;
use crate::ids::{LocationId, ProcessId};

/// Number of bins of time in the course.
pub const BINS: usize = 100;

/// Constraints of one kind between two processes.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// Their number.
    pub checked: u64,
    /// How many are violated.
    pub violated: u64,
    /// Sum of the amounts, ticks.
    pub sum: i64,
    /// The largest amount, ticks.
    pub worst: i64,
    /// Where that is.
    pub worst_at: Option<Moment>,
    /// The locations of its source and its target.
    pub worst_between: [LocationId; 2],
    /// Times of the first and the last violation, ticks.
    pub first: i64,
    /// See `first`.
    pub last: i64,
}

impl Default for Cell {
    fn default() -> Self {
        Self {
            checked: 0,
            violated: 0,
            sum: 0,
            worst: 0,
            worst_at: None,
            worst_between: [LocationId::NONE; 2],
            first: i64::MAX,
            last: i64::MIN,
        }
    }
}

impl Cell {
    fn add(&mut self, amount: i64, source: Moment, target: Moment) {
        self.checked += 1;
        if amount <= 0 {
            return;
        }
        self.violated += 1;
        self.sum += amount;
        self.first = self.first.min(target.time);
        self.last = self.last.max(target.time);
        let place = |moment: Moment| (moment.time, moment.location);
        if amount > self.worst || (amount == self.worst && self.worst_at.is_none_or(|at| place(target) < place(at))) {
            (self.worst, self.worst_at) = (amount, Some(target));
            self.worst_between = [source.location, target.location];
        }
    }
}

/// Constraints of one kind in a bin of time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Course {
    /// Their number.
    pub checked: u64,
    /// How many are violated.
    pub violated: u64,
    /// The largest amount, ticks.
    pub worst: i64,
}

/// What is violated.
#[derive(Clone, Debug, Default)]
pub struct Census {
    /// By kind, process of the source and of the target.
    pub cells: FxHashMap<(Kind, ProcessId, ProcessId), Cell>,
    /// By kind and bin.
    pub course: [Vec<Course>; Kind::ALL.len()],
    /// Number of constraints.
    pub checked: u64,
    /// How many are violated.
    pub violated: u64,
    /// Sum of their amounts, ticks.
    pub sum: i64,
    /// The largest amount, ticks.
    pub worst: i64,
}

impl Census {
    /// Counts the violations of constraints in a run of a span; a constraint between processes holds if its target is at
    /// least `latency` ticks behind all its sources.
    #[must_use]
    pub fn new(constraints: &Constraints, latency: i64, span: (i64, i64)) -> Self {
        let mut census = Self { course: Kind::ALL.map(|_| vec![Course::default(); BINS]), ..Self::default() };
        each_target(constraints, |kind, source, target| census.add(constraints, latency, span, kind, source, target));
        census
    }

    fn add(
        &mut self,
        constraints: &Constraints,
        latency: i64,
        (begin, end): (i64, i64),
        kind: Kind,
        source: Moment,
        target: Moment,
    ) {
        let latency = if kind.is_within_a_process() { 0 } else { latency };
        let amount = source.time + latency - target.time;
        let pair = (constraints.process(source.location), constraints.process(target.location));
        self.cells.entry((kind, pair.0, pair.1)).or_default().add(amount, source, target);
        let bin = (i128::from(target.time - begin) * BINS as i128 / i128::from(end - begin + 1)) as usize;
        let course = &mut self.course[kind as usize][bin.min(BINS - 1)];
        course.checked += 1;
        course.worst = course.worst.max(amount);
        self.checked += 1;
        if amount > 0 {
            course.violated += 1;
            self.violated += 1;
            self.sum += amount;
            self.worst = self.worst.max(amount);
        }
    }

    /// Number of violations between processes that `selects`, and the largest amount, ticks.
    #[must_use]
    pub fn violated_between(&self, selects: impl Fn(ProcessId, ProcessId) -> bool) -> (u64, i64) {
        let cells = self.cells.iter().filter(|((_, from, to), _)| selects(*from, *to));
        cells.fold((0, 0), |(count, worst), (_, cell)| (count + cell.violated, cell.worst.max(worst)))
    }

    /// Number of constraints of a kind, number of violations, and the largest amount, ticks.
    #[must_use]
    pub fn of_kind(&self, kind: Kind) -> (u64, u64, i64) {
        let bins = self.course[kind as usize].iter();
        bins.fold((0, 0, 0), |(checked, violated, worst), bin| {
            (checked + bin.checked, violated + bin.violated, worst.max(bin.worst))
        })
    }
}

/// Calls `found` with each target, and the latest of its sources on other locations.
fn each_target(constraints: &Constraints, mut found: impl FnMut(Kind, Moment, Moment)) {
    for links in constraints.targets() {
        let latest = links.iter().reduce(|a, b| if b.source.time > a.source.time { b } else { a });
        if let Some(link) = latest {
            found(link.kind, link.source, link.target);
        }
    }
    for parts in constraints.instances() {
        let kind = parts[0].kind;
        // A source on the target's own location does not count, so the two latest are enough.
        let mut latest: [Option<&Part>; 2] = [None, None];
        let target = |latest: &[Option<&Part>; 2], part: &Part, found: &mut dyn FnMut(Kind, Moment, Moment)| {
            let others = latest.iter().flatten().find(|source| source.location != part.location);
            if let Some(source) = others.filter(|_| part.is_target) {
                let source = Moment { location: source.location, time: source.begin };
                found(kind, source, Moment { location: part.location, time: part.end });
            }
        };
        if parts[0].is_prefix {
            for part in parts {
                target(&latest, part, &mut found);
                latest_two(&mut latest, part);
            }
        } else {
            for part in parts {
                latest_two(&mut latest, part);
            }
            for part in parts {
                target(&latest, part, &mut found);
            }
        }
    }
}

/// Keeps the two latest sources, the one of lower rank first if they begin at the same time.
fn latest_two<'a>(latest: &mut [Option<&'a Part>; 2], part: &'a Part) {
    if !part.is_source {
        return;
    }
    match latest {
        [None, _] => latest[0] = Some(part),
        [Some(first), _] if part.begin > first.begin => *latest = [Some(part), latest[0]],
        [_, None] => latest[1] = Some(part),
        [_, Some(second)] if part.begin > second.begin => latest[1] = Some(part),
        _ => {}
    }
}
