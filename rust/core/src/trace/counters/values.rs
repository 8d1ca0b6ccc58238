//! Values of counters: as recorded, and summed by call path.

use std::ops::AddAssign;

use bitcode::{Decode, Encode};
use whywait_otf2::enums::Type;
use whywait_otf2::records::TypedValue;

use crate::ids::{CallPathId, LocationId};

/// A sample of a counter that covers other locations than the one that records it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Sample {
    /// OTF2 id of the metric class or instance.
    pub metric: u32,
    /// Index of the counter.
    pub counter: u32,
    /// Index of the location that recorded it.
    pub location: LocationId,
    /// Whether an integer is unsigned.
    pub is_unsigned: bool,
    /// Ticks.
    pub time: i64,
    /// The value, as recorded.
    pub bits: u64,
}

impl Sample {
    /// The value; the counter defines whether it is a real number.
    pub fn value(&self, is_real: bool) -> Number {
        let kind = if is_real {
            Type::DOUBLE
        } else if self.is_unsigned {
            Type::UINT64
        } else {
            Type::INT64
        };
        Number::from_recorded(TypedValue { kind, bits: self.bits }, is_real).unwrap_or_default()
    }
}

/// An unscaled value: an integer or a floating-point number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Encode, Decode)]
pub struct Number {
    /// Value of an integer counter, else 0.
    pub integer: i128,
    /// Value of a floating-point counter, else 0.
    pub real: f64,
}

impl Number {
    /// An integer.
    pub fn from_integer(integer: i64) -> Self {
        Self { integer: i128::from(integer), real: 0.0 }
    }

    /// A recorded value; `None` if its type differs from that of its counter.
    pub fn from_recorded(value: TypedValue, is_real: bool) -> Option<Self> {
        match (value.kind, is_real) {
            (Type::INT64, false) => Some(Self { integer: i128::from(value.bits as i64), real: 0.0 }),
            (Type::UINT64, false) => Some(Self { integer: i128::from(value.bits), real: 0.0 }),
            (Type::DOUBLE, true) => Some(Self { integer: 0, real: f64::from_bits(value.bits) }),
            _ => None,
        }
    }

    /// The value as a floating-point number.
    pub fn value(self) -> f64 {
        self.integer as f64 + self.real
    }

    /// The sum.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { integer: self.integer.saturating_add(other.integer), real: self.real + other.real }
    }

    /// The difference.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self { integer: self.integer.saturating_sub(other.integer), real: self.real - other.real }
    }

    /// The integral of a level over ticks.
    #[must_use]
    pub fn times(self, ticks: i64) -> Self {
        Self { integer: self.integer.saturating_mul(i128::from(ticks)), real: self.real * ticks as f64 }
    }

    /// The share of the first `ticks` of `all`. Differences of successive shares add up to the number exactly.
    #[must_use]
    pub fn share(self, ticks: i128, all: i128) -> Self {
        // Intervals are shorter than 2^62 ticks, so this seldom overflows; if it does, the order of magnitude remains.
        let integer = match self.integer.checked_mul(ticks) {
            Some(product) => product.div_euclid(all),
            None => (self.integer / all).saturating_mul(ticks),
        };
        Self { integer, real: self.real * (ticks as f64 / all as f64) }
    }

    /// The `part`-th of `parts` equal parts, which add up to the number exactly.
    #[must_use]
    pub fn part(self, part: usize, parts: usize) -> Self {
        let (part, parts) = (part as i128, parts as i128);
        let integer = self.share(part + 1, parts).integer.saturating_sub(self.share(part, parts).integer);
        Self { integer, real: self.real / parts as f64 }
    }
}

impl AddAssign for Number {
    fn add_assign(&mut self, other: Self) {
        // Saturates: integrals of values near 2^64 may overflow.
        *self = self.plus(other);
    }
}

/// Sums of a counter at a call path of a location.
#[derive(Clone, Copy, Debug, PartialEq, Encode, Decode)]
pub struct Sums {
    /// Growth of a total, sum of changes, or integral of a level over ticks.
    pub amount: Number,
    /// Twice the integral of an interpolated level over ticks.
    pub area: Number,
    /// Sum of the samples.
    pub sampled: Number,
    /// Ticks during which the level is known.
    pub ticks: i64,
    /// Number of samples.
    pub samples: u64,
    /// Minimum and maximum.
    pub range: (f64, f64),
}

impl Default for Sums {
    fn default() -> Self {
        let range = (f64::INFINITY, f64::NEG_INFINITY);
        Self {
            amount: Number::default(),
            area: Number::default(),
            sampled: Number::default(),
            ticks: 0,
            samples: 0,
            range,
        }
    }
}

impl AddAssign for Sums {
    fn add_assign(&mut self, other: Self) {
        self.amount += other.amount;
        self.area += other.area;
        self.sampled += other.sampled;
        self.ticks += other.ticks;
        self.samples += other.samples;
        self.range = (self.range.0.min(other.range.0), self.range.1.max(other.range.1));
    }
}

impl Sums {
    /// Extends the range to a value.
    pub fn extend_range(&mut self, value: Number) {
        self.range = (self.range.0.min(value.value()), self.range.1.max(value.value()));
    }
}

/// A counter at a call path of a location.
#[derive(Clone, Copy, Debug, PartialEq, Encode, Decode)]
pub struct CounterCell {
    /// Index of the counter.
    pub counter: u32,
    /// Call path, or [`CallPathId::NONE`] outside of all regions.
    pub callpath: CallPathId,
    /// Index of the location.
    pub location: LocationId,
    /// Its sums.
    pub sums: Sums,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn parts_add_up(amount in any::<i64>(), parts in 1usize..7) {
            let number = Number::from_integer(amount);
            let sum: i128 = (0..parts).map(|part| number.part(part, parts).integer).sum();
            prop_assert_eq!(sum, i128::from(amount));
        }

        #[test]
        fn shares_add_up(amount in any::<i64>(), mut cuts in prop::collection::vec(0i64..1000, 0..9)) {
            cuts.sort_unstable();
            let number = Number::from_integer(amount);
            let upto = |ticks: i64| number.share(ticks.into(), 1000).integer;
            let bounds: Vec<i64> = [0].into_iter().chain(cuts).chain([1000]).collect();
            let sum: i128 = bounds.windows(2).map(|pair| upto(pair[1]) - upto(pair[0])).sum();
            prop_assert_eq!(sum, i128::from(amount));
        }
    }
}
