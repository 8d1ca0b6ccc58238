//! Barriers that order nothing visible.
//!
//! ```text
//!  0  --[ Allreduce ]--- computes ----[ Barrier ]---
//!  1  --[ Allreduce ]--[ Recv 2 ]-----[ Barrier ]---     between the two, no one-sided operation, no file,
//!  2  --[ Allreduce ]--[ Send 1 ]-----[ Barrier ]---     and no message that is received after the barrier
//! ```
//!
//! A message is received after its send, with or without a barrier. What a member has received before the barrier, its
//! sender has sent before it; so no message of the members crosses a barrier if as many have been received as sent.

use bitcode::{Decode, Encode};
use rustc_hash::FxHashMap;
use whywait_otf2::enums::CollectiveOp;

use super::calls::{Calls, sum_by_callpath};
use crate::Result;
use crate::ids::{CallPathId, CommId, InstanceId, ProcessId};
use crate::parallel::iter::prelude::*;
use crate::trace::definition_index::Comm;
use crate::trace::{NONE, Shard};

/// The barriers of a call path that order nothing visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeedlessBarriers {
    /// The call path.
    pub callpath: CallPathId,
    /// Barriers, of all members together.
    pub calls: u64,
    /// Those that order nothing.
    pub needless: u64,
    /// The time in the latter, ticks.
    pub ticks: i64,
}

/// Fewer barriers of a communicator say nothing.
const BARRIERS: usize = 10;

/// What some members of a communicator do up to a barrier.
#[derive(Clone, Copy, Debug, Encode, Decode)]
struct Before {
    /// Whether they use files or the memory of others after the last collective operation of the group.
    is_visible: bool,
    /// Messages to members so far, less those from members.
    open: i64,
    /// The call path of the first of them.
    callpath: CallPathId,
    /// The time in the barrier, if it lies in the focus.
    ticks: Option<i64>,
}

impl Before {
    fn add(&mut self, other: &Self) {
        self.is_visible |= other.is_visible;
        self.open += other.open;
        self.ticks = self.ticks.zip(other.ticks).map(|(a, b)| a + b);
    }
}

/// Some members of a communicator, and what they do up to each barrier; `None` for the latter if some have other
/// barriers than others, so that it is not known which belong together.
#[derive(Default, Encode, Decode)]
struct Members {
    number: usize,
    barriers: Option<Vec<Before>>,
}

impl Members {
    fn add(&mut self, number: usize, barriers: Option<Vec<Before>>) {
        self.barriers = match (self.number, self.barriers.take(), barriers) {
            (0, _, barriers) => barriers,
            (_, Some(mut own), Some(barriers)) if own.len() == barriers.len() => {
                own.iter_mut().zip(&barriers).for_each(|(own, before)| own.add(before));
                Some(own)
            }
            _ => None,
        };
        self.number += number;
    }
}

pub(super) fn find(calls: &Calls<'_>) -> Result<Vec<NeedlessBarriers>> {
    let trace = calls.trace;
    let mut comms: Vec<CommId> = Vec::new();
    for shard in &trace.shards {
        let mut number: FxHashMap<CommId, usize> = FxHashMap::default();
        for i in 0..shard.locations.len() {
            number.clear();
            let barriers = shard.collectives.of(i).iter().filter(|operation| is_barrier(operation.operation));
            barriers.for_each(|operation| *number.entry(operation.comm).or_default() += 1);
            comms.extend(number.iter().filter(|&(_, &number)| number >= BARRIERS).map(|(&comm, _)| comm));
        }
        comms.sort_unstable();
        comms.dedup();
    }
    let mut comms = trace.exchange.allgather(comms)?.concat();
    comms.sort_unstable();
    comms.dedup();
    let mut rows = Vec::new();
    for comm in comms {
        let Some(definition) = trace.definitions.comms.get(comm.index()) else { continue };
        let of_shards: Vec<Members> = trace
            .par_shards()
            .map(|shard| {
                let mut members = Members::default();
                for i in 0..shard.locations.len() {
                    if let Some(barriers) = of_member(calls, shard, i, comm, definition) {
                        members.add(1, Some(barriers));
                    }
                }
                members
            })
            .collect();
        let sum = |of: Vec<Members>| {
            let mut all = Members::default();
            of.into_iter().filter(|of| of.number > 0).for_each(|of| all.add(of.number, of.barriers));
            all
        };
        let all = sum(trace.exchange.gather(sum(of_shards))?);
        if all.number < 2 || all.number != definition.size {
            continue;
        }
        let number = all.number as u64;
        let inside = all.barriers.into_iter().flatten().filter_map(|before| Some((before, before.ticks?)));
        rows.extend(inside.map(|(before, ticks)| {
            let is_needless = !before.is_visible && before.open == 0;
            let (needless, ticks) = if is_needless { (number, ticks) } else { (0, 0) };
            NeedlessBarriers { callpath: before.callpath, calls: number, needless, ticks }
        }));
    }
    let add = |sum: &mut NeedlessBarriers, row: &NeedlessBarriers| {
        sum.calls += row.calls;
        sum.needless += row.needless;
        sum.ticks += row.ticks;
    };
    Ok(sum_by_callpath(rows, |row| row.callpath, add))
}

fn is_barrier(operation: u8) -> bool {
    operation == CollectiveOp::BARRIER.0
}

/// What a location does up to each barrier of a communicator; `None` if it is no member.
fn of_member(calls: &Calls<'_>, shard: &Shard, i: usize, comm: CommId, definition: &Comm) -> Option<Vec<Before>> {
    let operations = shard.collectives.of(i).iter().filter(|operation| operation.comm == comm);
    operations.clone().next()?;
    let is_member = |process: ProcessId| definition.rank(process).is_some();
    let enter = |instance: InstanceId| shard.instances.enter.get(instance.index()).copied();
    let mut sent: Vec<u32> =
        shard.sends.of(i).iter().filter(|send| is_member(send.peer)).filter_map(|send| enter(send.instance)).collect();
    let received = shard.receives.of(i).iter().filter(|receive| is_member(receive.peer));
    let mut received: Vec<u32> = received.filter_map(|receive| enter(receive.instance)).collect();
    let mut visible: Vec<u32> =
        shard.operations.of(i).iter().filter_map(|operation| enter(operation.instance)).collect();
    visible.extend(shard.io.of(i).iter().filter_map(|operation| enter(operation.instance)));
    for positions in [&mut sent, &mut received, &mut visible] {
        positions.sort_unstable();
    }
    let before = |positions: &[u32], position: u32| positions.partition_point(|&other| other < position);
    let mut since = 0;
    let mut all = Vec::new();
    for operation in operations {
        let (begin, leave) = (enter(operation.instance)?, shard.instances.leave[operation.instance]);
        if leave == NONE {
            break;
        }
        if is_barrier(operation.operation) {
            let (from, to) = (shard.events.time[begin as usize], shard.events.time[leave as usize]);
            let is_inside = from >= calls.focus.start && to <= calls.focus.end;
            all.push(Before {
                is_visible: before(&visible, since) < before(&visible, begin),
                open: before(&sent, begin) as i64 - before(&received, begin) as i64,
                callpath: shard.callpath(operation.instance),
                ticks: is_inside.then_some(to - from),
            });
        }
        since = leave;
    }
    Some(all)
}
