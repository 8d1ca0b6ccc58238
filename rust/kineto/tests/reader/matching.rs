//! Operations, their members and messages against what the programs that wrote the traces did (`right.json`).

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::common::{Instance, Trace, cases, right};
use whywait_devices::Method;

/// The waits of each rank, as section 8 defines them, from the records alone.
pub(crate) fn waits(trace: &Trace) -> Vec<(String, u32, i64)> {
    let mut found = Vec::new();
    for Instance { kind, members } in &trace.instances {
        for member in members {
            let last = members
                .iter()
                .filter(|other| other.sent > 0 && member.received > 0 || kind == "barrier")
                .map(|other| other.begin)
                .max();
            let wait = last.unwrap_or(member.begin).min(member.end) - member.waits_from;
            if wait > 0 {
                found.push((kind.clone(), member.rank, wait));
            }
        }
    }
    for message in &trace.messages {
        let late_sender = (message.send.0 - message.receive.0).max(0);
        if late_sender > 0 {
            found.push(("recv".to_owned(), message.receiver, late_sender.min(message.receive.1 - message.receive.0)));
        }
        let late_receiver = (message.receive.0 - message.send.0).max(0);
        if late_receiver > 0 && message.send.1 > message.receive.0 {
            found.push(("send".to_owned(), message.sender, late_receiver));
        }
    }
    found.sort();
    found
}

#[test]
fn waits_are_those_of_the_program() {
    for case in [
        "late_loader",
        "late_loader_2.4",
        "overlap",
        "chain",
        "generic_names",
        "host_bound",
        "host_chain",
        "directions",
        "current_stream",
        "graph",
        "windows",
        "windows_2.4",
        "pipeline",
    ] {
        let Some(directory) = cases(case) else { return };
        let trace = Trace::read(&[directory.join("traces")]);
        assert_eq!(waits(&trace), right(&directory), "{case}");
    }
}

/// Waits of the members of one kind.
fn total(waits: &[(String, u32, i64)], kind: &str) -> i64 {
    waits.iter().filter(|(of, ..)| of == kind).map(|(.., wait)| wait).sum()
}

#[test]
fn times_in_microseconds_give_the_same_waits() {
    let Some(directory) = cases("late_loader_2.0") else { return };
    let trace = Trace::read(&[directory.join("traces")]);
    let (found, right) = (waits(&trace), right(&directory));
    assert_eq!(found.len(), right.len());
    for (found, right) in found.iter().zip(&right) {
        assert_eq!((&found.0, found.1), (&right.0, right.1));
        assert!((found.2 - right.2).abs() <= 1000, "{found:?}, not {right:?}");
    }
    assert_eq!(trace.recording.facts().groups[0].method, Method::AllRanks);
}

/// A kernel of several messages waits for the latest of them.
#[test]
fn a_coalesced_kernel_has_all_its_messages() {
    let Some(directory) = cases("coalesced") else { return };
    let trace = Trace::read(&[directory.join("traces")]);
    let mut waits: BTreeMap<(u32, i64), i64> = BTreeMap::new();
    for message in &trace.messages {
        for (rank, own, other) in
            [(message.sender, message.send, message.receive), (message.receiver, message.receive, message.send)]
        {
            let wait = waits.entry((rank, own.0)).or_default();
            *wait = (*wait).max(other.0 - own.0);
        }
    }
    let mut found: Vec<_> =
        waits.iter().filter(|(_, wait)| **wait > 0).map(|((rank, _), wait)| (*rank, *wait)).collect();
    found.sort_unstable();
    let exchanges = right(&directory).into_iter().filter(|(kind, ..)| kind == "exchange");
    assert_eq!(found, exchanges.map(|(_, rank, wait)| (rank, wait)).collect::<Vec<_>>());
    assert_eq!(trace.messages.len(), 2 * 4, "one to each neighbor, twice");
}

#[test]
fn a_rank_without_a_file_leaves_time_that_nobody_explains() {
    let Some(directory) = cases("missing_rank") else { return };
    let trace = Trace::read(&[directory.join("traces")]);
    assert_eq!(waits(&trace), []);
    let facts = trace.recording.facts();
    assert_eq!(facts.missing().collect::<Vec<_>>(), [2]);
    let group = &facts.groups[0];
    assert!(group.is_partial);
    assert_eq!((group.known, group.size, group.instances), (3, 4, 3));
    assert_eq!(group.time_after_last, 225_000_000 + 9 * 2_000_000, "the waits, and each member's transfer");
}

#[test]
fn a_real_run_on_eight_devices_is_matched_by_order() {
    let Some(directory) = cases("dlrm8") else { return };
    let trace = Trace::read(&[directory.join("traces")]);
    assert_eq!(trace.instances.len(), 8);
    let members = || trace.instances.iter().flat_map(|instance| &instance.members);
    assert_eq!(members().count(), 64);
    assert_eq!(members().map(|member| member.end - member.begin).sum::<i64>(), 48_542_000);
    let waits = waits(&trace);
    assert_eq!(waits.iter().map(|(.., wait)| wait).sum::<i64>(), 46_843_000);
    assert!(total(&waits, "all_to_all") > total(&waits, "all_reduce"));
}

#[test]
fn a_production_job_of_eight_workers_is_matched_by_sequence() {
    let Some(directory) = cases("straggler_stage") else { return };
    let trace = Trace::read(&[directory.join("traces")]);
    assert_eq!(trace.instances.len() + trace.messages.len(), 1888);
    let waits = waits(&trace);
    let near = |kind: &str, right: f64| {
        let found = total(&waits, kind) as f64 / 1e9;
        assert!((found - right).abs() < 1e-5, "{kind}: {found}, not {right}");
    };
    near("all_gather", 0.019_777);
    near("all_reduce", 58.802_659);
    near("reduce_scatter", 1.551_234);
    near("recv", 208.934_807);
    near("send", 105.217_736);
}

#[test]
fn the_order_of_files_changes_nothing() {
    let Some(directory) = cases("chain") else { return };
    let files: Vec<PathBuf> =
        (0..4).map(|rank| directory.join(format!("traces/rank{rank}.pt.trace.json.gz"))).collect();
    let forth = Trace::read(&files);
    let back = Trace::read(&files.iter().rev().cloned().collect::<Vec<_>>());
    assert_eq!(forth.instances, back.instances);
    assert_eq!(forth.regions(), back.regions());
}
