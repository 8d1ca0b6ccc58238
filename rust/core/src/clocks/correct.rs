//! The steps of a correction: each computes other times, and is kept if less is violated then.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use whywait_otf2::Recording;

use super::census::{BINS, Census, Counting, Total};
use super::clc;
use super::constraints::{Constraints, Found};
use super::corrected::{Corrected, Correction};
use super::course::Course;
use super::domains::{self, Clocks, Domain};
use super::gather::gather;
use super::lines::{self, Left, Lines};
use super::meetings;
use super::nearest::Weight;
use super::nodes::Nodes;
use super::pairs::{Cut, Hulls, Pair};
use super::report::{OfDomain, OfPair, OfProcess, Report, Step, Verdict};
use super::timing::Timing;
use crate::ids::{LocationId, ProcessId};
use crate::parallel::exchange::Exchange;
use crate::parallel::iter::prelude::*;
use crate::trace::nodes::{clocks, nodes};
use crate::trace::{Bounds, Shard, Trace};
use crate::{Error, Result};

/// Number of pairs that the report has for each domain.
const PAIRS: usize = 16;
/// Number of processes, and of devices, whose moves the report has.
const MOVES: usize = 200;

named! {
    /// How to correct clocks.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Method {
        /// Not at all: the times that were measured.
        Measured = "measured",
        /// One clock per node.
        #[default]
        Nodes = "nodes",
        /// An offset and a drift for each clock, from the constraints.
        Lines = "lines",
        /// The controlled logical clock.
        Clc = "clc",
        /// Lines, then the logical clock.
        Both = "both",
        /// What is needed: nodes, then lines, then the logical clock.
        Auto = "auto",
    }
}

/// Options of a correction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// What to do.
    pub method: Method,
    /// Least time between cause and effect on two processes, seconds.
    pub latency: f64,
    /// What has a clock of its own.
    pub domain: Domain,
    /// Whether to count constraints even if nothing is violated.
    pub is_wanted: bool,
}

impl Options {
    /// Whether all constraints are counted, even if no message and no collective operation violates one.
    pub fn needs_census(&self) -> bool {
        self.is_wanted || self.latency > 0.0 || !matches!(self.method, Method::Measured | Method::Nodes)
    }
}

