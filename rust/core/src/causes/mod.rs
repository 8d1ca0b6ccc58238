//! Root causes: the activities that are charged for each wait, directly or through other waits.
//!
//! ```text
//!  q  (cause)   ---k--[ work and waits       ]--f---      interval of q: from k, their last synchronization, to f
//!  p  (waiter)  ---k'-[ work ][ e: waits    |]------      interval of p: from k' to e
//! ```
//!
//! *Delay*: the excess work of q over p in their intervals, by call path: `D(c) = [d_q(c) − d_p(c)]+`. With W, the
//! waits of q in its interval, the wait at e is distributed over delays and waits in proportion to their shares of `D +
//! W`. The share of a wait is added to its propagation costs phi, which are distributed in the same way over the causes
//! of *that* wait, until only work is left.
//!
//! | step | file |
//! |---|---|
//! | wait states become pairs, group synchronizations, points | [`sync_points`], [`teams`], [`tasks`], [`posix`], [`devices`], [`points`] |
//! | what devices do while their hosts wait is work | [`awaited`] |
//! | one pass over each location gives all intervals | [`intervals`], by [`steps`], [`rolling_profile`], [`last_sync`] |
//! | delays, and the shares of delays and earlier waits | [`delay`], by [`scaling_factors`] |
//! | phi, backwards over all locations | [`propagation`] |
//! | costs by call path | [`costs`] |
//! | what a moment of computation costs, for samples to divide | [`coefficients`] |
//! | waits for locks of threads: their costs, and what they propagate | [`ownership`] |
//! | waits between devices: their costs, by local chains | [`chains`], [`handed_on`] |
//! | the factors of single waits, from the kept part of all intervals | [`factors`], [`interval_index`] |
//!
//! *Source*: specification.md#causes; thesis, sections 4.1 and 4.3.3, definitions 4 to 20, equations 4.1 to 4.19.

mod awaited;
mod chains;
mod coefficients;
mod cost_model;
mod costs;
mod delay;
mod devices;
pub mod factors;
mod fixed;
mod handed_on;
mod interval_index;
mod intervals;
mod last_sync;
mod ownership;
mod past;
pub mod points;
mod posix;
mod propagation;
mod rolling_profile;
mod scaling_factors;
mod states;
mod steps;
mod sync_points;
mod table;
mod tasks;
mod teams;

use std::ops::Range;

use crate::Result;
use crate::diagnostics::{DiagnosticKind, Diagnostics};
use crate::ids::ProcessId;
use crate::matching::threads::locks::ThreadLock;
use crate::parallel::exchange::{Inbox, Outbox};
use crate::parallel::iter::prelude::*;
use crate::parallel::per_shard::PerShard;
use crate::severity::{self, Cost};
use crate::trace::{NONE, Shard, Trace};
use crate::waits::WaitState;
use crate::waits::collective_sync::{CollectiveSync, CollectiveSyncs, Participants};
use crate::waits::device::Devices;
use crate::waits::remote_calls::RemoteCalls;
use bitcode::{Decode, Encode};

pub use cost_model::CostModel;

pub use crate::schema::Class;
use chains::Booked;
pub(crate) use chains::Chains;
pub(crate) use coefficients::Coefficient;
use costs::BookedCosts;
pub(crate) use fixed::Fixed;
pub(crate) use interval_index::IntervalIndex;
pub(crate) use ownership::ContendedLock;
pub(crate) use points::{Anchor, Position};
use points::{CausedWait, Relation, SyncPoints};
pub(crate) use steps::{ForkJoins, Steps};
use table::ProfileEntry;
use table::{Extent, WaitPart};
pub(crate) use table::{OwnWait, Table};

/// Causes and effects of one wait state; all in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Encode, Decode)]
pub struct Explanation {
    /// The part that earlier waits of the causing process explain; the rest is direct.
    pub indirect: f64,
    /// The part that made others wait later; the rest is terminal.
    pub propagating: f64,
    /// Waiting that it caused elsewhere later, directly or not (phi).
    pub caused: f64,
}

/// The causes of all wait states.
#[derive(Debug)]
pub(crate) struct Causes {
    /// The points of all shards, and what happens at them.
    pub tables: Vec<Table>,
    /// Inconsistencies of the trace.
    pub diagnostics: Diagnostics,
    /// The locks of threads that others waited for, by shard.
    pub locks: Vec<Vec<ContendedLock>>,
    /// What waits between devices cost.
    of_chains: Booked,
    model: CostModel,
}

/// What the causes of wait states cost.
#[derive(Debug, Default)]
pub(crate) struct Costs {
    /// Costs, and the classification of waits.
    pub all: Vec<Cost>,
    /// Costs of the parts of waits inside the focus; `None` if these are all waits.
    pub in_focus: Option<Vec<Cost>>,
}

