//! What numbers mean, as a `.pcf` says it.

use std::fmt::Write as _;

use super::causes::{CRITICAL, DELAYS, INFERRED, LENGTH, PATH, TASK, WAIT_STATE};
use super::counters::Counters;
use super::findings::FINDING;
use super::terms::{CALLER, CALLER_LINE, FUNCTION, OUTLINED, POLLS, PTHREAD_CALL, Terms};
use super::threads::{LIFE, LOCK, LOCK_ADDRESS};
use super::words::Words;
use crate::ids::CallPathId;
use crate::schema::{Metric, Pattern};
use crate::trace::Trace;

const STATES: [(u8, &str); 17] = [
    (0, "Idle"),
    (1, "Running"),
    (2, "Not created"),
    (3, "Waiting a message"),
    (4, "Blocking Send"),
    (5, "Synchronization"),
    (6, "Test/Probe"),
    (7, "Scheduling and Fork/Join"),
    (8, "Wait/WaitAll"),
    (10, "Immediate Send"),
    (11, "Immediate Receive"),
    (12, "I/O"),
    (13, "Group Communication"),
    (14, "Tracing Disabled"),
    (15, "Others"),
    (16, "Send Receive"),
    (20, "Remote memory access"),
];

/// Types of events whose values are numbers.
const PLAIN: [(u32, &str); 21] = [
    (50_100_001, "Send Size in MPI Global OP"),
    (50_100_002, "Recv Size in MPI Global OP"),
    (50_100_003, "Root in MPI Global OP"),
    (50_100_004, "Communicator in MPI Global OP"),
    (POLLS, "MPI_Iprobe that found nothing"),
    (POLLS + 1, "Time in MPI_Iprobe that found nothing, ns"),
    (POLLS + 2, "MPI_Request_get_status that found nothing"),
    (POLLS + 3, "Time in MPI_Request_get_status that found nothing, ns"),
    (POLLS + 4, "MPI_Test that found nothing"),
    (POLLS + 5, "Time in MPI_Test that found nothing, ns"),
    (POLLS + 6, "MPI_Improbe that found nothing"),
    (POLLS + 7, "Time in MPI_Improbe that found nothing, ns"),
    (LOCK_ADDRESS, "OpenMP lock address"),
    (PTHREAD_CALL + 5, "pthread_rw_lock_wr"),
    (PTHREAD_CALL + 6, "pthread_rw_lock_rd"),
    (PTHREAD_CALL + 7, "pthread_rw_unlock"),
    (PTHREAD_CALL + 8, "pthread_mutex_lock"),
    (PTHREAD_CALL + 9, "pthread_mutex_unlock"),
    (TASK, "Wait: task waited for"),
    (LENGTH, "Wait: length, ns"),
    (DELAYS, "Delays others: ns"),
];

