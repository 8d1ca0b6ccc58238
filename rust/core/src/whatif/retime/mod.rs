//! Computes new times: each location advances from step to step until a step waits for a place with an unknown time,
//! and continues when that is known.
//!
//! Since the dependencies are known, there is no global clock and no event queue. Each step and each arc is visited
//! once, and the events between two steps only if they change. The threads advance *groups* of locations, and tell each
//! other who can go on. Several hypotheses on the same arcs are *lanes* of one walk, on one thread.
//!
//! Several processes of an analysis evaluate their locations in rounds: each goes on until all of its locations wait for
//! places of others, then all tell each other the places that have become known.

mod board;
mod lanes;
mod part;
mod shifts;
mod walk;
mod walker;

use std::sync::Mutex;

use bitcode::{Decode, Encode};

use self::board::{Board, lock};
use self::shifts::{All, Passing, Shifts};
use self::walk::Ends;
use self::walker::{News, Run, Walker};
use super::changes::durations::Shape;
use super::graph::steps::Graph;
use crate::Result;
use crate::focus::{Edges, End};
use crate::ids::LocationId;
use crate::parallel::iter::prelude::*;
use crate::trace::{Shard, Trace};

/// The shifts of all places against the measured run.
#[derive(Debug)]
pub(in crate::whatif) struct Times {
    /// Shift of each place of the graph, ticks.
    shifts: All,
    ends: AllEnds<1>,
    /// Steps that wait for each other in a circle.
    pub circular: Circular,
}

/// Steps that wait for each other in a circle.
#[derive(Debug, Default)]
pub(in crate::whatif) struct Circular {
    /// How many had to go on without the time that they wait for.
    pub number: usize,
    /// Those of this process of the analysis: number of the step among all of them, location, and step.
    pub own: Vec<(usize, LocationId, usize)>,
}

impl Times {
    /// Shift of a step, ticks.
    pub(in crate::whatif) fn shift(&self, step: usize) -> i64 {
        self.shifts.at(step)
    }

    /// New begin and end of the run and its focus. Collective.
    pub(in crate::whatif) fn spans(&self, trace: &Trace, focus: &[Edges]) -> Result<Spans> {
        let [spans] = self.ends.spans(trace, focus)?;
        Ok(spans)
    }
}

/// Where a simulated run and its focus begin and end, ticks.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub(in crate::whatif) struct Spans {
    /// Begin and end of the run.
    pub run: (i64, i64),
    /// The same of the focus; the begin is `i64::MIN` if no call of the run decides it.
    pub focus: (i64, i64),
}

/// The ends of each location.
#[derive(Debug)]
struct AllEnds<const K: usize>(Vec<Ends<K>>);

impl<const K: usize> AllEnds<K> {
    /// New begin and end of the run, including the time before the first and after the last event of each location, and of
    /// its focus. Collective.
    fn spans(&self, trace: &Trace, focus: &[Edges]) -> Result<[Spans; K]> {
        let mut spans = [Spans { run: (i64::MAX, i64::MIN), focus: (i64::MIN, i64::MIN) }; K];
        let own = self.0.iter().enumerate().filter(|&(location, _)| trace.owns(LocationId::at(location)));
        for (location, ends) in own {
            let shard = trace.shard(LocationId::at(location));
            let span = &shard.spans[location - shard.locations.start.index()];
            if span.first > span.last {
                continue;
            }
            // Locations without events move with the master of their process.
            let process = trace.definitions.processes.get(trace.definitions.locations[location].process.index());
            let ends = match process {
                _ if has_events(shard, LocationId::at(location)) => ends,
                Some(process) if has_events(shard, process.locations.start) => &self.0[process.locations.start],
                Some(_) => &[[0; K]; 4],
                None => continue,
            };
            let Edges { begin, end } = focus[location];
            for (k, Spans { run: (first, last), focus: (focus_begin, focus_end) }) in spans.iter_mut().enumerate() {
                *first = (*first).min(span.first + ends[0][k]);
                *last = (*last).max(span.last + ends[1][k]);
                if let Some(position) = begin {
                    *focus_begin = (*focus_begin).max(shard.events.time[position as usize] + ends[2][k]);
                }
                let end = match end {
                    End::Nowhere => continue,
                    End::Call(position) => shard.events.time[position as usize] + ends[3][k],
                    End::Last => span.last + ends[1][k],
                };
                *focus_end = (*focus_end).max(end);
            }
        }
        for others in trace.exchange.allgather(spans.to_vec())? {
            for (all, other) in spans.iter_mut().zip(others) {
                all.run = (all.run.0.min(other.run.0), all.run.1.max(other.run.1));
                all.focus = (all.focus.0.max(other.focus.0), all.focus.1.max(other.focus.1));
            }
        }
        Ok(spans)
    }
}

fn has_events(shard: &Shard, location: LocationId) -> bool {
    let i = shard.local(location);
    shard.event_offsets[i] < shard.event_offsets[i + 1]
}

/// Evaluates a hypothesis, on all threads. `focus` says where the focus may end. Collective.
pub(in crate::whatif) fn evaluate(trace: &Trace, graph: &Graph, shape: &Shape, focus: &[Edges]) -> Result<Times> {
    let shifts = All::new(graph);
    let (ends, circular) = walk::<1, _>(trace, graph, shape, focus, &shifts)?;
    Ok(Times { shifts, ends, circular })
}

