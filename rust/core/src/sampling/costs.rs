//! Costs by function: which sampled call paths make a late location late.
//!
//! The cost of a call path c at a location q is a sum over waits of a rate times the difference between what q and the waiter
//! computed in c. So each moment in c has a *coefficient*: the rates of the waits that it causes at q, less those of the waits
//! that it shortens at a waiter. Samples divide the integral of the coefficient, stratum by stratum, in proportion to the
//! coefficients at their own times.
//!
//! *Source*: docs/specification.md#costs-of-functions.

use std::collections::BTreeMap;

use bitcode::{Decode, Encode};
use rustc_hash::FxHashMap;

use super::faults::Faults;
use super::paths::{Placed, Sampling};
use super::strata::{CERTAIN, Meaning, RESOLVED, Stratum, strata};
use crate::Result;
use crate::causes::{Coefficient, Fixed};
use crate::ids::{CallPathId, LocationId};
use crate::parallel::iter::prelude::*;
use crate::trace::{Shard, Trace};

/// What a sampled call path costs others.
#[derive(Clone, Copy, Debug, PartialEq, Encode, Decode)]
pub struct FunctionCost {
    /// The location that makes others wait.
    pub location: LocationId,
    /// The call path that has the cost by the events.
    pub recorded: CallPathId,
    /// The sampled call path: that one, or one below it; none for time in the system or without a core.
    pub callpath: CallPathId,
    /// Its cost, ticks; negative if the location does less there than those that wait.
    pub cost: f64,
    /// The variance of the cost, square ticks.
    pub variance: f64,
    /// That of the cost with what it calls.
    pub inclusive_variance: f64,
    /// Number of samples at the location in `recorded` that the cost rests on, and at those that wait.
    pub samples: u64,
    /// Those at the locations that wait.
    pub waiter_samples: u64,
}

/// The costs of all sampled call paths, by location, recorded, and sampled call path. Collective; at the first process.
/// `coefficients` are those of the locations of each shard.
pub(crate) fn find(
    trace: &Trace,
    sampling: &Sampling,
    is_divided: &[bool],
    coefficients: Vec<Vec<Coefficient>>,
) -> Result<Vec<FunctionCost>> {
    let meaning = Meaning::new(trace, is_divided);
    let shards = trace.par_shards().zip(&sampling.placed).zip(coefficients);
    let found = shards.map(|((shard, placed), mut coefficients)| {
        coefficients.sort_unstable_by_key(|of| (of.location, of.cause, of.callpath));
        let mut costs = Vec::new();
        for of_location in coefficients.chunk_by(|a, b| a.location == b.location) {
            of_one((trace, sampling), (shard, of_location), placed, &meaning, &mut costs);
        }
        costs
    });
    let parts = trace.exchange.gatherv(found.flatten().collect::<Vec<_>>())?;
    Ok(combine(parts))
}

/// Adds up what all locations say about the same cost.
fn combine(mut parts: Vec<FunctionCost>) -> Vec<FunctionCost> {
    // The order of terms must not depend on the order of shards.
    parts.sort_by(|a, b| {
        let key = |of: &FunctionCost| (of.location, of.recorded, of.callpath);
        let variances = a.inclusive_variance.total_cmp(&b.inclusive_variance);
        key(a).cmp(&key(b)).then(a.cost.total_cmp(&b.cost)).then(variances)
    });
    let mut costs: Vec<FunctionCost> = Vec::new();
    for part in parts {
        match costs.last_mut() {
            Some(last)
                if (last.location, last.recorded, last.callpath) == (part.location, part.recorded, part.callpath) =>
            {
                last.cost += part.cost;
                last.variance += part.variance;
                last.inclusive_variance += part.inclusive_variance;
                last.samples += part.samples;
                last.waiter_samples += part.waiter_samples;
            }
            _ => costs.push(part),
        }
    }
    costs
}

/// Divides the coefficients of one location.
fn of_one(
    (trace, sampling): (&Trace, &Sampling),
    (shard, coefficients): (&Shard, &[Coefficient]),
    placed: &[Placed],
    meaning: &Meaning,
    costs: &mut Vec<FunctionCost>,
) {
    let location = coefficients[0].location;
    let strata = strata(trace, (shard, shard.local(location)), placed, meaning, None);
    let in_shard = (shard, shard.local(location));
    let faults = Faults::of(trace, in_shard, placed, meaning.is_divided, None).shares(&strata);
    let mut by_callpath: FxHashMap<CallPathId, Vec<&Stratum>> = FxHashMap::default();
    for stratum in &strata {
        by_callpath.entry(stratum.recorded).or_default().push(stratum);
    }
    let mut ends: Vec<(u32, Fixed)> = Vec::new();
    for of_cause in coefficients.chunk_by(|a, b| (a.cause, a.callpath) == (b.cause, b.callpath)) {
        let Coefficient { cause, callpath: recorded, .. } = of_cause[0];
        ends.clear();
        for of in of_cause {
            let mut negative = Fixed::default();
            negative -= Fixed::from(of.rate);
            ends.extend([(of.events.0, Fixed::from(of.rate)), (of.events.1, negative)]);
        }
        ends.sort_unstable_by_key(|&(event, _)| event);
        for stratum in by_callpath.get(&recorded).into_iter().flatten() {
            let share = Share::of(stratum, &ends, faults.get(&recorded).copied().unwrap_or_default());
            share.divide((trace, sampling), (cause, recorded), cause == location, costs);
        }
    }
}

