//! The what-if simulator: hypotheses in, new times out.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use whywait_core::account::Excess;
use whywait_core::analysis::Analysis as CoreAnalysis;
use whywait_core::export::archive;
use whywait_core::ids::LocationId;
use whywait_core::trace::decode::Progress;
use whywait_core::trace::nodes::nodes;
use whywait_core::whatif::{
    Balance, Balancing, Compare, Hypothesis, Key, MessageCut, Model, Network, Numbers, Overlap, Part, Selection,
    Simulated, Simulation as CoreSimulation, Simulator as CoreSimulator,
};

use crate::analysis::Analysis;
use crate::arrow::Table;
use crate::errors::{UsageError, core_error};
use crate::rows::Rows;
use crate::run::Run;

/// Which instances a hypothesis is about, as Python compiles it.
#[derive(FromPyObject)]
struct Selected {
    text: String,
    roots: Vec<bool>,
    below: Vec<bool>,
    /// Segment of each instance; -1 is the last.
    part: Option<i64>,
    locations: Vec<bool>,
    /// First and last number; -1 for the last there is.
    instances: Option<(i64, i64)>,
    /// Seconds since the begin of the trace.
    window: Option<(f64, f64)>,
}

/// A hypothesis as Python compiles it; times in seconds.
#[derive(FromPyObject)]
struct Change {
    kind: String,
    selection: Option<Selected>,
    /// A factor, a length, a part.
    value: f64,
    /// The least length that is scaled, or that an overhead leaves.
    min_span: f64,
    mode: Option<String>,
    uneven: bool,
    among: Option<Among>,
}

/// Groups inside of which a balance moves time: "node", "process", "comm" with its id, or "locations" with those that are meant.
type Among = (String, u64, Vec<bool>);

/// Conditions on numbers of a message (key, relation, number), and the call paths of the sends.
type Conditions = (Vec<(String, String, u64)>, Vec<bool>);

/// A run that can be simulated: it is known who waits for whom.
#[pyclass(frozen, weakref, module = "whywait._native")]
pub(crate) struct Simulator {
    analysis: Py<Analysis>,
    core: Arc<CoreSimulator>,
    /// What calls take beyond the fastest of their kind, once a hypothesis asks for it.
    excess: OnceLock<Arc<Excess>>,
}

/// A simulated run.
#[pyclass(frozen, weakref, module = "whywait._native")]
pub(crate) struct Simulation {
    simulator: Py<Simulator>,
    result: Arc<CoreSimulation>,
}

