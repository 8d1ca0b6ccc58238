//! Which records belong together: messages, members of collective operations.

pub mod collectives;
pub mod epochs;
pub mod messages;
pub mod windows;

use std::ops::Range;

/// Rows in flight during one round of an exchange take about this much memory at most.
const ROUND_BYTES: usize = 128 << 20;

/// Splits `owners` into contiguous ranges, one a round, so that `bytes` in all stay bounded in each.
fn rounds(owners: usize, bytes: usize) -> impl Iterator<Item = Range<u32>> {
    let count = bytes.div_ceil(ROUND_BYTES).clamp(1, owners.max(1));
    (0..count).map(move |i| (owners * i / count) as u32..(owners * (i + 1) / count) as u32)
}

/// The shard that evaluates the `sequence`-th instance of something: spread evenly, the same everywhere.
pub(crate) fn spread(something: u32, sequence: u32, shards: usize) -> u32 {
    let mixed = ((u64::from(something) << 32) | u64::from(sequence)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (((mixed >> 32) * shards as u64) >> 32) as u32
}

/// Rows of all locations of a process in the order of time, as positions in the shard.
///
/// Within a location the order of the records stands; only processes that communicate on several threads need a merge.
fn in_time_order(ranges: &[Range<usize>], time: impl Fn(usize) -> i64) -> Vec<u32> {
    let mut order: Vec<u32> = ranges.iter().cloned().flatten().map(|row| row as u32).collect();
    if ranges.iter().filter(|range| !range.is_empty()).count() > 1 {
        order.sort_by_key(|&row| time(row as usize));
    }
    order
}
