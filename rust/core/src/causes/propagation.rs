//! Propagation costs phi: what a wait caused later, by class; backwards over all locations at once.
//!
//! `phi_K(i) = ω(i) · Σ over the waits that i's process caused while i lies in their interval of`
//! `  (phi_K + [K is its class] · ω) · share of a tick of waiting` (equation 4.13, 4.16).
//!
//! The points of a location are divided into sections that no interval crosses, such as at a synchronization of all.
//! Each section is traversed backwards with one running sum per class. A wait adds its share at its cause and subtracts
//! it at the left end of the interval; sums are exact, so nothing is left over. When a section reaches a wait of its
//! location, phi of that wait is final and is sent to its cause. A section pauses at causes of waits whose phi has not
//! arrived yet. Since waits depend only on earlier ones, all sections finish.
//!
//! A wait of a thread that owns a lock also waits for the costs of all waits for this lock meanwhile ([`Sweeps`]).
//!
//! Clock errors can make waits in one-sided communication depend on each other in a circle. Then the latest cause
//! continues without the missing values, which is counted.

use std::cmp::Reverse;

use bitcode::{Decode, Encode};

use super::cost_model::CostModel;
use super::fixed::Fixed;
use super::ownership::{ContendedLock, Sweeps};
use super::points::{Point, Relation};
use super::table::{Group, OfHost, OwnWait, Table};
use crate::Result;
use crate::diagnostics::{DiagnosticKind, Diagnostics, Place};
use crate::ids::LocationId;
use crate::parallel::iter::prelude::*;
use crate::schema::Class;
use crate::schema::Classes;
use crate::trace::{NONE, Shard, Trace};

/// Final propagation costs on their way to the causing shard.
#[derive(Default, Encode, Decode)]
struct PhiBatch {
    rows: Vec<FinalPhi>,
    /// Values by class of those that have any.
    values: Vec<f64>,
}

/// Marks the wait of a row as finished.
#[derive(Clone, Copy, Encode, Decode)]
struct FinalPhi {
    row: u32,
    /// The causing point.
    point: u32,
    /// Whether it caused anything.
    has_values: bool,
}

/// Computes the classes and `phi` of all parts, and `charged_phi`, of all tables, given what is handed back to them.
pub(super) fn propagate(
    trace: &Trace,
    tables: &mut [Table],
    locks: &[Vec<ContendedLock>],
    model: CostModel,
) -> Result<Diagnostics> {
    let mut diagnostics = Diagnostics::default();
    agree_on_classes(trace, tables)?;
    let mut walkers: Vec<Walker> = tables
        .par_iter_mut()
        .zip(trace.exchange.own())
        .zip(locks)
        .map(|((table, shard), locks)| Walker::new(trace, shard, table, locks, model))
        .collect();
    let mut inbox: Vec<Vec<PhiBatch>> = walkers.iter().map(|_| Vec::new()).collect();
    loop {
        let remote = run_walkers(trace, &mut walkers, &mut inbox);
        let has_nothing =
            walkers.iter().zip(&inbox).all(|(walker, inbox)| walker.runnable.is_empty() && inbox.is_empty());
        let is_idle = has_nothing && remote.iter().all(Vec::is_empty);
        let arrived = trace.exchange.alltoall(remote.into_iter().map(|remote| (is_idle, remote)).collect())?;
        let all_are_idle = arrived.iter().all(|&(is_idle, _)| is_idle);
        for (shard, sent) in arrived.into_iter().flat_map(|(_, sent)| sent) {
            inbox[trace.exchange.position(shard)].push(sent);
        }
        if all_are_idle && !break_cycle(trace, &mut walkers, &mut diagnostics)? {
            walkers.iter_mut().for_each(Walker::finish);
            return Ok(diagnostics);
        }
    }
}

