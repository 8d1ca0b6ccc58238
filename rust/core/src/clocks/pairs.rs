//! What the constraints say about each pair of clocks: bounds of their difference, from both sides.
//!
//! Let D be what must be added to the clock of `second` to agree with that of `first`. An arc from `first` to `second` says
//! that D is at least the time of its source, less that of its target, when `second` reads that time; an arc back, that it
//! is at most as much. The time is always that of `second`: a middle of both would be wrong by the drift during transit,
//! which can take long. *Source*: clocks.md#lines.

use std::collections::hash_map::Entry;

use bitcode::{Decode, Encode};
use rayon::slice::ParallelSliceMut as _;
use rustc_hash::FxHashMap;

use super::constraints::{Constraints, Part};
use super::course::Course;
use super::domains::Clocks;
use super::fit::{Corridor, Fit, Line, Point, piece};
use super::kind::Kind;
use crate::Result;
use crate::ids::LocationId;
use crate::parallel::exchange::Exchange;
use crate::parallel::iter::prelude::*;

/// A constraint between two domains: `received` on `to` comes no earlier than `sent` on `from`, which includes the least
/// latency. Ticks since the begin of the run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arc {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) sent: f64,
    pub(super) received: f64,
}

/// Time and bound, ticks.
type Bound = (i64, i64);

/// Which bounds share hulls: those of a pair of domains, and within it of one piece of the first and one of the second.
type Cell = (u32, u32, u32, u32);

/// Bounds that a hull may have beyond those that are needed, before it is computed again.
const SLACK: usize = 64;

/// Bounds of a difference from one side, of which only the hull matters: no line crosses another bound without crossing it.
#[derive(Clone, Debug, Default, Encode, Decode)]
struct Side {
    bounds: Vec<Bound>,
    /// Number of first bounds that are a hull.
    hull: usize,
    /// Number of all bounds.
    count: u64,
}

impl Side {
    fn push(&mut self, bound: Bound, side: i128) {
        self.bounds.push(bound);
        self.count += 1;
        if self.bounds.len() > 2 * self.hull + SLACK {
            self.shrink(side);
        }
    }

    fn append(&mut self, other: Self, side: i128) {
        self.bounds.extend(other.bounds);
        self.count += other.count;
        self.shrink(side);
    }

    /// Keeps the hull: the upper one (`side` 1), or the lower one (-1), by time. It is exact, so that it does not depend on the
    /// order in which bounds arrive.
    fn shrink(&mut self, side: i128) {
        let height = |bound: &Bound| i128::from(bound.1) * side;
        self.bounds.sort_unstable_by_key(|bound| (bound.0, -height(bound)));
        self.bounds.dedup_by_key(|bound| bound.0);
        let turn = |a: Bound, b: Bound, c: Bound| {
            let (ab, ac) = (i128::from(b.0 - a.0), i128::from(c.0 - a.0));
            side * (ab * i128::from(c.1 - a.1) - ac * i128::from(b.1 - a.1))
        };
        let mut kept = 0;
        for number in 0..self.bounds.len() {
            let bound = self.bounds[number];
            while kept > 1 && turn(self.bounds[kept - 2], self.bounds[kept - 1], bound) >= 0 {
                kept -= 1;
            }
            self.bounds[kept] = bound;
            kept += 1;
        }
        self.bounds.truncate(kept);
        self.hull = kept;
    }

    fn points(&self) -> Vec<Point> {
        self.bounds.iter().map(|&(time, bound)| (time as f64, bound as f64)).collect()
    }
}

/// Lower and upper bounds of the differences of clocks, by cell.
#[derive(Debug, Default)]
pub(super) struct Hulls(FxHashMap<Cell, [Side; 2]>);

/// What a side of [`Hulls`] looks for: the upper hull of lower bounds, and the lower one of upper bounds.
const SIDES: [i128; 2] = [1, -1];

/// How times are cut into pieces: the begin of the run, ticks, its length, the number of pieces, and which domains only have
/// bounds that matter if the other one of a pair does. And what is added to the clocks of domains, to find who was the latest; nothing,
/// if there are no courses.
pub(super) struct Cut<'a> {
    pub(super) begin: i64,
    pub(super) length: f64,
    pub(super) pieces: usize,
    pub(super) is_fixed: &'a [bool],
    pub(super) courses: &'a [Course],
}

