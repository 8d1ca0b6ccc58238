//! The graph of a measured run, and the runs that follow from it.

use std::sync::atomic::Ordering;

use whywait_otf2::records::ClockProperties;

use super::arcs::messages::{self, Estimates, Transfer};
use super::arcs::{collectives, devices, intercomms, one_sided, threads};
use super::assumptions::{Assumption, Assumptions};
use super::changes::cut::Cut;
use super::changes::durations::Shape;
use super::changes::hypotheses::Hypothesis;
use super::changes::moves::Moves;
use super::changes::requests::idle_tests;
use super::changes::whole_epochs;
use super::graph::builder::{Builder, MEASURED};
use super::graph::network;
use super::graph::steps::Graph;
use super::model::Model;
use super::retime::{self, Spans, Times};
use crate::analysis::Analysis;
use crate::diagnostics::DiagnosticKind;
use crate::focus::{self, Edges, Rule};
use crate::ids::{CallPathId, LocationId};
use crate::parallel::iter::prelude::*;
use crate::trace::Trace;
use crate::trace::decode::Progress;
use crate::trace::nodes::nodes;
use crate::{Error, Result};

/// Hypotheses that are evaluated together.
const LANES: usize = 8;
/// Calls of a deadlock that are named.
const NAMED: usize = 4;

/// An error if the work is to stop.
fn go_on(progress: &Progress) -> Result<()> {
    if progress.is_cancelled() { Err(Error::Interrupted) } else { Ok(()) }
}

/// Visits of polling calls, and the time in them, ticks.
fn polls(trace: &Trace) -> (u64, i64) {
    let class = |callpath: CallPathId| trace.regions.class(trace.tree.region(callpath));
    let cells = trace.shards.iter().flat_map(|shard| &shard.profile.rows);
    cells
        .filter(|cell| class(cell.callpath).is_test())
        .fold((0, 0), |(visits, time), cell| (visits + cell.visits, time + cell.time))
}

/// A run that can be simulated.
#[derive(Debug)]
pub struct Simulator {
    pub(super) graph: Graph,
    pub(super) cut: Cut,
    pub(super) moves: Moves,
    assumptions: Assumptions,
    transfers: Vec<Transfer>,
    adds_waits: bool,
    /// Begin of the measured focus, ticks, and for each location where a simulated one may begin and end.
    focus: (i64, Vec<Edges>),
}

/// A changed run.
#[derive(Debug)]
pub struct Simulation {
    shape: Shape,
    pub(super) times: Times,
    /// Begin and end, ticks.
    pub span: (i64, i64),
    /// Begin and end of the simulated focus, ticks.
    pub focus: (i64, i64),
    /// What was assumed.
    pub assumptions: Assumptions,
    /// Notes on the hypotheses.
    pub notes: Vec<String>,
}

impl Simulator {
    /// How often each event counts towards the progress of building the graph.
    pub const PASSES: u64 = 4;

