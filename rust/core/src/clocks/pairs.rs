//! What the constraints say about each pair of clocks: bounds of their difference, from both sides.
//!
//! Let D be what must be added to the clock of `second` to agree with that of `first`. An arc from `first` to `second` says
//! that D is at least the time of its source, less that of its target, when `second` reads that time; an arc back, that it
//! is at most as much. The time is always that of `second`: a middle of both would be wrong by the drift during transit,
//! which can take long. *Source*: clocks.md#lines.

use rayon::prelude::*;

use super::constraints::{Constraints, Link};
use super::domains::Clocks;
use super::fit::{Corridor, Fit, Line, Point};
use super::kind::Kind;
use crate::ids::LocationId;

/// A constraint between two domains: `received` on `to` comes no earlier than `sent` on `from`, which includes the least
/// latency. Ticks since the begin of the run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arc {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) sent: f64,
    pub(super) received: f64,
}

/// All arcs between domains, whose least latency is in ticks.
///
/// Between the members of a collective operation, all would be their square. Rooted operations have all; in others, a
/// member has arcs to those 1, 2, 4, ... ranks behind it, and the latest has arcs to all.
pub(super) fn arcs(constraints: &Constraints, domains: &Clocks, latency: i64, begin: i64) -> Vec<Arc> {
    let mut arcs = Vec::new();
    let mut add = |kind: Kind, source: (LocationId, i64), target: (LocationId, i64)| {
        let (from, to) = (domains.of(source.0), domains.of(target.0));
        if from != to {
            let latency = if kind.is_within_a_process() { 0 } else { latency };
            arcs.push(Arc { from, to, sent: (source.1 + latency - begin) as f64, received: (target.1 - begin) as f64 });
        }
    };
    for Link { kind, source, target } in constraints.links().iter().filter(|link| !link.kind.is_ordered_by_time()) {
        add(*kind, (source.location, source.time), (target.location, target.time));
    }
    for parts in constraints.instances() {
        let members = parts.len();
        let kind = parts[0].kind;
        let (sources, targets) =
            (|| parts.iter().filter(|part| part.is_source), || parts.iter().filter(|part| part.is_target));
        // Of a rooted operation.
        if sources().nth(1).is_none() || targets().nth(1).is_none() {
            for source in sources() {
                for target in targets() {
                    add(kind, (source.location, source.begin), (target.location, target.end));
                }
            }
            continue;
        }
        let latest = sources().reduce(|a, b| if b.begin > a.begin { b } else { a });
        for target in targets().filter(|part| !part.is_prefix) {
            if let Some(latest) = latest {
                add(kind, (latest.location, latest.begin), (target.location, target.end));
            }
        }
        for (number, source) in parts.iter().enumerate().filter(|(_, part)| part.is_source) {
            let steps = std::iter::successors(Some(1), |step| Some(2 * step)).take_while(|&step| step < members);
            for target in steps.map(|step| number + step) {
                let is_behind = target < members || !parts[0].is_prefix;
                let target = &parts[target % members];
                if target.is_target && is_behind {
                    add(kind, (source.location, source.begin), (target.location, target.end));
                }
            }
        }
    }
    arcs
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

    /// The arcs of the hulls: no line violates another arc without violating one of these.
    pub(super) fn arcs(&self) -> impl Iterator<Item = Arc> {
        let &Self { first, second, .. } = self;
        let lower = self.corridor.lower.iter();
        let lower =
            lower.map(move |&(time, bound)| Arc { from: first, to: second, sent: time + bound, received: time });
        let upper = self.corridor.upper.iter();
        lower.chain(upper.map(move |&(time, bound)| Arc {
            from: second,
            to: first,
            sent: time,
            received: time + bound,
        }))
    }
}

/// The pairs of a run of a length, by number.
pub(super) fn pairs(mut arcs: Vec<Arc>, length: f64) -> Vec<Pair> {
    let key = |arc: &Arc| (arc.from.min(arc.to), arc.from.max(arc.to));
    arcs.par_sort_unstable_by(|a, b| {
        key(a)
            .cmp(&key(b))
            .then(a.sent.total_cmp(&b.sent))
            .then(a.received.total_cmp(&b.received))
            .then(a.from.cmp(&b.from))
    });
    let by_pair: Vec<&[Arc]> = arcs.chunk_by(|a, b| key(a) == key(b)).collect();
    by_pair
        .into_par_iter()
        .map(|arcs| {
            let (first, second) = key(&arcs[0]);
            let (mut lower, mut upper): (Vec<Point>, Vec<Point>) = Default::default();
            for arc in arcs {
                if arc.from == first {
                    lower.push((arc.received, arc.sent - arc.received));
                } else {
                    upper.push((arc.sent, arc.received - arc.sent));
                }
            }
            let bounds = (lower.len() as u64, upper.len() as u64);
            let corridor = Corridor::new(lower, upper);
            let fit = corridor.fit(length);
            let ranges = fit.and_then(|fit| Some([corridor.range(&fit, 0.0)?, corridor.range(&fit, length)?]));
            Pair { first, second, corridor, bounds, fit, ranges }
        })
        .collect()
}
