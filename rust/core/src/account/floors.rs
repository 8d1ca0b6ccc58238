//! What calls need: the fastest 5% of the calls of their kind.
//!
//! Noise only lengthens calls, so a low quantile says what the machine can do. Histograms of the lengths of all calls of
//! the run, 32 bins for each doubling, give the quantiles: a floor is at most 3% below the exact quantile, and the same
//! for any number of processes.

use bitcode::{Decode, Encode};
use rustc_hash::FxHashMap;

use crate::Result;
use crate::ids::RegionKey;
use crate::parallel::exchange::Exchange;

/// Calls that are compared with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
pub struct Kind {
    /// The region that is called; one for all of the same name.
    pub region: RegionKey,
    /// Whether the call waited, or the message had not been there for as long as a hidden transfer needs.
    pub exposed: bool,
    /// Whether all processes that it communicates with are on its node.
    pub local: bool,
    /// Members of the communicator of a collective operation, as the logarithm of the next power of two; otherwise 0.
    pub members: u8,
    /// Class of the bytes that it sends, receives or completes: 0 without data, else one more than their logarithm.
    pub size: u8,
}

impl Kind {
    /// The bytes of its calls: at least, and less than.
    pub fn bytes(&self) -> (u64, u64) {
        match self.size {
            0 => (0, 1),
            size => (1 << (size - 1), 1 << size),
        }
    }

    /// All of it as one number, which differs between kinds.
    #[inline]
    pub(super) fn key(self) -> u64 {
        let flags = u64::from(self.exposed) << 1 | u64::from(self.local);
        u64::from(self.region.number()) << 18 | flags << 16 | u64::from(self.members) << 8 | u64::from(self.size)
    }

    /// The class of a number of bytes.
    pub(super) fn size_of(bytes: u64) -> u8 {
        bytes.checked_ilog2().map_or(0, |log| log as u8 + 1)
    }
}

named! {
    /// Where a floor comes from.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Basis {
        /// The 5% quantile of at least 20 calls.
        Quantile = "quantile",
        /// The shortest of 5 to 19 calls.
        Few = "few",
        /// The floor of the calls with the nearest number of bytes: there are fewer than 5.
        Nearest = "nearest",
        /// Nothing: there are too few calls, and all of their time counts as needed.
        Nothing = "none",
        /// The 5% quantile, but the clocks disagree about many messages.
        Clocks = "clocks",
    }
}

/// Bins of a doubling, as a logarithm.
const BINS: u32 = 5;

/// The bin of a length.
fn bin_of(length: i64) -> usize {
    let length = length.max(0) as u64;
    let octave = length.checked_ilog2().unwrap_or(0).saturating_sub(BINS);
    ((u64::from(octave) << BINS) + (length >> octave)) as usize
}

/// The shortest length in a bin.
fn begin_of(bin: usize) -> i64 {
    let octave = (bin >> BINS).saturating_sub(1);
    ((bin - (octave << BINS)) as i64) << octave
}

/// How long the calls of a kind take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Histogram {
    bins: Vec<u32>,
    calls: u64,
    shortest: i64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { bins: Vec::new(), calls: 0, shortest: i64::MAX }
    }
}

impl Histogram {
    #[inline]
    pub(super) fn add(&mut self, length: i64) {
        let bin = bin_of(length);
        if bin >= self.bins.len() {
            self.bins.resize(bin + 1, 0);
        }
        self.bins[bin] += 1;
        self.calls += 1;
        self.shortest = self.shortest.min(length);
    }

    fn merge(&mut self, other: &Packed) {
        for &(bin, calls) in &other.bins {
            let bin = usize::from(bin);
            if bin >= self.bins.len() {
                self.bins.resize(bin + 1, 0);
            }
            self.bins[bin] += calls;
            self.calls += u64::from(calls);
        }
        self.shortest = self.shortest.min(other.shortest);
    }

    fn pack(&self) -> Packed {
        let bins = (0u16..).zip(&self.bins).filter(|(_, calls)| **calls > 0);
        Packed { bins: bins.map(|(bin, &calls)| (bin, calls)).collect(), shortest: self.shortest }
    }

    /// The length that a share of the calls, in percent, do not exceed: the begin of its bin.
    fn quantile(&self, percent: u64) -> i64 {
        let rank = (self.calls * percent).div_ceil(100).max(1);
        let mut calls = 0;
        for (bin, &of_bin) in self.bins.iter().enumerate() {
            calls += u64::from(of_bin);
            if calls >= rank {
                return begin_of(bin).max(self.shortest);
            }
        }
        0
    }
}

