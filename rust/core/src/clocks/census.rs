//! The census: which constraints are violated, by how much, and between whom.
//!
//! A target counts once: against the latest of its sources. *Source*: clocks.md#census.

use std::cmp::Reverse;

use bitcode::{Decode, Encode};
use rustc_hash::FxHashMap;

use super::constraints::{Constraints, Link, Moment, Part};
use super::kind::Kind;
use crate::Result;
use crate::ids::{LocationId, ProcessId};
use crate::parallel::exchange::Exchange;
use crate::parallel::iter::prelude::*;

/// Number of bins of time in the course.
pub const BINS: usize = 100;

/// A kind, the process of the source, and that of the target.
type Key = (Kind, ProcessId, ProcessId);

type Cells = FxHashMap<Key, Cell>;

/// Constraints of one kind between two processes.
#[derive(Clone, Copy, Debug, Encode, Decode)]
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
        self.see_worst(amount, target, [source.location, target.location]);
    }

    /// Keeps the largest amount; of equal ones the earliest, so that their order does not matter.
    fn see_worst(&mut self, amount: i64, target: Moment, between: [LocationId; 2]) {
        let place = |moment: Moment, between: [LocationId; 2]| (moment.time, between[1], between[0]);
        let is_before = |at| place(target, between) < place(at, self.worst_between);
        if amount > self.worst || (amount == self.worst && self.worst_at.is_none_or(is_before)) {
            (self.worst, self.worst_at, self.worst_between) = (amount, Some(target), between);
        }
    }

    fn merge(&mut self, other: &Self) {
        self.checked += other.checked;
        self.violated += other.violated;
        self.sum += other.sum;
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
        if let Some(at) = other.worst_at {
            self.see_worst(other.worst, at, other.worst_between);
        }
    }
}

/// A number of constraints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Total {
    /// Their number.
    pub checked: u64,
    /// How many are violated.
    pub violated: u64,
    /// Sum of the amounts, ticks.
    pub sum: i64,
    /// The largest amount, ticks.
    pub worst: i64,
}

impl Total {
    fn add(&mut self, amount: i64) {
        self.checked += 1;
        if amount > 0 {
            self.violated += 1;
            self.sum += amount;
            self.worst = self.worst.max(amount);
        }
    }

    fn merge(&mut self, other: Self) {
        self.checked += other.checked;
        self.violated += other.violated;
        self.sum += other.sum;
        self.worst = self.worst.max(other.worst);
    }

    /// That of all processes of the analysis.
    pub(super) fn of_all(self, exchange: &Exchange) -> Result<Self> {
        let mut all = Self::default();
        exchange.allgather(self)?.into_iter().for_each(|own| all.merge(own));
        Ok(all)
    }
}

/// Constraints of one kind in a bin of time.
#[derive(Clone, Copy, Debug, Default, Encode, Decode)]
pub struct Course {
    /// Their number.
    pub checked: u64,
    /// How many are violated.
    pub violated: u64,
    /// The largest amount, ticks.
    pub worst: i64,
}

/// What is violated. If several processes share the analysis, each counts its own constraints.
#[derive(Clone, Debug)]
pub struct Census {
    /// By kind, process of the source and of the target; empty if nothing is violated.
    pub cells: Cells,
    /// By kind and bin.
    pub course: [Vec<Course>; Kind::ALL.len()],
    /// All of them.
    pub total: Total,
}

impl Default for Census {
    fn default() -> Self {
        let course = Kind::ALL.map(|_| vec![Course::default(); BINS]);
        Self { cells: FxHashMap::default(), course, total: Total::default() }
    }
}

/// How constraints are counted: the least latency between processes and the span of the run, ticks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counting {
    pub(super) latency: i64,
    pub(super) span: (i64, i64),
}

impl Census {
    /// Counts the violations of constraints, whose moments `time` moves; a constraint between processes holds if its target is
    /// at least the latency behind all its sources. Collective.
    pub(super) fn new(
        constraints: &Constraints,
        counting: Counting,
        time: impl Fn(LocationId, i64) -> i64 + Sync,
        exchange: &Exchange,
    ) -> Result<Self> {
        let amount = |kind: Kind, source: Moment, target: Moment| {
            source.time + if kind.is_within_a_process() { 0 } else { counting.latency } - target.time
        };
        let count =
            |census: &mut Self, kind, source, target| census.add(counting, kind, amount(kind, source, target), target);
        let mut census = each(constraints, &time, count, Self::merge);
        // Mostly nothing is violated, and nobody asks between whom that is not.
        if exchange.any(census.total.violated > 0)? {
            let see = |cells: &mut Cells, kind, source: Moment, target: Moment| {
                let pair = (constraints.process(source.location), constraints.process(target.location));
                cells.entry((kind, pair.0, pair.1)).or_default().add(amount(kind, source, target), source, target);
            };
            census.cells = each(constraints, &time, see, merge);
        }
        Ok(census)
    }

    fn add(&mut self, counting: Counting, kind: Kind, amount: i64, target: Moment) {
        let (begin, end) = counting.span;
        let at = (target.time - begin).clamp(0, end - begin);
        // No run is longer than 2^52 ticks.
        let course = &mut self.course[kind as usize][(at as u64 * BINS as u64 / (end - begin + 1) as u64) as usize];
        course.checked += 1;
        course.violated += u64::from(amount > 0);
        course.worst = course.worst.max(amount);
        self.total.add(amount);
    }

