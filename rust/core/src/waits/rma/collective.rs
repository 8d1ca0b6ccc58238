//! Waiting in collective calls on windows: create, free, fence; barriers and collectives of OpenSHMEM and ARMCI.
//!
//! ```text
//!  0  ---[ Fence |         |   ]--
//!  1  -------[put][ Fence  |   ]--
//!  2  ---------------------[ Fence ]      waiting(0) = last Enter − own Enter
//!                                         early fence(0) = Leave(put) − own Enter
//! ```
//!
//! *Definition*: waiting = max Enter − own Enter, for all whose Enter is earlier.
//!
//! *Guard*: with MPI, and in a broadcast, the calls need not synchronize: unless the last enters before the first
//! leaves, nobody waits. Barriers, allocations and N-to-N operations of OpenSHMEM and ARMCI always do; there waiting is
//! cut at the own Leave.
//!
//! *Early Fence* (part of Wait at Fence): waiting until the last operation on the process that belongs to the epoch
//! which the fence ends has left its call: Leave(operation) − own Enter, if that lies within the fence.
//!
//! *Pairs*: a fence synchronizes as many as its window has members; unneeded are those that neither accessed the process
//! nor were accessed by it in the epoch.
//!
//! *Source*: thesis 3.2, patterns 1 to 3; PATTERNS 4.2, 4.3, 4.8.

use bitcode::{Decode, Encode};
use rustc_hash::FxHashMap;

use super::{Waits, last_of, origin_of};
use crate::Result;
use crate::exchange::{Inbox, Outbox};
use crate::matching::epochs::Epochs;
use crate::matching::windows::{Part, match_all};
use crate::notes::Notes;
use crate::severity::Metric;
use crate::trace::regions::Library;
use crate::trace::{NONE, Shard, Trace};
use crate::waits::WaitState;
use crate::waits::meeting::{Meeting, With};

/// What a part gets to know of its instance.
#[derive(Clone, Copy, Encode, Decode)]
struct Answer {
    /// Position of the part among the collective calls of its shard.
    part: u32,
    /// Number of parts.
    size: u32,
    /// The wait state, if the part waits.
    wait: Option<WaitState>,
    /// The meeting, if all were in it at the same time.
    meeting: Option<Meeting>,
}

/// The last operation of an origin on a target in a fence epoch, for the target.
#[derive(Clone, Copy, Encode, Decode)]
struct Access {
    target: u32,
    window: u32,
    sequence: u32,
    origin: u32,
    /// Location and region instance of the operation.
    call: (u32, u32),
    leave: i64,
}

/// `BARRIER` of `CollectiveOp`.
const BARRIER: u8 = 0;

pub(super) fn detect(trace: &Trace, epochs: &[Epochs], waits: &mut [Waits], with_meetings: bool) -> Result<Notes> {
    let (answers, notes) = match_all(trace, epochs, evaluate)?;
    let outgoing = trace.shards.iter().zip(epochs).map(|(shard, epochs)| accesses(trace, shard, epochs)).collect();
    let accesses = trace.exchange.to_owner(outgoing)?;
    for ((((shard, epochs), answers), accesses), waits) in
        trace.shards.iter().zip(epochs).zip(answers).zip(accesses).zip(waits)
    {
        if with_meetings {
            for answer in answers.rows() {
                let window = epochs.collectives[answer.part as usize].window;
                // A call of all processes has no window.
                let comm = trace.world.windows.get(window as usize).map_or(NONE, |window| window.comm);
                waits.meetings.extend(answer.meeting.map(|meeting| Meeting { comm, ..meeting }));
            }
        }
        book(shard, epochs, &answers, &accesses, waits);
    }
    Ok(notes)
}

fn metric(operation: u8, library: Library) -> Metric {
    let kinds = match library {
        Library::Mpi => {
            [Metric::WaitAtCreate, Metric::WaitAtFree, Metric::WaitAtFence, Metric::WaitAtFence, Metric::WaitAtFence]
        }
        Library::Shmem => [
            Metric::ShmemWaitAtCreate,
            Metric::ShmemWaitAtFree,
            Metric::ShmemBarrierWait,
            Metric::ShmemLateBroadcast,
            Metric::ShmemWaitNxN,
        ],
        Library::Armci => [
            Metric::ArmciWaitAtCreate,
            Metric::ArmciWaitAtFree,
            Metric::ArmciBarrierWait,
            Metric::ArmciLateBroadcast,
            Metric::ArmciWaitNxN,
        ],
    };
    kinds[match operation {
        17 | 19 | 21 => 0,
        18 | 20 | 22 => 1,
        BARRIER => 2,
        1 => 3,
        _ => 4,
    }]
}