/// The text; `paths` are the call paths that cause waits.
pub(super) fn text(
    trace: &Trace,
    (terms, counters): (&Terms, &Counters<'_>),
    words: &Words<'_>,
    paths: &[u32],
) -> String {
    let mut text = "DEFAULT_OPTIONS\n\nLEVEL               THREAD\nUNITS               NANOSEC\n\nSTATES\n".to_owned();
    for (state, name) in STATES {
        let _ = writeln!(text, "{state}    {name}");
    }
    let mut block = |types: &[(u32, &str)], values: &mut dyn Iterator<Item = (i64, String)>| {
        text.push_str("\nEVENT_TYPE\n");
        for (kind, name) in types {
            let _ = writeln!(text, "0    {kind}    {name}");
        }
        let mut values = values.peekable();
        if values.peek().is_some() {
            text.push_str("VALUES\n");
            for (value, name) in values {
                // A line is one value.
                let _ = writeln!(text, "{value}   {}", name.replace(['\n', '\r'], " "));
            }
        }
    };
    for (kind, name) in [
        (50_000_001, "MPI Point-to-point"),
        (50_000_002, "MPI Collective Comm"),
        (50_000_003, "MPI Other"),
        (50_000_004, "MPI One-sided"),
        (50_000_005, "MPI I/O"),
        (PTHREAD_CALL, "pthread call"),
    ] {
        let of_kind = terms.calls.iter().filter(|(of, ..)| *of == kind);
        let calls = of_kind.map(|(_, value, name)| (*value, name.clone()));
        let outside = if kind == PTHREAD_CALL { "Outside pthread call" } else { "Outside MPI" };
        block(&[(kind, name)], &mut std::iter::once((0, outside.to_owned())).chain(calls));
    }
    for plain in PLAIN {
        block(&[plain], &mut std::iter::empty());
    }
    for (kind, name) in counters.labels() {
        block(&[(kind, &name.replace(['\n', '\r'], " "))], &mut std::iter::empty());
    }
    let named = |(value, name): (i64, &str)| (value, name.to_owned());
    let end = || std::iter::once((0, "End".to_owned()));
    let functions = || terms.functions().map(|(value, name)| (value, name.to_owned()));
    block(&[(FUNCTION, "User function")], &mut end().chain(functions()));
    let levels = ["Caller at level 1", "Caller at level 2", "Caller at level 3"];
    let callers: Vec<(u32, &str)> = (CALLER..).zip(levels).collect();
    let unknown = [(1, "Unresolved".to_owned()), (2, "_NOT_Found".to_owned())];
    block(&callers, &mut end().chain(unknown).chain(functions()));
    block(&[(CALLER_LINE, "Caller line at level 1")], &mut end().chain((1..).zip(terms.lines.iter().cloned())));
    block(&[(OUTLINED, "Executed OpenMP parallel function")], &mut end().chain(functions()));
    let unresolved = (1, "Unresolved".to_owned());
    block(&[(LIFE, "pthread function")], &mut end().chain([unresolved]).chain(functions()));
    block(&[(60_000_001, "OpenMP parallel")], &mut [(0, "End"), (3, "REGION")].map(named).into_iter());
    for (kind, name) in [(60_000_005, "OpenMP barrier"), (60_000_016, "OpenMP join")] {
        block(&[(kind, name)], &mut end().chain([(1, name.to_owned())]));
    }
    let locks = [(0, "Outside"), (3, "Lock"), (5, "Unlock"), (6, "Inside")];
    block(&[(LOCK, "OpenMP named lock")], &mut locks.map(named).into_iter());
    let patterns = Metric::ALL.iter().filter(|metric| Pattern::of(**metric).is_some());
    let waits = patterns.map(|metric| (*metric as i64 + 1, (words.label)(*metric)));
    block(&[(WAIT_STATE, "Wait state")], &mut std::iter::once((0, "None".to_owned())).chain(waits));
    let paths = paths.iter().map(|path| (i64::from(*path) + 1, path_text(trace, CallPathId::new(*path))));
    block(&[(PATH, "Wait: call path of the cause")], &mut std::iter::once((0, "None".to_owned())).chain(paths));
    for (kind, name) in [(CRITICAL, "On the critical path"), (INFERRED, "Wait is inferred")] {
        block(&[(kind, name)], &mut [(0, "No".to_owned()), (1, "Yes".to_owned())].into_iter());
    }
    let findings = words.findings.iter().map(|finding| (i64::from(finding.number), finding.label.clone()));
    block(&[(FINDING, "Finding")], &mut std::iter::once((0, "None".to_owned())).chain(findings));
    text
}

/// The path of a call, as text.
fn path_text(trace: &Trace, mut at: CallPathId) -> String {
    let mut names = Vec::new();
    while at.is_some() {
        let node = &trace.tree.nodes()[at];
        names.push(trace.regions.name(trace.records(), node.region));
        at = node.parent;
    }
    names.reverse();
    names.join("/")
}