impl Hulls {
    /// The bounds of all constraints, whose least latency is in ticks, at the first process of an analysis; each process adds
    /// its own.
    ///
    /// Between the members of a collective operation, all would be their square. Rooted operations and those of few have all; in others, a
    /// member has arcs to those 1, 2, 4, ... ranks behind it, and the latest has arcs to all.
    pub(super) fn gather(
        constraints: &Constraints,
        domains: &Clocks,
        latency: i64,
        cut: &Cut,
        exchange: &Exchange,
    ) -> Result<Self> {
        let add = |hulls: &mut Self, kind: Kind, source: (LocationId, i64), target: (LocationId, i64)| {
            let latency = if kind.is_within_a_process() { 0 } else { latency };
            let (from, to) = (domains.of(source.0), domains.of(target.0));
            hulls.add((from, to), (source.1 + latency - cut.begin, target.1 - cut.begin), cut);
        };
        let begin = |part: &Part| {
            let time = (part.begin - cut.begin) as f64;
            time + cut.courses.get(domains.of(part.location) as usize).map_or(0.0, |course| course.at(time))
        };
        let of_links = constraints.links().par_iter().fold(Self::default, |mut hulls, link| {
            let (kind, source, target) = (link.kind(), link.source(), link.target());
            if !kind.is_ordered_by_time() {
                add(&mut hulls, kind, (source.location, source.time), (target.location, target.time));
            }
            hulls
        });
        let instances: Vec<&[Part]> = constraints.parts().chunk_by(|_, next| !next.is_first).collect();
        let of_parts = instances.par_iter().fold(Self::default, |mut hulls, parts| {
            each_arc(parts, begin, |source, target| {
                add(&mut hulls, parts[0].kind, (source.location, source.begin), (target.location, target.end));
            });
            hulls
        });
        let mut hulls = Self::default();
        of_links.into_iter().chain(of_parts).for_each(|own| hulls.merge(own.0));
        hulls.0.values_mut().collect::<Vec<_>>().into_par_iter().for_each(|sides| {
            sides.iter_mut().zip(SIDES).for_each(|(of, side)| of.shrink(side));
        });
        let own: Vec<(Cell, [Side; 2])> = if exchange.is_root() { Vec::new() } else { hulls.0.drain().collect() };
        hulls.merge(exchange.gatherv(own)?);
        Ok(hulls)
    }

    fn add(&mut self, (from, to): (u32, u32), (sent, received): (i64, i64), cut: &Cut) {
        if from == to || (cut.is_fixed[from as usize] && cut.is_fixed[to as usize]) {
            return;
        }
        let at = |time: i64| piece(time as f64, cut.length, cut.pieces) as u32;
        let (cell, number, bound) = if from < to {
            ((from, to, at(sent), at(received)), 0, (received, sent - received))
        } else {
            ((to, from, at(received), at(sent)), 1, (sent, received - sent))
        };
        self.0.entry(cell).or_default()[number].push(bound, SIDES[number]);
    }

    fn merge(&mut self, other: impl IntoIterator<Item = (Cell, [Side; 2])>) {
        for (cell, sides) in other {
            match self.0.entry(cell) {
                Entry::Vacant(entry) => {
                    entry.insert(sides);
                }
                Entry::Occupied(mut entry) => {
                    let all = entry.get_mut().iter_mut().zip(SIDES);
                    all.zip(sides).for_each(|((all, side), own)| all.append(own, side));
                }
            }
        }
    }

    /// Adds what others know.
    pub(super) fn add_all(&mut self, others: Self) {
        self.merge(others.0);
    }

    /// The arcs of the hulls, by cell: no line violates another arc without violating one of these.
    pub(super) fn arcs(&self) -> Vec<Arc> {
        let mut cells: Vec<_> = self.0.iter().collect();
        cells.sort_unstable_by_key(|(cell, _)| **cell);
        let arcs = |(&(first, second, ..), [lower, upper]): (&Cell, &[Side; 2])| {
            [arcs((first, second), &lower.points(), 0), arcs((first, second), &upper.points(), 1)].concat()
        };
        cells.into_iter().flat_map(arcs).collect()
    }