/// Synchronizations without wait states.
pub(crate) struct Synchronized<'a> {
    /// Collective synchronizations of all owners.
    pub of_owners: Vec<CollectiveSyncs>,
    /// Synchronizations inside the shards.
    pub of_shards: &'a [Vec<CollectiveSync>],
    /// The devices of the shards, if there are any.
    pub devices: &'a [Devices],
    /// Whether devices of any rank communicate.
    pub has_chains: bool,
    /// The locks of the threads of each process, by shard.
    pub locks: &'a [Vec<Vec<ThreadLock>>],
}

/// The points of this process, and the waits that its activities cause elsewhere: what the second and third of Scalasca's
/// replays find out (thesis, section 4.3).
pub(crate) struct Notified {
    sets: Vec<Vec<ProcessId>>,
    sync_points: Vec<SyncPoints>,
    /// The locks of threads that others waited for, by shard.
    locks: Vec<Vec<ContendedLock>>,
    caused: Vec<Inbox<CausedWait>>,
}

/// Tells the causes of all wait states of this process about them; `waits` are sorted as in the analysis, and `calls`
/// holds the calls that they name.
pub(crate) fn notify(
    trace: &Trace,
    (waits, calls): (&PerShard<WaitState>, &RemoteCalls),
    synchronized: Synchronized,
    model: CostModel,
) -> Result<Notified> {
    let (sets, (sync_points, locks)) = collect_sync_points(trace, (waits, calls), synchronized, model)?;
    let outgoing = trace.exchange.own().into_par_iter().zip(&sync_points).map(|(number, sync_points)| {
        let mut outbox = trace.exchange.outbox();
        let pairs = sync_points.order.iter().map(|key| &sync_points.pairs[key.number()]);
        for (pair, own_wait) in pairs.zip(0..) {
            let caused = CausedWait {
                shard: number,
                own_wait,
                waiter: pair.waiter.location,
                comm: pair.comm,
                cause: pair.cause,
                class: pair.class,
                relation: pair.relation,
                waiting: pair.waiting,
                completion: pair.cause_completion,
            };
            outbox.push(trace.shard_of[pair.cause.location], caused);
        }
        outbox
    });
    let caused = trace.exchange.alltoallv(outgoing.collect())?;
    Ok(Notified { sets, sync_points, locks, caused })
}

/// How often costs may go from waits over intervals to those over chains and back, and not get to earlier waits, before the rest
/// is given up.
const MOST_ROUNDS: usize = 100;

/// Finds the causes of all wait states of this process. With a window (ticks), costs are those of the waits' parts inside
/// it, without costs of idle threads. With a focus, its costs are computed in addition.
pub(crate) fn find(
    trace: &Trace,
    Notified { sets, sync_points, mut locks, caused }: Notified,
    chains: &Chains,
    (model, window, focus): (CostModel, Option<&Range<i64>>, Option<&Range<i64>>),
) -> Result<Causes> {
    let (mut tables, works): (Vec<Table>, Vec<Outbox<ProfileEntry>>) = trace
        .par_shards()
        .zip(sync_points)
        .zip(caused)
        .map(|((shard, sync_points), caused)| {
            intervals::measure(trace, shard, sync_points, caused.into_vec(), &sets, model)
        })
        .unzip();
    delay::compute_shares(trace, &mut tables, works, model)?;
    let shards = trace.par_shards().zip(&mut tables).zip(&mut locks);
    shards.for_each(|((shard, table), locks)| ownership::attach(shard, locks, table));
    let extents = divide(trace, &mut tables, (&locks, chains), (window, focus))?;
    let mut handed_back = Vec::new();
    // The latest wait that had other costs than the time before, and how often it was not earlier than ever.
    let (mut earliest, mut rounds) = (i64::MAX, 0);
    loop {
        let mut diagnostics = propagation::propagate(trace, &mut tables, &locks, model)?;
        if chains.is_empty() {
            return Ok(Causes { tables, diagnostics, locks, of_chains: Booked::default(), model });
        }
        let of_tables = tables.par_iter().map(handed_on::of_hosts);
        let handed_on = trace.exchange.allgather(of_tables.collect::<Vec<_>>().concat())?.concat();
        let of_chains = chains.book(trace, model, &extents, &handed_on);
        // Waits depend on later ones only, so each time all down to an earlier one are final.
        let growth = handed_on::growth(&of_chains.handed_on, &handed_back);
        let of_process = growth.iter().map(|costs| costs.to).filter(|&(location, _)| trace.owns(location));
        let latest = of_process.map(|(location, call)| trace.shard(location).enter(call)).max();
        let latest = trace.exchange.allgather(latest)?.into_iter().max().flatten();
        rounds = if latest < Some(earliest) { 0 } else { rounds + 1 };
        if latest.is_none() || rounds == MOST_ROUNDS {
            if latest.is_some() && trace.exchange.is_root() {
                diagnostics.count(DiagnosticKind::CircularWaits, 1, None);
            }
            let shards = trace.par_shards().zip(&mut tables);
            shards.for_each(|(shard, table)| handed_on::lose(shard, table, &growth));
            return Ok(Causes { tables, diagnostics, locks, of_chains, model });
        }
        earliest = latest.map_or(earliest, |latest| latest.min(earliest));
        handed_back.clone_from(&of_chains.handed_on);
        let shards = trace.par_shards().zip(&mut tables);
        shards.for_each(|(shard, table)| handed_on::hand_back(shard, table, &handed_back));
    }
}