/// New begin and end of the run and its focus in each of `K` lanes. Collective.
pub(in crate::whatif) fn spans<const K: usize>(
    trace: &Trace,
    graph: &Graph,
    shape: &Shape,
    focus: &[Edges],
) -> Result<[Spans; K]> {
    walk(trace, graph, shape, focus, Passing::new(graph))?.0.spans(trace, focus)
}

/// Groups of locations for each thread: enough to even out what they have to do, and few enough that most of what a
/// location waits for is in its group.
const GROUPS: usize = 4;

fn walk<const K: usize, S: Shifts<K>>(
    trace: &Trace,
    graph: &Graph,
    shape: &Shape,
    focus: &[Edges],
    shifts: S,
) -> Result<(AllEnds<K>, Circular)> {
    let threads = rayon::current_num_threads();
    let groups = if threads > 1 && shifts.share().is_some() { GROUPS * threads } else { 1 };
    let board = Board::new(graph, groups);
    let run = Run { trace, graph, shape, board: &board };
    let walker = |(group, shifts)| Mutex::new(Walker::new(run, shifts, focus, group));
    let shares: Vec<S> = (1..groups).filter_map(|_| shifts.share()).collect();
    let walkers: Vec<_> = (0..).zip([shifts].into_iter().chain(shares)).map(walker).collect();
    let mut circular = Circular::default();
    lock(&walkers[0]).begin_for_others(&|_| ());
    loop {
        advance(&board, &walkers);
        if learn_from_others(&walkers, run)? {
            continue;
        }
        let own = walkers.iter().filter_map(|walker| lock(walker).blocked()).min();
        let blocked = trace.exchange.allgather(own)?;
        let Some((_, location)) = blocked.into_iter().flatten().min() else { break };
        if trace.owns(location) {
            let step = lock(&walkers[board.group_of(location.number())]).force(location, &|_| ());
            circular.own.push((circular.number, location, step));
        }
        circular.number += 1;
    }
    let ends = walkers.iter().flat_map(|walker| std::mem::take(&mut lock(walker).ends));
    Ok((AllEnds(ends.collect()), circular))
}

/// Advances all groups until all of their locations wait.
fn advance<const K: usize, S: Shifts<K>>(board: &Board<K>, walkers: &[Mutex<Walker<'_, K, S>>]) {
    if let [walker] = walkers {
        lock(walker).work(&|_| ());
        return;
    }
    (0..walkers.len()).for_each(|group| board.wake(group));
    rayon::scope(|scope| (0..walkers.len()).for_each(|group| spawn(scope, walkers, group)));
}

/// Lets a thread work on a group that is awake.
fn spawn<'scope, const K: usize, S: Shifts<K>>(
    scope: &rayon::Scope<'scope>,
    walkers: &'scope [Mutex<Walker<'_, K, S>>],
    group: usize,
) {
    scope.spawn(move |scope| lock(&walkers[group]).work(&|group| spawn(scope, walkers, group)));
}

/// Exchanges what has become known with the other processes of the analysis; returns whether anything has.
fn learn_from_others<const K: usize, S: Shifts<K>>(
    walkers: &[Mutex<Walker<'_, K, S>>],
    run: Run<'_, K>,
) -> Result<bool> {
    let exchange = &run.trace.exchange;
    if exchange.processes() == 1 {
        return Ok(false);
    }
    let mut told = vec![News::default(); exchange.processes()];
    for walker in walkers {
        for (all, News { places, shifts }) in told.iter_mut().zip(&mut lock(walker).news) {
            all.places.append(places);
            all.shifts.append(shifts);
        }
    }
    let is_news = told.iter().any(|news| !news.places.is_empty());
    let told = told.into_iter().map(|news| (is_news, news)).collect();
    let arrived: Vec<(bool, News)> = exchange.alltoall(told)?;
    let any = arrived.iter().any(|(is_news, _)| *is_news);
    // Any of them may make places known.
    let mut walker = lock(&walkers[0]);
    for (process, (_, News { places, shifts })) in arrived.into_iter().enumerate() {
        let of_process = &run.graph.border.from[process];
        for (number, shift) in places.into_iter().zip(shifts.as_chunks::<K>().0) {
            walker.publish(of_process[number as usize], *shift, &|_| ());
        }
    }
    Ok(any)
}

/// New times of all Enters and Leaves of each location, in the order of its events.
pub(in crate::whatif) fn all_events(trace: &Trace, graph: &Graph, shape: &Shape, times: &Times) -> Vec<Vec<i64>> {
    let of_shard = |shard: &Shard| {
        let time = &shard.events.time;
        let mut all = Vec::with_capacity(time.len());
        for (i, location) in shard.locations.enumerate() {
            let mut changes = shape.of(location).iter().peekable();
            let mut steps = graph.steps_of(location).peekable();
            let [mut shift] = times.ends.0[location][0];
            for position in shard.event_offsets[i]..shard.event_offsets[i + 1] {
                let p = position as usize;
                if let Some(change) = changes.next_if(|change| change.position == position) {
                    shift += change.growth;
                }
                while let Some(step) = steps.next_if(|&step| graph.steps[step].position == position) {
                    shift = times.shift(step);
                }
                all.push(time[p] + shift);
            }
        }
        all
    };
    trace.par_shards().map(of_shard).collect()
}
