//! Threads of a process: forks and joins, barriers of a team, locks.

use crate::clocks::constraints::Found;
use crate::clocks::kind::Kind;
use crate::diagnostics::Diagnostics;
use crate::trace::locations::Process;
use crate::trace::{Shard, Trace};
use crate::waits::locks::{self, LockKey};
use crate::waits::posix;
use crate::waits::teams::{Part, barriers_of, teams};

/// The constraints between the threads of the processes of a shard.
pub(super) fn of_shard(trace: &Trace, shard: &Shard) -> Found {
    let mut found = Found::default();
    for process in shard.processes {
        let process = &trace.definitions.processes[process];
        // One thread waits for nobody.
        if process.locations.len() < 2 {
            continue;
        }
        for team in teams(shard, process).chunk_by(|a, b| a.team.fork == b.team.fork) {
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

fn of_team(shard: &Shard, team: &[Part], found: &mut Found) {
    let row = team[0].team.fork;
    let fork = &shard.forks.rows[row as usize];
    let forker = shard.location_of(&shard.forks, row);
    for part in team.iter().filter(|part| part.team.instance.is_some()) {
        let (begin, end) = (shard.enter(part.team.instance), shard.leave(part.team.instance));
        found.link(Kind::Fork, (forker, fork.fork), (part.location, begin));
        if fork.join != i64::MIN {
            found.link(Kind::Join, (part.location, end), (forker, fork.join));
        }
    }
    let count = barriers_of(shard, &team[0]).len();
    if team.len() < 2 || team.iter().any(|part| barriers_of(shard, part).len() != count) {
        return;
    }
    for k in 0..count {
        let members = team.iter().map(|part| {
            let call = barriers_of(shard, part)[k];
            (part.location, (shard.enter(call), shard.leave(call)))
        });
        found.meeting(Kind::ThreadBarrier, members);
    }
}

/// Threads that were created one by one.
fn of_created(shard: &Shard, process: &Process, found: &mut Found) {
    for life in posix::lives(shard, process) {
        for (kind, before, after) in [(Kind::Fork, life.create, life.begin), (Kind::Join, life.end, life.wait)] {
            if let (Some((from, source)), Some((to, target))) = (before, after) {
                found.link(kind, (from, source.time), (to, target.time));
            }
        }
    }
}