fn evaluate(parts: &[Part], answers: &mut Vec<(u32, Answer)>) {
    let Some(last) = last_of(parts, |part| (part.enter, part.process)) else { return };
    let kind = metric(last.operation, last.library);
    let optional =
        last.library == Library::Mpi || matches!(kind, Metric::ShmemLateBroadcast | Metric::ArmciLateBroadcast);
    let overlap = parts.iter().all(|part| last.enter < part.leave);
    let synchronize = parts.len() > 1 && (overlap || !optional);
    let first = parts.iter().map(|part| part.leave).min().unwrap_or(i64::MAX);
    let cause = (last.location, last.instance);
    for part in parts {
        let waiting = last.enter.min(part.leave) - part.enter;
        let call = (part.location, part.instance);
        let wait = (synchronize && waiting > 0).then(|| WaitState::new(kind, call, waiting, cause));
        let meeting = (parts.len() > 1 && overlap).then(|| Meeting {
            kind,
            call,
            cause,
            waiting,
            completion: part.leave - first,
            cause_completion: last.leave - first,
            comm: NONE,
            with: With::All,
        });
        let (shard, position) = part.position;
        answers.push((shard, Answer { part: position, size: parts.len() as u32, wait, meeting }));
    }
}

/// The accesses of all fence epochs of a shard.
fn accesses(trace: &Trace, shard: &Shard, epochs: &Epochs) -> Outbox<Access> {
    let mut outbox = trace.exchange.outbox();
    let mut last: FxHashMap<u32, Access> = FxHashMap::default();
    for (position, part) in epochs.collectives.iter().enumerate().filter(|(_, part)| part.is_fence()) {
        let rows = epochs.of_collective.of(position);
        let mut targets = Vec::new();
        for &row in rows {
            let operation = &shard.operations.rows[row as usize];
            let access = Access {
                target: operation.target,
                window: part.window,
                sequence: part.sequence,
                origin: part.process,
                call: (origin_of(shard, row), operation.instance),
                leave: shard.leave(operation.instance),
            };
            last.entry(operation.target)
                .and_modify(|last| {
                    if access.leave > last.leave {
                        *last = access;
                    }
                })
                .or_insert_with(|| {
                    targets.push(operation.target);
                    access
                });
        }
        for target in targets {
            if let Some(access) = last.remove(&target) {
                outbox.push(trace.owner(target), access);
            }
        }
    }
    outbox
}

fn book(shard: &Shard, epochs: &Epochs, answers: &Inbox<Answer>, accesses: &Inbox<Access>, waits: &mut Waits) {
    let mut accesses: Vec<Access> = accesses.rows().copied().collect();
    accesses.sort_unstable_by_key(|access| (access.target, access.window, access.sequence, access.origin));
    for answer in answers.rows() {
        let part = &epochs.collectives[answer.part as usize];
        waits.states.extend(answer.wait);
        if !part.is_fence() {
            continue;
        }
        let key = (part.process, part.window, part.sequence);
        let of = |access: &Access| (access.target, access.window, access.sequence);
        let begin = accesses.partition_point(|access| of(access) < key);
        let count = accesses[begin..].iter().take_while(|access| of(access) == key).count();
        let on_me = &accesses[begin..begin + count];
        if let Some(wait) = answer.wait {
            book_early_fence(shard, &wait, on_me, waits);
        }
        let mut partners: Vec<u32> = on_me.iter().map(|access| access.origin).collect();
        let rows = epochs.of_collective.of(answer.part as usize);
        partners.extend(rows.iter().map(|&row| shard.operations.rows[row as usize].target));
        partners.sort_unstable();
        partners.dedup();
        let size = i64::from(answer.size);
        waits.count(part.location, part.instance, Metric::PairSyncs, size);
        waits.count(part.location, part.instance, Metric::PairSyncsUnneeded, size - partners.len() as i64);
    }
}

fn book_early_fence(shard: &Shard, fence: &WaitState, accesses: &[Access], waits: &mut Waits) {
    let Some(last) = last_of(accesses, |access| (access.leave, access.origin)) else { return };
    let waiting = last.leave - shard.enter(fence.instance);
    if waiting > 0 && last.leave <= shard.leave(fence.instance) {
        let call = (fence.location, fence.instance);
        waits.states.push(WaitState::new(Metric::EarlyFence, call, waiting, last.call));
    }
}
