//! Delays, and the distribution of a wait over them and over earlier waits.
//!
//! [`super::scaling_factors`] determines the share of each tick.
//!
//! *Direct and indirect*: the share of earlier waits in a wait is its indirect part. *Propagating and terminal*: the
//! largest share of a wait that any single later wait is due to is its propagating part
//! (specification.md#direct-and-indirect-propagating-and-terminal).
//!
//! None of this needs results of other locations, so all waits are processed in parallel.

use bitcode::{Decode, Encode};

use super::cost_model::CostModel;
use super::points::Relation;
use super::scaling_factors::Rates;
use super::table::Table;
use super::table::{CostShare, EntryRange, Group, ProfileEntry};
use crate::Result;
use crate::parallel::exchange::{Inbox, Outbox};
use crate::parallel::iter::prelude::*;
use crate::schema::Class;
use crate::trace::Trace;

/// The result for the waiting side.
#[derive(Clone, Copy, Encode, Decode)]
struct ShareOfWait {
    own_wait: u32,
    cause_point: u32,
    cost_share: u32,
    indirect: f64,
    explained: i64,
}

/// Computes the shares of all waits from the work that the waiters have sent.
pub(super) fn compute_shares(
    trace: &Trace,
    tables: &mut [Table],
    works: Vec<Outbox<ProfileEntry>>,
    model: CostModel,
) -> Result<()> {
    let works = trace.exchange.alltoallv(works)?;
    let shares: Vec<Outbox<ShareOfWait>> = trace
        .par_shards()
        .zip(&mut *tables)
        .zip(works)
        .map(|((_, table), inbox)| rate_waits(trace, table, &inbox, model))
        .collect();
    tables.par_iter_mut().zip(trace.exchange.alltoallv(shares)?).for_each(|(table, inbox)| {
        // Copies stand between the waits, which others refer to by number.
        let has_copies = table.pasts.iter().any(Option::is_some);
        let originals =
            table.own_waits.rows.iter().zip(0..).filter(|(wait, _)| has_copies && wait.original().is_none());
        let originals: Vec<u32> = originals.map(|(_, position)| position).collect();
        for share in inbox.rows() {
            let position = originals.get(share.own_wait as usize).copied().unwrap_or(share.own_wait);
            let own_wait = &mut table.own_waits.rows[position as usize];
            own_wait.cause_point = share.cause_point;
            own_wait.cost_share = share.cost_share;
            own_wait.indirect = share.indirect;
            own_wait.explained = share.explained;
        }
    });
    Ok(())
}

/// Marks work that equals that of the previous wait.
const SAME: u32 = u32::MAX;

/// Sends the work of a waiter, preceded by an entry with its length, in the order of the waits.
pub(super) fn send(outbox: &mut Outbox<ProfileEntry>, owner: u32, work: &[ProfileEntry]) {
    outbox.extend(owner, ProfileEntry::head(work.len() as u32), work);
}

/// Sends a mark that the work of a waiter equals that of the previous wait.
pub(super) fn send_same(outbox: &mut Outbox<ProfileEntry>, owner: u32) {
    outbox.push(owner, ProfileEntry::head(SAME));
}

/// The work that each of `waiters` sent, in the order in which the waits arrived.
fn received(inbox: &Inbox<ProfileEntry>, waiters: usize) -> Vec<&[ProfileEntry]> {
    let mut works: Vec<&[ProfileEntry]> = Vec::with_capacity(waiters);
    for mut entries in inbox.parts() {
        while let Some((head, rest)) = entries.split_first() {
            let (work, rest) = match head.length() {
                SAME => (works.last().copied().unwrap_or_default(), rest),
                length => rest.split_at(length as usize),
            };
            works.push(work);
            entries = rest;
        }
    }
    works
}

