//! Points of tasks: waits for them, and the starts that bring the critical path to another thread.
//!
//! *Source*: specification.md#tasks. The thesis has no threads.

use super::ownership::{self, ContendedLock};
use super::points::{Anchor, Place, Relation, SyncPoint};
use super::states::States;
use crate::ids::{CommId, InstanceId, LocationId};
use crate::schema::Class;
use crate::trace::{NONE, Shard, Trace};
use crate::waits::tasks::{TaskLife, TeamTasks};

pub(super) fn collect(
    trace: &Trace,
    shard: &Shard,
    tasks: &TeamTasks,
    states: &mut States,
    (pairs, contended): (&mut Vec<SyncPoint>, &mut Vec<ContendedLock>),
) {
    let waits = tasks.waits(trace, shard);
    for wait in &waits {
        let last = tasks.last(&tasks.tasks[wait.task]);
        // Without a call, a task can still have an owner, but the critical path has no place to go on.
        let is_known = last.run.instance.is_some();
        let cause = if is_known { (last.location, last.run.instance) } else { wait.call };
        let state = states.find(wait.kind, wait.call.1);
        for part in &wait.parts {
            let held = part.end - shard.enter(wait.call.1);
            let (waiter, cause) = ((wait.call, Place::Leave), (cause, Place::Behind));
            let pair = pair((Class::Task, Relation::Ownership), waiter, cause, (part.end - part.start, held));
            pairs.push(SyncPoint { state, ..pair });
        }
    }
    ownership::of_tasks((trace, shard), tasks, waits, contended);
    pairs.extend(tasks.tasks.iter().filter(|task| task.is_awaited).filter_map(|task| started(shard, tasks, task)));
}

/// The start of a task for which its thread was idle: whatever made it ready came before.
fn started(shard: &Shard, tasks: &TeamTasks, task: &TaskLife) -> Option<SyncPoint> {
    let first = &tasks.runs[task.runs.start];
    let cause = match task.released {
        Some(run) => ((tasks.runs[run].location, tasks.runs[run].run.instance), Place::Behind),
        None => ((task.instance.creator, task.instance.create), Place::Begin),
    };
    let waiter = ((first.location, first.run.instance), Place::Ahead);
    let is_known = waiter.0.1.is_some() && cause.0.1.is_some() && cause.0.0 != first.location;
    is_known.then(|| {
        let held = task.ready - shard.enter(first.run.instance);
        pair((Class::Mark, Relation::Start), waiter, cause, (0, held))
    })
}

/// A location and a call, and the place there.
type At = ((LocationId, InstanceId), Place);

fn pair((class, relation): (Class, Relation), waiter: At, cause: At, (waiting, held): (i64, i64)) -> SyncPoint {
    SyncPoint {
        class,
        relation,
        comm: CommId::NONE,
        waiter: Anchor::new(waiter.0, waiter.1),
        cause: Anchor::new(cause.0, cause.1),
        waiting,
        held,
        completion: 0,
        cause_completion: 0,
        state: NONE,
    }
}
