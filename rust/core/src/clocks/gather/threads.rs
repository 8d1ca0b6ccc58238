//! Threads of a process: forks and joins, barriers of a team, locks.

use crate::clocks::constraints::Found;
use crate::clocks::kind::Kind;
use crate::diagnostics::Diagnostics;
use crate::matching::threads::lives::lives;
use crate::matching::threads::locks::{self, LockKey};
use crate::matching::threads::teams::{Teams, ThreadTeam};
use crate::trace::locations::Process;
use crate::trace::{Shard, Trace};

/// The constraints between the threads of the processes of a shard.
pub(super) fn of_shard(trace: &Trace, shard: &Shard) -> Found {
    let mut found = Found::default();
    for process in shard.processes {
        let process = &trace.definitions.processes[process];
        // One thread waits for nobody.
        if process.locations.len() < 2 {
            continue;
        }
        for team in Teams::new(shard, process).iter() {
            of_team(shard, team, &mut found);
        }
        for lock in locks::of_process(trace, shard, process, &mut Diagnostics::default()) {
            // The order of ordered constructs is not recorded: it is that of their times.
            if matches!(lock.key, LockKey::Ordered { .. }) {
                continue;
            }
            lock.each_handover(|handover| {
                let (before, own) = (&lock.ownerships[handover.released], &lock.ownerships[handover.acquired]);
                if let (Some(release), Some(acquire)) = (before.release(), own.acquire()) {
                    found.link(Kind::ThreadLock, (before.location, release.time), (own.location, acquire.time));
                }
            });
        }
        of_created(shard, process, &mut found);
    }
    found
}

fn of_team(shard: &Shard, team: ThreadTeam, found: &mut Found) {
    let (fork, forker) = (team.fork(), team.forker());
    for part in team.recorded() {
        let (begin, end) = (shard.enter(part.team.instance), shard.leave(part.team.instance));
        found.link(Kind::Fork, (forker, fork.fork), (part.location, begin));
        if fork.join != i64::MIN {
            found.link(Kind::Join, (part.location, end), (forker, fork.join));
        }
    }
    for barrier in team.barriers().into_iter().flatten().filter(|_| team.parts.len() > 1) {
        let times = |(location, call)| (location, (shard.enter(call), shard.leave(call)));
        found.meeting(Kind::ThreadBarrier, barrier.calls().map(times));
    }
}

/// Threads that were created one by one.
fn of_created(shard: &Shard, process: &Process, found: &mut Found) {
    for life in lives(shard, process) {
        for (kind, before, after) in [(Kind::Fork, life.create, life.begin), (Kind::Join, life.end, life.wait)] {
            if let (Some((from, source)), Some((to, target))) = (before, after) {
                found.link(kind, (from, source.time), (to, target.time));
            }
        }
    }
}
