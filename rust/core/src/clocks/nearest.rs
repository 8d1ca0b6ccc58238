//! Lines that satisfy all constraints and are no further from the truth than the clocks as they are, whatever the truth is.
//!
//! The lines that satisfy all constraints are a convex set, and the true ones are among them, if clocks are lines. The middle
//! of the set is far from its borders; but in a wide set it says nothing, and can be further from the truth than the clocks as
//! they are. The lines of the set that move clocks least never are, but lie on its border. Between both are the nearest lines of the set
//! when it is contracted towards its middle, as far as all lines of the set are nearer to them than to the clocks as they are.
//!
//! The distance is the mean square of what is added to the times of all events. *Source*: C. Hildreth: A quadratic programming
//! procedure, Naval Research Logistics Quarterly 4(1), 1957, for the nearest lines.

use bitcode::{Decode, Encode};

use super::pairs::Arc;

/// How often all arcs are visited at most, and how many visits of arcs are affordable.
const ROUNDS: usize = 2_000;
const VISITS: usize = 5_000_000;
/// Ticks by which arcs may be missed; or, where that is more, the part of the margin that the contracted set keeps from all.
const CLOSE: f64 = 0.25;
const PART: f64 = 1.0 / 16.0;
/// Ticks that lines keep from bounds, if the middle does, because times are rounded.
const TICKS: f64 = 2.0;
/// The largest share by which the set is contracted, and how often another one is tried.
const ALL: f64 = 63.0 / 64.0;
const STEPS: usize = 6;
/// How near lines are to the middle that count as the middle, as a share of what it moves.
const NEAR: f64 = 1.0 / 64.0;

/// What is added at the begin and at the end of the run.
pub(super) type Ends = (f64, f64);

/// Number of events at the same clock, and sums of what their times are as shares of the run, and of the squares of that.
#[derive(Clone, Copy, Debug, Default, Encode, Decode)]
pub(super) struct Weight {
    pub(super) events: f64,
    pub(super) sum: f64,
    pub(super) squares: f64,
}

impl Weight {
    /// The sum of the products of two lines over the events, and over one that is anywhere: no line is for nothing.
    fn product(&self, a: Ends, b: Ends) -> f64 {
        let (first, between, last) = self.matrix();
        first * a.0 * b.0 + between * (a.0 * b.1 + a.1 * b.0) + last * a.1 * b.1
    }

    /// The squares of what is added at the begin and the end, and between them their product, by events.
    fn matrix(&self) -> (f64, f64, f64) {
        let Self { events, sum, squares } = *self;
        (events - 2.0 * sum + squares + 1.0 / 3.0, sum - squares + 1.0 / 6.0, squares + 1.0 / 3.0)
    }

    /// How a unit of force along `row` moves a line, so that its square grows least.
    fn moved(&self, row: Ends) -> Ends {
        let (first, between, last) = self.matrix();
        let area = first * last - between * between;
        ((last * row.0 - between * row.1) / area, (first * row.1 - between * row.0) / area)
    }
}

/// What the line of a clock adds to a bound by its values at the begin and the end, and how a unit of force moves the line.
struct Side {
    clock: usize,
    row: Ends,
    moved: Ends,
}

impl Side {
    fn new(clock: usize, row: Ends, weights: &[Weight]) -> Self {
        Self { clock, row, moved: weights[clock].moved(row) }
    }
}

/// An arc between two clocks, or the largest drift of one.
struct Bound {
    sides: [Side; 2],
    /// By how much the clocks as they are satisfy it, ticks, and the middle.
    gap: f64,
    slack: f64,
    /// What a unit of force adds to the gap.
    reach: f64,
    force: f64,
}

impl Bound {
    fn new(sides: [Side; 2], gap: f64, middle: &[Ends]) -> Self {
        let reach = sides.iter().map(|side| dot(side.row, side.moved)).sum();
        let mut bound = Self { sides, gap, slack: 0.0, reach, force: 0.0 };
        bound.slack = gap + bound.added(middle);
        bound
    }

    /// What lines add to the gap.
    fn added(&self, lines: &[Ends]) -> f64 {
        self.sides.iter().map(|side| dot(side.row, lines[side.clock])).sum()
    }
}

