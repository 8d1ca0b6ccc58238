//! A recording to an archive.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rayon::prelude::*;
use rustix::fs::{FlockOperation, flock};
use whywait_otf2::clock::ClockCorrection;
use whywait_otf2::enums::Paradigm;
use whywait_otf2::records::ClockOffset;
use whywait_otf2::{Anchor, ArchiveWriter, LocalDefinitions, WriteOptions};

use crate::clocks::Clocks;
use crate::constructs::Constructs;
use crate::contexts;
use crate::cores::{Share, shares};
use crate::counters::Metrics;
use crate::definitions::Catalog;
use crate::ends;
use crate::error::{Error, Result};
use crate::expand::Job;
use crate::format;
use crate::functions::FUNCTIONS;
use crate::model::{Model, location};
use crate::paths::{Paths, Python, Symbolizer};
use crate::sampling::Sampling;
use crate::selection::Selection;
use crate::shmem_windows::Windows;
use crate::spool::{Process, Spool, World};
use crate::survey::Survey;
use crate::unify::Unified;
use crate::worlds;

/// How to finish.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Which records to write; none for what was chosen when recording.
    pub model: Option<Model>,
    /// Whether the spool stays.
    pub keep_spool: bool,
    /// How long to wait for processes of this machine that have not ended yet.
    pub patience: Duration,
}

/// What was recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Ranks of which there is anything.
    pub ranks: u32,
    /// Ranks of the run.
    pub size: u32,
    /// Calls of MPI functions.
    pub calls: u64,
    /// Samples of time, by what they were taken, and how often.
    pub samples: u64,
    /// As `perf, 98.2 a second`; empty if there are none.
    pub sampled: String,
    /// Bytes of the archive.
    pub bytes: u64,
    /// What is missing, a sentence each.
    pub notes: Vec<String>,
    /// What could not be used, with file and offset.
    pub damage: Vec<String>,
    /// Recordings of processes that others started or connected to, which are part of this one.
    pub worlds: Vec<PathBuf>,
}

/// How far it is, and whether to stop; shared with another thread.
#[derive(Debug, Default)]
pub struct Progress {
    /// Slots that are done, of [`total`](Self::total).
    pub done: AtomicU64,
    /// All slots.
    pub total: AtomicU64,
    stop: std::sync::atomic::AtomicBool,
}

