//! Damaged files in the place of an intact one: what is readable is read, and what is not is said.

use std::path::{Path, PathBuf};

use crate::common::{Trace, cases};
use whywait_kineto::{Error, Options, open};
use whywait_otf2::{OddityKind, Recording};

/// The files of `late_loader`, with a damaged one in the place of that of rank 1.
fn with(damaged: &Path) -> Option<Vec<PathBuf>> {
    let intact = cases("late_loader")?;
    let file = std::fs::read_dir(damaged).ok()?.next()?.ok()?.path();
    let intact = [0, 2, 3].map(|rank| intact.join(format!("traces/rank{rank}.pt.trace.json.gz")));
    Some(intact.into_iter().chain([file]).collect())
}

fn kinds(trace: &Trace) -> Vec<OddityKind> {
    trace.recording.oddities().iter().map(|oddity| oddity.kind).collect()
}

#[test]
fn what_can_be_read_is_the_same() {
    let (Some(intact), Some(damaged)) = (cases("late_loader"), cases("damaged")) else { return };
    let right = Trace::read(&[intact.join("traces")]);
    for (case, oddity) in [
        ("bom", None),
        ("array", Some(OddityKind::Guessed)),
        ("string_ids", None),
        ("exponents", None),
        ("out_of_order", None),
        ("info_at_end", None),
        ("info_as_text", None),
        ("duplicate_keys", None),
        ("big_numbers", None),
        ("bad_utf8", None),
        ("raw_newline", None),
        ("no_info", None),
        ("nan", Some(OddityKind::Duration)),
        ("negative", Some(OddityKind::Duration)),
        ("zero_time", Some(OddityKind::DeviceTime)),
        ("unescaped_quote", Some(OddityKind::Unreadable)),
        ("no_end", Some(OddityKind::Truncated)),
    ] {
        let found = Trace::read(&with(&damaged.join(case)).unwrap());
        let is_at_end = case == "no_end";
        assert_eq!(found.instances, right.instances, "{case}");
        assert_eq!(kinds(&found), oddity.into_iter().collect::<Vec<_>>(), "{case}");
        let events = |trace: &Trace| -> u64 {
            trace.recording.definitions().locations.iter().map(|location| location.number_of_events).sum()
        };
        let lost = events(&right) - events(&found);
        assert!(lost <= 4, "{case}: {lost} events are lost");
        assert!(is_at_end || found.recording.facts().ranks.iter().all(|rank| rank.steps.len() == 3), "{case}");
    }
}

#[test]
fn what_is_cut_is_read_up_to_the_cut() {
    let (Some(intact), Some(damaged)) = (cases("late_loader"), cases("damaged")) else { return };
    let right = Trace::read(&[intact.join("traces")]);
    for case in ["cut_gzip", "cut_json", "cut_in_string"] {
        let found = Trace::read(&with(&damaged.join(case)).unwrap());
        assert_eq!(kinds(&found), [OddityKind::Truncated], "{case}");
        let count = found.instances.len();
        assert!(count < 3, "{case}");
        assert_eq!(found.instances, right.instances[..count], "{case}");
        let events = found.recording.facts().ranks[1].events;
        assert!(events > 10, "{case}: {events} events");
    }
}

#[test]
fn what_is_empty_is_left_out_and_named() {
    let Some(damaged) = cases("damaged") else { return };
    for case in ["empty", "only_bracket"] {
        let found = Trace::read(&with(&damaged.join(case)).unwrap());
        let facts = found.recording.facts();
        assert_eq!(facts.left_out.len(), 1, "{case}");
        assert_eq!(facts.missing().collect::<Vec<_>>(), [1], "{case}");
        assert!(matches!(open(&[damaged.join(case)], &Options::default()), Err(Error::NoTrace { .. })), "{case}");
    }
    let error = open(&[damaged.join("not_json")], &Options::default()).unwrap_err();
    assert!(matches!(error, Error::NoTrace { .. }), "{error}");
}
