//! Who waits for whom: the places at which clocks meet, and what leads from one to another.
//!
//! A node is a *place*, a time of a clock at which it has to do with others; a *meeting*, which is over when all of its sources
//! have come; or *remote*, a place or a meeting of another process of the analysis, which tells when it is. All begins of an
//! operation lead to a meeting, and this to all ends; in prefix operations, each begin leads to a meeting with those before it.
//!
//! If several processes share the analysis, each has the places of its own clocks. An operation with members in several of
//! them is cut into runs: the members of one process, of prefix operations those that follow each other. Runs meet in the
//! process that found the operation.

use std::borrow::Cow;

use super::deal::{Deal, NEVER};
use crate::Result;
use crate::clocks::constraints::{Constraints, Link, Part};
use crate::clocks::domains::Clocks;
use crate::ids::LocationId;
use crate::parallel::iter::prelude::*;

/// A clock and a time.
type Moment = (u32, i64);

/// A neighbor of a node, and whether the way takes the least time between two processes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way(u32);

const TAKES_TIME: u32 = 1 << 31;

impl Way {
    fn new(node: u32, takes_time: bool) -> Self {
        Self(node | if takes_time { TAKES_TIME } else { 0 })
    }

    #[inline]
    pub(super) fn node(self) -> usize {
        (self.0 & !TAKES_TIME) as usize
    }

    #[inline]
    pub(super) fn takes_time(self) -> bool {
        self.0 & TAKES_TIME != 0
    }
}

/// Lists of ways by node.
pub(super) struct Ways {
    begins: Vec<u32>,
    ways: Vec<Way>,
}

impl Ways {
    fn new(nodes: usize, all: impl Iterator<Item = (u32, Way)> + Clone) -> Self {
        let mut begins = vec![0u32; nodes + 1];
        for (node, _) in all.clone() {
            begins[node as usize + 1] += 1;
        }
        for node in 0..nodes {
            begins[node + 1] += begins[node];
        }
        let mut next = begins.clone();
        let mut ways = vec![Way(0); begins[nodes] as usize];
        for (node, way) in all {
            ways[next[node as usize] as usize] = way;
            next[node as usize] += 1;
        }
        Self { begins, ways }
    }

    #[inline]
    pub(super) fn of(&self, node: usize) -> &[Way] {
        &self.ways[self.begins[node] as usize..self.begins[node + 1] as usize]
    }
}

/// The nodes of this process of the analysis: places by clock and time, remote ones, and meetings, each behind those for which
/// it waits.
pub(super) struct Net {
    /// The first place of each clock, and the number of places.
    pub(super) first: Vec<usize>,
    /// Time of each place, ticks; increasing within a clock.
    pub(super) times: Vec<i64>,
    /// Clock of each place.
    pub(super) clock: Vec<u32>,
    /// When remote nodes are before anything moves.
    pub(super) remote: Vec<i64>,
    /// What each node waits for, and what waits for it.
    pub(super) sources: Ways,
    pub(super) targets: Ways,
    /// The begins of parts in operations, and the ways to the ends of these parts.
    pub(super) parts: Vec<(u32, Way)>,
    /// The least time between two processes, ticks.
    pub(super) latency: i64,
    /// For each process of the analysis, its nodes that are remote here, and those of here that are remote there.
    pub(super) imports: Vec<Vec<u32>>,
    pub(super) exports: Vec<Vec<u32>>,
}

impl Net {
    pub(super) fn new(constraints: &Constraints, clocks: &Clocks, latency: i64, deal: &Deal) -> Result<Self> {
        let owner = |location| deal.owners[clocks.of(location) as usize] as usize;
        let is_own = |location| owner(location) == deal.exchange.rank();
        let operations = Operations::deal(constraints, clocks, deal)?;
        let links = || {
            constraints.links().iter().filter(|link| !is_one(clocks, [link.source().location, link.target().location]))
        };

        // The sources of other processes, which must know of them.
        let mut imported: Vec<Vec<Moment>> = vec![Vec::new(); deal.exchange.processes()];
        for source in links().map(Link::source).filter(|source| !is_own(source.location)) {
            imported[owner(source.location)].push((clocks.of(source.location), source.time));
        }
        for places in &mut imported {
            places.sort_unstable();
            places.dedup();
        }
        let exported = deal.exchange.alltoall(imported.clone())?;

        let mut moments: Vec<Vec<i64>> = vec![Vec::new(); clocks.count()];
        let mut see = |location, time: i64| moments[clocks.of(location) as usize].push(time);
        for (source, target) in links().map(|link| (link.source(), link.target())) {
            see(target.location, target.time);
            if is_own(source.location) {
                see(source.location, source.time);
            }
        }
        for part in operations.parts() {
            see(part.location, part.begin);
            see(part.location, part.end);
        }
        for &(clock, time) in exported.iter().flatten() {
            moments[clock as usize].push(time);
        }
        let places = Places::new(moments);

        let mut builder = Builder::new(&places, clocks, (&imported, &exported), &operations);
        for link in links() {
            let (source, target) = (link.source(), link.target());
            let from = if is_own(source.location) {
                builder.place(source.location, source.time)
            } else {
                let (process, place) = (owner(source.location), (clocks.of(source.location), source.time));
                builder.imports[process][imported[process].partition_point(|&other| other < place)]
            };
            let to = builder.place(target.location, target.time);
            builder.ways.push((from, Way::new(to, !link.kind().is_within_a_process())));
        }
        builder.operations(&operations);
        let Builder { ways, remote, next: nodes, parts, imports, exports, .. } = builder;
        let sources = ways.iter().map(|&(from, to)| (to.node() as u32, Way::new(from, to.takes_time())));
        Ok(Self {
            sources: Ways::new(nodes as usize, sources),
            targets: Ways::new(nodes as usize, ways.iter().copied()),
            clock: places.clocks(),
            times: places.moments.concat(),
            first: places.first,
            remote,
            parts,
            latency,
            imports,
            exports,
        })
    }