    /// Builds the dependency graph of a run. Collective.
    pub fn new(analysis: &Analysis, model: &Model, progress: &Progress) -> Result<Self> {
        model.check()?;
        let trace = &analysis.trace;
        let pass = || {
            progress.events.fetch_add(trace.events, Ordering::Relaxed);
            go_on(progress)
        };
        let mut builder = Builder::new(trace)?;
        let mut assumptions = Assumptions::default();
        let mut cut = if model.cuts() { Cut::new(trace, &builder, &model.cut_regions)? } else { Cut::default() };
        let mut moves = Moves::new(trace, &model.overlaps, &model.splits, &mut assumptions)?;
        if model.cuts() {
            whole_epochs::refuse_open(trace, &builder, &analysis.epochs, &cut)?;
        }
        let sizes = messages::collect(analysis, model, &mut cut, &mut builder, &mut assumptions)?;
        pass()?;
        let nodes = model.network.as_ref().map(|_| nodes(trace)).unwrap_or_default();
        let network = model.network.as_ref().map(|network| (network, &nodes[..]));
        let mut also = collectives::collect(trace, &cut, network, &mut builder, &mut assumptions)?;
        also.extend(intercomms::collect(trace, &cut, network, &mut builder, &mut assumptions)?);
        pass()?;
        one_sided::collect(analysis, model, network, &mut builder, &mut assumptions)?;
        threads::collect(trace, &mut builder);
        let alone = analysis.devices.alone(trace);
        devices::collect(trace, &analysis.devices, &alone, &mut builder);
        // The first process has the devices and the diagnostics of all.
        let is_root = trace.exchange.is_root();
        assumptions.count(Assumption::UnmatchedKernel, if is_root { analysis.devices.unmatched_kernels } else { 0 });
        assumptions.count(Assumption::UnrecordedHost, if is_root { alone.len() as u64 } else { 0 });
        if model.cuts() {
            if !cut.settle(trace, &builder, also)? {
                return Err(Error::Usage("no message in the run matches what is to be cut".into()));
            }
            cut.remove(idle_tests(trace.reread(), &cut)?);
            cut.tell(trace, &builder)?;
            cut.prune(&mut builder);
        }
        pass()?;
        builder.deal()?;
        let estimates =
            if model.estimates && network.is_none() { Estimates::new(trace, &builder)? } else { Estimates::default() };
        let (hidden, time) = estimates.hidden(trace, &builder);
        assumptions.concern(Assumption::HiddenTransfer, hidden, time);
        let (polls, time) = polls(trace);
        assumptions.concern(Assumption::Polling, polls, time);
        let transfers = estimates.transfers(&sizes);
        if !moves.is_empty() {
            moves.apply(trace, &mut builder, &mut assumptions)?;
        }
        builder.number_stops()?;
        if !moves.is_empty() {
            moves.redirect(trace, &mut builder)?;
            builder.sort();
        }
        let graph = builder.finish(trace, &|arcs, begin, leave, weights| {
            if arcs.iter().any(|arc| arc.cost != MEASURED) {
                network::weigh(arcs, weights);
            } else {
                estimates.weigh(arcs, begin, leave, weights);
            }
        })?;
        let notes = |kinds: &[DiagnosticKind]| -> u64 {
            kinds.iter().map(|&kind| analysis.diagnostics.occurrences(kind)).sum()
        };
        let unmatched = [
            DiagnosticKind::UnmatchedSend,
            DiagnosticKind::UnmatchedReceive,
            DiagnosticKind::IncompleteCollective,
            DiagnosticKind::MixedCollective,
        ];
        assumptions.count(Assumption::Unmatched, if is_root { notes(&unmatched) } else { 0 });
        let assumptions = assumptions.of_all(&trace.exchange)?;
        let (begin, end, rule) =
            analysis.focus.map_or((0, i64::MAX, Rule::Whole), |focus| (focus.begin, focus.end, focus.rule));
        let focus = (begin, focus::edges(trace, rule, end));
        Ok(Self { graph, cut, moves, assumptions, transfers, adds_waits: model.adds_waits(), focus })
    }

    /// Transfer times by locality, protocol and size, for classes with enough receives that had to wait.
    pub fn transfers(&self) -> &[Transfer] {
        &self.transfers
    }

    /// Applies hypotheses in their order. Collective.
    pub fn simulate(&self, analysis: &Analysis, hypotheses: &[Hypothesis], progress: &Progress) -> Result<Simulation> {
        let trace = &analysis.trace;
        let (shape, notes) = Shape::new(trace, &self.graph, &self.cut, hypotheses)?;
        go_on(progress)?;
        let times = retime::evaluate(trace, &self.graph, &shape, &self.focus.1)?;
        let circular = &times.circular;
        if self.adds_waits && circular.number > 0 {
            let own = circular.own.iter().filter(|(number, ..)| *number < NAMED);
            let own: Vec<(usize, String)> =
                own.map(|&(number, location, step)| (number, self.place(trace, (location, step)))).collect();
            let mut places: Vec<(usize, String)> = trace.exchange.allgather(own)?.into_iter().flatten().collect();
            places.sort_unstable();
            let places: Vec<String> = places.into_iter().map(|(_, place)| place).collect();
            return Err(Error::Usage(format!(
                "the changed run is a deadlock: calls wait for each other, by their ends in the measured run: {}",
                places.join("; ")
            )));
        }
        let mut assumptions = self.assumptions.clone();
        assumptions.count(Assumption::Circular, circular.number as u64);
        for (inverted, waiting) in trace.exchange.allgather(self.inverted(&times))? {
            assumptions.concern(Assumption::InvertedLock, inverted, waiting);
        }
        let spans = times.spans(trace, &self.focus.1)?;
        Ok(Simulation { shape, times, span: spans.run, focus: self.focus_in(spans), assumptions, notes })
    }

