//! Synchronization points of thread teams: forks, barriers, joins, and the time in which the master is alone.
//!
//! *Source*: specification.md#costs-of-thread-teams. The thesis has no threads; these follow Scalasca.

use rustc_hash::FxHashMap;

use super::cost_model::CostModel;
use super::ownership::ContendedLock;
use super::points::SyncPoints;
use super::points::{Anchor, GroupSync, IdleTeamSpan, Place, Relation, SyncPoint, SyncScope};
use super::states::States;
use super::tasks;
use crate::ids::{CommId, InstanceId, LocationId};
use crate::matching::threads::teams::{Part, Teams, ThreadTeam};
use crate::schema::Class;
use crate::severity::Metric;
use crate::trace::{RegionClass, Shard, Trace};
use crate::waits::tasks::{Arrival, TeamTasks};

pub(super) fn collect(
    trace: &Trace,
    shard: &Shard,
    model: CostModel,
    states: &mut States,
    (sync_points, sets, contended): (&mut SyncPoints, &mut ThreadSets, &mut Vec<ContendedLock>),
) {
    if shard.teams.rows.is_empty() {
        return;
    }
    for process in shard.processes {
        let mut last: Option<(LocationId, i64)> = None;
        let mut joined = i64::MIN;
        for team in Teams::new(shard, &trace.definitions.processes[process]).iter() {
            let parallel = |part: &&Part| trace.class(shard, part.team.instance) == RegionClass::Parallel;
            let members: Vec<&Part> = team.recorded().filter(parallel).collect();
            let (fork, forker) = (team.fork(), team.forker());
            let first = members.iter().map(|part| shard.enter(part.team.instance)).min().unwrap_or(i64::MAX);
            // Who has lost its region still takes part in barriers.
            let mut locations: Vec<LocationId> = team.parts.iter().map(|part| part.location).collect();
            locations.sort_unstable();
            let scope = SyncScope::Threads { set: sets.number(locations) };
            for part in &members {
                let enter = shard.enter(part.team.instance);
                let anchor = Anchor::new((part.location, part.team.instance), Place::Fork);
                let (total, completion) = (enter - fork.fork, enter - first);
                sync_points.group_syncs.push(group_sync(anchor, Class::Mark, scope, 0, total, completion));
            }
            // With tasks, Scalasca's costs are those of all time in a barrier until the last thread arrives.
            let tasks = if model == CostModel::Scalasca { None } else { TeamTasks::new(shard, team) };
            barriers(trace, shard, states, (team, scope, tasks.as_ref()), sync_points);
            if let Some(tasks) = &tasks {
                tasks::collect(trace, shard, tasks, states, (&mut sync_points.pairs, contended));
            }
            // Threads of nested teams are not idle while a thread of the outer team works alone.
            let Some(own) = members.iter().find(|part| part.location == forker) else { continue };
            if trace.definitions.locations[forker].thread != 0 || fork.fork < joined {
                continue;
            }
            joined = joined.max(fork.join);
            let call = (forker, own.team.instance);
            let idle = members.len() as i64 - 1;
            sync_points.alone.push(IdleTeamSpan { end: Anchor::new(call, Place::Fork), idle });
            if fork.join == i64::MIN {
                last = None;
            } else {
                sync_points.group_syncs.push(group_sync(
                    Anchor::new(call, Place::Join),
                    Class::Mark,
                    SyncScope::NoTeam,
                    0,
                    0,
                    0,
                ));
                last = Some((forker, idle));
            }
        }
        if let Some((master, idle)) = last {
            let end = Anchor { location: master, instance: InstanceId::NONE, place: Place::Join };
            sync_points.alone.push(IdleTeamSpan { end, idle });
        }
    }
}

/// Sets of threads that synchronize as a group, by number.
#[derive(Default)]
pub(super) struct ThreadSets(FxHashMap<Vec<LocationId>, u32>);

impl ThreadSets {
    /// The number of a sorted set.
    pub(super) fn number(&mut self, locations: Vec<LocationId>) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry(locations).or_insert(next)
    }

    /// The sets in the order of their numbers.
    pub(super) fn finish(self) -> Vec<Vec<LocationId>> {
        let mut sets: Vec<_> = self.0.into_iter().collect();
        sets.sort_unstable_by_key(|&(_, number)| number);
        sets.into_iter().map(|(set, _)| set).collect()
    }
}

fn group_sync(anchor: Anchor, class: Class, scope: SyncScope, waiting: i64, total: i64, completion: i64) -> GroupSync {
    GroupSync { anchor, class, scope, waiting, total, completion }
}

fn barriers(
    trace: &Trace,
    shard: &Shard,
    states: &mut States,
    (team, scope, tasks): (ThreadTeam, SyncScope, Option<&TeamTasks>),
    sync_points: &mut SyncPoints,
) {
    for barrier in team.barriers().into_iter().flatten() {
        let Some(cause) = barrier.latest() else { return };
        let arrival = |call: InstanceId| tasks.and_then(|tasks| tasks.arrival(shard, call, cause.1));
        // Where a thread runs tasks, its interval ends when the last thread arrives, and the next one begins at the Leave.
        let at = |call: (LocationId, InstanceId), has_tasks| {
            let of_tasks = if call == cause { Place::Begin } else { Place::Arrival };
            Anchor::new(call, if has_tasks { of_tasks } else { Place::Leave })
        };
        let of_cause = at(cause, arrival(cause.1).is_some());
        for call in barrier.calls() {
            let (enter, leave) = (shard.enter(call.1), shard.leave(call.1));
            let latest = shard.enter(cause.1).min(leave);
            let arrival = arrival(call.1);
            let here = at(call, arrival.is_some());
            let (waiting, held) = match arrival {
                Some(Arrival { waiting, until }) => (waiting, until - enter),
                None => (latest - enter, latest - enter),
            };
            if arrival.is_some() {
                let before = shard.events.time[shard.instances.leave[call.1] as usize - 1];
                // What it runs after the end of the barrier belongs to the next interval.
                let goes_on = shard.arrivals.get(&call.1).is_some_and(|barrier| before > barrier.end);
                let (place, rest) = if goes_on { (Place::Ended, 0) } else { (Place::Leave, leave - before) };
                sync_points.group_syncs.extend([
                    group_sync(here, Class::OmpBarrier, SyncScope::Nobody, waiting, latest - enter, 0),
                    group_sync(Anchor::new(call, place), Class::Mark, scope, 0, rest, 0),
                ]);
            } else {
                let whole = group_sync(here, Class::OmpBarrier, scope, waiting, leave - enter, 0);
                sync_points.group_syncs.push(whole);
            }
            if call != cause {
                let kind = match trace.class(shard, call.1) {
                    RegionClass::ExplicitBarrier => Metric::OmpExplicitBarrierWait,
                    _ => Metric::OmpImplicitBarrierWait,
                };
                sync_points.pairs.push(SyncPoint {
                    class: Class::OmpBarrier,
                    relation: Relation::Threads,
                    comm: CommId::NONE,
                    waiter: here,
                    cause: of_cause,
                    waiting,
                    held,
                    completion: 0,
                    cause_completion: 0,
                    state: states.find(kind, call.1),
                });
            }
        }
    }
}
