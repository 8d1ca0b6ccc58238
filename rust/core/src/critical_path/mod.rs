//! The critical path: the longest chain of dependent activities, found backwards.
//!
//! ```text
//!  0  [=Init=][===== f =====][ Send ]--------
//!                            \ handed over
//!  1  [ Init ][ f ][ Recv... =][== g ==][ Finalize
//! ```
//!
//! The search starts where the last process enters `MPI_Finalize`, `shmem_finalize` or `ARMCI_Finalize`, and follows
//! that location back in time to `MPI_Init`. At a wait it moves to the cause: just before the call that began late, or
//! just after the release that others waited for. At a barrier between threads it moves to the thread that arrived
//! last, and at a fork to the master. From a call that waited for a device it moves to the kernel, and from a kernel to
//! what delayed it: its launch, or a kernel on another stream. The launch latency belongs to the kernel.
//!
//! *Scalasca 2.6* does not hand the path over in one-sided communication, and hands it to all threads that arrived
//! last.
//!
//! *Source*: specification.md#construction; thesis, sections 4.2 and 4.3.2, definitions 21 and 22, figures 4.7 to 4.9.

mod exits;
mod impact;
mod stretch;

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeSet;
use std::ops::Range;

use bitcode::{Decode, Encode};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::Result;
use crate::causes::points::{Place, Relation};
use crate::causes::{Anchor, Class, CostModel, Position, Table};
use crate::diagnostics::{DiagnosticKind, Diagnostics};
use crate::ids::{CallPathId, InstanceId, LocationId, ProcessId};
use crate::severity::{self, Cost, Metric, Severity};
use crate::trace::{NONE, Trace};
use crate::waits::threads::teams;

pub(crate) use stretch::Stretch;

/// A stretch of the critical path on one location.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Segment {
    /// The location.
    pub location: LocationId,
    /// Begin, ticks.
    pub from: i64,
    /// End, ticks.
    pub to: i64,
    /// Call path with the largest share of it.
    pub callpath: CallPathId,
    /// Ticks of that call path.
    pub ticks: i64,
    /// The wait at its begin, for which the path came from another location; `None` at the begin of the run.
    pub hop: Option<Class>,
}

/// The critical path and the indicators derived from it.
#[derive(Debug, Default)]
pub(crate) struct CriticalPath {
    /// Time on the path and its activities by call path, for the locations of this process.
    pub severities: Vec<Severity>,
    /// Impacts.
    pub costs: Vec<Cost>,
    /// The path in the order of time; of several processes the first has it.
    pub segments: Vec<Segment>,
    /// What the path is made of on the locations of this process, by location.
    pub stretches: Vec<Stretch>,
    /// What was odd.
    pub diagnostics: Diagnostics,
}

/// Follows the path, and computes the indicators derived from it.
pub(crate) fn find(trace: &Trace, tables: &[Table], model: CostModel) -> Result<CriticalPath> {
    let mut walk = Walk {
        trace,
        tables,
        model,
        masters: FxHashMap::default(),
        stops: tables.iter().map(|table| vec![0; table.points.len()]).collect(),
        seen: FxHashSet::default(),
        entries: Vec::new(),
    };
    let circular = walk.follow()?;
    let (stretches, segments, mut own) = walk.book();
    let mut segments = trace.exchange.gather(segments)?.concat();
    segments.sort_by_key(|(number, segment)| (segment.from, segment.to, *number));
    let mut path = trace.exchange.allgather(own.clone())?.concat();
    path.sort_unstable_by_key(|cell| (cell.callpath, cell.location));
    let (severities, costs) = impact::assess(trace, tables, &path, model)?;
    own.extend(severities);
    let mut diagnostics = Diagnostics::default();
    // One process reports it for all.
    for (location, time) in circular.into_iter().filter(|_| trace.exchange.is_root()) {
        diagnostics.add(DiagnosticKind::CircularWaits, location, time);
    }
    Ok(CriticalPath {
        severities: own,
        costs,
        segments: segments.into_iter().map(|(_, segment)| segment).collect(),
        stretches,
        diagnostics,
    })
}

