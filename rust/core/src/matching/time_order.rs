//! Rows of the locations of a process in the order of time.

use std::ops::Range;

/// Rows of all locations of a process in the order of time, as positions in the shard.
///
/// Within a location the records keep their order; only processes that communicate on several threads need a merge.
pub(super) fn in_time_order(ranges: &[Range<usize>], time: impl Fn(usize) -> i64) -> Vec<u32> {
    let mut order: Vec<u32> = ranges.iter().cloned().flatten().map(|row| row as u32).collect();
    if ranges.iter().filter(|range| !range.is_empty()).count() > 1 {
        order.sort_by_key(|&row| time(row as usize));
    }
    order
}
