//! Thread teams: management of a team, barriers between its threads, locks.
//!
//! ```text
//!  master  --F-[ parallel      ]--J--      F fork, J join
//!  worker      ---[ parallel ]--
//!            |----|          |----|        fork part and join part of the worker
//! ```
//!
//! *Management*: fork part = `[Enter(parallel) − fork]+`, join part = `[join − Leave(parallel)]+`, at each thread's
//! parallel region. Both belong to the time of the parallel region, not to that of the function that forked.
//! *Barriers*: waiting = latest Enter of the team − own Enter − time of the thread in explicit tasks in
//! between. *Locks*: [`locks`].
//!
//! *Source*: specification.md#team-management, specification.md#barriers-of-threads.

use super::findings::Findings;
use super::posix;
use super::wait_state::WaitState;
use crate::by_location::by_location;
use crate::diagnostics::DiagnosticKind;
use crate::matching::threads::locks;
use crate::matching::threads::teams::{Part, Teams, ThreadTeam, task_around, taskwaits_of};
use crate::severity::{Accumulator, Metric, Severity};
use crate::trace::locations::Process;
use crate::trace::{RegionClass, Shard, Trace};

/// Detects waits and management time in the thread teams of a shard.
pub fn detect(trace: &Trace, shard: &Shard) -> Findings {
    let mut findings = Findings::default();
    for process in shard.processes {
        let process = &trace.definitions.processes[process];
        book_teams(trace, shard, process, &mut findings);
        book_locks(trace, shard, process, &mut findings);
    }
    add_severities(trace, shard, &mut findings);
    findings
}

/// Adds the severities of waits.
pub(super) fn add_severities(trace: &Trace, shard: &Shard, findings: &mut Findings) {
    let mut cells = Accumulator::new(&trace.tree);
    // Those for a lock come in the order in which threads acquire it.
    let waits = std::mem::take(&mut findings.waits);
    findings.waits = by_location(waits, shard.locations.len(), |wait| shard.local(wait.location));
    for of_location in findings.waits.chunk_by_mut(|a, b| a.location == b.location) {
        of_location.sort_by_key(|wait| wait.instance);
        for wait in &*of_location {
            cells.add(wait.kind, shard.callpath(wait.instance), wait.waiting);
        }
        cells.end_location(of_location[0].location);
    }
    findings.severities.append(&mut cells.finish());
}

fn book_teams(trace: &Trace, shard: &Shard, process: &Process, findings: &mut Findings) {
    for team in Teams::new(shard, process).iter() {
        for part in team.recorded() {
            book_management(shard, team, part, &mut findings.severities);
        }
        book_barriers(trace, shard, team, findings);
    }
}

fn book_management(shard: &Shard, team: ThreadTeam, part: &Part, severities: &mut Vec<Severity>) {
    let (fork, instance) = (team.fork(), part.team.instance);
    // Clock errors must not give a thread more time than there is between fork and join.
    let last = if fork.join == i64::MIN { shard.leave(instance) } else { fork.join };
    let begin = (shard.enter(instance).min(last) - fork.fork).max(0);
    let end = (last - shard.leave(instance).max(fork.fork)).max(0);
    let callpath = shard.callpath(instance);
    let location = part.location;
    let mut add = |metric, callpath, value| severities.push(Severity { metric, callpath, location, value });
    add(Metric::OmpFork, callpath, begin);
    add(Metric::OmpManagement, callpath, begin + end);
    add(Metric::Time, callpath, begin + end);
    if location == team.forker() && fork.callpath.is_some() {
        add(Metric::Time, fork.callpath, -(begin + end));
    }
}

fn book_barriers(trace: &Trace, shard: &Shard, team: ThreadTeam, findings: &mut Findings) {
    let Some(barriers) = team.barriers() else {
        findings.diagnostics.add(DiagnosticKind::UnknownTeam, team.parts[0].location, team.fork().fork);
        return;
    };
    for barrier in barriers {
        let Some(cause) = barrier.latest() else { return };
        for (part, (location, instance)) in team.parts.iter().zip(barrier.calls()) {
            let kind = match trace.regions.class(trace.tree.region(shard.callpath(instance))) {
                RegionClass::ExplicitBarrier => Metric::OmpExplicitBarrierWait,
                _ => Metric::OmpImplicitBarrierWait,
            };
            let until = shard.enter(cause.1).min(shard.leave(instance));
            let waiting = until - shard.enter(instance) - tasks_between(shard, part, shard.enter(instance), until);
            if waiting > 0 {
                findings.waits.push(WaitState::new(kind, (location, instance), waiting, cause));
            }
        }
    }
}

/// Time that a thread spent on explicit tasks between two times, the first of which is the Enter of a barrier: without the
/// task that the barrier is part of, and with the taskwait and taskgroup constructs of the others, in which they may be
/// suspended.
///
/// Tasks after the last thread's arrival do not shorten the wait.
fn tasks_between(shard: &Shard, part: &Part, from: i64, to: i64) -> i64 {
    let runs = shard.tasks.of(shard.local(part.location));
    let around = task_around(runs, from);
    let first = runs.partition_point(|run| run.end <= from);
    let runs = runs[first..].iter().map(|run| (run.task, run.begin, run.end));
    let constructs = taskwaits_of(shard, part);
    let first = constructs.partition_point(|construct| shard.enter(construct.instance) < from);
    let constructs = constructs[first..]
        .iter()
        .map(|construct| (construct.task, shard.enter(construct.instance), shard.leave(construct.instance)));
    let is_inside = |&(_, begin, _): &(u32, i64, i64)| begin < to;
    let is_other = |&(task, ..): &(u32, i64, i64)| task != around;
    let mut runs = runs.take_while(is_inside).filter(is_other).peekable();
    let mut constructs = constructs.take_while(is_inside).filter(is_other).peekable();
    // Both are in the order of time, and may lie in each other.
    let (mut until, mut busy) = (from, 0);
    loop {
        let construct = match (runs.peek(), constructs.peek()) {
            (Some(&(_, run, _)), Some(&(_, construct, _))) => construct < run,
            (run, _) => run.is_none(),
        };
        let Some((_, begin, end)) = (if construct { constructs.next() } else { runs.next() }) else { return busy };
        busy += (end.min(to) - begin.max(until)).max(0);
        until = until.max(end);
    }
}

fn book_locks(trace: &Trace, shard: &Shard, process: &Process, findings: &mut Findings) {
    let locks = locks::of_process(trace, shard, process, &mut findings.diagnostics);
    for lock in &locks {
        // Those for condition variables are for signals as well.
        lock.each_wait(trace, shard, |_, wait| {
            findings.waits.extend((wait.kind != Metric::ConditionContention).then_some(wait));
        });
    }
    posix::book(trace, shard, process, &locks, findings);
    findings.locks.push(locks);
}