/// The part of a stratum in a cost.
struct Share {
    /// The integral of the coefficient, ticks.
    integral: f64,
    samples: Coefficients,
    /// The same at samples of page faults, and the share of the time in the system, or without a core, that faults take.
    faults: Coefficients,
    of_faults: f64,
    is_resolved: bool,
    /// The time that a sample stands for, ticks, if they do not stand for all of the time.
    period: Option<f64>,
}

impl Share {
    /// `ends` are the events at which the coefficient changes.
    fn of(stratum: &Stratum, ends: &[(u32, Fixed)], of_faults: f64) -> Self {
        let mut share = Self {
            integral: 0.0,
            samples: Coefficients::default(),
            faults: Coefficients::default(),
            of_faults,
            is_resolved: stratum.is_resolved(),
            period: stratum.period,
        };
        let mut running = Fixed::default();
        for pair in ends.windows(2) {
            running += pair[0].1;
            let events = pair[0].0..pair[1].0;
            if running.is_zero() || events.is_empty() {
                continue;
            }
            let coefficient = f64::from(running);
            share.integral += coefficient * stratum.time_of(events.clone()) as f64;
            share.samples.add(coefficient.abs(), stratum.samples_of(events.clone()));
            share.faults.add(coefficient.abs(), stratum.faults_of(events));
        }
        share
    }

    fn divide(
        self,
        within: (&Trace, &Sampling),
        (location, recorded): (LocationId, CallPathId),
        is_cause: bool,
        costs: &mut Vec<FunctionCost>,
    ) {
        if self.integral == 0.0 {
            return;
        }
        let none = |callpath| FunctionCost {
            location,
            recorded,
            callpath,
            cost: 0.0,
            variance: 0.0,
            inclusive_variance: 0.0,
            samples: 0,
            waiter_samples: 0,
        };
        let with = |callpath, cost, count| {
            let (samples, waiter_samples) = if is_cause { (count, 0) } else { (0, count) };
            FunctionCost { cost, samples, waiter_samples, ..none(callpath) }
        };
        if !self.is_resolved || self.samples.sum == 0.0 {
            costs.push(with(recorded, self.integral, self.samples.count));
            return;
        }
        let mut integral = self.integral;
        if let Some(period) = self.period {
            // What samples do not stand for was in the system, or without a core.
            let error = period * self.samples.squares.sqrt();
            let mut away = integral.abs() - period * self.samples.sum;
            if away > CERTAIN * error {
                away = away.copysign(integral);
                integral -= away;
                let mut left = 1.0;
                if self.faults.count >= RESOLVED as u64 {
                    left -= self.of_faults;
                    // Samples of faults are no samples of time.
                    let with = |callpath, cost, _| with(callpath, cost, 0);
                    self.faults.divide(within, away * self.of_faults, error * self.of_faults, (none, with), costs);
                }
                let variance = error * error * left * left;
                let inclusive_variance = variance;
                costs.push(FunctionCost { variance, inclusive_variance, ..with(CallPathId::NONE, away * left, 0) });
            }
        }
        self.samples.divide(within, integral, 0.0, (none, with), costs);
    }
}

/// The sizes of coefficients at samples.
#[derive(Default)]
struct Coefficients {
    sum: f64,
    squares: f64,
    count: u64,
    by_callpath: BTreeMap<CallPathId, (f64, u64)>,
}

impl Coefficients {
    fn add(&mut self, size: f64, samples: &[(u32, CallPathId)]) {
        for &(_, callpath) in samples {
            self.sum += size;
            self.squares += size * size;
            self.count += 1;
            let (sum, count) = self.by_callpath.entry(callpath).or_default();
            *sum += size;
            *count += 1;
        }
    }

    /// Divides a cost, which has a standard deviation itself, among call paths. `none` and `with` make the costs.
    fn divide(
        self,
        (trace, sampling): (&Trace, &Sampling),
        cost: f64,
        deviation: f64,
        (none, with): (impl Fn(CallPathId) -> FunctionCost, impl Fn(CallPathId, f64, u64) -> FunctionCost),
        costs: &mut Vec<FunctionCost>,
    ) {
        let effective = self.sum * self.sum / self.squares;
        let variance = |sum: f64| {
            let share = sum / self.sum;
            let smooth = (share * effective + 1.0) / (effective + 2.0);
            cost * cost * smooth * (1.0 - smooth) / effective + deviation * deviation * share * share
        };
        let recorded = none(CallPathId::NONE).recorded;
        let sums = self.by_callpath.iter().map(|(&callpath, &(sum, _))| (callpath, sum));
        for (callpath, sum) in sampling.inclusive(&trace.tree, recorded, sums) {
            costs.push(FunctionCost { inclusive_variance: variance(sum), ..none(callpath) });
        }
        for (&callpath, &(sum, count)) in &self.by_callpath {
            costs.push(FunctionCost { variance: variance(sum), ..with(callpath, cost * (sum / self.sum), count) });
        }
    }
}
