//! Books the costs of waits between devices: from the latest wait to the earliest, so that what each caused later is known when
//! it is distributed.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::division::{Chains, Division};
use super::links::Node;
use super::profile::Profiles;
use super::segments::Segment;
use crate::causes::handed_on::HandedOn;
use crate::causes::table::Extent;
use crate::causes::{CostModel, Explanation};
use crate::ids::{CallPathId, InstanceId, LocationId};
use crate::schema::{Class, Classes};
use crate::severity::{Accumulator, Cost, CostMetric};
use crate::trace::{CallTree, Trace};

/// What the waits between devices cost.
#[derive(Debug, Default)]
pub(crate) struct Booked {
    /// Costs at the locations of this process, by part of the waits.
    pub parts: Vec<Vec<Cost>>,
    /// The causes and effects of each wait.
    pub explanations: FxHashMap<(LocationId, InstanceId), Explanation>,
    /// What is handed on to waits of hosts of all processes.
    pub handed_on: Vec<HandedOn>,
}

/// Costs of later waits: for each earlier one, by part and class.
struct Later {
    classes: Classes,
    parts: usize,
    of_nodes: Vec<f64>,
    /// For each tick that hosts wait on a link: by its last segment, and the time since when they count.
    of_links: BTreeMap<(u32, i64), OfTick>,
}

/// What a tick of waiting is to have.
struct OfTick {
    costs: Vec<f64>,
    /// The most of a single later wait.
    due: f64,
}

impl OfTick {
    fn new(width: usize) -> Self {
        Self { costs: vec![0.0; width], due: 0.0 }
    }

    /// Adds costs for each tick, and what a single later wait is due to it.
    fn add(&mut self, costs: &[f64], rate: f64, due: f64) {
        self.costs.iter_mut().zip(costs).for_each(|(own, costs)| *own += costs * rate);
        self.due = self.due.max(due);
    }
}

impl Later {
    fn new(chains: &Chains, parts: usize, handed_on: &[HandedOn]) -> Self {
        let classes = Classes::new(handed_on.iter().map(|costs| costs.class).chain([Class::Ccl]));
        let of_nodes = vec![0.0; chains.nodes.len() * parts * classes.all.len()];
        let mut later = Self { classes, parts, of_nodes, of_links: BTreeMap::new() };
        for costs in handed_on.iter().filter(|costs| costs.work.is_none()) {
            if let Some(&number) = chains.number.get(&costs.to) {
                let column = later.column(usize::from(costs.part), costs.class);
                later.of_node(number)[column] += costs.ticks;
            }
        }
        later
    }

    fn width(&self) -> usize {
        self.parts * self.classes.all.len()
    }

    fn column(&self, part: usize, class: Class) -> usize {
        part * self.classes.all.len() + self.classes.column(class)
    }

    fn of_node(&mut self, number: u32) -> &mut [f64] {
        let begin = number as usize * self.width();
        let end = begin + self.width();
        &mut self.of_nodes[begin..end]
    }

    /// For each tick that hosts wait on a link, what they are to have.
    fn of_link(&mut self, link: (u32, i64)) -> &mut OfTick {
        let width = self.width();
        self.of_links.entry(link).or_insert_with(|| OfTick::new(width))
    }

    /// What hosts are to have.
    fn handed_on(mut self, segments: &[Segment]) -> Vec<HandedOn> {
        let width = self.width();
        let mut of_hosts: BTreeMap<(LocationId, InstanceId), OfTick> = BTreeMap::new();
        while let Some(((number, first), of_tick)) = self.of_links.pop_last() {
            let segment = &segments[number as usize];
            for stretch in segment.stretches_after(first).filter(|stretch| stretch.wait.is_some()) {
                let of_host = of_hosts.entry((stretch.location, stretch.wait)).or_insert_with(|| OfTick::new(width));
                let ticks = stretch.ticks as f64;
                of_host.add(&of_tick.costs, ticks, of_tick.due * ticks);
            }
            // Segments before it have smaller numbers.
            if let Some(before) = segment.before.filter(|_| segment.since > first) {
                self.of_link((before, first)).add(&of_tick.costs, 1.0, of_tick.due);
            }
        }
        let of_host = |(to, OfTick { costs, due }): ((LocationId, InstanceId), OfTick)| {
            let of_parts = costs.chunks_exact(self.classes.all.len()).zip(0..);
            let handed_on = of_parts.flat_map(|(costs, part)| {
                let of_classes = self.classes.all.iter().zip(costs).filter(|&(_, &ticks)| ticks > 0.0);
                let work = CallPathId::NONE;
                of_classes.map(move |(&class, &ticks)| HandedOn { to, work, part, class, ticks, due })
            });
            handed_on.collect::<Vec<_>>()
        };
        of_hosts.into_iter().flat_map(of_host).collect()
    }
}

