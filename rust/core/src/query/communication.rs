//! Communication by pairs of ranks (messages, one-sided transfers, and waiting), and by message size.
//!
//! *Pairs* of data are (source, destination). Pairs of *waiting* are (waiting rank, causing rank) for all wait states,
//! including those in collective operations.
//! *Blocks*: if there are more pairs than requested, neighboring ranks are merged into blocks of the smallest power of
//! two that suffices. So the pairs do not depend on how the run is divided into shards.
//!
//! *In flight*: from the record of the send to that of the receive, or from the start of a transfer to its end; at
//! least 0 despite clock errors.

use std::collections::BTreeMap;
use std::ops::Range;

use bitcode::{Decode, Encode};
use rayon::slice::ParallelSliceMut as _;
use rustc_hash::FxHashMap;

use crate::Result;
use crate::analysis::Analysis;
use crate::ids::{CallPathId, LocationId, ProcessId};
use crate::matching::{messages, transfers};
use crate::parallel::iter::prelude::*;
use crate::schema::MetricSet;
use crate::severity::Metric;
use crate::trace::Trace;
use crate::trace::columns::OperationKind;

/// Totals of some communication.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Traffic {
    /// Messages or transfers.
    pub count: u64,
    /// Sum of their bytes.
    pub bytes: u64,
    /// Sum of their times in flight, ticks.
    pub time: i128,
}

impl Traffic {
    fn one(bytes: u64, time: i64) -> Self {
        Self { count: 1, bytes, time: i128::from(time.max(0)) }
    }

    fn add(&mut self, other: &Self) {
        self.count += other.count;
        // A damaged record may claim any size.
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.time += other.time;
    }
}

/// Communication between two blocks of ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Pair {
    /// Messages from the first to the second.
    pub messages: Traffic,
    /// One-sided transfers from the first to the second.
    pub transfers: Traffic,
    /// Ticks that the first waits for the second.
    pub waiting: i128,
}

named! {
    /// Kinds of communication.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
    pub enum Kind {
        /// A message between two processes.
        Message = "message",
        /// A one-sided operation that writes.
        Put = "put",
        /// A one-sided operation that reads.
        Get = "get",
        /// A one-sided operation that changes data.
        Atomic = "atomic",
    }
}

/// Communication by pairs and by sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Communication {
    /// Ranks per block; 1 if ranks are not merged.
    pub block: u32,
    /// Pairs of blocks, sorted, each block given by its first rank.
    pub pairs: Vec<((u32, u32), Pair)>,
    /// Traffic by kind and size class, sorted: class 0 has no bytes, class n has sizes from 2^(n-1) to 2^n - 1.
    pub sizes: Vec<((Kind, u32), Traffic)>,
}

