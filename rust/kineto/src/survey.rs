//! A first look at files of several cycles: only when each was recorded, so that only those that are wanted are kept.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use whywait_devices::{RANK_PATTERNS, by_name, file_name, in_parallel, numbers};

use crate::cycles::{self, Chosen, File};
use crate::detect::open;
use crate::info::Info;
use crate::numbering::host;
use crate::numbers::nanoseconds;
use crate::scan::{Field, Fields, Sink, scan};
use crate::{Error, Result};

/// What was found of a set, of which some files are read.
pub(crate) struct Preselected {
    pub(crate) files: Vec<PathBuf>,
    /// Names of the others, and why they are left out.
    pub(crate) left_out: Vec<(String, String)>,
    pub(crate) cycles: usize,
    pub(crate) cycle: usize,
}

/// Chooses the files of a cycle if names say that a rank has several; nothing if each has one.
pub(crate) fn preselect(files: &[PathBuf], cycle: Option<usize>) -> Result<Option<Preselected>> {
    if !has_repeated_ranks(files) {
        return Ok(None);
    }
    let times = in_parallel(files, Times::read)?;
    let infos: Vec<Info> = times.iter().map(|times| Info::read(&times.metadata)).collect();
    let said: Vec<Option<u32>> = infos.iter().map(|info| info.rank).collect();
    let numbered = numbers(files, &said, RANK_PATTERNS);
    let known: Vec<File> = times
        .iter()
        .zip(&infos)
        .zip(files.iter().zip(numbered))
        .map(|((times, info), (path, (rank, _)))| File {
            rank,
            world_size: info.world_size,
            window: times.window(info.base),
            name: file_name(path),
        })
        .collect();
    let Chosen { files: chosen, left_out, cycles, cycle } = cycles::choose(&known, cycle)?;
    let named = |(file, why): (usize, String)| (file_name(&files[file]), why);
    Ok(Some(Preselected {
        files: chosen.into_iter().map(|file| files[file].clone()).collect(),
        left_out: left_out.into_iter().map(named).collect(),
        cycles,
        cycle,
    }))
}

/// Whether names say that several files are of one rank.
fn has_repeated_ranks(files: &[PathBuf]) -> bool {
    let of_process = |path: &PathBuf| {
        let name = file_name(path);
        host(&name)?;
        let (front, _) = name.split_once(".pt.trace.json")?;
        Some((path.parent().map(Path::to_owned), front.rsplit_once('.')?.0.to_owned()))
    };
    let processes: Option<BTreeSet<_>> = files.iter().map(of_process).collect();
    if let Some(processes) = processes {
        return processes.len() < files.len();
    }
    let ranks = by_name(files, &vec![None; files.len()], RANK_PATTERNS);
    ranks.is_some_and(|ranks| ranks.iter().collect::<BTreeSet<_>>().len() < files.len())
}

/// When a file was recorded.
#[derive(Debug, Default)]
struct Times {
    metadata: Vec<(String, Vec<u8>)>,
    began: Option<i64>,
    ended: Option<i64>,
    events: Option<(i64, i64)>,
}

impl Times {
    fn read(path: &Path) -> Result<Self> {
        let mut times = Self::default();
        let _ = open(path).and_then(|input| scan(input, &mut times)).map_err(Error::io(path))?;
        Ok(times)
    }

    fn window(&self, base: i64) -> (i64, i64) {
        let (first, last) = self.events.unwrap_or_default();
        let (begin, end) = (self.began.unwrap_or(first), self.ended.unwrap_or(last));
        (begin.saturating_add(base), end.max(begin).saturating_add(base))
    }
}

impl Sink for Times {
    fn event(&mut self, event: &Fields<'_>) {
        let time = |field| event.get(field).and_then(nanoseconds);
        match (event.text(Field::Phase), event.text(Field::Category)) {
            (Some(b"X"), Some(b"Trace")) => self.began = self.began.or(time(Field::Time)),
            (Some(b"X"), _) => {
                let Some(begin) = time(Field::Time).filter(|begin| *begin != 0) else { return };
                let end = begin.saturating_add(time(Field::Duration).unwrap_or(0).max(0));
                let (first, last) = self.events.unwrap_or((begin, end));
                self.events = Some((first.min(begin), last.max(end)));
            }
            _ if event.text(Field::Name) == Some(b"Record Window End") => self.ended = time(Field::Time),
            _ => {}
        }
    }

    fn metadata(&mut self, key: &[u8], value: &[u8]) {
        let is_wanted = matches!(key, b"distributedInfo" | b"baseTimeNanoseconds");
        if is_wanted {
            self.metadata.push((String::from_utf8_lossy(key).into_owned(), value.to_vec()));
        }
    }
}
