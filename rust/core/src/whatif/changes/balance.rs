//! Balance: time moves between instances, and sums stay the same to the tick, except in mode `median`
//! (whatif.md#what-can-be-changed).

use crate::trace::{NONE, Trace};
use crate::{Error, Result};

/// How a balance distributes time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balance {
    /// The n-th instances of all locations become equally long.
    Instance,
    /// The n-th segments of all locations, whatever instances they are of.
    Segment,
    /// All instances of a location.
    Local,
    /// All instances of all locations.
    Global,
    /// All locations work equally long, with the proportions within each unchanged.
    Scaled,
    /// All instances of all locations take as long as the median of them: without noise. Their sum changes.
    Median,
}

/// Equal integer shares of a sum: the quotient, and one more for as many of the first as the remainder says.
fn shares(sum: i64, count: usize) -> impl Iterator<Item = i64> {
    let count = count.max(1) as i64;
    let (quotient, rest) = (sum.div_euclid(count), sum.rem_euclid(count));
    (0..count).map(move |i| quotient + i64::from(i < rest))
}

/// Parameters of a balance.
#[derive(Clone, Debug)]
pub struct Balancing {
    /// How time is distributed.
    pub mode: Balance,
    /// Degree of the balance, 0..1.
    pub by: f64,
    /// Whether the mean is over the locations that have an n-th instance.
    pub is_uneven: bool,
    /// The group of each location: time moves only within groups. Empty for one group of all; locations with [`NONE`]
    /// do not change.
    pub groups: Vec<u32>,
}

impl Balancing {
    /// New times of all instances of all locations; `text` names them.
    pub(in crate::whatif) fn apply(&self, trace: &Trace, times: &[Vec<i64>], text: &str) -> Result<Vec<Vec<i64>>> {
        let mut order: Vec<usize> = (0..times.len()).collect();
        let group = |location: usize| self.groups.get(location).copied().unwrap_or(0);
        order.sort_by_key(|&location| group(location));
        let mut new = times.to_vec();
        for locations in order.chunk_by(|&a, &b| group(a) == group(b)).filter(|of| group(of[0]) != NONE) {
            let times: Vec<Vec<i64>> = locations.iter().map(|&location| times[location].clone()).collect();
            let full = balance(trace, locations, &times, self, text)?;
            let by = if self.mode == Balance::Median {
                towards(&times, &full, self.by)
            } else {
                partly(&times, full, self.by)
            };
            for (&location, of) in locations.iter().zip(by) {
                new[location] = of;
            }
        }
        Ok(new)
    }
}

/// New times of all instances of some locations.
fn balance(
    trace: &Trace,
    locations: &[usize],
    times: &[Vec<i64>],
    &Balancing { mode, is_uneven, .. }: &Balancing,
    text: &str,
) -> Result<Vec<Vec<i64>>> {
    let taking_part = || times.iter().enumerate().filter(|(_, of)| !of.is_empty());
    let mut new = times.to_vec();
    match mode {
        Balance::Instance | Balance::Segment => {
            let label = |of: usize| trace.definitions.label(&trace.definitions.locations[locations[of]]);
            if let Some((first, of_first)) = taking_part().next()
                && let Some((other, of_other)) = taking_part().find(|(_, of)| of.len() != of_first.len())
                && !is_uneven
            {
                let counts = format!("{} {}, {} {}", label(first), of_first.len(), label(other), of_other.len());
                let what = if mode == Balance::Segment { "segments" } else { "instances" };
                return Err(Error::Usage(format!(
                    "{text} has not the same number of {what} everywhere ({counts}): choose uneven=average or another mode"
                )));
            }
            for i in 0..taking_part().map(|(_, of)| of.len()).max().unwrap_or(0) {
                let with: Vec<usize> = taking_part().filter(|(_, of)| i < of.len()).map(|(p, _)| p).collect();
                let sum = with.iter().map(|&p| times[p][i]).sum();
                for (&p, share) in with.iter().zip(shares(sum, with.len())) {
                    new[p][i] = share;
                }
            }
        }
        Balance::Local => {
            for (p, of) in taking_part() {
                new[p] = shares(of.iter().sum(), of.len()).collect();
            }
        }
        Balance::Global => {
            let count = taking_part().map(|(_, of)| of.len()).sum();
            let mut all = shares(taking_part().flat_map(|(_, of)| of).sum(), count);
            for of in &mut new {
                of.fill_with(|| all.next().unwrap_or(0));
            }
        }
        Balance::Median => {
            let mut all: Vec<i64> = times.iter().flatten().copied().collect();
            all.sort_unstable();
            if !all.is_empty() {
                let median = all[(all.len() - 1) / 2].midpoint(all[all.len() / 2]);
                for of in &mut new {
                    of.fill(median);
                }
            }
        }
        Balance::Scaled => {
            let sums: Vec<(usize, i64)> = taking_part().map(|(p, of)| (p, of.iter().sum())).collect();
            let all = sums.iter().map(|(_, sum)| sum).sum();
            for (&(p, sum), share) in sums.iter().zip(shares(all, sums.len())) {
                new[p] = if sum == 0 { shares(share, times[p].len()).collect() } else { apportion(&times[p], share) };
            }
        }
    }
    Ok(new)
}