/// Corrects the clocks of a run: returns it as it was read or, if a correction helps, read again by `load`; whether it was
/// read again; and a report. `met` has the constraints of messages and blocking operations, if they are known.
/// If several processes share the analysis, the first finds the correction and has the report.
pub fn correct(
    trace: Trace,
    met: Option<Vec<Found>>,
    options: &Options,
    load: &dyn Fn(Arc<dyn Recording>) -> Result<Trace>,
) -> Result<(Trace, bool, Option<Report>)> {
    let method = options.method;
    let latency = (options.latency * trace.resolution as f64).round() as i64;
    let nodes = nodes_of(&trace);
    let exchange = trace.exchange.clone();
    let ends_before = ends(&trace)?;
    let span = trace.span().unwrap_or((0, 0));
    let mut constraints = gather(&trace, met)?;
    let mut census = Census::new(&constraints, Counting { latency, span }, as_it_is, &exchange)?;
    let mut current = census.clone();
    let total = census.total.of_all(&exchange)?;
    let offsets = Nodes::find(&trace, &nodes)?;
    let mut steps = vec![step("measured", true, total)];

    let mut trace = trace;
    let (mut shares_nodes, mut is_new) = (false, false);
    let tries_nodes = matches!(method, Method::Nodes | Method::Auto) && !offsets.changed.is_empty();
    if tries_nodes && total.violated > 0 {
        let recorded = trace.recording().clone();
        let corrections = offsets.offsets().map(|(location, offsets)| (location, Correction::Offsets(offsets.into())));
        // Two runs would take twice the memory.
        drop(trace);
        trace = load(Arc::new(Corrected::new(recorded.clone(), corrections.collect())))?;
        is_new = true;
        let found = gather(&trace, None)?;
        let span = trace.span().unwrap_or(span);
        let after = Census::new(&found, Counting { latency, span }, as_it_is, &exchange)?;
        let violated = |census: &Census, is_within: bool| {
            exchange.sum(census.violated_between(|from, to| (nodes[from] == nodes[to]) == is_within) as usize)
        };
        shares_nodes =
            violated(&after, true)? < violated(&census, true)? && violated(&after, false)? <= violated(&census, false)?;
        steps.push(step("nodes", shares_nodes, after.total.of_all(&exchange)?));
        if shares_nodes {
            (constraints, current) = (found, after);
        } else {
            drop(trace);
            trace = load(recorded)?;
        }
    }

    let begins = begins(&trace)?;
    let homes = if options.domain == Domain::Node { nodes.clone() } else { homes_of(&trace, &nodes) };
    let mut search = Search::new(&trace, (constraints, current), latency, (&homes, options.domain))?;
    search.run(method, &trace, (&nodes, &begins), &mut steps)?;
    let timings = search.moved(&trace);
    if !timings.is_empty() {
        let recorded = trace.recording().clone();
        let moved = timings.into_iter().flat_map(|(timing, locations)| {
            let timing = Arc::new(timing);
            locations.into_iter().map(move |location| (location, Correction::Timing(timing.clone())))
        });
        let corrected = Corrected::new(recorded, moved.collect());
        search.check(&corrected, &trace)?;
        drop(trace);
        trace = load(Arc::new(corrected))?;
        is_new = true;
    }
    let ends_after = ends(&trace)?;
    let largest = if search.timings.iter().all(Timing::is_identity) {
        vec![0; nodes.len()]
    } else {
        search.constraints.largest_moves(nodes.len(), |at, time| search.time(at, time), &exchange)?
    };
    census.gather(&exchange)?;
    search.census.gather(&exchange)?;
    if !exchange.is_root() {
        return Ok((trace, is_new, None));
    }
    let mut processes: Vec<OfProcess> = (0..nodes.len())
        .map(|process| {
            let (before, after) = (ends_before[process], ends_after[process]);
            let (begin, end) = (after.0 - before.0, after.1 - before.1);
            let largest = [begin, end, largest[process]].into_iter().max_by_key(|moved| moved.abs());
            OfProcess {
                node: nodes[process],
                measured: offsets.measured[process],
                moved: (begin, end, largest.unwrap_or(0)),
                violated: 0,
                domain: search.domain_of(ProcessId::at(process), &trace),
            }
        })
        .collect();
    let violated = census.cells.iter().flat_map(|((_, from, to), cell)| {
        let ends = [Some(from), Some(to).filter(|to| *to != from)];
        ends.into_iter().flatten().map(|process| (process.index(), cell.violated))
    });
    for (process, violated) in violated {
        if let Some(process) = processes.get_mut(process) {
            process.violated += violated;
        }
    }
    let report = Report {
        verdict: search.verdict(&total, shares_nodes),
        steps,
        differing: offsets.differing,
        domains: search.report_domains(),
        pairs: chosen(&search.pairs, search.domains.count()),
        moves: search.moves(&trace, shares_nodes.then_some(&offsets), span, &processes),
        stretch: search.stretch(),
        processes,
        domain: options.domain,
        latency,
        span,
        census,
        left: search.census,
    };
    Ok((trace, is_new, Some(report)))
}

/// The search for a function of time for each clock. All processes of an analysis know these; each has its own constraints.
struct Search {
    constraints: Constraints,
    /// Violations at the times of `timings`: of its own constraints, and of all.
    census: Census,
    total: Total,
    counting: Counting,
    noise: i64,
    /// The clocks that are moved, and how.
    clocks: Clocks,
    timings: Vec<Timing>,
    domains: Clocks,
    lines: Option<Lines>,
    /// The pairs of domains, if lines were fitted; at the first process.
    pairs: Vec<Pair>,
    is_impossible: bool,
    exchange: Exchange,
}

impl Search {
    fn new(
        trace: &Trace,
        (constraints, census): (Constraints, Census),
        latency: i64,
        (homes, choice): (&[u32], Domain),
    ) -> Result<Self> {
        let exchange = trace.exchange.clone();
        let counting = Counting { latency, span: trace.span().unwrap_or((0, 0)) };
        let noise = (1e-6 * trace.resolution as f64).max(2.0) as i64;
        let domains = domains::domains(&constraints, homes, &census, (choice, noise), &exchange)?;
        let clocks = domains::logical(&constraints, &census, &exchange)?;
        Ok(Self {
            constraints,
            total: census.total.of_all(&exchange)?,
            census,
            counting,
            noise,
            timings: vec![Timing::default(); clocks.count()],
            clocks,
            domains,
            lines: None,
            pairs: Vec::new(),
            is_impossible: false,
            exchange,
        })
    }