#[pymethods]
impl Simulator {
    /// Finds the dependencies of an analyzed run. Collective. `hidden` says whether transfers that nobody waited for are estimated.
    /// The others change the run: whether one-sided operations need nobody at the target, which messages go by
    /// rendezvous, by size or by the call paths of their sends, what is cut, whose waits come later (and behind which call paths), what is split, and the network: latency (s) and bandwidth
    /// (bytes/s) between nodes and on one, what a send and a receive take (s).
    #[new]
    #[pyo3(signature = (analysis, *, hidden=true, asynchronous=false, eager_limit=None, protocols=Vec::new(),
        cut_regions=Vec::new(), cut_messages=Vec::new(), overlaps=Vec::new(), splits=Vec::new(), network=None, threads=None, progress=None))]
    #[expect(clippy::too_many_arguments, reason = "they are named where it is called")]
    fn new(
        py: Python<'_>,
        analysis: Py<Analysis>,
        hidden: bool,
        asynchronous: bool,
        eager_limit: Option<u64>,
        protocols: Vec<(Vec<bool>, bool)>,
        cut_regions: Vec<Selected>,
        cut_messages: Vec<Conditions>,
        overlaps: Vec<(Selected, Vec<bool>)>,
        splits: Vec<Selected>,
        network: Option<[f64; 6]>,
        threads: Option<usize>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let select = |selected| selection(analysis.get(), selected);
        let cut_regions = cut_regions.into_iter().map(select).collect();
        let cut_messages = cut_messages.into_iter().map(message_cut).collect::<PyResult<_>>()?;
        let model = Model {
            estimates: hidden,
            asynchronous_progress: asynchronous,
            eager_limit,
            protocols,
            cut_regions,
            cut_messages,
            overlaps: overlaps.into_iter().map(|(of, after)| Overlap { selection: select(of), after }).collect(),
            splits: splits.into_iter().map(select).collect(),
            network: network.map(|numbers| of_numbers(analysis.get(), numbers)),
        };
        let expected = CoreSimulator::PASSES * analysis.get().result.trace.events;
        let build = move |result: &CoreAnalysis, state: &Progress| CoreSimulator::new(result, &model, state);
        let simulator = analysis.get().stage(py, ("arcs", expected), (threads, progress), build)?;
        Ok(Self { analysis, core: Arc::new(simulator), excess: OnceLock::new() })
    }

    /// What messages took where enough receives had to wait for them: whether on a node, whether by rendezvous, mean
    /// size (bytes), time (s).
    fn transfers(&self) -> Vec<(bool, bool, f64, f64)> {
        let resolution = self.analysis.get().result.trace.resolution as f64;
        let transfers = self.core.transfers().iter();
        transfers.map(|of| (of.is_local, of.is_rendezvous, of.bytes, of.ticks as f64 / resolution)).collect()
    }

    /// Applies hypotheses in their order. Collective.
    #[pyo3(signature = (changes, *, threads=None, progress=None))]
    fn simulate(
        slf: Bound<'_, Self>,
        changes: Vec<Change>,
        threads: Option<usize>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Simulation> {
        let analysis = slf.get().analysis.get();
        let compile = |change| slf.get().hypothesis(slf.py(), change);
        let hypotheses = changes.into_iter().map(compile).collect::<PyResult<Vec<_>>>()?;
        let core = slf.get().core.clone();
        let simulate = move |result: &CoreAnalysis, state: &Progress| core.simulate(result, &hypotheses, state);
        let expected = analysis.result.trace.events;
        let result = analysis.stage(slf.py(), ("simulate", expected), (threads, progress), simulate)?;
        Ok(Simulation { simulator: slf.unbind(), result: Arc::new(result) })
    }

    /// Lengths of the run and of its focus under several lists of hypotheses, s; these are evaluated together. None for
    /// one that cannot be applied. Collective.
    #[pyo3(signature = (candidates, *, threads=None))]
    fn lengths(
        slf: Bound<'_, Self>,
        candidates: Vec<Vec<Change>>,
        threads: Option<usize>,
    ) -> PyResult<Vec<Option<(f64, f64)>>> {
        let analysis = slf.get().analysis.get();
        let compile = |of: Vec<Change>| of.into_iter().map(|change| slf.get().hypothesis(slf.py(), change)).collect();
        let candidates = candidates.into_iter().map(compile).collect::<PyResult<Vec<Vec<Hypothesis>>>>()?;
        let resolution = analysis.result.trace.resolution as f64;
        let core = slf.get().core.clone();
        let evaluate = move |result: &CoreAnalysis, state: &Progress| core.lengths(result, &candidates, state);
        let seconds = |lengths: whywait_core::Result<(i64, i64)>| match lengths {
            Ok((run, focus)) => Ok(Some((run as f64 / resolution, focus as f64 / resolution))),
            Err(whywait_core::Error::Usage(_)) => Ok(None),
            Err(error) => Err(core_error(error)),
        };
        let lengths =
            analysis.stage(slf.py(), ("simulate", analysis.result.trace.events), (threads, None), evaluate)?;
        lengths.into_iter().map(seconds).collect()
    }
}

#[pymethods]
impl Simulation {
    /// From the first to the last event, s.
    fn length(&self) -> PyResult<f64> {
        let resolution = self.analysis().result.trace.resolution as f64;
        Ok(self.result.length().map_err(core_error)? as f64 / resolution)
    }

    /// From the begin of the measured focus to the end of the simulated one, s.
    fn focus_length(&self) -> f64 {
        self.analysis().seconds(self.result.focus_length())
    }

    /// What was assumed: name, text, how often, and how many seconds it concerns if that is known.
    fn assumptions(&self) -> Vec<(&'static str, &'static str, u64, Option<f64>)> {
        let resolution = self.analysis().result.trace.resolution as f64;
        let seconds = |time: Option<i64>| time.map(|ticks| ticks as f64 / resolution);
        let all = self.result.assumptions.iter();
        all.map(|(assumption, count, time)| (assumption.name(), assumption.text(), count, seconds(time))).collect()
    }

    /// Writes the run as the archive `name` in a directory; `hypotheses` says what was changed. Collective: each process
    /// writes the events of its locations.
    #[pyo3(signature = (directory, name, hypotheses, *, progress=None))]
    fn write(
        slf: Bound<'_, Self>,
        directory: PathBuf,
        name: String,
        hypotheses: String,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let owned = slf.clone().unbind();
        let write = move |result: &CoreAnalysis, state: &Progress| {
            archive::write(&owned.get().recording(hypotheses)?, &result.trace, (&directory, &name), state)
        };
        let expected = slf.get().analysis().result.trace.events;
        slf.get().analysis().stage(slf.py(), ("write", expected), (None, progress), write)
    }