/// The end of a stretch: nothing at or after it belongs to the path.
#[derive(Clone, Copy, PartialEq, Eq, Encode, Decode)]
struct PathEnd {
    time: i64,
    location: LocationId,
    position: Position,
    /// The first point that does not belong to it.
    point: u32,
    /// Call path of the release that others waited for, and what it did after their wait had ended, ticks.
    overrun: (CallPathId, i64),
}

impl Ord for PathEnd {
    /// By time, so that all threads of a team reach their fork before the path continues at the master.
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |end: &Self| (end.time, Reverse(end.location), end.position, end.overrun);
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for PathEnd {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The path moves to the cause of a wait.
#[derive(Clone, Copy, Encode, Decode)]
struct Handover {
    location: LocationId,
    /// The causing point.
    point: u32,
    /// For a release, the time when the wait ended, ticks; what the release call did later is `PathEnd::overrun`.
    ended: Option<i64>,
}

/// The path moves to the point itself.
fn handover_to(location: LocationId, point: u32) -> Handover {
    Handover { location, point, ended: None }
}

/// The current position of the path, held by the one process of the analysis that continues it.
#[derive(Default, Encode, Decode)]
struct Token {
    ends: BTreeSet<PathEnd>,
    /// Pending hand-overs to other processes.
    handovers: Vec<Handover>,
    /// How often it has changed processes so far.
    legs: u32,
    /// Where the path closed a circle: location and time.
    circular: Vec<(LocationId, i64)>,
}

/// A part of the path on one location.
struct PathEntry {
    /// Number of the token's leg, and position in it.
    number: (u32, u32),
    end: PathEnd,
    /// The point at which it begins in time; `None` at the begin of the location.
    stop: Option<usize>,
}

impl Token {
    /// A location whose process has to continue; `None` at the end of the path.
    fn location(&self) -> Option<LocationId> {
        let handover = self.handovers.first().map(|handover| handover.location);
        handover.or_else(|| self.ends.last().map(|end| end.location))
    }
}

/// The locations that continue the path before a point: usually none but this one, or one other.
#[derive(Default)]
struct Continuation {
    first: Option<Handover>,
    /// Further locations that share the path.
    ties: Vec<Handover>,
}

impl Continuation {
    /// The location that has the path, if it is only one.
    fn only(&self) -> Option<Handover> {
        self.first.filter(|_| self.ties.is_empty())
    }
}

/// A segment with its number: leg, and position in it.
type NumberedSegment = ((u32, u32), Segment);

/// The result for some parts of the path.
#[derive(Default)]
struct PathParts {
    stretches: Vec<Stretch>,
    segments: Vec<NumberedSegment>,
    cells: FxHashMap<(CallPathId, LocationId), i64>,
}

/// The part of the path ends exactly at its end point.
const EXACT: (CallPathId, i64) = (CallPathId::NONE, 0);

struct Walk<'a> {
    trace: &'a Trace,
    tables: &'a [Table],
    model: CostModel,
    /// Maps each thread's parallel region (location, region instance) to its master's, for the processes visited so
    /// far.
    masters: FxHashMap<(LocationId, InstanceId), (LocationId, InstanceId)>,
    /// For each point of each shard, the cached result of [`Walk::stop`] for the point after it.
    stops: Vec<Vec<u32>>,
    /// Points where the path left a location.
    seen: FxHashSet<(LocationId, usize)>,
    /// The parts of the path, in the order of the legs.
    entries: Vec<PathEntry>,
}

/// Values in [`Walk::stops`]: not computed yet, and nowhere; any other value is the point plus one.
const UNKNOWN: u32 = 0;
const NOWHERE: u32 = NONE;

impl Walk<'_> {
    /// Where the path ends in time: the last Enter of the call that shuts down the library (thesis, section 4.3.2), or
    /// the last event of a master if there is none.
    fn begin(&self) -> Result<Option<PathEnd>> {
        let processes = self.trace.shards.iter().flat_map(|shard| shard.processes);
        let locations = processes.flat_map(|process| self.trace.definitions.processes[process].locations);
        let span = |location: LocationId| {
            let shard = self.trace.shard(location);
            &shard.spans[shard.local(location)]
        };
        let at = |time: i64, location: LocationId, position: Position| {
            let (table, i) = self.table(location);
            PathEnd { time, location, position, point: table.find(i, position), overrun: EXACT }
        };
        let shutdown = |location: LocationId| {
            let instance = span(location).shutdown;
            (instance.is_some()).then(|| {
                let position = self.position((location, instance), Place::Leave);
                at(self.trace.shard(location).enter(instance), location, position)
            })
        };
        let last = |location: LocationId| {
            let is_master = self.trace.definitions.locations[location].thread == 0;
            let time = span(location).last;
            (is_master && time != i64::MIN).then(|| at(time, location, Position::END))
        };
        let latest = (locations.clone().filter_map(shutdown).max(), locations.filter_map(last).max());
        let (shutdown, last): (Vec<_>, Vec<_>) = self.trace.exchange.allgather(latest)?.into_iter().unzip();
        Ok(shutdown.into_iter().max().flatten().or(last.into_iter().max().flatten()))
    }

