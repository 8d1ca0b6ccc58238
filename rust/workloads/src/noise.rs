//! Pseudo-random numbers that depend only on their arguments.
//!
//! So any thread can compute the imbalance of any rank in any iteration independently.

/// A source of such numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noise {
    seed: u64,
}

/// The purpose of a number; different purposes have different numbers.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(crate) enum Purpose {
    Clock,
    Rank,
    Work,
    Leave,
    Start,
    Operation,
    Straggler,
}

impl Noise {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed: mix(seed) }
    }

    /// A number in `0..limit` for a rank at a step.
    pub(crate) fn below(self, limit: i64, purpose: Purpose, rank: u32, step: u64) -> i64 {
        let place = mix(self.seed ^ (u64::from(rank) << 8 | purpose as u64)) ^ step;
        ((u128::from(mix(place)) * limit as u128) >> 64) as i64
    }
}

/// The finisher of the generator `SplitMix64`.
fn mix(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}