impl Causes {
    /// Computes the costs of all waits.
    pub(crate) fn book(&self, trace: &Trace) -> Costs {
        let of_shard = |((shard, table), locks): ((&Shard, &Table), &Vec<ContendedLock>)| {
            let mut booked = costs::book(trace, shard, table, self.model);
            for (part, costs) in table.parts.iter().zip(&mut booked.parts) {
                costs.extend(ownership::book(trace, shard, (table, part), locks));
            }
            booked
        };
        let shards = trace.par_shards().zip(&self.tables).zip(&self.locks);
        let booked: Vec<BookedCosts> = shards.map(of_shard).collect();
        let (mut all, mut outside, mut of_classes) = (Vec::new(), Vec::new(), Vec::new());
        for BookedCosts { parts, classes } in booked {
            let mut parts = parts.into_iter();
            all.extend(parts.next().into_iter().flatten());
            outside.extend(parts.next().into_iter().flatten());
            of_classes.extend(classes);
        }
        let mut of_chains = self.of_chains.parts.iter();
        all.extend(of_chains.next().into_iter().flatten());
        outside.extend(of_chains.next().into_iter().flatten());
        let is_split = self.tables.iter().any(|table| table.parts.len() > 1);
        let in_focus = is_split.then(|| severity::less(severity::combine(all.clone()), &severity::combine(outside)));
        all.append(&mut of_classes);
        Costs { all, in_focus }
    }

    /// The coefficients of the call paths that `is_divided` chooses, by shard. Collective.
    pub(crate) fn coefficients(&self, trace: &Trace, is_divided: &[bool]) -> Result<Vec<Vec<Coefficient>>> {
        coefficients::find(trace, &self.tables, is_divided)
    }

    /// Returns one entry per wait state, `None` for those without costs, and drops what only the costs need.
    pub(crate) fn explain(&mut self, waits: &PerShard<WaitState>) -> PerShard<Option<Explanation>> {
        self.tables.iter_mut().for_each(Table::forget_costs);
        let of_devices = std::mem::take(&mut self.of_chains).explanations;
        let of_shard = |(i, table): (usize, &Table)| {
            let (first, waits) = waits.of(i);
            let mut explanations: Vec<Option<Explanation>> = waits.iter().map(|_| None).collect();
            if !of_devices.is_empty() {
                for (explanation, wait) in explanations.iter_mut().zip(waits).filter(|(_, wait)| wait.is_of_devices()) {
                    *explanation = of_devices.get(&(wait.location, wait.instance)).copied();
                }
            }
            // Waits of threads and at shutdown have no wait state.
            let has_costs = |own_wait: &&OwnWait| own_wait.state != NONE && own_wait.relation != Relation::Chain;
            for own_wait in table.own_waits.rows.iter().filter(has_costs) {
                let point = &table.points[own_wait.point as usize];
                let share = own_wait.waiting as f64 / point.waiting.max(1) as f64;
                // A wait may have several causes, one after the other.
                let of_state = explanations[own_wait.state as usize - first].get_or_insert_default();
                of_state.indirect += own_wait.indirect;
                of_state.propagating += table.propagating[own_wait.point as usize] * share;
                of_state.caused += table.phi()[own_wait.point as usize] * share;
            }
            explanations
        };
        PerShard::new(self.tables.par_iter().enumerate().map(of_shard).collect())
    }
}