    fn position(&self, call: (LocationId, InstanceId), place: Place) -> Position {
        Anchor::new(call, place).position(self.trace, ProcessId::NONE)
    }

    fn table(&self, location: LocationId) -> (&Table, usize) {
        let shard = self.trace.position(location);
        (&self.tables[shard], self.trace.shards[shard].local(location))
    }

    /// Follows the path from its end to its begin; returns where it closed a circle.
    fn follow(&mut self) -> Result<Vec<(LocationId, i64)>> {
        let exchange = &self.trace.exchange;
        let mut token = Token { ends: self.begin()?.into_iter().collect(), ..Token::default() };
        let exits = if exchange.processes() > 1 { exchange.gatherv(self.exits())? } else { Vec::new() };
        while let Some(location) = token.location() {
            let here = self.trace.owns(location).then(|| {
                self.follow_all(&mut token);
                token.legs += 1;
                token
            });
            token = exchange.allgather(here)?.into_iter().flatten().next().unwrap_or_default();
            if let (&[next], true) = (&token.handovers[..], token.ends.is_empty()) {
                let followed = exchange.is_root().then(|| exits::follow_exits(&exits, next));
                let (legs, further) = exchange.allgather(followed)?.into_iter().flatten().next().unwrap_or_default();
                token.handovers = further.into_iter().collect();
                self.follow_legs(legs, &mut token)?;
            }
        }
        Ok(token.circular)
    }

    /// Follows the path from all places where it enters this process.
    fn follow_legs(&mut self, legs: Vec<Handover>, token: &mut Token) -> Result<()> {
        let first = token.legs;
        let mut circular = None;
        for (leg, handover) in (first..).zip(legs) {
            if self.trace.owns(handover.location) && circular.is_none() {
                let mut here = Token { handovers: vec![handover], legs: leg, ..Token::default() };
                self.follow_all(&mut here);
                circular = here.circular.pop().map(|(location, time)| (leg, location, time));
            }
            token.legs = leg + 1;
        }
        // Legs that other processes followed beyond the circle do not belong to the path.
        if let Some((leg, location, time)) = self.trace.exchange.allgather(circular)?.into_iter().flatten().min() {
            self.entries.retain(|entry| entry.number.0 <= leg);
            token.handovers.clear();
            token.circular.push((location, time));
        }
        Ok(())
    }

    /// Follows the path as far as it stays in this process.
    fn follow_all(&mut self, token: &mut Token) {
        loop {
            let Token { ends, handovers, .. } = &mut *token;
            handovers.retain(|&handover| {
                let is_here = self.trace.owns(handover.location);
                if is_here {
                    ends.insert(self.path_end(handover));
                }
                !is_here
            });
            if !token.location().is_some_and(|location| self.trace.owns(location)) {
                return;
            }
            if let Some(end) = token.ends.pop_last() {
                self.follow_one(end, token);
            }
        }
    }

    /// Follows one location back to its wait, and hands over to the cause.
    fn follow_one(&mut self, end: PathEnd, token: &mut Token) {
        let location = end.location;
        let stop = self.stop(location, end.point as usize);
        // Clock errors can make a wait its own cause; the path ends where it closes the circle.
        if let Some(number) = stop
            && !self.seen.insert((location, number))
        {
            token.circular.push((location, end.time));
            return;
        }
        let before = self.entries.last().filter(|last| last.number.0 == token.legs);
        let number = (token.legs, before.map_or(0, |last| last.number.1 + 1));
        self.entries.push(PathEntry { number, end, stop });
        if let Some(number) = stop {
            let Continuation { first, ties } = self.next(number, location);
            token.handovers.extend(first);
            token.handovers.extend(ties);
        }
    }

