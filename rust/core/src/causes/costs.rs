//! Costs by call path: what each location is charged for the waits that it caused.
//!
//! `cost_K(c) = Σ over the waiters of (phi_K or ω) · D(c) · share of a tick of delay` (equations 4.11, 4.12, 4.18,
//! 4.19).
//!
//! Usually a wait has few delays, which are listed. But all time in a call path that a waiter did not execute is delay,
//! and the causing process may have many of those. Then only the waiters' own call paths are visited; all others get
//! the sum of all shares.

use super::cost_model::CostModel;
use super::fixed::Fixed;
use super::points::Relation;
use super::table::Table;
use super::table::{Group, ProfileEntry, WaitPart};
use crate::schema::Class;
use crate::severity::{Accumulator, Cost, CostMetric};
use crate::trace::{NONE, Shard, Trace};

/// The costs of a shard's locations, by part of the waits, and the classification of their waits.
pub(super) struct BookedCosts {
    pub parts: Vec<Vec<Cost>>,
    pub classes: Vec<Cost>,
}

/// Computes the costs of a shard's locations, and classifies their waits.
pub(super) fn book(trace: &Trace, shard: &Shard, table: &Table, model: CostModel) -> BookedCosts {
    let mut parts: Vec<_> = table.parts.iter().map(|_| Accumulator::new(&trace.tree)).collect();
    let mut classes = Accumulator::new(&trace.tree);
    let mut kernel = CostBuffers::new(trace.tree.len(), table);
    for i in 0..shard.locations.len() {
        let location = shard.location(i);
        for number in table.points_of(i) {
            for group in table.groups.of(number) {
                kernel.charge(table, group, &mut parts);
            }
            // The copy of a wait is booked where that is.
            if table.points[number].waiting <= 0 || table.points[number].position.copy().is_some() {
                continue;
            }
            classify(table, number, &mut classes);
            if model != CostModel::Scalasca {
                for (part, cells) in table.parts.iter().zip(&mut parts) {
                    add_unattributed(shard, (table, part), number, model, cells);
                }
            }
        }
        for cells in parts.iter_mut().chain([&mut classes]) {
            cells.end_locations(|callpath| table.of_others[i].owner(location, callpath));
        }
    }
    BookedCosts { parts: parts.into_iter().map(Accumulator::finish).collect(), classes: classes.finish() }
}

/// Adds the indirect and the propagating part of the waits at a point.
fn classify(table: &Table, number: usize, cells: &mut Accumulator<CostMetric>) {
    let point = &table.points[number];
    let own_waits = table.own_waits.of(number);
    for own_wait in own_waits {
        if let Some(metric) = own_wait.class.indirect().filter(|_| own_wait.indirect > 0.0) {
            cells.add(metric, point.callpath, own_wait.indirect);
        }
    }
    // A call that waited for a lock and then for progress is one point, so the same share of both waits propagates.
    let mut propagates = |class: Class, waiting: i64| {
        let propagating = table.propagating[number] * (waiting as f64 / point.waiting as f64);
        if let Some(metric) = class.propagating().filter(|_| propagating > 0.0) {
            cells.add(metric, point.callpath, propagating);
        }
    };
    let mut rest = point.waiting;
    for own_wait in own_waits.iter().filter(|own_wait| own_wait.relation.is_of_two()) {
        propagates(own_wait.class, own_wait.waiting);
        rest -= own_wait.waiting;
    }
    propagates(point.class, rest);
}

/// Adds the unattributed part of the waits at a point, and of the costs that they propagate.
fn add_unattributed(
    shard: &Shard,
    (table, part): (&Table, &WaitPart),
    number: usize,
    model: CostModel,
    cells: &mut Accumulator<CostMetric>,
) {
    let point = &table.points[number];
    let own_waits = table.own_waits.of(number);
    for own_wait in own_waits {
        let unexplained = own_wait.waiting - own_wait.explained;
        // That of waits for locks of threads, and between devices, is booked with their costs.
        if unexplained <= 0 || matches!(own_wait.relation, Relation::Ownership | Relation::Chain) {
            continue;
        }
        let amount = part.extent.of(own_wait, point, shard);
        let is_all = amount == own_wait.waiting;
        let share = if is_all { 1.0 } else { amount as f64 / own_wait.waiting as f64 };
        let here = if own_wait.class == Class::GpuTurn { 0.0 } else { unexplained as f64 * share };
        if here > 0.0 {
            cells.add(CostMetric::WaitUnexplained, point.callpath, here);
        }
        if model == CostModel::Bounded || own_wait.explained == 0 {
            let cost = here + part.phi[number] * (unexplained as f64 / point.waiting as f64);
            cells.add(CostMetric::DelayUnattributed, point.callpath, cost);
        }
    }
    if let Some(&lost) = part.lost.get(&(number as u32)) {
        cells.add(CostMetric::DelayUnattributed, point.callpath, lost);
    }
    // Waits at the shutdown of the library have no costs, so what they caused is unattributed.
    if own_waits.is_empty() && part.phi[number] > 0.0 {
        cells.add(CostMetric::DelayUnattributed, point.callpath, part.phi[number]);
    }
}

/// Working memory to compute the costs of one group at a time.
#[derive(Default)]
struct CostBuffers {
    /// For each call path its position in the causing process's work, counted from 1.
    position: Vec<u32>,
    /// For each entry of that work and each non-empty column: the shares of the waiters that executed it too, and their
    /// costs.
    shares: Vec<Fixed>,
    costs: Vec<f64>,
    /// For each entry the number of these waiters.
    seen: Vec<u32>,
    /// Non-empty columns; sums by column, exact sums for the non-empty ones, values of a row.
    columns: Vec<usize>,
    totals: Vec<f64>,
    exact: Vec<Fixed>,
    values: Vec<f64>,
    /// For each column its part, and the class of phi; `None` for direct costs.
    heads: Vec<(usize, Option<Class>)>,
}

