//! Who waits inside a collective operation with a root for another member of the tree that the library makes it of.
//!
//! ```text
//!  0 (root)  [ Reduce                |.]
//!  1         --[ Reduce        |.]           leaves right after 3 has come: waits for it
//!  2         ---------[.]
//!  3         ------------------[.]
//! ```
//!
//! No record tells the tree. That a member leaves right after another one comes, and not before, proves it: it does not do so
//! by chance.
//!
//! *Source*: specification.md#trees.

use std::cmp::Reverse;

/// A member's part in an operation with a root.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    /// Begin, ticks.
    pub begin: i64,
    /// End, ticks.
    pub end: i64,
    /// Whether it has data that the operation moves.
    pub has_data: bool,
}

/// Of so many calls that end at any time, at most one ends that soon after another member comes.
const CHANCE: i128 = 5;

/// Calls `found` with each member that waits for another one, and that one: the last that comes before it leaves. `order` is
/// for reuse.
pub(crate) fn inner_waits(
    (root, members): (usize, usize),
    part: impl Fn(usize) -> Part,
    order: &mut Vec<u32>,
    mut found: impl FnMut(usize, usize),
) {
    let begin = |&i: &u32| part(i as usize).begin;
    order.clear();
    order.extend((0..members as u32).filter(|&i| i as usize == root || part(i as usize).has_data));
    order.sort_unstable_by_key(|&i| (begin(&i), Reverse(i)));
    for i in (0..members).filter(|&i| i != root) {
        let own = part(i);
        if !own.has_data {
            continue;
        }
        let come = order.partition_point(|one| begin(one) <= own.begin);
        let before = order.partition_point(|one| begin(one) < own.end);
        if before <= come {
            continue;
        }
        let last = order[before - 1] as usize;
        let left = i128::from(own.end - part(last).begin);
        if CHANCE * left * (before - come) as i128 <= i128::from(own.end - own.begin) {
            found(i, last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(root: usize, times: &[(i64, i64)]) -> Vec<(usize, usize)> {
        let mut waits = Vec::new();
        let part = |i: usize| Part { begin: times[i].0, end: times[i].1, has_data: true };
        inner_waits((root, times.len()), part, &mut Vec::new(), |i, cause| waits.push((i, cause)));
        waits
    }

    #[test]
    fn a_member_that_leaves_right_after_another_one_comes_waits_for_it() {
        let staircase = [(0, 104), (20, 101), (40, 81), (60, 61), (80, 81), (100, 101)];
        assert_eq!(of(0, &staircase), [(1, 5), (2, 4)]);
    }

    #[test]
    fn a_member_that_leaves_some_time_after_another_one_comes_may_have_waited_for_nobody() {
        assert!(of(0, &[(0, 200), (20, 125), (100, 101)]).is_empty());
        // As many as come, one of them does so right before.
        let mut crowd: Vec<(i64, i64)> = (0..100).map(|i| (i, i + 1)).collect();
        crowd.push((0, 51));
        assert!(of(0, &crowd).is_empty());
    }
}
