//! Which files are exports of Nsight Systems.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::schema::is_export;
use crate::sqlite::{Database, MAGIC};

/// How the names of exports in a directory end.
const ENDINGS: [&str; 3] = ["sqlite", "sqlite3", "db"];

/// The exports of Nsight Systems that a path names: a file, or those in a directory.
#[must_use]
pub fn detect(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return if is_report(path) { vec![path.to_owned()] } else { Vec::new() };
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = entries.filter(|file| file.is_file()).collect();
    let ends = |file: &Path, ending: &str| file.extension().is_some_and(|extension| extension == ending);
    files.retain(|file| ENDINGS.iter().any(|ending| ends(file, ending)) && is_report(file));
    files.sort();
    files
}

fn is_report(path: &Path) -> bool {
    let mut head = [0; MAGIC.len()];
    let is_database = File::open(path).and_then(|mut file| file.read_exact(&mut head)).is_ok() && &head == MAGIC;
    // What cannot be read says so when it is opened.
    is_database && Database::open(path).map_or(true, |database| is_export(&database))
}