impl Chains {
    /// Computes the costs of these parts of all waits, and of what is handed on to them.
    pub(crate) fn book(&self, trace: &Trace, model: CostModel, extents: &[Extent], handed_on: &[HandedOn]) -> Booked {
        let mut later = Later::new(self, extents.len(), handed_on);
        let width = later.classes.all.len();
        let mut propagating = vec![0.0f64; self.nodes.len()];
        let mut is_booked = vec![false; self.nodes.len()];
        let mut books: Vec<Books> =
            extents.iter().map(|_| Books { trace, of_locations: FxHashMap::default() }).collect();
        for costs in handed_on {
            if let Some(&number) = self.number.get(&costs.to).filter(|_| costs.work.is_none()) {
                let due = costs.due.min(self.nodes[number as usize].exposed as f64);
                propagating[number as usize] = propagating[number as usize].max(due);
            }
            books[usize::from(costs.part)].cell(costs.to.0, costs.work, costs.class.long_term(), costs.ticks);
        }
        let mut explanations = FxHashMap::default();
        let mut profiles = Profiles::default();
        for &number in self.order.iter().filter(|_| model != CostModel::Scalasca) {
            is_booked[number as usize] = true;
            let node = &self.nodes[number as usize];
            let exposed = node.begin..node.begin + node.exposed;
            let division = self.divide(number, &mut profiles);
            let of_later = later.of_node(number).to_vec();
            for ((extent, books), of_later) in extents.iter().zip(&mut books).zip(of_later.chunks_exact(width)) {
                let amount = extent.within(exposed.clone()) as f64;
                self.book_part(
                    books,
                    (node, propagating[number as usize]),
                    division.as_ref(),
                    model,
                    amount,
                    (&later.classes.all, of_later),
                );
            }
            let Some(division) = division else { continue };
            let rate = division.rate(node.waiting, model);
            let mut indirect = 0.0;
            // Of this wait and of what it caused later, by part and class.
            let mut all = of_later.clone();
            for (part, extent) in extents.iter().enumerate() {
                let amount = extent.within(exposed.clone()) as f64;
                all[later.column(part, Class::Ccl)] += amount;
                indirect += if part == 0 { amount * division.waiting as f64 * rate } else { 0.0 };
            }
            let share = |earlier: &mut [f64], share: f64| {
                earlier.iter_mut().zip(&all).for_each(|(earlier, costs)| *earlier += costs * share);
            };
            for &link in &division.links {
                later.of_link(link).add(&all, rate, node.exposed as f64 * rate);
            }
            for &(earlier, ticks) in &division.kernels {
                if is_booked[earlier as usize] {
                    // The clocks of the ranks contradict each other.
                    let lost = all.chunks_exact(width).map(|all| all.iter().sum::<f64>() * ticks as f64 * rate);
                    books
                        .iter_mut()
                        .zip(lost)
                        .for_each(|(books, lost)| books.add(node, CostMetric::DelayUnattributed, lost));
                    continue;
                }
                share(later.of_node(earlier), ticks as f64 * rate);
                let due = node.exposed as f64 * ticks as f64 * rate;
                let due = due.min(self.nodes[earlier as usize].exposed as f64);
                propagating[earlier as usize] = propagating[earlier as usize].max(due);
            }
            let caused = of_later[..width].iter().sum();
            explanations
                .insert(node.kernel, Explanation { indirect, propagating: propagating[number as usize], caused });
        }
        let handed_on = later.handed_on(&self.segments);
        Booked { parts: books.into_iter().map(|books| books.finish(&trace.tree)).collect(), explanations, handed_on }
    }

    /// Books what a part of a wait, and the later waits that it caused, cost.
    fn book_part(
        &self,
        books: &mut Books,
        (node, propagating): (&Node, f64),
        division: Option<&Division>,
        model: CostModel,
        amount: f64,
        (classes, of_later): (&[Class], &[f64]),
    ) {
        let later: f64 = of_later.iter().sum();
        let Some(division) = division else {
            books.add(node, CostMetric::DelayUnattributed, amount + later);
            return;
        };
        let (rate, all) = (division.rate(node.waiting, model), division.delay + division.waiting);
        let mut rest = 1.0 - all as f64 * rate;
        let mut cost = |location, callpath: CallPathId, ticks: i64| {
            if callpath.is_none() {
                rest += ticks as f64 * rate;
            }
            books.cell(location, callpath, Class::Ccl.short_term(), amount * ticks as f64 * rate);
            for (class, later) in classes.iter().zip(of_later) {
                books.cell(location, callpath, class.long_term(), later * ticks as f64 * rate);
            }
        };
        for delay in &division.delays {
            cost(delay.location, delay.callpath, delay.ticks - delay.waiter_ticks);
        }
        // Without an operation, the window of the cause begins later: that lies outside of the trace.
        let of_cause = division.tied.map(|(_, of_cause)| &self.nodes[of_cause as usize]);
        let (location, callpath) =
            of_cause.map_or((node.kernel.0, CallPathId::NONE), |of_cause| (of_cause.kernel.0, of_cause.callpath));
        cost(location, callpath, division.completion);
        books.add(node, CostMetric::DelayUnattributed, (amount + later) * rest.max(0.0));
        books.add(node, CostMetric::WaitUnexplained, amount * (1.0 - all as f64 / node.waiting as f64).max(0.0));
        if let Some(metric) = Class::Ccl.indirect() {
            books.add(node, metric, amount * division.waiting as f64 * rate);
        }
        if let Some(metric) = Class::Ccl.propagating() {
            let part = if node.exposed > 0 { amount / node.exposed as f64 } else { 0.0 };
            books.add(node, metric, propagating * part);
        }
    }

    /// Whether a part of a wait lies outside of a window.
    pub(crate) fn reach_into(&self, extent: &Extent) -> bool {
        self.nodes.iter().any(|node| extent.within(node.begin..node.begin + node.exposed) > 0)
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
