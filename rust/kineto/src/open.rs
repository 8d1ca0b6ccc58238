//! Opens a set of files as one recording.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use whywait_devices::{DeviceRecording, Facts, RANK_PATTERNS, RankFacts, Source, file_name, in_parallel, numbers};
use whywait_otf2::{Oddity, OddityKind, error::Place};

use crate::columns::Columns;
use crate::cycles::{self, File};
use crate::detect::{Found, find, open as open_file};
use crate::infer;
use crate::numbering::host;
use crate::options::Options;
use crate::rank::Traced;
use crate::scan::scan;
use crate::shapes;
use crate::survey::preselect;
use crate::{Error, Result};

/// More unreadable events than this, and than one of a hundred, and a file is too damaged to be read.
const MOST_UNREADABLE: u64 = 10;

/// Opens the traces of a run: files, or directories with files.
pub fn open(paths: &[PathBuf], options: &Options) -> Result<DeviceRecording> {
    let mut found = Found::default();
    for path in paths {
        let more = find(path)?;
        found.traces.extend(more.traces);
        found.empty.extend(more.empty);
        found.chrome.extend(more.chrome);
    }
    let first = paths.first().cloned().unwrap_or_default();
    let mut seen = BTreeSet::new();
    found.traces.retain(|path| seen.insert(path.clone()));
    if found.traces.is_empty() {
        let (path, why) = match (found.chrome.first(), found.empty.first()) {
            (Some(path), _) => (path, "a Chrome trace, but not of the PyTorch profiler"),
            (None, Some(path)) => (path, "a trace without events"),
            (None, None) => (&first, "no traces of the PyTorch profiler (*.pt.trace.json, *.pt.trace.json.gz)"),
        };
        return Err(Error::no_trace(path, why));
    }
    let mut left_out: Vec<(String, String)> =
        found.empty.iter().map(|path| (file_name(path), "it is empty".to_owned())).collect();
    let preselected = preselect(&found.traces, options.cycle)?;
    let files = preselected.as_ref().map_or(&found.traces, |preselected| &preselected.files);
    let mut ranks = Vec::new();
    for rank in in_parallel(files, |file| read(file, options))? {
        if rank.odd.summary.events == 0 {
            left_out.push((file_name(&rank.path), "it has no events".to_owned()));
        } else {
            ranks.push(rank);
        }
    }
    if ranks.is_empty() {
        return Err(Error::no_trace(&first, "no trace has events"));
    }
    let mut oddities = Vec::new();
    number(&mut ranks, &mut oddities);
    complete(&mut ranks, &mut oddities);
    let files: Vec<File> = ranks.iter().map(File::of).collect();
    let mut chosen = cycles::choose(&files, options.cycle.filter(|_| preselected.is_none()))?;
    if let Some(preselected) = preselected {
        left_out.extend(preselected.left_out);
        (chosen.cycles, chosen.cycle) = (preselected.cycles, preselected.cycle);
    }
    left_out.extend(chosen.left_out.iter().map(|(file, why)| (file_name(&ranks[*file].path), why.clone())));
    let mut place = 0;
    ranks.retain(|_| {
        place += 1;
        chosen.files.contains(&(place - 1))
    });
    ranks.sort_by_key(|rank| rank.rank.number);
    for rank in &mut ranks {
        note(rank, &mut oddities);
        (rank.rank.host, rank.rank.devices) = (rank.info.host.clone(), std::mem::take(&mut rank.info.devices));
    }
    for (file, why) in &left_out {
        oddities.push(oddity(OddityKind::Missing, Path::new(file), 0, format!("the file is left out: {why}")));
    }
    let facts = facts(&mut ranks, &chosen, left_out);
    let (path, name) = identity(&found.traces, &first);
    let source = Source { path, name, creator: "PyTorch profiler", tool: "KINETO" };
    infer::groups(&mut ranks);
    let ranks = ranks.into_iter().map(|traced| traced.rank).collect();
    Ok(DeviceRecording::new(source, ranks, Vec::new(), facts, oddities))
}

/// Reads a file.
fn read(path: &Path, options: &Options) -> Result<Traced> {
    let mut columns = Columns::new(options);
    let summary = open_file(path).and_then(|input| scan(input, &mut columns)).map_err(Error::io(path))?;
    if summary.unreadable > MOST_UNREADABLE && summary.unreadable * 100 > summary.events {
        let why = format!(
            "{} of {} events cannot be read, the first at byte {} (inflated)",
            summary.unreadable,
            summary.events + summary.unreadable,
            summary.first_unreadable
        );
        return Err(Error::damaged(path, why));
    }
    Ok(Traced::new(path, columns, summary, options))
}

/// The directory of a run, and its name.
fn identity(files: &[PathBuf], given: &Path) -> (PathBuf, String) {
    let path = if given.is_dir() { given } else { files[0].parent().unwrap_or(given) };
    let absolute = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let name = absolute.file_name().map_or_else(|| "traces".to_owned(), |name| name.to_string_lossy().into_owned());
    (path.to_owned(), name)
}

/// Gives each file its rank and its node.
fn number(ranks: &mut [Traced], oddities: &mut Vec<Oddity>) {
    let paths: Vec<PathBuf> = ranks.iter().map(|rank| rank.path.clone()).collect();
    let said: Vec<Option<u32>> = ranks.iter().map(|rank| rank.info.rank).collect();
    for (rank, (number, is_guess)) in ranks.iter_mut().zip(numbers(&paths, &said, RANK_PATTERNS)) {
        rank.rank.number = number;
        if is_guess {
            let text = format!("no rank is known of this file: {number} is a guess by the order of names");
            oddities.push(oddity(OddityKind::Guessed, &rank.path, 0, text));
        }
        if rank.info.host.is_none() {
            rank.info.host = host(&file_name(&rank.path));
        }
    }
}

