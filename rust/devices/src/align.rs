//! Which operations of two ranks are the same where only their order is known: windows begin at different ones.

use std::cmp::Reverse;

use crate::kinds::{Flow, Kind};

/// Windows differ by at most this many operations.
pub const FURTHEST: i64 = 64;
/// Two clocks may differ by this much, ns.
pub const BETWEEN_CLOCKS: i64 = 10_000_000;

/// What is compared of an operation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Item {
    /// What it does.
    pub(crate) kind: Kind,
    /// Elements of this member; 0 if unknown.
    pub(crate) elements: u64,
    /// When this member begins and ends, ns.
    pub(crate) begin: i64,
    /// See `begin`.
    pub(crate) end: i64,
    /// The step in which it was issued.
    pub(crate) step: Option<i64>,
    /// Whether this member is the root.
    pub(crate) is_root: bool,
    /// Whether it does nothing else: one of several messages may end long before its kernel.
    pub(crate) is_alone: bool,
}

/// Whether two members can be of one instance, with clocks that differ by at most `tolerance`.
fn is_possible(a: &Item, b: &Item, tolerance: i64) -> bool {
    // What one of them has to wait for has begun when it ends.
    let needs = |one: &Item, other: &Item| other.begin <= one.end.saturating_add(tolerance);
    match a.kind.flow() {
        Flow::AllToAll => needs(a, b) && needs(b, a),
        Flow::OneToAll => (!b.is_root || needs(a, b)) && (!a.is_root || needs(b, a)),
        Flow::AllToOne => (!a.is_root || needs(a, b)) && (!b.is_root || needs(b, a)),
        Flow::Message => match (a.kind, b.kind) {
            (Kind::Send, Kind::Receive) => needs(b, a),
            (Kind::Receive, Kind::Send) => needs(a, b),
            _ => true,
        },
    }
}

fn is_alike(a: &Item, b: &Item) -> bool {
    let is_pair = a.kind.is_message() && b.kind.is_message();
    // Members of these may have different numbers of elements.
    let differs = matches!(a.kind, Kind::AllToAll | Kind::AllGather | Kind::Gather | Kind::Scatter | Kind::Other);
    (a.kind.common(b.kind).is_some() || is_pair)
        && (differs || a.elements == b.elements || a.elements == 0 || b.elements == 0)
}

/// How well two lists agree at a shift.
#[derive(Debug, Clone, Copy)]
struct Fit {
    shift: i64,
    /// Pairs that are of one time, or need not be.
    overlapping: usize,
    /// Pairs that are of different steps.
    of_other_steps: usize,
    /// How far the ends of those are apart on average that end together, beyond what all are apart between two nodes, us.
    distance: i64,
    /// How far all are apart, ns.
    offset: i64,
}

/// The number to add to the place of an operation in the first list for that in the second; `None` if they do not agree.
///
/// `tolerance` is by how much clocks may differ; where they may differ by more (two nodes), times only have to agree among
/// themselves.
pub(crate) fn shift(first: &[Item], second: &[Item], is_one_clock: bool) -> Option<i64> {
    let by_time = best(first, second, Some(if is_one_clock { 0 } else { BETWEEN_CLOCKS }), is_one_clock);
    if is_one_clock { by_time } else { by_time.or_else(|| best(first, second, None, false)) }
}

