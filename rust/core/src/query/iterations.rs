//! The iterations of a loop: their times, durations by process, and waiting.
//!
//! ```text
//!  process 0  main --[step]--[step]--[step]--- main       marker: the call path `step`
//!  iteration         |  0   |  1   |  2   |
//!  process 1  main ----[step]---[step]-[step]- main       each process has its own boundaries
//! ```
//!
//! An iteration begins on a process when its master thread enters the marker (or enters it for every n-th time), and
//! ends when the next one begins. The last one ends with the last Leave of the loop's body, a set of call paths that
//! includes the marker. A parameter that the program records can also be the marker: see [`super::parameters`]. The other
//! threads of a process share its boundaries.
//!
//! *Computation* is time in the given call paths, without the time from a fork to the parallel region and from there to
//! the join. *Waits* are placed in their calls by [`interval`]; a wait that spans several iterations counts in each for
//! its part. If devices communicate, *computation* of a process is what its devices compute, and its slowest process is the one
//! that others wait for longest: hosts run ahead of such devices, or wait for them. The *critical path* is divided by the boundaries of the location that it is on. The groups of the
//! [account](crate::account) divide all time of all threads of a process in each of its iterations.
//!
//! A collective operation that belongs to every k-th iteration, the same ones on all processes, is *periodic*.

use std::collections::BTreeMap;
use std::ops::Range;

use bitcode::{Decode, Encode};
use rustc_hash::FxHashMap;

use super::parameters;
use crate::Result;
use crate::account::{Group, Row, groups_of_callpaths};
use crate::analysis::Analysis;
use crate::critical_path::Segment;
use crate::galloping_search::partition_point_near;
use crate::ids::{CallPathId, LocationId, ProcessId};
use crate::parallel::iter::prelude::*;
use crate::schema::MetricSet;
use crate::severity::Metric;
use crate::trace::columns::ParameterChange;
use crate::trace::{NONE, Shard, Trace};
use crate::waits::{self, interval};
use whywait_otf2::enums::LocationType;

/// A loop to divide the run by.
#[derive(Clone, Debug)]
pub struct Request {
    /// What begins an iteration.
    pub marker: Marker,
    /// By call path, whether time in it is computation.
    pub computes: Vec<bool>,
}

/// What begins an iteration.
#[derive(Clone, Debug)]
pub enum Marker {
    /// An Enter of a call path.
    CallPath {
        /// The call path.
        callpath: CallPathId,
        /// Number of its Enters in an iteration: the first of them begins it.
        every: usize,
        /// By call path, whether a Leave of it may end the last iteration.
        body: Vec<bool>,
    },
    /// A new value of a parameter, given by its sorted OTF2 ids.
    Parameter(Vec<u32>),
}

/// The value of a parameter in an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Value {
    /// No parameter marks the iterations.
    None,
    /// The same on all processes.
    Same(u64),
    /// Different values on different processes.
    Different,
}

impl Value {
    fn merged(self, other: Self) -> Self {
        match (self, other) {
            (Self::None, value) | (value, Self::None) => value,
            (own, other) if own == other => own,
            _ => Self::Different,
        }
    }
}

/// One iteration over all processes that execute it; times in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Iteration {
    /// When the first process begins it.
    pub begin: i64,
    /// When the last process begins it: that process sets the pace.
    pub latest: i64,
    /// The rank of that process, the lowest on a tie.
    pub pace: u32,
    /// The sum of the begins of all processes.
    pub begins: i128,
    /// When the last process ends it.
    pub end: i64,
    /// Number of processes that execute it.
    pub processes: u32,
    /// Its shortest duration on a process.
    pub shortest: i64,
    /// Its longest duration on a process.
    pub longest: i64,
    /// The largest processor time of a process: its duration times its number of threads, or devices.
    pub elapsed: i64,
    /// Computation, summed over all threads, or devices, of all processes.
    pub computation: i128,
    /// The largest computation of a process, summed over these.
    pub most: i64,
    /// The rank of that process, or of the one whose devices others wait for longest; the lowest on a tie.
    pub slowest: u32,
    /// Length of the critical path in it.
    pub critical: i64,
    /// The location with the largest part of that, or [`NONE`].
    pub critical_location: LocationId,
    critical_most: i64,
    /// The value of the parameter that marks it.
    pub value: Value,
    /// All time of all threads by group of the account, in the order of [`Group::ALL`].
    pub groups: [i64; Group::ALL.len()],
}

