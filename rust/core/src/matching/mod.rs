//! Matching of records: messages, members of collective operations, and epochs of one-sided communication.

pub mod collectives;
pub mod epochs;
pub mod launches;
pub mod messages;
pub mod one_sided;
pub mod protocol;
pub mod queues;
pub mod windows;

use std::ops::Range;

use crate::exchange::Exchange;

/// Rows in flight during one round of an exchange take about this much memory at most. Little in tests, whose traces
/// are small: they see many rounds.
const ROUND_BYTES: usize = if cfg!(test) { 1 << 10 } else { 128 << 20 };

/// Rounds of an exchange, so that what is in flight stays bounded in each: every process serves some of its shards.
pub(crate) struct Rounds {
    /// How many.
    pub(crate) count: usize,
    /// The round of each shard.
    of: Vec<u32>,
}

impl Rounds {
    /// Rounds for an exchange of `bytes` in all.
    pub(crate) fn new(exchange: &Exchange, bytes: usize) -> Self {
        let sizes = || (0..exchange.processes()).map(|process| exchange.shards_of(process).len());
        let count = bytes.div_ceil(ROUND_BYTES).clamp(1, sizes().max().unwrap_or(0).max(1));
        let round = |size: usize| (0..size).map(move |i| (i * count / size) as u32);
        Self { count, of: sizes().flat_map(round).collect() }
    }

    /// The shards of this process whose turn it is in a round, as positions.
    pub(crate) fn own(&self, exchange: &Exchange, round: usize) -> Range<usize> {
        let own = exchange.own();
        let of = &self.of[own.start as usize..own.end as usize];
        let begin = |round: usize| of.partition_point(|&of| (of as usize) < round);
        begin(round)..begin(round + 1)
    }
}

/// The shard that evaluates the `sequence`-th instance of something: spread evenly, the same everywhere.
pub(crate) fn spread(something: u32, sequence: u32, shards: usize) -> u32 {
    let mixed = ((u64::from(something) << 32) | u64::from(sequence)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (((mixed >> 32) * shards as u64) >> 32) as u32
}

/// Rows of all locations of a process in the order of time, as positions in the shard.
///
/// Within a location the records keep their order; only processes that communicate on several threads need a merge.
fn in_time_order(ranges: &[Range<usize>], time: impl Fn(usize) -> i64) -> Vec<u32> {
    let mut order: Vec<u32> = ranges.iter().cloned().flatten().map(|row| row as u32).collect();
    if ranges.iter().filter(|range| !range.is_empty()).count() > 1 {
        order.sort_by_key(|&row| time(row as usize));
    }
    order
}