/// Collects the classes of waits over all processes, by part.
fn agree_on_classes(trace: &Trace, tables: &mut [Table]) -> Result<()> {
    let occurring = |part: usize| {
        let of_groups = |table: &Table| {
            let amounts = &table.parts[part].amounts;
            let has_any =
                |group: &&Group| amounts.is_empty() || amounts[group.cost_shares()].iter().any(|&ticks| ticks > 0);
            let groups = table.groups.rows.iter().filter(|group| group.relation != Relation::Past);
            Classes::new(groups.filter(has_any).map(|group| group.class)).all
        };
        let of_shards: Vec<Class> = tables.par_iter().flat_map(of_groups).collect();
        Classes::new(of_shards.into_iter()).all
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

/// Number of rows that a shard, or a process, sends at a time, which limits the memory of messages in transit.
const ROWS_PER_SHARD: usize = 1 << 16;
const ROWS_PER_PROCESS: usize = 1 << 20;

/// Advances all shards of this process until they are blocked, or have many rows for other processes; returns these
/// rows by process.
fn run_walkers(trace: &Trace, walkers: &mut [Walker], inbox: &mut [Vec<PhiBatch>]) -> Vec<Vec<(u32, PhiBatch)>> {
    let own = trace.exchange.own();
    let mut remote: Vec<Vec<(u32, PhiBatch)>> = (0..trace.exchange.processes()).map(|_| Vec::new()).collect();
    let mut rows = 0;
    loop {
        let outgoing: Vec<Vec<(u32, PhiBatch)>> = walkers
            .par_iter_mut()
            .zip(inbox.par_iter_mut())
            .map(|(walker, inbox)| {
                let inbox = std::mem::take(inbox);
                if inbox.is_empty() && walker.runnable.is_empty() { Vec::new() } else { walker.run(inbox) }
            })
            .collect();
        for (shard, sent) in outgoing.into_iter().flatten() {
            if own.contains(&shard) {
                inbox[(shard - own.start) as usize].push(sent);
            } else {
                rows += sent.rows.len();
                remote[trace.exchange.process_of(shard)].push((shard, sent));
            }
        }
        let can_continue =
            walkers.iter().zip(&*inbox).any(|(walker, inbox)| !walker.runnable.is_empty() || !inbox.is_empty());
        if !can_continue || rows >= ROWS_PER_PROCESS {
            return remote;
        }
    }
}

/// Releases the latest of all blocked causes; `false` if there is none.
fn break_cycle(trace: &Trace, walkers: &mut [Walker], diagnostics: &mut Diagnostics) -> Result<bool> {
    let blocked = walkers.iter_mut().zip(&trace.shards).flat_map(|(walker, shard)| walker.blocked(shard));
    let latest = blocked.min().map(|(Reverse(time), location, point)| (time, location, point));
    let all = trace.exchange.allgather(latest)?;
    let latest = all.into_iter().flatten().min_by_key(|&(time, location, _)| (Reverse(time), location));
    let Some((time, location, point)) = latest else { return Ok(false) };
    // One process reports it for all.
    if trace.exchange.is_root() {
        diagnostics.count(DiagnosticKind::CircularWaits, 1, Some(Place::at(location, time)));
    }
    if trace.owns(location) {
        walkers[trace.position(location)].release(point);
    }
    Ok(true)
}

/// Marks a point that was released with missing values, which are unattributed if they arrive later.
const RELEASED: u32 = u32::MAX;

struct Walker<'a> {
    trace: &'a Trace,
    /// Number of the shard.
    shard: u32,
    table: &'a mut Table,
    model: CostModel,
    /// First point of each section, and the end of the last.
    sections: Vec<u32>,
    /// One past the next point of each section.
    cursor: Vec<u32>,
    /// Whether the point before the cursor has sent its phi.
    has_sent: Vec<bool>,
    /// Running sums of each section, by class.
    sums: Vec<Fixed>,
    /// Number of classes.
    width: usize,
    /// Buffer with one value per class.
    phi: Vec<f64>,
    /// Number of waits whose phi has not arrived, by causing point; 0 if no earlier wait gets a share.
    missing: Vec<u32>,
    /// Groups by the first point that gets a share.
    first_group: Vec<u32>,
    next_group: Vec<u32>,
    /// Sections that can go on.
    runnable: Vec<u32>,
    /// Sections that cannot finish, once known.
    unfinished: Option<Vec<u32>>,
    /// The locks of threads, and the costs that waits for them propagate.
    locks: &'a [ContendedLock],
    sweeps: Sweeps,
    /// Rows for other shards, and the shards with rows.
    outgoing: Vec<PhiBatch>,
    destinations: Vec<u32>,
}

impl<'a> Walker<'a> {
    fn new(trace: &'a Trace, shard: u32, table: &'a mut Table, locks: &'a [ContendedLock], model: CostModel) -> Self {
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
            part.lost.clear();
        }
        table.handed_on.clear();
        let width = table.width();
        table.charged_phi = vec![0.0; table.cost_shares.len() * width];
        Self {
            trace,
            shard,
            model,
            cursor: sections[1..].to_vec(),
            has_sent: vec![false; count],
            sums: vec![Fixed::default(); width * count],
            sections,
            width,
            phi: vec![0.0; width],
            missing,
            first_group,
            next_group,
            runnable: (0..count as u32).collect(),
            sweeps: Sweeps::new(locks, (&table.parts, points), width),
            locks,
            unfinished: None,
            outgoing: (0..trace.exchange.shards()).map(|_| PhiBatch::default()).collect(),
            destinations: Vec::new(),
            table,
        }
    }

    /// Processes incoming rows, and advances until blocked or until there are many rows for other shards; returns
    /// these.
    fn run(&mut self, inbox: Vec<PhiBatch>) -> Vec<(u32, PhiBatch)> {
        for PhiBatch { rows, values } in inbox {
            let mut values = values.chunks_exact(self.width.max(1));
            for arrival in rows {
                let phi = if arrival.has_values { values.next() } else { None };
                self.receive_phi(arrival, phi);
            }
        }
        let mut sent = 0;
        while sent < ROWS_PER_SHARD
            && let Some(section) = self.runnable.pop()
        {
            sent += self.advance(section as usize);
        }
        let destinations = std::mem::take(&mut self.destinations);
        destinations.into_iter().map(|shard| (shard, std::mem::take(&mut self.outgoing[shard as usize]))).collect()
    }

    /// Receives phi of a wait, which may unblock its cause.
    fn receive_phi(&mut self, FinalPhi { row, point, .. }: FinalPhi, phi: Option<&[f64]>) {
        if self.missing[point as usize] == RELEASED {
            for part in self.table.parts.iter_mut().filter(|_| phi.is_some()) {
                part.lose(point, phi.unwrap_or_default());
            }
            return;
        }
        let begin = row as usize * self.width;
        let charged = &mut self.table.charged_phi[begin..begin + self.width];
        if let Some(phi) = phi {
            charged.copy_from_slice(phi);
            let cost_share = &self.table.cost_shares[row as usize];
            if self.model == CostModel::Scalasca && cost_share.relation == Relation::Threads {
                // Scalasca 2.6 drops the costs of this class here.
                for part in self.table.parts.iter().filter(|part| part.classes.all.contains(&cost_share.class)) {
                    self.table.charged_phi[begin + part.columns.start + part.classes.column(cost_share.class)] = 0.0;
                }
            }
        } else {
            // To write a page for the first time is cheaper before it is read than after.
            charged.fill(0.0);
        }
        if self.missing[point as usize] == 0 {
            return;
        }
        self.missing[point as usize] -= 1;
        if self.missing[point as usize] == 0 {
            let section = self.section(point);
            if self.cursor[section] == point + 1 && self.has_sent[section] {
                self.runnable.push(section as u32);
            }
        }
    }

    /// The section of a point.
    fn section(&self, point: u32) -> usize {
        self.sections.partition_point(|&first| first <= point) - 1
    }

    /// Traverses a section backwards until a value is missing; returns the number of rows for other shards.
    fn advance(&mut self, section: usize) -> usize {
        let mut sent = 0;
        while self.cursor[section] > self.sections[section] {
            let point = self.cursor[section] - 1;
            if !self.has_sent[section] {
                if !self.locks.is_empty() && self.sweeps.lacks(point) {
                    break;
                }
                self.leave_intervals(section, point);
                sent += self.send_phi(section, point);
                self.has_sent[section] = true;
            }
            if self.missing[point as usize] != 0 && self.missing[point as usize] != RELEASED {
                break;
            }
            self.enter_intervals(section, point);
            self.cursor[section] = point;
            self.has_sent[section] = false;
        }
        sent
    }

    /// Ends the intervals that begin after a point.
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

    /// Adds or subtracts the share of a group of caused waits in each tick of waiting of its interval: thesis,
    /// equations 4.13 and 4.16, definition 20.
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

    /// Sends the final phi of a point's wait (thesis, definition 20) to its causes, to each its part; returns how many
    /// of them are in other shards.
    fn send_phi(&mut self, section: usize, point: u32) -> usize {
        let (waiting, shared) = (self.table.points[point as usize].waiting, self.table.waiting(point) as f64);
        if waiting <= 0 {
            return 0;
        }
        let mut sent = 0;
        let mut phi = std::mem::take(&mut self.phi);
        let mut has_values = false;
        for (phi, &sum) in phi.iter_mut().zip(&self.sums[section * self.width..]) {
            if shared > 0.0 && !sum.is_zero() {
                *phi = f64::from(sum) * shared;
                has_values = true;
            }
        }
        if let Ok(position) = self.table.handed_back.binary_search_by_key(&point, |&(point, _)| point) {
            phi.iter_mut().zip(&self.table.handed_back[position].1).for_each(|(phi, costs)| *phi += costs);
            has_values = true;
        }
        // That of waits for locks that it kept is shared out over all of its time, not just what is no work.
        let is_link = |own_wait: &OwnWait| own_wait.waiting > 0 && own_wait.relation == Relation::Chain;
        if self.table.own_waits.of(point as usize).iter().any(is_link) {
            let to_all = self.sweeps.phi(point).to_vec();
            if has_values || to_all.iter().any(|&kept| kept != 0.0) {
                self.table.handed_on.push(OfHost { point, to_waits: phi.clone(), to_all });
            }
        }
        for (phi, kept) in phi.iter_mut().zip(self.sweeps.phi(point)) {
            if *kept != 0.0 {
                *phi += kept;
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
            let has_values = has_values && own_wait.relation != Relation::Chain;
            let arrival = FinalPhi { row: own_wait.cost_share, point: own_wait.cause_point, has_values };
            let owner = self.trace.shard_of[own_wait.cause];
            let is_all = own_wait.waiting == waiting;
            let part = if is_all { 1.0 } else { own_wait.waiting as f64 / waiting as f64 };
            if owner == self.shard {
                if has_values && !is_all {
                    let phi: Vec<f64> = phi.iter().map(|value| value * part).collect();
                    self.receive_phi(arrival, Some(&phi));
                } else {
                    self.receive_phi(arrival, has_values.then_some(phi.as_slice()));
                }
                continue;
            }
            let inbox = &mut self.outgoing[owner as usize];
            if inbox.rows.is_empty() {
                self.destinations.push(owner);
            }
            inbox.rows.push(arrival);
            sent += 1;
            if has_values {
                inbox.values.extend(phi.iter().map(|value| value * part));
            }
        }
        phi.fill(0.0);
        self.phi = phi;
        if !self.locks.is_empty() {
            self.advance_lock(point);
        }
        sent
    }

    /// Goes on with the lock that a point waited for, which may unblock waits of its owners.
    fn advance_lock(&mut self, point: u32) {
        let (sections, cursor, runnable) = (&self.sections, &self.cursor, &mut self.runnable);
        self.sweeps.advance(point, self.locks, &self.table.charged_phi, |complete| {
            let section = sections.partition_point(|&first| first <= complete) - 1;
            if cursor[section] == complete + 1 {
                runnable.push(section as u32);
            }
        });
    }

    /// Where sections are blocked: time, location, point.
    fn blocked(&mut self, shard: &Shard) -> impl Iterator<Item = (Reverse<i64>, LocationId, u32)> {
        let mut unfinished = self.unfinished.take().unwrap_or_else(|| (0..self.cursor.len() as u32).collect());
        unfinished.retain(|&section| self.cursor[section as usize] > self.sections[section as usize]);
        let unfinished = self.unfinished.insert(unfinished);
        unfinished.iter().map(|&section| {
            let point = self.cursor[section as usize] - 1;
            let Point { instance, location, .. } = self.table.points[point as usize];
            (Reverse(shard.enter(instance)), location, point)
        })
    }

    /// Hands over what waits for locks could not propagate.
    fn finish(&mut self) {
        for (point, phi) in std::mem::take(&mut self.sweeps.lost) {
            for part in &mut self.table.parts {
                part.lose(point, &phi);
            }
        }
    }

    /// Releases a blocked point without the missing values.
    fn release(&mut self, point: u32) {
        if !self.sweeps.release(point) {
            self.missing[point as usize] = RELEASED;
        }
        self.runnable.push(self.section(point) as u32);
    }
}

impl Table {
    /// The first points of all sections, and the end of the last one.
    fn sections(&self) -> Vec<u32> {
        let mut firsts = vec![self.points.len() as u32];
        for i in (0..self.offsets.len() - 1).rev() {
            // The first point to which any interval so far gives a share.
            let mut shared_from = NONE;
            for point in self.points_of(i).rev() {
                let shared = self.groups.of(point).iter().filter(|group| group.shares()).map(|group| group.shared_from);
                shared_from = shared.chain([shared_from]).min().unwrap_or(NONE);
                // Points without shares do not have to wait.
                if point == self.points_of(i).start || (shared_from != NONE && shared_from as usize >= point) {
                    firsts.push(point as u32);
                    shared_from = NONE;
                }
            }
        }
        firsts.reverse();
        firsts
    }

    /// Adds the share of each tick of waiting in a group's interval, by class.
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