fn best(first: &[Item], second: &[Item], tolerance: Option<i64>, is_one_clock: bool) -> Option<i64> {
    let mut fits = Vec::new();
    for shift in -FURTHEST..=FURTHEST {
        let from = 0.max(-shift) as usize;
        let other = &second[second.len().min(shift.max(0) as usize)..];
        let pairs = || first.get(from..).unwrap_or_default().iter().zip(other);
        let count = pairs().len();
        let mut misses = 0;
        let agrees = pairs().all(|(a, b)| {
            let agrees = is_alike(a, b) && tolerance.is_none_or(|tolerance| is_possible(a, b, tolerance));
            misses += usize::from(!agrees);
            misses * 100 <= count
        });
        if count == 0 || !agrees {
            continue;
        }
        // Members of a rooted operation end when they have done their part.
        let end_together = |(a, b): &(&Item, &Item)| {
            a.is_alone && b.is_alone && matches!(a.kind.flow(), Flow::AllToAll | Flow::Message)
        };
        let mut apart: Vec<i64> = pairs().filter(end_together).map(|(a, b)| a.end - b.end).collect();
        let middle = apart.len() / 2;
        let offset = if apart.is_empty() { 0 } else { *apart.select_nth_unstable(middle).1 };
        let clocks = if is_one_clock { 0 } else { offset };
        let sum: i128 = apart.iter().map(|apart| i128::from((apart - clocks).abs())).sum();
        let distance = (sum / apart.len().max(1) as i128 / 1000) as i64;
        let differ = |(a, b): &(&Item, &Item)| a.step.is_some() && b.step.is_some() && a.step != b.step;
        let of_other_steps = pairs().filter(differ).count();
        let clocks_differ = tolerance.unwrap_or(i64::MAX);
        let is_of_one_time =
            |a: &Item, b: &Item| a.begin.max(b.begin) <= a.end.min(b.end).saturating_add(clocks_differ);
        let overlapping = pairs().filter(|pair| !end_together(pair) || is_of_one_time(pair.0, pair.1)).count();
        fits.push(Fit { shift, overlapping, of_other_steps, distance, offset: offset.abs() });
    }
    let most = fits.iter().map(|fit| fit.overlapping).max()?;
    // Few pairs may agree by chance; of operations in close succession, the neighbor overlaps as well.
    let candidates = fits.into_iter().filter(|fit| fit.overlapping + (most / 10).max(1) >= most);
    let order = |fit: &Fit| {
        (fit.distance, fit.of_other_steps, Reverse(fit.overlapping), fit.offset, fit.shift.abs(), fit.shift)
    };
    candidates.min_by_key(order).map(|fit| fit.shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(kind: Kind, begin: i64) -> Item {
        Item { kind, elements: 10, begin, end: begin + 20, step: None, is_root: false, is_alone: true }
    }

    /// Every 100, alternating kinds, from the operation with this number.
    fn list(from: i64, to: i64, late: i64) -> Vec<Item> {
        let kind = |number| if number % 3 == 0 { Kind::AllGather } else { Kind::AllReduce };
        (from..to).map(|number| item(kind(number), number * 100 + late)).collect()
    }

    #[test]
    fn windows_that_begin_apart_are_aligned() {
        assert_eq!(shift(&list(0, 10, 0), &list(0, 10, 5), true), Some(0));
        assert_eq!(shift(&list(0, 10, 0), &list(4, 12, 5), true), Some(-4));
        assert_eq!(shift(&list(4, 12, 0), &list(0, 10, 5), true), Some(4));
        assert_eq!(shift(&list(0, 3, 0), &list(5, 9, 0), true), None, "no operation is in both");
    }

    #[test]
    fn clocks_of_two_nodes_may_differ_by_more_than_operations_take() {
        assert_eq!(shift(&list(0, 20, 0), &list(3, 20, 70), false), Some(-3));
        let far = 50_000_000;
        assert_eq!(shift(&list(0, 20, 0), &list(3, 20, far), false).map(|shift| shift % 3), Some(0));
    }

    #[test]
    fn steps_tell_what_kernels_of_several_messages_do_not() {
        // The receiver waits for another sender besides: its kernels end with the next ones of this sender.
        let of_step =
            |step: i64, kind, late| Item { step: Some(step), is_alone: false, ..item(kind, 100 * step + late) };
        let sends: Vec<Item> = (0..3).map(|step| of_step(step, Kind::Send, 0)).collect();
        let waits = |step| Item { end: 100 * step + 110, ..of_step(step, Kind::Receive, 0) };
        let receives: Vec<Item> = (0..3).map(waits).collect();
        assert_eq!(shift(&sends, &receives, true), Some(0));
        assert_eq!(shift(&sends[1..], &receives, true), Some(1));
    }

    #[test]
    fn other_kinds_are_not_the_same_operation() {
        let other: Vec<Item> = (0..10).map(|number| item(Kind::Barrier, number * 100)).collect();
        assert_eq!(shift(&list(0, 10, 0), &other, true), None);
    }
}
