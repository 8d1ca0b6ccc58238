//! Delays, and how a wait is shared out among them and the waits before it.
//!
//! *Synchronization*: `D(c) = [d_q(c) − d_p(c)]+`, `D = Σ D(c)`, `W` = waits of the causing process in its interval:
//! each tick of delay and each tick of waiting gets `1 / (D + W)` of what is distributed (equations 4.2, 4.9 to 4.13).
//!
//! *Contention*: `r = min(W / ω, 1)`, `r = 1` if `d+ < d−`: each tick of waiting gets `r / W`, each tick of the interval,
//! whatever the waiter did, `(1 − r) / d+` (equations 4.14 to 4.17).
//!
//! *Direct and indirect*: what the waits get of a wait is its indirect part. *Propagating and terminal*: the largest
//! share of a wait that one later wait is due to is its propagating part (PATTERNS 6.8).
//!
//! All of this needs no other location's result, so it is done for all waits at once.

use rayon::prelude::*;

use super::points::Relation;
use super::table::{Charge, Group, Stretch};
use super::{Class, CostModel, Table};
use crate::exchange::{Inbox, Outbox, to_owner};
use crate::trace::{NONE, Trace};

/// What the waiting side gets to know.
#[derive(Clone, Copy)]
struct Answer {
    ask: u32,
    cause_point: u32,
    charge: u32,
    indirect: f64,
    is_attributed: bool,
}

/// Computes the shares of all waits.
pub(super) fn share(trace: &Trace, tables: &mut [Table], model: CostModel) {
    let outgoing = tables.par_iter().map(|table| post(trace, table)).collect();
    let answers: Vec<Outbox<Answer>> = tables
        .par_iter_mut()
        .zip(to_owner(outgoing))
        .map(|(table, inbox)| {
            receive(table, &inbox);
            drop(inbox);
            rate(trace, table, model)
        })
        .collect();
    tables.par_iter_mut().zip(to_owner(answers)).for_each(|(table, inbox)| {
        for answer in inbox.rows() {
            let ask = &mut table.asks[answer.ask as usize];
            ask.cause_point = answer.cause_point;
            ask.charge = answer.charge;
            ask.indirect = answer.indirect;
            ask.is_attributed = answer.is_attributed;
        }
    });
}

/// The work of all waiters, each behind an entry with its length.
fn post(trace: &Trace, table: &Table) -> Outbox<(u32, i64)> {
    let mut outbox = Outbox::new(trace.shards.len());
    for ask in &table.asks {
        let owner = trace.shard_of[ask.pair.cause.location as usize];
        let work = ask.work.of(&table.entries);
        outbox.push(owner, (work.len() as u32, 0));
        outbox.extend(owner, work.iter().copied());
    }
    outbox
}

/// Gives each row what its waiter sent: it arrives in the order in which the waits themselves arrived.
fn receive(table: &mut Table, inbox: &Inbox<(u32, i64)>) {
    let mut stretches = Vec::with_capacity(table.charges.rows.len());
    table.received.reserve_exact(inbox.len());
    let mut entries = inbox.rows();
    while let Some(&(length, _)) = entries.next() {
        let begin = table.received.len() as u32;
        table.received.extend(entries.by_ref().take(length as usize));
        stretches.push(Stretch { begin, end: table.received.len() as u32 });
    }
    for charge in table.charges.rows.iter_mut().filter(|charge| charge.arrival != NONE) {
        charge.work = stretches[charge.arrival as usize];
    }
}

fn rate(trace: &Trace, table: &mut Table, model: CostModel) -> Outbox<Answer> {
    let mut outbox = Outbox::new(trace.shards.len());
    let mut own = vec![0; trace.tree.len()];
    let mut painter = Painter::new(table.points.len());
    for group in &table.groups.rows {
        let work = group.work.of(&table.entries);
        for &(callpath, ticks) in work {
            own[callpath as usize] = ticks;
        }
        let total: i64 = work.iter().map(|&(_, ticks)| ticks).sum();
        for row in group.charges() {
            let charge = &mut table.charges.rows[row];
            if charge.relation == Relation::Alone {
                continue;
            }
            let other = charge.work.of(&table.received);
            match charge.relation {
                Relation::Contention => contention(charge, group, total, other),
                _ => synchronization(charge, group, total, &own, other, model),
            }
            let is_classified = model == CostModel::Thesis || charge.class.is_message();
            let is_attributed = charge.work_rate > 0.0 || charge.wait_rate > 0.0;
            let indirect = charge.direct as f64 * charge.wait_rate * group.waiting as f64;
            if is_classified && charge.class != Class::OmpBarrier {
                painter.add((charge.direct as f64 * charge.wait_rate).min(1.0), group.from, group.point);
            }
            outbox.push(
                charge.shard,
                Answer {
                    ask: charge.ask,
                    cause_point: group.point,
                    charge: row as u32,
                    indirect: if is_classified { indirect } else { 0.0 },
                    is_attributed,
                },
            );
        }
        for &(callpath, _) in work {
            own[callpath as usize] = 0;
        }
    }
    let is_classified = |class: Class| model == CostModel::Thesis || class.is_message();
    table.propagating = painter.finish();
    for (point, share) in table.points.iter().zip(&mut table.propagating) {
        *share *= if is_classified(point.class) { point.waiting as f64 } else { 0.0 };
    }
    outbox
}

