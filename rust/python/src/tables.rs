//! The results of an analysis as tables.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{Float64Array, UInt32Array};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use whywait_core::analysis::Analysis as CoreAnalysis;
use whywait_core::causes::Class;
use whywait_core::diagnostics::DiagnosticKind;
use whywait_core::ids::ProcessId;
use whywait_core::matching::transfers::EpochKind;
use whywait_core::query::library_calls::{LibraryCalls, library_calls_of_all};
use whywait_core::queues::Cell as QueueCell;
use whywait_core::sampling::FunctionTime;
use whywait_core::schema::Unit;
use whywait_core::severity::{Cost, Severity};
use whywait_core::trace::columns::OperationKind;
use whywait_core::waits::longest;
use whywait_otf2::enums::Paradigm;

use crate::account;
use crate::analysis::Analysis;
use crate::arrow::{Names, Table};
use crate::clocks;
use crate::counters;
use crate::devices;
use crate::errors::core_error;
use crate::factors;
use crate::io;
use crate::job::detached;
use crate::queues;
use crate::reasons;
use crate::recording;
use crate::rows::Rows;
use crate::run::locations_table;
use crate::sampling;
use crate::waits;

/// A time with three significant digits and a unit that fits.
fn duration(seconds: f64) -> String {
    let units = [(1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")];
    let (unit, name) = units.into_iter().find(|(unit, _)| seconds >= unit * 0.9995).unwrap_or(units[3]);
    let value = seconds / unit;
    let decimals = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.decimals$} {name}")
}

impl Analysis {
    /// A table of all cells: integer severities, costs, cells of the replayed queues, and times of sampled call paths.
    fn cells(
        &self,
        counted: &[Severity],
        shares: &[Cost],
        queues: &[QueueCell],
        sampled: &[FunctionTime],
    ) -> PyResult<Table> {
        let mut columns = Cells::default();
        for cell in counted {
            let value = match cell.metric.unit() {
                Unit::Time => self.seconds(cell.value),
                Unit::Count | Unit::Bytes => cell.value as f64,
            };
            columns.push(cell.metric.name(), (cell.callpath.number(), cell.location.number()), value);
        }
        let resolution = self.result.trace.resolution as f64;
        for share in shares {
            columns.push(
                share.metric.name(),
                (share.callpath.number(), share.location.number()),
                share.value / resolution,
            );
        }
        for cell in queues {
            let value = match cell.metric.unit() {
                Unit::Time => self.seconds(cell.value),
                Unit::Count | Unit::Bytes => cell.value as f64,
            };
            columns.push(cell.metric.name(), (cell.callpath.number(), cell.location.number()), value);
        }
        let sampled = sampling::by_place(sampled);
        for &(place, (ticks, _)) in &sampled {
            columns.push(sampling::TIME, place, self.seconds(ticks));
        }
        for &(place, (_, samples)) in sampled.iter().filter(|(_, (_, samples))| *samples > 0) {
            columns.push(sampling::COUNT, place, samples as f64);
        }
        columns.finish()
    }

    fn rank(&self, process: ProcessId) -> i32 {
        self.result.trace.definitions.processes[process].rank as i32
    }
}

/// Columns of a table of cells.
#[derive(Default)]
struct Cells {
    metrics: Names,
    /// Call paths and locations.
    numbers: [Vec<u32>; 2],
    values: Vec<f64>,
}

impl Cells {
    fn push(&mut self, metric: &'static str, (callpath, location): (u32, u32), value: f64) {
        self.metrics.push(metric);
        self.numbers[0].push(callpath);
        self.numbers[1].push(location);
        self.values.push(value);
    }

    fn finish(self) -> PyResult<Table> {
        let [callpaths, locations] = self.numbers;
        Table::new(vec![
            ("metric", self.metrics.finish()),
            ("callpath", Arc::new(UInt32Array::from(callpaths))),
            ("location", Arc::new(UInt32Array::from(locations))),
            ("value", Arc::new(Float64Array::from(self.values))),
        ])
    }
}

#[pymethods]
impl Analysis {
    /// Distinct regions of the call tree.
    fn regions(&self) -> PyResult<Table> {
        let definitions = self.result.trace.records();
        let regions: Vec<_> =
            self.regions.iter().map(|&key| self.result.trace.regions.region(definitions, key)).collect();
        Rows::of(regions.iter().enumerate())
            .column("region", |(number, _)| number as u32)
            .column("name", |(_, region)| region.name.as_ref())
            .column("canonical_name", |(_, region)| region.canonical_name.as_ref())
            .names("paradigm", |(_, region)| region.paradigm.name().unwrap_or("UNKNOWN"))
            .names("role", |(_, region)| region.role.name().unwrap_or("UNKNOWN"))
            .column("file", |(_, region)| region.file.as_ref())
            .column("begin_line", |(_, region)| region.begin_line)
            .column("end_line", |(_, region)| region.end_line)
            .finish()
    }

    /// The call tree: call paths of events, then those that only samples have.
    fn callpaths(&self) -> PyResult<Table> {
        let parents: Vec<Option<u32>> =
            self.result.sampling.callpaths(&self.result.trace.tree).map(|node| node.parent.known()).collect();
        Rows::of(parents.iter().zip(&self.region_of).enumerate())
            .column("callpath", |(number, _)| number as u32)
            .column("parent", |(_, (&parent, _))| parent)
            .column("region", |(_, (_, &region))| region)
            .finish()
    }

    /// All locations.
    fn locations(&self) -> PyResult<Table> {
        locations_table(self.result.trace.records(), &self.result.trace.definitions)
    }

    /// Non-zero severities.
    fn severities(&self) -> PyResult<Table> {
        let costs = self.result.causes.as_ref().map_or(&[][..], |causes| &causes.costs);
        let queues = self.result.queues.as_ref().map_or(&[][..], |queues| &queues.cells);
        self.cells(&self.result.severities, costs, queues, &self.result.functions.times)
    }

    /// Times and waits of a window, in the shape of `severities`; bounds in seconds since the begin of the trace.
    fn window(&self, py: Python<'_>, begin: f64, end: f64) -> PyResult<Table> {
        let window = self.tick(begin)..self.tick(end);
        let cells = self.collective(py, move |result| result.severities_within(&window))?;
        self.cells(&cells, &[], &[], &[])
    }

    /// The account of all time in the focus.
    fn account(&self) -> PyResult<Table> {
        account::cells(self, &self.result.account)
    }

    /// The account of all time in a window, in the shape of `account`; bounds in seconds since the begin of the trace.
    fn account_window(&self, py: Python<'_>, begin: f64, end: f64) -> PyResult<Table> {
        account::window(self, py, (begin, end))
    }

    /// What takes longer between two times (s) while others use the same resource.
    fn sharing(&self, py: Python<'_>, begin: f64, end: f64) -> PyResult<Table> {
        account::sharing(self, py, (begin, end))
    }

    /// The account of devices.
    fn device_account(&self) -> PyResult<Table> {
        account::devices(self)
    }

    /// What was done with files, by call path and location.
    fn io(&self) -> PyResult<Table> {
        io::cells(self)
    }

    /// A table about the clocks of the processes.
    fn clock_table(&self, name: &str) -> PyResult<Table> {
        clocks::table(self, name)
    }

    /// Writes the run as an archive of the same name in a directory, at the times of this analysis; `source` says what it
    /// was made from. Collective: each process writes the events of its locations.
    #[pyo3(signature = (directory, *, source=String::new(), progress=None))]
    fn write_run(
        slf: Bound<'_, Self>,
        directory: PathBuf,
        source: String,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        clocks::write(&slf, directory, source, progress)
    }

    /// What calls need, by kind: the floors of the account.
    fn network(&self) -> PyResult<Table> {
        account::network(self)
    }

    /// Definitions of the trace's counters.
    fn counters(&self) -> PyResult<Table> {
        counters::definitions(self)
    }

    /// Totals of the trace's counters by call path and location.
    fn counter_cells(&self) -> PyResult<Table> {
        counters::cells(self, &self.result.counters.cells)
    }

    /// Kernels, synchronizations, launches without a kernel, and counts.
    fn devices<'py>(&self, py: Python<'py>) -> PyResult<(Table, Table, Table, Bound<'py, PyDict>)> {
        devices::tables(self, py)
    }

    /// What threads do while they starve devices, between two times.
    fn starving(&self, py: Python<'_>, begin: f64, end: f64) -> PyResult<Table> {
        devices::starving(self, py, (begin, end))
    }

    /// Computation of threads while the devices of their process run no kernel, between two times.
    fn host_computation(&self, py: Python<'_>, computes: Vec<bool>, begin: f64, end: f64) -> PyResult<Table> {
        devices::host_computation(self, py, computes, (begin, end))
    }

    /// Totals of the trace's counters in a window of time, in the shape of `counter_cells`.
    fn counter_window(&self, py: Python<'_>, begin: f64, end: f64) -> PyResult<Table> {
        counters::window(self, py, begin, end)
    }

    /// All counters over time, in `bins` of equal width, on groups of `merged` neighboring locations.
    fn counter_courses(&self, py: Python<'_>, merged: usize, bins: usize) -> PyResult<Table> {
        counters::courses(self, py, merged, bins)
    }

    /// Totals of the counters of single locations in intervals of time; with `shared`, of all other counters too.
    #[pyo3(signature = (intervals, shared=false))]
    fn counter_changes(&self, py: Python<'_>, intervals: counters::Intervals, shared: bool) -> PyResult<Table> {
        counters::changes(self, py, &intervals, shared)
    }

    /// Levels of the replayed queues: maxima and means.
    fn queue_levels(&self) -> PyResult<Table> {
        queues::levels(self)
    }

    /// Every increment of the counts of the replayed queues, if requested.
    fn queue_moments(&self) -> PyResult<Table> {
        queues::moments(self)
    }

    /// Levels of the replayed queues by bins.
    fn queue_series(&self) -> PyResult<Table> {
        queues::series(self)
    }

    /// Delay costs, in the shape of `severities`.
    fn delay_costs(&self) -> PyResult<Table> {
        let costs = self.result.causes.as_ref().map_or(&[][..], |causes| &causes.costs);
        let delays: Vec<Cost> = costs.iter().filter(|cost| cost.metric.is_delay_cost()).copied().collect();
        self.cells(&[], &delays, &[], &[])
    }

    /// Delay costs of the waits in the focus, and their unexplained rest, in the shape of `severities`; `None` if they
    /// equal those of the whole run.
    fn focus_costs(&self) -> PyResult<Option<Table>> {
        let costs = self.result.causes.as_ref().and_then(|causes| causes.focus_costs.as_ref());
        costs.map(|costs| self.cells(&[], costs, &[], &[])).transpose()
    }

    /// The critical path in the order of time; times in seconds since the begin of the trace.
    fn critical_path(&self) -> PyResult<Table> {
        let path = self.result.causes.as_ref().map_or(&[][..], |causes| &causes.path);
        let begin = self.begin();
        Rows::of(path)
            .column("location", |segment| segment.location.number())
            .column("from", |segment| self.seconds(segment.from - begin))
            .column("to", |segment| self.seconds(segment.to - begin))
            .column("callpath", |segment| segment.callpath.known().map(i64::from))
            .column("callpath_time", |segment| self.seconds(segment.ticks))
            .column("hop", |segment| segment.hop.map(Class::name))
            .finish()
    }

    /// All wait states.
    fn wait_states(&self, py: Python<'_>) -> PyResult<Table> {
        waits::table(self, py)
    }

    /// The rows in `wait_states` of the longest: of each kind at most `count`, in ascending order.
    fn longest_waits(&self, py: Python<'_>, count: usize) -> PyResult<Vec<usize>> {
        let pool = whywait_core::parallel::pool::new(0).map_err(core_error)?;
        detached(py, || pool.install(|| longest::of_each_kind(&self.result.waits, count)))
    }

    /// The activities to which the cost model attributes wait states, given by their rows in `wait_states`: the
    /// compared intervals, one row per wait with a known cause, and the factors, one row each.
    fn factors(&self, py: Python<'_>, rows: Vec<u32>) -> PyResult<(Table, Table)> {
        factors::tables(self, py, rows)
    }

    /// The locks of threads, those that threads wait for longest first.
    #[pyo3(signature = (window=None))]
    fn locks(&self, py: Python<'_>, window: Option<(f64, f64)>) -> PyResult<Table> {
        let locks = self.in_window(py, window, CoreAnalysis::locks)?;
        Rows::of(&locks)
            .column("rank", |lock| self.rank(lock.process))
            .names("paradigm", |lock| Paradigm(lock.paradigm).name().unwrap_or("UNKNOWN"))
            .column("lock", |lock| lock.number.map(i64::from))
            .column("callpath", |lock| lock.callpath.known().map(i64::from))
            .column("acquisitions", |lock| lock.acquisitions)
            .column("contended", |lock| lock.contended)
            .column("waiting", |lock| self.seconds(lock.waiting))
            .column("longest_queue", |lock| lock.longest_queue)
            .column("holding", |lock| self.seconds(lock.holding))
            .column("gap", |lock| self.seconds(lock.gap))
            .column("critical", |lock| self.seconds(lock.critical))
            .column("critical_acquisitions", |lock| lock.critical_acquisitions)
            .column("critical_contended", |lock| lock.critical_contended)
            .finish()
    }

    /// The tasks by construct, the parallel regions that they run in, and how many of them run how long.
    #[pyo3(signature = (window=None))]
    fn tasks(&self, py: Python<'_>, window: Option<(f64, f64)>) -> PyResult<(Table, Table, Table)> {
        let (tasks, regions) = self.in_window(py, window, CoreAnalysis::tasks)?;
        let lengths =
            tasks.iter().flat_map(|one| one.lengths.iter().enumerate().map(move |(power, &count)| (one, power, count)));
        let bound = |power: usize| 2f64.powi(power as i32) * self.seconds(1);
        let lengths = Rows::of(lengths.filter(|&(.., count)| count > 0))
            .column("rank", |(one, ..)| self.rank(one.process))
            .column("callpath", |(one, ..)| one.callpath.known().map(i64::from))
            .column("from", |(_, power, _)| bound(power))
            .column("to", |(_, power, _)| bound(power + 1))
            .column("tasks", |(.., count)| count)
            .finish()?;
        let tasks = Rows::of(&tasks)
            .column("rank", |one| self.rank(one.process))
            .column("callpath", |one| one.callpath.known().map(i64::from))
            .column("tasks", |one| one.tasks)
            .column("elsewhere", |one| one.elsewhere)
            .column("migrations", |one| one.migrations)
            .column("execution", |one| self.seconds(one.execution))
            .column("median", |one| self.seconds(one.median_execution))
            .column("shortest", |one| self.seconds(one.extremes.0))
            .column("longest", |one| self.seconds(one.extremes.1))
            .column("creation", |one| self.seconds(one.creation))
            .column("median_creation", |one| self.seconds(one.median_creation))
            .column("median_delay", |one| self.seconds(one.median_delay))
            .finish()?;
        let regions = Rows::of(&regions)
            .column("rank", |one| self.rank(one.process))
            .column("callpath", |one| one.callpath.known().map(i64::from))
            .column("instances", |one| one.instances)
            .column("threads", |one| one.threads)
            .column("elapsed", |one| self.seconds(one.elapsed))
            .column("work", |one| self.seconds(one.work))
            .column("span", |one| self.seconds(one.span))
            .column("burdened_span", |one| self.seconds(one.burdened_span))
            .finish()?;
        Ok((tasks, regions, lengths))
    }

    /// The worksharing constructs, those that lose most first.
    #[pyo3(signature = (window=None))]
    fn worksharing(&self, py: Python<'_>, window: Option<(f64, f64)>) -> PyResult<Table> {
        let found = self.in_window(py, window, CoreAnalysis::worksharing)?;
        Rows::of(&found)
            .column("rank", |one| self.rank(one.process))
            .column("callpath", |one| one.callpath.known().map(i64::from))
            .column("instances", |one| one.instances)
            .column("threads", |one| one.threads)
            .column("mean", |one| self.seconds(one.mean))
            .column("longest", |one| self.seconds(one.longest))
            .column("loss", |one| self.seconds(one.longest - one.mean))
            .column("late_start", |one| self.seconds(one.late_start))
            .column("uneven", |one| self.seconds(one.uneven))
            .names("distribution", |one| one.distribution.name())
            .column("last_thread", |one| one.last.0 as i32)
            .column("last_count", |one| one.last.1)
            .column("without_section", |one| one.without_section)
            .finish()
    }

    /// All transfers of one-sided communication.
    fn transfers(&self, py: Python<'_>) -> PyResult<Table> {
        let trace = &self.result.trace;
        let begin = self.begin();
        let transfers = self.collective(py, CoreAnalysis::transfers)?;
        let at = |time: i64| self.seconds(time - begin);
        Rows::of(&transfers)
            .names("kind", |transfer| match transfer.kind {
                OperationKind::Put => "put",
                OperationKind::Get => "get",
                OperationKind::Atomic | OperationKind::FetchingAtomic => "atomic",
            })
            .names("epoch", |transfer| match transfer.epoch {
                EpochKind::None => None,
                EpochKind::Fence => Some("fence"),
                EpochKind::Access => Some("access"),
                EpochKind::Lock => Some("lock"),
            })
            .column("window", |transfer| trace.definitions.windows[transfer.window].id)
            .column("bytes", |transfer| transfer.bytes)
            .column("origin_location", |transfer| transfer.origin.0.number())
            .column("origin_callpath", |transfer| transfer.callpath.number())
            .column("origin", |transfer| at(transfer.time))
            .column("source_location", |transfer| transfer.source.number())
            .column("start", |transfer| at(transfer.time))
            .column("destination_location", |transfer| transfer.destination.number())
            .column("end", |transfer| transfer.end.map(at))
            .finish()
    }

    /// How long each sampled call path ran in the focus.
    fn profile(&self) -> PyResult<Table> {
        sampling::profile(self)
    }

    /// What sampled call paths cost others.
    fn delay_functions(&self) -> PyResult<Table> {
        sampling::delay_functions(self)
    }

    /// Samples of the call path.
    fn samples(&self, py: Python<'_>) -> PyResult<Table> {
        sampling::samples(self, py)
    }

    /// Inconsistencies of the trace.
    fn warnings<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let begin = self.begin();
        let mut warnings = Vec::new();
        // What much of the result rests on comes first.
        let mut notes: Vec<_> = self.result.diagnostics.iter().collect();
        notes.sort_by_key(|(_, note)| std::cmp::Reverse(note.assumed));
        for (kind, note) in notes {
            let warning = PyDict::new(py);
            warning.set_item("kind", kind.name())?;
            warning.set_item("count", note.count)?;
            let first = note.occurrences.first();
            let detail = first.and_then(|first| first.detail.as_ref());
            let mut text = kind.text().to_owned();
            if note.assumed > 0 {
                let (count, time) = (note.count, duration(self.seconds(note.assumed)));
                let cases = if count == 1 { "1 case, of" } else { &format!("{count} cases, of together") };
                let verb = if count == 1 { "rests" } else { "rest" };
                write!(text, "; {cases} {time}, {verb} on this assumption").expect("a text");
            }
            if let Some(detail) = detail {
                write!(text, "; first: {detail}").expect("a text");
            }
            warning.set_item("text", text)?;
            let place = first.and_then(|first| {
                let definitions = &self.result.trace.definitions;
                let location = definitions.locations.get(first.place.location.index())?;
                let label = definitions.label(location);
                Some(match first.place.time {
                    Some(time) => format!("{label} at {:.6} s", self.seconds(time.saturating_sub(begin))),
                    None => label.trim_end_matches(',').to_owned(),
                })
            });
            warning.set_item("place", place)?;
            warnings.push(warning);
        }
        Ok(warnings)
    }

    /// The places of warnings, at most 10,000 of each kind.
    fn inconsistencies(&self) -> PyResult<Table> {
        let begin = self.begin();
        let notes = self.result.diagnostics.iter();
        let places: Vec<_> =
            notes.flat_map(|(kind, note)| note.occurrences.iter().map(move |one| (kind, one))).collect();
        let at = |time: i64| self.seconds(time.saturating_sub(begin));
        Rows::of(&places)
            .names("kind", |(kind, _)| kind.name())
            .column("location", |(_, one)| one.place.location.number())
            .column("time", |(_, one)| one.place.time.map(at))
            .column("detail", |(_, one)| one.detail.as_deref())
            .finish()
    }

    /// The instances of a call path, by location and Enter.
    fn instances(&self, py: Python<'_>, callpath: u32) -> PyResult<Table> {
        counters::instances(self, py, callpath)
    }

    /// Enter and Leave of the first `MPI_Init` and `MPI_Finalize` of each process, ticks; without such a call, its
    /// first or last event. Processes without events have no row. Collective; at the first process.
    fn library_calls(&self, py: Python<'_>) -> PyResult<Table> {
        let calls = self.collective(py, |result| library_calls_of_all(&result.trace))?;
        let definitions = &self.result.trace.definitions;
        let location = |of: &LibraryCalls| &definitions.locations[of.location];
        Rows::of(&calls)
            .column("rank", |of| definitions.processes[location(of).process].rank)
            .column("group", |of| location(of).group)
            .column("init_enter", |of| of.init.0)
            .column("init_leave", |of| of.init.1)
            .column("finalize_enter", |of| of.finalize.0)
            .column("finalize_leave", |of| of.finalize.1)
            .finish()
    }

    /// Key figures of the whole run.
    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let trace = &self.result.trace;
        let (first, last) = trace.span().unwrap_or((0, 0));
        let facts = PyDict::new(py);
        facts.set_item("origin", first)?;
        if self.result.is_silent {
            facts.set_item("no_records_of", "pgas")?;
        }
        facts.set_item("begin", 0.0)?;
        facts.set_item("end", self.seconds(last - first))?;
        facts.set_item("length", self.seconds(last - first))?;
        if let Some(focus) = self.result.focus {
            facts.set_item("focus_begin", self.seconds(focus.begin - first))?;
            facts.set_item("focus_end", self.seconds(focus.end - first))?;
            facts.set_item("focus_rule", focus.rule.name())?;
            facts.set_item("cpu_locations", self.result.account.locations)?;
            facts.set_item("cpu_time", self.seconds(self.result.account.time))?;
            facts.set_item("pauses", self.result.account.pauses.0)?;
            facts.set_item("pause_time", self.seconds(self.result.account.pauses.1))?;
            let cores = PyList::empty(py);
            for node in &self.result.account.cores {
                let of_node = PyDict::new(py);
                of_node.set_item("location", node.location.number())?;
                of_node.set_item("locations", node.locations)?;
                of_node.set_item("most", node.most)?;
                of_node.set_item("expected", node.expected)?;
                of_node.set_item("observed", node.observed)?;
                cores.append(of_node)?;
            }
            facts.set_item("few_cores", cores)?;
            // Of nodes that may share cores: there can be many of others.
            let together = PyList::empty(py);
            for node in self.result.account.together_on_few() {
                let of_node = PyDict::new(py);
                of_node.set_item("location", node.location.number())?;
                of_node.set_item("locations", node.locations)?;
                of_node.set_item("shares", &node.shares)?;
                together.append(of_node)?;
            }
            facts.set_item("computing_together", together)?;
            facts.set_item("reasons", reasons::facts(self, py)?)?;
            let groups = PyList::empty(py);
            for group in &self.result.account.groups {
                let of_group = PyDict::new(py);
                of_group.set_item("comm", trace.definitions.comms[group.comm].id)?;
                of_group.set_item("kernels", group.kernels)?;
                let times = [("waiting", group.waiting), ("hidden", group.hidden), ("transfer", group.transfer)];
                for (name, ticks) in times.into_iter().chain([("excess", group.excess)]) {
                    of_group.set_item(name, self.seconds(ticks))?;
                }
                groups.append(of_group)?;
            }
            if !groups.is_empty() {
                facts.set_item("device_groups", groups)?;
            }
        }
        for (name, value) in recording::facts(trace.recording().anchor()) {
            facts.set_item(name, value)?;
        }
        facts.set_item("resolution", trace.resolution)?;
        facts.set_item("processes", trace.definitions.processes.len())?;
        facts.set_item("locations", trace.definitions.locations.len())?;
        facts.set_item("events", trace.events)?;
        facts.set_item("callpaths", trace.tree.len())?;
        if self.result.sampling.count > 0 {
            facts.set_item("samples", self.result.sampling.count)?;
        }
        let violations = |kind| self.result.diagnostics.occurrences(kind);
        facts.set_item("clock_violations_p2p", violations(DiagnosticKind::ClockViolationMessage))?;
        facts.set_item("clock_violations_coll", violations(DiagnosticKind::ClockViolationCollective))?;
        let inferred = self.result.waits.iter().filter(|wait| wait.is_inferred).count();
        facts.set_item("inferred_waits", inferred)?;
        if let Some(clocks) = clocks::facts(self, py)? {
            facts.set_item("clocks", clocks)?;
        }
        if let Some(queues) = &self.result.queues {
            facts.set_item("eager_limit_in_node", queues.limits[0])?;
            facts.set_item("eager_limit_between_nodes", queues.limits[1])?;
        }
        Ok(facts)
    }
}