const NO_ITERATION: Iteration = Iteration {
    begin: i64::MAX,
    latest: i64::MIN,
    pace: NONE,
    begins: 0,
    end: i64::MIN,
    processes: 0,
    shortest: i64::MAX,
    longest: 0,
    elapsed: 0,
    computation: 0,
    most: -1,
    slowest: NONE,
    critical: 0,
    critical_location: LocationId::NONE,
    critical_most: 0,
    value: Value::None,
    groups: [0; Group::ALL.len()],
};

/// A collective operation of every k-th iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Periodic {
    /// The call path of the operation.
    pub callpath: CallPathId,
    /// Number of iterations from one to the next.
    pub every: usize,
    /// The first iteration with it.
    pub first: usize,
}

/// All iterations of a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Iterations {
    /// The iterations, in order.
    pub rows: Vec<Iteration>,
    /// The marker; of a parameter, the call path in which the first process records it.
    pub callpath: CallPathId,
    /// The kinds of wait states that occur in the run.
    pub kinds: Vec<Metric>,
    /// Waiting of all locations, ticks: one value per iteration and kind.
    pub waiting: Vec<i128>,
    /// The collective operations of every k-th iteration, by call path.
    pub periodic: Vec<Periodic>,
}

/// Finds the iterations of a loop. Collective.
pub fn find(analysis: &Analysis, request: &Request) -> Result<Iterations> {
    let exchange = &analysis.trace.exchange;
    let occurs = exchange.allgather(waits::kinds(&analysis.waits))?;
    let occurs = |kind: &Metric| occurs.iter().any(|of_process| of_process[kind.number()]);
    let kinds: Vec<Metric> = Metric::ALL.iter().copied().filter(occurs).collect();
    let mut column = vec![0; Metric::ALL.len()];
    for (number, kind) in kinds.iter().enumerate() {
        column[kind.number()] = number;
    }
    let groups = groups_of_callpaths(&analysis.trace);
    let values = match &request.marker {
        Marker::Parameter(ids) => parameters::values_of_windows(&analysis.trace, ids)?,
        Marker::CallPath { .. } => Vec::new(),
    };
    let segments = analysis.own_path()?;
    let devices = computing_devices(analysis);
    let finder = Finder { analysis, request, values, kinds: kinds.len(), column, segments, groups, devices };
    let own = (0..analysis.trace.shards.len())
        .into_par_iter()
        .fold(Sums::default, |sums, shard| finder.add(sums, shard))
        .reduce(Sums::default, Sums::merged);
    let all = exchange.gather(own)?.into_iter().fold(Sums::default(), Sums::merged);
    let Sums { mut rows, waiting, periodic, late } = all;
    let mut late: Vec<((u32, u32), i64)> = late.into_iter().collect();
    late.sort_unstable_by_key(|&((row, rank), ticks)| (row, ticks, std::cmp::Reverse(rank)));
    for ((row, rank), _) in late {
        rows[row as usize].slowest = rank;
    }
    let mut periodic: Vec<Periodic> = periodic.into_values().flatten().collect();
    periodic.sort_unstable_by_key(|one| one.callpath);
    let callpath = marker_callpath(&analysis.trace, &request.marker)?;
    Ok(Iterations { rows, callpath, kinds, waiting, periodic })
}

#[derive(Default, Encode, Decode)]
struct Sums {
    rows: Vec<Iteration>,
    /// One value per iteration and kind.
    waiting: Vec<i128>,
    /// By call path of a collective operation, whether it is periodic, and the same on all processes.
    periodic: FxHashMap<CallPathId, Option<Periodic>>,
    /// By row and rank, for how long devices of other ranks wait for it.
    late: FxHashMap<(u32, u32), i64>,
}

impl Sums {
    fn grow(&mut self, rows: usize, kinds: usize) {
        if rows > self.rows.len() {
            self.rows.resize(rows, NO_ITERATION);
            self.waiting.resize(rows * kinds, 0);
        }
    }

