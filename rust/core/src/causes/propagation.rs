//! Propagation costs phi: what a wait caused later, by class; backwards over all locations at once.
//!
//! `phi_K(i) = ω(i) · Σ over the waits that i's process caused while i lies in their interval of`
//! `  (phi_K + [K is its class] · ω) · share of a tick of waiting` (equation 4.13, 4.16).
//!
//! The points of a location fall into sections that no interval reaches across, as after a synchronization of all. Each
//! section is gone back over with one running sum a class. What a wait adds at its cause it takes away at the left end of
//! the interval; the sums are exact, so nothing is left over. When a section comes to a wait of its location, phi of that
//! is final, and goes to its cause. A section stops where waits were caused whose phi is not there yet, and goes on when it
//! is. As waits depend on earlier ones only, all come to their ends.
//!
//! Clocks that disagree can make waits of one-sided communication depend on each other in a circle. Then the latest cause
//! goes on without what it still lacks, which is counted.

use std::cmp::Reverse;

use bitcode::{Decode, Encode};
use rayon::prelude::*;

use super::points::{Point, Relation};
use super::table::Group;
use super::{Class, CostModel, Fixed, Table};
use crate::Result;
use crate::diagnostics::{DiagnosticKind, Diagnostics, Place};
use crate::ids::LocationId;
use crate::schema::Classes;
use crate::trace::{NONE, Shard, Trace};

/// Final propagation costs on their way to the causing shard.
#[derive(Default, Encode, Decode)]
struct PhiBatch {
    rows: Vec<FinalPhi>,
    /// Values by class of those that have any.
    values: Vec<f64>,
}

/// The wait is done that a row stands for.
#[derive(Clone, Copy, Encode, Decode)]
struct FinalPhi {
    row: u32,
    /// The causing point.
    point: u32,
    /// Whether it caused anything.
    has_values: bool,
}

/// Computes the classes and `phi` of all parts, and `charged_phi`, of all tables.
pub(super) fn propagate(
    trace: &Trace,
    tables: &mut [Table],
    model: CostModel,
    diagnostics: &mut Diagnostics,
) -> Result<()> {
    agree_on_classes(trace, tables)?;
    let mut walkers: Vec<Walker> = tables
        .par_iter_mut()
        .zip(trace.exchange.own())
        .map(|(table, shard)| Walker::new(trace, shard, table, model))
        .collect();
    let mut mail: Vec<PhiBatch> = walkers.iter().map(|_| PhiBatch::default()).collect();
    loop {
        let away = go(trace, &mut walkers, &mut mail);
        let has_nothing =
            walkers.iter().zip(&mail).all(|(walker, mail)| walker.runnable.is_empty() && mail.rows.is_empty());
        let is_idle = has_nothing && away.iter().all(Vec::is_empty);
        let arrived = trace.exchange.alltoall(away.into_iter().map(|away| (is_idle, away)).collect())?;
        let all_are_idle = arrived.iter().all(|&(is_idle, _)| is_idle);
        for (shard, sent) in arrived.into_iter().flat_map(|(_, sent)| sent) {
            mail[(shard - trace.exchange.own().start) as usize].add(sent);
        }
        if all_are_idle && !unlock(trace, &mut walkers, diagnostics)? {
            return Ok(());
        }
    }
}

/// Notes the classes of waits that all processes have, by part.
fn agree_on_classes(trace: &Trace, tables: &mut [Table]) -> Result<()> {
    let occurring = |part: usize| {
        let of_groups = |table: &Table| {
            let amounts = &table.parts[part].amounts;
            let has_any =
                |group: &&Group| amounts.is_empty() || amounts[group.cost_shares()].iter().any(|&ticks| ticks > 0);
            let groups = table.groups.rows.iter().filter(|group| group.relation != Relation::Past);
            Classes::new(groups.filter(has_any).map(|group| group.class)).all
        };
        Classes::new(tables.iter().flat_map(of_groups)).all
    };
    let parts = tables.first().map_or(0, |table| table.parts.len());
    let here: Vec<Vec<Class>> = (0..parts).map(occurring).collect();
    let everywhere = trace.exchange.allgather(here)?;
    for table in tables {
        let mut begin = 0;
        for (number, part) in table.parts.iter_mut().enumerate() {
            part.classes = Classes::new(everywhere.iter().filter_map(|here| here.get(number)).flatten().copied());
            part.columns = begin..begin + part.classes.all.len();
            begin = part.columns.end;
        }
    }
    Ok(())
}

