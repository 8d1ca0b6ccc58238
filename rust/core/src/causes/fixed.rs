//! Fixed-point numbers: sums that are exact, whatever the order of their terms.
//!
//! A value that is added at one end of an interval and subtracted at the other must leave exactly zero. Floating-point
//! sums would leave a rest, which would appear as a cost.

use bitcode::{Decode, Encode};

use std::ops::{AddAssign, Sub, SubAssign};

/// The representation of 1: 52 fractional bits resolve shares to 2e-16, and sums fit up to 2^74.
const ONE: f64 = (1u64 << 52) as f64;

/// A sum of shares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Fixed(i128);

impl Fixed {
    pub(crate) fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// As many times as there are ticks.
    pub(crate) fn times(self, ticks: i64) -> Self {
        Self(self.0.saturating_mul(i128::from(ticks)))
    }
}

impl From<f64> for Fixed {
    #[inline]
    fn from(value: f64) -> Self {
        // A power of two scales without rounding; the conversion saturates.
        Self((value * ONE) as i128)
    }
}

impl From<Fixed> for f64 {
    #[inline]
    fn from(fixed: Fixed) -> Self {
        fixed.0 as f64 / ONE
    }
}

impl AddAssign for Fixed {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.0 = self.0.saturating_add(other.0);
    }
}

impl SubAssign for Fixed {
    #[inline]
    fn sub_assign(&mut self, other: Self) {
        self.0 = self.0.saturating_sub(other.0);
    }
}

impl Sub for Fixed {
    type Output = Self;

    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out_in_any_order() {
        let values = [1e15, 0.1, 3e-9, 7.25e7];
        let mut sum = Fixed::default();
        for value in values {
            sum += Fixed::from(value);
        }
        for value in [0.1, 7.25e7, 1e15, 3e-9] {
            sum -= Fixed::from(value);
        }
        assert!(sum.is_zero());
    }
}