    fn merged(mut self, mut other: Self) -> Self {
        if self.rows.len() < other.rows.len() {
            std::mem::swap(&mut self, &mut other);
        }
        for (row, other) in self.rows.iter_mut().zip(&other.rows) {
            row.merge(other);
        }
        for (waiting, other) in self.waiting.iter_mut().zip(&other.waiting) {
            *waiting += other;
        }
        other.periodic.into_iter().for_each(|(callpath, periodic)| self.add_periodic(callpath, periodic));
        other.late.into_iter().for_each(|(place, ticks)| *self.late.entry(place).or_default() += ticks);
        self
    }

    fn add_periodic(&mut self, callpath: CallPathId, periodic: Option<Periodic>) {
        let known = self.periodic.entry(callpath).or_insert(periodic);
        if *known != periodic {
            *known = None;
        }
    }
}

impl Iteration {
    fn merge(&mut self, other: &Self) {
        self.begin = self.begin.min(other.begin);
        if (other.latest, self.pace) > (self.latest, other.pace) {
            (self.latest, self.pace) = (other.latest, other.pace);
        }
        self.begins += other.begins;
        self.end = self.end.max(other.end);
        self.processes += other.processes;
        self.shortest = self.shortest.min(other.shortest);
        self.longest = self.longest.max(other.longest);
        self.elapsed = self.elapsed.max(other.elapsed);
        self.computation += other.computation;
        if (other.most, self.slowest) > (self.most, other.slowest) {
            (self.most, self.slowest) = (other.most, other.slowest);
        }
        self.value = self.value.merged(other.value);
        self.groups.iter_mut().zip(other.groups).for_each(|(group, other)| *group += other);
        self.critical += other.critical;
        if (other.critical_most, self.critical_location) > (self.critical_most, other.critical_location) {
            (self.critical_most, self.critical_location) = (other.critical_most, other.critical_location);
        }
    }
}

struct Finder<'a> {
    analysis: &'a Analysis,
    request: &'a Request,
    /// The values that mark the iterations, in order, where records of processes begin at different ones; otherwise nothing.
    values: Vec<i64>,
    kinds: usize,
    /// The column of each metric that is the kind of a wait state.
    column: Vec<usize>,
    /// Segments of the critical path by location.
    segments: Vec<Segment>,
    /// The group of the account that own time in each call path belongs to.
    groups: Vec<Group>,
    /// If devices communicate, when those of each process compute: disjoint spans of each device in the order of time.
    devices: FxHashMap<ProcessId, Vec<Vec<Range<i64>>>>,
}

/// When the devices of each process compute, if any of them communicates.
fn computing_devices(analysis: &Analysis) -> FxHashMap<ProcessId, Vec<Vec<Range<i64>>>> {
    let kernels = &analysis.devices.kernels;
    if !kernels.iter().any(|kernel| kernel.communicates) {
        return FxHashMap::default();
    }
    let mut of_devices: BTreeMap<(ProcessId, u32), Vec<Range<i64>>> = BTreeMap::new();
    for kernel in kernels {
        let process = analysis.trace.definitions.locations[kernel.run.location].process;
        let spans = of_devices.entry((process, kernel.device)).or_default();
        if kernel.copy.is_none() && !kernel.communicates {
            spans.push(kernel.run.enter..kernel.run.leave);
        }
    }
    let mut found: FxHashMap<ProcessId, Vec<Vec<Range<i64>>>> = FxHashMap::default();
    for ((process, _), spans) in of_devices {
        found.entry(process).or_default().push(interval::union(spans));
    }
    found
}

