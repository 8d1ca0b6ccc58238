//! How long calls that wait for nobody take, by what they do and how much: a program's own measure of a transfer.

use bitcode::{Decode, Encode};
use rustc_hash::FxHashMap;

use crate::Result;
use crate::ids::RegionKey;
use crate::parallel::exchange::Exchange;

/// A kind of call: its region, and the number of bits in the number of bytes that it completes.
pub(super) type Kind = (RegionKey, u32);

/// What a length tells, the surest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
pub(super) enum Sample {
    /// That of a call that waited for nobody.
    Free,
    /// That of a call from the Enter of the only activity of each target on.
    Only,
    /// That of a call from the Enter of the last activity on.
    Last,
}

/// Number of calls that make a habit: one that ends after the last activity may do so by chance.
const HABIT: u64 = 3;

/// What is typical of a kind of calls.
#[derive(Clone, Copy, Debug)]
pub(super) struct Typical {
    /// The length that nine of ten calls do not exceed, ticks.
    pub length: i64,
    /// What it is known from.
    pub sample: Sample,
}

impl Typical {
    /// Whether a time is much longer than typical: twice as long, and ten times if that is only a habit. Where a target calls
    /// its library again and again, any call ends soon after one of its activities.
    pub(super) fn is_exceeded(self, time: i64) -> bool {
        let margin = if self.sample == Sample::Last { 10 } else { 2 };
        self.length.saturating_mul(margin) < time
    }
}

/// Lengths of calls by kind, each rounded up to four significant bits.
#[derive(Debug, Default)]
pub(super) struct Lengths(FxHashMap<(Kind, Sample), FxHashMap<i64, u64>>);

impl Lengths {
    /// Adds a call.
    pub(super) fn add(&mut self, kind: Kind, sample: Sample, length: i64) {
        *self.0.entry((kind, sample)).or_default().entry(rounded(length)).or_default() += 1;
    }

    /// Of each kind, the length that nine of ten calls do not exceed, over all processes of the analysis, by the surest
    /// samples. Collective.
    pub(super) fn typical(exchange: &Exchange, own: Vec<Self>) -> Result<FxHashMap<Kind, Typical>> {
        let rows = |lengths: Self| {
            let of_kind = |((kind, sample), lengths): ((Kind, Sample), FxHashMap<i64, u64>)| {
                lengths.into_iter().map(move |(length, count)| (kind, sample, length, count))
            };
            lengths.0.into_iter().flat_map(of_kind)
        };
        let own: Vec<(Kind, Sample, i64, u64)> = own.into_iter().flat_map(rows).collect();
        let mut all: Vec<_> = exchange.allgather(own)?.into_iter().flatten().collect();
        all.sort_unstable();
        let mut typical = FxHashMap::default();
        for rows in all.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let calls: u64 = rows.iter().map(|row| row.3).sum();
            if rows[0].1 == Sample::Last && calls < HABIT {
                continue;
            }
            let mut seen = 0;
            let nine_of_ten = rows.iter().find(|row| {
                seen += row.3;
                10 * seen >= 9 * calls
            });
            let length = nine_of_ten.map_or(0, |row| row.2);
            typical.entry(rows[0].0).or_insert(Typical { length, sample: rows[0].1 });
        }
        Ok(typical)
    }
}

/// The largest number with the same four leading bits.
fn rounded(length: i64) -> i64 {
    let bits = (i64::BITS - length.leading_zeros()).saturating_sub(4);
    (((length >> bits) + 1) << bits) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_up_by_at_most_an_eighth() {
        assert_eq!([0, 7, 15, 16, 17, 1000].map(rounded), [0, 7, 15, 17, 17, 1023]);
        for length in (1..1 << 20).step_by(97) {
            assert!((length..length + length / 8 + 1).contains(&rounded(length)), "{length}");
        }
    }
}
