//! A run whose definitions have been read.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::{PyIndexError, PyKeyError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use whywait_core::ids::ProcessId;
use whywait_core::trace::DefinitionIndex;
use whywait_otf2::writer::{WriteOptions, copy_archive as copy_otf2};
use whywait_otf2::{Archive, Definitions, Event, Recording};

use crate::arrow::Table;
use crate::errors::{UsageError, archive_error};
use crate::estimate::{self, Counter};
use crate::job::detached;
use crate::recording;
use crate::records::{Columns, EventTable};
use crate::rows::Rows;
use crate::sources::{self, Choices, Facts, Source};

/// A run whose definitions have been read.
#[pyclass(frozen, weakref, module = "whywait._native")]
pub(crate) struct Run {
    recording: Arc<dyn Recording>,
    /// The archive that it was read from, if any.
    archive: Option<Arc<Archive>>,
    /// What is known of its source besides definitions and events, by kind.
    facts: Vec<(&'static str, Box<dyn Facts>)>,
    /// Whether its path alone says how it is read.
    is_in_files: bool,
    definitions: DefinitionIndex,
}

impl Run {
    /// A run that is not read from an archive.
    pub(crate) fn new(recording: Arc<dyn Recording>) -> Self {
        let definitions = DefinitionIndex::new(recording.definitions());
        Self { recording, archive: None, facts: Vec::new(), is_in_files: false, definitions }
    }

    /// The archive, to copy it as it is.
    pub(crate) fn archive(&self) -> PyResult<&Arc<Archive>> {
        self.archive.as_ref().ok_or_else(|| UsageError::new_err("the run must be written first"))
    }

