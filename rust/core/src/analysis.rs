//! Drives the analysis: reads the archive, runs the stages, and collects their results.

use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use whywait_otf2::Recording;

use crate::account::{self, Account};
use crate::causes::factors::{self, Factors};
use crate::causes::{self, Chains, ContendedLock, CostModel, Explanation, IntervalIndex, Synchronized};
use crate::clocks;
use crate::counters::{self, Recorded};
use crate::critical_path::{self, Segment, Stretch};
use crate::diagnostics::{DiagnosticKind, Diagnostics};
use crate::focus::{Focus, Rule};
use crate::ids::CallPathId;
use crate::io::{self, IoCell};
use crate::matching::collectives::Member;
use crate::matching::epochs::Epochs;
use crate::matching::protocol::{Limits, ProtocolClassifier};
use crate::matching::transfers::{self, Transfer};
use crate::matching::{messages, one_sided};
use crate::parallel::exchange::Transport;
use crate::parallel::iter::prelude::*;
use crate::parallel::per_shard::PerShard;
use crate::queues::{self, Queues};
use crate::sampling::{self, Functions, Sampling};
use crate::severity::{self, Cost, Severity};
use crate::trace::Trace;
use crate::trace::decode::Progress;
use crate::trace::load::SHARD_EVENTS;
use crate::waits::collective_sync::CollectiveSyncs;
use crate::waits::device::{self, Devices};
use crate::waits::late_sender::Detected;
use crate::waits::remote_calls::{Call, RemoteCalls};
use crate::waits::rma::{self, OneSided};
use crate::waits::{self, Findings, WaitState, collective, interval, late_receiver, late_sender};
use crate::window;
use crate::{Error, Result};
use whywait_otf2::enums::MetricMode;

/// Options of an analysis.
#[derive(Clone, Debug)]
pub struct Options {
    /// Number of recent Late Senders that a location keeps to detect wrong order.
    pub wrong_order_window: usize,
    /// Whether to find root causes and the critical path.
    pub causes: bool,
    /// The definitions that costs follow.
    pub cost_model: CostModel,
    /// How to replay the queues of messages, if at all.
    pub queues: Option<queues::Options>,
    /// Restricts times, waits, their costs, and the critical path to a window, seconds since the begin of the trace.
    pub window: Option<(f64, f64)>,
    /// Modes of counters by name, where the trace's definitions are wrong.
    pub counter_modes: Vec<(String, MetricMode)>,
    /// Whether a recursive call is part of the outer call of the same function; beyond a depth, it always is.
    pub fold_recursion: bool,
    /// How to correct the clocks.
    pub clocks: clocks::Options,
    /// Approximate minimum of events per shard.
    pub shard_events: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            wrong_order_window: 100,
            causes: true,
            cost_model: CostModel::default(),
            queues: None,
            window: None,
            counter_modes: Vec::new(),
            fold_recursion: false,
            clocks: clocks::Options::default(),
            shard_events: SHARD_EVENTS,
        }
    }
}

named! {
    /// Stages of an analysis, in their order.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[repr(u8)]
    pub enum Stage {
        /// Reading the events.
        Decode = "decode",
        /// Matching messages and detecting their wait states.
        Messages = "messages",
        /// Matching collective operations and detecting their wait states.
        Collectives = "collectives",
        /// Epochs of one-sided communication and their wait states.
        OneSided = "one-sided",
        /// Thread teams, profile, sums.
        Profile = "profile",
        /// Synchronization points: who causes waits is told so.
        Points = "points",
        /// Root causes, critical path.
        Causes = "causes",
    }
}

/// Progress of an analysis, which another thread may read and cancel.
#[derive(Debug, Default)]
pub struct Monitor {
    /// Events decoded, and the wish to stop.
    pub progress: Progress,
    /// Called when a stage begins.
    pub entered: OnceLock<StageCallback>,
    stage: AtomicU8,
}

/// Called when a stage begins.
pub struct StageCallback(pub Box<dyn Fn(Stage) + Send + Sync>);

