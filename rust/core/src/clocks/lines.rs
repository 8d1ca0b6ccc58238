//! An offset and a drift for each clock, from the constraints alone.
//!
//! The pairs of clocks whose difference is known best span a tree, along which their lines are composed. Then each clock is
//! fitted again to the largest margin against all its neighbors, in sweeps. Where no line satisfies all constraints,
//! clocks get lines of several pieces.
//!
//! *Source*: clocks.md#lines; B. Poirier et al.: Accurate offline synchronization of distributed traces using kernel-level
//! events, Operating Systems Review 44(3), 2010, for the tree.

use bitcode::{Decode, Encode};

use super::fit::{Corridor, Line, Point, fit_pieces, hull, piece};
use super::pairs::{Arc, Hulls, Pair};
use super::timing::Pieces;
use crate::Result;
use crate::parallel::exchange::Exchange;

/// Numbers of pieces that are tried.
const PIECES: [usize; 11] = [2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64];
const SWEEPS: usize = 12;

/// What is added to a clock: values at knots at equal distances over the run, ticks.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub(super) struct Course {
    values: Vec<f64>,
    length: f64,
}

impl Course {
    fn line(line: Line, length: f64) -> Self {
        Self { values: vec![line.value, line.at(length)], length }
    }

    pub(super) fn pieces(&self) -> usize {
        self.values.len() - 1
    }

    fn at(&self, time: f64) -> f64 {
        let width = self.length / self.pieces() as f64;
        let piece = piece(time, self.length, self.pieces());
        let share = time / width - piece as f64;
        self.values[piece] + share * (self.values[piece + 1] - self.values[piece])
    }

    fn with_pieces(&self, pieces: usize) -> Self {
        let width = self.length / pieces as f64;
        Self { values: (0..=pieces).map(|knot| self.at(knot as f64 * width)).collect(), length: self.length }
    }