    /// Where, before a point, the path leaves its location; `None` if it stays to the begin.
    fn stop(&mut self, location: LocationId, end: usize) -> Option<usize> {
        let shard = self.trace.position(location);
        let (table, i) = self.table(location);
        let begin = table.points_of(i).start;
        let mut number = end;
        let mut stop = NOWHERE;
        while number > begin && stop == NOWHERE {
            number -= 1;
            let known = self.stops[shard][number];
            match known {
                UNKNOWN if self.leaves(number, location) => stop = number as u32 + 1,
                UNKNOWN => {}
                NOWHERE => break,
                _ => stop = known,
            }
        }
        self.stops[shard][number..end].fill(stop);
        (stop != NOWHERE).then(|| stop as usize - 1)
    }

    /// Whether the path leaves a location at a point.
    fn leaves(&mut self, number: usize, location: LocationId) -> bool {
        let next = self.next(number, location);
        let stays = next.only().is_some_and(|next| next.location == location && next.point as usize == number);
        (next.first.is_some() && !stays) || self.is_init(number, location)
    }

    fn is_init(&self, number: usize, location: LocationId) -> bool {
        let shard = self.trace.shard(location);
        let init = shard.spans[shard.local(location)].init;
        let point = &self.table(location).0.points[number];
        point.class == Class::Library && point.instance == init
    }

    /// The locations that continue the path before a point (thesis, definition 21, figures 4.7 to 4.9); none if the
    /// location did not wait there.
    fn next(&mut self, number: usize, location: LocationId) -> Continuation {
        let table = self.table(location).0;
        let point = table.points[number];
        if point.place == Place::Fork {
            let call = self.master((location, point.instance));
            return Continuation { first: self.point(call, Place::Fork), ties: Vec::new() };
        }
        let last = table
            .own_waits
            .of(number)
            .iter()
            .filter(|own_wait| {
                own_wait.waiting > 0 || own_wait.relation == Relation::Threads || point.place == Place::Ahead
            })
            .reduce(|last, own_wait| if own_wait.held > last.held { own_wait } else { last });
        let Some(own_wait) = last else {
            // Several threads may have been last at a barrier.
            let ties = self.ties(location, number);
            let first = (!ties.is_empty()).then(|| handover_to(location, number as u32));
            return Continuation { first, ties };
        };
        let cause = own_wait.cause;
        let ended = || self.trace.shard(location).enter(point.instance) + point.held;
        let ended = matches!(own_wait.relation, Relation::Contention | Relation::Device).then(ended);
        let first = Some(Handover { ended, ..handover_to(cause, own_wait.cause_point) });
        let is_of_threads = own_wait.relation == Relation::Threads;
        let ties = if is_of_threads { self.ties(cause, own_wait.cause_point as usize) } else { Vec::new() };
        Continuation { first, ties }
    }

    /// Threads that arrived at a barrier at the same time as the one that is its cause.
    fn ties(&self, location: LocationId, number: usize) -> Vec<Handover> {
        if self.model != CostModel::Scalasca {
            return Vec::new();
        }
        let table = self.table(location).0;
        let cost_shares = table.cost_shares_of(number).iter();
        let ties = cost_shares.filter(|charge| charge.relation == Relation::Threads && charge.direct == 0);
        ties.map(|charge| {
            // Threads of one process are in the same shard.
            let own_wait = &table.own_waits.rows[charge.own_wait as usize];
            handover_to(table.points[own_wait.point as usize].location, own_wait.point)
        })
        .collect()
    }

    /// A part of the path that ends at the point of a hand-over.
    fn path_end(&self, Handover { location, point: number, ended }: Handover) -> PathEnd {
        let point = &self.table(location).0.points[number as usize];
        let shard = self.trace.shard(location);
        let time = if point.place == Place::Behind { shard.leave(point.instance) } else { shard.enter(point.instance) };
        let time = if point.place == Place::Fork { time - point.total } else { time };
        let overrun = ended.map_or(EXACT, |ended| (point.callpath, (time - ended).max(0)));
        PathEnd { time: time - overrun.1, location, position: point.position, point: number, overrun }
    }

