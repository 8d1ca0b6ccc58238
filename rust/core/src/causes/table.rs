//! The points of a shard with all that happens at them.

use super::class::Classes;
use super::points::{Anchor, Meets, Place, Point, Position, Relation};
use super::{Caused, Class, Pair, Seeds};
use crate::exchange::Inbox;
use crate::trace::{NO_CALLPATH, NONE, Shard, Trace};

/// Rows by point, or by another number: `offsets[i]..offsets[i + 1]` belong to the i-th.
#[derive(Debug)]
pub(crate) struct By<T> {
    offsets: Vec<u32>,
    pub rows: Vec<T>,
}

impl<T> Default for By<T> {
    fn default() -> Self {
        Self { offsets: vec![0], rows: Vec::new() }
    }
}

impl<T: Copy> By<T> {
    /// Rows that come sorted by their number.
    pub(crate) fn sorted(numbers: usize, sorted: impl IntoIterator<Item = (u32, T)>) -> Self {
        let mut offsets = Vec::with_capacity(numbers + 1);
        let mut rows = Vec::new();
        for (number, row) in sorted {
            offsets.resize(number as usize + 1, rows.len() as u32);
            rows.push(row);
        }
        offsets.resize(numbers + 1, rows.len() as u32);
        Self { offsets, rows }
    }

    pub(crate) fn range(&self, i: usize) -> std::ops::Range<usize> {
        self.offsets[i] as usize..self.offsets[i + 1] as usize
    }

    pub(crate) fn of(&self, i: usize) -> &[T] {
        &self.rows[self.range(i)]
    }
}

/// Ticks by call path of many intervals, one behind the other.
pub(crate) type Entries = Vec<(u32, i64)>;

/// A stretch of [`Entries`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stretch {
    pub begin: u32,
    pub end: u32,
}

impl Stretch {
    pub(crate) fn of(self, entries: &[(u32, i64)]) -> &[(u32, i64)] {
        &entries[self.begin as usize..self.end as usize]
    }
}

/// A wait of the shard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    pub pair: Pair,
    pub point: u32,
    /// Work of its interval.
    pub work: Stretch,
    /// The causing point, and the row there.
    pub cause_point: u32,
    pub charge: u32,
    /// The part of the wait that earlier waits of the causing process explain, ticks.
    pub indirect: f64,
    /// Whether anything could be blamed.
    pub is_attributed: bool,
}

/// A wait that the shard caused, or the idleness of a team.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Charge {
    /// Shard of the waiter, and position of the wait there; [`NONE`] for idleness.
    pub shard: u32,
    pub ask: u32,
    /// Position among what arrived; [`NONE`] for idleness.
    pub arrival: u32,
    /// Process of the waiter.
    pub process: u32,
    pub class: Class,
    pub relation: Relation,
    pub comm: u32,
    /// What is distributed directly: the waiting time, ticks, or the number of idle threads.
    pub direct: i64,
    pub completion: i64,
    /// First point of the causing process's interval.
    pub from: u32,
    /// Time of the call at its left end that does not belong to it, ticks.
    pub before: i64,
    /// First point whose wait gets a share.
    pub shared_from: u32,
    /// Work of the waiter's interval, among those received.
    pub work: Stretch,
    /// Share of each tick of delay in what is distributed.
    pub work_rate: f64,
    /// Share of each tick of waiting in what is distributed.
    pub wait_rate: f64,
}

/// Waits of one class with one cause and the same interval there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    pub point: u32,
    pub class: Class,
    pub relation: Relation,
    /// First point of the interval.
    pub from: u32,
    /// First point whose wait gets a share.
    pub shared_from: u32,
    /// Work in the interval.
    pub work: Stretch,
    /// Waiting in the interval, ticks.
    pub waiting: i64,
    /// Rows of the waits.
    pub begin: u32,
    pub end: u32,
}

impl Group {
    pub(crate) fn charges(&self) -> std::ops::Range<usize> {
        self.begin as usize..self.end as usize
    }
}

/// Points of a shard's locations in their order, and what happens at them.
#[derive(Debug, Default)]
pub(crate) struct Table {
    /// All points, location by location.
    pub points: Vec<Point>,
    /// First point of each location, with the end of the last.
    pub offsets: Vec<u32>,
    /// Waits, in the order of the seeds.
    pub asks: Vec<Ask>,
    /// Positions of waits by point.
    pub asks_of: By<u32>,
    /// Synchronizations of many by point: with whom, and the time of the call before.
    pub marks_of: By<(Meets, i64)>,
    /// Waits caused, by point.
    pub charges: By<Charge>,
    /// The same in groups, by point.
    pub groups: By<Group>,
    /// Work of all intervals.
    pub entries: Entries,
    /// Work of the intervals of those who waited for this shard.
    pub received: Entries,
    /// For each location its work over the whole run.
    pub lifetimes: By<(u32, i64)>,
    /// For each point what its wait caused later, ticks.
    pub phi: Vec<f64>,
    /// Classes of waits in the whole run.
    pub classes: Classes,
    /// For each row of `charges` what the wait caused later, by those classes.
    pub charged_phi: Vec<f64>,
    /// For each point the part of its wait that made others wait, ticks.
    pub propagating: Vec<f64>,
}

/// What brings a point about, in the order in which it counts; with the position in the seeds, or in what arrived.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    Mark(u32),
    Waiter(u32),
    Cause(u32),
    Alone(u32),
}