    fn is_zero(&self) -> bool {
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

/// The lines of all clocks.
#[derive(Debug)]
pub(super) struct Lines {
    /// What is added to each domain's clock.
    pub(super) courses: Vec<Course>,
    /// The domain that each is relative to: its own if it is not moved.
    pub(super) reference: Vec<u32>,
    /// How far each may be from the truth if clocks are lines; `None` if its bounds come from one side or contradict.
    pub(super) uncertainty: Vec<Option<f64>>,
    /// The pairs of domains.
    pub(super) pairs: Vec<Pair>,
}

/// What courses leave violated: number and sum of the amounts, and which domains take part.
pub(super) type Left = (u64, i64, Vec<bool>);

/// The courses of all domains, and the lines behind them at the first process of an analysis. Collective: `hulls` gathers the
/// bounds of the domains that are not fixed, for a number of pieces; `left` counts what courses violate.
pub(super) fn find(
    domains: usize,
    length: f64,
    hulls: &dyn Fn(usize, &[bool]) -> Result<Hulls>,
    left: &dyn Fn(&[Course]) -> Result<Left>,
    exchange: &Exchange,
) -> Result<(Vec<Course>, Option<Lines>)> {
    let pairs = hulls(1, &vec![false; domains])?.into_pairs(length);
    let worst = pairs.iter().map(|pair| -pair.corridor.margin(Line::default())).fold(0.0, f64::max);
    let mut lines = exchange.is_root().then(|| Lines::fit(pairs, domains, length, worst));
    let known = lines.as_ref().map(|(lines, is_reference)| (lines.courses.clone(), is_reference.clone()));
    let (mut courses, is_reference) = exchange.broadcast(|| known.unwrap_or_default())?;
    let (violated, sum, bends) = left(&courses)?;
    let is_fixed: Vec<bool> = is_reference.iter().zip(&bends).map(|(fixed, bends)| *fixed || !bends).collect();
    if is_fixed.contains(&false) {
        let mut best = (violated, sum);
        let straight = courses.clone();
        for pieces in PIECES {
            let arcs = hulls(pieces, &is_fixed)?.arcs();
            let bent = exchange.broadcast(|| {
                let mut bent = straight.clone();
                for (course, _) in bent.iter_mut().zip(&is_fixed).filter(|(_, fixed)| !**fixed) {
                    *course = course.with_pieces(pieces);
                }
                sweep(&mut bent, &Neighbors::new(&arcs, domains), &is_fixed, worst);
                bent
            })?;
            let (violated, sum, _) = left(&bent)?;
            if (violated, sum) < best {
                best = (violated, sum);
                courses = bent;
            }
            if violated == 0 {
                break;
            }
        }
    }
    if let Some((lines, _)) = &mut lines {
        lines.courses.clone_from(&courses);
    }
    Ok((courses, lines.map(|(lines, _)| lines)))
}

impl Lines {
    /// Fits a line to each domain, and says which are references: all, if no pair is violated. `worst` is the largest amount of a
    /// violation.
    fn fit(pairs: Vec<Pair>, domains: usize, length: f64, worst: f64) -> (Self, Vec<bool>) {
        let zero = Course::line(Line::default(), length);
        let mut found = Self {
            courses: vec![zero.clone(); domains],
            reference: (0..domains as u32).collect(),
            uncertainty: vec![Some(0.0); domains],
            pairs,
        };
        if !found.pairs.iter().any(Pair::is_violated) {
            return (found, vec![true; domains]);
        }
        let is_reference = found.start(length, worst);
        let of_hulls: Vec<Arc> = found.pairs.iter().flat_map(Pair::arcs).collect();
        let neighbors = Neighbors::new(&of_hulls, domains);
        let mut is_fixed = is_reference.clone();
        sweep(&mut found.courses, &neighbors, &is_fixed, worst);
        let mut rests = false;
        for domain in (0..domains).filter(|&domain| !is_reference[domain]) {
            let corridor = neighbors.corridor(domain, &found.courses);
            let rest = corridor.margin(Line::default());
            if rest > 0.0 && corridor.fit(length).is_none_or(|fit| rest >= fit.margin.min(worst) / 2.0) {
                is_fixed[domain] = true;
                rests |= !found.courses[domain].is_zero();
                found.courses[domain] = zero.clone();
            }
        }
        if rests {
            sweep(&mut found.courses, &neighbors, &is_fixed, worst);
        }
        (found, is_reference)
    }

    /// Finds references and composes lines along a spanning tree; returns which domains are references.
    fn start(&mut self, length: f64, worst: f64) -> Vec<bool> {
        let domains = self.courses.len();
        // Clocks that agree are the truth, even if those of rank 0 do not.
        let mut agreeing = Sets::new(domains);
        for pair in self.pairs.iter().filter(|pair| !pair.is_violated()) {
            agreeing.join(pair.first, pair.second);
        }
        let mut order: Vec<usize> = (0..self.pairs.len()).collect();
        order.sort_by(|&a, &b| {
            let key = |pair: &Pair| match (pair.uncertainty(), pair.fit) {
                (Some(uncertainty), _) => (0, uncertainty),
                (None, Some(fit)) => (1, -fit.margin),
                (None, None) => (2, 0.0),
            };
            let ((rank_a, a_value), (rank_b, b_value)) = (key(&self.pairs[a]), key(&self.pairs[b]));
            rank_a.cmp(&rank_b).then(a_value.total_cmp(&b_value)).then(a.cmp(&b))
        });
        let mut connected = Sets::new(domains);
        let mut tree: Vec<Vec<usize>> = vec![Vec::new(); domains];
        for number in order {
            let pair = &self.pairs[number];
            if connected.join(pair.first, pair.second) {
                tree[pair.first as usize].push(number);
                tree[pair.second as usize].push(number);
            }
        }
        // The reference of a component: the lowest of its largest set of clocks that agree.
        let mut reference = vec![u32::MAX; domains];
        for domain in 0..domains as u32 {
            let component = connected.find(domain) as usize;
            let size = |sets: &mut Sets, domain: u32| {
                let set = sets.find(domain);
                sets.sizes[set as usize]
            };
            let best = reference[component];
            if best == u32::MAX || size(&mut agreeing, domain) > size(&mut agreeing, best) {
                reference[component] = domain;
            }
        }
        let mut is_reference = vec![false; domains];
        let mut lines = vec![Line::default(); domains];
        let mut is_known = vec![false; domains];
        for root in 0..domains as u32 {
            if reference[connected.find(root) as usize] != root {
                continue;
            }
            is_reference[root as usize] = true;
            is_known[root as usize] = true;
            let mut stack = vec![root];
            while let Some(parent) = stack.pop() {
                for &number in &tree[parent as usize] {
                    let pair = &self.pairs[number];
                    let child = if pair.first == parent { pair.second } else { pair.first };
                    if std::mem::replace(&mut is_known[child as usize], true) {
                        continue;
                    }
                    let difference = match &pair.fit {
                        Some(fit) => pair.corridor.least(fit, worst, length),
                        None => Line { value: pair.constant(), slope: 0.0 },
                    };
                    let difference = if pair.first == parent { difference } else { inverse(difference) };
                    lines[child as usize] = composed(lines[parent as usize], difference);
                    self.reference[child as usize] = root;
                    self.uncertainty[child as usize] =
                        self.uncertainty[parent as usize].zip(pair.uncertainty()).map(|(path, own)| path + own);
                    stack.push(child);
                }
            }
        }
        for (course, line) in self.courses.iter_mut().zip(lines) {
            *course = Course::line(line, length);
        }
        is_reference
    }
}

/// What is added first, then what is added to the result.
fn composed(outer: Line, inner: Line) -> Line {
    Line { value: inner.value + outer.at(inner.value), slope: inner.slope + outer.slope * (1.0 + inner.slope) }
}

/// What takes back what a line adds.
fn inverse(line: Line) -> Line {
    Line { value: -line.value / (1.0 + line.slope), slope: -line.slope / (1.0 + line.slope) }
}

/// The arcs of each domain.
struct Neighbors<'a> {
    arcs: &'a [Arc],
    /// Positions of the arcs of all domains, and where those of each domain begin.
    positions: Vec<u32>,
    begins: Vec<u32>,
}

impl<'a> Neighbors<'a> {
    fn new(arcs: &'a [Arc], domains: usize) -> Self {
        let mut begins = vec![0u32; domains + 1];
        let ends = |arc: &Arc| [arc.from, arc.to];
        for domain in arcs.iter().flat_map(ends) {
            begins[domain as usize + 1] += 1;
        }
        for domain in 0..domains {
            begins[domain + 1] += begins[domain];
        }
        let mut next = begins.clone();
        let mut positions = vec![0; 2 * arcs.len()];
        for (number, arc) in arcs.iter().enumerate() {
            for domain in ends(arc) {
                positions[next[domain as usize] as usize] = number as u32;
                next[domain as usize] += 1;
            }
        }
        Self { arcs, positions, begins }
    }

