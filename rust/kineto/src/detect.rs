//! Which files are traces of PyTorch's profiler.

use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use memchr::memmem;

use crate::{Error, Result};

/// Bytes of a file that are looked at to find out what it is.
const HEAD: usize = 64 << 10;
/// How the names of traces end.
const ENDINGS: [&str; 4] = [".json", ".json.gz", ".json.tmp", ".json.gz.tmp"];

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    /// A trace of PyTorch's profiler.
    Trace,
    /// Nothing but a bracket, or nothing at all.
    Empty,
    /// A trace of another program in the same format.
    Chrome,
    Other,
}

/// The files of a path.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) traces: Vec<PathBuf>,
    /// Files with the name of a trace, without anything in them.
    pub(crate) empty: Vec<PathBuf>,
    /// Traces of other programs.
    pub(crate) chrome: Vec<PathBuf>,
}

/// The traces of PyTorch's profiler that a path names: a file, or a directory with files, possibly in a directory each.
/// `None` if it names none.
#[must_use]
pub fn detect(path: &Path) -> Option<Vec<PathBuf>> {
    let found = find(path).ok()?;
    (!found.traces.is_empty()).then_some(found.traces)
}

/// Whether a path is an object or array of events of another program.
#[must_use]
pub fn is_other_chrome_trace(path: &Path) -> bool {
    find(path).is_ok_and(|found| found.traces.is_empty() && !found.chrome.is_empty())
}

/// Looks at a file, or at the files in a directory.
pub(crate) fn find(path: &Path) -> Result<Found> {
    let mut found = Found::default();
    if path.is_file() {
        sort(path, &mut found);
        return Ok(found);
    }
    let directories = list(path, &mut found)?;
    if found.traces.is_empty() {
        for directory in directories {
            // What cannot be read there is none of the run's.
            let _ = list(&directory, &mut found);
        }
    }
    Ok(found)
}

/// Sorts the files of a directory; the directories in it.
fn list(path: &Path, found: &mut Found) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(path).map_err(Error::io(path))?;
    let mut entries: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    entries.sort();
    let (directories, files): (Vec<PathBuf>, Vec<PathBuf>) = entries.into_iter().partition(|entry| entry.is_dir());
    // What is no file may never end.
    for file in files.iter().filter(|file| file.is_file()) {
        sort(file, found);
    }
    Ok(directories)
}

fn sort(path: &Path, found: &mut Found) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if !ENDINGS.iter().any(|ending| name.ends_with(ending)) {
        return;
    }
    match look(path) {
        Look::Trace => found.traces.push(path.to_owned()),
        Look::Empty => found.empty.push(path.to_owned()),
        Look::Chrome => found.chrome.push(path.to_owned()),
        Look::Other => {}
    }
}

/// Opens a file; compressed ones are inflated, whatever their names.
pub(crate) fn open(path: &Path) -> std::io::Result<Box<dyn Read + Send>> {
    let mut file = File::open(path)?;
    let mut magic = [0; 2];
    let mut length = 0;
    while length < magic.len() {
        match file.read(&mut magic[length..])? {
            0 => break,
            count => length += count,
        }
    }
    let head = std::io::Cursor::new(magic[..length].to_vec());
    let all = head.chain(file);
    if magic == [0x1f, 0x8b] {
        return Ok(Box::new(MultiGzDecoder::new(BufReader::with_capacity(128 << 10, all))));
    }
    Ok(Box::new(all))
}

fn look(path: &Path) -> Look {
    let mut head = Vec::with_capacity(HEAD);
    if let Ok(input) = open(path) {
        // What a cut or damaged file begins with counts.
        let _ = input.take(HEAD as u64).read_to_end(&mut head);
    }
    look_at(&head)
}

fn look_at(head: &[u8]) -> Look {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii();
    let has = |part: &str| memmem::find(text, part.as_bytes()).is_some();
    let is_trace = match text.first() {
        None => return Look::Empty,
        Some(b'{') => has("\"traceEvents\"") || has("\"schemaVersion\""),
        Some(b'[') => has("\"ph\""),
        Some(_) => return Look::Other,
    };
    let is_bare = text.len() == 1 || is_trace && head.len() < HEAD && !has("\"ph\"");
    if is_bare {
        return Look::Empty;
    }
    let categories =
        ["cpu_op", "user_annotation", "python_function", "cuda_runtime", "cuda_driver", "gpu_memcpy", "Operator"];
    let is_of_pytorch = || has("\"schemaVersion\"") || categories.iter().any(|category| has(category));
    match is_trace {
        true if is_of_pytorch() => Look::Trace,
        true => Look::Chrome,
        false => Look::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_tells_what_a_file_is() {
        for (head, kind) in [
            (r#"{"schemaVersion": 1, "traceEvents": [{"ph":"#, Look::Trace),
            (r#"{ "traceEvents": [ {"ph": "X", "cat": "cpu_op""#, Look::Trace),
            ("\u{feff}[{\"ph\": \"X\", \"cat\": \"user_annotation\"", Look::Trace),
            (r#"{"traceEvents": [{"ph": "B", "cat": "v8"}]}"#, Look::Chrome),
            (r#"{"run_ns": 165030000}"#, Look::Other),
            ("hello", Look::Other),
            ("", Look::Empty),
            (" [\n", Look::Empty),
            (r#"{"traceEvents": ["#, Look::Empty),
        ] {
            assert_eq!(look_at(head.as_bytes()), kind, "{head}");
        }
    }
}