impl Finder<'_> {
    fn add(&self, mut sums: Sums, number: usize) -> Sums {
        let trace = &self.analysis.trace;
        let shard = &trace.shards[number];
        let waits = self.analysis.waits.of(number).1;
        for process in shard.processes {
            let devices = self.devices.get(&process);
            let process = &trace.definitions.processes[process];
            if process.locations.len() == 0 {
                continue;
            }
            let master = process.locations.start;
            let (bounds, values) = match &self.request.marker {
                Marker::CallPath { callpath, every, body } => {
                    (boundaries(shard, master, *callpath, *every, body), Vec::new())
                }
                Marker::Parameter(ids) => {
                    let changes = parameters::changes(shard, master, ids);
                    (parameters::boundaries(&trace.tree, shard, master, &changes), changes)
                }
            };
            let Some(count) = bounds.len().checked_sub(1) else { continue };
            let places: Vec<usize> = (0..count).map(|i| self.place(i, &values)).collect();
            sums.grow(places.last().map_or(0, |last| last + 1), self.kinds);
            let mut computation = vec![0; count];
            let mut groups = vec![[0; Group::ALL.len()]; count];
            let mut threads = 0;
            for location in process.locations.filter(|&location| is_thread(trace, location)) {
                threads += 1;
                self.book_computation(shard, location, &bounds, (&mut computation, &mut groups));
            }
            if let Some(devices) = devices {
                computation.fill(0);
                for span in devices.iter().flatten() {
                    spread(&bounds, first(&bounds, span.start), span.clone(), |iteration, ticks| {
                        computation[iteration] += ticks;
                    });
                }
            }
            let units = devices.map_or(threads, |devices| devices.len() as i64);
            for (callpath, periodic) in Self::periodic(shard, master, &bounds) {
                sums.add_periodic(callpath, periodic);
            }
            for (i, &place) in places.iter().enumerate() {
                let row = &mut sums.rows[place];
                let length = bounds[i + 1] - bounds[i];
                let known: i64 = groups[i].iter().sum();
                groups[i][Group::Idle as usize] += (length * threads - known).max(0);
                row.merge(&Iteration {
                    begin: bounds[i],
                    latest: bounds[i],
                    pace: process.rank,
                    begins: i128::from(bounds[i]),
                    end: bounds[i + 1],
                    processes: 1,
                    shortest: length,
                    longest: length,
                    elapsed: length * units,
                    computation: i128::from(computation[i]),
                    most: computation[i],
                    slowest: process.rank,
                    groups: groups[i],
                    value: values.get(i).map_or(Value::None, |change| Value::Same(change.value)),
                    ..NO_ITERATION
                });
            }
            for location in process.locations {
                let first = waits.partition_point(|wait| wait.location < location);
                let own = &waits[first..first + waits[first..].partition_point(|wait| wait.location == location)];
                let mut at = 0;
                interval::each_near(trace, own, &[interval::ANY_TIME], |number, time| {
                    let wait = &own[number];
                    at = self.book_wait(wait.kind, &time, (&bounds, &places), at, &mut sums.waiting);
                    if wait.is_of_devices() && wait.cause_location.is_some() {
                        let cause = trace.definitions.locations[wait.cause_location].process;
                        let rank = trace.definitions.processes[cause].rank;
                        spread(&bounds, at, time.clone(), |iteration, ticks| {
                            *sums.late.entry((places[iteration] as u32, rank)).or_default() += ticks;
                        });
                    }
                    if is_thread(trace, location) && matches!(Row::of_wait(wait.kind), Some(Row::Wait(_))) {
                        let group = self.groups[shard.callpath(wait.instance)] as usize;
                        spread(&bounds, at, time, |iteration, ticks| {
                            // What runs inside the call takes its time from the wait.
                            let groups = &mut sums.rows[places[iteration]].groups;
                            let ticks = ticks.min(groups[group]);
                            groups[group] -= ticks;
                            groups[Group::Waiting as usize] += ticks;
                        });
                    }
                });
                self.book_path(location, (&bounds, &places), &mut sums.rows);
            }
        }
        sums
    }

    /// The row of the i-th iteration of a process: that of its value, if values tell, or else the i-th.
    fn place(&self, i: usize, changes: &[ParameterChange]) -> usize {
        let value = changes.get(i).map(|change| change.value.cast_signed());
        value.and_then(|value| self.values.binary_search(&value).ok()).unwrap_or(i)
    }

    fn book_computation(
        &self,
        shard: &Shard,
        location: LocationId,
        bounds: &[i64],
        (computation, groups): (&mut [i64], &mut [[i64; Group::ALL.len()]]),
    ) {
        let computes = &self.request.computes;
        let i = shard.local(location);
        let mut at = 0;
        let window = bounds[0]..bounds[bounds.len() - 1];
        for (callpath, begin, end) in shard.stretches(&self.analysis.trace.tree, i, window) {
            if callpath.is_none() {
                continue;
            }
            let (is_computation, group) = (computes[callpath], self.groups[callpath] as usize);
            at = spread(bounds, at, begin..end, |iteration, ticks| {
                computation[iteration] += if is_computation { ticks } else { 0 };
                groups[iteration][group] += ticks;
            });
        }
        for team in shard.teams.of(i).iter().filter(|team| team.fork != NONE && team.instance.is_some()) {
            let fork = &shard.forks.rows[team.fork as usize];
            let is_forker = location == shard.location_of(&shard.forks, team.fork);
            let join = if fork.join == i64::MIN { None } else { Some(shard.leave(team.instance)..fork.join) };
            for span in [Some(fork.fork..shard.enter(team.instance)), join].into_iter().flatten() {
                spread(bounds, first(bounds, span.start), span, |iteration, ticks| {
                    // A worker is in no call path meanwhile.
                    if is_forker && fork.callpath.is_some() {
                        computation[iteration] -= if computes[fork.callpath] { ticks } else { 0 };
                        groups[iteration][self.groups[fork.callpath] as usize] -= ticks;
                    }
                    groups[iteration][Group::Threads as usize] += ticks;
                });
            }
        }
    }

    /// The collective operations of a process in the loop by call path: whether they belong to every k-th iteration.
    fn periodic(shard: &Shard, master: LocationId, bounds: &[i64]) -> Vec<(CallPathId, Option<Periodic>)> {
        let mut of_callpaths: FxHashMap<CallPathId, Vec<usize>> = FxHashMap::default();
        for operation in shard.collectives.of(shard.local(master)) {
            let begin = shard.enter(operation.instance);
            if begin < bounds[0] || begin >= bounds[bounds.len() - 1] {
                continue;
            }
            let of_callpath = of_callpaths.entry(shard.callpath(operation.instance)).or_default();
            let iteration = first(bounds, begin);
            if of_callpath.last() != Some(&iteration) {
                of_callpath.push(iteration);
            }
        }
        let periodic = |(callpath, iterations): (CallPathId, Vec<usize>)| {
            (callpath, every(&iterations, bounds.len() - 1).map(|(every, first)| Periodic { callpath, every, first }))
        };
        of_callpaths.into_iter().map(periodic).collect()
    }

    /// Adds a wait to its iterations; returns the one in which it begins. `near` is that of the previous wait.
    fn book_wait(
        &self,
        kind: Metric,
        time: &Range<i64>,
        (bounds, places): (&[i64], &[usize]),
        near: usize,
        waiting: &mut [i128],
    ) -> usize {
        let column = self.column[kind.number()];
        let at = partition_point_near(bounds, near + 1, |&bound| bound <= time.start).saturating_sub(1);
        spread(bounds, at, time.clone(), |iteration, ticks| {
            waiting[places[iteration] * self.kinds + column] += i128::from(ticks);
        });
        at
    }

    fn book_path(&self, location: LocationId, (bounds, places): (&[i64], &[usize]), rows: &mut [Iteration]) {
        let begin = self.segments.partition_point(|segment| segment.location < location);
        // Segments are ordered by time, so those of an iteration are consecutive.
        let mut current = (0, 0);
        let mut book = |(iteration, ticks): (usize, i64)| {
            if ticks > 0 {
                let row =
                    Iteration { critical: ticks, critical_location: location, critical_most: ticks, ..NO_ITERATION };
                rows[places[iteration]].merge(&row);
            }
        };
        for segment in &self.segments[begin..] {
            if segment.location != location {
                break;
            }
            spread(bounds, first(bounds, segment.from), segment.from..segment.to, |iteration, ticks| {
                if iteration != current.0 {
                    book(current);
                    current = (iteration, 0);
                }
                current.1 += ticks;
            });
        }
        book(current);
    }
}

