//! The longest wait states.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::wait_state::WaitState;
use crate::parallel::iter::prelude::*;
use crate::parallel::per_shard::PerShard;
use crate::schema::MetricSet;
use crate::severity::Metric;

/// The longest wait states so far, each with its row, and with the shortest of them on top.
pub(crate) type Longest = BinaryHeap<Reverse<(i64, Reverse<usize>)>>;

/// Returns the positions of the longest wait states of each kind, in ascending order.
///
/// There are at most `count` of a kind. If several are equally long, the first are returned.
pub fn of_each_kind(waits: &PerShard<WaitState>, count: usize) -> Vec<usize> {
    let shards: Vec<_> = waits.of_shards().enumerate().collect();
    let of_shards: Vec<Vec<Longest>> = shards
        .into_par_iter()
        .map(|(shard, rows)| {
            let mut kinds = vec![Longest::new(); Metric::ALL.len()];
            for (row, wait) in (waits.of(shard).0..).zip(rows) {
                keep(&mut kinds[wait.kind.number()], (wait.waiting, Reverse(row)), count);
            }
            kinds
        })
        .collect();
    let mut kinds = vec![Longest::new(); Metric::ALL.len()];
    for (kind, longest) in of_shards.into_iter().flat_map(|of_shard| of_shard.into_iter().enumerate()) {
        for Reverse(wait) in longest {
            keep(&mut kinds[kind], wait, count);
        }
    }
    let mut rows: Vec<usize> = kinds.into_iter().flatten().map(|Reverse((_, Reverse(row)))| row).collect();
    rows.sort_unstable();
    rows
}

/// Adds a wait state if it is among the `count` longest; of equally long ones, those in earlier rows are kept.
pub(crate) fn keep(longest: &mut Longest, wait: (i64, Reverse<usize>), count: usize) {
    if longest.len() < count {
        longest.push(Reverse(wait));
    } else if let Some(mut shortest) = longest.peek_mut()
        && shortest.0 < wait
    {
        *shortest = Reverse(wait);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ids::{InstanceId, LocationId};

    proptest! {
        #[test]
        fn equals_sorting_each_kind(
            parts in prop::collection::vec(prop::collection::vec((0u8..2, 0i64..20), 0..40), 0..4),
            count in 0usize..9,
        ) {
            let wait = |&(kind, waiting): &(u8, i64)| {
                let kind = if kind == 0 { Metric::LateSender } else { Metric::WaitNxN };
                WaitState::new(kind, (LocationId::new(0), InstanceId::new(0)), waiting, (LocationId::NONE, InstanceId::NONE))
            };
            let waits = PerShard::new(parts.iter().map(|part| part.iter().map(wait).collect()).collect());
            let mut expected = Vec::new();
            for kind in [Metric::LateSender, Metric::WaitNxN] {
                let mut rows: Vec<_> = waits.iter().enumerate().filter(|(_, wait)| wait.kind == kind).collect();
                rows.sort_by_key(|(_, wait)| Reverse(wait.waiting));
                expected.extend(rows.iter().take(count).map(|&(row, _)| row));
            }
            expected.sort_unstable();
            prop_assert_eq!(of_each_kind(&waits, count), expected);
        }
    }
}
