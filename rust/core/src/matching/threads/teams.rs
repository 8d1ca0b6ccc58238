//! Teams of threads: fork and join, the parts of their threads, and the barriers between them.
//!
//! A thread begins its part after the fork, and the join comes after the ends of all parts. The k-th barriers of all threads of a
//! team are one.

use crate::ids::{InstanceId, LocationId};
use crate::trace::columns::{Fork, TaskRun, TaskWait, Team};
use crate::trace::locations::Process;
use crate::trace::{NONE, Shard};

/// A thread's part in a team.
pub(crate) struct Part<'a> {
    /// The location.
    pub location: LocationId,
    /// The part.
    pub team: &'a Team,
}

/// The teams of a process.
pub(crate) struct Teams<'a> {
    shard: &'a Shard,
    /// By fork and location.
    parts: Vec<Part<'a>>,
}

impl<'a> Teams<'a> {
    /// Those of a process of a shard.
    pub(crate) fn new(shard: &'a Shard, process: &Process) -> Self {
        let mut parts: Vec<Part> = Vec::new();
        for location in process.locations {
            let teams = shard.teams.of(shard.local(location));
            parts.extend(teams.iter().filter(|team| team.fork != NONE).map(|team| Part { location, team }));
        }
        parts.sort_by_key(|part| part.team.fork);
        Self { shard, parts }
    }

    /// The teams, in the order of their forks.
    pub(crate) fn iter(&self) -> impl Iterator<Item = ThreadTeam<'_>> {
        let teams = self.parts.chunk_by(|a, b| a.team.fork == b.team.fork);
        teams.map(|parts| ThreadTeam { shard: self.shard, parts })
    }
}

/// A team of threads.
#[derive(Clone, Copy)]
pub(crate) struct ThreadTeam<'a> {
    shard: &'a Shard,
    /// By location; at least one.
    pub parts: &'a [Part<'a>],
}

impl<'a> ThreadTeam<'a> {
    /// Row of the fork.
    pub(crate) fn row(self) -> u32 {
        self.parts[0].team.fork
    }

    /// The fork, with the time of the join.
    pub(crate) fn fork(self) -> &'a Fork {
        &self.shard.forks.rows[self.row() as usize]
    }

    /// The thread that forks.
    pub(crate) fn forker(self) -> LocationId {
        self.shard.location_of(&self.shard.forks, self.row())
    }

    /// The parts whose parallel region is recorded.
    pub(crate) fn recorded(self) -> impl Iterator<Item = &'a Part<'a>> + Clone {
        self.parts.iter().filter(|part| part.team.instance.is_some())
    }

    /// The part of a thread, if its parallel region is recorded.
    pub(crate) fn part_of(self, location: LocationId) -> Option<&'a Part<'a>> {
        self.recorded().find(|part| part.location == location)
    }

    /// The barriers of all threads, in order; `None` if the threads do not have the same number of them.
    pub(crate) fn barriers(self) -> Option<impl Iterator<Item = Barrier<'a>>> {
        let Self { shard, parts } = self;
        let count = barriers_of(shard, &parts[0]).len();
        let is_same = parts.iter().all(|part| barriers_of(shard, part).len() == count);
        is_same.then(|| (0..count).map(move |number| Barrier { shard, parts, number }))
    }
}

/// A barrier of a team.
#[derive(Clone, Copy)]
pub(crate) struct Barrier<'a> {
    shard: &'a Shard,
    parts: &'a [Part<'a>],
    number: usize,
}

impl Barrier<'_> {
    /// The calls of all threads, in the order of the parts.
    pub(crate) fn calls(self) -> impl Iterator<Item = (LocationId, InstanceId)> + Clone {
        self.parts.iter().map(move |part| (part.location, barriers_of(self.shard, part)[self.number]))
    }

    /// The call of the thread that comes last.
    pub(crate) fn latest(self) -> Option<(LocationId, InstanceId)> {
        latest(self.shard, self.calls())
    }
}

/// The call that is entered last; of several, the first.
pub(crate) fn latest(
    shard: &Shard,
    calls: impl Iterator<Item = (LocationId, InstanceId)>,
) -> Option<(LocationId, InstanceId)> {
    calls.reduce(|last, call| if shard.enter(call.1) > shard.enter(last.1) { call } else { last })
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
pub(crate) fn task_around(runs: &[TaskRun], time: i64) -> u32 {
    let run = runs.get(runs.partition_point(|run| run.end <= time));
    run.filter(|run| run.begin < time).map_or(NONE, |run| run.task)
}