/// Rows that a shard sends at a time, and a process to all others: what is on its way takes memory.
const SENT: usize = 1 << 16;
const AWAY: usize = 1 << 20;

/// Lets all shards of this process go on until they can no more, or have much for other processes; returns that, by
/// process.
fn go(trace: &Trace, walkers: &mut [Walker], mail: &mut [PhiBatch]) -> Vec<Vec<(u32, PhiBatch)>> {
    let own = trace.exchange.own();
    let mut away: Vec<Vec<(u32, PhiBatch)>> = (0..trace.exchange.processes()).map(|_| Vec::new()).collect();
    let mut rows = 0;
    loop {
        let outgoing: Vec<Vec<(u32, PhiBatch)>> = walkers
            .par_iter_mut()
            .zip(mail.par_iter_mut())
            .map(|(walker, mail)| {
                let mail = std::mem::take(mail);
                if mail.rows.is_empty() && walker.runnable.is_empty() { Vec::new() } else { walker.go(mail) }
            })
            .collect();
        for (shard, sent) in outgoing.into_iter().flatten() {
            if own.contains(&shard) {
                mail[(shard - own.start) as usize].add(sent);
            } else {
                rows += sent.rows.len();
                away[trace.exchange.process_of(shard)].push((shard, sent));
            }
        }
        let can_go_on =
            walkers.iter().zip(&*mail).any(|(walker, mail)| !walker.runnable.is_empty() || !mail.rows.is_empty());
        if !can_go_on || rows >= AWAY {
            return away;
        }
    }
}

impl PhiBatch {
    fn add(&mut self, other: Self) {
        self.rows.extend(other.rows);
        self.values.extend(other.values);
    }
}

/// Lets the latest cause of all that are stuck go on; `false` if none is.
fn unlock(trace: &Trace, walkers: &mut [Walker], diagnostics: &mut Diagnostics) -> Result<bool> {
    let stuck = walkers.iter_mut().zip(&trace.shards).flat_map(|(walker, shard)| walker.stuck(shard));
    let latest = stuck.min().map(|(Reverse(time), location, point)| (time, location, point));
    let all = trace.exchange.allgather(latest)?;
    let latest = all.into_iter().flatten().min_by_key(|&(time, location, _)| (Reverse(time), location));
    let Some((time, location, point)) = latest else { return Ok(false) };
    // One of the processes says it for all.
    if trace.exchange.is_root() {
        diagnostics.count(DiagnosticKind::CircularWaits, 1, Some(Place { location, time }));
    }
    if trace.owns(location) {
        walkers[trace.position(location)].release(point);
    }
    Ok(true)
}

/// Marks a point that went on without all it needed: what arrives now comes too late.
const RELEASED: u32 = u32::MAX;

struct Walker<'a> {
    trace: &'a Trace,
    /// Number of the shard.
    shard: u32,
    table: &'a mut Table,
    model: CostModel,
    /// First point of each section, and the end of the last.
    sections: Vec<u32>,
    /// One behind the next point of each section.
    cursor: Vec<u32>,
    /// Whether the point before the cursor has told its phi already.
    has_told: Vec<bool>,
    /// Running sums of each section, by class.
    sums: Vec<Fixed>,
    /// Number of classes.
    width: usize,
    /// Room for a value a class.
    phi: Vec<f64>,
    /// Waits whose phi has not arrived, by causing point; none where nothing is shared with earlier waits.
    missing: Vec<u32>,
    /// Groups by the point from which on they share.
    first_group: Vec<u32>,
    next_group: Vec<u32>,
    /// Sections that can go on.
    runnable: Vec<u32>,
    /// Sections that could not come to their ends, once that is known.
    unfinished: Option<Vec<u32>>,
    /// What other shards wait for, and for which there is something.
    outgoing: Vec<PhiBatch>,
    destinations: Vec<u32>,
}

