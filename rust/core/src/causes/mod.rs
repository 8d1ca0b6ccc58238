//! Root causes: who pays for which wait, directly or through other waits.
//!
//! ```text
//!  q  (cause)   ---k--[ work and waits       ]--f---      interval of q: from k, where p and q met last, to f
//!  p  (waiter)  ---k'-[ work ][ e: waits    |]------      interval of p: from k' to e
//! ```
//!
//! *Delay*: what q worked more than p in their intervals, by call path: `D(c) = [d_q(c) − d_p(c)]+`. With W, the waits
//! of q in its interval, the wait at e is distributed over delays and waits: each gets its share of `D + W`. What a wait
//! gets is added to its propagation costs phi, and these are distributed in the same way over what caused *that* wait,
//! back to where only work is left.
//!
//! | step | file |
//! |---|---|
//! | wait states become pairs, marks, points | [`seeds`], [`threads`], [`points`] |
//! | one pass over each location gives all intervals | [`intervals`], by [`steps`], [`profile`], [`meetings`] |
//! | delays, shares | [`delay`] |
//! | phi, backwards over all locations | [`propagation`] |
//! | costs by call path | [`costs`] |
//!
//! *Source*: thesis sections 4.1.4 to 4.1.6, equations 4.1 to 4.19; PATTERNS sections 6 and 15.

pub mod class;
mod costs;
mod delay;
mod fixed;
mod intervals;
mod meetings;
pub mod points;
mod profile;
mod propagation;
mod seeds;
mod states;
mod steps;
mod table;
mod threads;

use bitcode::{Decode, Encode};
use rayon::prelude::*;

use crate::Result;
use crate::calls::Calls;
use crate::exchange::Outbox;
use crate::notes::Notes;
use crate::parts::Parts;
use crate::severity::Cost;
use crate::trace::{NONE, Trace};
use crate::waits::WaitState;
use crate::waits::meeting::{Meeting, Meetings, With};

pub use class::Class;
pub(crate) use fixed::Fixed;
pub(crate) use points::{Alone, Anchor, Key, Mark, Pair, Position, Relation};
pub(crate) use steps::Steps;
pub(crate) use table::{Entry, Table};

/// Which definitions the costs follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CostModel {
    /// Those of the thesis, for every paradigm; the waiting time is conserved.
    #[default]
    Thesis,
    /// What release 2.6 of Scalasca computes, to compare with it: no costs of one-sided communication, direct costs of
    /// waits for messages cut at the delay, shares of collective operations by its segments.
    Scalasca,
}

/// What an analysis of causes says of one wait state; all in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Encode, Decode)]
pub struct Explanation {
    /// The part that earlier waits of the causing process explain; the rest is direct.
    pub indirect: f64,
    /// The part that made others wait later; the rest is terminal.
    pub propagating: f64,
    /// Waiting that it caused elsewhere later, directly or not (phi).
    pub caused: f64,
}

/// Root causes.
#[derive(Debug)]
pub(crate) struct Found {
    /// The points of all shards, and what happens at them.
    pub tables: Vec<Table>,
    /// Costs and classes of waits.
    pub costs: Vec<Cost>,
    /// One entry a wait state; `None` where nobody is charged.
    pub explanations: Parts<Option<Explanation>>,
    /// What was odd.
    pub notes: Notes,
}

/// What is known of the locations of a shard as waiters.
#[derive(Debug, Default)]
pub(crate) struct Seeds {
    pub pairs: Vec<Pair>,
    /// Keys of these, by position.
    pub order: Vec<Key>,
    pub marks: Vec<Mark>,
    pub alone: Vec<Alone>,
}

/// What the causing side gets to know of a pair.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub(crate) struct Caused {
    /// Shard of the waiter, and position among its waits.
    pub shard: u32,
    pub ask: u32,
    pub process: u32,
    pub comm: u32,
    pub cause: Anchor,
    pub class: Class,
    pub relation: Relation,
    pub waiting: i64,
    pub completion: i64,
}

impl Caused {
    /// The idleness of a team, which nobody else has to know of.
    fn idleness(alone: &Alone) -> Self {
        Self {
            shard: NONE,
            ask: NONE,
            process: NONE,
            comm: NONE,
            cause: alone.end,
            class: Class::OmpIdle,
            relation: Relation::Alone,
            waiting: alone.idle,
            completion: 0,
        }
    }
}

