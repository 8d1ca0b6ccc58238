//! Teams of threads: the parts of their threads, and the barriers between them.

use crate::ids::{InstanceId, LocationId};
use crate::trace::columns::{TaskRun, TaskWait, Team};
use crate::trace::locations::Process;
use crate::trace::{NONE, Shard};

/// A thread's part in a team.
pub(crate) struct Part<'a> {
    /// The location.
    pub location: LocationId,
    /// The part.
    pub team: &'a Team,
}

/// Parts in all teams of a process, ordered by fork and location.
pub(crate) fn teams<'a>(shard: &'a Shard, process: &Process) -> Vec<Part<'a>> {
    let mut parts: Vec<Part> = Vec::new();
    for location in process.locations {
        let teams = shard.teams.of(shard.local(location));
        parts.extend(teams.iter().filter(|team| team.fork != NONE).map(|team| Part { location, team }));
    }
    parts.sort_by_key(|part| part.team.fork);
    parts
}

/// Region instances of the barriers in a thread's part.
pub(crate) fn barriers_of<'a>(shard: &'a Shard, part: &Part) -> &'a [InstanceId] {
    &shard.barriers.rows[part.team.barriers as usize..part.team.barriers_end as usize]
}

/// The taskwait and taskgroup constructs in a thread's part.
pub(crate) fn taskwaits_of<'a>(shard: &'a Shard, part: &Part) -> &'a [TaskWait] {
    &shard.taskwaits.rows[part.team.taskwaits as usize..part.team.taskwaits_end as usize]
}

/// The explicit task, by row, that runs before and after a time, or none.
pub(super) fn task_around(runs: &[TaskRun], time: i64) -> u32 {
    let run = runs.get(runs.partition_point(|run| run.end <= time));
    run.filter(|run| run.begin < time).map_or(NONE, |run| run.task)
}