impl std::fmt::Debug for StageCallback {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("StageCallback")
    }
}

impl Monitor {
    /// The current stage.
    pub fn stage(&self) -> Stage {
        Stage::ALL[usize::from(self.stage.load(Ordering::Relaxed))]
    }

    pub(crate) fn enter(&self, stage: Stage) -> Result<()> {
        self.stage.store(stage as u8, Ordering::Relaxed);
        if let Some(StageCallback(tell)) = self.entered.get() {
            tell(stage);
        }
        if self.progress.is_cancelled() { Err(Error::Interrupted) } else { Ok(()) }
    }
}

/// Root causes and the critical path.
#[derive(Debug)]
pub struct Causes {
    /// Costs, classes of waits, impacts, sorted by metric, call path and location.
    pub costs: Vec<Cost>,
    /// Delay costs of the parts of waits inside the focus, and their unexplained rest; `None` if all waits lie inside
    /// it, or there is no focus.
    pub focus_costs: Option<Vec<Cost>>,
    /// One entry per wait state; `None` for those without costs.
    pub explanations: PerShard<Option<Explanation>>,
    /// The critical path, in the order of time; of several processes, the first has it.
    pub path: Vec<Segment>,
    /// Its stretches, by location; only those of this process.
    pub(crate) stretches: Vec<Stretch>,
    /// The intervals of each shard of this process.
    intervals: Vec<IntervalIndex>,
    /// The locks of threads that others waited for, of each shard of this process.
    locks: Vec<Vec<ContendedLock>>,
    /// What delayed the kernels that communicate, of all processes.
    chains: Chains,
    model: CostModel,
}

/// The result: the trace, and all findings.
///
/// Of several processes, each keeps the events of its shards and what it found there. The first has the findings of all,
/// its own before those of others. A *collective* function is called by all processes, and the first gets its result.
#[derive(Debug)]
pub struct Analysis {
    /// The trace.
    pub trace: Trace,
    /// Cells that are not zero, by metric, call path, location.
    pub severities: Vec<Severity>,
    /// Wait states by location, time and kind.
    pub waits: PerShard<WaitState>,
    /// Root causes and the critical path, if asked for; their severities stand among the others.
    pub causes: Option<Causes>,
    /// The largest eager messages.
    pub limits: Limits,
    /// Epochs of one-sided communication, one entry per shard; empty if there is no such communication.
    pub epochs: Vec<Epochs>,
    /// Whether there are calls of GASPI or UPC, and no record tells what they did.
    pub is_silent: bool,
    /// Counters of messages and queues, if asked for.
    pub queues: Option<Queues>,
    /// Totals of the recorded counters.
    pub counters: Recorded,
    /// Activity of accelerators, and of the hosts that use them.
    pub devices: Devices,
    /// The part of the run that shares refer to; `None` if there are no events.
    pub focus: Option<Focus>,
    /// The account of all time in the focus.
    pub account: Account,
    /// Samples of the call path.
    pub sampling: Sampling,
    /// What these say about functions between events.
    pub functions: Functions,
    /// What was done with files, by location and call path.
    pub io: Vec<IoCell>,
    /// Inconsistencies of the trace.
    pub diagnostics: Diagnostics,
    /// What is known about the clocks; `None` if nothing is violated.
    pub clocks: Option<clocks::Report>,
    /// Calls of other processes that wait states name.
    calls: RemoteCalls,
    /// Whether more than 1% of the messages arrive before they are sent.
    has_bad_clocks: bool,
    /// Whether the severities are those of a window.
    is_restricted: bool,
}

impl Analysis {
    /// The call of a wait state.
    pub fn call(&self, wait: &WaitState) -> Call {
        self.calls.get(&self.trace, (wait.location, wait.instance))
    }

    /// The call that a wait state waited for, if it is known.
    pub(crate) fn cause(&self, wait: &WaitState) -> Option<Call> {
        let is_known = wait.cause_instance.is_some();
        is_known.then(|| self.calls.get(&self.trace, (wait.cause_location, wait.cause_instance)))
    }

