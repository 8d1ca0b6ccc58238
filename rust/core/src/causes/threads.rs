//! Teams of threads as points: forks, barriers, joins, and the time in which the master is alone.
//!
//! *Source*: PATTERNS 6.7; thesis section 4.1.4 (threads are not in the thesis: as Scalasca has them).

use super::points::{Alone, Anchor, Mark, Meets, Pair, Place, Relation};
use super::states::States;
use super::{Class, Seeds};
use crate::severity::Metric;
use crate::trace::{NONE, RegionClass, Shard, Trace};
use crate::waits::threads::{Part, barriers_of, teams};

pub(super) fn collect(trace: &Trace, shard: &Shard, states: &mut States, seeds: &mut Seeds) {
    if shard.teams.rows.is_empty() {
        return;
    }
    for process in shard.processes.clone() {
        let parts = teams(shard, &trace.world.processes[process as usize]);
        let mut last: Option<(u32, i64)> = None;
        for team in parts.chunk_by(|a, b| a.team.fork == b.team.fork) {
            let parallel = |part: &&Part| {
                part.team.instance != NONE && trace.class(shard, part.team.instance) == RegionClass::Parallel
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
                seeds.marks.push(mark(anchor, Class::Mark, Meets::Team, 0, total, completion));
            }
            barriers(trace, shard, states, &members, seeds);
            // Threads of nested teams are not idle while a thread of the outer team works alone.
            let Some(own) = members.iter().find(|part| part.location == forker) else { continue };
            if trace.world.locations[forker as usize].thread != 0 {
                continue;
            }
            let call = (forker, own.team.instance);
            let idle = members.len() as i64 - 1;
            seeds.alone.push(Alone { end: Anchor::new(call, Place::Fork), idle });
            if fork.join == i64::MIN {
                last = None;
            } else {
                seeds.marks.push(mark(Anchor::new(call, Place::Join), Class::Mark, Meets::NoTeam, 0, 0, 0));
                last = Some((forker, idle));
            }
        }
        if let Some((master, idle)) = last {
            let end = Anchor { location: master, instance: NONE, place: Place::Join };
            seeds.alone.push(Alone { end, idle });
        }
    }
}

fn mark(anchor: Anchor, class: Class, meets: Meets, waiting: i64, total: i64, completion: i64) -> Mark {
    Mark { anchor, class, meets, waiting, total, completion }
}

/// The k-th barriers of all members are one.
fn barriers(trace: &Trace, shard: &Shard, states: &mut States, members: &[&Part], seeds: &mut Seeds) {
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
            seeds.marks.push(mark(at(call), Class::OmpBarrier, Meets::Team, waiting, leave - enter, 0));
            if call != cause {
                let kind = match trace.class(shard, call.1) {
                    RegionClass::ExplicitBarrier => Metric::OmpExplicitBarrierWait,
                    _ => Metric::OmpImplicitBarrierWait,
                };
                seeds.pairs.push(Pair {
                    class: Class::OmpBarrier,
                    relation: Relation::Threads,
                    comm: NONE,
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