    /// Where a moment is moved to.
    fn time(&self, location: LocationId, time: i64) -> i64 {
        self.timings[self.clocks.of(location) as usize].apply(time)
    }

    /// Refuses times that no run can have: they would be taken for damaged ones. Collective.
    fn check(&self, corrected: &Corrected, trace: &Trace) -> Result<()> {
        let spans = trace.shards.iter().flat_map(|shard| {
            let locations = (0..shard.locations.len()).map(|number| shard.location(number));
            locations.zip(&shard.spans).filter(|(_, span)| span.first <= span.last)
        });
        let own = spans.map(|(location, span)| (self.time(location, span.first), self.time(location, span.last)));
        let add = |(first, last): (i64, i64), own: (i64, i64)| (first.min(own.0), last.max(own.1));
        let all = self.exchange.allgather(own.reduce(add))?;
        let Some((first, last)) = all.into_iter().flatten().reduce(add) else { return Ok(()) };
        let possible = Bounds::new(corrected, &trace.definitions).range();
        if possible.contains(&first) && possible.contains(&last) {
            return Ok(());
        }
        let seconds = (last - first) as f64 / trace.resolution as f64;
        Err(Error::Usage(format!("the corrected run would last {seconds:.0} s, longer than any run can be")))
    }

    /// The functions that move a clock, and the ids of the locations that each moves.
    fn moved(&self, trace: &Trace) -> Vec<(Timing, Vec<u64>)> {
        let mut ids = vec![Vec::new(); self.clocks.count()];
        for (number, location) in trace.definitions.locations.iter().enumerate() {
            ids[self.clocks.of(LocationId::at(number)) as usize].push(location.id);
        }
        let moved = self.timings.iter().zip(ids).filter(|(timing, _)| !timing.is_identity());
        moved.map(|(timing, ids)| (timing.clone(), ids)).collect()
    }

    /// The domain of a process; its own number if it has no locations.
    fn domain_of(&self, process: ProcessId, trace: &Trace) -> u32 {
        let mut locations = trace.definitions.processes[process].locations;
        locations.next().map_or(process.number(), |master| self.domains.of(master))
    }

    fn run(
        &mut self,
        method: Method,
        trace: &Trace,
        (nodes, begins): (&[u32], &[i64]),
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let is_auto = method == Method::Auto;
        if matches!(method, Method::Lines | Method::Both) || (is_auto && self.total.worst > self.noise) {
            self.fit_lines(trace, nodes, steps)?;
        }
        if matches!(method, Method::Clc | Method::Both) || is_auto {
            self.move_logically(trace, begins, steps)?;
        }
        Ok(())
    }

    fn fit_lines(&mut self, trace: &Trace, nodes: &[u32], steps: &mut Vec<Step>) -> Result<()> {
        if self.total.violated == 0 {
            return Ok(());
        }
        let Counting { latency, span: (begin, end) } = self.counting;
        let length = (end - begin).max(1) as f64;
        let hulls = |pieces: usize, is_fixed: &[bool], courses: &[Course]| {
            let cut = Cut { begin, length, pieces, is_fixed, courses };
            Hulls::gather(&self.constraints, &self.domains, latency, &cut, &self.exchange)
        };
        let left = |courses: &[Course]| {
            let census = self.census_at(&self.clocks, &self.timings_of(courses))?;
            // What other times order otherwise is no reason to bend a clock.
            let bounds = census.cells.iter().filter(|((kind, ..), _)| !kind.is_ordered_by_time());
            let (mut violated, mut sum, mut bends) = (0, 0, vec![false; self.domains.count()]);
            for cell in bounds.map(|(_, cell)| cell).filter(|cell| cell.violated > 0) {
                violated += cell.violated;
                sum += cell.sum;
                for location in cell.worst_between {
                    bends[self.domains.of(location) as usize] = true;
                }
            }
            let add = |all: Left, own: Left| {
                (all.0 + own.0, all.1 + own.1, all.2.into_iter().zip(own.2).map(|(a, b)| a || b).collect())
            };
            let of_all = self.exchange.allgather((violated, sum, bends))?.into_iter();
            Ok(of_all.reduce(add).unwrap_or_default())
        };
        let (mut lines, pairs) = lines::find(&weights(trace, &self.domains)?, length, &hulls, &left, &self.exchange)?;
        let node = |process: ProcessId| nodes[process.index()];
        let met = meetings::courses(&self.constraints, &self.domains, node, (begin, length), &self.exchange)?;
        if let Some(courses) = met {
            let ((violated, sum, _), (of_lines, sum_of_lines, _)) = (left(&courses)?, left(&lines.courses)?);
            if (violated, sum) <= (of_lines, sum_of_lines) {
                lines.courses = courses;
            }
        }
        let timings = self.timings_of(&lines.courses);
        (self.lines, self.pairs) = (Some(lines), pairs);
        self.take("lines", (self.clocks.clone(), timings), steps)
    }

