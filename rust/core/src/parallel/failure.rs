//! Defects in this program: a panic becomes an error that names its place.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::{Mutex, Once, PoisonError};

use super::pool;
use crate::{Error, Result};

/// Place and message of the latest panic of the analysis.
static LATEST: Mutex<Option<String>> = Mutex::new(None);

thread_local! {
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs a job. If it panics, here or in a thread of its pool, returns an error that names the place, and prints
/// nothing.
pub fn guard<T>(job: impl FnOnce() -> T) -> Result<T> {
    remember_places();
    let outer = IS_GUARDED.replace(true);
    let done = catch_unwind(AssertUnwindSafe(job));
    IS_GUARDED.set(outer);
    done.map_err(|_| {
        let place = LATEST.lock().unwrap_or_else(PoisonError::into_inner).take();
        Error::Internal(place.unwrap_or_else(|| String::from("at an unknown place")))
    })
}

/// Installs a hook that records panics of guarded threads and of pools; all others are reported as usual.
fn remember_places() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let report = take_hook();
        set_hook(Box::new(move |panic| {
            let of_pool = std::thread::current().name().is_some_and(|name| name.starts_with(pool::NAME));
            if !of_pool && !IS_GUARDED.get() {
                return report(panic);
            }
            let text = panic.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
            *LATEST.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parallel::iter::prelude::*;

    #[test]
    fn a_panic_says_where_it_was() {
        assert_eq!(guard(|| 5).unwrap(), 5);
        let largest = std::hint::black_box(i64::MAX);
        let error = guard(|| largest + 1).unwrap_err().to_string();
        assert!(error.contains("failure.rs") && error.contains("overflow"), "{error}");
        let in_pool = || (0..99usize).into_par_iter().map(|i| assert_ne!(i, 50, "fifty")).collect::<Vec<_>>();
        let error = guard(|| pool::new(2).unwrap().install(in_pool)).unwrap_err().to_string();
        assert!(error.contains("failure.rs") && error.contains("fifty"), "{error}");
    }
}
