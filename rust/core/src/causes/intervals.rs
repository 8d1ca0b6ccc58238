//! All intervals of a shard, in one pass over each of its locations.
//!
//! An interval extends from the point at which two processes last synchronized to the current point. Its work is the
//! profile between the two, without waits, and without the part of the call at its left end before the synchronization.
//! First the waits are subtracted and non-positive times dropped, then the call at the left end is cut.
//!
//! *Source*: specification.md#intervals; synchronization intervals: thesis, definitions 5 and 6, equation 4.1;
//! pre-contention intervals: thesis, definition 9, equations 4.3 to 4.6.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::awaited::{AwaitedWork, AwaitedWorks};
use super::cost_model::CostModel;
use super::delay;
use super::last_sync::{LastSync, LastSyncIndex};
use super::past::{self, Gap, Past};
use super::points::{Anchor, CausedWait, Key, Position, SyncPoints};
use super::points::{GroupSync, IntervalBegin, Place, Point, Relation, SyncPoint, SyncScope};
use super::rolling_profile::RollingProfile;
use super::steps::{ForkJoins, Steps};
use super::table::Table;
use super::table::{CostShare, EntryRange, Group, OwnWait, ProfileEntry};
use crate::ids::{CallPathId, LocationId, ProcessId};
use crate::parallel::exchange::Outbox;
use crate::schema::Class;
use crate::trace::{NONE, Shard, Trace};

/// Measures all intervals of a shard.
pub(super) fn measure(
    trace: &Trace,
    shard: &Shard,
    sync_points: SyncPoints,
    caused: Vec<CausedWait>,
    sets: &[Vec<ProcessId>],
    model: CostModel,
) -> (Table, Outbox<ProfileEntry>) {
    let mut sync_points = sync_points;
    let thread_sets = std::mem::take(&mut sync_points.thread_sets);
    let roles = Roles::new(trace, sync_points, caused);
    let mut table = Table { offsets: vec![0], ..Table::default() };
    let points = roles.keys.chunk_by(|a, b| a.position() == b.position()).count();
    table.points.reserve_exact(points);
    table.own_waits.reserve(roles.pairs.len(), points);
    table.own_intervals.reserve_exact(roles.pairs.len());
    table.cost_shares.reserve_exact(roles.caused.len());
    table.groups.reserve(roles.caused.len(), points);
    let fork_joins = ForkJoins::new(trace, shard);
    let mut pass = LocationPass {
        fork_joins: &fork_joins,
        gaps: roles.gaps(trace, shard, model),
        trace,
        shard,
        sets,
        thread_sets,
        model,
        roles: &roles,
        has_threads: roles.has_threads(shard),
        profile: RollingProfile::new(trace.tree.len()),
        last_syncs: LastSyncIndex::default(),
        waited: Vec::new(),
        first: 0,
        measured: (NONE, None),
        work: Vec::new(),
        rows: Vec::new(),
        of_others: FxHashMap::default(),
        originals: Vec::new(),
        copies: FxHashMap::default(),
        table,
        outbox: trace.exchange.outbox(),
        posted: vec![(NONE, None); trace.exchange.shards()],
    };
    let mut work: Vec<(CallPathId, i64)> = Vec::new();
    let mut rest = &roles.keys[..];
    for i in 0..shard.locations.len() {
        let own = rest.partition_point(|&key| roles.anchor(key).location == shard.location(i));
        let keys = rest.split_off(..own).unwrap_or_default();
        pass.location(i, keys);
        let of_others = past::by_callpath(&pass.of_others);
        let of_others_in = |callpath| {
            of_others.binary_search_by_key(&callpath, |&(other, ..)| other).map_or(0, |position| of_others[position].1)
        };
        let own = |(callpath, ticks)| (callpath, ticks - of_others_in(callpath));
        work.extend(pass.profile.all().map(own).filter(|&(_, ticks)| ticks > 0));
        work.sort_unstable();
        let is_own = |callpath: CallPathId| work.binary_search_by_key(&callpath, |&(own, _)| own).is_ok();
        let delays = of_others.iter().filter(|&&(callpath, ticks, _)| ticks > 0 && !is_own(callpath));
        pass.table.of_others.push(delays.map(|&(callpath, _, owner)| (callpath, owner)).collect());
        let past = (!pass.gaps[i].is_empty()).then(|| Past { originals: pass.originals.clone() });
        pass.table.pasts.push(past);
        for entry in work.drain(..) {
            pass.table.lifetimes.push(i as u32, entry);
        }
    }
    let LocationPass { mut table, outbox, .. } = pass;
    let points = table.points.len();
    table.own_waits.end(points);
    table.groups.end(points);
    table.lifetimes.end(shard.locations.len());
    (table, outbox)
}