/// Takes from the other files what one does not say: the time to which its times are relative, and the node if all are on one.
fn complete(ranks: &mut [Traced], oddities: &mut Vec<Oddity>) {
    let mut bases: Vec<i64> = ranks.iter().filter(|rank| rank.info.has_base).map(|rank| rank.info.base).collect();
    bases.sort_unstable();
    let base = bases.chunk_by(|a, b| a == b).max_by_key(|same| same.len()).map(|same| same[0]);
    let windows: Vec<(i64, i64)> =
        ranks.iter().filter(|rank| rank.info.has_base).map(|rank| rank.rank.window).collect();
    let is_among = |(begin, end): (i64, i64)| windows.iter().any(|window| begin <= window.1 && window.0 <= end);
    let hosts: BTreeSet<String> = ranks.iter().filter_map(|rank| rank.info.host.clone()).collect();
    for rank in ranks {
        if rank.info.host.is_none() && hosts.len() == 1 {
            rank.info.host = hosts.first().cloned();
        }
        let Some(base) = base.filter(|_| !rank.info.has_base && !is_among(rank.rank.window)) else { continue };
        let moved = (rank.rank.window.0.saturating_add(base), rank.rank.window.1.saturating_add(base));
        if is_among(moved) {
            rank.rank.shift(base);
            let text = "its times are relative, and the file does not say to what: to the same as those of the others, it seems";
            oddities.push(oddity(OddityKind::Guessed, &rank.path, 0, text.to_owned()));
        }
    }
}

fn oddity(kind: OddityKind, path: &Path, offset: u64, text: String) -> Oddity {
    Oddity { kind, place: Place { path: path.to_owned(), offset }, text }
}

/// Notes what was odd in a file.
fn note(rank: &Traced, oddities: &mut Vec<Oddity>) {
    let odd = &rank.odd;
    let summary = &odd.summary;
    let mut add = |kind, offset, text| oddities.push(oddity(kind, &rank.path, offset, text));
    if let Some(offset) = summary.truncated {
        let text = "the file ends too early: all events before were read, later operations of this rank are missing";
        add(OddityKind::Truncated, offset, text.to_owned());
    } else if let Some(defect) = &summary.defect {
        add(OddityKind::Trailing, 0, format!("after the last event: {defect}"));
    }
    let mut count = |kind, number: u64, offset, what: &str| {
        if number > 0 {
            add(kind, offset, format!("{number} {what}"));
        }
    };
    count(
        OddityKind::Unreadable,
        summary.unreadable,
        summary.first_unreadable,
        "events cannot be read and are left out",
    );
    count(OddityKind::Range, odd.counts.no_time, 0, "events without a readable time are left out");
    count(OddityKind::Duration, odd.counts.odd_durations, 0, "lengths that are negative or no number are read as 0");
    count(OddityKind::DeviceTime, odd.far_works, 0, "works at a time that cannot be are left out");
    count(OddityKind::Range, odd.counts.odd_numbers, 0, "correlations that are negative or too large are left out");
    let memory = "samples of memory in use are left out: read them with --memory";
    count(OddityKind::Missing, odd.further_memory, 0, memory);
    count(OddityKind::Crossing, odd.crossings, 0, "spans of threads cross others, and were cut or divided");
    count(
        OddityKind::Duration,
        odd.cut_works,
        0,
        "works ran over most of the next work of their stream, and end where it begins",
    );
}

fn facts(ranks: &mut [Traced], chosen: &cycles::Chosen, left_out: Vec<(String, String)>) -> Facts {
    let highest = ranks.iter().map(|rank| rank.rank.number + 1).max().unwrap_or(0);
    let said = ranks.iter().filter_map(|rank| rank.info.world_size).max().unwrap_or(0);
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, version) in ranks.iter().flat_map(|rank| &rank.info.versions) {
        versions.entry(name.clone()).or_default().insert(version.clone());
    }
    let joined = |versions: BTreeSet<String>| versions.into_iter().collect::<Vec<_>>().join(", ");
    let mut recorded: Vec<&'static str> = Vec::new();
    for what in ["stacks", "shapes", "modules", "memory"] {
        if ranks.iter().any(|rank| rank.info.recorded.contains(&what)) {
            recorded.push(what);
        }
    }
    if ranks.iter().any(|rank| !rank.rank.syncs.is_empty()) {
        recorded.push("synchronizations");
    }
    let of_rank = |traced: &Traced| RankFacts {
        file: file_name(&traced.path),
        events: traced.odd.summary.events,
        unlaunched: traced.odd.unlaunched,
        ..traced.rank.facts()
    };
    let known: Vec<RankFacts> = ranks.iter().map(of_rank).collect();
    let shapes = ranks.iter_mut().map(|rank| (rank.rank.number, std::mem::take(&mut rank.shapes)));
    let shapes = shapes::compare(&shapes.collect::<Vec<_>>());
    Facts {
        world_size: highest.max(said),
        steps: Facts::shared_steps(&known),
        ranks: known,
        groups: Vec::new(),
        shapes,
        versions: versions.into_iter().map(|(name, versions)| (name, joined(versions))).collect(),
        recorded,
        cycles: chosen.cycles,
        cycle: chosen.cycle,
        left_out,
    }
}