/// The lines of all clocks for which there are weights, if they are moved together: those nearest to the `middle` that are not
/// further from any lines that satisfy the arcs and drift by at most `steepest` than no correction. `None` if that is the
/// middle, or if they are not found.
pub(super) fn safe(
    arcs: &[Arc],
    weights: &[Weight],
    middle: &[Ends],
    (length, steepest): (f64, f64),
) -> Option<Vec<Ends>> {
    let of_arc = |arc: &Arc| {
        let side = |clock: u32, time: f64, sign: f64| {
            let share = time / length;
            Side::new(clock as usize, (sign * (1.0 - share), sign * share), weights)
        };
        let sides = [side(arc.from, arc.sent, -1.0), side(arc.to, arc.received, 1.0)];
        Bound::new(sides, arc.received - arc.sent, middle)
    };
    let mut bounds: Vec<Bound> = arcs.iter().map(of_arc).collect();
    let tightest = bounds.iter().map(|bound| bound.slack).fold(f64::INFINITY, f64::min);
    let is_inside = tightest >= -CLOSE;
    let middle = without_common(middle, weights);
    for (clock, (begin, end)) in middle.iter().enumerate() {
        let limit = (steepest * length).max((end - begin).abs());
        for row in [(1.0, -1.0), (-1.0, 1.0)] {
            let sides = [Side::new(clock, row, weights), Side::new(clock, (0.0, 0.0), weights)];
            bounds.push(Bound::new(sides, limit, &middle));
        }
    }
    let mut search = Search { bounds, tightest, weights, lines: vec![(0.0, 0.0); weights.len()] };
    let is_safe = |search: &mut Search, share: f64| search.contract(share) && search.is_safe();
    if !(is_inside && is_safe(&mut search, ALL)) {
        if !search.contract(0.0) {
            return None;
        }
        let mut found = search.lines.clone();
        let (mut least, mut most) = (0.0, ALL);
        for _ in 0..if is_inside { STEPS } else { 0 } {
            let share = f64::midpoint(least, most);
            if is_safe(&mut search, share) {
                found.clone_from(&search.lines);
                least = share;
            } else {
                most = share;
            }
        }
        search.lines = found;
    }
    let rest: Vec<Ends> = search.lines.iter().zip(&middle).map(|(a, b)| (a.0 - b.0, a.1 - b.1)).collect();
    let is_middle = search.product(&rest, &rest) <= NEAR * NEAR * search.product(&middle, &middle);
    (!(is_inside && is_middle)).then_some(search.lines)
}

struct Search<'a> {
    bounds: Vec<Bound>,
    /// The least margin of the middle to an arc, ticks.
    tightest: f64,
    weights: &'a [Weight],
    lines: Vec<Ends>,
}

impl Search<'_> {
    /// Finds the nearest lines that satisfy each bound by a share of what the middle does; returns whether it does.
    fn contract(&mut self, share: f64) -> bool {
        let close = (PART * share * self.tightest).max(CLOSE);
        for _ in 0..ROUNDS.min(VISITS / self.bounds.len().max(1)) {
            let mut change: f64 = 0.0;
            for bound in &mut self.bounds {
                let margin = (share * bound.slack).max(TICKS.min(bound.slack));
                // A force only pushes, and what it has pushed too far goes back.
                let more = ((margin - bound.gap - bound.added(&self.lines)) / bound.reach).max(-bound.force);
                bound.force += more;
                for side in &bound.sides {
                    self.lines[side.clock].0 += more * side.moved.0;
                    self.lines[side.clock].1 += more * side.moved.1;
                }
                change = change.max(more.abs() * bound.reach);
            }
            if change <= close {
                return true;
            }
        }
        false
    }

    /// Whether all lines that satisfy the bounds are nearer to these than to no correction.
    ///
    /// Lines t are as near to 0 as to y if `<t, y> = <y, y> / 2`. What forces push is y, so `<t, y>` is the sum of the forces
    /// times what t adds to their bounds; and that is at least what is missing there.
    fn is_safe(&self) -> bool {
        let least: f64 = self.bounds.iter().map(|bound| -bound.force * bound.gap).sum();
        least >= self.product(&self.lines, &self.lines) / 2.0
    }

    /// The sum of the products of the lines of all clocks over their events.
    fn product(&self, a: &[Ends], b: &[Ends]) -> f64 {
        a.iter().zip(b).zip(self.weights).map(|((a, b), weight)| weight.product(*a, *b)).sum()
    }
}

/// What lines add, without the line that moves all clocks together and leaves least.
fn without_common(lines: &[Ends], weights: &[Weight]) -> Vec<Ends> {
    let (mut matrix, mut sums) = ((0.0, 0.0, 0.0), (0.0, 0.0));
    for (line, weight) in lines.iter().zip(weights) {
        let (first, between, last) = weight.matrix();
        matrix = (matrix.0 + first, matrix.1 + between, matrix.2 + last);
        sums = (sums.0 + first * line.0 + between * line.1, sums.1 + between * line.0 + last * line.1);
    }
    let (first, between, last) = matrix;
    let area = first * last - between * between;
    let common = ((last * sums.0 - between * sums.1) / area, (first * sums.1 - between * sums.0) / area);
    lines.iter().map(|line| (line.0 - common.0, line.1 - common.1)).collect()
}