impl Progress {
    /// Makes the work end with [`Error::Interrupted`].
    pub fn cancel(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    fn is_cancelled(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Name of the archive in its directory, as Score-P's.
const NAME: &str = "traces";
/// Where it is written until it is whole.
const UNFINISHED: &str = "traces.part";
/// Which process finishes.
const LOCK: &str = "lock";

/// Whether a directory holds a recording that is not finished.
pub fn is_unfinished(directory: &Path) -> bool {
    directory.join(format::DIRECTORY).is_dir() && !directory.join(NAME).with_extension("otf2").is_file()
}

/// Makes an archive of the spool in a directory. If another process is doing so, waits for it.
///
/// It is written to `traces.part` and renamed once it is whole, so this can be interrupted and repeated. The spool is removed
/// unless it is to be kept, or ranks are missing: their files may be elsewhere, and finishing again uses them.
pub fn finish(directory: &Path, options: &Options, progress: &Progress) -> Result<Summary> {
    let spool_directory = directory.join(format::DIRECTORY);
    if !spool_directory.is_dir() {
        let why = if directory.join(NAME).with_extension("otf2").is_file() {
            "the recording is finished"
        } else if directory.is_dir() {
            "there is no recording"
        } else {
            "there is no such directory"
        };
        return Err(Error::Nothing { path: directory.to_owned(), why: why.into() });
    }
    let was_unfinished = is_unfinished(directory);
    let lock_path = spool_directory.join(LOCK);
    let lock = File::create(&lock_path).map_err(Error::io(&lock_path))?;
    flock(&lock, FlockOperation::LockExclusive).map_err(|error| Error::io(&lock_path)(error.into()))?;
    if was_unfinished && !is_unfinished(directory) {
        // Somebody else has done it meanwhile.
        return Ok(Summary::default());
    }
    let (mut spool, mut others) = open(directory)?;
    if spool.ranks.is_empty() {
        let why = spool.damage.first().cloned().unwrap_or_else(|| "no process has recorded anything".into());
        return Err(Error::Nothing { path: directory.to_owned(), why });
    }
    check_agreement(&spool)?;
    let begin = Instant::now();
    while let Some((rank, pid)) = running(&spool) {
        if begin.elapsed() >= options.patience {
            return Err(Error::Running { path: directory.to_owned(), rank, pid });
        }
        if progress.is_cancelled() {
            return Err(Error::Interrupted);
        }
        std::thread::sleep(Duration::from_millis(50));
        (spool, others) = open(directory)?;
    }

    let unfinished = directory.join(UNFINISHED);
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished).map_err(Error::io(&unfinished))?;
    }
    let done = write(&mut spool, &unfinished, options, progress).and_then(|mut summary| {
        summary.bytes = replace(directory, &unfinished)?;
        Ok(summary)
    });
    let summary = done.inspect_err(|_| {
        // On a full disk, somebody may need the space.
        let _ = fs::remove_dir_all(&unfinished);
    })?;
    if !options.keep_spool && summary.ranks == summary.size {
        for directory in std::iter::once(directory).chain(others.iter().map(PathBuf::as_path)) {
            let spool = directory.join(format::DIRECTORY);
            fs::remove_dir_all(&spool).map_err(Error::io(&spool))?;
        }
        for other in &others {
            // Nothing else is in it, unless the user put it there.
            let _ = fs::remove_dir(other);
        }
    }
    Ok(Summary { worlds: others, ..summary })
}

/// Reads the spool of a recording with those of the worlds that it reaches, and returns the directories of the latter.
fn open(directory: &Path) -> Result<(Spool, Vec<PathBuf>)> {
    let spool = Spool::open(&directory.join(format::DIRECTORY))?;
    let others = further(directory).into_iter().filter_map(|other| {
        let spool = Spool::open(&other.join(format::DIRECTORY)).ok()?;
        Some((other, spool))
    });
    Ok(worlds::joined(spool, others.collect()))
}

/// Recordings of the same command that were begun later: `NAME-2`, `NAME-3`, ... beside `NAME`.
fn further(directory: &Path) -> Vec<PathBuf> {
    let Ok(directory) = directory.canonicalize() else { return Vec::new() };
    let (Some(parent), Some(name)) = (directory.parent(), directory.file_name().and_then(|name| name.to_str())) else {
        return Vec::new();
    };
    let own = name.rsplit_once('-').and_then(|(base, number)| Some((base, number.parse::<u32>().ok()?)));
    let (base, own) = own.filter(|(base, _)| parent.join(base).is_dir()).unwrap_or((name, 1));
    let names = fs::read_dir(parent).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let number = |name: std::ffi::OsString| name.to_str()?.strip_prefix(base)?.strip_prefix('-')?.parse::<u32>().ok();
    let mut numbers: Vec<u32> = names.filter_map(number).filter(|number| *number > own).collect();
    numbers.sort_unstable();
    let paths = numbers.into_iter().map(|number| parent.join(format!("{base}-{number}")));
    paths.filter(|path| is_unfinished(path)).collect()
}

/// Moves the archive to its place, the anchor last; returns its size.
fn replace(directory: &Path, unfinished: &Path) -> Result<u64> {
    let anchor = format!("{NAME}.otf2");
    let place = |name: &str| directory.join(name);
    // Without its anchor, an older archive is no archive any more.
    let _ = fs::remove_file(place(&anchor));
    let _ = fs::remove_dir_all(place(NAME));
    let mut bytes = 0;
    for name in [NAME, &format!("{NAME}.def"), &anchor] {
        let (from, to) = (unfinished.join(name), place(name));
        bytes += size_of(&from);
        fs::rename(&from, &to).map_err(Error::io(&to))?;
    }
    fs::remove_dir(unfinished).map_err(Error::io(unfinished))?;
    Ok(bytes)
}

fn size_of(path: &Path) -> u64 {
    let entries = fs::read_dir(path).map(|entries| entries.flatten().map(|entry| size_of(&entry.path())).sum());
    entries.unwrap_or_else(|_| fs::metadata(path).map_or(0, |data| data.len()))
}

/// A process of this machine that has not ended yet: it still writes to the spool.
fn running(spool: &Spool) -> Option<(u32, u32)> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let boot: Vec<u8> = digits
        .chunks_exact(2)
        .filter_map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect();
    let mut unfinished = spool.ranks.iter().filter(|(_, process)| process.definitions.end.is_none());
    unfinished.find_map(|(rank, process)| {
        let start = process.definitions.start.as_ref().filter(|start| start.boot[..] == boot[..])?;
        // Its number may be another program's by now.
        let environment = fs::read(format!("/proc/{}/environ", start.pid)).ok()?;
        let name = format::ENVIRONMENT_ARCHIVE.as_bytes();
        let is_recorded = environment
            .split(|byte| *byte == 0)
            .any(|variable| variable.strip_prefix(name).is_some_and(|rest| rest.first() == Some(&b'=')));
        is_recorded.then_some((*rank, start.pid))
    })
}

