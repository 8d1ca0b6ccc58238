//! The critical path: the longest chain of dependent activities, found backwards.
//!
//! ```text
//!  0  [=Init=][===== f =====][ Send ]--------
//!                            \ handed over
//!  1  [ Init ][ f ][ Recv... =][== g ==][ Finalize
//! ```
//!
//! It begins (ends in time) where `MPI_Finalize` is entered last, and follows its location back. At a wait it goes over
//! to the cause: before the call that began late, or behind the release that others waited for. It ends with `MPI_Init`.
//! At a barrier between threads it goes to the one that came last, at their fork to the master.
//!
//! *Release 2.6 of Scalasca* does not hand it over in one-sided communication, and to all threads that came last.
//!
//! *Source*: thesis section 4.2, figures 4.7 to 4.9; PATTERNS 7.2.

mod impact;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::causes::points::{Place, Relation};
use crate::causes::{Class, CostModel, Position, Steps, Table};
use crate::notes::{NoteKind, Notes};
use crate::severity::{Cost, Metric, Severity};
use crate::trace::{NO_CALLPATH, NONE, Trace};
use crate::waits::threads::teams;

/// A stretch of the critical path on one location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Index of the location.
    pub location: u32,
    /// Begin, ticks.
    pub from: i64,
    /// End, ticks.
    pub to: i64,
    /// Call path that has most of it.
    pub callpath: u32,
    /// Ticks of that call path.
    pub ticks: i64,
    /// The wait at its begin, for which the path came from another location; `None` at the begin of the run.
    pub hop: Option<Class>,
}

/// What the path gives.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The path by call path, and activities.
    pub severities: Vec<Severity>,
    /// Impacts.
    pub costs: Vec<Cost>,
    /// The path in the order of time.
    pub segments: Vec<Segment>,
    /// What was odd.
    pub notes: Notes,
}

/// Follows the path, and computes the indicators that come from it.
pub(crate) fn find(trace: &Trace, tables: &[Table], model: CostModel) -> Found {
    let mut walk = Walk {
        trace,
        tables,
        model,
        owners: BTreeSet::new(),
        masters: FxHashMap::default(),
        cells: FxHashMap::default(),
        segments: Vec::new(),
        seen: FxHashSet::default(),
        notes: Notes::default(),
    };
    walk.owners.extend(walk.begin());
    while let Some(owner) = walk.owners.pop_last() {
        walk.follow(owner);
    }
    let mut segments = walk.segments;
    segments.sort_by_key(|segment| (segment.from, segment.to));
    let mut path: Vec<Severity> = walk
        .cells
        .into_iter()
        .map(|((callpath, location), value)| Severity { metric: Metric::CriticalPath, callpath, location, value })
        .filter(|cell| cell.value != 0)
        .collect();
    path.sort_unstable_by_key(|cell| (cell.callpath, cell.location));
    let (severities, costs) = impact::assess(trace, tables, &path, model);
    path.extend(severities);
    Found { severities: path, costs, segments, notes: walk.notes }
}

/// The end of a stretch: nothing at or behind it belongs to the path.
///
/// Ordered by time, so that threads of a team come to their fork before the path goes on at the master.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Owner {
    time: i64,
    location: Reverse<u32>,
    position: Position,
    /// Call path of the release that others waited for, and what it did after their wait had ended, ticks.
    over: (u32, i64),
}

/// Nothing lies over the end.
const EXACT: (u32, i64) = (NO_CALLPATH, 0);

struct Walk<'a> {
    trace: &'a Trace,
    tables: &'a [Table],
    model: CostModel,
    owners: BTreeSet<Owner>,
    /// For the parallel regions of the processes met so far (location, region instance) the same of the master.
    masters: FxHashMap<(u32, u32), (u32, u32)>,
    cells: FxHashMap<(u32, u32), i64>,
    segments: Vec<Segment>,
    /// Points where the path left a location.
    seen: FxHashSet<(u32, usize)>,
    notes: Notes,
}