/// The sum of the products at the begin and at the end.
pub(super) fn dot(a: Ends, b: Ends) -> f64 {
    a.0 * b.0 + a.1 * b.1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Events at all times of the run.
    const EVEN: Weight = Weight { events: 12.0, sum: 6.0, squares: 4.0 };

    fn arc(from: u32, to: u32, sent: f64, received: f64) -> Arc {
        Arc { from, to, sent, received }
    }

    fn at((begin, end): Ends, share: f64) -> f64 {
        begin + share * (end - begin)
    }

    fn square(lines: &[Ends]) -> f64 {
        lines.iter().map(|line| EVEN.product(*line, *line)).sum()
    }

    /// Both clocks go half of the way; in the middle of the run, nothing but an offset is needed. The middle lines, with 10 times
    /// that offset, are not safe, since the truth may be on the border; twice as far as needed is.
    #[test]
    fn twice_as_far_as_needed() {
        let arcs = [arc(0, 1, 45_050.0, 44_950.0)];
        let found = safe(&arcs, &[EVEN; 2], &[(-500.0, -500.0), (500.0, 500.0)], (90_000.0, 0.01))
            .expect("the middle is not safe");
        for (line, sign) in found.iter().zip([-1.0, 1.0]) {
            assert!((at(*line, 0.5) - sign * 100.0).abs() < 15.0 && (line.1 - line.0).abs() < 1.0, "{found:?}");
        }
        assert!(safe(&arcs, &[EVEN; 2], &[(-60.0, -60.0), (60.0, 60.0)], (90_000.0, 0.01)).is_none());
    }

    /// Of random lines that satisfy the arcs, none is further from those that were found than from no correction.
    #[test]
    fn no_truth_is_further_away() {
        let truth = [(0.0, 0.0), (300.0, 500.0), (-200.0, 100.0)];
        let length = 100_000.0;
        // True times of messages and how long they take; clocks show what is left when the truth is taken away.
        let shown = |domain: usize, time: f64| time - at(truth[domain], time / length);
        let arcs: Vec<Arc> = (0..20)
            .map(|n| {
                let (from, to) = (n % 3, (n + 1 + n / 7 % 2) % 3);
                let (sent, took) = (4_500.0 * n as f64, 40.0 + 370.0 * (n % 5) as f64);
                arc(from as u32, to as u32, shown(from, sent), shown(to, sent + took))
            })
            .collect();
        let slack = |lines: &[Ends]| {
            let slack = |arc: &Arc| {
                let added = |domain: u32, time: f64| at(lines[domain as usize], time / length);
                arc.received + added(arc.to, arc.received) - arc.sent - added(arc.from, arc.sent)
            };
            arcs.iter().map(slack).fold(f64::INFINITY, f64::min)
        };
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
        };
        let moved = |lines: &[Ends], by: &mut dyn FnMut() -> f64| -> Vec<Ends> {
            lines.iter().map(|line| (line.0 + by(), line.1 + by())).collect()
        };
        let mut all: Vec<Vec<Ends>> = (0..20_000).map(|_| moved(&truth, &mut || 600.0 * random())).collect();
        all.retain(|lines| slack(lines) >= 0.0);
        assert!(all.len() > 100);
        let widest = all.iter().max_by(|a, b| slack(a).total_cmp(&slack(b))).expect("some satisfy all");
        for middle in [widest, &all[0], &all[1], &all[2]] {
            let found = safe(&arcs, &[EVEN; 3], middle, (length, 0.01)).unwrap_or_else(|| middle.clone());
            assert!(slack(&found) >= -1.0);
            for lines in &all {
                let lines = without_common(lines, &[EVEN; 3]);
                let found = without_common(&found, &[EVEN; 3]);
                let off: Vec<Ends> = lines.iter().zip(&found).map(|(a, b)| (a.0 - b.0, a.1 - b.1)).collect();
                assert!(square(&off) <= 1.05 * square(&lines), "{found:?} {lines:?}");
            }
        }
    }

    #[test]
    fn what_contradicts_itself_is_not_found() {
        let arcs = [arc(0, 1, 500.0, 400.0), arc(1, 0, 400.0, 300.0)];
        assert!(safe(&arcs, &[EVEN; 2], &[(0.0, 0.0); 2], (900.0, 0.01)).is_none());
    }
}