/// Finds the causes of all wait states of this process; `waits` as the analysis has sorted them, with the `calls` that
/// they name, and with the meetings of all owners, and those of the shards themselves.
pub(crate) fn find(
    trace: &Trace,
    (waits, calls): (&Parts<WaitState>, &Calls),
    meetings: (Vec<Meetings>, &[Vec<Meeting>]),
    model: CostModel,
) -> Result<Found> {
    let (sets, seeds) = sow(trace, (waits, calls), meetings, model)?;
    let outgoing = trace.exchange.own().into_par_iter().zip(&seeds).map(|(number, seeds)| {
        let mut outbox = trace.exchange.outbox();
        let pairs = seeds.order.iter().map(|key| &seeds.pairs[key.number()]);
        for (pair, ask) in pairs.zip(0..) {
            let caused = Caused {
                shard: number,
                ask,
                process: trace.world.locations[pair.waiter.location as usize].process,
                comm: pair.comm,
                cause: pair.cause,
                class: pair.class,
                relation: pair.relation,
                waiting: pair.waiting,
                completion: pair.cause_completion,
            };
            outbox.push(trace.shard_of[pair.cause.location as usize], caused);
        }
        outbox
    });
    let caused = trace.exchange.to_owner(outgoing.collect())?;
    let (mut tables, works): (Vec<Table>, Vec<Outbox<Entry>>) = trace
        .shards
        .par_iter()
        .zip(seeds)
        .zip(caused)
        .map(|((shard, seeds), caused)| {
            let rows = caused.rows().copied().collect();
            drop(caused);
            intervals::measure(trace, shard, seeds, rows, &sets, model)
        })
        .unzip();
    delay::share(trace, &mut tables, works, model)?;
    let mut notes = Notes::default();
    propagation::propagate(trace, &mut tables, model, &mut notes)?;

    let costs: Vec<Vec<Cost>> =
        trace.shards.par_iter().zip(&tables).map(|(shard, table)| costs::book(trace, shard, table, model)).collect();
    for table in &mut tables {
        table.forget_costs();
    }
    Ok(Found { costs: costs.concat(), explanations: explain(&tables, waits), tables, notes })
}

/// The sets of all owners, and the pairs and marks of all shards.
fn sow(
    trace: &Trace,
    (waits, calls): (&Parts<WaitState>, &Calls),
    (of_owners, of_shards): (Vec<Meetings>, &[Vec<Meeting>]),
    model: CostModel,
) -> Result<(Vec<Vec<u32>>, Vec<Seeds>)> {
    let before = trace.exchange.all(of_owners.iter().map(|of_owner| of_owner.sets.len()).sum::<usize>())?;
    let mut next = before[..trace.exchange.rank()].iter().sum::<usize>() as u32;
    let mut sets = Vec::new();
    let mut meetings = Vec::with_capacity(of_owners.len());
    for mut of_owner in of_owners {
        meetings.push((next, of_owner.parts));
        next += of_owner.sets.len() as u32;
        sets.append(&mut of_owner.sets);
    }
    let sets = trace.exchange.all(sets)?.concat();
    let outgoing = meetings.into_par_iter().map(|(first, meetings)| {
        let mut outbox = trace.exchange.outbox();
        for mut meeting in meetings {
            if let With::Set(set) = &mut meeting.with {
                *set += first;
            }
            outbox.push(trace.shard_of[meeting.call.0 as usize], meeting);
        }
        outbox
    });
    let meetings = trace.exchange.to_owner(outgoing.collect())?;
    let seeds = trace
        .shards
        .par_iter()
        .zip(meetings)
        .enumerate()
        .map(|(i, (shard, meetings))| {
            let meetings = meetings.rows().chain(of_shards.get(i).into_iter().flatten());
            let (first, own) = waits.of(i);
            seeds::collect(trace, shard, model, (first, own, calls), meetings)
        })
        .collect();
    Ok((sets, seeds))
}

/// What is known of each wait state; of each shard what its table says.
fn explain(tables: &[Table], waits: &Parts<WaitState>) -> Parts<Option<Explanation>> {
    let of_shard = |(i, table): (usize, &Table)| {
        let (first, waits) = waits.of(i);
        let mut explanations = vec![None; waits.len()];
        // Those of threads and of the end of the library have no state.
        for ask in table.asks.rows.iter().filter(|ask| ask.state != NONE) {
            let point = &table.points[ask.point as usize];
            let share = ask.waiting as f64 / point.waiting.max(1) as f64;
            explanations[ask.state as usize - first] = Some(Explanation {
                indirect: ask.indirect,
                propagating: table.propagating[ask.point as usize] * share,
                caused: table.phi[ask.point as usize] * share,
            });
        }
        explanations
    };
    Parts::new(tables.par_iter().enumerate().map(of_shard).collect())
}