/// Every how many iterations these are, and the first of them; `None` if they are fewer than three, all, or irregular.
fn every(iterations: &[usize], count: usize) -> Option<(usize, usize)> {
    let [first, second, .., last] = *iterations else { return None };
    let every = second - first;
    let is_regular = iterations.windows(2).all(|pair| pair[1] - pair[0] == every);
    (every > 1 && is_regular && first < every && last + every >= count).then_some((every, first))
}

/// Begins of the iterations on the location of a master thread, and the end of the last one.
fn boundaries(shard: &Shard, location: LocationId, marker: CallPathId, every: usize, body: &[bool]) -> Vec<i64> {
    let i = shard.local(location);
    let events = &shard.events;
    let (begin, end) = (shard.event_offsets[i], shard.event_offsets[i + 1]);
    let time = |event: u32| events.time[event as usize];
    let mut bounds: Vec<i64> = events.enters(begin..end, marker).step_by(every).map(time).collect();
    if let Some(first) = events.enters(begin..end, marker).next() {
        let ends =
            |&event: &u32| body[events.callpath(event)] && (events.callpath(event) != marker || events.is_leave(event));
        // A marker that is never left ends with the events of its location.
        bounds.push(time((first..end).rev().find(ends).unwrap_or(end - 1)));
    }
    bounds
}

