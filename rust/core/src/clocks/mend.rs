//! Lines that satisfy all constraints, near lines that nearly do.
//!
//! Where lines are fitted one after another, none may be able to move without the others, although some constraints are
//! violated. The lines that satisfy one constraint are a half-space. Moving lines that violate one into its half-space, the shortest
//! way and again and again, ends at lines that satisfy all, if there are any that do so by more than their rounding.
//!
//! *Source*: T. S. Motzkin, I. J. Schoenberg: The relaxation method for linear inequalities, Canadian Journal of Mathematics
//! 6, 1954.

use super::nearest::{Ends, dot};
use super::pairs::Arc;

/// How often all arcs are visited at most, and how many visits of arcs are affordable.
const ROUNDS: usize = 2_000;
const VISITS: usize = 10_000_000;
/// Ticks by which arcs must be satisfied, since both times are rounded, and by which they are when lines have moved.
const NEEDED: f64 = 1.0;
const AIM: f64 = 2.0;
/// How far lines move beyond what one arc demands, as a factor: what all demand is mostly further away. Less than 2.
const BEYOND: f64 = 1.9;

/// Moves the lines of clocks that are not fixed until they satisfy all arcs, as long as that is affordable. Lines drift by at most
/// `steepest`.
pub(super) fn mend(arcs: &[Arc], is_fixed: &[bool], lines: &mut [Ends], (length, steepest): (f64, f64)) {
    let limit = steepest * length;
    for _ in 0..ROUNDS.min(VISITS / arcs.len().max(1)) {
        let mut is_satisfied = true;
        for arc in arcs {
            let (from, to) = (arc.from as usize, arc.to as usize);
            let row = |time: f64| (1.0 - time / length, time / length);
            let (sent, received) = (row(arc.sent), row(arc.received));
            let slack = arc.received + dot(received, lines[to]) - arc.sent - dot(sent, lines[from]);
            if slack >= NEEDED {
                continue;
            }
            let sides = [(from, sent, -1.0), (to, received, 1.0)];
            let free = || sides.iter().filter(|(clock, ..)| !is_fixed[*clock]);
            let reach: f64 = free().map(|(_, row, _)| dot(*row, *row)).sum();
            for &(clock, row, sign) in free() {
                is_satisfied = false;
                let force = BEYOND * sign * (AIM - slack) / reach;
                let (begin, end) = (lines[clock].0 + force * row.0, lines[clock].1 + force * row.1);
                let (middle, drift) = (f64::midpoint(begin, end), (end - begin).clamp(-limit, limit));
                lines[clock] = (middle - drift / 2.0, middle + drift / 2.0);
            }
        }
        if is_satisfied {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clock 2 can only move if clock 1 does, which its arcs with clock 0 allow.
    #[test]
    fn clocks_that_must_move_together_do() {
        let arc = |from, to, sent, received| Arc { from, to, sent, received };
        let times = [100.0, 500.0, 900.0];
        let arcs: Vec<Arc> = times
            .into_iter()
            .flat_map(|time| {
                let (near, far) = (time - 5.0, time + 50.0);
                [
                    arc(0, 1, time, far),
                    arc(1, 0, time, time - 20.0),
                    arc(1, 2, time, near),
                    arc(2, 1, time, time + 15.0),
                ]
            })
            .collect();
        let slack = |arc: &Arc, lines: &[Ends]| {
            let at = |clock: u32, time: f64| {
                let (begin, end) = lines[clock as usize];
                begin + time / 1000.0 * (end - begin)
            };
            arc.received + at(arc.to, arc.received) - arc.sent - at(arc.from, arc.sent)
        };
        let mut lines = vec![(0.0, 0.0); 3];
        mend(&arcs, &[true, false, false], &mut lines, (1000.0, 0.01));
        assert!(arcs.iter().all(|arc| slack(arc, &lines) >= NEEDED), "{lines:?}");
        assert!(lines[0] == (0.0, 0.0) && lines.iter().all(|(begin, end)| (end - begin).abs() <= 10.0));
    }
}
