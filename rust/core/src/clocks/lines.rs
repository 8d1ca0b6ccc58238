//! An offset and a drift for each clock, from the constraints alone.
//!
//! The pairs of clocks whose difference is known best span a tree, along which their lines are composed. Then each clock is
//! fitted again to the largest margin against all its neighbors, in sweeps. Where no line satisfies all constraints,
//! clocks get lines of several pieces.
//!
//! *Source*: clocks.md#lines; B. Poirier et al.: Accurate offline synchronization of distributed traces using kernel-level
//! events, Operating Systems Review 44(3), 2010, for the tree.

use bitcode::{Decode, Encode};

use super::course::Course;
use super::fit::{Corridor, Line, Point, STEEPEST, fit_pieces};
use super::mend::mend;
use super::nearest::{Ends, Weight, safe};
use super::pairs::{Arc, Hulls, Pair};
use crate::Result;
use crate::parallel::exchange::Exchange;

/// Numbers of pieces that are tried.
const PIECES: [usize; 11] = [2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64];
/// How often all clocks are fitted again, and how often lines move together, at most.
const SWEEPS: usize = 12;
const MENDS: usize = 8;
/// Ticks by which a line must change before its neighbors are fitted again.
const CHANGE: f64 = 1.0 / 16.0;
/// Ticks by which the margin of pieces may miss the largest.
const CLOSE: f64 = 1.0 / 16.0;
/// How many arcs are affordable, in all numbers of pieces that are tried together.
const ARCS: usize = 500_000;
/// By how much drifts may differ: as much as those of quartz clocks, and more only if constraints demand it.
const DRIFTS: [f64; 3] = [2e-4, 2e-3, STEEPEST];

/// The lines of all clocks.
#[derive(Clone, Debug, Default, Encode, Decode)]
pub(super) struct Lines {
    /// What is added to each domain's clock.
    pub(super) courses: Vec<Course>,
    /// The domain that each is relative to: its own if it is not moved.
    pub(super) reference: Vec<u32>,
    /// How far each may be from the truth if clocks are lines; `None` if its bounds come from one side or contradict.
    pub(super) uncertainty: Vec<Option<f64>>,
}

/// What courses leave violated: number and sum of the amounts, and which domains take part.
pub(super) type Left = (u64, i64, Vec<bool>);

/// What gathers the bounds for a number of pieces, of domains that are not fixed, and with courses that say who is the latest.
type Gather<'a> = dyn Fn(usize, &[bool], &[Course]) -> Result<Hulls> + 'a;

/// The lines of all domains, and the pairs behind them at the first process of an analysis. Collective: `hulls` gathers the
/// bounds of the domains that are not fixed, for a number of pieces, where courses say who is the latest; `left` counts what they violate.
pub(super) fn find(
    weights: &[Weight],
    length: f64,
    hulls: &Gather<'_>,
    left: &dyn Fn(&[Course]) -> Result<Left>,
    exchange: &Exchange,
) -> Result<(Lines, Vec<Pair>)> {
    let domains = weights.len();
    let is_free = vec![false; domains];
    let mut all = hulls(1, &is_free, &[])?;
    let mut pairs = all.pairs(length);
    let worst = pairs.iter().map(|pair| -pair.corridor.margin(Line::default())).fold(0.0, f64::max);
    let arcs: Vec<Arc> = pairs.iter().flat_map(Pair::arcs).collect();
    let (mut lines, mut least) = (Lines::default(), (u64::MAX, i64::MAX));
    let mut bends = Vec::new();
    for steepest in DRIFTS {
        for pair in &mut pairs {
            pair.corridor.steepest = steepest;
        }
        let found = exchange.broadcast(|| {
            pairs.iter().all(|pair| pair.has_margin(length, worst)).then(|| {
                let middle = Lines::fit(&pairs, &arcs, domains, length, worst);
                let safe = middle.safe(&arcs, weights, (length, steepest));
                (middle, safe)
            })
        })?;
        let Some((middle, safe)) = found else { continue };
        let (violated, sum, of_middle) = left(&middle.courses)?;
        let mut mended = middle.clone();
        if (violated, sum) < least {
            (lines, least, bends) = (middle, (violated, sum), of_middle);
        }
        if let Some(courses) = safe {
            let (violated, sum, of_safe) = left(&courses)?;
            if (violated, sum) <= least {
                lines.courses = courses;
                (least, bends) = ((violated, sum), of_safe);
            }
        }
        // Whose part in an operation was the latest is known only when clocks are almost right.
        for _ in 0..MENDS {
            if least.0 == 0 {
                break;
            }
            all.add_all(hulls(1, &is_free, &mended.courses)?);
            mended = exchange.broadcast(|| mended.clone().mended(&all.arcs(), (length, steepest)))?;
            let (violated, sum, of_mended) = left(&mended.courses)?;
            if (violated, sum) >= least {
                break;
            }
            (lines, least, bends) = (mended.clone(), (violated, sum), of_mended);
        }
        if least.0 == 0 {
            break;
        }
    }
    let is_fixed: Vec<bool> = (0..domains).map(|domain| lines.is_reference(domain) || !bends[domain]).collect();
    if is_fixed.contains(&false) {
        let straight = lines.courses.clone();
        let mut visited = 0;
        for pieces in PIECES {
            let arcs = hulls(pieces, &is_fixed, &straight)?.arcs();
            visited += exchange.broadcast(|| arcs.len())?;
            if visited > ARCS {
                break;
            }
            let bent = exchange.broadcast(|| {
                let mut bent = straight.clone();
                for (course, _) in bent.iter_mut().zip(&is_fixed).filter(|(_, fixed)| !**fixed) {
                    *course = course.with_pieces(pieces);
                }
                sweep(&mut bent, &Neighbors::new(&arcs, domains, STEEPEST), &is_fixed, worst);
                bent
            })?;
            let (violated, sum, _) = left(&bent)?;
            if (violated, sum) < least {
                least = (violated, sum);
                lines.courses = bent;
            }
            if violated == 0 {
                break;
            }
        }
    }
    Ok((lines, pairs))
}

