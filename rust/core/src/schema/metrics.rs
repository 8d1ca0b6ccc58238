//! Metrics that the analysis computes; all others derive from these.
//!
//! Values are exclusive along the call tree and inclusive along the metric tree. Events and wait states add an integer
//! number of ticks, occurrences or bytes ([`Metric`]); a share of a wait is a real number of ticks ([`CostMetric`],
//! which [`super::cost_classes`] declares). These are two types, so that they cannot be confused.
//!
//! [`CostMetric`]: super::CostMetric

/// Metrics with cells of one type.
pub trait MetricSet: Copy + Ord + 'static {
    /// Type of a cell.
    type Value: Copy + Default + PartialEq;

    /// All of them in the order of their numbers.
    const ALL: &'static [Self];

    /// Number of the metric, counted from 0.
    fn number(self) -> usize;

    /// The sum of two values.
    fn sum(a: Self::Value, b: Self::Value) -> Self::Value;

    /// For each metric number, whether the metric is one of `some`.
    fn marked(some: impl IntoIterator<Item = Self>) -> Vec<bool> {
        let mut marks = vec![false; Self::ALL.len()];
        for metric in some {
            marks[metric.number()] = true;
        }
        marks
    }
}

/// What a value counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Ticks in the core, seconds in results.
    Time,
    /// Occurrences.
    Count,
    /// Bytes.
    Bytes,
}

macro_rules! metrics {
    (
        $(#[$doc_of_set:meta])*
        $set:ident of $value:ty, summed by $sum:expr; $($(#[$doc:meta])* $variant:ident = $name:expr),+ $(,)?
    ) => {
        $(#[$doc_of_set])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, bitcode::Encode, bitcode::Decode,
        )]
        #[repr(u8)]
        pub enum $set {
            $($(#[$doc])* $variant),+
        }

        impl $set {
            /// All of them in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Unique name, as in Scalasca and Cube.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }

        impl $crate::schema::MetricSet for $set {
            type Value = $value;

            const ALL: &'static [Self] = Self::ALL;

            #[inline]
            fn number(self) -> usize {
                self as usize
            }

            #[inline]
            fn sum(a: $value, b: $value) -> $value {
                $sum(a, b)
            }
        }
    };
}

pub(super) use metrics;

/// Declares the metrics of all rows.
macro_rules! metrics_of_rows {
    ([] $($(#[doc = $doc:expr])+ $variant:ident = $name:tt $(in $unit:ident)? $({ $($field:tt)* })?,)+) => {
        metrics! {
            /// Metrics with integer values, whose sums do not depend on the order.
            ///
            /// Times are bounded ([`crate::trace::Bounds`]), but message sizes in a damaged trace are not, so sums
            /// saturate.
            Metric of i64, summed by i64::saturating_add;
            $($(#[doc = $doc])+ $variant = $name),+
        }

        impl Metric {
            /// What its values count.
            pub fn unit(self) -> Unit {
                match self { $(Self::$variant => unit!($($unit)?)),+ }
            }

            /// What it is, in a sentence.
            pub fn description(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),+).trim_ascii_start()),+ }
            }
        }
    };
}

macro_rules! unit {
    () => {
        Unit::Time
    };
    ($unit:ident) => {
        Unit::$unit
    };
}

with_rows!(metrics_of_rows);

/// Number of integer metrics.
pub(super) const COUNT: usize = Metric::ALL.len();

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::CostMetric;

    #[test]
    fn names_are_unique() {
        let names = Metric::ALL.iter().map(|metric| metric.name());
        let names: std::collections::BTreeSet<_> =
            names.chain(CostMetric::ALL.iter().map(|metric| metric.name())).collect();
        assert_eq!(names.len(), Metric::ALL.len() + CostMetric::ALL.len());
    }
}