/// Sums communication in about `most` pairs; `waiting` are the metrics whose wait states count.
///
/// Of a `window` in ticks, what overlaps it counts, and counts whole: messages and transfers in flight, and calls that
/// wait. `callpaths` says for each call path whether the messages and transfers that it starts count, and its waits;
/// all count if it is empty. Collective.
pub fn find(
    analysis: &Analysis,
    waiting: &[Metric],
    most: usize,
    window: Option<&Range<i64>>,
    callpaths: &[bool],
) -> Result<Communication> {
    let counts_path = |callpath: CallPathId| callpaths.get(callpath.index()) != Some(&false);
    let overlaps = |begin: i64, end: i64| window.is_none_or(|window| begin < window.end && end > window.start);
    let trace = &analysis.trace;
    let (found, _) = messages::match_all(trace, |_, shard, matches| {
        let mut sums = Sums::new(most);
        for row in 0..shard.receives.rows.len() {
            let time = shard.receives.rows[row].time;
            if let Some(send) = matches
                .send(row)
                .filter(|send| counts_path(send.callpath) && overlaps(send.time, time.max(send.time + 1)))
            {
                let traffic = Traffic::one(send.bytes, time.saturating_sub(send.time));
                let rank = |process: ProcessId| trace.definitions.processes[process].rank;
                sums.pair((rank(send.source), rank(send.destination)), |pair| pair.messages.add(&traffic));
                sums.size(Kind::Message, &traffic);
            }
        }
        sums
    })?;
    let transfers = transfers::of_shards(trace, &analysis.epochs, |transfers| {
        let mut sums = Sums::new(most);
        for transfer in transfers {
            let kind = match transfer.kind {
                OperationKind::Put => Kind::Put,
                OperationKind::Get => Kind::Get,
                OperationKind::Atomic | OperationKind::FetchingAtomic => Kind::Atomic,
            };
            let end = transfer.end.unwrap_or(transfer.time);
            if !counts_path(transfer.callpath) || !overlaps(transfer.time, end.max(transfer.time + 1)) {
                continue;
            }
            let traffic = Traffic::one(transfer.bytes, end.saturating_sub(transfer.time));
            if let (Some(from), Some(to)) = (rank_of(trace, transfer.source), rank_of(trace, transfer.destination)) {
                sums.pair((from, to), |pair| pair.transfers.add(&traffic));
            }
            sums.size(kind, &traffic);
        }
        sums
    })?;
    let counts = Metric::marked(waiting.iter().copied());
    let of_waits = |shard| {
        let mut sums = Sums::new(most);
        let waits = analysis.waits.of(shard).1;
        let inside = waits.iter().filter(|wait| {
            let shard = trace.shard(wait.location);
            counts_path(shard.callpath(wait.instance))
                && overlaps(shard.enter(wait.instance), shard.leave(wait.instance))
        });
        // A host that waits for its own device waits for no rank.
        let between = inside.filter(|wait| counts[wait.kind.number()] && wait.kind != Metric::GpuHostWait);
        for wait in between.filter(|wait| wait.cause_location.is_some()) {
            let ranks = (rank_of(trace, wait.location), rank_of(trace, wait.cause_location));
            if let (Some(waiter), Some(cause)) = ranks {
                sums.pair((waiter, cause), |pair| pair.waiting += i128::from(wait.waiting));
            }
        }
        sums
    };
    let mut parts: Vec<Sums> = (0..trace.shards.len()).into_par_iter().map(of_waits).collect();
    parts.extend(found);
    parts.extend(transfers);
    if trace.exchange.processes() > 1 {
        parts = trace.exchange.gather(Sums::merged(parts, most))?;
    }
    Ok(total(parts, most))
}

fn rank_of(trace: &Trace, location: LocationId) -> Option<u32> {
    let process = trace.definitions.locations.get(location.index())?.process;
    Some(trace.definitions.processes.get(process.index())?.rank)
}

/// The class of a size: 0 for none, else the number of its binary digits.
fn class(bytes: u64) -> u32 {
    u64::BITS - bytes.leading_zeros()
}

#[derive(Encode, Decode)]
struct Sums {
    most: usize,
    /// A block has two to the power of this many ranks.
    shift: u32,
    pairs: FxHashMap<(u32, u32), Pair>,
    sizes: FxHashMap<(Kind, u32), Traffic>,
}

impl Sums {
    fn new(most: usize) -> Self {
        Self { most: most.max(1), shift: 0, pairs: FxHashMap::default(), sizes: FxHashMap::default() }
    }

    fn pair(&mut self, ranks: (u32, u32), add: impl FnOnce(&mut Pair)) {
        add(self.pairs.entry((ranks.0 >> self.shift, ranks.1 >> self.shift)).or_default());
        while self.pairs.len() > self.most && self.shift < u32::BITS - 1 {
            self.coarsen();
        }
    }