/// Returns the parts of waits to compute costs for: the part of each wait inside a window, or all of it; and in
/// addition the part outside the focus, which is small: costs in the focus are all costs less those.
fn divide(
    trace: &Trace,
    tables: &mut [Table],
    (locks, chains): (&[Vec<ContendedLock>], &Chains),
    (window, focus): (Option<&Range<i64>>, Option<&Range<i64>>),
) -> Result<Vec<Extent>> {
    let mut extents = vec![window.cloned().map_or(Extent::All, Extent::Inside)];
    if let Some(outside) = focus.cloned().map(Extent::Outside) {
        let reaches_out = trace.par_shards().zip(&*tables).any(|(shard, table)| {
            let mut waits = table.own_waits.rows.iter().filter(|wait| wait.waiting > 0);
            waits.any(|wait| outside.of(wait, &table.points[wait.point as usize], shard) > 0)
        });
        let reaches_out = reaches_out || locks.iter().any(|locks| ownership::reach_into(locks, &outside));
        let reaches_out = reaches_out || chains.reach_into(&outside);
        if trace.exchange.allgather(reaches_out)?.contains(&true) {
            extents.push(outside);
        }
    }
    for extent in &extents {
        let amounts = match extent {
            Extent::All => tables.iter().map(|_| Vec::new()).collect(),
            _ => amounts(trace, tables, extent)?,
        };
        for (table, amounts) in tables.iter_mut().zip(amounts) {
            table.parts.push(WaitPart::new(extent.clone(), amounts));
        }
    }
    Ok(extents)
}

/// The part of each row's wait that costs are computed for, by shard. The rates of distribution do not change.
fn amounts(trace: &Trace, tables: &[Table], extent: &Extent) -> Result<Vec<Vec<i64>>> {
    let outgoing = trace.par_shards().zip(tables).map(|(shard, table)| {
        let mut outbox = trace.exchange.outbox();
        for wait in table.own_waits.rows.iter().filter(|wait| wait.waiting > 0 && wait.cost_share != NONE) {
            let amount = extent.of(wait, &table.points[wait.point as usize], shard);
            if amount > 0 {
                outbox.push(trace.shard_of[wait.cause], (wait.cost_share, amount, wait.waiting));
            }
        }
        outbox
    });
    let received = trace.exchange.alltoallv(outgoing.collect())?;
    let of_shard = |(inbox, table): (Inbox<(u32, i64, i64)>, &Table)| {
        let mut amounts = vec![0; table.cost_shares.len()];
        for &(row, amount, waiting) in inbox.rows() {
            let all = table.cost_shares[row as usize].direct;
            let part = i128::from(all) * i128::from(amount) / i128::from(waiting);
            amounts[row as usize] = if amount == waiting { all } else { part as i64 };
        }
        amounts
    };
    Ok(received.into_par_iter().zip(tables).map(of_shard).collect())
}

/// Points and contended locks by shard.
type OfShards = (Vec<SyncPoints>, Vec<Vec<ContendedLock>>);

/// The sets of all owners, and the pairs, group synchronizations, and contended locks of all shards.
fn collect_sync_points(
    trace: &Trace,
    (waits, calls): (&PerShard<WaitState>, &RemoteCalls),
    Synchronized { of_owners, of_shards, devices, has_chains, locks }: Synchronized,
    model: CostModel,
) -> Result<(Vec<Vec<ProcessId>>, OfShards)> {
    let before = trace.exchange.allgather(of_owners.iter().map(|of_owner| of_owner.sets.len()).sum::<usize>())?;
    let mut next = before[..trace.exchange.rank()].iter().sum::<usize>() as u32;
    let mut sets = Vec::new();
    let mut collective_syncs = Vec::with_capacity(of_owners.len());
    for mut of_owner in of_owners {
        collective_syncs.push((next, of_owner.parts));
        next += of_owner.sets.len() as u32;
        sets.append(&mut of_owner.sets);
    }
    let sets = trace.exchange.allgather(sets)?.concat();
    let outgoing = collective_syncs.into_par_iter().map(|(first, collective_syncs)| {
        let mut outbox = trace.exchange.outbox();
        for mut collective_sync in collective_syncs {
            if let Participants::Set(set) = &mut collective_sync.with {
                *set += first;
            }
            outbox.push(trace.shard_of[collective_sync.call.0], collective_sync);
        }
        outbox
    });
    let collective_syncs = trace.exchange.alltoallv(outgoing.collect())?;
    let sync_points = trace
        .par_shards()
        .zip(collective_syncs)
        .zip(locks)
        .enumerate()
        .map(|(i, ((shard, collective_syncs), locks))| {
            let collective_syncs = collective_syncs.rows().chain(of_shards.get(i).into_iter().flatten());
            let (first, own) = waits.of(i);
            let devices = (devices.get(i), if has_chains { Relation::Chain } else { Relation::Device });
            sync_points::collect((trace, shard), model, (first, own, calls), (collective_syncs, devices, locks))
        })
        .unzip();
    Ok((sets, sync_points))
}
