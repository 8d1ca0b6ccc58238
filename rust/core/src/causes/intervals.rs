//! All intervals of a shard, in one pass over each of its locations.
//!
//! An interval reaches from the point at which two processes met last to the point in question. Its work is the profile
//! between the two, without the waits in between, and of the call at its left end only what came after the meeting.
//! First the waits are taken away and what is not positive dropped, then the call at the left end is cut.
//!
//! *Source*: thesis eq. 4.1; PATTERNS 6.4, 15 (decisions 12 and 15).

use super::meetings::{Meetings, Met};
use super::points::{Place, Relation};
use super::profile::Profile;
use super::table::{By, Charge, Group, Stretch};
use super::{Class, CostModel, Position, Steps, Table};
use crate::trace::world::Members;
use crate::trace::{Shard, Trace};

/// Measures all intervals of a shard.
pub(super) fn measure(trace: &Trace, shard: &Shard, table: Table, sets: &[Vec<u32>], model: CostModel) -> Table {
    let mut pass = Pass {
        trace,
        sets,
        model,
        profile: Profile::new(trace.tree.len()),
        meetings: Meetings::default(),
        waited: Vec::new(),
        first: 0,
        groups: Vec::new(),
        charges: Vec::new(),
        table,
    };
    let mut lifetimes = Vec::new();
    for i in 0..shard.locations.len() {
        pass.location(shard, i);
        let mut work: Vec<(u32, i64)> = pass.profile.since(0).filter(|&(_, ticks)| ticks > 0).collect();
        work.sort_unstable_by_key(|&(callpath, _)| callpath);
        lifetimes.extend(work.into_iter().map(|entry| (i as u32, entry)));
    }
    let mut table = pass.table;
    table.groups = By::sorted(table.points.len(), pass.groups.into_iter().map(|group| (group.point, group)));
    table.lifetimes = By::sorted(shard.locations.len(), lifetimes);
    table
}

struct Pass<'a> {
    trace: &'a Trace,
    sets: &'a [Vec<u32>],
    model: CostModel,
    profile: Profile,
    meetings: Meetings,
    /// Waiting before each point of the location so far, ticks.
    waited: Vec<i64>,
    /// First point of the location.
    first: u32,
    groups: Vec<Group>,
    /// Room for the waits caused at a point.
    charges: Vec<Charge>,
    table: Table,
}

