//! Programs recorded with Gloo, whose delays are known but for what two cores add.

use crate::common::{Trace, cases};
use crate::matching::waits;

const MS: i64 = 1_000_000;

fn trace(case: &str) -> Option<Trace> {
    Some(Trace::read(&[cases(case)?.join("traces")]))
}

/// Waits of more than 4 ms of one kind: rank and length in ms, in order of rank.
fn long(trace: &Trace, kind: &str) -> Vec<(u32, f64)> {
    let waits = waits(trace);
    let long = waits.iter().filter(|(of, _, wait)| of == kind && *wait > 4 * MS);
    long.map(|(_, rank, wait)| (*rank, *wait as f64 / MS as f64)).collect()
}

/// Whether a length is as it should be, in ms, on two shared cores.
fn is_near(found: f64, right: f64) -> bool {
    (found - right).abs() <= 0.15 * right + 2.0
}

fn assert_waits(case: &str, found: &[(u32, f64)], right: &[(u32, f64)]) {
    let fits = |(found, right): (&(u32, f64), &(u32, f64))| found.0 == right.0 && is_near(found.1, right.1);
    assert!(found.len() == right.len() && found.iter().zip(right).all(fits), "{case}: {found:?}, not {right:?}");
}

#[test]
fn who_issues_early_waits_in_the_gap() {
    let Some(trace) = trace("gloo_allreduce") else { return };
    let right: Vec<(u32, f64)> = [0, 1, 3].into_iter().flat_map(|rank| [(rank, 25.0); 3]).collect();
    assert_waits("gloo_allreduce", &long(&trace, "all_reduce"), &right);
}

#[test]
fn an_operation_beside_work_costs_nothing() {
    let Some(trace) = trace("gloo_async") else { return };
    let found = long(&trace, "all_reduce");
    assert_eq!(found.len(), 9, "three ranks wait for the second operation of three steps: {found:?}");
    assert!(found.iter().all(|(rank, wait)| *rank < 3 && (27.0..40.0).contains(wait)), "{found:?}");
}

#[test]
fn groups_follow_from_call_paths_and_times() {
    let Some(trace) = trace("gloo_mesh") else { return };
    let right: Vec<(u32, f64)> = [0, 1, 2].into_iter().flat_map(|rank| [(rank, 20.0); 3]).collect();
    assert_waits("gloo_mesh", &long(&trace, "all_reduce"), &right);
    let groups = &trace.recording.facts().groups;
    assert!(groups.iter().all(|group| group.unmatched == 0 && group.size == 2), "{groups:?}");
}

#[test]
fn windows_that_begin_at_other_steps_are_aligned() {
    let Some(trace) = trace("gloo_window") else { return };
    assert_eq!(trace.instances.len(), 3);
    let mut late: Vec<u32> = Vec::new();
    for instance in &trace.instances {
        late.push(instance.members.iter().max_by_key(|member| member.begin).unwrap().rank);
    }
    late.dedup();
    assert_eq!(late.len(), 3, "another rank is slow in each step");
    let found = long(&trace, "all_reduce");
    assert!(found.len() == 9 && found.iter().all(|(_, wait)| is_near(*wait, 10.0)), "{found:?}");
}

#[test]
fn sharded_training_waits_for_the_slow_backward_pass() {
    let Some(trace) = trace("gloo_fsdp") else { return };
    let found = long(&trace, "reduce_scatter");
    assert!(found.len() >= 18 && found.iter().all(|(rank, _)| *rank < 3), "{found:?}");
    assert!(found.iter().all(|(_, wait)| (4.0..9.5).contains(wait)), "{found:?}");
}

#[test]
fn data_parallel_training_waits_for_the_slow_loader() {
    let Some(trace) = trace("gloo_ddp") else { return };
    let waits = waits(&trace);
    for rank in [0, 2, 3] {
        let all: i64 = waits.iter().filter(|(_, of, _)| *of == rank).map(|(.., wait)| wait).sum();
        assert!((3 * 14 * MS..=3 * 36 * MS).contains(&all), "rank {rank}: {all}");
    }
    let of_slow: i64 = waits.iter().filter(|(_, of, _)| *of == 1).map(|(.., wait)| wait).sum();
    assert!(of_slow < 10 * MS, "{of_slow}");
}

#[test]
fn each_kind_waits_for_whom_it_needs() {
    let Some(trace) = trace("gloo_types") else { return };
    for (kind, ranks) in [
        ("all_gather", vec![0, 2, 3]),
        ("reduce_scatter", vec![0, 1, 3]),
        ("broadcast", vec![1, 2, 3]),
        ("reduce", vec![0]),
        ("all_to_all", vec![0, 2, 3]),
        ("gather", vec![0]),
        ("scatter", vec![1, 2, 3]),
    ] {
        let mut found: Vec<u32> =
            long(&trace, kind).into_iter().filter(|(_, wait)| *wait > 15.0).map(|(rank, _)| rank).collect();
        found.dedup();
        assert_eq!(found, ranks, "{kind}");
    }
}

#[test]
fn stages_of_a_pipeline_wait_for_messages() {
    let Some(trace) = trace("gloo_pipe") else { return };
    assert_eq!(trace.messages.len(), 2 * 2 * 3 * 4, "two directions, three borders, four microbatches, two steps");
    let found = long(&trace, "recv");
    let of_last = found.iter().filter(|(rank, wait)| *rank == 3 && is_near(*wait, 12.0)).count();
    assert!(of_last >= 6, "the last stage waits for the third in both steps: {found:?}");
    assert!(!long(&trace, "send").is_empty(), "a send waits for its receiver");
}

#[test]
fn messages_without_peers_are_not_matched() {
    let Some(trace) = trace("gloo_batch") else { return };
    assert_eq!(trace.messages, []);
    let group = &trace.recording.facts().groups[0];
    assert_eq!((group.message_parts, group.messages, group.undecided), (16, 0, 4));
}