/// What differs between worlds.
const SIZES: &str = "numbers of ranks";

/// Processes must have been recorded in the same way.
fn check_agreement(spool: &Spool) -> Result<()> {
    let mut starts =
        spool.ranks.iter().filter_map(|(rank, process)| Some((*rank, process.definitions.start.as_ref()?)));
    let Some((first, expected)) = starts.next() else { return Ok(()) };
    let world = |rank: u32| spool.ranks.get(&rank).map(|process| process.world);
    for (second, start) in starts {
        let is_same = world(first) == world(second);
        let compared = [
            ("versions of the recorder", expected.recorder.clone(), start.recorder.clone()),
            ("options", expected.options.clone(), start.options.clone()),
            (SIZES, expected.size.to_string(), start.size.to_string()),
        ];
        for (what, a, b) in compared {
            if a != b && (is_same || what != SIZES) {
                return Err(Error::Different { first, second, what, values: format!("{a} and {b}") });
            }
        }
    }
    Ok(())
}

/// The most functions of a call path, if not chosen otherwise.
const DEPTH: u32 = 128;

/// The value of an option that was given when recording.
fn option<'a>(spool: &'a Spool, name: &str) -> Option<&'a str> {
    let start = spool.ranks.values().find_map(|process| process.definitions.start.as_ref())?;
    start.options.split(';').find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
}

/// Surveys of a process by thread.
type Surveys = Vec<(u32, Survey)>;