    /// Replaces `enters` by time (ticks) and call path of the calls that some wait states waited for, where known.
    pub fn causing_enters(&self, waits: &[WaitState], enters: &mut Vec<Option<(i64, CallPathId)>>) {
        let names = waits.iter().map(|wait| (wait.cause_location, wait.cause_instance));
        self.calls.enters(&self.trace, names, enters);
    }

    /// When each wait state happened: its position among all, and one or more stretches, in order. Collective; at the first
    /// process.
    pub(crate) fn stretches(&self) -> Result<Vec<(usize, Range<i64>)>> {
        let mut stretches = Vec::new();
        let mut first = self.rows_before()? as usize;
        for waits in self.waits.of_shards().take(self.trace.shards.len()) {
            interval::each_stretch(&self.trace, waits, |i, time| stretches.push((first + i, time.start, time.end)));
            first += waits.len();
        }
        let all = self.trace.exchange.gatherv(stretches)?.into_iter();
        Ok(all.map(|(number, begin, end)| (number, begin..end)).collect())
    }

    /// All transfers of one-sided communication, by location of the origin and time. Collective.
    pub fn transfers(&self) -> Result<Vec<Transfer>> {
        self.trace.exchange.gatherv(transfers::find(&self.trace, &self.epochs)?)
    }

    /// The factors of the wait states with these indexes: the activities to which the cost model attributes them.
    /// Collective.
    pub fn factors(&self, rows: &[u32]) -> Result<Factors> {
        let causes = self.causes.as_ref();
        let causes = causes.ok_or_else(|| Error::Usage("this analysis did not look for causes".to_owned()))?;
        let base = self.rows_before()?;
        let all = self.trace.exchange.allgather(self.waits.len())?[0];
        if let Some(row) = rows.iter().find(|&&row| row as usize >= all) {
            return Err(Error::Usage(format!("there is no wait state {row}: there are {all}")));
        }
        factors::find(
            &self.trace,
            (&self.waits, base),
            (&causes.intervals, &causes.locks, &causes.chains),
            rows,
            causes.model,
        )
    }

    /// The number of wait states of earlier processes. Collective.
    pub(crate) fn rows_before(&self) -> Result<u32> {
        let own = self.waits.before(self.trace.shards.len()) as u32;
        let of_processes = self.trace.exchange.allgather(own)?;
        Ok(of_processes[..self.trace.exchange.rank()].iter().sum())
    }

    /// The segments of the critical path on the locations of this process, by location and in the order of time.
    /// Collective.
    pub(crate) fn own_path(&self) -> Result<Vec<Segment>> {
        let exchange = &self.trace.exchange;
        let mut of_processes = vec![Vec::new(); exchange.processes()];
        for segment in self.causes.iter().flat_map(|causes| &causes.path) {
            of_processes[exchange.process_of(self.trace.shard_of[segment.location])].push(*segment);
        }
        let mut own = exchange.alltoall(of_processes)?.concat();
        own.sort_by_key(|segment| segment.location);
        Ok(own)
    }

    /// Times, waits, the critical path and thread management within a window (in ticks): non-zero cells, sorted by
    /// metric, call path, location. Collective.
    pub fn severities_within(&self, window: &Range<i64>) -> Result<Vec<Severity>> {
        let path = self.causes.as_ref().map_or(&[][..], |causes| &causes.stretches);
        let whole = (!self.is_restricted).then_some(&*self.severities);
        window::severities(&self.trace, &self.waits, path, whole, window)
    }

    /// The account of all time in a window, without devices. Collective.
    pub fn account_within(&self, window: &Range<i64>) -> Result<Account> {
        let devices = std::slice::from_ref(&self.devices);
        let mut account = account::find(&self.trace, &self.waits, devices, window, self.has_bad_clocks, None)?;
        if let Some(causes) = &self.causes {
            account.divide(&window::path_within(&self.trace, (&self.severities, &causes.stretches), window));
        }
        account.gather(&self.trace.exchange)
    }

