//! All intervals of a shard, in one pass over each of its locations.
//!
//! An interval reaches from the point at which two processes met last to the point in question. Its work is the profile
//! between the two, without the waits in between, and of the call at its left end only what came after the meeting.
//! First the waits are taken away and what is not positive dropped, then the call at the left end is cut.
//!
//! *Source*: thesis eq. 4.1; PATTERNS 6.4, 15 (decisions 12 and 15).

use super::meetings::{Meetings, Met};
use super::points::{Mark, Pair, Place, Point, Relation};
use super::profile::Profile;
use super::table::{Ask, Charge, Entry, Group, Stretch};
use super::{Anchor, Caused, Class, CostModel, Position, Seeds, Steps, Table};
use crate::trace::world::Members;
use crate::trace::{NONE, Shard, Trace};

/// Measures all intervals of a shard.
pub(super) fn measure(
    trace: &Trace,
    shard: &Shard,
    seeds: Seeds,
    caused: Vec<Caused>,
    sets: &[Vec<u32>],
    model: CostModel,
) -> Table {
    let roles = Roles::new(trace, seeds, caused);
    let table = Table {
        asks: roles.pairs.iter().map(Ask::new).collect(),
        works: vec![Stretch::default(); roles.pairs.len()],
        offsets: vec![0],
        ..Table::default()
    };
    let mut pass = Pass {
        trace,
        shard,
        sets,
        model,
        roles: &roles,
        profile: Profile::new(trace.tree.len()),
        meetings: Meetings::default(),
        waited: Vec::new(),
        first: 0,
        last: None,
        rows: Vec::new(),
        table,
    };
    let mut work: Vec<Entry> = Vec::new();
    let mut rest = &roles.keys[..];
    for i in 0..shard.locations.len() {
        let own = rest.partition_point(|&key| roles.anchor(key).location == shard.location(i));
        let keys = rest.split_off(..own).unwrap_or_default();
        pass.location(i, keys);
        let lifetime = pass.profile.since(0).filter(|&(_, ticks)| ticks > 0);
        work.extend(lifetime.map(|(callpath, ticks)| Entry::new(callpath, ticks)));
        work.sort_unstable_by_key(|entry| entry.callpath);
        for entry in work.drain(..) {
            pass.table.lifetimes.push(i as u32, entry);
        }
    }
    let mut table = pass.table;
    let points = table.points.len();
    table.asks_of.end(points);
    table.groups.end(points);
    table.lifetimes.end(shard.locations.len());
    table.points.shrink_to_fit();
    table
}

/// What brings points about, in the order in which it counts: marks, waits, what was caused.
struct Roles {
    marks: Vec<Mark>,
    pairs: Vec<Pair>,
    caused: Vec<Caused>,
    /// The numbers of all, counted through, by position.
    keys: Vec<u128>,
}

/// The number in a key.
fn number_of(key: u128) -> usize {
    key as u32 as usize
}

impl Roles {
    fn new(trace: &Trace, seeds: Seeds, mut caused: Vec<Caused>) -> Self {
        caused.extend(seeds.alone.iter().map(Caused::idleness));
        let (marks, pairs) = (seeds.marks, seeds.pairs);
        let process = |anchor: Anchor| trace.world.locations[anchor.location as usize].process;
        let positions = (marks.iter().map(|mark| mark.anchor.position(trace, NONE)))
            .chain(pairs.iter().map(|pair| pair.waiter.position(trace, process(pair.cause))))
            .chain(caused.iter().map(|caused| caused.cause.position(trace, caused.process)));
        let mut keys: Vec<u128> = Vec::with_capacity(marks.len() + pairs.len() + caused.len());
        keys.extend(positions.zip(0..).map(|(position, number)| position.key(number)));
        keys.sort_unstable();
        Self { marks, pairs, caused, keys }
    }

    fn anchor(&self, key: u128) -> Anchor {
        let number = number_of(key);
        if let Some(mark) = self.marks.get(number) {
            return mark.anchor;
        }
        let number = number - self.marks.len();
        self.pairs.get(number).map_or_else(|| self.caused[number - self.pairs.len()].cause, |pair| pair.waiter)
    }