    /// Number of nodes.
    pub(super) fn nodes(&self) -> usize {
        self.sources.begins.len() - 1
    }

    pub(super) fn is_place(&self, node: usize) -> bool {
        node < self.times.len()
    }

    /// The places of a clock.
    pub(super) fn places(&self, clock: usize) -> std::ops::Range<usize> {
        self.first[clock]..self.first[clock + 1]
    }

    pub(super) fn remote(&self) -> std::ops::Range<usize> {
        self.times.len()..self.times.len() + self.remote.len()
    }

    pub(super) fn meetings(&self) -> std::ops::Range<usize> {
        self.remote().end..self.nodes()
    }

    /// The least time that a way takes, ticks.
    #[inline]
    pub(super) fn latency(&self, way: Way) -> i64 {
        if way.takes_time() { self.latency } else { 0 }
    }
}

/// Whether locations share one clock, so that nothing is violated between them.
fn is_one(clocks: &Clocks, locations: impl IntoIterator<Item = LocationId>) -> bool {
    let mut of = locations.into_iter().map(|location| clocks.of(location));
    let first = of.next();
    of.all(|clock| Some(clock) == first)
}

/// The places of clocks.
struct Places {
    moments: Vec<Vec<i64>>,
    first: Vec<usize>,
}

impl Places {
    fn new(mut moments: Vec<Vec<i64>>) -> Self {
        moments.par_iter_mut().for_each(|moments| {
            moments.sort_unstable();
            moments.dedup();
        });
        let mut first = vec![0];
        first.extend(moments.iter().scan(0, |places, moments| {
            *places += moments.len();
            Some(*places)
        }));
        Self { moments, first }
    }

    fn count(&self) -> usize {
        self.first[self.moments.len()]
    }

    fn of(&self, clock: u32, time: i64) -> u32 {
        (self.first[clock as usize] + self.moments[clock as usize].partition_point(|&at| at < time)) as u32
    }

    /// The clock of each place.
    fn clocks(&self) -> Vec<u32> {
        let clocks = self.moments.iter().zip(0..);
        clocks.flat_map(|(moments, clock)| std::iter::repeat_n(clock, moments.len())).collect()
    }
}

/// The operations that a process of the analysis takes part in.
struct Operations<'a> {
    /// Those all of whose members it has.
    whole: Cow<'a, [Part]>,
    /// Runs of its members in others, by the process where they meet.
    runs: Vec<Vec<Part>>,
    /// The runs that meet here, operation by operation.
    meeting: Vec<Run>,
}

/// The process of a run, whether it is the first one of its operation, and whether only runs before it bound it.
#[derive(Clone, Copy)]
struct Run {
    process: usize,
    is_first: bool,
    is_prefix: bool,
}

impl<'a> Operations<'a> {
    fn deal(constraints: &'a Constraints, clocks: &Clocks, Deal { owners, exchange }: &Deal) -> Result<Self> {
        let processes = exchange.processes();
        if processes == 1 {
            let whole = Cow::Borrowed(constraints.parts());
            return Ok(Self { whole, runs: vec![Vec::new()], meeting: Vec::new() });
        }
        let owner = |part: &Part| owners[clocks.of(part.location) as usize] as usize;
        let mut whole = vec![Vec::new(); processes];
        let mut runs = vec![Vec::new(); processes];
        let mut meeting = Vec::new();
        let mut members: Vec<Part> = Vec::new();
        for parts in constraints.instances() {
            let home = owner(&parts[0]);
            if parts.iter().all(|part| owner(part) == home) {
                whole[home].extend_from_slice(parts);
                continue;
            }
            members.clear();
            members.extend_from_slice(parts);
            if !parts[0].is_prefix {
                members.sort_by_key(owner);
            }
            for (number, run) in members.chunk_by(|a, b| owner(a) == owner(b)).enumerate() {
                let process = owner(&run[0]);
                meeting.push(Run { process, is_first: number == 0, is_prefix: run[0].is_prefix });
                runs[process].extend(run.iter().enumerate().map(|(number, part)| part.as_first(number == 0)));
            }
        }
        let whole = Cow::Owned(exchange.alltoall(whole)?.concat());
        Ok(Self { whole, runs: exchange.alltoall(runs)?, meeting })
    }