    /// The focus of a simulated run: it begins as in the measured one if no call decides that.
    fn focus_in(&self, Spans { focus: (begin, end), .. }: Spans) -> (i64, i64) {
        (if begin == i64::MIN { self.focus.0 } else { begin }, end)
    }

    /// Number of lock epochs that now request their lock before the epoch that they follow, but did not in the
    /// measured run, and how long they wait for it, ticks.
    fn inverted(&self, times: &Times) -> (u64, i64) {
        let measured = |place: u32| self.graph.time(place);
        let new = |place: u32| measured(place) + times.shift(place as usize);
        let turns = self
            .graph
            .turns
            .iter()
            .filter(|[first, second, _, _]| measured(*first) <= measured(*second) && new(*second) < new(*first));
        turns.fold((0, 0), |(count, time), &[_, _, release, blocked]| {
            (count + 1, time + (new(release) - new(blocked)).max(0))
        })
    }

    /// Names a step: its call, location and time.
    fn place(&self, trace: &Trace, (location, step): (LocationId, usize)) -> String {
        let label = trace.definitions.label(&trace.definitions.locations[location]);
        let begin = trace.span().map_or(0, |(first, _)| first);
        let seconds = (self.graph.times[step] - begin) as f64 / trace.resolution as f64;
        let shard = trace.shard(location);
        let i = shard.local(location);
        // After the last event there is no call.
        let position = self.graph.steps[step].position.min(shard.event_offsets[i + 1] - 1);
        let region = trace.tree.region(shard.events.callpath(position));
        format!("{} of {label} at {seconds:.6} s", trace.regions.name(trace.records(), region))
    }

    /// Lengths of the run and of its focus under several lists of hypotheses, ticks: as many at a time as there are
    /// lanes. A list that cannot be applied gives an error, and costs the others nothing. Collective.
    pub fn lengths(
        &self,
        analysis: &Analysis,
        candidates: &[Vec<Hypothesis>],
        progress: &Progress,
    ) -> Result<Vec<Result<(i64, i64)>>> {
        let trace = &analysis.trace;
        let together = |candidates: &[Vec<Hypothesis>]| -> Result<Vec<Result<(i64, i64)>>> {
            go_on(progress)?;
            let (shape, refused) = Shape::lanes(trace, &self.graph, &self.cut, candidates)?;
            let edges = &self.focus.1;
            let lengths = |spans: Spans| {
                let (begin, end) = self.focus_in(spans);
                Ok((length(spans.run)?, end - begin))
            };
            let mut lengths: Vec<Result<(i64, i64)>> = if candidates.len() == 1 {
                vec![lengths(retime::evaluate(trace, &self.graph, &shape, edges)?.spans(trace, edges)?)]
            } else {
                let spans = retime::spans::<LANES>(trace, &self.graph, &shape, edges)?;
                spans.into_iter().take(candidates.len()).map(lengths).collect()
            };
            for (lane, error) in refused {
                lengths[lane as usize] = Err(Error::Usage(error));
            }
            Ok(lengths)
        };
        let found: Vec<Vec<Result<(i64, i64)>>> = if trace.exchange.processes() == 1 {
            candidates.chunks(LANES).collect::<Vec<_>>().into_par_iter().map(together).collect::<Result<_>>()?
        } else {
            candidates.chunks(LANES).map(together).collect::<Result<_>>()?
        };
        Ok(found.into_iter().flatten().collect())
    }

    /// New times of all Enters and Leaves of this process of the analysis, by shard and in the order of its events, ticks.
    pub fn events(&self, trace: &Trace, simulation: &Simulation) -> Vec<Vec<i64>> {
        retime::all_events(trace, &self.graph, &simulation.shape, &simulation.times)
    }

    /// Measured and new times of the Enters and Leaves of a location, ticks. Collective; at the first process.
    pub fn times_of(&self, trace: &Trace, simulation: &Simulation, location: LocationId) -> Result<Vec<(i64, i64)>> {
        let mut own = Vec::new();
        if trace.owns(location) {
            let (shard, all) = (trace.shard(location), self.events(trace, simulation));
            let events = shard.events_of(location);
            let new = &all[trace.position(location)][events.clone()];
            own.extend(shard.events.time[events].iter().copied().zip(new.iter().copied()));
        }
        trace.exchange.gatherv(own)
    }

