//! Fits a line, or a line of several pieces, between lower and upper bounds, so that the least distance to a bound, the
//! *margin*, is as large as possible.
//!
//! A line violates a bound if and only if it crosses the upper hull of the lower bounds or the lower hull of the upper
//! ones. For a slope, the best line is in the middle between both hulls, and its margin is a concave function of the slope
//! with corners at the slopes of the hulls' edges.
//!
//! *Source*: clocks.md#lines; A. Duda et al.: Estimating global time in distributed systems, ICDCS 1987.

/// The largest difference of drifts that is possible: 10,000 ppm.
pub(super) const STEEPEST: f64 = 0.01;
/// What a drift must add to the margin, as a share of what it moves over the run. Where bounds are tight in a part of the
/// run only, a drift adds next to nothing there, and moves the rest far without evidence.
const COST: f64 = 0.02;
/// From which margin on a corridor is wide, as a share of the largest amount of a violation: clocks are known to be wrong by
/// this amount, not by more.
const WIDE: f64 = 0.6;
/// The margin that is enough in a wide corridor, as the same share.
const ENOUGH: f64 = 0.1;
/// Steps of bisections: enough for the resolution of a double.
const STEPS: usize = 60;

/// A bound at a time: both in ticks.
pub(super) type Point = (f64, f64);

/// A line: its value at time 0, and its slope.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Line {
    pub(super) value: f64,
    pub(super) slope: f64,
}

impl Line {
    pub(super) fn at(self, time: f64) -> f64 {
        self.value + self.slope * time
    }
}

/// Lower and upper bounds, as hulls.
#[derive(Clone, Debug)]
pub(super) struct Corridor {
    /// The largest drift of its lines.
    pub(super) steepest: f64,
    /// The upper hull of the lower bounds, by time.
    pub(super) lower: Vec<Point>,
    /// The lower hull of the upper bounds, by time.
    pub(super) upper: Vec<Point>,
}

/// A line with the largest margin.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fit {
    pub(super) line: Line,
    pub(super) margin: f64,
}

impl Corridor {
    pub(super) fn new(lower: Vec<Point>, upper: Vec<Point>) -> Self {
        Self::of_hulls(hull(lower, 1.0), hull(upper, -1.0))
    }

    /// The corridor between hulls.
    pub(super) fn of_hulls(lower: Vec<Point>, upper: Vec<Point>) -> Self {
        Self { lower, upper, steepest: STEEPEST }
    }

    /// The line of the largest margin over a run of a length, where a drift must earn [`COST`] of what it moves, unless all
    /// lines that satisfy the bounds have one; of equal ones that with the least drift. `None` if one side has no bounds.
    pub(super) fn fit(&self, length: f64) -> Option<Fit> {
        if self.lower.is_empty() || self.upper.is_empty() {
            return None;
        }
        // Both are concave, with corners at these slopes.
        let mut slopes = self.slopes();
        slopes.push(0.0);
        let margin = |slope: f64| self.gap(slope) / 2.0;
        let mut slope = best(&slopes, |slope| margin(slope) - COST * length * slope.abs());
        if margin(slope) < 0.0 {
            // No drift is too dear if all bounds can be satisfied.
            let widest = best(&slopes, margin);
            if margin(widest) >= 0.0 {
                slope = widest;
            }
        }
        let (low, high) = self.values(slope);
        Some(Fit { line: Line { value: f64::midpoint(low, high), slope }, margin: (high - low) / 2.0 })
    }

    /// The least distance of a line to a bound; negative if it crosses one.
    pub(super) fn margin(&self, line: Line) -> f64 {
        let above = self.lower.iter().map(|&(time, bound)| line.at(time) - bound);
        let below = self.upper.iter().map(|&(time, bound)| bound - line.at(time));
        above.chain(below).fold(f64::INFINITY, f64::min)
    }

    /// The fit; but in a corridor that is [`WIDE`] for the largest amount of a violation, the line that moves a clock least over
    /// a run of a length, of those with a margin that is [`ENOUGH`]: its middle is no better a guess than any other line.
    pub(super) fn least(&self, fit: &Fit, worst: f64, length: f64) -> Line {
        if fit.margin <= WIDE * worst {
            return fit.line;
        }
        let enough = ENOUGH * worst;
        if self.margin(Line::default()) >= enough {
            return Line::default();
        }
        let size = self.lower.iter().chain(&self.upper).map(|point| point.1.abs()).fold(1.0, f64::max);
        let limit = 2.0 * (size + self.steepest * length);
        let mut found = None;
        Polygons::default().each(std::slice::from_ref(self), length, enough, limit, |polygon| found = nearest(polygon));
        found.map_or(fit.line, |(begin, end)| Line { value: begin, slope: (end - begin) / length })
    }