impl CostBuffers {
    fn new(callpaths: usize, table: &Table) -> Self {
        let parts = table.parts.iter().enumerate();
        let direct = parts.clone().map(|(number, _)| (number, None));
        let phi = parts.flat_map(|(number, part)| part.classes.all.iter().map(move |&class| (number, Some(class))));
        Self { position: vec![0; callpaths], heads: direct.chain(phi).collect(), ..Self::default() }
    }

    /// Costs of delays (thesis, equations 4.11 and 4.12), and of work before contention (equations 4.18 and 4.19).
    fn charge(&mut self, table: &Table, group: &Group, parts: &mut [Accumulator<CostMetric>]) {
        let mut rest = 0;
        for row in group.cost_shares() {
            let cost_share = &table.cost_shares[row];
            if !cost_share.is_listed {
                rest += 1;
                continue;
            }
            let delays = cost_share.delays.of(&table.entries);
            for (column, value) in values(table, row).enumerate().filter(|&(_, value)| value != 0.0) {
                let (part, class) = self.heads[column];
                let Some(metric) = metric(group, class) else { continue };
                for (callpath, ticks) in ProfileEntry::read(delays) {
                    parts[part].add(metric, callpath, value * ticks as f64);
                }
            }
        }
        if rest > 0 {
            self.charge_rest(table, group, rest, parts);
        }
    }

    /// Adds the costs of waits whose delays are not listed.
    fn charge_rest(&mut self, table: &Table, group: &Group, waiters: u32, parts: &mut [Accumulator<CostMetric>]) {
        self.totals.clear();
        self.totals.resize(self.heads.len(), 0.0);
        for row in rest(table, group) {
            for (total, value) in self.totals.iter_mut().zip(values(table, row)) {
                *total += value;
            }
        }
        self.columns.clear();
        self.columns.extend((0..self.totals.len()).filter(|&column| self.totals[column] != 0.0));
        if self.columns.is_empty() {
            return;
        }
        let work = group.work.of(&table.entries);
        self.compare(table, group, work);
        let width = self.columns.len();
        for (i, (callpath, ticks)) in ProfileEntry::read(work).enumerate() {
            for (k, &column) in self.columns.iter().enumerate() {
                let at = i * width + k;
                let cost = match self.seen[i] {
                    0 => self.totals[column] * ticks as f64,
                    seen if seen == waiters => self.costs[at],
                    _ => self.costs[at] + f64::from(self.exact[k] - self.shares[at]) * ticks as f64,
                };
                if cost > 0.0 {
                    let (part, class) = self.heads[column];
                    if let Some(metric) = metric(group, class) {
                        parts[part].add(metric, callpath, cost);
                    }
                }
            }
            self.position[callpath] = 0;
        }
    }

    /// Compares the causing process's work with that of each waiter.
    fn compare(&mut self, table: &Table, group: &Group, work: &[ProfileEntry]) {
        let width = self.columns.len();
        for ((callpath, _), i) in ProfileEntry::read(work).zip(1..) {
            self.position[callpath] = i;
        }
        self.seen.clear();
        self.seen.resize(work.len(), 0);
        self.costs.clear();
        self.costs.resize(work.len() * width, 0.0);
        self.exact.clear();
        self.exact.resize(width, Fixed::default());
        self.shares.clear();
        self.shares.resize(work.len() * width, Fixed::default());
        for row in rest(table, group) {
            self.values.clear();
            self.values.extend(values(table, row));
            for (exact, &column) in self.exact.iter_mut().zip(&self.columns) {
                *exact += Fixed::from(self.values[column]);
            }
            for (callpath, delay) in ProfileEntry::read(table.cost_shares[row].delays.of(&table.entries)) {
                let i = self.position[callpath] as usize - 1;
                self.seen[i] += 1;
                for (k, &column) in self.columns.iter().enumerate() {
                    let at = i * width + k;
                    self.costs[at] += self.values[column] * delay as f64;
                    self.shares[at] += Fixed::from(self.values[column]);
                }
            }
        }
    }
}

/// Rows of a group whose delays are not listed.
fn rest(table: &Table, group: &Group) -> impl Iterator<Item = usize> {
    group.cost_shares().filter(|&row| !table.cost_shares[row].is_listed)
}

/// The charge of each tick of delay for a row, by column: first the direct costs, then phi by class, for all parts.
fn values(table: &Table, row: usize) -> impl Iterator<Item = f64> {
    let cost_share = &table.cost_shares[row];
    let width = table.width();
    let phi = if cost_share.shard == NONE { &[][..] } else { &table.charged_phi[row * width..(row + 1) * width] };
    let direct = table.parts.iter().map(move |part| part.amount(row, cost_share) as f64);
    direct.chain(phi.iter().copied()).map(|value| value * cost_share.work_rate)
}

/// Metric of the costs in a column of this class; `None` if they are not booked.
fn metric(group: &Group, class: Option<Class>) -> Option<CostMetric> {
    match (class, group.relation) {
        _ if class.unwrap_or(group.class) == Class::GpuTurn => None,
        (None, _) => Some(group.class.short_term()),
        (Some(_), Relation::Contention) => Some(CostMetric::IntervalDelayLockLongTerm),
        (Some(class), _) => Some(class.long_term()),
    }
}
