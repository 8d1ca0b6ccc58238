//! Propagation costs phi: what a wait caused later, by class; backwards over all locations at once.
//!
//! `phi_K(i) = ω(i) · Σ over the waits that i's process caused while i lies in their interval of`
//! `  (phi_K + [K is its class] · ω) · share of a tick of waiting` (equation 4.13, 4.16).
//!
//! Each location goes back over its points with one running sum a class. What a wait adds at its cause it takes away at
//! the left end of the interval; the sums are exact, so nothing is left over. When a location comes to a wait of its own,
//! phi of that is final, and goes to its cause. A location stops where it caused waits whose phi is not there yet, and
//! goes on when it is. As waits depend on earlier ones only, all come to their ends.
//!
//! Clocks that disagree can make waits of one-sided communication depend on each other in a circle. Then the latest cause
//! goes on without what it still lacks, which is counted.

use std::cmp::Reverse;

use bitcode::{Decode, Encode};
use rayon::prelude::*;

use super::class::Classes;
use super::points::Relation;
use super::{CostModel, Fixed, Table};
use crate::Result;
use crate::notes::{NoteKind, Notes, Place};
use crate::trace::{NONE, Shard, Trace};

/// Final propagation costs on their way to the causing shard.
#[derive(Default, Encode, Decode)]
struct Mail {
    rows: Vec<Arrival>,
    /// Values by class of those that have any.
    values: Vec<f64>,
}

/// The wait is done that a row stands for.
#[derive(Clone, Copy, Encode, Decode)]
struct Arrival {
    row: u32,
    /// The causing point.
    point: u32,
    /// Whether it caused anything.
    has_values: bool,
}

/// Computes `phi` and `charged_phi` of all tables.
pub(super) fn propagate(trace: &Trace, tables: &mut [Table], model: CostModel, notes: &mut Notes) -> Result<()> {
    let occurring = |table: &Table| Classes::new(table.groups.rows.iter().map(|group| group.class)).all;
    let here = Classes::new(tables.iter().flat_map(occurring)).all;
    let classes = Classes::new(trace.exchange.all(here)?.into_iter().flatten());
    for table in &mut *tables {
        table.classes = classes.clone();
    }
    let mut walkers: Vec<Walker> = tables
        .par_iter_mut()
        .zip(&trace.shards)
        .zip(trace.exchange.own())
        .map(|((table, shard), number)| Walker::new(trace, (number, shard), table, model))
        .collect();
    let mut mail: Vec<Mail> = walkers.iter().map(|_| Mail::default()).collect();
    loop {
        let away = go(trace, &mut walkers, &mut mail);
        let is_idle = away.iter().all(Vec::is_empty);
        let arrived = trace.exchange.swap(away.into_iter().map(|away| (is_idle, away)).collect())?;
        let all_are_idle = arrived.iter().all(|&(is_idle, _)| is_idle);
        for (shard, sent) in arrived.into_iter().flat_map(|(_, sent)| sent) {
            mail[(shard - trace.exchange.own().start) as usize].add(sent);
        }
        if all_are_idle && !unlock(trace, &mut walkers, notes)? {
            return Ok(());
        }
    }
}

/// Lets all shards of this process go as far as they can; returns what other processes wait for, by process.
fn go(trace: &Trace, walkers: &mut [Walker], mail: &mut [Mail]) -> Vec<Vec<(u32, Mail)>> {
    let own = trace.exchange.own();
    let mut away: Vec<Vec<(u32, Mail)>> = (0..trace.exchange.processes()).map(|_| Vec::new()).collect();
    loop {
        let outgoing: Vec<Vec<(u32, Mail)>> = walkers
            .par_iter_mut()
            .zip(mail.par_iter_mut())
            .map(|(walker, mail)| {
                let mail = std::mem::take(mail);
                if mail.rows.is_empty() && walker.runnable.is_empty() { Vec::new() } else { walker.go(mail) }
            })
            .collect();
        let mut is_idle = true;
        for (shard, sent) in outgoing.into_iter().flatten() {
            if own.contains(&shard) {
                is_idle = false;
                mail[(shard - own.start) as usize].add(sent);
            } else {
                away[trace.exchange.process_of(shard)].push((shard, sent));
            }
        }
        if is_idle {
            return away;
        }
    }
}

impl Mail {
    fn add(&mut self, other: Self) {
        self.rows.extend(other.rows);
        self.values.extend(other.values);
    }
}