    /// The least and the largest value at a time of all lines that cross no bound, if `fit` does not.
    pub(super) fn range(&self, fit: &Fit, time: f64) -> Option<(f64, f64)> {
        if fit.margin < 0.0 {
            return None;
        }
        let mut slopes = self.slopes();
        let end = |outside: f64| {
            let (mut inside, mut outside) = (fit.line.slope, outside);
            if self.gap(outside) >= 0.0 {
                return outside;
            }
            for _ in 0..STEPS {
                let middle = f64::midpoint(inside, outside);
                if self.gap(middle) >= 0.0 {
                    inside = middle;
                } else {
                    outside = middle;
                }
            }
            inside
        };
        let (first, last) = (end(-self.steepest), end(self.steepest));
        slopes.retain(|&slope| first < slope && slope < last);
        slopes.extend([first, last]);
        let values = slopes.iter().map(|&slope| {
            let (low, high) = self.values(slope);
            (low + slope * time, high + slope * time)
        });
        Some(values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), at| (low.min(at.0), high.max(at.1))))
    }

    /// The largest margin; `None` if one side has no bounds.
    fn widest(&self) -> Option<f64> {
        let has_both = !self.lower.is_empty() && !self.upper.is_empty();
        has_both.then(|| self.slopes().into_iter().map(|slope| self.gap(slope) / 2.0).fold(f64::NEG_INFINITY, f64::max))
    }

    /// The slopes at which the margin has a corner, and the limits, in their order.
    fn slopes(&self) -> Vec<f64> {
        let edges = self.lower.windows(2).chain(self.upper.windows(2));
        let slopes = edges.map(|edge| (edge[1].1 - edge[0].1) / (edge[1].0 - edge[0].0));
        let mut slopes: Vec<f64> = slopes.filter(|slope| slope.abs() < self.steepest).collect();
        slopes.extend([-self.steepest, self.steepest]);
        slopes.sort_by(f64::total_cmp);
        slopes
    }

    /// Twice the margin of the best line with a slope.
    fn gap(&self, slope: f64) -> f64 {
        let (low, high) = self.values(slope);
        high - low
    }

    /// The values at time 0 of the lines with a slope that touch the lower and the upper bounds.
    fn values(&self, slope: f64) -> (f64, f64) {
        let touch = |hull: &[Point], side: f64| {
            let corner = partition(hull, |edge| side * (edge[1].1 - edge[0].1 - slope * (edge[1].0 - edge[0].0)) > 0.0);
            hull[corner].1 - slope * hull[corner].0
        };
        (touch(&self.lower, 1.0), touch(&self.upper, -1.0))
    }
}

/// The slope that is worth most; of equal ones that nearest to 0.
fn best(slopes: &[f64], worth: impl Fn(f64) -> f64) -> f64 {
    let worths: Vec<f64> = slopes.iter().map(|&slope| worth(slope)).collect();
    let most = worths.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // What differs only by rounding is equal.
    let is_best = |worth: f64| most - worth <= 1e-9 * most.abs().max(1.0);
    let of_best = slopes.iter().zip(&worths).filter(|(_, worth)| is_best(**worth)).map(|(slope, _)| *slope);
    of_best.min_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap_or(0.0)
}