/// The roles that create points, in order of precedence: group synchronizations, waits, causes of waits.
struct Roles {
    group_syncs: Vec<GroupSync>,
    pairs: Vec<SyncPoint>,
    awaited: AwaitedWorks,
    caused: Vec<CausedWait>,
    /// Their numbers, consecutive over all roles, sorted by position.
    keys: Vec<Key>,
}

impl Roles {
    fn new(trace: &Trace, sync_points: SyncPoints, mut caused: Vec<CausedWait>) -> Self {
        caused.extend(sync_points.alone.iter().map(CausedWait::idleness));
        let SyncPoints { group_syncs, pairs, awaited, order, .. } = sync_points;
        let mut keys = Vec::with_capacity(group_syncs.len() + pairs.len() + caused.len());
        let positions = group_syncs.iter().map(|group_sync| group_sync.anchor.position(trace, ProcessId::NONE));
        keys.extend(positions.zip(0..).map(|(position, number)| Key::new(position, number)));
        keys.extend(order.into_iter().map(|key| key.moved(group_syncs.len() as u32)));
        let positions = caused.iter().map(|caused| caused.cause.position(trace, caused.process(trace)));
        let first = (group_syncs.len() + pairs.len()) as u32;
        keys.extend(positions.zip(first..).map(|(position, number)| Key::new(position, number)));
        // The first two parts are almost sorted.
        keys.sort();
        Self { group_syncs, pairs, awaited, caused, keys }
    }

    /// Whether threads or streams of one process synchronize.
    fn has_threads(&self, shard: &Shard) -> bool {
        use Relation::{Creation, Device, ThreadGroup, ThreadPair};
        !shard.teams.rows.is_empty()
            || !shard.threads.rows.is_empty()
            || self.pairs.iter().any(|pair| matches!(pair.relation, Device | ThreadPair | ThreadGroup | Creation))
    }

    fn anchor(&self, key: Key) -> Anchor {
        let number = key.number();
        if let Some(group_sync) = self.group_syncs.get(number) {
            return group_sync.anchor;
        }
        let number = number - self.group_syncs.len();
        self.pairs.get(number).map_or_else(|| self.caused[number - self.pairs.len()].cause, |pair| pair.waiter)
    }

    /// The keys of a point.
    fn at(&self, position: Position) -> &[Key] {
        let keys = &self.keys[self.keys.partition_point(|key| key.position() < position)..];
        &keys[..keys.partition_point(|key| key.position() == position)]
    }

    /// Whether any of these is a wait with an interval that may reach back before its thread begins, or caused one.
    fn communicates(&self, keys: &[Key]) -> bool {
        use Relation::{Contention, Group, Pair, ThreadGroup, ThreadPair};
        let first = self.group_syncs.len();
        let relation = |number: usize| {
            let pair = self.pairs.get(number).map(|pair| pair.relation);
            pair.unwrap_or_else(|| self.caused[number - self.pairs.len()].relation)
        };
        let mut relations = keys.iter().filter_map(|key| key.number().checked_sub(first)).map(relation);
        relations.any(|relation| matches!(relation, Pair | Group | Contention | ThreadPair | ThreadGroup))
    }