    fn timings_of(&self, courses: &[Course]) -> Vec<Timing> {
        let begin = self.counting.span.0;
        let timing = |&first: &LocationId| {
            let course = &courses[self.domains.of(first) as usize];
            Timing { pieces: course.to_pieces(begin), ..Timing::default() }
        };
        self.clocks.firsts().iter().map(timing).collect()
    }

    fn move_logically(&mut self, trace: &Trace, begins: &[i64], steps: &mut Vec<Step>) -> Result<()> {
        if self.total.violated == 0 {
            return Ok(());
        }
        let clocks = domains::logical(&self.constraints, &self.census, &self.exchange)?;
        let before: Vec<&Timing> =
            clocks.firsts().iter().map(|&first| &self.timings[self.clocks.of(first) as usize]).collect();
        let mut first_times = vec![i64::MAX; clocks.count()];
        for (number, &begin) in begins.iter().enumerate() {
            let first = &mut first_times[clocks.of(LocationId::at(number)) as usize];
            *first = begin.min(*first);
        }
        let begin = |(&begin, timing): (&i64, &&Timing)| if begin == i64::MAX { 0 } else { timing.apply(begin) };
        let begins: Vec<i64> = first_times.iter().zip(&before).map(begin).collect();
        let owner = |&first: &LocationId| self.exchange.process_of(trace.shard_of[first]) as u32;
        let deal = clc::Deal { owners: clocks.firsts().iter().map(owner).collect(), exchange: &self.exchange };
        let current = self.constraints.at(|location, time| self.time(location, time));
        let (found, is_possible) = clc::find(&current, &clocks, &begins, self.counting.latency, &deal)?;
        let with = |(timing, logical): (&Timing, clc::Logical)| Timing { pieces: timing.pieces.clone(), logical };
        let timings = before.into_iter().zip(found).map(with).collect();
        self.is_impossible = !is_possible;
        self.take("clc", (clocks, timings), steps)
    }

    fn census_at(&self, clocks: &Clocks, timings: &[Timing]) -> Result<Census> {
        let time = |location, time| timings[clocks.of(location) as usize].apply(time);
        Census::new(&self.constraints, self.counting, time, &self.exchange)
    }

    /// Keeps a step if it leaves fewer violations, or as many with a smaller sum.
    fn take(
        &mut self,
        name: &'static str,
        (clocks, timings): (Clocks, Vec<Timing>),
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let census = self.census_at(&clocks, &timings)?;
        let total = census.total.of_all(&self.exchange)?;
        let is_kept = (total.violated, total.sum) < (self.total.violated, self.total.sum);
        steps.push(step(name, is_kept, total));
        if is_kept {
            (self.clocks, self.timings) = (clocks, timings);
            (self.census, self.total) = (census, total);
        }
        Ok(())
    }