/// Lets the latest cause of all that are stuck go on; `false` if none is.
fn unlock(trace: &Trace, walkers: &mut [Walker], notes: &mut Notes) -> Result<bool> {
    let stuck = walkers.iter().enumerate().flat_map(|(i, walker)| walker.stuck().map(move |at| (i, at)));
    let latest = stuck
        .map(|(i, (location, point))| {
            let shard = &trace.shards[i];
            let time = shard.enter(walkers[i].table.points[point as usize].instance);
            (Reverse(time), shard.location(location as usize), point)
        })
        .min()
        .map(|(Reverse(time), location, point)| (time, location, point));
    let all = trace.exchange.all(latest)?;
    let latest = all.into_iter().flatten().min_by_key(|&(time, location, _)| (Reverse(time), location));
    let Some((time, location, point)) = latest else { return Ok(false) };
    // One of the processes says it for all.
    if trace.exchange.is_root() {
        notes.count(NoteKind::CircularWaits, 1, Some(Place { location, time }));
    }
    if trace.owns(location) {
        let walker = &mut walkers[trace.position(location)];
        walker.missing[point as usize] = RELEASED;
        walker.runnable.push(location - trace.shard(location).locations.start);
    }
    Ok(true)
}

/// Marks a point that went on without all it needed: what arrives now comes too late.
const RELEASED: u32 = u32::MAX;

struct Walker<'a> {
    trace: &'a Trace,
    /// Number and first location of the shard.
    shard: u32,
    first_location: u32,
    table: &'a mut Table,
    model: CostModel,
    /// One behind the next point of each location.
    cursor: Vec<u32>,
    /// Whether the point before the cursor has told its phi already.
    has_told: Vec<bool>,
    /// Running sums of each location, by class.
    sums: Vec<Fixed>,
    /// Number of classes.
    width: usize,
    /// Room for a value a class.
    phi: Vec<f64>,
    /// Waits whose phi has not arrived, by causing point.
    missing: Vec<u32>,
    /// Groups by the point from which on they share.
    first_group: Vec<u32>,
    next_group: Vec<u32>,
    /// Locations that can go on.
    runnable: Vec<u32>,
    /// What other shards wait for, and for which there is something.
    outgoing: Vec<Mail>,
    destinations: Vec<u32>,
}

impl<'a> Walker<'a> {
    fn new(trace: &'a Trace, (number, shard): (u32, &Shard), table: &'a mut Table, model: CostModel) -> Self {
        let locations = table.offsets.len() - 1;
        let points = table.points.len();
        let mut missing = vec![0; points];
        let mut first_group = vec![NONE; points];
        let mut next_group = vec![NONE; table.groups.rows.len()];
        for (number, group) in table.groups.rows.iter().enumerate() {
            let waits = table.charges[group.charges()].iter().filter(|row| row.shard != NONE && row.direct > 0);
            missing[group.point as usize] += waits.count() as u32;
            if group.shares() {
                next_group[number] = std::mem::replace(&mut first_group[group.shared_from as usize], number as u32);
            }
        }
        table.phi = vec![0.0; points];
        let width = table.classes.all.len();
        table.charged_phi = vec![0.0; table.charges.len() * width];
        Self {
            trace,
            shard: number,
            first_location: shard.locations.start,
            model,
            cursor: table.offsets[1..].to_vec(),
            has_told: vec![false; locations],
            sums: vec![Fixed::default(); width * locations],
            width,
            phi: vec![0.0; width],
            missing,
            first_group,
            next_group,
            runnable: (0..locations as u32).collect(),
            outgoing: (0..trace.exchange.shards()).map(|_| Mail::default()).collect(),
            destinations: Vec::new(),
            table,
        }
    }

    /// Takes in what has arrived, goes as far as possible; returns what other shards wait for.
    fn go(&mut self, mail: Mail) -> Vec<(u32, Mail)> {
        let mut values = mail.values.chunks_exact(self.width.max(1));
        for arrival in mail.rows {
            let phi = if arrival.has_values { values.next() } else { None };
            self.arrive(arrival, phi);
        }
        while let Some(location) = self.runnable.pop() {
            self.advance(location as usize);
        }
        let destinations = std::mem::take(&mut self.destinations);
        destinations.into_iter().map(|shard| (shard, std::mem::take(&mut self.outgoing[shard as usize]))).collect()
    }

    /// phi of a wait is there: its cause may go on.
    fn arrive(&mut self, Arrival { row, point, .. }: Arrival, phi: Option<&[f64]>) {
        if self.missing[point as usize] == RELEASED {
            return;
        }
        if let Some(phi) = phi {
            let begin = row as usize * self.width;
            self.table.charged_phi[begin..begin + self.width].copy_from_slice(phi);
            let charge = &self.table.charges[row as usize];
            if self.model == CostModel::Scalasca && charge.relation == Relation::Threads {
                // Release 2.6 forgets the costs of this class here.
                self.table.charged_phi[begin + self.table.classes.column(charge.class)] = 0.0;
            }
        }
        self.missing[point as usize] -= 1;
        if self.missing[point as usize] == 0 {
            let location = self.table.points[point as usize].location - self.first_location;
            if self.cursor[location as usize] == point + 1 && self.has_told[location as usize] {
                self.runnable.push(location);
            }
        }
    }