    /// Measured and new times of Enters and Leaves, by location and in order, ticks: all of them, or if there are more
    /// than `most`, for each location the first, the last, and evenly spaced ones between. Collective; at the first process.
    pub fn times(&self, trace: &Trace, simulation: &Simulation, most: usize) -> Result<Vec<(LocationId, i64, i64)>> {
        let all = self.events(trace, simulation);
        let own: usize = all.iter().map(Vec::len).sum();
        let total = trace.exchange.sum(own)?;
        let step = total.div_ceil(most.max(1)).max(1);
        let mut rows = Vec::with_capacity(own / step + 2 * trace.own_locations().len());
        for (shard, new) in trace.shards.iter().zip(&all) {
            for location in shard.locations {
                let events = shard.events_of(location);
                let Some(last) = events.clone().last() else { continue };
                let chosen = events.step_by(step).chain([last]);
                rows.extend(chosen.map(|event| (location, shard.events.time[event], new[event])));
            }
        }
        trace.exchange.gatherv(rows)
    }
}

impl Simulation {
    /// Gives this run the clock properties of the measured one.
    pub(super) fn set_clock(&self, clock: &mut ClockProperties) {
        let first = self.span.0.max(0) as u64;
        clock.global_offset = clock.global_offset.min(first);
        clock.trace_length = (self.span.1.max(0) as u64).saturating_sub(clock.global_offset);
    }

    /// From the begin to the end of the simulated focus, ticks.
    pub fn focus_length(&self) -> i64 {
        self.focus.1 - self.focus.0
    }

    /// From the first to the last event, ticks; an error if there is none.
    pub fn length(&self) -> Result<i64> {
        length(self.span)
    }
}