    /// The sums of several shards.
    #[expect(clippy::iter_over_hash_type, reason = "sums do not depend on the order")]
    fn merged(parts: Vec<Self>, most: usize) -> Self {
        let mut all = Self::new(most);
        for part in parts {
            while all.shift < part.shift {
                all.coarsen();
            }
            for ((from, to), pair) in part.pairs {
                all.pair((from << part.shift, to << part.shift), |sum| sum.merge(&pair));
            }
            for (key, traffic) in part.sizes {
                all.sizes.entry(key).or_default().add(&traffic);
            }
        }
        all
    }

    fn size(&mut self, kind: Kind, traffic: &Traffic) {
        self.sizes.entry((kind, class(traffic.bytes))).or_default().add(traffic);
    }

    #[expect(clippy::iter_over_hash_type, reason = "sums do not depend on the order")]
    fn coarsen(&mut self) {
        self.shift += 1;
        for ((from, to), pair) in std::mem::take(&mut self.pairs) {
            self.pairs.entry((from >> 1, to >> 1)).or_default().merge(&pair);
        }
    }
}

/// The total of all parts.
fn total(parts: Vec<Sums>, most: usize) -> Communication {
    let mut shift = parts.iter().map(|part| part.shift).max().unwrap_or(0);
    let mut sizes = BTreeMap::<_, Traffic>::new();
    for (&key, traffic) in parts.iter().flat_map(|part| &part.sizes) {
        sizes.entry(key).or_default().add(traffic);
    }
    // Most pairs are in one part only, so sorting them together is quicker than adding one part to another.
    let mut pairs = Vec::with_capacity(parts.iter().map(|part| part.pairs.len()).sum());
    for part in parts {
        let by = shift - part.shift;
        pairs.extend(part.pairs.into_iter().map(|((from, to), pair)| ((from >> by, to >> by), pair)));
    }
    loop {
        pairs.par_sort_unstable_by_key(|&(blocks, _)| blocks);
        pairs.dedup_by(|(next, pair), (blocks, sum)| {
            next == blocks && {
                sum.merge(pair);
                true
            }
        });
        if pairs.len() <= most.max(1) || shift == u32::BITS - 1 {
            break;
        }
        shift += 1;
        for ((from, to), _) in &mut pairs {
            (*from, *to) = (*from >> 1, *to >> 1);
        }
    }
    for ((from, to), _) in &mut pairs {
        (*from, *to) = (*from << shift, *to << shift);
    }
    Communication { block: 1 << shift, pairs, sizes: sizes.into_iter().collect() }
}

impl Pair {
    fn merge(&mut self, other: &Self) {
        self.messages.add(&other.messages);
        self.transfers.add(&other.transfers);
        self.waiting += other.waiting;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(most: usize, pairs: &[(u32, u32)]) -> Sums {
        let mut sums = Sums::new(most);
        for &ranks in pairs {
            sums.pair(ranks, |pair| pair.messages.add(&Traffic::one(3, 2)));
        }
        sums
    }

    #[test]
    fn classes_of_sizes_double() {
        assert_eq!([0, 1, 2, 3, 4, 1023, 1024].map(class), [0, 1, 2, 2, 3, 10, 11]);
        assert_eq!(class(u64::MAX), 64);
    }

    #[test]
    fn blocks_are_as_small_as_they_can_be_whatever_the_order() {
        let pairs: Vec<(u32, u32)> = (0..64).flat_map(|from| [(from, from ^ 1), (from, (from + 8) % 64)]).collect();
        let found = |most| total(vec![sums(most, &pairs)], most);
        let expected = found(40);
        assert_eq!(expected.block, 4);
        assert!(found(128).block == 1 && found(expected.pairs.len()).block == 4 && found(1).block == 64);
        assert_eq!(expected.pairs.iter().map(|(_, pair)| pair.messages.count).sum::<u64>(), 128);
        let reversed: Vec<_> = pairs.iter().rev().copied().collect();
        assert_eq!(total(vec![sums(40, &reversed)], 40), expected);
        for cut in [1, 30, 100] {
            assert_eq!(total(vec![sums(40, &pairs[..cut]), sums(40, &pairs[cut..])], 40), expected);
        }
    }
}