    /// The events of other threads in the past of each location of the shard; empty if it has no past.
    fn gaps(&self, trace: &Trace, shard: &Shard, model: CostModel) -> Vec<Vec<Gap>> {
        let mut rest = &self.keys[..];
        let of_location = |i: usize| {
            let location = shard.location(i);
            let own = rest.partition_point(|&key| self.anchor(key).location == location);
            let keys = rest.split_off(..own).unwrap_or_default();
            let may_begin = !shard.teams.of(i).is_empty() || !shard.threads.of(i).is_empty();
            if may_begin
                && model != CostModel::Scalasca
                && trace.definitions.locations[location].thread != 0
                && self.communicates(keys)
            {
                past::gaps(trace, shard, location)
            } else {
                Vec::new()
            }
        };
        (0..shard.locations.len()).map(of_location).collect()
    }

    /// Splits the keys of a point into group synchronizations, waits, and waits caused.
    fn split<'a>(&self, keys: &'a [Key]) -> (&'a [Key], &'a [Key], &'a [Key]) {
        let (group_syncs, rest) = keys.split_at(keys.partition_point(|&key| key.number() < self.group_syncs.len()));
        let first = self.group_syncs.len() + self.pairs.len();
        let (pairs, caused) = rest.split_at(rest.partition_point(|&key| key.number() < first));
        (group_syncs, pairs, caused)
    }

    fn group_syncs<'a>(&'a self, keys: &'a [Key]) -> impl Iterator<Item = &'a GroupSync> {
        keys.iter().map(|&key| &self.group_syncs[key.number()])
    }

    fn pairs<'a>(&'a self, keys: &'a [Key]) -> impl Iterator<Item = &'a SyncPoint> {
        keys.iter().map(|&key| &self.pairs[key.number() - self.group_syncs.len()])
    }

    /// The work that a wait waits for, if it is that of a device.
    fn awaited(&self, key: Key) -> impl Iterator<Item = &AwaitedWork> {
        self.awaited.at((key.number() - self.group_syncs.len()) as u32)
    }

    /// The waits caused, with their positions among all of them.
    fn caused<'a>(&'a self, keys: &'a [Key]) -> impl Iterator<Item = (u32, &'a CausedWait)> {
        let first = self.group_syncs.len() + self.pairs.len();
        keys.iter().map(move |&key| key.number() - first).map(|i| (i as u32, &self.caused[i]))
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
    /// The properties that the rows of a group share.
    fn key(&self) -> (Class, Relation, u32, i64, u32) {
        (self.class, self.relation, self.from, self.before, self.shared_from)
    }
}

struct LocationPass<'a> {
    trace: &'a Trace,
    shard: &'a Shard,
    fork_joins: &'a ForkJoins<'a>,
    sets: &'a [Vec<ProcessId>],
    thread_sets: Vec<Vec<LocationId>>,
    model: CostModel,
    roles: &'a Roles,
    has_threads: bool,
    profile: RollingProfile,
    last_syncs: LastSyncIndex,
    /// Waiting before each point of the location so far, ticks.
    waited: Vec<i64>,
    /// First point of the location.
    first: u32,
    /// Cache of the last measured interval (end, begin, work): many intervals are the same.
    measured: (u32, Option<LastSync>),
    work: Vec<ProfileEntry>,
    /// Room for the waits caused at a point.
    rows: Vec<Row>,
    /// For each location the events of others in its past.
    gaps: Vec<Vec<Gap>>,
    /// Ticks that others spent for the location, in its past or while it waited for its device, and who did.
    of_others: FxHashMap<(CallPathId, LocationId), i64>,
    /// The points that its copies were made of.
    originals: Vec<u32>,
    /// For each point that has copies, the rows of those yet to be made.
    copies: FxHashMap<u32, Range<u32>>,
    table: Table,
    /// Work of the waits' intervals, for the causing processes.
    outbox: Outbox<ProfileEntry>,
    /// The last interval sent to each of these, with its end.
    posted: Vec<(u32, Option<LastSync>)>,
}