impl<'a> Walker<'a> {
    fn new(trace: &'a Trace, shard: u32, table: &'a mut Table, model: CostModel) -> Self {
        let points = table.points.len();
        let sections = table.sections();
        let count = sections.len() - 1;
        let mut missing = vec![0; points];
        let mut first_group = vec![NONE; points];
        let mut next_group = vec![NONE; table.groups.rows.len()];
        for (number, group) in table.groups.rows.iter().enumerate().filter(|(_, group)| group.shares()) {
            next_group[number] = std::mem::replace(&mut first_group[group.shared_from as usize], number as u32);
            if missing[group.point as usize] == 0 {
                let cost_shares = table.cost_shares_of(group.point as usize).iter();
                missing[group.point as usize] = cost_shares
                    .filter(|row| row.shard != NONE && (row.direct > 0 || row.relation == Relation::Past))
                    .count() as u32;
            }
        }
        for part in &mut table.parts {
            part.phi = vec![0.0; points];
        }
        let width = table.width();
        table.charged_phi = vec![0.0; table.cost_shares.len() * width];
        Self {
            trace,
            shard,
            model,
            cursor: sections[1..].to_vec(),
            has_told: vec![false; count],
            sums: vec![Fixed::default(); width * count],
            sections,
            width,
            phi: vec![0.0; width],
            missing,
            first_group,
            next_group,
            runnable: (0..count as u32).collect(),
            unfinished: None,
            outgoing: (0..trace.exchange.shards()).map(|_| PhiBatch::default()).collect(),
            destinations: Vec::new(),
            table,
        }
    }

    /// Takes in what has arrived, goes on until it can no more or has much for other shards; returns that.
    fn go(&mut self, mail: PhiBatch) -> Vec<(u32, PhiBatch)> {
        let mut values = mail.values.chunks_exact(self.width.max(1));
        for arrival in mail.rows {
            let phi = if arrival.has_values { values.next() } else { None };
            self.arrive(arrival, phi);
        }
        let mut sent = 0;
        while sent < SENT
            && let Some(section) = self.runnable.pop()
        {
            sent += self.advance(section as usize);
        }
        let destinations = std::mem::take(&mut self.destinations);
        destinations.into_iter().map(|shard| (shard, std::mem::take(&mut self.outgoing[shard as usize]))).collect()
    }

    /// phi of a wait is there: its cause may go on.
    fn arrive(&mut self, FinalPhi { row, point, .. }: FinalPhi, phi: Option<&[f64]>) {
        if self.missing[point as usize] == RELEASED {
            return;
        }
        if let Some(phi) = phi {
            let begin = row as usize * self.width;
            self.table.charged_phi[begin..begin + self.width].copy_from_slice(phi);
            let cost_share = &self.table.cost_shares[row as usize];
            if self.model == CostModel::Scalasca && cost_share.relation == Relation::Threads {
                // Release 2.6 forgets the costs of this class here.
                for part in self.table.parts.iter().filter(|part| part.classes.all.contains(&cost_share.class)) {
                    self.table.charged_phi[begin + part.columns.start + part.classes.column(cost_share.class)] = 0.0;
                }
            }
        }
        if self.missing[point as usize] == 0 {
            return;
        }
        self.missing[point as usize] -= 1;
        if self.missing[point as usize] == 0 {
            let section = self.section(point);
            if self.cursor[section] == point + 1 && self.has_told[section] {
                self.runnable.push(section as u32);
            }
        }
    }

    /// The section of a point.
    fn section(&self, point: u32) -> usize {
        self.sections.partition_point(|&first| first <= point) - 1
    }

    /// Goes back over the points of a section until something is missing; returns how much it has for other shards.
    fn advance(&mut self, section: usize) -> usize {
        let mut sent = 0;
        while self.cursor[section] > self.sections[section] {
            let point = self.cursor[section] - 1;
            if !self.has_told[section] {
                self.leave_intervals(section, point);
                sent += self.tell(section, point);
                self.has_told[section] = true;
            }
            if self.missing[point as usize] != 0 && self.missing[point as usize] != RELEASED {
                break;
            }
            self.enter_intervals(section, point);
            self.cursor[section] = point;
            self.has_told[section] = false;
        }
        sent
    }

    /// Intervals that begin behind a point share nothing from it on.
    fn leave_intervals(&mut self, section: usize, point: u32) {
        if point + 1 == self.sections[section + 1] {
            return;
        }
        let mut number = self.first_group[point as usize + 1];
        while number != NONE {
            self.share(section, number as usize, |sum, share| *sum -= share);
            number = self.next_group[number as usize];
        }
    }

    fn enter_intervals(&mut self, section: usize, point: u32) {
        for number in self.table.groups.range(point as usize) {
            if self.table.groups.rows[number].shares() {
                self.share(section, number, |sum, share| *sum += share);
            }
        }
    }