    fn parts(&self) -> impl Iterator<Item = &Part> {
        self.whole.iter().chain(self.runs.iter().flatten())
    }

    /// The number of runs that meet here, and of own runs that meet elsewhere.
    fn remote(&self) -> usize {
        self.meeting.len() + self.runs.iter().map(|parts| instances(parts).count()).sum::<usize>()
    }
}

/// Numbers the nodes, and finds the ways between them.
struct Builder<'a> {
    places: &'a Places,
    clocks: &'a Clocks,
    remote: Vec<i64>,
    /// The number of the next meeting.
    next: u32,
    ways: Vec<(u32, Way)>,
    parts: Vec<(u32, Way)>,
    imports: Vec<Vec<u32>>,
    exports: Vec<Vec<u32>>,
}

impl<'a> Builder<'a> {
    fn new(
        places: &'a Places,
        clocks: &'a Clocks,
        (imported, exported): (&[Vec<Moment>], &[Vec<Moment>]),
        operations: &Operations,
    ) -> Self {
        let count = places.count() as u32;
        let mut remote = Vec::new();
        let imports = imported.iter().map(|of_process| {
            let first = count + remote.len() as u32;
            remote.extend(of_process.iter().map(|&(_, time)| time));
            (first..count + remote.len() as u32).collect()
        });
        let imports = imports.collect();
        let places_of = |of_process: &Vec<_>| of_process.iter().map(|&(clock, time)| places.of(clock, time)).collect();
        let exports = exported.iter().map(places_of).collect();
        let next = count + (remote.len() + operations.remote()) as u32;
        Self { places, clocks, remote, next, ways: Vec::new(), parts: Vec::new(), imports, exports }
    }

    fn place(&self, location: LocationId, time: i64) -> u32 {
        self.places.of(self.clocks.of(location), time)
    }

    fn meeting(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    /// A node of another process that tells when it is.
    fn import(&mut self, process: usize) -> u32 {
        let node = (self.places.count() + self.remote.len()) as u32;
        self.remote.push(NEVER);
        self.imports[process].push(node);
        node
    }

    /// Processes agree about the order of what they tell each other: places, runs that meet elsewhere, and meetings of runs.
    fn operations(&mut self, operations: &Operations) {
        for parts in instances(&operations.whole) {
            if is_one(self.clocks, parts.iter().map(|part| part.location)) {
                continue;
            }
            let all = (!parts[0].is_prefix).then(|| self.meeting());
            self.run(parts, all, all);
        }
        let arriving: Vec<u32> = operations.meeting.iter().map(|run| self.import(run.process)).collect();
        for (process, parts) in operations.runs.iter().enumerate() {
            for parts in instances(parts) {
                let (all, before) = (self.meeting(), self.import(process));
                self.exports[process].push(all);
                self.run(parts, Some(all), Some(before));
            }
        }
        let mut arriving = arriving.into_iter();
        for runs in operations.meeting.chunk_by(|_, next| !next.is_first) {
            let mut before = self.meeting();
            for (run, arrives) in runs.iter().zip(arriving.by_ref()) {
                self.exports[run.process].push(before);
                if run.is_prefix {
                    let meeting = self.meeting();
                    self.way(before, meeting);
                    before = meeting;
                }
                self.way(arrives, before);
            }
        }
    }

    /// Adds an operation, or a run of it. All begins lead to `all`, and `before` leads to the ends.
    fn run(&mut self, parts: &[Part], all: Option<u32>, mut before: Option<u32>) {
        for part in parts {
            let (begin, end) = (self.place(part.location, part.begin), self.place(part.location, part.end));
            let to_end = Way::new(end, !part.kind.is_within_a_process());
            if let Some(before) = before.filter(|_| part.is_target) {
                self.ways.push((before, to_end));
            }
            if part.is_source {
                self.parts.push((begin, to_end));
                if let Some(all) = all {
                    self.way(begin, all);
                }
                if part.is_prefix {
                    let meeting = self.meeting();
                    if let Some(before) = before {
                        self.way(before, meeting);
                    }
                    self.way(begin, meeting);
                    before = Some(meeting);
                }
            }
        }
    }

    fn way(&mut self, from: u32, to: u32) {
        self.ways.push((from, Way::new(to, false)));
    }
}

fn instances(parts: &[Part]) -> impl Iterator<Item = &[Part]> {
    parts.chunk_by(|_, next| !next.is_first)
}