fn write(spool: &mut Spool, directory: &Path, options: &Options, progress: &Progress) -> Result<Summary> {
    let model = options
        .model
        .unwrap_or_else(|| if option(spool, "model") == Some("scorep7") { Model::Scorep7 } else { Model::Full });
    let mut damage = std::mem::take(&mut spool.damage);
    let unified = Unified::new(spool, &mut damage);
    let surveys = survey(spool, progress)?;
    let mut used = vec![false; FUNCTIONS.len()];
    let mut calls = 0;
    for survey in surveys.iter().flatten().map(|(_, survey)| survey) {
        for (number, found) in survey.functions.iter().enumerate() {
            used[number] |= *found && (model == Model::Full || FUNCTIONS[number].is_in_scorep7());
        }
        calls = survey.calls.saturating_add(calls);
        damage.extend(survey.damage.clone());
    }

    let python = if option(spool, "python") == Some("all") { Python::All } else { Python::Program };
    let (selection, mut notes) = Selection::new(option(spool, "only"), option(spool, "filter"));
    let mut symbolizer = Symbolizer::new(&selection);
    let mut catalog = Catalog::default();
    let mut threads: Vec<Vec<(u32, Survey, Paths)>> = Vec::new();
    let mut programs = Vec::new();
    for (process, surveys) in spool.ranks.values().zip(surveys) {
        let program = process.definitions.start.as_ref().map_or("", |start| start.program.as_str());
        let program = if program.is_empty() { "unknown" } else { program };
        let paths = surveys.into_iter().map(|(thread, survey)| {
            let paths = symbolizer.paths(
                &process.definitions,
                program,
                python,
                &survey.nodes,
                &process.definitions.codes,
                !survey.teams.is_empty(),
            );
            (thread, survey, paths)
        });
        threads.push(paths.collect());
        programs.push(catalog.string(process.definitions.title().unwrap_or(program)));
    }
    let mut sampling = Sampling::new(spool, &mut symbolizer, python, &mut damage)?;
    let surveys = || threads.iter().flatten().map(|(_, survey, _)| survey);
    let folds = model == Model::Full;
    let polled = surveys().filter(|_| folds).flat_map(|survey| &survey.polled).copied().collect();
    let unrecorded = surveys().filter(|_| folds).flat_map(|survey| &survey.unrecorded).copied().collect();
    let regions = catalog.regions(&used, &polled, &unrecorded, &selection, &symbolizer.functions);
    let uses = |paradigm| used.iter().zip(FUNCTIONS).any(|(used, function)| *used && function.paradigm() == paradigm);
    let uses_shmem = uses(Paradigm::SHMEM);
    catalog.system(spool, &unified, uses_shmem && !uses(Paradigm::MPI));
    catalog.objects(&unified, model);
    let sets = threads.iter().flatten().flat_map(|(_, survey, _)| &survey.sets).copied().collect();
    let shmem = uses_shmem.then(|| catalog.shmem(&unified, &sets));
    let uses_armci = used.iter().zip(FUNCTIONS).any(|(used, function)| *used && function.class.is_of_armci());
    let armci = uses_armci.then(|| catalog.armci(&unified, shmem.as_ref().map_or(0, Windows::count)));

    if threads.iter().flatten().any(|(_, survey, _)| !survey.partitioned.is_empty()) {
        catalog.partitions();
    }
    let mut metrics = Metrics::default();
    let metric = sampling.define(&mut catalog, &mut metrics);
    let contingents = contingents(&mut catalog, &unified, spool, &threads);
    let constructs = constructs(&mut catalog, &mut symbolizer, &unified, spool, &threads);
    let counters: Vec<_> = spool
        .ranks
        .iter()
        .map(|(rank, process)| metrics.define(*rank, &process.definitions.counters, &mut catalog))
        .collect();

    let clocks = Clocks::new(spool);
    let offsets: Vec<_> = spool.ranks.keys().map(|rank| clocks.offsets(spool, *rank)).collect();
    let unmeasured = offsets.iter().filter(|(_, is_whole)| !is_whole).count();
    if unmeasured > 0 {
        notes.push(format!(
            "the clocks of {unmeasured} ranks were not compared with that of rank 0 at both ends of the run"
        ));
    }
    let local = |rank: u32| &unified.local[&rank];
    let depth = option(spool, "depth").and_then(|depth| depth.parse().ok()).unwrap_or(DEPTH);
    let jobs: Vec<Job<'_>> = spool
        .ranks
        .iter()
        .zip(&threads)
        .zip(programs.iter().zip(&offsets).zip(counters).zip(contingents.into_iter().zip(&constructs)))
        .map(|(((rank, process), threads), (((program, (clock_offsets, _)), counters), (contingent, constructs)))| {
            Job {
                rank: *rank,
                process,
                local: local(*rank),
                threads,
                program: *program,
                depth,
                counters,
                contingent,
                constructs,
                shmem: shmem.as_ref(),
                armci,
                samples: sampling.of(*rank),
                metric,
                clock_offsets,
            }
        })
        .collect();

    let begin = run_span(&jobs).0;
    let ended = ends::told(spool, &unified, &jobs, |job, time| since(job, time, begin, &clocks))?;
    notes.extend(losses(spool, &unified));
    notes.extend(sampling.notes.iter().cloned());
    let unrecorded = || threads.iter().flatten().map(|(_, survey, _)| survey.unrecorded_calls);
    let (count, ticks) = unrecorded().fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
    if count > 0 {
        let seconds = ticks as f64 / clocks.resolution as f64;
        let calls = if count == 1 { "call" } else { "calls" };
        notes.push(format!(
            "{count} {calls} ({seconds:.2} s) with processes of another MPI_COMM_WORLD, which were not recorded"
        ));
    }
    let mut properties = properties(spool, &ended, &notes, &threads);
    properties.extend(sampling.property().map(|value| ("WHYWAIT::SAMPLING".to_owned(), value)));
    properties.extend(polling(threads.iter().flatten().map(|(_, survey, _)| survey).filter(|_| folds)));
    let anchor = Anchor {
        creator: format!("whywait {}", env!("CARGO_PKG_VERSION")),
        description: "recorded by whywait".into(),
        machine_name: "Linux".into(),
        trace_id: trace_id(spool),
        properties,
        ..Anchor::default()
    };
    let archive = ArchiveWriter::create(directory, NAME, WriteOptions { anchor, ..WriteOptions::default() })?;
    let stop = || progress.is_cancelled();
    let written = jobs.par_iter().map(|job| {
        let contexts = job.write(&archive, &regions, model, &stop)?;
        let slots: u64 = job.threads.iter().map(|(_, survey, _)| survey.slots).sum();
        progress.done.fetch_add(slots, Ordering::Relaxed);
        Ok((job.clock_offsets, contexts))
    });
    let written: Vec<_> = written.collect::<Result<_>>()?;
    let mut contexts = contexts::Unified::default();
    for (offsets, locations) in &written {
        for (location, found) in locations {
            let (mapping_tables, clock_offsets) = (vec![contexts.add(found)], offsets.to_vec());
            let local = LocalDefinitions { mapping_tables, clock_offsets, ..LocalDefinitions::default() };
            archive.define_locally(*location, &local)?;
        }
    }
    contexts.define(regions.functions, &symbolizer.functions, &mut catalog);
    catalog.write(&archive, &clocks, run_span(&jobs));
    archive.finish()?;
    notes.extend(ended);
    let (ranks, size) = (spool.ranks.len() as u32, unified.size);
    let (samples, sampled) = (sampling.samples, sampling.rate());
    Ok(Summary { ranks, size, calls, samples, sampled, bytes: 0, notes, damage, worlds: Vec::new() })
}