fn length((first, last): (i64, i64)) -> Result<i64> {
    if first > last { Err(Error::Trace("nothing was recorded".into())) } else { Ok(last - first) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::analysis::tests::shipped;
    use crate::analysis::{Monitor, Options, analyze};
    use crate::parallel::exchange::{Transport, threads};
    use crate::parallel::pool;
    use crate::trace::{CallPath, RegionClass};
    use crate::whatif::{Balance, Balancing, Key, MessageCut, Network, Overlap, Selection};

    /// All call paths of computation.
    fn computation(trace: &Trace) -> Selection {
        let is_one = |path: &CallPath| trace.regions.class(path.region) == RegionClass::Other;
        let roots = trace.tree.nodes().iter().map(is_one).collect();
        Selection { roots, text: "computation".to_owned(), ..Selection::default() }
    }

    fn hypotheses(trace: &Trace) -> Vec<Vec<Hypothesis>> {
        let selection = computation(trace);
        let half = Hypothesis::Scale { selection: selection.clone(), factor: 0.5, min_span: 0 };
        let even = |mode| Hypothesis::Balance {
            selection: selection.clone(),
            balancing: Balancing { mode, by: 1.0, is_uneven: true, groups: Vec::new() },
        };
        let nothing = Selection { locations: vec![false; trace.definitions.locations.len()], ..selection.clone() };
        let nothing = Hypothesis::Scale { selection: nothing, factor: 0.5, min_span: 0 };
        let less = Hypothesis::Overhead { ticks: 3, least: 1 };
        vec![
            vec![],
            vec![half.clone()],
            vec![even(Balance::Scaled)],
            vec![nothing],
            vec![even(Balance::Instance), less],
            vec![half, even(Balance::Median)],
        ]
    }

    /// All call paths of calls with one of these names.
    fn calls(trace: &Trace, names: &[&str]) -> Selection {
        let is_one = |path: &CallPath| names.contains(&trace.regions.name(trace.records(), path.region));
        let roots = trace.tree.nodes().iter().map(is_one).collect();
        Selection { roots, text: names.join(", "), ..Selection::default() }
    }

    fn models(trace: &Trace) -> Vec<Model> {
        let network = Network {
            latency: 1000.0,
            bandwidth: 2.0,
            local_latency: 500.0,
            local_bandwidth: 4.0,
            send: 20,
            receive: 30,
        };
        let cut = |names: &[&str]| Model { cut_regions: vec![calls(trace, names)], ..Model::default() };
        let of_first = MessageCut { conditions: vec![(Key::From, u64::eq, 0)], callpaths: Vec::new() };
        let later = calls(trace, &["MPI_Send", "MPI_Recv", "MPI_Wait", "MPI_Waitall"]);
        let overlap = Overlap { selection: later, after: Vec::new() };
        vec![
            Model::default(),
            Model { estimates: false, asynchronous_progress: true, ..Model::default() },
            Model { eager_limit: Some(100), ..Model::default() },
            Model { network: Some(network), ..Model::default() },
            cut(&["MPI_Send", "MPI_Isend"]),
            cut(&["MPI_Barrier", "MPI_Allreduce", "MPI_Reduce"]),
            cut(&["MPI_Win_fence", "MPI_Put", "MPI_Get", "MPI_Accumulate"]),
            Model { cut_messages: vec![of_first], ..Model::default() },
            Model { overlaps: vec![overlap], ..Model::default() },
            Model { splits: vec![calls(trace, &["MPI_Sendrecv"])], ..Model::default() },
        ]
    }

    /// What simulations of a run say, as comparable lines; those of the first process.
    fn lines(recording: &Arc<dyn whywait_otf2::Recording>, transport: Option<Arc<dyn Transport>>) -> Vec<String> {
        let options = Options { shard_events: 1, ..Options::default() };
        let analysis = Arc::new(analyze(recording.clone(), &options, transport, &Monitor::default()).unwrap());
        let (trace, progress) = (&analysis.trace, Progress::default());
        let mut lines = Vec::new();
        for model in models(trace) {
            let simulator = match Simulator::new(&analysis, &model, &progress) {
                Ok(simulator) => Arc::new(simulator),
                Err(error) => {
                    lines.push(error.to_string());
                    continue;
                }
            };
            lines.push(format!("{:?}", simulator.transfers()));
            let lists = hypotheses(trace);
            let lengths = simulator.lengths(&analysis, &lists, &progress).unwrap();
            lines.extend(lengths.iter().map(|length| format!("{length:?}")));
            for list in &lists {
                match simulator.simulate(&analysis, list, &progress) {
                    Ok(simulation) => {
                        let assumptions: Vec<_> = simulation.assumptions.iter().collect();
                        let Simulation { span, focus, notes, .. } = &simulation;
                        lines.push(format!("{span:?} {focus:?} {notes:?} {assumptions:?}"));
                        let times = simulator.times(trace, &simulation, usize::MAX).unwrap();
                        lines.extend(times.iter().map(|row| format!("{row:?}")));
                        let again = crate::whatif::Simulated::new(
                            analysis.clone(),
                            simulator.clone(),
                            Arc::new(simulation),
                            String::new(),
                        );
                        let transport = trace.exchange.transport();
                        let again =
                            analyze(Arc::new(again.unwrap()), &options, transport, &Monitor::default()).unwrap();
                        lines.extend(again.severities.iter().map(|cell| format!("{cell:?}")));
                    }
                    Err(error) => lines.push(error.to_string()),
                }
            }
        }
        lines
    }

    /// Shipped traces: whatever the number of threads, the simulated runs are the same.
    #[test]
    fn the_changed_run_does_not_depend_on_threads() {
        for case in ["mixed", "sor_gats", "sor_locks", "omp_nested"] {
            let recording = shipped(case);
            let on = |threads| pool::new(threads).unwrap().install(|| lines(&recording, None));
            assert_eq!(on(1), on(7), "{case}");
        }
    }

    /// Shipped traces: whatever the number of processes, the simulated runs and their analyses are the same.
    #[test]
    fn the_changed_run_does_not_depend_on_processes() {
        for case in [
            "p2p",
            "collectives",
            "mixed",
            "sor_fence",
            "sor_gats",
            "sor_locks",
            "rma_progress",
            "intercomm",
            "omp_nested",
        ] {
            let recording = shipped(case);
            let expected = lines(&recording, None);
            for processes in 2..4 {
                let found = threads::run(processes, |transport| lines(&recording, Some(transport)));
                for (line, expected) in found[0].iter().zip(&expected) {
                    assert_eq!(line, expected, "{case}: {processes} processes");
                }
                assert_eq!(found[0].len(), expected.len(), "{case}");
            }
        }
    }
}