/// Number of first edges for which something holds.
fn partition(hull: &[Point], holds: impl Fn(&[Point]) -> bool) -> usize {
    let (mut from, mut to) = (0, hull.len() - 1);
    while from < to {
        let middle = usize::midpoint(from, to);
        if holds(&hull[middle..middle + 2]) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    from
}

/// The upper hull of points (`side` 1), or the lower one (-1), by time.
pub(super) fn hull(mut points: Vec<Point>, side: f64) -> Vec<Point> {
    points.sort_by(|a, b| a.0.total_cmp(&b.0).then((side * b.1).total_cmp(&(side * a.1))));
    points.dedup_by(|next, kept| next.0.total_cmp(&kept.0).is_eq());
    let mut hull: Vec<Point> = Vec::new();
    for point in points {
        while let [.., a, b] = hull[..] {
            let turn = (b.0 - a.0) * (point.1 - a.1) - (point.0 - a.0) * (b.1 - a.1);
            if side * turn < 0.0 {
                break;
            }
            hull.pop();
        }
        hull.push(point);
    }
    hull
}

/// The piece of a time, if the time from 0 to `length` is cut into pieces of equal length; what is outside belongs to the first
/// and the last.
pub(super) fn piece(time: f64, length: f64, pieces: usize) -> usize {
    ((time * pieces as f64 / length).max(0.0) as usize).min(pieces - 1)
}

/// Fits a continuous line of pieces of equal length between 0 and `length`: its values at the knots. Bounds outside are
/// those of the first and the last piece. The margin is at least that of the present values, if these have possible drifts, and misses the
/// largest by less than `close`. If the bounds of one side are missing everywhere, nothing is fitted.
pub(super) fn fit_pieces(
    lower: &[Point],
    upper: &[Point],
    length: f64,
    pieces: usize,
    (present, close): (&dyn Fn(f64) -> f64, f64),
) -> Option<Vec<f64>> {
    if lower.is_empty() || upper.is_empty() {
        return None;
    }
    let width = length / pieces as f64;
    let piece = |time: f64| piece(time, length, pieces);
    let mut by_piece: Vec<(Vec<Point>, Vec<Point>)> = vec![<(Vec<Point>, Vec<Point>)>::default(); pieces];
    for &point in lower {
        by_piece[piece(point.0)].0.push(point);
    }
    for &point in upper {
        by_piece[piece(point.0)].1.push(point);
    }
    let corridors: Vec<Corridor> = by_piece.into_iter().map(|(lower, upper)| Corridor::new(lower, upper)).collect();
    let size = lower.iter().chain(upper).map(|point| point.1.abs()).fold(1.0, f64::max);
    let limit = size + STEEPEST * length;
    let mut polygons = Polygons::default();
    let above = lower.iter().map(|&(time, bound)| present(time) - bound);
    let below = upper.iter().map(|&(time, bound)| bound - present(time));
    // Rounding must not make what is possible impossible.
    let mut fits = above.chain(below).fold(f64::INFINITY, f64::min) - close / 2.0;
    if !polygons.each(&corridors, width, fits, 2.0 * limit, |_| ()) {
        // With this margin, the line 0 fits.
        fits = -size;
    }
    // No piece has a larger margin with others than alone.
    let widest = corridors.iter().filter_map(Corridor::widest).fold(2.0 * size + 1.0, f64::min);
    let mut fails = widest.max(fits) + close;
    for _ in 0..STEPS {
        if fails - fits <= close {
            break;
        }
        let middle = f64::midpoint(fits, fails);
        if polygons.each(&corridors, width, middle, 2.0 * limit, |_| ()) {
            fits = middle;
        } else {
            fails = middle;
        }
    }
    let mut found: Vec<Vec<Point>> = Vec::with_capacity(pieces);
    if !polygons.each(&corridors, width, fits, 2.0 * limit, |polygon| found.push(polygon.to_vec())) {
        return None;
    }
    let (low, high) = heights(found.last()?);
    let mut values = vec![f64::midpoint(low, high)];
    for polygon in found.iter().rev() {
        let next = values[values.len() - 1];
        let (low, high) = section(polygon, next);
        values.push(f64::midpoint(low, high));
    }
    values.reverse();
    Some(values)
}

/// The polygon that is being clipped, and room for the next.
#[derive(Default)]
struct Polygons {
    polygon: Vec<Point>,
    next: Vec<Point>,
}

impl Polygons {
    /// Passes on, for each piece, the values at its begin and end for which the line keeps a margin up to there; `false` if
    /// there are none.
    fn each(
        &mut self,
        corridors: &[Corridor],
        width: f64,
        margin: f64,
        limit: f64,
        mut pass: impl FnMut(&[Point]),
    ) -> bool {
        let (mut low, mut high) = (-limit, limit);
        for (number, corridor) in corridors.iter().enumerate() {
            self.polygon.clear();
            self.polygon.extend([(low, -limit), (high, -limit), (high, limit), (low, limit)]);
            let steepest = corridor.steepest * width;
            self.clip((1.0, -1.0, steepest));
            self.clip((-1.0, 1.0, steepest));
            for (points, side) in [(&corridor.lower, 1.0), (&corridor.upper, -1.0)] {
                for &(time, bound) in points {
                    let share = time / width - number as f64;
                    // side * ((1 - share) v + share w - bound) >= margin
                    self.clip((side * (1.0 - share), side * share, -side * bound - margin));
                }
            }
            if self.polygon.is_empty() {
                return false;
            }
            (low, high) = heights(&self.polygon);
            pass(&self.polygon);
        }
        true
    }

    /// Keeps the part of the polygon in which `a x + b y + c >= 0`.
    fn clip(&mut self, (a, b, c): (f64, f64, f64)) {
        let height = |point: Point| a * point.0 + b * point.1 + c;
        if self.polygon.iter().all(|&point| height(point) >= 0.0) {
            return;
        }
        self.next.clear();
        for (number, &point) in self.polygon.iter().enumerate() {
            let next = self.polygon[(number + 1) % self.polygon.len()];
            let (here, there) = (height(point), height(next));
            if here >= 0.0 {
                self.next.push(point);
            }
            if (here >= 0.0) != (there >= 0.0) {
                let share = here / (here - there);
                self.next.push((point.0 + share * (next.0 - point.0), point.1 + share * (next.1 - point.1)));
            }
        }
        std::mem::swap(&mut self.polygon, &mut self.next);
    }
}

/// The point on the edges of a polygon whose line, from its first coordinate to its second, is nearest to 0: its mean counts
/// as much as its change, because clocks are set wrong by far more than they drift in a run.
fn nearest(polygon: &[Point]) -> Option<Point> {
    let product = |a: Point, b: Point| f64::midpoint(a.0, a.1) * f64::midpoint(b.0, b.1) + (a.1 - a.0) * (b.1 - b.0);
    let edges = polygon.iter().zip(polygon.iter().cycle().skip(1));
    let on_edges = edges.map(|(&from, &to)| {
        let along = (to.0 - from.0, to.1 - from.1);
        let length = product(along, along);
        let share = if length > 0.0 { (-product(from, along) / length).clamp(0.0, 1.0) } else { 0.0 };
        (from.0 + share * along.0, from.1 + share * along.1)
    });
    on_edges.min_by(|&a, &b| product(a, a).total_cmp(&product(b, b)))
}

/// Least and largest second coordinate of a polygon.
fn heights(polygon: &[Point]) -> (f64, f64) {
    let values = polygon.iter().map(|point| point.1);
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
}

/// Least and largest first coordinate of a polygon where the second has a value, or the one next to it: rounding may have
/// moved it out of the polygon.
fn section(polygon: &[Point], value: f64) -> (f64, f64) {
    let (least, most) = heights(polygon);
    let value = value.clamp(least, most);
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for (number, &point) in polygon.iter().enumerate() {
        let next = polygon[(number + 1) % polygon.len()];
        let (a, b) = (point.1 - value, next.1 - value);
        let at = if a == 0.0 {
            point.0
        } else if (a < 0.0) != (b < 0.0) && b != 0.0 {
            point.0 + a / (a - b) * (next.0 - point.0)
        } else {
            continue;
        };
        (low, high) = (low.min(at), high.max(at));
    }
    (low, high)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// clocks.md, the example of a drift.
    #[test]
    fn a_drift_is_found_between_the_hulls() {
        let corridor = Corridor::new(vec![(10.251, -0.251), (110.751, -0.751)], vec![(20.1, 0.1), (120.6, -0.4)]);
        let fit = corridor.fit(100.0).unwrap();
        assert!((fit.margin - 0.2).abs() < 1e-12 && (fit.line.slope + 1.0 / 201.0).abs() < 1e-12);
        assert!(fit.line.at(0.0).abs() < 1e-12 && (corridor.margin(fit.line) - fit.margin).abs() < 1e-12);
    }

    /// clocks.md, the example of two pieces: one line does not fit.
    #[test]
    fn a_clock_that_bends_needs_two_pieces() {
        let lower = vec![(10.1, -0.1), (90.1, -0.1), (110.201, -0.201), (191.001, -1.001)];
        let upper = vec![(11.0, 0.1), (91.0, 0.1), (111.11, -0.01), (191.91, -0.81)];
        let fit = Corridor::new(lower.clone(), upper.clone()).fit(100.0).unwrap();
        assert!((fit.margin + 0.098_997).abs() < 1e-6, "{}", fit.margin);
        let values = fit_pieces(&lower, &upper, 200.0, 2, (&|_| 0.0, 1e-9)).unwrap();
        let expected = [0.0, 0.0, -1.0 / 1.01];
        assert!(values.iter().zip(expected).all(|(value, expected)| (value - expected).abs() < 1e-6), "{values:?}");
    }

    proptest! {
        /// No line on a fine grid is worth more, every feasible one lies within the range, and in a wide corridor
        /// none with a margin that is enough is nearer to 0 than the least one.
        #[test]
        fn no_line_is_better(
            lower in prop::collection::vec((0.0..100.0_f64, -1.0..0.2_f64), 1..12),
            upper in prop::collection::vec((0.0..100.0_f64, -0.2..1.0_f64), 1..12),
        ) {
            let corridor = Corridor::new(lower.clone(), upper.clone());
            let fit = corridor.fit(100.0).unwrap();
            let all = Corridor::of_hulls(lower, upper);
            prop_assert!((all.margin(fit.line) - fit.margin).abs() < 1e-9);
            let (worst, size) = (0.2, |line: Line| line.at(50.0).hypot(100.0 * line.slope));
            let (least, enough, is_wide) = (corridor.least(&fit, worst, 100.0), ENOUGH * worst, fit.margin > WIDE * worst);
            prop_assert!(all.margin(least) >= fit.margin.min(enough) - 1e-9);
            let (begin, end) = (corridor.range(&fit, 0.0), corridor.range(&fit, 100.0));
            for slope in (-40..=40).map(|step| f64::from(step) * STEEPEST / 40.0) {
                for value in (-60..=60).map(|step| f64::from(step) / 40.0) {
                    let line = Line { value, slope };
                    let margin = all.margin(line);
                    let worth = |margin: f64, slope: f64| margin - COST * 100.0 * slope.abs();
                    prop_assert!(worth(margin, slope) <= worth(fit.margin, fit.line.slope) + 1e-9 || margin < 0.0);
                    prop_assert!(margin < 0.0 || fit.margin >= 0.0);
                    prop_assert!(margin < enough || !is_wide || size(least) <= size(line) + 1e-9);
                    if margin >= 0.0 {
                        let ((low, high), (low_end, high_end)) = (begin.unwrap(), end.unwrap());
                        prop_assert!(low - 1e-9 <= value && value <= high + 1e-9);
                        prop_assert!(low_end - 1e-9 <= line.at(100.0) && line.at(100.0) <= high_end + 1e-9);
                    }
                }
            }
        }

        /// A run that is reversed, in which sources and targets change places, has the same fit.
        #[test]
        fn a_reversed_run_is_the_same(
            lower in prop::collection::vec((0.0..100.0_f64, -1.0..0.2_f64), 1..12),
            upper in prop::collection::vec((0.0..100.0_f64, -0.2..1.0_f64), 1..12),
        ) {
            let reversed = |points: &[Point]| points.iter().map(|&(time, bound)| (100.0 - time, -bound)).collect();
            let back = Corridor::new(reversed(&upper), reversed(&lower)).fit(100.0).unwrap();
            let fit = Corridor::new(lower, upper).fit(100.0).unwrap();
            prop_assert!((fit.margin - back.margin).abs() < 1e-6);
            prop_assert!((fit.line.at(0.0) + back.line.at(100.0)).abs() < 1e-6);
            prop_assert!((fit.line.at(100.0) + back.line.at(0.0)).abs() < 1e-6);
        }

        /// One piece is a line; more pieces never fit worse.
        #[test]
        fn pieces_are_no_worse_than_a_line(
            lower in prop::collection::vec((0.0..100.0_f64, -1.0..0.2_f64), 1..12),
            upper in prop::collection::vec((0.0..100.0_f64, -0.2..1.0_f64), 1..12),
        ) {
            let fit = Corridor::new(lower.clone(), upper.clone()).fit(100.0).unwrap();
            for pieces in [1, 2, 4] {
                let values = fit_pieces(&lower, &upper, 100.0, pieces, (&|_| 0.0, 1e-9)).unwrap();
                let at = |time: f64| {
                    let share = time / 100.0 * pieces as f64;
                    let piece = (share as usize).min(pieces - 1);
                    values[piece] + (share - piece as f64) * (values[piece + 1] - values[piece])
                };
                let above = lower.iter().map(|&(time, bound)| at(time) - bound);
                let margin = above.chain(upper.iter().map(|&(time, bound)| bound - at(time))).fold(f64::INFINITY, f64::min);
                prop_assert!(margin >= fit.margin - 1e-6, "{} pieces: {} < {}", pieces, margin, fit.margin);
                prop_assert!(pieces > 1 || margin <= fit.margin + COST * 100.0 * STEEPEST + 1e-6);
            }
        }
    }
}