/// A histogram for other processes: only the bins that are not empty.
#[derive(Clone, Debug, Encode, Decode)]
struct Packed {
    bins: Vec<(u16, u32)>,
    shortest: i64,
}

/// The floor of a kind, and what it is derived from.
#[derive(Clone, Copy, Debug)]
pub struct Floor {
    /// The calls.
    pub kind: Kind,
    /// Their number in the run.
    pub calls: u64,
    /// What such a call needs, ticks; `i64::MAX` if there is nothing to compare it with.
    pub floor: i64,
    /// The median of their lengths without waits, ticks.
    pub median: i64,
    /// The length that 95% of them do not exceed, ticks.
    pub high: i64,
    /// Where the floor comes from.
    pub basis: Basis,
}

/// Fewest calls for a quantile, and for any comparison.
const MANY: u64 = 20;
const FEW: u64 = 5;
/// Number of kinds above which sizes are told apart by powers of four.
const KINDS: usize = 10_000;

/// The floors of all kinds.
#[derive(Debug, Default)]
pub(super) struct Floors {
    /// Sorted by kind.
    pub all: Vec<Floor>,
    is_coarse: bool,
}

impl Floors {
    /// Computes the floors from the histograms of all shards of all processes. `bad_clocks`: many messages arrive before
    /// they are sent.
    pub(super) fn find<'a>(
        exchange: &Exchange,
        histograms: impl Iterator<Item = (Kind, &'a Histogram)>,
        bad_clocks: bool,
    ) -> Result<Self> {
        let mut own: FxHashMap<Kind, Histogram> = FxHashMap::default();
        for (kind, histogram) in histograms {
            own.entry(kind).or_default().merge(&histogram.pack());
        }
        let mut all = own;
        if exchange.processes() > 1 {
            let mut packed: Vec<(Kind, Packed)> = all.iter().map(|(&kind, of_kind)| (kind, of_kind.pack())).collect();
            packed.sort_unstable_by_key(|&(kind, _)| kind);
            all = FxHashMap::default();
            for (kind, of_kind) in exchange.allgather(packed)?.into_iter().flatten() {
                all.entry(kind).or_default().merge(&of_kind);
            }
        }
        let is_coarse = all.len() > KINDS;
        if is_coarse {
            let mut coarse: FxHashMap<Kind, Histogram> = FxHashMap::default();
            #[expect(clippy::iter_over_hash_type, reason = "sums do not depend on the order")]
            for (kind, of_kind) in all {
                coarse.entry(coarsened(kind)).or_default().merge(&of_kind.pack());
            }
            all = coarse;
        }
        let mut all: Vec<(Kind, Histogram)> = all.into_iter().collect();
        all.sort_unstable_by_key(|&(kind, _)| kind);
        Ok(Self { all: floors(&all, bad_clocks), is_coarse })
    }

    /// The floor of a kind, if there are calls to compare with.
    pub(super) fn known(&self, kind: Kind) -> Option<i64> {
        let kind = if self.is_coarse { coarsened(kind) } else { kind };
        let found = self.all.binary_search_by_key(&kind, |floor| floor.kind).ok()?;
        Some(self.all[found].floor).filter(|&floor| floor < i64::MAX)
    }

    /// The position of a kind.
    pub(super) fn position(&self, kind: Kind) -> usize {
        let kind = if self.is_coarse { coarsened(kind) } else { kind };
        let found = self.all.binary_search_by_key(&kind, |floor| floor.kind);
        found.expect("every call is in a histogram")
    }
}

fn coarsened(kind: Kind) -> Kind {
    Kind { size: kind.size & !1, ..kind }
}