    fn merge(&mut self, other: &Self) {
        merge(&mut self.cells, &other.cells);
        for (bin, of_other) in self.course.iter_mut().flatten().zip(other.course.iter().flatten()) {
            bin.checked += of_other.checked;
            bin.violated += of_other.violated;
            bin.worst = bin.worst.max(of_other.worst);
        }
        self.total.merge(other.total);
    }

    /// That of all processes of the analysis at the first one.
    pub(super) fn gather(&mut self, exchange: &Exchange) -> Result<()> {
        let own = (!exchange.is_root()).then(|| {
            let cells: Vec<(Key, Cell)> = self.cells.iter().map(|(key, cell)| (*key, *cell)).collect();
            (cells, self.course.iter().flatten().copied().collect::<Vec<Course>>(), self.total)
        });
        for (cells, course, total) in exchange.gather(own)?.into_iter().flatten() {
            let mut bins = course.chunks(BINS).map(<[Course]>::to_vec);
            let course = Kind::ALL.map(|_| bins.next().unwrap_or_default());
            self.merge(&Self { cells: cells.into_iter().collect(), course, total });
        }
        Ok(())
    }

    /// Number of violations between processes that `selects`.
    pub(super) fn violated_between(&self, selects: impl Fn(ProcessId, ProcessId) -> bool) -> u64 {
        let cells = self.cells.iter().filter(|((_, from, to), _)| selects(*from, *to));
        cells.map(|(_, cell)| cell.violated).sum()
    }

    /// Number of constraints of a kind, number of violations, and the largest amount, ticks.
    pub fn of_kind(&self, kind: Kind) -> (u64, u64, i64) {
        let bins = self.course[kind as usize].iter();
        bins.fold((0, 0, 0), |(checked, violated, worst), bin| {
            (checked + bin.checked, violated + bin.violated, worst.max(bin.worst))
        })
    }
}

#[expect(clippy::iter_over_hash_type, reason = "the order of cells does not matter")]
fn merge(all: &mut Cells, other: &Cells) {
    for (key, cell) in other {
        all.entry(*key).or_default().merge(cell);
    }
}

/// Adds up what `add` does with each target, its latest source, and their kind.
fn each<T: Default + Send>(
    constraints: &Constraints,
    time: &(impl Fn(LocationId, i64) -> i64 + Sync),
    add: impl Fn(&mut T, Kind, Moment, Moment) + Sync,
    merge: impl Fn(&mut T, &T) + Sync,
) -> T {
    let ((messages, links), parts) = (constraints.messages_and_others(), constraints.parts());
    let moved = |moment: Moment| Moment { time: time(moment.location, moment.time), ..moment };
    let of_messages = messages.par_iter().fold(T::default, |mut all, link| {
        add(&mut all, Kind::Message, moved(link.source()), moved(link.target()));
        all
    });
    let is_one = |a: &Link, b: &Link| a.kind() == b.kind() && moved(a.target()) == moved(b.target());
    let links: Vec<&[Link]> = links.chunk_by(is_one).collect();
    let of_links = links.par_iter().fold(T::default, |mut all, links| {
        let sources = links.iter().map(|link| moved(link.source()));
        if let Some(latest) = sources.max_by_key(|source| (source.time, Reverse(source.location))) {
            add(&mut all, links[0].kind(), latest, moved(links[0].target()));
        }
        all
    });
    let instances: Vec<&[Part]> = parts.chunk_by(|_, next| !next.is_first).collect();
    let of_parts = instances.par_iter().fold(T::default, |mut all, parts| {
        each_target(parts, time, |source, target| add(&mut all, parts[0].kind, source, target));
        all
    });
    let mut all = T::default();
    for other in of_messages.into_iter().chain(of_links).chain(of_parts) {
        merge(&mut all, &other);
    }
    all
}

/// Calls `found` with the latest source of each target of an instance on another location, and with the target.
fn each_target(parts: &[Part], time: &impl Fn(LocationId, i64) -> i64, mut found: impl FnMut(Moment, Moment)) {
    // A source on the target's own location does not count, so the two latest are enough.
    let mut latest: [Option<Moment>; 2] = [None, None];
    let mut target = |latest: &[Option<Moment>; 2], part: &Part| {
        let others = latest.iter().flatten().find(|source| source.location != part.location);
        if let Some(source) = others.filter(|_| part.is_target) {
            found(*source, Moment { location: part.location, time: time(part.location, part.end) });
        }
    };
    let see = |latest: &mut [Option<Moment>; 2], part: &Part| {
        if part.is_source {
            latest_two(latest, Moment { location: part.location, time: time(part.location, part.begin) });
        }
    };
    if parts[0].is_prefix {
        for part in parts {
            target(&latest, part);
            see(&mut latest, part);
        }
    } else {
        for part in parts {
            see(&mut latest, part);
        }
        for part in parts {
            target(&latest, part);
        }
    }
}

/// Keeps the two latest sources, the one of lower rank first if they begin at the same time.
fn latest_two(latest: &mut [Option<Moment>; 2], source: Moment) {
    match latest {
        [None, _] => latest[0] = Some(source),
        [Some(first), _] if source.time > first.time => *latest = [Some(source), latest[0]],
        [_, None] => latest[1] = Some(source),
        [_, Some(second)] if source.time > second.time => latest[1] = Some(source),
        _ => {}
    }
}
