//! Where the path leaves a location, and where it goes on.

use bitcode::{Decode, Encode};
use rustc_hash::FxHashMap;

use crate::causes::points::{Place, Point, Relation};
use crate::causes::{Anchor, Class, CostModel, OwnWait, Position, Table};
use crate::ids::{InstanceId, LocationId, ProcessId};
use crate::matching::threads::teams::Teams;
use crate::trace::{NONE, Trace};

/// The path moves to the cause of a wait.
#[derive(Clone, Copy, Encode, Decode)]
pub(super) struct Handover {
    pub(super) location: LocationId,
    /// The causing point.
    pub(super) point: u32,
    pub(super) until: Until,
}

/// Where the path ends at the cause of a wait; times in ticks.
#[derive(Clone, Copy, Encode, Decode)]
pub(super) enum Until {
    /// At the point.
    Point,
    /// At the end of the wait, if that is before the point: what the causing call did later is `PathEnd::overrun`.
    End(i64),
    /// At the release of a lock of threads; its call may go on with other calls, and wait.
    Release(i64),
    /// At the end of the wait, if that is behind the point: the time from the creation of a thread to its begin, and from its
    /// last function to its end, is the cause's.
    Beyond(i64),
}

/// The path moves to the point itself.
fn handover_to(location: LocationId, point: u32) -> Handover {
    Handover { location, point, until: Until::Point }
}

/// The locations that continue the path before a point: usually none but this one, or one other.
#[derive(Default)]
pub(super) struct Continuation {
    pub(super) first: Option<Handover>,
    /// Further locations that share the path.
    pub(super) ties: Vec<Handover>,
}

impl Continuation {
    /// The location that has the path, if it is only one.
    pub(super) fn only(&self) -> Option<Handover> {
        self.first.filter(|_| self.ties.is_empty())
    }
}

/// The hand-overs of the locations of a process, found as they are asked for.
pub(super) struct Handovers<'a> {
    pub(super) trace: &'a Trace,
    pub(super) tables: &'a [Table],
    model: CostModel,
    /// Maps each thread's parallel region (location, region instance) to its master's, for the processes visited so
    /// far.
    masters: FxHashMap<(LocationId, InstanceId), (LocationId, InstanceId)>,
    /// For each point of each shard, the cached result of [`Handovers::stop`] for the point after it.
    stops: Vec<Vec<u32>>,
}

/// Values in [`Handovers::stops`]: not computed yet, and nowhere; any other value is the point plus one.
const UNKNOWN: u32 = 0;
const NOWHERE: u32 = NONE;

impl<'a> Handovers<'a> {
    pub(super) fn new(trace: &'a Trace, tables: &'a [Table], model: CostModel) -> Self {
        let stops = tables.iter().map(|table| vec![0; table.points.len()]).collect();
        Self { trace, tables, model, masters: FxHashMap::default(), stops }
    }

    pub(super) fn position(&self, call: (LocationId, InstanceId), place: Place) -> Position {
        Anchor::new(call, place).position(self.trace, ProcessId::NONE)
    }

    pub(super) fn table(&self, location: LocationId) -> (&Table, usize) {
        let shard = self.trace.position(location);
        (&self.tables[shard], self.trace.shards[shard].local(location))
    }

    /// Where, before a point, the path leaves its location; `None` if it stays to the begin.
    pub(super) fn stop(&mut self, location: LocationId, end: usize) -> Option<usize> {
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
    pub(super) fn next(&mut self, number: usize, location: LocationId) -> Continuation {
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
                let is_from_elsewhere = own_wait.cause != location || own_wait.relation != Relation::Ownership;
                is_from_elsewhere
                    && self.reaches_cause(location, &point, own_wait)
                    && (own_wait.waiting > 0 || own_wait.relation == Relation::Threads || point.place == Place::Ahead)
            })
            .reduce(|last, own_wait| if own_wait.held > last.held { own_wait } else { last });
        let Some(own_wait) = last else {
            // Several threads may have been last at a barrier.
            let ties = self.ties(location, number);
            let first = (!ties.is_empty()).then(|| handover_to(location, number as u32));
            return Continuation { first, ties };
        };
        let cause = own_wait.cause;
        let ended = self.trace.shard(location).enter(point.instance) + point.held;
        let until = match (own_wait.class, own_wait.relation) {
            (Class::Join, _) | (_, Relation::Creation | Relation::Start) => Until::Beyond(ended),
            (Class::ThreadLock, _) => Until::Release(ended),
            (_, relation) if relation.waits_for_end() => Until::End(ended),
            _ => Until::Point,
        };
        let first = Some(Handover { until, ..handover_to(cause, own_wait.cause_point) });
        let is_of_threads = own_wait.relation == Relation::Threads;
        let ties = if is_of_threads { self.ties(cause, own_wait.cause_point as usize) } else { Vec::new() };
        Continuation { first, ties }
    }

    /// The first point that does not belong to the path before a hand-over.
    pub(super) fn end(&self, handover: Handover) -> u32 {
        let (table, i) = self.table(handover.location);
        let inside = self.release_inside(handover);
        inside.map_or(handover.point, |event| table.find(i, Position::within_step_before(event)))
    }

    /// The event behind the release of a lock, unless that is the end of its call.
    pub(super) fn release_inside(&self, Handover { location, point, until }: Handover) -> Option<u32> {
        let Until::Release(released) = until else { return None };
        let shard = self.trace.shard(location);
        let point = &self.table(location).0.points[point as usize];
        let (enter, leave) = (shard.instances.enter[point.instance], shard.instances.leave[point.instance]);
        // Who waits for a condition variable releases the mutex, and then waits up to the Leave.
        let end = if point.place == Place::Begin { leave + 1 } else { leave };
        let time = &shard.events.time;
        let first = enter + 1 + time[enter as usize + 1..end as usize].partition_point(|&at| at < released) as u32;
        // Of events at that time, those before the release are over.
        let mut candidates = (first..end).take_while(|&event| event == first || time[event as usize - 1] <= released);
        let runs = |&event: &u32| shard.events.running_after(&self.trace.tree, event - 1) == point.callpath;
        candidates.clone().find(runs).or_else(|| candidates.next())
    }

    /// Whether a thread that runs tasks in a call waits up to the event that it waits for: if it runs one then, it is on the
    /// path itself.
    fn reaches_cause(&self, location: LocationId, point: &Point, own_wait: &OwnWait) -> bool {
        if point.place == Place::Arrival {
            return own_wait.held >= point.total;
        }
        if own_wait.class != Class::Task {
            return true;
        }
        let (table, _) = self.table(own_wait.cause);
        let last = table.points[own_wait.cause_point as usize].instance;
        let shard = self.trace.shard(location);
        let until = shard.enter(point.instance) + own_wait.held;
        until >= shard.leave(last).min(shard.leave(point.instance))
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
            for team in Teams::new(shard, &self.trace.definitions.processes[process]).iter() {
                let own = team.part_of(team.forker());
                for part in team.parts {
                    let master = own.unwrap_or(part);
                    self.masters.insert((part.location, part.team.instance), (master.location, master.team.instance));
                }
            }
        }
        self.masters.get(&call).copied().unwrap_or(call)
    }
}