    /// Goes back over the points of a location until something is missing.
    fn advance(&mut self, location: usize) {
        while self.cursor[location] > self.table.offsets[location] {
            let point = self.cursor[location] - 1;
            if !self.has_told[location] {
                self.leave_intervals(location, point);
                self.tell(location, point);
                self.has_told[location] = true;
            }
            if self.missing[point as usize] != 0 && self.missing[point as usize] != RELEASED {
                return;
            }
            self.enter_intervals(location, point);
            self.cursor[location] = point;
            self.has_told[location] = false;
        }
    }

    /// Intervals that begin behind a point share nothing from it on.
    fn leave_intervals(&mut self, location: usize, point: u32) {
        if point + 1 == self.table.offsets[location + 1] {
            return;
        }
        let mut number = self.first_group[point as usize + 1];
        while number != NONE {
            self.share(location, number as usize, |sum, share| *sum -= share);
            number = self.next_group[number as usize];
        }
    }

    fn enter_intervals(&mut self, location: usize, point: u32) {
        for number in self.table.groups.range(point as usize) {
            if self.table.groups.rows[number].shares() {
                self.share(location, number, |sum, share| *sum += share);
            }
        }
    }

    fn share(&mut self, location: usize, group: usize, change: impl Fn(&mut Fixed, Fixed)) {
        self.table.add_shares(group, &mut self.phi);
        let sums = &mut self.sums[location * self.width..(location + 1) * self.width];
        for (sum, share) in sums.iter_mut().zip(&mut self.phi) {
            if *share != 0.0 {
                change(sum, Fixed::from(*share));
                *share = 0.0;
            }
        }
    }

    /// phi of a point's wait is final: its causes get it, each its part.
    fn tell(&mut self, location: usize, point: u32) {
        let waiting = self.table.points[point as usize].waiting;
        if waiting <= 0 {
            return;
        }
        let mut phi = std::mem::take(&mut self.phi);
        let mut has_values = false;
        let mut total = 0.0;
        for (phi, &sum) in phi.iter_mut().zip(&self.sums[location * self.width..]) {
            if !sum.is_zero() {
                *phi = f64::from(sum) * waiting as f64;
                total += *phi;
                has_values = true;
            }
        }
        self.table.phi[point as usize] = total;
        for k in self.table.asks.range(point as usize) {
            let ask = self.table.asks.rows[k];
            if ask.waiting <= 0 {
                continue;
            }
            let arrival = Arrival { row: ask.charge, point: ask.cause_point, has_values };
            let owner = self.trace.shard_of[ask.cause as usize];
            let is_all = ask.waiting == waiting;
            let part = if is_all { 1.0 } else { ask.waiting as f64 / waiting as f64 };
            if owner == self.shard {
                if has_values && !is_all {
                    let phi: Vec<f64> = phi.iter().map(|value| value * part).collect();
                    self.arrive(arrival, Some(&phi));
                } else {
                    self.arrive(arrival, has_values.then_some(phi.as_slice()));
                }
                continue;
            }
            let mail = &mut self.outgoing[owner as usize];
            if mail.rows.is_empty() {
                self.destinations.push(owner);
            }
            mail.rows.push(arrival);
            if has_values {
                mail.values.extend(phi.iter().map(|value| value * part));
            }
        }
        phi.fill(0.0);
        self.phi = phi;
    }

    /// Locations that wait for something, and where.
    fn stuck(&self) -> impl Iterator<Item = (u32, u32)> {
        let first = &self.table.offsets;
        let rest = self.cursor.iter().zip(first).enumerate().filter(|(_, (cursor, first))| cursor > first);
        rest.map(|(location, (cursor, _))| (location as u32, cursor - 1))
    }
}

impl Table {
    /// Adds what each tick of waiting in a group's interval gets, by class.
    fn add_shares(&self, group: usize, shares: &mut [f64]) {
        let group = &self.groups.rows[group];
        let own = self.classes.column(group.class);
        for row in group.charges() {
            let charge = &self.charges[row];
            shares[own] += charge.direct as f64 * charge.wait_rate;
            if charge.shard == NONE {
                continue;
            }
            let phi = &self.charged_phi[row * shares.len()..(row + 1) * shares.len()];
            for (share, phi) in shares.iter_mut().zip(phi) {
                *share += phi * charge.wait_rate;
            }
        }
    }
}