    /// What calls take beyond the fastest 5% of their kind. Needs the events of all processes.
    pub fn excesses(&self) -> Result<account::Excess> {
        account::excesses(&self.trace, &self.waits, std::slice::from_ref(&self.devices), self.has_bad_clocks)
    }

    /// What takes longer in a window (ticks) while others use the same resource. Collective.
    pub fn sharing(&self, window: &Range<i64>) -> Result<Vec<account::Sharing>> {
        account::sharing(&self.trace, window)
    }

    /// Restricts severities and the critical path to a window; the wait states stay.
    fn restrict(&mut self, window: &Range<i64>) -> Result<()> {
        self.severities = self.severities_within(window)?;
        self.is_restricted = true;
        if let Some(causes) = &mut self.causes {
            causes.path = window::clipped(&causes.path, window).collect();
            causes.costs.retain(|cost| cost.metric.is_delay_cost());
        }
        Ok(())
    }

    /// Gathers the findings of all processes at the first.
    fn gather(self, diagnostics: Vec<Diagnostics>) -> Result<Self> {
        let Self { trace, severities, waits, causes, calls, devices, account, io, .. } = self;
        let exchange = &trace.exchange;
        let diagnostics = exchange.gather_or_keep(diagnostics)?;
        if exchange.processes() == 1 {
            return Ok(Self {
                diagnostics: merge(diagnostics),
                trace,
                severities,
                waits,
                causes,
                calls,
                devices,
                account,
                io,
                ..self
            });
        }
        let calls = calls.gather(&trace, &waits)?;
        let causes = match causes {
            None => None,
            Some(causes) => Some(Causes {
                costs: severity::combine(exchange.gatherv(causes.costs)?),
                focus_costs: if exchange.any(causes.focus_costs.is_some())? {
                    Some(severity::combine(exchange.gatherv(causes.focus_costs.unwrap_or_default())?))
                } else {
                    None
                },
                explanations: causes.explanations.gather(exchange)?,
                ..causes
            }),
        };
        Ok(Self {
            severities: severity::combine(exchange.gatherv(severities)?),
            waits: waits.gather(exchange)?,
            causes,
            calls,
            devices: Devices::all(exchange.gather_or_keep(devices)?),
            account: account.gather(exchange)?,
            io: exchange.gatherv(io)?,
            diagnostics: merge(diagnostics),
            trace,
            ..self
        })
    }
}

/// Merges the diagnostics of all processes stage by stage, as a single process would report them.
fn merge(of_processes: Vec<Vec<Diagnostics>>) -> Diagnostics {
    let mut of_processes: Vec<_> = of_processes.into_iter().map(Vec::into_iter).collect();
    let mut diagnostics = Diagnostics::default();
    loop {
        let stage: Vec<Diagnostics> = of_processes.iter_mut().filter_map(Iterator::next).collect();
        if stage.is_empty() {
            diagnostics.sort();
            return diagnostics;
        }
        for of_process in stage {
            diagnostics.merge(of_process);
        }
    }
}

