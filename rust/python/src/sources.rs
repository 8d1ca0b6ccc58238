//! What a run is read from: an archive, traces of PyTorch's profiler, reports of Nsight Systems, or a trace of Paraver.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use whywait_devices::DeviceRecording;
use whywait_otf2::{Archive, Recording};
use whywait_paraver::ParaverRecording;

use crate::errors::{archive_error, source_error};
use crate::job::detached;
use crate::{kineto, nsight, paraver, traced};

/// How sources other than archives are read.
pub(crate) struct Choices {
    /// What call paths consist of.
    pub(crate) paths: Option<String>,
    /// Which cycle of the profiler's schedule is read.
    pub(crate) cycle: Option<usize>,
    /// Names of kernels that communicate.
    pub(crate) comm_kernels: Vec<String>,
    /// Whether memory in use is read even where there are many samples of it.
    pub(crate) memory: bool,
    /// How traces of Paraver are read.
    pub(crate) paraver: whywait_paraver::Options,
}

/// A source whose definitions have been read.
pub(crate) struct Source {
    pub(crate) recording: Arc<dyn Recording>,
    /// If it is an archive.
    pub(crate) archive: Option<Arc<Archive>>,
    /// What is known besides definitions and events, by kind of source.
    pub(crate) facts: Vec<(&'static str, Box<dyn Facts>)>,
}

impl Source {
    fn new<T: Recording + 'static>(recording: Arc<T>, facts: Vec<(&'static str, Box<dyn Facts>)>) -> Self {
        Self { recording, archive: None, facts }
    }
}

/// What is known of a source besides definitions and events.
pub(crate) trait Facts: Send + Sync {
    /// The same for Python.
    fn dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>>;
}

impl Facts for Arc<DeviceRecording> {
    fn dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        traced::facts(py, (**self).facts())
    }
}

impl Facts for whywait_nsight::Facts {
    fn dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        nsight::facts(py, self)
    }
}

impl Facts for Arc<ParaverRecording> {
    fn dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        paraver::facts(py, (**self).facts())
    }
}

/// A kind of source.
struct Probe {
    /// None of what is only opened to say what it is.
    name: Option<&'static str>,
    /// Whether a path is one.
    finds: fn(&Path) -> bool,
    open: fn(Python<'_>, &Path, &Choices) -> PyResult<Source>,
}

/// All kinds, in the order in which they are asked: an archive comes before what else is in its directory.
const PROBES: [Probe; 5] = [
    Probe { name: Some("otf2"), finds: is_archive, open: open_archive },
    Probe { name: Some("paraver"), finds: whywait_paraver::detect, open: open_paraver },
    Probe { name: Some("nsight"), finds: |path| !whywait_nsight::detect(path).is_empty(), open: open_nsight },
    Probe { name: Some("pytorch"), finds: |path| whywait_kineto::detect(path).is_some(), open: open_pytorch },
    Probe { name: None, finds: whywait_kineto::is_other_chrome_trace, open: open_pytorch },
];

/// Whether a path is an anchor file, or a directory with one.
fn is_archive(path: &Path) -> bool {
    let is_anchor = |path: &Path| path.extension() == Some(OsStr::new("otf2"));
    if path.is_dir() {
        fs::read_dir(path).into_iter().flatten().flatten().any(|entry| is_anchor(&entry.path()))
    } else {
        is_anchor(path)
    }
}

fn probe(path: &Path) -> Option<&'static Probe> {
    PROBES.iter().find(|probe| (probe.finds)(path))
}

/// Opens what a path names. What is of no kind is opened as an archive, which says why it is none.
pub(crate) fn open(py: Python<'_>, path: &Path, choices: &Choices) -> PyResult<Source> {
    (probe(path).unwrap_or(&PROBES[0]).open)(py, path, choices)
}

/// What a path is read as: `otf2`, `paraver`, `nsight` or `pytorch`; none if it holds no run. It may still be unreadable.
#[pyfunction]
pub(crate) fn source_of(path: PathBuf) -> Option<&'static str> {
    probe(&path)?.name
}

/// The anchor file that a path without one may mean.
#[pyfunction]
pub(crate) fn anchor_beside(path: PathBuf) -> Option<PathBuf> {
    let anchor = path.with_extension("otf2");
    (anchor != path && anchor.is_file()).then_some(anchor)
}

/// The files that tell a run from others, and whether all of their bytes count: of an archive, the anchor and the global
/// definitions do, which have the time of the run.
#[pyfunction]
pub(crate) fn identity_files(path: PathBuf) -> (Vec<PathBuf>, bool) {
    if path.is_dir() {
        let entries = fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut files: Vec<PathBuf> = entries.filter(|file| file.is_file()).collect();
        files.sort();
        return (files, false);
    }
    if is_archive(&path) { (vec![path.clone(), path.with_extension("def")], true) } else { (vec![path], false) }
}

fn open_archive(py: Python<'_>, path: &Path, _: &Choices) -> PyResult<Source> {
    let archive = Arc::new(detached(py, || Archive::open(path))?.map_err(archive_error)?);
    Ok(Source { archive: Some(archive.clone()), ..Source::new(archive, Vec::new()) })
}

fn open_paraver(py: Python<'_>, path: &Path, choices: &Choices) -> PyResult<Source> {
    let trace = Arc::new(detached(py, || whywait_paraver::open(path, &choices.paraver))?.map_err(source_error)?);
    Ok(Source::new(trace.clone(), vec![("paraver", Box::new(trace))]))
}

fn open_nsight(py: Python<'_>, path: &Path, choices: &Choices) -> PyResult<Source> {
    let options = nsight::options(choices.paths.as_deref(), &choices.comm_kernels)?;
    let opened = detached(py, || whywait_nsight::open(&[path.to_owned()], &options))?.map_err(source_error)?;
    let traces = Arc::new(opened.recording);
    Ok(Source::new(traces.clone(), vec![("traces", Box::new(traces)), ("nsight", Box::new(opened.facts))]))
}

fn open_pytorch(py: Python<'_>, path: &Path, choices: &Choices) -> PyResult<Source> {
    let Choices { paths, cycle, comm_kernels, memory, .. } = choices;
    let options = kineto::options(paths.as_deref(), *cycle, comm_kernels, *memory)?;
    let traces = Arc::new(detached(py, || whywait_kineto::open(&[path.to_owned()], &options))?.map_err(source_error)?);
    Ok(Source::new(traces.clone(), vec![("traces", Box::new(traces))]))
}
