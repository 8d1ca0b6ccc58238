//! Arcs between the threads of a process (whatif.md#how-it-works): forks and joins, barriers of a team, locks.
//!
//! A thread of a team keeps its measured distance to the fork; the join waits for the ends of all threads. In a barrier
//! in which threads run tasks, the others wait for the end of their last task; a taskwait or taskgroup construct in which its thread
//! waited ends after the task that it waited for. A lock is acquired when its previous owner releases it, in the measured
//! order. A created thread keeps its measured distance to its creation; a join waits for its end. A wait for a condition
//! variable ends after the signal that is inferred, and a barrier of POSIX threads when the last thread has arrived.

use crate::diagnostics::Diagnostics;
use crate::ids::{InstanceId, LocationId};
use crate::matching::threads::lives::lives;
use crate::matching::threads::locks;
use crate::matching::threads::rounds::rounds;
use crate::matching::threads::teams::{Teams, ThreadTeam};
use crate::whatif::graph::builder::{Builder, MEASURED, Node, Raw, enter, leave, stop};
use crate::whatif::graph::steps::Kind;

use crate::severity::Metric;
use crate::trace::locations::Process;
use crate::trace::{RegionClass, Shard, Trace};
use crate::waits::posix;
use crate::waits::tasks::TeamTasks;

/// Finds the arcs of all threads.
pub(in crate::whatif) fn collect(trace: &Trace, builder: &mut Builder) {
    for (number, shard) in trace.shards.iter().enumerate() {
        let first = builder.first_of(number);
        let threads = Threads { shard, first };
        for process in shard.processes {
            let process = &trace.definitions.processes[process];
            for team in Teams::new(shard, process).iter() {
                threads.team(team, builder);
                threads.taskwaits(trace, team, builder);
            }
            threads.locks(trace, process, builder);
            threads.posix(trace, process, builder);
            threads.created(process, builder);
        }
    }
}

struct Threads<'a> {
    shard: &'a Shard,
    /// Number of the first instance of the shard.
    first: u32,
}