    /// The pairs of a run of a length, by number.
    pub(super) fn pairs(&self, length: f64) -> Vec<Pair> {
        let mut cells: Vec<_> = self.0.iter().collect();
        cells.par_sort_unstable_by_key(|(cell, _)| **cell);
        let pair = |(&(first, second, ..), [lower, upper]): (&Cell, &[Side; 2])| {
            let corridor = Corridor::of_hulls(lower.points(), upper.points());
            let fit = corridor.fit(length);
            let ranges = fit.and_then(|fit| Some([corridor.range(&fit, 0.0)?, corridor.range(&fit, length)?]));
            Pair { first, second, corridor, bounds: (lower.count, upper.count), fit, ranges }
        };
        cells.into_par_iter().map(pair).collect()
    }
}

/// The arcs of the lower (0) or upper (1) bounds of a pair.
fn arcs((first, second): (u32, u32), points: &[Point], number: usize) -> Vec<Arc> {
    let arc = |&(time, bound): &Point| match number {
        0 => Arc { from: first, to: second, sent: time + bound, received: time },
        _ => Arc { from: second, to: first, sent: time, received: time + bound },
    };
    points.iter().map(arc).collect()
}

/// Members of an operation all of whose arcs are affordable.
const FEW: usize = 8;

/// Calls `add` with sources and targets of an instance whose arcs say enough; `begin` is when a source did.
fn each_arc(parts: &[Part], begin: impl Fn(&Part) -> f64, mut add: impl FnMut(&Part, &Part)) {
    let members = parts.len();
    let (sources, targets) =
        (|| parts.iter().filter(|part| part.is_source), || parts.iter().filter(|part| part.is_target));
    // Of a rooted operation, or of few.
    let is_rooted = sources().nth(1).is_none() || targets().nth(1).is_none();
    if is_rooted || (members <= FEW && !parts[0].is_prefix) {
        for source in sources() {
            targets().for_each(|target| add(source, target));
        }
        return;
    }
    let latest = sources().reduce(|a, b| if begin(b) > begin(a) { b } else { a });
    for target in targets().filter(|part| !part.is_prefix) {
        if let Some(latest) = latest {
            add(latest, target);
        }
    }
    for (number, source) in parts.iter().enumerate().filter(|(_, part)| part.is_source) {
        let steps = std::iter::successors(Some(1), |step| Some(2 * step)).take_while(|&step| step < members);
        for target in steps.map(|step| number + step) {
            let is_behind = target < members || !parts[0].is_prefix;
            let target = &parts[target % members];
            if target.is_target && is_behind {
                add(source, target);
            }
        }
    }
}

/// A pair of domains with constraints between them.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    pub(super) first: u32,
    pub(super) second: u32,
    pub(super) corridor: Corridor,
    /// Number of lower and upper bounds.
    pub(super) bounds: (u64, u64),
    /// The line of the largest margin; `None` if one side has no bounds.
    pub(super) fit: Option<Fit>,
    /// The values of all lines that cross no bound, at the begin and the end of the run.
    pub(super) ranges: Option<[(f64, f64); 2]>,
}

impl Pair {
    /// How far the offset may be from the fit.
    pub(super) fn uncertainty(&self) -> Option<f64> {
        self.ranges.map(|ranges| ranges.iter().map(|(low, high)| (high - low) / 2.0).fold(0.0, f64::max))
    }

    /// Whether the lines of the corridor have at least half of the margin of the fit, or of the largest amount of a violation.
    pub(super) fn has_margin(&self, length: f64, worst: f64) -> bool {
        let Some(fit) = self.fit else { return true };
        let enough = fit.margin.min((fit.margin / 2.0).min(worst / 2.0).max(0.0));
        self.corridor.fit(length).is_some_and(|own| own.margin >= enough)
    }

    /// Whether the clocks as they are violate a bound.
    pub(super) fn is_violated(&self) -> bool {
        self.corridor.margin(Line::default()) < 0.0
    }

    /// The smallest constant that fits bounds from one side.
    pub(super) fn constant(&self) -> f64 {
        let low = self.corridor.lower.iter().map(|point| point.1).fold(0.0, f64::max);
        let high = self.corridor.upper.iter().map(|point| point.1).fold(0.0, f64::min);
        if self.corridor.upper.is_empty() { low } else { high }
    }

    /// The arcs of its hulls.
    pub(super) fn arcs(&self) -> Vec<Arc> {
        let pair = (self.first, self.second);
        [arcs(pair, &self.corridor.lower, 0), arcs(pair, &self.corridor.upper, 1)].concat()
    }
}