impl Table {
    pub(crate) fn new(trace: &Trace, shard: &Shard, seeds: Seeds, caused: &Inbox<Caused>) -> Self {
        let caused: Vec<Caused> = caused.rows().copied().collect();
        let roles = roles(trace, &seeds, &caused);
        let mut table = Self::default();
        let (mut asks_of, mut marks_of, mut charges) = (Vec::new(), Vec::new(), Vec::new());
        for at in roles.chunk_by(|a, b| a.0 == b.0) {
            let position = at[0].0;
            let number = table.points.len() as u32;
            let mut point: Option<Point> = None;
            for &(_, role) in at {
                let anchor = match role {
                    Role::Mark(i) => seeds.marks[i as usize].anchor,
                    Role::Waiter(i) => seeds.pairs[i as usize].waiter,
                    Role::Cause(i) => caused[i as usize].cause,
                    Role::Alone(i) => seeds.alone[i as usize].end,
                };
                let point = point.get_or_insert_with(|| new_point(shard, anchor, position));
                match role {
                    Role::Mark(i) => {
                        let mark = &seeds.marks[i as usize];
                        point.total = mark.total;
                        if point.class == Class::Mark {
                            (point.class, point.waiting, point.held) = (mark.class, mark.waiting, mark.waiting);
                        }
                        marks_of.push((number, (mark.meets, mark.total - mark.completion)));
                    }
                    Role::Waiter(i) => {
                        let pair = &seeds.pairs[i as usize];
                        // The wait of a member of a group stands in its mark.
                        if matches!(pair.relation, Relation::Pair | Relation::Contention) {
                            if point.waiting == 0 {
                                point.class = pair.class;
                            }
                            point.waiting += pair.waiting;
                            point.held = point.held.max(pair.held);
                        }
                        asks_of.push((number, i));
                    }
                    Role::Cause(i) => charges.push((number, charge(&caused[i as usize], i))),
                    Role::Alone(i) => charges.push((number, idleness(seeds.alone[i as usize].idle))),
                }
            }
            let Some(point) = point else { continue };
            // Positions go on from location to location.
            table.offsets.resize((point.location - shard.locations.start) as usize + 1, number);
            table.points.push(point);
        }
        table.offsets.resize(shard.locations.len() + 1, table.points.len() as u32);
        let points = table.points.len();
        table.asks_of = By::sorted(points, asks_of);
        table.marks_of = By::sorted(points, marks_of);
        table.charges = By::sorted(points, charges);
        let ask = |pair| Ask {
            pair,
            point: NONE,
            work: Stretch::default(),
            cause_point: NONE,
            charge: NONE,
            indirect: 0.0,
            is_attributed: false,
        };
        table.asks = seeds.pairs.into_iter().map(ask).collect();
        for point in 0..points {
            for &i in table.asks_of.of(point) {
                table.asks[i as usize].point = point as u32;
            }
        }
        table
    }

    /// Points of the shard's i-th location.
    pub(crate) fn points_of(&self, i: usize) -> std::ops::Range<usize> {
        self.offsets[i] as usize..self.offsets[i + 1] as usize
    }

    /// The point of a location at a position.
    pub(crate) fn find(&self, i: usize, position: Position) -> u32 {
        let range = self.points_of(i);
        (range.start + self.points[range].partition_point(|point| point.position < position)) as u32
    }
}

/// All roles by position.
fn roles(trace: &Trace, seeds: &Seeds, caused: &[Caused]) -> Vec<(Position, Role)> {
    let process = |anchor: Anchor| trace.world.locations[anchor.location as usize].process;
    let mut roles = Vec::with_capacity(seeds.marks.len() + seeds.pairs.len() + caused.len() + seeds.alone.len());
    for (mark, i) in seeds.marks.iter().zip(0..) {
        roles.push((mark.anchor.position(trace, NONE), Role::Mark(i)));
    }
    for (pair, i) in seeds.pairs.iter().zip(0..) {
        roles.push((pair.waiter.position(trace, process(pair.cause)), Role::Waiter(i)));
    }
    for (caused, i) in caused.iter().zip(0..) {
        roles.push((caused.cause.position(trace, caused.process), Role::Cause(i)));
    }
    for (alone, i) in seeds.alone.iter().zip(0..) {
        roles.push((alone.end.position(trace, NONE), Role::Alone(i)));
    }
    roles.sort_unstable();
    roles
}

fn new_point(shard: &Shard, anchor: Anchor, position: Position) -> Point {
    let Anchor { location, instance, place } = anchor;
    let known = instance != NONE;
    let is_over = !known || matches!(place, Place::Behind | Place::Join);
    Point {
        position,
        location,
        instance,
        callpath: if known { shard.callpath(instance) } else { NO_CALLPATH },
        class: Class::Mark,
        place,
        waiting: 0,
        total: if is_over { 0 } else { shard.leave(instance) - shard.enter(instance) },
        held: 0,
    }
}

pub(super) fn charge(caused: &Caused, arrival: u32) -> Charge {
    let Caused { shard, ask, process, comm, class, relation, waiting, completion, .. } = *caused;
    Charge {
        shard,
        ask,
        arrival,
        process,
        class,
        relation,
        comm,
        direct: waiting,
        completion,
        from: 0,
        before: 0,
        shared_from: 0,
        work: Stretch::default(),
        work_rate: 0.0,
        wait_rate: 0.0,
    }
}

/// Each tick of the master alone costs as many ticks as there are idle threads.
fn idleness(idle: i64) -> Charge {
    Charge {
        shard: NONE,
        ask: NONE,
        arrival: NONE,
        process: NONE,
        class: Class::OmpIdle,
        relation: Relation::Alone,
        comm: NONE,
        direct: idle,
        completion: 0,
        from: 0,
        before: 0,
        shared_from: 0,
        work: Stretch::default(),
        work_rate: 1.0,
        wait_rate: 1.0,
    }
}