    /// What an analysis reads.
    pub(crate) fn recording(&self) -> &Arc<dyn Recording> {
        &self.recording
    }
}

/// Locations in the order of their indexes.
pub(crate) fn locations_table(records: &Definitions, definitions: &DefinitionIndex) -> PyResult<Table> {
    let rank =
        |process: ProcessId| definitions.processes.get(process.index()).map_or(-1, |process| process.rank as i32);
    Rows::of(definitions.locations.iter().enumerate())
        .column("location", |(index, _)| index as u32)
        .column("id", |(_, location)| location.id)
        .column("name", |(_, location)| records.string(location.name))
        .names("type", |(_, location)| location.kind.name().unwrap_or("UNKNOWN"))
        .column("group", |(_, location)| location.group)
        .column("rank", |(_, location)| rank(location.process))
        .column("thread", |(_, location)| location.thread as i32)
        .column("events", |(_, location)| location.events)
        .finish()
}

/// Reads an archive and writes it again with the same content.
#[pyfunction]
pub(crate) fn copy_archive(py: Python<'_>, source: PathBuf, destination: PathBuf) -> PyResult<()> {
    let copy = || copy_otf2(&Archive::open(&source)?, &destination, WriteOptions::default());
    detached(py, copy)?.map(|_| ()).map_err(archive_error)
}

#[pymethods]
impl Run {
    /// Opens an archive: its anchor file, or the directory that holds one; or traces of PyTorch's profiler, one file a rank;
    /// or SQLite exports of Nsight Systems, one or several reports of a run; or a trace of Paraver.
    ///
    /// `paths` is what call paths consist of (`op`, `module`, `python`, `all`), `cycle` which cycle of the profiler's
    /// schedule is read, `comm_kernels` names kernels that communicate (`REGEX=KIND`), and `memory` reads memory in use even
    /// where there are many samples of it; only traces of PyTorch's profiler have these, and reports of Nsight Systems `paths`
    /// (`all` keeps names as they are) and `comm_kernels`. Of Paraver's, `types` are further types
    /// of events that are regions, `application` is the only one that is read, `truncated` reads a file that is cut off up
    /// to there, and `inference` tells which calls complete non-blocking sends.
    #[new]
    #[pyo3(signature = (
        path, *, paths=None, cycle=None, comm_kernels=None, memory=false, types=None, application=None, truncated=false,
        inference=true
    ))]
    #[expect(clippy::too_many_arguments, reason = "they are named where it is called")]
    fn open(
        py: Python<'_>,
        path: PathBuf,
        paths: Option<&str>,
        cycle: Option<usize>,
        comm_kernels: Option<Vec<String>>,
        memory: bool,
        types: Option<Vec<u32>>,
        application: Option<u32>,
        truncated: bool,
        inference: bool,
    ) -> PyResult<Self> {
        let of_profiler = paths.is_some() || cycle.is_some() || comm_kernels.is_some() || memory;
        let has_choices = of_profiler || types.is_some() || application.is_some() || truncated || !inference;
        let types = types.unwrap_or_default();
        let paraver = whywait_paraver::Options { types, application, truncated, inference };
        let comm_kernels = comm_kernels.unwrap_or_default();
        let choices = Choices { paths: paths.map(str::to_owned), cycle, comm_kernels, memory, paraver };
        let Source { recording, archive, facts } = sources::open(py, &path, &choices)?;
        Ok(Self { is_in_files: archive.is_some() || !has_choices, archive, facts, ..Self::new(recording) })
    }

    /// Path of the anchor file.
    #[getter]
    fn anchor_path(&self) -> PathBuf {
        self.recording.path().to_owned()
    }

    /// What is known of the source besides definitions and events, by kind.
    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for (kind, facts) in &self.facts {
            all.set_item(kind, facts.dict(py)?)?;
        }
        Ok(all)
    }

    /// Whether other processes read the same from its path, rather than what is in the memory of this one.
    #[getter]
    fn is_in_files(&self) -> bool {
        self.is_in_files
    }

    /// Name of the archive.
    #[getter]
    fn archive_name(&self) -> &str {
        self.recording.name()
    }

    /// Kinds of definitions that occur.
    fn definition_kinds(&self) -> Vec<&'static str> {
        self.recording.definitions().kinds()
    }

    /// All definitions of one kind, in file order.
    fn definitions(&self, kind: &str) -> PyResult<Table> {
        let definitions = self.recording.definitions();
        if !definitions.kinds().contains(&kind) {
            return Err(PyKeyError::new_err(kind.to_owned()));
        }
        let mut columns = Columns::default();
        for definition in definitions.of_kind(kind) {
            definition.visit(&mut |name, value| columns.set(name, &value));
            columns.end_row();
        }
        columns.finish(Vec::new())
    }

    /// All locations.
    fn locations(&self) -> PyResult<Table> {
        locations_table(self.recording.definitions(), &self.definitions)
    }

    /// All events of a location.
    fn events(&self, py: Python<'_>, index: usize) -> PyResult<Table> {
        let location =
            self.definitions.locations.get(index).ok_or_else(|| PyIndexError::new_err("no such location"))?;
        let table = detached(py, || {
            let mut table = EventTable::new();
            let events = self.recording.events(location.id)?;
            let summary = events.read(&mut Vec::new(), &mut table)?;
            match summary.truncated {
                Some(error) => Err(error),
                None => Ok(table),
            }
        })?;
        table.map_err(archive_error)?.finish()
    }

    /// Inconsistencies of the archive's definitions, and what the recorder could not record: kind, place, text.
    fn oddities(&self) -> Vec<(&'static str, String, String)> {
        let oddities = self.recording.oddities().iter();
        let mut all: Vec<_> =
            oddities.map(|oddity| (oddity.kind.name(), oddity.place.to_string(), oddity.text.clone())).collect();
        let anchor = self.recording.path().display().to_string();
        all.extend(self.definitions.diagnostics.iter().map(|note| ("inconsistent", anchor.clone(), note.clone())));
        all.extend(
            recording::notes(self.recording.anchor()).map(|note| ("recording", anchor.clone(), note.to_owned())),
        );
        all
    }

    /// Key figures of the archive; those of events only on request, because that reads all of them.
    #[pyo3(signature = (*, events=false))]
    fn info<'py>(&self, py: Python<'py>, events: bool) -> PyResult<Bound<'py, PyDict>> {
        let anchor = self.recording.anchor();
        let info = PyDict::new(py);
        let [major, minor, bugfix] = anchor.version;
        info.set_item("trace_format", anchor.trace_format)?;
        info.set_item("written_with", format!("{major}.{minor}.{bugfix}"))?;
        info.set_item("creator", &anchor.creator)?;
        info.set_item("machine", &anchor.machine_name)?;
        info.set_item("description", &anchor.description)?;
        for (name, value) in recording::facts(anchor) {
            info.set_item(name, value)?;
        }
        for (name, value) in &anchor.properties {
            // What `whywait correct` did.
            if let Some(name) = name.strip_prefix("WHYWAIT::CLOCKS::") {
                info.set_item(format!("clocks_{}", name.to_lowercase()), value)?;
            }
        }
        info.set_item("processes", self.definitions.processes.len())?;
        info.set_item("locations", self.definitions.locations.len())?;
        let types = PyDict::new(py);
        for location in &self.definitions.locations {
            let name = location.kind.name().unwrap_or("UNKNOWN");
            let others = types.get_item(name)?.map_or(Ok(0), |count| count.extract::<usize>())?;
            types.set_item(name, others + 1)?;
        }
        info.set_item("location_types", types)?;
        let records = self.recording.definitions();
        let definitions = PyDict::new(py);
        for kind in records.kinds() {
            definitions.set_item(kind, records.of_kind(kind).count())?;
        }
        info.set_item("definitions", definitions)?;
        if let Some(clock) = self.recording.definitions().clock_properties.first() {
            info.set_item("timer_resolution", clock.timer_resolution)?;
            info.set_item("length", clock.trace_length as f64 / clock.timer_resolution.max(1) as f64)?;
        }
        let declared =
            self.definitions.locations.iter().fold(0u64, |sum, location| sum.saturating_add(location.events));
        info.set_item("events", declared)?;
        info.set_item("event_bytes", py.detach(|| self.event_bytes()))?;
        info.set_item("memory_estimate", detached(py, || estimate::memory(&*self.recording, &self.definitions))?)?;
        if events {
            let counts = detached(py, || self.count_events())?.map_err(archive_error)?;
            let by_type = PyDict::new(py);
            for (id, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
                by_type.set_item(Event::name_of(id as u8), count)?;
            }
            info.set_item("events_by_type", by_type)?;
        }
        Ok(info)
    }
}

impl Run {
    fn event_bytes(&self) -> u64 {
        let size = |location: &whywait_core::trace::locations::Location| {
            self.recording.events(location.id).ok().and_then(|events| events.file_size()).unwrap_or(0)
        };
        self.definitions.locations.iter().map(size).sum()
    }

    fn count_events(&self) -> whywait_otf2::Result<[u64; 256]> {
        let mut counter = Counter([0; 256]);
        let mut buffer = Vec::new();
        for location in &self.definitions.locations {
            // Unreadable files are reported by `validate`; here they count as empty.
            if let Ok(events) = self.recording.events(location.id) {
                let _ = events.read(&mut buffer, &mut counter)?;
            }
        }
        Ok(counter.0)
    }
}