/// Reads and analyzes a run with the threads of the current pool, and with several processes if there is a transport.
pub fn analyze(
    recording: Arc<dyn Recording>,
    options: &Options,
    transport: Option<Arc<dyn Transport>>,
    monitor: &Monitor,
) -> Result<Analysis> {
    monitor.enter(Stage::Decode)?;
    let shard_events = options.shard_events.max(1);
    let load = move |recording| {
        Trace::load(
            recording,
            shard_events,
            &options.counter_modes,
            options.fold_recursion,
            transport.clone(),
            &monitor.progress,
        )
    };
    let mut clocks = None;
    let needs_census = options.clocks.needs_census();
    // The first stages count violations of messages and collective operations anyway.
    let mut met = Met::find(load(recording)?, options, needs_census, monitor)?;
    if needs_census || met.trace.exchange.any(met.has_clock_violations())? {
        let (trace, is_new, report) = clocks::correct(met.trace, met.constraints.take(), &options.clocks, &load)?;
        clocks = report;
        met = if is_new { Met::find(trace, options, false, monitor)? } else { Met { trace, ..met } };
    }
    let Met { mut trace, counters, mut diagnostics, window, mut found, limits, queues, collective_syncs, .. } = met;
    let of_tasks: Vec<_> = trace.par_shards().map(|shard| waits::tasks::detect(&trace, shard)).collect();
    let mut findings = Vec::with_capacity(of_tasks.len());
    for (shard, detected) in trace.shards.iter_mut().zip(of_tasks) {
        (shard.arrivals, shard.wait_parts) = (detected.arrivals, detected.parts);
        findings.push(detected.findings);
    }
    add(&mut found, findings);

    monitor.enter(Stage::OneSided)?;
    let is_silent = one_sided::is_silent(&trace)?;
    let (one_sided, one_sided_notes) = match one_sided::find(&trace)? {
        None => <(OneSided, Diagnostics)>::default(),
        Some(epochs) => {
            trace.forget_synchronizations();
            let thesis_pairs = options.cost_model != CostModel::Scalasca;
            rma::detect(&trace, epochs, &found, (options.causes, thesis_pairs))?
        }
    };
    diagnostics.push(one_sided_notes);
    add(&mut found, one_sided.findings);

    monitor.enter(Stage::Profile)?;
    let local: Vec<Findings> = trace
        .par_shards()
        .map(|shard| {
            let mut findings = Findings::default();
            for find in waits::OF_ONE_SHARD {
                findings.merge(find(&trace, shard));
            }
            findings
        })
        .collect();
    add(&mut found, local);
    sort(&trace, &mut found);
    let devices = if trace.definitions.has_streams {
        let (devices, of_devices) = device::detect(&trace, &found);
        add(&mut found, of_devices);
        sort(&trace, &mut found);
        devices
    } else {
        Vec::new()
    };
    let mut severities = Vec::new();
    let mut waits = Vec::with_capacity(found.len());
    let mut locks = Vec::with_capacity(found.len());
    let mut all_notes = Diagnostics::default();
    for mut findings in found {
        severities.append(&mut findings.severities);
        waits.push(findings.waits);
        locks.push(findings.locks);
        all_notes.merge(findings.diagnostics);
    }
    diagnostics.push(all_notes);
    let waits = PerShard::new(waits);
    let calls = RemoteCalls::fetch(&trace, &waits)?;
    let focus = Focus::find(&trace, &devices, window.as_ref())?;
    let has_bad_clocks = has_bad_clocks(&trace, &diagnostics)?;
    let mut account = match focus {
        Some(focus) => {
            let mut account = account::find(&trace, &waits, &devices, &focus.window(), has_bad_clocks, Some(&locks))?;
            for node in account::of_nodes(&trace, &waits, &focus.window())? {
                account.cores.extend(node.cores);
                account.together.extend(node.together);
            }
            account
        }
        None => Account::default(),
    };
    let sampling = Sampling::find(&trace)?;
    let mut functions = Functions::default();
    let is_divided = if sampling.count > 0 { sampling::divided(&trace, &sampling)? } else { Vec::new() };
    let causes = if options.causes {
        monitor.enter(Stage::Points)?;
        let chains = Chains::find(&trace, &devices, &waits)?;
        let synchronized = Synchronized {
            of_owners: collective_syncs,
            of_shards: &one_sided.collective_syncs,
            devices: &devices,
            has_chains: !chains.is_empty(),
            locks: &locks,
        };
        let notified = causes::notify(&trace, (&waits, &calls), synchronized, options.cost_model)?;
        drop(locks);
        monitor.enter(Stage::Causes)?;
        let in_focus =
            focus.filter(|focus| matches!(focus.rule, Rule::LastFinalize | Rule::Profiler)).map(|focus| focus.window());
        let how = (options.cost_model, window.as_ref(), in_focus.as_ref());
        let mut found = causes::find(&trace, notified, &chains, how)?;
        // This thread follows the path, because it exchanges data; the others compute costs.
        let mut costs = causes::Costs::default();
        let path = rayon::in_place_scope(|others| {
            others.spawn(|_| costs = found.book(&trace));
            critical_path::find(&trace, &found.tables, options.cost_model)
        })?;
        if let Some(focus) = focus {
            account.divide(&window::path_within(&trace, (&path.severities, &path.stretches), &focus.window()));
        }
        severities.extend(path.severities);
        costs.all.extend(path.costs);
        if sampling.count > 0 {
            let coefficients = found.coefficients(&trace, &is_divided)?;
            functions.costs = sampling::costs(&trace, &sampling, &is_divided, coefficients)?;
        }
        let explanations = found.explain(&waits);
        diagnostics.extend([found.diagnostics, path.diagnostics]);
        Some(Causes {
            costs: severity::combine(costs.all),
            focus_costs: costs.in_focus.map(severity::combine),
            explanations,
            path: path.segments,
            stretches: path.stretches,
            intervals: IntervalIndex::of_tables(found.tables),
            locks: found.locks,
            chains,
            model: options.cost_model,
        })
    } else {
        None
    };
    if sampling.count > 0 {
        let stretches = causes.as_ref().map_or(&[][..], |causes| &causes.stretches);
        let window = focus.map(|focus| focus.window());
        functions.times = sampling::profile(&trace, &sampling, &is_divided, stretches, window.as_ref())?;
    }
    let severities = severity::combine(severities);
    let found = Analysis {
        io: io::find(&trace),
        sampling,
        functions,
        trace,
        severities,
        waits,
        causes,
        limits,
        epochs: one_sided.epochs,
        is_silent,
        queues,
        counters,
        devices: Devices::all(devices),
        focus,
        account,
        diagnostics: Diagnostics::default(),
        clocks,
        calls,
        has_bad_clocks,
        is_restricted: false,
    };
    let mut found = found.gather(diagnostics)?;
    if let Some(window) = window {
        found.restrict(&window)?;
    }
    Ok(found)
}