impl Walk<'_> {
    /// Where the path ends in time: the last Enter of `MPI_Finalize`, else the last event of a master.
    fn begin(&self) -> Option<Owner> {
        let masters = self.trace.world.processes.iter().filter(|process| !process.locations.is_empty());
        let locations = masters.flat_map(|process| process.locations.clone());
        let span = |location: u32| {
            let shard = self.trace.shard(location);
            &shard.spans[(location - shard.locations.start) as usize]
        };
        let finalize = |location: u32| {
            let instance = span(location).finalize;
            (instance != NONE).then(|| Owner {
                time: self.trace.shard(location).enter(instance),
                location: Reverse(location),
                position: self.position((location, instance), Place::Leave),
                over: EXACT,
            })
        };
        let last = |location: u32| {
            let is_master = self.trace.world.locations[location as usize].thread == 0;
            let time = span(location).last;
            (is_master && time != i64::MIN).then_some(Owner {
                time,
                location: Reverse(location),
                position: Position::END,
                over: EXACT,
            })
        };
        locations.clone().filter_map(finalize).max().or_else(|| locations.filter_map(last).max())
    }

    fn position(&self, call: (u32, u32), place: Place) -> Position {
        crate::causes::points::Anchor::new(call, place).position(self.trace, NONE)
    }

    fn table(&self, location: u32) -> (&Table, usize) {
        let shard = self.trace.shard_of[location as usize];
        let i = location - self.trace.shards[shard as usize].locations.start;
        (&self.tables[shard as usize], i as usize)
    }

    /// Follows one location back to where it waited, books the stretch, hands over.
    fn follow(&mut self, owner: Owner) {
        let location = owner.location.0;
        let (table, i) = self.table(location);
        let points = table.points_of(i);
        let end = table.find(i, owner.position) as usize;
        let mut next = Vec::new();
        let mut stop = None;
        for number in (points.start..end).rev() {
            next = self.next(number, location);
            let is_begin = self.is_init(number, location);
            let stays = next.len() == 1
                && next[0].location == owner.location
                && next[0].position == self.table(location).0.points[number].position;
            if is_begin || (!next.is_empty() && !stays) {
                stop = Some(number);
                break;
            }
            next.clear();
        }
        // Where clocks disagree a wait can be caused by what it causes: the path ends where it comes round again.
        if let Some(number) = stop
            && !self.seen.insert((location, number))
        {
            self.notes.add(NoteKind::CircularWaits, location, owner.time);
            return;
        }
        self.book(owner, stop);
        self.owners.extend(next);
    }

    fn is_init(&self, number: usize, location: u32) -> bool {
        let shard = self.trace.shard(location);
        let init = shard.spans[(location - shard.locations.start) as usize].init;
        let point = &self.table(location).0.points[number];
        point.class == Class::Library && point.instance == init
    }

    /// Who has the path before a point; nobody else if the location did not wait there.
    fn next(&mut self, number: usize, location: u32) -> Vec<Owner> {
        let table = self.table(location).0;
        let point = table.points[number];
        if point.place == Place::Fork {
            let call = self.master((location, point.instance));
            return self.owner(call, Place::Fork).into_iter().collect();
        }
        let asks = table.asks_of.of(number).iter().map(|&ask| &table.asks[ask as usize]);
        let last = asks
            .filter(|ask| ask.waiting > 0 || ask.relation == Relation::Threads)
            .reduce(|last, ask| if ask.held > last.held { ask } else { last });
        let Some(ask) = last else {
            // The last at a barrier between threads, perhaps with others.
            let ties = self.ties(location, number);
            return if ties.is_empty() { ties } else { ties.into_iter().chain([self.at(location, number)]).collect() };
        };
        let cause = ask.cause;
        let cause_point = ask.cause_point as usize;
        let mut owner = self.at(cause, cause_point);
        if ask.relation == Relation::Contention {
            let ended = self.trace.shard(location).enter(point.instance) + point.held;
            let over = (owner.time - ended).max(0);
            owner.over = (self.table(cause).0.points[cause_point].callpath, over);
            owner.time -= over;
        }
        let mut owners = vec![owner];
        if ask.relation == Relation::Threads {
            owners.extend(self.ties(cause, cause_point));
        }
        owners
    }

    /// Threads that came to a barrier at the same time as the one that is its cause.
    fn ties(&self, location: u32, number: usize) -> Vec<Owner> {
        if self.model == CostModel::Thesis {
            return Vec::new();
        }
        let table = self.table(location).0;
        let charges = table.charges_of(number).iter();
        let ties = charges.filter(|charge| charge.relation == Relation::Threads && charge.direct == 0);
        ties.map(|charge| {
            let waiter = &self.tables[charge.shard as usize];
            let ask = &waiter.asks[charge.ask as usize];
            self.at(waiter.points[ask.point as usize].location, ask.point as usize)
        })
        .collect()
    }

    /// The path ends at a point.
    fn at(&self, location: u32, number: usize) -> Owner {
        let point = &self.table(location).0.points[number];
        let shard = self.trace.shard(location);
        let time = if point.place == Place::Behind { shard.leave(point.instance) } else { shard.enter(point.instance) };
        let time = if point.place == Place::Fork { time - point.total } else { time };
        Owner { time, location: Reverse(location), position: point.position, over: EXACT }
    }

    /// The point at a place in a call.
    fn owner(&self, (location, instance): (u32, u32), place: Place) -> Option<Owner> {
        let position = self.position((location, instance), place);
        let (table, i) = self.table(location);
        let number = table.find(i, position) as usize;
        let exists = table.points_of(i).contains(&number) && table.points[number].position == position;
        exists.then(|| self.at(location, number))
    }

    /// The master's parallel region of a thread's.
    fn master(&mut self, call: (u32, u32)) -> (u32, u32) {
        if !self.masters.contains_key(&call) {
            let shard = self.trace.shard(call.0);
            let process = self.trace.world.locations[call.0 as usize].process;
            let parts = teams(shard, &self.trace.world.processes[process as usize]);
            for team in parts.chunk_by(|a, b| a.team.fork == b.team.fork) {
                let forker = shard.location_of(&shard.forks, team[0].team.fork);
                let own = team.iter().find(|part| part.location == forker);
                for part in team {
                    let master = own.unwrap_or(part);
                    self.masters.insert((part.location, part.team.instance), (master.location, master.team.instance));
                }
            }
        }
        self.masters.get(&call).copied().unwrap_or(call)
    }

    /// Books the stretch between a point, or the begin, and its end.
    fn book(&mut self, owner: Owner, stop: Option<usize>) {
        let location = owner.location.0;
        let shard = self.trace.shard(location);
        let (table, i) = self.table(location);
        let point = stop.map(|number| table.points[number]);
        let mut steps = match point {
            Some(point) => Steps::from(self.trace, shard, i, point.position),
            None => Steps::of_location(self.trace, shard, i),
        };
        let mut times: BTreeMap<u32, i64> = BTreeMap::new();
        steps.advance(self.trace, owner.position, |callpath, ticks| *times.entry(callpath).or_insert(0) += ticks);
        let mut from = shard.spans[i].first;
        if let Some(point) = point {
            from = shard.enter(point.instance) + point.held;
            if point.place == Place::Fork {
                from -= point.total;
            }
            if let Some(time) = times.get_mut(&point.callpath) {
                *time -= point.held.min(*time);
            }
        }
        let (callpath, over) = owner.over;
        if let Some(time) = times.get_mut(&callpath) {
            *time -= over.min(*time);
        }
        let (callpath, ticks) = times
            .iter()
            .map(|(&callpath, &ticks)| (callpath, ticks))
            .max_by_key(|&(callpath, ticks)| (ticks, Reverse(callpath)))
            .unwrap_or((NO_CALLPATH, 0));
        let hop = point.map(|point| point.class).filter(|&class| class != Class::Library);
        if from < owner.time {
            self.segments.push(Segment { location, from, to: owner.time, callpath, ticks, hop });
        }
        for (callpath, ticks) in times {
            *self.cells.entry((callpath, location)).or_insert(0) += ticks;
        }
    }
}