    /// What a group of caused waits shares out among the waits of its interval: thesis, equations 4.13 and 4.16, definition
    /// 20.
    fn share(&mut self, section: usize, group: usize, change: impl Fn(&mut Fixed, Fixed)) {
        self.table.add_shares(group, &mut self.phi);
        let sums = &mut self.sums[section * self.width..(section + 1) * self.width];
        for (sum, share) in sums.iter_mut().zip(&mut self.phi) {
            if *share != 0.0 {
                change(sum, Fixed::from(*share));
                *share = 0.0;
            }
        }
    }

    /// phi of a point's wait is final (thesis, definition 20): its causes get it, each its part; returns how many of other shards.
    fn tell(&mut self, section: usize, point: u32) -> usize {
        let waiting = self.table.points[point as usize].waiting;
        if waiting <= 0 {
            return 0;
        }
        let mut sent = 0;
        let mut phi = std::mem::take(&mut self.phi);
        let mut has_values = false;
        for (phi, &sum) in phi.iter_mut().zip(&self.sums[section * self.width..]) {
            if !sum.is_zero() {
                *phi = f64::from(sum) * waiting as f64;
                has_values = true;
            }
        }
        for part in self.table.parts.iter_mut().filter(|_| has_values) {
            part.phi[point as usize] = phi[part.columns.clone()].iter().sum();
        }
        for k in self.table.own_waits.range(point as usize) {
            let own_wait = self.table.own_waits.rows[k];
            if own_wait.waiting <= 0 {
                continue;
            }
            let arrival = FinalPhi { row: own_wait.cost_share, point: own_wait.cause_point, has_values };
            let owner = self.trace.shard_of[own_wait.cause];
            let is_all = own_wait.waiting == waiting;
            let part = if is_all { 1.0 } else { own_wait.waiting as f64 / waiting as f64 };
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
            sent += 1;
            if has_values {
                mail.values.extend(phi.iter().map(|value| value * part));
            }
        }
        phi.fill(0.0);
        self.phi = phi;
        sent
    }

    /// Where sections wait for something, when none can go on: time, location, point.
    fn stuck(&mut self, shard: &Shard) -> impl Iterator<Item = (Reverse<i64>, LocationId, u32)> {
        let mut unfinished = self.unfinished.take().unwrap_or_else(|| (0..self.cursor.len() as u32).collect());
        unfinished.retain(|&section| self.cursor[section as usize] > self.sections[section as usize]);
        let unfinished = self.unfinished.insert(unfinished);
        unfinished.iter().map(|&section| {
            let point = self.cursor[section as usize] - 1;
            let Point { instance, location, .. } = self.table.points[point as usize];
            (Reverse(shard.enter(instance)), location, point)
        })
    }

    /// Lets a point where a section waits go on without what it lacks.
    fn release(&mut self, point: u32) {
        self.missing[point as usize] = RELEASED;
        self.runnable.push(self.section(point) as u32);
    }
}

impl Table {
    /// The first points of sections, stretches of a location's points that no interval reaches across, and the end of the
    /// last.
    fn sections(&self) -> Vec<u32> {
        let mut firsts = vec![self.points.len() as u32];
        for i in (0..self.offsets.len() - 1).rev() {
            // From where on the intervals met so far share.
            let mut shared_from = NONE;
            for point in self.points_of(i).rev() {
                let shared = self.groups.of(point).iter().filter(|group| group.shares()).map(|group| group.shared_from);
                shared_from = shared.chain([shared_from]).min().unwrap_or(NONE);
                // Where nothing is shared nothing has to wait.
                if point == self.points_of(i).start || (shared_from != NONE && shared_from as usize >= point) {
                    firsts.push(point as u32);
                    shared_from = NONE;
                }
            }
        }
        firsts.reverse();
        firsts
    }

    /// Adds what each tick of waiting in a group's interval gets, by class.
    fn add_shares(&self, group: usize, shares: &mut [f64]) {
        let group = &self.groups.rows[group];
        for row in group.cost_shares() {
            let cost_share = &self.cost_shares[row];
            for part in &self.parts {
                let amount = part.amount(row, cost_share);
                if amount > 0 {
                    let own = part.columns.start + part.classes.column(group.class);
                    shares[own] += amount as f64 * cost_share.wait_rate;
                }
            }
            if cost_share.shard == NONE {
                continue;
            }
            let phi = &self.charged_phi[row * shares.len()..(row + 1) * shares.len()];
            for (share, phi) in shares.iter_mut().zip(phi) {
                *share += phi * cost_share.wait_rate;
            }
        }
    }
}