/// The communicator of the threads of each process that makes or locks some.
fn contingents(
    catalog: &mut Catalog,
    unified: &Unified,
    spool: &Spool,
    threads: &[Vec<(u32, Survey, Paths)>],
) -> Vec<Option<u32>> {
    let uses = |survey: &Survey| {
        let functions = survey.functions.iter().zip(FUNCTIONS);
        functions.into_iter().any(|(found, function)| *found && function.paradigm() == Paradigm::PTHREAD)
    };
    let has_threads = threads.iter().map(|threads| threads.iter().any(|(_, survey, _)| uses(survey)));
    let has_threads: Vec<bool> = has_threads.collect();
    let of_process = |rank: &u32| spool.ranks[rank].threads.keys().map(|thread| location(*rank, *thread)).collect();
    let sets: Vec<Vec<u64>> =
        spool.ranks.keys().zip(&has_threads).filter(|(_, has)| **has).map(|(rank, _)| of_process(rank)).collect();
    let mut comms = catalog.teams(Paradigm::PTHREAD, &sets, unified).into_iter();
    has_threads.into_iter().map(|has| if has { comms.next() } else { None }).collect()
}

/// Regions and teams of OpenMP of each process.
fn constructs(
    catalog: &mut Catalog,
    symbolizer: &mut Symbolizer<'_>,
    unified: &Unified,
    spool: &Spool,
    threads: &[Vec<(u32, Survey, Paths)>],
) -> Vec<Constructs> {
    let mut all = Vec::new();
    let mut sets: Vec<Vec<u64>> = Vec::new();
    for ((rank, process), threads) in spool.ranks.iter().zip(threads) {
        let mut found = Constructs::default();
        let program = process.definitions.start.as_ref().map_or("", |start| start.program.as_str());
        for ((function, code), time) in threads.iter().flat_map(|(_, survey, _)| &survey.constructs) {
            let place = symbolizer.place(&process.definitions, program, *code, *time);
            let region = catalog.construct(&FUNCTIONS[usize::from(*function)], &place);
            found.regions.entry((*function, *code)).or_insert(region);
        }
        let mut teams: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (thread, survey, _) in threads {
            for team in &survey.teams {
                teams.entry(*team).or_default().push(*thread);
            }
        }
        for (team, members) in teams {
            let locations = members.iter().map(|thread| location(*rank, *thread)).collect();
            // The number of the set, until its communicator is known.
            found.teams.insert(team, (sets.len() as u32, members));
            sets.push(locations);
        }
        all.push(found);
    }
    let comms = catalog.teams(Paradigm::OPENMP, &sets, unified);
    for (comm, _) in all.iter_mut().flat_map(|found| found.teams.values_mut()) {
        *comm = comms[*comm as usize];
    }
    all
}

