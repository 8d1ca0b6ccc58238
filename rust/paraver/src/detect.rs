//! Which files are traces of Paraver.

use std::fs::{self, File};
use std::io::{BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;

use crate::header::is_trace;
use crate::{Error, Result};

/// How the names of traces end.
const ENDINGS: [&str; 2] = [".prv", ".prv.gz"];
/// How the names of files beside them end.
const BESIDE: [&str; 2] = [".pcf", ".row"];
/// The first line of another form, in which Paraver saves traces.
const NEW_FORMAT: &[u8] = b"new format";

/// Whether a path is a trace, says by its name that it is one, or is a directory with one.
#[must_use]
pub fn detect(path: &Path) -> bool {
    if path.is_dir() {
        return !traces_in(path).is_empty();
    }
    let head = head(path);
    is_trace(&head)
        || is_table(path)
        || path.is_file() && (base(path, &ENDINGS).is_some() || trace_beside(path).is_some())
}

/// The trace that a path stands for.
pub(crate) fn find(path: &Path) -> Result<PathBuf> {
    let no_trace = |why: String| Error::no_trace(path, why);
    if path.is_dir() {
        let found = traces_in(path);
        let [trace] = &found[..] else {
            let names: Vec<String> = found.iter().map(|one| one.display().to_string()).collect();
            return Err(no_trace(match names.len() {
                0 => "no Paraver trace (*.prv, *.prv.gz)".to_owned(),
                count => format!("{count} Paraver traces; name one of them: {}", names.join(", ")),
            }));
        };
        return Ok(trace.clone());
    }
    Ok(trace_beside(path).unwrap_or_else(|| path.to_owned()))
}

/// Says why a file without a header is none, by its first bytes.
pub(crate) fn refuse(path: &Path, head: &[u8]) -> Error {
    let why = match head {
        [] => "not a Paraver trace: it is empty",
        _ if head.trim_ascii_start().starts_with(NEW_FORMAT) => {
            "a trace in Paraver's \"new format\", which no recorder writes; give the trace from which Paraver saved it"
        }
        _ if is_table(path) => "a table that Paraver saved (.csv), not a trace; give the trace from which it saved it",
        _ => "not a Paraver trace: its first line does not begin with #Paraver",
    };
    Error::damaged(path, why)
}

/// Whether a file is a table that Paraver saved beside a trace.
fn is_table(path: &Path) -> bool {
    let is_beside = |base: &PathBuf| BESIDE.iter().any(|ending| with_ending(base, ending).is_file());
    path.is_file() && base(path, &[".csv"]).as_ref().is_some_and(is_beside)
}

/// The traces in a directory.
fn traces_in(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> = entries.filter(|file| file.is_file() && base(file, &ENDINGS).is_some()).collect();
    found.sort();
    found
}

/// The path without one of the endings.
fn base(path: &Path, endings: &[&str]) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let base = endings.iter().find_map(|ending| name.strip_suffix(ending))?;
    Some(path.with_file_name(base))
}

/// The file with another ending of its name.
fn with_ending(base: &Path, ending: &str) -> PathBuf {
    let mut name = base.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// The trace beside a file with labels or names.
fn trace_beside(path: &Path) -> Option<PathBuf> {
    let base = base(path, &BESIDE)?;
    ENDINGS.iter().map(|ending| with_ending(&base, ending)).find(|trace| trace.is_file())
}

/// The text of a file beside a trace; none if there is no such file.
pub(crate) fn read_beside(trace: &Path, ending: &str) -> Option<String> {
    let base = base(trace, &ENDINGS).unwrap_or_else(|| trace.with_extension(""));
    let names = [ending.to_owned(), format!("{ending}.gz")];
    let file = names.iter().map(|ending| with_ending(&base, ending)).find(|file| file.is_file())?;
    let mut bytes = Vec::new();
    // What a damaged file begins with counts.
    let _ = open(&file).ok()?.read_to_end(&mut bytes);
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The name of a trace without its ending.
pub(crate) fn name(trace: &Path) -> String {
    let base = base(trace, &ENDINGS).unwrap_or_else(|| trace.to_owned());
    base.file_name().map_or_else(|| "trace".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Opens a file; compressed ones are inflated, whatever their names.
pub(crate) fn open(path: &Path) -> std::io::Result<Box<dyn Read + Send>> {
    let mut file = File::open(path)?;
    let mut magic = Vec::with_capacity(2);
    file.by_ref().take(2).read_to_end(&mut magic)?;
    let is_compressed = magic == [0x1f, 0x8b];
    let all = Cursor::new(magic).chain(file);
    if is_compressed {
        return Ok(Box::new(MultiGzDecoder::new(BufReader::with_capacity(128 << 10, all))));
    }
    Ok(Box::new(all))
}

/// The first bytes of a file, inflated.
fn head(path: &Path) -> Vec<u8> {
    let mut head = Vec::new();
    // What is no file may never end.
    if let Some(input) = path.is_file().then(|| open(path).ok()).flatten() {
        let _ = input.take(16).read_to_end(&mut head);
    }
    head
}