    /// The marks, waits and what was caused among the keys of a point.
    fn split<'a>(&self, keys: &'a [u128]) -> (&'a [u128], &'a [u128], &'a [u128]) {
        let (marks, rest) = keys.split_at(keys.partition_point(|&key| number_of(key) < self.marks.len()));
        let first = self.marks.len() + self.pairs.len();
        let (pairs, caused) = rest.split_at(rest.partition_point(|&key| number_of(key) < first));
        (marks, pairs, caused)
    }

    fn marks<'a>(&'a self, keys: &'a [u128]) -> impl Iterator<Item = &'a Mark> {
        keys.iter().map(|&key| &self.marks[number_of(key)])
    }

    /// Waits, with their positions.
    fn pairs<'a>(&'a self, keys: &'a [u128]) -> impl Iterator<Item = (u32, &'a Pair)> {
        keys.iter().map(|&key| number_of(key) - self.marks.len()).map(|i| (i as u32, &self.pairs[i]))
    }

    /// What was caused, with the positions.
    fn caused<'a>(&'a self, keys: &'a [u128]) -> impl Iterator<Item = (u32, &'a Caused)> {
        let first = self.marks.len() + self.pairs.len();
        keys.iter().map(move |&key| number_of(key) - first).map(|i| (i as u32, &self.caused[i]))
    }
}

/// A wait caused at the current point.
#[derive(Clone, Copy)]
struct Row {
    class: Class,
    relation: Relation,
    /// First point of the causing process's interval.
    from: u32,
    /// Time of the call at its left end that does not belong to it, ticks.
    before: i64,
    /// First point whose wait gets a share.
    shared_from: u32,
    /// Position among what was caused.
    caused: u32,
}

impl Row {
    /// What rows of one group agree on.
    fn key(&self) -> (Class, Relation, u32, i64, u32) {
        (self.class, self.relation, self.from, self.before, self.shared_from)
    }
}

struct Pass<'a> {
    trace: &'a Trace,
    shard: &'a Shard,
    sets: &'a [Vec<u32>],
    model: CostModel,
    roles: &'a Roles,
    profile: Profile,
    meetings: Meetings,
    /// Waiting before each point of the location so far, ticks.
    waited: Vec<i64>,
    /// First point of the location.
    first: u32,
    /// The interval measured last at the current point, and its work: many have the same.
    last: Option<(Option<Met>, Stretch)>,
    /// Room for the waits caused at a point.
    rows: Vec<Row>,
    table: Table,
}

