//! The second pass: what came before a jump is moved towards it.

use std::collections::BTreeMap;

use super::logical::{SLOPE, between, decayed, shift};

/// What is added before each jump of a clock, as [`knots`](super::logical::Logical::knots). `shifted` has the times of its
/// places, and `caps` how far they may move.
pub(super) fn backward(jumps: &[(i64, i64)], begin: i64, shifted: &[i64], caps: &[i64]) -> Vec<(i64, i64, i64)> {
    let mut added: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
    let mut before: Option<(i64, i64)> = None;
    let first = begin;
    let begin = first + shift(jumps, first);
    for &(time, shift) in jumps {
        let own = before.map_or(0, |last| decayed(last, time));
        before = Some((time, shift));
        if time <= first {
            continue;
        }
        let (jump, right) = (shift - own, time + own);
        let left = right - jump.saturating_mul(SLOPE);
        let mut points = Vec::new();
        if left < begin {
            points.push((begin, jump - (right - begin) / SLOPE));
        } else {
            points.push((left, 0));
        }
        let first = points[0].0;
        let within = shifted.partition_point(|&at| at < first)..shifted.partition_point(|&at| at < right);
        for (&at, &cap) in shifted[within.clone()].iter().zip(&caps[within]).filter(|(_, cap)| **cap < i64::MAX) {
            points.push((at, (cap - value(&added, at)).max(0)));
        }
        points.push((right, jump));
        // What is added never decreases, so a limit holds for all that is before it.
        for number in (1..points.len()).rev() {
            points[number - 1].1 = points[number - 1].1.min(points[number].1);
        }
        add(&mut added, &lower_hull(points), left < begin);
    }
    added.into_iter().map(|(at, (until, from))| (at, until, from)).collect()
}

/// The value at a time: that until there, if it is a knot.
fn value(added: &BTreeMap<i64, (i64, i64)>, at: i64) -> i64 {
    match (added.range(..at).next_back(), added.range(at..).next()) {
        (_, Some((&next, &(until, _)))) if next == at => until,
        (Some((&begin, &(_, from))), Some((&end, &(to, _)))) => between((begin, 0, from), (end, to, 0), at),
        _ => 0,
    }
}

/// Adds a hull of points to what is added. If it `begins_there`, nothing is before its first point.
fn add(added: &mut BTreeMap<i64, (i64, i64)>, hull: &[(i64, i64)], begins_there: bool) {
    let (first, last) = (hull[0].0, hull[hull.len() - 1].0);
    for &(at, _) in hull {
        if !added.contains_key(&at) {
            let now = value(added, at);
            added.insert(at, (now, now));
        }
    }
    let mut edge = 0;
    for (&at, (until, from)) in added.range_mut(first..=last) {
        while edge + 2 < hull.len() && hull[edge + 1].0 < at {
            edge += 1;
        }
        let more = if hull.len() == 1 {
            hull[0].1
        } else {
            let ((begin, low), (end, high)) = (hull[edge], hull[edge + 1]);
            between((begin, 0, low), (end, high, 0), at)
        };
        if at > first || begins_there {
            *until += more;
        }
        if at < last {
            *from += more;
        }
    }
}

/// The lower convex hull of points by time; of several at one time, the lowest counts.
fn lower_hull(points: Vec<(i64, i64)>) -> Vec<(i64, i64)> {
    let mut hull: Vec<(i64, i64)> = Vec::with_capacity(points.len());
    for point in points {
        if hull.last().is_some_and(|last| last.0 == point.0) {
            // Not the jump itself, which is the highest.
            continue;
        }
        while let [.., a, b] = hull[..] {
            let turn =
                i128::from(b.0 - a.0) * i128::from(point.1 - a.1) - i128::from(point.0 - a.0) * i128::from(b.1 - a.1);
            if turn > 0 {
                break;
            }
            hull.pop();
        }
        hull.push(point);
    }
    hull
}