impl Pass<'_> {
    fn location(&mut self, shard: &Shard, i: usize) {
        self.profile.clear();
        self.meetings.clear();
        self.waited.clear();
        let points = self.table.points_of(i);
        self.first = points.start as u32;
        let mut steps = Steps::of_location(self.trace, shard, i);
        let is_master = self.trace.world.locations[shard.location(i) as usize].thread == 0;
        let mut waited = 0;
        for number in points {
            let point = self.table.points[number];
            steps.advance(self.trace, point.position, |callpath, ticks| self.profile.add(callpath, ticks));
            if point.place == Place::Fork {
                self.lose_block(number, is_master);
            }
            self.waited.push(waited);
            self.ask(number);
            self.charge(number);
            self.meet(number);
            self.profile.cut();
            if point.waiting > 0 {
                self.profile.add(point.callpath, -point.waiting);
                waited += point.waiting;
            }
        }
        steps.advance(self.trace, Position::END, |callpath, ticks| self.profile.add(callpath, ticks));
        self.lose_block(self.table.points_of(i).end, is_master);
    }

    /// Release 2.6 loses what a worker does from the last barrier of its team on.
    fn lose_block(&mut self, number: usize, is_master: bool) {
        let after_barrier = number > self.first as usize && self.table.points[number - 1].class == Class::OmpBarrier;
        if self.model == CostModel::Scalasca && !is_master && after_barrier {
            self.profile.drop_block();
            let barrier = &self.table.points[number - 1];
            self.profile.add(barrier.callpath, -barrier.waiting);
        }
    }

    /// Intervals of the waits at a point.
    fn ask(&mut self, number: usize) {
        for k in self.table.asks_of.range(number) {
            let ask = self.table.asks_of.rows[k] as usize;
            let pair = self.table.asks[ask].pair;
            let process = self.trace.world.locations[pair.cause.location as usize].process;
            let met = self.met(pair.relation, process);
            self.table.asks[ask].work = self.work(met);
        }
    }

    /// Intervals of what was waited for at a point.
    fn charge(&mut self, number: usize) {
        let range = self.table.charges.range(number);
        if range.is_empty() {
            return;
        }
        let mut charges = std::mem::take(&mut self.charges);
        charges.extend_from_slice(&self.table.charges.rows[range.clone()]);
        for charge in &mut charges {
            let met = self.met(charge.relation, charge.process);
            charge.from = self.from(met);
            charge.shared_from = charge.from;
            charge.before = met.map_or(0, |met| met.before);
        }
        if self.model == CostModel::Scalasca {
            self.segment(number, &mut charges);
        }
        let key = |charge: &Charge| {
            (charge.class, charge.relation, charge.from, charge.before, charge.shared_from, charge.shard, charge.ask)
        };
        charges.sort_unstable_by_key(key);
        let mut begin = range.start as u32;
        let same = |a: &Charge, b: &Charge| {
            (a.class, a.relation, a.from, a.before, a.shared_from)
                == (b.class, b.relation, b.from, b.before, b.shared_from)
        };
        for same in charges.chunk_by(same) {
            let Charge { class, relation, from, before, shared_from, .. } = same[0];
            let work = self.work((from > self.first).then(|| Met { point: from - 1, before }));
            let waited = |point: u32| self.waited[(point - self.first) as usize];
            let waiting = waited(number as u32) - waited(from);
            let end = begin + same.len() as u32;
            self.groups.push(Group {
                point: number as u32,
                class,
                relation,
                from,
                shared_from,
                work,
                waiting,
                begin,
                end,
            });
            begin = end;
        }
        self.table.charges.rows[range].copy_from_slice(&charges);
        charges.clear();
        self.charges = charges;
    }

    /// Release 2.6 sums up the shares of a collective operation by segments of the causing process's past; a share counts
    /// from the next segment on (PATTERNS 6.6).
    fn segment(&self, number: usize, charges: &mut [Charge]) {
        for same in charges.chunk_by_mut(|a, b| a.class == b.class) {
            let Some(comm) = self.trace.world.comms.get(same[0].comm as usize) else { continue };
            let Members::Processes(members) = &comm.members else { continue };
            let own = self.trace.world.locations[self.table.points[number].location as usize].process;
            let from = |&process: &u32| self.from(self.met(Relation::Pair, process));
            let mut begins: Vec<u32> = members.iter().filter(|&&process| process != own).map(from).collect();
            begins.sort_unstable();
            begins.dedup();
            for charge in same {
                if charge.from != begins[0] {
                    let next = begins.partition_point(|&begin| begin <= charge.from);
                    charge.shared_from = begins.get(next).map_or(number as u32, |begin| begin - 1);
                }
            }
        }
    }

    /// What the location did at a point with whom.
    fn meet(&mut self, number: usize) {
        let point = self.table.points[number];
        for &ask in self.table.asks_of.of(number) {
            let pair = &self.table.asks[ask as usize].pair;
            let process = self.trace.world.locations[pair.cause.location as usize].process;
            self.meetings.meet(pair.relation, process, number as u32, &point, pair.completion);
        }
        for charge in self.table.charges.of(number) {
            self.meetings.meet(charge.relation, charge.process, number as u32, &point, charge.completion);
        }
        for &(meets, before) in self.table.marks_of.of(number) {
            self.meetings.meet_all(meets, number as u32, before);
        }
    }

    fn met(&self, relation: Relation, process: u32) -> Option<Met> {
        match relation {
            Relation::Threads => self.meetings.with_team(),
            Relation::Alone => self.meetings.without_team(),
            _ => self.meetings.with(&self.trace.world, self.sets, process, relation == Relation::Contention),
        }
    }

    /// The first point behind a meeting.
    fn from(&self, met: Option<Met>) -> u32 {
        met.map_or(self.first, |met| met.point + 1)
    }

    /// The work from a meeting to now.
    fn work(&mut self, met: Option<Met>) -> Stretch {
        let begin = self.table.entries.len() as u32;
        let block = self.from(met) - self.first;
        let left = met.map(|met| (&self.table.points[met.point as usize], met.before));
        for (callpath, mut ticks) in self.profile.since(block) {
            let left = left.filter(|(point, _)| point.callpath == callpath);
            if let Some((point, _)) = left {
                // The wait at the left end is no wait of the interval: it goes with all that came before the meeting.
                ticks += point.waiting;
            }
            if ticks > 0 {
                ticks -= left.map_or(0, |(_, before)| before);
            }
            if ticks > 0 {
                self.table.entries.push((callpath, ticks));
            }
        }
        Stretch { begin, end: self.table.entries.len() as u32 }
    }
}