impl LocationPass<'_> {
    fn location(&mut self, i: usize, keys: &[Key]) {
        self.profile.clear();
        self.last_syncs.clear();
        self.waited.clear();
        self.first = self.table.points.len() as u32;
        self.of_others.clear();
        self.originals.clear();
        let gaps = self.gaps[i].clone();
        let mut past = gaps.iter().peekable();
        let mut steps = Steps::of_location(self.fork_joins, i).with_past(self.fork_joins, gaps.clone());
        let is_master = self.trace.definitions.locations[self.shard.location(i)].thread == 0;
        let mut waited = 0;
        for keys in keys.chunk_by(|a, b| a.position() == b.position()) {
            while let Some(gap) = past.next_if(|gap| gap.at < keys[0].position()) {
                self.copy_points(gap, &mut steps, &mut waited);
            }
            let (group_syncs, pairs, caused) = self.roles.split(keys);
            let number = self.table.points.len() as u32;
            let point = self.point(keys[0], group_syncs, pairs);

            steps.advance(self.trace, point.position, |callpath, span| {
                self.profile.add(callpath, span.end - span.start);
            });

            if let Some(cut) = point.place.cut(self.shard, point.instance) {
                steps.split(cut, &mut |callpath, span: Range<i64>| {
                    self.profile.add(callpath, span.end - span.start);
                });
            }
            if point.place == Place::Fork {
                self.drop_work_after_last_barrier(is_master);
            }
            self.table.points.push(point);
            self.waited.push(waited);
            self.add_own_waits(number, pairs);
            self.add_cost_shares(number, caused);
            self.add_copies(i, number);
            self.record_syncs(number, group_syncs, pairs, caused, false);
            self.add_awaited(number, pairs);
            let block = self.profile.cut();
            // No interval reaches back beyond a synchronization with all, except those of threads or devices.
            if !self.has_threads
                && self.roles.group_syncs(group_syncs).any(|group_sync| group_sync.scope == SyncScope::Everybody)
            {
                self.profile.forget_before(block);
            }
            if point.waiting > 0 {
                self.profile.add(point.callpath, -point.place.inside(point.waiting));
                waited += self.table.waiting(number);
            }
        }
        self.table.offsets.push(self.table.points.len() as u32);
        steps.advance(self.trace, Position::END, |callpath, span| self.profile.add(callpath, span.end - span.start));
        self.drop_work_after_last_barrier(is_master);
    }

    /// Makes copies of the points in a gap, and goes on to its end.
    fn copy_points(&mut self, gap: &Gap, steps: &mut Steps, waited: &mut i64) {
        let trace = self.trace;
        let of = self.shard.local(gap.of);
        steps.advance(trace, gap.at, |callpath, span| self.profile.add(callpath, span.end - span.start));
        for original in self.table.find(of, gap.from)..self.table.find(of, gap.until) {
            let point = self.table.points[original as usize];
            let Some(position) = gap.at.copy_of(self.originals.len() as u32) else { break };
            self.originals.push(original);
            let (profile, of_others) = (&mut self.profile, &mut self.of_others);
            steps.advance_past(trace, position, (gap.of, point.position), |callpath, span| {
                profile.add(callpath, span.end - span.start);
                *of_others.entry((callpath, gap.of)).or_default() += span.end - span.start;
            });
            let number = self.table.points.len() as u32;
            self.table.points.push(Point { position, ..point });
            self.waited.push(*waited);
            let roles = self.roles;
            let (group_syncs, pairs, caused) = roles.split(roles.at(point.position));
            self.record_syncs(number, group_syncs, pairs, caused, true);
            self.add_awaited(number, pairs);
            self.profile.cut();
            if point.waiting > 0 {
                if let Some(row) = self.copies.get_mut(&original).and_then(Iterator::next) {
                    self.table.own_waits.push(number, OwnWait::copy((&point, original), number, row));
                    self.table.own_intervals.push(IntervalBegin { from: number, before: 0 });
                }
                let inside = point.place.inside(point.waiting);
                self.profile.add(point.callpath, -inside);
                *self.of_others.entry((point.callpath, gap.of)).or_default() -= inside;
                *waited += self.table.waiting(number);
            }
        }
        let (profile, of_others) = (&mut self.profile, &mut self.of_others);
        steps.finish_gap(trace, &mut |callpath, span: Range<i64>| {
            profile.add(callpath, span.end - span.start);
            *of_others.entry((callpath, gap.of)).or_default() += span.end - span.start;
        });
    }

    /// Adds the work that is awaited at a point, before the calls that follow.
    fn add_awaited(&mut self, number: u32, pairs: &[Key]) {
        let roles = self.roles;
        for work in pairs.iter().flat_map(|&key| roles.awaited(key)) {
            self.profile.add(work.callpath, work.worked());
            *self.of_others.entry((work.callpath, work.stream)).or_default() += work.worked();
            self.table.awaited.push(number, *work);
        }
    }

    /// What copies return to the wait at the point that they were made of.
    fn add_copies(&mut self, i: usize, number: u32) {
        let Some(original) = number.checked_sub(1).filter(|&before| before >= self.first) else { return };
        let point = &self.table.points[original as usize];
        if point.waiting <= 0 || point.position.copy().is_some() {
            return;
        }
        let location = self.shard.location(i);
        let is_copied = |gap: &Gap| gap.of == location && gap.from <= point.position && point.position < gap.until;
        let copies = self.gaps[i..].iter().filter(|gaps| gaps.iter().any(is_copied)).count() as u32;
        if copies > 0 {
            let begin = self.table.cost_shares.len() as u32;
            let end = begin + copies;
            let waiting = self.table.waiting(original);
            let row = CostShare::of_copy(point.class, waiting, self.trace.shard_of[location]);
            self.table.cost_shares.extend(std::iter::repeat_n(row, copies as usize));
            self.copies.insert(original, begin..end);
            self.table.groups.push(
                number,
                Group {
                    class: row.class,
                    relation: Relation::Past,
                    from: original,
                    before: 0,
                    shared_from: original,
                    point: number,
                    work: EntryRange::default(),
                    waiting,
                    begin,
                    end,
                },
            );
        }
    }

    /// The point of group synchronizations and waits.
    fn point(&self, key: Key, group_syncs: &[Key], pairs: &[Key]) -> Point {
        let mut point = Point::new(self.shard, self.roles.anchor(key), key.position());
        for group_sync in self.roles.group_syncs(group_syncs) {
            point.total = group_sync.total;
            if point.class == Class::Mark {
                (point.class, point.waiting, point.held) = (group_sync.class, group_sync.waiting, group_sync.waiting);
            }
        }
        point.has_work = pairs.iter().any(|&key| self.roles.awaited(key).next().is_some());
        for pair in self.roles.pairs(pairs) {
            if pair.relation == Relation::Start && point.place == Place::Ahead {
                point.held = pair.held;
            }
            // The wait of a group's member is part of its group synchronization.
            if pair.relation.is_of_two() {
                if point.waiting == 0 {
                    point.class = pair.class;
                }
                point.waiting += pair.waiting;
                point.held = if point.place == Place::Ahead { pair.held } else { point.held.max(pair.held) };
            }
        }
        point
    }

    /// Scalasca 2.6 loses a worker's time after the last barrier of its team.
    fn drop_work_after_last_barrier(&mut self, is_master: bool) {
        let last = self.table.points[self.first as usize..].last();
        let barrier = last.filter(|point| point.class == Class::OmpBarrier);
        if let Some(barrier) = barrier.filter(|_| self.model == CostModel::Scalasca && !is_master) {
            self.profile.drop_block();
            self.profile.add(barrier.callpath, -barrier.waiting);
        }
    }

    /// Intervals of the waits at a point.
    fn add_own_waits(&mut self, number: u32, pairs: &[Key]) {
        for pair in self.roles.pairs(pairs) {
            if !pair.relation.has_interval() {
                self.add_without_interval(number, pair);
                continue;
            }
            let process = self.trace.definitions.locations[pair.cause.location].process;
            let last_sync = self.last_sync(pair.relation, (pair.cause.location, process));
            let interval =
                IntervalBegin { from: self.from(last_sync), before: last_sync.map_or(0, |last_sync| last_sync.before) };
            self.table.own_waits.push(number, OwnWait::new(pair, number));
            self.table.own_intervals.push(interval);
            let owner = self.trace.shard_of[pair.cause.location];
            if std::mem::replace(&mut self.posted[owner as usize], (number, last_sync)) == (number, last_sync) {
                delay::send_same(&mut self.outbox, owner);
            } else {
                self.measure(number, last_sync);
                delay::send(&mut self.outbox, owner, &self.work);
            }
        }
    }

    /// A wait that has no interval: the causing thread is in the same process, and needs no work of the waiter.
    fn add_without_interval(&mut self, number: u32, pair: &SyncPoint) {
        self.table.own_waits.push(number, OwnWait::new(pair, number));
        self.table.own_intervals.push(IntervalBegin { from: number, before: 0 });
        let owner = self.trace.shard_of[pair.cause.location];
        self.posted[owner as usize] = (NONE, None);
        delay::send(&mut self.outbox, owner, &[]);
    }

    /// Intervals of the waits that were caused at a point.
    fn add_cost_shares(&mut self, number: u32, caused: &[Key]) {
        if caused.is_empty() {
            return;
        }
        let mut rows = std::mem::take(&mut self.rows);
        for (i, caused) in self.roles.caused(caused) {
            let CausedWait { class, relation, waiter, .. } = *caused;
            let (from, before) = if relation.has_interval() {
                let last_sync = self.last_sync(relation, (waiter, caused.process(self.trace)));
                (self.from(last_sync), last_sync.map_or(0, |last_sync| last_sync.before))
            } else {
                (number, 0)
            };
            rows.push(Row { class, relation, from, before, shared_from: from, caused: i });
        }
        if self.model == CostModel::Scalasca {
            self.segment(number, &mut rows);
        }
        rows.sort_unstable_by_key(|row| (row.key(), row.caused));
        for same in rows.chunk_by(|a, b| a.key() == b.key()) {
            let Row { class, relation, from, before, shared_from, .. } = same[0];
            let work = if relation.has_interval() {
                self.measure(number, (from > self.first).then(|| LastSync { point: from - 1, before }));
                self.table.add(&self.work)
            } else {
                EntryRange::default()
            };
            let waited = |point: u32| self.waited[(point - self.first) as usize];
            let waiting = waited(number) - waited(from);
            let begin = self.table.cost_shares.len() as u32;
            self.table
                .cost_shares
                .extend(same.iter().map(|row| CostShare::new(&self.roles.caused[row.caused as usize], row.caused)));
            let end = self.table.cost_shares.len() as u32;
            self.table.groups.push(
                number,
                Group { class, relation, from, before, shared_from, point: number, work, waiting, begin, end },
            );
        }
        rows.clear();
        self.rows = rows;
    }

    /// Scalasca 2.6 sums the shares of a collective operation by segments of the causing process's past; a share counts
    /// from the next segment on.
    fn segment(&self, number: u32, rows: &mut [Row]) {
        for same in rows.chunk_by_mut(|a, b| a.class == b.class) {
            let comm = self.roles.caused[same[0].caused as usize].comm;
            let Some(comm) = self.trace.definitions.comms.get(comm.index()) else { continue };
            let Some(members) = comm.processes() else { continue };
            let own = self.trace.definitions.locations[self.table.points[number as usize].location].process;
            let from = |&process: &ProcessId| self.from(self.last_sync(Relation::Pair, (LocationId::NONE, process)));
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

    /// Records the synchronizations of the location at a point. Those of another thread with threads are not those of a
    /// location of which it is the past: the other side knows that thread only.
    fn record_syncs(&mut self, number: u32, group_syncs: &[Key], pairs: &[Key], caused: &[Key], is_copy: bool) {
        let point = self.table.points[number as usize];
        let is_own = |relation| !is_copy || !matches!(relation, Relation::ThreadPair | Relation::Creation);
        for pair in self.roles.pairs(pairs).filter(|pair| is_own(pair.relation)) {
            let location = pair.cause.location;
            let other = (location, self.trace.definitions.locations[location].process);
            self.last_syncs.record(pair.relation, other, number, &point, pair.completion);
        }
        for (_, caused) in self.roles.caused(caused).filter(|(_, caused)| is_own(caused.relation)) {
            let other = (caused.waiter, caused.process(self.trace));
            self.last_syncs.record(caused.relation, other, number, &point, caused.completion);
        }
        let is_of_threads = |scope| matches!(scope, SyncScope::Threads { .. });
        let own = self.roles.group_syncs(group_syncs).filter(|sync| !is_copy || !is_of_threads(sync.scope));
        for group_sync in own {
            self.last_syncs.record_group(group_sync.scope, number, group_sync.total - group_sync.completion);
        }
    }

    fn last_sync(&self, relation: Relation, (location, process): (LocationId, ProcessId)) -> Option<LastSync> {
        match relation {
            Relation::Device => self.last_syncs.with_device(location),
            Relation::ThreadPair | Relation::ThreadGroup | Relation::Threads => {
                self.last_syncs.with_thread(&self.thread_sets, location)
            }
            Relation::Alone => self.last_syncs.without_team(),
            _ => self.last_syncs.with(&self.trace.definitions, self.sets, process, relation == Relation::Contention),
        }
    }

    /// The first point after a synchronization.
    fn from(&self, last_sync: Option<LastSync>) -> u32 {
        last_sync.map_or(self.first, |last_sync| last_sync.point + 1)
    }

    /// Measures the work since a synchronization: thesis, definition 6, equation 4.1.
    fn measure(&mut self, number: u32, last_sync: Option<LastSync>) {
        if std::mem::replace(&mut self.measured, (number, last_sync)) == (number, last_sync) {
            return;
        }
        let block = self.from(last_sync) - self.first;
        let left = last_sync.map(|last_sync| {
            let Point { callpath, waiting, place, .. } = self.table.points[last_sync.point as usize];
            IntervalStart { callpath, waiting: place.inside(waiting), before: last_sync.before }
        });
        self.work.clear();
        work_since(&self.profile, block, left, |callpath, ticks| ProfileEntry::write(&mut self.work, callpath, ticks));
    }
}

/// The call at the left end of an interval.
#[derive(Clone, Copy)]
pub(super) struct IntervalStart {
    pub callpath: CallPathId,
    /// Waiting time in it, ticks.
    pub waiting: i64,
    /// Time of it that does not belong to the interval, ticks.
    pub before: i64,
}

/// The work of the interval from the begin of a block to now, by call path.
#[inline]
pub(super) fn work_since(
    profile: &RollingProfile,
    block: u32,
    left: Option<IntervalStart>,
    mut each: impl FnMut(CallPathId, i64),
) {
    for (callpath, mut ticks) in profile.since(block) {
        let left = left.filter(|left| left.callpath == callpath);
        if let Some(left) = left {
            // The wait at the left end belongs to the time before the synchronization, not to the interval.
            ticks += left.waiting;
        }
        if ticks > 0 {
            ticks -= left.map_or(0, |left| left.before);
        }
        if ticks > 0 {
            each(callpath, ticks);
        }
    }
}