/// The first stages: who met whom.
struct Met {
    trace: Trace,
    counters: Recorded,
    /// By stage.
    diagnostics: Vec<Diagnostics>,
    window: Option<Range<i64>>,
    /// One entry per shard.
    found: Vec<Findings>,
    limits: Limits,
    queues: Option<Queues>,
    collective_syncs: Vec<CollectiveSyncs>,
    /// What messages and blocking operations say about clocks, if it is needed.
    constraints: Option<Vec<clocks::Found>>,
}

impl Met {
    fn find(mut trace: Trace, options: &Options, needs_constraints: bool, monitor: &Monitor) -> Result<Self> {
        let (counters, of_counters) = counters::collect(&mut trace)?;
        let mut diagnostics = vec![std::mem::take(&mut trace.diagnostics), trace.other_locations(), of_counters];
        let window = options.window.map(|bounds| window::ticks(&trace, bounds));

        monitor.enter(Stage::Messages)?;
        let mut found: Vec<Findings> = trace.shards.iter().map(|_| Findings::default()).collect();
        let of_clocks = needs_constraints.then(|| clocks::OfMessages::new(&trace));
        let (of_messages, limits, (messages, mut constraints)) =
            analyze_messages(&mut trace, options, of_clocks.as_ref(), &mut diagnostics)?;
        for findings in of_messages {
            add(&mut found, findings);
        }
        let queues = options.queues.as_ref().map(|options| queues::replay(&trace, messages, options)).transpose()?;

        monitor.enter(Stage::Collectives)?;
        let bound = |found: &mut clocks::Found, kind, members: &[Member]| {
            if needs_constraints {
                clocks::add_operation(found, kind, members);
            }
        };
        let mut collective = collective::detect(&trace, options.causes, bound)?;
        constraints.extend(collective.more);
        diagnostics.push(collective.diagnostics);
        add(&mut found, collective.findings);
        if let Some((nonblocking, nonblocking_notes)) =
            waits::nonblocking::detect(&trace, &found, &mut collective.syncs)?
        {
            diagnostics.push(nonblocking_notes);
            add(&mut found, nonblocking);
        }
        let constraints = needs_constraints.then_some(constraints);
        let collective_syncs = collective.syncs;
        Ok(Self { trace, counters, diagnostics, window, found, limits, queues, collective_syncs, constraints })
    }