fn rate_waits(trace: &Trace, table: &mut Table, inbox: &Inbox<ProfileEntry>, model: CostModel) -> Outbox<ShareOfWait> {
    let mut outbox = trace.exchange.outbox();
    let received = received(inbox, table.cost_shares.len());
    let entries = std::mem::take(&mut table.entries);
    let mut own = vec![0; trace.tree.len()];
    let mut range_max = RangeMax::new(table.points.len(), table.cost_shares.len());
    for group in &mut table.groups.rows {
        let work = group.work.of(&entries);
        let mut total = 0;
        for (callpath, ticks) in ProfileEntry::read(work) {
            own[callpath] = ticks;
            total += ticks;
        }
        let mut needs_work = false;
        for row in group.cost_shares() {
            let cost_share = &mut table.cost_shares[row];
            if cost_share.is_shared_out() {
                let other = received[cost_share.arrival as usize];
                let explained = match cost_share.relation {
                    Relation::Contention => contention(cost_share, group, total, other, model),
                    // What the owners of the lock do is charged moment by moment, and chains have costs of their own.
                    Relation::Ownership | Relation::Creation | Relation::Start | Relation::Chain => {
                        cost_share.is_listed = true;
                        0
                    }
                    _ => synchronization(cost_share, group, (work, total), &mut own, other, &mut table.entries, model),
                };
                let is_classified = model != CostModel::Scalasca || cost_share.class.is_message();
                let indirect = cost_share.direct as f64 * cost_share.wait_rate * group.waiting as f64;
                if is_classified {
                    range_max.add((cost_share.direct as f64 * cost_share.wait_rate).min(1.0), group.from, group.point);
                }
                outbox.push(
                    cost_share.shard,
                    ShareOfWait {
                        own_wait: cost_share.own_wait,
                        cause_point: group.point,
                        cost_share: row as u32,
                        indirect: if is_classified { indirect } else { 0.0 },
                        explained,
                    },
                );
            }
            needs_work |= !cost_share.is_listed;
        }
        for (callpath, _) in ProfileEntry::read(work) {
            own[callpath] = 0;
        }
        let begin = table.entries.len() as u32;
        table.entries.extend(work.iter().filter(|_| needs_work));
        group.work = EntryRange { begin, end: table.entries.len() as u32 };
    }
    table.entries.shrink_to_fit();
    let is_classified = |class: Class| model != CostModel::Scalasca || class.is_message();
    table.propagating = range_max.finish();
    for copy in &table.own_waits.rows {
        if let Some(original) = copy.original() {
            let share = table.propagating[copy.point as usize];
            let most = &mut table.propagating[original as usize];
            *most = most.max(share);
        }
    }
    for number in 0..table.points.len() {
        let is_classified = is_classified(table.points[number].class);
        table.propagating[number] *= if is_classified { table.waiting(number as u32) as f64 } else { 0.0 };
    }
    outbox
}

/// Equations 4.2, 4.9, 4.10; `own` is the causing process's work by call path. Returns the delays and waits over which
/// the wait is distributed.
fn synchronization(
    cost_share: &mut CostShare,
    group: &Group,
    (work, total): (&[ProfileEntry], i64),
    own: &mut [i64],
    other: &[ProfileEntry],
    delays: &mut Vec<ProfileEntry>,
    model: CostModel,
) -> i64 {
    // Common work, and the numbers of common call paths and of those without delay.
    let (mut common, mut shared, mut level) = (0, 0, 0);
    for (callpath, waiter) in ProfileEntry::read(other) {
        let ticks = own[callpath];
        common += waiter.min(ticks);
        shared += usize::from(ticks > 0);
        level += usize::from(ticks > 0 && ticks <= waiter);
    }
    let rates = Rates::of_synchronization(cost_share.direct, total - common, group.waiting, cost_share.class, model);
    cost_share.rate(rates);
    if rates.explained == 0 {
        cost_share.is_listed = true;
        return 0;
    }
    let begin = delays.len() as u32;
    cost_share.is_listed = work.len() - level <= shared;
    if cost_share.is_listed {
        for (callpath, ticks) in ProfileEntry::read(other) {
            own[callpath] -= ticks;
        }
        for (callpath, _) in ProfileEntry::read(work) {
            let delay = own[callpath];
            if delay > 0 {
                ProfileEntry::write(delays, callpath, delay);
            }
        }
        for (callpath, ticks) in ProfileEntry::read(other) {
            own[callpath] += ticks;
        }
    } else {
        for (callpath, waiter) in ProfileEntry::read(other) {
            let ticks = own[callpath];
            if ticks > 0 {
                ProfileEntry::write(delays, callpath, (ticks - waiter).max(0));
            }
        }
    }
    cost_share.delays = EntryRange { begin, end: delays.len() as u32 };
    rates.explained
}

/// Equations 4.14 to 4.17. Returns the work and waits over which the wait is distributed.
fn contention(cost_share: &mut CostShare, group: &Group, total: i64, other: &[ProfileEntry], model: CostModel) -> i64 {
    let waiter_worked = ProfileEntry::read(other).map(|(_, ticks)| ticks).sum();
    let rates = Rates::of_contention(cost_share.direct, total, group.waiting, waiter_worked, model);
    cost_share.rate(rates);
    rates.explained
}

impl CostShare {
    fn rate(&mut self, Rates { direct, work, wait, .. }: Rates) {
        (self.direct, self.work_rate, self.wait_rate) = (direct, work, wait);
    }
}

/// For each point, the largest value of all ranges that cover it.
struct RangeMax {
    layers: Vec<(f64, u32, u32)>,
    points: usize,
}

impl RangeMax {
    fn new(points: usize, layers: usize) -> Self {
        Self { layers: Vec::with_capacity(layers), points }
    }

    /// Covers the points `from..to` with a value.
    fn add(&mut self, value: f64, from: u32, to: u32) {
        if value > 0.0 && from < to {
            self.layers.push((value, from, to));
        }
    }

