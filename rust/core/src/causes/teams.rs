//! Synchronization points of thread teams: forks, barriers, joins, and the time in which the master is alone.
//!
//! *Source*: specification.md#costs-of-thread-teams. The thesis has no threads; these follow Scalasca.

use super::points::SyncPoints;
use super::points::{Anchor, GroupSync, IdleTeamSpan, Place, Relation, SyncPoint, SyncScope};
use super::states::States;
use crate::ids::{CommId, InstanceId, LocationId};
use crate::schema::Class;
use crate::severity::Metric;
use crate::trace::{RegionClass, Shard, Trace};
use crate::waits::threads::{Part, barriers_of, teams};

pub(super) fn collect(trace: &Trace, shard: &Shard, states: &mut States, sync_points: &mut SyncPoints) {
    if shard.teams.rows.is_empty() {
        return;
    }
    for process in shard.processes {
        let parts = teams(shard, &trace.definitions.processes[process]);
        let mut last: Option<(LocationId, i64)> = None;
        for team in parts.chunk_by(|a, b| a.team.fork == b.team.fork) {
            let parallel = |part: &&Part| {
                part.team.instance.is_some() && trace.class(shard, part.team.instance) == RegionClass::Parallel
            };
            let members: Vec<&Part> = team.iter().filter(parallel).collect();
            let row = team[0].team.fork;
            let forker = shard.location_of(&shard.forks, row);
            let fork = &shard.forks.rows[row as usize];
            let first = members.iter().map(|part| shard.enter(part.team.instance)).min().unwrap_or(i64::MAX);
            for part in &members {
                let enter = shard.enter(part.team.instance);
                let anchor = Anchor::new((part.location, part.team.instance), Place::Fork);
                let (total, completion) = (enter - fork.fork, enter - first);
                sync_points.group_syncs.push(group_sync(anchor, Class::Mark, SyncScope::Team, 0, total, completion));
            }
            barriers(trace, shard, states, &members, sync_points);
            // Threads of nested teams are not idle while a thread of the outer team works alone.
            let Some(own) = members.iter().find(|part| part.location == forker) else { continue };
            if trace.definitions.locations[forker].thread != 0 {
                continue;
            }
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

fn group_sync(anchor: Anchor, class: Class, scope: SyncScope, waiting: i64, total: i64, completion: i64) -> GroupSync {
    GroupSync { anchor, class, scope, waiting, total, completion }
}

/// The k-th barriers of all members are one.
fn barriers(trace: &Trace, shard: &Shard, states: &mut States, members: &[&Part], sync_points: &mut SyncPoints) {
    let count = members.iter().map(|part| barriers_of(shard, part).len()).min().unwrap_or(0);
    if members.iter().any(|part| barriers_of(shard, part).len() != count) {
        return;
    }
    for k in 0..count {
        let calls = || members.iter().map(|part| (part.location, barriers_of(shard, part)[k]));
        let latest = calls().reduce(|last, call| if shard.enter(call.1) > shard.enter(last.1) { call } else { last });
        let Some(cause) = latest else { return };
        let at = |call| Anchor::new(call, Place::Leave);
        for call in calls() {
            let (enter, leave) = (shard.enter(call.1), shard.leave(call.1));
            let waiting = shard.enter(cause.1).min(leave) - enter;
            sync_points.group_syncs.push(group_sync(
                at(call),
                Class::OmpBarrier,
                SyncScope::Team,
                waiting,
                leave - enter,
                0,
            ));
            if call != cause {
                let kind = match trace.class(shard, call.1) {
                    RegionClass::ExplicitBarrier => Metric::OmpExplicitBarrierWait,
                    _ => Metric::OmpImplicitBarrierWait,
                };
                sync_points.pairs.push(SyncPoint {
                    class: Class::OmpBarrier,
                    relation: Relation::Threads,
                    comm: CommId::NONE,
                    waiter: at(call),
                    cause: at(cause),
                    waiting,
                    held: waiting,
                    completion: 0,
                    cause_completion: 0,
                    state: states.find(kind, call.1),
                });
            }
        }
    }
}