/// Surveys all threads, in parallel.
fn survey(spool: &Spool, progress: &Progress) -> Result<Vec<Surveys>> {
    let unrecorded: Vec<_> = spool.ranks.values().map(|process| worlds::unrecorded(&process.definitions)).collect();
    let processes = (0..).zip(spool.ranks.values()).zip(&unrecorded);
    let files: Vec<(usize, u32, &Process, _)> = processes
        .flat_map(|((index, process), unrecorded)| {
            process.threads.keys().map(move |thread| (index, *thread, process, unrecorded))
        })
        .collect();
    let found: Mutex<Vec<Surveys>> = Mutex::new(spool.ranks.iter().map(|_| Vec::new()).collect());
    files.par_iter().try_for_each(|(index, thread, process, unrecorded)| {
        if progress.is_cancelled() {
            return Err(Error::Interrupted);
        }
        let survey = Survey::new(&mut process.slots(*thread)?, unrecorded)?;
        progress.total.fetch_add(survey.slots, Ordering::Relaxed);
        let mut found = found.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        found[*index].push((*thread, survey));
        Ok(())
    })?;
    let mut found = found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    for surveys in &mut found {
        surveys.sort_unstable_by_key(|(thread, _)| *thread);
    }
    Ok(found)
}

/// First and last time of the run, by its clock.
fn run_span(jobs: &[Job<'_>]) -> (i64, i64) {
    let spans = jobs.iter().map(|job| {
        let (begin, end) = job.span();
        let correction = ClockCorrection::new(job.clock_offsets.iter().map(ClockOffset::point));
        let mut cursor = correction.cursor();
        (cursor.correct(begin), cursor.correct(end))
    });
    spans.reduce(|(begin, end), (from, to)| (begin.min(from), end.max(to))).unwrap_or((0, 0))
}

/// Seconds from the beginning of the run to a time of a process.
fn since(job: &Job<'_>, time: u64, begin: i64, clocks: &Clocks) -> f64 {
    let correction = ClockCorrection::new(job.clock_offsets.iter().map(ClockOffset::point));
    correction.cursor().correct(time).wrapping_sub(begin) as f64 / clocks.resolution as f64
}

/// What the recorder could not record.
fn losses(spool: &Spool, unified: &Unified) -> Vec<String> {
    let mut notes = Vec::new();
    for (rank, process) in &spool.ranks {
        for (_, _, _, text) in &process.definitions.lost {
            notes.push(format!("rank {rank} stopped recording: {text}"));
        }
    }
    let counted = |what: u32| -> u64 {
        let all = spool.ranks.values().flat_map(|process| &process.definitions.notes);
        all.filter(|(kind, _)| *kind == what).map(|(_, count)| count).sum()
    };
    for (what, text) in [
        (format::NOTE_UNKNOWN_COMM, "calls without records, on communicators that were made unseen"),
        (format::NOTE_FREED_RECEIVE, "receives without end, because their requests were freed"),
    ] {
        let count = counted(what);
        if count > 0 {
            notes.push(format!("{text}: {count}"));
        }
    }
    let mut refused: BTreeMap<(&str, &str), Vec<u32>> = BTreeMap::new();
    for (rank, process) in &spool.ranks {
        for (name, why) in &process.definitions.missing_counters {
            refused.entry((name, why)).or_default().push(*rank);
        }
    }
    for ((name, why), ranks) in refused {
        let ranks = if ranks.len() == spool.ranks.len() { String::new() } else { format!(" on {} ranks", ranks.len()) };
        notes.push(format!("the counter {name} was not recorded{ranks}: {why}"));
    }
    let missing = unified.size as usize - spool.ranks.len().min(unified.size as usize);
    if missing > 0 {
        notes.push(format!(
            "{missing} of {} ranks left no recording; if their files are on other machines, copy them to {} and finish again",
            unified.size,
            format::DIRECTORY
        ));
    }
    notes
}

fn properties(
    spool: &Spool,
    ended: &[String],
    notes: &[String],
    threads: &[Vec<(u32, Survey, Paths)>],
) -> Vec<(String, String)> {
    let start = spool.ranks.values().find_map(|process| process.definitions.start.clone()).unwrap_or_default();
    let has_paths = threads.iter().flatten().any(|(_, _, paths)| !paths.is_empty());
    let version = start.library_version.lines().next().unwrap_or_default().trim().to_owned();
    let mut properties = vec![
        ("WHYWAIT::RECORDER".to_owned(), start.recorder),
        ("WHYWAIT::MPI".to_owned(), version),
        ("WHYWAIT::ABI".to_owned(), start.abi),
        ("WHYWAIT::CALL_PATHS".to_owned(), if has_paths { "unwound" } else { "none" }.to_owned()),
        ("WHYWAIT::COMPLETE".to_owned(), ended.is_empty().to_string()),
    ];
    let share = |share: Share| {
        let Share { host, ranks, threads, cores, online } = share;
        format!("{ranks} ranks with {threads} threads may use {cores} of {online} cores on {host}")
    };
    let shares: Vec<String> = shares(spool).into_iter().map(share).collect();
    if spool.worlds.len() > 1 {
        let ranks =
            spool.worlds.iter().map(|World { first, size }| format!("{first} to {}", (first + size).saturating_sub(1)));
        let ranks: Vec<String> = ranks.collect();
        properties.push(("WHYWAIT::WORLDS".to_owned(), format!("ranks {}", ranks.join(", "))));
    }
    if !shares.is_empty() {
        properties.push(("WHYWAIT::CORES".to_owned(), shares.join("\n")));
    }
    if !ended.is_empty() {
        properties.push(("WHYWAIT::ENDED".to_owned(), ended.join("\n")));
    }
    if !notes.is_empty() {
        properties.push(("WHYWAIT::LOST".to_owned(), notes.join("\n")));
    }
    properties
}

/// What was made of tests one after the other.
fn polling<'a>(surveys: impl Iterator<Item = &'a Survey>) -> Option<(String, String)> {
    let (mut functions, mut runs, mut tests) = (BTreeSet::<u16>::new(), 0, 0_u64);
    for survey in surveys {
        functions.extend(&survey.polled);
        (runs, tests) = (runs + survey.runs.0, survey.runs.1.saturating_add(tests));
    }
    let name = FUNCTIONS.get(usize::from(*functions.first()?))?.name;
    let noun = if runs == 1 { "run" } else { "runs" };
    let value =
        format!("{tests} tests in {runs} {noun}, each a call such as {name} (polling), with the time between tests");
    Some(("WHYWAIT::POLLING".to_owned(), value))
}

/// A number that is the same whenever this recording is finished.
fn trace_id(spool: &Spool) -> u64 {
    let start = spool.ranks.values().find_map(|process| process.definitions.start.as_ref());
    start.map_or(0, |start| start.time ^ u64::from(start.pid).rotate_left(32))
}
