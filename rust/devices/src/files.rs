//! Files of a run.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
/// The name of a file without its directory.
pub fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// Does something to each file, several at once.
pub fn in_parallel<T: Send, E: Send>(
    files: &[PathBuf],
    what: impl Fn(&Path) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let results: Vec<Mutex<Option<Result<T, E>>>> = files.iter().map(|_| Mutex::new(None)).collect();
    rayon::scope(|scope| {
        for (file, result) in files.iter().zip(&results) {
            let what = &what;
            scope.spawn(move |_| {
                let found = what(file);
                *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
            });
        }
    });
    results.into_iter().filter_map(|result| result.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}
