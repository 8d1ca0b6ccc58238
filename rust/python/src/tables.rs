//! The results of an analysis as tables.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int32Array, Int64Array, UInt32Array, UInt64Array};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use whywait_core::analysis::Analysis as CoreAnalysis;
use whywait_core::causes::Class;
use whywait_core::critical_path::Segment;
use whywait_core::diagnostics::DiagnosticKind;
use whywait_core::ids::ProcessId;
use whywait_core::matching::transfers::{EpochKind, Transfer};
use whywait_core::query::library_calls::{LibraryCalls, library_calls_of_all};
use whywait_core::query::locks::LockUse;
use whywait_core::query::loops::LoopUse;
use whywait_core::query::tasks::{TaskRegion, TaskUse};
use whywait_core::queues::Cell as QueueCell;
use whywait_core::sampling::FunctionTime;
use whywait_core::schema::Unit;
use whywait_core::severity::{Cost, Severity};
use whywait_core::trace::columns::OperationKind;
use whywait_core::waits::longest;
use whywait_otf2::enums::Paradigm;

use crate::account;
use crate::analysis::Analysis;
use crate::arrow::{Names, Optional, Table};
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
use crate::run::locations_table;
use crate::sampling;
use crate::waits;

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
        let text = |get: fn(&whywait_core::trace::regions::Region) -> &str| -> ArrayRef {
            Arc::new(regions.iter().map(|region| Some(get(region))).collect::<arrow_array::StringArray>())
        };
        let mut paradigms = Names::default();
        let mut roles = Names::default();
        for region in &regions {
            paradigms.push(region.paradigm.name().unwrap_or("UNKNOWN"));
            roles.push(region.role.name().unwrap_or("UNKNOWN"));
        }
        Table::new(vec![
            ("region", Arc::new((0..regions.len() as u32).collect::<UInt32Array>())),
            ("name", text(|region| &region.name)),
            ("canonical_name", text(|region| &region.canonical_name)),
            ("paradigm", paradigms.finish()),
            ("role", roles.finish()),
            ("file", text(|region| &region.file)),
            ("begin_line", Arc::new(regions.iter().map(|region| region.begin_line).collect::<UInt32Array>())),
            ("end_line", Arc::new(regions.iter().map(|region| region.end_line).collect::<UInt32Array>())),
        ])
    }

    /// The call tree: call paths of events, then those that only samples have.
    fn callpaths(&self) -> PyResult<Table> {
        let parents = self.result.sampling.callpaths(&self.result.trace.tree).map(|node| node.parent.known());
        Table::new(vec![
            ("callpath", Arc::new((0..self.region_of.len() as u32).collect::<UInt32Array>())),
            ("parent", Arc::new(parents.collect::<UInt32Array>())),
            ("region", Arc::new(self.region_of.iter().copied().collect::<UInt32Array>())),
        ])
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
        let seconds = |ticks: fn(&Segment) -> i64, since: i64| -> ArrayRef {
            Arc::new(Float64Array::from_iter_values(path.iter().map(|segment| self.seconds(ticks(segment) - since))))
        };
        let mut callpaths = Optional::default();
        let mut hops = arrow_array::builder::StringBuilder::new();
        for segment in path {
            callpaths.push(segment.callpath.known());
            hops.append_option(segment.hop.map(Class::name));
        }
        Table::new(vec![
            ("location", Arc::new(UInt32Array::from_iter_values(path.iter().map(|segment| segment.location.number())))),
            ("from", seconds(|segment| segment.from, begin)),
            ("to", seconds(|segment| segment.to, begin)),
            ("callpath", callpaths.finish()),
            ("callpath_time", seconds(|segment| segment.ticks, 0)),
            ("hop", Arc::new(hops.finish())),
        ])
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
        let mut paradigms = Names::default();
        let (mut numbers, mut callpaths) = (Optional::default(), Optional::default());
        for lock in &locks {
            paradigms.push(Paradigm(lock.paradigm).name().unwrap_or("UNKNOWN"));
            numbers.push(lock.number);
            callpaths.push(lock.callpath.known());
        }
        let rank = |lock: &LockUse| self.result.trace.definitions.processes[lock.process].rank as i32;
        let count =
            |count: fn(&LockUse) -> u64| -> ArrayRef { Arc::new(locks.iter().map(count).collect::<UInt64Array>()) };
        let time = |ticks: fn(&LockUse) -> i64| -> ArrayRef {
            Arc::new(locks.iter().map(|lock| self.seconds(ticks(lock))).collect::<Float64Array>())
        };
        Table::new(vec![
            ("rank", Arc::new(locks.iter().map(rank).collect::<Int32Array>())),
            ("paradigm", paradigms.finish()),
            ("lock", numbers.finish()),
            ("callpath", callpaths.finish()),
            ("acquisitions", count(|lock| lock.acquisitions)),
            ("contended", count(|lock| lock.contended)),
            ("waiting", time(|lock| lock.waiting)),
            ("longest_queue", Arc::new(locks.iter().map(|lock| lock.longest_queue).collect::<UInt32Array>())),
            ("holding", time(|lock| lock.holding)),
            ("gap", time(|lock| lock.gap)),
            ("critical", time(|lock| lock.critical)),
            ("critical_acquisitions", count(|lock| lock.critical_acquisitions)),
            ("critical_contended", count(|lock| lock.critical_contended)),
        ])
    }

    /// The tasks by construct, the parallel regions that they run in, and how many of them run how long.
    #[pyo3(signature = (window=None))]
    fn tasks(&self, py: Python<'_>, window: Option<(f64, f64)>) -> PyResult<(Table, Table, Table)> {
        let (tasks, regions) = self.in_window(py, window, CoreAnalysis::tasks)?;
        let mut callpaths = Optional::default();
        for one in &tasks {
            callpaths.push(one.callpath.known());
        }
        let rank = |process: ProcessId| self.result.trace.definitions.processes[process].rank as i32;
        let count =
            |count: fn(&TaskUse) -> u64| -> ArrayRef { Arc::new(tasks.iter().map(count).collect::<UInt64Array>()) };
        let time = |ticks: fn(&TaskUse) -> i64| -> ArrayRef {
            Arc::new(tasks.iter().map(|one| self.seconds(ticks(one))).collect::<Float64Array>())
        };
        let of_tasks = Table::new(vec![
            ("rank", Arc::new(tasks.iter().map(|one| rank(one.process)).collect::<Int32Array>())),
            ("callpath", callpaths.finish()),
            ("tasks", count(|one| one.tasks)),
            ("elsewhere", count(|one| one.elsewhere)),
            ("migrations", count(|one| one.migrations)),
            ("execution", time(|one| one.execution)),
            ("median", time(|one| one.median_execution)),
            ("shortest", time(|one| one.extremes.0)),
            ("longest", time(|one| one.extremes.1)),
            ("creation", time(|one| one.creation)),
            ("median_creation", time(|one| one.median_creation)),
            ("median_delay", time(|one| one.median_delay)),
        ])?;
        let mut callpaths = Optional::default();
        for one in &regions {
            callpaths.push(one.callpath.known());
        }
        let time = |ticks: fn(&TaskRegion) -> i64| -> ArrayRef {
            Arc::new(regions.iter().map(|one| self.seconds(ticks(one))).collect::<Float64Array>())
        };
        let of_regions = Table::new(vec![
            ("rank", Arc::new(regions.iter().map(|one| rank(one.process)).collect::<Int32Array>())),
            ("callpath", callpaths.finish()),
            ("instances", Arc::new(regions.iter().map(|one| one.instances).collect::<UInt64Array>())),
            ("threads", Arc::new(regions.iter().map(|one| one.threads).collect::<UInt64Array>())),
            ("elapsed", time(|one| one.elapsed)),
            ("work", time(|one| one.work)),
            ("span", time(|one| one.span)),
            ("burdened_span", time(|one| one.burdened_span)),
        ])?;
        let lengths: Vec<(&TaskUse, usize, u64)> = tasks
            .iter()
            .flat_map(|one| one.lengths.iter().enumerate().map(move |(power, &count)| (one, power, count)))
            .filter(|&(.., count)| count > 0)
            .collect();
        let mut callpaths = Optional::default();
        for (one, ..) in &lengths {
            callpaths.push(one.callpath.known());
        }
        let bound = |more: usize| -> ArrayRef {
            let bounds = lengths.iter().map(|&(_, power, _)| (power + more) as i32);
            Arc::new(bounds.map(|power| 2f64.powi(power) * self.seconds(1)).collect::<Float64Array>())
        };
        let of_lengths = Table::new(vec![
            ("rank", Arc::new(lengths.iter().map(|(one, ..)| rank(one.process)).collect::<Int32Array>())),
            ("callpath", callpaths.finish()),
            ("from", bound(0)),
            ("to", bound(1)),
            ("tasks", Arc::new(lengths.iter().map(|&(.., count)| count).collect::<UInt64Array>())),
        ])?;
        Ok((of_tasks, of_regions, of_lengths))
    }

    /// The worksharing constructs, those that lose most first.
    #[pyo3(signature = (window=None))]
    fn worksharing(&self, py: Python<'_>, window: Option<(f64, f64)>) -> PyResult<Table> {
        let found = self.in_window(py, window, CoreAnalysis::worksharing)?;
        let (mut callpaths, mut distributions) = (Optional::default(), Names::default());
        for one in &found {
            callpaths.push(one.callpath.known());
            distributions.push(one.distribution.name());
        }
        let rank = |one: &LoopUse| self.result.trace.definitions.processes[one.process].rank as i32;
        let count =
            |count: fn(&LoopUse) -> u64| -> ArrayRef { Arc::new(found.iter().map(count).collect::<UInt64Array>()) };
        let time = |ticks: fn(&LoopUse) -> i64| -> ArrayRef {
            Arc::new(found.iter().map(|one| self.seconds(ticks(one))).collect::<Float64Array>())
        };
        Table::new(vec![
            ("rank", Arc::new(found.iter().map(rank).collect::<Int32Array>())),
            ("callpath", callpaths.finish()),
            ("instances", count(|one| one.instances)),
            ("threads", count(|one| one.threads)),
            ("mean", time(|one| one.mean)),
            ("longest", time(|one| one.longest)),
            ("loss", time(|one| one.longest - one.mean)),
            ("late_start", time(|one| one.late_start)),
            ("uneven", time(|one| one.uneven)),
            ("distribution", distributions.finish()),
            ("last_thread", Arc::new(found.iter().map(|one| one.last.0 as i32).collect::<Int32Array>())),
            ("last_count", count(|one| one.last.1)),
            ("without_section", count(|one| one.without_section)),
        ])
    }

    /// All transfers of one-sided communication.
    fn transfers(&self, py: Python<'_>) -> PyResult<Table> {
        let trace = &self.result.trace;
        let begin = self.begin();
        let transfers = self.collective(py, CoreAnalysis::transfers)?;
        let mut kinds = Names::default();
        let mut epochs = Names::default();
        for transfer in &transfers {
            kinds.push(match transfer.kind {
                OperationKind::Put => "put",
                OperationKind::Get => "get",
                OperationKind::Atomic | OperationKind::FetchingAtomic => "atomic",
            });
            epochs.push_optional(match transfer.epoch {
                EpochKind::None => None,
                EpochKind::Fence => Some("fence"),
                EpochKind::Access => Some("access"),
                EpochKind::Lock => Some("lock"),
            });
        }
        let number = |number: fn(&Transfer) -> u32| Arc::new(transfers.iter().map(number).collect::<UInt32Array>());
        let window = |transfer: &Transfer| trace.definitions.windows[transfer.window].id;
        let time: Float64Array = transfers.iter().map(|transfer| self.seconds(transfer.time - begin)).collect();
        let time: ArrayRef = Arc::new(time);
        let end = transfers.iter().map(|transfer| transfer.end.map(|end| self.seconds(end - begin)));
        Table::new(vec![
            ("kind", kinds.finish()),
            ("epoch", epochs.finish()),
            ("window", Arc::new(transfers.iter().map(window).collect::<UInt32Array>())),
            ("bytes", Arc::new(UInt64Array::from_iter_values(transfers.iter().map(|transfer| transfer.bytes)))),
            ("origin_location", number(|transfer| transfer.origin.0.number())),
            ("origin_callpath", number(|transfer| transfer.callpath.number())),
            ("origin", time.clone()),
            ("source_location", number(|transfer| transfer.source.number())),
            ("start", time),
            ("destination_location", number(|transfer| transfer.destination.number())),
            ("end", Arc::new(end.collect::<Float64Array>())),
        ])
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
                write!(text, "; {:.3} s rest on this assumption", self.seconds(note.assumed)).expect("a text");
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
        let mut kinds = Names::default();
        let mut locations = Vec::new();
        let mut times = Vec::new();
        let mut details = Vec::new();
        for (kind, note) in self.result.diagnostics.iter() {
            for occurrence in &note.occurrences {
                kinds.push(kind.name());
                locations.push(occurrence.place.location.number());
                times.push(occurrence.place.time.map(|time| self.seconds(time.saturating_sub(begin))));
                details.push(occurrence.detail.clone());
            }
        }
        Table::new(vec![
            ("kind", kinds.finish()),
            ("location", Arc::new(UInt32Array::from(locations))),
            ("time", Arc::new(Float64Array::from(times))),
            ("detail", Arc::new(details.into_iter().collect::<arrow_array::StringArray>())),
        ])
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
        let times = |time: fn(&LibraryCalls) -> i64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(calls.iter().map(time)))
        };
        let rank = |of| definitions.processes[location(of).process].rank;
        Table::new(vec![
            ("rank", Arc::new(UInt32Array::from_iter_values(calls.iter().map(rank)))),
            ("group", Arc::new(UInt32Array::from_iter_values(calls.iter().map(|of| location(of).group)))),
            ("init_enter", times(|of| of.init.0)),
            ("init_leave", times(|of| of.init.1)),
            ("finalize_enter", times(|of| of.finalize.0)),
            ("finalize_leave", times(|of| of.finalize.1)),
        ])
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
