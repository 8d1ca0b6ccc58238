//! Exchanges in several rounds, each with a bounded amount of data in flight.

use std::ops::Range;

use super::exchange::Exchange;

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

    /// Whether it is the turn of a shard in a round.
    pub(crate) fn serves(&self, shard: u32, round: usize) -> bool {
        self.of[shard as usize] as usize == round
    }

    /// The shards of this process whose turn it is in a round, as positions.
    pub(crate) fn own(&self, exchange: &Exchange, round: usize) -> Range<usize> {
        let own = exchange.own();
        let of = &self.of[own.start as usize..own.end as usize];
        let begin = |round: usize| of.partition_point(|&of| (of as usize) < round);
        begin(round)..begin(round + 1)
    }
}