impl Pass<'_> {
    fn location(&mut self, i: usize, keys: &[u128]) {
        self.profile.clear();
        self.meetings.clear();
        self.waited.clear();
        self.first = self.table.points.len() as u32;
        let mut steps = Steps::of_location(self.trace, self.shard, i);
        let is_master = self.trace.world.locations[self.shard.location(i) as usize].thread == 0;
        let mut waited = 0;
        for keys in keys.chunk_by(|a, b| a >> 32 == b >> 32) {
            let (marks, pairs, caused) = self.roles.split(keys);
            let number = self.table.points.len() as u32;
            let point = self.point(keys[0], marks, pairs);
            steps.advance(self.trace, point.position, |callpath, ticks| self.profile.add(callpath, ticks));
            if point.place == Place::Fork {
                self.lose_block(is_master);
            }
            self.table.points.push(point);
            self.waited.push(waited);
            self.last = None;
            self.ask(number, pairs);
            self.charge(number, caused);
            self.meet(number, marks, pairs, caused);
            self.profile.cut();
            if point.waiting > 0 {
                self.profile.add(point.callpath, -point.waiting);
                waited += point.waiting;
            }
        }
        self.table.offsets.push(self.table.points.len() as u32);
        steps.advance(self.trace, Position::END, |callpath, ticks| self.profile.add(callpath, ticks));
        self.lose_block(is_master);
    }

    /// The point of marks and waits.
    fn point(&self, key: u128, marks: &[u128], pairs: &[u128]) -> Point {
        let mut point = Point::new(self.shard, self.roles.anchor(key), Position::of(key));
        for mark in self.roles.marks(marks) {
            point.total = mark.total;
            if point.class == Class::Mark {
                (point.class, point.waiting, point.held) = (mark.class, mark.waiting, mark.waiting);
            }
        }
        for (_, pair) in self.roles.pairs(pairs) {
            // The wait of a member of a group stands in its mark.
            if matches!(pair.relation, Relation::Pair | Relation::Contention) {
                if point.waiting == 0 {
                    point.class = pair.class;
                }
                point.waiting += pair.waiting;
                point.held = point.held.max(pair.held);
            }
        }
        point
    }

    /// Release 2.6 loses what a worker does from the last barrier of its team on.
    fn lose_block(&mut self, is_master: bool) {
        let last = self.table.points[self.first as usize..].last();
        let barrier = last.filter(|point| point.class == Class::OmpBarrier);
        if let Some(barrier) = barrier.filter(|_| self.model == CostModel::Scalasca && !is_master) {
            self.profile.drop_block();
            self.profile.add(barrier.callpath, -barrier.waiting);
        }
    }

    /// Intervals of the waits at a point.
    fn ask(&mut self, number: u32, pairs: &[u128]) {
        for (i, pair) in self.roles.pairs(pairs) {
            let process = self.trace.world.locations[pair.cause.location as usize].process;
            let met = self.met(pair.relation, process);
            self.table.works[i as usize] = self.work(met);
            self.table.asks[i as usize].point = number;
            self.table.asks_of.push(number, i);
        }
    }

    /// Intervals of what was waited for at a point.
    fn charge(&mut self, number: u32, caused: &[u128]) {
        if caused.is_empty() {
            return;
        }
        let mut rows = std::mem::take(&mut self.rows);
        for (i, caused) in self.roles.caused(caused) {
            let Caused { class, relation, process, .. } = *caused;
            let met = self.met(relation, process);
            let (from, before) = (self.from(met), met.map_or(0, |met| met.before));
            rows.push(Row { class, relation, from, before, shared_from: from, caused: i });
        }
        if self.model == CostModel::Scalasca {
            self.segment(number, &mut rows);
        }
        rows.sort_unstable_by_key(|row| (row.key(), row.caused));
        for same in rows.chunk_by(|a, b| a.key() == b.key()) {
            let Row { class, relation, from, before, shared_from, .. } = same[0];
            let work = self.work((from > self.first).then(|| Met { point: from - 1, before }));
            let waited = |point: u32| self.waited[(point - self.first) as usize];
            let waiting = waited(number) - waited(from);
            let begin = self.table.charges.len() as u32;
            self.table
                .charges
                .extend(same.iter().map(|row| Charge::new(&self.roles.caused[row.caused as usize], row.caused)));
            let end = self.table.charges.len() as u32;
            self.table
                .groups
                .push(number, Group { point: number, class, relation, from, shared_from, work, waiting, begin, end });
        }
        rows.clear();
        self.rows = rows;
    }

    /// Release 2.6 sums up the shares of a collective operation by segments of the causing process's past; a share counts
    /// from the next segment on (PATTERNS 6.6).
    fn segment(&self, number: u32, rows: &mut [Row]) {
        for same in rows.chunk_by_mut(|a, b| a.class == b.class) {
            let comm = self.roles.caused[same[0].caused as usize].comm;
            let Some(comm) = self.trace.world.comms.get(comm as usize) else { continue };
            let Members::Processes(members) = &comm.members else { continue };
            let own = self.trace.world.locations[self.table.points[number as usize].location as usize].process;
            let from = |&process: &u32| self.from(self.met(Relation::Pair, process));
            let mut begins: Vec<u32> = members.iter().filter(|&&process| process != own).map(from).collect();
            begins.sort_unstable();
            begins.dedup();
            for row in same {
                if row.from != begins[0] {
                    let next = begins.partition_point(|&begin| begin <= row.from);
                    row.shared_from = begins.get(next).map_or(number, |begin| begin - 1);
                }
            }
        }
    }

    /// What the location did at a point with whom.
    fn meet(&mut self, number: u32, marks: &[u128], pairs: &[u128], caused: &[u128]) {
        let point = self.table.points[number as usize];
        for (_, pair) in self.roles.pairs(pairs) {
            let process = self.trace.world.locations[pair.cause.location as usize].process;
            self.meetings.meet(pair.relation, process, number, &point, pair.completion);
        }
        for (_, caused) in self.roles.caused(caused) {
            self.meetings.meet(caused.relation, caused.process, number, &point, caused.completion);
        }
        for mark in self.roles.marks(marks) {
            self.meetings.meet_all(mark.meets, number, mark.total - mark.completion);
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
        if let Some((_, stretch)) = self.last.filter(|(last, _)| *last == met) {
            return stretch;
        }
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
                self.table.entries.push(Entry::new(callpath, ticks));
            }
        }
        let stretch = Stretch { begin, end: self.table.entries.len() as u32 };
        self.last = Some((met, stretch));
        stretch
    }
}
