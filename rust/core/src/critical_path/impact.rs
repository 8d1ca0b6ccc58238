//! Performance impact: what the activities of the critical path cost all locations.
//!
//! With `g(c)`, the length of call path `c` on the path, and `l_p(c)`, the time of location p in it without waits:
//!
//! ```text
//!  activities      min(g, l_p)                    non-critical   [l_p − g]+
//!  excess_p(c)     [g − l_p]+                     idle_p         Σ g − Σ l_p
//!  impact(c)       Σ_p excess_p(c) · idle_p / Σ_c excess_p(c)      to the ends of the path by their share of g(c)
//!  inter(c)        Σ_p g(c) · (Σ g − Σ max(g, l_p)) / H_p          over p without c and c' in the second sum with c',
//!                                                                  H_p = Σ g(c) over those p does not have
//! ```
//!
//! Each location contributes to all call paths of the critical path, even to those it never executes. The contribution
//! to those is its contribution to all less that to its own, so only its own call paths are visited.
//!
//! Scalasca 2.6 divides by `H_p = 0` if a location has all call paths, and then reports no inter-partition imbalance at
//! all; here such a location contributes nothing.
//!
//! *Source*: specification.md#performance-impact; Böhme et al. 2012. The critical path's imbalance (thesis, definition
//! 23) is derived from it in Python.

use bitcode::{Decode, Encode};
use whywait_otf2::enums::LocationType;

use crate::Result;
use crate::causes::{CostModel, Fixed, Table};
use crate::ids::{CallPathId, LocationId};
use crate::parallel::iter::prelude::*;
use crate::severity::{Cost, CostMetric, Metric, Severity};
use crate::trace::Trace;

/// The contributions of the locations to one call path of the critical path.
#[derive(Clone, Copy, Default, Encode, Decode)]
struct Contribution {
    /// Excess of the locations that have it.
    impact: Fixed,
    /// Weights of the locations that have it.
    weight: Fixed,
    inter: Fixed,
    /// Their number.
    seen: u32,
}

/// Contributions of some locations.
#[derive(Default, Encode, Decode)]
struct Sums {
    by_callpath: Vec<Contribution>,
    weight: Fixed,
    inter: Fixed,
    locations: u32,
    /// Whether a location has all call paths of the path.
    has_all: bool,
}

/// Cells of the locations of this process; `path` has all, sorted.
pub(super) fn assess(
    trace: &Trace,
    tables: &[Table],
    path: &[Severity],
    model: CostModel,
) -> Result<(Vec<Severity>, Vec<Cost>)> {
    let mut position = vec![u32::MAX; trace.tree.len()];
    let mut lengths: Vec<i64> = Vec::new();
    for cells in path.chunk_by(|a, b| a.callpath == b.callpath) {
        let length: i64 = cells.iter().map(|cell| cell.value).sum();
        if length > 0 {
            position[cells[0].callpath] = lengths.len() as u32;
            lengths.push(length);
        }
    }
    if lengths.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let parts: Vec<(Sums, Vec<Severity>)> = trace
        .par_shards()
        .zip(tables)
        .map(|(shard, table)| {
            let mut sums = Sums::new(lengths.len());
            let mut severities = Vec::new();
            for i in 0..shard.locations.len() {
                let location = shard.location(i);
                let kind = trace.definitions.locations[location].kind;
                if matches!(kind, LocationType::CPU_THREAD | LocationType::UNKNOWN) {
                    sums.add(location, table.lifetimes.of(i), &position, &lengths, &mut severities);
                }
            }
            (sums, severities)
        })
        .collect();
    let (mut here, mut severities) = (Sums::new(lengths.len()), Vec::new());
    for (part, mut of_shard) in parts {
        here.merge(part);
        severities.append(&mut of_shard);
    }
    let mut whole = Sums::new(lengths.len());
    for part in trace.exchange.allgather(here)? {
        whole.merge(part);
    }
    let own = path.iter().filter(|cell| trace.owns(cell.location));
    Ok((severities, whole.book(own, &position, &lengths, model)))
}

impl Sums {
    fn new(callpaths: usize) -> Self {
        Self { by_callpath: vec![Contribution::default(); callpaths], ..Self::default() }
    }

    fn add(
        &mut self,
        location: LocationId,
        lifetime: &[(CallPathId, i64)],
        position: &[u32],
        lengths: &[i64],
        severities: &mut Vec<Severity>,
    ) {
        let length: i64 = lengths.iter().sum();
        let (mut own, mut common, mut covered, mut mine) = (0, 0, 0, 0);
        for &(callpath, ticks) in lifetime {
            own += ticks;
            let on_path = lengths.get(position[callpath] as usize).copied().unwrap_or(0);
            common += ticks.min(on_path);
            covered += on_path;
            mine += ticks.max(on_path);
            let mut add = |metric, value| {
                if value > 0 {
                    severities.push(Severity { metric, callpath, location, value });
                }
            };
            add(Metric::CriticalPathActivities, ticks.min(on_path));
            add(Metric::NonCriticalPathActivities, ticks - on_path);
        }
        let excess = length - common;
        let weight = if excess > 0 { (length - own) as f64 / excess as f64 } else { 0.0 };
        let foreign = length - covered;
        let inter = if foreign > 0 { (length - mine) as f64 / foreign as f64 } else { 0.0 };
        for &(callpath, ticks) in lifetime {
            let Some(&on_path) = lengths.get(position[callpath] as usize) else { continue };
            let contribution = &mut self.by_callpath[position[callpath] as usize];
            contribution.impact += Fixed::from(weight * (on_path - ticks).max(0) as f64);
            contribution.weight += Fixed::from(weight);
            contribution.inter += Fixed::from(inter);
            contribution.seen += 1;
        }
        self.weight += Fixed::from(weight);
        self.inter += Fixed::from(inter);
        self.locations += 1;
        self.has_all |= foreign == 0;
    }

    fn merge(&mut self, other: Self) {
        for (own, other) in self.by_callpath.iter_mut().zip(other.by_callpath) {
            own.impact += other.impact;
            own.weight += other.weight;
            own.inter += other.inter;
            own.seen += other.seen;
        }
        self.weight += other.weight;
        self.inter += other.inter;
        self.locations += other.locations;
        self.has_all |= other.has_all;
    }

    fn book<'a>(
        &self,
        path: impl Iterator<Item = &'a Severity>,
        position: &[u32],
        lengths: &[i64],
        model: CostModel,
    ) -> Vec<Cost> {
        let mut costs = Vec::new();
        let is_poisoned = model == CostModel::Scalasca && self.has_all;
        for cell in path {
            let Some(&length) = lengths.get(position[cell.callpath] as usize) else { continue };
            let contribution = &self.by_callpath[position[cell.callpath] as usize];
            let mut impact = f64::from(contribution.impact);
            let mut inter = 0.0;
            if contribution.seen < self.locations {
                impact += f64::from(self.weight - contribution.weight) * length as f64;
                inter = f64::from(self.inter - contribution.inter) * length as f64;
            }
            let mut add = |metric, cost: f64| {
                if cost > 0.0 {
                    let value = cost * (cell.value as f64 / length as f64);
                    costs.push(Cost { metric, callpath: cell.callpath, location: cell.location, value });
                }
            };
            add(CostMetric::CriticalImbalanceImpact, impact);
            if !is_poisoned {
                add(CostMetric::InterPartitionImbalance, inter);
            }
        }
        costs
    }
}
