//! Work on several things at once.

use std::sync::{Mutex, PoisonError};

/// Does something to each item, several at once.
pub(crate) fn map<T: Send, R: Send>(items: Vec<T>, what: impl Fn(T) -> R + Sync) -> Vec<R> {
    let results: Vec<Mutex<Option<R>>> = items.iter().map(|_| Mutex::new(None)).collect();
    rayon::scope(|scope| {
        for (item, result) in items.into_iter().zip(&results) {
            let what = &what;
            scope.spawn(move |_| {
                let found = what(item);
                *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
            });
        }
    });
    results.into_iter().filter_map(|result| result.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}