    /// The domains for the report.
    fn report_domains(&self) -> Vec<OfDomain> {
        let lines = self.lines.as_ref();
        let mut domains: Vec<OfDomain> = (0..)
            .zip(self.domains.firsts())
            .map(|(domain, &first)| OfDomain {
                first,
                locations: 0,
                is_device: false,
                reference: lines.map_or(domain, |lines| lines.reference[domain as usize]),
                pieces: lines.map_or(0, |lines| lines.courses[domain as usize].pieces() as u32),
                added: lines.map(|lines| lines.courses[domain as usize].ends()),
                uncertainty: lines.and_then(|lines| lines.uncertainty[domain as usize]),
            })
            .collect();
        for location in (0..self.constraints.locations()).map(LocationId::at) {
            domains[self.domains.of(location) as usize].locations += 1;
        }
        for (stream, _) in self.constraints.devices() {
            domains[self.domains.of(*stream) as usize].is_device = true;
        }
        domains
    }

    fn verdict(&self, measured: &Total, shares_nodes: bool) -> Verdict {
        if measured.violated == 0 {
            return Verdict::None;
        }
        if measured.worst <= self.noise {
            return Verdict::Noise;
        }
        if self.is_impossible {
            return Verdict::Impossible;
        }
        match &self.lines {
            None if shares_nodes && self.total.violated == 0 => Verdict::MeasuredOffsets,
            None => Verdict::Differ,
            Some(lines) => {
                let is_line = |course: &Course| course.pieces() == 1;
                if !lines.courses.iter().all(is_line) || !self.are_lines_enough() {
                    return Verdict::NotLinear;
                }
                let is_offset = lines.courses.iter().zip(&lines.uncertainty).all(|(course, uncertainty)| {
                    let (begin, end) = course.ends();
                    (end - begin).abs() <= uncertainty.unwrap_or(f64::INFINITY)
                });
                if is_offset { Verdict::Offset } else { Verdict::Drift }
            }
        }
    }

    /// The steepest stretch by the logical clock, and the share of the time of all clocks that is stretched too much.
    fn stretch(&self) -> (f64, f64) {
        let all = self.timings.iter().map(|timing| timing.logical.stretch());
        let (steepest, sum) = all.fold((0.0, 0.0), |(steepest, sum): (f64, f64), (own, stretched)| {
            (steepest.max(own), sum + stretched as f64)
        });
        (
            steepest,
            sum / ((self.counting.span.1 - self.counting.span.0).max(1) as f64 * self.clocks.count().max(1) as f64),
        )
    }

    /// What the clocks of the processes that are moved most, and of devices, are moved by over the run.
    fn moves(
        &self,
        trace: &Trace,
        nodes: Option<&Nodes>,
        (begin, end): (i64, i64),
        processes: &[OfProcess],
    ) -> Vec<(LocationId, Vec<i64>)> {
        let times: Vec<i64> = (0..=BINS as i64)
            .map(|bin| begin + (i128::from(end - begin) * i128::from(bin) / BINS as i128) as i64)
            .collect();
        let mut most: Vec<ProcessId> = (0..processes.len()).map(ProcessId::at).collect();
        most.sort_by_key(|process| (-processes[process.index()].moved.2.abs(), *process));
        most.truncate(MOVES);
        most.sort_unstable();
        let moves = most.into_iter().filter_map(|process| {
            // A process of a damaged trace may have no locations.
            let master = { trace.definitions.processes[process].locations }.next()?;
            let mut moves =
                nodes.and_then(|nodes| nodes.moves(trace, process, &times)).unwrap_or_else(|| vec![0; times.len()]);
            let timing = &self.timings[self.clocks.of(master) as usize];
            for (moved, time) in moves.iter_mut().zip(&times) {
                *moved = moved.saturating_add(timing.added(time.saturating_add(*moved)));
            }
            Some((master, moves))
        });
        let streams: FxHashSet<LocationId> = self.constraints.devices().iter().map(|(stream, _)| *stream).collect();
        let devices = self.clocks.firsts().iter().zip(&self.timings);
        let devices = devices.filter(|(first, timing)| !timing.is_identity() && streams.contains(first));
        let of_devices =
            devices.map(|(&first, timing)| (first, times.iter().map(|&time| timing.added(time)).collect()));
        moves.chain(of_devices.take(MOVES)).collect()
    }

    fn are_lines_enough(&self) -> bool {
        self.total.violated == 0 && self.timings.iter().all(|timing| timing.logical.is_zero())
    }
}