/// The call path that a marker is, or is recorded in.
fn marker_callpath(trace: &Trace, marker: &Marker) -> Result<CallPathId> {
    let ids = match marker {
        Marker::CallPath { callpath, .. } => return Ok(*callpath),
        Marker::Parameter(ids) => ids,
    };
    let places =
        trace.shards.iter().flat_map(|shard| shard.masters(&trace.definitions).map(move |master| (shard, master)));
    let first = places.map(|(shard, master)| (shard, master, parameters::changes(shard, master, ids)));
    let own = first
        .filter_map(|(shard, master, changes)| Some(parameters::callpath(&trace.tree, shard, master, changes.first()?)))
        .find(|callpath| callpath.is_some());
    Ok(trace.exchange.gather(own)?.into_iter().flatten().next().unwrap_or(CallPathId::NONE))
}

fn is_thread(trace: &Trace, location: LocationId) -> bool {
    matches!(trace.definitions.locations[location].kind, LocationType::CPU_THREAD | LocationType::UNKNOWN)
}

/// The iteration that a time lies in, or the first.
fn first(bounds: &[i64], time: i64) -> usize {
    bounds.partition_point(|&bound| bound <= time).saturating_sub(1)
}

/// Distributes a span over the iterations from `at` on; returns the one in which it ends.
fn spread(bounds: &[i64], mut at: usize, span: Range<i64>, mut book: impl FnMut(usize, i64)) -> usize {
    while at + 1 < bounds.len() {
        let ticks = span.end.min(bounds[at + 1]) - span.start.max(bounds[at]);
        if ticks > 0 {
            book(at, ticks);
        }
        if span.end <= bounds[at + 1] {
            break;
        }
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_spread_over_the_iterations_that_it_touches() {
        let bounds = [10, 20, 20, 35];
        let parts = |span: Range<i64>| {
            let mut parts = Vec::new();
            let end =
                spread(&bounds, first(&bounds, span.start), span, |iteration, ticks| parts.push((iteration, ticks)));
            (parts, end)
        };
        assert_eq!(parts(0..10), (vec![], 0));
        assert_eq!(parts(0..12), (vec![(0, 2)], 0));
        assert_eq!(parts(12..25), (vec![(0, 8), (2, 5)], 2));
        assert_eq!(parts(34..90), (vec![(2, 1)], 3));
        assert_eq!(parts(40..90), (vec![], 3));
    }

    #[test]
    fn what_belongs_to_every_third_iteration_is_periodic() {
        assert_eq!(every(&[2, 5, 8], 10), Some((3, 2)));
        assert_eq!(every(&[2, 5, 8], 12), None);
        assert_eq!(every(&[5, 8, 11], 12), None);
        assert_eq!(every(&[0, 1, 2], 3), None);
        assert_eq!(every(&[0, 2, 5], 6), None);
        assert_eq!(every(&[0, 2], 4), None);
    }

    #[test]
    fn of_several_slowest_processes_the_lowest_counts() {
        let row = |rank, ticks| Iteration { most: ticks, slowest: rank, ..NO_ITERATION };
        let of = |rows: &[(u32, i64)]| {
            let mut sum = NO_ITERATION;
            for &(rank, ticks) in rows {
                sum.merge(&row(rank, ticks));
            }
            (sum.slowest, sum.most)
        };
        assert_eq!(of(&[(0, 0), (1, 0)]), (0, 0));
        assert_eq!(of(&[(2, 5), (1, 5), (0, 4)]), (1, 5));
        assert_eq!(of(&[(1, 5), (2, 5)]), (1, 5));
    }
}
