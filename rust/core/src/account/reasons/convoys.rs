//! Locks for which several threads queue at the same time.

use bitcode::{Decode, Encode};

use super::calls::{Calls, sum_by_callpath};
use crate::Result;
use crate::ids::CallPathId;
use crate::matching::threads::locks::ThreadLock;
use crate::waits::posix;

/// The waits for the locks of a call path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Convoy {
    /// The call path that waits.
    pub callpath: CallPathId,
    /// Number of waits in the focus.
    pub waits: u64,
    /// All waiting, ticks.
    pub ticks: i64,
    /// The part of it in which at least three threads wait for the same lock, ticks.
    pub queued: i64,
}

/// So many threads that wait at the same time are a queue.
const QUEUE: usize = 3;

pub(super) fn find(calls: &Calls<'_>, locks: &[Vec<Vec<ThreadLock>>]) -> Result<Vec<Convoy>> {
    let trace = calls.trace;
    let mut rows = Vec::new();
    for (shard, of_processes) in trace.shards.iter().zip(locks) {
        for (process, locks) in shard.processes.into_iter().zip(of_processes) {
            let process = &trace.definitions.processes[process];
            let awake = posix::awake(shard, &posix::conditions(trace, shard, process, locks));
            for lock in locks {
                let mut waits = Vec::new();
                lock.each_contention((trace, shard), &awake, |_, wait, time| {
                    let span = time.start.max(calls.focus.start)..time.end.min(calls.focus.end);
                    if span.start < span.end {
                        waits.push((shard.callpath(wait.instance), span));
                    }
                });
                rows.append(&mut of_lock(&waits));
            }
        }
    }
    let add = |sum: &mut Convoy, row: &Convoy| {
        sum.waits += row.waits;
        sum.ticks += row.ticks;
        sum.queued += row.queued;
    };
    let own = sum_by_callpath(rows, |row| row.callpath, add);
    Ok(sum_by_callpath(trace.exchange.gatherv(own)?, |row| row.callpath, add))
}

fn of_lock(waits: &[(CallPathId, std::ops::Range<i64>)]) -> Vec<Convoy> {
    // Waits come in the order of their ends. At equal times, they end before others begin.
    let mut changes: Vec<(i64, bool, usize)> = Vec::with_capacity(2 * waits.len());
    changes.extend(waits.iter().enumerate().map(|(i, (_, span))| (span.end, false, i)));
    changes.extend(waits.iter().enumerate().map(|(i, (_, span))| (span.start, true, i)));
    changes.sort_by_key(|&(time, ..)| time);
    let mut rows: Vec<Convoy> = waits
        .iter()
        .map(|(callpath, span)| Convoy { callpath: *callpath, waits: 1, ticks: span.end - span.start, queued: 0 })
        .collect();
    // How many wait, and since when; the time so far in which these are a queue.
    let (mut waiting, mut since, mut queued) = (0, 0, 0);
    for (time, begins, i) in changes {
        if waiting >= QUEUE {
            queued += time - since;
        }
        since = time;
        if begins {
            waiting += 1;
            rows[i].queued = -queued;
        } else {
            waiting -= 1;
            rows[i].queued += queued;
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_threads_are_a_queue() {
        let callpath = CallPathId::at(1);
        let waits = [(callpath, 0..10), (callpath, 2..8), (callpath, 4..6), (callpath, 20..30)];
        let rows = of_lock(&waits);
        assert_eq!(rows.iter().map(|row| row.queued).collect::<Vec<_>>(), [2, 2, 2, 0]);
        assert_eq!(rows.iter().map(|row| row.ticks).collect::<Vec<_>>(), [10, 6, 2, 10]);
    }
}