/// The pairs for the report: of each domain those known best.
fn chosen(pairs: &[Pair], domains: usize) -> Vec<OfPair> {
    let mut order: Vec<&Pair> = pairs.iter().filter(|pair| pair.fit.is_some()).collect();
    let uncertainty = |pair: &Pair| pair.uncertainty().unwrap_or(f64::INFINITY);
    order.sort_by(|a, b| uncertainty(a).total_cmp(&uncertainty(b)));
    let mut counts = vec![0; domains];
    order.retain(|pair| {
        let ends = [pair.first as usize, pair.second as usize];
        let is_chosen = ends.iter().any(|&domain| counts[domain] < PAIRS);
        for domain in ends {
            counts[domain] += usize::from(is_chosen);
        }
        is_chosen
    });
    order.sort_by_key(|pair| (pair.first, pair.second));
    let of_pair = |pair: &&Pair| {
        let fit = pair.fit?;
        Some(OfPair {
            domains: (pair.first, pair.second),
            bounds: pair.bounds,
            line: (fit.line.value, fit.line.slope),
            margin: fit.margin,
            ranges: pair.ranges,
        })
    };
    order.iter().filter_map(of_pair).collect()
}

fn step(name: &'static str, is_kept: bool, total: Total) -> Step {
    Step { name, is_kept, violated: total.violated, worst: total.worst, sum: total.sum }
}

/// Moves nothing.
fn as_it_is(_: LocationId, time: i64) -> i64 {
    time
}

/// A key of each process's node; processes of an unknown node have one of their own.
fn nodes_of(trace: &Trace) -> Vec<u32> {
    let mut nodes = nodes(trace);
    for (process, node) in nodes.iter_mut().enumerate().filter(|(_, node)| **node == u32::MAX) {
        *node = u32::MAX - 1 - process as u32;
    }
    nodes
}

/// A key of what has the clock of each process: its node, unless the source says that this has several.
fn homes_of(trace: &Trace, nodes: &[u32]) -> Vec<u32> {
    let mut known: FxHashMap<(u32, Option<i64>), u32> = FxHashMap::default();
    let key = |(node, clock): (&u32, Option<i64>)| {
        let next = known.len() as u32;
        *known.entry((*node, clock)).or_insert(next)
    };
    nodes.iter().zip(clocks(trace)).map(key).collect()
}

/// First and last time of each process's master, ticks, at the first process; 0 if it has no events.
fn ends(trace: &Trace) -> Result<Vec<(i64, i64)>> {
    let spans = trace.shards.iter().flat_map(|shard| {
        shard.processes.map(move |process| {
            // A process of a damaged trace may have no locations.
            let mut locations = trace.definitions.processes[process].locations;
            let span = locations.next().map(|master| &shard.spans[shard.local(master)]);
            span.filter(|span| span.first <= span.last).map_or((0, 0), |span| (span.first, span.last))
        })
    });
    trace.exchange.gatherv(spans)
}

/// The events at the clock of each domain, at the first process.
fn weights(trace: &Trace, domains: &Clocks) -> Result<Vec<Weight>> {
    let (begin, end) = trace.span().unwrap_or((0, 0));
    let of_shard = |shard: &Shard| -> Vec<Weight> {
        let of_location = |range: &[u32]| {
            let mut weight = Weight::default();
            for time in &shard.events.time[range[0] as usize..range[1] as usize] {
                let share = (time - begin) as f64 / (end - begin).max(1) as f64;
                weight.events += 1.0;
                weight.sum += share;
                weight.squares += share * share;
            }
            weight
        };
        shard.event_offsets.windows(2).map(of_location).collect()
    };
    let of_shards: Vec<Vec<Weight>> = trace.shards.par_iter().map(of_shard).collect();
    let mut weights = vec![Weight::default(); domains.count()];
    for (location, own) in trace.exchange.gatherv(of_shards.into_iter().flatten())?.into_iter().enumerate() {
        let all = &mut weights[domains.of(LocationId::at(location)) as usize];
        all.events += own.events;
        all.sum += own.sum;
        all.squares += own.squares;
    }
    Ok(weights)
}

/// Time of the first event of each location, ticks; `i64::MAX` if it has none.
fn begins(trace: &Trace) -> Result<Vec<i64>> {
    let own = trace.shards.iter().flat_map(|shard| shard.spans.iter().map(|span| span.first));
    Ok(trace.exchange.allgather(own.collect::<Vec<i64>>())?.concat())
}