    fn finish(mut self) -> Vec<f64> {
        self.layers.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut values = vec![0.0; self.points];
        // Union-find with path halving: the next point without a value.
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
    use crate::causes::CausedWait;
    use crate::causes::points::{Anchor, Place};
    use crate::ids::{CallPathId, CommId, InstanceId, LocationId};
    use proptest::prelude::*;

    /// A charge, and its delays.
    fn rated(
        class: Class,
        waiting: i64,
        group_waiting: i64,
        own: &[i64],
        other: &[(u32, i64)],
    ) -> (CostShare, Vec<(u32, i64)>) {
        let contends = class == Class::Lock;
        let relation = if contends { Relation::Contention } else { Relation::Pair };
        let cause = Anchor::new((LocationId::new(0), InstanceId::new(0)), Place::Leave);
        let caused = CausedWait {
            shard: 0,
            own_wait: 0,
            waiter: LocationId::new(0),
            comm: CommId::NONE,
            cause,
            class,
            relation,
            waiting,
            completion: 0,
        };
        let mut cost_share = CostShare::new(&caused, 0);
        let group = Group {
            point: 1,
            class,
            relation,
            from: 0,
            before: 0,
            shared_from: 0,
            work: EntryRange::default(),
            waiting: group_waiting,
            begin: 0,
            end: 1,
        };
        let total = own.iter().sum();
        let write = |rows: &mut dyn Iterator<Item = (u32, i64)>| {
            let mut entries = Vec::new();
            rows.for_each(|(callpath, ticks)| ProfileEntry::write(&mut entries, CallPathId::new(callpath), ticks));
            entries
        };
        let other = write(&mut other.iter().copied());
        let work = write(&mut (0..).zip(own.iter().copied()));
        let mut delays = Vec::new();
        if contends {
            contention(&mut cost_share, &group, total, &other, CostModel::Scalasca);
        } else {
            let mut own = own.to_vec();
            own.resize(9, 0);
            synchronization(
                &mut cost_share,
                &group,
                (&work, total),
                &mut own,
                &other,
                &mut delays,
                CostModel::Scalasca,
            );
        }
        (cost_share, ProfileEntry::read(&delays).map(|(callpath, ticks)| (callpath.number(), ticks)).collect())
    }

    /// Thesis figure 4.11: C waits 1.5 for B, which waited 1 and worked 4.
    #[test]
    fn contention_shares_between_waits_and_the_time_of_the_interval() {
        let (cost_share, _) = rated(Class::Lock, 1_500, 1_000, &[1_000; 4], &[]);
        assert!((cost_share.wait_rate * 1_000.0 - 2.0 / 3.0).abs() < 1e-12);
        assert!((cost_share.work_rate * 1_000.0 - 1.0 / 12.0).abs() < 1e-12);
    }

    /// A holder that did less than the waiter was in time: only its waits are to blame.
    #[test]
    fn a_quick_holder_does_not_pay_for_its_work() {
        let (cost_share, _) = rated(Class::Lock, 10, 4, &[5, 5], &[(0, 11)]);
        assert_eq!((cost_share.work_rate, cost_share.wait_rate), (0.0, 0.25));
        let (nobody, _) = rated(Class::Lock, 10, 0, &[5], &[(1, 6)]);
        assert_eq!((nobody.work_rate, nobody.wait_rate), (0.0, 0.0));
    }

    /// Only the excess over the waiter's work counts, by call path; Scalasca charges no more than that.
    #[test]
    fn delays_are_differences() {
        let (cost_share, delays) = rated(Class::LateSender, 9, 2, &[5, 1, 3], &[(0, 2), (1, 7)]);
        assert!((cost_share.work_rate - 1.0 / 8.0).abs() < 1e-15);
        assert_eq!(cost_share.direct, 8);
        assert!(cost_share.is_listed);
        assert_eq!(delays, [(0, 3), (2, 3)]);
    }

    /// If the cause did much that the waiter did not, only what both did is listed.
    #[test]
    fn few_entries_say_what_many_delays_are() {
        let (cost_share, delays) = rated(Class::LateSender, 99, 0, &[5, 1, 3, 7, 1 << 40], &[(1, 9), (3, 2), (8, 1)]);
        assert!((cost_share.work_rate - 1.0 / (13.0 + (1u64 << 40) as f64)).abs() < 1e-24);
        assert!(!cost_share.is_listed);
        assert_eq!(delays, [(1, 0), (3, 5)]);
    }

    proptest! {
        #[test]
        fn the_largest_value_wins(layers in prop::collection::vec((0.0f64..1.0, 0u32..12, 0u32..12), 0..20)) {
            let mut range_max = RangeMax::new(12, 0);
            let mut expected = [0.0f64; 12];
            for (value, from, to) in layers {
                range_max.add(value, from, to);
                for point in from..to {
                    expected[point as usize] = expected[point as usize].max(value);
                }
            }
            prop_assert_eq!(range_max.finish(), expected);
        }
    }
}