    /// The run, to analyze it without writing it; `hypotheses` says what was changed. Collective: the same processes share
    /// its analysis.
    fn run(slf: Bound<'_, Self>, hypotheses: String) -> PyResult<Run> {
        let owned = slf.clone().unbind();
        let recording = move |_: &CoreAnalysis| owned.get().recording(hypotheses);
        Ok(Run::new(Arc::new(slf.get().analysis().collective(slf.py(), recording)?)))
    }

    /// What is to be said of the hypotheses.
    fn notes(&self) -> Vec<String> {
        self.result.notes.clone()
    }

    /// Measured and new times of the Enters and Leaves of a location, ticks. Collective; at the first process.
    fn events(&self, py: Python<'_>, location: u32) -> PyResult<Table> {
        let trace = &self.analysis().result.trace;
        let location = LocationId::new(location);
        if location.index() >= trace.definitions.locations.len() {
            return Err(PyIndexError::new_err("no such location"));
        }
        let (core, simulation) = (self.simulator.get().core.clone(), self.result.clone());
        let times = move |result: &CoreAnalysis| core.times_of(&result.trace, &simulation, location);
        let times = self.analysis().collective(py, times)?;
        Rows::of(&times).column("measured", |times| times.0).column("simulated", |times| times.1).finish()
    }

    /// Measured and new times of Enters and Leaves, by location and in their order, s since the begin of either run:
    /// all of them, or if there are more than `most`, of each location the first, the last, and some in between. Collective;
    /// at the first process.
    fn times(&self, py: Python<'_>, most: usize) -> PyResult<Table> {
        let trace = &self.analysis().result.trace;
        let (core, simulation) = (self.simulator.get().core.clone(), self.result.clone());
        let rows = move |result: &CoreAnalysis| core.times(&result.trace, &simulation, most);
        let rows = self.analysis().collective(py, rows)?;
        let begin = trace.span().map_or(0, |(first, _)| first);
        let seconds = |ticks: i64| ticks as f64 / trace.resolution as f64;
        Rows::of(&rows)
            .column("location", |row| row.0.number())
            .column("measured", |row| seconds(row.1 - begin))
            .column("simulated", |row| seconds(row.2 - self.result.span.0))
            .finish()
    }
}

impl Simulation {
    /// The run with its records; `hypotheses` says what was changed.
    fn recording(&self, hypotheses: String) -> whywait_core::Result<Simulated> {
        let Simulator { analysis, core, .. } = self.simulator.get();
        Simulated::new(analysis.get().result.clone(), core.clone(), self.result.clone(), hypotheses)
    }

    fn analysis(&self) -> &Analysis {
        self.simulator.get().analysis.get()
    }
}

fn of_numbers(analysis: &Analysis, numbers: [f64; 6]) -> Network {
    let resolution = analysis.result.trace.resolution as f64;
    let [latency, bandwidth, local_latency, local_bandwidth, send, receive] = numbers;
    let ticks = |seconds: f64| (seconds * resolution).round_ties_even() as i64;
    Network {
        latency: latency * resolution,
        bandwidth: bandwidth / resolution,
        local_latency: local_latency * resolution,
        local_bandwidth: local_bandwidth / resolution,
        send: ticks(send),
        receive: ticks(receive),
    }
}

fn message_cut((conditions, callpaths): Conditions) -> PyResult<MessageCut> {
    let condition = |(key, relation, number): (String, String, u64)| {
        let key = match key.as_str() {
            "size" => Key::Size,
            "tag" => Key::Tag,
            "from" => Key::From,
            "to" => Key::To,
            "comm" => Key::Comm,
            _ => return Err(UsageError::new_err(format!("messages have no {key}"))),
        };
        let holds: Compare = match relation.as_str() {
            "==" => u64::eq,
            "!=" => u64::ne,
            "<" => u64::lt,
            "<=" => u64::le,
            ">" => u64::gt,
            ">=" => u64::ge,
            _ => return Err(UsageError::new_err(format!("unknown relation {relation}"))),
        };
        Ok((key, holds, number))
    };
    Ok(MessageCut { conditions: conditions.into_iter().map(condition).collect::<PyResult<_>>()?, callpaths })
}