    /// Lower and upper bounds of what is added to a domain's clock, with its neighbors as they are.
    fn bounds(&self, domain: usize, courses: &[Course]) -> (Vec<Point>, Vec<Point>) {
        let (mut lower, mut upper) = (Vec::new(), Vec::new());
        for &number in &self.positions[self.begins[domain] as usize..self.begins[domain + 1] as usize] {
            let &Arc { from, to, sent, received } = &self.arcs[number as usize];
            if to as usize == domain {
                lower.push((received, sent + courses[from as usize].at(sent) - received));
            } else {
                upper.push((sent, received + courses[to as usize].at(received) - sent));
            }
        }
        (lower, upper)
    }

    fn corridor(&self, domain: usize, courses: &[Course]) -> Corridor {
        let (lower, upper) = self.bounds(domain, courses);
        Corridor::new(lower, upper)
    }
}

/// Fits each domain that is not fixed against its neighbors until nothing changes by a tick. `worst` is the largest amount
/// of a violation.
fn sweep(courses: &mut [Course], neighbors: &Neighbors, is_fixed: &[bool], worst: f64) {
    for _ in 0..SWEEPS {
        let mut change: f64 = 0.0;
        for domain in (0..courses.len()).filter(|&domain| !is_fixed[domain]) {
            let (lower, upper) = neighbors.bounds(domain, courses);
            let (pieces, length) = (courses[domain].pieces(), courses[domain].length);
            let values = if lower.is_empty() || upper.is_empty() {
                let low = lower.iter().map(|point| point.1).fold(0.0, f64::max);
                let constant = upper.iter().map(|point| point.1).fold(low, f64::min);
                vec![constant; pieces + 1]
            } else if pieces > 1 {
                fit_pieces(&lower, &upper, length, pieces).unwrap_or_else(|| courses[domain].values.clone())
            } else {
                let corridor = Corridor { lower: hull(lower, 1.0), upper: hull(upper, -1.0) };
                let least = |fit| Course::line(corridor.least(&fit, worst, length), length).values;
                corridor.fit(length).map_or_else(|| courses[domain].values.clone(), least)
            };
            for (old, new) in courses[domain].values.iter().zip(&values) {
                change = change.max((old - new).abs());
            }
            courses[domain].values = values;
        }
        if change < 1.0 {
            break;
        }
    }
}

/// Disjoint sets.
struct Sets {
    parents: Vec<u32>,
    sizes: Vec<u32>,
}

impl Sets {
    fn new(members: usize) -> Self {
        Self { parents: (0..members as u32).collect(), sizes: vec![1; members] }
    }

    fn find(&mut self, member: u32) -> u32 {
        let mut root = member;
        while self.parents[root as usize] != root {
            root = self.parents[root as usize];
        }
        let mut next = member;
        while next != root {
            next = std::mem::replace(&mut self.parents[next as usize], root);
        }
        root
    }

    /// Joins the sets of two members; returns whether they were different.
    fn join(&mut self, a: u32, b: u32) -> bool {
        let (a, b) = (self.find(a), self.find(b));
        let (a, b) = if self.sizes[a as usize] < self.sizes[b as usize] { (b, a) } else { (a, b) };
        if a != b {
            self.parents[b as usize] = a;
            self.sizes[a as usize] += self.sizes[b as usize];
        }
        a != b
    }
}