    /// The point at a place in a call.
    fn point(&self, (location, instance): (LocationId, InstanceId), place: Place) -> Option<Handover> {
        let position = self.position((location, instance), place);
        let (table, i) = self.table(location);
        let number = table.find(i, position) as usize;
        let exists = table.points_of(i).contains(&number) && table.points[number].position == position;
        exists.then(|| handover_to(location, number as u32))
    }

    /// The master's parallel region that belongs to a thread's.
    fn master(&mut self, call: (LocationId, InstanceId)) -> (LocationId, InstanceId) {
        if !self.masters.contains_key(&call) {
            let shard = self.trace.shard(call.0);
            let process = self.trace.definitions.locations[call.0].process;
            let parts = teams(shard, &self.trace.definitions.processes[process]);
            for team in parts.chunk_by(|a, b| a.team.fork == b.team.fork) {
                let forker = shard.location_of(&shard.forks, team[0].team.fork);
                let own = team.iter().find(|part| part.location == forker && part.team.instance.is_some());
                for part in team {
                    let master = own.unwrap_or(part);
                    self.masters.insert((part.location, part.team.instance), (master.location, master.team.instance));
                }
            }
        }
        self.masters.get(&call).copied().unwrap_or(call)
    }

    /// Turns the parts of the path into stretches by location, segments, and severities.
    fn book(&mut self) -> (Vec<Stretch>, Vec<NumberedSegment>, Vec<Severity>) {
        let entries = std::mem::take(&mut self.entries);
        let together = entries.len().div_ceil(4 * rayon::current_num_threads()).max(1);
        let booked: Vec<PathParts> = entries
            .par_chunks(together)
            .map(|entries| {
                let mut booked = PathParts::default();
                let (mut spans, mut times) = (Vec::new(), Vec::new());
                for entry in entries {
                    self.book_one(entry, &mut spans, &mut times, &mut booked);
                }
                booked
            })
            .collect();
        let (mut stretches, mut segments, mut cells) = (Vec::with_capacity(entries.len()), Vec::new(), Vec::new());
        for part in booked {
            stretches.extend(part.stretches);
            segments.extend(part.segments);
            let cell =
                |((callpath, location), value)| Severity { metric: Metric::CriticalPath, callpath, location, value };
            cells.extend(part.cells.into_iter().map(cell));
        }
        stretches.sort_by_key(|stretch: &Stretch| stretch.location);
        (stretches, segments, severity::combine(cells))
    }

    /// Turns one part of the path into a stretch and its segments.
    fn book_one(
        &self,
        entry: &PathEntry,
        spans: &mut Vec<(CallPathId, Range<i64>)>,
        times: &mut Vec<(CallPathId, i64)>,
        booked: &mut PathParts,
    ) {
        let &PathEntry { number, end: PathEnd { time: to, location, position: end, overrun, .. }, stop } = entry;
        let shard = self.trace.shard(location);
        let (table, i) = self.table(location);
        let point = stop.map(|number| table.points[number]);
        let begin = point.map(|point| point.position);
        let held = point.map_or(EXACT, |point| (point.callpath, point.held));
        let stretch = Stretch { location, begin, end, held, overrun };
        stretch.collect(self.trace, shard, spans);
        times.clear();
        times.extend(spans.iter().map(|(callpath, span)| (*callpath, span.end - span.start)));
        times.sort_unstable_by_key(|&(callpath, _)| callpath);
        times.dedup_by(|later, earlier| {
            let is_same = later.0 == earlier.0;
            if is_same {
                earlier.1 += later.1;
            }
            is_same
        });
        let from = point.map_or(shard.spans[i].first, |point| {
            let way = if point.place == Place::Fork { point.total } else { 0 };
            shard.enter(point.instance) + point.held - way
        });
        let longest = times.iter().max_by_key(|&&(callpath, ticks)| (ticks, Reverse(callpath)));
        let (callpath, ticks) = longest.copied().unwrap_or((CallPathId::NONE, 0));
        let hop = point.map(|point| point.class).filter(|&class| class != Class::Library);
        if from < to {
            booked.segments.push((number, Segment { location, from, to, callpath, ticks, hop }));
        }
        for &(callpath, ticks) in &*times {
            *booked.cells.entry((callpath, location)).or_insert(0) += ticks;
        }
        booked.stretches.push(stretch);
    }
}