/// Equations 4.2, 4.9, 4.10.
fn synchronization(
    charge: &mut Charge,
    group: &Group,
    total: i64,
    own: &[i64],
    other: &[(u32, i64)],
    model: CostModel,
) {
    let common: i64 = other.iter().map(|&(callpath, ticks)| ticks.min(own[callpath as usize])).sum();
    let whole = total - common + group.waiting;
    if whole == 0 {
        return;
    }
    charge.work_rate = 1.0 / whole as f64;
    charge.wait_rate = charge.work_rate;
    if model == CostModel::Scalasca && charge.class.is_message() {
        // It never charges more than the delay explains.
        charge.direct = charge.direct.min(whole);
    }
}

/// Equations 4.14 to 4.17.
fn contention(charge: &mut Charge, group: &Group, total: i64, other: &[(u32, i64)]) {
    let waiters: i64 = other.iter().map(|&(_, ticks)| ticks).sum();
    // Without its waits the causing process would have been in time.
    let is_quick = total == 0 || total < waiters;
    let share = if is_quick { 1.0 } else { (group.waiting as f64 / charge.direct as f64).min(1.0) };
    if group.waiting > 0 {
        charge.wait_rate = share / group.waiting as f64;
    }
    if !is_quick {
        charge.work_rate = (1.0 - share) / total as f64;
    }
}

/// The largest of the values laid over each point.
struct Painter {
    layers: Vec<(f64, u32, u32)>,
    points: usize,
}

impl Painter {
    fn new(points: usize) -> Self {
        Self { layers: Vec::new(), points }
    }

    /// Lays a value over the points `from..to`.
    fn add(&mut self, value: f64, from: u32, to: u32) {
        if value > 0.0 && from < to {
            self.layers.push((value, from, to));
        }
    }

    fn finish(mut self) -> Vec<f64> {
        self.layers.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut values = vec![0.0; self.points];
        // The next point without a value, found by halving the way to it.
        let mut next: Vec<u32> = (0..=self.points as u32).collect();
        let mut free = |mut point: u32, taken: bool| {
            while next[point as usize] != point {
                next[point as usize] = next[next[point as usize] as usize];
                point = next[point as usize];
            }
            if taken {
                next[point as usize] = point + 1;
            }
            point
        };
        for (value, from, to) in self.layers {
            let mut point = free(from, false);
            while point < to {
                values[point as usize] = value;
                free(point, true);
                point = free(point, false);
            }
        }
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::causes::Caused;
    use crate::causes::points::{Anchor, Place};
    use crate::causes::table::charge;
    use proptest::prelude::*;

    fn rated(class: Class, waiting: i64, group_waiting: i64, own: &[i64], other: &[(u32, i64)]) -> Charge {
        let contends = class == Class::Lock;
        let relation = if contends { Relation::Contention } else { Relation::Pair };
        let cause = Anchor::new((0, 0), Place::Leave);
        let caused =
            Caused { shard: 0, ask: 0, process: 0, comm: NONE, cause, class, relation, waiting, completion: 0 };
        let mut charge = charge(&caused, 0);
        let (work, from) = (Stretch::default(), 0);
        let group = Group {
            point: 1,
            class,
            relation,
            from,
            shared_from: from,
            work,
            waiting: group_waiting,
            begin: 0,
            end: 1,
        };
        let total = own.iter().sum();
        if contends {
            contention(&mut charge, &group, total, other);
        } else {
            synchronization(&mut charge, &group, total, own, other, CostModel::Scalasca);
        }
        charge
    }

    /// Thesis figure 4.11: C waits 1.5 for B, which waited 1 and worked 4.
    #[test]
    fn contention_shares_between_waits_and_the_time_of_the_interval() {
        let charge = rated(Class::Lock, 1_500, 1_000, &[1_000; 4], &[]);
        assert!((charge.wait_rate * 1_000.0 - 2.0 / 3.0).abs() < 1e-12);
        assert!((charge.work_rate * 1_000.0 - 1.0 / 12.0).abs() < 1e-12);
    }

    /// A holder that did less than the waiter was in time: only its waits are to blame.
    #[test]
    fn a_quick_holder_does_not_pay_for_its_work() {
        let charge = rated(Class::Lock, 10, 4, &[5, 5], &[(0, 11)]);
        assert_eq!((charge.work_rate, charge.wait_rate), (0.0, 0.25));
        let nobody = rated(Class::Lock, 10, 0, &[5], &[(1, 6)]);
        assert_eq!((nobody.work_rate, nobody.wait_rate), (0.0, 0.0));
    }

    /// Only what is more than the waiter's counts, by call path; Scalasca charges no more than that.
    #[test]
    fn delays_are_differences() {
        let charge = rated(Class::LateSender, 9, 2, &[5, 1, 3], &[(0, 2), (1, 7)]);
        assert!((charge.work_rate - 1.0 / 8.0).abs() < 1e-15);
        assert_eq!(charge.direct, 8);
    }

    proptest! {
        #[test]
        fn the_largest_value_wins(layers in prop::collection::vec((0.0f64..1.0, 0u32..12, 0u32..12), 0..20)) {
            let mut painter = Painter::new(12);
            let mut expected = [0.0f64; 12];
            for (value, from, to) in layers {
                painter.add(value, from, to);
                for point in from..to {
                    expected[point as usize] = expected[point as usize].max(value);
                }
            }
            prop_assert_eq!(painter.finish(), expected);
        }
    }
}