impl Lines {
    /// Fits a line to each domain: 0 to all, if no pair is violated. `worst` is the largest amount of a violation.
    fn fit(pairs: &[Pair], arcs: &[Arc], domains: usize, length: f64, worst: f64) -> Self {
        let zero = Course::line(Line::default(), length);
        let mut found = Self {
            courses: vec![zero.clone(); domains],
            reference: (0..domains as u32).collect(),
            uncertainty: vec![Some(0.0); domains],
        };
        if !pairs.iter().any(Pair::is_violated) {
            return found;
        }
        found.start(pairs, length, worst);
        let neighbors = Neighbors::new(arcs, domains, pairs[0].corridor.steepest);
        let mut is_fixed: Vec<bool> = (0..domains).map(|domain| found.is_reference(domain)).collect();
        sweep(&mut found.courses, &neighbors, &is_fixed, worst);
        let mut rests = false;
        for (domain, is_fixed) in is_fixed.iter_mut().enumerate().filter(|(_, fixed)| !**fixed) {
            let corridor = neighbors.corridor(domain, &found.courses);
            let rest = corridor.margin(Line::default());
            if rest > 0.0 && corridor.fit(length).is_none_or(|fit| rest >= fit.margin.min(worst) / 2.0) {
                *is_fixed = true;
                rests |= !found.courses[domain].is_zero();
                found.courses[domain] = zero.clone();
            }
        }
        if rests {
            sweep(&mut found.courses, &neighbors, &is_fixed, worst);
        }
        found
    }

    /// Lines that satisfy all arcs, if some near these do.
    fn mended(mut self, arcs: &[Arc], (length, steepest): (f64, f64)) -> Self {
        let is_fixed: Vec<bool> = (0..self.courses.len()).map(|domain| self.is_reference(domain)).collect();
        let mut lines: Vec<Ends> = self.courses.iter().map(Course::ends).collect();
        mend(arcs, &is_fixed, &mut lines, (length, steepest));
        for (course, (begin, end)) in self.courses.iter_mut().zip(lines) {
            course.values = vec![begin, end];
        }
        self
    }

    /// Whether others are relative to a domain.
    fn is_reference(&self, domain: usize) -> bool {
        self.reference[domain] as usize == domain
    }

    /// Lines that are no further from the truth than the clocks as they are, with the events of each; `None` if these lines are.
    fn safe(&self, arcs: &[Arc], weights: &[Weight], (length, steepest): (f64, f64)) -> Option<Vec<Course>> {
        let domains = self.courses.len();
        let mut components: Vec<Vec<usize>> = vec![Vec::new(); domains];
        let mut places = vec![0; domains];
        for domain in 0..domains {
            let component = &mut components[self.reference[domain] as usize];
            places[domain] = component.len() as u32;
            component.push(domain);
        }
        let mut of_component: Vec<Vec<Arc>> = vec![Vec::new(); domains];
        for &Arc { from, to, sent, received } in arcs {
            let placed = Arc { from: places[from as usize], to: places[to as usize], sent, received };
            of_component[self.reference[from as usize] as usize].push(placed);
        }
        let mut courses = None;
        // Of two clocks, only the difference counts, which is as small as needed.
        for (root, members) in components.iter().enumerate().filter(|(_, members)| members.len() > 2) {
            let middle: Vec<Ends> = members.iter().map(|&domain| self.courses[domain].ends()).collect();
            let weights: Vec<Weight> = members.iter().map(|&domain| weights[domain]).collect();
            if let Some(safe) = safe(&of_component[root], &weights, &middle, (length, steepest / 2.0)) {
                let line = |(begin, end): Ends| Line { value: begin, slope: (end - begin) / length };
                let back = inverse(line(safe[places[root] as usize]));
                let courses = courses.get_or_insert_with(|| self.courses.clone());
                for (&domain, &ends) in members.iter().zip(&safe) {
                    courses[domain] = Course::line(composed(back, line(ends)), length);
                }
            }
        }
        courses
    }

