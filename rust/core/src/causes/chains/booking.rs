//! Books the costs of waits between devices: from the latest wait to the earliest, so that what each caused later is known when
//! it is distributed.

use std::cmp::Reverse;
use std::ops::Range;

use bitcode::{Decode, Encode};
use rustc_hash::FxHashMap;

use super::division::{Chains, Division};
use super::links::Node;
use crate::causes::{CostModel, Explanation};
use crate::ids::{CallPathId, InstanceId, LocationId};
use crate::schema::{Class, Classes};
use crate::severity::{Accumulator, Cost, CostMetric};
use crate::trace::{CallTree, Trace};
use crate::waits::interval::overlap;

/// What later waits of processes hand on to the wait of a kernel through its host ([`crate::causes::awaited`]).
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub(crate) struct HandedOn {
    /// Location and region instance.
    pub kernel: (LocationId, InstanceId),
    /// The class of these waits.
    pub class: Class,
    /// Their costs, ticks.
    pub ticks: f64,
}

/// What the waits between devices cost.
#[derive(Debug, Default)]
pub(crate) struct Booked {
    /// Costs at the locations of this process.
    pub costs: Vec<Cost>,
    /// The causes and effects of each wait.
    pub explanations: FxHashMap<(LocationId, InstanceId), Explanation>,
}

impl Chains {
    /// Computes the costs of all waits, or of their parts inside a window, and of what is handed on to them.
    pub(crate) fn book(
        &self,
        trace: &Trace,
        model: CostModel,
        window: Option<&Range<i64>>,
        handed_on: &[HandedOn],
    ) -> Booked {
        let mut order: Vec<u32> =
            (0..self.nodes.len() as u32).filter(|&number| self.nodes[number as usize].waiting > 0).collect();
        order.sort_unstable_by_key(|&number| {
            let node = &self.nodes[number as usize];
            (Reverse(node.begin + node.waiting), number)
        });
        let classes = Classes::new(handed_on.iter().map(|costs| costs.class).chain([Class::Ccl]));
        let own = classes.column(Class::Ccl);
        let width = classes.all.len();
        let mut phi = vec![0.0; self.nodes.len() * width];
        for costs in handed_on {
            if let Some(&number) = self.number.get(&costs.kernel) {
                phi[number as usize * width + classes.column(costs.class)] += costs.ticks;
            }
        }
        let mut propagating = vec![0.0f64; self.nodes.len()];
        let mut books = Books { trace, of_locations: FxHashMap::default() };
        let mut explanations = FxHashMap::default();
        for number in order.into_iter().filter(|_| model != CostModel::Scalasca) {
            let node = &self.nodes[number as usize];
            let amount = window.map_or(node.exposed, |window| overlap(window, node.begin..node.begin + node.exposed));
            let amount = amount as f64;
            let of_later = phi[number as usize * width..(number as usize + 1) * width].to_vec();
            let later: f64 = of_later.iter().sum();
            let Some(Division { delays, completion, tied, waits, delay, waiting, .. }) = self.divide(number) else {
                books.add(node, CostMetric::DelayUnattributed, amount + later);
                continue;
            };
            let all = delay + waiting;
            let rate = match all {
                0 => 0.0,
                _ if model == CostModel::Bounded => 1.0 / all.max(node.waiting) as f64,
                _ => 1.0 / all as f64,
            };
            let mut rest = 1.0 - all as f64 * rate;
            let mut cost = |location, callpath: CallPathId, ticks: i64| {
                if callpath.is_none() {
                    rest += ticks as f64 * rate;
                }
                books.cell(location, callpath, Class::Ccl.short_term(), amount * ticks as f64 * rate);
                for (class, later) in classes.all.iter().zip(&of_later) {
                    books.cell(location, callpath, class.long_term(), later * ticks as f64 * rate);
                }
            };
            for delay in &delays {
                cost(delay.location, delay.callpath, delay.ticks - delay.waiter_ticks);
            }
            // Without an operation, the window of the cause begins later: that lies outside of the trace.
            let of_cause = tied.map(|(_, of_cause)| &self.nodes[of_cause as usize]);
            let (location, callpath) =
                of_cause.map_or((node.kernel.0, CallPathId::NONE), |of_cause| (of_cause.kernel.0, of_cause.callpath));
            cost(location, callpath, completion);
            books.add(node, CostMetric::DelayUnattributed, (amount + later) * rest.max(0.0));
            books.add(node, CostMetric::WaitUnexplained, amount * (1.0 - all as f64 / node.waiting as f64).max(0.0));
            let mut indirect = 0.0;
            for earlier in waits {
                let of_earlier = &self.nodes[earlier as usize];
                let share = of_earlier.waiting as f64 * rate;
                let of_earlier_phi = &mut phi[earlier as usize * width..(earlier as usize + 1) * width];
                of_earlier_phi.iter_mut().zip(&of_later).for_each(|(phi, later)| *phi += later * share);
                of_earlier_phi[own] += amount * share;
                indirect += amount * share;
                let due = (node.exposed as f64 * share).min(of_earlier.exposed as f64);
                propagating[earlier as usize] = propagating[earlier as usize].max(due);
            }
            if let Some(metric) = Class::Ccl.indirect() {
                books.add(node, metric, indirect);
            }
            if let Some(metric) = Class::Ccl.propagating() {
                let part = if node.exposed > 0 { amount / node.exposed as f64 } else { 0.0 };
                books.add(node, metric, propagating[number as usize] * part);
            }
            let of_wait = Explanation { indirect, propagating: propagating[number as usize], caused: later };
            explanations.insert(node.kernel, of_wait);
        }
        Booked { costs: books.finish(&trace.tree), explanations }
    }

    /// Whether a part of a wait lies outside of a window.
    pub(crate) fn reach_out_of(&self, window: &Range<i64>) -> bool {
        self.nodes.iter().any(|node| overlap(window, node.begin..node.begin + node.exposed) < node.exposed)
    }
}

/// Cells of locations of this process.
struct Books<'a> {
    trace: &'a Trace,
    of_locations: FxHashMap<LocationId, Vec<(CostMetric, CallPathId, f64)>>,
}

impl Books<'_> {
    /// Adds to the cell of a wait.
    fn add(&mut self, node: &Node, metric: CostMetric, value: f64) {
        self.cell(node.kernel.0, node.callpath, metric, value);
    }

    fn cell(&mut self, location: LocationId, callpath: CallPathId, metric: CostMetric, value: f64) {
        // Each process computes all, and books its own.
        if value > 0.0 && callpath.is_some() && self.trace.owns(location) {
            self.of_locations.entry(location).or_default().push((metric, callpath, value));
        }
    }

    fn finish(self, tree: &CallTree) -> Vec<Cost> {
        let mut locations: Vec<_> = self.of_locations.into_iter().collect();
        locations.sort_unstable_by_key(|&(location, _)| location);
        let mut cells = Accumulator::<CostMetric>::new(tree);
        for (location, of_location) in locations {
            for (metric, callpath, value) in of_location {
                cells.add(metric, callpath, value);
            }
            cells.end_location(location);
        }
        cells.finish()
    }
}
