//! Costs by call path: what each location pays for the waits that it caused.
//!
//! `cost_K(c) = Σ over the waiters of (phi_K or ω) · D(c) · share of a tick of delay` (equations 4.11, 4.12, 4.18, 4.19).
//!
//! Of a call path that a waiter did not execute all is delay. So a look at the waiters' own call paths is enough, however
//! many call paths the causing process had: the others get the sum of all shares.

use super::points::Relation;
use super::table::Group;
use super::{CostModel, Fixed, Table};
use crate::severity::{Accumulator, Cost, Metric};
use crate::trace::{NONE, Shard, Trace};

/// Books the costs of a shard's locations, and the classes of their waits.
pub(super) fn book(trace: &Trace, shard: &Shard, table: &Table, model: CostModel) -> Vec<Cost> {
    let mut cells = Accumulator::new(&trace.tree);
    let mut kernel = Kernel::new(trace.tree.len());
    for i in 0..shard.locations.len() {
        for number in table.points_of(i) {
            for group in table.groups.of(number) {
                kernel.charge(table, group, &mut cells);
            }
            classify(table, number, model, &mut cells);
        }
        cells.end_location(shard.location(i));
    }
    cells.finish()
}

/// Books the indirect and the propagating part of the waits at a point, and what nobody can be blamed for.
fn classify(table: &Table, number: usize, model: CostModel, cells: &mut Accumulator<f64>) {
    let point = &table.points[number];
    if point.waiting <= 0 {
        return;
    }
    let asks = table.asks_of.of(number);
    for &ask in asks {
        let ask = &table.asks[ask as usize];
        if let Some(metric) = ask.pair.class.indirect().filter(|_| ask.indirect > 0.0) {
            cells.add(metric, point.callpath, ask.indirect);
        }
        if model == CostModel::Thesis && !ask.is_attributed && ask.pair.waiting > 0 {
            let waiting = ask.pair.waiting as f64;
            let cost = waiting + table.phi[number] * (waiting / point.waiting as f64);
            cells.add(Metric::DelayUnattributed, point.callpath, cost);
        }
    }
    // Nobody is charged for the wait at the end of the library, so what it caused has no cause either.
    if model == CostModel::Thesis && asks.is_empty() && table.phi[number] > 0.0 {
        cells.add(Metric::DelayUnattributed, point.callpath, table.phi[number]);
    }
    if let Some(metric) = point.class.propagating().filter(|_| table.propagating[number] > 0.0) {
        cells.add(metric, point.callpath, table.propagating[number]);
    }
}

/// Sums up the costs of one group after the other.
#[derive(Default)]
struct Kernel {
    /// For each call path its position in the causing process's work, counted from 1.
    position: Vec<u32>,
    /// For each entry of that work, and each column that is not empty: the share of those that executed it as well, and
    /// their costs.
    shares: Vec<Fixed>,
    costs: Vec<f64>,
    /// For each entry the number of those.
    seen: Vec<u32>,
    /// Columns that are not empty; sums by column, exact ones for these, values of a row.
    columns: Vec<usize>,
    totals: Vec<f64>,
    exact: Vec<Fixed>,
    values: Vec<f64>,
}

impl Kernel {
    fn new(callpaths: usize) -> Self {
        Self { position: vec![0; callpaths], ..Self::default() }
    }

    fn charge(&mut self, table: &Table, group: &Group, cells: &mut Accumulator<f64>) {
        let work = group.work.of(&table.entries);
        if work.is_empty() {
            return;
        }
        // Column 0 is what is distributed directly, then phi by class.
        self.totals.clear();
        self.totals.resize(table.classes.all.len() + 1, 0.0);
        for row in group.charges() {
            for (total, value) in self.totals.iter_mut().zip(values(table, row)) {
                *total += value;
            }
        }
        self.columns.clear();
        self.columns.extend((0..self.totals.len()).filter(|&column| self.totals[column] != 0.0));
        if self.columns.is_empty() {
            return;
        }
        let metric = |column: usize| match (column.checked_sub(1), group.relation) {
            (None, _) => group.class.short_term(),
            (Some(_), Relation::Contention) => Metric::IntervalDelayLockLongTerm,
            (Some(class), _) => table.classes.all[class].long_term(),
        };
        // Interval delays are the time itself, not what it is more than that of the waiter.
        let differs = !matches!(group.relation, Relation::Contention | Relation::Alone);
        let waiters = group.charges().len() as u32;
        if differs {
            self.compare(table, group, work);
        }
        let width = self.columns.len();
        for (entry, &(callpath, ticks)) in work.iter().enumerate() {
            let seen = if differs { self.seen[entry] } else { 0 };
            for (k, &column) in self.columns.iter().enumerate() {
                let at = entry * width + k;
                let cost = match seen {
                    0 => self.totals[column] * ticks as f64,
                    _ if seen == waiters => self.costs[at],
                    _ => self.costs[at] + f64::from(self.exact[k] - self.shares[at]) * ticks as f64,
                };
                if cost > 0.0 {
                    cells.add(metric(column), callpath, cost);
                }
            }
            self.position[callpath as usize] = 0;
        }
    }

    /// Compares the causing process's work with that of each waiter.
    fn compare(&mut self, table: &Table, group: &Group, work: &[(u32, i64)]) {
        let is_alone = group.charges().len() == 1;
        let width = self.columns.len();
        for (entry, &(callpath, _)) in work.iter().enumerate() {
            self.position[callpath as usize] = entry as u32 + 1;
        }
        self.seen.clear();
        self.seen.resize(work.len(), 0);
        self.costs.clear();
        self.costs.resize(work.len() * width, 0.0);
        self.exact.clear();
        self.exact.resize(width, Fixed::default());
        self.shares.clear();
        self.shares.resize(if is_alone { 0 } else { work.len() * width }, Fixed::default());
        for row in group.charges() {
            self.values.clear();
            self.values.extend(values(table, row));
            if !is_alone {
                for (exact, &column) in self.exact.iter_mut().zip(&self.columns) {
                    *exact += Fixed::from(self.values[column]);
                }
            }
            for &(callpath, ticks) in table.charges.rows[row].work.of(&table.received) {
                let Some(entry) = (self.position[callpath as usize] as usize).checked_sub(1) else { continue };
                self.seen[entry] += 1;
                let delay = (work[entry].1 - ticks).max(0) as f64;
                for (k, &column) in self.columns.iter().enumerate() {
                    let at = entry * width + k;
                    self.costs[at] += self.values[column] * delay;
                    if !is_alone {
                        self.shares[at] += Fixed::from(self.values[column]);
                    }
                }
            }
        }
    }
}

/// What each tick of delay gets for a row, by column.
fn values(table: &Table, row: usize) -> impl Iterator<Item = f64> {
    let charge = &table.charges.rows[row];
    let width = table.classes.all.len();
    let phi = if charge.shard == NONE { &[][..] } else { &table.charged_phi[row * width..(row + 1) * width] };
    std::iter::once(charge.direct as f64).chain(phi.iter().copied()).map(|value| value * charge.work_rate)
}