    /// Finds references and composes lines along a spanning tree.
    fn start(&mut self, pairs: &[Pair], length: f64, worst: f64) {
        let domains = self.courses.len();
        // Clocks that agree are the truth, even if those of rank 0 do not.
        let mut agreeing = Sets::new(domains);
        for pair in pairs.iter().filter(|pair| !pair.is_violated()) {
            agreeing.join(pair.first, pair.second);
        }
        let mut order: Vec<usize> = (0..pairs.len()).collect();
        order.sort_by(|&a, &b| {
            let key = |pair: &Pair| match (pair.uncertainty(), pair.fit) {
                (Some(uncertainty), _) => (0, uncertainty),
                (None, Some(fit)) => (1, -fit.margin),
                (None, None) => (2, 0.0),
            };
            let ((rank_a, a_value), (rank_b, b_value)) = (key(&pairs[a]), key(&pairs[b]));
            rank_a.cmp(&rank_b).then(a_value.total_cmp(&b_value)).then(a.cmp(&b))
        });
        let mut connected = Sets::new(domains);
        let mut tree: Vec<Vec<usize>> = vec![Vec::new(); domains];
        for number in order {
            let pair = &pairs[number];
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
        let mut lines = vec![Line::default(); domains];
        let mut is_known = vec![false; domains];
        for root in 0..domains as u32 {
            if reference[connected.find(root) as usize] != root {
                continue;
            }
            is_known[root as usize] = true;
            let mut stack = vec![root];
            while let Some(parent) = stack.pop() {
                for &number in &tree[parent as usize] {
                    let pair = &pairs[number];
                    let child = if pair.first == parent { pair.second } else { pair.first };
                    if std::mem::replace(&mut is_known[child as usize], true) {
                        continue;
                    }
                    let difference = match pair.corridor.fit(length) {
                        Some(fit) => pair.corridor.least(&fit, worst, length),
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
    }
}

/// What is added first, then what is added to the result.
pub(super) fn composed(outer: Line, inner: Line) -> Line {
    Line { value: inner.value + outer.at(inner.value), slope: inner.slope + outer.slope * (1.0 + inner.slope) }
}

/// What takes back what a line adds.
pub(super) fn inverse(line: Line) -> Line {
    Line { value: -line.value / (1.0 + line.slope), slope: -line.slope / (1.0 + line.slope) }
}

/// The arcs of each domain.
struct Neighbors<'a> {
    arcs: &'a [Arc],
    /// Positions of the arcs of all domains, and where those of each domain begin.
    positions: Vec<u32>,
    begins: Vec<u32>,
    /// The largest drift of lines.
    steepest: f64,
}

impl<'a> Neighbors<'a> {
    fn new(arcs: &'a [Arc], domains: usize, steepest: f64) -> Self {
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
        Self { arcs, positions, begins, steepest }
    }

    /// The other ends of a domain's arcs.
    fn of(&self, domain: usize) -> impl Iterator<Item = usize> + '_ {
        let positions = &self.positions[self.begins[domain] as usize..self.begins[domain + 1] as usize];
        positions.iter().map(move |&number| {
            let arc = &self.arcs[number as usize];
            if arc.from as usize == domain { arc.to as usize } else { arc.from as usize }
        })
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
        self.within(lower, upper)
    }

    /// The corridor between bounds.
    fn within(&self, lower: Vec<Point>, upper: Vec<Point>) -> Corridor {
        Corridor { steepest: self.steepest, ..Corridor::new(lower, upper) }
    }
}

/// Fits each domain that is not fixed against its neighbors until nothing changes by a tick, and again only if one of them has
/// changed. `worst` is the largest amount of a violation.
fn sweep(courses: &mut [Course], neighbors: &Neighbors, is_fixed: &[bool], worst: f64) {
    let mut is_due: Vec<bool> = is_fixed.iter().map(|fixed| !fixed).collect();
    for _ in 0..SWEEPS {
        let mut change: f64 = 0.0;
        for domain in 0..courses.len() {
            if !std::mem::take(&mut is_due[domain]) {
                continue;
            }
            let (lower, upper) = neighbors.bounds(domain, courses);
            let course = &courses[domain];
            let (pieces, length) = (course.pieces(), course.length);
            let values = if lower.is_empty() || upper.is_empty() {
                let low = lower.iter().map(|point| point.1).fold(0.0, f64::max);
                let constant = upper.iter().map(|point| point.1).fold(low, f64::min);
                vec![constant; pieces + 1]
            } else if pieces > 1 {
                let present = |time| course.at(time);
                fit_pieces(&lower, &upper, length, pieces, (&present, CLOSE)).unwrap_or_else(|| course.values.clone())
            } else {
                let corridor = neighbors.within(lower, upper);
                let least = |fit| Course::line(corridor.least(&fit, worst, length), length).values;
                corridor.fit(length).map_or_else(|| course.values.clone(), least)
            };
            let changes = courses[domain].values.iter().zip(&values).map(|(old, new)| (old - new).abs());
            let own = changes.fold(0.0, f64::max);
            change = change.max(own);
            courses[domain].values = values;
            if own > CHANGE {
                for neighbor in neighbors.of(domain) {
                    is_due[neighbor] = !is_fixed[neighbor];
                }
            }
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

#[cfg(test)]
mod tests {
    use super::super::census::Census;
    use super::super::constraints::{Constraints, Found};
    use super::super::domains::{self, Domain};
    use super::super::kind::Kind;
    use super::super::pairs::Cut;
    use super::*;
    use crate::ids::{LocationId, ProcessId};

    /// 64 clocks, off by up to 1 ms and 20 ppm, of processes in a grid that send messages to their neighbors for a second.
    #[test]
    fn clocks_of_a_grid_are_found() {
        const SIDE: usize = 8;
        const LENGTH: f64 = 1e9;
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        let clocks: Vec<(f64, f64)> =
            (0..SIDE * SIDE).map(|_| (2e6 * random() - 1e6, 4e-5 * random() - 2e-5)).collect();
        let shown = |clock: usize, time: f64| time - clocks[clock].0 - clocks[clock].1 * time;
        let mut found = Found::default();
        for step in 0..110 {
            for clock in 0..SIDE * SIDE {
                let right = (clock % SIDE + 1 < SIDE).then_some(clock + 1);
                let down = (clock + SIDE < SIDE * SIDE).then_some(clock + SIDE);
                for neighbor in [right, down].into_iter().flatten() {
                    for (from, to) in [(clock, neighbor), (neighbor, clock)] {
                        let sent = LENGTH * (f64::from(step) + random()) / 110.0;
                        let took = 2e3 - 2e3 * (1.0 - random()).ln();
                        let moment = |clock, time| (LocationId::at(clock), shown(clock, time).round() as i64);
                        found.link(Kind::Message, moment(from, sent), moment(to, sent + took));
                    }
                }
            }
        }
        let constraints = Constraints::new(found, (0..SIDE * SIDE).map(ProcessId::at).collect(), Vec::new());
        let exchange = Exchange::new(None, &[], &[]);
        let nodes = vec![0; SIDE * SIDE];
        let choice = (Domain::Process, 0);
        let domains = domains::domains(&constraints, &nodes, &Census::default(), choice, &exchange)
            .expect("one process exchanges nothing");
        let hulls = |pieces: usize, is_fixed: &[bool], courses: &[Course]| {
            let cut = Cut { begin: 0, length: LENGTH, pieces, is_fixed, courses };
            Hulls::gather(&constraints, &domains, 0, &cut, &exchange)
        };
        let left = |_: &[Course]| Ok((0, 0, vec![false; SIDE * SIDE]));
        let (lines, _) =
            find(&[Weight::default(); SIDE * SIDE], LENGTH, &hulls, &left, &exchange).expect("they can be found");
        let off = |time: f64| -> Vec<f64> {
            let off: Vec<f64> = lines
                .courses
                .iter()
                .enumerate()
                .map(|(clock, course)| shown(clock, time) + course.at(shown(clock, time)) - time)
                .collect();
            let mean = off.iter().sum::<f64>() / off.len() as f64;
            off.iter().map(|off| off - mean).collect()
        };
        let all = [off(0.0), off(LENGTH)].concat();
        let mean = (all.iter().map(|off| off * off).sum::<f64>() / all.len() as f64).sqrt();
        let most = all.iter().map(|off| off.abs()).fold(0.0, f64::max);
        assert!(mean <= 500.0 && most <= 2000.0, "{mean} ns, at most {most} ns");
    }
}