fn selection(analysis: &Analysis, selected: Selected) -> Selection {
    let trace = &analysis.result.trace;
    let ticks = |seconds: f64| (seconds * trace.resolution as f64).round_ties_even() as i64;
    let begin = trace.span().map_or(0, |(first, _)| first);
    Selection {
        text: selected.text,
        roots: selected.roots,
        below: selected.below,
        part: selected.part.map(|part| u32::try_from(part).map_or(Part::Last, Part::Nth)),
        locations: selected.locations,
        instances: selected.instances.map(|(from, to)| match (u64::try_from(from), u64::try_from(to)) {
            (Ok(from), Ok(to)) => Numbers::Range(from, to),
            _ => Numbers::Last,
        }),
        window: selected.window.map(|(from, to)| (begin.saturating_add(ticks(from)), begin.saturating_add(ticks(to)))),
    }
}

/// The group of each location; `u32::MAX` for those that are in none.
fn groups(analysis: &Analysis, (kind, id, chosen): &Among) -> PyResult<Vec<u32>> {
    let trace = &analysis.result.trace;
    let locations = trace.definitions.locations.iter();
    let member = |is_one: bool| if is_one { 0 } else { u32::MAX };
    match kind.as_str() {
        "node" => {
            let nodes = nodes(trace);
            Ok(locations.map(|of| nodes.get(of.process.index()).copied().unwrap_or(u32::MAX)).collect())
        }
        "process" => Ok(locations.map(|of| of.process.number()).collect()),
        "comm" => {
            let comm = trace.definitions.comms.iter().find(|comm| u64::from(comm.id) == *id);
            let comm = comm.ok_or_else(|| UsageError::new_err(format!("the run has no communicator {id}")))?;
            Ok(locations.map(|of| member(comm.rank(of.process).is_some())).collect())
        }
        _ => Ok(chosen.iter().map(|&is_one| member(is_one)).collect()),
    }
}

impl Simulator {
    /// A hypothesis as the core has it.
    fn hypothesis(&self, py: Python<'_>, change: Change) -> PyResult<Hypothesis> {
        let analysis = self.analysis.get();
        let resolution = analysis.result.trace.resolution as f64;
        let ticks = |seconds: f64| (seconds * resolution).round_ties_even() as i64;
        let selection = change.selection.map(|selected| selection(analysis, selected));
        let mode = match change.mode.as_deref() {
            None | Some("instance") => Balance::Instance,
            Some("local") => Balance::Local,
            Some("global") => Balance::Global,
            Some("segment") => Balance::Segment,
            Some("scaled") => Balance::Scaled,
            Some("median") => Balance::Median,
            Some(mode) => return Err(UsageError::new_err(format!("unknown balance mode {mode}"))),
        };
        let Change { kind, value, min_span, uneven: is_uneven, among, .. } = change;
        match (kind.as_str(), selection) {
            ("scale", Some(selection)) => Ok(Hypothesis::Scale { selection, factor: value, min_span: ticks(min_span) }),
            ("set", Some(selection)) => Ok(Hypothesis::Set { selection, ticks: ticks(value) }),
            ("balance", Some(selection)) => {
                let groups = among.map(|among| groups(analysis, &among)).transpose()?.unwrap_or_default();
                Ok(Hypothesis::Balance { selection, balancing: Balancing { mode, by: value, is_uneven, groups } })
            }
            ("trim", Some(selection)) => Ok(Hypothesis::Trim { selection, excess: self.excess(py)? }),
            // An ideal one needs nothing of the graph.
            ("network", Some(selection)) if value <= 0.0 => {
                Ok(Hypothesis::Scale { selection, factor: 0.0, min_span: 0 })
            }
            ("network", Some(selection)) => Ok(Hypothesis::Network { selection }),
            ("overhead", None) => Ok(Hypothesis::Overhead { ticks: ticks(value), least: ticks(change.min_span) }),
            (kind, _) => Err(UsageError::new_err(format!("unknown hypothesis {kind}"))),
        }
    }

    /// What calls take beyond the fastest of their kind.
    fn excess(&self, py: Python<'_>) -> PyResult<Arc<Excess>> {
        if let Some(excess) = self.excess.get() {
            return Ok(excess.clone());
        }
        let found = self.analysis.get().collective(py, CoreAnalysis::excesses)?;
        Ok(self.excess.get_or_init(|| Arc::new(found)).clone())
    }
}