/// Integers with a given sum in the proportions of `values`, by the largest remainders.
fn apportion(values: &[i64], sum: i64) -> Vec<i64> {
    let total: i128 = values.iter().map(|&x| i128::from(x)).sum();
    let exact = |x: i64| i128::from(x) * i128::from(sum);
    let mut new: Vec<i64> = values.iter().map(|&x| exact(x).div_euclid(total) as i64).collect();
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by_key(|&i| std::cmp::Reverse(exact(values[i]).rem_euclid(total)));
    let rest = sum - new.iter().sum::<i64>();
    for &i in order.iter().take(rest.max(0) as usize) {
        new[i] += 1;
    }
    new
}

/// Brings times nearer to new ones.
fn towards(times: &[Vec<i64>], full: &[Vec<i64>], by: f64) -> Vec<Vec<i64>> {
    let nearer = |(&old, &new): (&i64, &i64)| old + (by * (new - old) as f64).round() as i64;
    times.iter().zip(full).map(|(old, new)| old.iter().zip(new).map(nearer).collect()).collect()
}

/// Applies a partial balance; sums stay the same to the tick.
fn partly(times: &[Vec<i64>], full: Vec<Vec<i64>>, by: f64) -> Vec<Vec<i64>> {
    if by >= 1.0 {
        return full;
    }
    let exact: Vec<Vec<f64>> = times
        .iter()
        .zip(&full)
        .map(|(old, new)| old.iter().zip(new).map(|(&x, &y)| by * (y - x) as f64).collect())
        .collect();
    let mut new: Vec<Vec<i64>> = times
        .iter()
        .zip(&exact)
        .map(|(old, exact)| old.iter().zip(exact).map(|(x, change)| x + change.floor() as i64).collect())
        .collect();
    let rest = |p: usize, i: usize| exact[p][i] - exact[p][i].floor();
    let mut order: Vec<(usize, usize)> =
        new.iter().enumerate().flat_map(|(p, of)| (0..of.len()).map(move |i| (p, i))).collect();
    order.sort_by(|a, b| rest(b.0, b.1).total_cmp(&rest(a.0, a.1)));
    let missing = times.iter().flatten().sum::<i64>() - new.iter().flatten().sum::<i64>();
    for &(p, i) in order.iter().take(missing.max(0) as usize) {
        new[p][i] += 1;
    }
    new
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_first_get_the_rest() {
        assert_eq!(shares(8, 3).collect::<Vec<_>>(), [3, 3, 2]);
    }

    proptest! {
        #[test]
        fn sums_are_conserved(times in prop::collection::vec(0i64..1000, 1..20), sum in 0i64..10_000, by in 0.0..1.0) {
            prop_assert_eq!(shares(sum, times.len()).sum::<i64>(), sum);
            if times.iter().sum::<i64>() > 0 {
                prop_assert_eq!(apportion(&times, sum).iter().sum::<i64>(), sum);
            }
            let total = times.iter().sum::<i64>();
            let full = vec![shares(total, times.len()).collect::<Vec<_>>()];
            prop_assert_eq!(partly(&[times], full, by).iter().flatten().sum::<i64>(), total);
        }
    }
}