    /// Whether this process found a message or a collective operation that the clocks of its processes turn around.
    fn has_clock_violations(&self) -> bool {
        let of_findings = self.found.iter().map(|findings| &findings.diagnostics);
        of_findings.chain(&self.diagnostics).any(|notes| {
            notes.occurrences(DiagnosticKind::ClockViolationMessage) > 0
                || notes.occurrences(DiagnosticKind::ClockViolationCollective) > 0
        })
    }
}

/// Whether more than 1% of the messages arrive before they are sent.
fn has_bad_clocks(trace: &Trace, diagnostics: &[Diagnostics]) -> Result<bool> {
    let messages = trace.shards.iter().map(|shard| shard.receives.rows.len() as u64).sum();
    let violations = diagnostics.iter().map(|notes| notes.occurrences(DiagnosticKind::ClockViolationMessage)).sum();
    let all: Vec<(u64, u64)> = trace.exchange.allgather((violations, messages))?;
    let (violations, messages) = all.into_iter().fold((0, 0), |sum, own| (sum.0 + own.0, sum.1 + own.1));
    Ok(violations * 100 > messages)
}

/// Orders wait states by location and time. Each stage finds them in order, so a stable sort only has to merge them.
fn sort(trace: &Trace, found: &mut [Findings]) {
    trace.par_shards().zip(found).for_each(|(shard, findings)| {
        let position = |wait: &WaitState| shard.instances.enter[wait.instance];
        findings.waits.sort_by_key(|wait| (wait.location, position(wait), wait.kind));
    });
}

/// Adds the findings of a stage to those of each shard.
fn add(found: &mut [Findings], stage: Vec<Findings>) {
    found.par_iter_mut().zip(stage).for_each(|(found, findings)| found.merge(findings));
}

/// What messages give: findings at the receivers and at the senders, limits of protocols, the messages themselves, and what they
/// say about clocks.
type OfMessages = ([Vec<Findings>; 2], Limits, (Vec<queues::Messages>, Vec<clocks::Found>));