fn floors(all: &[(Kind, Histogram)], bad_clocks: bool) -> Vec<Floor> {
    let mut floors: Vec<Floor> = all
        .iter()
        .map(|&(kind, ref of_kind)| {
            let (floor, basis) = match of_kind.calls {
                MANY.. if bad_clocks && kind.exposed => (of_kind.quantile(5), Basis::Clocks),
                MANY.. => (of_kind.quantile(5), Basis::Quantile),
                FEW.. => (of_kind.shortest, Basis::Few),
                _ => (i64::MAX, Basis::Nothing),
            };
            let (median, high) = (of_kind.quantile(50), of_kind.quantile(95));
            Floor { kind, calls: of_kind.calls, floor, median, high, basis }
        })
        .collect();
    // More bytes do not take less time, but where all of them do.
    let is_alike = |a: &Floor, b: &Floor| Kind { size: 0, ..a.kind } == Kind { size: 0, ..b.kind };
    for of_sizes in floors.chunk_by_mut(is_alike) {
        let mut most = 0;
        for floor in of_sizes.iter_mut().filter(|floor| floor.kind.exposed && floor.calls >= MANY) {
            most = most.max(floor.floor);
            floor.floor = most.min(floor.median);
        }
    }
    let known: Vec<Floor> = floors.iter().filter(|floor| floor.calls >= FEW).copied().collect();
    for floor in floors.iter_mut().filter(|floor| floor.calls < FEW) {
        let Kind { region, exposed, local, members, size } = floor.kind;
        let first = known.partition_point(|other| (other.kind.region, other.kind.exposed) < (region, exposed));
        let of_region =
            known[first..].iter().take_while(|other| (other.kind.region, other.kind.exposed) == (region, exposed));
        let nearest = of_region.min_by_key(|other| {
            let other = other.kind;
            (other.size.abs_diff(size), other.size < size, other.local != local, other.members.abs_diff(members), other)
        });
        if let Some(nearest) = nearest {
            (floor.floor, floor.basis) = (nearest.floor, Basis::Nearest);
        }
    }
    floors
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// A bin begins with the lengths in it, and is at most 1/32 of them wide; twice the length is in the bin that
        /// begins at twice the length.
        #[test]
        fn bins_are_narrow(length in 0i64..1 << 60) {
            let begin = begin_of(bin_of(length));
            prop_assert!(begin <= length && length - begin <= length / 32);
            prop_assert_eq!(bin_of(begin), bin_of(length));
            prop_assert_eq!(begin_of(bin_of(2 * length)) / 2, begin);
        }

        #[test]
        fn quantiles_are_in_the_bin_of_the_exact_ones(mut lengths in prop::collection::vec(0i64..100_000, 1..200)) {
            let mut histogram = Histogram::default();
            for &length in &lengths {
                histogram.add(length);
            }
            let mut copy = Histogram::default();
            copy.merge(&histogram.pack());
            prop_assert_eq!(&copy.bins, &histogram.bins);
            lengths.sort_unstable();
            for percent in [5, 50, 95] {
                let exact = lengths[(lengths.len() * percent).div_ceil(100).max(1) - 1];
                let found = histogram.quantile(percent as u64);
                prop_assert!(found <= exact && bin_of(found) == bin_of(exact));
                prop_assert!(found >= lengths[0]);
            }
        }
    }

    fn kind(region: u32, exposed: bool, size: u8) -> Kind {
        Kind { region: RegionKey::new(region), exposed, local: true, members: 0, size }
    }

    fn histogram(lengths: &[i64]) -> Histogram {
        let mut histogram = Histogram::default();
        for &length in lengths {
            histogram.add(length);
        }
        histogram
    }

    #[test]
    fn the_number_of_calls_decides() {
        let many: Vec<i64> = (10..30).collect();
        let found = floors(
            &[
                (kind(3, false, 1), histogram(&many)),
                (kind(3, false, 2), histogram(&[7; 4])),
                (kind(3, false, 4), histogram(&[30, 25, 40, 26, 27])),
                (kind(3, true, 1), histogram(&[3, 3])),
            ],
            false,
        );
        let found: Vec<_> = found.iter().map(|floor| (floor.floor, floor.basis)).collect();
        let nothing = (i64::MAX, Basis::Nothing);
        assert_eq!(found, [(10, Basis::Quantile), (10, Basis::Nearest), (25, Basis::Few), nothing]);
    }

    #[test]
    fn of_two_sizes_that_are_as_near_the_larger_counts() {
        let found = floors(
            &[
                (kind(3, false, 1), histogram(&[5; 9])),
                (kind(3, false, 2), histogram(&[9; 2])),
                (kind(3, false, 3), histogram(&[6; 9])),
            ],
            false,
        );
        assert_eq!((found[1].floor, found[1].basis), (6, Basis::Nearest));
    }

    #[test]
    fn floors_of_exposed_calls_grow_with_the_size() {
        let found = |exposed| {
            let of = |size, length| (kind(3, exposed, size), histogram(&[length; 20]));
            let mut slow = vec![8; 2];
            slow.extend(vec![40; 30]);
            let all = [of(1, 10), (kind(3, exposed, 2), histogram(&slow)), of(3, 9), of(4, 30)];
            floors(&all, true).iter().map(|floor| floor.floor).collect::<Vec<_>>()
        };
        assert_eq!(found(false), [10, 8, 9, 30]);
        // The median of the third is 9, so its floor is not 10.
        assert_eq!(found(true), [10, 10, 9, 30]);
    }
}