impl Threads<'_> {
    fn team(&self, team: ThreadTeam, builder: &mut Builder) {
        let shard = self.shard;
        let (fork, forker) = (team.fork(), team.forker());
        let master = team.part_of(forker);
        let (enters, leaves) = (&shard.instances.enter, &shard.instances.leave);
        let at = master.map(|part| enters[part.team.instance]);
        let others = || team.recorded().filter(|part| part.location != forker);
        if let Some(forked) = self.stop(builder, forker, fork.fork, at, Kind::Point) {
            for part in others() {
                let (position, begin) = (enters[part.team.instance], shard.enter(part.team.instance));
                if begin < fork.fork {
                    continue;
                }
                if let Some(begun) = self.stop(builder, part.location, begin, Some(position), Kind::Begin) {
                    let target = builder.stop_target(begun);
                    builder.raws.push(Raw::new(target, stop(forked), fork.fork));
                }
            }
        }
        let at = master.map(|part| leaves[part.team.instance] + 1);
        if fork.join != i64::MIN
            && others().next().is_some()
            && let Some(joined) = self.stop(builder, forker, fork.join, at, Kind::Gate)
        {
            let ends: Vec<(Node, i64)> = others()
                .map(|part| (leave(self.first + part.team.instance.number()), shard.leave(part.team.instance)))
                .collect();
            let target = builder.stop_target(joined);
            builder.meet(&ends, &[(target, ends.len() as u32)], MEASURED);
        }
        self.barriers(team, builder);
    }

    fn barriers(&self, team: ThreadTeam, builder: &mut Builder) {
        for barrier in team.barriers().into_iter().flatten().filter(|_| team.parts.len() > 1) {
            let mut members = Vec::with_capacity(team.parts.len());
            for (location, call) in barrier.calls() {
                let (begin, end) = (self.shard.enter(call), self.shard.leave(call));
                let tasks = self.shard.tasks.of(self.shard.local(location));
                let last = tasks[..tasks.partition_point(|task| task.end <= end)].last();
                let source = last.filter(|task| task.begin >= begin).and_then(|task| {
                    let number = self.stop(builder, location, task.end, None, Kind::Point)?;
                    Some((stop(number), task.end))
                });
                members.push(source.unwrap_or((enter(self.first + call.number()), begin)));
            }
            let waiting: Vec<(u32, u32)> =
                barrier.calls().map(|(_, call)| (self.first + call.number(), members.len() as u32)).collect();
            builder.meet(&members, &waiting, MEASURED);
        }
    }

    fn locks(&self, trace: &Trace, process: &Process, builder: &mut Builder) {
        for lock in locks::of_process(trace, self.shard, process, &mut Diagnostics::default()) {
            lock.each_handover(|handover| {
                let (before, own) = (&lock.ownerships[handover.released], &lock.ownerships[handover.acquired]);
                let (Some(release), Some(acquire)) = (before.release(), own.acquire()) else { return };
                // A release comes after events of the same time in its call, an acquisition before.
                let (from, to) = (before.location, own.location);
                let Some(released) = self.stop(builder, from, release.time, None, Kind::Point) else { return };
                let within = self.positions(to, acquire.time).0.max(self.shard.instances.enter[acquire.instance] + 1);
                if let Some(taken) = self.stop(builder, to, acquire.time, Some(within), Kind::Gate) {
                    let target = builder.stop_target(taken);
                    builder.raws.push(Raw::new(target, stop(released), release.time));
                }
            });
        }
    }

    /// A taskwait or taskgroup construct ends after the task that its thread waited for.
    fn taskwaits(&self, trace: &Trace, team: ThreadTeam, builder: &mut Builder) {
        let Some(tasks) = TeamTasks::new(self.shard, team) else { return };
        let waits = tasks.waits(trace, self.shard);
        for wait in waits.iter().filter(|wait| matches!(wait.kind, Metric::OmpTaskWaitWait | Metric::OmpTaskGroupWait))
        {
            let last = tasks.last(&tasks.tasks[wait.task]);
            let Some(ended) = self.stop(builder, last.location, last.run.end, None, Kind::Point) else { continue };
            builder.meet(&[(stop(ended), last.run.end)], &[(self.first + wait.call.1.number(), 1)], MEASURED);
        }
    }

    /// Signals, and barriers of POSIX threads.
    fn posix(&self, trace: &Trace, process: &Process, builder: &mut Builder) {
        let call = |instance: InstanceId| self.first + instance.number();
        for round in rounds(trace, self.shard, process) {
            let members: Vec<(Node, i64)> =
                round.iter().map(|&(_, instance)| (enter(call(instance)), self.shard.enter(instance))).collect();
            let waiting: Vec<(u32, u32)> =
                round.iter().map(|&(_, instance)| (call(instance), members.len() as u32)).collect();
            if members.len() > 1 {
                builder.meet(&members, &waiting, MEASURED);
            }
        }
        let is_used = |class| trace.regions.has(class);
        if !is_used(RegionClass::ConditionWait) && !is_used(RegionClass::TimedConditionWait) {
            return;
        }
        let locks = locks::of_process(trace, self.shard, process, &mut Diagnostics::default());
        for condition in posix::conditions(trace, self.shard, process, &locks) {
            if let Some(signal) = condition.signal {
                builder.meet(&[(enter(call(signal.call.1)), signal.time)], &[(call(condition.instance), 1)], MEASURED);
            } else if condition.is_timed && condition.owner.is_some() {
                // Its time limit stays as measured, and then it waits for the mutex.
                self.stop(builder, condition.location, condition.wants_mutex_from(self.shard), None, Kind::Point);
            }
        }
    }

    /// The arcs of threads that were created one by one.
    fn created(&self, process: &Process, builder: &mut Builder) {
        for life in lives(self.shard, process) {
            let Some((own, begin)) = life.begin else { continue };
            let first = self.shard.event_offsets[self.shard.local(own)];
            if let Some((creator, create)) = life.create
                && creator != own
                && create.time <= begin.time
                && let Some(created) = self.stop(builder, creator, create.time, None, Kind::Point)
                && let Some(begins) = self.stop(builder, own, begin.time, Some(first), Kind::Begin)
            {
                let target = builder.stop_target(begins);
                builder.raws.push(Raw::new(target, stop(created), create.time));
            }
            // The record of a join comes before events of the same time: its call waits.
            if let Some((_, end)) = life.end
                && let Some((joiner, wait)) = life.wait
                && joiner != own
                && let Some(ended) = self.stop(builder, own, end.time, None, Kind::Point)
                && let Some(joined) = self.stop(builder, joiner, wait.time, self.leave_of(wait.instance), Kind::Gate)
            {
                let target = builder.stop_target(joined);
                builder.raws.push(Raw::new(target, stop(ended), end.time));
            }
        }
    }

    /// The position of a call's Leave.
    fn leave_of(&self, instance: InstanceId) -> Option<u32> {
        instance.is_some().then(|| self.shard.instances.leave[instance])
    }

    /// First and last position that a time can have between the events of a location.
    fn positions(&self, location: LocationId, time: i64) -> (u32, u32) {
        let i = self.shard.local(location);
        let (begin, end) = (self.shard.event_offsets[i], self.shard.event_offsets[i + 1]);
        let times = &self.shard.events.time[begin as usize..end as usize];
        let before = times.partition_point(|&event| event < time) as u32;
        let behind = times.partition_point(|&event| event <= time) as u32;
        (begin + before, begin + behind)
    }

    /// Adds a stop at a time, before the event `at` if possible, otherwise after all events of the same time.
    fn stop(&self, builder: &mut Builder, location: LocationId, time: i64, at: Option<u32>, kind: Kind) -> Option<u32> {
        let (from, to) = self.positions(location, time);
        let position = at.filter(|at| (from..=to).contains(at)).unwrap_or(to);
        let i = self.shard.local(location);
        let begin = self.shard.event_offsets[i];
        // Only a begin can come before the first event.
        (position > begin || kind == Kind::Begin).then(|| builder.stop(location, position, time, kind))
    }
}