/// Detects Late Senders at the receivers, then Late Receivers at the senders. Passes the matched messages of each shard
/// on, and notes the lead of each message.
fn analyze_messages(
    trace: &mut Trace,
    options: &Options,
    of_clocks: Option<&clocks::OfMessages>,
    diagnostics: &mut Vec<Diagnostics>,
) -> Result<OfMessages> {
    let classifier = &ProtocolClassifier::new(trace);
    let (detected, matching_notes) = messages::match_all(trace, |_, shard, matches| {
        let messages =
            options.queues.as_ref().map(|_| queues::messages(classifier, shard, matches)).unwrap_or_default();
        let constraints = of_clocks.map(|clocks| clocks.of_shard(trace, shard, matches)).unwrap_or_default();
        (late_sender::detect(trace, shard, matches, classifier, options.wrong_order_window), (messages, constraints))
    })?;
    let (detected, passed_on): (Vec<Detected>, Vec<_>) = detected.into_iter().unzip();
    let (messages, constraints) = passed_on.into_iter().unzip();
    diagnostics.push(matching_notes);
    let mut late_senders = Vec::with_capacity(detected.len());
    let mut outgoing = Vec::with_capacity(detected.len());
    let mut candidates = Vec::with_capacity(detected.len());
    let mut all_proofs = Vec::with_capacity(detected.len());
    for (shard, found) in trace.shards.iter_mut().zip(detected) {
        let Detected { findings, late_receivers, candidates: of_shard, proofs, leads } = found;
        for (receive, lead) in shard.receives.rows.iter_mut().zip(leads) {
            receive.lead = lead;
        }
        let mut outbox = trace.exchange.outbox();
        for late in late_receivers {
            outbox.push(late.shard, late);
        }
        late_senders.push(findings);
        outgoing.push(outbox);
        candidates.push(of_shard);
        all_proofs.push(proofs);
    }
    let limits = Limits::new(trace, all_proofs)?.or_default();
    let late_receivers = trace
        .exchange
        .alltoallv(outgoing)?
        .into_par_iter()
        .zip(trace.par_shards())
        .zip(&candidates)
        .map(|((inbox, shard), candidates)| late_receiver::detect(trace, shard, inbox.into_vec(), candidates, limits))
        .collect();
    Ok(([late_senders, late_receivers], limits, (messages, constraints)))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::Path;

    use super::*;
    use crate::parallel::exchange::threads;

    /// A shipped trace.
    pub(crate) fn shipped(case: &str) -> Arc<dyn Recording> {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data");
        Arc::new(whywait_otf2::Archive::open(&data.join(case)).unwrap())
    }

    /// An analysis as comparable lines, costs to 12 digits.
    fn lines(analysis: &Analysis, transfers: &[Transfer]) -> Vec<String> {
        let mut lines = vec![format!("{:?} {:?}", analysis.trace.span(), analysis.trace.events)];
        lines.extend(analysis.trace.tree.nodes().iter().map(|node| format!("{node:?}")));
        lines.extend(analysis.severities.iter().map(|cell| format!("{cell:?}")));
        let mut causes = Vec::new();
        for state in &analysis.waits {
            let WaitState { kind, location, waiting, cause_location, last, .. } = state;
            analysis.causing_enters(std::slice::from_ref(state), &mut causes);
            let calls = (analysis.call(state), &causes);
            lines.push(format!("{kind:?} {location} {waiting} {cause_location} {last:?} {calls:?}"));
        }
        lines.extend(transfers.iter().map(|transfer| {
            let Transfer { kind, epoch, window, bytes, callpath, time, source, destination, end, .. } = transfer;
            format!("{kind:?} {epoch:?} {window:?} {bytes} {callpath} {time} {source} {destination} {end:?}")
        }));
        if let Some(causes) = &analysis.causes {
            lines.extend(causes.path.iter().map(|segment| format!("{segment:?}")));
            for cost in &causes.costs {
                lines.push(format!("{:?} {} {} {:.12e}", cost.metric, cost.callpath, cost.location, cost.value));
            }
            let nothing = Explanation { indirect: 0.0, propagating: 0.0, caused: 0.0 };
            for why in causes.explanations.iter().map(|why| why.unwrap_or(nothing)) {
                lines.push(format!("{:.9e} {:.9e} {:.9e}", why.indirect, why.propagating, why.caused));
            }
        }
        lines.extend(analysis.diagnostics.iter().map(|note| format!("{note:?}")));
        lines
    }

    /// Shipped traces: whatever the number of shards and processes, the result is the same.
    #[test]
    fn the_result_does_not_depend_on_shards_and_processes() {
        let mut compared = 0;
        for case in ["p2p", "collectives", "sor_fence", "sor_gats", "sor_locks", "rma_progress", "intercomm"] {
            let recording = shipped(case);
            for cost_model in [CostModel::Unified, CostModel::Scalasca] {
                let options = Options { cost_model, ..Options::default() };
                let whole = analyze(recording.clone(), &options, None, &Monitor::default()).unwrap();
                let expected = lines(&whole, &whole.transfers().unwrap());
                let options = Options { shard_events: 1, ..options };
                for processes in 1..5 {
                    let found = threads::run(processes, |transport| {
                        let own = analyze(recording.clone(), &options, Some(transport), &Monitor::default()).unwrap();
                        let transfers = own.transfers().unwrap();
                        own.trace.exchange.is_root().then_some((own, transfers))
                    });
                    let (root, transfers) = found[0].as_ref().unwrap();
                    assert!(whole.trace.exchange.shards() < root.trace.exchange.shards());
                    for (line, expected) in lines(root, transfers).iter().zip(&expected) {
                        assert_eq!(line, expected, "{case}: {processes} processes");
                    }
                    assert_eq!(lines(root, transfers).len(), expected.len(), "{case}");
                    compared += expected.len();
                }
            }
        }
        assert!(compared > 10_000);
    }
}
